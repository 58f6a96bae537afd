"""The figures of a recorded folder, worked out from its JSON with nothing of the library: horde.md §8.3 and A2–A9.

Plain and slow on purpose (the largest free request tries every size), so that it shares no idea with what it checks.
"""

import json
import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parents[3] / "data" / "recorded"
FOLDERS = (
    "snapshot",
    "calm_snapshot",
    "later_nearly_everyone_gone",
    "joined_no_jobs_yet",
    "fresh_server",
    "production_2023-07",
)


@dataclass(frozen=True)
class RawWorker:
    name: str
    models: tuple[str, ...]
    max_length: int
    max_context_length: int
    speed: float
    unmeasured: bool
    open_to_all: bool


@dataclass(frozen=True)
class RawFolder:
    workers: tuple[RawWorker, ...]
    listed: dict[str, tuple[float, float]] | None
    horde_wide: float | None
    queue: tuple[dict[str, Any], ...] = field(default=())

    def names(self) -> list[str]:
        return sorted({m for w in self.workers for m in w.models} | set(self.listed or {}))


def body_of(folder: str, part: str) -> Any:
    path = RECORDED / folder / f"{part}.json"
    if not path.exists():
        return None
    return json.loads(path.read_text(encoding="utf-8"))["response"]["body"]


@cache
def raw_folder(folder: str) -> RawFolder:
    workers = tuple(
        RawWorker(
            name=w["name"],
            models=tuple(w["models"]),
            max_length=w["max_length"],
            max_context_length=w["max_context_length"],
            speed=10.0 if w["requests_fulfilled"] == 0 else float(w["performance"].split()[0]),
            unmeasured=w["requests_fulfilled"] == 0,
            open_to_all=w["online"] and not w["maintenance_mode"] and not w["flagged"],
        )
        for w in body_of(folder, "workers_text")
    )
    models = body_of(folder, "models_text")
    totals = body_of(folder, "performance")
    queued = RECORDED / folder / "what_was_queued.json"
    return RawFolder(
        workers=workers,
        listed=None if models is None else {m["name"]: (m["queued"], m["jobs"]) for m in models},
        horde_wide=None if totals is None else totals["queued_tokens"],
        queue=tuple(json.loads(queued.read_text(encoding="utf-8"))["requests"]) if queued.exists() else (),
    )


def takes(worker: RawWorker, models: tuple[str, ...] | None, max_length: int, context: int) -> bool:
    return (
        worker.open_to_all
        and (models is None or any(m in worker.models for m in models))
        and worker.max_length >= max_length
        and worker.max_context_length >= context
    )


def eligible(raw: RawFolder, models: tuple[str, ...] | None, max_length: int, context: int = 2048) -> list[RawWorker]:
    return [w for w in raw.workers if takes(w, models, max_length, max(context, max_length))]


def curve(wait_s: float) -> int:
    if wait_s <= 60:
        return 4096
    if wait_s >= 300:
        return 512
    return math.floor(4096 - 3584 * (wait_s - 60) / 240)


def named_queue(raw: RawFolder, models: tuple[str, ...] | None) -> float | None:
    if raw.listed is None:
        return None
    names = raw.listed if models is None else models
    if any(name not in raw.listed for name in names):
        return None
    return sum(raw.listed[name][0] for name in names)


def waits(raw: RawFolder, models: tuple[str, ...] | None, max_length: int, context: int = 2048) -> dict[str, float | None] | None:
    pool = eligible(raw, models, max_length, context)
    queue = named_queue(raw, models)
    if not pool or queue is None or raw.listed is None:
        return None
    speed = math.fsum(w.speed for w in pool)
    high = None
    if raw.horde_wide is not None:
        reach = {m for w in pool for m in w.models if m in raw.listed}
        listed = sum(raw.listed[m][0] * min(20, max(1, raw.listed[m][1])) for m in reach)
        high = (listed + 20 * max(0, raw.horde_wide - sum(q for q, _ in raw.listed.values()))) / speed
    return {"low": 0.0, "named": queue / speed, "high": high}


@cache
def largest_free(folder: str, models: tuple[str, ...] | None, context: int = 2048) -> int | None:
    raw = raw_folder(folder)
    queue = named_queue(raw, models)
    if queue is None:
        return None
    serving = RawFolder(tuple(w for w in raw.workers if takes(w, models, 0, 0)), raw.listed, raw.horde_wide)
    best = None
    for size in range(1, 16385):
        pool = eligible(serving, models, size, context)
        if pool and size <= curve(queue / math.fsum(w.speed for w in pool)):
            best = size
    return best


def truth_tokens(raw: RawFolder, models: tuple[str, ...] | None, max_length: int, context: int = 2048) -> float:
    """Return the output tokens that really waited and that an eligible worker could take (A7): max_length × what waits."""
    pool = eligible(raw, models, max_length, context)
    return math.fsum(
        r["max_length"] * r["waiting"]
        for r in raw.queue
        if r["waiting"]
        and any(takes(w, tuple(r["models"]) if r["models"] else None, r["max_length"], r["max_context_length"]) for w in pool)
    )


def entry(folder: str, models: tuple[str, ...] | None, max_length: int, context: int = 2048) -> dict[str, Any]:
    """Return the figures of one entry of ``snapshot`` or ``allowance``, as issue 2's first item orders them."""
    raw = raw_folder(folder)
    pool = eligible(raw, models, max_length, context)
    serving = [w for w in raw.workers if takes(w, models, 0, 0)]
    wait = waits(raw, models, max_length, context)
    queue = named_queue(raw, models)
    allowance: int | None
    span: list[int | None]
    if not pool:
        allowance, span = 512, [512, 512]
    elif wait is None:
        allowance, span = None, [None, None]
    else:
        assert wait["named"] is not None
        assert wait["low"] is not None
        allowance = curve(wait["named"])
        span = [None if wait["high"] is None else curve(wait["high"]), curve(wait["low"])]
    if not serving:
        state = "no_worker"
    elif not pool:
        state = "too_large"
    elif queue is None:
        state = "unknown"
    else:
        state = {4096: "full", 512: "floor"}.get(allowance or 0, "falling")
    return {
        "state": state,
        "max_length": max_length,
        "eligible_workers": len(pool),
        "speed_tok_per_s": math.fsum(w.speed for w in pool),
        "queued_tokens": queue,
        "estimated_wait_s": wait,
        "allowance_tokens": allowance,
        "allowance_range_tokens": span,
        "largest_free_request_tokens": largest_free(folder, models, context) if serving else None,
    }
