"""What the Budget page shows as one frozen value, and its part of the address.

The rules are those of :mod:`horde_policy.views.state`: what cannot be read falls back to its default with a note, what equals the
default is not written. A request body never stands in an address, since it holds what somebody wrote.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from horde_policy.budget.money import MAX_LIMIT_PICO, to_pico
from horde_policy.budget.prices import EPOCH
from horde_policy.budget.reservation import DEFAULT_OUTPUT_TOKENS
from horde_policy.budget.windows import window_at
from horde_policy.errors import ConfigError, InputError, shown

__all__ = [
    "ASKS",
    "BUDGET_NAMES",
    "INPUTS",
    "MOST_ALIKE",
    "MOST_RESERVE_TOKENS",
    "WINDOWS",
    "BudgetState",
    "asks_from_text",
    "limit_from_text",
    "parse_budget_state",
    "reserve_from_text",
    "zone_from_text",
]

Query = Mapping[str, Sequence[str]]

ASKS: Final = {
    "agents": "as agents: 32,000, 8,192 or 4,096",
    "ladder": "the next usual size",
    "none": "no limit at all",
}
"""What clients are taken to ask for, where the requests do not say: a rule, or one number of tokens for all."""

WINDOWS: Final = {"total": "in all", "month": "a month", "week": "a week", "day": "a day"}
INPUTS: Final = ("certain", "declared", "measured")
"""Assumptions about the input of requests that are open."""

MOST_RESERVE_TOKENS = 1_000_000
MOST_ALIKE = 1_000
_WHOLE = re.compile(r"[0-9]{1,7}")
_REAL = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,120}")
_ZONE = re.compile(r"[A-Za-z0-9_+/-]{1,60}")
MOST_MODEL_CHARACTERS = 200


class _Unreadable(Exception):  # noqa: N818 (never leaves this module)
    """A value of the address breaks the rule that the message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """What the Budget page shows.

    Attributes
    ----------
    requests, asks
        Key of the requests, and the output limit they are given where they have none of their own.
    pace_tok_per_s, input_ratio
        How fast output comes, and real input tokens to one estimated token: assumed where the requests do not say.
    prices, model
        Key of the price table, and the model that requests without one are priced as; empty for the table's first.
    limit, window, zone
        The budget: dollars as a decimal text, empty for half of what everything costs.
    reserve_tokens
        ``reservation.output_tokens`` of the figures over time and of the calculator.
    alike
        How many requests like the calculator's are open at once.
    inputs
        The assumption about the input of a ledger's open requests.

    Examples
    --------
    >>> state, notes = parse_budget_state({"budget_limit": ["5.00"], "budget_window": ["day"]})
    >>> state.limit, state.window, notes
    ('5.00', 'day', ())
    >>> state.query()
    {'budget_limit': ['5.00'], 'budget_window': ['day']}
    """

    requests: str = "azure2023_conv"
    asks: str = "agents"
    pace_tok_per_s: float = 30.0
    input_ratio: float = 1.0
    prices: str = "example-hosted"
    model: str = ""
    limit: str = ""
    window: str = "total"
    zone: str = "UTC"
    reserve_tokens: int = DEFAULT_OUTPUT_TOKENS
    alike: int = 20
    inputs: str = "certain"

    def changed(self, **changes: object) -> Self:
        """Return the state with some fields replaced.

        >>> BudgetState().changed(window="day").window
        'day'
        """
        return replace(self, **changes)  # type: ignore[arg-type]

    def query(self) -> dict[str, list[str]]:
        """Return the state as a query string: what differs from the defaults, in a fixed order."""
        default = type(self)()
        return {
            name: [write(getattr(self, field))]
            for name, (field, _, write) in _PARAMETERS.items()
            if getattr(self, field) != getattr(default, field)
        }


def limit_from_text(text: str) -> str:
    """Return a limit that somebody typed, as the decimal text it is kept as; empty for half of what everything costs.

    Raises
    ------
    InputError
        It is no amount of dollars of at least 0.

    Examples
    --------
    >>> limit_from_text(" $1,500.50 "), limit_from_text("")
    ('1500.50', '')
    """
    plain = text.strip().removeprefix("$").replace(",", "").strip()
    if plain:
        to_pico(plain, "limit", most=MAX_LIMIT_PICO)
    return plain


def asks_from_text(text: str) -> str:
    """Return what clients are taken to ask for: a rule of :data:`ASKS`, or a number of tokens.

    Raises
    ------
    InputError
        It is neither.

    Examples
    --------
    >>> asks_from_text("64,000"), asks_from_text("none")
    ('64000', 'none')
    """
    plain = text.strip().replace(",", "")
    if plain in ASKS:
        return plain
    if not _WHOLE.fullmatch(plain) or not 1 <= int(plain) <= MOST_RESERVE_TOKENS:
        rule = f"must be one of {', '.join(ASKS)}, or a whole number from 1 to {MOST_RESERVE_TOKENS}"
        raise InputError("output limit", "", text, rule)
    return str(int(plain))


def reserve_from_text(text: str) -> int:
    """Return a size of the reservation that somebody typed.

    Raises
    ------
    InputError
        It is no whole number from 0 to 1,000,000.

    Examples
    --------
    >>> reserve_from_text("1,500"), reserve_from_text("0")
    (1500, 0)
    """
    plain = text.strip().replace(",", "")
    if not _WHOLE.fullmatch(plain) or int(plain) > MOST_RESERVE_TOKENS:
        raise InputError("reservation.output_tokens", "", text, f"must be a whole number from 0 to {MOST_RESERVE_TOKENS}")
    return int(plain)


def zone_from_text(text: str) -> str:
    """Return a time zone that somebody typed.

    Raises
    ------
    InputError
        It is none.

    Examples
    --------
    >>> zone_from_text(" Europe/Berlin ")
    'Europe/Berlin'
    """
    plain = text.strip()
    try:
        if not _ZONE.fullmatch(plain):
            raise ConfigError("zone", plain, "must be a time zone")
        window_at("day", plain, EPOCH)
    except ConfigError:
        raise InputError("time zone", "", text, "must be a time zone as Europe/Berlin") from None
    return plain


def _checked(check: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return check(text)
        except InputError as error:
            raise _Unreadable(error.rule) from None

    return read


def _pattern(pattern: re.Pattern[str], rule: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not pattern.fullmatch(text):
            raise _Unreadable(rule)
        return text

    return read


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise _Unreadable("must be one of " + ", ".join(words))
        return text

    return read


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
            raise _Unreadable(f"must be a whole number from {least} to {most}")
        return int(text)

    return read


def _number(least: float, most: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        if not _REAL.fullmatch(text) or not least <= float(text) <= most:
            raise _Unreadable(f"must be a number from {least:g} to {most:g}")
        return float(text)

    return read


def _model(text: str) -> str:
    if len(text) > MOST_MODEL_CHARACTERS or not text.isprintable():
        raise _Unreadable(f"must be a printable name of at most {MOST_MODEL_CHARACTERS} characters")
    return text


def _number_text(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


Entry = tuple[str, Callable[[str], Any], Callable[[Any], str]]

_PARAMETERS: Final[dict[str, Entry]] = {
    "budget_requests": ("requests", _pattern(_KEY, "must be the name of requests"), str),
    "budget_asks": ("asks", _checked(asks_from_text), str),
    "budget_pace": ("pace_tok_per_s", _number(0.1, 100_000), _number_text),
    "budget_input": ("input_ratio", _number(0.01, 100), _number_text),
    "budget_prices": ("prices", _pattern(_KEY, "must be the name of a price table"), str),
    "budget_model": ("model", _model, str),
    "budget_limit": ("limit", _checked(limit_from_text), str),
    "budget_window": ("window", _one_of(tuple(WINDOWS)), str),
    "budget_zone": ("zone", _checked(zone_from_text), str),
    "budget_reserve": ("reserve_tokens", _checked(reserve_from_text), str),
    "budget_alike": ("alike", _whole(1, MOST_ALIKE), str),
    "budget_open": ("inputs", _one_of(INPUTS), str),
}

BUDGET_NAMES: Final = frozenset(_PARAMETERS)
"""Every parameter of the Budget page."""


def parse_budget_state(query: Query) -> tuple[BudgetState, tuple[str, ...]]:
    """Return the state that a query string stands for, and a note for every value that was left out. Nothing raises.

    >>> parse_budget_state({"budget_limit": ["-1"]})[1]
    ("The link's budget_limit='-1' is left out: it must be at least 0 dollars.",)
    """
    values: dict[str, Any] = {}
    notes: list[str] = []
    for name, (field, read, _) in _PARAMETERS.items():
        given = query.get(name)
        if given:
            try:
                values[field] = read(given[-1])
            except _Unreadable as why:
                notes.append(f"The link's {name}={shown(given[-1])} is left out: it {why}.")
    return BudgetState(**values), tuple(notes)
