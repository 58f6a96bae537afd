"""Findings as sentences, and the words of the review."""

import math
from dataclasses import replace

import polars as pl
import pytest

from horde_policy.errors import Problem
from horde_policy.frames.decisions import DECISIONS
from horde_policy.frames.waits import WAIT_SUMS, WAITS
from horde_policy.review.exported import Exported
from horde_policy.review.finding import SECTIONS, SEVERITIES, Section
from horde_policy.review.findings import Question, Week, review_week
from horde_policy.review.sampling import Bounds
from horde_policy.settings import AllowanceSettings
from horde_policy.views.finding_text import (
    LINK_WORDS,
    NO_DATA_TEXTS,
    SECTION_TITLES,
    SEVERITY_WORDS,
    TEXTS,
    finding_text,
    funded_details,
    funded_sentence,
    no_data_text,
    point_refuted_text,
    point_warning,
)
from horde_policy.views.review_words import bounds_text
from tests.unit.review.made import decision, decisions, histogram, waits
from tests.unit.review.weeks import made_week

DEFAULT = AllowanceSettings()
NOTHING = Exported(decisions=DECISIONS.empty(), waits=WAITS.empty(), wait_sums=WAIT_SUMS.empty())


def weeks() -> list[Week]:
    """Return weeks that together have every finding there is."""
    made = made_week(hours=48)
    broken = decisions(decision(400, requested_size=">4096", allowance_size="<=512"), decision(3, outcome=None))
    special = decisions(decision(4, 9, outcome="funded", requester="anonymous", requested_size=">4096"))
    problems = tuple(Problem("p", f"file {number}", "is <b>broken</b>\x1b[2J") for number in range(25))
    problems += tuple(Problem("damaged", f"<b>{number}\x1b[2J", "the gzip packing ends early") for number in range(7))
    problems += tuple(Problem("interleaved", f"<b>{number}\x1b[2J", "several processes write it") for number in range(7))
    odd = replace(
        NOTHING,
        decisions=pl.concat([broken, special]),
        problems=problems,
        before=Bounds(7, 7),
        uncovered_s=90.0,
        one_scrape=False,
    )
    return [
        review_week(made, DEFAULT),
        review_week(made, AllowanceSettings(ceiling_tokens=2048)),
        review_week(made_week(hours=48, estimate_over_measured=0.3), DEFAULT),
        review_week(made_week(hours=48, estimate_over_measured=3.0), DEFAULT),
        review_week(odd, DEFAULT),
        review_week(replace(NOTHING, decisions=decisions(decision(5)), one_scrape=True), DEFAULT),
        review_week(made_week(), DEFAULT),
        review_week(NOTHING, DEFAULT),
    ]


@pytest.fixture(scope="module", name="some_weeks")
def _some_weeks() -> list[Week]:
    return weeks()


def test_every_finding_has_its_sentence_and_every_sentence_its_finding(some_weeks: list[Week]) -> None:
    assert {finding.code for week in some_weeks for finding in week.findings} == set(TEXTS)


def test_sentences_are_whole_and_carry_their_figures(some_weeks: list[Week]) -> None:
    for finding in (finding for week in some_weeks for finding in week.findings):
        text = finding_text(finding)
        for sentence in (text.sentence, *text.details):
            assert (
                sentence[0].isupper() or sentence[0].isdigit() or finding.code in {"problem", "cut_short", "several_processes"}
            ), sentence
            assert sentence.endswith("."), sentence
            for broken in ("None", "nan", "inf", "Bounds", "{", "}", "\x1b", "  "):
                assert broken not in sentence, sentence
        assert text.severity in SEVERITY_WORDS.values()
        if finding.share is not None:
            assert text.interval.startswith("95 % interval ")
            assert text.figure
        if finding.n is not None:
            assert text.n.startswith("n = ")


def test_a_tried_change_names_the_condition_that_counts_do_not_tell(some_weeks: list[Week]) -> None:
    found = [finding for week in some_weeks for finding in week.findings if finding.code == "would_gain"]
    assert any(finding.figures["gained"].exact for finding in found)
    for text in (finding_text(finding) for finding in found):
        assert any("slow workers are allowed" in detail for detail in text.details)
        assert text.interval.startswith("bounds: ") or "where slow workers are allowed" in text.interval


def test_what_a_change_frees_of_all_sizes_stands_in_its_sentence(some_weeks: list[Week]) -> None:
    found = [finding for week in some_weeks for finding in week.findings if finding.code == "would_gain"]
    more = [finding.figures["in_all"] != finding.figures["gained"] for finding in found]
    assert set(more) == {True, False}
    for finding, differs in zip(found, more, strict=True):
        text = finding_text(finding)
        assert text.sentence.endswith(f", and {bounds_text(finding.figures['in_all'])} of all sizes.") is differs
        assert not any("in all" in detail for detail in text.details), "and not a second time"


def test_every_word_for_machines_has_one_for_people(some_weeks: list[Week]) -> None:
    assert set(SECTION_TITLES) == set(SECTIONS)
    assert set(SEVERITY_WORDS) == set(SEVERITIES)
    pages = {finding.target.page for week in some_weeks for finding in week.findings}
    assert pages <= set(LINK_WORDS)
    for week in some_weeks:
        for section in week.sections:
            assert (no_data_text(section) is None) == (section.no_data is None)
    assert no_data_text(Section("funded", (), "no_decisions")) != NO_DATA_TEXTS["no_decisions"]


def test_the_sentence_of_refusals_by_hand() -> None:
    rows = decisions(
        decision(80),
        decision(15, outcome="refused", requester="anonymous", requested_size="513-1024", allowance_size="<=512"),
        decision(5, outcome="refused", requested_size=">4096"),
    )
    text = finding_text(review_week(replace(NOTHING, decisions=rows), DEFAULT).sections[0].findings[0])
    assert text.sentence == "20.0 % of all text requests were refused: 20."
    assert text.details == (
        "The largest group, 15, were anonymous requests for 513 to 1,024 tokens, of which 100 % were refused.",
        "Of the refusals 75.0 % met an allowance at its floor: the wait was long, or no worker was eligible.",
        "Larger than the ceiling, so never free at any wait: 25.0 % of the refusals.",
    )
    assert (text.n, text.beside) == ("n = 100 requests", f"20.0 % ({text.interval}) · n = 100 requests")
    assert text.interval.startswith("95 % interval ")


def verdict_of(
    free: int, funded: int, quick: int, slow: int, *, above: float = 0.1, ratio: float = 1.0, anonymous: tuple[int, int] = (0, 0)
) -> Week:
    """Return a week of these registered counts; quick waits are 100 s, slow ones 400 s, of anonymous requesters as well."""
    beside = histogram([100.0] * anonymous[0] + [400.0] * anonymous[1], requester="anonymous")
    made = replace(
        NOTHING,
        decisions=decisions(decision(free), decision(funded, outcome="funded")),
        waits=waits(*histogram([100.0] * quick + [400.0] * slow), *beside),
    )
    return review_week(made, DEFAULT, question=Question(above=above, ratio=ratio))


@pytest.mark.parametrize(
    ("counts", "above", "sentence"),
    [
        (
            (500, 500, 200, 800),
            0.3,
            "It is certain that more than 30.0 % of the funded requests waited over 300 s. "
            "No per-request record is needed to know it.",
        ),
        (
            (5000, 5000, 9900, 100),
            0.1,
            "It is certain that not more than 10.0 % of the funded requests waited over 300 s. "
            "No per-request record is needed to know it.",
        ),
        (
            (917, 83, 910, 90),
            0.1,
            "These counts cannot tell whether more than 10.0 % of the funded requests waited over 300 s. "
            "No number of requests changes that: it takes a per-request record.",
        ),
        (
            (100, 0, 100, 0),
            0.1,
            "The funded wait is not visible: no registered request was funded, so the measured waits say nothing of funded ones.",
        ),
    ],
)
def test_the_verdict_in_a_sentence(counts: tuple[int, int, int, int], above: float, sentence: str) -> None:
    assert funded_sentence(verdict_of(*counts, above=above).verdict) == sentence


def test_the_verdict_says_how_many_more_requests_help_and_what_is_taken_for_granted() -> None:
    verdict = verdict_of(50, 50, 96, 4).verdict
    assert funded_sentence(verdict).startswith("It is not yet decided whether more than 10.0 % of the funded requests waited")
    assert f"about {verdict.times_the_requests:.1f} times as many requests would decide it" in funded_sentence(verdict)
    details = " ".join(funded_details(verdict_of(5000, 5000, 9900, 100).verdict))
    assert "assumed to differ, as odds, by a factor of 1 at most" in details
    assert "The answer stands up to a factor of" in details
    assert funded_details(verdict_of(100, 0, 100, 0).verdict) == ()
    assert "factor of inf" not in " ".join(funded_details(verdict_of(50, 50, 96, 4, ratio=math.inf).verdict))


def test_no_title_says_the_opposite_of_its_own_figure() -> None:
    """An allowance nearly always at the floor does not "move: 0 %", and a special case that is much is not as it should be."""
    rows = decisions(
        decision(922, allowance_size="<=512", requested_size="<=512"),
        decision(78, allowance_size="1025-2048", requested_size="<=512"),
        decision(20, outcome="funded", requester="anonymous", requested_size=">4096"),
    )
    week = review_week(replace(NOTHING, decisions=rows), DEFAULT)
    told = {finding.code: finding_text(finding) for finding in week.findings}
    moves = told["allowance_moves"]
    assert moves.sentence.startswith("The allowance hardly moves: for 90.4 % of the requests it was ")
    assert moves.sentence.endswith(" tokens, the range of the floor.")
    assert (moves.figure, moves.severity) == ("90.4 %", "open")
    assert moves.details[0].endswith("it was in the range of the ceiling.")
    assert told["cells_special"].severity == "open"
    assert "Of the 20 anonymous decisions, 100 % held kudos." in told["cells_special"].details


def test_a_point_estimate_never_stands_without_its_warning() -> None:
    made = made_week(hours=48)
    details = funded_details(review_week(made, DEFAULT).verdict)
    (point,) = [detail for detail in details if "like anonymous ones" in detail]
    assert "that may be off by" in point


def test_what_the_counts_refute_is_said_in_place_of_an_impossible_figure() -> None:
    made = verdict_of(60, 7, 59, 8, anonymous=(3, 1))
    said = [detail for detail in funded_details(made.verdict) if "like anonymous ones" in detail]
    assert said == [point_refuted_text(Bounds(4, 4))]
    assert "nothing can be drawn" in point_warning(made.verdict)
    assert "nothing to draw" in point_warning(verdict_of(60, 7, 59, 8).verdict)
    assert "may be off by" in point_warning(review_week(made_week(hours=48), DEFAULT).verdict)
