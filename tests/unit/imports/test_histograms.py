"""Growth of native histograms whose resolution changes, against the waits themselves."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.imports.histograms import exponential_bins, grown_bins

WAITS = st.lists(st.floats(0.001, 5000.0), max_size=40)


def state(waits: list[float], scale: int, zeros: int) -> list[float]:
    """The exponential histogram of some waits, by the formula of its definition."""
    base = 2.0 ** (2.0**-scale)
    places = [math.ceil(math.log(wait) / math.log(base)) - 1 for wait in waits]
    # the logarithm is not exact at the bounds themselves: settle them by comparing, as (lower, upper]
    places = [_settled(place, wait, scale) for place, wait in zip(places, waits, strict=True)]
    if not places:
        return exponential_bins(scale, zeros, 0.0, 0, [])
    counts = np.bincount(np.array(places) - min(places)).tolist()
    return exponential_bins(scale, zeros, 0.0, min(places), counts)


def _bound(place: int, scale: int) -> float:
    return float(np.exp2(np.ldexp(float(place), -scale)))


def _settled(place: int, wait: float, scale: int) -> int:
    while _bound(place, scale) >= wait:
        place -= 1
    while _bound(place + 1, scale) < wait:
        place += 1
    return place


@given(WAITS, WAITS, st.integers(0, 4), st.integers(0, 4), st.integers(0, 3), st.integers(0, 3))
def test_the_growth_between_two_resolutions_is_what_was_counted(
    before: list[float], after: list[float], scale: int, coarser: int, zeros: int, more_zeros: int
) -> None:
    earlier = state(before, scale, zeros)
    later = state(before + after, max(scale - coarser, -2), zeros + more_zeros)
    grown = grown_bins(earlier, later)
    new = [0.0] * more_zeros + after
    assert sum(grown[2::3]) == len(new)
    for lower, upper, count in zip(grown[0::3], grown[1::3], grown[2::3], strict=True):
        assert count == sum(lower < wait <= upper or wait == lower == upper for wait in new)


@given(WAITS, st.integers(-2, 4))
def test_nothing_grew_between_equal_states(waits: list[float], scale: int) -> None:
    assert grown_bins(state(waits, scale, 1), state(waits, scale, 1)) == []


def test_buckets_that_do_not_fit_a_number_are_infinite() -> None:
    assert exponential_bins(0, 0, 0.0, 1023, [1]) == [2.0**1023, math.inf, 1.0]
