"""What the Budget page shows as one frozen value, and its part of the address.

What cannot be read falls back to its default with a note, what equals the default is not written. A request
body never stands in an address, since it holds what somebody wrote.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from horde_policy.budget.money import MAX_LIMIT_PICO, to_pico
from horde_policy.budget.prices import EPOCH
from horde_policy.budget.reservation import DEFAULT_OUTPUT_TOKENS
from horde_policy.budget.windows import window_at
from horde_policy.errors import ConfigError, InputError
from horde_policy.views.address_values import (
    Parameter,
    Query,
    UnreadableValue,
    checked,
    matching,
    number,
    number_text,
    one,
    one_of,
    read_values,
    whole,
)
from horde_policy.views.text import comma_hint, ungrouped

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
_KEY = r"[A-Za-z0-9_.-]{1,120}"
_ZONE = re.compile(r"[A-Za-z0-9_+/-]{1,60}")
MOST_MODEL_CHARACTERS = 200


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
            parameter.name: list(parameter.write(getattr(self, parameter.field)))
            for parameter in _PARAMETERS
            if getattr(self, parameter.field) != getattr(default, parameter.field)
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
    plain = ungrouped(text.strip().removeprefix("$"))
    if plain:
        try:
            to_pico(plain, "limit", most=MAX_LIMIT_PICO)
        except InputError as error:
            raise InputError("limit", "", plain, error.rule, hint=comma_hint(plain)) from None
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
    plain = ungrouped(text)
    if plain in ASKS:
        return plain
    if not _WHOLE.fullmatch(plain) or not 1 <= int(plain) <= MOST_RESERVE_TOKENS:
        rule = f"must be one of {', '.join(ASKS)}, or a whole number from 1 to {MOST_RESERVE_TOKENS}"
        raise InputError("output limit", "", text, rule, hint=comma_hint(text))
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
    plain = ungrouped(text)
    if not _WHOLE.fullmatch(plain) or int(plain) > MOST_RESERVE_TOKENS:
        rule = f"must be a whole number from 0 to {MOST_RESERVE_TOKENS}"
        raise InputError("reservation.output_tokens", "", text, rule, hint=comma_hint(text))
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


def _model(values: Sequence[str]) -> str:
    if len(values[-1]) > MOST_MODEL_CHARACTERS or not values[-1].isprintable():
        raise UnreadableValue(f"must be a printable name of at most {MOST_MODEL_CHARACTERS} characters")
    return values[-1]


_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("budget_requests", "requests", matching(_KEY, "must be the name of requests"), one, shared=False),
    Parameter("budget_asks", "asks", checked(asks_from_text), one, shared=False),
    Parameter("budget_pace", "pace_tok_per_s", number(0.1, 100_000), number_text, shared=False),
    Parameter("budget_input", "input_ratio", number(0.01, 100), number_text, shared=False),
    Parameter("budget_prices", "prices", matching(_KEY, "must be the name of a price table"), one, shared=False),
    Parameter("budget_model", "model", _model, one, shared=False),
    Parameter("budget_limit", "limit", checked(limit_from_text), one, shared=False),
    Parameter("budget_window", "window", one_of(WINDOWS), one, shared=False),
    Parameter("budget_zone", "zone", checked(zone_from_text), one, shared=False),
    Parameter("budget_reserve", "reserve_tokens", checked(reserve_from_text), one, shared=False),
    Parameter("budget_alike", "alike", whole(1, MOST_ALIKE), one, shared=False),
    Parameter("budget_open", "inputs", one_of(INPUTS), one, shared=False),
)

BUDGET_NAMES: Final = frozenset(parameter.name for parameter in _PARAMETERS)
"""Every parameter of the Budget page."""


def parse_budget_state(query: Query) -> tuple[BudgetState, tuple[str, ...]]:
    """Return the state that a query string stands for, and a note for every value that was left out. Nothing raises.

    >>> parse_budget_state({"budget_limit": ["-1"]})[1]
    ("The link's budget_limit='-1' is left out: it must be at least 0 dollars.",)
    """
    values, notes = read_values(_PARAMETERS, query)
    return BudgetState(**values), tuple(notes)
