"""Why polls are missing: what kept a recorder from storing them, in the order in which it happened, within bounds."""

from collections import deque
from dataclasses import dataclass

__all__ = ["NOTABLE_WAIT_S", "LostTime"]

NOTABLE_WAIT_S = 3.0
"""A store that is waited for so long within one poll is told of."""
LONGEST_REASON = 300
FIRST_KEPT = 4
LAST_KEPT = 4


@dataclass(slots=True)
class _Reason:
    text: str
    seconds: float = 0.0

    def told(self) -> str:
        text = self.text if len(self.text) <= LONGEST_REASON else f"{self.text[: LONGEST_REASON - 1]}…"
        return f"{text} for {self.seconds:.0f} s" if self.seconds else text


class LostTime:
    """The reasons since the last stored poll: each once, where it came first; the first four and the last four are kept.

    Examples
    --------
    >>> lost = LostTime()
    >>> lost.add("the store was locked", 12.0)
    >>> lost.add("the source gave no answer: h: no answer within 10 s")
    >>> lost.add("the store was locked", 8.0)
    >>> lost.told()
    'the store was locked for 20 s; the source gave no answer: h: no answer within 10 s'
    """

    def __init__(self) -> None:
        self._first: list[_Reason] = []
        self._last: deque[_Reason] = deque()
        self._left_out = 0

    def add(self, text: str, seconds: float = 0.0) -> None:
        """Note a reason, and the seconds that it took where that is known: they add up."""
        for reason in (*self._first, *self._last):
            if reason.text == text:
                reason.seconds += seconds
                return
        if len(self._first) < FIRST_KEPT:
            self._first.append(_Reason(text, seconds))
            return
        self._last.append(_Reason(text, seconds))
        if len(self._last) > LAST_KEPT:
            self._last.popleft()
            self._left_out += 1

    def clear(self) -> None:
        """Forget all: a poll was stored."""
        self._first.clear()
        self._last.clear()
        self._left_out = 0

    def told(self) -> str | None:
        """Return all reasons as one sentence; null where none is known."""
        between = [f"{self._left_out} more reasons"] if self._left_out else []
        told = [*(one.told() for one in self._first), *between, *(one.told() for one in self._last)]
        return "; ".join(told) or None
