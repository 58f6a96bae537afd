import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from horde_policy.review.sampling import Bounds, design_effect, difference, limits, paired_margin, share_of, shares


@pytest.mark.parametrize(("part", "total"), [(0, 1), (1, 1), (0, 50), (3, 50), (25, 50), (50, 50), (7, 100_000)])
def test_the_limits_are_clopper_and_pearsons(part: int, total: int) -> None:
    expected = binomtest(part, total).proportion_ci(method="exact")
    low, high = limits(part, total - part)
    assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize("total", [1, 5, 30, 200])
@pytest.mark.parametrize("share", [0.0, 0.004, 0.02, 0.3, 0.5, 0.93, 1.0])
def test_the_limits_hold_the_share_at_least_so_often_as_they_say(total: int, share: float) -> None:
    hits = np.arange(total + 1)
    low, high = limits(hits, total - hits)
    holds = (low <= share) & (share <= high)
    assert binom.pmf(hits, total, share)[holds].sum() >= 0.95 - 1e-12


counts = st.floats(0, 1e6, allow_nan=False)


@given(counts, counts, counts, counts, st.floats(0, 1), st.floats(0, 1))
def test_the_corners_bound_every_count_between_the_bounds(a: float, b: float, c: float, d: float, u: float, v: float) -> None:
    part, rest = Bounds(min(a, b), max(a, b)), Bounds(min(c, d), max(c, d))
    share = share_of(part, rest)
    true_part, true_rest = part.low + u * (part.high - part.low), rest.low + v * (rest.high - rest.low)
    if share is None:
        assert part.high + rest.high == 0
    elif true_part + true_rest > 0:
        inside = share_of(Bounds(true_part, true_part), Bounds(true_rest, true_rest))
        assert inside is not None
        slack = 1e-9
        assert share.low - slack <= inside.low <= share.high + slack
        assert share.sampling_low <= inside.sampling_low + slack
        assert share.sampling_high >= inside.sampling_high - slack


def test_a_share_may_be_all_or_nothing_where_either_side_may_be_nothing() -> None:
    share = share_of(Bounds(0, 5), Bounds(0, 5))
    assert share is not None
    assert (share.low, share.high, share.sampling_low, share.sampling_high) == (0, 1, 0, 1)
    low, high, _, _ = shares(([0.0, 0.0], [0.0, 0.0]), ([0.0, 4.0], [0.0, 4.0]))
    assert math.isnan(low[0])
    assert math.isnan(high[0])
    assert (low[1], high[1]) == (0, 0)


def test_bursts_widen_the_interval_to_its_nominal_coverage() -> None:
    # each block's requests share their fate: 28 blocks of 50 say as much as 28 requests, not as 1,400
    rng = np.random.default_rng(7)
    naive = clustered = 0
    runs = 400
    for _ in range(runs):
        hits = np.where(rng.random(28) < 0.3, 50.0, 0.0)
        rest = 50.0 - hits
        alone = share_of(Bounds(hits.sum(), hits.sum()), Bounds(rest.sum(), rest.sum()))
        wide = share_of(
            Bounds(hits.sum(), hits.sum()), Bounds(rest.sum(), rest.sum()), effect=design_effect(hits, np.full(28, 50.0))
        )
        assert alone is not None
        assert wide is not None
        naive += alone.sampling_low <= 0.3 <= alone.sampling_high
        clustered += wide.sampling_low <= 0.3 <= wide.sampling_high
    assert naive / runs < 0.4
    assert clustered / runs >= 0.95 - 2 * math.sqrt(0.95 * 0.05 / runs)


def test_even_blocks_cost_nothing_and_too_few_say_nothing() -> None:
    assert design_effect([1] * 10, [4] * 10) == 1
    assert design_effect([4, 0, 4, 0], [4] * 4) == 1
    assert design_effect([0] * 10, [4] * 10) == 1
    assert design_effect([], []) == 1


def test_a_difference_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    runs, held = 600, 0
    for _ in range(runs):
        sides = []
        for share, total in ((0.08, 120), (0.15, 300)):
            hits = float(rng.binomial(total, share))
            sides.append(share_of(Bounds(hits, hits), Bounds(total - hits, total - hits)))
        first, second = sides
        assert first is not None
        assert second is not None
        counted, sampling = difference(first, second)
        assert sampling.low <= counted.low <= counted.high <= sampling.high
        held += sampling.low <= 0.07 <= sampling.high
    assert held / runs >= 0.95 - 2 * math.sqrt(0.95 * 0.05 / runs)


def test_a_difference_of_shares_of_the_same_times_covers_as_often_as_it_says() -> None:
    # both rise and fall with the block's own level; taken as independent they would be known far worse
    rng = np.random.default_rng(13)
    runs, held, widths = 400, 0, []
    for _ in range(runs):
        level = rng.beta(1, 1, 28)
        parts = [rng.binomial(60, np.clip(level + shift, 0, 1)).astype(float) for shift in (0.0, 0.1)]
        totals = np.full(28, 60.0)
        margin = paired_margin((parts[0], totals), (parts[1], totals))
        assert margin is not None
        true = float(np.mean(np.clip(np.linspace(0, 1, 100_001) + 0.1, 0, 1))) - 0.5
        held += abs((parts[1].sum() - parts[0].sum()) / 1680 - true) <= margin
        sides = [
            share_of(Bounds(p.sum(), p.sum()), Bounds(1680 - p.sum(), 1680 - p.sum()), effect=design_effect(p, totals))
            for p in parts
        ]
        assert sides[0] is not None
        assert sides[1] is not None
        apart = difference(sides[0], sides[1])[1]
        widths.append(2 * margin / (apart.high - apart.low))
    assert held / runs >= 0.95 - 2 * math.sqrt(0.95 * 0.05 / runs)
    assert float(np.mean(widths)) < 0.4


def test_a_difference_needs_enough_blocks() -> None:
    assert paired_margin(([1, 2], [4, 4]), ([2, 2], [4, 4])) is None
    assert paired_margin(([0] * 9, [0] * 9), ([2] * 9, [4] * 9)) is None
