"""What a ledger answers: a hold, a settlement, and the limits they stand under."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horde_policy.budget.money import MAX_LIMIT_PICO, to_pico
from horde_policy.budget.prices import EPOCH, Price
from horde_policy.budget.reservation import Reservation
from horde_policy.budget.settlement import HoldState
from horde_policy.budget.tables import holds
from horde_policy.budget.usage import TokenUsage
from horde_policy.budget.windows import Window, WindowKind, instant_of, window_at
from horde_policy.errors import ConfigError, InputError

__all__ = ["HOLD_COLUMNS", "Hold", "Limit", "Settlement", "checked_name", "hold_of_row"]

MAX_NAME_CHARACTERS = 200
MAX_OPEN_CAP = 10**9


@dataclass(frozen=True, slots=True)
class Limit:
    """A hard limit of one window of a budget.

    Attributes
    ----------
    kind
        Day, week, month or total.
    usd
        The limit in dollars: a decimal string, a whole number or a Decimal. 0 means that nothing may be spent.
    zone
        The time zone of the calendar.
    open_cap
        The most requests open at once; null for any number. It makes the bound small without holding more (§5.5).

    Examples
    --------
    >>> Limit("day", "5.00").pico
    5000000000000
    >>> Limit("day", "-1")
    Traceback (most recent call last):
    horde_policy.errors.InputError: limit: '-1' must be at least 0 dollars
    """

    kind: WindowKind
    usd: object
    zone: str = "UTC"
    open_cap: int | None = None

    def __post_init__(self) -> None:
        to_pico(self.usd, "limit", most=MAX_LIMIT_PICO)
        window_at(self.kind, self.zone, EPOCH)
        cap = self.open_cap
        if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int) or not 1 <= cap <= MAX_OPEN_CAP):
            raise ConfigError("open_cap", cap, f"must be a whole number from 1 to {MAX_OPEN_CAP}, or none")

    @property
    def pico(self) -> int:
        """Return the limit in pico-dollars."""
        return to_pico(self.usd, "limit", most=MAX_LIMIT_PICO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Money held for one attempt of a request, from its admission to the day its real cost is written.

    Attributes
    ----------
    request_id, attempt
        The business key: a second admission or settlement of it never counts again.
    budgets, windows
        Where the money is held: the windows that admitted it, and the budget of each, in one order.
    reservation
        What was held, and all that its bound needs.
    owner
        The copy of the program that renews it.
    created, expires, ended
        UTC instants; not renewed by ``expires`` it counts as an orphan.
    state, cost_pico
        Where it stands, and the money recorded (null while open).
    usage, flags
        What was used, if known, and what is to be said about it.
    """

    hold_id: int
    request_id: str
    attempt: int
    owner: str
    model: str
    reservation: Reservation
    created: datetime
    expires: datetime
    budgets: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()
    state: HoldState = "open"
    ended: datetime | None = None
    cost_pico: int | None = None
    usage: TokenUsage | None = None
    flags: tuple[str, ...] = ()

    @property
    def hold_pico(self) -> int:
        """Return the money held, in pico-dollars."""
        return self.reservation.hold_pico

    @property
    def key(self) -> tuple[str, int]:
        """Return request id and attempt."""
        return self.request_id, self.attempt

    def __bool__(self) -> bool:
        """Return true: a hold is an admission."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The end of a hold as it stands in the ledger.

    ``again`` says that it was there before with the same figures, and nothing was charged a second time.
    """

    request_id: str
    attempt: int
    state: HoldState
    hold_pico: int
    cost_pico: int
    flags: tuple[str, ...] = ()
    again: bool = False

    @property
    def over_hold_pico(self) -> int:
        """Return what it cost beyond its hold; negative where the hold was larger."""
        return self.cost_pico - self.hold_pico


def checked_name(value: object, what: str) -> str:
    """Return an id or a name that a ledger can keep: 1 to 200 characters, encodable, without control characters.

    >>> checked_name("request-1", "request id")
    'request-1'
    """
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_NAME_CHARACTERS or not value.isprintable():
        raise InputError(what, "", value, f"must be a printable text of 1 to {MAX_NAME_CHARACTERS} characters")
    return value


HOLD_COLUMNS = tuple(holds.c)
"""The columns of :func:`hold_of_row`, in order."""


def hold_of_row(row: Any, prices: Mapping[str, Price], places: Sequence[tuple[str, Window]] = ()) -> Hold:
    """Return the hold of a row of :data:`HOLD_COLUMNS`, with the price rows it names and the windows it is in."""
    v: dict[str, Any] = dict(zip([column.name for column in HOLD_COLUMNS], row, strict=True))
    reservation = Reservation(
        prices=tuple(prices[price_id] for price_id in v["price_ids"].split("\n")),
        body_bytes=v["body_bytes"],
        input_estimate_tokens=v["input_estimate_tokens"],
        limit_tokens=v["limit_tokens"],
        reserved_tokens=v["reserved_tokens"],
        choices=v["choices"],
        cache=v["cache"],
        hold_pico=v["hold_pico"],
        input_pico=v["input_pico"],
    )
    flags = tuple(v["flags"].split(",")) if v["flags"] else ()
    return Hold(
        hold_id=v["hold_id"],
        request_id=v["request_id"],
        attempt=v["attempt"],
        owner=v["owner"],
        model=v["model"],
        reservation=reservation,
        created=instant_of(v["created_us"]),
        expires=instant_of(v["expires_us"]),
        budgets=tuple(name for name, _ in places),
        windows=tuple(window for _, window in places),
        state=v["state"],
        ended=None if v["ended_us"] is None else instant_of(v["ended_us"]),
        cost_pico=v["cost_pico"],
        usage=_usage(v, flags),
        flags=flags,
    )


def _usage(v: Mapping[str, Any], flags: tuple[str, ...]) -> TokenUsage | None:
    if v["output_tokens"] is None:
        return None
    return TokenUsage(
        fresh=v["fresh_tokens"],
        cache_read=v["cache_read_tokens"],
        write_5m=v["write_5m_tokens"],
        write_1h=v["write_1h_tokens"],
        output=v["output_tokens"],
        reasoning=v["reasoning_tokens"],
        input_known=not {"input_missing", "input_unreadable"} & set(flags),
        output_known=not {"output_missing", "output_unreadable", "cut"} & set(flags),
        flags=flags,
    )
