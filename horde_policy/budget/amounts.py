"""What many requests hold, cost and can go over, as whole pico-dollars in arrays: the scalar rules at the speed of a replay.

Each figure equals what :func:`~horde_policy.budget.reservation.reserve_cost`,
:meth:`~horde_policy.budget.prices.Price.cost_atto` and :func:`~horde_policy.budget.bound.worst_case` give for one request;
a test compares them. Arithmetic is in 64 bits where every product fits, else in Python's whole numbers.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from horde_policy.budget.money import ATTO_PER_PICO, MAX_PICO
from horde_policy.budget.price_table import PriceTable
from horde_policy.budget.prices import Price, Rates
from horde_policy.budget.reservation import HoldRule
from horde_policy.errors import InputError

__all__ = ["Amounts", "Held"]

Array = np.ndarray[Any, np.dtype[Any]]
SAFE = 2**62
NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class Held:
    """One setting: what each request holds, and how far it can go beyond that, stated and tight."""

    hold: Array
    stated: Array
    tight: Array


@dataclass(slots=True)
class Amounts:
    """The money of requests that does not depend on the setting, and the way to that which does.

    Attributes
    ----------
    priced, free, unbounded
        Whether a request has a price; whether that is an explicit 0; whether it has neither limit nor declared ceiling.
    cost, input_cost
        The real cost, and that of the input alone with the fee.
    input_stated
        How far the input alone can go beyond its estimate.
    """

    count: int
    priced: Array
    free: Array
    unbounded: Array
    cost: Array
    input_cost: Array
    input_hold: Array
    input_stated: Array
    _groups: list["_Group"] = field(default_factory=list)

    @classmethod
    def of(cls, requests: pl.DataFrame, table: PriceTable, *, largest_reserve: int) -> "Amounts":
        """Return the amounts of a :data:`~horde_policy.frames.usage.BUDGET_REQUESTS` frame at a table's prices.

        ``largest_reserve`` is the largest R that will be asked for.
        """
        count = requests.height

        def zeros() -> Array:
            return np.zeros(count, dtype=np.int64)

        found = cls(count, zeros(), zeros(), zeros(), zeros(), zeros(), zeros(), zeros())
        for price, rows in _rows_by_price(requests, table):
            group = _Group.of(price, rows, requests, largest_reserve)
            found._groups.append(group)
            found.priced[rows] = 1
            found.free[rows] = price.is_free
            found.unbounded[rows] = group.ceiling == NO_LIMIT
            found.input_cost[rows] = group.pico(group.real_cost, up=False)
            found.cost[rows] = group.pico(group.real_cost + group.output_cost(), up=False)
            found.input_hold[rows] = group.pico(group.input_held, up=True)
            found.input_stated[rows] = group.pico(group.input_over, up=True)
        return found

    def held(self, output_tokens: int, rule: HoldRule = "capped") -> Held:
        """Return what every request holds under a setting, as :func:`reserve_cost` does; 0 where there is no price."""
        hold, stated, tight = (np.zeros(self.count, dtype=np.int64) for _ in range(3))
        for group in self._groups:
            held_output = group.dear_output(group.reserved(output_tokens, rule), group.estimate)
            hold[group.rows] = mine = group.pico(group.input_held + held_output, up=True)
            bounded = group.ceiling != NO_LIMIT
            over = np.maximum(group.full_output - held_output, 0) + group.input_over
            stated[group.rows] = np.where(bounded, group.pico(over, up=True), 0)
            most = group.pico(group.input_most + group.full_output, up=True)
            tight[group.rows] = np.where(bounded, np.maximum(most - mine, 0), 0)
        return Held(hold, stated, tight)


@dataclass(slots=True)
class _Group:
    """The requests of one price row, as arrays wide enough for their products.

    Money is in ``unit`` atto-dollars: a whole pico-dollar where every rate is one, as with up to six decimals per million.
    """

    price: Price
    rows: Array
    unit: int
    estimate: Array
    real: Array
    ceiling: Array
    limit: Array
    n: Array
    output: Array
    read: Array
    write_5m: Array
    write_1h: Array
    input_held: Array = field(init=False)
    input_most: Array = field(init=False)
    input_over: Array = field(init=False)
    real_cost: Array = field(init=False)
    full_output: Array = field(init=False)

    @classmethod
    def of(cls, price: Price, rows: Array, requests: pl.DataFrame, largest_reserve: int) -> "_Group":
        """Return the group of the requests at these rows."""
        frame = requests if rows.size == requests.height else requests[rows]
        estimate = pl.coalesce((pl.col("body_bytes") + 3) // 4, "input_tokens").alias("estimate")
        real = pl.coalesce("input_tokens", (pl.col("body_bytes") + 3) // 4).alias("real")
        frame = frame.with_columns(estimate, real, pl.col("max_tokens").fill_null(NO_LIMIT).alias("limit"))
        declared = NO_LIMIT if price.max_output_tokens is None else price.max_output_tokens
        columns = {name: frame[name].to_numpy() for name in ("estimate", "real", "limit", "n", "output_tokens")}
        columns |= {name: frame[f"cache_{name}_tokens"].to_numpy() for name in ("read", "write_5m", "write_1h")}
        columns["ceiling"] = np.where(columns["limit"] == NO_LIMIT, declared, columns["limit"])
        unit = _unit(price)
        wide = _dtype(price, columns, largest_reserve, unit)
        made = {name: values.astype(wide) for name, values in columns.items()}
        return cls(price=price, rows=rows, unit=unit, output=made.pop("output_tokens"), **made)

    def __post_init__(self) -> None:
        fee = self.price.fee_atto // self.unit
        fresh, held = self._input(self.real), self._input(self.estimate)
        writes = self._classes(read=False)
        self.input_held = held + fee
        self.input_most = fresh + writes + fee
        self.input_over = np.maximum(fresh - held, 0) + writes
        self.real_cost = fresh + self._classes(read=True) + fee
        self.full_output = self.dear_output(np.maximum(self.ceiling, 0), self.real)

    def reserved(self, output_tokens: int, rule: HoldRule) -> Array:
        """Return r for each request (B3, B11, B12)."""
        without = self.price.max_output_tokens if rule == "full" and self.price.max_output_tokens is not None else output_tokens
        if rule == "input":
            return self.limit * 0
        capped = self.limit if rule == "full" else np.minimum(self.limit, output_tokens)
        return np.where(self.limit == NO_LIMIT, without, capped)

    def dear_output(self, tokens: Array, inputs: Array) -> Array:
        """Return the most that so many tokens of each of n outputs cost."""
        cost: Array = self.n * tokens * self._rate(inputs, lambda rates: rates.dear_output)
        return cost

    def output_cost(self) -> Array:
        """Return the real cost of the output; reasoning is not known apart and priced as output."""
        cost: Array = self.output * self._rate(self.real, lambda rates: rates.output)
        return cost

    def pico(self, money: Array, *, up: bool) -> Array:
        """Return money as pico-dollars in 64 bits, rounded up, as a hold, or half to even, as a cost."""
        if self.unit == 1:
            whole, rest = money // ATTO_PER_PICO, money % ATTO_PER_PICO
            half = ATTO_PER_PICO // 2
            money = whole + ((rest > 0) if up else (rest > half) | ((rest == half) & (whole % 2 == 1)))
        if money.size and int(money.max()) > MAX_PICO:
            raise InputError("requests", "amount", int(money.max()), "pico-dollars are more than 63 bits hold")
        return money.astype(np.int64)

    def _input(self, tokens: Array) -> Array:
        """Return the cost of so many fresh input tokens, without the fee."""
        cost: Array = tokens * self._rate(tokens, lambda rates: rates.input)
        before = self.price.rates.input
        for tier in self.price.tiers:
            if not tier.whole:
                more = (tier.rates.input - before) // self.unit
                cost = cost + np.maximum(tokens - tier.above_input_tokens, 0) * more
                before = tier.rates.input
        return cost

    def _classes(self, *, read: bool) -> Array:
        """Return what the cache classes cost beyond fresh input: reads and writes as they are, or writes where dearer (B7)."""
        least = -MAX_PICO if read else 0
        extra: Array = self.write_5m * self._rate(self.real, lambda r: max(least, r.cache_write_5m - r.input))
        extra = extra + self.write_1h * self._rate(self.real, lambda r: max(least, r.cache_write_1h - r.input))
        return extra + self.read * self._rate(self.real, lambda r: r.cache_read - r.input) if read else extra

    def _rate(self, inputs: Array, choose: Callable[[Rates], int]) -> Array:
        """Return the rate that ``choose`` takes from the rates at each input size."""
        whole = [tier for tier in self.price.tiers if tier.whole]
        levels = [self.price.rates, *(tier.rates for tier in whole)]
        chosen = np.array([choose(rates) // self.unit for rates in levels], dtype=inputs.dtype)
        if not whole:
            return chosen
        return chosen[np.searchsorted([tier.above_input_tokens for tier in whole], inputs.astype(np.int64), side="left")]


def _amounts_of(price: Price) -> list[int]:
    rates = [price.rates, *(tier.rates for tier in price.tiers)]
    return [value for r in rates for value in asdict(r).values() if value is not None]


def _unit(price: Price) -> int:
    whole = all(amount % ATTO_PER_PICO == 0 for amount in (*_amounts_of(price), price.fee_atto))
    return ATTO_PER_PICO if whole else 1


def _dtype(price: Price, columns: dict[str, Array], largest_reserve: int, unit: int) -> type[np.int64] | type[object]:
    """Return 64 bits where no sum of products of these requests can leave them, else Python's whole numbers."""
    most = {name: int(values.max(initial=0)) for name, values in columns.items()}
    outputs = most["n"] * max(most["ceiling"], most["limit"], largest_reserve) + most["output_tokens"]
    tokens = outputs + most["real"] + most["estimate"] + most["read"] + most["write_5m"] + most["write_1h"]
    return np.int64 if 4 * tokens * (max(_amounts_of(price)) // unit) + price.fee_atto // unit < SAFE else object


def _rows_by_price(requests: pl.DataFrame, table: PriceTable) -> list[tuple[Price, Array]]:
    """Return each price row in force with the positions of its requests; requests without a price are in none."""
    created = requests["created"].dt.timestamp("us").to_numpy()
    models = requests["model"].to_numpy()
    found = []
    for model in sorted(set(models.tolist())):
        history = table.history(model)
        mine = np.flatnonzero(models == model)
        starts = np.array([int(price.valid_from.timestamp()) * 1_000_000 for price in history], dtype=np.int64)
        places = np.searchsorted(starts, created[mine], side="right") - 1
        for index, price in enumerate(history):
            rows = mine[places == index]
            if rows.size:
                found.append((price, rows))
    return found
