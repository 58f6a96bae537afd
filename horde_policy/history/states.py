"""A snapshot as the rows that the history keeps, and back: what seldom changes apart from what always does.

Both directions are exact: a snapshot that was stored and read again gives the same figures. Not followed between the changes
of a worker are its three lifetime counts, on which no figure rests.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.errors import InputError, Problem
from horde_policy.frames.models import MODEL_DEMAND, MODELS
from horde_policy.frames.snapshot import Heartbeat, Modes, Performance, Snapshot, Totals
from horde_policy.frames.workers import WORKERS

__all__ = [
    "COUNTS",
    "GONE",
    "UNLISTED",
    "ModelState",
    "Parts",
    "WorkerState",
    "model_states",
    "models_frame",
    "packed_speed",
    "packed_speeds",
    "part_bodies",
    "parts_from_bodies",
    "profile_fields",
    "unpacked_speed",
    "unpacked_speeds",
    "worker_states",
    "workers_frame",
]

_PROFILE_FIELDS = (
    "name",
    "models",
    "max_length",
    "max_context_length",
    "threads",
    "bridge_agent",
    "owner",
    "flagged",
    "trusted",
    "measured",
    "online",
    "maintenance",
)
COUNTS = ("requests_fulfilled", "uncompleted_jobs", "uptime_s")
"""A worker's lifetime counts, on which no figure rests."""


class WorkerState(NamedTuple):
    """One worker as the history keeps it: its profile as JSON (null: gone), its speed, its counts."""

    profile: str | None
    speed: float | None
    requests_fulfilled: int | None
    uncompleted_jobs: int | None
    uptime_s: int | None

    def kept_apart(self) -> tuple[object, ...]:
        """Return what makes two states differ: all but the lifetime counts."""
        return self[:2]

    def counts(self) -> dict[str, int | None]:
        """Return the lifetime counts, which are kept apart and seldom."""
        return dict(zip(COUNTS, self[2:], strict=True))


class ModelState(NamedTuple):
    """One listed model as the history keeps it, its threads and speed apart from its queue; not ``listed``: it left the list."""

    listed: bool
    threads: int | None
    job_speed: float | None
    queued_tokens: float | None
    jobs: float | None
    eta_s: float | None

    def served(self) -> dict[str, Any]:
        """Return what changes with its workers."""
        return {"listed": self.listed, "threads": self.threads, "job_speed": self.job_speed}

    def queue(self) -> dict[str, float | None]:
        """Return what changes with its requests."""
        return {"queued_tokens": self.queued_tokens, "jobs": self.jobs, "eta_s": self.eta_s}


GONE = WorkerState(None, None, None, None, None)
UNLISTED = ModelState(False, None, None, None, None, None)  # noqa: FBT003 (a row's first column)


def packed_speed(speed: float | None) -> float | None:
    """Return a speed in tenths, a small whole number, if that gives it back exactly; else as it is, below zero.

    >>> packed_speed(53.8), packed_speed(1 / 3), packed_speed(None)
    (538.0, -0.3333333333333333, None)

    Raises
    ------
    InputError
        The speed is negative.
    """
    if speed is None:
        return None
    if speed < 0:
        raise InputError("history", "speed", speed, "must be at least 0 tokens per second")
    tenths = float(round(speed * 10))
    return tenths if tenths / 10 == speed else -speed


def unpacked_speed(packed: float | None) -> float | None:
    """Return the speed that :func:`packed_speed` packed.

    >>> unpacked_speed(538.0), unpacked_speed(-0.25)
    (53.8, 0.25)
    """
    return None if packed is None else packed / 10 if packed >= 0 else -packed


def packed_speeds(speeds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return :func:`packed_speed` of many; NaN is not reported."""
    tenths = np.rint(speeds * 10)
    return np.where(tenths / 10 == speeds, tenths, -speeds)


def unpacked_speeds(packed: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return :func:`unpacked_speed` of many; NaN is not reported."""
    return np.where(packed >= 0, packed / 10, -packed)


def profile_fields(body: str) -> dict[str, Any]:
    """Return what a worker declares by its profile, by the names of the workers frame.

    >>> profile_fields('["w",["m"],512,4096,1,null,null,false,null,true,true,false]')["max_length"]
    512
    """
    return dict(zip(_PROFILE_FIELDS, json.loads(body), strict=True))


def worker_states(workers: pl.DataFrame) -> dict[str, WorkerState]:
    """Return worker id → state from a frame :data:`~horde_policy.frames.workers.WORKERS`."""
    states = {}
    for row in WORKERS.checked(workers).iter_rows(named=True):
        profile = json.dumps([row[name] for name in _PROFILE_FIELDS], ensure_ascii=False, separators=(",", ":"))
        counts = (row["requests_fulfilled"], row["uncompleted_jobs"], row["uptime_s"])
        states[row["worker_id"]] = WorkerState(profile, packed_speed(row["speed_tok_per_s"]), *counts)
    return states


def workers_frame(states: Mapping[str, WorkerState]) -> pl.DataFrame:
    """Return the frame :data:`~horde_policy.frames.workers.WORKERS` of worker id → state; gone workers are left out."""
    rows = []
    for worker_id, state in states.items():
        if state.profile is None:
            continue
        row = profile_fields(state.profile)
        row["worker_id"] = worker_id
        row["speed_tok_per_s"] = unpacked_speed(state.speed)
        row["requests_fulfilled"] = state.requests_fulfilled
        row["uncompleted_jobs"] = state.uncompleted_jobs
        row["uptime_s"] = state.uptime_s
        rows.append(tuple(row[name] for name in WORKERS.columns))
    frame = pl.DataFrame(rows, schema=WORKERS.polars_schema(), orient="row")
    return WORKERS.checked(frame.sort(WORKERS.sort))


def model_states(models: pl.DataFrame) -> dict[str, ModelState]:
    """Return model → state from a frame :data:`~horde_policy.frames.models.MODELS`."""
    states = {}
    for model, threads, speed, queued, jobs, eta in MODELS.checked(models).iter_rows():
        states[model] = ModelState(True, threads, packed_speed(speed), queued, jobs, eta)  # noqa: FBT003
    return states


def models_frame(states: Mapping[str, ModelState]) -> pl.DataFrame:
    """Return the frame :data:`~horde_policy.frames.models.MODELS` of model → state; unlisted models are left out."""
    rows = [
        (model, s.threads, unpacked_speed(s.job_speed), s.queued_tokens, s.jobs, s.eta_s)
        for model, s in states.items()
        if s.listed
    ]
    frame = pl.DataFrame(rows, schema=MODELS.polars_schema(), orient="row")
    return MODELS.checked(frame.sort(MODELS.sort))


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_PART_KINDS: Mapping[str, type[Any]] = {
    "performance": Performance,
    "modes": Modes,
    "heartbeat": Heartbeat,
    "totals": Totals,
}


def part_bodies(snapshot: Snapshot) -> dict[str, str]:
    """Return part → JSON of what a snapshot holds besides workers and models; ``null`` where it was not reported."""
    bodies = {}
    for name in _PART_KINDS:
        value = getattr(snapshot, name)
        bodies[name] = _dumped(None if value is None else list(asdict(value).values()))
    demand = snapshot.demand
    bodies["demand"] = _dumped(None if demand is None else [list(row) for row in MODEL_DEMAND.checked(demand).iter_rows()])
    bodies["problems"] = _dumped([list(asdict(problem).values()) for problem in snapshot.problems])
    return bodies


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a snapshot besides workers and models."""

    performance: Performance | None
    modes: Modes | None
    heartbeat: Heartbeat | None
    totals: Totals | None
    demand: pl.DataFrame | None
    problems: tuple[Problem, ...]


def _part(name: str, bodies: Mapping[str, str]) -> Any:
    values = json.loads(bodies.get(name, "null"))
    kind = _PART_KINDS[name]
    return None if values is None else kind(**dict(zip(kind.__dataclass_fields__, values, strict=True)))


def parts_from_bodies(bodies: Mapping[str, str]) -> Parts:
    """Return the parts of :func:`part_bodies`; a part that is not there was not reported."""
    rows: Sequence[Sequence[Any]] | None = json.loads(bodies.get("demand", "null"))
    demand = None if rows is None else pl.DataFrame(rows, schema=MODEL_DEMAND.polars_schema(), orient="row")
    return Parts(
        performance=_part("performance", bodies),
        modes=_part("modes", bodies),
        heartbeat=_part("heartbeat", bodies),
        totals=_part("totals", bodies),
        demand=demand,
        problems=tuple(Problem(*values) for values in json.loads(bodies.get("problems", "[]"))),
    )
