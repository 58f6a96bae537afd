"""What a frame is: its columns with type, unit and the meaning of null, and the check at the border.

Null is not known, zero is zero, NaN never passes this border. Instants are UTC ``Datetime("us", "UTC")``.
"""

from dataclasses import dataclass

import polars as pl

from horde_policy.errors import FrameError

__all__ = ["UTC_INSTANT", "Column", "Schema"]

UTC_INSTANT = pl.Datetime("us", "UTC")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type, its unit (empty for none), what null means (empty: null is not allowed) and a sentence."""

    dtype: pl.DataType | type[pl.DataType]
    unit: str = ""
    null: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Schema:
    """A named frame layout: columns in order, and the total sort order of its rows.

    Examples
    --------
    >>> speeds = Schema("speeds", {"speed_tok_per_s": Column(pl.Float64, "tok/s")}, sort=("speed_tok_per_s",))
    >>> speeds.checked(pl.DataFrame({"speed_tok_per_s": [1.5]})).height
    1
    >>> speeds.checked(pl.DataFrame({"speed_tok_per_s": ["fast"]}))
    Traceback (most recent call last):
    horde_policy.errors.FrameError: frame speeds, column speed_tok_per_s: String must be Float64
    """

    name: str
    columns: dict[str, Column]
    sort: tuple[str, ...] = ()

    def polars_schema(self) -> dict[str, pl.DataType | type[pl.DataType]]:
        """Return column → Polars type, for building a frame with its full schema."""
        return {name: column.dtype for name, column in self.columns.items()}

    def empty(self) -> pl.DataFrame:
        """Return a frame of no rows with this layout."""
        return pl.DataFrame(schema=self.polars_schema())

    def checked(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the frame with exactly these columns in this order; raise FrameError naming the first that is off.

        Columns that the schema does not name are left out. Raises for a missing column, another type, a null where null
        has no meaning, and a NaN.
        """
        what = f"frame {self.name}"
        have = frame.schema
        floats = [name for name in self.columns if name in have and have[name].is_float()]
        with_nan = frame.select(pl.col(floats).is_nan().any()).row(0, named=True) if floats else {}
        for name, column in self.columns.items():
            if name not in have:
                raise FrameError(what, f"column {name}", None, "is missing")
            if have[name] != column.dtype:
                raise FrameError(what, f"column {name}", have[name], f"must be {column.dtype}")
            values = frame[name]
            if not column.null and values.null_count():
                row = values.is_null().arg_max()
                raise FrameError(what, f"row {row}, column {name}", None, "must not be null")
            if with_nan.get(name):
                row = values.is_nan().arg_max()
                raise FrameError(what, f"row {row}, column {name}", float("nan"), "must be a number or null")
        names = list(self.columns)
        return frame if have.names() == names else frame.select(names)
