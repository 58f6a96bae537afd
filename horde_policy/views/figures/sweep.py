"""A sweep's two maps: the squares of two settings, and one objective against another with the front and the baseline on it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go

from horde_policy.sweep.judge import Judgement
from horde_policy.sweep.metrics import Array, Metric
from horde_policy.views.figures.contrast import between, text_on
from horde_policy.views.figures.style import ACCENT, FAINT, TEXT, Mode, base_figure, legend_below, percent
from horde_policy.views.sweep_results import ROUNDED, Heat, Level, Square, values_of
from horde_policy.views.sweep_words import SETTING_WORDS, figure_words, metric_words
from horde_policy.views.text import tokens_short

__all__ = [
    "MARKS",
    "SCALE",
    "axis_words",
    "colour_at",
    "fig_front",
    "fig_heat",
    "front_alt",
    "front_dots",
    "has_whiskers",
    "heat_alt",
    "metric_title",
    "on_axis",
    "short_figure",
]

SCALE: Final[dict[Mode, tuple[str, ...]]] = {
    "light": ("#eef3fc", "#d9e4f8", "#bdd0f2", "#9cb8ea", "#799ee1", "#5683d6", "#3a6bcb", "#2457c5", "#1b4297", "#122d68"),
    "dark": ("#13233f", "#183057", "#1d3f76", "#234f98", "#2b61ba", "#3b74e0", "#5f8fe9", "#86abf0", "#b0c8f6", "#dbe6fb"),
}
"""From few to much, as the theme's sequential colours."""

MARKS: Final = {"in force": "◆", "proposed": "★", "looked at": "▣"}


def short_figure(metric: Metric, value: float | None) -> str:
    """Return a figure as it fits into a square.

    >>> from horde_policy.sweep.metrics import METRICS
    >>> short_figure(METRICS["free_tokens_per_day"], 3_017_000.0), short_figure(METRICS["refused_share"], 0.351)
    ('3.02 M', '35.1 %')
    """
    if value is None:
        return "—"
    return tokens_short(value) if metric.unit == "tokens" else figure_words(metric, value)


def axis_words(name: str) -> str:
    """Return a setting as the title of an axis, with its unit.

    >>> axis_words("ceiling_tokens")
    'Ceiling (tokens)'
    """
    label, unit = SETTING_WORDS[name]
    return f"{label} ({unit})" if unit else label


def metric_title(metric: Metric) -> str:
    """Return a metric as the title of an axis, with its unit.

    >>> from horde_policy.sweep.metrics import METRICS
    >>> metric_title(METRICS["refused_share"])
    'Refused share (%)'
    """
    return f"{metric_words(metric)} ({ {'share': '%', 's': 's', 'tokens': 'tokens a day'}[metric.unit] })"


def on_axis(metric: Metric, values: Iterable[float | None]) -> list[float | None]:
    """Return a metric's figures as places on its axis: shares in percent.

    >>> from horde_policy.sweep.metrics import METRICS
    >>> on_axis(METRICS["refused_share"], [0.25, None]), on_axis(METRICS["p90_wait_registered_s"], [12.0])
    ([25.0, None], [12.0])
    """
    return percent(values) if metric.unit == "share" else list(values)


def fig_heat(heat: Heat, names: Mapping[str, str], marked: Mapping[str, str | None], mode: Mode) -> go.Figure:
    """Return the squares of two settings; a click on a square names its point in ``customdata``.

    Plotly tells no click on a heatmap, so each square carries a marker that is not seen and takes it.

    Parameters
    ----------
    heat
        The squares.
    names
        Point → settings in words.
    marked
        ``in force``, ``proposed`` and ``looked at`` → the point that is marked so in its square; null for none.
    mode
        The viewer's theme.
    """
    figure = base_figure(height_px=max(230, 120 + 56 * len(heat.y_levels)))
    known = [square.value for square in heat.squares if square.value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    _add_colours(figure, heat, (low, high if high > low else low + 1), mode)
    far = [0.0 if s.value is None or high <= low else (s.value - low) / (high - low) for s in heat.squares]
    figure.add_scatter(
        x=[square.x for square in heat.squares],
        y=[square.y for square in heat.squares],
        mode="markers+text",
        text=["<br>".join([short_figure(heat.metric, s.value), *_marks(heat, s, marked)]) for s in heat.squares],
        textfont={"size": 12, "color": [text_on(colour_at(share, mode)) for share in far]},
        marker={"symbol": "square", "size": 34, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}, "textfont": {}},
        customdata=[
            [s.point, _members(s), names[s.point], figure_words(heat.metric, s.value), _own_figures(heat, s, marked)]
            for s in heat.squares
        ],
        hovertemplate="%{customdata[3]}<br>%{customdata[2]}<br>%{customdata[1]}%{customdata[4]}<extra></extra>",
    )
    figure.layout.margin.b += 8
    figure.update_layout(xaxis=_level_axis(heat.x_name, heat.x_levels), yaxis=_level_axis(heat.y_name, heat.y_levels))
    return figure


def colour_at(share: float, mode: Mode) -> str:
    """Return the colour of the scale at a share of the way from its least to its most."""
    scale = SCALE[mode]
    place = min(int(share * (len(scale) - 1)), len(scale) - 2)
    return between(scale[place], scale[place + 1], share * (len(scale) - 1) - place)


def _add_colours(figure: go.Figure, heat: Heat, ends: tuple[float, float], mode: Mode) -> None:
    """Add the squares' colours, and an outline where there is no figure."""
    z: list[list[float | None]] = [[None] * len(heat.x_levels) for _ in heat.y_levels]
    for square in heat.squares:
        z[square.y][square.x] = square.value
        if square.value is None:
            figure.add_shape(
                type="rect", x0=square.x - 0.46, x1=square.x + 0.46, y0=square.y - 0.44, y1=square.y + 0.44,
                line={"width": 1, "dash": "dot", "color": FAINT[mode]},
            )  # fmt: skip
    colours = SCALE[mode]
    figure.add_heatmap(
        z=z,
        x=list(range(len(heat.x_levels))),
        y=list(range(len(heat.y_levels))),
        zmin=ends[0],
        zmax=ends[1],
        colorscale=[[k / (len(colours) - 1), colour] for k, colour in enumerate(colours)],
        showscale=False,
        xgap=3,
        ygap=3,
        hoverinfo="skip",
    )


def _level_axis(name: str, levels: Sequence[Level]) -> dict[str, Any]:
    """Return an axis whose places are a setting's levels; the unit stands in its title alone."""
    unit = SETTING_WORDS[name][1]
    return {
        "tickvals": list(range(len(levels))),
        "ticktext": [level.label.replace(f" {unit}", "") if unit else level.label for level in levels],
        "title": {"text": axis_words(name)},
        "range": [-0.5, len(levels) - 0.5],
        "fixedrange": True,
        "showgrid": False,
    }


def _members(square: Square) -> str:
    if len(square.members) == 1:
        return "meets the constraints" if square.feasible else "does not meet the constraints"
    return f"{len(square.members)} settings share this square, {square.feasible} meet the constraints"


def _marks(heat: Heat, square: Square, marked: Mapping[str, str | None]) -> list[str]:
    """Return the marks of a square as lines; settings whose own figure is another than the one it shows have theirs beside."""
    lines: dict[str, str] = {}
    for word, point in _marked_in(square, marked):
        own = "" if _agrees(heat, square, point) else short_figure(heat.metric, heat.figures[point])
        lines[own] = lines.get(own, "") + MARKS[word]
    return [f"{marks} {own}".strip() for own, marks in lines.items()]


def _own_figures(heat: Heat, square: Square, marked: Mapping[str, str | None]) -> str:
    """Return the figures of the marked settings that are not the square's, as lines for the hover."""
    return "".join(
        f"<br>{MARKS[word]} {word}: {figure_words(heat.metric, heat.figures[point])}"
        for word, point in _marked_in(square, marked)
        if not _agrees(heat, square, point)
    )


def _marked_in(square: Square, marked: Mapping[str, str | None]) -> list[tuple[str, str]]:
    return [(word, point) for word, point in marked.items() if point is not None and point in square.members]


def _agrees(heat: Heat, square: Square, point: str) -> bool:
    """Return whether the figure that the square shows is the point's own, as it is written."""
    return short_figure(heat.metric, heat.figures[point]) == short_figure(heat.metric, square.value)


def heat_alt(heat: Heat, others: str) -> str:
    """Return what the squares show, in one sentence."""
    known = sorted(square.value for square in heat.squares if square.value is not None)
    what = f"{metric_words(heat.metric)} by {SETTING_WORDS[heat.x_name][0].lower()} and {SETTING_WORDS[heat.y_name][0].lower()}"
    if not known:
        return f"{what}: nothing to show."
    low, high = (figure_words(heat.metric, value) for value in (known[0], known[-1]))
    return f"{what}, of several settings {others}: from {low} to {high}."


# --- one objective against another ---------------------------------------------------------------------------------------


def fig_front(
    judgement: Judgement, x: Metric, y: Metric, names: Mapping[str, str], *, point: str | None, mode: Mode
) -> go.Figure:
    """Return every point by two metrics: the front as a line, the baseline, the proposed and the one looked at marked.

    The marks are outlines beneath the dots: no dot beside a mark is covered, and one's own stands within.

    Parameters
    ----------
    judgement
        What was judged.
    x, y
        The metrics of the axes.
    names
        Point → settings in words.
    point
        The one looked at.
    mode
        The viewer's theme.
    """
    points = judgement.points
    xs, ys = values_of(judgement, x), values_of(judgement, y)
    known = ~np.isnan(xs) & ~np.isnan(ys)
    feasible, front = points["feasible"].to_numpy(), points["front"].to_numpy()
    name_of = points["point"].to_list()
    place_of = {name: k for k, name in enumerate(name_of)}
    rank = {name: place for place, name in enumerate(names)}
    specials = _specials(judgement, point)
    figure = base_figure(height_px=400)

    def add(word: str, dots: Sequence[Sequence[int]], marker: Mapping[str, Any], **more: Any) -> None:
        figure.add_scatter(
            x=on_axis(x, (float(xs[dot[0]]) for dot in dots)),
            y=on_axis(y, (float(ys[dot[0]]) for dot in dots)),
            name=word,
            marker=marker,
            customdata=[
                [name_of[dot[0]], _sharing([names[name_of[k]] for k in dot]),
                 *(figure_words(metric, _known(values[dot[0]])) for metric, values in ((x, xs), (y, ys))), len(dot)]
                for dot in dots
            ],
            hovertemplate=_HOVER.format(x=metric_words(x), y=metric_words(y)),
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
            **{"mode": "markers"} | more,
        )  # fmt: skip

    ends: dict[Metric, list[float]] = {x: [], y: []}
    for name, word, symbol, size in specials:
        if known[place_of[name]]:
            marker = {"symbol": symbol, "size": size, "color": TEXT[mode], "line": {"width": 1.5, "color": TEXT[mode]}}
            whiskers = {}
            for axis, metric, values in (("x", x, xs), ("y", y, ys)):
                width, at = _half_width(judgement, metric, name), float(values[place_of[name]])
                whiskers[f"error_{axis}"] = _whisker(metric, width, mode)
                ends[metric] += [] if width is None else [at - width, at + width]
            add(word, [[place_of[name]]], marker, legendrank=AFTER_THE_DOTS, **whiskers)
    for word, member, marker in _groups(feasible, front, mode):
        on_front = word == "on the front"
        dots = _front_dots(judgement, xs, ys) if on_front else _dots(xs, ys, member & known)
        dots = [sorted(dot, key=lambda k: rank[name_of[k]]) for dot in dots]
        if dots:
            marks = [(float(xs[k]), float(ys[k])) for k in (place_of[name] for name, *_ in specials) if known[k]]
            add(word, dots, marker, **(_numbered(judgement, (x, xs), (y, ys), dots, marks, mode) if on_front else {}))
    legend_below(figure, rows=3)
    figure.update_layout(xaxis=_metric_axis(x, xs, ends[x]), yaxis=_metric_axis(y, ys, ends[y]))
    return figure


AFTER_THE_DOTS: Final = 1001
"""The rank in the legend of what is drawn beneath the dots."""
MOST_SHARING_NAMED: Final = 4
"""So many settings of one dot are named in its hover."""


def _sharing(names: Sequence[str]) -> str:
    """Return the settings that share a dot, the first few of them by name.

    >>> _sharing(["a"]), _sharing(["a", "b"])
    ('a', '2 settings share this dot:<br>a<br>b')
    """
    if len(names) == 1:
        return names[0]
    more = len(names) - MOST_SHARING_NAMED
    beyond = [f"and {more} more"] if more > 0 else []
    return "<br>".join([f"{len(names)} settings share this dot:", *names[:MOST_SHARING_NAMED], *beyond])


def _dots(xs: Array, ys: Array, member: Array, apart: tuple[float, float] = (0.0, 0.0)) -> list[list[int]]:
    """Return the members by the dot that they are drawn as, from left to right.

    Equal figures share a dot, and so do those that are no further than ``apart`` from its first.
    """
    dots: list[list[int]] = []
    for k in sorted((int(k) for k in np.flatnonzero(member)), key=lambda k: (xs[k], ys[k])):
        near = (
            dot
            for dot in dots
            if abs(xs[k] - xs[dot[0]]) <= apart[0] + 10**-ROUNDED and abs(ys[k] - ys[dot[0]]) <= apart[1] + 10**-ROUNDED
        )
        dot = next(near, None)
        if dot is None:
            dots.append([k])
        else:
            dot.append(k)
    return dots


TOO_CLOSE: Final = 0.015
"""Dots of the front that are no further apart than this share of both axes are drawn as one: an eye cannot tell them apart."""


def _front_dots(judgement: Judgement, xs: Array, ys: Array) -> list[list[int]]:
    known = ~np.isnan(xs) & ~np.isnan(ys)
    if not known.any():
        return []
    apart = (TOO_CLOSE * float(np.ptp(xs[known])), TOO_CLOSE * float(np.ptp(ys[known])))
    return _dots(xs, ys, judgement.points["front"].to_numpy() & known, apart)


def front_dots(judgement: Judgement, x: Metric, y: Metric) -> int:
    """Return how many dots are drawn of the settings on the front, by two metrics."""
    return len(_front_dots(judgement, values_of(judgement, x), values_of(judgement, y)))


NEAR_A_MARK: Final = 0.07
"""A dot whose distance from a mark is less than this share of both axes lies beside it or under it."""
CLEAR_OF_A_MARK: Final = "\N{NO-BREAK SPACE}" * 2
"""Between a dot's number and the outline of its own mark."""


def _numbered(
    judgement: Judgement,
    across: tuple[Metric, Array],
    up: tuple[Metric, Array],
    dots: Sequence[Sequence[int]],
    marks: Sequence[tuple[float, float]],
    mode: Mode,
) -> dict[str, Any]:
    """Return the front's line, and beside each dot of several settings their number, on the side on which no setting is.

    Beside a mark that is not the dot's own the number stands on the side away from it, else it would seem to be the mark's; the
    dot's own mark it keeps clear of.
    """
    (x, xs), (y, ys) = across, up
    better = {objective.metric.key: objective.better for objective in judgement.question.objectives}
    level, free = "top" if better.get(y.key) == "more" else "bottom", "right" if better.get(x.key) == "more" else "left"
    near = NEAR_A_MARK * float(np.nanmax(xs) - np.nanmin(xs)), NEAR_A_MARK * float(np.nanmax(ys) - np.nanmin(ys))

    def side(dot: Sequence[int]) -> str:
        at_x, at_y = float(xs[dot[0]]), float(ys[dot[0]])
        for mark_x, mark_y in marks:
            if 0 < abs(at_x - mark_x) < near[0] and abs(at_y - mark_y) < near[1]:
                return f"{level} {'right' if mark_x < at_x else 'left'}"
        return f"{level} {free}"

    def number(dot: Sequence[int]) -> str:
        if len(dot) == 1:
            return ""
        at_x, at_y = float(xs[dot[0]]), float(ys[dot[0]])
        marked = any(abs(at_x - mark_x) < near[0] / 2 and abs(at_y - mark_y) < near[1] / 2 for mark_x, mark_y in marks)
        clear = CLEAR_OF_A_MARK if marked else ""
        return f"{len(dot)}{clear}" if side(dot).endswith("left") else f"{clear}{len(dot)}"

    line = _line(judgement, x, y, mode)
    return line | {
        "mode": f"{line.get('mode', 'markers')}+text",
        "text": [number(dot) for dot in dots],
        "textposition": [side(dot) for dot in dots],
        "textfont": {"size": 12, "color": TEXT[mode]},
    }


def _groups(feasible: Array, front: Array, mode: Mode) -> tuple[tuple[str, Array, dict[str, Any]], ...]:
    """Return the kinds of points, each with its word, its members and its marker."""
    faint = {"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": FAINT[mode]}}
    return (
        ("does not meet the constraints", ~feasible, faint),
        ("meets them", feasible & ~front, {"symbol": "circle-open", "size": 8, "color": ACCENT[mode]}),
        ("on the front", front, {"symbol": "circle", "size": 10, "color": ACCENT[mode]}),
    )


def _specials(judgement: Judgement, point: str | None) -> list[tuple[str, str, str, int]]:
    """Return the points that are marked: name, word, symbol and size."""
    found = [] if judgement.baseline is None else [(judgement.baseline, "in force", "diamond-open", 15)]
    if judgement.recommended not in (None, judgement.baseline):
        found.append((str(judgement.recommended), "proposed", "star-open", 19))
    return found if point is None else [*found, (point, "looked at", "square-open", 17)]


def _line(judgement: Judgement, x: Metric, y: Metric, mode: Mode) -> dict[str, Any]:
    """Return the front as a staircase where these two are all the objectives; with more it is no line on them."""
    better = {o.metric.key: o.better for o in judgement.question.objectives}
    if set(better) != {x.key, y.key}:
        return {}
    shape = "hv" if better[x.key] == "less" else "vh"
    return {"mode": "lines+markers", "line": {"width": 1, "color": ACCENT[mode], "shape": shape}}


def _metric_axis(metric: Metric, values: Array, ends: Sequence[float]) -> dict[str, Any]:
    return {"title": {"text": metric_title(metric)}, "showgrid": True, "range": _reach(metric, values, ends)}


_HOVER = "%{{customdata[1]}}<br>{x}: %{{customdata[2]}}<br>{y}: %{{customdata[3]}}<extra></extra>"


def _half_width(judgement: Judgement, metric: Metric, point: str) -> float | None:
    """Return half the interval of a point's difference from the baseline; null where it is not known."""
    if judgement.baseline in (None, point) or metric not in judgement.question.metrics:
        return None
    return judgement.comparison(point, metric).difference_half_width


def _whisker(metric: Metric, width: float | None, mode: Mode) -> dict[str, Any]:
    return {"visible": False} if width is None else {"array": on_axis(metric, [width]), "color": FAINT[mode], "thickness": 1.2}


def has_whiskers(figure: go.Figure) -> bool:
    """Return whether any mark of :func:`fig_front` has an interval; where the settings in force are looked at, none has."""
    return any(bar.array is not None for trace in figure.data for bar in (trace.error_x, trace.error_y))


def _reach(metric: Metric, values: Array, ends: Sequence[float]) -> list[float | None] | None:
    """Return the range that shows every point and the ends of the whiskers.

    A whisker that reaches further beyond the points than they reach themselves is cut, so that it does not squeeze them together.
    """
    known = values[~np.isnan(values)]
    if not len(known) or known.min() == known.max():
        return None
    low, high = float(known.min()), float(known.max())
    reach = high - low
    first, last = max(min([low, *ends]), low - reach), min(max([high, *ends]), high + reach)
    room = 0.08 * reach
    return on_axis(metric, (first - room, last + room))


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def front_alt(judgement: Judgement, x: Metric, y: Metric) -> str:
    """Return what the figure of the front shows, in one sentence."""
    on_front = int(judgement.points["front"].sum())
    parts = []
    for name, word in ((judgement.baseline, "in force"), (judgement.recommended, "proposed")):
        if name is not None and not (word == "proposed" and name == judgement.baseline):
            k = judgement.points["point"].to_list().index(name)
            figures = (figure_words(m, _known(values_of(judgement, m)[k])) for m in (x, y))
            parts.append(f"{word} {' and '.join(figures)}")
    told = f"; {', '.join(parts)}" if parts else ""
    return f"{metric_words(y)} against {metric_words(x)} of {judgement.points.height} settings, {on_front} on the front{told}."
