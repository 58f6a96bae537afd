"""What one request meets at one size: its state, pool, wait, allowance and notes (A2–A9; design §1, "State of a model at a size")."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from horde_policy.board.wait_range import WaitRange
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.settings import AllowanceSettings

__all__ = ["BAD_STATES", "STATES", "Measure", "Note", "State", "state_of"]

State = Literal["no_worker", "too_large", "unknown", "full", "falling", "floor"]

STATES: tuple[State, ...] = ("no_worker", "too_large", "unknown", "full", "falling", "floor")
"""The states in the order in which the first that holds is taken (design §1)."""

BAD_STATES: frozenset[State] = frozenset({"no_worker", "floor"})
"""The only states that are bad news; ``too_large`` is a fact about the size."""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing a reader should know about a figure: a word for machines and a sentence, which may hold hostile names."""

    code: str
    text: str


def state_of(
    *,
    open_workers: int,
    eligible_workers: int,
    queue_known: bool,
    allowance_tokens: int | None,
    settings: AllowanceSettings,
) -> State:
    """Return the state of a model at a size: the first that holds (design §1).

    Parameters
    ----------
    open_workers
        Online workers of the model that are not in maintenance and whose owner is not flagged.
    eligible_workers
        Those of them that take this size.
    queue_known
        Whether the queue is reported.
    allowance_tokens
        The allowance by the named queue; used only with an eligible worker and a known queue.

    Examples
    --------
    >>> state_of(
    ...     open_workers=2, eligible_workers=0, queue_known=False, allowance_tokens=512, settings=AllowanceSettings()
    ... )
    'too_large'
    """
    if open_workers == 0:
        return "no_worker"
    if eligible_workers == 0:
        return "too_large"
    if not queue_known or allowance_tokens is None:
        return "unknown"
    if allowance_tokens >= settings.ceiling_tokens:
        return "full"
    return "floor" if allowance_tokens <= settings.floor_tokens else "falling"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One request's allowance at one size, with all it rests on; null is not known.

    Attributes
    ----------
    models
        The names the request gives; null for a request that names none (any model).
    max_length, max_context_length
        The size and the context asked, in tokens: the context is never below the size, as the API refuses that.
    state
        See :func:`state_of`.
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
        By the named queue; null where no worker takes any size or the queue is not reported.
    notes
        What a reader should know.
    """

    models: tuple[str, ...] | None
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
        return self.models[0] if self.models is not None and len(self.models) == 1 else None

    def to_json(self) -> Mapping[str, object]:
        """Return the fields of an entry of ``snapshot`` and ``allowance``, floats unrounded (issue 2, "Must show" 1)."""
        waits = self.waits
        return {
            "model": self.model,
            "state": self.state,
            "max_length": self.max_length,
            "eligible_workers": self.eligible_workers,
            "speed_tok_per_s": self.speed_tok_per_s,
            "queued_tokens": self.queued_tokens,
            "estimated_wait_s": None
            if waits is None
            else {"low": waits.low_s, "named": waits.named_s, "high": waits.high_s},
            "allowance_tokens": self.allowance_tokens,
            "allowance_range_tokens": [self.allowance_at_high_tokens, self.allowance_at_low_tokens],
            "largest_free_request_tokens": self.largest_free_request_tokens,
            "notes": [note.text for note in self.notes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowanceRange:
    """The allowance by each scenario of the wait; null where the scenario is not known."""

    named: int | None
    at_high: int | None
    at_low: int | None


def allowance_range(waits: WaitRange | None, *, eligible_workers: int, settings: AllowanceSettings) -> AllowanceRange:
    """Return the allowance at the named wait and at both ends: all the floor without an eligible worker (A5).

    >>> allowance_range(None, eligible_workers=0, settings=AllowanceSettings())
    AllowanceRange(named=512, at_high=512, at_low=512)
    >>> allowance_range(None, eligible_workers=1, settings=AllowanceSettings())
    AllowanceRange(named=None, at_high=None, at_low=None)
    """
    if eligible_workers == 0:
        floor = free_output_allowance(None, settings)
        return AllowanceRange(named=floor, at_high=floor, at_low=floor)
    if waits is None:
        return AllowanceRange(named=None, at_high=None, at_low=None)
    high_s = waits.high_s
    return AllowanceRange(
        named=free_output_allowance(waits.named_s, settings),
        at_high=None if high_s is None else free_output_allowance(high_s, settings),
        at_low=free_output_allowance(waits.low_s, settings),
    )
