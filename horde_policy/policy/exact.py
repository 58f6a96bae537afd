"""Arithmetic in Polars that gives the same doubles as Python's."""

import polars as pl

__all__ = ["quotient"]


def quotient(dividend: pl.Expr, divisor: pl.Expr | float) -> pl.Expr:
    """Return dividend ÷ divisor rounded once, as IEEE double division is: what Python's ``/`` gives.

    Polars (2.1) divides a column by a single value by multiplying with its reciprocal, which is off by a last bit about once in
    four times; a column divided by a column is exact. So the divisor is made a column. Both must be finite where the result is
    used: an infinite dividend gives NaN.

    >>> frame = pl.DataFrame({"x": [5.0, 7.0]})
    >>> frame.select(quotient(pl.col("x"), 49.0)).to_series().to_list() == [5.0 / 49.0, 7.0 / 49.0]
    True
    """
    column = dividend.cast(pl.Float64)
    return column / (column * 0.0 + divisor)
