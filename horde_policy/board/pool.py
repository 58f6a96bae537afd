"""A snapshot's workers and list, indexed once by model, and the pool that one request meets (A7–A10; horde.md §5.1, §8.3).

A plain request is meant throughout: it allows slow workers and asks for no trust, backend or worker list. At a size L it asks
for the larger of the context setting and L as its context, since the API refuses less; a worker takes it up to the smaller of
its two declared sizes. That is :func:`horde_policy.policy.eligibility.could_take`, which the tests hold it against.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from horde_policy.board.wait_range import ListedQueue, WaitRange, wait_range
from horde_policy.frames.snapshot import Snapshot
from horde_policy.policy.wait import combined_speed_tok_per_s
from horde_policy.policy.worker import Worker, available, workers_by_model, workers_from_frame
from horde_policy.settings import AllowanceSettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = ["Fleet", "Pool", "largest_size_tokens"]


def largest_size_tokens(worker: Worker, context_tokens: int) -> int | None:
    """Return the largest size that the worker takes of a plain request at this context setting; null if it takes none.

    >>> one = Worker(worker_id="w", models=("m",), max_length=4096, max_context_length=3000)
    >>> largest_size_tokens(one, 2048), largest_size_tokens(one, 3001)
    (3000, None)
    """
    if worker.max_length is None or worker.max_context_length is None or worker.max_context_length < context_tokens:
        return None
    largest = min(worker.max_length, worker.max_context_length, MAX_LENGTH_LIMIT_TOKENS)
    return largest if largest >= 1 else None


@dataclass(frozen=True, slots=True)
class Pool:
    """The open workers of the models of one request, with the largest size of each (null: takes none at this context).

    ``models`` is empty for any model. The order is that of the snapshot, so that sums of speeds are the policy's to the bit.
    """

    models: tuple[str, ...]
    context_tokens: int
    workers: tuple[Worker, ...]
    sizes: tuple[int | None, ...]

    def eligible(self, max_length: int) -> tuple[Worker, ...]:
        """Return the workers that take this size."""
        return tuple(
            worker for worker, size in zip(self.workers, self.sizes, strict=True) if size is not None and size >= max_length
        )

    @property
    def levels(self) -> tuple[int, ...]:
        """The sizes above which a worker drops out, rising, each once."""
        return tuple(sorted({size for size in self.sizes if size is not None}))


@dataclass(frozen=True)
class Fleet:
    """Workers and list of one snapshot, indexed.

    Attributes
    ----------
    workers
        All workers of the list, in the frame's order.
    listed
        What the list says of each model it names; null when there is no list.
    horde_wide_tokens
        The total of the performance answer; null when not reported.
    settings
        Decide the speed that an unmeasured worker counts (A8), and the curve.
    """

    workers: tuple[Worker, ...]
    listed: Mapping[str, ListedQueue] | None
    horde_wide_tokens: float | None
    settings: AllowanceSettings
    _most: dict[int, float] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, snapshot: Snapshot, settings: AllowanceSettings) -> "Fleet":
        """Return the index of a snapshot."""
        models = snapshot.models
        listed = (
            None
            if models is None
            else {
                name: ListedQueue(queued, jobs)
                for name, queued, jobs in models.select("model", "queued_tokens", "jobs").iter_rows()
            }
        )
        horde_wide = None if snapshot.performance is None else snapshot.performance.queued_tokens
        return cls(workers_from_frame(snapshot.workers), listed, horde_wide, settings)

    @cached_property
    def by_id(self) -> Mapping[str, Worker]:
        """Worker id → the worker."""
        return {worker.worker_id: worker for worker in self.workers}

    @cached_property
    def open_by_model(self) -> Mapping[str, tuple[Worker, ...]]:
        """Model → its workers that serve strangers: online, not in maintenance, owner not flagged."""
        return workers_by_model(self.workers)

    @cached_property
    def open_workers(self) -> tuple[Worker, ...]:
        """All workers that serve strangers and whose models are known."""
        return tuple(worker for worker in self.workers if worker.models is not None and available(worker))

    @cached_property
    def serving(self) -> Mapping[str, tuple[Worker, ...]]:
        """Model → every worker of the list that names it, open or not."""
        index: dict[str, list[Worker]] = {}
        for worker in self.workers:
            for model in dict.fromkeys(worker.models or ()):
                index.setdefault(model, []).append(worker)
        return {model: tuple(workers) for model, workers in index.items()}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every model that is listed or served by any worker of the list, in maintenance or not, sorted."""
        return tuple(sorted({*self.serving, *(self.listed or ())}))

    @cached_property
    def listed_tokens(self) -> float:
        """Σ ``queued`` over the list; what is not reported adds nothing."""
        return sum((queue.queued_tokens or 0.0 for queue in (self.listed or {}).values()), 0.0)

    @cached_property
    def _bits(self) -> Mapping[str, int]:
        """Model → its bit in a set of models kept as a whole number, by the order of ``names``."""
        return {name: 1 << place for place, name in enumerate(self.names)}

    @cached_property
    def _listed_by_bit(self) -> Mapping[int, tuple[int, float]]:
        """Bit of a listed model → its place in the list, and the most tokens that its figures can stand for."""
        queues = (self.listed or {}).items()
        return {self._bits[name]: (place, queue.most_tokens) for place, (name, queue) in enumerate(queues)}

    @cached_property
    def _reach(self) -> Mapping[str, int]:
        """Worker id → the set of models that it serves."""
        reach = {}
        for worker in self.open_workers:
            models = 0
            for model in worker.models or ():
                models |= self._bits[model]
            reach[worker.worker_id] = models
        return reach

    def also_served(self, workers: Iterable[Worker], models: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        """Return how many of the open workers serve other models than these too, and which, sorted.

        >>> both = Worker(worker_id="w", models=("b", "a"), max_length=80, max_context_length=2048)
        >>> Fleet((both,), {}, None, AllowanceSettings()).also_served((both,), ("a",))
        (1, ('b',))
        """
        mine = sum(self._bits.get(model, 0) for model in dict.fromkeys(models))
        also = 0
        sharing = 0
        for worker in workers:
            others = self._reach[worker.worker_id] & ~mine
            also |= others
            sharing += others != 0
        return sharing, tuple(name for name, bit in self._bits.items() if also & bit) if also else ()

    def pool(self, models: tuple[str, ...], context_tokens: int) -> Pool:
        """Return the open workers of these models (empty: any), at a context setting."""
        if not models:
            workers = self.open_workers
        elif len(models) == 1:
            workers = self.open_by_model.get(models[0], ())
        else:
            wanted = {worker.worker_id for model in models for worker in self.open_by_model.get(model, ())}
            workers = tuple(worker for worker in self.open_workers if worker.worker_id in wanted)
        sizes = tuple(largest_size_tokens(worker, context_tokens) for worker in workers)
        return Pool(models, context_tokens, workers, sizes)

    def named_tokens(self, models: tuple[str, ...]) -> float | None:
        """Return the listed queue of these models, of all listed models for none named; null when not reported.

        Not reported is not zero. Of several models, one that the list does not name and that no open worker serves adds nothing:
        none of the eligible workers could take its work.

        >>> queues = {"a": ListedQueue(100.0, 1.0), "b": ListedQueue(50.0, 1.0)}
        >>> fleet = Fleet((), queues, None, AllowanceSettings())
        >>> fleet.named_tokens(("a",)), fleet.named_tokens(("a", "gone")), fleet.named_tokens(("gone",)), fleet.named_tokens(())
        (100.0, 100.0, None, 150.0)
        """
        if self.listed is None:
            return None
        named = models or tuple(self.listed)
        counted = [model for model in named if model in self.listed or model in self.open_by_model]
        if named and not counted:
            return None
        total = 0.0
        for model in counted:
            queue = self.listed.get(model)
            if queue is None or queue.queued_tokens is None:
                return None
            total += queue.queued_tokens
        return total

    def most_tokens(self, workers: Iterable[Worker]) -> float:
        """Return Σ queued × min(20, max(1, jobs)) over every listed model that one of the workers serves."""
        models = 0
        for worker in workers:
            models |= self._reach[worker.worker_id]
        if models not in self._most:
            found, rest = [], models
            while rest:
                bit = rest & -rest
                rest ^= bit
                if bit in self._listed_by_bit:
                    found.append(self._listed_by_bit[bit])
            self._most[models] = sum((tokens for _, tokens in sorted(found)), 0.0)  # in the list's order, whoever asks
        return self._most[models]

    def waits(
        self, models: tuple[str, ...], eligible: tuple[Worker, ...], *, queue_change_tokens: float = 0.0
    ) -> WaitRange | None:
        """Return the range of the estimated wait for a request of these models with these eligible workers.

        ``queue_change_tokens`` more (or less, down to none) are queued than the list says: known tokens, which move named and
        high alike.
        """
        named = self.named_tokens(models)
        changed = None if named is None else max(0.0, named + queue_change_tokens)
        shift = 0.0 if named is None or changed is None else changed - named
        return wait_range(
            speed_tok_per_s=combined_speed_tok_per_s(eligible, self.settings),
            named_tokens=changed,
            high_listed_tokens=max(0.0, self.most_tokens(eligible) + shift),
            listed_tokens=self.listed_tokens,
            horde_wide_tokens=self.horde_wide_tokens,
        )
