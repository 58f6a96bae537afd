"""What a sweep measured of each point on some days, with its spread: every metric again on resampled days and seeds.

All points were replayed on the same requests, so a resample draws the same days for all of them: what is compared is the
difference on equal days. Days are drawn with replacement, seeds independently of them, and a replay counts by the product of
both (the pigeonhole bootstrap, which does not understate the spread where days and seeds both matter).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import polars as pl

from horde_policy.errors import InputError
from horde_policy.sweep.axes import SETTINGS
from horde_policy.sweep.metrics import Array, Metric, Tally, bins_of, wait_quantiles_s
from horde_policy.sweep.noise import known_variance
from horde_policy.sweep.results import tally_of

__all__ = ["UNDER", "Across", "Evidence", "complete_part", "measured_by_block", "measured_evidence"]

Across = Literal["mean", "worst"]
"""How the figures under several loads and fill rules become one: their mean, or the worst of them."""

RESAMPLES: Final = 400
POINTS_AT_A_TIME: Final = 64

SCENARIO = ("load", "fill")
UNDER: Final = ("load", "fill", "seed")
"""What a replay is named by, beside its point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was measured of the points.

    Attributes
    ----------
    points
        One row a point: ``point``, ``baseline`` and the settings; the baseline first if it is there.
    values
        Metric → points × (1 + resamples): the figure on all of the days, then on each resample; NaN is not known.
    days, seeds
        How many different days and seeds it rests on.
    """

    points: pl.DataFrame
    values: Mapping[str, Array]
    days: int
    seeds: int

    @property
    def blocks(self) -> int:
        """How many independent looks there are: days, or seeds where there is one day only."""
        return self.days if self.days > 1 else self.seeds

    def spread(self, values: Array) -> Array:
        """Return the standard error of figures of points × (1 + resamples), made wider for few days; NaN with one look."""
        if self.blocks < 2:
            return np.full(len(values), np.nan)
        error: Array = np.sqrt(known_variance(values[:, 1:]) * self.blocks / (self.blocks - 1))
        return error


def complete_part(frame: pl.DataFrame) -> tuple[pl.DataFrame, int, int]:
    """Return the rows of a sweep that compare like with like, and how many points and scenarios were left out for it.

    A sweep that was stopped has scenarios (load, fill rule and seed) under which only some points are replayed. Kept are the
    most points that any scenario has, of those that have the baseline if any has it, under every scenario that has them all:
    a scenario that was only begun goes, and not the points that it lacks. Of equally many points the first scenario by load,
    fill rule and seed decides.

    Raises
    ------
    InputError
        There is no row.
    """
    if frame.is_empty():
        raise InputError("sweep", "", 0, "must hold at least one finished replay")
    replays = frame.group_by(*UNDER, "point").agg(pl.col("day").sort()).sort(*UNDER, "point", nulls_last=False)
    days = max(replays["day"].to_list(), key=len)
    has: dict[tuple[object, ...], set[str]] = {}
    for scenario, part in replays.group_by(UNDER, maintain_order=True):
        has[scenario] = {point for point, its in part.select("point", "day").iter_rows() if its == days}
    baseline = set(frame.filter(pl.col("baseline"))["point"])
    able = [points for points in has.values() if baseline <= points] or list(has.values())
    most = max(able, key=len)  # the first of equals
    whole = [scenario for scenario, points in has.items() if most <= points]
    kept = pl.DataFrame(whole, schema={name: frame.schema[name] for name in UNDER}, orient="row")
    rows = frame.filter(pl.col("point").is_in(list(most))).join(kept, on=UNDER, how="semi", nulls_equal=True)
    return rows, frame["point"].n_unique() - len(most), len(has) - len(whole)


def measured_evidence(
    frame: pl.DataFrame,
    metrics: Sequence[Metric],
    *,
    days: Sequence[int] | None = None,
    across: Across = "mean",
    better: Mapping[str, str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Evidence:
    """Return what was measured of each point.

    Parameters
    ----------
    frame
        Frame ``SWEEP``; a caller narrows it to the loads and fill rules that count.
    metrics
        What to measure.
    days
        The days that count; null for all.
    across
        How several loads and fill rules become one figure.
    better
        Metric → its better side, where it is not the metric's own; the worst is on the other side.
    resamples, seed
        How many resamples, and of their draws.

    Raises
    ------
    InputError
        No row is of these days.
    """
    rows, *_ = complete_part(frame)
    if days is not None:
        rows = rows.filter(pl.col("day").is_in(list(days)))
        if rows.is_empty():
            raise InputError("sweep", "days", list(days), "are not among the days of this sweep")
    rows = rows.sort(pl.col("baseline").not_(), "point", *SCENARIO, "seed", "day", nulls_last=False)
    points = rows.unique("point", keep="first", maintain_order=True).select("point", "baseline", *SETTINGS)
    dice = np.random.default_rng(seed)
    day_weights = _weights(dice, rows["day"].n_unique(), resamples)
    scenarios = rows.partition_by(SCENARIO, maintain_order=True)
    seed_weights = {n: _weights(dice, n, resamples) for n in sorted({part["seed"].n_unique() for part in scenarios})}
    by_scenario = []
    for part in scenarios:
        weights = day_weights[:, None, :] * seed_weights[part["seed"].n_unique()][:, :, None]
        by_scenario.append(_resampled(part, metrics, weights.reshape(len(weights), -1), points.height))
    sides = {m.key: m.better for m in metrics} | dict(better or {})
    values = {m.key: _across(np.stack([of[m.key] for of in by_scenario]), across, sides[m.key]) for m in metrics}
    most_seeds = max(part["seed"].n_unique() for part in scenarios)
    return Evidence(points=points, values=values, days=rows["day"].n_unique(), seeds=most_seeds)


def _weights(dice: np.random.Generator, count: int, resamples: int) -> Array:
    """Return (1 + resamples) × count: once each, then how often each was drawn."""
    if count == 1:
        return np.ones((1 + resamples, 1))
    drawn = dice.multinomial(count, np.full(count, 1 / count), size=resamples)
    return np.vstack((np.ones(count), drawn)).astype(np.float64)


def _across(values: Array, across: Across, better: str) -> Array:
    if across == "mean" or len(values) == 1:
        mean: Array = values.mean(axis=0)
        return mean
    worst: Array = values.min(axis=0) if better == "more" else values.max(axis=0)
    return worst


def _resampled(part: pl.DataFrame, metrics: Sequence[Metric], weights: Array, points: int) -> dict[str, Array]:
    """Return metric → points × resamples of one scenario, whose rows stand by point, seed and day."""
    blocks = part.height // points
    tally = _weighted(tally_of(part), blocks, weights)
    found = {metric.key: metric.measure(tally) for metric in metrics if metric.quantile is None}
    waits = [metric for metric in metrics if metric.quantile is not None]
    for waiters in dict.fromkeys(metric.waiters for metric in waits):
        wanted = [metric for metric in waits if metric.waiters == waiters]
        pieces: dict[str, list[Array]] = {metric.key: [] for metric in wanted}
        for first in range(0, points, POINTS_AT_A_TIME):
            some = part[first * blocks : (first + POINTS_AT_A_TIME) * blocks]
            binned = tally_of(some, waiters).waits
            longest = some["request_ttl_s"].to_numpy().reshape(-1, blocks)[:, :1]
            for metric in wanted:
                assert metric.quantile is not None
                bins = bins_of(binned, waiters, started_only=metric.started_only)
                quantiles = wait_quantiles_s(bins.reshape(-1, blocks, bins.shape[-1]), weights, metric.quantile)
                pieces[metric.key].append(np.minimum(quantiles, longest))
        found |= {key: np.concatenate(some) for key, some in pieces.items()}
    return found


def _weighted(tally: Tally, blocks: int, weights: Array) -> Tally:
    """Return rows by point and block as points × resamples, summed with the weights; without the waits."""

    def summed(rows: Array) -> Array:
        per_block = rows.reshape(-1, blocks, rows[0].size)
        return (weights @ per_block).reshape(len(per_block), len(weights), *rows.shape[1:])

    return Tally(
        counters=summed(tally.counters),
        by_group=summed(tally.by_group),
        days=summed(tally.days[:, None])[..., 0],
        longest_s=tally.longest_s.reshape(-1, blocks)[:, :1],
        waits={},
    )


def measured_by_block(frame: pl.DataFrame, points: Sequence[str], metric: Metric, by: Literal["day", "seed"]) -> pl.DataFrame:
    """Return the metric of some points on each day, or under each seed, over all that is left of the sweep.

    Returns
    -------
    polars.DataFrame
        ``point``, ``day`` or ``seed``, ``value`` (null: not known), sorted by both.
    """
    rows = frame.filter(pl.col("point").is_in(list(points)))
    found = []
    for (point, block), part in sorted(rows.group_by("point", by)):
        per_scenario = [_pooled(piece, metric) for piece in part.partition_by(SCENARIO)]
        found.append({"point": point, by: block, "value": float(np.mean(per_scenario))})
    schema = {"point": pl.String, by: pl.Int64, "value": pl.Float64}
    return pl.DataFrame(found, schema=schema).with_columns(pl.col("value").fill_nan(None))


def _pooled(rows: pl.DataFrame, metric: Metric) -> float:
    return float(_resampled(rows, [metric], np.ones((1, rows.height)), 1)[metric.key][0, 0])
