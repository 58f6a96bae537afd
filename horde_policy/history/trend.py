"""How a request's allowance went over a range of the history, and what it rested on: equal to the board's at every poll.

Not reported is null and draws no line; a gap is in :func:`horde_policy.history.reading.gaps_between`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.board.measure import check_context, check_size
from horde_policy.board.wait_range import MOST_GENERATIONS
from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema
from horde_policy.history.fleet_span import Counts, Flags, FleetSpan, Floats, WorkerSpan
from horde_policy.policy.allowance import allowance_expression
from horde_policy.settings import AllowanceSettings
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_LENGTH_TOKENS, MAX_LENGTH_LIMIT_TOKENS

__all__ = ["TREND_ROWS", "size_class", "trend", "trends"]

TREND_ROWS = Schema(
    "trend",
    {
        "at": Column(UTC_INSTANT, "UTC", text="the poll; what it says holds until the next one"),
        "state": Column(pl.String, text="no_worker, too_large, unknown, full, falling or floor"),
        "allowance_tokens": Column(pl.Int64, "tokens", null="the queue is not reported"),
        "allowance_at_high_tokens": Column(pl.Int64, "tokens", null="the wait at worst is not known, or was not asked for"),
        "wait_named_s": Column(pl.Float64, "s", null="no eligible worker, or the queue not reported"),
        "wait_high_s": Column(pl.Float64, "s", null="as wait_named_s, or the horde-wide total not reported or not asked for"),
        "queued_tokens": Column(pl.Float64, "tokens", null="not reported"),
        "speed_tok_per_s": Column(pl.Float64, "tok/s", text="combined, of the eligible workers"),
        "eligible_workers": Column(pl.Int64, "workers"),
        "open_workers": Column(pl.Int64, "workers", text="online, not in maintenance, owner not flagged"),
        "largest_free_request_tokens": Column(pl.Int64, "tokens", null="no worker takes any size, or the queue not reported"),
    },
    sort=("at",),
)
"""One row a poll, as :class:`horde_policy.board.measure.Measure` has it."""


def trend(
    span: FleetSpan,
    models: tuple[str, ...],
    settings: AllowanceSettings,
    *,
    max_length: int = DEFAULT_MAX_LENGTH_TOKENS,
    context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS,
) -> pl.DataFrame:
    """Return what a request of these models met at each poll of a range: frame :data:`TREND_ROWS`.

    Parameters
    ----------
    span
        From :func:`horde_policy.history.fleet_span.load_span`. With the whole list and the horde-wide queue the worst wait is
        told too; without them its columns are null.
    models
        The names that the request gives; empty for any model.
    settings, max_length, context_tokens
        As for :func:`horde_policy.board.rows.make_board`.

    Raises
    ------
    InputError
        The size or the context is out of its range, or the span was read for other models.
    """
    check_size(max_length)
    request = _Request(models, settings, max_length, check_context(context_tokens))
    pool = _add_up(span, request)
    queued = _named_tokens(span, request, pool)
    known = ~np.isnan(queued)
    none_eligible = pool.eligible == 0
    wait = _divided(queued, pool.speed)
    allowance = _allowance(wait, none_eligible, settings)
    high = _high_wait(span, pool, known)
    columns = {
        "at": span.polls["at"],
        "state": _states(pool, allowance, settings),
        "allowance_tokens": allowance,
        "allowance_at_high_tokens": _allowance(high, none_eligible, settings),
        "wait_named_s": _nulled(wait),
        "wait_high_s": _nulled(high),
        "queued_tokens": _nulled(queued),
        "speed_tok_per_s": pool.speed,
        "eligible_workers": pool.eligible,
        "open_workers": pool.open_,
        "largest_free_request_tokens": _largest_free(pool, queued, settings),
    }
    return TREND_ROWS.checked(pl.DataFrame(columns, schema=TREND_ROWS.polars_schema()))


def trends(
    span: FleetSpan,
    models: Iterable[str],
    settings: AllowanceSettings,
    *,
    max_length: int = DEFAULT_MAX_LENGTH_TOKENS,
    context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS,
) -> dict[str, pl.DataFrame]:
    """Return each model's trend on its own, by name; see :func:`trend`."""
    return {model: trend(span, (model,), settings, max_length=max_length, context_tokens=context_tokens) for model in models}


def size_class(span: FleetSpan, max_length: int, context_tokens: int) -> int:
    """Return the largest size that meets the same at each poll of the range as this one: that exactly the same workers take.

    Who takes a size depends on the declared sizes alone, of which a horde has few, so what is computed for one size of a class
    holds for all of it.

    Raises
    ------
    InputError
        The size or the context is out of its range.
    """
    check_size(max_length)
    declared = span.profiles.sizes(check_context(context_tokens))
    return int(declared.min(where=declared >= max_length, initial=MAX_LENGTH_LIMIT_TOKENS))


@dataclass(frozen=True, slots=True)
class _Request:
    models: tuple[str, ...]
    settings: AllowanceSettings
    max_length: int
    context_tokens: int


@dataclass(slots=True)
class _Pool:
    """A request's pool at each poll: workers open and eligible, their combined speed, and the same for each declared size."""

    open_: Counts
    eligible: Counts
    speed: Floats
    served_by: dict[str, Flags]
    reach: dict[str, Flags]
    levels: tuple[int, ...]
    level_there: npt.NDArray[np.bool_]
    level_speed: npt.NDArray[np.float64]


def _add_up(span: FleetSpan, request: _Request) -> _Pool:
    """Add the workers up in their order, as the policy does, so that sums are the same to the last bit."""
    height = span.height
    serves = np.append(span.profiles.serving(request.models), False)  # of profile −1, a worker that is gone
    sizes = np.append(span.profiles.sizes(request.context_tokens), 0)
    levels = tuple(sorted({int(size) for size in np.unique(sizes[serves]) if size}, reverse=True))
    pool = _Pool(
        open_=np.zeros(height, np.int64),
        eligible=np.zeros(height, np.int64),
        speed=np.zeros(height),
        served_by={model: np.zeros(height, np.bool_) for model in request.models},
        reach={model: np.zeros(height, np.bool_) for model in (span.models if span.horde_wide_tokens is not None else ())},
        levels=levels,
        level_there=np.zeros((len(levels), height), np.bool_),
        level_speed=np.zeros((len(levels), height)),
    )
    for worker in span.workers:
        open_ = worker.open_ & serves[worker.profile]
        if open_.any():
            _add(span, request, pool, worker, open_, sizes[worker.profile])
    return pool


def _add(span: FleetSpan, request: _Request, pool: _Pool, worker: WorkerSpan, open_: Flags, size: Counts) -> None:
    there = slice(worker.first, None)
    speed = span.counted(worker, request.settings)
    eligible = open_ & (size >= request.max_length)
    pool.open_[there] += open_
    pool.eligible[there] += eligible
    pool.speed[there] += np.where(eligible, speed, 0.0)
    for place, level in enumerate(pool.levels):
        takes = open_ & (size >= level)
        if takes.any():
            pool.level_there[place, there] |= open_ & (size == level)
            pool.level_speed[place, there] += np.where(takes, speed, 0.0)
    for number in np.unique(worker.profile[open_]):
        of_profile = worker.profile == number
        for model in span.profiles.models[number]:
            if model in pool.served_by:
                pool.served_by[model][there] |= open_ & of_profile
            if model in pool.reach:
                pool.reach[model][there] |= eligible & of_profile


def _named_tokens(span: FleetSpan, request: _Request, pool: _Pool) -> Floats:
    """Return the queue of the models that the request names, as :meth:`horde_policy.board.pool.Fleet.named_tokens` has it."""
    total = np.zeros(span.height)
    known = span.models_known.copy()
    counted = np.zeros(span.height, np.bool_)
    for model in request.models or sorted(span.models):
        listed = span.listed(model)
        # One that is neither listed nor served adds nothing: none of the eligible workers could take its work.
        counts = listed.listed | (pool.served_by[model] if request.models else False)
        counted |= counts
        known &= ~counts | ~np.isnan(listed.queued_tokens)
        total += np.where(counts & ~np.isnan(listed.queued_tokens), listed.queued_tokens, 0.0)
    if request.models:
        known &= counted
    return np.where(known, total, np.nan)


def _high_wait(span: FleetSpan, pool: _Pool, known: Flags) -> Floats:
    """Return the wait of the high scenario, as :class:`horde_policy.board.wait_range.WaitRange` has it; NaN: not known."""
    if span.horde_wide_tokens is None or not span.whole_list:
        return np.full(span.height, np.nan)
    reached, listed_tokens = np.zeros(span.height), np.zeros(span.height)
    for model in sorted(span.models):
        listed = span.models[model]
        queued = np.where(listed.listed & ~np.isnan(listed.queued_tokens), listed.queued_tokens, 0.0)
        jobs = np.where(np.isnan(listed.jobs), MOST_GENERATIONS, np.clip(listed.jobs, 1.0, MOST_GENERATIONS))
        reached += np.where(pool.reach[model], queued * jobs, 0.0)
        listed_tokens += queued
    unlisted = MOST_GENERATIONS * np.maximum(0.0, span.horde_wide_tokens - listed_tokens)
    return _divided(np.where(known, reached + unlisted, np.nan), pool.speed)


def _divided(tokens: Floats, speed: Floats) -> Floats:
    wait = np.full(tokens.size, np.nan)
    np.divide(tokens, speed, out=wait, where=speed > 0)
    return wait


def _nulled(values: Floats) -> pl.Series:
    return pl.Series(values).fill_nan(None)


def _allowance(wait: Floats, none_eligible: Flags, settings: AllowanceSettings) -> pl.Series:
    """Return the allowance at these waits: the floor without an eligible worker (A5), null where the wait is not known."""
    frame = pl.DataFrame({"wait": _nulled(wait), "none": none_eligible})
    told = pl.col("none") | pl.col("wait").is_not_null()
    return frame.select(allowance=pl.when(told).then(allowance_expression(pl.col("wait"), settings)))["allowance"]


def _states(pool: _Pool, allowance: pl.Series, settings: AllowanceSettings) -> pl.Series:
    frame = pl.DataFrame({"open": pool.open_, "eligible": pool.eligible, "allowance": allowance})
    state = (
        pl.when(pl.col("open") == 0)
        .then(pl.lit("no_worker"))
        .when(pl.col("eligible") == 0)
        .then(pl.lit("too_large"))
        .when(pl.col("allowance").is_null())
        .then(pl.lit("unknown"))
        .when(pl.col("allowance") >= settings.ceiling_tokens)
        .then(pl.lit("full"))
        .when(pl.col("allowance") <= settings.floor_tokens)
        .then(pl.lit("floor"))
        .otherwise(pl.lit("falling"))
    )
    return frame.select(state.alias("state"))["state"]


def _largest_free(pool: _Pool, queued: Floats, settings: AllowanceSettings) -> pl.Series:
    """Return the largest free size at each poll, as :func:`horde_policy.policy.largest_free.largest_free_request` has it."""
    height = queued.size
    found = np.zeros(height, np.int64)
    below = np.zeros((len(pool.levels), height), np.int64)
    lower = np.zeros(height, np.int64)
    for place in reversed(range(len(pool.levels))):
        below[place] = lower
        lower = np.where(pool.level_there[place], pool.levels[place], lower)
    for place, level in enumerate(pool.levels):
        there = pool.level_there[place]
        wait = _divided(queued, pool.level_speed[place])
        allowance = _allowance(wait, np.zeros(height, np.bool_), settings).fill_null(0).to_numpy()
        free = there & (found == 0) & (allowance > below[place])
        found = np.where(free, np.minimum(level, allowance), found)
    return pl.Series(np.where(np.isnan(queued), 0, found)).replace(0, None)
