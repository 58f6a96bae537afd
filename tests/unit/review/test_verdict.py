import math

import polars as pl
import pytest

from horde_policy.errors import InputError
from horde_policy.review.sampling import Bounds
from horde_policy.review.verdict import Verdict, funded_verdict
from tests.unit.review.made import LIFECYCLE_S, bucket, decision, decisions, histogram, waits


def week(
    *, free: int, funded: int, quick: int, slow: int, anonymous_quick: int = 90, anonymous_slow: int = 0
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return decisions, and registered waits of 100 s (quick) and 400 s (slow); anonymous ones as said."""
    waited = histogram([100.0] * quick + [400.0] * slow)
    anonymous = histogram([100.0] * anonymous_quick + [400.0] * anonymous_slow, LIFECYCLE_S, requester="anonymous")
    return decisions(decision(free), decision(funded, outcome="funded")), waits(*waited, *anonymous)


def ask(above: float = 0.1, ratio: float = 1.0, over_s: float = 300.0, **counts: int) -> Verdict:
    return funded_verdict(*week(**counts), above=above, ratio=ratio, over_s=over_s)


def test_it_is_decided_where_even_the_favourable_end_is_above_the_limit() -> None:
    # half were funded, 80 % waited over 300 s: at least 60 % of the funded did
    verdict = ask(0.3, free=500, funded=500, quick=200, slow=800)
    assert verdict.answer == "yes"
    assert verdict.share_over == Bounds(pytest.approx(0.6), 1.0)  # type: ignore[arg-type]
    assert verdict.share_over_sampling is not None
    assert 0.3 < verdict.share_over_sampling.low < 0.6
    assert verdict.times_the_requests is None


def test_it_is_decided_where_even_the_unfavourable_end_is_not_above_the_limit() -> None:
    # 1 % waited over 300 s, half were funded: at most 2 % of the funded did
    verdict = ask(0.1, free=5000, funded=5000, quick=9900, slow=100)
    assert verdict.answer == "no"
    assert verdict.share_over is not None
    assert verdict.share_over.high == pytest.approx(0.02)


def test_where_the_bounds_lie_around_the_limit_only_a_record_helps() -> None:
    verdict = ask(0.1, free=917, funded=83, quick=910, slow=90)
    assert verdict.answer == "record_needed"
    assert verdict.share_over == Bounds(0, 1)
    assert verdict.times_the_requests is None
    many = ask(0.1, free=917_000, funded=83_000, quick=910_000, slow=90_000)
    assert many.answer == "record_needed"


def test_where_only_sampling_blurs_it_so_many_more_requests_decide_it() -> None:
    verdict = ask(0.1, free=50, funded=50, quick=96, slow=4)
    assert verdict.share_over is not None
    assert verdict.share_over.high == pytest.approx(0.08)
    assert verdict.answer == "more_requests"
    assert verdict.times_the_requests is not None
    times = math.ceil(verdict.times_the_requests)
    assert ask(0.1, free=50 * times, funded=50 * times, quick=96 * times, slow=4 * times).answer == "no"
    fewer = math.floor(verdict.times_the_requests / 1.02) - 1
    assert ask(0.1, free=50 * fewer, funded=50 * fewer, quick=96 * fewer, slow=4 * fewer).answer == "more_requests"


def test_a_bound_on_the_limit_itself_is_never_told_apart() -> None:
    verdict = ask(0.08, free=50, funded=50, quick=96, slow=4)
    assert verdict.answer in ("more_requests", "record_needed")  # the last bit of a double decides which
    assert verdict.times_the_requests is None


def test_it_says_how_unlike_the_assignments_may_be() -> None:
    counts = {"free": 5000, "funded": 5000, "quick": 9900, "slow": 100}
    verdict = ask(0.1, **counts)
    ratio = verdict.decided_up_to_ratio
    assert ratio is not None
    assert ratio > 2
    assert ask(0.1, ratio=ratio * 0.99, **counts).answer == "no"
    assert ask(0.1, ratio=ratio * 1.01, **counts).answer != "no"
    assert ask(0.1, free=917, funded=83, quick=910, slow=90).decided_up_to_ratio is None


def test_the_point_estimate_comes_with_how_far_off_it_can_be() -> None:
    verdict = ask(0.1, free=500, funded=500, quick=900, slow=100, anonymous_slow=10)
    assert verdict.point is not None
    assert verdict.point_off_by is not None
    # registered and anonymous 10 % over the mark, half held nothing: (0.1 - 0.5 * 0.1) / 0.5
    assert (verdict.point.low, verdict.point.high) == pytest.approx((0.1, 0.1))
    assert verdict.point_refuted_by is None
    assert verdict.share_over is not None
    assert verdict.share_over.high == pytest.approx(0.2)
    assert verdict.point_off_by == pytest.approx(0.1)
    alone = funded_verdict(decisions(decision(5), decision(5, outcome="funded")), waits(*histogram([9.0] * 10)))
    assert alone.point is None
    assert alone.point_off_by is None


@pytest.mark.parametrize(
    ("slow", "anonymous_slow", "ratio"),
    [(90, 100, 1.0), (8, 25, 2.0), (0, 1, 2.0), (900, 1, 1.0), (0, 100, 1.0)],
)
def test_a_point_estimate_is_a_share_or_refuted(slow: int, anonymous_slow: int, ratio: float) -> None:
    """exports.md 10: outside 0 and 1 the counts refute the assumption, and no such figure is given."""
    verdict = ask(
        0.1,
        free=917,
        funded=83,
        quick=1000 - slow,
        slow=slow,
        anonymous_slow=anonymous_slow,
        anonymous_quick=100 - anonymous_slow,
        ratio=ratio,
    )
    assert verdict.share_over is not None
    shown = verdict.funded.rows.select("point_low", "point_high").drop_nulls()
    assert all(0 <= value <= 1 for row in shown.iter_rows() for value in row)
    if verdict.point is None:
        assert verdict.point_refuted_by == Bounds(100, 100)
        assert verdict.point_off_by is None
    else:
        assert verdict.point_refuted_by is None
        assert verdict.share_over.low - 1e-9 <= verdict.point.low <= verdict.point.high <= verdict.share_over.high + 1e-9
        assert verdict.point_off_by is not None
        assert verdict.point_off_by <= 1


def test_both_ways_of_refuting_are_seen() -> None:
    below = ask(0.1, free=917, funded=83, quick=1000, slow=0, anonymous_slow=50, anonymous_quick=50)
    above = ask(0.1, free=917, funded=83, quick=100, slow=900, anonymous_slow=0, anonymous_quick=100)
    assert below.point_refuted_by is not None
    assert above.point_refuted_by is not None


def test_without_funded_requests_nothing_is_visible() -> None:
    verdict = ask(0.1, free=100, funded=0, quick=100, slow=0)
    assert (verdict.answer, verdict.hidden) == ("not_visible", "none_funded")
    assert verdict.registered is not None
    assert verdict.registered.low == 0
    assert ask(0.1, free=1, funded=1, quick=0, slow=0).hidden == "no_waits"


def test_a_mark_between_the_buckets_widens_the_bounds() -> None:
    at_edge, between = (ask(0.1, over_s=mark, free=0, funded=100, quick=60, slow=40) for mark in (300.0, 400.0))
    assert at_edge.share_over == Bounds(pytest.approx(0.4), pytest.approx(0.4))  # type: ignore[arg-type]
    assert between.share_over == Bounds(0, pytest.approx(0.4))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "question", [{"above": 1.0}, {"above": -0.1}, {"above": math.nan}, {"over_s": math.inf}, {"over_s": -1.0}]
)
def test_a_question_that_makes_no_sense_is_refused(question: dict[str, float]) -> None:
    with pytest.raises(InputError):
        ask(free=1, funded=1, quick=1, slow=1, **question)  # type: ignore[arg-type]


def test_waits_around_the_mark_count_once() -> None:
    made = decisions(decision(1000, outcome="funded"))
    verdict = funded_verdict(made, waits(bucket(64, 32, 1000)), over_s=60, above=0.5)
    assert verdict.registered is not None
    assert verdict.registered.total == verdict.funded.assignments == Bounds(1000, 1000)
    assert verdict.registered.part == Bounds(0, 1000)
    assert verdict.answer == "record_needed"
