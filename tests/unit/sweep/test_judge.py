"""The judgement: it finds a best setting that is known, says how sure it is, and says so where nothing differs."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.errors import InputError
from horde_policy.settings import ReplaySettings
from horde_policy.sweep.grid import Scenario
from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.judge import Judgement, Question, default_holdout, judge
from horde_policy.sweep.noise import LEAST_BLOCKS, bounds, compared
from horde_policy.sweep.pareto import front
from horde_policy.sweep.run import run_sweep
from horde_policy.sweep.sentences import parse_constraint, parse_objective
from tests.unit.sweep.made import START, fleet_frame, inputs_of, made_frame, planned, traffic_frame

SIZES = (300, 700, 1500, 3000)


def question(*objectives: str, under: tuple[str, ...] = (), holdout: tuple[int, ...] | None = None) -> Question:
    return Question(
        objectives=tuple(parse_objective(o) for o in objectives),
        constraints=tuple(parse_constraint(c) for c in under),
        holdout_days=holdout,
    )


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> SweepInputs:
    """A week without any wait: what is refused depends on the ceiling alone, a quarter of the requests a step."""
    dice = np.random.default_rng(7)
    rows = [
        {
            "created": START + timedelta(days=day, seconds=12_000 * k / n),
            "max_length": int(dice.choice(SIZES)),
            "requester": "registered" if k % 3 else "anonymous",
        }
        for day in range(7)
        for n in [int(dice.integers(150, 250))]
        for k in range(n)
    ]
    fleet = fleet_frame([{"worker_id": f"w{k}", "speed": 100.0, "threads": 20} for k in range(5)])
    return inputs_of(tmp_path_factory.mktemp("quiet"), traffic_frame(rows), fleet)


CEILINGS = "ceiling_tokens = [512, 1024, 2048, 4096]\nfloor_tokens = [128, 256]\nwait_floor_s = [300, 600]"


def test_it_finds_the_best_setting_where_it_is_known_and_says_how_sure_it_is(quiet: SweepInputs) -> None:
    frame = run_sweep(quiet, planned(CEILINGS, quiet)).frame
    # a ceiling of 2048 refuses the 3000s, about 25 %; 1024 refuses about half, 4096 nothing and gives most away
    asked = question("fewest tokens given free", under=("refused share of unfunded ≤ 35 %",))
    answer = judge(frame, asked)
    best = answer.row(str(answer.best))
    assert best["ceiling_tokens"] == 2048
    assert answer.decision == "change"
    assert answer.recommended == answer.best
    assert best["verdict"] == "better"
    assert answer.certainty == 1.0, "it is best on every resample, it or one that is exactly as good"
    assert len(answer.equals) == 3, "floor and floor wait change nothing where nobody waits"
    assert (best["floor_tokens"], best["wait_floor_s"]) == (256, 300.0), "of equals, the one that changes least is named"
    assert answer.chosen_days == (1, 2, 3, 4, 5)
    assert answer.holdout_days == (6, 7)
    tokens = answer.comparison(str(answer.best), asked.objectives[0].metric)
    assert (tokens.better_days, tokens.holdout_better_days) == (5, 2)
    assert tokens.difference is not None
    assert tokens.difference_half_width is not None
    assert tokens.difference + tokens.difference_half_width < 0
    refused = answer.comparison(str(answer.best), asked.constraints[0].metric)
    assert refused.point == pytest.approx(0.25, abs=0.05)
    assert refused.baseline == 0.0
    assert refused.verdict == "worse", "what is given up is said as plainly"
    strongest = answer.sensitivities[0]
    assert (strongest.setting, strongest.within_noise) == ("ceiling_tokens", False)
    assert strongest.share == pytest.approx(1.0, abs=0.05)
    assert all(s.within_noise for s in answer.sensitivities[1:])


def test_a_constraint_moves_the_best(quiet: SweepInputs) -> None:
    frame = run_sweep(quiet, planned(CEILINGS, quiet)).frame
    for limit, ceiling in (("10 %", 4096), ("60 %", 1024), ("90 %", 512)):
        answer = judge(frame, question("fewest tokens given free", under=(f"refused share of unfunded ≤ {limit}",)))
        assert answer.row(str(answer.best))["ceiling_tokens"] == ceiling
    nothing = judge(frame, question("fewest tokens given free", under=("completed share ≥ 99 %", "refused share ≥ 5 %")))
    assert (nothing.decision, nothing.best, nothing.recommended) == ("nothing_meets", None, None)
    assert nothing.points["met_share"].max() == 0.0


def test_it_says_that_nothing_differs_where_nothing_does(quiet: SweepInputs) -> None:
    frame = run_sweep(quiet, planned("floor_tokens = [128, 256, 512]\nwait_full_s = [10, 60, 100]", quiet)).frame
    answer = judge(frame, question("refused share of unfunded", "p90 wait of registered"))
    assert answer.decision == "keep"
    assert answer.recommended == answer.best == answer.baseline
    assert set(answer.points["verdict"]) == {"same"}
    assert len(answer.equals) == answer.points.height - 1
    assert all(s.within_noise and s.effect == 0 for s in answer.sensitivities)
    assert answer.points["front"].all(), "nobody beats anybody"


def noisy(points: int, seed: int, *, effect: float = 0.0, days: int = 7, seeds: int = 1) -> pl.DataFrame:
    """A sweep in which days differ for all points alike, and points by chance; point 1 may be really better."""
    dice = np.random.default_rng(seed)
    by_day = dice.normal(0, 30, days)
    by_chance = dice.normal(0, 20, (points, seeds, days))

    def counts(p: int, scenario: Scenario, day: int) -> Mapping[str, float]:
        refused = 500 + by_day[day - 1] + by_chance[p, scenario.seed, day - 1] - (effect if p == 1 else 0)
        return {"requests": 1000, "unfunded": 1000, "unfunded_refused": refused, "refused": refused}

    settings = [ReplaySettings(floor_tokens=512 + p) for p in range(points)]
    return made_frame(settings, counts, days=days, seeds=range(seeds))


def decided(frame: pl.DataFrame, holdout: tuple[int, ...] | None = None) -> Judgement:
    return judge(frame, question("refused share of unfunded", holdout=holdout), resamples=200)


def test_chance_alone_is_seldom_taken_for_a_difference() -> None:
    wrong = sum(decided(noisy(24, seed)).decision == "change" for seed in range(40))
    assert wrong <= 7, "at a rate of 5 %, more than 7 of 40 happens once in 1,700 times"


@pytest.mark.soak
@pytest.mark.parametrize(("points", "seeds"), [(2, 1), (24, 1), (24, 2), (64, 1)])
def test_chance_alone_is_seldom_taken_for_a_difference_in_thousands(points: int, seeds: int) -> None:
    wrong = sum(decided(noisy(points, seed, seeds=seeds)).decision == "change" for seed in range(1000))
    assert wrong / 1000 <= 0.08


def test_a_real_difference_among_chance_is_found() -> None:
    found = [decided(noisy(24, seed, effect=120.0)) for seed in range(20)]
    right = [a for a in found if a.decision == "change" and a.row(str(a.recommended))["floor_tokens"] == 513]
    assert len(right) >= 18
    assert min(a.certainty for a in right) > 0.9


def test_a_best_by_chance_is_named_within_the_noise() -> None:
    answer = decided(noisy(24, 3))
    assert answer.decision == "keep"
    assert answer.best != answer.baseline
    assert answer.row(str(answer.best))["verdict"] == "within_noise"
    assert answer.certainty < 1
    assert answer.recommended == answer.baseline


@pytest.mark.parametrize("days", range(1, LEAST_BLOCKS))
def test_with_too_few_days_nothing_is_called_a_difference(days: int) -> None:
    answer = decided(noisy(6, 1, effect=400.0, days=days))
    assert answer.decision == "keep"
    assert answer.row(str(answer.best))["verdict"] == "too_few_days"
    assert answer.holdout_days == ()


def test_one_day_under_many_seeds_can_be_judged() -> None:
    answer = decided(noisy(6, 1, effect=200.0, days=1, seeds=6))
    assert answer.decision == "change"
    assert answer.evidence.blocks == 6


def test_a_better_one_beyond_noise_is_recommended_over_a_better_looking_one_within_it() -> None:
    def counts(p: int, _: Scenario, day: int) -> Mapping[str, float]:
        refused = {0: 500, 1: 480, 2: 100 if day == 1 else 560}[p] + day
        return {"requests": 1000, "unfunded": 1000, "unfunded_refused": refused}

    settings = [ReplaySettings(floor_tokens=512 - p) for p in range(3)]
    answer = decided(made_frame(settings, counts, days=5), holdout=())
    assert answer.row(str(answer.best))["floor_tokens"] == 510
    assert answer.row(str(answer.recommended))["floor_tokens"] == 511
    assert answer.decision == "change"


def test_a_baseline_that_does_not_meet_the_constraints_is_left_for_the_best_that_does() -> None:
    answer = judge(noisy(10, 2), question("tokens given free", under=("refused share of unfunded ≤ 49.9 %",)), resamples=100)
    if not answer.row(str(answer.baseline))["feasible"]:
        assert answer.decision == "change"
    with_bound = judge(
        noisy(2, 1, effect=300.0), question("refused share of unfunded", under=("refused share ≤ 30 %",)), resamples=100
    )
    assert with_bound.decision == "change"
    assert with_bound.row(str(with_bound.recommended))["met_share"] == 1.0
    assert not with_bound.row(str(with_bound.baseline))["feasible"]


def test_the_days_held_out_have_no_say() -> None:
    frame = noisy(8, 5, effect=150.0)
    changed = frame.with_columns(
        unfunded_refused=pl.when(pl.col("day") > 5).then(1000 - pl.col("unfunded_refused")).otherwise("unfunded_refused")
    )
    first, second = decided(frame), decided(changed)
    assert first.points["refused_share_unfunded"].equals(second.points["refused_share_unfunded"])
    assert first.best == second.best
    assert not first.points["refused_share_unfunded_holdout"].equals(second.points["refused_share_unfunded_holdout"])


@pytest.mark.parametrize(
    ("days", "held"), [(1, ()), (3, ()), (4, ()), (5, (5,)), (6, (5, 6)), (7, (6, 7)), (14, (11, 12, 13, 14))]
)
def test_the_last_third_is_held_out_as_long_as_four_days_are_left(days: int, held: tuple[int, ...]) -> None:
    assert default_holdout(range(1, days + 1)) == held


def test_a_sweep_without_its_baseline_is_judged_without_comparison() -> None:
    frame = noisy(4, 1).filter(~pl.col("baseline"))
    answer = decided(frame)
    assert (answer.decision, answer.baseline) == ("no_baseline", None)
    assert set(answer.points["verdict"]) == {"not_known"}
    with pytest.raises(InputError, match="has no baseline"):
        answer.comparison(str(answer.best), answer.question.objectives[0].metric)
    with pytest.raises(InputError, match="needs the baseline"):
        judge(frame, question("refused share", under=("refused share ≤ baseline",)))


def test_a_metric_that_nobody_was_counted_for_decides_nothing() -> None:
    answer = judge(noisy(4, 1), question("p90 wait of shared keys"), resamples=50)
    assert answer.decision == "nothing_meets"
    assert answer.points["p90_wait_shared_key_s"].null_count() == 4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"loads": (9.0,)}, "leave no finished replay"),
        ({"holdout_days": (1, 2, 3, 4, 5, 6, 7)}, "leave no day to choose on"),
        ({"objectives": ()}, "must name at least one metric"),
    ],
)
def test_a_question_that_the_sweep_cannot_answer(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        judge(noisy(3, 1), Question(**({"objectives": (parse_objective("refused share"),)} | wrong)))  # type: ignore[arg-type]


def test_an_objective_stands_once() -> None:
    with pytest.raises(InputError, match="must not name a metric twice"):
        question("refused share", "least refused share")


def test_an_empty_sweep_has_no_answer() -> None:
    with pytest.raises(InputError, match="leave no finished replay"):
        judge(noisy(3, 1).head(0), question("refused share"))


def test_equal_questions_have_equal_answers() -> None:
    first, second = decided(noisy(8, 5)), decided(noisy(8, 5).sample(fraction=1.0, shuffle=True, seed=1))
    assert first.points.equals(second.points)
    assert (first.best, first.certainty) == (second.best, second.certainty)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_the_front_is_who_nobody_beats(rows: list[tuple[int, int, int]]) -> None:
    scores = np.array(rows, float)
    found = front(scores, np.ones(len(rows), bool))
    for own, on_front in zip(rows, found, strict=True):
        beaten = any(all(a >= b for a, b in zip(r, own, strict=True)) and r != own for r in rows)
        assert on_front == (not beaten)


def test_who_is_not_known_or_not_eligible_is_not_on_the_front_and_beats_nobody() -> None:
    scores = np.array([[1.0, 1.0], [9.0, np.nan], [9.0, 9.0]])
    assert front(scores, np.array([True, True, False])).tolist() == [True, False, False]
    assert not front(scores, np.zeros(3, bool)).any()


def test_intervals_of_differences_hold_for_all_together(tmp_path: Path) -> None:
    dice = np.random.default_rng(3)
    values = dice.normal(0, 1, (50, 400))
    one = compared(values[[0, 1]], values[0], 7)
    many = compared(values, values[0], 7)
    assert many.half_width[1:].mean() > one.half_width[1:].mean() * 0.5
    assert (many.half_width[1:] > 2.5 * np.std(values[1:, 1:] - values[0, 1:], axis=1)).mean() > 0.9
    assert many.half_width[0] == 0.0
    assert np.isnan(compared(values, values[0], LEAST_BLOCKS - 1).half_width).all()


def test_settings_that_are_not_quite_crossed_do_not_stand_in_for_each_other() -> None:
    settings = [ReplaySettings()] + [
        ReplaySettings(ceiling_tokens=c, floor_tokens=f) for c in (1000, 2000, 3000) for f in (100, 1500, 2500) if f <= c
    ]
    refused = {1000: 400, 2000: 300, 3000: 100, 4096: 0}

    def counts(p: int, _: Scenario, day: int) -> Mapping[str, float]:
        return {"requests": 1000, "unfunded": 1000, "unfunded_refused": refused[settings[p].ceiling_tokens] + day}

    answer = decided(made_frame(settings, counts))
    by_setting = {s.setting: s for s in answer.sensitivities}
    assert by_setting["ceiling_tokens"].effect == pytest.approx(0.3)
    assert by_setting["ceiling_tokens"].share == pytest.approx(1.0, abs=0.25)
    assert by_setting["floor_tokens"].effect == pytest.approx(0.0, abs=1e-12), "plain means would say 0.2"
    means = dict(answer.levels.filter(pl.col("setting") == "ceiling_tokens").select("level", "mean").iter_rows())
    assert means["1000"] - means["3000"] == pytest.approx(0.3)
    assert "4096" not in means, "the baseline stands alone and is left out"


def test_a_setting_of_many_values_is_cut_into_groups() -> None:
    settings = [ReplaySettings()] + [ReplaySettings(wait_full_s=float(k)) for k in range(1, 49)]
    frame = made_frame(settings, lambda p, _, day: {"requests": 100, "unfunded": 1000, "unfunded_refused": 2 * p + day})
    answer = decided(frame)
    assert answer.levels.height == 8
    assert answer.levels["level"][0] == "1 to 6"
    assert answer.levels["points"].to_list() == [6] * 8
    assert answer.levels["mean"].is_sorted()


def test_the_bounds_of_a_figure_lie_where_resamples_lie_and_around_it() -> None:
    def counts(p: int, _: Scenario, day: int) -> Mapping[str, float]:
        refused = 400 if day == 3 else 0  # one bad day: a symmetric interval would reach below zero
        return {"requests": 1000, "unfunded": 1000, "unfunded_refused": refused + p, "completed": 900}

    frame = made_frame([ReplaySettings(), ReplaySettings(floor_tokens=256)], counts, days=5)
    asked = question("refused share of unfunded", holdout=())
    answer = judge(frame, asked)
    for row in answer.points.iter_rows(named=True):
        value, low, high = (row["refused_share_unfunded" + ending] for ending in ("", "_low", "_high"))
        assert 0 <= low < value < high <= 0.41
    told = answer.comparison(str(answer.baseline), asked.objectives[0].metric)
    assert (told.baseline_low, told.baseline_high) == (told.point_low, told.point_high)
    alone = judge(frame.filter(pl.col("day") == 3), asked)
    assert alone.points["refused_share_unfunded_low"].to_list() == [None, None], "one day says nothing of its spread"


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=40), st.integers(2, 40))
def test_bounds_never_leave_what_was_drawn(values: list[float], blocks: int) -> None:
    drawn = np.array([values, [np.nan] * len(values)])
    low, high = bounds(drawn, blocks)
    assert min(values) <= low[0] <= values[0] <= high[0] <= max(values)
    assert np.isnan([low[1], high[1]]).all()


def test_a_day_held_out_that_the_sweep_has_not_is_refused() -> None:
    frame = made_frame([ReplaySettings()], lambda *_: {"requests": 10, "unfunded": 10}, days=5)
    with pytest.raises(InputError, match=r"hold-out days: \[5, 99\] must be among the whole days of the sweep"):
        judge(frame, question("refused share", holdout=(5, 99)))


def test_a_stopped_sweep_is_judged_on_what_is_done_for_all() -> None:
    """One replay of the second seed, whosever it is, takes nothing from what the first seed says."""
    both = noisy(5, 3, effect=80.0, seeds=2)
    first = both.filter(pl.col("seed") == 0)
    asked = question("refused share of unfunded", under=("refused share of unfunded ≤ 110 % of baseline",))
    alone = judge(first, asked)
    for point in first["point"].unique():
        begun = pl.concat([first, both.filter((pl.col("seed") == 1) & (pl.col("point") == point))])
        answer = judge(begun, asked)
        assert answer.points.equals(alone.points)
        assert answer.rows.equals(first), "what is shown by day rests on the same"
        assert (answer.decision, answer.seeds, answer.left_out, answer.scenarios_left_out) == (alone.decision, 1, 0, 1)


def test_a_constraint_without_its_baseline_is_told_without_a_none() -> None:
    lacks = noisy(3, 1).filter(~pl.col("baseline"))
    with pytest.raises(InputError) as refused:
        judge(lacks, question("refused share", under=("expired share ≤ baseline",)))
    assert str(refused.value) == "constraint, expired share ≤ baseline: needs the baseline, which this sweep lacks"
