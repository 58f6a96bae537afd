"""The border of a replay: defaults where the contract says so, and bad input refused whole, by row, column, value and rule."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from horde_policy.errors import FrameError, InputError
from horde_policy.frames.fleet import FLEET, normalised_fleet
from horde_policy.frames.traffic import TRAFFIC, normalised_traffic
from horde_policy.replay import replay
from horde_policy.settings import ReplaySettings
from tests.unit.replay.small_worlds import at, fleet_of, request, traffic_of, worker

Change = dict[str, Any]


def traffic_with(**columns: Any) -> pl.DataFrame:
    """Three requests, with columns replaced (null: taken away)."""
    frame = traffic_of(request(0), request(1, requester="registered"), request(2, requester="shared_key"))
    return changed(frame, columns)


def fleet_with(**columns: Any) -> pl.DataFrame:
    return changed(fleet_of(worker("a"), worker("b", speed=4.0)), columns)


def changed(frame: pl.DataFrame, columns: Change) -> pl.DataFrame:
    for name, values in columns.items():
        frame = frame.drop(name) if values is None else frame.with_columns(pl.Series(name, values))
    return frame


def test_what_the_traffic_leaves_out_gets_the_contracts_defaults() -> None:
    rows = normalised_traffic(traffic_with()).to_dicts()
    assert [row["request_id"] for row in rows] == ["0", "1", "2"]
    assert [row["priority"] for row in rows] == [-50.0, 0.0, 0.0]
    assert str(rows[1]["priority"]) == "0.0"  # and not −0.0
    expected = {"output_tokens": 80, "max_context_length": 2048, "can_pay": False, "chat": False}
    expected |= {"slow_workers": True, "allow_downgrade": False}
    for row in rows:
        assert {name: row[name] for name in expected} == expected


def test_null_cells_are_filled_like_absent_columns() -> None:
    nulls = pl.DataFrame({name: [None, None, None] for name in TRAFFIC.columns if name not in {"created", "models", "requester"}})
    with_nulls = traffic_with().drop("max_length").with_columns(nulls.drop("max_length"))
    assert_frame_equal(normalised_traffic(with_nulls.with_columns(max_length=pl.lit(80))), normalised_traffic(traffic_with()))
    typed = traffic_with(
        request_id=[None, "x", None], output_tokens=[None, 3, 0], can_pay=[None, True, None], slow_workers=[None, False, None],
        priority=[None, 7.5, None], max_context_length=[None, 100, None],
    )  # fmt: skip
    rows = normalised_traffic(typed).to_dicts()
    assert [row["request_id"] for row in rows] == ["0", "x", "2"]
    assert [row["output_tokens"] for row in rows] == [80, 3, 0]
    assert [row["can_pay"] for row in rows] == [False, True, False]
    assert [row["slow_workers"] for row in rows] == [True, False, True]
    assert [row["priority"] for row in rows] == [-50.0, 7.5, 0.0]
    assert [row["max_context_length"] for row in rows] == [2048, 100, 2048]


def test_what_the_fleet_leaves_out_gets_the_contracts_defaults() -> None:
    rows = normalised_fleet(fleet_with(online_to=None)).to_dicts()
    assert [row["online_to"] for row in rows] == [None, None]
    assert [(row["threads"], row["measured"]) for row in rows] == [(1, True)] * 2
    assert [row["slow"] for row in rows] == [False, True]
    assert normalised_fleet(fleet_with(speed=[5.0, 4.999]))["slow"].to_list() == [False, True]


def test_other_columns_are_left_out_and_the_order_of_columns_does_not_matter() -> None:
    more = traffic_with(client=["a", "b", "c"]).select(pl.all().reverse().name.keep())
    assert normalised_traffic(more).columns == list(TRAFFIC.columns)
    assert normalised_fleet(fleet_with(note=["x", "y"])).columns == list(FLEET.columns)


def test_lists_in_csv_are_joined_by_bars_and_an_empty_cell_is_any_model() -> None:
    assert normalised_traffic(traffic_with(models=["a|b", "", None]))["models"].to_list() == [["a", "b"], [], []]


def test_instants_of_other_zones_and_units_are_the_same_instants() -> None:
    there = traffic_with().with_columns(pl.col("created").dt.convert_time_zone("Asia/Tokyo").dt.cast_time_unit("ms"))
    assert_frame_equal(normalised_traffic(there), normalised_traffic(traffic_with()))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"created": None}, "traffic, column created: is missing"),
        ({"models": None}, "traffic, column models: is missing"),
        ({"requester": None}, "traffic, column requester: is missing"),
        ({"max_length": None}, "traffic, column max_length: is missing"),
        ({"created": [at(0), None, at(1)]}, "row 1, column created: None must not be absent"),
        ({"created": ["2026-11-29"] * 3}, "column created: 'String' must be instants with a time zone"),
        ({"created": [datetime(2026, 11, 29)] * 3}, "has no time zone"),  # noqa: DTZ001
        ({"models": [["a"], None, []]}, "row 1, column models: None must not be absent"),
        ({"models": [["a"], ["b", None], []]}, r"row 1, column models: .* must hold names, not nulls"),
        ({"models": [1, 2, 3]}, "column models: 'Int64' must be lists of names"),
        ({"models": [[1], [2], [3]]}, r"column models: 'List\(Int64\)' must be lists of names"),
        ({"requester": ["anonymous", "robot", "registered"]}, "row 1, column requester: 'robot' must be one of anonymous, "),
        ({"requester": ["anonymous", None, "registered"]}, "row 1, column requester: None must not be absent"),
        ({"max_length": [80, 0, 80]}, "row 1, column max_length: 0 must be at least 1"),
        ({"max_length": [80, -5, 80]}, "row 1, column max_length: -5 must be at least 1"),
        ({"max_length": [80, 80, 16385]}, "row 2, column max_length: 16385 must be at most 16384"),
        ({"max_length": [80, None, 80]}, "row 1, column max_length: None must not be absent"),
        ({"max_length": [80.0, 80.0, 80.0]}, "column max_length: 'Float64' must be whole numbers"),
        ({"max_length": ["80", "80", "80"]}, "column max_length: 'String' must be whole numbers"),
        ({"output_tokens": [0, 5, -1]}, "row 2, column output_tokens: -1 must be at least 0"),
        ({"can_pay": [1, 0, 1]}, "column can_pay: 'Int64' must be true or false"),
        ({"priority": [0.0, float("nan"), 0.0]}, "row 1, column priority: nan must be a finite number"),
        ({"priority": [0.0, 0.0, float("inf")]}, "row 2, column priority: inf must be a finite number"),
        ({"priority": ["a", "b", "c"]}, "column priority: 'String' must be numbers"),
        ({"request_id": ["a", "b", "a"]}, "row 2, column request_id: 'a' must be unique, and stands twice"),
        ({"request_id": ["1", None, "b"]}, "row 1, column request_id: '1' must be unique, and stands twice"),
    ],
)
def test_bad_traffic_is_refused_by_name(columns: Change, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replay(traffic_with(**columns), fleet_with(), ReplaySettings())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"worker_id": None}, "fleet, column worker_id: is missing"),
        ({"worker_id": ["a", None]}, "row 1, column worker_id: None must not be absent"),
        ({"online_from": [at(0), None]}, "row 1, column online_from: None must not be absent"),
        ({"online_to": [at(5), at(-1)]}, "row 1, column online_to: .* must be after online_from"),
        ({"online_to": [at(5), at(-2)]}, "row 1, column online_to: .* must be after online_from"),
        ({"speed": [1.0, 0.0]}, r"row 1, column speed: 0\.0 must be a finite number above 0"),
        ({"speed": [1.0, None]}, "row 1, column speed: None must not be absent"),
        ({"speed": [float("nan"), 1.0]}, "row 0, column speed: nan must be a finite number above 0"),
        ({"speed": [float("inf"), 1.0]}, "row 0, column speed: inf must be a finite number above 0"),
        ({"threads": [1, 0]}, "row 1, column threads: 0 must be at least 1"),
        ({"max_length": [80, -1]}, "row 1, column max_length: -1 must be at least 0"),
        ({"worker_id": ["a", "a"]}, "row 1, column online_from: .* overlaps the period of the same worker in row 0"),
    ],
)
def test_a_bad_fleet_is_refused_by_name(columns: Change, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replay(traffic_with(), fleet_with(**columns), ReplaySettings())


def test_periods_may_touch_in_any_row_order_but_not_overlap() -> None:
    touching = fleet_of(worker("a", online_from=at(10)), worker("a", online_from=at(0), online_to=at(10)))
    assert normalised_fleet(touching).height == 2
    overlapping = fleet_of(worker("a", online_from=at(10)), worker("a", online_from=at(0), online_to=at(10.000001)))
    with pytest.raises(InputError, match=r"row 0, column online_from: '2026-11-29 00:00:10.*' overlaps .* in row 1"):
        normalised_fleet(overlapping)
    endless = fleet_of(worker("a", online_from=at(0)), worker("a", online_from=at(10), online_to=at(11)))
    with pytest.raises(InputError, match="row 1"):
        normalised_fleet(endless)


@pytest.mark.parametrize("year", [0, 10_000])
def test_instants_beyond_the_calendar_are_refused(year: int) -> None:
    seconds = (year - 1970) * 31_556_952
    for unit, factor in (("us", 1_000_000), ("ms", 1_000)):
        far = pl.Series("created", [seconds * factor] * 3).cast(pl.Datetime(unit, "UTC"))  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"column created: .* must lie in the years 1 to 9999"):
            normalised_traffic(traffic_with().with_columns(far))


def test_a_number_too_large_for_64_bits_is_refused() -> None:
    huge = traffic_with().with_columns(output_tokens=pl.Series([1, 2**64 - 1, 3], dtype=pl.UInt64))
    with pytest.raises(InputError, match="row 1, column output_tokens: 18446744073709551615 must fit in 64 bits"):
        normalised_traffic(huge)


@pytest.mark.parametrize("normalised", [normalised_traffic, normalised_fleet])
def test_no_rows_are_fine_and_no_columns_are_not(normalised: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    schema = TRAFFIC if normalised is normalised_traffic else FLEET
    assert_frame_equal(normalised(schema.empty()), schema.empty())
    with pytest.raises(FrameError, match="is missing"):
        normalised(pl.DataFrame())


def test_a_context_below_the_size_is_taken_as_given() -> None:
    run = replay(traffic_with(max_context_length=[10, 10, 10]), fleet_with(max_context_length=[10, 10]), ReplaySettings())
    assert run["status"].to_list() == ["completed"] * 3


def test_the_checked_frame_passes_again_unchanged() -> None:
    once = normalised_traffic(traffic_with(created=[at(k) for k in range(3)]))
    assert_frame_equal(normalised_traffic(once), once)
    assert once["created"].dtype.time_zone == str(UTC)  # type: ignore[attr-defined]
