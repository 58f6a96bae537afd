"""What changed between two looks: which model's allowance moved, and by what, ranked.

The change of an allowance has two causes, the queue and the pool. Each one's part is the mean of what it does before and
after the other has changed, so that the two parts add up to the whole change whatever the order. What a single worker did
is told by its speed, since parts of a pool do not add up in tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from horde_policy.board.measure import Measure, measure
from horde_policy.board.pool import Fleet
from horde_policy.board.rows import Board
from horde_policy.board.states import BAD_STATES
from horde_policy.errors import InputError
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.policy.wait import combined_speed_tok_per_s, wait_at_speed_s
from horde_policy.policy.worker import Worker, is_measured, standing
from horde_policy.settings import AllowanceSettings

__all__ = ["Changes", "ModelChange", "WorkerChange", "WorkerChangeKind", "changes"]

WorkerChangeKind = Literal[
    "left",
    "joined",
    "into_maintenance",
    "out_of_maintenance",
    "offline",
    "online",
    "flagged",
    "unflagged",
    "dropped_model",
    "took_model",
    "smaller_sizes",
    "larger_sizes",
    "measured",
    "speed",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerChange:
    """One worker that entered or left a pool, or whose counted speed changed; its name is hostile text.

    ``speed_change_tok_per_s`` is what the pool gained or lost by it, by the speed counted (A8).
    """

    kind: WorkerChangeKind
    worker_id: str
    name: str | None
    speed_change_tok_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """One model that changed, at the size of the two boards; null is not known.

    Attributes
    ----------
    model
        Its name, hostile text.
    before, after
        Its figures at both looks; a model that a look does not have had no worker then.
    allowance_change_tokens
        After less before; null when one of them is not known.
    by_queue_tokens, by_pool_tokens
        The parts of that change that the queue and the pool account for; null when a queue is not known.
    workers
        What the workers of its pool did, by how much speed that moved.
    """

    model: str
    before: Measure
    after: Measure
    allowance_change_tokens: int | None
    by_queue_tokens: float | None
    by_pool_tokens: float | None
    workers: tuple[WorkerChange, ...]

    @property
    def queue_change_tokens(self) -> float | None:
        """After less before; null when one of them is not known."""
        if self.before.queued_tokens is None or self.after.queued_tokens is None:
            return None
        return self.after.queued_tokens - self.before.queued_tokens

    @property
    def turned_bad(self) -> bool:
        """Whether the model came into a state that is bad news."""
        return self.after.state in BAD_STATES and self.before.state != self.after.state

    @property
    def turned_good(self) -> bool:
        """Whether the model came out of a state that is bad news into one that is not."""
        return self.before.state in BAD_STATES and self.after.state not in BAD_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed from one look to a later one: models by rank, and workers that came, went or switched maintenance."""

    from_at: datetime
    to_at: datetime
    models: tuple[ModelChange, ...]
    workers: tuple[WorkerChange, ...]


def changes(before: Board, after: Board) -> Changes:
    """Return what changed, the gravest first: models turned bad, then the largest move of the allowance, falls before rises.

    A model is named when its state, its allowance or its largest free request changed. What it lacks in one look is read
    there as a model without a worker.

    Raises
    ------
    InputError
        The boards were read at different sizes, contexts or settings.
    """
    for what, one, other in (
        ("max_length", before.max_length, after.max_length),
        ("context_tokens", before.context_tokens, after.context_tokens),
        ("settings", before.settings, after.settings),
    ):
        if one != other:
            raise InputError("changes", f"boards, {what}", other, f"must be as in the earlier board: {one}")
    names = sorted({*before.by_model, *after.by_model})
    changed = (_model_change(before, after, name) for name in names)
    return Changes(
        from_at=before.snapshot.fetched_at,
        to_at=after.snapshot.fetched_at,
        models=tuple(sorted((change for change in changed if change is not None), key=_rank)),
        workers=_fleet_changes(before.fleet, after.fleet),
    )


def _rank(change: ModelChange) -> tuple[bool, float, bool, float, str]:
    moved = change.allowance_change_tokens or 0
    free = (change.after.largest_free_request_tokens or 0) - (change.before.largest_free_request_tokens or 0)
    return (not change.turned_bad, -abs(moved), moved >= 0, -abs(free), change.model)


def _measured(board: Board, name: str) -> Measure:
    row = board.by_model.get(name)
    return row.measure if row is not None else measure(board.fleet, (name,), board.max_length, board.context_tokens)


def _model_change(before: Board, after: Board, name: str) -> ModelChange | None:
    old, new = _measured(before, name), _measured(after, name)
    told = ("state", "allowance_tokens", "largest_free_request_tokens")
    if all(getattr(old, field) == getattr(new, field) for field in told):
        return None
    by_queue, by_pool = _parts(old, new, after.settings)
    known = old.allowance_tokens is not None and new.allowance_tokens is not None
    return ModelChange(
        model=name,
        before=old,
        after=new,
        allowance_change_tokens=(new.allowance_tokens or 0) - (old.allowance_tokens or 0) if known else None,
        by_queue_tokens=by_queue,
        by_pool_tokens=by_pool,
        workers=_pool_changes(name, before, after),
    )


def _parts(old: Measure, new: Measure, settings: AllowanceSettings) -> tuple[float | None, float | None]:
    """Return the queue's and the pool's part of the change: each the mean of both orders."""
    if old.queued_tokens is None or new.queued_tokens is None:
        return None, None

    def allowance(queue: Measure, pool: Measure) -> int:
        return free_output_allowance(wait_at_speed_s(queue.queued_tokens, pool.speed_tok_per_s), settings)

    first, last, queue_only, pool_only = allowance(old, old), allowance(new, new), allowance(new, old), allowance(old, new)
    return ((queue_only - first) + (last - pool_only)) / 2, ((pool_only - first) + (last - queue_only)) / 2


def _speed(worker: Worker | None, settings: AllowanceSettings) -> float:
    """Return what the worker adds to a pool; 0 for none."""
    return 0.0 if worker is None else combined_speed_tok_per_s((worker,), settings)


def _pool_changes(model: str, before: Board, after: Board) -> tuple[WorkerChange, ...]:
    """Return what the workers of one model's pool did, by how much speed that moved."""
    settings = after.settings
    was, now = (
        {worker.worker_id: worker for worker in board.fleet.pool((model,), board.context_tokens).eligible(board.max_length)}
        for board in (before, after)
    )
    listed_before, listed_after = before.fleet.by_id, after.fleet.by_id
    found = []
    for worker_id in {**was, **now}:
        old, new = was.get(worker_id), now.get(worker_id)
        change = _speed(new, settings) - _speed(old, settings)
        kind: WorkerChangeKind
        if old is not None and new is not None:
            if change == 0:
                continue
            kind = "measured" if is_measured(new) and not is_measured(old) else "speed"
        elif old is not None:
            kind = _why_out(model, listed_after.get(worker_id))
        else:
            kind = _why_in(model, listed_before.get(worker_id))
        name = (listed_after.get(worker_id) or listed_before[worker_id]).name
        found.append(WorkerChange(kind=kind, worker_id=worker_id, name=name, speed_change_tok_per_s=change))
    return tuple(sorted(found, key=lambda change: (-abs(change.speed_change_tok_per_s), change.worker_id)))


_INTO: Final[Mapping[str, WorkerChangeKind]] = {"offline": "offline", "maintenance": "into_maintenance", "flagged": "flagged"}
_OUT_OF: Final[Mapping[str, WorkerChangeKind]] = {
    "offline": "online",
    "maintenance": "out_of_maintenance",
    "flagged": "unflagged",
}
"""How a worker that does not count stands → what its coming to stand so, or no longer so, is called."""


def _why_out(model: str, now: Worker | None) -> WorkerChangeKind:
    if now is None:
        return "left"
    by_model: WorkerChangeKind = "dropped_model" if model not in (now.models or ()) else "smaller_sizes"
    return _INTO.get(standing(now), by_model)


def _why_in(model: str, was: Worker | None) -> WorkerChangeKind:
    if was is None:
        return "joined"
    by_model: WorkerChangeKind = "took_model" if model not in (was.models or ()) else "larger_sizes"
    return _OUT_OF.get(standing(was), by_model)


def _fleet_changes(before: Fleet, after: Fleet) -> tuple[WorkerChange, ...]:
    """Return the workers that came, went, or switched maintenance, by speed; the others are told with their models."""
    was, now = before.by_id, after.by_id
    found = []
    for worker_id in {**was, **now}:
        old, new = was.get(worker_id), now.get(worker_id)
        kind: WorkerChangeKind
        if new is None:
            kind = "left"
        elif old is None:
            kind = "joined"
        elif (old.maintenance is True) != (new.maintenance is True):
            kind = "into_maintenance" if new.maintenance is True else "out_of_maintenance"
        else:
            continue
        gained = kind in ("joined", "out_of_maintenance")
        change = _speed(new or old, after.settings) * (1 if gained else -1)
        name = (now.get(worker_id) or was[worker_id]).name
        found.append(WorkerChange(kind=kind, worker_id=worker_id, name=name, speed_change_tok_per_s=change))
    return tuple(sorted(found, key=lambda change: (-abs(change.speed_change_tok_per_s), change.worker_id)))
