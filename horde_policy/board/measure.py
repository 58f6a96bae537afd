"""What one request meets at one size: its state, pool, wait, allowance, largest free request and notes (A2–A9; design §1)."""

from dataclasses import dataclass

from horde_policy.board.notes import Note, notes_for
from horde_policy.board.pool import Fleet, Pool
from horde_policy.board.states import State, allowance_range, state_of
from horde_policy.board.wait_range import WaitRange
from horde_policy.errors import InputError
from horde_policy.policy.largest_free import largest_free_request
from horde_policy.policy.wait import combined_speed_tok_per_s
from horde_policy.policy.worker import is_measured
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, MAX_LENGTH_LIMIT_TOKENS

__all__ = ["MAX_CONTEXT_LIMIT_TOKENS", "Measure", "check_context", "check_size", "measure", "measure_pool"]

MAX_CONTEXT_LIMIT_TOKENS = 1_048_576
"""The API accepts no larger context (horde.md §2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One request's allowance at one size, with all it rests on; null is not known.

    Attributes
    ----------
    models
        The names the request gives; empty for a request that names none (any model).
    max_length, max_context_length
        The size and the context asked, in tokens: the context is never below the size, as the API refuses that.
    state
        See :func:`horde_policy.board.states.state_of`.
    open_workers
        Online workers of these models outside maintenance, owner not flagged.
    eligible_workers, unmeasured_workers
        Those that take this size, and those among them whose speed is assumed (A8).
    speed_tok_per_s
        Combined speed of the eligible workers; 0 without one.
    queued_tokens
        The listed queue of these models; null when not reported.
    waits
        The three scenarios; null without an eligible worker or with the queue not reported.
    allowance_tokens
        By the named queue; the floor without an eligible worker (A5).
    allowance_at_high_tokens, allowance_at_low_tokens
        The ends of its range.
    largest_free_request_tokens
        By the named queue, whatever the size asked; null where no worker takes any size or the queue is not reported.
    notes
        What a reader should know.
    """

    models: tuple[str, ...]
    max_length: int
    max_context_length: int
    state: State
    open_workers: int
    eligible_workers: int
    unmeasured_workers: int
    speed_tok_per_s: float
    queued_tokens: float | None
    waits: WaitRange | None
    allowance_tokens: int | None
    allowance_at_high_tokens: int | None
    allowance_at_low_tokens: int | None
    largest_free_request_tokens: int | None
    notes: tuple[Note, ...] = ()

    @property
    def model(self) -> str | None:
        """The name, when the request gives exactly one."""
        return self.models[0] if len(self.models) == 1 else None

    @property
    def short_of_context(self) -> bool:
        """Whether nobody takes it for its context, though the size itself is taken at a smaller one."""
        return any(note.code == "context_too_large" for note in self.notes)

    @property
    def asked(self) -> str:
        """The size asked for in words, with the context where that is what nobody takes."""
        size = f"{self.max_length:,} tokens"
        return f"{size} at a context of {self.max_context_length:,}" if self.short_of_context else size


def check_size(max_length: object) -> int:
    """Return the size if it is a whole number from 1 to 16384 (A23).

    Raises
    ------
    InputError
        It is not.

    Examples
    --------
    >>> check_size(0)
    Traceback (most recent call last):
    horde_policy.errors.InputError: max_length: 0 must be a whole number from 1 to 16384 tokens (A23)
    """
    if isinstance(max_length, bool) or not isinstance(max_length, int) or not 1 <= max_length <= MAX_LENGTH_LIMIT_TOKENS:
        rule = f"must be a whole number from 1 to {MAX_LENGTH_LIMIT_TOKENS} tokens (A23)"
        raise InputError("max_length", "", max_length, rule)
    return max_length


def check_context(context_tokens: object) -> int:
    """Return the context setting if it is a whole number from 1 to 1048576, the API's largest.

    Raises
    ------
    InputError
        It is not.

    Examples
    --------
    >>> check_context(2048)
    2048
    """
    ok = not isinstance(context_tokens, bool) and isinstance(context_tokens, int)
    if not ok or not isinstance(context_tokens, int) or not 1 <= context_tokens <= MAX_CONTEXT_LIMIT_TOKENS:
        rule = f"must be a whole number from 1 to {MAX_CONTEXT_LIMIT_TOKENS} tokens"
        raise InputError("max_context_length", "", context_tokens, rule)
    return context_tokens


def measure(fleet: Fleet, models: tuple[str, ...], max_length: int, context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS) -> Measure:
    """Return what a plain request of these models (none: any) meets at a size and a context setting.

    Raises
    ------
    InputError
        The size is not from 1 to 16384, or the context not from 1 to 1048576.
    """
    check_size(max_length)
    return measure_pool(fleet, fleet.pool(models, check_context(context_tokens)), max_length)


def measure_pool(fleet: Fleet, pool: Pool, max_length: int, *, queue_change_tokens: float = 0.0) -> Measure:
    """Return what a request of a pool already looked up meets at a size; for several sizes of one request.

    With ``queue_change_tokens`` the figures are those of a queue longer or shorter by so many tokens, down to none.
    """
    settings = fleet.settings
    eligible = pool.eligible(max_length)
    waits = fleet.waits(pool.models, eligible, queue_change_tokens=queue_change_tokens)
    allowance = allowance_range(waits, eligible_workers=len(eligible), settings=settings)
    listed_tokens = fleet.named_tokens(pool.models)
    queued_tokens = None if listed_tokens is None else max(0.0, listed_tokens + queue_change_tokens)
    largest_free = largest_free_request(pool.workers, queued_tokens, settings, max_context_length=pool.context_tokens)
    return Measure(
        models=pool.models,
        max_length=max_length,
        max_context_length=max(pool.context_tokens, max_length),
        state=state_of(
            open_workers=len(pool.workers),
            eligible_workers=len(eligible),
            allowance_tokens=allowance.named,
            settings=settings,
        ),
        open_workers=len(pool.workers),
        eligible_workers=len(eligible),
        unmeasured_workers=sum(not is_measured(worker) for worker in eligible),
        speed_tok_per_s=combined_speed_tok_per_s(eligible, settings),
        queued_tokens=queued_tokens,
        waits=waits,
        allowance_tokens=allowance.named,
        allowance_at_high_tokens=allowance.at_high,
        allowance_at_low_tokens=allowance.at_low,
        largest_free_request_tokens=largest_free,
        notes=notes_for(fleet, pool, eligible, max_length=max_length, waits=waits, largest_free_tokens=largest_free),
    )
