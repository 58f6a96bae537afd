"""Bounds of the mean allowance against waits that are known."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.policy.allowance import free_output_allowance
from horde_policy.review.mean_allowance import mean_allowance
from horde_policy.review.sampling import Bounds
from horde_policy.settings import AllowanceSettings
from tests.unit.review.made import bucket, histogram, waits

DEFAULT = AllowanceSettings()


def real_allowance(wait: float, settings: AllowanceSettings) -> float:
    down = (wait - settings.wait_full_s) / (settings.wait_floor_s - settings.wait_full_s)
    return settings.ceiling_tokens - (settings.ceiling_tokens - settings.floor_tokens) * min(1.0, max(0.0, down))


def test_the_worked_example() -> None:
    # budgets.md 12: 700 at most 60 s, 200 up to 300 s, 100 above; together 60,000 s
    frame = waits(bucket(60, 0, 700), bucket(300, 60, 200), bucket(float("inf"), 300, 100))
    alone = mean_allowance(frame, DEFAULT)
    summed = mean_allowance(frame, DEFAULT, Bounds(60_000, 60_000))
    assert alone is not None
    assert summed is not None
    assert (alone.tokens.low, alone.tokens.high) == pytest.approx((3020.8, 3737.6))
    assert (summed.tokens.low, summed.tokens.high) == pytest.approx((3468.8, 3737.6))
    assert summed.by_buckets == alone.by_buckets


edge_lists = st.sampled_from([(60, 300), (30, 60, 300, 1800), (45, 90, 200, 400), (10,), (0, 59, 61, 299, 301)])
values = st.lists(st.one_of(st.sampled_from([0.0, 60.0, 75.0, 300.0]), st.floats(0, 900)), min_size=1, max_size=30)
marks = st.sampled_from([DEFAULT, AllowanceSettings(wait_full_s=20, wait_floor_s=500), AllowanceSettings(floor_tokens=4096)])


@given(values, edge_lists, marks)
def test_the_true_mean_lies_between_the_bounds(seen: list[float], edges: tuple[int, ...], settings: AllowanceSettings) -> None:
    total = sum(seen)
    mean = mean_allowance(waits(*histogram(seen, edges)), settings, Bounds(total, total))
    assert mean is not None
    assert not mean.sum_contradicts
    true = sum(real_allowance(value, settings) for value in seen) / len(seen)
    slack = 1e-6 * settings.ceiling_tokens
    assert mean.tokens.low - slack <= true <= mean.tokens.high + slack
    assert mean.tokens.low >= mean.by_buckets.low - slack
    assert mean.tokens.high <= mean.by_buckets.high + slack
    whole = sum(free_output_allowance(value, settings) for value in seen) / len(seen)
    assert mean.tokens.low - 1 - slack <= whole <= mean.tokens.high + slack


def test_the_bounds_are_attained() -> None:
    # all that is known: counts and the sum. Among random waits with these, some come close to either end.
    frame = waits(bucket(60, 0, 2), bucket(300, 60, 2))
    mean = mean_allowance(frame, DEFAULT, Bounds(300, 300))
    assert mean is not None
    rng = random.Random(2)
    found = []
    for _ in range(20_000):
        first, second = rng.uniform(0, 60), rng.uniform(0, 60)
        third = rng.uniform(60, 300)
        last = 300 - first - second - third
        if 60 < last <= 300:
            found.append(sum(real_allowance(value, DEFAULT) for value in (first, second, third, last)) / 4)
    assert mean.tokens.low <= min(found) <= mean.tokens.low + 25
    assert mean.tokens.high - 25 <= max(found) <= mean.tokens.high


def test_uncertain_counts_widen_the_bounds() -> None:
    sure = mean_allowance(waits(bucket(60, 0, 10), bucket(450, 300, 10)), DEFAULT)
    unsure = mean_allowance(waits(bucket(60, 0, 10, 30), bucket(450, 300, 10)), DEFAULT)
    assert sure is not None
    assert unsure is not None
    assert (sure.tokens.low, sure.tokens.high) == pytest.approx((2304, 2304))
    assert (unsure.tokens.low, unsure.tokens.high) == pytest.approx((2304, (30 * 4096 + 10 * 512) / 40))


def test_a_sum_that_no_waits_in_the_buckets_have_is_said_and_not_used() -> None:
    mean = mean_allowance(waits(bucket(60, 0, 10)), DEFAULT, Bounds(5000, 5000))
    assert mean is not None
    assert mean.sum_contradicts
    assert mean.tokens == mean.by_buckets
    assert (mean.tokens.low, mean.tokens.high) == pytest.approx((4096, 4096))


def test_nothing_counted_has_no_mean() -> None:
    assert mean_allowance(waits(), DEFAULT) is None
    assert mean_allowance(waits(bucket(60, 0, 0)), DEFAULT) is None
