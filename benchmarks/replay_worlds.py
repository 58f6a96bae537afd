"""Synthetic traffic and fleets for the replay benchmarks: made up, of the size of AI Horde's text side (performance.md §1)."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import polars as pl

START = datetime(2026, 11, 23, tzinfo=UTC)
START_US = int(START.timestamp() * 1_000_000)
INSTANT = pl.Datetime("us", "UTC")

WORKERS = 300
MODELS = 60
EVENNESS = 12.0
"""How even the models' shares are: some are always short of workers."""

OUTPUT_TOKENS = 200.0
"""Mean of what an answer takes."""


@dataclass(frozen=True, slots=True)
class Job:
    """One benchmark world: so many requests at so much of the fleet's combined speed."""

    requests: int
    load: float
    churn: bool
    seed: int = 1


def fleet_of(job: Job, span_s: float) -> pl.DataFrame:
    dice = np.random.default_rng(job.seed)
    length = dice.choice([80, 150, 256, 400, 512, 512, 512, 768, 1024, 1500, 2048, 3072, 4096, 8192], WORKERS)
    context = dice.choice([2048, 4096, 6144, 8192, 10240, 12288, 16384, 32768], WORKERS)
    speed = np.round(dice.lognormal(np.log(18.0), 0.7, WORKERS), 1).clip(1.0, 150.0)
    served = [dice.choice(MODELS, dice.integers(1, 6), replace=False) for _ in range(WORKERS)]
    rows = []
    for w in range(WORKERS):
        at = 0.0 if not job.churn else float(dice.uniform(-6 * 3600, 3600))
        periods: list[tuple[float, float | None]] = [(at, None)]
        if job.churn:
            periods = []
            while at < span_s:
                stay = float(dice.exponential(6 * 3600)) + 60
                periods.append((at, at + stay))
                at += stay + float(dice.exponential(3600)) + 1
        for begin, end in periods:
            if end is None or end > 0:
                rows.append(
                    (
                        f"worker-{w}",
                        START_US + int(begin * 1e6),
                        None if end is None else START_US + int(end * 1e6),
                        [f"koboldcpp/Model-{m}" for m in served[w]],
                        int(length[w]),
                        int(context[w]),
                        float(speed[w]),
                        bool(dice.random() < 0.95),
                    )
                )
    names = ["worker_id", "online_from", "online_to", "models", "max_length", "max_context_length", "speed", "measured"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return frame.with_columns(
        pl.col("online_from", "online_to").cast(pl.Int64).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    )


def traffic_of(job: Job, rate_per_s: float) -> pl.DataFrame:
    dice = np.random.default_rng(job.seed + 1)
    n = job.requests
    created = START_US + np.cumsum(dice.exponential(1e6 / rate_per_s, n)).astype(np.int64)
    shares = dice.dirichlet(np.full(MODELS, EVENNESS))
    model = dice.choice(MODELS, n, p=shares)
    ladder = np.array([80, 150, 256, 512, 1024, 2048, 4096])
    asked = dice.choice(ladder, n, p=[0.2, 0.2, 0.2, 0.25, 0.08, 0.05, 0.02])
    asked = np.where(dice.random(n) < 0.3, dice.integers(16, 2049, n), asked)
    output = np.minimum(dice.exponential(OUTPUT_TOKENS * 1.35, n).astype(np.int64) + 1, asked)
    context = dice.choice(
        [2048, 4096, 6144, 8192, 10240, 12288, 16384, 32768], n, p=[0.3, 0.2, 0.15, 0.15, 0.08, 0.06, 0.04, 0.02]
    )
    requester = dice.choice(3, n, p=[0.6, 0.35, 0.05])
    kudos = np.where(requester == 0, -50.0, np.where(dice.random(n) < 0.8, 0.0, np.round(dice.exponential(2000.0, n))))
    return pl.DataFrame(
        {
            "created": pl.Series(created).cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
            "models": pl.Series([f"koboldcpp/Model-{m}" for m in range(MODELS)]).gather(pl.Series(model)),
            "requester": pl.Series(["anonymous", "registered", "shared_key"]).gather(pl.Series(requester)),
            "max_length": asked,
            "output_tokens": output,
            "max_context_length": context,
            "can_pay": (requester > 0) & (dice.random(n) < 0.5),
            "chat": dice.random(n) < 0.2,
            "slow_workers": dice.random(n) < 0.9,
            "allow_downgrade": dice.random(n) < 0.3,
            "priority": kudos,
        }
    ).with_columns(pl.col("models").reshape((-1, 1)).arr.to_list())


def world_of(job: Job) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return traffic and fleet: arrivals at the rate that gives the load."""
    combined = float(fleet_of(Job(1, job.load, churn=False, seed=job.seed), 1.0)["speed"].sum())
    rate_per_s = job.load * combined / OUTPUT_TOKENS
    return traffic_of(job, rate_per_s), fleet_of(job, job.requests / rate_per_s)
