"""Random small worlds for replays, made to hit the contract's corners: ties, zero tokens, touching periods, equal keys."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from horde_policy.settings import ReplaySettings

Row = dict[str, Any]

START = datetime(2026, 11, 29, tzinfo=UTC)

TRAFFIC_TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "created": pl.Datetime("us", "UTC"),
    "models": pl.List(pl.String),
    "requester": pl.String,
    "max_length": pl.Int64,
    "request_id": pl.String,
    "can_pay": pl.Boolean,
    "output_tokens": pl.Int64,
    "max_context_length": pl.Int64,
    "chat": pl.Boolean,
    "slow_workers": pl.Boolean,
    "allow_downgrade": pl.Boolean,
    "priority": pl.Float64,
}
FLEET_TYPES: dict[str, pl.DataType | type[pl.DataType]] = {
    "worker_id": pl.String,
    "online_from": pl.Datetime("us", "UTC"),
    "online_to": pl.Datetime("us", "UTC"),
    "models": pl.List(pl.String),
    "max_length": pl.Int64,
    "max_context_length": pl.Int64,
    "speed": pl.Float64,
    "threads": pl.Int64,
    "measured": pl.Boolean,
    "slow": pl.Boolean,
}


def moment(dice: random.Random, span_s: float, grain_us: int) -> datetime:
    """An instant within the span, on a grain coarse enough for ties."""
    steps = int(span_s * 1_000_000 / grain_us)
    return START + timedelta(microseconds=dice.randint(0, steps) * grain_us)


def some_models(dice: random.Random, names: list[str], most: int) -> list[str]:
    return dice.sample(names, dice.randint(1, min(most, len(names))))


def random_fleet(dice: random.Random, names: list[str], span_s: float, grain_us: int) -> list[Row]:
    rows: list[Row] = []
    sizes = [dice.choice([0, 16, 80, 256, 512, 1024, 4096, 16384, 16384]) for _ in range(3)]
    for worker in range(dice.choice([0, 1, 2, 3, 4, 6])):
        cuts = sorted({moment(dice, span_s, grain_us) for _ in range(dice.randint(1, 5))})
        if dice.random() < 0.6:
            cuts[0] = START - timedelta(seconds=1)
        ends: list[datetime | None] = [*cuts[1:], None if dice.random() < 0.6 else cuts[-1] + timedelta(seconds=1 + span_s // 3)]
        for begin, end in zip(cuts, ends, strict=True):
            if len(cuts) > 1 and end is not None and dice.random() < 0.3:
                continue  # away in this period
            rows.append(
                {
                    "worker_id": f"w{worker}",
                    "online_from": begin,
                    "online_to": end,
                    "models": some_models(dice, names, 3) if dice.random() < 0.95 else [],
                    "max_length": dice.choice(sizes),
                    "max_context_length": dice.choice([1024, 2048, 8192, 8192]),
                    "speed": dice.choice([1.0, 3.0, 4.999, 5.0, 7.3, 10.0, 31.7, 100.0]),
                    "threads": dice.choice([1, 1, 1, 2, 3, 20]),
                    "measured": dice.random() < 0.6,
                    "slow": dice.choice([None, None, True, False]),
                }
            )
    dice.shuffle(rows)
    return rows


def random_request(dice: random.Random, names: list[str], span_s: float, grain_us: int) -> Row:
    asked = dice.choice([1, 16, 80, 80, 80, 200, 512, 513, 1024, 4096, 16384, dice.randint(1, 1000)])
    return {
        "created": moment(dice, span_s, grain_us),
        "models": [] if dice.random() < 0.2 else some_models(dice, [*names, *names, "served by nobody"], 3),
        "requester": dice.choice(["anonymous", "anonymous", "registered", "shared_key"]),
        "max_length": asked,
        "can_pay": dice.random() < 0.25,
        "output_tokens": dice.choice([0, 0, 1, 20, asked // 2, asked, 2 * asked, None]),
        "max_context_length": dice.choice([None, None, 1, 1024, 2048, 2049, 8192]),
        "chat": dice.random() < 0.25,
        "slow_workers": dice.random() < 0.75,
        "allow_downgrade": dice.random() < 0.4,
        "priority": dice.choice([None, None, 0.0, -0.0, 50.0, 25.5, 1000.0, -1e-9, dice.uniform(-100, 5000)]),
    }


def random_settings(dice: random.Random) -> ReplaySettings:
    ceiling = dice.choice([4096, 4096, 1000, 16384])
    full = dice.choice([0.0, 1.0, 10.0, 60.0])
    return ReplaySettings(
        ceiling_tokens=ceiling,
        floor_tokens=dice.choice([1, 64, min(512, ceiling), ceiling]),
        wait_full_s=full,
        wait_floor_s=full + dice.choice([0.5, 20.0, 240.0, 1e6]),
        assumed_speed_tok_per_s=dice.choice([10.0, 10.0, 0.1, 33.3]),
        request_ttl_s=dice.choice([1200.0, 1200.0, 1200.0, 60.0, 60.0, 5.0, 0.5e-6, 1e12]),
        ageing_kudos=dice.choice([50.0, 50.0, 0.0, 0.1, -7.0]),
        ageing_every_s=dice.choice([10.0, 10.0, 1.0, 0.37, 3600.0]),
        job_timeout_s=dice.choice([None, None, None, 150.0, 5.0, 0.0]),
        count_threads=dice.random() < 0.3,
        ahead=dice.choice(["queue_order", "queue_order", "all"]),
        rule=dice.choice(
            ["allowance", "allowance", "allowance", "allowance", "old", "jobs", "jobs", "everyone_free", "no_one_free"]
        ),
        client=dice.choice(["leave", "leave", "resend", "return"]),
        return_after_s=dice.choice([0.0, 1.0, 30.0, 61.5]),
        return_times=dice.choice([0, 1, 2, 5]),
        jobs_rule_floor_per_thread=dice.choice([4.0, 1.0, 0.3]),
    )


def random_world(seed: int) -> tuple[pl.DataFrame, pl.DataFrame, ReplaySettings]:
    """Traffic, fleet and settings of one world."""
    dice = random.Random(seed)
    names = [f"koboldcpp/m{k}" for k in range(dice.randint(1, 4))]
    span_s = dice.choice([0.0, 3.0, 30.0, 300.0, 2000.0])
    grain_us = dice.choice([1, 137, 500_000, 1_000_000, 10_000_000])
    fleet = random_fleet(dice, names, span_s, grain_us)
    requests = [random_request(dice, names, span_s, grain_us) for _ in range(dice.choice([0, 1, 5, 20, 60]))]
    if dice.random() < 0.7:
        requests.sort(key=lambda row: row["created"])
    named = dice.random() < 0.3
    if named:
        for k, row in enumerate(requests):
            row["request_id"] = f"r{k}"
    types = {name: dtype for name, dtype in TRAFFIC_TYPES.items() if name != "request_id" or named}
    traffic = pl.DataFrame(requests, schema=types)
    dropped = [
        name for name in traffic.columns if name not in {"created", "models", "requester", "max_length"} and dice.random() < 0.15
    ]
    return traffic.drop(dropped), pl.DataFrame(fleet, schema=FLEET_TYPES), random_settings(dice)


def crowded_world(seed: int) -> tuple[pl.DataFrame, pl.DataFrame, ReplaySettings]:
    """A world where hundreds wait in few classes: long queues, many equal keys, workers that come and go under them."""
    dice = random.Random(seed)
    names = ["koboldcpp/m0", "koboldcpp/m1"]
    span_s = dice.choice([5.0, 60.0])
    fleet = random_fleet(dice, names, 600.0, 1_000_000)
    sizes = [dice.choice([16, 80, 256]) for _ in range(2)]
    requests = []
    for _ in range(dice.randint(150, 300)):
        row = random_request(dice, names, span_s, 100_000)
        row |= {"models": [dice.choice(names)], "max_length": dice.choice(sizes), "slow_workers": dice.random() < 0.95}
        row |= {"max_context_length": 1024, "chat": False, "priority": dice.choice([None, 0.0, 40.0, dice.uniform(-50, 5000)])}
        requests.append(row)
    requests.sort(key=lambda row: row["created"])
    types = {name: dtype for name, dtype in TRAFFIC_TYPES.items() if name != "request_id"}
    settings = random_settings(dice).changed(request_ttl_s=dice.choice([1200.0, 300.0]))
    return pl.DataFrame(requests, schema=types), pl.DataFrame(fleet, schema=FLEET_TYPES), settings


def varied_world(seed: int) -> tuple[pl.DataFrame, pl.DataFrame, ReplaySettings]:
    """A world where nearly every request and every fleet row has its own sizes and models: a class each, most of them waiting."""
    dice = random.Random(seed)
    names = [f"koboldcpp/m{k}" for k in range(8)]
    fleet = [row for _ in range(4) for row in random_fleet(dice, names, 100.0, 500_000)]
    for k, row in enumerate(fleet):
        row |= {"worker_id": f"w{k}", "max_length": dice.randint(200, 3000), "max_context_length": dice.randint(1000, 5000)}
    requests = []
    for _ in range(200):
        row = random_request(dice, names, 20.0, 100_000)
        row |= {"max_length": dice.randint(1, 3000), "max_context_length": dice.randint(1, 5000), "output_tokens": None}
        requests.append(row)
    types = {name: dtype for name, dtype in TRAFFIC_TYPES.items() if name != "request_id"}
    settings = random_settings(dice).changed(request_ttl_s=300.0, rule=dice.choice(["allowance", "everyone_free", "jobs"]))
    return pl.DataFrame(requests, schema=types), pl.DataFrame(fleet, schema=FLEET_TYPES), settings
