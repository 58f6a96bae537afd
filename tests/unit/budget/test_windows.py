"""Calendar windows in a time zone: [start, end), daylight saving right (budgets.md §8)."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.budget.windows import WindowKind, instant_of, microseconds, window_at
from horde_policy.errors import ConfigError

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",  # fell back at one minute past midnight until 2011
    "America/Havana",  # midnight comes twice
    "America/Sao_Paulo",  # midnight was skipped
    "Africa/Cairo",
    "Asia/Beirut",
    "Pacific/Apia",  # a whole day was skipped
    "Pacific/Kiritimati",
    "Asia/Kolkata",
    "Australia/Lord_Howe",  # half an hour of summer time
    "America/Toronto",
]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "zone", "now", "start", "end"),
    [
        ("day", "UTC", "2026-01-01T00:00:00", "2026-01-01T00:00:00", "2026-01-02T00:00:00"),
        ("day", "UTC", "2026-01-01T23:59:59.999999", "2026-01-01T00:00:00", "2026-01-02T00:00:00"),
        ("day", "Europe/Berlin", "2026-03-29T12:00:00", "2026-03-28T23:00:00", "2026-03-29T22:00:00"),  # 23 hours
        ("day", "Europe/Berlin", "2026-10-25T12:00:00", "2026-10-24T22:00:00", "2026-10-25T23:00:00"),  # 25 hours
        ("week", "Europe/Berlin", "2026-03-29T21:59:59", "2026-03-22T23:00:00", "2026-03-29T22:00:00"),
        ("week", "UTC", "2026-11-29T12:00:00", "2026-11-23T00:00:00", "2026-11-30T00:00:00"),
        ("month", "America/New_York", "2026-03-01T04:59:59", "2026-02-01T05:00:00", "2026-03-01T05:00:00"),
        ("month", "America/New_York", "2026-03-01T05:00:00", "2026-03-01T05:00:00", "2026-04-01T04:00:00"),
        ("month", "UTC", "2024-02-29T12:00:00", "2024-02-01T00:00:00", "2024-03-01T00:00:00"),
        ("month", "UTC", "2026-12-31T12:00:00", "2026-12-01T00:00:00", "2027-01-01T00:00:00"),
        ("day", "America/Sao_Paulo", "2018-11-04T12:00:00", "2018-11-04T03:00:00", "2018-11-05T02:00:00"),  # no midnight
        ("day", "America/Havana", "2023-11-05T14:00:00", "2023-11-05T04:00:00", "2023-11-06T05:00:00"),  # two midnights
        ("day", "America/Toronto", "1919-03-31T12:00:00", "1919-03-31T04:30:00", "1919-04-01T04:00:00"),  # 23:30 → 00:30
        ("day", "Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T10:00:00", "2011-12-31T10:00:00"),  # no 30 December
        ("day", "Pacific/Apia", "2011-12-30T09:59:59", "2011-12-29T10:00:00", "2011-12-30T10:00:00"),
        # at 00:01 the clock goes back to 23:01 of the day before: the instants shown twice belong to the new day
        ("day", "America/St_Johns", "2010-11-07T02:30:30", "2010-11-07T02:30:00", "2010-11-08T03:30:00"),
        ("day", "America/St_Johns", "2010-11-07T03:00:00", "2010-11-07T02:30:00", "2010-11-08T03:30:00"),
    ],
)
def test_a_window_starts_at_local_midnight_and_ends_at_the_next(
    kind: WindowKind, zone: str, now: str, start: str, end: str
) -> None:
    found = window_at(kind, zone, at(now))
    assert (found.start, found.end) == (at(start), at(end))
    assert found.holds(at(now))
    assert found.holds(at(start))
    assert not found.holds(at(end))


def test_a_total_window_has_no_end() -> None:
    found = window_at("total", "UTC", at("2026-01-01T00:00:00"))
    assert found.end is None
    assert found.holds(at("9999-01-01T00:00:00"))


@pytest.mark.parametrize("kind", ["day", "week", "month"])
@pytest.mark.parametrize("zone", ZONES)
def test_windows_tile_the_years_without_gap_or_overlap(kind: WindowKind, zone: str) -> None:
    for first in ("2010-10-20T05:00:00", "2011-12-15T05:00:00", "2018-10-25T05:00:00", "2023-10-30T05:00:00"):
        windows = [window_at(kind, zone, at(first))]
        while windows[-1].start < at(first) + timedelta(days=40):
            assert windows[-1].end is not None
            windows.append(window_at(kind, zone, windows[-1].end))
        for earlier, later in pairwise(windows):
            assert earlier.end == later.start
            assert window_at(kind, zone, later.start - timedelta(microseconds=1)) == earlier
            assert earlier.start < later.start


@given(st.sampled_from(ZONES), st.sampled_from(["day", "week", "month"]), st.integers(4 * 10**13, 38 * 10**14))
def test_every_instant_is_in_its_window(zone: str, kind: WindowKind, us: int) -> None:
    now = instant_of(us)
    found = window_at(kind, zone, now)
    assert found.holds(now)
    assert window_at(kind, zone, found.start) == found
    assert microseconds(now) == us


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../etc/passwd", "/etc/localtime", "Europe/Berlin\0", "Europe"])
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(ConfigError, match="must be a time zone of the IANA data base"):
        window_at("day", zone, at("2026-01-01T00:00:00"))


def test_an_unknown_kind_or_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ConfigError, match="must be one of day, week, month, total"):
        window_at("year", "UTC", at("2026-01-01T00:00:00"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="must have a time zone"):
        window_at("day", "UTC", datetime(2026, 1, 1))  # noqa: DTZ001


LAST, FIRST = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)


@pytest.mark.parametrize("kind", ["day", "week", "month"])
@pytest.mark.parametrize(
    ("zone", "edge"), [("UTC", LAST), ("Pacific/Kiritimati", LAST), ("America/New_York", LAST), ("Pacific/Pago_Pago", FIRST)]
)
def test_an_instant_whose_window_leaves_the_calendar_is_refused(kind: WindowKind, zone: str, edge: datetime) -> None:
    with pytest.raises(ConfigError, match="does not lie within the years 1 to 9999"):
        window_at(kind, zone, edge)


def test_the_first_window_of_the_calendar_and_a_total_at_its_ends_are_windows() -> None:
    assert window_at("day", "UTC", FIRST).holds(FIRST)
    assert window_at("total", "UTC", LAST).end is None
