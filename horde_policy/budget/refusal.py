"""A refusal by budget: which window, whether held or spent money is in the way, what would pass, and when (budgets.md §10)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from horde_policy.budget.money import money_text
from horde_policy.budget.reservation import Reservation, affordable_tokens
from horde_policy.budget.windows import Window

__all__ = ["Obstacle", "Refusal", "WindowState", "refusal_of"]

Obstacle = Literal["held", "open_cap", "spent", "too_large"]
"""``held``: money of open requests, gone in seconds; ``open_cap``: as many requests open as may be; ``spent``: until the
window ends; ``too_large``: as it was asked it holds more than the whole limit, so that waiting never helps."""

RETRY_HELD_S = 5
"""What a client is told to wait when money is only held: requests take seconds to minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowState:
    """One window of a budget as an admission saw it."""

    budget: str
    window: Window
    limit_pico: int
    spent_pico: int
    held_pico: int
    open_count: int
    open_cap: int | None = None

    @property
    def left_pico(self) -> int:
        """Return limit − spent − held; negative after an overspend or a lowered limit."""
        return self.limit_pico - self.spent_pico - self.held_pico


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request was not admitted; nothing of it is in the ledger.

    Attributes
    ----------
    state
        The binding window: that in whose way it stands longest.
    needed_pico
        The hold that did not fit.
    obstacle
        What is in the way.
    retry_at, retry_after_s
        When it may pass: the end of the window, or in a few seconds; both null where it never will.
    largest_limit_tokens
        The largest output limit that would be admitted now, in every window; 0 for none, null where any would be.
    largest_ever_tokens
        The same with nothing spent and nothing held; 0: no output limit will ever pass.
    """

    state: WindowState
    needed_pico: int
    obstacle: Obstacle
    retry_at: datetime | None
    retry_after_s: int | None
    largest_limit_tokens: int | None
    largest_ever_tokens: int | None

    def __bool__(self) -> bool:
        """Return false: a refusal is no admission."""
        return False

    @property
    def http_status(self) -> int:
        """Return 429 for what passes in seconds, else 402: clients retry any 429 in a loop.

        A request too large for the whole limit is a 402 as well.
        """
        return 429 if self.obstacle in ("held", "open_cap") else 402

    def sentence(self) -> str:
        """Return what the client reads, with every figure."""
        s = self.state
        of = f"the {s.window.kind} budget {s.budget!r}" if s.window.kind != "total" else f"the budget {s.budget!r}"
        limit, spent, held, needed = _figures(s.limit_pico, s.spent_pico, s.held_pico, self.needed_pico)
        money = f"limit {limit}, spent {spent}, held {held}, needed {needed}"
        return f"Refused by {of} ({money}): {self._why()} {self._help()}"

    def _why(self) -> str:
        if self.state.limit_pico == 0 and self.obstacle == "too_large":
            return "the limit is 0, which admits nothing, so waiting does not help."
        if self.obstacle == "too_large":
            return "the request holds more than the whole limit, so waiting does not help."
        if self.obstacle == "open_cap":
            are = "request is" if self.state.open_count == 1 else "requests are"
            return f"{self.state.open_count:,} {are} open, which is as many as may be; retry in {self.retry_after_s} s."
        if self.obstacle == "held":
            requests = "request" if self.state.open_count == 1 else "requests"
            return f"the money is held by {self.state.open_count:,} open {requests}; retry in {self.retry_after_s} s."
        if self.retry_at is None:
            return "the money is spent and the budget does not start again."
        return f"the money is spent; retry at {self.retry_at:%Y-%m-%d %H:%M:%S} UTC."

    def _help(self) -> str:
        if self.obstacle == "open_cap":
            return "A smaller output limit does not help."
        if self.largest_limit_tokens is None:
            return "Any output limit would pass."
        if self.largest_ever_tokens == 0:
            return "No output limit will ever pass."
        if self.largest_limit_tokens == 0:
            return "No output limit would pass now."
        return f"An output limit of up to {self.largest_limit_tokens:,} tokens would pass now."


def _figures(limit_pico: int, *parts: int) -> list[str]:
    """Return the limit and what stands against it, with as many decimals as it takes to see that it is exceeded."""
    for decimals in range(4, 13):
        unit: int = 10 ** (12 - decimals)
        limit, *shown = ((pico + unit // 2) // unit for pico in (limit_pico, *parts))
        if sum(shown) > limit or sum(parts) <= limit_pico:
            break
    return [money_text(pico, decimals=decimals if decimals > 4 else 0) for pico in (limit_pico, *parts)]


def refusal_of(
    reservation: Reservation, states: Sequence[WindowState], now: datetime, *, more_pico: int | None = None
) -> Refusal | None:
    """Return the refusal of a hold by the windows as they stand; null if every one of them admits it.

    The binding window is the one that stands in the way longest: never, then the latest end, then held money.
    ``more_pico`` is what is asked for where part of the hold is there already.
    """
    needed = reservation.hold_pico if more_pico is None else more_pico
    held_before = reservation.hold_pico - needed
    failing = [(obstacle, state) for state in states if (obstacle := _obstacle(reservation, state, needed)) is not None]
    if not failing:
        return None
    obstacle, binding = max(failing, key=lambda pair: _rank(*pair))
    now_tokens = _fitting(reservation, [(state.limit_pico, state.left_pico + held_before) for state in states])
    retry_at, retry_after_s = _retry(obstacle, binding, now)
    return Refusal(
        state=binding,
        needed_pico=needed,
        obstacle=obstacle,
        retry_at=retry_at,
        retry_after_s=retry_after_s,
        largest_limit_tokens=0 if obstacle == "open_cap" else now_tokens,
        largest_ever_tokens=_fitting(reservation, [(state.limit_pico, state.limit_pico) for state in states]),
    )


def _fitting(reservation: Reservation, limits: Sequence[tuple[int, int]]) -> int | None:
    """Return the largest output limit that so much money left fits under every limit; a limit of 0 allows nothing."""
    found = [0 if limit == 0 else affordable_tokens(reservation, left) for limit, left in limits]
    return min((tokens for tokens in found if tokens is not None), default=None)


def _obstacle(reservation: Reservation, state: WindowState, needed: int) -> Obstacle | None:
    if not reservation.is_free and (state.limit_pico == 0 or state.spent_pico + state.held_pico + needed > state.limit_pico):
        if state.limit_pico == 0 or reservation.hold_pico > state.limit_pico:
            return "too_large"
        return "spent" if state.spent_pico + reservation.hold_pico > state.limit_pico else "held"
    if needed < reservation.hold_pico:  # it is open already
        return None
    if state.open_cap is not None and state.open_count >= state.open_cap:
        return "open_cap"
    return None


def _rank(obstacle: Obstacle, state: WindowState) -> tuple[int, float, int]:
    end = state.window.end
    until = float("inf") if end is None else end.timestamp()
    order = {"open_cap": 0, "held": 1, "spent": 2, "too_large": 3}[obstacle]
    return order, until if obstacle == "spent" else 0.0, -state.left_pico


def _retry(obstacle: Obstacle, state: WindowState, now: datetime) -> tuple[datetime | None, int | None]:
    if obstacle == "too_large":
        return None, None
    if obstacle in ("held", "open_cap"):
        return None, RETRY_HELD_S
    end = state.window.end
    if end is None:
        return None, None
    wait = end - now
    return end, max(1, -(-int(wait.total_seconds() * 1000) // 1000))
