"""Time as an argument: nothing below this module asks the system what time it is."""

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Gives the present instant, always aware and in UTC."""

    def now(self) -> datetime:
        """Return the present instant in UTC."""
        ...


class SystemClock:
    """The machine's own clock.

    >>> SystemClock().now().tzinfo
    datetime.timezone.utc
    """

    def now(self) -> datetime:
        """Return the present instant in UTC."""
        return datetime.now(UTC)


class FixedClock:
    """A clock that stands where it was put, for tests and demonstrations.

    >>> clock = FixedClock(datetime(2026, 11, 29, tzinfo=UTC))
    >>> clock.advance(1.5)
    >>> clock.now()
    datetime.datetime(2026, 11, 29, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc)
    """

    def __init__(self, at: datetime) -> None:
        self._at = at.astimezone(UTC)

    def now(self) -> datetime:
        """Return the instant the clock was put at, plus what it was advanced by."""
        return self._at

    def advance(self, seconds: float) -> None:
        """Move the clock by ``seconds``; a negative number sets it back."""
        self._at += timedelta(seconds=seconds)
