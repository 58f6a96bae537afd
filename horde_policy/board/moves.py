"""What moves an allowance: the queue, a worker lost or added, other settings; and what it takes to get it back.

A what-if starts from one snapshot's figures and changes only what is said; nobody's behaviour is guessed (that is a replay).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from horde_policy.board.measure import Measure, check_context, check_size, measure_pool
from horde_policy.board.pool import Fleet, Pool
from horde_policy.board.rows import Board
from horde_policy.errors import InputError
from horde_policy.policy.allowance import free_output_allowance, largest_wait_s
from horde_policy.policy.wait import wait_at_speed_s
from horde_policy.policy.worker import Worker
from horde_policy.settings import AllowanceSettings
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS

__all__ = ["AddedWorker", "Loss", "Move", "SinglePoint", "WayBack", "losses", "moved", "single_points", "way_back"]

STEPS_PER_TOK_PER_S = 10
"""Speeds to add are told in tenths, as the server tells speeds."""

MOST_ADDED_TOK_PER_S = 100_000
"""More than this no fleet adds: a target that needs it is out of reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedWorker:
    """A worker that would join and serve the models asked for.

    Raises
    ------
    InputError
        The speed is not a finite number above 0, or a size not a whole number of at least 1.
    """

    speed_tok_per_s: float
    max_length: int
    max_context_length: int
    threads: int = 1

    def __post_init__(self) -> None:
        speed = self.speed_tok_per_s
        if isinstance(speed, bool) or not isinstance(speed, int | float) or not math.isfinite(speed) or speed <= 0:
            raise InputError("worker added", "field speed_tok_per_s", speed, "must be a finite number above 0")
        for field in ("max_length", "max_context_length", "threads"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError("worker added", f"field {field}", value, "must be a whole number of at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What to change: the queue by so many tokens, workers lost by id, workers added, other settings (null: as they are).

    Raises
    ------
    InputError
        The change of the queue is not a finite number.
    """

    queue_change_tokens: float = 0.0
    lost: frozenset[str] = frozenset()
    added: tuple[AddedWorker, ...] = ()
    settings: AllowanceSettings | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.queue_change_tokens):
            raise InputError("what-if", "field queue_change_tokens", self.queue_change_tokens, "must be a finite number")


def moved(
    fleet: Fleet,
    models: tuple[str, ...],
    max_length: int,
    move: Move,
    *,
    context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS,
) -> Measure:
    """Return what a request of these models (none: any) would meet after the move.

    Raises
    ------
    InputError
        A worker to be lost is not in the snapshot; the size or the context is out of its range.
    """
    check_size(max_length)
    check_context(context_tokens)
    unknown = sorted(move.lost - fleet.by_id.keys())
    if unknown:
        raise InputError("what-if", "field lost", unknown[0], "is no worker of this snapshot")
    stay = tuple(worker for worker in fleet.workers if worker.worker_id not in move.lost)
    settings = fleet.settings if move.settings is None else move.settings
    changed = Fleet((*stay, *_joining(fleet, models, move.added)), fleet.listed, fleet.horde_wide_tokens, settings)
    pool = changed.pool(models, context_tokens)
    return measure_pool(changed, pool, max_length, queue_change_tokens=move.queue_change_tokens)


def _joining(fleet: Fleet, models: tuple[str, ...], added: Iterable[AddedWorker]) -> list[Worker]:
    """Return the workers that would join, with ids that no worker of the snapshot has."""
    prefix = "added "
    while any(worker_id.startswith(prefix) for worker_id in fleet.by_id):
        prefix = f"_{prefix}"
    return [
        Worker(
            worker_id=f"{prefix}{place}",
            models=models,
            max_length=one.max_length,
            max_context_length=one.max_context_length,
            speed_tok_per_s=one.speed_tok_per_s,
            measured=True,
            threads=one.threads,
        )
        for place, one in enumerate(added, start=1)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class WayBack:
    """What would bring the allowance to a target, each by itself.

    Attributes
    ----------
    target_tokens
        The allowance wanted.
    wait_s
        The largest estimated wait that gives it; infinite for anything up to the floor.
    reached
        Whether it is there already.
    clear_tokens
        The fewest queued tokens that must go; null without an eligible worker, or with the queue not reported.
    add_speed_tok_per_s
        The least speed, in tenths, that workers of this size must add; null with the queue not reported, or if 100,000 tok/s
        are not enough (a full wait of 0 s with anything queued).
    """

    target_tokens: int
    wait_s: float
    reached: bool
    clear_tokens: int | None
    add_speed_tok_per_s: float | None


def way_back(measured: Measure, settings: AllowanceSettings, target_tokens: int | None = None) -> WayBack:
    """Return what it takes to bring an allowance back to the ceiling, or to another target; by the named queue.

    Raises
    ------
    InputError
        The target is above the ceiling, which no wait gives.
    """
    target = settings.ceiling_tokens if target_tokens is None else target_tokens
    wait_s = largest_wait_s(target, settings)
    if wait_s is None:
        rule = f"must not be above the ceiling, which is {settings.ceiling_tokens}"
        raise InputError("way back", "target_tokens", target, rule)
    queued, speed = measured.queued_tokens, measured.speed_tok_per_s
    reached = measured.allowance_tokens is not None and measured.allowance_tokens >= target
    if queued is None:
        return WayBack(target_tokens=target, wait_s=wait_s, reached=reached, clear_tokens=None, add_speed_tok_per_s=None)

    def enough(cleared: int, added_steps: int) -> bool:
        wait = wait_at_speed_s(max(0.0, queued - cleared), speed + added_steps / STEPS_PER_TOK_PER_S)
        return free_output_allowance(wait, settings) >= target

    steps = _least(MOST_ADDED_TOK_PER_S * STEPS_PER_TOK_PER_S, lambda added: enough(0, added))
    return WayBack(
        target_tokens=target,
        wait_s=wait_s,
        reached=reached,
        clear_tokens=None if speed == 0 else _least(math.ceil(queued), lambda cleared: enough(cleared, 0)),
        add_speed_tok_per_s=None if steps is None else steps / STEPS_PER_TOK_PER_S,
    )


def _least(most: int, holds: Callable[[int], bool]) -> int | None:
    """Return the least whole number from 0 to ``most`` for which it holds, if it holds from there on; null if nowhere.

    >>> _least(100, lambda number: number >= 7), _least(5, lambda number: number >= 7)
    (7, None)
    """
    if not holds(most):
        return None
    below, least = -1, most
    while least - below > 1:
        middle = (below + least) // 2
        if holds(middle):
            least = middle
        else:
            below = middle
    return least


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a request would meet without one of its eligible workers, whose name is hostile text; it carries no notes."""

    worker: Worker
    without: Measure

    @property
    def allowance_tokens(self) -> int | None:
        """The allowance without the worker; null when the queue is not reported."""
        return self.without.allowance_tokens


def losses(fleet: Fleet, pool: Pool, max_length: int) -> tuple[Loss, ...]:
    """Return what a request would meet without each of its eligible workers, the gravest loss first."""
    found = []
    for worker in pool.eligible(max_length):
        kept = [place for place, other in enumerate(pool.workers) if other.worker_id != worker.worker_id]
        workers = tuple(pool.workers[place] for place in kept)
        sizes = tuple(pool.sizes[place] for place in kept)
        smaller = Pool(pool.models, pool.context_tokens, workers, sizes)
        found.append(Loss(worker=worker, without=replace(measure_pool(fleet, smaller, max_length), notes=())))
    return tuple(sorted(found, key=lambda loss: (_worth(loss.without), loss.worker.worker_id)))


def _worth(measured: Measure) -> tuple[bool, int, float]:
    return measured.eligible_workers > 0, measured.allowance_tokens or 0, measured.speed_tok_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglePoint:
    """A model that one worker carries at the board's size, as it is and as it would be without it."""

    model: str
    worker: Worker
    now: Measure
    without: Measure


def single_points(board: Board) -> tuple[SinglePoint, ...]:
    """Return the models that exactly one eligible worker carries, with what they become without it, by worker and model."""
    points = []
    for row in board.rows:
        if row.measure.eligible_workers == 1:
            pool = board.fleet.pool(row.measure.models, board.context_tokens)
            (loss,) = losses(board.fleet, pool, board.max_length)
            model = row.measure.models[0]
            points.append(SinglePoint(model=model, worker=loss.worker, now=row.measure, without=loss.without))
    return tuple(sorted(points, key=lambda point: (point.worker.worker_id, point.model)))
