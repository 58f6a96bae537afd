"""Distributions of waits from histogram buckets: shares under a mark, quantiles as bucket bounds, means (A26, A27).

A bucket holds waits above its lower and up to its upper bound (``le``), so a share is exact at a mark that bounds buckets and an
interval elsewhere; bucket layouts may differ from row to row (exports.md 14). A wait of exactly 0 lies in the bucket from 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.frames.schemas import Column, Schema
from horde_policy.review.decompose import rate
from horde_policy.review.ranges import in_blocks
from horde_policy.review.sampling import LEVEL, Bounds, Share, design_effect, difference, paired_margin, share_of, shares

__all__ = [
    "DISTRIBUTION",
    "MARKS_S",
    "Quantile",
    "around_mark",
    "at_most",
    "counts_at",
    "distribution",
    "longer",
    "mean_wait",
    "measured_less_estimated",
    "of_kind",
    "quantile",
    "share_at_most",
]

Floats = npt.NDArray[np.float64]

DISTRIBUTION = Schema(
    "wait_distribution",
    {
        "edge_s": Column(pl.Float64, "s", text="a finite bound of any bucket or a mark, rising"),
        "count_low": Column(pl.Float64, "waits", text="at most as long as the edge"),
        "count_high": Column(pl.Float64, "waits"),
        "share_low": Column(pl.Float64, text="at most as long as the edge; both equal where the edge bounds every bucket"),
        "share_high": Column(pl.Float64),
        "sampling_low": Column(pl.Float64, text="the 95 % interval of the share"),
        "sampling_high": Column(pl.Float64),
        "design_effect": Column(pl.Float64, text="by how much bursts lessen what the waits are worth for this share"),
    },
    sort=("edge_s",),
)
"""One row an edge; what is longer than the last edge is the rest."""


def of_kind(waits: pl.DataFrame, kind: str, requester: str | None = None) -> pl.DataFrame:
    """Return the rows of one kind of wait, ``estimated`` or ``queue``, and of one requester if one is named."""
    rows = waits.filter(pl.col("kind") == kind)
    return rows if requester is None else rows.filter(pl.col("requester") == requester)


def at_most(mark_s: float) -> tuple[pl.Expr, pl.Expr]:
    """Return two expressions over buckets: whether all their waits are at most the mark, and whether some may be."""
    surely = pl.col("upper_s") <= mark_s
    maybe = (pl.col("lower_s") < mark_s) | ((pl.col("lower_s") <= 0) & (mark_s >= 0))
    return surely, maybe | surely


def counts_at(waits: pl.DataFrame, mark_s: float) -> tuple[Bounds, Bounds]:
    """Return how many waits are at most the mark, and how many are longer; a bucket around the mark may be either."""
    surely, maybe = at_most(mark_s)
    low, high, rest_low, rest_high = waits.select(
        pl.col("count_low").filter(surely).sum(),
        pl.col("count_high").filter(maybe).sum().alias("high"),
        pl.col("count_low").filter(~maybe).sum().alias("rest_low"),
        pl.col("count_high").filter(~surely).sum().alias("rest_high"),
    ).row(0)
    return Bounds(float(low), float(high)), Bounds(float(rest_low), float(rest_high))


def around_mark(waits: pl.DataFrame, mark_s: float) -> Bounds:
    """Return how many waits lie in buckets around the mark, so that they may be at most so long or longer.

    Examples
    --------
    >>> rows = pl.DataFrame({"lower_s": [0.0, 60.0], "upper_s": [60.0, 90.0], "count_low": [3.0, 1.0], "count_high": [3.0, 1.0]})
    >>> around_mark(rows, 60), around_mark(rows, 75)
    (Bounds(low=0.0, high=0.0), Bounds(low=1.0, high=1.0))
    """
    surely, maybe = at_most(mark_s)
    own = waits.filter(maybe & ~surely)
    return Bounds(float(own["count_low"].sum()), float(own["count_high"].sum()))


def share_at_most(waits: pl.DataFrame, mark_s: float, *, level: float = LEVEL) -> Share | None:
    """Return the share of waits of at most ``mark_s``; null where nothing was counted.

    Parameters
    ----------
    waits
        Schema :data:`~horde_policy.frames.waits.WAITS`, one kind.
    mark_s
        In seconds, inclusive as in the buckets.
    level
        The confidence of the sampling limits, whose design effect comes of blocks of time.

    Examples
    --------
    >>> rows = pl.DataFrame({"lower_s": [0.0, 60.0], "upper_s": [60.0, 90.0], "count_low": [3.0, 1.0], "count_high": [3.0, 1.0],
    ...     "interval_start": [None, None], "interval_end": [None, None]}, schema_overrides={
    ...     "interval_start": pl.Datetime("us", "UTC"), "interval_end": pl.Datetime("us", "UTC")})
    >>> share = share_at_most(rows, 60)
    >>> share.low, share.high
    (0.75, 0.75)
    >>> share = share_at_most(rows, 75)
    >>> share.low, share.high, share.total
    (0.75, 1.0, Bounds(low=4.0, high=4.0))
    """
    part, rest = counts_at(waits, mark_s)
    if part.high + rest.high <= 0:
        return None
    bursts = rate(waits, at_most(mark_s)[0], level=level)
    # a bucket around the mark is in both parts, and once in the total
    total = Bounds(float(waits["count_low"].sum()), float(waits["count_high"].sum()))
    return share_of(part, rest, total=total, effect=1.0 if bursts is None else bursts.design_effect, level=level)


def longer(share: Share) -> Share:
    """Return the share of the longer waits: what a share of waits up to a mark leaves."""
    turned = (1 - share.high, 1 - share.low, 1 - share.sampling_high, 1 - share.sampling_low)
    return Share(share.rest, share.part, share.total, *turned, share.design_effect)


def measured_less_estimated(
    estimated: pl.DataFrame, queued: pl.DataFrame, mark_s: float, *, level: float = LEVEL
) -> tuple[Bounds, Bounds] | None:
    """Return by how much more of the measured than of the estimated waits are at most the mark: by the counts, with sampling.

    Null where either has no counts. Both come of the same times, which the interval uses where there are enough blocks of time.

    Parameters
    ----------
    estimated, queued
        Schema :data:`~horde_policy.frames.waits.WAITS`, of one kind each.
    mark_s
        In seconds.
    """
    stated, measured = (share_at_most(waits, mark_s, level=level) for waits in (estimated, queued))
    if stated is None or measured is None:
        return None
    counts, apart = difference(stated, measured)
    both = pl.concat(
        [waits.select(*_BLOCK_COLUMNS, pl.lit(place).alias("side")) for place, waits in enumerate((estimated, queued))]
    )
    at_most_mark = pl.col("count_middle").filter(pl.col("upper_s") <= mark_s).sum()
    blocks = (
        in_blocks(both).group_by("block", "side").agg(at_most_mark.alias("part"), pl.col("count_middle").sum().alias("total"))
    )
    table = blocks.select("block").unique().join(pl.DataFrame({"side": [0, 1]}), how="cross")
    table = table.join(blocks.with_columns(pl.col("side").cast(pl.Int64)), on=["block", "side"], how="left", nulls_equal=True)
    table = table.fill_null(0.0).sort("block", nulls_last=True)
    sides = [table.filter(pl.col("side") == place) for place in (0, 1)]
    first, second = ((side["part"].to_numpy(), side["total"].to_numpy()) for side in sides)
    margin = paired_margin(first, second, level=level)
    if margin is None:
        return counts, apart
    return counts, Bounds(max(-1.0, counts.low - margin), min(1.0, counts.high + margin))


_BLOCK_COLUMNS = ("interval_start", "interval_end", "upper_s", "count_low", "count_high")

MARKS_S = (60.0, 300.0)
"""The full wait and the floor wait by default (A2, A3), at which shares are always told."""


def distribution(
    waits: pl.DataFrame, *, marks_s: Sequence[float] = MARKS_S, edges_s: Sequence[float] | None = None, level: float = LEVEL
) -> pl.DataFrame:
    """Return the share of waits up to every bucket bound, and up to the marks.

    Parameters
    ----------
    waits
        Schema :data:`~horde_policy.frames.waits.WAITS`, one kind.
    marks_s
        Waits to tell the shares at beside the bucket bounds.
    edges_s
        Waits to tell the shares at and nowhere else; by default every finite bucket bound and the marks.
    level
        The confidence of the sampling limits, each edge with the design effect of its own blocks of time.

    Returns
    -------
    DataFrame
        Schema :data:`DISTRIBUTION`; no rows where nothing was counted.
    """
    cells = in_blocks(waits).group_by("block", "lower_s", "upper_s").agg(pl.col("count_low", "count_high", "count_middle").sum())
    buckets = cells.group_by("lower_s", "upper_s").agg(pl.col("count_low", "count_high").sum())
    if not buckets.height or float(buckets["count_high"].sum()) <= 0:
        return DISTRIBUTION.empty()
    bounds = (buckets["lower_s"].to_numpy(), buckets["upper_s"].to_numpy(), np.array(marks_s, dtype=np.float64))
    edges = np.unique(np.concatenate(bounds) if edges_s is None else np.array(edges_s, dtype=np.float64))
    edges = edges[np.isfinite(edges)]
    lower, upper, low, high = (buckets[name].to_numpy() for name in ("lower_s", "upper_s", "count_low", "count_high"))
    surely = upper[None, :] <= edges[:, None]
    maybe = surely | (lower[None, :] < edges[:, None]) | ((lower[None, :] <= 0) & (edges[:, None] >= 0))
    part = (surely @ low, maybe @ high)
    rest = (~maybe @ low, ~surely @ high)
    effects = _effects(cells, edges)
    figures = shares(part, rest, effect=effects, level=level)
    columns = dict(zip(DISTRIBUTION.columns, (edges, *part, *figures, effects), strict=True))
    return DISTRIBUTION.checked(pl.DataFrame(columns, schema=DISTRIBUTION.polars_schema()))


def _effects(cells: pl.DataFrame, edges: Floats) -> Floats:
    """Return the design effect of the share up to each edge, from counts by block and bucket."""
    blocks = cells["block"].rank("dense").fill_null(0).to_numpy().astype(np.int64)
    counts, upper = cells["count_middle"].to_numpy(), cells["upper_s"].to_numpy()
    size = int(blocks.max()) + 1
    totals = np.bincount(blocks, counts, minlength=size)
    parts = [np.bincount(blocks, counts * (upper <= edge), minlength=size) for edge in edges]
    return np.array([design_effect(part, totals) for part in parts], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile between two bucket bounds.

    Attributes
    ----------
    share
        Which quantile: 0.9 is the wait that 90 % do not exceed.
    low_s, high_s
        Above ``low_s`` (0: from 0) and at most ``high_s``; infinite in the last bucket, of which only "at least" is known.
    sampling_low_s, sampling_high_s
        The same with sampling.
    """

    share: float
    low_s: float
    high_s: float
    sampling_low_s: float
    sampling_high_s: float


def quantile(shares_at: pl.DataFrame, share: float) -> Quantile | None:
    """Return the bucket bounds that the quantile lies between; null where nothing was counted.

    Parameters
    ----------
    shares_at
        Schema :data:`DISTRIBUTION`.
    share
        Above 0 and at most 1.

    Examples
    --------
    >>> rows = pl.DataFrame({"lower_s": [0.0, 60.0, 300.0], "upper_s": [60.0, 300.0, float("inf")],
    ...     "count_low": [70.0, 20.0, 10.0], "count_high": [70.0, 20.0, 10.0],
    ...     "interval_start": [None] * 3, "interval_end": [None] * 3}, schema_overrides={
    ...     "interval_start": pl.Datetime("us", "UTC"), "interval_end": pl.Datetime("us", "UTC")})
    >>> [(q.low_s, q.high_s) for q in (quantile(distribution(rows), share) for share in (0.5, 0.7, 0.75, 0.95))]
    [(0.0, 60.0), (0.0, 60.0), (60.0, 300.0), (300.0, inf)]
    """
    if not shares_at.height:
        return None
    edges = shares_at["edge_s"].to_numpy()

    def bounds(low: str, high: str) -> tuple[float, float]:
        reached = np.flatnonzero(shares_at[low].to_numpy() >= share - _ROUNDING)
        short = np.flatnonzero(shares_at[high].to_numpy() < share - _ROUNDING)
        return float(edges[short[-1]]) if short.size else 0.0, float(edges[reached[0]]) if reached.size else math.inf

    return Quantile(share, *bounds("share_low", "share_high"), *bounds("sampling_low", "sampling_high"))


_ROUNDING = 1e-12
"""Shares are quotients of counts: 0.7 of 700 and 300 must count as 0.7."""


def mean_wait(sums: pl.DataFrame, kind: str, requester: str | None = None) -> Bounds | None:
    """Return the mean wait in seconds from the exported sums; null where none was exported or nothing counted.

    Parameters
    ----------
    sums
        Schema :data:`~horde_policy.frames.waits.WAIT_SUMS`. Rows without a sum are left out with their counts.
    kind, requester
        Which waits.

    Examples
    --------
    >>> rows = pl.DataFrame({"kind": ["queue"], "requester": ["anonymous"], "count_low": [4.0], "count_high": [4.0],
    ...     "sum_low_s": [60.0], "sum_high_s": [60.0]})
    >>> mean_wait(rows, "queue")
    Bounds(low=15.0, high=15.0)
    """
    rows = of_kind(sums, kind, requester).filter(pl.col("sum_low_s").is_not_null() & pl.col("sum_high_s").is_not_null())
    low, high, sum_low, sum_high = rows.select(
        pl.col("count_low").sum(), pl.col("count_high").sum(), pl.col("sum_low_s").sum(), pl.col("sum_high_s").sum()
    ).row(0)
    if not high:
        return None
    return Bounds(float(sum_low) / float(high), float(sum_high) / float(low) if low else math.inf)
