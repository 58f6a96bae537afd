"""The change proposal: its values as environment lines, its evidence, its caveats, and what would refute it (A6, A25–A28)."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import polars as pl
import pytest

from horde_policy.errors import InputError
from horde_policy.replay.fill_rule import FillRule
from horde_policy.settings import ReplaySettings, settings_from_environment
from horde_policy.sweep.grid import Scenario
from horde_policy.sweep.judge import Judgement, Question, judge
from horde_policy.sweep.proposal import Proposal, propose
from horde_policy.sweep.sentences import parse_constraint, parse_objective
from horde_policy.views.proposal import proposal_html, proposal_markdown, proposal_name
from horde_policy.views.proposal_words import CAVEATS, caveat_sentence, headline, summary_sentences
from tests.unit.sweep.made import made_frame

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SETTINGS = [
    ReplaySettings(),
    ReplaySettings(ceiling_tokens=2048),
    ReplaySettings(ceiling_tokens=2048, floor_tokens=256),
    ReplaySettings(floor_tokens=256, wait_full_s=30.5),
]
HOSTILE = "evil](http://x/y)<script>alert(1)</script>`**b** |\u202ecsv"
STAMP: dict[str, object] = {
    "trace": HOSTILE,
    "traffic": {"fill": "max_length=ladder"},
    "fleet": {
        "from": "snapshot",
        "source": HOSTILE,
        "synthetic": True,
        "workers": 3,
        "models": 2,
        "combined_speed_tok_per_s": 9.0,
    },
    "synthetic": True,
    "names_everything": True,
    "dated": True,
    "inputs": "0123456789abcdef",
    "engine": "fedcba9876543210",
    "dropped": {"floor_tokens must not be above ceiling_tokens": 4},
}


def counts(p: int, scenario: Scenario, day: int) -> Mapping[str, float]:
    refused = (300, 200, 120, 280)[p] + 5 * day + scenario.seed
    return {"requests": 2000, "unfunded": 1000, "unfunded_refused": refused, "refused": refused, "completed": 1600, "expired": 20}


def waits(p: int, _: Scenario, day: int) -> Mapping[str, Mapping[int, int]]:
    return {"registered": {0: 90, 200 + 4 * p + day: 30}, "anonymous": {0: 50, 300 + day: 60}}


@pytest.mark.parametrize("lives_s", [60.0, 150.0, 1199.0])
def test_no_day_of_production_is_expected_to_wait_longer_than_a_request_lives(lives_s: float) -> None:
    settings = [ReplaySettings(), ReplaySettings(request_ttl_s=lives_s)]

    def apart(_p: int, _s: Scenario, day: int) -> Mapping[str, Mapping[int, int]]:
        return {who: {300 if day % 2 else 10 * k + 700: 90} for k, who in enumerate(("registered", "anonymous"))}

    frame = made_frame(settings, counts, waits=apart)
    judged = judge(frame, Question(objectives=(parse_objective("refused share of unfunded"),)), resamples=20)
    ranges = propose(judged, STAMP, point=judged.points["point"][1]).expected[1:]
    assert len(ranges) == 2
    # days as far apart as these would reach beyond the end
    assert [(each.baseline_high, each.high) for each in ranges] == [(1200.0, lives_s)] * 2


def answered(*must: str, days: int = 7, seeds: tuple[int, ...] = (0, 1), want: str = "refused share of unfunded") -> Judgement:
    question = Question(
        objectives=(parse_objective(want), parse_objective("p90 wait of registered")),
        constraints=tuple(parse_constraint(sentence) for sentence in must),
    )
    return judge(made_frame(SETTINGS, counts, days=days, seeds=seeds, waits=waits), question, resamples=100)


@pytest.fixture
def proposal() -> Proposal:
    return propose(answered("p90 wait of registered ≤ 120 % of baseline"), STAMP)


def test_it_proposes_the_best_as_lines_that_set_it(proposal: Proposal) -> None:
    assert proposal.settings == SETTINGS[2]
    assert [line.line for line in proposal.environment] == [
        "HORDE_TEXT_FREE_OUTPUT_CEILING=2048",
        "HORDE_TEXT_FREE_OUTPUT_FLOOR=256",
        "HORDE_TEXT_FREE_OUTPUT_WAIT_FULL_SECONDS=60",
        "HORDE_TEXT_FREE_OUTPUT_WAIT_FLOOR_SECONDS=300",
    ]
    assert [line.changed for line in proposal.environment] == [True, True, False, False]
    typed = dict(line.line.split("=", 1) for line in proposal.environment)
    assert settings_from_environment(typed, ReplaySettings()) == proposal.settings, "the lines say what was replayed"


def test_settings_beyond_the_four_stand_in_it_where_they_change() -> None:
    picked = propose(answered(), STAMP, SETTINGS[3].digest(16))
    assert picked.picked
    assert "HORDE_TEXT_FREE_OUTPUT_WAIT_FULL_SECONDS=30.5" in [line.line for line in picked.environment]
    assert headline(picked) == "Change proposal: floor 256, full wait 30 s (picked by hand)"


def test_the_evidence_stands_beside_the_days_held_out(proposal: Proposal) -> None:
    first, second = proposal.comparisons
    assert first.metric == "refused_share_unfunded"
    assert first.baseline == pytest.approx(0.3155)
    assert first.point == pytest.approx(0.1355)
    assert (first.verdict, first.better_days, first.holdout_better_days) == ("better", 5, 2)
    assert first.holdout_point == pytest.approx(0.153)
    assert second.verdict == "worse"
    assert proposal.certainty == 1.0
    assert proposal.alike == 0
    check = proposal.checks[0]
    assert (check.met_share, check.met_on_holdout) == (1.0, True)


def test_it_says_what_a_day_of_production_must_show(proposal: Proposal) -> None:
    expected = {each.metric: each for each in proposal.expected}
    refused = expected["refused_share"]
    assert refused.low is not None
    assert refused.high is not None
    assert refused.baseline_low is not None
    days = [(120 + 5 * d + 0.5) / 2000 for d in range(1, 8)]
    assert refused.low < min(days) < max(days) < refused.high < refused.baseline_low, "apart, so that a day can tell"
    assert set(expected) == {"refused_share", "p90_queue_wait_registered_s", "p90_queue_wait_anonymous_s"}
    few = propose(answered(days=3), STAMP)
    assert few.expected[0].low is None


def test_no_day_is_held_against_what_was_the_same_on_every_replayed_day() -> None:
    question = Question(objectives=(parse_objective("p90 wait of registered"),))
    quiet = made_frame(SETTINGS, lambda *_: {"requests": 2000, "unfunded": 1000, "completed": 2000}, seeds=(0, 1), waits=waits)
    calm = propose(judge(quiet, question, resamples=100), STAMP)
    document = proposal_markdown(calm, made_at=NOW)
    assert "0 to 0 %" not in document.partition("What would refute it")[2]
    assert "0 % on every replayed day, so no range to hold a day against" in document
    assert "The refused share: the same on every replayed day" in document
    assert "the same on every replayed day" not in proposal_markdown(propose(answered(), STAMP), made_at=NOW)


def test_the_documents_hold_all_of_it(proposal: Proposal) -> None:
    markdown = proposal_markdown(proposal, made_at=NOW)
    for text in (
        "# Change proposal: ceiling 2,048, floor 256",
        "Made 30 Nov 2026 12:00:00 UTC from a sweep of 4 settings.",
        "HORDE_TEXT_FREE_OUTPUT_FLOOR=256",
        "| Floor (tokens) | 512 | 256 | changed |",
        " points",
        "better, beyond noise",
        "Least refused share of unfunded: decides.",
        "P90 wait of registered ≤ 120 % of baseline: must hold.",
        "## Caveats",
        "## What would refute it",
        "synthetic",
        "| 6 | 2026-11-28 00:00 | held out |",
        "It is better on 5 of the 5 days it was chosen on, and on 2 of 2 held out.",
        "It is the best in 100 % of the resamples of the days; no other setting comes near.",
    ):
        assert text in markdown, text
    html = proposal_html(proposal, made_at=NOW)
    assert proposal_name(proposal, "md") == f"proposal_{SETTINGS[2].digest()}.md"
    for line in proposal.environment:
        assert line.line in html


class Elements(HTMLParser):
    """Notes every element, and the text outside of code."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_names_from_outside_are_only_text(proposal: Proposal) -> None:
    html = Elements()
    html.feed(proposal_html(proposal, made_at=NOW))
    assert not html.tags & {"script", "a", "img", "iframe", "object", "link", "form"}
    assert not html.attributes & {"src", "href", "onerror", "onload", "action"}
    assert "default-src 'none'" in proposal_html(proposal, made_at=NOW)
    markdown = proposal_markdown(proposal, made_at=NOW)
    outside = re.sub(r"(`+).*?\1", "", re.sub(r"```.*?```", "", markdown, flags=re.DOTALL))
    assert "script" not in outside
    assert "](" not in outside
    assert "\u202e" not in markdown
    assert "⟨U+202E⟩" in markdown


def test_every_caveat_has_its_sentence_and_the_right_ones_stand() -> None:
    answer = answered("p90 wait of registered ≤ 120 % of baseline")
    plain = {c.code for c in propose(answer, {}).caveats}
    assert plain == {"fill_rule", "one_fill_rule", "one_load", "edge", "clients_leave", "no_job_timeout", "waits_count_expired"}
    stamped = {c.code for c in propose(answer, STAMP | {"reconstruction": True, "dated": False}).caveats}
    assert stamped == plain | {"reconstruction", "synthetic", "undated", "dropped"}
    named = propose(answer, STAMP | {"traffic": {}})
    assert "fill_rule" not in {c.code for c in named.caveats}, "traffic that names everything needs no fill rule"
    few = {c.code for c in propose(answered(days=3, seeds=(0,)), {}).caveats}
    assert {"few_days", "no_holdout", "one_seed"} <= few
    for code in {c.code for p in (answer,) for c in propose(p, STAMP).caveats} | stamped | few:
        assert code in CAVEATS


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        ("across_loads", {"loads": [0.5, 1.0], "rule": "worst"}),
        ("unserved_models", {"least": 0.25, "most": 0.25}),
        ("within_noise", {}),
        ("does_not_meet", {}),
        ("not_certain", {"certainty": 0.4}),
        ("holdout_disagrees", {"days": 2, "better": 0}),
        ("partial", {"points": 3, "points_of": 5, "scenarios": 1, "scenarios_of": 2, "of_what": "seeds"}),
    ],
)
def test_a_caveats_sentence_says_its_facts(code: str, facts: dict[str, object]) -> None:
    sentence, names = caveat_sentence(code, facts)
    assert sentence.endswith(".")
    assert names == ()
    for value in facts.values():
        if isinstance(value, int):
            assert str(value) in sentence


def test_a_point_within_the_noise_says_so() -> None:
    flat = answered(want="timed-out share")
    kept = propose(flat, STAMP)
    assert kept.settings == ReplaySettings()
    assert headline(kept) == "Keep the settings in force"
    assert summary_sentences(kept) == ["No setting that was tried changes the timed-out share at all."]
    picked = propose(flat, STAMP, SETTINGS[1].digest(16))
    assert "no difference" in summary_sentences(picked)[0]


def test_without_a_point_or_a_baseline_there_is_no_proposal() -> None:
    with pytest.raises(InputError, match="nothing meets the constraints"):
        propose(answered("refused share of unfunded ≤ 1 %"), STAMP)
    picked = propose(answered("refused share of unfunded ≤ 1 %"), STAMP, SETTINGS[1].digest(16))
    assert "does_not_meet" in {c.code for c in picked.caveats}
    with pytest.raises(InputError, match="is not among the points judged"):
        propose(answered(), STAMP, "0" * 16)
    frame = made_frame(SETTINGS, counts).filter(~pl.col("baseline"))
    with pytest.raises(InputError, match="needs the baseline"):
        propose(judge(frame, Question(objectives=(parse_objective("refused share"),))), STAMP)


def test_a_choice_that_other_days_do_not_bear_out_says_so() -> None:
    def turned(p: int, scenario: Scenario, day: int) -> Mapping[str, float]:
        made = dict(counts(p, scenario, day))
        if day > 5 and p == 2:
            made["unfunded_refused"] = made["refused"] = 600
        return made

    question = Question(objectives=(parse_objective("refused share of unfunded"),))
    answer = judge(made_frame(SETTINGS, turned, seeds=(0, 1)), question, resamples=100)
    found = {c.code: c.facts for c in propose(answer, {}).caveats}
    assert found["holdout_disagrees"] == {"days": 2, "better": 0}


def test_the_bounds_of_a_difference_are_written_out_and_possible(proposal: Proposal) -> None:
    wide = tuple(replace(c, difference_half_width=10 * abs(c.difference or 1)) for c in proposal.comparisons)
    first = wide[0]
    assert None not in (first.baseline_low, first.baseline_high)
    lowest, highest = f"−{(first.baseline_high or 0) * 100:.2g}", f"+{(1 - (first.baseline_low or 0)) * 100:.2g}"
    for document in (proposal_markdown, proposal_html):
        assert f"−18 points ({lowest} to {highest})" in document(replace(proposal, comparisons=wide), made_at=NOW)
        assert "±" not in document(proposal, made_at=NOW)


def test_the_edge_of_the_grid_is_told(proposal: Proposal) -> None:
    edges = {(c.facts["setting"], c.facts["value"]) for c in proposal.caveats if c.code == "edge"}
    assert edges == {("ceiling_tokens", 2048), ("floor_tokens", 256)}
    assert replace(proposal, picked=True).picked


@pytest.mark.parametrize(
    ("stamp", "fill", "rules"),
    [
        ({}, None, [str(FillRule())]),
        ({"traffic": {}}, None, [str(FillRule())]),
        ({"traffic": {"fill": "max_length=ladder"}}, None, ["max_length=ladder"]),
        ({"traffic": {"fill": "max_length=ladder"}}, "max_length=tight", ["max_length=tight"]),
    ],
)
def test_the_fill_rule_in_force_is_always_named(stamp: dict[str, object], fill: str | None, rules: list[str]) -> None:
    frame = made_frame(SETTINGS, counts, waits=waits).with_columns(pl.lit(fill, pl.String).alias("fill"))
    made = propose(judge(frame, Question(objectives=(parse_objective("refused share"),))), stamp)
    assert next(c.facts for c in made.caveats if c.code == "fill_rule") == {"rules": rules}
    assert f"depend on it more than on the trace: `{rules[0]}`" in proposal_markdown(made, made_at=NOW)
    assert f"depend on it more than on the trace: <code>{rules[0]}</code>" in proposal_html(made, made_at=NOW)


@pytest.mark.parametrize(
    ("done", "stamp", "told"),
    [
        (4, {"missing": 4, "points": 4, "scenarios": 2, "seeds": 2}, "4 of 4 settings under 1 of 2 seeds"),
        (6, {"missing": 2, "points": 4, "scenarios": 2, "seeds": 2}, "4 of 4 settings under 1 of 2 seeds"),
        (6, {"missing": 6, "points": 4, "scenarios": 3, "seeds": 3}, "4 of 4 settings under 1 of 3 seeds"),
        (3, {"missing": 5, "points": 4, "scenarios": 2, "seeds": 2}, "3 of 4 settings under 1 of 2 seeds"),
        (3, {"missing": 1, "points": 4, "scenarios": 1, "seeds": 1}, "3 of 4 settings under 1 of 1 seed:"),
        (6, {"missing": 10, "points": 4, "scenarios": 4, "seeds": 2}, "4 of 4 settings under 1 of 4 scenarios (load, fill"),
        (6, {}, "4 of 4 settings under 1 of 2 scenarios (load, fill rule and seed)"),
        (8, {"missing": 0, "points": 4, "scenarios": 2, "seeds": 2}, None),
    ],
)
def test_a_proposal_of_a_part_says_so(done: int, stamp: dict[str, int], told: str | None) -> None:
    whole = made_frame(SETTINGS, counts, seeds=(0, 1), waits=waits)
    part = whole.head(done * 7)
    made = propose(judge(part, Question(objectives=(parse_objective("refused share"),))), stamp)
    assert [c.code for c in made.caveats if c.code == "partial"] == ([] if told is None else ["partial"])
    for document in (proposal_markdown(made, made_at=NOW), proposal_html(made, made_at=NOW)):
        assert ("stopped before the end" in document) == (told is not None)
        assert told is None or f"Made from {told}" in document
