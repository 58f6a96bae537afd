"""Which workers were there over a range: in what form from when to when, how fast, and gone since."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema
from horde_policy.history.fleet_span import GONE, OPEN, STANDINGS, Counts, FleetSpan, WorkerSpan

__all__ = ["PERIOD_ROWS", "SPEED_ROWS", "WORKER_ROWS", "Period", "periods_of", "worker_periods", "worker_speeds", "workers_over"]

PERIOD_ROWS = Schema(
    "worker_periods",
    {
        "worker_id": Column(pl.String, text="hostile text"),
        "name": Column(pl.String, null="not reported", text="its last one in the period; hostile text"),
        "from": Column(UTC_INSTANT, "UTC", text="the first poll that saw it so"),
        "to": Column(UTC_INSTANT, "UTC", null="so at the end of the range", text="the first poll that saw it otherwise"),
        "standing": Column(pl.String, text="open, maintenance, offline or flagged"),
        "models": Column(pl.List(pl.String), text="hostile text"),
        "max_length": Column(pl.Int64, "tokens", null="not reported"),
        "max_context_length": Column(pl.Int64, "tokens", null="not reported"),
        "threads": Column(pl.Int64, "jobs"),
        "speed_tok_per_s": Column(pl.Float64, "tok/s", null="never measured", text="mean over its polls with a measured speed"),
        "slowest_tok_per_s": Column(pl.Float64, "tok/s", null="never measured"),
        "fastest_tok_per_s": Column(pl.Float64, "tok/s", null="never measured"),
        "polls": Column(pl.Int64, "polls"),
    },
    sort=("worker_id", "from"),
)
"""One row a worker and stretch of polls with the same standing, models, sizes and threads."""

WORKER_ROWS = Schema(
    "workers_over_range",
    {
        "worker_id": Column(pl.String, text="hostile text"),
        "name": Column(pl.String, null="not reported", text="the last one; hostile text"),
        "first_seen": Column(UTC_INSTANT, "UTC"),
        "last_seen": Column(UTC_INSTANT, "UTC"),
        "gone_since": Column(UTC_INSTANT, "UTC", null="there at the end of the range"),
        "present_ratio": Column(pl.Float64, text="of the range's polls"),
        "open_ratio": Column(pl.Float64, text="of the range's polls, serving strangers"),
        "speed_tok_per_s": Column(pl.Float64, "tok/s", null="never measured", text="mean over its polls with a measured speed"),
        "slowest_tok_per_s": Column(pl.Float64, "tok/s", null="never measured"),
        "fastest_tok_per_s": Column(pl.Float64, "tok/s", null="never measured"),
        "models": Column(pl.List(pl.String), text="as it last declared them; hostile text"),
        "periods": Column(pl.Int64, text="times it was there"),
    },
    sort=("worker_id",),
)
"""One row a worker that was there at any poll of the range."""

SPEED_ROWS = Schema(
    "worker_speeds",
    {
        "at": Column(UTC_INSTANT, "UTC", text="the poll"),
        "speed_tok_per_s": Column(pl.Float64, "tok/s", null="not measured, or not there"),
        "standing": Column(pl.String, text="gone, open, maintenance, offline or flagged"),
    },
    sort=("at",),
)
"""One row a poll of the range."""


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of polls in which a worker stood and declared the same: its first poll, the first after it, and its form."""

    first: int
    end: int
    standing: int
    profile: int
    speeds: npt.NDArray[np.float64]
    """The measured speeds of its polls, those not measured left out."""
    measured_at_first: bool


def _forms(span: FleetSpan) -> Counts:
    """Return profile → number of its models, sizes and threads, which are what a replay and a reader tell apart."""
    p = span.profiles
    numbers: dict[object, int] = {}
    forms = zip(p.models, p.max_length.tolist(), p.max_context_length.tolist(), p.threads.tolist(), strict=True)
    return np.array([numbers.setdefault(form, len(numbers)) for form in forms] + [-1], np.int64)


def periods_of(span: FleetSpan) -> Iterator[tuple[WorkerSpan, list[Period]]]:
    """Yield each worker of a range with its periods in order; the polls at which it was gone are in none."""
    forms = _forms(span)
    for worker in span.workers:
        key = forms[worker.profile] * len(STANDINGS) + worker.standing
        edges = [0, *(np.flatnonzero(np.diff(key)) + 1).tolist(), key.size]
        periods = []
        for begin, end in pairwise(edges):
            standing = int(worker.standing[begin])
            if standing == GONE:
                continue
            speeds = worker.own_speed[begin:end]
            known = ~np.isnan(speeds)
            periods.append(
                Period(
                    worker.first + begin,
                    worker.first + end,
                    standing,
                    int(worker.profile[end - 1]),
                    speeds[known],
                    bool(known[0]),
                )
            )
        yield worker, periods


def _speed_figures(speeds: npt.NDArray[np.float64]) -> dict[str, float | None]:
    names = ("speed_tok_per_s", "slowest_tok_per_s", "fastest_tok_per_s")
    if not speeds.size:
        return dict.fromkeys(names)
    return dict(zip(names, (float(speeds.mean()), float(speeds.min()), float(speeds.max())), strict=True))


def _frame(records: list[dict[str, Any]], schema: Schema) -> pl.DataFrame:
    columns = {name: [record[name] for record in records] for name in schema.columns}
    return schema.checked(pl.DataFrame(columns, schema=schema.polars_schema()).sort(schema.sort))


def worker_periods(span: FleetSpan) -> pl.DataFrame:
    """Return the workers' periods over a range: frame :data:`PERIOD_ROWS`.

    Over a gap in the history a period goes on if the worker is seen in the same form on both sides of it.
    """
    at, profiles = span.polls["at"].to_list(), span.profiles
    records = []
    for worker, periods in periods_of(span):
        for period in periods:
            records.append(
                {
                    "worker_id": worker.worker_id,
                    "name": profiles.names[period.profile],
                    "from": at[period.first],
                    "to": at[period.end] if period.end < len(at) else None,
                    "standing": STANDINGS[period.standing],
                    "models": list(profiles.models[period.profile]),
                    "max_length": int(profiles.max_length[period.profile]) or None,
                    "max_context_length": int(profiles.max_context_length[period.profile]) or None,
                    "threads": int(profiles.threads[period.profile]),
                    **_speed_figures(period.speeds),
                    "polls": period.end - period.first,
                }
            )
    return _frame(records, PERIOD_ROWS)


def workers_over(span: FleetSpan) -> pl.DataFrame:
    """Return the workers that were there over a range, and those gone since when: frame :data:`WORKER_ROWS`."""
    at: list[datetime] = span.polls["at"].to_list()
    records = []
    for worker, periods in periods_of(span):
        if not periods:
            continue
        last = periods[-1]
        polls = sum(period.end - period.first for period in periods)
        open_polls = sum(period.end - period.first for period in periods if period.standing == OPEN)
        times = 1 + sum(later.first != earlier.end for earlier, later in pairwise(periods))
        records.append(
            {
                "worker_id": worker.worker_id,
                "name": span.profiles.names[last.profile],
                "first_seen": at[periods[0].first],
                "last_seen": at[last.end - 1],
                "gone_since": at[last.end] if last.end < len(at) else None,
                "present_ratio": polls / len(at),
                "open_ratio": open_polls / len(at),
                **_speed_figures(np.concatenate([period.speeds for period in periods])),
                "models": list(span.profiles.models[last.profile]),
                "periods": times,
            }
        )
    return _frame(records, WORKER_ROWS)


def worker_speeds(span: FleetSpan, worker_id: str) -> pl.DataFrame:
    """Return how one worker stood and how fast it was at each poll of a range: frame :data:`SPEED_ROWS`."""
    speed, standing = np.full(span.height, np.nan), np.full(span.height, GONE)
    for worker in span.workers:
        if worker.worker_id == worker_id:
            there = worker.standing != GONE
            speed[worker.first :] = np.where(there, worker.own_speed, np.nan)
            standing[worker.first :] = worker.standing
    columns = {
        "at": span.polls["at"],
        "speed_tok_per_s": pl.Series(speed).fill_nan(None),
        "standing": pl.Series([STANDINGS[each] for each in standing.tolist()], dtype=pl.String),
    }
    return SPEED_ROWS.checked(pl.DataFrame(columns))
