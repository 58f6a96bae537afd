"""What one cell of a file may be: its kind, the rule it must keep, and its value (``replay.md``, "Inputs")."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import polars as pl

from horde_policy.errors import FrameError
from horde_policy.frames.schemas import UTC_INSTANT

__all__ = ["POLARS_TYPES", "RULES", "Kind", "converted", "json_row_type", "loosely_typed", "parsed"]

Kind = Literal["instant", "any_instant", "whole", "real", "flag", "text", "names"]

RULES: Mapping[Kind, str] = {
    "instant": "must be an instant with its time zone, as 2026-11-29T18:00:00Z",
    "any_instant": "must be a date and time, as 2026-11-29 18:00:00.123456",
    "whole": "must be a whole number",
    "real": "must be a finite number",
    "flag": "must be true or false",
    "text": "must be text",
    "names": "must be names joined by |, or a list of names",
}
"""Kind → the rule as it stands in a message. ``any_instant`` reads a time without a zone as UTC."""

POLARS_TYPES: Mapping[Kind, pl.DataType | type[pl.DataType]] = {
    "instant": UTC_INSTANT,
    "any_instant": UTC_INSTANT,
    "whole": pl.Int64,
    "real": pl.Float64,
    "flag": pl.Boolean,
    "text": pl.String,
    "names": pl.List(pl.String),
}

_FLAGS = {"1": True, "true": True, "True": True, "TRUE": True, "0": False, "false": False, "False": False, "FALSE": False}
WHOLE_LIMIT = 2**63


def parsed(cell: object, kind: Kind) -> object:
    """Return one cell's value; null and the empty text are absent; raise ValueError if it is not of its kind.

    >>> parsed("12", "whole"), parsed("", "whole"), parsed("a|b", "names")
    (12, None, ['a', 'b'])
    >>> parsed("2023-11-16 18:15:46.6805900", "any_instant")
    datetime.datetime(2023, 11, 16, 18, 15, 46, 680590, tzinfo=datetime.timezone.utc)
    """
    if cell is None or cell == "":
        return None
    return _PARSERS[kind](cell)


def _whole(cell: object) -> int:
    if isinstance(cell, str):
        if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", cell):
            raise ValueError(cell)
        cell = int(cell)
    if isinstance(cell, bool) or not isinstance(cell, int) or not -WHOLE_LIMIT <= cell < WHOLE_LIMIT:
        raise ValueError(cell)
    return cell


def _real(cell: object) -> float:
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        raise ValueError(cell)
    try:
        number = float(cell)
    except OverflowError:
        raise ValueError(cell) from None
    if not math.isfinite(number):
        raise ValueError(cell)
    return number


def _flag(cell: object) -> bool:
    if isinstance(cell, str) and cell in _FLAGS:
        return _FLAGS[cell]
    if isinstance(cell, bool):
        return cell
    raise ValueError(cell)


def _text(cell: object) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) and not isinstance(cell, bool):
        return str(cell)
    raise ValueError(cell)


def _names(cell: object) -> list[str]:
    if isinstance(cell, str):
        return cell.split("|")
    if isinstance(cell, list) and all(isinstance(name, str) for name in cell):
        return cell
    raise ValueError(cell)


def _any_instant(cell: object) -> datetime:
    instant = datetime.fromisoformat(cell.strip()) if isinstance(cell, str) else cell
    if not isinstance(instant, datetime):
        raise ValueError(cell)
    try:
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except OverflowError:
        raise ValueError(cell) from None


def _instant(cell: object) -> datetime:
    instant = datetime.fromisoformat(cell.strip()) if isinstance(cell, str) else cell
    if not isinstance(instant, datetime) or instant.tzinfo is None:
        raise ValueError(cell)
    return _any_instant(instant)


_PARSERS: Mapping[Kind, Callable[[object], object]] = {
    "instant": _instant,
    "any_instant": _any_instant,
    "whole": _whole,
    "real": _real,
    "flag": _flag,
    "text": _text,
    "names": _names,
}

_JSON_TYPES: Mapping[Kind, Any] = {
    # not datetime: the decoder would take a bare number for one
    "instant": str,
    "any_instant": str,
    "whole": int,
    "real": float,
    "flag": bool,
    "text": str | int,
    "names": list[str],
}


def json_row_type(
    kinds: Mapping[str, Kind],
) -> tuple[msgspec.json.Decoder[Any], Callable[[Sequence[Any], str], pl.Series]]:
    """Return a decoder of JSON lines into rows of these kinds, and the function that takes one column out of such rows.

    The decoder raises ValueError at the first line that is not an object of these kinds; digits in quotes are numbers.
    """
    places = {name: f"column_{place}" for place, name in enumerate(kinds)}
    fields = [(place, _JSON_TYPES[kinds[name]] | None, msgspec.field(default=None, name=name)) for name, place in places.items()]
    row_type = msgspec.defstruct("Row", fields, gc=False)

    def column(rows: Sequence[Any], name: str) -> pl.Series:
        values = [getattr(row, places[name]) for row in rows]
        if kinds[name] in ("instant", "any_instant"):
            return converted(pl.Series(name, values, dtype=pl.String), kinds[name])
        if kinds[name] == "text":
            return pl.Series(name, [v if v is None else str(v) for v in values], dtype=pl.String)
        return converted(pl.Series(name, values, dtype=POLARS_TYPES[kinds[name]]), kinds[name])

    return msgspec.json.Decoder(row_type, strict=False), column


def converted(column: pl.Series, kind: Kind) -> pl.Series:
    """Return a column that was read at once as its kind; raise ValueError or a PolarsError if a cell is not of it.

    Instants are cut to the microsecond: 0 to 9 digits of a second's fraction are read.
    """
    if kind == "real" and not column.is_finite().all():
        raise ValueError(column.name)
    if kind == "names" and column.dtype == pl.String:
        none = pl.Series(column.name, [[]], dtype=pl.List(pl.String)).new_from_index(0, len(column))
        return column.str.split("|").zip_with(column.is_not_null(), none)
    if kind in ("instant", "any_instant"):
        if column.dtype == pl.String:
            return _instants(column, zone_required=kind == "instant")
        zoned = column if column.dtype == UTC_INSTANT else column.dt.cast_time_unit("us").dt.replace_time_zone("UTC")
        return zoned.cast(UTC_INSTANT)
    return column


def _instants(column: pl.Series, *, zone_required: bool) -> pl.Series:
    """Return texts like ``2023-11-16 18:15:46.6805900``, all with an offset behind them or all without, as instants."""
    cut = column.str.replace("T", " ", literal=True)
    zoned = column.str.contains(r"(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})$")
    if zone_required and not zoned.all():
        raise ValueError(column.name)
    if zoned.any():
        cut = cut.str.replace(r"(\.[0-9]{6})[0-9]+", "$1").str.replace(r"[Zz]$", "+00:00")
        return cut.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%:z", time_unit="us", time_zone="UTC")
    return cut.str.slice(0, 26).str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us").dt.replace_time_zone("UTC")


def loosely_typed(column: pl.Series, kind: Kind, what: str) -> pl.Series:
    """Return a Parquet column as its kind, null where a cell is not of it; a type that never can be raises FrameError."""
    dtype = column.dtype
    if kind == "text":
        fits = dtype == pl.String or dtype.is_integer() or dtype in (pl.Categorical, pl.Enum, pl.Null)
        typed = column.cast(pl.String) if fits else column
    elif kind == "whole":
        fits = dtype.is_integer() or dtype in (pl.String, pl.Null)
        typed = column.cast(pl.Int64, strict=False) if fits else column
    elif kind == "real":
        fits = dtype.is_numeric() or dtype in (pl.String, pl.Null)
        typed = column.cast(pl.Float64, strict=False) if fits else column
        typed = typed.set(~typed.is_finite(), None) if fits else typed
    elif kind in ("instant", "any_instant") and isinstance(dtype, pl.Datetime):
        fits = dtype.time_zone is not None or kind == "any_instant"
        zoned = column if dtype.time_zone is not None else column.dt.replace_time_zone("UTC")
        typed = zoned.dt.convert_time_zone("UTC").cast(UTC_INSTANT) if fits else column
    elif kind == "any_instant" and dtype == pl.String:
        fits, typed = True, pl.Series(column.name, [_or_null(cell) for cell in column], dtype=UTC_INSTANT)
    else:
        fits, typed = False, column
    if not fits:
        raise FrameError(what, f"column {column.name}", str(dtype), RULES[kind])
    return typed.alias(column.name)


def _or_null(cell: str | None) -> object:
    try:
        return parsed(cell, "any_instant")
    except ValueError:
        return None
