"""Price tables: TOML in, checked rows out, and the look-up of a model's price at an instant (budgets.md §4).

The file states its unit, dollars per million tokens or per token, and each figure is checked against it: a price above
10,000 dollars per million, or below 10⁻⁶ without being exactly 0, is refused as a likely mistake of unit.
"""

import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from horde_policy.budget.money import EXACT, decimal_of
from horde_policy.budget.prices import EPOCH, Price, Rates, Tier
from horde_policy.errors import InputError, MissingPriceError

__all__ = ["PriceTable", "load_prices", "parse_prices"]

WHAT = "price table"
MAX_NAME_CHARACTERS = 200
UNITS = {"usd_per_million_tokens": 12, "usd_per_token": 18}
"""Unit → the power of ten from its figure to atto-dollars a token."""

MOST_PER_MILLION = Decimal(10_000)
LEAST_PER_MILLION = Decimal("0.000001")

RATE_FIELDS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "reasoning")
RATIO_FIELDS = {"cache_read_ratio": "1", "cache_write_5m_ratio": "1.25", "cache_write_1h_ratio": "2"}
"""Where a cache price is not stated it is this many times the input price. An unstated read is never cheaper than input."""

ROW_FIELDS = {*RATE_FIELDS, *RATIO_FIELDS, "provider", "model", "fee_per_request", "context_window_tokens"} | {
    "max_output_tokens",
    "caches_unasked",
    "valid_from",
    "source",
    "tiers",
}
TIER_FIELDS = {*RATE_FIELDS, "above_input_tokens", "whole"}
TABLE_FIELDS = {"name", "unit", "source", "valid_from", *RATIO_FIELDS}
MAX_TOKENS = 10**9


@dataclass(frozen=True)
class PriceTable:
    """Rows by provider and model, each with its instant of validity; build with :func:`load_prices`.

    Examples
    --------
    >>> table = parse_prices('''
    ... [table]
    ... name = "example"
    ... unit = "usd_per_million_tokens"
    ... source = "an example"
    ... [[price]]
    ... provider = "example"
    ... model = "large"
    ... input = "3"
    ... output = "15"
    ... ''')
    >>> table.price("large").price_id
    'example/large@1970-01-01#9d5b5d94'
    >>> table.price("small")
    Traceback (most recent call last):
    horde_policy.errors.MissingPriceError: price table example, model: 'small' has no price; a missing price is not zero
    """

    name: str
    source: str
    prices: tuple[Price, ...]
    _rows: dict[tuple[str, str], list[Price]] = field(init=False, repr=False, compare=False, default_factory=dict)
    _providers: dict[str, list[str]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for price in sorted(self.prices, key=lambda p: p.valid_from):
            known = self._rows.setdefault((price.provider, price.model), [])
            if known and known[-1].valid_from == price.valid_from:
                place = f"{price.provider}/{price.model}, valid_from"
                raise InputError(f"{WHAT} {self.name}", place, price.valid_from.isoformat(), "must be unique for a model")
            known.append(price)
        for provider, model in self._rows:
            self._providers.setdefault(model, []).append(provider)

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models that have a price, sorted."""
        return tuple(sorted({price.model for price in self.prices}))

    def price(self, model: str, *, provider: str | None = None, at: datetime | None = None) -> Price:
        """Return the row of a model at an instant (the newest one without).

        Raises
        ------
        MissingPriceError
            The model, or the model at that instant, has no price.
        InputError
            Several providers offer the model and none was named, or the instant has no time zone.
        """
        what = f"{WHAT} {self.name}"
        if provider is None:
            providers = self._providers.get(model, [])
            if len(providers) > 1:
                raise InputError(what, "model", model, "is offered by " + ", ".join(sorted(providers)) + ": name one")
            provider = providers[0] if providers else ""
        rows = self._rows.get((provider, model), [])
        if not rows:
            raise MissingPriceError(what, "model", model, "has no price; a missing price is not zero")
        if at is None:
            return rows[-1]
        if at.tzinfo is None:
            raise InputError(what, "instant", at.isoformat(), "must have a time zone")
        index = bisect_right([row.valid_from for row in rows], at)
        if index == 0:
            rule = f"has no price before {rows[0].valid_from.isoformat()}; a missing price is not zero"
            raise MissingPriceError(what, "model", model, rule)
        return rows[index - 1]

    def history(self, model: str, *, provider: str | None = None) -> tuple[Price, ...]:
        """Return every row of a model by rising instant; empty if it has none."""
        try:
            newest = self.price(model, provider=provider)
        except MissingPriceError:
            return ()
        return tuple(self._rows[(newest.provider, model)])


def load_prices(path: Path) -> PriceTable:
    """Return the price table of a TOML file.

    Raises
    ------
    InputError
        The file cannot be read or is not TOML, a field is unknown or missing, or a figure breaks its rule.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(WHAT, "", str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(WHAT, "", str(path), f"is not UTF-8: {error.reason}") from error
    return parse_prices(text)


def parse_prices(text: str) -> PriceTable:
    """Return the price table of TOML text; see :func:`load_prices`."""
    try:
        content = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise InputError(WHAT, "", text[:40], f"is not TOML: {error}") from error
    _check_fields("", content, {"table", "price"})
    head = content.get("table")
    if not isinstance(head, dict):
        raise InputError(WHAT, "table", head, "must be a section that states name, unit and source")
    _check_fields("table", head, TABLE_FIELDS)
    rows = content.get("price")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(WHAT, "price", rows, "must be a list of at least one row")
    unit = head.get("unit")
    if unit not in UNITS:
        raise InputError(WHAT, "table.unit", unit, "must be one of " + ", ".join(UNITS))
    reader = _Reader(head, UNITS[unit])
    prices = tuple(reader.price(row, f"price {index}") for index, row in enumerate(rows, start=1))
    return PriceTable(name=_name(head, "name", "table"), source=_name(head, "source", "table"), prices=prices)


def _check_fields(where: str, found: Mapping[str, object], known: Iterable[str]) -> None:
    for name in found:
        if name not in known:
            raise InputError(WHAT, where, name, "is not a field; the fields are " + ", ".join(sorted(known)))


def _name(row: Mapping[str, Any], field: str, where: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME_CHARACTERS or not value.isprintable():
        raise InputError(WHAT, f"{where}, {field}", value, f"must be a printable text of 1 to {MAX_NAME_CHARACTERS} characters")
    return value


def _tokens(row: Mapping[str, Any], field: str, where: str) -> int | None:
    value = row.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOKENS:
        raise InputError(WHAT, f"{where}, {field}", value, f"must be a whole number of tokens from 1 to {MAX_TOKENS}")
    return value


def _flag(row: Mapping[str, Any], field: str, where: str) -> bool:
    value = row.get(field, False)
    if not isinstance(value, bool):
        raise InputError(WHAT, f"{where}, {field}", value, "must be true or false")
    return value


def _instant(value: object, where: str) -> datetime:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InputError(WHAT, where, value.isoformat(), "must have a time zone, as in 2026-01-01T00:00:00Z")
        return value.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise InputError(WHAT, where, value, "must be a TOML date or date-time, without quotes")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads rows in the unit and with the fallbacks that the table's head states."""

    head: Mapping[str, Any]
    power: int

    def price(self, row: Mapping[str, Any], where: str) -> Price:
        """Return one row, checked."""
        _check_fields(where, row, ROW_FIELDS)
        rates = self._rates(row, row, where)
        stated = row.get("valid_from", self.head.get("valid_from"))
        source = row.get("source", self.head.get("source", ""))
        return Price(
            provider=_name(row, "provider", where),
            model=_name(row, "model", where),
            rates=rates,
            tiers=self._tiers(row, rates, where),
            fee_atto=self._fee(row.get("fee_per_request", 0), f"{where}, fee_per_request"),
            context_window_tokens=_tokens(row, "context_window_tokens", where),
            max_output_tokens=_tokens(row, "max_output_tokens", where),
            caches_unasked=_flag(row, "caches_unasked", where),
            valid_from=EPOCH if stated is None else _instant(stated, f"{where}, valid_from"),
            source=_name({"source": source}, "source", where),
        )

    def _rates(self, fields: Mapping[str, Any], row: Mapping[str, Any], where: str) -> Rates:
        """Return the rates that ``fields`` states; ratios are those of the row, then of the table."""
        found = {name: self._rate(fields[name], f"{where}, {name}") for name in RATE_FIELDS if name in fields}
        for name in ("input", "output"):
            if name not in found:
                raise InputError(
                    WHAT, f"{where}, {name}", None, "is missing; a missing price is not zero, and free is an explicit 0"
                )
        for ratio, usual in RATIO_FIELDS.items():
            name = ratio.removesuffix("_ratio")
            if name not in found:
                factor = decimal_of(row.get(ratio, self.head.get(ratio, usual)), WHAT, f"{where}, {ratio}")
                if not 0 <= factor <= 100:
                    raise InputError(WHAT, f"{where}, {ratio}", str(factor), "must be from 0 to 100")
                found[name] = _whole(EXACT.multiply(factor, Decimal(found["input"])), f"{where}, {ratio}", str(factor))
        if found["cache_read"] > found["input"]:  # the bound of a budget takes a read to make a request cheaper
            named = "cache_read" if "cache_read" in fields else "cache_read_ratio"
            stated = fields.get(named, row.get(named, self.head.get(named)))
            raise InputError(WHAT, f"{where}, {named}", str(stated), "must not make a cache read dearer than input")
        return Rates(**found)

    def _tiers(self, row: Mapping[str, Any], base: Rates, where: str) -> tuple[Tier, ...]:
        listed = row.get("tiers", [])
        if not isinstance(listed, list) or not all(isinstance(tier, dict) for tier in listed):
            raise InputError(WHAT, f"{where}, tiers", listed, "must be a list of tables")
        tiers: list[Tier] = []
        for index, fields in enumerate(listed, start=1):
            place = f"{where}, tier {index}"
            _check_fields(place, fields, TIER_FIELDS)
            above = _tokens(fields, "above_input_tokens", place)
            if above is None or (tiers and above <= tiers[-1].above_input_tokens):
                raise InputError(WHAT, f"{place}, above_input_tokens", above, "must be stated, and rise from tier to tier")
            if "whole" not in fields:
                raise InputError(WHAT, f"{place}, whole", None, "must say true (all tokens) or false (only the excess)")
            tiers.append(
                Tier(
                    above_input_tokens=above,
                    whole=_flag(fields, "whole", place),
                    rates=self._tier_rates(fields, row, base, place),
                )
            )
            _check_tier(tiers, base, place)
        return tuple(tiers)

    def _tier_rates(self, fields: Mapping[str, Any], row: Mapping[str, Any], base: Rates, place: str) -> Rates:
        if _flag(fields, "whole", place):
            return self._rates(fields, row, place)
        extra = set(fields) - {"above_input_tokens", "whole", "input"}
        if extra or "input" not in fields:
            rule = "an excess tier states input only"
            raise InputError(WHAT, place, ", ".join(sorted(extra)) or None, rule)
        rate = self._rate(fields["input"], f"{place}, input")
        return Rates(
            input=rate,
            output=base.output,
            cache_read=base.cache_read,
            cache_write_5m=base.cache_write_5m,
            cache_write_1h=base.cache_write_1h,
            reasoning=base.reasoning,
        )

    def _rate(self, value: object, where: str) -> int:
        stated = decimal_of(value, WHAT, where)
        per_million = EXACT.scaleb(stated, self.power - 12)
        if stated < 0 or (stated != 0 and not LEAST_PER_MILLION <= per_million <= MOST_PER_MILLION):
            span = f"0 or from {LEAST_PER_MILLION:f} to {MOST_PER_MILLION:f}"
            rule = f"is {per_million:f} dollars per million tokens, which must be {span}"
            raise InputError(WHAT, where, str(value), rule, hint="is the table's unit right?")
        return _whole(EXACT.scaleb(stated, self.power), where, str(value))

    def _fee(self, value: object, where: str) -> int:
        stated = decimal_of(value, WHAT, where)
        if not 0 <= stated <= 1000:
            raise InputError(WHAT, where, str(value), "must be from 0 to 1000 dollars a request")
        return _whole(EXACT.scaleb(stated, 18), where, str(value))


def _whole(atto: Decimal, where: str, shown: str) -> int:
    if atto != atto.to_integral_value():
        raise InputError(WHAT, where, shown, "has more decimals than can be kept: at most 12 in dollars per million tokens")
    return int(atto)


def _check_tier(tiers: list[Tier], base: Rates, where: str) -> None:
    """Refuse a mix of kinds, and a tier that is cheaper than what stands below it: a bound relies on that."""
    tier = tiers[-1]
    before = tiers[-2].rates if len(tiers) > 1 else base
    if tier.whole != tiers[0].whole:
        raise InputError(WHAT, f"{where}, whole", tier.whole, "must be the same for all tiers of a row")
    for name in ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h"):
        if getattr(tier.rates, name) < getattr(before, name):
            raise InputError(WHAT, f"{where}, {name}", getattr(tier.rates, name), "must not be cheaper than below the tier")
    if tier.rates.dear_output < before.dear_output:
        raise InputError(WHAT, f"{where}, reasoning", tier.rates.reasoning, "must not be cheaper than below the tier")
