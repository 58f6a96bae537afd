"""Hand-made traffic and fleets for tests: only what a case is about needs to be said."""

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from horde_policy.replay import replay
from horde_policy.settings import AllowanceSettings, ReplaySettings
from tests.oracle.conservation import check_conservation
from tests.oracle.worlds import FLEET_TYPES, TRAFFIC_TYPES

START = datetime(2026, 11, 29, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def request(seconds: float = 0.0, tokens: int = 80, **others: Any) -> dict[str, Any]:
    row = {"created": at(seconds), "models": ["m"], "requester": "anonymous", "max_length": tokens}
    return row | others


def worker(name: str = "w", **others: Any) -> dict[str, Any]:
    row = {"worker_id": name, "online_from": at(-1), "models": ["m"], "max_length": 16384, "max_context_length": 8192}
    return row | {"speed": 10.0} | others


def frame_of(rows: list[dict[str, Any]], types: dict[str, Any]) -> pl.DataFrame:
    named = {name for row in rows for name in row}
    required = {"created", "models", "requester", "max_length", "worker_id", "online_from", "speed", "max_context_length"}
    kept = {name: dtype for name, dtype in types.items() if name in named or (not rows and name in required)}
    return pl.DataFrame(rows, schema=kept)


def traffic_of(*rows: dict[str, Any]) -> pl.DataFrame:
    return frame_of(list(rows), TRAFFIC_TYPES)


def fleet_of(*rows: dict[str, Any]) -> pl.DataFrame:
    return frame_of(list(rows), FLEET_TYPES | {"online_to": pl.Datetime("us", "UTC")}).pipe(_with_end)


def _with_end(fleet: pl.DataFrame) -> pl.DataFrame:
    if "online_to" in fleet.columns:
        return fleet
    return fleet.with_columns(online_to=pl.lit(None, dtype=pl.Datetime("us", "UTC")))


def replayed(
    requests: list[dict[str, Any]], workers: list[dict[str, Any]], settings: AllowanceSettings | None = None
) -> list[dict[str, Any]]:
    """Replay, check the laws, and return the run's rows."""
    traffic, fleet = traffic_of(*requests), fleet_of(*workers)
    used = settings or ReplaySettings()
    run = replay(traffic, fleet, used)
    check_conservation(traffic, fleet, ReplaySettings.lifted(used), run)
    return run.to_dicts()


def column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def started_after(rows: list[dict[str, Any]]) -> list[float | None]:
    return [None if row["started"] is None else (row["started"] - START).total_seconds() for row in rows]


def finished_after(rows: list[dict[str, Any]]) -> list[float | None]:
    return [None if row["finished"] is None else (row["finished"] - START).total_seconds() for row in rows]
