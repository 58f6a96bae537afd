from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from horde_policy.imports.report import Gap
from horde_policy.review.exported import Exported
from horde_policy.review.findings import review_week
from horde_policy.review.loading import DEMO_WEEK, load_exports
from horde_policy.review.quiet import Quiet, quiet_hours, quiet_steps
from horde_policy.review.ranges import TimeRange
from horde_policy.settings import AllowanceSettings
from horde_policy.views.finding_text import finding_text

HOUR = timedelta(hours=1)


def at(day: int, hour: int) -> datetime:
    return datetime(2025, 9, day, hour, tzinfo=UTC)


@pytest.fixture(scope="module")
def demo() -> Exported:
    return load_exports([DEMO_WEEK])


def test_the_demo_weeks_nights_without_a_request_are_zeros_and_the_week_says_so(demo: Exported) -> None:
    quiet = quiet_hours(demo)
    assert quiet is not None
    assert quiet.zero == (at(11, 20), at(14, 18), at(14, 19), at(14, 20), at(16, 22))
    assert (quiet.step, quiet.steps, quiet.uncovered) == (HOUR, 169, ())
    assert quiet.longest == TimeRange(at(14, 18), at(14, 21))
    clean = next(f for f in review_week(demo, AllowanceSettings()).findings if f.code == "data_clean")
    assert finding_text(clean).details == (
        "0 decisions in 5 of 169 steps of an hour, the longest time from 14 Sep 2025 18:00:00 UTC to 14 Sep 2025 21:00:00 UTC. "
        "The exports cover them: nobody asked.",
    )


def test_the_demos_quiet_hours_are_those_of_the_trace(demo: Exported) -> None:
    """The exporters wrote all the time: no look of either process is further from the next than half an hour."""
    assert demo.report is not None
    assert [(one.step_s, one.gap_count) for one in demo.report.instances] == [(1800.0, 0)] * 2


@pytest.mark.parametrize(
    ("gaps", "uncovered_s", "zero", "uncovered"),
    [
        ((Gap(at(14, 19), at(14, 20), lost=True),), 3600.0, 4, (at(14, 19),)),
        ((Gap(at(14, 19), at(14, 20), lost=False),), 0.0, 5, ()),
        ((), 7200.0, 0, (at(11, 20), at(14, 18), at(14, 19), at(14, 20), at(16, 22))),
    ],
)
def test_a_step_that_no_export_covers_is_no_zero(
    demo: Exported, gaps: tuple[Gap, ...], uncovered_s: float, zero: int, uncovered: tuple[datetime, ...]
) -> None:
    assert demo.report is not None
    first, second = demo.report.instances
    report = replace(demo.report, instances=(replace(first, gaps=gaps), second))
    quiet = quiet_hours(replace(demo, report=report, uncovered_s=uncovered_s))
    assert quiet is not None
    assert (len(quiet.zero), quiet.uncovered) == (zero, uncovered)


def test_data_that_tell_nothing_over_time_have_no_quiet_steps(demo: Exported) -> None:
    assert quiet_hours(replace(demo, one_scrape=True)) is None
    assert quiet_hours(replace(demo, decisions=demo.decisions.clear())) is None
    assert quiet_steps(demo, [], timedelta(seconds=1)).steps == 0, "more steps than anybody looks at"
    assert Quiet(HOUR, 3).longest.whole
