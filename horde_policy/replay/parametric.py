"""A fleet drawn from a few numbers and a seed: synthetic, and labelled so (horde.md §9)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.errors import InputError
from horde_policy.frames.fleet import normalised_fleet
from horde_policy.frames.schemas import UTC_INSTANT
from horde_policy.replay.fleets import EVER, Fleet, fleet_figures

__all__ = ["Churn", "ParametricFleet", "parametric_fleet"]

OUTPUT_SIZES = {80: 0.05, 256: 0.15, 400: 0.15, 512: 0.4, 1024: 0.15, 2048: 0.07, 4096: 0.03}
CONTEXT_SIZES = {2048: 0.15, 4096: 0.3, 8192: 0.35, 16384: 0.15, 32768: 0.05}
MODELS_A_WORKER = {1: 0.7, 2: 0.15, 3: 0.08, 4: 0.04, 5: 0.03}
"""Size, or number → weight. Sizes after horde.md §9, with 512 the mode and few above 1024; most workers serve one model."""
MANY_THREADS = (2, 4, 8)
LEAST_SPEED_TOK_PER_S = 0.5
P95_SIGMAS = 1.6448536269514722
"""The 95th percentile of a normal distribution lies so many standard deviations above its median."""
MOST_WORKERS = 100_000
MOST_PERIODS = 2_000_000

Draw = np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """Workers come and go: online and away for exponential times of these means, from ``start`` for ``hours``."""

    start: datetime
    hours: float
    mean_online_h: float = 8.0
    mean_away_h: float = 4.0

    def __post_init__(self) -> None:
        for name in ("hours", "mean_online_h", "mean_away_h"):
            value = getattr(self, name)
            _check(math.isfinite(value) and value > 0, name, value, "must be a finite number of hours above 0")
        _check(self.start.tzinfo is not None, "start", str(self.start), "has no time zone; say which, as 2026-11-29T00:00:00Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParametricFleet:
    """What a parametric fleet is drawn from; the defaults are those of horde.md §9.

    Attributes
    ----------
    workers, models
        How many; or for models their names. Each model has a worker while there are enough.
    speed_median_tok_per_s, speed_p95_tok_per_s
        Of a lognormal, nothing below 0.5.
    single_thread_share, unmeasured_share
        Shares of workers; the others run 2, 4 or 8 jobs, and are measured.
    output_sizes, context_sizes
        Tokens → weight. A worker's context is never below its output size.
    churn
        Null: online from 1970 without end.
    seed
        Of all draws.

    Notes
    -----
    Workers in maintenance take no requests, so none is made.
    """

    seed: int
    workers: int = 35
    models: int | Sequence[str] = 25
    speed_median_tok_per_s: float = 10.0
    speed_p95_tok_per_s: float = 50.0
    single_thread_share: float = 0.8
    unmeasured_share: float = 0.05
    output_sizes: Mapping[int, float] = field(default_factory=lambda: dict(OUTPUT_SIZES))
    context_sizes: Mapping[int, float] = field(default_factory=lambda: dict(CONTEXT_SIZES))
    churn: Churn | None = None

    def __post_init__(self) -> None:
        _check(self.seed >= 0, "seed", self.seed, "must be a whole number of at least 0")
        _check(0 <= self.workers <= MOST_WORKERS, "workers", self.workers, f"must be 0 to {MOST_WORKERS}")
        count = self.models if isinstance(self.models, int) else len(self.models)
        _check(1 <= count <= MOST_WORKERS, "models", count, f"must be 1 to {MOST_WORKERS}")
        median, p95 = self.speed_median_tok_per_s, self.speed_p95_tok_per_s
        _check(math.isfinite(median) and median > 0, "speed_median_tok_per_s", median, "must be a finite number above 0")
        _check(
            math.isfinite(p95) and p95 >= median, "speed_p95_tok_per_s", p95, f"must not be below the median, which is {median}"
        )
        for name in ("single_thread_share", "unmeasured_share"):
            _check(0 <= getattr(self, name) <= 1, name, getattr(self, name), "must be a share of 0 to 1")
        for name in ("output_sizes", "context_sizes"):
            weights = getattr(self, name)
            fit = bool(weights) and all(size >= 1 and math.isfinite(w) and w >= 0 for size, w in weights.items())
            _check(
                fit and sum(weights.values()) > 0, name, dict(weights), "must have sizes of at least 1 with weights, not all 0"
            )


def _check(fits: bool, where: str, value: object, rule: str) -> None:  # noqa: FBT001
    if not fits:
        raise InputError("parametric fleet", where, value, rule)


def parametric_fleet(wanted: ParametricFleet) -> Fleet:
    """Return a drawn fleet: the same numbers and seed give the same rows.

    Examples
    --------
    >>> one = parametric_fleet(ParametricFleet(seed=1, workers=40))
    >>> one.frame.height, one.stamp["synthetic"], one.frame.equals(parametric_fleet(ParametricFleet(seed=1, workers=40)).frame)
    (40, True, True)
    """
    draw = np.random.default_rng(wanted.seed)
    count = wanted.workers
    sigma = math.log(wanted.speed_p95_tok_per_s / wanted.speed_median_tok_per_s) / P95_SIGMAS
    speeds = np.maximum(draw.lognormal(math.log(wanted.speed_median_tok_per_s), sigma, count), LEAST_SPEED_TOK_PER_S)
    sizes = _drawn(draw, wanted.output_sizes, count)
    threads = np.where(draw.random(count) < wanted.single_thread_share, 1, draw.choice(MANY_THREADS, count))
    frame = pl.DataFrame(
        {
            "worker_id": [f"worker-{number:05d}" for number in range(1, count + 1)],
            "models": pl.Series(_models(draw, wanted), dtype=pl.List(pl.String)),
            "max_length": sizes,
            "max_context_length": np.maximum(_drawn(draw, wanted.context_sizes, count), sizes),
            "speed": speeds.round(1),
            "threads": threads.astype(np.int64),
            "measured": draw.random(count) >= wanted.unmeasured_share,
        }
    )
    fleet = normalised_fleet(_periods(draw, frame, wanted.churn))
    parameters = {name: value for name, value in asdict(wanted).items() if name != "models"}
    if wanted.churn is not None:
        parameters["churn"]["start"] = wanted.churn.start.isoformat()
    named = wanted.models if isinstance(wanted.models, int) else list(wanted.models)
    stamp: dict[str, Any] = {
        "kind": "fleet",
        "from": "parameters",
        "synthetic": True,
        "parameters": {**parameters, "models": named},
        **fleet_figures(fleet),
    }
    return Fleet(frame=fleet, stamp=stamp)


def _drawn(draw: Draw, weights: Mapping[int, float], count: int) -> npt.NDArray[np.int64]:
    chances = np.array(list(weights.values()), dtype=np.float64)
    values: npt.NDArray[np.int64] = draw.choice(np.array(list(weights), dtype=np.int64), count, p=chances / chances.sum())
    return values


def _models(draw: Draw, wanted: ParametricFleet) -> list[list[str]]:
    """Return each worker's models: first one worker a model, then whom chance picks."""
    named = wanted.models
    names = [f"model-{number:03d}" for number in range(1, named + 1)] if isinstance(named, int) else list(named)
    firsts = [*range(min(len(names), wanted.workers)), *draw.integers(0, len(names), max(0, wanted.workers - len(names)))]
    served = []
    for first, how_many in zip(firsts, _drawn(draw, MODELS_A_WORKER, wanted.workers), strict=True):
        others = draw.permutation(len(names))[: min(how_many, len(names))]
        chosen = [int(first), *(int(other) for other in others if other != first)][:how_many]
        served.append([names[place] for place in chosen])
    return served


def _periods(draw: Draw, workers: pl.DataFrame, churn: Churn | None) -> pl.DataFrame:
    """Return a row a period online: one without end, or alternating ones that start as in the long run."""
    if churn is None:
        return workers.with_columns(
            pl.lit(EVER).cast(UTC_INSTANT).alias("online_from"), pl.lit(None).cast(UTC_INSTANT).alias("online_to")
        )
    expected = workers.height * (1 + churn.hours / (churn.mean_online_h + churn.mean_away_h))
    _check(expected <= MOST_PERIODS, "churn", round(expected), f"periods would come of it; at most {MOST_PERIODS}")
    online_share = churn.mean_online_h / (churn.mean_online_h + churn.mean_away_h)
    rows: list[int] = []
    spans: list[tuple[datetime, datetime]] = []
    for row in range(workers.height):
        at_h, online = 0.0, bool(draw.random() < online_share)
        while at_h < churn.hours:
            # exponential times have no memory: the first, already running, is drawn like any other
            until_h = min(at_h + draw.exponential(churn.mean_online_h if online else churn.mean_away_h), churn.hours)
            start, stop = (churn.start + timedelta(hours=hours) for hours in (at_h, until_h))
            if online and stop > start:
                rows.append(row)
                spans.append((start, stop))
            at_h, online = until_h, not online
    return workers[rows].with_columns(
        pl.Series("online_from", [start for start, _ in spans], dtype=UTC_INSTANT),
        pl.Series("online_to", [stop for _, stop in spans], dtype=UTC_INSTANT),
    )
