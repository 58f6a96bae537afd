"""What ``replay.md`` says happens at an arrival, written from that page alone, without the package's own rules."""

import math
from typing import Any

from horde_policy.policy.decision import Request, Waiting
from horde_policy.policy.eligibility import Worker
from horde_policy.policy.model_size import slow_limit
from horde_policy.settings import AllowanceSettings


def speed_of(worker: Worker, settings: AllowanceSettings) -> float:
    measured = bool(worker.measured) and bool(worker.speed_tok_per_s)
    speed = float(worker.speed_tok_per_s or 0) if measured else settings.assumed_speed_tok_per_s
    return speed * max(1, worker.threads or 0) if settings.count_threads else speed


def takes(worker: Worker, request: Request, max_length: int, settings: AllowanceSettings) -> bool:
    measured = bool(worker.measured) and bool(worker.speed_tok_per_s)
    own = float(worker.speed_tok_per_s or 0) if measured else settings.assumed_speed_tok_per_s
    assert worker.models is not None
    assert worker.max_length is not None
    assert worker.max_context_length is not None
    return (
        (not request.models or bool(set(worker.models) & set(request.models)))
        and worker.max_length >= max_length
        and worker.max_context_length >= request.max_context_length
        and (request.slow_workers or own >= slow_limit(request.models).tok_per_s)
    )


def arrive(
    request: Request,
    fleet: tuple[Worker, ...],
    queue: tuple[Waiting, ...],
    settings: AllowanceSettings,
    created_us: int,
    row: int,
) -> dict[str, Any]:
    max_length = request.max_length
    if request.chat:
        declared = [w.max_length or 0 for w in fleet if not request.models or set(w.models or ()) & set(request.models)]
        if declared and 0 < max(declared) < max_length:
            max_length = max(declared)
    pool = [w for w in fleet if takes(w, request, max_length, settings)]
    priority = request.priority if request.priority is not None else -50 if request.requester == "anonymous" else 0
    rank = priority - 50 * math.floor(created_us / 10_000_000)
    ahead = 0
    for other in queue:
        other_rank = -other.key.negated_rank
        before = (-other_rank, other.key.created_us, other.key.row) < (-rank, created_us, row)
        if (before or settings.ahead == "all") and any(takes(w, other.request, other.request.max_length, settings) for w in pool):
            ahead += other.request.max_length * other.remaining_n
    wait = None
    if pool:
        combined = 0.0
        for worker in pool:
            combined = combined + speed_of(worker, settings)
        wait = ahead / combined
    ceiling, floor = settings.ceiling_tokens, settings.floor_tokens
    if wait is None or wait >= settings.wait_floor_s:
        allowance = floor
    elif wait <= settings.wait_full_s:
        allowance = ceiling
    else:
        slope = (ceiling - floor) * (wait - settings.wait_full_s) / (settings.wait_floor_s - settings.wait_full_s)
        allowance = max(floor, math.floor(ceiling - slope))
    outcome, reason, admitted = "refused", None, None
    if request.slow_workers and max_length <= allowance:
        outcome, admitted = "free", max_length
    elif request.can_pay:
        outcome, admitted = "funded", max_length
    elif request.allow_downgrade and not request.chat:
        outcome, admitted = "downgraded", min(max_length, allowance)
    else:
        reason = "NoEligibleWorker" if not pool and max_length > allowance else "KudosUpfront"
    return {
        "outcome": outcome,
        "reason": reason,
        "allowance": allowance,
        "estimated_wait_s": wait,
        "admitted_max_length": admitted,
    }
