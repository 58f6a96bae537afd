"""What a request holds before it goes out: the rule of B1–B3, its alternatives B11 and B12, and its explanation.

    h = I_est · p_in + n · r · p_out + fee,   r = min(m, R), or R without a limit

Rounded up to a whole pico-dollar. On a route with several targets the dearest hold counts (budgets.md §5.4).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, get_args

from horde_policy.budget.body import MAX_TOKENS, Ask, bytes_to_tokens
from horde_policy.budget.money import EXACT, MAX_LIMIT_PICO, money_text, pico_up
from horde_policy.budget.prices import CacheAsked, Price
from horde_policy.errors import ConfigError, InputError

__all__ = ["DEFAULT_OUTPUT_TOKENS", "ExplainedLine", "HoldRule", "Reservation", "affordable_tokens", "reserve_cost", "resized"]

DEFAULT_OUTPUT_TOKENS = 4096
"""``reservation.output_tokens`` (B3)."""

HoldRule = Literal["capped", "full", "input"]
"""``capped``: B3; ``full``: the whole limit (B11); ``input``: no output at all (B12)."""


@dataclass(frozen=True, slots=True)
class ExplainedLine:
    """One line of a hold: what, how many, at what price, and the exact amount in dollars."""

    label: str
    tokens: int | None
    usd_per_million: Decimal | None
    amount_pico: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The hold of one request, and all that its bound and its explanation need.

    Attributes
    ----------
    prices
        The targets of the route, the dearest for this request first; the hold is at its price.
    body_bytes, input_estimate_tokens
        b, and I_est = b ÷ 4 rounded up.
    limit_tokens
        m, for each choice; null is none.
    reserved_tokens
        r, for each choice.
    choices
        n.
    cache
        The dearest cache lifetime asked for.
    hold_pico
        h, rounded up.
    input_pico
        I_est · p_in with the fee, rounded up: the least that B6 keeps.
    limits, unseen
        As in :class:`~horde_policy.budget.body.Ask`; for the explanation.
    """

    prices: tuple[Price, ...]
    body_bytes: int
    input_estimate_tokens: int
    limit_tokens: int | None
    reserved_tokens: int
    choices: int
    cache: CacheAsked
    hold_pico: int
    input_pico: int
    limits: tuple[tuple[str, int], ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def price(self) -> Price:
        """Return the price the hold is at: that of the dearest target."""
        return self.prices[0]

    @property
    def is_free(self) -> bool:
        """Return whether every target is priced at an explicit 0: such a request skips the check (decision 0043)."""
        return all(price.is_free for price in self.prices)

    @property
    def ceiling_tokens(self) -> int | None:
        """Return the most output tokens of one choice: m, else the ceiling declared for the models, else null (B8)."""
        if self.limit_tokens is not None:
            return self.limit_tokens
        declared = [price.max_output_tokens for price in self.prices]
        return None if None in declared else max(tokens for tokens in declared if tokens is not None)

    def explanation(self) -> tuple[ExplainedLine, ...]:
        """Return the hold line by line; the last line is the hold, which the lines before it add up to."""
        price, tokens = self.price, self.input_estimate_tokens
        rates = price.rates_at(tokens)
        input_atto, output_atto = price.input_atto(tokens), price.output_atto(self.choices * self.reserved_tokens, tokens)
        parts = pico_up(input_atto) + pico_up(output_atto) + pico_up(price.fee_atto)
        note = f"{self.body_bytes:,} bytes ÷ 4, rounded up"
        lines = [ExplainedLine("input", tokens, _per_million(rates.input), pico_up(input_atto), note)]
        if price.excess_atto(tokens):
            label, note = "of which long-context surcharge", "already in the line above"
            lines.append(ExplainedLine(label, None, None, pico_up(price.excess_atto(tokens)), note))
        reserved = self.choices * self.reserved_tokens
        lines.append(
            ExplainedLine("output", reserved, _per_million(rates.dear_output), pico_up(output_atto), self._output_note())
        )
        if price.fee_atto:
            lines.append(ExplainedLine("fee of one call", None, None, pico_up(price.fee_atto)))
        rounding = "" if parts == self.hold_pico else "the lines are each rounded up, the hold once"
        return (*lines, ExplainedLine("hold", None, None, self.hold_pico, rounding))

    def _output_note(self) -> str:
        limit = "no limit stated" if self.limit_tokens is None else f"limit {self.limit_tokens:,}"
        if len(self.limits) > 1:
            limit += ", the largest of " + ", ".join(f"{name} {value:,}" for name, value in self.limits)
        choices = f"{self.choices:,} × " if self.choices > 1 else ""
        return f"{choices}{self.reserved_tokens:,} reserved; {limit}"


def reserve_cost(
    ask: Ask,
    prices: Price | Sequence[Price],
    *,
    output_tokens: int = DEFAULT_OUTPUT_TOKENS,
    rule: HoldRule = "capped",
) -> Reservation:
    """Return what a request holds at the prices of its target, or at the dearest of its route's targets (B1–B3).

    Parameters
    ----------
    ask
        From :func:`~horde_policy.budget.body.read_request`.
    prices
        The price row of the target; several for a route with fallbacks.
    output_tokens
        R, ``reservation.output_tokens``: at least 0.
    rule
        ``capped`` (B3), ``full`` (B11: r = m; without a limit the declared ceiling, else R) or ``input`` (B12: r = 0).

    Raises
    ------
    ConfigError
        R is no whole number of at least 0.
    InputError
        The limit is larger than every target allows, or the hold is more than a ledger can hold.

    Examples
    --------
    >>> from horde_policy.budget.prices import Rates
    >>> rates = Rates(input=3 * 10**12, output=15 * 10**12, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    >>> held = reserve_cost(Ask(api="chat", model="m", body_bytes=40_000), Price(provider="p", model="m", rates=rates))
    >>> held.hold_pico, held.reserved_tokens
    (91440000000, 4096)
    """
    if isinstance(output_tokens, bool) or not isinstance(output_tokens, int) or not 0 <= output_tokens <= MAX_TOKENS:
        raise ConfigError("reservation.output_tokens", output_tokens, f"must be a whole number from 0 to {MAX_TOKENS}")
    if rule not in get_args(HoldRule):
        raise ConfigError("hold rule", rule, "must be one of " + ", ".join(get_args(HoldRule)))
    targets = (prices,) if isinstance(prices, Price) else tuple(prices)
    if not targets:
        raise InputError("reservation", "prices", prices, "must name at least one target")
    _check_limit(ask, targets)
    tokens = bytes_to_tokens(ask.body_bytes)
    reserved = _reserved(ask, targets, output_tokens, rule)
    holds = [_hold_atto(price, tokens, ask.choices * reserved) for price in targets]
    hold_pico = pico_up(max(holds))
    _check_size(hold_pico)
    dearest = holds.index(max(holds))
    price = targets[dearest]
    return Reservation(
        prices=(price, *targets[:dearest], *targets[dearest + 1 :]),
        body_bytes=ask.body_bytes,
        input_estimate_tokens=tokens,
        limit_tokens=ask.limit_tokens,
        reserved_tokens=reserved,
        choices=ask.choices,
        cache=ask.cache,
        hold_pico=hold_pico,
        input_pico=pico_up(price.input_atto(tokens) + price.fee_atto),
        limits=ask.limits,
        unseen=ask.unseen,
    )


def resized(reservation: Reservation, reserved_tokens: int) -> Reservation:
    """Return a reservation with another reserved output, at the same prices: what a stream holds that goes on (B13).

    >>> from horde_policy.budget.prices import Rates
    >>> rates = Rates(input=3 * 10**12, output=15 * 10**12, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    >>> held = reserve_cost(Ask(api="chat", model="m", body_bytes=40_000), Price(provider="p", model="m", rates=rates))
    >>> resized(held, 4_097).hold_pico - held.hold_pico
    15000000
    """
    if isinstance(reserved_tokens, bool) or not isinstance(reserved_tokens, int) or not 0 <= reserved_tokens <= MAX_TOKENS:
        raise InputError("reservation", "reserved tokens", reserved_tokens, f"must be a whole number from 0 to {MAX_TOKENS}")
    tokens = reservation.input_estimate_tokens
    hold = max(_hold_atto(price, tokens, reservation.choices * reserved_tokens) for price in reservation.prices)
    _check_size(pico_up(hold))
    return replace(reservation, reserved_tokens=reserved_tokens, hold_pico=pico_up(hold))


def affordable_tokens(reservation: Reservation, left_pico: int, output_tokens: int | None = None) -> int | None:
    """Return the largest output limit that would be admitted with so much money left (budgets.md §10).

    Null: any limit is, since no more than R is held. 0: none is, not even a limit of one token.

    ``output_tokens`` is R where it is not the reservation's own reserved size.

    >>> from horde_policy.budget.prices import Rates
    >>> rates = Rates(input=3 * 10**12, output=15 * 10**12, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    >>> held = reserve_cost(Ask(api="chat", model="m", body_bytes=4_000), Price(provider="p", model="m", rates=rates))
    >>> affordable_tokens(held, 50_000_000_000)
    3133
    """
    reserve = reservation.reserved_tokens if output_tokens is None else output_tokens
    fits = reserve
    for price in reservation.prices:
        tokens = reservation.input_estimate_tokens
        room = left_pico * 10**6 - price.input_atto(tokens) - price.fee_atto
        per_token = reservation.choices * price.rates_at(tokens).dear_output
        if room < 0:
            return 0
        if per_token:
            fits = min(fits, room // per_token)
    return None if fits >= reserve else fits


def _check_size(hold_pico: int) -> None:
    if hold_pico > MAX_LIMIT_PICO:
        raise InputError("reservation", "hold", money_text(hold_pico), f"must be at most {money_text(MAX_LIMIT_PICO)}")


def _hold_atto(price: Price, input_tokens: int, output_tokens: int) -> int:
    return price.input_atto(input_tokens) + price.output_atto(output_tokens, input_tokens) + price.fee_atto


def _reserved(ask: Ask, targets: Sequence[Price], output_tokens: int, rule: HoldRule) -> int:
    if rule == "input":
        return 0
    if rule == "full":
        ceilings = [price.max_output_tokens for price in targets if price.max_output_tokens is not None]
        without = max(ceilings) if len(ceilings) == len(targets) else output_tokens
        return without if ask.limit_tokens is None else ask.limit_tokens
    return output_tokens if ask.limit_tokens is None else min(ask.limit_tokens, output_tokens)


def _check_limit(ask: Ask, targets: Sequence[Price]) -> None:
    ceilings = [price.max_output_tokens for price in targets]
    known = [tokens for tokens in ceilings if tokens is not None]
    if ask.limit_tokens is not None and len(known) == len(ceilings) and ask.limit_tokens > max(known):
        rule = f"is more than the {max(known):,} output tokens that the model allows"
        raise InputError("request body", "output limit", ask.limit_tokens, rule)


def _per_million(atto: int) -> Decimal:
    """Return a rate as dollars per million tokens."""
    return EXACT.normalize(EXACT.scaleb(Decimal(atto), -12)) if atto else Decimal(0)
