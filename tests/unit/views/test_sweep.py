"""The Sweep page's views: its address, its form, its squares and figures, its link to the Replay page, its files, the demo."""

import csv
import io
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.errors import ConfigError
from horde_policy.replay.fill_rule import FillRule
from horde_policy.settings import AllowanceSettings, ReplaySettings
from horde_policy.sweep.files import read_sweep
from horde_policy.sweep.grid import Scenario, parse_grid, plan
from horde_policy.sweep.judge import DEFAULT_CONSTRAINTS, DEFAULT_OBJECTIVES, Judgement, Question, judge
from horde_policy.sweep.metrics import METRICS
from horde_policy.sweep.run import Sweep, run_sweep
from horde_policy.sweep.sentences import parse_constraint, parse_objective
from horde_policy.sweep.stage import scenario_traffic
from horde_policy.ui.replay_inputs import Library, traffic_of
from horde_policy.ui.sweep_desk import DEMO_FILE
from horde_policy.ui.sweep_inputs import Wanted, inputs_and_plan
from horde_policy.views.figures.style import Mode
from horde_policy.views.figures.sweep import fig_front, fig_heat, front_alt, front_dots, has_whiskers, heat_alt, short_figure
from horde_policy.views.figures.sweep_lines import (
    MOST_LINES,
    blocks_alt,
    fig_blocks,
    fig_levels,
    fig_parallel,
    levels_alt,
    parallel_alt,
    parallel_points,
)
from horde_policy.views.state import parse_view_state
from horde_policy.views.sweep_exports import points_csv
from horde_policy.views.sweep_form import field_texts, grid_of, grid_toml
from horde_policy.views.sweep_link import replay_query, why_not
from horde_policy.views.sweep_results import blocks_of, default_axes, heat_of, levels_of, named_points
from horde_policy.views.sweep_state import DEFAULT_GRID, SWEEP_NAMES, SweepAsked, parse_sweep_asked
from horde_policy.views.sweep_tables import SENSITIVITY_COLUMNS, front_words, points_key, rests_on
from horde_policy.views.sweep_words import difference_words, effect_words, figure_words, with_bounds
from tests.unit.sweep.made import made_frame

REFUSED, WAIT = METRICS["refused_share_unfunded"], METRICS["p90_wait_registered_s"]
MOST_BYTES = 1_000_000


@pytest.fixture(scope="module")
def demo() -> Sweep:
    return read_sweep(DEMO_FILE)


@pytest.fixture(scope="module")
def judged(demo: Sweep) -> Judgement:
    return judge(demo.frame, asked())


def asked(under: tuple[str, ...] = DEFAULT_CONSTRAINTS) -> Question:
    return Question(
        objectives=tuple(parse_objective(o) for o in DEFAULT_OBJECTIVES), constraints=tuple(parse_constraint(c) for c in under)
    )


def demo_wanted() -> Wanted:
    plain = SweepAsked()
    return Wanted(traffic=plain.traffic, fleet=plain.fleet, copies=plain.copies, grid=plain.grid, settings=AllowanceSettings())


# --- the bundled sweep ---------------------------------------------------------------------------------------------------


def test_the_bundled_sweep_is_what_the_pages_own_parts_make_of_its_grid(demo: Sweep) -> None:
    inputs, planned = inputs_and_plan(Library(), demo_wanted(), None)
    assert [point.name for point in planned.points] == demo.frame["point"].unique(maintain_order=True).to_list()
    few = [planned.points[0], planned.points[-1]]
    again = run_sweep(inputs, replace(planned, points=tuple(few), scenarios=planned.scenarios[1:]))
    names = [point.name for point in few]
    bundled = demo.frame.filter(pl.col("point").is_in(names) & (pl.col("seed") == planned.scenarios[1].seed))
    assert again.frame.drop("key").equals(bundled.drop("key")), "the engine or the fill rules changed: make the demo again"


def test_the_bundled_sweep_is_small_whole_and_labelled(demo: Sweep) -> None:
    assert DEMO_FILE.stat().st_size <= MOST_BYTES
    assert demo.missing == 0
    assert demo.stamp["synthetic"] is True
    assert demo.stamp["fleet"]["synthetic"] is True


@pytest.mark.parametrize(
    ("traffic", "fleet", "told"),
    [
        (True, {"synthetic": True}, "traffic and fleet"),
        (True, {"synthetic": False}, "the traffic"),
        (False, {"synthetic": True}, "the fleet"),
        (None, {"synthetic": True}, "traffic or fleet (the sweep's file does not say which)"),
        (None, {"synthetic": False}, "the traffic"),
    ],
)
def test_which_of_the_inputs_is_made_up_is_said(
    demo: Sweep, judged: Judgement, traffic: bool | None, fleet: dict[str, bool], told: str
) -> None:
    stamp = {name: value for name, value in demo.stamp.items() if name != "synthetic_traffic"}
    stamp |= {"base_load": 1.0, "fleet": dict(stamp["fleet"]) | fleet}
    stamp |= {} if traffic is None else {"synthetic_traffic": traffic}
    assert dict(rests_on(replace(demo, stamp=stamp), judged))["Made up"] == told
    assert "Made up" not in dict(rests_on(replace(demo, stamp=stamp | {"synthetic": False}), judged))


def test_the_whole_fill_rule_stands_on_the_result(demo: Sweep, judged: Judgement) -> None:
    told = dict(rests_on(demo, judged))["Fill rule"]
    fills = [fill or str(FillRule()) for fill in demo.frame["fill"].unique().sort(nulls_last=False)]
    assert told == "; ".join(fills)
    for part in ("max_length=", "models=", "requester=", "can_pay=", "allow_downgrade="):
        assert part in told


def test_a_trace_that_was_filled_before_says_by_which_rule(demo: Sweep, judged: Judgement) -> None:
    rows = replace(judged, rows=judged.rows.with_columns(fill=pl.lit(None, pl.String)))
    stamp = dict(demo.stamp) | {"names_everything": True}
    filled = replace(demo, stamp=stamp | {"traffic": {"fill": "max_length=tight,can_pay=1"}})
    assert dict(rests_on(filled, rows))["Fill rule"] == "max_length=tight,can_pay=1"
    assert dict(rests_on(replace(demo, stamp=stamp | {"traffic": {}}), rows))["Fill rule"] == "as the traffic says"


# --- the address ---------------------------------------------------------------------------------------------------------


def test_the_defaults_ask_what_the_command_asks() -> None:
    assert tuple(str(parse_objective(o)) for o in DEFAULT_OBJECTIVES) == SweepAsked().want
    assert tuple(str(parse_constraint(c)) for c in DEFAULT_CONSTRAINTS) == SweepAsked().must
    assert SweepAsked().query() == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"must": ()}, {"held": ()}, {"held": (1, 3)}, {"fixed": ("a_b=1.5", "rule=old")}, {"under": "2"}, {"point": "0" * 16},
        {"grid": 'rule = ["old"]\n'}, {"copies": 7, "traffic": "upload-1", "fleet": "recorded: my host"},
        {"metric": "expired_share"},
        {"want": ("most tokens given free", "least p99 wait of funded")}, {"others": "worst", "x": "floor_tokens"},
    ],
)  # fmt: skip
def test_an_address_says_the_same_again(changes: dict[str, object]) -> None:
    wanted = SweepAsked().changed(**changes)
    query = wanted.query()
    assert set(query) <= SWEEP_NAMES
    assert parse_sweep_asked(query) == (wanted, ())
    state, notes = parse_view_state(query, AllowanceSettings())
    assert (state.sweep, notes) == (wanted, ())
    assert state.query(AllowanceSettings()) == query
    assert state.shared_query(AllowanceSettings()) == {}, "a link to another page does not carry it"


@given(st.dictionaries(st.sampled_from(sorted(SWEEP_NAMES)), st.lists(st.text(max_size=60), max_size=4)))
def test_nothing_in_an_address_raises(query: dict[str, list[str]]) -> None:
    found, _ = parse_sweep_asked(query)
    assert parse_sweep_asked(found.query()) == (found, ())


# --- the form ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        DEFAULT_GRID,
        "",
        'rule = ["allowance", "old"]\nclient = ["leave", "resend"]\ncount_threads = [true, false]\njob_timeout_s = ["none", 150]',
        "wait_full_s = {from = 1, to = 100, count = 4, scale = 'log'}\nload = [0.5, 1.5]\nseed = [0, 3]\ndays = [1, 2]",
        'floor_tokens = {from = 1, to = 512}\nwait_full_s = {from = 1, to = 100, scale = "log"}\nsearch = "sobol"\npoints = 8',
        'fill = ["max_length=tight", "models=weighted,can_pay=0.2"]\nceiling_tokens = 2048',
    ],
)
def test_a_grid_in_fields_is_the_same_grid(text: str) -> None:
    grid = parse_grid(text)
    again, read = grid_of(field_texts(grid))
    baseline = ReplaySettings()
    assert set(plan(read, baseline).points) == set(plan(grid, baseline).points)
    assert plan(read, baseline).scenarios == plan(grid, baseline).scenarios
    assert grid_of(field_texts(parse_grid(again)))[0] == again, "writing it twice changes nothing"


@pytest.mark.parametrize(
    ("field", "text", "rule"),
    [
        ("ceiling_tokens", "1,024", "without thousands separators"),
        ("ceiling_tokens", "512, 512", "stands twice"),
        ("floor_tokens", "0", "must be a whole number of at least 1"),
        ("floor_tokens", "many", "must be a whole number"),
        ("wait_full_s", "10 to 5 step 1", "from below to"),
        ("wait_full_s", "10 to 50", "must have a step or a count in a grid search"),
        ("load", "0", "must be a number above 0"),
        ("rule", "mine", "must be one of"),
        ("points", "5", "belongs to random and sobol search"),
    ],
)
def test_a_field_that_makes_no_sense_names_itself(field: str, text: str, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule) as refused:
        grid_of({field: text})
    assert refused.value.setting == field


@pytest.mark.parametrize(
    ("field", "text", "values"),
    [
        ("floor_tokens", "64,128,256,512", [64, 128, 256, 512]),
        ("floor_tokens", "128,256,512", [128, 256, 512]),
        ("ceiling_tokens", "512,1024,2048", [512, 1024, 2048]),
        ("floor_tokens", "17,128", [17, 128]),  # 17,128 is no token count
        ("wait_full_s", "10,30,60", [10, 30, 60]),
        ("wait_full_s", "10,100", [10, 100]),
        ("wait_floor_s", "60,120,300", [60, 120, 300]),
        ("wait_full_s", "0.5,100", [0.5, 100]),
        ("return_after_s", "600,900", [600, 900]),
        ("seed", "0,100,200", [0, 100, 200]),
        ("days", "1,100", [1, 100]),
        ("floor_tokens", "8, 192", [8, 192]),
    ],
)
def test_commas_separate_values_where_they_cannot_separate_thousands(field: str, text: str, values: list[float]) -> None:
    assert tomllib.loads(grid_toml({field: text})) == {field: values}


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("ceiling_tokens", "8,192"),
        ("ceiling_tokens", "512,1,500"),
        ("ceiling_tokens", "2,048, 4,096"),
        ("ceiling_tokens", "16,384"),
        ("wait_floor_s", "3,600"),
        ("wait_floor_s", "10,000"),
        ("seed", "1,000"),
        ("points", "2,500"),
        ("points", "100,200"),
    ],
)
def test_a_comma_that_may_separate_thousands_is_refused(field: str, text: str) -> None:
    with pytest.raises(ConfigError, match="without thousands separators; between values with a blank after the comma"):
        grid_of({"search": "sobol", "points": "8", field: text})


@given(
    values=st.lists(st.integers(100, 999), min_size=1, max_size=8, unique=True),
    field=st.sampled_from(("floor_tokens", "wait_full_s", "seed")),
)
def test_any_list_of_three_digit_values_is_one(values: list[int], field: str) -> None:
    assert tomllib.loads(grid_toml({field: ",".join(map(str, values))})) == {field: values}


@given(st.text(max_size=40))
def test_no_text_in_a_field_breaks_out_of_it(text: str) -> None:
    try:
        toml = grid_toml({"rule": text, "ceiling_tokens": "512"})
    except ConfigError:
        return
    lines = [line for line in toml.split("\n") if line]
    assert lines[0] == "ceiling_tokens = [512]"
    assert len(lines) <= 2
    if len(lines) == 2:
        assert lines[1].startswith("rule = ")


# --- squares -------------------------------------------------------------------------------------------------------------


def squares(judged: Judgement, others: str, **fixed: object) -> dict[tuple[int, int], float | None]:
    heat = heat_of(judged, "ceiling_tokens", "floor_tokens", REFUSED, others=others, fixed=fixed)  # type: ignore[arg-type]
    return {(square.x, square.y): square.value for square in heat.squares}


def test_a_square_shows_what_its_rule_says(judged: Judgement) -> None:
    points = judged.points
    cell = points.filter((pl.col("ceiling_tokens") == 2048) & (pl.col("floor_tokens") == 512))
    key = REFUSED.key
    assert cell.height == 6
    assert squares(judged, "mean")[1, 1] == pytest.approx(cell[key].mean())
    assert squares(judged, "worst")[1, 1] == cell[key].max()
    assert squares(judged, "best")[1, 1] == cell.filter("feasible")[key].min()
    assert (
        squares(judged, "mean", wait_full_s=60.0, wait_floor_s=300.0)[1, 1]
        == cell.filter((pl.col("wait_full_s") == 60.0) & (pl.col("wait_floor_s") == 300.0))[key].item()
    )
    free = heat_of(judged, "ceiling_tokens", "floor_tokens", METRICS["free_tokens_per_day"], others="worst", fixed={})
    worst = heat_of(judged, "ceiling_tokens", "floor_tokens", METRICS["free_tokens_per_day"], others="mean", fixed={})
    assert all(a.value <= b.value for a, b in zip(free.squares, worst.squares, strict=True) if a.value and b.value)


def test_a_square_without_settings_that_meet_the_constraints_is_empty_under_best_and_still_opens_one(demo: Sweep) -> None:
    judged = judge(demo.frame, asked(("p90 wait of registered ≤ 60 s",)))
    heat = heat_of(judged, "ceiling_tokens", "wait_floor_s", REFUSED, others="best", fixed={})
    empty = [square for square in heat.squares if square.value is None]
    assert empty
    assert all(square.feasible == 0 and square.point in square.members for square in empty)
    figure = fig_heat(heat, named_points(judged), {}, "light")
    assert len(figure.layout.shapes) == len(empty), "an empty square is outlined"


def test_each_point_stands_in_one_square(judged: Judgement) -> None:
    heat = heat_of(judged, *default_axes(judged), REFUSED, others="best", fixed={})
    members = [name for square in heat.squares for name in square.members]
    assert sorted(members) == sorted(judged.points["point"].to_list())


def test_a_setting_of_many_values_is_cut_into_levels() -> None:
    levels = levels_of(pl.DataFrame({"wait_full_s": [float(k) for k in range(100)]}), "wait_full_s")
    assert len(levels) == 8
    assert sum(len(level.values) for level in levels) == 100
    assert levels[0].label == "0 to 12 s"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_marks_and_clicks_of_the_squares(judged: Judgement, mode: Mode) -> None:
    heat = heat_of(judged, "ceiling_tokens", "floor_tokens", REFUSED, others="best", fixed={})
    best = str(judged.best)
    figure = fig_heat(heat, named_points(judged), {"in force": judged.baseline, "looked at": best}, mode)
    marker = figure.data[1]
    marked = {data[0]: text for data, text in zip(marker.customdata, marker.text, strict=True)}
    assert sum("◆" in text for text in marked.values()) == 1
    assert "▣" in marked[best]
    assert {data[0] for data in marker.customdata} <= set(judged.points["point"])
    assert heat_alt(heat, "their mean").startswith(
        "Refused share of unfunded by ceiling and floor, of several settings their mean: from"
    )


@pytest.mark.parametrize("others", ["best", "mean", "worst"])
def test_a_mark_has_its_own_figure_beside_it_where_the_square_shows_another(judged: Judgement, others: str) -> None:
    axes = ("ceiling_tokens", "wait_floor_s")
    heat = heat_of(judged, *axes, REFUSED, others=others, fixed={})  # type: ignore[arg-type]
    own = {row["point"]: row[REFUSED.key] for row in judged.points.iter_rows(named=True)}
    inside, bare = 0, 0
    for point in own:
        figure = fig_heat(heat, named_points(judged), {"looked at": point}, "light")
        (text,) = (text for text in figure.data[1].text if "▣" in text)
        square = next(square for square in heat.squares if point in square.members)
        same = short_figure(REFUSED, own[point]) == short_figure(REFUSED, square.value)
        assert text == f"{short_figure(REFUSED, square.value)}<br>▣{'' if same else ' ' + short_figure(REFUSED, own[point])}"
        hover = next(data for data in figure.data[1].customdata if data[0] == square.point)[4]
        assert hover == ("" if same else f"<br>▣ looked at: {figure_words(REFUSED, own[point])}")
        inside, bare = inside + (not same), bare + same
    assert inside > 10
    assert bare > 0 or others == "mean"


# --- the other figures ---------------------------------------------------------------------------------------------------


def test_the_front_holds_every_known_point_once_and_the_baseline(judged: Judgement) -> None:
    figure = fig_front(judged, WAIT, REFUSED, named_points(judged), point=judged.best, mode="dark")
    groups = {trace.name: trace for trace in figure.data}
    shared = {name: [data[4] for data in groups[name].customdata] for name in groups}
    counted = sum(sum(shared[name]) for name in ("does not meet the constraints", "meets them", "on the front"))
    assert counted == judged.points.height
    front = groups["on the front"]
    assert sum(shared["on the front"]) == judged.points["front"].sum()
    assert len(set(zip(front.x, front.y, strict=True))) == len(front.x) == front_dots(judged, WAIT, REFUSED) < 24
    assert [text.strip() for text in front.text if text] == [str(n) for n in shared["on the front"] if n > 1], "how many share"
    told = front_words(judged, len(front.x), whiskers=has_whiskers(figure))
    assert "24 of 72 settings are on the front, in 7 dots: the number beside a dot" in told
    assert "Whiskers:" in told
    base = judged.row(str(judged.baseline))
    assert (groups["in force"].x[0], groups["in force"].y[0]) == (base[WAIT.key], 100 * base[REFUSED.key])
    assert groups["looked at"].error_y.array[0] == 100 * judged.row(str(judged.best))["gain_half_width"]
    assert "72 settings, 24 on the front" in front_alt(judged, WAIT, REFUSED)


def test_lines_over_all_settings(judged: Judgement) -> None:
    figure = fig_parallel(judged, named_points(judged), point=judged.best, mode="light")
    drawn = {data[0] for trace in figure.data for data in trace.customdata if data[0]}
    assert drawn == set(judged.points["point"])
    heights = [y for trace in figure.data for y in trace.y if y is not None]
    assert (min(heights), max(heights)) == (0.0, 1.0)
    assert {trace.name for trace in figure.data} >= {"looked at", "in force", "on the front", "meets them"}
    px_a_character = 7
    first = [note.text for note in figure.layout.annotations if note.x == 0]
    last = figure.layout.xaxis.ticktext[-1].split("<br>")
    assert max(map(len, first)) * px_a_character <= figure.layout.margin.l, "the first axis' labels have room on a phone too"
    assert max(map(len, last)) * px_a_character / 2 <= figure.layout.margin.r, "and so has the last axis' title"
    assert parallel_alt(judged, None).startswith("Each of all 72 settings as a line over ceiling, floor, full wait, floor wait")


def test_of_very_many_points_the_front_and_the_marked_ones_stay() -> None:
    settings = [ReplaySettings(ceiling_tokens=4096 - place) for place in range(MOST_LINES + 200)]
    frame = made_frame(settings, lambda p, _s, d: {"requests": 100, "unfunded": 1000, "unfunded_refused": 100 + p + d})
    judged = judge(frame, Question(objectives=(parse_objective("refused share of unfunded"),)))
    last = judged.points["point"].to_list()[int(np.argmax(judged.points[REFUSED.key].to_numpy()))]
    drawn = parallel_points(judged, last)
    names = [judged.points["point"][k] for k in drawn]
    assert len(drawn) == MOST_LINES
    assert {last, judged.baseline, *judged.points.filter("front")["point"]} <= set(names)
    assert parallel_alt(judged, last).startswith("Each of 300 of 500 settings, the front and the best")


def test_days_and_seeds_beside_each_other_with_the_days_held_out_shaded(judged: Judgement) -> None:
    base, best = str(judged.baseline), str(judged.best)
    words = {base: "in force", best: "looked at"}
    by_day = blocks_of(judged, [base, best], REFUSED, "day")
    assert list(by_day[base]) == [1, 2, 3, 4, 5, 6, 7]
    figure = fig_blocks(by_day, REFUSED, words=words, by="day", held=judged.holdout_days, mode="light")
    assert len(figure.layout.shapes) == 2
    assert [trace.name for trace in figure.data] == ["in force", "looked at"]
    by_seed = blocks_of(judged, [base, best], REFUSED, "seed")
    assert list(by_seed[best]) == [0, 1]
    assert len(fig_blocks(by_seed, REFUSED, words=words, by="seed", held=(6,), mode="dark").layout.shapes) == 0
    assert blocks_alt(by_day, REFUSED, words, "day").startswith("Refused share of unfunded day by day: in force ")


def test_what_is_within_the_noise_is_drawn_and_told_so(judged: Judgement) -> None:
    figure = fig_levels(judged, "light")
    by_noise = {each.setting: each.within_noise for each in judged.sensitivities}
    assert by_noise["floor_tokens"]
    assert not by_noise["ceiling_tokens"]
    dashes = [trace.line.dash for trace in figure.data]
    assert dashes == ["dot" if each.within_noise else "solid" for each in judged.sensitivities]
    assert "floor 2.0 %, within the noise" in levels_alt(judged)


def test_settings_are_named_best_first_and_marked(judged: Judgement) -> None:
    names = named_points(judged)
    assert next(iter(names)) == judged.best
    assert names[str(judged.baseline)] == "in force (proposed)"
    feasible = [judged.row(name)["feasible"] for name in names]
    assert feasible == sorted(feasible, reverse=True)


# --- links and files -----------------------------------------------------------------------------------------------------


def test_the_list_of_points_says_how_long_it_is_and_that_it_goes_on(judged: Judgement) -> None:
    assert points_key(judged).startswith(f"All {judged.points.height}, the best first; the list scrolls.")


def test_the_replay_link_names_the_same_requests_and_settings(demo: Sweep, judged: Judgement) -> None:
    base, settings = ReplaySettings(), ReplaySettings(ceiling_tokens=1024, client="resend")
    fill = demo.frame["fill"][0]
    query = replay_query(demo.stamp, settings, base, load=1.0, fill=fill, base=AllowanceSettings(floor_tokens=256))
    state, notes = parse_view_state(query, AllowanceSettings(floor_tokens=256))
    assert notes == ()
    assert (state.settings, state.runs) == (AllowanceSettings(), ("ceiling_tokens=1024,client=resend",))
    assert (state.traffic, state.copies, state.keep_percent, state.hours, state.fleet) == (
        "ragpulse_week1", 30, 100, (), "drawn/8/3/20/50/1",
    )  # fmt: skip
    library = Library()
    sent = traffic_of(
        library.trace(state.traffic), FillRule.parsed(state.fill), library.demand(None), hours=(), copies=state.copies,
        keep_percent=state.keep_percent,
    )  # fmt: skip
    inputs, _ = inputs_and_plan(library, demo_wanted(), None)
    assert sent.frame.equals(scenario_traffic(inputs, Scenario(1.0, 0, fill)).frame)
    assert judged.baseline is not None


def test_the_replay_link_opens_the_settings_and_not_a_baseline_that_differs_from_the_pages(demo: Sweep) -> None:
    base, settings = ReplaySettings(job_timeout_s=150.0), ReplaySettings(job_timeout_s=150.0, wait_floor_s=150.0)
    query = replay_query(demo.stamp, settings, base, load=1.0, fill=None, base=AllowanceSettings())
    state, notes = parse_view_state(query, AllowanceSettings())
    assert (notes, len(state.runs), state.replay.edited) == ((), 2, "C")
    plain = replay_query(
        demo.stamp, ReplaySettings(wait_floor_s=150.0), ReplaySettings(), load=1.0, fill=None, base=AllowanceSettings()
    )
    assert "open_run" not in plain


@pytest.mark.parametrize("stamp", [{}, {"page": 1}, {"page": {"traffic": "a"}}, {"page": {"traffic": "a", "fleet": None}}])
def test_a_sweep_from_elsewhere_has_no_replay_link(stamp: dict[str, object]) -> None:
    assert why_not(stamp)


def test_the_points_as_csv_hold_numbers_units_and_where_they_come_from(judged: Judgement, demo: Sweep) -> None:
    rows = list(csv.DictReader(io.StringIO(points_csv(judged, demo.stamp).decode("utf-8-sig"))))
    assert len(rows) == judged.points.height
    first = judged.points.row(0, named=True)
    assert float(rows[0]["refused share of unfunded (share)"]) == first[REFUSED.key]
    assert rows[0]["ceiling_tokens (tokens)"] == "4096"
    assert (rows[0]["traffic"], rows[0]["made up"]) == ("ragpulse_week1 (synthetic)", "the fleet")
    assert rows[0]["held out"] == "days 6 to 7"


def test_the_settings_in_force_alone_have_no_whiskers_and_none_are_explained(judged: Judgement) -> None:
    figure = fig_front(judged, WAIT, REFUSED, named_points(judged), point=judged.baseline, mode="light")
    marks = {trace.name: trace for trace in figure.data}
    assert ("proposed" in marks) == has_whiskers(figure)
    assert ("Whiskers" in front_words(judged, 7, whiskers=has_whiskers(figure))) == has_whiskers(figure)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_no_mark_covers_a_dot_and_no_whisker_is_cut_that_is_no_longer_than_all_points(judged: Judgement, mode: Mode) -> None:
    for point in judged.points["point"]:
        figure = fig_front(judged, WAIT, REFUSED, named_points(judged), point=point, mode=mode)
        kinds = ["mark" if trace.name in ("in force", "proposed", "looked at") else "dots" for trace in figure.data]
        assert kinds == sorted(kinds, reverse=True), "beneath the dots"
        assert all(
            trace.marker.symbol.endswith("-open") for trace, kind in zip(figure.data, kinds, strict=True) if kind == "mark"
        )
        dots = [trace for trace, kind in zip(figure.data, kinds, strict=True) if kind == "dots"]
        for axis in "xy":
            values = [value for trace in dots for value in trace[axis]]
            span, (low, high) = max(values) - min(values), figure.layout[f"{axis}axis"].range
            assert low <= min(values) < max(values) <= high
            assert high - low <= 3.2 * span, "the points keep their room"
            for mark in figure.data[: kinds.count("mark")]:
                half = (mark[f"error_{axis}"].array or (0.0,))[0]
                assert min(values) - span > mark[axis][0] - half or low <= mark[axis][0] - half
                assert max(values) + span < mark[axis][0] + half or mark[axis][0] + half <= high


def test_the_number_of_a_dot_beside_a_mark_that_is_not_its_own_stands_away_from_the_mark(judged: Judgement) -> None:
    figure = fig_front(judged, WAIT, REFUSED, named_points(judged), point=judged.baseline, mode="light")
    groups = {trace.name: trace for trace in figure.data}
    front, mark = groups["on the front"], groups["in force"]
    right = [x for x, side in zip(front.x, front.textposition, strict=True) if side == "bottom right"]
    assert right == [front.x[-1]], "the last dot lies right beside the mark; all others have their number where no setting is"
    assert mark.x[0] < right[0]


def test_the_figures_are_plain_data(judged: Judgement) -> None:
    figure = fig_front(judged, WAIT, REFUSED, named_points(judged), point=None, mode="light")
    assert json.loads(figure.to_json())["data"]


def test_the_guide_to_sweeps_says_what_can_be_read() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "sweeps.md").read_text("utf-8")
    grid, sentences = re.findall(r"```(?:toml)?\n(.*?)```", text, re.DOTALL)
    assert len(plan(parse_grid(grid), ReplaySettings()).points) == 33
    assert [str(parse_constraint(line)) for line in sentences.strip().splitlines()] == [
        "p90 wait of registered ≤ 120 s", "expired share < 5 %", "tokens given free ≤ 110 % of baseline",
    ]  # fmt: skip


@pytest.mark.parametrize("metric", ["refused_share", "p90_wait_registered_s", "free_tokens_per_day"])
@given(value=st.floats(0.0, 1.0), half=st.floats(0.0, 1.0), scale=st.sampled_from([0.001, 0.1, 1.0, 300.0]))
def test_the_ends_of_a_range_have_the_digits_of_its_value(metric: str, value: float, half: float, scale: float) -> None:
    scale = min(scale, 1.0) if metric == "refused_share" else scale
    value, half = value * scale, half * scale
    low, high = max(0.0, value - half), value + half
    for text in (
        with_bounds(metric, value, low, high),
        difference_words(metric, value, half, 1e9, 1e9),
        difference_words(metric, -value, half, 0.0, 1e9),
        effect_words(metric, value, half),
    ):
        digits = {len(decimals) for decimals in re.findall(r"\d(?:\.(\d+))?(?![\d.,])", text)}
        assert len(digits) == 1, text
        assert not re.search(r"[−+]0(\.0+)?(?!\.?\d)", text), "what is nothing has no sign"


def test_a_card_of_a_setting_says_how_much_it_moves_and_whether_that_is_noise() -> None:
    assert [column.key for column in SENSITIVITY_COLUMNS if column.brief is not None] == ["setting", "effect", "verdict"]
