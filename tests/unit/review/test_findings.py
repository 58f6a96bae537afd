from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest

from horde_policy.errors import Problem
from horde_policy.frames.decisions import DECISIONS
from horde_policy.frames.waits import WAIT_SUMS, WAITS
from horde_policy.review.exported import Exported
from horde_policy.review.finding import SECTIONS, SEVERITIES, Finding
from horde_policy.review.findings import Question, Week, review_week
from horde_policy.review.ranges import TimeRange
from horde_policy.review.sampling import Bounds
from horde_policy.settings import AllowanceSettings
from horde_policy.views.finding_text import finding_text
from tests.unit.review.made import MONDAY, bucket, decision, decisions, waits
from tests.unit.review.weeks import made_week

DEFAULT = AllowanceSettings()
NOTHING = Exported(decisions=DECISIONS.empty(), waits=WAITS.empty(), wait_sums=WAIT_SUMS.empty())


def by_code(week: Week, code: str) -> list[Finding]:
    return [finding for finding in week.findings if finding.code == code]


def one(week: Week, code: str) -> Finding:
    found = by_code(week, code)
    assert len(found) == 1, [finding.code for finding in week.findings]
    return found[0]


@pytest.fixture(scope="module")
def week() -> Week:
    return review_week(made_week(), DEFAULT)


def test_every_section_is_there_and_findings_stand_in_order_of_consequence(week: Week) -> None:
    assert tuple(section.code for section in week.sections) == SECTIONS
    assert all(section.findings for section in week.sections)
    ranks = [(SEVERITIES.index(finding.severity), -finding.weight) for finding in week.findings]
    assert ranks == sorted(ranks)
    assert {finding.section for finding in week.findings} == set(SECTIONS)


def test_who_is_refused_and_at_what_size(week: Week) -> None:
    refused = one(week, "refused")
    frame = week.exported.decisions
    own = frame.filter(pl.col("outcome") == "refused")
    assert refused.share is not None
    assert refused.share.part.low == own["count_low"].sum()
    assert refused.n == week.exported.counted
    worst = own.group_by("requester", "requested_size").agg(pl.col("count_low").sum()).sort("count_low").row(-1)
    assert (refused.figures["worst_requester"], refused.figures["worst_requested_size"]) == worst[:2]
    assert refused.figures["worst_count_low"] == worst[2]
    beyond = own.filter(pl.col("requested_size") == ">4096")["count_low"].sum()
    assert refused.figures["over_the_ceiling"].part.low == beyond
    assert refused.target.page == "decisions"
    assert refused.target.state == {"rows": ("requester",), "columns": ("requested_size",), "colour": ("outcome",)}
    assert refused.share.sampling_low < refused.share.low < refused.share.sampling_high


def test_the_allowance_answers_to_the_wait(week: Week) -> None:
    agrees = one(week, "allowance_agrees")
    assert agrees.severity == "fine"
    assert agrees.figures["gap"] == 0
    moves = one(week, "allowance_moves")
    assert moves.severity == "fine"
    assert moves.figures["mean"].low < moves.figures["mean"].high
    nobody = one(week, "without_worker")
    assert nobody.share is not None
    assert 0.01 < nobody.share.low < 0.04


def test_under_other_settings_than_those_in_force_it_does_not() -> None:
    made = made_week(settings=AllowanceSettings(ceiling_tokens=2048))
    week = review_week(made, DEFAULT)
    agrees = one(week, "allowance_agrees")
    assert agrees.severity == "wrong"
    assert agrees.weight > 0.2
    assert week.findings[0].severity == "wrong"
    right = review_week(made, AllowanceSettings(ceiling_tokens=2048))
    assert one(right, "allowance_agrees").severity == "fine"
    assert not by_code(right, "cells_impossible")


@pytest.mark.parametrize(
    ("estimated", "measured", "off", "severity"),
    [
        (((64, 32, 1000),), ((64, 32, 1000),), "undecided", "open"),  # both buckets lie around 60 s
        (((60, 0, 500), (90, 60, 500)), ((64, 32, 1000),), "undecided", "open"),
        (((60, 0, 500), (90, 60, 500)), ((50, 0, 480), (64, 50, 40), (90, 64, 480)), "honest", "fine"),  # -2 to +2 points
        (((60, 0, 500), (90, 60, 500)), ((50, 0, 480), (64, 50, 80), (90, 64, 440)), "undecided", "open"),  # -2 to +6 points
        (((60, 0, 500), (90, 60, 500)), ((50, 0, 400), (64, 50, 40), (90, 64, 560)), "optimistic", "bad"),
        (((60, 0, 500), (90, 60, 500)), ((50, 0, 560), (64, 50, 40), (90, 64, 400)), "pessimistic", "open"),
    ],
)
def test_estimates_held_only_where_the_whole_interval_says_so(
    estimated: tuple[tuple[float, ...], ...], measured: tuple[tuple[float, ...], ...], off: str, severity: str
) -> None:
    rows = waits(*(bucket(*one, kind="estimated") for one in estimated), *(bucket(*one) for one in measured))
    week = review_week(replace(NOTHING, waits=rows), DEFAULT)
    found = next(finding for finding in by_code(week, "estimates") if finding.figures["mark_s"] == 60)
    assert (found.figures["off"], found.severity) == (off, severity)
    assert found.n == found.figures["measured"].total == Bounds(1000, 1000)
    text = finding_text(found)
    assert ("cannot be told" in text.sentence) == (off == "undecided")
    assert any("1,000 measured waits lie in buckets that begin below 60 s" in one for one in text.details) == (
        off == "undecided" and measured == ((64, 32, 1000),)
    )


@pytest.mark.parametrize(("factor", "off"), [(1.0, "honest"), (0.4, "optimistic"), (2.5, "pessimistic")])
def test_estimates_are_held_against_what_was_measured(factor: float, off: str) -> None:
    week = review_week(made_week(estimate_over_measured=factor, per_hour=40), DEFAULT)
    found = {finding.figures["mark_s"]: finding.figures["off"] for finding in by_code(week, "estimates")}
    assert set(found) == {60.0, 300.0}
    assert off in found.values()
    if off == "honest":
        assert set(found.values()) == {"honest"}


def test_an_export_that_ends_early_stands_before_everything_else() -> None:
    cut = (Problem("damaged", "a.gz", "the gzip packing ends early"), Problem("truncated", "a.gz", "the last line is cut off"))
    other = Problem("unknown_word", "b.txt", "is no word")
    made = replace(made_week(settings=AllowanceSettings(ceiling_tokens=2048)), problems=(other, *cut))
    week = review_week(made, DEFAULT)
    assert [finding.severity for finding in week.findings[:2]] == ["bad", "wrong"]
    assert week.findings[0].code == "cut_short"
    assert week.findings[0].figures["problems"] == cut
    assert week.sections[-1].findings[0] == week.findings[0]
    assert [finding.figures["problem"] for finding in by_code(week, "problem")] == [other]
    assert finding_text(week.findings[0]).sentence.startswith("a.gz ends early: what came before is shown")
    two = review_week(replace(NOTHING, problems=(*cut, replace(cut[0], subject="c.gz"))), DEFAULT)
    assert finding_text(two.findings[0]).sentence.startswith("2 exports end early")


def test_series_of_several_processes_stand_before_what_they_seem_to_contradict() -> None:
    mixed = Problem("interleaved", "(no labels)", "several processes write the same series")
    made = replace(made_week(settings=AllowanceSettings(ceiling_tokens=2048)), problems=(mixed,))
    week = review_week(made, DEFAULT)
    assert [(finding.code, finding.severity) for finding in week.findings[:1]] == [("several_processes", "bad")]
    assert week.findings[1].severity == "wrong"
    text = finding_text(week.findings[0])
    assert text.sentence.startswith("Several processes write the same series and nothing tells them apart")
    assert text.details == ("(no labels): several processes write the same series.",)
    assert not by_code(week, "problem")


def test_the_verdict_answers_the_question_that_is_asked() -> None:
    made = made_week()
    strict, lax = (review_week(made, DEFAULT, question=Question(above=above, ratio=1.0)) for above in (0.0, 0.99))
    assert one(strict, "funded_wait").figures["verdict"].above == 0.0
    assert one(lax, "funded_wait").target.state["above"] == ("0.99",)
    assert one(strict, "funded_wait").n == strict.verdict.funded.assignments


def test_who_would_gain_from_which_change(week: Week) -> None:
    gains = {finding.figures["size"]: finding for finding in by_code(week, "would_gain")}
    assert set(gains) == {"513-1024", "1025-2048", "2049-4096", ">4096"}
    smallest = gains["513-1024"]
    assert (smallest.figures["setting"], smallest.figures["value"]) == ("floor_tokens", 1024)
    gained, held = smallest.figures["gained"], smallest.figures["held"]
    assert gained.low == gained.high == held.low  # at an edge of the buckets it is exact: every one of them
    assert smallest.target.state["what_if_floor"] == ("1024",)


def test_impossible_cells_come_first() -> None:
    made = made_week()
    broken = decisions(decision(400, requested_size=">4096", allowance_size="<=512"))
    week = review_week(replace(made, decisions=pl.concat([made.decisions, broken])), DEFAULT)
    cells = one(week, "cells_impossible")
    assert cells.severity == "wrong"
    assert cells.share is not None
    assert cells.share.part == Bounds(400, 400)
    assert cells.figures["rules"][0][0] == "free_over_allowance"
    assert week.findings[0].severity == "wrong"


def test_what_qualifies_everything_is_told() -> None:
    rows = decisions(decision(10, 15), decision(5, requester=None), decision(3, outcome="funded", requester="anonymous"))
    problems = (Problem("unknown_word", "<b>file</b>", "'gratis' is no word of the rule"), Problem("note", "x", "y", "note"))
    made = replace(NOTHING, decisions=rows, problems=problems, before=Bounds(7, 7), uncovered_s=360.0)
    week = review_week(made, DEFAULT)
    data = next(section for section in week.sections if section.code == "data")
    codes = {finding.code for finding in data.findings}
    assert codes == {"not_exported", "uncertain_counts", "counted_before", "short", "uncovered", "problem", "cells_special"}
    assert one(week, "uncertain_counts").figures["share"] == pytest.approx(5 / 23)
    assert one(week, "uncovered").figures["share"] == 0.1
    assert one(week, "not_exported").figures["dimension"] == "requester"
    assert one(week, "short").figures["length_s"] == 3600


def test_clean_data_say_so(week: Week) -> None:
    assert one(week, "data_clean").severity == "fine"


def test_only_so_many_problems_are_told_one_by_one() -> None:
    problems = tuple(Problem("p", f"file {number}", "broken") for number in range(30))
    week = review_week(replace(NOTHING, decisions=decisions(decision(1)), problems=problems), DEFAULT)
    assert len(by_code(week, "problem")) == 20
    assert one(week, "more_problems").figures["count"] == 10


def test_sections_without_data_say_why() -> None:
    week = review_week(NOTHING, DEFAULT)
    assert {section.code: section.no_data for section in week.sections} == {
        "refused": "no_decisions",
        "responds": "no_decisions_no_estimates",
        "estimates": "no_waits",
        "funded": "no_decisions",
        "changes": "no_decisions",
        "data": None,
    }
    assert week.verdict.answer == "not_visible"
    made = made_week(hours=24)
    for kind, expected in (("estimated", "no_estimates"), ("queue", "no_queue_waits")):
        part = review_week(replace(made, waits=made.waits.filter(pl.col("kind") != kind)), DEFAULT)
        assert {section.code: section.no_data for section in part.sections}["estimates"] == expected


def test_with_nothing_refused_nobody_gains() -> None:
    week = review_week(replace(NOTHING, decisions=decisions(decision(50))), DEFAULT)
    assert one(week, "refused").severity == "fine"
    assert one(week, "nobody_gains").severity == "fine"
    assert one(week, "allowance_moves").severity == "open"  # always at the ceiling: nothing was ever asked of the rule


@pytest.mark.parametrize(
    ("anonymous_funded", "anonymous_free", "registered", "severity"),
    [(2, 0, 18, "open"), (2, 100, 18, "open"), (2, 500, 10, "note"), (1, 1, 5000, "open")],
)
def test_what_only_a_special_case_makes_has_a_threshold_too(
    anonymous_funded: int, anonymous_free: int, registered: int, severity: str
) -> None:
    rows = [
        decision(anonymous_funded, outcome="funded", requester="anonymous", requested_size=">4096"),
        decision(anonymous_free, requester="anonymous"),
        decision(registered),
    ]
    week = review_week(replace(NOTHING, decisions=decisions(*rows)), DEFAULT)
    cells = one(week, "cells_special")
    assert cells.severity == severity
    assert cells.figures["anonymous_funded"].part == Bounds(anonymous_funded, anonymous_funded)


def moves_of(**counts: int) -> Finding:
    """Return what is said of allowances of so many decisions in the size bucket of each name."""
    sizes = {"floor": "<=512", "low": "513-1024", "middle": "1025-2048", "ceiling": "2049-4096"}
    rows = [decision(number, allowance_size=sizes[name], requested_size="<=512") for name, number in counts.items()]
    return one(review_week(replace(NOTHING, decisions=decisions(*rows)), DEFAULT), "allowance_moves")


@pytest.mark.parametrize(
    ("counts", "severity", "size"),
    [
        ({"floor": 922, "middle": 78}, "open", "<=512"),
        ({"ceiling": 834, "floor": 166}, "fine", "2049-4096"),
        ({"ceiling": 10, "floor": 880, "low": 110}, "fine", "<=512"),
        ({"middle": 100}, "open", "1025-2048"),
        ({"middle": 60, "low": 40}, "fine", "1025-2048"),
    ],
)
def test_whether_the_allowance_moves_is_told_by_the_bucket_of_most(counts: dict[str, int], severity: str, size: str) -> None:
    found = moves_of(**counts)
    assert (found.severity, found.figures["size"]) == (severity, size)
    assert found.share is not None
    assert found.share.part.low == max(counts.values())


def test_a_ceiling_and_a_floor_in_one_bucket_do_not_show_whether_it_moves() -> None:
    settings = AllowanceSettings(ceiling_tokens=1000, floor_tokens=600)
    week = review_week(replace(NOTHING, decisions=decisions(decision(9, allowance_size="513-1024"))), settings)
    assert one(week, "allowance_moves").severity == "open"


def test_allowances_that_are_not_exported_are_no_allowances_that_move() -> None:
    week = review_week(replace(NOTHING, decisions=decisions(decision(9, allowance_size=None))), DEFAULT)
    assert not by_code(week, "allowance_moves")
    assert {section.code: section.no_data for section in week.sections}["responds"] == "no_allowance_sizes"


def test_only_what_is_as_it_should_be_is_called_so() -> None:
    """A problem, a count that is in no figure and a special case are to be known: none of them is fine."""
    rows = decisions(decision(500), decision(1, outcome="funded", requester="anonymous", requested_size=">4096"))
    problems = tuple(Problem("p", f"file {number}", "odd", "note") for number in range(25))
    week = review_week(replace(NOTHING, decisions=rows, problems=problems, before=Bounds(7, 7)), DEFAULT)
    data = next(section for section in week.sections if section.code == "data")
    assert {finding.code for finding in data.findings if finding.severity == "fine"} <= {"data_clean"}
    assert one(week, "more_problems").severity == "note"
    grave = tuple(replace(problem, level="problem") for problem in problems)
    assert one(review_week(replace(NOTHING, decisions=rows, problems=grave), DEFAULT), "more_problems").severity == "open"


def test_a_range_is_cut_out() -> None:
    made = made_week(hours=48)
    day = made.within(TimeRange(MONDAY, MONDAY + timedelta(hours=24)))
    assert day.covered == TimeRange(MONDAY, MONDAY + timedelta(hours=24))
    assert day.counted == Bounds(24 * 12, 24 * 12)
    outside = made.within(TimeRange(MONDAY + timedelta(days=30), None))
    assert outside.counted == Bounds(0, 0)
    assert outside.covered == TimeRange(MONDAY + timedelta(days=30), None)
    assert made.instances == ("one",)
