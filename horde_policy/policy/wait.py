"""The estimated wait: queued output tokens ahead ÷ the combined measured speed of the eligible workers (A7, A8).

Speeds are added from left to right in the order of the workers, so that the scalar functions, the expressions and a replay
agree to the last bit. No eligible worker: combined speed 0 and no estimate.
"""

import math
from collections.abc import Iterable

import polars as pl

from horde_policy.errors import InputError
from horde_policy.policy.exact import quotient
from horde_policy.policy.worker import Worker, counted_speed_expression, counted_speed_tok_per_s, counted_threads
from horde_policy.settings import AllowanceSettings
from horde_policy.units import JOB_TIME_LIMIT_S

__all__ = [
    "combined_speed_expression",
    "combined_speed_tok_per_s",
    "estimated_wait_expression",
    "estimated_wait_s",
    "finishes_in_time",
    "wait_at_speed_s",
    "wait_time_s",
]


def combined_speed_tok_per_s(eligible: Iterable[Worker], settings: AllowanceSettings) -> float:
    """Return the combined speed of the workers; 0 for none (A7, A8).

    A worker counts once whatever its threads, unless the setting ``count_threads`` is on.

    >>> two = [Worker(worker_id=i, models=(), max_length=80, max_context_length=1024, threads=3) for i in "ab"]
    >>> combined_speed_tok_per_s(two, AllowanceSettings()), combined_speed_tok_per_s(two, AllowanceSettings(count_threads=True))
    (20.0, 60.0)
    """
    speed = 0.0
    for worker in eligible:
        own = counted_speed_tok_per_s(worker, settings)
        speed += own * counted_threads(worker) if settings.count_threads else own
    return speed


def wait_at_speed_s(queued_tokens: float | None, speed_tok_per_s: float) -> float | None:
    """Return queued ÷ speed in seconds; null without an eligible worker (speed 0) or with the queue not known.

    Raises
    ------
    InputError
        The queue or the speed is negative or not finite.

    Examples
    --------
    >>> wait_at_speed_s(600, 10.0), wait_at_speed_s(600, 0.0), wait_at_speed_s(None, 10.0)
    (60.0, None, None)
    """
    if queued_tokens is not None and not (math.isfinite(queued_tokens) and queued_tokens >= 0):
        raise InputError("queued tokens", "", queued_tokens, "must be a finite number of at least 0, or null")
    if not (math.isfinite(speed_tok_per_s) and speed_tok_per_s >= 0):
        raise InputError("combined speed", "", speed_tok_per_s, "must be a finite number of at least 0 tokens per second")
    if queued_tokens is None or speed_tok_per_s == 0:
        return None
    return queued_tokens / speed_tok_per_s


def estimated_wait_s(queued_tokens: float | None, eligible: Iterable[Worker], settings: AllowanceSettings) -> float | None:
    """Return the estimated wait behind so many queued tokens for these eligible workers; null without any (A7).

    >>> one = Worker(worker_id="w", models=(), max_length=80, max_context_length=1024, speed_tok_per_s=4.0, measured=True)
    >>> estimated_wait_s(600, [one], AllowanceSettings())
    150.0
    """
    return wait_at_speed_s(queued_tokens, combined_speed_tok_per_s(eligible, settings))


def wait_time_s(estimated_wait_s: float | None, own_output_tokens: int, speed_tok_per_s: float) -> float | None:
    """Return the wait as the status route's ``wait_time`` gives it: the estimate plus the own output ÷ speed (A7).

    >>> wait_time_s(60.0, 500, 10.0), wait_time_s(None, 500, 0.0)
    (110.0, None)
    """
    if estimated_wait_s is None or speed_tok_per_s == 0:
        return None
    return estimated_wait_s + own_output_tokens / speed_tok_per_s


def finishes_in_time(tokens: int, eligible: Iterable[Worker], settings: AllowanceSettings) -> bool:
    """Tell whether some worker makes so many tokens within the server's 150 s for one job (A32).

    >>> one = Worker(worker_id="w", models=(), max_length=80, max_context_length=1024)
    >>> finishes_in_time(1500, [one], AllowanceSettings()), finishes_in_time(1501, [one], AllowanceSettings())
    (True, False)
    """
    return any(tokens / counted_speed_tok_per_s(worker, settings) <= JOB_TIME_LIMIT_S for worker in eligible)


def combined_speed_expression(settings: AllowanceSettings) -> pl.Expr:
    """Return the combined speed of the rows of a workers frame, for ``select`` or ``agg``: one Float64, 0 for no row.

    A running sum, because it adds from left to right as the scalar function does; Polars' own sum does not.

    >>> frame = pl.DataFrame({"measured": [True, False], "speed_tok_per_s": [7.5, 1.0], "threads": [2, None]})
    >>> frame.select(combined_speed_expression(AllowanceSettings())).item()
    17.5
    """
    speed = counted_speed_expression(settings)
    if settings.count_threads:
        speed = speed * pl.max_horizontal(pl.col("threads").fill_null(1), pl.lit(1))
    return speed.cum_sum().last().fill_null(0.0)


def estimated_wait_expression(queued_tokens: pl.Expr, speed_tok_per_s: pl.Expr) -> pl.Expr:
    """Return :func:`wait_at_speed_s` as an expression: Float64 seconds, null where the queue is null or the speed 0 or null.

    >>> frame = pl.DataFrame({"q": [600.0, 600.0, None], "s": [10.0, 0.0, 10.0]})
    >>> frame.select(estimated_wait_expression(pl.col("q"), pl.col("s"))).to_series().to_list()
    [60.0, None, None]
    """
    speed = speed_tok_per_s.cast(pl.Float64)
    return pl.when(speed > 0).then(quotient(queued_tokens, speed))
