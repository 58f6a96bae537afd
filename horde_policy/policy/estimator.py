"""The estimate on the request path: wait and allowance of a new request, exact, without walking the queue (A7, A11).

It holds what the server knows anyway: the workers that are there and the requests that wait. Requests that the same workers could
take are one kind (:mod:`horde_policy.policy.demands`); their tokens are kept in queue order by kind
(:mod:`horde_policy.policy.token_blocks`). An estimate looks up the request's kind, which knows its competitors and its combined
speed, and adds up what is ahead with two products of vectors. Workers that come, go or change touch only the kinds that they
could take; one whose sizes nobody declared before also cuts the kinds between its size and the next, in one pass over the queue.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import NamedTuple

from horde_policy.errors import InputError
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.policy.decision import lowered_for_chat
from horde_policy.policy.demands import Demands, QueuedRequest, WorkerPlace
from horde_policy.policy.queue_order import QueueKey
from horde_policy.policy.request import Request
from horde_policy.policy.token_blocks import BLOCK_SIZE, TokenBlocks
from horde_policy.policy.worker import Worker
from horde_policy.settings import AllowanceSettings

__all__ = ["Estimate", "Estimator"]


class Estimate(NamedTuple):
    """What :meth:`Estimator.estimate` finds for a new request.

    ``estimated_wait_s`` is null without an eligible worker; ``queued_tokens`` are those ahead that the eligible workers could
    take, ``speed_tok_per_s`` their combined speed.
    """

    estimated_wait_s: float | None
    allowance_tokens: int
    queued_tokens: int
    speed_tok_per_s: float
    eligible_workers: int


class Estimator:
    """Workers and queue in memory; answers estimated wait and allowance of a new request with its priority (A11).

    Parameters
    ----------
    settings
        The curve, the assumed speed, ``count_threads`` and ``ahead``; fixed for its life.
    sizes_billions
        Known model sizes for the slow-worker limit; else parsed from the model's name.
    block_size
        Requests in one block of the queue; only speed depends on it.

    Examples
    --------
    >>> from horde_policy.policy.queue_order import queue_key
    >>> estimator = Estimator(AllowanceSettings())
    >>> estimator.add_worker(Worker(worker_id="w", models=("m",), max_length=4096, max_context_length=8192))
    >>> for i in range(3):
    ...     estimator.add(i, Request(models=("m",), max_length=600), queue_key(0, i, i))
    >>> estimator.estimate(Request(models=("m",)), queue_key(0, 9, 9))
    Estimate(estimated_wait_s=180.0, allowance_tokens=2304, queued_tokens=1800, speed_tok_per_s=10.0, eligible_workers=1)
    >>> estimator.remove(0)
    >>> estimator.estimate(Request(models=("m",)), queue_key(0, 1, 9)).queued_tokens
    600
    """

    def __init__(
        self,
        settings: AllowanceSettings,
        sizes_billions: Mapping[str, float] | None = None,
        *,
        block_size: int = BLOCK_SIZE,
    ) -> None:
        if block_size < 2:
            raise InputError("estimator", "block_size", block_size, "must be at least 2")
        self._settings = settings
        self._demands = Demands(settings, sizes_billions)
        self._blocks = TokenBlocks(block_size)
        self._queued: dict[Hashable, QueuedRequest] = {}
        self._keys: set[QueueKey] = set()

    def __len__(self) -> int:
        """Return how many requests wait."""
        return len(self._queued)

    @property
    def workers(self) -> tuple[Worker, ...]:
        """The workers, in the order in which their speeds are added: that of joining."""
        return self._demands.workers

    def add_worker(self, worker: Worker) -> None:
        """Let a worker in; one that is there already raises InputError."""
        if self._demands.place_of(worker.worker_id) is not None:
            raise InputError("estimator", "worker", worker.worker_id, "must not be there already")
        self._blocks.move(self._demands.join(worker))

    def remove_worker(self, worker_id: str) -> None:
        """Let a worker go; one that is not there raises InputError."""
        self._place_of(worker_id)
        self._demands.leave(worker_id)

    def update_worker(self, worker: Worker) -> None:
        """Take over what changed of a worker.

        With another speed, measurement or number of threads it keeps its place in the order of speeds; with anything else
        changed it leaves and joins again.
        """
        place = self._place_of(worker.worker_id)
        now = place.worker
        same = replace(now, speed_tok_per_s=worker.speed_tok_per_s, measured=worker.measured, threads=worker.threads)
        if same == worker:
            self._demands.change_speed(place, worker)
        else:
            self.remove_worker(worker.worker_id)
            self.add_worker(worker)

    def set_speed(self, worker_id: str, speed_tok_per_s: float, *, measured: bool = True) -> None:
        """Take over a worker's new mean speed, after a job of it; it keeps its place."""
        place = self._place_of(worker_id)
        self._demands.change_speed(place, replace(place.worker, speed_tok_per_s=speed_tok_per_s, measured=measured))

    def add(self, request_id: Hashable, request: Request, key: QueueKey, remaining_n: int | None = None) -> None:
        """Queue a request with its current ``max_length``, under its key.

        Parameters
        ----------
        request_id
            Names it in :meth:`remove`.
        request, key
            What it asks, and its place in the queue.
        remaining_n
            Answers not yet handed out; null: all of the request's ``n``.

        Raises
        ------
        InputError
            The id or the key is queued already, the key is no number, or the answers are less than none.
        """
        if request_id in self._queued:
            raise InputError("estimator", "request id", request_id, "must not be queued already")
        if key in self._keys or not math.isfinite(key.negated_rank):
            raise InputError("estimator", "queue key", tuple(key), "must be finite and not be queued already")
        tokens = request.max_length * self._answers(request.n if remaining_n is None else remaining_n)
        demand = self._demands.demand_of(request)
        queued = QueuedRequest(request_id, request, key, tokens, demand)
        self._demands.enter(demand, queued)
        self._blocks.add(key, demand.column, tokens)
        self._queued[request_id] = queued
        self._keys.add(key)

    def remove(self, request_id: Hashable) -> None:
        """Take a request out of the queue: handed out in full, cancelled or expired; one not queued raises InputError."""
        queued = self._waiting(request_id)
        self._blocks.remove(queued.key)
        self._demands.exit(queued)
        del self._queued[request_id]
        self._keys.discard(queued.key)

    def set_remaining(self, request_id: Hashable, remaining_n: int) -> None:
        """Note how many answers of a queued request are not yet handed out."""
        queued = self._waiting(request_id)
        queued.tokens = queued.request.max_length * self._answers(remaining_n)
        self._blocks.change(queued.key, queued.demand.column, queued.tokens)

    def estimate(self, request: Request, key: QueueKey) -> Estimate:
        """Return estimated wait and allowance of a new request that would stand at this key (A7–A9).

        Exactly what :func:`horde_policy.policy.queue_order.tokens_ahead` and
        :func:`horde_policy.policy.wait.combined_speed_tok_per_s` give over :attr:`workers` and all that waits. A chat request
        is to be lowered first (:meth:`lowered_for_chat`).
        """
        demands, settings = self._demands, self._settings
        demand = demands.demand_of(request)
        if not demand.members:
            return Estimate(None, settings.floor_tokens, 0, 0.0, 0)
        competing = demands.competing_with(demand)
        blocks = self._blocks
        tokens = blocks.in_all(competing) if settings.ahead == "all" else blocks.ahead_of(key, competing)
        speed = demands.combined_speed(demand)
        wait_s = tokens / speed
        return Estimate(wait_s, free_output_allowance(wait_s, settings), tokens, speed, len(demand.members))

    def lowered_for_chat(self, request: Request) -> Request:
        """Return a chat request lowered to the largest length that an available worker of its models declares (A18).

        >>> estimator = Estimator(AllowanceSettings())
        >>> estimator.add_worker(Worker(worker_id="w", models=("m",), max_length=512, max_context_length=8192))
        >>> estimator.lowered_for_chat(Request(models=("m",), max_length=4096, chat=True)).max_length
        512
        """
        if not request.chat:
            return request
        return lowered_for_chat(request, tuple(place.worker for place in self._demands.serving(request.models)))

    def _place_of(self, worker_id: str) -> WorkerPlace:
        place = self._demands.place_of(worker_id)
        if place is None:
            raise InputError("estimator", "worker", worker_id, "must be there")
        return place

    def _waiting(self, request_id: Hashable) -> QueuedRequest:
        queued = self._queued.get(request_id)
        if queued is None:
            raise InputError("estimator", "request id", request_id, "must be queued")
        return queued

    @staticmethod
    def _answers(remaining_n: int) -> int:
        if isinstance(remaining_n, bool) or not isinstance(remaining_n, int) or remaining_n < 0:
            raise InputError("estimator", "remaining_n", remaining_n, "must be a whole number of at least 0")
        return remaining_n
