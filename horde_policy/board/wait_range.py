"""The estimated wait from public figures: a range of three scenarios, each with its reasoning (horde.md §8.3).

The public list counts a request's size once whatever its ``n``, counts a request that names several models on each of them, and
one that names no model on none; it counts what is too large for the workers at hand, and not what they could take of other
models. No public figure therefore bounds the queue of A7. The three scenarios are readings of what is known, not bounds:
they held the truth in every recorded case (``tests/unit/board/test_wait_range.py``).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["MOST_GENERATIONS", "ListedQueue", "Scenario", "ScenarioName", "WaitRange", "high_listed_tokens", "wait_range"]

MOST_GENERATIONS = 20
"""One request may ask for at most this many generations (``n``, horde.md §2); the list counts its size once all the same."""

ScenarioName = Literal["low", "named", "high"]


@dataclass(frozen=True, slots=True)
class ListedQueue:
    """What the list says of one model: tokens queued (each request once) and jobs waiting or in flight; null: not reported."""

    queued_tokens: float | None
    jobs: float | None

    @property
    def most_tokens(self) -> float:
        """The most that these figures can stand for: the tokens, as often as one request may hide generations.

        A model whose queue is not reported adds nothing here: its requests are in the horde-wide total.

        >>> ListedQueue(1132.0, 5.0).most_tokens, ListedQueue(100.0, 0.0).most_tokens, ListedQueue(100.0, 40.0).most_tokens
        (5660.0, 100.0, 2000.0)
        >>> ListedQueue(100.0, None).most_tokens, ListedQueue(None, 3.0).most_tokens
        (2000.0, 0.0)
        """
        if self.queued_tokens is None:
            return 0.0
        times = MOST_GENERATIONS if self.jobs is None else min(MOST_GENERATIONS, max(1.0, self.jobs))
        return self.queued_tokens * times


@dataclass(frozen=True, slots=True)
class Scenario:
    """One reading: its queue and wait (null: not known) and why it is read so."""

    name: ScenarioName
    queued_tokens: float | None
    wait_s: float | None
    reasoning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRange:
    """The three scenarios of one pool of eligible workers.

    Attributes
    ----------
    speed_tok_per_s
        The combined speed of the eligible workers, above 0.
    named_tokens
        The listed queue of the models asked for; of all listed models when the request names none.
    high_listed_tokens
        Σ over every model of the eligible workers of queued × min(20, max(1, jobs)).
    high_unlisted_tokens
        20 × what the horde-wide total holds beyond the list; null without that total.

    Examples
    --------
    >>> waits = WaitRange(speed_tok_per_s=50.0, named_tokens=1000.0, high_listed_tokens=4000.0, high_unlisted_tokens=None)
    >>> waits.low_s, waits.named_s, waits.high_s
    (0.0, 20.0, None)
    >>> waits.scenario("high").reasoning
    'Not known: the horde-wide total, which holds what the list leaves out, is not reported.'
    """

    speed_tok_per_s: float
    named_tokens: float
    high_listed_tokens: float
    high_unlisted_tokens: float | None

    @property
    def low_s(self) -> float:
        """The wait if nothing that is queued could go to these workers."""
        return 0.0

    @property
    def named_s(self) -> float:
        """The wait by the listed queue of the models asked for."""
        return self.named_tokens / self.speed_tok_per_s

    @property
    def high_tokens(self) -> float | None:
        """The queue of the high scenario; null without the horde-wide total."""
        return None if self.high_unlisted_tokens is None else self.high_listed_tokens + self.high_unlisted_tokens

    @property
    def high_s(self) -> float | None:
        """The wait of the high scenario; null without the horde-wide total."""
        tokens = self.high_tokens
        return None if tokens is None else tokens / self.speed_tok_per_s

    @property
    def worst_s(self) -> float | None:
        """What a board calls "at worst": the larger of named and high, null if high is.

        Named is the larger only where it counts models that no eligible worker serves: several models at a size that
        only some of their workers take, or any model.

        >>> WaitRange(speed_tok_per_s=10.0, named_tokens=900.0, high_listed_tokens=200.0, high_unlisted_tokens=0.0).worst_s
        90.0
        """
        high_s = self.high_s
        return None if high_s is None else max(self.named_s, high_s)

    def scenario(self, name: ScenarioName) -> Scenario:
        """Return one scenario with its reasoning as a sentence."""
        speed = f"{self.speed_tok_per_s:,.1f} tok/s"
        if name == "low":
            return Scenario("low", 0.0, 0.0, "All that is queued may be too large for these workers, or bound for others.")
        if name == "named":
            text = f"The {self.named_tokens:,.0f} tokens that the list names for what is asked, each request once, ÷ {speed}."
            return Scenario("named", self.named_tokens, self.named_s, text)
        if self.high_unlisted_tokens is None:
            text = "Not known: the horde-wide total, which holds what the list leaves out, is not reported."
            return Scenario("high", None, None, text)
        text = (
            f"({self.high_listed_tokens:,.0f} tokens if each model that these workers serve hides as many generations as it has "
            f"jobs, at most {MOST_GENERATIONS} a request, + {self.high_unlisted_tokens:,.0f} for what the horde-wide total "
            f"holds beyond the list) ÷ {speed}."
        )
        return Scenario("high", self.high_tokens, self.high_s, text)


def high_listed_tokens(reach: Iterable[ListedQueue]) -> float:
    """Return Σ queued × min(20, max(1, jobs)) over the models that the eligible workers serve.

    >>> high_listed_tokens([ListedQueue(100.0, 2.0), ListedQueue(50.0, 0.0)])
    250.0
    """
    return math.fsum(queue.most_tokens for queue in reach)


def wait_range(
    *,
    speed_tok_per_s: float,
    named_tokens: float | None,
    high_listed_tokens: float,
    listed_tokens: float,
    horde_wide_tokens: float | None,
) -> WaitRange | None:
    """Return the three scenarios of a pool; null without an eligible worker or with the queue not reported (design §1).

    Parameters
    ----------
    speed_tok_per_s
        Combined speed of the eligible workers; 0 for none.
    named_tokens
        The listed queue of the models asked for; null when not reported.
    high_listed_tokens
        Of :func:`high_listed_tokens`, over every model that the eligible workers serve.
    listed_tokens
        Σ ``queued`` over the whole list.
    horde_wide_tokens
        ``queued_tokens`` of the performance totals; null when not reported.

    Examples
    --------
    >>> waits = wait_range(
    ...     speed_tok_per_s=53.9, named_tokens=1132.0, high_listed_tokens=5660.0, listed_tokens=4410.0, horde_wide_tokens=4430.0
    ... )
    >>> round(waits.named_s, 3), round(waits.high_s, 3)
    (21.002, 112.43)
    """
    if named_tokens is None or speed_tok_per_s <= 0:
        return None
    unlisted = None if horde_wide_tokens is None else MOST_GENERATIONS * max(0.0, horde_wide_tokens - listed_tokens)
    return WaitRange(
        speed_tok_per_s=speed_tok_per_s,
        named_tokens=named_tokens,
        high_listed_tokens=high_listed_tokens,
        high_unlisted_tokens=unlisted,
    )
