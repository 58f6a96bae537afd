"""The state of a model at a size, in the order of design §1, and the allowance by each scenario of its wait (A2–A5)."""

from dataclasses import dataclass
from typing import Literal

from horde_policy.board.wait_range import WaitRange
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.settings import AllowanceSettings

__all__ = ["BAD_STATES", "STATES", "AllowanceRange", "State", "allowance_range", "state_of"]

State = Literal["no_worker", "too_large", "unknown", "full", "falling", "floor"]

STATES: tuple[State, ...] = ("no_worker", "too_large", "unknown", "full", "falling", "floor")
"""The states in the order in which the first that holds is taken."""

BAD_STATES: frozenset[State] = frozenset({"no_worker", "floor"})
"""The only states that are bad news; ``too_large`` is a fact about the size."""


def state_of(*, open_workers: int, eligible_workers: int, allowance_tokens: int | None, settings: AllowanceSettings) -> State:
    """Return the state of a model at a size: the first that holds.

    Parameters
    ----------
    open_workers
        Online workers of the model that are not in maintenance and whose owner is not flagged.
    eligible_workers
        Those of them that take this size.
    allowance_tokens
        By the named queue; null when the queue is not reported. Not looked at without an eligible worker.
    settings
        Tell the ceiling from the floor. Where both are the same number the state is ``full``.

    Examples
    --------
    >>> state_of(open_workers=2, eligible_workers=0, allowance_tokens=512, settings=AllowanceSettings())
    'too_large'
    """
    if open_workers == 0:
        return "no_worker"
    if eligible_workers == 0:
        return "too_large"
    if allowance_tokens is None:
        return "unknown"
    if allowance_tokens >= settings.ceiling_tokens:
        return "full"
    return "floor" if allowance_tokens <= settings.floor_tokens else "falling"


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
