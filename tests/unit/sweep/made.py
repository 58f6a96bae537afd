"""Made-up inputs and sweep frames for these tests (synthetic): only what a case is about needs to be said."""

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from horde_policy.settings import ReplaySettings
from horde_policy.sweep.counting import BINS, COUNTERS, WAITERS, Outcome
from horde_policy.sweep.grid import Plan, Point, Scenario, parse_grid, plan
from horde_policy.sweep.inputs import SweepInputs, load_inputs
from horde_policy.sweep.results import frame_of
from horde_policy.sweep.stage import check_plan

START = datetime(2026, 11, 23, tzinfo=UTC)
INSTANT = pl.Datetime("us", "UTC")


def traffic_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    types: dict[str, Any] = {
        "created": INSTANT,
        "models": pl.List(pl.String),
        "requester": pl.String,
        "max_length": pl.Int64,
        "output_tokens": pl.Int64,
        "can_pay": pl.Boolean,
    }
    plain = {"models": ["m"], "requester": "anonymous", "max_length": 80, "output_tokens": None, "can_pay": False}
    return pl.DataFrame([plain | dict(row) for row in rows], schema=types)


def fleet_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    types: dict[str, Any] = {
        "worker_id": pl.String,
        "online_from": INSTANT,
        "models": pl.List(pl.String),
        "max_length": pl.Int64,
        "max_context_length": pl.Int64,
        "speed": pl.Float64,
        "threads": pl.Int64,
    }
    plain = {"online_from": START - timedelta(days=1), "models": ["m"], "max_length": 8192, "max_context_length": 16384}
    return pl.DataFrame([plain | {"speed": 10.0, "threads": 1} | dict(row) for row in rows], schema=types)


def inputs_of(folder: Path, traffic: pl.DataFrame, fleet: pl.DataFrame) -> SweepInputs:
    traffic.write_parquet(folder / "traffic.parquet")
    fleet.write_parquet(folder / "fleet.parquet")
    return load_inputs(folder / "traffic.parquet", folder / "fleet.parquet")


def busy_week(requests: int = 1500, days: int = 7, seed: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Traffic that queues on a few workers, with requesters, models and sizes mixed."""
    dice = random.Random(seed)
    span_s = days * 86_400
    rows = []
    for _ in range(requests):
        burst = dice.random() < 0.6
        second = dice.randrange(days) * 86_400 + dice.uniform(30_000, 33_000) if burst else dice.uniform(0, span_s - 1)
        asked = dice.choice([80, 256, 512, 1024, 2048, 4096, 4096])
        rows.append(
            {
                "created": START + timedelta(seconds=second),
                "models": [dice.choice(["m", "m", "n"])] if dice.random() < 0.9 else [],
                "requester": dice.choice(["anonymous", "anonymous", "registered", "shared_key"]),
                "max_length": asked,
                "output_tokens": dice.randint(1, asked),
                "can_pay": dice.random() < 0.3,
            }
        )
    rows[0]["created"] = START
    rows[-1]["created"] = START + timedelta(seconds=span_s - 1)
    workers = [{"worker_id": f"w{k}", "models": ["m", "n"] if k % 2 else ["m"], "speed": 20.0 + k} for k in range(4)]
    return traffic_frame(rows), fleet_frame(workers)


def planned(text: str, inputs: SweepInputs, baseline: ReplaySettings | None = None) -> Plan:
    return check_plan(plan(parse_grid(text), baseline or ReplaySettings()), inputs)


def made_frame(
    points: Sequence[ReplaySettings],
    counts: Callable[[int, Scenario, int], Mapping[str, float]],
    *,
    days: int = 7,
    last_hours: float = 24.0,
    seeds: Sequence[int] = (0,),
    loads: Sequence[float] = (1.0,),
    waits: Callable[[int, Scenario, int], Mapping[str, Mapping[int, int]]] | None = None,
) -> pl.DataFrame:
    """Return a sweep frame of made-up counts: ``counts(point, scenario, day)`` names the counters that are not 0."""
    done = []
    for load in loads:
        for seed in seeds:
            scenario = Scenario(load, seed, None)
            for place, settings in enumerate(points):
                outcome = _outcome(place, scenario, counts, waits, days)
                done.append((f"{place}-{load}-{seed}", Point(settings, baseline=place == 0), scenario, outcome))
    hours = [24.0] * (days - 1) + [last_hours]
    return frame_of(done, day_from=[START + timedelta(days=d) for d in range(days)], day_hours=hours, days=None)


def _outcome(
    place: int,
    scenario: Scenario,
    counts: Callable[[int, Scenario, int], Mapping[str, float]],
    waits: Callable[[int, Scenario, int], Mapping[str, Mapping[int, int]]] | None,
    days: int,
) -> Outcome:
    counters = np.zeros((days, len(COUNTERS)), np.int64)
    binned = np.zeros((days, len(WAITERS), BINS), np.int64)
    groups = np.zeros((days, 2, 2), np.uint32)
    for day in range(days):
        for name, count in counts(place, scenario, day + 1).items():
            counters[day, COUNTERS.index(name)] = round(count)
        groups[day, 0] = counters[day, COUNTERS.index("unfunded")], counters[day, COUNTERS.index("unfunded_refused")]
        for who, held in (waits(place, scenario, day + 1) if waits else {}).items():
            for place_of_bin, count in held.items():
                binned[day, WAITERS.index(who), place_of_bin] = count
    places = np.flatnonzero(binned)
    return Outcome(
        counters=counters,
        wait_place=places.astype(np.int32),
        wait_count=binned.ravel()[places].astype(np.uint32),
        by_group=groups,
        asked_by=np.zeros((days, 3, 5), np.uint32),
        utilisation=np.array(0.5),
    )
