"""Stopping streams at the limit: a running count of output tokens that says when (B13).

:class:`RunningCount` counts a chain of requests under one budget inside one program: a session. :class:`StreamGuard` does
it on a ledger that copies of the program share: a stream that outgrows its hold holds more, step by step, or stops.
"""

import threading
from dataclasses import dataclass

from horde_policy.budget.holding import Hold
from horde_policy.budget.ledger import Ledger
from horde_policy.budget.money import ATTO_PER_PICO, MAX_LIMIT_PICO, pico_up, to_pico
from horde_policy.budget.prices import Price
from horde_policy.budget.refusal import Refusal
from horde_policy.budget.reservation import resized
from horde_policy.errors import InputError

__all__ = ["RunningCount", "StreamGuard"]

STEP_TOKENS = 256


@dataclass(slots=True)
class _Running:
    price: Price
    input_tokens: int
    output_tokens: int = 0

    def cost_atto(self) -> int:
        return (
            self.price.input_atto(self.input_tokens)
            + self.price.fee_atto
            + self.price.output_atto(self.output_tokens, self.input_tokens)
        )


class RunningCount:
    """Counts the money of a chain of requests as their output comes, and says stop at the limit (B13).

    The input of a request counts when it begins, each output token when it is added. What was counted is replaced by the
    real cost at its end. Beyond the limit can go: the tokens of the last addition, and what the input was under-estimated.

    Parameters
    ----------
    limit_usd
        The limit of the session in dollars.

    Examples
    --------
    >>> from horde_policy.budget.prices import Rates
    >>> rates = Rates(input=3 * 10**12, output=15 * 10**12, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    >>> count = RunningCount("0.001")
    >>> count.begin("a", Price(provider="p", model="m", rates=rates), input_tokens=100)
    True
    >>> count.tokens_left("a")
    46
    >>> count.add("a", 46), count.add("a", 1)
    (False, True)
    """

    def __init__(self, limit_usd: object) -> None:
        self._limit_pico = to_pico(limit_usd, "limit", most=MAX_LIMIT_PICO)
        self._spent_pico = 0
        self._running: dict[str, _Running] = {}
        self._lock = threading.Lock()

    @property
    def spent_pico(self) -> int:
        """Return the real costs of the requests that have ended."""
        return self._spent_pico

    @property
    def counted_pico(self) -> int:
        """Return real costs and what the running requests have cost so far, rounded up."""
        with self._lock:
            return self._counted()

    @property
    def stopped(self) -> bool:
        """Return whether the limit is reached."""
        with self._lock:
            return self._counted() >= self._limit_pico

    def begin(self, key: str, price: Price, *, input_tokens: int) -> bool:
        """Count a request's input; return whether it may go out: its input fits and the limit is not reached.

        Raises
        ------
        InputError
            A request of this key is running, or a negative number of tokens.
        """
        running = _Running(price, _tokens(input_tokens))
        with self._lock:
            if key in self._running:
                raise InputError("running count", "key", key, "is running already")
            counted = self._counted()
            if not price.is_free and (counted >= self._limit_pico or counted + pico_up(running.cost_atto()) > self._limit_pico):
                return False
            self._running[key] = running
            return True

    def add(self, key: str, output_tokens: int) -> bool:
        """Count output tokens as they come; return whether to stop the stream: the limit is reached."""
        with self._lock:
            running = self._of(key)
            running.output_tokens += _tokens(output_tokens)
            return not running.price.is_free and self._counted() >= self._limit_pico

    def tokens_left(self, key: str) -> int | None:
        """Return how many output tokens of a request fit under the limit still; null: any number, they are free."""
        with self._lock:
            running = self._of(key)
            per_token = running.price.rates_at(running.input_tokens).dear_output
            if per_token == 0:
                return None
            return max(0, (self._limit_pico - self._counted()) * ATTO_PER_PICO // per_token)

    def end(self, key: str, cost_pico: int | None = None) -> None:
        """Replace what was counted of a request by its real cost; without one the count stands."""
        if cost_pico is not None and (isinstance(cost_pico, bool) or not isinstance(cost_pico, int) or cost_pico < 0):
            raise InputError("running count", "cost", cost_pico, "must be a whole number of pico-dollars of at least 0")
        with self._lock:
            running = self._of(key)
            del self._running[key]
            self._spent_pico += pico_up(running.cost_atto()) if cost_pico is None else cost_pico

    def _counted(self) -> int:
        return self._spent_pico + pico_up(sum(running.cost_atto() for running in self._running.values()))

    def _of(self, key: str) -> _Running:
        if key not in self._running:
            raise InputError("running count", "key", key, "is not running")
        return self._running[key]


class StreamGuard:
    """Keeps the hold of a running stream ahead of its output, on a shared ledger; says stop when the budget has no more.

    The hold grows before its reserved tokens are used up, so that what is held covers what came and one more addition as large
    as the largest so far: the overspend of B7's output term is then at most what an addition is larger than those before it.

    Parameters
    ----------
    ledger, hold
        Where the request was admitted, and its hold.
    step_tokens
        How much more output to hold at a time; near the limit it holds as much as there still is.
    """

    def __init__(self, ledger: Ledger, hold: Hold, *, step_tokens: int = STEP_TOKENS) -> None:
        if _tokens(step_tokens) == 0:
            raise InputError("stream guard", "step", step_tokens, "must be at least one token")
        self._ledger = ledger
        self._step_tokens = step_tokens
        self.hold = hold
        self.output_tokens = 0
        self._largest = 0
        self.refusal: Refusal | None = None

    def add(self, output_tokens: int) -> bool:
        """Count output tokens, over all choices, as they come; return whether to stop the stream."""
        self.output_tokens += _tokens(output_tokens)
        self._largest = max(self._largest, output_tokens)
        reservation = self.hold.reservation
        choices, reserved = reservation.choices, reservation.reserved_tokens
        next_tokens = -(-(self.output_tokens + self._largest) // choices)
        if reservation.is_free or (reserved and next_tokens <= reserved):
            return False
        wanted = max(next_tokens, -(-self.output_tokens // choices) + self._step_tokens)
        if reservation.limit_tokens is not None:
            wanted = max(reserved, min(wanted, reservation.limit_tokens))
        if wanted == reserved:  # its own limit: no more will come
            return False
        answer = self._ledger.raise_hold(self.hold, resized(reservation, wanted))
        while isinstance(answer, Refusal):
            # Less than a step may be left: what the refusal says would pass. Asked again if another took it meanwhile.
            fits = answer.largest_limit_tokens
            if fits is None or not next_tokens <= fits < wanted:
                self.refusal = answer
                return True
            wanted = fits
            answer = self._ledger.raise_hold(self.hold, resized(reservation, wanted))
        self.hold = answer
        return False


def _tokens(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InputError("running count", "tokens", count, "must be a whole number of at least 0")
    return count
