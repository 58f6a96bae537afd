"""The decision on a text request: what it gets, why, and the sentence its client reads (A13–A21).

In this order: a chat request is lowered to what workers declare (A18); the allowance is measured once, at that size (A9);
free (A13), funded (A14), downgraded (A16), refused as ``NoEligibleWorker`` (A19) or ``KudosUpfront`` (A15, A20).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from horde_policy.errors import InputError
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.policy.eligibility import eligible_workers, serves_models
from horde_policy.policy.largest_free import DeclarationGap, declaration_gap, declared_by
from horde_policy.policy.messages import decision_message
from horde_policy.policy.queue_order import QueueKey, Waiting, queue_key, tokens_ahead
from horde_policy.policy.request import LISTED_WORKERS_LIMIT, Request, Requester
from horde_policy.policy.wait import combined_speed_tok_per_s, finishes_in_time, wait_at_speed_s, wait_time_s
from horde_policy.policy.worker import Worker, is_measured
from horde_policy.settings import AllowanceSettings

__all__ = [
    "ContextAdjustment",
    "Decision",
    "Outcome",
    "Pool",
    "Refusal",
    "Request",
    "Requester",
    "Waiting",
    "decide",
    "lowered_for_chat",
    "queue_key",
    "rule_outcome",
]

Outcome = Literal["free", "funded", "refused", "downgraded"]
Refusal = Literal["KudosUpfront", "NoEligibleWorker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The workers, and the work that stands ahead of the new request: exactly one of the two figures.

    Attributes
    ----------
    workers
        Every worker known, in the order in which their speeds are added.
    queued_tokens
        Output tokens ahead that the request's eligible workers could take, where only the number is known.
    waiting
        The requests that wait, from which that number is counted (A7).

    Examples
    --------
    >>> Pool(workers=())
    Traceback (most recent call last):
    horde_policy.errors.InputError: pool, queued_tokens and waiting: None must be given as exactly one of the two
    """

    workers: tuple[Worker, ...]
    queued_tokens: float | None = None
    waiting: tuple[Waiting, ...] | None = None

    def __post_init__(self) -> None:
        if (self.queued_tokens is None) == (self.waiting is None):
            raise InputError("pool", "queued_tokens and waiting", self.queued_tokens, "must be given as exactly one of the two")


@dataclass(frozen=True, slots=True)
class ContextAdjustment:
    """A change made to a chat request that its client sees in ``context_adjustments`` (A18)."""

    field: Literal["max_tokens"]
    asked_tokens: int
    admitted_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a request gets, and every figure behind it.

    Attributes
    ----------
    request
        As it was asked.
    outcome, reason
        What it gets; the reason code of a refusal, else null.
    message
        One sentence for the client; a refusal states the allowance in tokens, except where A20 says otherwise.
    allowance_tokens
        The allowance, measured once at ``measured_max_length`` (A9).
    measured_max_length
        The size the rule looked at: as asked or, for chat, as lowered (A18); the requested size of A25.
    admitted_max_length
        The size it is queued with; null if refused.
    slow_workers
        Whether slow workers may serve it, after a downgrade (A16).
    estimated_wait_s
        The wait that sized the allowance; null without an eligible worker.
    wait_time_s
        The status route's wait for the admitted (if refused: the measured) size: the estimate plus the own output ÷ speed (A7).
    queued_tokens, speed_tok_per_s, eligible_workers
        Tokens ahead, combined speed and number of the eligible workers.
    gap
        Where no worker is eligible: by how much the request exceeds what online workers of its models declare (A19).
    context_adjustments
        The lowering of a chat request, if there was one (A18).
    notes
        What the reader should know: assumed speeds, what was not reported, what could not finish in time (A32).
    """

    request: Request
    outcome: Outcome
    reason: Refusal | None
    message: str
    allowance_tokens: int
    measured_max_length: int
    admitted_max_length: int | None
    slow_workers: bool
    estimated_wait_s: float | None
    wait_time_s: float | None
    queued_tokens: float
    speed_tok_per_s: float
    eligible_workers: int
    gap: DeclarationGap | None
    context_adjustments: tuple[ContextAdjustment, ...]
    notes: tuple[str, ...]


def lowered_for_chat(request: Request, workers: tuple[Worker, ...]) -> Request:
    """Return a chat request lowered to the largest completion length that an available worker of its models declares (A18).

    Whatever that worker's context, slowness or idleness. Anything else, and a request of which no such worker declares at least
    one token, comes back unchanged.

    >>> one = Worker(worker_id="w", models=("m",), max_length=512, max_context_length=1024)
    >>> lowered_for_chat(Request(models=("m",), max_length=4096, chat=True), (one,)).max_length
    512
    """
    largest = declared_by(workers, request.models).max_length if request.chat else None
    if largest is None or largest < 1 or largest >= request.max_length:
        return request
    return replace(request, max_length=largest)


def rule_outcome(request: Request, allowance_tokens: int, *, any_eligible: bool) -> tuple[Outcome, Refusal | None]:
    """Return outcome and refusal code of a request whose allowance is measured; the first that holds (A13–A20).

    >>> rule_outcome(Request(models=(), max_length=513), 512, any_eligible=False)
    ('refused', 'NoEligibleWorker')
    """
    over = request.max_length > allowance_tokens
    if request.slow_workers and not over:
        return "free", None
    if request.can_pay:
        return "funded", None
    if request.allow_downgrade and not request.chat:
        return "downgraded", None
    if over and not any_eligible:
        return "refused", "NoEligibleWorker"
    return "refused", "KudosUpfront"


def decide(
    request: Request,
    pool: Pool,
    settings: AllowanceSettings,
    *,
    key: QueueKey | None = None,
    sizes_billions: Mapping[str, float] | None = None,
) -> Decision:
    """Decide a request: outcome, reason, allowance and the sentence for its client (A9, A13–A21).

    A dry run gets the same decision as the request itself (A21); it is only not counted (A25).

    Parameters
    ----------
    request
        What is asked.
    pool
        The workers and what waits ahead.
    settings
        The curve and the readings ``ahead`` and ``count_threads``.
    key
        The request's own place in the queue; needed where ``pool.waiting`` is given and ``ahead`` is ``queue_order``.
    sizes_billions
        Known model sizes for the slow-worker limit; else parsed from the model's name.

    Raises
    ------
    InputError
        The queued tokens are negative or not finite, or the key is missing.

    Examples
    --------
    >>> pool = Pool(workers=(Worker(worker_id="w", models=("m",), max_length=4096, max_context_length=8192),), queued_tokens=1800)
    >>> refusal = decide(Request(models=("m",), max_length=4096, max_context_length=4096), pool, AllowanceSettings())
    >>> refusal.outcome, refusal.reason, refusal.allowance_tokens
    ('refused', 'KudosUpfront', 2304)
    >>> print(refusal.message)
    Up to 2304 output tokens are free right now, and this request asks for 4096, which needs kudos in advance.
    """
    measured = lowered_for_chat(request, pool.workers)
    eligible = eligible_workers(pool.workers, measured, settings, sizes_billions)
    queued: float
    if pool.waiting is None:
        queued = pool.queued_tokens or 0
    else:
        queued = tokens_ahead(pool.waiting, eligible, key, settings, sizes_billions)
    speed = combined_speed_tok_per_s(eligible, settings)
    wait_s = wait_at_speed_s(queued, speed)
    allowance = free_output_allowance(wait_s, settings)
    outcome, reason = rule_outcome(measured, allowance, any_eligible=bool(eligible))
    downgraded = outcome == "downgraded"
    admitted = None if outcome == "refused" else min(measured.max_length, allowance) if downgraded else measured.max_length
    gap = None if eligible else declaration_gap(measured, declared_by(pool.workers, measured.models))
    adjustments: tuple[ContextAdjustment, ...] = ()
    if measured.max_length != request.max_length:
        adjustments = (ContextAdjustment("max_tokens", request.max_length, measured.max_length),)
    return Decision(
        request=request,
        outcome=outcome,
        reason=reason,
        message=decision_message(measured, outcome, reason, allowance, admitted, gap, any_eligible=bool(eligible)),
        allowance_tokens=allowance,
        measured_max_length=measured.max_length,
        admitted_max_length=admitted,
        slow_workers=request.slow_workers or downgraded,
        estimated_wait_s=wait_s,
        wait_time_s=wait_time_s(wait_s, measured.max_length if admitted is None else admitted, speed),
        queued_tokens=queued,
        speed_tok_per_s=speed,
        eligible_workers=len(eligible),
        gap=gap,
        context_adjustments=adjustments,
        notes=_notes(measured, pool.workers, eligible, admitted, settings),
    )


def _notes(
    request: Request,
    workers: tuple[Worker, ...],
    eligible: tuple[Worker, ...],
    admitted: int | None,
    settings: AllowanceSettings,
) -> tuple[str, ...]:
    notes: list[str] = []
    assumed = sum(not is_measured(worker) for worker in eligible)
    if assumed:
        speed = settings.assumed_speed_tok_per_s
        notes.append(f"{assumed} of {len(eligible)} eligible workers not measured: counted at {speed:g} tokens per second (A8).")
    silent = sum(worker.online is None or worker.maintenance is None or worker.flagged is None for worker in eligible)
    if silent:
        notes.append(
            f"{silent} of {len(eligible)} eligible workers do not report whether they are online, in maintenance or flagged."
        )
    sizeless = sum(
        worker.models is None
        or (serves_models(worker, request.models) and (worker.max_length is None or worker.max_context_length is None))
        for worker in workers
    )
    if sizeless:
        notes.append(f"Not counted, for want of readable models or sizes: {sizeless} of {len(workers)} workers.")
    if len(request.workers) > LISTED_WORKERS_LIMIT:
        notes.append(f"Only the first {LISTED_WORKERS_LIMIT} of the {len(request.workers)} listed workers count.")
    if admitted is not None and not eligible:
        notes.append("No online worker can take it now: it waits until one can, or expires.")
    if admitted is not None and eligible and not finishes_in_time(admitted, eligible, settings):
        notes.append(f"No eligible worker makes {admitted} tokens within the 150 s of one job (A32).")
    return tuple(notes)
