import polars as pl
import pytest

from horde_policy.frames.decisions import SIZES
from horde_policy.review.cells import judged, level_counts, rule_counts, size_grid
from horde_policy.review.sampling import Bounds
from horde_policy.settings import AllowanceSettings
from tests.unit.review.made import decision, decisions

DEFAULT = AllowanceSettings()


@pytest.mark.parametrize(
    ("words", "level", "code"),
    [
        ({"outcome": "free", "requested_size": "513-1024", "allowance_size": "<=512"}, "impossible", "free_over_allowance"),
        ({"outcome": "downgraded", "chat": True, "requested_size": ">4096"}, "impossible", "downgraded_chat"),
        ({"allowance_size": ">4096"}, "impossible", "allowance_out_of_range"),
        ({"outcome": "funded", "requester": "anonymous", "requested_size": ">4096"}, "special", "anonymous_funded"),
        ({"outcome": "refused", "requested_size": "<=512"}, "special", "held_under_allowance"),
        ({"requested_size": "2049-4096"}, "undecided", "same_bucket"),
        ({"requested_size": "513-1024"}, None, None),
        ({"requested_size": None, "outcome": "refused"}, None, None),
        ({"outcome": "downgraded", "chat": None, "requested_size": ">4096"}, None, None),
    ],
)
def test_a_row_is_judged_by_the_first_rule_that_applies(words: dict[str, object], level: str | None, code: str | None) -> None:
    assert judged(decisions(decision(1, None, **words)), DEFAULT).select("level", "code").row(0) == (level, code)


@pytest.mark.parametrize(
    ("floor", "size", "outcome", "expected"),
    [
        # the floor ends its bucket, so the allowance is exactly the floor and nothing asked in the bucket is over it
        (512, "<=512", "free", (None, None)),
        (512, "<=512", "refused", ("special", "held_under_allowance")),
        (512, "<=512", "downgraded", ("special", "downgraded_under_allowance")),
        (1024, "513-1024", "refused", ("special", "held_under_allowance")),
        # it does not: allowances above the floor lie in the bucket too
        (511, "<=512", "free", ("undecided", "same_bucket")),
        (1023, "513-1024", "refused", ("undecided", "same_bucket")),
        # another bucket than the floor's
        (512, "513-1024", "refused", ("undecided", "same_bucket")),
        (512, "2049-4096", "free", ("undecided", "same_bucket")),
    ],
)
def test_the_bucket_that_the_floor_ends_is_decided(
    floor: int, size: str, outcome: str, expected: tuple[str | None, str | None]
) -> None:
    frame = decisions(decision(1, outcome=outcome, requested_size=size, allowance_size=size))
    assert judged(frame, AllowanceSettings(floor_tokens=floor)).select("level", "code").row(0) == expected


def test_the_grid_does_not_call_the_cell_of_the_floor_undecided() -> None:
    cells = {(row["requested_size"], row["allowance_size"]): row["level"] for row in size_grid(decisions(), DEFAULT).to_dicts()}
    assert cells["<=512", "<=512"] is None
    assert [cells[size, size] for size in SIZES[1:4]] == ["undecided"] * 3


def test_the_grid_holds_every_cell_with_its_counts_and_marks() -> None:
    frame = decisions(
        decision(70, requested_size="<=512"),
        decision(20, 25, requested_size="2049-4096"),
        decision(3, outcome="free", requested_size=">4096", allowance_size="<=512"),
        decision(7, outcome="refused", requested_size=">4096", allowance_size="<=512"),
        decision(9, requested_size=None),
    )
    grid = size_grid(frame, DEFAULT)
    assert grid.select("requested_size", "allowance_size").rows() == [(asked, allowed) for asked in SIZES for allowed in SIZES]
    cells = {(row["requested_size"], row["allowance_size"]): row for row in grid.iter_rows(named=True)}
    assert cells["<=512", "2049-4096"]["level"] is None
    assert cells["<=512", "2049-4096"]["share_low"] == 70 / 105
    assert cells["2049-4096", "2049-4096"]["level"] == "undecided"
    broken = cells[">4096", "<=512"]
    assert (broken["level"], broken["count_low"], broken["impossible_high"]) == ("impossible", 10, 3)
    assert broken["texts"] == ["a request over the allowance is not free (A13, A14)"]
    assert cells["<=512", ">4096"]["level"] == "impossible"
    assert grid["count_low"].sum() == 100


def test_the_grid_is_impossible_where_the_rule_allows_none_of_what_is_looked_at() -> None:
    free = size_grid(decisions(), DEFAULT, {"outcome": ("free",)})
    either = size_grid(decisions(), DEFAULT, {"outcome": ("free", "refused")})
    chat = size_grid(decisions(), DEFAULT, {"outcome": ("downgraded",), "chat": (True,)})
    over = pl.col("requested_size").eq(">4096") & pl.col("allowance_size").eq("2049-4096")
    assert free.filter(over)["level"].to_list() == ["impossible"]
    assert either.filter(over)["level"].to_list() == [None]
    assert chat["level"].to_list() == ["impossible"] * 25
    assert free["share_low"].null_count() == 25


def test_the_marks_follow_the_settings() -> None:
    wide = AllowanceSettings(ceiling_tokens=8192, floor_tokens=1024)
    grid = size_grid(decisions(), wide, {"outcome": ("refused",)})
    levels = {allowed: level for asked, allowed, level in grid.select("requested_size", "allowance_size", "level").rows()[:5]}
    assert levels["<=512"] == "impossible"
    assert levels[">4096"] is None


def test_the_gravest_comes_first() -> None:
    frame = decisions(
        decision(5, requested_size="2049-4096"),
        decision(1, allowance_size=">4096"),
        decision(2, outcome="free", requested_size=">4096"),
    )
    counts = rule_counts(frame, DEFAULT)
    assert counts.select("level", "code", "count_low").rows() == [
        ("impossible", "free_over_allowance", 2),
        ("impossible", "allowance_out_of_range", 1),
        ("undecided", "same_bucket", 5),
    ]
    assert level_counts(frame, DEFAULT) == {
        "impossible": Bounds(3, 3),
        "special": Bounds(0, 0),
        "undecided": Bounds(5, 5),
    }
