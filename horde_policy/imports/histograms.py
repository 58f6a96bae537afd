"""Histograms in every form as increments of buckets with a lower and an upper bound.

Classic series (``le``) count up to their bound, which they include (exports.md 9): a bucket's growth is the difference of two
neighbours. Native and exponential histograms bring their own buckets, whose layout may change from point to point; the growth
between two points is known at the bounds that both have (exports.md 14).
"""

import math

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.imports.samples import Samples, group_of
from horde_policy.imports.series import Grown

__all__ = ["BUCKETS", "bucket_growths", "exponential_bins", "grown_bins"]

BUCKETS = {
    "sid": pl.UInt32,
    "t0": pl.Int64,
    "t1": pl.Int64,
    "before": pl.Boolean,
    "lower_s": pl.Float64,
    "upper_s": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}
"""A series of the histogram, interval, whether it is of the time before the window, bounds of the bucket and of its growth."""

Floats = npt.NDArray[np.float64]


def exponential_bins(scale: int, zero_count: float, zero_threshold: float, offset: int, counts: npt.ArrayLike) -> list[float]:
    """Return an exponential histogram's non-empty buckets as lower, upper, count, lower, … from small to large.

    Bucket ``i`` holds what is above ``base**(offset+i)`` and at most ``base**(offset+i+1)``, with ``base = 2**(2**-scale)``.

    Examples
    --------
    >>> exponential_bins(0, 2, 0.0, 1, [3, 0, 1])
    [0.0, 0.0, 2.0, 2.0, 4.0, 3.0, 8.0, 16.0, 1.0]
    """
    held = np.asarray(counts, dtype=np.float64)
    places = np.flatnonzero(held)
    with np.errstate(over="ignore"):
        bound = np.exp2(np.ldexp((offset + np.arange(held.size + 1)).astype(np.float64), -scale))
    bins = np.column_stack([bound[places], bound[places + 1], held[places]]).ravel().tolist()
    return [0.0, zero_threshold, float(zero_count), *bins] if zero_count else bins


def grown_bins(earlier: list[float] | None, later: list[float]) -> list[float]:
    """Return how two states of one native histogram differ, on the bounds that both know.

    Examples
    --------
    >>> grown_bins([1.0, 2.0, 5.0, 2.0, 4.0, 1.0], [1.0, 4.0, 9.0, 4.0, 8.0, 2.0])
    [1.0, 4.0, 3.0, 4.0, 8.0, 2.0]
    """
    if not earlier:
        return later
    then, now = np.reshape(earlier, (-1, 3)), np.reshape(later, (-1, 3))
    edges = np.unique(np.concatenate([then[:, :2].ravel(), now[:, :2].ravel()]))
    for bins in (then, now):
        inside = (edges[:, None] > bins[:, 0]) & (edges[:, None] < bins[:, 1])
        edges = edges[~inside.any(axis=1)]
    below = [_below(bins, edges) for bins in (then, now)]
    grown = np.maximum.accumulate(np.clip(below[1] - below[0], 0.0, None))
    parts = np.diff(np.concatenate([[0.0], grown]))
    lower = np.concatenate([edges[:1], edges[:-1]])
    kept = np.flatnonzero(parts > 0)
    return np.column_stack([lower[kept], edges[kept], parts[kept]]).ravel().tolist()


def _below(bins: Floats, edges: Floats) -> Floats:
    """Return how much of the bins lies at or below each edge; no edge is inside a bin."""
    upto = np.concatenate([[0.0], np.cumsum(bins[:, 2])])
    return upto[np.searchsorted(bins[:, 1], edges, side="right")]


def bucket_growths(samples: Samples, grown: Grown) -> tuple[pl.DataFrame, int]:
    """Return the growth of every histogram bucket (:data:`BUCKETS`), and how many were out of the order of their bounds."""
    frame = grown.frame.join(_of_series(samples), on="sid")
    classic, disorder = _classic(
        frame.filter(pl.col("part").is_in(["le", "count"])), grown.layouts.join(_of_series(samples), on="sid")
    )
    bins = frame.filter(pl.col("part") == "bin").select(*BUCKETS)
    return pl.concat([classic, bins, _native(frame.filter(pl.col("part") == "native"), grown)]), disorder


def _of_series(samples: Samples) -> pl.DataFrame:
    """Return, for each series of a histogram, its part, its bounds and the number of its histogram."""
    groups: dict[object, int] = {}
    rows = [
        (number, key.part, groups.setdefault(group_of(key), len(groups)), key.lower_s, key.upper_s)
        for number, key in enumerate(samples.keys)
        if key.family != "decisions"
    ]
    schema = {"sid": pl.UInt32, "part": pl.String, "histogram": pl.Int64, "lower_s": pl.Float64, "upper_s": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _classic(frame: pl.DataFrame, layouts: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return bucket growths of ``le`` series; ``_count`` stands for a missing ``+Inf``, and alone for one bucket of all waits."""
    closed = layouts.filter((pl.col("part") == "le") & (pl.col("upper_s") == math.inf))["histogram"].unique()
    own = layouts.filter(pl.col("part").is_in(["bin", "native"]))["histogram"].unique()
    wanted = (pl.col("part") == "le") | ~pl.col("histogram").is_in(pl.concat([closed, own]).implode())
    le, layouts = (
        one.filter(pl.col("part").is_in(["le", "count"]) & wanted).with_columns(pl.col("upper_s").fill_null(math.inf))
        for one in (frame, layouts)
    )
    life = ["histogram", "layout", "t1", "before"]
    le = le.sort(*life, "upper_s")
    first = (pl.struct(life) != pl.struct(life).shift(1)).fill_null(value=True)
    le = le.with_columns(first.alias("first"), pl.col("t0").min().over(life))
    disorder = le.filter(~pl.col("first") & (pl.col("high") < pl.col("high").shift(1))).select("histogram", "t1").n_unique()
    le = le.with_columns(pl.col("low", "high").cum_max().over(life))
    below = [
        pl.when(pl.col("first")).then(0.0).otherwise(pl.col(name).shift(1)).alias(f"{name}_below") for name in ("low", "high")
    ]
    le = le.with_columns(*below, pl.when("first").then(None).otherwise(pl.col("upper_s").shift(1)).alias("lower_s"))
    le = le.with_columns(pl.col("low") - pl.col("low_below"), pl.col("high") - pl.col("high_below"))
    le = le.with_columns(pl.coalesce("lower_s", _bound_before(le, layouts))).filter(pl.col("high") > 0)
    return le.select(*BUCKETS), disorder


def _bound_before(le: pl.DataFrame, layouts: pl.DataFrame) -> pl.Series:
    """Return, for each interval's first bucket that grew, the next lower bound written at that time; 0 if there is none."""
    life = ["histogram", "layout"]
    known = layouts.sort(*life, "upper_s").with_columns(
        pl.col("upper_s").shift(1).over(life).alias("below"),
        ((pl.col("first").n_unique().over(life) == 1) & (pl.col("last").n_unique().over(life) == 1)).alias("even"),
    )
    found = le.join(known.select(*life, "upper_s", "below", "even"), on=[*life, "upper_s"], how="left", maintain_order="left")
    below = found["below"].fill_null(0.0).to_numpy().copy()
    uneven = found.select(pl.col("first") & ~pl.col("even")).to_series().fill_null(value=False).to_numpy()
    columns = ("upper_s", "first", "last")
    lives = {key: tuple(part[name].to_numpy() for name in columns) for key, part in known.group_by(life)} if uneven.any() else {}
    places = np.flatnonzero(uneven)
    for place, *key, upper_s, t1 in zip(places.tolist(), *found[places].select(*life, "upper_s", "t1"), strict=True):
        uppers, first, last = lives[tuple(key)]
        there = uppers[(uppers < upper_s) & (first <= t1) & (last >= t1)]
        below[place] = there.max() if there.size else 0.0
    return pl.Series("bound", below)


def _native(frame: pl.DataFrame, grown: Grown) -> pl.DataFrame:
    """Return bucket growths of native histograms: the difference of two states, or the first state after a restart."""
    columns: dict[str, list[object]] = {name: [] for name in BUCKETS}
    bins = grown.rows.bins
    for sid, t0, t1, before, low, high, row, from_row in frame.select(
        "sid", "t0", "t1", "before", "low", "high", "row", "from_row"
    ).iter_rows():
        earlier = None if from_row < 0 else bins[from_row].to_list()
        triples = grown_bins(earlier, bins[row].to_list())
        for lower, upper, count in zip(triples[0::3], triples[1::3], triples[2::3], strict=True):
            certain = count if low == high else 0.0
            for name, value in zip(BUCKETS, (sid, t0, t1, before, lower, upper, certain, count), strict=True):
                columns[name].append(value)
    return pl.DataFrame(columns, schema=BUCKETS)
