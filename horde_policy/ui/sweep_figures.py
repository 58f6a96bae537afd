"""The Sweep page's figures and tables, and their choosers: a click on a square, a dot, a line or a row opens its settings."""

from typing import Literal, cast

import streamlit as st

from horde_policy.sweep.metrics import METRICS, Metric
from horde_policy.ui.address import deployment_settings, seed
from horde_policy.ui.charts import show_figure, theme_mode
from horde_policy.ui.headings import show_heading
from horde_policy.ui.sweep_controls import write_asked
from horde_policy.ui.sweep_page import Result
from horde_policy.ui.tables import show_grid
from horde_policy.views import sweep_tables
from horde_policy.views.figures import sweep as maps
from horde_policy.views.figures import sweep_lines as lines
from horde_policy.views.grid import query_text
from horde_policy.views.sweep_results import blocks_of, heat_of
from horde_policy.views.sweep_squares import Squares
from horde_policy.views.sweep_state import OTHERS_RULES
from horde_policy.views.sweep_words import SETTING_WORDS, metric_words, setting_value

__all__ = ["show_looked_at", "show_maps", "show_parallel", "show_points", "show_settings"]

AXIS_PX, FIGURE_PX, SEVERAL_PX = 125, 204, 230
"""Beside the front on a screen of 1280 px: which settings and figure in one row, how several become one in the next."""
TABLE_PX = 404
"""Ends within a row, so that the list is seen to go on."""


def _open(point: object) -> None:
    if isinstance(point, str) and point:
        write_asked(point=point)


# --- squares and front ---------------------------------------------------------------------------------------------------


def show_maps(result: Result) -> None:
    """Show the squares of two settings beside the front."""
    left, right = st.columns(2, gap="medium")
    with left:
        show_heading("Two settings")
        _heat(result)
    with right:
        show_heading("What it costs")
        _front(result)


def _heat(result: Result) -> None:
    judgement, asked, squares = result.judgement, result.state.sweep, result.squares
    if squares is None:
        st.caption("No setting was varied: there is one point only.")
        return
    varied, x, y, metric, fixed = judgement.varied, squares.x, squares.y, squares.metric, dict(squares.fixed)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _select("Across", "x", x, {name: SETTING_WORDS[name][0] for name in varied}, AXIS_PX, squares)
        upwards = [name for name in varied if name != x] or [y]
        _select("Up", "y", y, {name: SETTING_WORDS[name][0] for name in upwards}, AXIS_PX, squares)
        _select("Figure", "metric", metric.key, {key: metric_words(m) for key, m in METRICS.items()}, width=FIGURE_PX)
        _select("Of several settings", "others", asked.others, OTHERS_RULES, width=SEVERAL_PX)
        _held_settings(result, x, y, fixed)
    marked = {"in force": judgement.baseline, "proposed": judgement.recommended, "looked at": result.point}
    heat = heat_of(judgement, x, y, metric, others=cast(Literal["best", "mean", "worst"], asked.others), fixed=fixed)
    show_figure(
        maps.fig_heat(heat, result.names, marked, theme_mode()),
        alt=maps.heat_alt(heat, OTHERS_RULES[asked.others]),
        key="sweep.heat",
        on_mark=lambda mark: _open(mark[0]),
    )
    st.caption(
        f"Where several settings share a square it shows {OTHERS_RULES[asked.others]}. ◆ in force · ★ proposed · ▣ looked at: a "
        f"figure beside these marks is their own, where it is another. {'Darker' if theme_mode() == 'light' else 'Lighter'} is "
        "more; — (dotted): no setting of the square meets the constraints, or its figure is not known."
    )


def _turn(field: str, squares: Squares, key: str) -> None:
    """Put another setting on an axis: one that stands on the other changes places, and one that was held is held no more."""
    name = st.session_state[key]
    here, there = (squares.x, squares.y) if field == "x" else (squares.y, squares.x)
    other = {"y" if field == "x" else "x": here} if name == there else {}
    write_asked(**{field: name}, **other, fixed=tuple(f"{held}={value}" for held, value in squares.fixed.items() if held != name))


def _select(label: str, field: str, current: str, words: dict[str, str], width: int, squares: Squares | None = None) -> None:
    key = f"sweep.{field}"
    seed(key, current)
    if st.session_state.get(key) not in words:
        st.session_state[key] = current

    def chosen() -> None:
        if squares is None:
            write_asked(**{field: st.session_state[key]})
        else:
            _turn(field, squares, key)

    st.selectbox(label, list(words), format_func=words.__getitem__, key=key, width=width, on_change=chosen)


def _held_settings(result: Result, x: str, y: str, fixed: dict[str, object]) -> None:
    others = [name for name in result.judgement.varied if name not in (x, y)]
    if not others:
        return
    label = "Others: " + (", ".join(setting_value(name, value) for name, value in fixed.items()) or "any")
    with st.popover(label, icon=":material/filter_alt:", key="sweep.others-held"):
        for name in others:
            _hold_one(result, name, fixed, others)


def _hold_one(result: Result, name: str, fixed: dict[str, object], others: list[str]) -> None:
    values = result.judgement.points[name].unique().sort(nulls_last=True).to_list()
    words = {"": "any"} | {str(value): setting_value(name, value) for value in values}
    key = f"sweep.fix.{name}"
    seed(key, str(fixed[name]) if name in fixed else "", in_popover=True)
    st.selectbox(
        SETTING_WORDS[name][0],
        list(words),
        format_func=lambda text: words.get(text, text),
        key=key,
        on_change=_hold,
        args=(others,),
    )


def _hold(others: list[str]) -> None:
    chosen = {name: st.session_state.get(f"sweep.fix.{name}", "") for name in others}
    write_asked(fixed=tuple(f"{name}={text}" for name, text in chosen.items() if text))


def _pair(result: Result) -> tuple[Metric, Metric]:
    """Return the metrics of the front's axes: the deciding objective upwards, the next one across."""
    first, *others = (objective.metric for objective in result.question.objectives)
    bounded = [constraint.metric for constraint in result.question.constraints if constraint.metric != first]
    given = METRICS["free_tokens_per_day"] if first.key != "free_tokens_per_day" else METRICS["refused_share_unfunded"]
    return [*others, *bounded, given][0], first


def _front(result: Result) -> None:
    x, y = _pair(result)
    figure = maps.fig_front(result.judgement, x, y, result.names, point=result.point, mode=theme_mode())
    show_figure(figure, alt=maps.front_alt(result.judgement, x, y), key="sweep.front", on_mark=lambda mark: _open(mark[0]))
    dots = maps.front_dots(result.judgement, x, y)
    st.caption(sweep_tables.front_words(result.judgement, dots, whiskers=maps.has_whiskers(figure)))


# --- the settings looked at ----------------------------------------------------------------------------------------------


def show_looked_at(result: Result) -> None:
    """Show the settings looked at beside those in force: figures, days, seeds."""
    show_heading("The settings looked at")
    seed("sweep.point", result.point)
    st.selectbox(
        "Settings looked at", list(result.names), format_func=lambda name: result.names.get(name, name), key="sweep.point",
        on_change=lambda: write_asked(point=st.session_state["sweep.point"]), label_visibility="collapsed", width=620,
    )  # fmt: skip
    base = result.judgement.baseline
    if base is None:
        st.caption("The sweep lacks the settings in force, so there is nothing to compare with.")
        return
    if result.point == base:
        st.caption("These are the settings in force. Choose others above, or click a square, a dot or a row, to compare them.")
    rows = sweep_tables.compared_rows(result.judgement, result.point)
    show_grid(sweep_tables.COMPARED_COLUMNS, rows, key="sweep.compared", alt="The settings looked at beside those in force")
    if result.picked is not None and result.picked.checks:
        checks = sweep_tables.check_rows(result.picked)
        show_grid(sweep_tables.CHECK_COLUMNS, checks, key="sweep.checks", alt="The constraints, and whether they are met")
    for metric in result.question.metrics:
        st.caption(f"{metric_words(metric)}: {metric.text[:1].lower()}{metric.text[1:]}")
    left, right = st.columns(2, gap="medium")
    metric = result.question.objectives[0].metric
    words = {base: "in force"} | ({} if result.point == base else {result.point: "looked at"})
    for place, by in ((left, "day"), (right, "seed")):
        with place:
            kind = cast(Literal["day", "seed"], by)
            blocks = blocks_of(result.judgement, list(words), metric, kind)
            show_heading("Day by day" if by == "day" else "Seed by seed", level=3)
            if len(next(iter(blocks.values()))) < 2:
                st.caption(f"One {by} only: nothing shows how much the {by}s differ.")
                continue
            figure = lines.fig_blocks(blocks, metric, words=words, by=kind, held=result.judgement.holdout_days, mode=theme_mode())
            show_figure(figure, alt=lines.blocks_alt(blocks, metric, words, by), key=f"sweep.by-{by}")


# --- all points, all settings --------------------------------------------------------------------------------------------


def show_parallel(result: Result) -> None:
    """Show every point as a line over its settings and figures."""
    show_heading("All settings at once")
    show_figure(
        lines.fig_parallel(result.judgement, result.names, point=result.point, mode=theme_mode()),
        alt=lines.parallel_alt(result.judgement, result.point),
        key="sweep.parallel",
        on_mark=lambda mark: _open(mark[0]),
    )


def show_settings(result: Result) -> None:
    """Show how much each setting moves the deciding figure."""
    show_heading("What each setting does")
    if not result.judgement.sensitivities:
        st.caption("No setting was varied.")
        return
    left, right = st.columns([1.4, 1], gap="medium")
    with left:
        figure = lines.fig_levels(result.judgement, theme_mode())
        show_figure(figure, alt=lines.levels_alt(result.judgement), key="sweep.levels")
    with right:
        show_grid(
            sweep_tables.SENSITIVITY_COLUMNS,
            sweep_tables.sensitivity_rows(result.judgement),
            key="sweep.sensitivity",
            alt="How much each setting moves the deciding figure",
        )


def show_points(result: Result) -> None:
    """Show all points, each a link that looks at it; on a phone each is a card."""
    show_heading("Every point tried")
    judgement, asked, base = result.judgement, result.state.sweep, deployment_settings()
    marked = {"in force": judgement.baseline, "proposed": judgement.recommended, "looked at": result.point}
    marks: dict[str, str] = {}
    for word, point in marked.items():
        if point is not None:
            marks[point] = marks.get(point, "") + maps.MARKS[word]
    queries = {
        point: query_text(result.state.changed(sweep=asked.changed(point=point)).query(base))
        for point in list(result.names)[: sweep_tables.MOST_ROWS]
    }
    st.caption(sweep_tables.points_key(judgement))
    with st.container(height=TABLE_PX, border=False):
        show_grid(
            sweep_tables.point_columns(judgement),
            sweep_tables.point_rows(judgement, marks, queries, result.point),
            key="sweep.points",
            alt="Every point tried with its settings, figures and verdict, the best first",
            here="sweep",
            target="sweep",
        )
