"""The largest free request of a model, and what its workers declare (A9, A18, A19)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from horde_policy.policy.allowance import free_output_allowance
from horde_policy.policy.eligibility import meets_all_but_sizes, serves_models
from horde_policy.policy.request import Request
from horde_policy.policy.wait import estimated_wait_s
from horde_policy.policy.worker import Worker, available
from horde_policy.settings import AllowanceSettings
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, MAX_LENGTH_LIMIT_TOKENS

__all__ = ["DeclarationGap", "Declared", "declaration_gap", "declared_by", "largest_free_request", "largest_free_request_for"]


def largest_free_request(
    workers: Iterable[Worker],
    queued_tokens: float | None,
    settings: AllowanceSettings,
    *,
    max_context_length: int = DEFAULT_MAX_CONTEXT_TOKENS,
) -> int | None:
    """Return the largest size that some worker could take and that is free at that same size; null if there is none.

    At a size L from 1 to 16384 the context asked is the larger of ``max_context_length`` and L. A worker takes L if it declares
    at least both, so the pool changes only at the smaller of its two sizes; between two such levels the allowance is constant
    and the best answer is the smaller of the upper level and that allowance. The levels are tried from the largest down.

    Parameters
    ----------
    workers
        The workers of the model, already grouped (:func:`horde_policy.policy.worker.workers_by_model`); those that are not
        available are left out.
    queued_tokens
        Output tokens queued for the model; null: not known, then nothing is known of the answer either.
    settings
        The curve.
    max_context_length
        The context setting, in tokens.

    Examples
    --------
    >>> small = Worker(worker_id="s", models=("m",), max_length=512, max_context_length=4096)
    >>> large = Worker(worker_id="l", models=("m",), max_length=2048, max_context_length=4096)
    >>> largest_free_request([small, large], 0, AllowanceSettings())
    2048
    >>> largest_free_request([small, large], 3000, AllowanceSettings())
    512
    >>> largest_free_request([], 0, AllowanceSettings()) is None
    True
    """
    if queued_tokens is None:
        return None
    levels: list[tuple[int, Worker]] = []
    for worker in workers:
        if available(worker) and worker.max_length is not None and worker.max_context_length is not None:
            level = min(worker.max_length, worker.max_context_length, MAX_LENGTH_LIMIT_TOKENS)
            if level >= 1 and worker.max_context_length >= max_context_length:
                levels.append((level, worker))
    tops = sorted({level for level, _ in levels}, reverse=True)
    for top, below in pairwise([*tops, 0]):
        pool = [worker for level, worker in levels if level >= top]
        allowance = free_output_allowance(estimated_wait_s(queued_tokens, pool, settings), settings)
        if allowance > below:
            return min(top, allowance)
    return None


def largest_free_request_for(
    request: Request,
    workers: Iterable[Worker],
    queued_tokens: float | None,
    settings: AllowanceSettings,
    sizes_billions: Mapping[str, float] | None = None,
) -> int | None:
    """Return the largest free size of a request like this one, whatever size it states itself; null if there is none.

    The request's other conditions (models, trusted workers, worker list, …) choose the workers. A request that excludes slow
    workers is never free (A20).

    >>> small = Worker(worker_id="s", models=("m",), max_length=512, max_context_length=4096)
    >>> largest_free_request_for(Request(models=("m",)), [small], 0, AllowanceSettings())
    512
    """
    if not request.slow_workers:
        return None
    taking = [worker for worker in workers if meets_all_but_sizes(worker, request, settings, sizes_billions)]
    return largest_free_request(taking, queued_tokens, settings, max_context_length=request.max_context_length)


@dataclass(frozen=True, slots=True)
class Declared:
    """The largest output and context that an online worker of the models declares; null if none declares one."""

    max_length: int | None
    max_context_length: int | None


def declared_by(workers: Iterable[Worker], models: tuple[str, ...]) -> Declared:
    """Return the largest sizes that available workers of the models declare, each on its own (A18, A19).

    Available is online, not in maintenance, owner not flagged; slowness, trust and the other size do not count.

    >>> one = Worker(worker_id="a", models=("m",), max_length=512, max_context_length=4096)
    >>> declared_by([one], ("m",))
    Declared(max_length=512, max_context_length=4096)
    """
    length: int | None = None
    context: int | None = None
    for worker in workers:
        if available(worker) and serves_models(worker, models):
            if worker.max_length is not None:
                length = max(worker.max_length, length or 0)
            if worker.max_context_length is not None:
                context = max(worker.max_context_length, context or 0)
    return Declared(length, context)


@dataclass(frozen=True, slots=True)
class DeclarationGap:
    """What is asked less the largest that an online worker of the models declares (A19); null where that is enough.

    ``length_tokens`` is the gap of ``max_length``, ``context_tokens`` that of ``max_context_length``; at least one is not null.
    """

    declared: Declared
    length_tokens: int | None
    context_tokens: int | None


def declaration_gap(request: Request, declared: Declared) -> DeclarationGap | None:
    """Return by how much the request exceeds what is declared; null if it does not, or if nothing is declared (A19).

    >>> declaration_gap(Request(models=("m",), max_length=1024), Declared(512, 4096)).length_tokens
    512
    """
    length = None if declared.max_length is None else request.max_length - declared.max_length
    context = None if declared.max_context_length is None else request.max_context_length - declared.max_context_length
    length = length if length is not None and length > 0 else None
    context = context if context is not None and context > 0 else None
    return None if length is None and context is None else DeclarationGap(declared, length, context)
