"""Division in Polars that is IEEE division, at every height of a frame."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.policy.exact import quotient

amounts = st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), min_size=1, max_size=6)
divisors = st.floats(1e-3, 1e6)


@given(dividends=amounts, divisor=divisors)
def test_a_column_by_a_number_is_python_s_division(dividends: list[float | None], divisor: float) -> None:
    frame = pl.DataFrame({"x": dividends}, schema={"x": pl.Float64})
    expected = [None if x is None else x / divisor for x in dividends]
    assert frame.select(quotient(pl.col("x"), divisor).alias("q"))["q"].to_list() == expected
    assert frame.select(quotient(pl.col("x"), pl.lit(divisor)).alias("q"))["q"].to_list() == expected
    assert frame.lazy().select(quotient(pl.col("x"), divisor).alias("q")).collect()["q"].to_list() == expected


@pytest.mark.xfail(strict=True, reason="Polars multiplies by the reciprocal; when this passes, quotient() can go")
def test_polars_own_division_by_a_number_is_exact() -> None:
    values = [float(x) for x in range(1, 500)]
    assert (pl.Series(values) / 49.0).to_list() == [x / 49.0 for x in values]
