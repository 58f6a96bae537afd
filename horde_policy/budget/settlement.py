"""What a request costs in the end: the state its hold goes to and the money that is recorded (B5, B6; budgets.md §6).

Complete usage is charged as it is, explicit zeros included. Without it the larger of the hold and the cost of the input
estimate is kept, taken literally although one price makes the second part of the first. Two endings are settings
(decision 0045): a refusal by the provider before it worked, and a server error before the first byte.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

from horde_policy.budget.money import MAX_LIMIT_PICO, money_text, pico_half_even, pico_up
from horde_policy.budget.prices import Price
from horde_policy.budget.reservation import Reservation
from horde_policy.budget.usage import TokenUsage
from horde_policy.errors import InputError

__all__ = ["LABELS", "Ending", "EndingRules", "HoldState", "Outcome", "label_of", "outcome_of"]

HoldState = Literal["open", "settled", "kept", "released", "expired", "late"]
"""``open`` → ``settled`` (usage), ``kept`` (none), ``released`` (nothing sent), ``expired`` (owner gone) → ``late`` (usage)."""

Ending = Literal["answered", "never_sent", "refused", "server_error", "cut_by_client", "cut_by_provider", "timed_out"]
"""How a request ended: an answer came; it never left; the provider refused it (400, 401, 404, 429, overloaded); 5xx before
the first byte; the client, the provider or a time-out cut it."""

ENDINGS: tuple[Ending, ...] = get_args(Ending)

LABELS = ("settled", "estimated", "expired", "late", "unpriced", "released")
"""What recorded money is: real usage; kept without usage; an orphan's; late usage; kept without a price; given back."""


def label_of(state: HoldState, flags: Collection[str]) -> str:
    """Return the label of a hold that has ended.

    >>> label_of("kept", ()), label_of("kept", ("unpriced",)), label_of("late", ("unpriced",))
    ('estimated', 'unpriced', 'late')
    """
    return ("unpriced" if "unpriced" in flags else "estimated") if state == "kept" else state


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingRules:
    """What the two endings without usage that people disagree on do to a hold."""

    release_refused: bool = True
    release_server_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a hold: its state, the money recorded, the usage and what is to be said about it."""

    state: Literal["settled", "kept", "released"]
    cost_pico: int
    usage: TokenUsage | None = None
    flags: tuple[str, ...] = ()
    price_id: str | None = None


def outcome_of(
    reservation: Reservation,
    usage: TokenUsage | None,
    *,
    ended: Ending = "answered",
    price: Price | None = None,
    priced: bool = True,
    rules: EndingRules | None = None,
) -> Outcome:
    """Return what becomes of a hold.

    Parameters
    ----------
    reservation
        What was held.
    usage
        What the provider reported; null for none.
    ended
        How the request ended.
    price
        The row of the target that answered, as the provider bills now; without it the one the hold is at.
    priced
        False when the target that answered has no price any more: the hold is kept.
    rules
        The two settings.

    Raises
    ------
    InputError
        An unknown ending, usage of a request that never left, or a cost of more than 4 million dollars.

    Examples
    --------
    >>> from horde_policy.budget.body import Ask
    >>> from horde_policy.budget.prices import Rates
    >>> from horde_policy.budget.reservation import reserve_cost
    >>> rates = Rates(input=3 * 10**12, output=15 * 10**12, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    >>> held = reserve_cost(Ask(api="chat", model="m", body_bytes=40_000), Price(provider="p", model="m", rates=rates))
    >>> outcome_of(held, TokenUsage(fresh=10_000, output=32_000)).cost_pico
    510000000000
    >>> outcome_of(held, None).state, outcome_of(held, None).cost_pico
    ('kept', 91440000000)
    """
    if ended not in ENDINGS:
        raise InputError("settlement", "ended", ended, "must be one of " + ", ".join(ENDINGS))
    if ended == "never_sent" and usage is not None:
        raise InputError("settlement", "usage", usage.output, "cannot be of a request that never left")
    rules = rules or EndingRules()
    at = price or reservation.price
    flags = _flags(reservation, usage, at, priced=priced)
    price_id = at.price_id if priced else None
    if usage is not None and usage.complete and priced:
        cost = pico_half_even(usage.cost_atto(at))
        _check_size(cost)
        return Outcome(state="settled", cost_pico=cost, usage=usage, flags=flags, price_id=price_id)
    if usage is None and (
        ended == "never_sent"
        or (ended == "refused" and rules.release_refused)
        or (ended == "server_error" and rules.release_server_error)
    ):
        return Outcome(state="released", cost_pico=0, flags=flags)
    kept = max(reservation.hold_pico, reservation.input_pico, _known_pico(reservation, usage, at) if priced else 0)
    _check_size(kept)
    return Outcome(state="kept", cost_pico=kept, usage=usage, flags=flags, price_id=price_id)


def _check_size(cost_pico: int) -> None:
    if cost_pico > MAX_LIMIT_PICO:
        raise InputError("settlement", "cost", money_text(cost_pico), f"must be at most {money_text(MAX_LIMIT_PICO)} a request")


def _known_pico(reservation: Reservation, usage: TokenUsage | None, price: Price) -> int:
    """Return the cost of what is known of an answer without complete usage: B6's input estimate, or more."""
    tokens = reservation.input_estimate_tokens
    estimate = price.input_atto(tokens) + price.fee_atto
    if usage is None:
        return pico_up(estimate)
    if usage.input_known:
        return pico_up(usage.cost_atto(price))
    return pico_up(max(estimate + price.output_atto(usage.output, tokens), usage.cost_atto(price)))


def _flags(reservation: Reservation, usage: TokenUsage | None, price: Price, *, priced: bool) -> tuple[str, ...]:
    flags = list(usage.flags) if usage is not None else []
    limit = reservation.limit_tokens
    if usage is not None and limit is not None and usage.output > reservation.choices * limit:
        flags.append("above_own_limit")
    if not priced:
        flags.append("unpriced")
    elif price not in reservation.prices and price.price_id not in {target.price_id for target in reservation.prices}:
        flags.append("repriced")
    if reservation.is_free:
        flags.append("free_target")
    return tuple(dict.fromkeys(flags))
