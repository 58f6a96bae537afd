"""A worker as the rules see it, made from the workers frame, and the speed it counts at (A7, A8)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from horde_policy.errors import InputError
from horde_policy.frames.workers import WORKERS
from horde_policy.settings import AllowanceSettings

__all__ = [
    "Worker",
    "available",
    "counted_speed_expression",
    "counted_speed_tok_per_s",
    "counted_threads",
    "is_measured",
    "standing",
    "workers_by_model",
    "workers_from_frame",
]


def _check_count(worker_id: str, field: str, value: int | None) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise InputError("worker", f"{worker_id[:60]}, field {field}", value, "must be a whole number of at least 0, or null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker that may take text jobs, as it declares itself; null is not reported, except where said.

    Attributes
    ----------
    worker_id, name
        The server's id, and the name its owner gave it (hostile text).
    models
        Names it serves, compared exactly; null when its list could not be read, empty when it declares none.
    max_length, max_context_length
        The largest output and context it takes, in tokens.
    speed_tok_per_s
        Mean speed of one job; meaningless while the worker is not measured.
    measured
        Whether it has completed a job (A8).
    threads
        Jobs it says it runs at once.
    online, maintenance
        Checked in within five minutes; serving only its owner.
    flagged, trusted
        Of its owner.
    bridge_agent
        ``name:version:url`` of its software; the name decides whether its backend is validated.
    owner
        Public only if the owner wants it (hostile text).

    Raises
    ------
    InputError
        A number is negative, not finite, or not a number.

    Examples
    --------
    >>> Worker(worker_id="w1", models=("L3-8B",), max_length=512, max_context_length=4096).max_length
    512
    """

    worker_id: str
    models: tuple[str, ...] | None
    max_length: int | None
    max_context_length: int | None
    name: str | None = None
    speed_tok_per_s: float | None = None
    measured: bool | None = None
    threads: int | None = None
    online: bool | None = True
    maintenance: bool | None = False
    flagged: bool | None = False
    trusted: bool | None = None
    bridge_agent: str | None = None
    owner: str | None = None

    def __post_init__(self) -> None:
        _check_count(self.worker_id, "max_length", self.max_length)
        _check_count(self.worker_id, "max_context_length", self.max_context_length)
        _check_count(self.worker_id, "threads", self.threads)
        speed = self.speed_tok_per_s
        if speed is not None and not (isinstance(speed, int | float) and math.isfinite(speed) and speed >= 0):
            where = f"{self.worker_id[:60]}, field speed_tok_per_s"
            raise InputError("worker", where, speed, "must be a finite number of at least 0, or null")


_FIELDS = (
    "worker_id",
    "name",
    "models",
    "max_length",
    "max_context_length",
    "speed_tok_per_s",
    "measured",
    "threads",
    "online",
    "maintenance",
    "flagged",
    "trusted",
    "bridge_agent",
    "owner",
)


def workers_from_frame(workers: pl.DataFrame) -> tuple[Worker, ...]:
    """Return the rows of a workers frame as workers, in the frame's order.

    Parameters
    ----------
    workers
        Frame :data:`horde_policy.frames.workers.WORKERS`.

    Raises
    ------
    FrameError
        The frame does not match its schema.
    InputError
        A number in it is negative or not finite.

    Examples
    --------
    >>> workers_from_frame(WORKERS.empty())
    ()
    """
    rows = WORKERS.checked(workers).select(_FIELDS).iter_rows()
    return tuple(
        Worker(**{**dict(zip(_FIELDS, row, strict=True)), "models": None if row[2] is None else tuple(row[2])}) for row in rows
    )


def available(worker: Worker) -> bool:
    """Tell whether the worker serves strangers at all: online, not in maintenance, its owner not flagged (horde.md §5.1).

    What is not reported does not exclude it; :func:`horde_policy.policy.eligibility.judge` reports it as unknown.

    >>> available(Worker(worker_id="w", models=(), max_length=80, max_context_length=1024, maintenance=True))
    False
    """
    return worker.online is not False and worker.maintenance is not True and worker.flagged is not True


def standing(worker: Worker) -> str:
    """Return how a worker stands: the first of offline, maintenance and flagged that holds, else by its models.

    Who declares no model (a refused first pop leaves such a worker in the list) is ``idle``; whose models could not be read is
    ``not known``; the rest is ``open``. The last three are :func:`available`.

    >>> standing(Worker(worker_id="w", models=("m",), max_length=80, max_context_length=2048, maintenance=True))
    'maintenance'
    """
    if worker.online is False:
        return "offline"
    if worker.maintenance is True:
        return "maintenance"
    if worker.flagged is True:
        return "flagged"
    return "not known" if worker.models is None else "open" if worker.models else "idle"


def workers_by_model(workers: Iterable[Worker]) -> dict[str, tuple[Worker, ...]]:
    """Return model → its available workers, each list in the given order; the index behind a board of many models.

    >>> one = Worker(worker_id="w", models=("a", "b"), max_length=80, max_context_length=1024)
    >>> sorted(workers_by_model([one]))
    ['a', 'b']
    """
    index: dict[str, list[Worker]] = {}
    for worker in workers:
        if worker.models and available(worker):
            for model in dict.fromkeys(worker.models):
                index.setdefault(model, []).append(worker)
    return {model: tuple(serving) for model, serving in index.items()}


def is_measured(worker: Worker) -> bool:
    """Tell whether the worker's own speed counts: it has completed a job and reports a speed above 0 (A8).

    A completed job yields at least 16 tokens within 150 s, which the server's one decimal shows as 0.1: a speed of 0 is
    no measurement.

    >>> is_measured(Worker(worker_id="w", models=(), max_length=80, max_context_length=1024, speed_tok_per_s=1.0))
    False
    """
    return worker.measured is True and worker.speed_tok_per_s is not None and worker.speed_tok_per_s > 0


def counted_threads(worker: Worker) -> int:
    """Return the jobs the worker runs at once; one where it reports none (horde.md §1.3)."""
    return max(1, worker.threads or 1)


def counted_speed_tok_per_s(worker: Worker, settings: AllowanceSettings) -> float:
    """Return the speed of one job that the rules count for the worker: its own, or the assumed one (A8).

    >>> new = Worker(worker_id="w", models=(), max_length=80, max_context_length=1024, speed_tok_per_s=1.0, measured=False)
    >>> counted_speed_tok_per_s(new, AllowanceSettings())
    10.0
    """
    speed = worker.speed_tok_per_s
    return (
        float(speed) if worker.measured is True and speed is not None and speed > 0 else float(settings.assumed_speed_tok_per_s)
    )


def counted_speed_expression(settings: AllowanceSettings) -> pl.Expr:
    """Return :func:`counted_speed_tok_per_s` as an expression over the columns of the workers frame: Float64, never null.

    >>> frame = pl.DataFrame({"measured": [True, False, None], "speed_tok_per_s": [7.4, 1.0, 5.0]})
    >>> frame.select(counted_speed_expression(AllowanceSettings())).to_series().to_list()
    [7.4, 10.0, 10.0]
    """
    speed = pl.col("speed_tok_per_s")
    own = pl.col("measured").fill_null(value=False) & (speed > 0).fill_null(value=False)
    return pl.when(own).then(speed).otherwise(pl.lit(float(settings.assumed_speed_tok_per_s)))
