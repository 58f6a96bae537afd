from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.errors import InputError
from horde_policy.review.ranges import STEPS, TimeRange, in_steps, span_of, step_for, typical_interval, within
from tests.unit.review.made import MONDAY, decision, decisions, hour


def at(hours: float) -> datetime:
    return MONDAY + timedelta(hours=hours)


@pytest.mark.parametrize(
    ("start", "end", "low", "high"),
    [
        (None, None, 4, 4),
        (0, 1, 4, 4),  # exactly the interval
        (-1, 5, 4, 4),
        (0.5, 5, 0, 4),  # reaches over the start
        (-1, 0.5, 0, 4),  # reaches over the end
        (0.2, 0.8, 0, 4),
        (1, 2, None, None),  # what ends with the range's start lies before it
        (-1, 0, None, None),
    ],
)
def test_a_range_holds_what_lies_inside_and_perhaps_what_reaches_over_its_edge(
    start: float | None, end: float | None, low: float | None, high: float | None
) -> None:
    span = TimeRange(None if start is None else at(start), None if end is None else at(end))
    kept = within(decisions(decision(4)), span)
    assert [*kept.select("count_low", "count_high").iter_rows()] == ([] if low is None else [(low, high)])


def test_what_is_not_timed_may_lie_in_any_range() -> None:
    rows = decisions(
        decision(4, interval_start=None),
        decision(5, interval_start=None, interval_end=None),
    )
    assert within(rows, TimeRange(at(0.5), None))["count_low"].to_list() == [0, 0]
    assert within(rows, TimeRange(None, at(2)))["count_low"].to_list() == [4, 0]  # without a start only the end counts
    assert within(rows, TimeRange(at(2), None))["count_high"].to_list() == [5]


def test_ranges_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="must be before the end"):
        TimeRange(at(1), at(1))


@pytest.mark.parametrize(
    ("hours", "interval_minutes", "expected_minutes"),
    [(24 * 7, 1, 60), (24 * 7, 1440, 1440), (24, 1, 10), (1, 1, 1), (24 * 365, 1, 10080), (24 * 3650, 1, 40320)],
)
def test_a_step_is_readable_and_no_shorter_than_the_data(hours: int, interval_minutes: int, expected_minutes: int) -> None:
    span = TimeRange(at(0), at(hours))
    assert step_for(span, interval=timedelta(minutes=interval_minutes)) == timedelta(minutes=expected_minutes)


intervals = st.tuples(st.integers(0, 600), st.integers(1, 300), st.integers(0, 50), st.integers(0, 20))


@given(st.lists(intervals, min_size=1, max_size=12), st.sampled_from([step for step in STEPS if step <= timedelta(hours=6)]))
def test_steps_lose_nothing_and_bound_every_way_the_counts_may_lie(
    spans: list[tuple[int, int, int, int]], step: timedelta
) -> None:
    rows = decisions(
        *(
            decision(low, low + more, interval_start=at(start / 60), interval_end=at((start + length) / 60))
            for start, length, low, more in spans
        )
    )
    cut = in_steps(rows, step)
    assert cut["count_even"].sum() == pytest.approx(sum(low + more / 2 for _, _, low, more in spans))
    sums = cut.group_by("time").agg(pl.col("count_low", "count_high").sum()).sort("time")
    # all at the end of its interval, or all just after its start: both lie between the bounds of every step
    for end in (0, 1):
        held: dict[datetime, int] = {}
        for start, length, low, more in spans:
            moment = (start + length) * 60_000_000 - 1 if end else start * 60_000_000
            place = (MONDAY + timedelta(microseconds=moment) - datetime(1970, 1, 1, tzinfo=UTC)) // step
            time = datetime(1970, 1, 1, tzinfo=UTC) + place * step
            held[time] = held.get(time, 0) + low + more
        for time, low, high in sums.iter_rows():
            assert low <= held.get(time, 0) <= high


def test_an_interval_that_ends_with_a_step_lies_in_it() -> None:
    cut = in_steps(decisions(decision(4, None, **hour(2))), timedelta(hours=1))
    assert cut.select("time", "count_low", "count_high").rows() == [(at(2), 4, 4)]


def test_the_span_of_nothing_is_not_known() -> None:
    empty = decisions()
    assert span_of(empty) == TimeRange(None, None)
    assert typical_interval(empty) is None
    assert in_steps(empty, timedelta(hours=1)).is_empty()
    one = decisions(decision(1, interval_start=None, interval_end=None))
    assert in_steps(one, timedelta(hours=1)).select("time", "count_low", "count_high").rows() == [(None, 1, 1)]
