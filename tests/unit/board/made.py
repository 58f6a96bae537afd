"""Snapshots made up for tests, from the few things a test is about."""

from datetime import UTC, datetime
from typing import Any

import polars as pl

from horde_policy.errors import Problem
from horde_policy.frames.models import MODEL_DEMAND, MODELS
from horde_policy.frames.snapshot import Performance, Snapshot
from horde_policy.frames.workers import WORKERS

AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def worker(worker_id: str, models: list[str] | str = "m", **changes: Any) -> dict[str, Any]:
    return {
        "worker_id": worker_id,
        "name": f"name of {worker_id}",
        "models": [models] if isinstance(models, str) else models,
        "max_length": 512,
        "max_context_length": 8192,
        "speed_tok_per_s": 10.0,
        "measured": True,
        "threads": 1,
        "online": True,
        "maintenance": False,
        "flagged": False,
        "trusted": True,
        "bridge_agent": "KoboldCppEmbedWorker:2:x",
        "owner": None,
        "requests_fulfilled": 5,
        "uncompleted_jobs": 0,
        "uptime_s": 100,
        **changes,
    }


def listed(model: str, queued: float | None = 0.0, jobs: float | None = 0.0, threads: int | None = 1) -> dict[str, Any]:
    return {
        "model": model,
        "threads": threads,
        "job_speed_tok_per_s": 10.0,
        "queued_tokens": queued,
        "jobs": jobs,
        "eta_s": None,
    }


def snapshot(
    workers: list[dict[str, Any]],
    models: list[dict[str, Any]] | None,
    *,
    horde_wide: float | None = 0.0,
    demand: dict[str, int] | None = None,
    at: datetime = AT,
    problems: tuple[Problem, ...] = (),
    synthetic: bool = False,
) -> Snapshot:
    def frame(rows: list[dict[str, Any]], schema: Any, key: str) -> pl.DataFrame:
        columns = {name: [row[name] for row in sorted(rows, key=lambda row: str(row[key]))] for name in schema.columns}
        return pl.DataFrame(columns, schema=schema.polars_schema(), strict=True)

    rows = [
        {"model": name, "requests_day": count, "requests_month": None, "requests_total": None}
        for name, count in (demand or {}).items()
    ]
    return Snapshot(
        fetched_at=at,
        source="made up",
        source_kind="recorded",
        workers=frame(workers, WORKERS, "worker_id"),
        models=None if models is None else frame(models, MODELS, "model"),
        performance=None if horde_wide is None else Performance(queued_tokens=horde_wide),
        demand=None if demand is None else frame(rows, MODEL_DEMAND, "model"),
        problems=problems,
        synthetic=synthetic,
    )
