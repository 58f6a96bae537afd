"""Growth of native histograms whose resolution changes, against the waits themselves."""

import math
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.imports import read_exports
from horde_policy.imports.histograms import exponential_bins, grown_bins
from tests.unit.imports.writing import QUEUE, buckets, classic, exponential, exposition, histogram, otlp

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


def _with_count(count: int) -> list[tuple[str, bytes]]:
    """Exports of a histogram whose buckets hold 6, and whose count says this, in each form that has both."""
    point = histogram([1, 2, 3], [60, 300], 900.0, 0, 60) | {"count": str(count)}
    wait = "horde.text.queue_wait_seconds"
    native = exponential(1, 11, [2, 4], 0, 60) | {"count": str(count)}
    rows = [*classic(QUEUE, {60.0: 0, 300.0: 0, inf: 0}, 0.0, 0), *classic(QUEUE, {60.0: 1, 300.0: 2, inf: 3}, 900.0, 60)]
    rows[-2] = (rows[-2][0], rows[-2][1], float(count))
    return [
        ("cumulative", otlp(point, kind="histogram", name=wait, unit="s")),
        ("delta", otlp(point, kind="histogram", temporality=1, name=wait, unit="s")),
        ("exponential", otlp(native, kind="exponentialHistogram", name=wait, unit="s")),
        ("text", exposition(rows)),
    ]


@pytest.mark.parametrize("form", range(4), ids=[name for name, _ in _with_count(6)])
@pytest.mark.parametrize(("count", "told"), [(6, False), (99, True), (0, True)])
def test_a_count_that_is_not_what_the_buckets_hold_is_told(form: int, count: int, told: bool) -> None:
    _, content = _with_count(count)[form]
    imported = read_exports(content)
    assert sum(high for _, high in buckets(imported).values()) == 6
    found = [problem.text for problem in imported.problems if problem.code == "count_and_buckets"]
    said = f"histograms say that they counted {count}, and their buckets hold 6: what the buckets hold is used"
    assert found == ([said] if told else [])
