import math
import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horde_policy.review.sampling import Bounds
from horde_policy.review.waits import (
    around_mark,
    distribution,
    longer,
    mean_wait,
    measured_less_estimated,
    of_kind,
    quantile,
    share_at_most,
)
from tests.unit.review.made import LIFECYCLE_S, bucket, histogram, hour, wait_sum, wait_sums, waits

values = st.lists(st.one_of(st.sampled_from([0.0, 60.0, 300.0, 60.5, 5000.0]), st.floats(0, 6000)), min_size=1, max_size=40)


@settings(max_examples=40)
@given(values, st.floats(0, 5000))
def test_the_true_share_lies_between_the_bounds_and_is_exact_at_the_edges(seen: list[float], mark: float) -> None:
    frame = waits(*histogram(seen))
    for at in (mark, 0.0, 60.0, 300.0):
        share = share_at_most(frame, at)
        assert share is not None
        true = sum(value <= at for value in seen) / len(seen)
        assert share.low - 1e-12 <= true <= share.high + 1e-12
        if at in LIFECYCLE_S[1:]:  # a wait of 0 may lie in the bucket from 0
            assert share.low == share.high == pytest.approx(true)


@given(values, st.floats(0.001, 1))
def test_the_true_quantile_lies_between_its_bounds(seen: list[float], q: float) -> None:
    found = quantile(distribution(waits(*histogram(seen))), q)
    assert found is not None
    true = sorted(seen)[math.ceil(q * len(seen) - 1e-9) - 1]
    assert found.low_s <= true <= found.high_s
    assert found.low_s < true or true == 0
    assert found.sampling_low_s <= found.low_s
    assert found.sampling_high_s >= found.high_s


def test_exactly_60_and_300_belong_to_the_bucket_that_they_bound() -> None:
    frame = waits(*histogram([60.0, 60.0, 300.0, 300.1]))
    at_60, at_300 = share_at_most(frame, 60), share_at_most(frame, 300)
    assert at_60 is not None
    assert at_300 is not None
    assert (at_60.low, at_60.high, at_300.low, at_300.high) == (0.5, 0.5, 0.75, 0.75)


def test_in_the_last_bucket_only_at_least_is_known() -> None:
    found = quantile(distribution(waits(*histogram([1.0] * 9 + [9999.0]))), 0.95)
    assert found is not None
    assert (found.low_s, found.high_s) == (3600, math.inf)


def test_buckets_that_do_not_end_at_the_mark_leave_an_interval() -> None:
    # the bounds changed in mid-week (exports.md 14): 60 s is an edge of the first layout only
    frame = waits(
        bucket(60, 0, 30), bucket(90, 60, 10), bucket(100, 50, 20, None, **hour(30)), bucket(50, 0, 40, None, **hour(30))
    )
    share = share_at_most(frame, 60)
    assert share is not None
    assert (share.low, share.high) == (0.7, 0.9)
    assert share.part == Bounds(70, 90)
    rest = longer(share)
    assert (rest.low, rest.high) == pytest.approx((0.1, 0.3))
    assert rest.sampling_low == pytest.approx(1 - share.sampling_high)
    edges = distribution(frame).select("edge_s", "share_low", "share_high").rows()
    assert edges == [(0, 0, 0.7), (50, 0.4, 0.7), (60, 0.7, 0.9), (90, 0.8, 1.0), (100, 1.0, 1.0), (300, 1.0, 1.0)]


def test_a_bucket_around_the_mark_may_be_on_either_side_and_counts_once() -> None:
    frame = waits(bucket(32, 0, 100), bucket(64, 32, 1000, 1010), bucket(128, 64, 7))
    share = share_at_most(frame, 60)
    assert share is not None
    assert (share.part, share.rest, share.total) == (Bounds(100, 1110), Bounds(7, 1017), Bounds(1107, 1117))
    assert (share.low, share.high) == (100 / 1117, 1110 / 1117)
    over = longer(share)
    assert (over.part, over.rest, over.total) == (share.rest, share.part, share.total)
    assert around_mark(frame, 60) == Bounds(1000, 1010)
    assert around_mark(frame, 64) == Bounds(0, 0)


def test_uncertain_counts_leave_an_interval_too() -> None:
    share = share_at_most(waits(bucket(60, 0, 30, 50), bucket(90, 60, 10)), 60)
    assert share is not None
    assert (share.low, share.high) == (0.75, 50 / 60)


def test_nothing_counted_is_not_zero() -> None:
    assert share_at_most(waits(), 60) is None
    assert distribution(waits()).is_empty()
    assert quantile(distribution(waits()), 0.5) is None
    assert mean_wait(wait_sums(), "queue") is None


def test_kinds_and_requesters_are_told_apart() -> None:
    frame = waits(bucket(60, 0, 1), bucket(60, 0, 2, requester="anonymous"), bucket(60, 0, 4, kind="estimated", requester=None))
    assert of_kind(frame, "queue")["count_low"].sum() == 3
    assert of_kind(frame, "queue", "anonymous")["count_low"].sum() == 2
    assert of_kind(frame, "estimated")["count_low"].sum() == 4


def test_the_distribution_at_edges_of_anothers_choice() -> None:
    frame = waits(bucket(60, 0, 30), bucket(90, 60, 10))
    assert distribution(frame, edges_s=[30, 60]).select("share_low", "share_high").rows() == [(0, 0.75), (0.75, 0.75)]


def test_the_mean_follows_the_exported_sum() -> None:
    sums = wait_sums(wait_sum(4, 60), wait_sum(2, 60, requester="anonymous"), wait_sum(5, 5, kind="estimated"))
    assert mean_wait(sums, "queue") == Bounds(20, 20)
    assert mean_wait(sums, "queue", "anonymous") == Bounds(30, 30)
    unknown = sums.with_columns(pl.lit(None, dtype=pl.Float64).alias("sum_low_s"))
    assert mean_wait(unknown, "queue") is None


def test_bursts_widen_the_interval_of_a_share() -> None:
    rng = random.Random(1)
    rows = []
    for block in range(28):
        slow = rng.random() < 0.5
        rows += histogram([400.0 if slow else 10.0] * 20, LIFECYCLE_S, **hour(block))
    share = share_at_most(waits(*rows), 300)
    assert share is not None
    assert share.design_effect > 10
    spread = distribution(waits(*rows)).filter(pl.col("edge_s") == 300)
    assert spread["sampling_low"].to_list() == pytest.approx([share.sampling_low])


def test_estimated_and_measured_waits_of_the_same_times_are_told_apart_better_than_each_is_known() -> None:
    rng = random.Random(4)
    rows = []
    for block in range(28):
        slow = rng.random()
        for kind, longer_by in (("estimated", 1.5), ("queue", 1.0)):
            rows += histogram([rng.random() * 600 * slow * longer_by for _ in range(40)], LIFECYCLE_S, kind=kind, **hour(block))
    estimated, queued = (of_kind(waits(*rows), kind) for kind in ("estimated", "queue"))
    apart = measured_less_estimated(estimated, queued, 300)
    assert apart is not None
    counts, sampling = apart
    stated, measured = (share_at_most(frame, 300) for frame in (estimated, queued))
    assert stated is not None
    assert measured is not None
    assert counts == Bounds(measured.low - stated.high, measured.high - stated.low)
    assert 0 < sampling.low < counts.low < sampling.high
    assert sampling.high - sampling.low < measured.sampling_high - measured.sampling_low
    assert measured_less_estimated(waits(), queued, 300) is None
    few = measured_less_estimated(waits(*histogram([10.0] * 50, kind="estimated")), waits(*histogram([10.0] * 50)), 300)
    assert few is not None
    assert few[1].low < 0 < few[1].high
