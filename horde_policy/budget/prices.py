"""What a token costs: rates, long-context tiers and the price row of a model (B1, budgets.md §4).

Rates are whole atto-dollars a token (:mod:`horde_policy.budget.money`), so every product and sum is exact.
A missing price is not zero: free is an explicit 0 (decision 0041).
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

__all__ = ["EPOCH", "CacheAsked", "Price", "Rates", "Tier"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

CacheAsked = Literal["none", "5m", "1h"]
"""The dearest cache lifetime that a request asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Atto-dollars a token of each class; ``reasoning`` is null where reasoning is priced as any output."""

    input: int
    output: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    reasoning: int | None = None

    @property
    def dear_output(self) -> int:
        """Return the dearer of output and reasoning: what an unknown output is reserved at (budgets.md §2, rule 6)."""
        return self.output if self.reasoning is None else max(self.output, self.reasoning)

    def dear_input(self, cache: CacheAsked, *, unasked: bool = False) -> int:
        """Return the dearest input class that a request can reach (p_dear of budgets.md §5.3).

        A cache can be read without being asked for, so a read counts always; a price table refuses one dearer than input.
        """
        reached = [self.input, self.cache_read]
        if cache != "none" or unasked:
            reached.append(self.cache_write_5m)
        if cache == "1h":
            reached.append(self.cache_write_1h)
        return max(reached)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A long-context tier: above so many input tokens, the whole request or only the excess has other rates.

    In an excess tier only ``rates.input`` counts: each input token above the threshold, of whatever class, costs the
    difference to the tier before on top of its own class's price.
    """

    above_input_tokens: int
    rates: Rates
    whole: bool


@dataclass(frozen=True, kw_only=True)
class Price:
    """One row of a price table: what a model of a provider costs from an instant on.

    Attributes
    ----------
    provider, model
        The names the table gives them.
    rates
        Below any tier.
    tiers
        By rising threshold, all of one kind (whole or excess).
    fee_atto
        Atto-dollars for each call, whatever its size.
    context_window_tokens
        The most input tokens the model reads; null: not stated, then the certain worst case has no input term.
    max_output_tokens
        The most output tokens of one choice; the declared ceiling of a request without a limit (B8). Null: none declared.
    caches_unasked
        The provider writes its cache at a price without being asked.
    valid_from, source
        Since when, and where the figures come from.

    Examples
    --------
    >>> rates = Rates(input=3 * 10**12, output=15 * 10**12, cache_read=3 * 10**11, cache_write_5m=375 * 10**10,
    ...               cache_write_1h=6 * 10**12)
    >>> price = Price(provider="p", model="m", rates=rates)
    >>> price.cost_atto(fresh=10_000, output=4_096) // 10**12      # micro-dollars
    91440
    """

    provider: str
    model: str
    rates: Rates
    tiers: tuple[Tier, ...] = ()
    fee_atto: int = 0
    context_window_tokens: int | None = None
    max_output_tokens: int | None = None
    caches_unasked: bool = False
    valid_from: datetime = EPOCH
    source: str = ""

    @cached_property
    def price_id(self) -> str:
        """Return the row's name: provider, model, date and eight digits of what it says."""
        digest = hashlib.sha256(self.to_text().encode()).hexdigest()[:8]
        return f"{self.provider}/{self.model}@{self.valid_from:%Y-%m-%d}#{digest}"

    @cached_property
    def is_free(self) -> bool:
        """Return whether everything about the row is an explicit 0."""
        rates = [self.rates, *(tier.rates for tier in self.tiers)]
        return self.fee_atto == 0 and not any(v for r in rates for v in asdict(r).values())

    def rates_at(self, input_tokens: int) -> Rates:
        """Return the rates of a request with so many input tokens: those of the highest whole tier it is above."""
        found = self.rates
        for tier in self.tiers:
            if tier.whole and input_tokens > tier.above_input_tokens:
                found = tier.rates
        return found

    def excess_atto(self, input_tokens: int) -> int:
        """Return the surcharge of the excess tiers on so many input tokens."""
        extra, before = 0, self.rates.input
        for tier in self.tiers:
            if not tier.whole:
                extra += max(0, input_tokens - tier.above_input_tokens) * (tier.rates.input - before)
                before = tier.rates.input
        return extra

    def cost_atto(
        self, *, fresh: int, cache_read: int = 0, write_5m: int = 0, write_1h: int = 0, output: int = 0, reasoning: int = 0
    ) -> int:
        """Return the exact cost of five disjoint token classes; ``reasoning`` is the part of ``output`` that may be dearer."""
        inputs = fresh + cache_read + write_5m + write_1h
        rates = self.rates_at(inputs)
        cost = fresh * rates.input + cache_read * rates.cache_read
        cost += write_5m * rates.cache_write_5m + write_1h * rates.cache_write_1h
        cost += self.excess_atto(inputs) + self.fee_atto
        if rates.reasoning is None:
            return cost + output * rates.output
        return cost + (output - reasoning) * rates.output + reasoning * rates.reasoning

    def input_atto(self, input_tokens: int) -> int:
        """Return the cost of so many fresh input tokens, without the fee."""
        return input_tokens * self.rates_at(input_tokens).input + self.excess_atto(input_tokens)

    def output_atto(self, output_tokens: int, input_tokens: int) -> int:
        """Return the most that so many output tokens cost beside so many input tokens."""
        return output_tokens * self.rates_at(input_tokens).dear_output

    def dear_input_atto(self, input_tokens: int, cache: CacheAsked) -> int:
        """Return the most that so many input tokens can cost (p_dear of budgets.md §5.3), without the fee."""
        rates = self.rates_at(input_tokens)
        return input_tokens * rates.dear_input(cache, unasked=self.caches_unasked) + self.excess_atto(input_tokens)

    def to_text(self) -> str:
        """Return the row as one line of JSON: what a ledger keeps beside its holds."""
        row = asdict(self) | {"valid_from": self.valid_from.isoformat()}
        return json.dumps(row, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Price":
        """Return the row that :meth:`to_text` wrote.

        >>> row = Price(provider="p", model="m", rates=Rates(input=1, output=2, cache_read=1, cache_write_5m=1, cache_write_1h=1))
        >>> Price.from_text(row.to_text()) == row
        True
        """
        row: dict[str, Any] = json.loads(text)
        tiers = tuple(Tier(**tier | {"rates": Rates(**tier["rates"])}) for tier in row.pop("tiers"))
        rates = Rates(**row.pop("rates"))
        valid_from = datetime.fromisoformat(row.pop("valid_from"))
        return cls(rates=rates, tiers=tiers, valid_from=valid_from, **row)
