"""Waits that queueing theory knows: the engine gives them within the statistical error.

Everyone is free, nothing expires, one priority: first come, first served. The standard error comes from batch means over
the run without its first tenth; a mean may be off by four of them. Sizes are whole tokens of about 1/1000 of a mean
answer, which moves a mean wait by less than 0.2 %.
"""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from horde_policy.replay import replay
from horde_policy.settings import ReplaySettings
from tests.oracle.conservation import check_conservation

START = datetime(2026, 11, 29, tzinfo=UTC)
REQUESTS = 200_000
SPEED = 1000.0
MEAN_TOKENS = 1000
ROUNDING = 0.002
BATCHES = 40

EVERYONE = ReplaySettings(rule="everyone_free", request_ttl_s=1e9)


def traffic_of(gaps_s: np.ndarray, tokens: np.ndarray, priority: np.ndarray | float = 0.0) -> pl.DataFrame:
    created_us = int(START.timestamp() * 1e6) + np.cumsum(np.round(gaps_s * 1e6)).astype(np.int64)
    return pl.DataFrame(
        {
            "created": pl.Series(created_us).cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
            "models": pl.Series([["m"]]).new_from_index(0, len(created_us)),
            "requester": pl.Series(["registered"]).new_from_index(0, len(created_us)),
            "max_length": pl.Series([16384]).new_from_index(0, len(created_us)),
            "output_tokens": tokens.astype(np.int64),
        }
    ).with_columns(priority=pl.lit(priority) if isinstance(priority, float) else pl.Series(priority))


def fleet_of(workers: int, threads: int = 1) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "worker_id": [f"w{k}" for k in range(workers)],
            "online_from": [START] * workers,
            "models": [["m"]] * workers,
            "max_length": [16384] * workers,
            "max_context_length": [4096] * workers,
            "speed": [SPEED] * workers,
            "threads": [threads] * workers,
        },
        schema_overrides={"online_from": pl.Datetime("us", "UTC")},
    ).with_columns(online_to=pl.lit(None, dtype=pl.Datetime("us", "UTC")))


def run_of(traffic: pl.DataFrame, fleet: pl.DataFrame, settings: ReplaySettings = EVERYONE) -> pl.DataFrame:
    run = replay(traffic, fleet, settings)
    check_conservation(traffic, fleet, settings, run)
    assert (run["status"] == "completed").all()
    return run


def check_mean_wait(waits_s: np.ndarray, theory_s: float) -> None:
    settled = waits_s[len(waits_s) // 10 :]
    means = settled[: len(settled) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1)
    error_s = float(means.std(ddof=1)) / math.sqrt(BATCHES)
    assert error_s < 0.05 * theory_s, "the run is too short to tell anything"
    assert abs(float(settled.mean()) - theory_s) <= 4 * error_s + ROUNDING * theory_s


def exponential_tokens(dice: np.random.Generator, count: int = REQUESTS) -> np.ndarray:
    return np.round(dice.exponential(MEAN_TOKENS, count))


def erlang_c(servers: int, offered: float) -> float:
    """Probability that an arrival waits in M/M/c."""
    busy = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return busy / (sum(offered**k / math.factorial(k) for k in range(servers)) + busy)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_mm1(load: float) -> None:
    dice = np.random.default_rng(11)
    run = run_of(traffic_of(dice.exponential(1 / load, REQUESTS), exponential_tokens(dice)), fleet_of(1))
    check_mean_wait(run["queue_wait_s"].to_numpy(), load / (1 - load))


@pytest.mark.parametrize(("workers", "threads"), [(5, 1), (1, 5), (2, 4)])
def test_mmc(workers: int, threads: int) -> None:
    dice = np.random.default_rng(12)
    servers, load = workers * threads, 0.8
    run = run_of(
        traffic_of(dice.exponential(1 / (load * servers), REQUESTS), exponential_tokens(dice)), fleet_of(workers, threads)
    )
    wait_s = erlang_c(servers, load * servers) / (servers - load * servers)
    check_mean_wait(run["queue_wait_s"].to_numpy(), wait_s)


@pytest.mark.parametrize("kind", ["constant", "two sizes", "lognormal"])
def test_mg1(kind: str) -> None:
    dice = np.random.default_rng(13)
    sizes = {
        "constant": np.full(REQUESTS, 1000.0),
        "two sizes": np.where(dice.random(REQUESTS) < 0.9, 500.0, 5500.0),
        "lognormal": np.round(dice.lognormal(math.log(800), 0.6, REQUESTS)).clip(1, 16384),
    }
    tokens = sizes[kind]
    rate = 0.7 / (tokens.mean() / SPEED)
    run = run_of(traffic_of(dice.exponential(1 / rate, REQUESTS), tokens), fleet_of(1))
    service_s = tokens / SPEED
    pollaczek_khinchine_s = rate * float((service_s**2).mean()) / (2 * (1 - rate * float(service_s.mean())))
    check_mean_wait(run["queue_wait_s"].to_numpy(), pollaczek_khinchine_s)


def test_two_priorities_wait_as_cobham_says() -> None:
    dice = np.random.default_rng(14)
    tokens = exponential_tokens(dice)
    first = dice.random(REQUESTS) < 0.4
    traffic = traffic_of(dice.exponential(1 / 0.75, REQUESTS), tokens, np.where(first, 100.0, 0.0))
    run = run_of(traffic, fleet_of(1), EVERYONE.changed(ageing_kudos=0.0))
    residual_s = 0.75 * 2 / 2
    ahead = 0.75 * 0.4
    waits_s = run["queue_wait_s"].to_numpy()
    check_mean_wait(waits_s[first], residual_s / (1 - ahead))
    check_mean_wait(waits_s[~first], residual_s / ((1 - ahead) * (1 - 0.75)))


def test_the_estimate_of_an_arrival_is_the_work_ahead_over_the_speed() -> None:
    """In M/D/1 the wait is the tokens ahead over the speed and what is left of the running job: below one job more."""
    dice = np.random.default_rng(15)
    run = run_of(traffic_of(dice.exponential(16.384 / 0.8, 50_000), np.full(50_000, 16384.0)), fleet_of(1))
    beyond_s = run["queue_wait_s"] - run["estimated_wait_s"]
    assert beyond_s.min() >= 0  # type: ignore[operator]
    assert beyond_s.max() <= 16384 / SPEED  # type: ignore[operator]


@pytest.mark.parametrize(("workers", "gap_s", "tokens"), [(1, 1.0, 1500), (3, 0.5, 1600), (2, 1.0, 1999), (2, 1.0, 2000)])
def test_a_deterministic_queue_is_exact(workers: int, gap_s: float, tokens: int) -> None:
    count = 5000
    run = run_of(traffic_of(np.full(count, gap_s), np.full(count, float(tokens))), fleet_of(workers))
    free_us = [0] * workers
    gap_us, takes_us = round(gap_s * 1e6), tokens * 1000
    for k, wait_s in enumerate(run["queue_wait_s"].to_list()):
        arrives_us = (k + 1) * gap_us
        begins_us = max(arrives_us, min(free_us))
        free_us[free_us.index(min(free_us))] = begins_us + takes_us
        assert wait_s == (begins_us - arrives_us) / 1e6
    last = run["finished"].max()
    assert last == START + timedelta(microseconds=max(free_us))
