"""Grids: what is typed, what is refused where it is typed, what is dropped and counted (A4)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.errors import ConfigError, InputError
from horde_policy.replay import replay
from horde_policy.settings import ReplaySettings
from horde_policy.sweep.axes import SETTINGS, Listed, Span, read_axis, spread
from horde_policy.sweep.grid import MOST_REPLAYS, effective, load_grid, parse_grid, plan
from tests.oracle.worlds import random_settings, random_world

BASE = ReplaySettings()


@pytest.mark.parametrize(
    ("name", "given", "values"),
    [
        ("ceiling_tokens", 4096, (4096,)),
        ("wait_full_s", 60, (60.0,)),
        ("wait_full_s", [0, 30.5], (0.0, 30.5)),
        ("floor_tokens", {"from": 256, "to": 1024, "step": 256}, (256, 512, 768, 1024)),
        ("floor_tokens", {"from": 100, "to": 250, "step": 100}, (100, 200)),
        ("wait_full_s", {"from": 0.0, "to": 0.3, "step": 0.1}, (0.0, 0.1, 0.2, 0.3)),
        ("wait_floor_s", {"from": 100, "to": 300, "count": 3}, (100.0, 200.0, 300.0)),
        ("wait_floor_s", {"from": 10, "to": 1000, "count": 3, "scale": "log"}, (10.0, 100.0, 1000.0)),
        ("floor_tokens", {"from": 1, "to": 3, "count": 9}, (1, 2, 3)),
        ("job_timeout_s", ["none", 150], (None, 150.0)),
        ("client", ["leave", "resend"], ("leave", "resend")),
        ("count_threads", [False, True], (False, True)),
    ],
)
def test_an_axis_is_read(name: str, given: object, values: tuple[object, ...]) -> None:
    axis = read_axis(name, given)
    assert isinstance(axis, Listed)
    assert axis.values == values
    assert [type(v) for v in axis.values] == [type(v) for v in values]


@pytest.mark.parametrize(
    ("name", "given", "rule"),
    [
        ("floor_tokens", [512, 0], "0 must be a whole number of at least 1"),
        ("ceiling_tokens", 16385, "must be a whole number of at least 1 and at most 16384"),
        ("ceiling_tokens", 4096.0, "must be a whole number"),
        ("wait_full_s", -1, "must be a finite number of at least 0"),
        ("wait_floor_s", 0, "must be a finite number above 0"),
        ("wait_full_s", float("nan"), "must be a finite number"),
        ("assumed_speed_tok_per_s", [10, 10.0], "stands twice"),
        ("client", "shout", "must be one of leave, resend, return"),
        ("floor_tokens", [], "must hold at least one value"),
        ("floor_tokens", {"from": 512, "to": 512, "step": 1}, "must have from below to"),
        ("floor_tokens", {"from": 512, "to": 1024, "step": 0.5}, "must be a whole step"),
        ("floor_tokens", {"from": 512.5, "to": 1024, "step": 1}, "must have whole numbers at both ends"),
        ("floor_tokens", {"from": 512, "to": 1024, "steps": 3}, "is not part of a range"),
        ("floor_tokens", {"from": 512, "step": 3}, "this is its to"),
        ("wait_full_s", {"from": 0, "to": 10, "count": 3, "scale": "log"}, "must be above 0 for a range on a log scale"),
        ("wait_full_s", {"from": 0, "to": 10, "count": 3, "scale": "square"}, "must be linear or log"),
        ("wait_full_s", {"from": 0, "to": 10, "count": 1}, "must be a count of 2"),
        ("wait_full_s", {"from": 0, "to": 10, "step": -1}, "must be a step above 0"),
        ("wait_full_s", {"from": 0, "to": 1e9, "step": 1}, "at most 10,000"),
        ("floor_tokens", {"from": 0, "to": 10}, "must be a whole number of at least 1"),
        ("client", {"from": 0, "to": 1, "step": 1}, "must be one of"),
    ],
)
def test_a_senseless_axis_is_refused_where_it_is_typed(name: str, given: object, rule: str) -> None:
    with pytest.raises(ConfigError, match=f"^setting {name}: ") as refused:
        read_axis(name, given)
    assert rule in str(refused.value)


def test_a_floor_alone_may_be_above_the_ceiling_in_force() -> None:
    assert read_axis("floor_tokens", [8192]) == Listed((8192,)), "the grid may raise the ceiling too"


@given(st.floats(0, 1, exclude_max=True), st.booleans(), st.booleans())
def test_a_draw_lies_within_its_range(share: float, log: bool, whole: bool) -> None:
    span = Span(16.0, 8192.0, log=log, whole=whole)
    value = spread(span, share)
    assert isinstance(value, int if whole else float)
    assert 16 <= value <= 8192


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ceiling = 512", "setting ceiling: 512 is not part of a grid"),
        ("ceiling_tokens = [", "grid file: .* is not TOML"),
        ("load = 0", "setting load: 0 must be a number above 0"),
        ("load = [1, 1.0]", "setting load: 1.0 stands twice"),
        ("load = [1, true]", "setting load: True "),
        ("load = {from = 1, to = 2}", "setting load: .* must have a step or a count"),
        ("load = {from = 1, to = 2, step = -1}", "setting load: -1 must be a step above 0"),
        ("load = inf", "setting load: inf must be"),
        ("seed = -1", "setting seed: -1 must be a whole number from 0"),
        ("seed = [1, 1]", "setting seed: 1 stands twice"),
        ("seed = 1.5", "setting seed: 1.5 must be a whole number"),
        ("fill = 'max_length=huge'", "fill rule, max_length: 'huge' must be"),
        ("fill = 3", "setting fill: 3 must be a fill rule"),
        ("fill = ['', 'max_length=ladder']", "setting fill: 'max_length=ladder' stands twice: it is the same rule"),
        ("days = 0", "setting days: 0 must be a whole number from 1"),
        ("days = []", "setting days: .* must hold at least one value"),
        ("search = 'best'", "setting search: 'best' must be one of grid, random, sobol"),
        ("points = 3", "setting points: 3 belongs to random and sobol search"),
        ("search = 'sobol'", "setting points: must say how many points sobol search tries"),
        ("search = 'random'\npoints = 0", "setting points: 0 must be a whole number from 1"),
        ("wait_full_s = {from = 0, to = 10}", "setting wait_full_s: .* must have a step or a count in a grid search"),
    ],
)
def test_what_a_grid_cannot_mean_is_refused(text: str, message: str) -> None:
    with pytest.raises((ConfigError, InputError), match=message):
        parse_grid(text)


def test_the_scenarios_axes() -> None:
    grid = parse_grid("load = {from = 0.5, to = 1.5, step = 0.5}\nseed = {from = 1, to = 3}\ndays = [3, 1]\nfill = 'can_pay=1'")
    assert grid.loads == (0.5, 1.0, 1.5)
    assert grid.seeds == (1, 2, 3)
    assert grid.days == (1, 3)
    assert len(grid.fills) == 1
    made = plan(grid, BASE)
    assert [(s.load, s.seed) for s in made.scenarios] == [(load, seed) for load in (0.5, 1.0, 1.5) for seed in (1, 2, 3)]
    assert made.replays == 9


def test_a_product_of_lists_drops_what_makes_no_sense_and_counts_it() -> None:
    made = plan(parse_grid("ceiling_tokens = [512, 4096]\nfloor_tokens = [256, 1024]\nwait_full_s = [60, 400]"), BASE)
    assert made.dropped == {
        "floor_tokens must not be above ceiling_tokens": 2,
        "wait_full_s must be below wait_floor_s": 3,
    }
    assert len(made.points) == 4
    assert made.points[0].baseline
    assert made.varied == ("ceiling_tokens", "floor_tokens")


def test_a_grid_of_nothing_but_nonsense_is_refused_with_the_reason() -> None:
    broken = "floor_tokens 8192 must not be above ceiling_tokens, which is 4096"
    for floors, told in (
        ("[8192, 9000]", "2 combinations, of which none is left to try"),
        ("8192", "1 combination, which cannot be tried"),
    ):
        with pytest.raises(ConfigError) as refused:
            plan(parse_grid(f"floor_tokens = {floors}"), BASE)
        assert str(refused.value) == f"setting grid: {told}: {broken}"


def test_an_empty_grid_is_the_baseline_alone() -> None:
    made = plan(parse_grid(""), BASE)
    assert [(p.settings, p.baseline) for p in made.points] == [(BASE, True)]


def test_what_the_rule_or_the_client_ignores_makes_no_further_points() -> None:
    made = plan(parse_grid("rule = ['allowance', 'old']\nceiling_tokens = [1024, 4096]\nreturn_times = [1, 2]"), BASE)
    kept = {(p.settings.rule, p.settings.ceiling_tokens, p.settings.return_times) for p in made.points}
    assert kept == {("allowance", 4096, 1), ("allowance", 1024, 1), ("old", 4096, 1)}
    assert sum(made.dropped.values()) == 5
    same = "the same as another point: "
    assert made.dropped == {
        f"{same}the client leave ignores return_times": 3,
        f"{same}the rule old ignores ceiling_tokens": 1,
        f"{same}the rule old ignores ceiling_tokens, the client leave ignores return_times": 1,
    }


def test_a_floor_at_the_ceiling_is_named_where_it_makes_the_waits_decide_nothing() -> None:
    made = plan(parse_grid("ceiling_tokens = 512\nfloor_tokens = 512\nwait_full_s = [0, 60]\nwait_floor_s = [300, 600]"), BASE)
    assert len(made.points) == 2
    same = "the same as another point: with the floor at the ceiling nothing follows from "
    assert made.dropped == {f"{same}wait_full_s, wait_floor_s": 1, f"{same}wait_full_s": 1, f"{same}wait_floor_s": 1}


def test_more_replays_than_can_be_done_are_refused_before_they_are_listed() -> None:
    with pytest.raises(ConfigError, match=f"more than {MOST_REPLAYS:,} replays"):
        plan(
            parse_grid("ceiling_tokens = {from = 1000, to = 9000, step = 1}\nfloor_tokens = {from = 1, to = 900, step = 1}"), BASE
        )


@pytest.mark.parametrize("search", ["random", "sobol"])
def test_drawn_points_are_the_same_for_a_seed_and_sensible(search: str) -> None:
    text = f"""
        search = "{search}"
        points = 60
        ceiling_tokens = {{from = 256, to = 8192, scale = "log"}}
        floor_tokens = [128, 512, 2048]
        wait_full_s = {{from = 0, to = 500}}
    """
    made = plan(parse_grid(text), BASE)
    assert made.points == plan(parse_grid(text), BASE).points
    assert made.points != plan(parse_grid(text + "\ndraw_seed = 1"), BASE).points
    assert len(made.points) == 61
    assert len({p.name for p in made.points}) == 61
    longer = plan(parse_grid(text.replace("points = 60", "points = 90")), BASE)
    assert longer.points[:61] == made.points, "a longer search goes on where a shorter one ends"


def test_sobol_points_fill_the_range_evenly() -> None:
    text = 'search = "sobol"\npoints = 64\nwait_full_s = {from = 0, to = 256}\nwait_floor_s = 1000'
    values = sorted(p.settings.wait_full_s for p in plan(parse_grid(text), BASE).points if not p.baseline)
    cells = [int(v // 4) for v in values]
    assert len(set(cells)) >= 60, "about one in each 64th of the range (a value is rounded to four digits)"


def test_a_search_of_a_small_space_ends() -> None:
    made = plan(parse_grid('search = "random"\npoints = 50\nceiling_tokens = [1024, 2048]'), BASE)
    assert len(made.points) == 3, "the baseline and both values"


def test_a_grid_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_grid(tmp_path / "none.toml")
    (tmp_path / "grid.toml").write_text("floor_tokens = 256", encoding="utf-8")
    assert load_grid(tmp_path / "grid.toml").axes == {"floor_tokens": Listed((256,))}


def ignoring_pairs() -> Iterator[tuple[ReplaySettings, ReplaySettings]]:
    """Settings and what they come to once what is ignored is set to the baseline's."""
    import random

    for seed in range(60):
        settings = random_settings(random.Random(seed))
        base = random_settings(random.Random(seed + 1000))
        yield settings, effective(settings, base)


def test_what_is_called_ignored_changes_no_outcome() -> None:
    differing = 0
    for seed, (settings, same) in enumerate(ignoring_pairs()):
        differing += settings != same
        traffic, fleet, _ = random_world(seed)
        kept = ["outcome", "reason", "admitted_max_length", "worker_id", "started", "finished", "status"]
        run, again = replay(traffic, fleet, settings), replay(traffic, fleet, same)
        assert run.select(kept).equals(again.select(kept)), (settings, same)
    assert differing > 30


def test_every_setting_can_stand_in_a_grid() -> None:
    values = {name: getattr(BASE, name) for name in SETTINGS}
    text = "\n".join(
        f"{name} = {'true' if v is True else 'false' if v is False else repr('none' if v is None else v)}"
        for name, v in values.items()
    )
    made = plan(parse_grid(text), BASE)
    assert [p.settings for p in made.points] == [BASE]
