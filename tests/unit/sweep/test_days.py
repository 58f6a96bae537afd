"""A last day that is not whole: it stays among the rows, is named with its hours, and counts as a day nowhere."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from horde_policy.errors import InputError
from horde_policy.settings import ReplaySettings
from horde_policy.sweep.days import day_hours, hours_by_day
from horde_policy.sweep.grid import Scenario
from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.judge import Judgement, Question, judge
from horde_policy.sweep.metrics import METRICS
from horde_policy.sweep.proposal import propose
from horde_policy.sweep.run import run_sweep
from horde_policy.sweep.sentences import parse_constraint, parse_objective
from horde_policy.views.proposal import proposal_html, proposal_markdown
from tests.unit.sweep.made import START, busy_week, fleet_frame, inputs_of, made_frame, planned, traffic_frame

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SETTINGS = [ReplaySettings(), ReplaySettings(ceiling_tokens=2048), ReplaySettings(floor_tokens=256)]
ASKED = Question(
    objectives=(parse_objective("most tokens given free"), parse_objective("p90 wait of registered")),
    constraints=(parse_constraint("tokens given free at least 900,000"),),
)
STAMP = {"trace": "made up", "synthetic": True, "names_everything": True, "dated": True}


def counts(point: int, _scenario: Scenario, day: int) -> Mapping[str, float]:
    part = 0.004 if day == 8 else 1.0
    tokens = part * (1_000_000 + 90_000 * point + 5_000 * day)
    return {"requests": 2000 * part, "unfunded": 1000 * part, "unfunded_refused": 300 * part, "free_tokens": tokens}


def waits(point: int, _scenario: Scenario, day: int) -> Mapping[str, Mapping[int, int]]:
    return {"registered": {0: 90, 200 + 4 * point + (400 if day == 8 else day): 30}}


def made(last_hours: float, days: int = 8) -> pl.DataFrame:
    return made_frame(SETTINGS, counts, days=days, last_hours=last_hours, waits=waits)


def answer(frame: pl.DataFrame) -> Judgement:
    return judge(frame, ASKED, resamples=50)


def inputs_at(folder: Path, moments_h: list[float]) -> SweepInputs:
    traffic = traffic_frame([{"created": START + timedelta(hours=hour)} for hour in moments_h])
    return inputs_of(folder, traffic, fleet_frame([{"worker_id": "w"}]))


@pytest.mark.parametrize(
    ("moments_h", "hours"),
    [
        ([h / 4 for h in range(96 * 2)], [24, 24]),
        ([h / 4 for h in range(96 * 2 + 1)], [24, 24, 0]),
        ([h / 4 for h in range(96 * 2 + 25)], [24, 24, 6]),
        ([h / 4 for h in range(96 * 3 - 4)], [24, 24, 24]),  # it lacks three of 96 quarters
        ([h / 4 for h in range(96 * 3 - 8)], [24, 24, 21.75]),
        ([24 * day + h / 4 for day in range(3) for h in range(33)], [24, 24, 24]),  # nobody asks after eight hours
        ([*(24 * day + h / 4 for day in range(2) for h in range(33)), 48, 50], [24, 24, 2]),
        ([24 * day + h / 4 for day in (0, 2) for h in range(96)], [24, 24, 24]),  # a day of silence within is a day
        ([h / 4 for h in range(25)], [6]),
        ([0, 23], [24]),
        ([0], [0]),
    ],
)
def test_a_last_day_is_short_if_it_lacks_what_the_days_before_brought(
    tmp_path: Path, moments_h: list[float], hours: list[float]
) -> None:
    assert day_hours(inputs_at(tmp_path, moments_h)) == hours


@pytest.mark.parametrize("last_hours", [0.0, 0.1, 6.0, 23.0])
def test_a_judgement_is_the_same_with_and_without_the_short_day(last_hours: float) -> None:
    whole, cut = answer(made(24.0, days=7)), answer(made(last_hours))
    assert cut.points.equals(whole.points)
    assert (cut.chosen_days, cut.holdout_days) == (whole.chosen_days, whole.holdout_days) == ((1, 2, 3, 4, 5), (6, 7))
    assert (cut.evidence.blocks, cut.decision, cut.recommended) == (whole.evidence.blocks, whole.decision, whole.recommended)
    assert (cut.sensitivities, cut.levels.to_dicts()) == (whole.sensitivities, whole.levels.to_dicts())
    assert (cut.short_days, whole.short_days) == ({8: last_hours}, {})
    ours, theirs = propose(cut, STAMP), propose(whole, STAMP)
    assert (ours.comparisons, ours.checks, ours.expected, ours.mix) == (
        theirs.comparisons, theirs.checks, theirs.expected, theirs.mix,
    )  # fmt: skip
    assert ours.checks[0].met_on_holdout
    assert {c.code: c.facts for c in ours.caveats}["short_day"] == {"day": 8, "hours": last_hours}


def test_a_whole_last_day_counts() -> None:
    cut = answer(made(24.0))
    assert (cut.chosen_days, cut.holdout_days, cut.short_days) == ((1, 2, 3, 4, 5, 6), (7, 8), {})
    assert not {"short_day", "no_whole_day"} & {c.code for c in propose(cut, STAMP).caveats}


@pytest.mark.parametrize("write", [proposal_markdown, proposal_html])
def test_the_proposal_names_the_short_day_and_its_hours(write: object) -> None:
    assert callable(write)
    told = write(propose(answer(made(0.1)), STAMP), made_at=NOW)
    assert "Day 8 is no whole day: its requests span 360 s of 24 h." in told
    assert "not counted: 360 s of 24 h" in told
    assert "all 8 days are replayed as one" in told
    assert "Better on (of 2)" in told


def test_a_short_day_cannot_be_held_out() -> None:
    held = Question(objectives=ASKED.objectives, holdout_days=(7, 8))
    with pytest.raises(InputError, match=r"must be among the whole days of the sweep, \[1, 2, 3, 4, 5, 6, 7\]"):
        judge(made(0.1), held)


def test_figures_a_day_of_a_short_day_are_its_pace() -> None:
    frame = made(6.0)
    rows = frame.filter(pl.col("day") == 8)
    assert rows["free_tokens_per_day"].to_list() == pytest.approx((rows["free_tokens"] * 4).to_list())
    assert made(0.0).filter(pl.col("day") == 8)["free_tokens_per_day"].null_count() == 3, "no time, no pace"


def test_traffic_shorter_than_a_day_is_judged_and_said_to_be() -> None:
    frame = made(6.0).filter(pl.col("day") == 8)
    found = judge(frame, Question(objectives=ASKED.objectives), resamples=50)
    assert (found.chosen_days, found.holdout_days, found.short_days) == ((8,), (), {})
    assert found.points["free_tokens_per_day"][0] == pytest.approx(4 * frame["free_tokens"][0])
    facts = {c.code: c.facts for c in propose(found, STAMP).caveats}
    assert facts["no_whole_day"] == {"hours": 6.0}
    assert "short_day" not in facts


def test_a_sweep_keeps_the_rows_of_the_short_day_and_its_figures_are_those_of_whole_days(tmp_path: Path) -> None:
    traffic, fleet = busy_week(900, days=5)
    late = traffic.filter(pl.col("created") < START + timedelta(hours=9)).with_columns(pl.col("created") + timedelta(days=5))
    assert late.height > 9
    inputs = inputs_of(tmp_path, pl.concat((traffic, late)), fleet)
    frame = run_sweep(inputs, planned("floor_tokens = [128, 512]", inputs)).frame
    hours = hours_by_day(frame)
    assert list(hours) == [1, 2, 3, 4, 5, 6]
    assert 8 < hours[6] < 9
    found = judge(frame, Question(objectives=ASKED.objectives, holdout_days=()))
    assert found.chosen_days == (1, 2, 3, 4, 5)
    by_day = frame.filter(pl.col("baseline") & (pl.col("day") <= 5))["free_tokens"]
    assert found.row(str(found.baseline))["free_tokens_per_day"] == pytest.approx(by_day.mean())
    assert METRICS["free_tokens_per_day"] in found.question.metrics
