"""The windows of a budget: a calendar day, week or month in a time zone, or all time; [start, end) in UTC (budgets.md §8).

A window is computed from an instant and a zone; nothing has to run at midnight, since the next window is another row. Local
midnight may be 23 or 25 hours away, may come twice (the first counts) or not at all (the first instant after it counts).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from horde_policy.errors import ConfigError

__all__ = ["Window", "WindowKind", "instant_of", "microseconds", "window_at"]

WindowKind = Literal["day", "week", "month", "total"]
"""``week`` is the ISO week: from Monday. ``total`` has neither start nor end."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Window:
    """One window: ``start`` is in it, ``end`` is not; a ``total`` window starts at the epoch and has no end."""

    kind: WindowKind
    zone: str
    start: datetime
    end: datetime | None

    def holds(self, at: datetime) -> bool:
        """Return whether an instant is in the window."""
        return self.start <= at and (self.end is None or at < self.end)


def window_at(kind: WindowKind, zone: str, at: datetime) -> Window:
    """Return the window of a kind that an instant is in.

    Parameters
    ----------
    kind
        Day, week, month or total.
    zone
        A name of the IANA data base, as ``Europe/Berlin`` or ``UTC``.
    at
        An aware instant.

    Raises
    ------
    ConfigError
        Unknown kind or zone, or an instant without a zone.

    Examples
    --------
    >>> day = window_at("day", "Europe/Berlin", datetime(2026, 3, 29, 12, tzinfo=UTC))
    >>> day.start.isoformat(), (day.end - day.start).total_seconds() / 3600
    ('2026-03-28T23:00:00+00:00', 23.0)
    """
    if kind not in get_args(WindowKind):
        raise ConfigError("window", kind, "must be one of " + ", ".join(get_args(WindowKind)))
    if at.tzinfo is None:
        raise ConfigError("instant", at.isoformat(), "must have a time zone")
    place = _zone(zone)
    if kind == "total":
        return Window(kind, zone, EPOCH, None)
    try:
        first, after = _DATES[kind](at.astimezone(place).date())
        if _first_instant(after, place) <= at:  # a clock set back over midnight shows the old date a second time
            first, after = _DATES[kind](after)
        return Window(kind, zone, _first_instant(first, place), _first_instant(after, place))
    except (OverflowError, ValueError) as error:
        raise ConfigError("instant", at.isoformat(), f"is in a {kind} that does not lie within the years 1 to 9999") from error


def microseconds(at: datetime) -> int:
    """Return an aware instant as microseconds since the epoch: how a ledger keeps it.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
    1000005
    """
    return (at - EPOCH) // timedelta(microseconds=1)


def instant_of(us: int) -> datetime:
    """Return the instant of microseconds since the epoch.

    >>> instant_of(1_000_005).isoformat()
    '1970-01-01T00:00:01.000005+00:00'
    """
    return EPOCH + timedelta(microseconds=us)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError, AttributeError) as error:
        raise ConfigError("zone", name, "must be a time zone of the IANA data base, as Europe/Berlin or UTC") from error


def _day(local: date) -> tuple[date, date]:
    return local, local + timedelta(days=1)


def _week(local: date) -> tuple[date, date]:
    monday = local - timedelta(days=local.weekday())
    return monday, monday + timedelta(days=7)


def _month(local: date) -> tuple[date, date]:
    first = local.replace(day=1)
    return first, (first + timedelta(days=32)).replace(day=1)


_DATES: dict[str, Callable[[date], tuple[date, date]]] = {"day": _day, "week": _week, "month": _month}


def _first_instant(day: date, zone: ZoneInfo) -> datetime:
    """Return the first instant whose local date is ``day`` or later."""
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 (a local clock's reading)
    early = midnight.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if early.astimezone(zone).replace(tzinfo=None) == midnight:
        return early
    # Midnight is skipped: the clock jumps over it somewhere between the readings of the two offsets.
    low = midnight.replace(tzinfo=zone, fold=1).astimezone(UTC)
    high = early
    while high - low > timedelta(microseconds=1):
        middle = low + (high - low) // 2
        if middle.astimezone(zone).replace(tzinfo=None) >= midnight:
            high = middle
        else:
            low = middle
    return high
