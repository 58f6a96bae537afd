import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.frames.decisions import SIZES, size_of
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.review.agreement import agreement, wait_span, without_worker
from horde_policy.review.sampling import Bounds
from horde_policy.settings import AllowanceSettings
from tests.unit.review.made import bucket, decision, decisions, histogram, waits

DEFAULT = AllowanceSettings()
waits_s = st.lists(st.one_of(st.none(), st.sampled_from([0.0, 60.0, 300.0]), st.floats(0, 500)), min_size=1, max_size=40)
settings = st.sampled_from(
    [DEFAULT, AllowanceSettings(ceiling_tokens=8192, floor_tokens=256), AllowanceSettings(floor_tokens=2048, wait_full_s=30)]
)


@given(waits_s, settings)
def test_counters_of_the_same_creations_agree(seen: list[float | None], rule: AllowanceSettings) -> None:
    allowed = [size_of(free_output_allowance(wait, rule)) for wait in seen]
    frame = decisions(*(decision(allowed.count(size), None, allowance_size=size) for size in SIZES if size in allowed))
    estimated = histogram([wait for wait in seen if wait is not None], kind="estimated", requester=None)
    table = agreement(frame, waits(*estimated), rule)
    if estimated:
        assert table["allowance_size"].to_list() == list(SIZES)
        assert table["gap"].to_list() == [0.0] * 5
    else:
        assert table.is_empty()
    assert without_worker(frame, waits(*estimated)) == Bounds(seen.count(None), seen.count(None))


def test_allowances_under_other_settings_do_not_agree() -> None:
    # a hundred waits of 200 s give 2005 tokens; the server that counted had a floor of 512 from 100 s on
    frame = decisions(decision(100, None, allowance_size="<=512"))
    table = agreement(frame, waits(*histogram([200.0] * 100, kind="estimated")), DEFAULT)
    gaps = dict(table.select("allowance_size", "gap").iter_rows())
    assert gaps["<=512"] == 100
    assert gaps["1025-2048"] == 0  # the bucket from 180 to 240 s reaches into two sizes
    assert gaps["2049-4096"] == 0


@pytest.mark.parametrize("size", SIZES)
def test_the_span_of_waits_is_what_gives_the_size(size: str) -> None:
    for rule in (DEFAULT, AllowanceSettings(ceiling_tokens=8192, floor_tokens=2000)):
        span = wait_span(size, rule)
        if span is None:
            given_sizes = {size_of(free_output_allowance(wait, rule)) for wait in [*map(float, range(400)), None]}
            assert size not in given_sizes
            continue
        above, most = span
        inside = 1e9 if math.isinf(most) else most
        assert size_of(free_output_allowance(inside, rule)) == size
        if above >= 0:
            assert size_of(free_output_allowance(above, rule)) != size
            assert size_of(free_output_allowance(math.nextafter(above, math.inf), rule)) == size


def test_uncertain_counts_agree_more_easily() -> None:
    frame = decisions(decision(5, 9, allowance_size="2049-4096"))
    estimated = waits(bucket(60, 45, 11, 12, kind="estimated"))
    table = agreement(frame, estimated, DEFAULT)
    assert dict(table.select("allowance_size", "gap").iter_rows())["2049-4096"] == 2
