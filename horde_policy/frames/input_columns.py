"""Columns of a frame that a person or a file gives: typed, filled where absent, and checked, or refused by row, column and rule.

Absent means no such column, or a null cell. Rows are counted from 0. Nothing is returned for bad input: the first rule that
is broken raises, before anything is used.
"""

import polars as pl

from horde_policy.errors import FrameError, InputError
from horde_policy.frames.schemas import UTC_INSTANT

__all__ = [
    "flags",
    "given",
    "instants",
    "name_lists",
    "real_numbers",
    "refuse_first",
    "refuse_nulls",
    "texts",
    "whole_numbers",
    "words",
]

FIRST_INSTANT_US = -62_135_596_800_000_000
"""0001-01-01, the first instant that Python and Polars both name."""

LAST_INSTANT_US = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""


def given(frame: pl.DataFrame, name: str) -> pl.Series | None:
    """Return the column, or null when it is not there or holds nothing but untyped nulls.

    >>> given(pl.DataFrame({"chat": [None]}), "chat") is None
    True
    """
    if name not in frame.columns or frame.schema[name] == pl.Null:
        return None
    return frame[name]


def refuse_first(what: str, column: pl.Series, broken: pl.Series, rule: str) -> None:
    """Raise InputError for the first row where ``broken`` is true; nulls do not break a rule.

    >>> sizes = pl.Series("max_length", [80, 0])
    >>> refuse_first("traffic", sizes, sizes < 1, "must be at least 1")
    Traceback (most recent call last):
    horde_policy.errors.InputError: traffic, row 1, column max_length: 0 must be at least 1
    """
    if broken.any():
        row = broken.fill_null(value=False).arg_max()
        value = None if row is None else column[row]
        given_value = value.to_list() if isinstance(value, pl.Series) else value
        raise InputError(what, f"row {row}, column {column.name}", given_value, rule)


def refuse_nulls(what: str, column: pl.Series) -> pl.Series:
    """Return the column, or raise InputError for its first null."""
    if column.null_count():
        refuse_first(what, column, column.is_null(), "must not be absent")
    return column


def _wrong_type(what: str, column: pl.Series, rule: str) -> FrameError:
    return FrameError(what, f"column {column.name}", str(column.dtype), rule)


def _column(frame: pl.DataFrame, what: str, name: str) -> pl.Series:
    """Return a column that must be there, or raise."""
    if name not in frame.columns:
        raise FrameError(what, f"column {name}", None, "is missing")
    column = frame[name]
    if column.dtype == pl.Null and frame.height:
        refuse_nulls(what, column)
    return column


def _nulls(frame: pl.DataFrame, name: str, dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    return pl.Series(name, [None], dtype=dtype).new_from_index(0, frame.height)


def instants(frame: pl.DataFrame, what: str, name: str, *, required: bool = True) -> pl.Series:
    """Return a column of instants as ``Datetime("us", "UTC")``; a time without a zone is refused, not guessed.

    A column that is not required may hold nulls, or be absent, which gives nulls.
    """
    if not required and given(frame, name) is None:
        return _nulls(frame, name, UTC_INSTANT)
    column = _column(frame, what, name)
    if column.dtype == pl.Null:
        return _nulls(frame, name, UTC_INSTANT)
    if not isinstance(column.dtype, pl.Datetime):
        raise _wrong_type(what, column, "must be instants with a time zone, as datetime[us, UTC]")
    if column.dtype.time_zone is None:
        raise _wrong_type(what, column, "has no time zone; say which, as datetime[us, UTC]")
    if required:
        refuse_nulls(what, column)
    if column.dtype.time_unit == "ms":
        bound_ms = LAST_INSTANT_US // 1000
        ticks = column.to_physical()
        refuse_first(what, ticks.alias(name), (ticks.abs() > bound_ms), "must lie in the years 1 to 9999")
    instants_us = column.dt.convert_time_zone("UTC").cast(UTC_INSTANT)
    ticks = instants_us.to_physical()
    outside = (ticks < FIRST_INSTANT_US) | (ticks > LAST_INSTANT_US)
    refuse_first(what, ticks, outside, "microseconds since 1970 must lie in the years 1 to 9999")
    return instants_us


def whole_numbers(
    frame: pl.DataFrame,
    what: str,
    name: str,
    *,
    absent: pl.Series | int | None,
    least: int | None = None,
    most: int | None = None,
) -> pl.Series:
    """Return a column of whole numbers as Int64 within ``least`` and ``most``; ``absent`` fills (null: it is required)."""
    column = _column(frame, what, name) if absent is None else given(frame, name)
    if column is None or column.dtype == pl.Null:
        column = _nulls(frame, name, pl.Int64)
    if not column.dtype.is_integer():
        raise _wrong_type(what, column, "must be whole numbers")
    if column.dtype in (pl.UInt64, pl.UInt128, pl.Int128):
        refuse_first(what, column, column.cast(pl.Int64, strict=False).is_null() & column.is_not_null(), "must fit in 64 bits")
    column = column.cast(pl.Int64)
    if absent is None:
        refuse_nulls(what, column)
    if least is not None:
        refuse_first(what, column, column < least, f"must be at least {least}")
    if most is not None:
        refuse_first(what, column, column > most, f"must be at most {most}")
    return column if absent is None else _filled(column, absent)


def _filled(column: pl.Series, absent: pl.Series | float | str) -> pl.Series:
    if not column.null_count():
        return column
    if isinstance(absent, pl.Series):
        return column.zip_with(column.is_not_null(), absent).alias(column.name)
    if column.null_count() == len(column):
        return pl.Series(column.name, [absent], dtype=column.dtype).new_from_index(0, len(column))
    return column.fill_null(absent)


def real_numbers(
    frame: pl.DataFrame, what: str, name: str, *, absent: pl.Series | float | None, above: float | None = None
) -> pl.Series:
    """Return a column of finite numbers as Float64, above ``above``; ``absent`` fills (null: it is required)."""
    column = _column(frame, what, name) if absent is None else given(frame, name)
    if column is None or column.dtype == pl.Null:
        column = _nulls(frame, name, pl.Float64)
    if not (column.dtype.is_integer() or column.dtype.is_float()):
        raise _wrong_type(what, column, "must be numbers")
    column = column.cast(pl.Float64)
    if absent is None:
        refuse_nulls(what, column)
    rule = "must be a finite number" + (f" above {above:g}" if above is not None else "")
    broken = ~column.is_finite()
    refuse_first(what, column, broken if above is None else broken | (column <= above), rule)
    return column if absent is None else _filled(column, absent)


def flags(frame: pl.DataFrame, what: str, name: str, *, absent: pl.Series | bool) -> pl.Series:
    """Return a column of true and false; ``absent`` fills."""
    column = given(frame, name)
    if column is None:
        column = _nulls(frame, name, pl.Boolean)
    if column.dtype != pl.Boolean:
        raise _wrong_type(what, column, "must be true or false")
    return _filled(column, absent)


def texts(frame: pl.DataFrame, what: str, name: str, *, required: bool = True) -> pl.Series:
    """Return a column of texts; whole numbers become their digits. If it is not required it may hold nulls, or be absent."""
    column = _column(frame, what, name) if required else given(frame, name)
    if column is None or column.dtype == pl.Null:
        return _nulls(frame, name, pl.String)
    if required:
        refuse_nulls(what, column)
    if isinstance(column.dtype, pl.Categorical | pl.Enum) or column.dtype.is_integer():
        return column.cast(pl.String)
    if column.dtype != pl.String:
        raise _wrong_type(what, column, "must be texts")
    return column


def words(frame: pl.DataFrame, what: str, name: str, kind: pl.Enum) -> pl.Series:
    """Return a required column of the words of ``kind``, as that Enum."""
    column = _column(frame, what, name)
    if column.dtype == kind:
        return refuse_nulls(what, column)
    column = texts(frame, what, name)
    typed = column.cast(kind, strict=False)
    if typed.null_count():
        refuse_first(what, column, typed.is_null(), "must be one of " + ", ".join(kind.categories))
    return typed


def name_lists(frame: pl.DataFrame, what: str, name: str) -> pl.Series:
    """Return a required column of lists of names; texts are taken as one CSV cell a list, its names joined by ``|``.

    In a column of texts an empty or absent cell is the empty list; in a column of lists a null is absent, which is refused.

    >>> name_lists(pl.DataFrame({"models": ["a|b", None]}), "traffic", "models").to_list()
    [['a', 'b'], []]
    """
    column = _column(frame, what, name)
    if column.dtype == pl.Null:
        return _nulls(frame, name, pl.List(pl.String))
    if column.dtype == pl.String:
        column = column.fill_null("")
        none = pl.Series(name, [[]], dtype=pl.List(pl.String)).new_from_index(0, len(column))
        return column.str.split("|").zip_with(column != "", none).alias(name)
    if not isinstance(column.dtype, pl.List):
        raise _wrong_type(what, column, "must be lists of names")
    refuse_nulls(what, column)
    if column.dtype == pl.List(pl.Null):
        if column.explode(empty_as_null=False).len():
            refuse_first(what, column, column.list.len() > 0, "must hold names, not nulls")
        return column.cast(pl.List(pl.String))
    if column.dtype != pl.List(pl.String):
        raise _wrong_type(what, column, "must be lists of names")
    # One chunk after the other: a whole file's names in one piece are large.
    if any(chunk.explode(empty_as_null=False).null_count() for chunk in column.get_chunks()):
        refuse_first(what, column, column.list.eval(pl.element().is_null().any()).list.first(), "must hold names, not nulls")
    return column
