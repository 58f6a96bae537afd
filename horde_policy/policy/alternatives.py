"""The rules that the decision weighed: the previous one (A29; horde.md §3) and jobs per eligible thread (A30)."""

import math
from dataclasses import dataclass

import polars as pl

from horde_policy.errors import InputError
from horde_policy.policy.exact import quotient
from horde_policy.policy.request import Request
from horde_policy.settings import AllowanceSettings

__all__ = [
    "OLD_RULE_CEILING_TOKENS",
    "OLD_RULE_FLOOR_TOKENS",
    "OldVerdict",
    "jobs_rule_allowance",
    "jobs_rule_expression",
    "old_rule",
    "old_rule_allowance",
    "old_rule_downgraded_length",
    "old_rule_expression",
]

OLD_RULE_FLOOR_TOKENS = 256
OLD_RULE_CEILING_TOKENS = 512
_TOKENS_PER_THREAD = 5
_TOKENS_PER_REQUEST = 0.9


@dataclass(frozen=True, slots=True)
class OldVerdict:
    """What the previous rule says of a request.

    ``needs_kudos``: the hold is required. ``tokens``: the size it states, unclamped (even negative) for a request that excludes
    slow workers. ``downgrade_blocked``: a worker list keeps the request from being lowered.
    """

    needs_kudos: bool
    tokens: int
    downgrade_blocked: bool = False


def _unclamped(text_threads: int, queued_text_requests: float) -> int:
    if text_threads < 0 or not (math.isfinite(queued_text_requests) and queued_text_requests >= 0):
        figures = (text_threads, queued_text_requests)
        raise InputError("old rule", "threads and queued requests", figures, "must be finite numbers of at least 0")
    return OLD_RULE_CEILING_TOKENS + _TOKENS_PER_THREAD * text_threads - round(_TOKENS_PER_REQUEST * queued_text_requests)


def old_rule_allowance(text_threads: int, queued_text_requests: float, *, slow_workers: bool = True) -> int:
    """Return 512 + 5 · threads − round(0.9 · queued), held to 256…512 unless the request excludes slow workers (A29).

    Half a token rounds to the even one, as Python's ``round`` does. The counts are horde-wide: text threads, and
    ``queued_text_requests`` of ``/v2/status/performance``.

    >>> [old_rule_allowance(100, queue) for queue in (0, 556, 700, 840, 10_000)]
    [512, 512, 382, 256, 256]
    >>> [old_rule_allowance(100, queue, slow_workers=False) for queue in (0, 10_000)]
    [1012, -7988]
    """
    tokens = _unclamped(text_threads, queued_text_requests)
    if not slow_workers:
        return tokens
    return min(max(tokens, OLD_RULE_FLOOR_TOKENS), OLD_RULE_CEILING_TOKENS)


def old_rule(
    request: Request, text_threads: int, queued_text_requests: float, *, worker_list_needs_kudos: bool = False
) -> OldVerdict:
    """Return what the previous rule says of a request: its five steps, in order (A29; horde.md §3).

    Parameters
    ----------
    request
        Its ``slow_workers``, ``max_length`` and ``workers`` count.
    text_threads, queued_text_requests
        Horde-wide counts.
    worker_list_needs_kudos
        The server's ``HORDE_UPFRONT_KUDOS_ON_WORKERLIST``, off by default.

    Examples
    --------
    >>> old_rule(Request(models=(), max_length=512), 20, 111)
    OldVerdict(needs_kudos=False, tokens=512, downgrade_blocked=False)
    >>> old_rule(Request(models=(), slow_workers=False), 100, 0)
    OldVerdict(needs_kudos=True, tokens=1012, downgrade_blocked=False)
    """
    tokens = old_rule_allowance(text_threads, queued_text_requests, slow_workers=request.slow_workers)
    if not request.slow_workers or request.max_length > tokens:
        return OldVerdict(needs_kudos=True, tokens=tokens)
    if worker_list_needs_kudos and request.workers:
        return OldVerdict(needs_kudos=True, tokens=tokens, downgrade_blocked=True)
    return OldVerdict(needs_kudos=False, tokens=tokens)


def old_rule_downgraded_length(max_length: int, tokens: int) -> int:
    """Return the size after the previous rule's downgrade: the stated tokens, never more than asked nor less than one.

    >>> old_rule_downgraded_length(80, 1012), old_rule_downgraded_length(80, -7988)
    (80, 1)
    """
    return max(1, min(max_length, tokens))


def old_rule_expression(text_threads: pl.Expr, queued_text_requests: pl.Expr, slow_workers: pl.Expr | None = None) -> pl.Expr:
    """Return :func:`old_rule_allowance` as an expression: Int64 tokens, null where a count is null.

    >>> frame = pl.DataFrame({"threads": [100, 100], "queued": [700.0, 10_000.0], "slow": [True, False]})
    >>> frame.select(old_rule_expression(pl.col("threads"), pl.col("queued"), pl.col("slow"))).to_series().to_list()
    [382, -7988]
    """
    relief = (_TOKENS_PER_REQUEST * queued_text_requests.cast(pl.Float64)).round(0, mode="half_to_even").cast(pl.Int64)
    tokens = OLD_RULE_CEILING_TOKENS + _TOKENS_PER_THREAD * text_threads.cast(pl.Int64) - relief
    clamped = tokens.clip(OLD_RULE_FLOOR_TOKENS, OLD_RULE_CEILING_TOKENS)
    return clamped if slow_workers is None else pl.when(slow_workers).then(clamped).otherwise(tokens)


def jobs_rule_allowance(competing_jobs: int, eligible_threads: int, settings: AllowanceSettings) -> int:
    """Return the allowance by competing jobs per eligible thread: ceiling at none, linear to the floor (A30).

    The floor is reached at ``jobs_rule_floor_per_thread`` jobs a thread, and holds without an eligible thread. Rounded down
    like the curve of A4, the product before the quotient.

    >>> [jobs_rule_allowance(jobs, 2, AllowanceSettings()) for jobs in (0, 1, 4, 8, 100)]
    [4096, 3648, 2304, 512, 512]
    >>> jobs_rule_allowance(0, 0, AllowanceSettings())
    512
    """
    if competing_jobs < 0 or eligible_threads < 0:
        raise InputError("jobs rule", "jobs and threads", (competing_jobs, eligible_threads), "must be at least 0")
    if eligible_threads == 0:
        return settings.floor_tokens
    jobs_per_thread = competing_jobs / eligible_threads
    if jobs_per_thread >= settings.jobs_rule_floor_per_thread:
        return settings.floor_tokens
    fall = settings.ceiling_tokens - settings.floor_tokens
    tokens = settings.ceiling_tokens - fall * jobs_per_thread / settings.jobs_rule_floor_per_thread
    return max(settings.floor_tokens, math.floor(tokens))


def jobs_rule_expression(competing_jobs: pl.Expr, eligible_threads: pl.Expr, settings: AllowanceSettings) -> pl.Expr:
    """Return :func:`jobs_rule_allowance` as an expression: Int64 tokens, null where the jobs are null and there is a thread.

    >>> frame = pl.DataFrame({"jobs": [1, 8, 0], "threads": [2, 2, 0]})
    >>> frame.select(jobs_rule_expression(pl.col("jobs"), pl.col("threads"), AllowanceSettings())).to_series().to_list()
    [3648, 512, 512]
    """
    ceiling, floor = float(settings.ceiling_tokens), float(settings.floor_tokens)
    full_load = float(settings.jobs_rule_floor_per_thread)
    jobs_per_thread = quotient(competing_jobs, eligible_threads.cast(pl.Float64))
    slope = (ceiling - quotient((ceiling - floor) * jobs_per_thread, full_load)).floor()
    return (
        pl.when((eligible_threads == 0) | (jobs_per_thread >= full_load))
        .then(floor)
        .when(jobs_per_thread.is_not_null())
        .then(pl.max_horizontal(slope, pl.lit(floor)))
        .cast(pl.Int64)
    )
