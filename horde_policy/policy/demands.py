"""What requests ask of workers, by kind, and which kinds compete for the same workers (A7, A11).

Requests of one kind could be taken by exactly the same workers: they agree in everything but their sizes, and those lie between
the same two sizes that workers declare. A kind of which a request waits has a column in the token table
(:mod:`horde_policy.policy.token_blocks`). A worker has a row of bits, one for each column that it could take: the kinds that
compete with a request are those in the rows of its workers.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterable, Mapping
from operator import attrgetter
from typing import Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from horde_policy.policy.eligibility import meets_all_but_sizes
from horde_policy.policy.model_size import SLOW_LIMITS_TOK_PER_S
from horde_policy.policy.queue_order import QueueKey
from horde_policy.policy.request import Request
from horde_policy.policy.token_blocks import Columns
from horde_policy.policy.worker import Worker, available, counted_speed_tok_per_s, counted_threads
from horde_policy.settings import AllowanceSettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = ["Demand", "Demands", "QueuedRequest", "WorkerPlace"]

IDLE_KINDS_KEPT = 8192
"""Kinds without a column that are remembered, so that the next such request finds its kind."""

IDLE_COLUMNS_KEPT = 64
"""Columns of kinds of which nothing waits are given up when there are more than this and half of all columns."""

ANY_MODEL = ""
"""Where kinds that name no model stand in the index by model; a model of that name would only be looked at too often."""

_DemandKey: TypeAlias = tuple[object, ...]
_LevelName: TypeAlias = Literal["length_level", "context_level"]
_KEY_PLACES: Mapping[_LevelName, int] = {"length_level": 1, "context_level": 2}
"""Where a kind's key has its levels, see :meth:`Demands.demand_of`."""

_Indexed = TypeVar("_Indexed")
_joining_order = attrgetter("order")


class WorkerPlace:
    """A worker in the estimator: its row, its place in the order of joining, its counted speed, and the kinds it could take.

    ``takes_length`` and ``takes_context`` are the largest sizes it takes; −1 where it takes nothing, or nobody knows.
    """

    __slots__ = ("counted_tok_per_s", "demands", "order", "row", "takes_context", "takes_length", "worker")

    def __init__(self, worker: Worker, order: int, row: int, settings: AllowanceSettings) -> None:
        self.order = order
        self.row = row
        self.demands: set[Demand] = set()
        known = worker.models is not None and available(worker)
        self.takes_length = worker.max_length if known and worker.max_length is not None else -1
        self.takes_context = worker.max_context_length if known and worker.max_context_length is not None else -1
        self.become(worker, settings)

    def become(self, worker: Worker, settings: AllowanceSettings) -> None:
        """Take the worker's speed, measurement and threads as they are now."""
        self.worker = worker
        own = counted_speed_tok_per_s(worker, settings)
        self.counted_tok_per_s = own * counted_threads(worker) if settings.count_threads else own


class QueuedRequest:
    """A waiting request: itself, its key, its tokens and its kind."""

    __slots__ = ("demand", "key", "request", "request_id", "tokens")

    def __init__(self, request_id: Hashable, request: Request, key: QueueKey, tokens: int, demand: "Demand") -> None:
        self.request_id = request_id
        self.request = request
        self.key = key
        self.tokens = tokens
        self.demand = demand


class Demand:
    """One kind of request: its workers in joining order, what waits of it, and its column, −1 while it has none.

    ``length_level`` and ``context_level`` are the smallest declared sizes that are at least its requests'; null where no worker
    ever declared so much. ``example`` is one of its requests, for everything but sizes. ``rows`` and ``speed_tok_per_s`` are null
    until they are asked for; the speed holds for ``speeds_as_of`` only.
    """

    __slots__ = (
        "column",
        "context_level",
        "example",
        "key",
        "length_level",
        "members",
        "queued",
        "rows",
        "speed_tok_per_s",
        "speeds_as_of",
    )

    def __init__(self, key: _DemandKey, example: Request, length_level: int | None, context_level: int | None) -> None:
        self.key = key
        self.example = example
        self.length_level = length_level
        self.context_level = context_level
        self.members: list[WorkerPlace] = []
        self.rows: npt.NDArray[np.int64] | None = None
        self.speed_tok_per_s = 0.0
        self.speeds_as_of = -1
        self.queued: dict[Hashable, QueuedRequest] = {}
        self.column = -1


class Demands:
    """All kinds seen, over workers that come and go.

    Levels are not forgotten when the worker that declared them leaves: one that comes back finds its kinds ready.
    """

    def __init__(self, settings: AllowanceSettings, sizes_billions: Mapping[str, float] | None) -> None:
        self._settings = settings
        self._sizes_billions = sizes_billions
        self._places: dict[str, WorkerPlace] = {}
        self._places_by_model: dict[str, set[WorkerPlace]] = {}
        self._joined = 0
        self._speed_changes = 0
        self._free_rows: list[int] = []
        self._demands: dict[_DemandKey, Demand] = {}
        self._only_asked: dict[_DemandKey, Demand] = {}
        self._demands_by_model: dict[str, set[Demand]] = {}
        self._length_levels: list[int] = []
        self._context_levels: list[int] = []
        self._columns: list[Demand | None] = []
        self._free_columns: list[int] = []
        self._idle_columns = 0
        self._bits: npt.NDArray[np.uint8] = np.zeros((64, 64), dtype=np.uint8)

    @property
    def workers(self) -> tuple[Worker, ...]:
        """The workers, in the order in which their speeds are added: that of joining."""
        return tuple(place.worker for place in self._places.values())

    def place_of(self, worker_id: str) -> WorkerPlace | None:
        """Return the worker's place, or null."""
        return self._places.get(worker_id)

    def serving(self, models: tuple[str, ...]) -> Iterable[WorkerPlace]:
        """Return the places of the workers that serve one of the models, in no order; of all for an empty tuple."""
        if not models:
            return self._places.values()
        return set().union(*(self._places_by_model.get(model, ()) for model in models))

    def demand_of(self, request: Request) -> Demand:
        """Return the kind of the request, made if it is new.

        Until a request of it waits, nothing but its key leads to it, and it is forgotten as soon as workers come or go.
        """
        length = _level(self._length_levels, request.max_length)
        context = _level(self._context_levels, request.max_context_length)
        models = request.models
        if len(models) > 1 and request.slow_workers:
            models = tuple(sorted(set(models)))  # the first model matters for the slow-worker limit alone
        key: _DemandKey = (
            models,
            length,
            context,
            request.slow_workers,
            request.trusted_workers,
            request.validated_backends,
            request.workers and (request.listed_workers, request.worker_blacklist),
        )
        return self._demands.get(key) or self._only_asked.get(key) or self._new_demand(Demand(key, request, length, context))

    def combined_speed(self, demand: Demand) -> float:
        """Return the speeds of the kind's workers added from left to right, as :func:`combined_speed_tok_per_s` does."""
        if demand.speeds_as_of != self._speed_changes:
            speed = 0.0
            for place in demand.members:
                speed += place.counted_tok_per_s
            demand.speed_tok_per_s = speed
            demand.speeds_as_of = self._speed_changes
        return demand.speed_tok_per_s

    def competing_with(self, demand: Demand) -> Columns:
        """Return the columns of the kinds that some worker of this kind could take, which has at least one worker."""
        rows = demand.rows
        if rows is None:
            rows = demand.rows = np.array([place.row for place in demand.members], dtype=np.int64)
        used = (len(self._columns) + 7) >> 3
        return np.unpackbits(np.bitwise_or.reduce(self._bits[rows, :used], axis=0), bitorder="little")

    def join(self, worker: Worker) -> dict[QueueKey, int]:
        """Let a worker in; return key → new column of the waiting requests that its declared sizes part from their kinds."""
        self._only_asked.clear()
        parted: dict[QueueKey, int] = {}
        if worker.max_length is not None and worker.max_length >= 1:
            size = min(worker.max_length, MAX_LENGTH_LIMIT_TOKENS)
            parted |= self._add_level(self._length_levels, size, "length_level", "max_length")
        if worker.max_context_length is not None and worker.max_context_length >= 1:
            size = worker.max_context_length
            parted |= self._add_level(self._context_levels, size, "context_level", "max_context_length")
        row = self._free_rows.pop() if self._free_rows else len(self._places)
        if row >= len(self._bits):
            self._bits = np.vstack([self._bits, np.zeros_like(self._bits)])
        place = WorkerPlace(worker, self._joined, row, self._settings)
        self._joined += 1
        self._places[worker.worker_id] = place
        for model in worker.models or ():
            self._places_by_model.setdefault(model, set()).add(place)
        for demand in self._asked_of(worker):
            if self._takes(place, demand):
                self._let_in(place, demand)
        return parted

    def leave(self, worker_id: str) -> None:
        """Let a worker go that is there."""
        self._only_asked.clear()
        place = self._places.pop(worker_id)
        for model in set(place.worker.models or ()):
            _drop(self._places_by_model, model, place)
        for demand in tuple(place.demands):
            self._let_out(place, demand)
        self._free_rows.append(place.row)

    def change_speed(self, place: WorkerPlace, worker: Worker) -> None:
        """Take over a worker whose speed, measurement or threads changed; it keeps its place."""
        before = counted_speed_tok_per_s(place.worker, self._settings)
        place.become(worker, self._settings)
        self._speed_changes += 1
        now = counted_speed_tok_per_s(worker, self._settings)
        if bisect_right(SLOW_LIMITS_TOK_PER_S, before) == bisect_right(SLOW_LIMITS_TOK_PER_S, now):
            return
        self._only_asked.clear()
        for demand in self._asked_of(worker):
            if not demand.example.slow_workers:
                takes = self._takes(place, demand)
                if takes != (demand in place.demands):
                    (self._let_in if takes else self._let_out)(place, demand)

    def _asked_of(self, worker: Worker) -> set[Demand]:
        """Return the kinds that name one of the worker's models, or none."""
        return {demand for model in (ANY_MODEL, *(worker.models or ())) for demand in self._demands_by_model.get(model, ())}

    def enter(self, demand: Demand, queued: QueuedRequest) -> None:
        """Note a waiting request of the kind, which gets a column with its first."""
        if demand.column < 0:
            if self._only_asked.pop(demand.key, None) is not None:
                if len(self._demands) > IDLE_KINDS_KEPT + len(self._columns):
                    self._forget_idle()
                self._note(demand, demand.members)
            self._give_column(demand)
        elif not demand.queued:
            self._idle_columns -= 1
        demand.queued[queued.request_id] = queued
        queued.demand = demand

    def exit(self, queued: QueuedRequest) -> None:
        """Forget a waiting request; its kind keeps the column for the next one, until columns run short."""
        demand = queued.demand
        del demand.queued[queued.request_id]
        if not demand.queued:
            self._idle_columns += 1

    def _give_column(self, demand: Demand) -> None:
        if not self._free_columns and self._idle_columns > max(IDLE_COLUMNS_KEPT, len(self._columns) // 2):
            self._give_up_idle_columns()
        if self._free_columns:
            column = self._free_columns.pop()
            self._columns[column] = demand
        else:
            column = len(self._columns)
            self._columns.append(demand)
            if column >> 3 >= self._bits.shape[1]:
                self._bits = np.hstack([self._bits, np.zeros_like(self._bits)])
        demand.column = column
        self._bits[[place.row for place in demand.members], column >> 3] |= 1 << (column & 7)

    def _give_up_idle_columns(self) -> None:
        for column, demand in enumerate(self._columns):
            if demand is not None and not demand.queued:
                self._bits[:, column >> 3] &= 255 ^ (1 << (column & 7))
                demand.column = -1
                self._columns[column] = None
                self._free_columns.append(column)
        self._idle_columns = 0

    def _new_demand(self, demand: Demand) -> Demand:
        if len(self._only_asked) >= IDLE_KINDS_KEPT:
            self._only_asked.clear()
        demand.members = self._takers(demand)
        self._only_asked[demand.key] = demand
        return demand

    def _takers(self, demand: Demand) -> list[WorkerPlace]:
        """Return the workers of a kind in joining order; most requests ask for nothing but models and sizes."""
        request, length, context = demand.example, demand.length_level, demand.context_level
        if length is None or context is None:
            return []
        serving = self.serving(request.models)
        found = [place for place in serving if place.takes_length >= length and place.takes_context >= context]
        if not request.slow_workers or request.trusted_workers or request.validated_backends or request.workers:
            found = [place for place in found if meets_all_but_sizes(place.worker, request, self._settings, self._sizes_billions)]
        found.sort(key=_joining_order)
        return found

    def _forget_idle(self) -> None:
        """Forget the kinds without a column, of which nothing waits."""
        for demand in [demand for demand in self._demands.values() if demand.column < 0]:
            del self._demands[demand.key]
            for model in set(demand.example.models or (ANY_MODEL,)):
                _drop(self._demands_by_model, model, demand)
            for place in demand.members:
                place.demands.discard(demand)

    def _takes(self, place: WorkerPlace, demand: Demand) -> bool:
        length, context = demand.length_level, demand.context_level
        if length is None or context is None or place.takes_length < length or place.takes_context < context:
            return False
        return meets_all_but_sizes(place.worker, demand.example, self._settings, self._sizes_billions)

    def _let_in(self, place: WorkerPlace, demand: Demand) -> None:
        insort(demand.members, place, key=_joining_order)
        place.demands.add(demand)
        demand.rows = None
        demand.speeds_as_of = -1
        if demand.column >= 0:
            self._bits[place.row, demand.column >> 3] |= 1 << (demand.column & 7)

    def _let_out(self, place: WorkerPlace, demand: Demand) -> None:
        demand.members.remove(place)
        place.demands.discard(demand)
        demand.rows = None
        demand.speeds_as_of = -1
        if demand.column >= 0:
            self._bits[place.row, demand.column >> 3] &= 255 ^ (1 << (demand.column & 7))

    def _add_level(self, levels: list[int], size: int, level: _LevelName, field: str) -> dict[QueueKey, int]:
        """Add a declared size as a level, which cuts the kinds of the next larger one; return key → column of what moves."""
        at = bisect_left(levels, size)
        if at < len(levels) and levels[at] == size:
            return {}
        above = levels[at] if at < len(levels) else None
        levels.insert(at, size)
        moved: dict[QueueKey, int] = {}
        level_of, size_of = attrgetter(level), attrgetter(f"request.{field}")
        for demand in [demand for demand in self._demands.values() if level_of(demand) == above and demand.queued]:
            low = {name: queued for name, queued in demand.queued.items() if size_of(queued) <= size}
            if low:
                moved |= self._cut(demand, level, size, low)
        return moved

    def _cut(self, demand: Demand, level: _LevelName, size: int, low: dict[Hashable, QueuedRequest]) -> dict[QueueKey, int]:
        """Part the requests of at most the new level's size from their kind; return key → column of those that move.

        No worker declared a size between the two levels yet, so both kinds have the same workers. The larger part keeps the
        kind with its column and only its level is named anew, so at most half of what waits of a kind moves.
        """
        old_key = demand.key
        named = _KEY_PLACES[level]
        low_key = (*old_key[:named], size, *old_key[named + 1 :])
        low_keeps = 2 * len(low) > len(demand.queued)
        leaving = {name: queued for name, queued in demand.queued.items() if name not in low} if low_keeps else low
        if low_keeps:
            del self._demands[old_key]
            other = Demand(old_key, demand.example, demand.length_level, demand.context_level)
            demand.key = low_key
            setattr(demand, level, size)
            self._demands[low_key] = demand
            if not leaving:
                return {}
        else:
            other = Demand(low_key, demand.example, demand.length_level, demand.context_level)
            setattr(other, level, size)
        self._note(other, list(demand.members))
        self._give_column(other)
        for name, queued in leaving.items():
            del demand.queued[name]
            queued.demand = other
        other.queued = leaving
        return dict.fromkeys((queued.key for queued in leaving.values()), other.column)

    def _note(self, demand: Demand, members: list[WorkerPlace]) -> None:
        """Let a new kind be found, by its key, its models and its workers."""
        self._demands[demand.key] = demand
        for model in demand.example.models or (ANY_MODEL,):
            self._demands_by_model.setdefault(model, set()).add(demand)
        demand.members = members
        for place in members:
            place.demands.add(demand)


def _level(levels: list[int], size: int) -> int | None:
    at = bisect_left(levels, size)
    return levels[at] if at < len(levels) else None


def _drop(index: dict[str, set[_Indexed]], model: str, item: _Indexed) -> None:
    index[model].discard(item)
    if not index[model]:
        del index[model]
