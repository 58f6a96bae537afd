from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horde_policy.errors import InputError
from horde_policy.review.decompose import COUNTED, DIMENSIONS, WORDS, compare, count_of, decompose, filtered, rate, shared, total
from horde_policy.review.ranges import TimeRange, within
from horde_policy.review.sampling import Bounds, difference, share_of
from tests.unit.review.made import MONDAY, decision, decisions, hour
from tests.unit.review.weeks import made_week

word = {name: st.sampled_from([*words, None]) for name, words in WORDS.items()}
row = st.fixed_dictionaries({**word, "low": st.integers(0, 40), "more": st.integers(0, 5), "hour": st.integers(0, 30)})


def made(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return decisions(
        *(
            decision(one["low"], one["low"] + one["more"], **{name: one[name] for name in WORDS}, **hour(one["hour"]))
            for one in rows
        )
    )


@given(st.lists(row, max_size=30), st.lists(st.sampled_from(DIMENSIONS), unique=True, max_size=3))
def test_nothing_is_lost_or_counted_twice_whatever_the_rows(rows: list[dict[str, Any]], by: list[str]) -> None:
    frame = made(rows)
    cells = decompose(frame, by, step=timedelta(hours=6))
    assert cells.columns == [*by, *COUNTED, *(["count_even"] if "time" in by else [])]
    low, high = sum(one["low"] for one in rows), sum(one["low"] + one["more"] for one in rows)
    assert cells["count_low"].sum() == low
    assert cells["count_high"].sum() == high
    assert cells.select(by).is_duplicated().any() is False or not by
    for share_low, share_high, least, most in cells.select(COUNTED[4:8]).iter_rows():
        if share_low is not None:
            assert 0 <= least <= share_low <= share_high <= most <= 1


@settings(max_examples=40)
@given(st.lists(row, min_size=1, max_size=30))
def test_shares_are_taken_within_all_but_the_last_dimension(rows: list[dict[str, Any]]) -> None:
    frame = made(rows)
    for requester, outcome, *figures in (
        decompose(frame, ["requester", "outcome"]).select("requester", "outcome", *COUNTED).rows()
    ):
        own = filtered(frame, {"requester": (requester,)})
        part, base = count_of(own, outcome=outcome), Bounds(float(own["count_low"].sum()), float(own["count_high"].sum()))
        share = share_of(part, Bounds(base.low - part.low, base.high - part.high))
        assert figures[:4] == [part.low, part.high, base.low, base.high]
        assert (share is None) == (figures[4] is None)
        if share is not None:
            assert figures[4:6] == pytest.approx([share.low, share.high])
            assert figures[6] <= share.sampling_low + 1e-9
            assert figures[7] >= share.sampling_high - 1e-9


def test_the_order_is_that_of_the_words_and_what_is_not_exported_comes_last() -> None:
    frame = decisions(
        decision(1, outcome=None),
        decision(2, outcome="downgraded"),
        decision(3, outcome="free"),
        decision(4, outcome="refused"),
    )
    assert decompose(frame, ["outcome"])["outcome"].to_list() == ["free", "refused", "downgraded", None]
    assert decompose(frame, ["outcome"])["share_low"].to_list() == [0.3, 0.4, 0.2, 0.1]


def test_an_uncertain_count_makes_the_share_an_interval() -> None:
    frame = decisions(decision(80), decision(10, 20, outcome="refused"))
    refused = decompose(frame, ["outcome"]).row(1, named=True)
    assert (refused["share_low"], refused["share_high"]) == (10 / 90, 20 / 100)
    assert refused["sampling_low"] < 10 / 90 < 20 / 100 < refused["sampling_high"]


def test_over_time_a_count_lies_in_the_steps_that_its_interval_touches() -> None:
    frame = decisions(
        decision(10, None, **hour(0)),
        decision(6, None, interval_start=MONDAY + timedelta(minutes=30), interval_end=MONDAY + timedelta(minutes=90)),
    )
    cells = decompose(frame, ["time"], step=timedelta(hours=1))
    assert cells.select("count_low", "count_high", "count_even").rows() == [(10, 16, 13), (0, 6, 3)]


def test_over_time_no_step_lies_outside_the_range_asked_about() -> None:
    """A count over the edge of the range may lie in the step beyond it, which is not looked at."""
    span = TimeRange(MONDAY + timedelta(hours=1), MONDAY + timedelta(hours=2))
    frame = within(decisions(decision(6, None, **hour(0.5)), decision(4, None, **hour(1)), decision(2, None, **hour(1.5))), span)
    wide, cut = (decompose(frame, ["time"], step=timedelta(minutes=30), span=asked) for asked in (None, span))
    assert [(at - MONDAY) / timedelta(hours=1) for at in wide["time"]] == [0.5, 1.0, 1.5, 2.0]
    assert [(at - MONDAY) / timedelta(hours=1) for at in cut["time"]] == [1.0, 1.5]
    assert cut.select("count_low", "count_high", "count_even").rows() == [(0, 10, 3.5), (0, 6, 2.5)]
    half = replace(span, start=MONDAY + timedelta(hours=1.25))
    assert decompose(frame, ["time"], step=timedelta(minutes=30), span=half)["time"].to_list() == cut["time"].to_list()


def test_a_base_can_be_chosen() -> None:
    frame = decisions(decision(30), decision(10, outcome="refused"), decision(60, requester="anonymous"))
    within = decompose(frame, ["requester", "outcome"])
    of_all = decompose(frame, ["requester", "outcome"], of=[])
    assert within["share_low"].to_list() == [1.0, 0.75, 0.25]
    assert of_all["share_low"].to_list() == [0.6, 0.3, 0.1]


@pytest.mark.parametrize("by", [["colour"], ["outcome", "outcome"], ["outcome", ""]])
def test_what_is_no_dimension_is_refused(by: list[str]) -> None:
    with pytest.raises(InputError, match="dimension"):
        decompose(decisions(decision(1)), by)


def test_a_base_outside_the_dimensions_is_refused() -> None:
    with pytest.raises(InputError, match="must be among outcome"):
        decompose(decisions(decision(1)), ["outcome"], of=["chat"])


def test_nothing_counted_gives_no_rows_and_no_rate() -> None:
    assert decompose(decisions(), ["requester", "outcome"]).is_empty()
    assert decompose(decisions(), ["time"]).is_empty()
    assert decompose(decisions(), []).select("count_low", "share_low").row(0) == (0, None)
    assert rate(decisions(), pl.col("outcome") == "free") is None


def test_bursts_widen_the_interval_of_a_rate() -> None:
    steady = decisions(*(decision(5, None, outcome=o, **hour(h)) for h in range(28) for o in ("free", "refused")))
    bursty = decisions(*(decision(10, None, outcome="free" if h % 4 < 2 else "refused", **hour(h)) for h in range(28)))
    narrow, wide = (rate(frame, pl.col("outcome") == "refused") for frame in (steady, bursty))
    assert narrow is not None
    assert wide is not None
    assert narrow.middle == wide.middle == 0.5
    assert narrow.design_effect == 1
    assert wide.design_effect > 10
    assert wide.sampling_low < narrow.sampling_low
    cells = decompose(bursty, ["outcome"])
    assert cells["design_effect"].to_list() == pytest.approx([wide.design_effect] * 2)
    assert cells["sampling_low"].to_list()[1] == pytest.approx(wide.sampling_low)


@settings(max_examples=30)
@given(st.lists(row, max_size=12), st.lists(row, max_size=12))
def test_a_comparison_is_the_difference_of_the_two_shares(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    one, other = made(first), made(second)
    cells = compare(one, other, ["requester", "outcome"])
    for cell in cells.iter_rows(named=True):
        sides = []
        for name, frame in (("first", one), ("second", other)):
            own = filtered(frame, {"requester": (cell["requester"],)})
            part = count_of(own, outcome=cell["outcome"])
            everything = total(own)
            rest = Bounds(everything.low - part.low, everything.high - part.high)
            sides.append(share_of(part, rest, effect=cell[f"{name}_design_effect"]))
        if sides[0] is None or sides[1] is None:
            assert cell["difference_low"] is None
            continue
        counts, sampling = difference(sides[0], sides[1])
        assert (cell["difference_low"], cell["difference_high"]) == pytest.approx((counts.low, counts.high))
        ends = (cell["sampling_difference_low"], cell["sampling_difference_high"])
        assert ends == pytest.approx((sampling.low, sampling.high))


def test_a_cell_that_only_one_side_has_counts_nothing_on_the_other() -> None:
    first = decisions(decision(50), decision(50, outcome="refused"))
    second = decisions(decision(100))
    cells = compare(first, second, ["outcome"])
    refused = cells.row(1, named=True)
    assert (refused["outcome"], refused["second_count_high"], refused["second_n_low"]) == ("refused", 0, 100)
    assert refused["difference_low"] == refused["difference_high"] == -0.5
    assert refused["sampling_difference_high"] < -0.35


def test_without_anything_on_one_side_nothing_is_compared() -> None:
    cells = compare(decisions(), decisions(decision(5)), ["outcome"])
    assert cells.select("first_n_high", "first_share_low", "difference_low").row(0) == (0, None, None)


def test_what_both_sides_hold_is_the_same_process_over_the_same_time() -> None:
    week = made_week(hours=48).decisions
    cut = week["interval_end"].sort()[week.height // 2]
    early, late = week.filter(pl.col("interval_end") <= cut), week.filter(pl.col("interval_end") > cut)
    assert shared(early, late) == Bounds(0, 0)
    assert shared(week, late) == total(late)
    assert shared(week, week.with_columns(instance=pl.lit("another"))) == Bounds(0, 0)
    assert shared(week, late.with_columns(count_low=pl.lit(0.0))) == Bounds(0, total(late).high)
    assert shared(week, week.clear()) == Bounds(0, 0)
