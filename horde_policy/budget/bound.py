"""How far a hard budget can be overspent: the bound of B7 and B8, stated and tight (budgets.md §5).

    W = Σ over the requests open at the last admission of
        n · max(0, m − r) · p_out  +  what their input may cost beyond I_est · p_in
    settled money <= L + W

``stated`` clips each part of a request by itself, ``tight`` the whole request, so that an over-estimated input pays for
part of the output: tight <= stated. The real input is known only afterwards, so a live figure needs an assumption, which
is named: ``certain``, ``declared`` or ``measured`` (§5.3). A request without a limit has no bound and is counted apart (B8).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from horde_policy.budget.money import ATTO_PER_PICO, EXACT, decimal_of, money_text, pico_up
from horde_policy.budget.prices import Price
from horde_policy.budget.reservation import Reservation
from horde_policy.errors import ConfigError, InputError

__all__ = [
    "Certain",
    "Declared",
    "InputAssumption",
    "Known",
    "Measured",
    "RealInput",
    "WorstCase",
    "bound_without_count",
    "gap_ratio",
    "input_excess_atto",
    "quantile_up",
    "split_limit_pico",
    "worst_case",
]


@dataclass(frozen=True, slots=True)
class Certain:
    """Every input fills the model's context window at the dearest class it can reach: a true ceiling, often large."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Every input is at most ``factor`` times its estimate, at the dearest class: for planning; the operator says k."""

    factor: Decimal | str = Decimal("1.7")

    def __post_init__(self) -> None:
        if not 0 <= decimal_of(self.factor, "declared input factor") <= 1_000_000:
            raise ConfigError("declared input factor", str(self.factor), "must be from 0 to 1000000")

    def tokens(self, estimate_tokens: int) -> int:
        """Return k · I_est, rounded up to a whole token.

        >>> Declared("1.7").tokens(3)
        6
        """
        product = EXACT.multiply(decimal_of(self.factor, "declared input factor"), Decimal(estimate_tokens))
        whole = int(product)
        return whole + (product > whole)


@dataclass(frozen=True, slots=True)
class Measured:
    """Every input costs at most so much beyond its estimate, as recorded traffic did: what usually happens, not a bound."""

    excess_pico: int


@dataclass(frozen=True, slots=True)
class RealInput:
    """The input of one request as it turned out: all tokens, and those of them written to a cache or read from one.

    Reads count only where a price row was made by hand with a read dearer than input: they are never subtracted.
    """

    tokens: int
    write_5m: int = 0
    write_1h: int = 0
    read: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """The inputs as they turned out, one for each request in order: the formula after the fact (§5.1)."""

    inputs: tuple[RealInput, ...]


InputAssumption = Certain | Declared | Measured | Known
Kind = Literal["certain", "declared", "measured", "known"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase:
    """The worst overspend of a set of open requests.

    Attributes
    ----------
    kind
        The assumption about the input.
    open
        How many requests.
    unbounded
        How many of them have neither a limit nor a declared ceiling: with any of them there is no bound (B8).
    input_unbounded
        How many have a model whose context window is not stated, for ``certain``; they count without an input part.
    stated_pico, tight_pico
        The two sums, over the requests that have a bound, each rounded up once.
    output_pico, input_pico
        The parts of ``stated_pico``, each rounded up.
    """

    kind: Kind
    open: int
    unbounded: int
    input_unbounded: int
    stated_pico: int
    tight_pico: int
    output_pico: int
    input_pico: int

    @property
    def bounded(self) -> bool:
        """Return whether the sums bound everything that is open."""
        return self.unbounded == 0 and self.input_unbounded == 0 and self.kind != "measured"

    def text(self) -> str:
        """Return the figure as a person reads it: never a large number in place of "unbounded".

        >>> WorstCase(kind="certain", open=3, unbounded=1, input_unbounded=0, stated_pico=5 * 10**11, tight_pico=0,
        ...           output_pico=5 * 10**11, input_pico=0).text()
        'unbounded: 1 of 3 open requests has no output limit or declared ceiling; the others at most $0.5000 (certain input)'
        """
        figure = f"{money_text(self.stated_pico)} ({self.kind} input)"
        if self.unbounded:
            has = "has" if self.unbounded == 1 else "have"
            of = f"unbounded: {self.unbounded:,} of {self.open:,} open requests {has} no output limit or declared ceiling"
            return of if self.unbounded == self.open else f"{of}; the others at most {figure}"
        if self.input_unbounded:
            return f"unbounded input: {self.input_unbounded:,} of {self.open:,} open requests; without it at most {figure}"
        return figure if self.kind != "measured" else f"{figure}, which is no bound"


def worst_case(requests: Iterable[Reservation], *, inputs: InputAssumption | None = None) -> WorstCase:
    """Return how much more than held a set of open requests can cost (B7, B8).

    Parameters
    ----------
    requests
        The requests open at the last admission, until their real cost is written.
    inputs
        The assumption about their input; ``Certain()`` without.

    Raises
    ------
    InputError
        ``Known`` with another number of inputs than requests.

    Examples
    --------
    >>> from horde_policy.budget.body import Ask
    >>> from horde_policy.budget.prices import Rates
    >>> from horde_policy.budget.reservation import reserve_cost
    >>> rates = Rates(input=3 * 10**12, output=15 * 10**12, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    >>> ask = Ask(api="chat", model="m", body_bytes=40_000, limit_tokens=32_000)
    >>> held = reserve_cost(ask, Price(provider="p", model="m", rates=rates))
    >>> worst_case([held] * 20, inputs=Known((RealInput(10_000),) * 20)).stated_pico
    8371200000000
    """
    assumption = Certain() if inputs is None else inputs
    open_requests = list(requests)
    if isinstance(assumption, Known) and len(assumption.inputs) != len(open_requests):
        rule = f"must be one for each of {len(open_requests)} open requests"
        raise InputError("worst case", "known inputs", len(assumption.inputs), rule)
    output = excess = tight = unbounded = input_unbounded = 0
    for index, request in enumerate(open_requests):
        real = assumption.inputs[index] if isinstance(assumption, Known) else None
        if request.ceiling_tokens is None:
            unbounded += 1
            continue
        terms = [_terms(request, price, assumption, real) for price in request.prices]
        input_unbounded += any(not term.input_bounded for term in terms)
        output += max(term.output_atto for term in terms)
        excess += max(term.input_atto for term in terms)
        tight += max(term.tight_atto for term in terms)
    return WorstCase(
        kind=_kind(assumption),
        open=len(open_requests),
        unbounded=unbounded,
        input_unbounded=input_unbounded,
        stated_pico=pico_up(output + excess),
        tight_pico=pico_up(tight),
        output_pico=pico_up(output),
        input_pico=pico_up(excess),
    )


@dataclass(frozen=True, slots=True)
class _Terms:
    output_atto: int
    input_atto: int
    tight_atto: int
    input_bounded: bool


def _terms(request: Reservation, price: Price, assumption: InputAssumption, real: RealInput | None) -> _Terms:
    """Return the two parts of one request at one target: beyond what was held for each, and beyond the whole hold."""
    cost = _input_cost(request, price, assumption, real)
    # A long-context tier can make the output dearer than it was held at, even the part that was held.
    full_output = price.output_atto(request.choices * (request.ceiling_tokens or 0), cost.tokens)
    held_output = price.output_atto(request.choices * request.reserved_tokens, request.input_estimate_tokens)
    held_input = price.input_atto(request.input_estimate_tokens)
    total = cost.input_atto + cost.writes_atto + full_output + price.fee_atto
    return _Terms(
        output_atto=max(0, full_output - held_output),
        input_atto=max(0, cost.input_atto - held_input) + cost.writes_atto,
        tight_atto=max(0, total - request.hold_pico * ATTO_PER_PICO),
        input_bounded=cost.bounded,
    )


@dataclass(frozen=True, slots=True)
class _InputCost:
    """The most that an input can cost; what its cache classes add to that; its tokens; and whether it is a bound."""

    input_atto: int
    tokens: int
    writes_atto: int = 0
    bounded: bool = True


def _input_cost(request: Reservation, price: Price, assumption: InputAssumption, real: RealInput | None) -> _InputCost:
    estimate = request.input_estimate_tokens
    if real is not None:
        rates = price.rates_at(real.tokens)
        writes = real.write_5m * max(0, rates.cache_write_5m - rates.input)
        writes += real.write_1h * max(0, rates.cache_write_1h - rates.input)
        writes += real.read * max(0, rates.cache_read - rates.input)
        return _InputCost(price.input_atto(real.tokens), real.tokens, writes)
    if isinstance(assumption, Declared):
        tokens = assumption.tokens(estimate)
        return _InputCost(price.dear_input_atto(tokens, request.cache), tokens)
    if isinstance(assumption, Measured):
        return _InputCost(price.input_atto(estimate) + max(0, assumption.excess_pico) * ATTO_PER_PICO, estimate)
    window = price.context_window_tokens
    if window is None:
        return _InputCost(price.dear_input_atto(estimate, request.cache), estimate, bounded=False)
    return _InputCost(price.dear_input_atto(window, request.cache), window)


def _kind(assumption: InputAssumption) -> Kind:
    if isinstance(assumption, Certain):
        return "certain"
    if isinstance(assumption, Declared):
        return "declared"
    return "measured" if isinstance(assumption, Measured) else "known"


def input_excess_atto(price: Price, estimate_tokens: int, real_cost_atto: int) -> int:
    """Return what a real input cost beyond its estimate; negative where the estimate was too high."""
    return real_cost_atto - price.input_atto(estimate_tokens)


def quantile_up(values: Sequence[int], share: Decimal) -> int:
    """Return the smallest of the values that at least this share of them does not exceed.

    >>> quantile_up([1, 2, 3, 4], Decimal("0.5")), quantile_up([1, 2, 3, 4], Decimal("0.51"))
    (2, 3)
    """
    if not values:
        raise InputError("quantile", "values", 0, "must be at least one")
    if not 0 < share <= 1:
        raise ConfigError("quantile", str(share), "must be above 0 and at most 1")
    rank = share * len(values)
    index = int(rank) + (rank > int(rank))
    return sorted(values)[max(1, index) - 1]


def gap_ratio(request: Reservation) -> Decimal | None:
    """Return the output part of the bound as a multiple of the limit, whatever is open; null for unbounded (§5.5).

    Holds of open requests never exceed L, so at most L ÷ h are open, each n · (m − r) · p_out over: the ratio is that gap
    over h, exact to 30 digits, rounded up.
    """
    if request.ceiling_tokens is None:
        return None
    if request.hold_pico == 0:
        return Decimal(0) if request.is_free else None
    gap = _output_gap_atto(request)
    return _ceiling_ratio(gap, request.hold_pico * ATTO_PER_PICO)


def bound_without_count(limit_pico: int, request: Reservation, *, open_cap: int | None = None) -> int | None:
    """Return the output part of the bound without a count of open requests: L · n · (m − r) · p_out ÷ h (§5.5).

    With a cap on open requests it is at most cap · gap. Null: no bound, since there is no limit or nothing is held.

    >>> from horde_policy.budget.body import Ask
    >>> from horde_policy.budget.prices import Rates
    >>> from horde_policy.budget.reservation import reserve_cost
    >>> rates = Rates(input=3 * 10**12, output=15 * 10**12, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    >>> ask = Ask(api="chat", model="m", body_bytes=40_000, limit_tokens=32_000)
    >>> held = reserve_cost(ask, Price(provider="p", model="m", rates=rates))
    >>> bound_without_count(10**12, held), bound_without_count(10**12, held, open_cap=3)
    (4577427821523, 1255680000000)
    """
    if request.ceiling_tokens is None:
        return None
    gap = _output_gap_atto(request)
    if gap == 0:
        return 0
    found: list[int] = []
    if request.hold_pico:
        found.append(-(-limit_pico * gap // (request.hold_pico * ATTO_PER_PICO)))
    if open_cap is not None:
        found.append(pico_up(open_cap * gap))
    return min(found, default=None)


def split_limit_pico(limit_pico: int, replicas: int, margin: Decimal | str = Decimal(0)) -> int:
    """Return the limit of each of so many replicas that share no store: L · (1 − margin) ÷ N, rounded down.

    Together they cannot admit more than L, but a replica refuses while others have money left.

    >>> split_limit_pico(100 * 10**12, 5, "0.01")
    19800000000000
    """
    if isinstance(replicas, bool) or not isinstance(replicas, int) or not 1 <= replicas <= 10_000:
        raise ConfigError("replicas", replicas, "must be a whole number from 1 to 10000")
    share = decimal_of(margin, "margin")
    if not 0 <= share < 1:
        raise ConfigError("margin", str(margin), "must be at least 0 and below 1")
    return int(EXACT.multiply(Decimal(limit_pico), 1 - share)) // replicas


def _output_gap_atto(request: Reservation) -> int:
    gaps = []
    for price in request.prices:
        over = max(0, (request.ceiling_tokens or 0) - request.reserved_tokens)
        gaps.append(price.output_atto(request.choices * over, request.input_estimate_tokens))
    return max(gaps)


def _ceiling_ratio(part: int, whole: int) -> Decimal:
    scale = 10**30
    return EXACT.normalize(EXACT.scaleb(Decimal(-(-part * scale // whole)), -30)) if part else Decimal(0)
