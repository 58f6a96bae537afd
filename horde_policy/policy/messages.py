"""The sentence a client reads about its request: one, plain, with the allowance in tokens (A15, A19, A20, A24).

Names of models and workers, which are hostile text, never stand in it.
"""

from horde_policy.policy.largest_free import DeclarationGap
from horde_policy.policy.request import Request

__all__ = ["decision_message"]


def decision_message(
    request: Request,
    outcome: str,
    reason: str | None,
    allowance_tokens: int,
    admitted_max_length: int | None,
    gap: DeclarationGap | None,
    *,
    any_eligible: bool,
) -> str:
    """Return the sentence for a decided request; ``request`` has the size that was measured.

    >>> decision_message(Request(models=(), slow_workers=False), "refused", "KudosUpfront", 512, None, None, any_eligible=True)
    'A request that excludes slow workers always needs its kudos in advance, whatever its length.'
    """
    asked = request.max_length
    waits = "" if any_eligible else ", and it waits until a worker can take it"
    if outcome == "free":
        return f"Up to {allowance_tokens} output tokens are free right now, and this request asks for {asked}{waits}."
    if outcome == "funded":
        return _funded(request, allowance_tokens, waits)
    if outcome == "downgraded":
        return _downgraded(request, allowance_tokens, admitted_max_length or 0, waits)
    if reason == "NoEligibleWorker":
        return _no_eligible_worker(request, allowance_tokens, gap)
    if not request.slow_workers:
        return _slow_workers_excluded(request, allowance_tokens)
    return (
        f"Up to {allowance_tokens} output tokens are free right now, and this request asks for {asked}, "
        "which needs kudos in advance."
    )


def _funded(request: Request, allowance_tokens: int, waits: str) -> str:
    if not request.slow_workers:
        return f"A request that excludes slow workers always needs its kudos in advance, and they are held{waits}."
    return (
        f"Up to {allowance_tokens} output tokens are free right now, and this request asks for {request.max_length}, "
        f"so its kudos are held{waits}."
    )


def _downgraded(request: Request, allowance_tokens: int, admitted: int, waits: str) -> str:
    if admitted < request.max_length:
        slow = "" if request.slow_workers else " and slow workers are allowed for it"
        return (
            f"Up to {allowance_tokens} output tokens are free right now, so this request for {request.max_length} "
            f"is lowered to {admitted}{slow}{waits}."
        )
    return f"Slow workers are allowed for this request for {admitted} output tokens, so that it needs no kudos{waits}."


def _slow_workers_excluded(request: Request, allowance_tokens: int) -> str:
    always = "A request that excludes slow workers always needs its kudos in advance, whatever its length"
    if request.max_length <= allowance_tokens:
        return f"{always}."
    return f"{always}, and this one also asks for {request.max_length} output tokens where {allowance_tokens} are free right now."


def _no_eligible_worker(request: Request, allowance_tokens: int, gap: DeclarationGap | None) -> str:
    lacks = []
    if gap is not None and gap.length_tokens is not None:
        lacks.append(
            f"the largest output offered is {gap.declared.max_length} tokens, "
            f"{gap.length_tokens} fewer than the {request.max_length} asked"
        )
    if gap is not None and gap.context_tokens is not None:
        lacks.append(
            f"the largest context offered is {gap.declared.max_context_length} tokens, "
            f"{gap.context_tokens} fewer than the {request.max_context_length} asked"
        )
    why = ": " + " and ".join(lacks) if lacks else ""
    return (
        f"No online worker can take this request for {request.max_length} output tokens{why}; kudos do not help, "
        f"and without a worker only up to {allowance_tokens} output tokens are free."
    )
