"""A sweep's other figures: each point as a line over settings and figures, days and seeds, each setting's effect."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import plotly.graph_objects as go
import polars as pl

from horde_policy.sweep.judge import Judgement
from horde_policy.sweep.metrics import Array, Metric
from horde_policy.units import one_or_range
from horde_policy.views.figures.style import ACCENT, FAINT, SURFACES, TEXT, Mode, base_figure, legend_below
from horde_policy.views.figures.sweep import axis_words, metric_title, on_axis, short_figure
from horde_policy.views.sweep_results import values_of
from horde_policy.views.sweep_words import SETTING_WORDS, figure_words, metric_words, setting_value
from horde_policy.views.text import count

__all__ = [
    "MOST_LINES",
    "blocks_alt",
    "fig_blocks",
    "fig_levels",
    "fig_parallel",
    "levels_alt",
    "parallel_alt",
    "parallel_points",
]

MOST_LINES: Final = 300
"""More lines than this are a carpet: the front, the best, and what is marked stay."""


# --- parallel coordinates ------------------------------------------------------------------------------------------------


def parallel_points(judgement: Judgement, point: str | None) -> list[int]:
    """Return the places of the points that are drawn: all, or the front, the marked ones and the best of the others."""
    points = judgement.points
    if points.height <= MOST_LINES:
        return list(range(points.height))
    first = judgement.question.objectives[0]
    scores = np.nan_to_num(first.sign * values_of(judgement, first.metric), nan=-np.inf)
    feasible, front = points["feasible"].to_numpy(), points["front"].to_numpy()
    kept = front | points["point"].is_in([p for p in (judgement.baseline, judgement.recommended, point) if p]).to_numpy()
    ranked = np.lexsort((-scores, ~feasible, ~kept))
    return sorted(int(k) for k in ranked[:MOST_LINES])


def fig_parallel(judgement: Judgement, names: Mapping[str, str], *, point: str | None, mode: Mode) -> go.Figure:
    """Return each point as a line over its settings and its figures; a click on a line's corner names its point.

    Parameters
    ----------
    judgement
        What was judged.
    names
        Point → settings in words.
    point
        The one looked at.
    mode
        The viewer's theme.
    """
    metrics = judgement.question.metrics
    settings = judgement.varied
    heights = [_placed(judgement.points[name]) for name in settings]
    columns = [values_of(judgement, metric) for metric in metrics]
    heights += [_stretched(values) for values in columns]
    figure = base_figure(height_px=400)
    drawn = parallel_points(judgement, point)
    for word, member, style in _groups(judgement, point, mode):
        places = [k for k in drawn if member[k]]
        if places:
            _add_lines(figure, judgement, names, places, heights, word, style)
    labels = [axis_words(name) for name in settings] + [metric_words(metric) for metric in metrics]
    levels = [place for at, name in enumerate(settings) for place in _levels(at, judgement.points[name], name)]
    for at, (metric, values) in enumerate(zip(metrics, columns, strict=True), len(settings)):
        known = values[~np.isnan(values)]
        if len(known):
            levels += [(at, y, short_figure(metric, float(value))) for y, value in ((0.0, known.min()), (1.0, known.max()))]
    # All at once: Plotly checks every one that is there again for each that is added.
    figure.layout.annotations = [_label(*level, mode) for level in levels]
    line = {"type": "line", "y0": 0, "y1": 1, "line": {"width": 1, "color": FAINT[mode]}, "layer": "below"}
    figure.layout.shapes = [{"x0": at, "x1": at, **line} for at in range(len(labels))]
    figure.update_xaxes(
        tickvals=list(range(len(labels))), ticktext=[_broken(text, 8) for text in labels], range=[-0.1, len(labels) - 0.9],
        fixedrange=True, side="bottom", tickangle=-90 if len(labels) > 9 else 0, tickfont={"size": 10},
    )  # fmt: skip
    figure.update_yaxes(visible=False, range=[-0.06, 1.06], fixedrange=True)
    # Room in pixels on both sides: a share of the axis would be too little for the first labels and the last title on a phone.
    legend_below(figure)
    figure.update_layout(hovermode="closest", margin={"l": 42, "r": 42, "b": figure.layout.margin.b + 4})
    return figure


def _placed(values: pl.Series) -> Array:
    """Return each value's height on its axis: the levels of a setting stand equally far apart."""
    distinct = values.unique().sort(nulls_last=True).to_list()
    places = {value: place for place, value in enumerate(distinct)}
    return np.array([places[value] / max(1, len(distinct) - 1) for value in values.to_list()])


def _stretched(values: Array) -> Array:
    known = values[~np.isnan(values)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    stretched: Array = (values - low) / (high - low) if high > low else np.where(np.isnan(values), np.nan, 0.5)
    return stretched


def _groups(judgement: Judgement, point: str | None, mode: Mode) -> list[tuple[str, Array, dict[str, Any]]]:
    points = judgement.points
    feasible, front = points["feasible"].to_numpy(), points["front"].to_numpy()
    words = ((judgement.recommended, "proposed"), (point, "looked at"), (judgement.baseline, "in force"))
    special = {name: word for name, word in words if name is not None}  # of one that is two things, the last word holds
    marked = points["point"].is_in(list(special)).to_numpy()
    groups: list[tuple[str, Array, dict[str, Any]]] = [
        ("does not meet the constraints", ~feasible & ~marked, {"width": 0.7, "dash": "dot", "color": FAINT[mode]}),
        ("meets them", feasible & ~front & ~marked, {"width": 0.8, "color": ACCENT[mode]}),
        ("on the front", front & ~marked, {"width": 2, "color": ACCENT[mode]}),
    ]
    for name, word in special.items():
        dash = {"in force": "dash", "proposed": "solid", "looked at": "longdashdot"}[word]
        groups.append((word, points["point"].eq(str(name)).to_numpy(), {"width": 3.5, "dash": dash, "color": TEXT[mode]}))
    return groups


def _add_lines(
    figure: go.Figure,
    judgement: Judgement,
    names: Mapping[str, str],
    places: Sequence[int],
    heights: Sequence[Array],
    word: str,
    style: Mapping[str, Any],
) -> None:
    points = judgement.points["point"].to_list()
    xs: list[float | None] = []
    ys: list[float | None] = []
    data: list[list[str]] = []
    for k in places:
        for at, height in enumerate(heights):
            xs.append(at)
            ys.append(None if np.isnan(height[k]) else float(height[k]))
            data.append([points[k], names[points[k]]])
        xs.append(None)
        ys.append(None)
        data.append(["", ""])
    faint = word in ("does not meet the constraints", "meets them")
    figure.add_scatter(
        x=xs,
        y=ys,
        mode="lines+markers",
        name=word,
        opacity=0.5 if faint else 1.0,
        line=dict(style),
        marker={"size": 4 if faint else 6, "color": style["color"]},
        customdata=data,
        hovertemplate="%{customdata[1]}<extra></extra>",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _levels(at: int, values: pl.Series, name: str) -> list[tuple[int, float, str]]:
    """Return the axis, the height and the words of each level of a setting that is named."""
    distinct = values.unique().sort(nulls_last=True).to_list()
    unit = SETTING_WORDS[name][1]
    shown = range(len(distinct)) if len(distinct) <= 6 else (0, len(distinct) - 1)
    texts = {place: setting_value(name, distinct[place]) for place in shown}
    return [
        (at, place / max(1, len(distinct) - 1), text.removesuffix(f" {unit}") if unit else text) for place, text in texts.items()
    ]


def _label(at: int, y: float, text: str, mode: Mode) -> dict[str, Any]:
    font = {"size": 11, "color": TEXT[mode]}
    place = {"x": at, "y": y, "xanchor": "right", "xshift": -6}
    return {"text": text, "showarrow": False, "font": font, "bgcolor": SURFACES[mode][0], **place}


def _broken(text: str, most: int = 15) -> str:
    """Return a title in lines of a few words, so that titles do not run into each other."""
    lines: list[str] = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > most and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(lines)


def parallel_alt(judgement: Judgement, point: str | None) -> str:
    """Return what the parallel coordinates show, in one sentence."""
    drawn, there = len(parallel_points(judgement, point)), judgement.points.height
    which = f"all {there} settings" if drawn == there else f"{drawn} of {there} settings, the front and the best"
    names = ", ".join(SETTING_WORDS[name][0].lower() for name in judgement.varied) or "no varied setting"
    return f"Each of {which} as a line over {names} and {', '.join(m.phrase for m in judgement.question.metrics)}."


# --- days and seeds ------------------------------------------------------------------------------------------------------

Blocks = Mapping[str, Mapping[int, float | None]]


def fig_blocks(
    blocks: Blocks,
    metric: Metric,
    *,
    words: Mapping[str, str],
    by: Literal["day", "seed"],
    held: Sequence[int],
    mode: Mode,
) -> go.Figure:
    """Return a metric day by day or seed by seed, one line a point; days held out stand on a shaded ground.

    Parameters
    ----------
    blocks
        Point → day or seed → value.
    metric
        Which.
    words
        Point → how it is called; the first is the baseline.
    by
        What stands along the axis.
    held
        The days held out.
    mode
        The viewer's theme.
    """
    figure = base_figure(height_px=300)
    styles = (("dot", FAINT[mode], "diamond"), ("solid", ACCENT[mode], "circle"))
    for (point, word), (dash, colour, symbol) in zip(words.items(), styles, strict=False):
        values = blocks[point]
        figure.add_scatter(
            x=list(values),
            y=on_axis(metric, values.values()),
            mode="lines+markers",
            name=word,
            line={"dash": dash, "color": colour, "width": 2},
            marker={"symbol": symbol, "size": 9, "color": colour},
            customdata=[figure_words(metric, value) for value in values.values()],
            hovertemplate=f"{by} %{{x}}: %{{customdata}}<extra></extra>",
        )
    if held and by == "day":
        _shade(figure, held, mode)
    legend_below(figure)
    figure.update_xaxes(title={"text": by}, dtick=1 if len(next(iter(blocks.values()), {})) <= 31 else None)
    figure.update_yaxes(title={"text": metric_title(metric)}, rangemode="tozero")
    return figure


def _shade(figure: go.Figure, held: Sequence[int], mode: Mode) -> None:
    """Shade the days held out, and say so over the last of them."""
    for day in held:
        figure.add_vrect(x0=day - 0.5, x1=day + 0.5, fillcolor=FAINT[mode], opacity=0.12, line_width=0)
    figure.add_annotation(
        x=max(held), y=1, yref="paper", yanchor="top", text="held out", showarrow=False, font={"size": 11, "color": FAINT[mode]}
    )


def blocks_alt(blocks: Blocks, metric: Metric, words: Mapping[str, str], by: str) -> str:
    """Return what the figure of days or seeds shows, in one sentence."""
    parts = []
    for point, word in words.items():
        known = [value for value in blocks[point].values() if value is not None]
        if known:
            parts.append(f"{word} {one_or_range(figure_words(metric, min(known)), figure_words(metric, max(known)))}")
    return f"{metric_words(metric)} {by} by {by}: {'; '.join(parts) or 'not known'}."


# --- what each setting does ----------------------------------------------------------------------------------------------


def _level(text: str) -> str:
    """Return a level of a setting, or the ends of a group of them, with its numbers as they are written everywhere.

    >>> _level("2048"), _level("1024 to 8192"), _level("0.12345"), _level("old")
    ('2,048', '1,024 to 8,192', '0.12345', 'old')
    """
    return re.sub(r"(?<![\d.])\d{4,}", lambda found: count(int(found[0])), text)


LEVELS_PX, NAME_LINE_PX = 27, 13
"""What the levels take below the plot, and each line of the names of the settings below them."""


def fig_levels(judgement: Judgement, mode: Mode) -> go.Figure:
    """Return the deciding objective's mean at each level of each setting, with intervals; settings by their weight."""
    metric = judgement.question.objectives[0].metric
    figure = base_figure(height_px=320)
    for each in judgement.sensitivities:
        levels = judgement.levels.filter(pl.col("setting") == each.setting)
        title = _broken(axis_words(each.setting) + (" within the noise" if each.within_noise else ""), 10)
        colour = FAINT[mode] if each.within_noise else ACCENT[mode]
        figure.add_scatter(
            x=[[title] * levels.height, [_level(text) for text in levels["level"]]],
            y=on_axis(metric, levels["mean"].to_list()),
            mode="lines+markers",
            line={"color": colour, "width": 2, "dash": "dot" if each.within_noise else "solid"},
            marker={"size": 8, "color": colour, "symbol": "circle-open" if each.within_noise else "circle"},
            error_y={
                "array": on_axis(metric, levels["half_width"].fill_null(0).to_list()),
                "color": FAINT[mode],
                "thickness": 1.2,
            },
            customdata=[[figure_words(metric, mean), n] for mean, n in levels.select("mean", "points").iter_rows()],
            hovertemplate="%{customdata[0]} in the mean of %{customdata[1]} settings<extra></extra>",
        )
    lines = max((trace.x[0][0].count("<br>") + 1 for trace in figure.data), default=1)
    figure.layout.margin.b = LEVELS_PX + NAME_LINE_PX * lines  # room that Plotly would make by drawing all of it twice
    figure.update_yaxes(title={"text": metric_title(metric)}, showgrid=True)
    return figure


def levels_alt(judgement: Judgement) -> str:
    """Return what the figure of the settings' effects shows, in one sentence."""
    metric = judgement.question.objectives[0].metric
    parts = [
        f"{SETTING_WORDS[each.setting][0].lower()} {figure_words(metric, abs(each.effect))}"
        + (", within the noise" if each.within_noise else "")
        for each in judgement.sensitivities
    ]
    return f"How far the mean {metric.phrase} moves from level to level: {'; '.join(parts) or 'no setting moves it'}."
