"""Whether allowances answer to waits as the rule says: two counters of the same creations, held against each other (A2–A5, A26).

Every creation with an eligible worker is in the histogram of estimated waits; every creation is in the decisions. So the waits
say how many allowances of each size bucket there must be, exactly or between bounds, and the decisions say how many there were.
"""

import math

import polars as pl

from horde_policy.frames.decisions import SIZES
from horde_policy.frames.schemas import Column, Schema
from horde_policy.policy.allowance import largest_wait_s
from horde_policy.review.decompose import count_of, total
from horde_policy.review.sampling import Bounds
from horde_policy.review.waits import of_kind
from horde_policy.review.whatif import size_range
from horde_policy.settings import AllowanceSettings

__all__ = ["AGREEMENT", "agreement", "without_worker"]

AGREEMENT = Schema(
    "agreement",
    {
        "allowance_size": Column(pl.String),
        "wait_above_s": Column(pl.Float64, "s", null="no wait gives it", text="the waits that give it: above"),
        "wait_at_most_s": Column(pl.Float64, "s", null="no wait gives it", text="and at most; infinite for the floor"),
        "counted_low": Column(pl.Float64, "requests", text="by the decisions"),
        "counted_high": Column(pl.Float64, "requests"),
        "implied_low": Column(pl.Float64, "requests", text="by the waits, and by the requests without an eligible worker"),
        "implied_high": Column(pl.Float64, "requests"),
        "gap": Column(pl.Float64, "requests", text="how far the two are apart; 0 where they can agree"),
    },
    sort=("allowance_size",),
)
"""One row an allowance bucket, from small to large."""


def without_worker(decisions: pl.DataFrame, waits: pl.DataFrame) -> Bounds:
    """Return how many creations had no eligible worker: those that are in the decisions and have no estimated wait (A5, A26).

    Examples
    --------
    >>> decisions = pl.DataFrame({"count_low": [10.0], "count_high": [10.0]})
    >>> waits = pl.DataFrame({"kind": ["estimated"], "count_low": [8.0], "count_high": [9.0]})
    >>> without_worker(decisions, waits)
    Bounds(low=1.0, high=2.0)
    """
    created, estimated = total(decisions), total(of_kind(waits, "estimated"))
    return Bounds(max(0.0, created.low - estimated.high), max(0.0, created.high - estimated.low))


def agreement(decisions: pl.DataFrame, waits: pl.DataFrame, settings: AllowanceSettings) -> pl.DataFrame:
    """Return how many allowances of each bucket were counted, and how many the waits imply under the settings.

    Parameters
    ----------
    decisions, waits
        Schemas :data:`~horde_policy.frames.decisions.DECISIONS` and :data:`~horde_policy.frames.waits.WAITS`, of one range.
    settings
        The settings in force.

    Returns
    -------
    DataFrame
        Schema :data:`AGREEMENT`; no rows where either has no counts.

    Examples
    --------
    >>> decisions = pl.DataFrame({"allowance_size": ["<=512", "2049-4096"], "count_low": [3.0, 7.0], "count_high": [3.0, 7.0]})
    >>> waits = pl.DataFrame({"kind": ["estimated"] * 2, "lower_s": [45.0, 300.0], "upper_s": [60.0, 450.0],
    ...     "count_low": [7.0, 2.0], "count_high": [7.0, 2.0]})
    >>> agreement(decisions, waits, AllowanceSettings()).filter(pl.col("counted_low") > 0).select(
    ...     "allowance_size", "implied_low", "implied_high", "gap").rows()
    [('<=512', 3.0, 3.0, 0.0), ('2049-4096', 7.0, 7.0, 0.0)]
    """
    estimated = of_kind(waits, "estimated")
    if not (decisions.height and estimated.height):
        return AGREEMENT.empty()
    nobody = without_worker(decisions, waits)
    rows = []
    for size in SIZES:
        counted = count_of(decisions, allowance_size=size)
        span = wait_span(size, settings)
        implied = Bounds(0.0, 0.0) if span is None else _inside(estimated, *span)
        if span is not None and math.isinf(span[1]):
            implied = implied + nobody
        gap = max(0.0, implied.low - counted.high, counted.low - implied.high)
        above, most = (None, None) if span is None else span
        rows.append((size, above, most, counted.low, counted.high, implied.low, implied.high, gap))
    return AGREEMENT.checked(pl.DataFrame(rows, schema=AGREEMENT.polars_schema(), orient="row"))


def wait_span(size: str, settings: AllowanceSettings) -> tuple[float, float] | None:
    """Return the waits that give an allowance of the bucket: above the first and at most the second; null if none does.

    >>> wait_span("1025-2048", AllowanceSettings()), wait_span(">4096", AllowanceSettings())
    ((197.07589285714286, 265.64732142857144), None)
    """
    least, most = size_range(size)
    if most < settings.floor_tokens:
        return None
    longest = largest_wait_s(least, settings)
    if longest is None:
        return None
    shortest = largest_wait_s(most + 1, settings)
    return (-1.0 if shortest is None else shortest), longest


def _inside(waits: pl.DataFrame, above_s: float, at_most_s: float) -> Bounds:
    """Return how many waits are above the one and at most the other."""
    from_zero = pl.col("lower_s") <= 0
    starts = (pl.col("lower_s") >= above_s) & ~(from_zero & (above_s >= 0))
    surely = starts & (pl.col("upper_s") <= at_most_s)
    maybe = (pl.col("upper_s") > above_s) & ((pl.col("lower_s") < at_most_s) | (from_zero & (at_most_s >= 0)))
    low, high = waits.select(
        pl.col("count_low").filter(surely).sum(), pl.col("count_high").filter(maybe | surely).sum().alias("high")
    ).row(0)
    return Bounds(float(low), float(high))
