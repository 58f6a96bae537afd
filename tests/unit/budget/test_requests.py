"""Requests of a budget replay: typed, filled, checked row by row, and made from recorded traffic (design §3)."""

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from horde_policy.budget.requests import checked_requests, requests_from_traffic
from horde_policy.budget.simulate import ALTERNATIVES
from horde_policy.errors import FrameError, InputError


def valid() -> dict[str, list[Any]]:
    return {
        "created": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01+01:00"],
        "model": ["m", "m"],
        "input_tokens": [5, 6],
        "max_tokens": [None, 7],
        "output_tokens": [1, 2],
        "duration_s": [1.0, 2.0],
    }


def test_requests_are_typed_filled_and_sorted() -> None:
    frame = checked_requests(pl.DataFrame(valid()))
    assert frame["created"].to_list() == [datetime(2025, 12, 31, 23, 0, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)]
    assert frame["max_tokens"].to_list() == [7, None]
    assert frame["n"].to_list() == [1, 1]
    assert frame["body_bytes"].to_list() == [None, None]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("created", "yesterday", "row 1, column created: 'yesterday' must be Datetime"),
        ("created", None, "row 1, column created: None must not be missing"),
        ("output_tokens", -1, "row 1, column output_tokens: -1 must be a whole number from 0"),
        ("output_tokens", 1.5, "row 1, column output_tokens: 1.5 must be Int64"),
        ("output_tokens", None, "must not be missing"),
        ("max_tokens", 0, "row 1, column max_tokens: 0 must be a whole number from 1"),
        ("duration_s", -0.1, "row 1, column duration_s: -0.1 must be from 0"),
        ("duration_s", float("nan"), "row 1, column duration_s: nan must be from 0"),
        ("duration_s", float("inf"), "row 1, column duration_s: inf must be from 0"),
        ("input_tokens", None, "must not be missing together with body_bytes"),
        ("model", None, "must not be missing"),
    ],
)
def test_a_row_that_breaks_its_rule_is_refused_with_its_place(column: str, value: object, message: str) -> None:
    rows = valid()
    rows[column][1] = value
    with pytest.raises((InputError, FrameError), match=message):
        checked_requests(pl.DataFrame(rows, strict=False))


def test_cached_tokens_lie_inside_the_input() -> None:
    with pytest.raises(InputError, match="must together be at most the input tokens"):
        checked_requests(pl.DataFrame(valid() | {"cache_read_tokens": [3, 3], "cache_write_1h_tokens": [2, 4]}))


@pytest.mark.parametrize("missing", ["created", "model", "max_tokens", "output_tokens", "duration_s", "input_tokens"])
def test_a_missing_column_is_named(missing: str) -> None:
    with pytest.raises(FrameError, match=missing):
        checked_requests(pl.DataFrame(valid()).drop(missing))


def test_assumed_speeds_make_sense() -> None:
    traffic = pl.DataFrame({"created": ["2026-01-01T00:00:00Z"], "input_tokens": [1], "output_tokens": [30], "max_length": [80]})
    assert requests_from_traffic(traffic, model="m", tokens_per_s=30.0, first_token_s=0.5)["duration_s"][0] == 1.5
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="tokens_per_s"):
            requests_from_traffic(traffic, model="m", tokens_per_s=wrong)
    with pytest.raises(InputError, match="first_token_s"):
        requests_from_traffic(traffic, model="m", tokens_per_s=1.0, first_token_s=-1.0)
    assert ALTERNATIVES == ("full", "input", "stop")
