"""The figure of one model: the curve of A2–A4 with the live point on it, the range of the estimate and both marks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import plotly.graph_objects as go

from horde_policy.policy.allowance import free_output_allowance
from horde_policy.settings import AllowanceSettings
from horde_policy.views.figures.style import (
    ACCENT,
    FAINT,
    MARK_ROW_PX,
    STATE_COLOURS,
    SURFACES,
    TEXT,
    Mode,
    base_figure,
    draw_beneath,
    draw_marks,
    legend_below,
    name_axis,
)
from horde_policy.views.text import seconds, tokens

__all__ = ["CurvePoint", "add_other_rules", "add_trail", "add_tried", "curve_alt", "fig_curve", "name_marks"]

ROOM_ABOVE = 1.28
"""The axis of the allowance ends at so many times the ceiling: the labels of the point and of the marks stand there."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Where a request stands: its estimated wait, null for not known, and its state."""

    wait_s: float | None
    state: str


NOW, THEN, AT_WORST = "now", "then", "at worst"
RANGE, TRAIL = f"low to {AT_WORST}", "over the range"
"""What the points, the thick part and the rings are called, in the figure and in its legend."""

WIDEST_AXIS = 2.0
"""The axis of the wait ends at so many times the floor wait; what lies beyond is marked at the edge."""


def _axis_end_s(settings: AllowanceSettings, named_s: float | None, high_s: float | None) -> float:
    largest = max((s for s in (named_s, high_s) if s is not None), default=0.0)
    return min(WIDEST_AXIS * settings.wait_floor_s, max(1.25 * settings.wait_floor_s, 1.08 * largest))


def _curve_points(settings: AllowanceSettings, from_s: float, to_s: float) -> tuple[list[float], list[int]]:
    """Return the curve's corners between two waits; between them it is a straight line but for whole tokens."""
    corners = (settings.wait_full_s, settings.wait_floor_s)
    waits = [from_s, *(s for s in corners if from_s < s < to_s), to_s]
    return waits, [free_output_allowance(s, settings) for s in waits]


def curve_alt(
    settings: AllowanceSettings,
    named_s: float | None,
    high_s: float | None,
    *,
    tried: AllowanceSettings | None = None,
    then_s: float | None = None,
) -> str:
    """Return what the figure shows, in one sentence; with ``tried`` also where the request would stand under what is tried.

    >>> curve_alt(AllowanceSettings(), 180.0, None)
    'Free output allowance over estimated wait: at the named wait of 180 s it is 2,304 tokens; the wait at worst is not known.'
    """
    then = "" if tried is None or then_s is None else f"; as tried {_told(tried, then_s)}"
    if named_s is None:
        return f"Free output allowance over estimated wait; the wait is not known, so there is no live point{then}."
    at = f"at the named wait of {seconds(named_s)} it is {tokens(free_output_allowance(named_s, settings))} tokens"
    worst = "the wait at worst is not known"
    if high_s is not None:
        worst = f"at worst, at {seconds(high_s)}, {tokens(free_output_allowance(high_s, settings))}"
    return f"Free output allowance over estimated wait: {at}; {worst}{then}."


def _told(settings: AllowanceSettings, wait_s: float) -> str:
    return f"{tokens(free_output_allowance(wait_s, settings))} tokens at {seconds(wait_s)}"


def fig_curve(
    settings: AllowanceSettings, *, state: str, low_s: float | None, named_s: float | None, high_s: float | None, mode: Mode
) -> go.Figure:
    """Return the curve with the live point at the named wait, and the part between the low and the high scenario thick.

    Parameters
    ----------
    settings
        The curve's four figures.
    state
        The model's state at the size, which colours the point.
    low_s, named_s, high_s
        The scenarios of the estimated wait; null for not known.
    mode
        The viewer's theme.

    Notes
    -----
    Without a named wait there is no point. A wait beyond the axis is drawn at its end, and the label says so.

    Examples
    --------
    >>> figure = fig_curve(AllowanceSettings(), state="falling", low_s=0.0, named_s=180.0, high_s=None, mode="light")
    >>> [trace.name for trace in figure.data]
    ['allowance', 'now']
    >>> figure.data[1].x[0], figure.data[1].y[0]
    (180.0, 2304)
    """
    figure = base_figure(height_px=330)
    end_s = _axis_end_s(settings, named_s, high_s)
    waits, allowances = _curve_points(settings, 0.0, end_s)
    line = {"color": FAINT[mode], "width": 2}
    hover = "wait %{x:,.0f} s: %{y:,} tokens<extra></extra>"
    figure.add_scatter(x=waits, y=allowances, mode="lines", name="allowance", line=line, hovertemplate=hover)
    if low_s is not None and high_s is not None:
        _draw_range(figure, settings, low_s, high_s, end_s, mode)
    if named_s is not None:
        _draw_point(figure, settings, state, named_s, end_s, mode)
    # above the plot, each in a row of its own: on a phone there is no room for both words between the lines
    draw_marks(figure, settings, mode, above=True)
    # Plotly keeps more distance where no margin is small; the last label of the axis x stands over its end.
    figure.layout.margin = {"l": 74, "r": 20, "t": 24 + MARK_ROW_PX, "b": 61}
    name_axis(figure.layout.xaxis, "estimated wait (s)", [0, end_s])
    name_axis(figure.layout.yaxis, "free output allowance (tokens)", [0, settings.ceiling_tokens * ROOM_ABOVE])
    return figure


def _draw_range(figure: go.Figure, settings: AllowanceSettings, low_s: float, high_s: float, end_s: float, mode: Mode) -> None:
    waits, allowances = _curve_points(settings, min(low_s, end_s), min(high_s, end_s))
    figure.add_scatter(
        x=waits,
        y=allowances,
        mode="lines",
        name=RANGE,
        line={"color": ACCENT[mode], "width": 9},
        opacity=0.45,
        hoverinfo="skip",
    )
    at_end = high_s > end_s
    figure.add_annotation(
        name=AT_WORST,
        x=min(high_s, end_s),
        y=allowances[-1],
        text=f"at worst {seconds(high_s)}{' →' if at_end else ''}",
        showarrow=False,
        xanchor="right" if high_s > 0.7 * end_s else "left",
        yanchor="bottom",
        yshift=8,
        font={"size": 12, "color": FAINT[mode]},
        bgcolor=SURFACES[mode][0],  # a rule's line at that level would strike the words through
    )


def _draw_point(figure: go.Figure, settings: AllowanceSettings, state: str, named_s: float, end_s: float, mode: Mode) -> None:
    allowance = free_output_allowance(named_s, settings)
    x = min(named_s, end_s)
    figure.add_scatter(
        x=[x],
        y=[allowance],
        mode="markers",
        name=NOW,
        marker={"size": 13, "color": STATE_COLOURS[mode][state], "line": {"width": 2, "color": TEXT[mode]}},
        hovertemplate=f"named wait {seconds(named_s)}: {tokens(allowance)} tokens free<extra></extra>",
    )
    right = x > 0.6 * end_s
    beyond = " →" if named_s > end_s else ""
    figure.add_annotation(
        name=NOW,
        x=x,
        y=allowance,
        text=f"<b>now {tokens(allowance)} tokens</b> at {seconds(named_s)}{beyond}",
        showarrow=False,
        xanchor="right" if right else "left",
        yanchor="bottom",
        xshift=-10 if right else 4,
        yshift=8 if allowance > 0.5 * settings.ceiling_tokens else 24,
        font={"size": 13, "color": TEXT[mode]},
        # else a mark's line goes through the words
        bgcolor=SURFACES[mode][0],
    )


def add_trail(figure: go.Figure, settings: AllowanceSettings, waits_s: Sequence[float | None], mode: Mode) -> None:
    """Add where the request stood over a range: one ring on the curve for each wait, the newest last.

    They are filled and drawn in the text's colour, since they lie on the thick part of the curve, whose colour any fainter ring
    is lost in; the live point stays on top of them.

    >>> figure = fig_curve(AllowanceSettings(), state="full", low_s=0.0, named_s=10.0, high_s=None, mode="light")
    >>> add_trail(figure, AllowanceSettings(), [200.0, None, 20.0], "light")
    >>> [(trace.name, trace.y) for trace in figure.data[1:]]
    [('over the range', (2005, 4096)), ('now', (4096,))]
    """
    end_s = figure.layout.xaxis.range[1]
    known = [wait for wait in waits_s if wait is not None]
    figure.add_scatter(
        x=[min(wait, end_s) for wait in known],
        y=[free_output_allowance(wait, settings) for wait in known],
        mode="markers",
        name=TRAIL,
        showlegend=False,
        marker={"size": 8, "color": SURFACES[mode][0], "line": {"width": 1.2, "color": TEXT[mode]}},
        cliponaxis=False,
        hovertemplate="over the range: wait %{x:,.0f} s, %{y:,} tokens<extra></extra>",
    )
    figure.data = sorted(figure.data, key=lambda trace: trace.name == NOW)


def add_tried(
    figure: go.Figure,
    settings: AllowanceSettings,
    then: CurvePoint,
    mode: Mode,
    *,
    now: tuple[float | None, float | None] = (None, None),
) -> None:
    """Add the curve of the settings that are tried, and where the request would stand on it.

    Parameters
    ----------
    figure
        Of :func:`fig_curve`.
    settings, then, mode
        What is tried, where the request would stand, and the viewer's theme.
    now
        The named wait and the wait at worst of the request as it stands.

    Notes
    -----
    Two points with figures beside them would stand on each other's: now each has its one word on the side where the other is
    not, and its figures in the legend, beside its own mark.
    """
    end_s = figure.layout.xaxis.range[1]
    waits, allowances = _curve_points(settings, 0.0, end_s)
    line = {"color": ACCENT[mode], "width": 1.5, "dash": "dash"}
    figure.add_scatter(x=waits, y=allowances, mode="lines", name="as tried", line=line, hoverinfo="skip", showlegend=False)
    ceiling = max(settings.ceiling_tokens * ROOM_ABOVE, figure.layout.yaxis.range[1])
    figure.layout.yaxis.range = [0, ceiling]
    if then.wait_s is None:
        return
    allowance, x = free_output_allowance(then.wait_s, settings), min(then.wait_s, end_s)
    look = {"size": 13, "symbol": "square", "color": STATE_COLOURS[mode][then.state], "line": {"width": 2, "color": ACCENT[mode]}}
    hover = f"as tried: wait {seconds(then.wait_s)}, {tokens(allowance)} tokens free<extra></extra>"
    figure.add_scatter(x=[x], y=[allowance], mode="markers", name=THEN, marker=look, hovertemplate=hover)
    _tell_apart(figure, mode, now, f"{THEN}: {_told(settings, then.wait_s)}")


def _tell_apart(figure: go.Figure, mode: Mode, now: tuple[float | None, float | None], then_told: str) -> None:
    """Give each of both points one word on its own side, and its figures in the legend."""
    points = {trace.name: trace for trace in figure.data if trace.name in (NOW, THEN)}
    if not figure.layout.showlegend:
        figure.update_traces(showlegend=False)
    figure.layout.annotations = [note for note in figure.layout.annotations if note.name not in (NOW, AT_WORST)]
    lower = min(points, key=lambda name: (points[name].y[0], name))
    for name, point in points.items():
        below = name == lower and len(points) > 1
        figure.add_annotation(
            name=name,
            x=point.x[0],
            y=point.y[0],
            text=f"<b>{name}</b>",
            showarrow=False,
            yanchor="top" if below else "bottom",
            yshift=-8 if below else 8,
            font={"size": 13, "color": TEXT[mode] if name == NOW else ACCENT[mode]},
        )
    named_s, worst_s = now
    told = {THEN: then_told}
    if NOW in points and named_s is not None:
        told[NOW] = f"{NOW}: {tokens(points[NOW].y[0])} tokens at {seconds(named_s)}"
    if worst_s is not None:
        told[RANGE] = f"{RANGE}, {seconds(worst_s)}"
    for trace in figure.data:
        if trace.name in told:
            trace.update(name=told[trace.name], showlegend=True)
    legend_below(figure)


def name_marks(figure: go.Figure) -> None:
    """Name in the legend what has no words beside it: the thick part of the curve, and the rings of the range.

    >>> figure = fig_curve(AllowanceSettings(), state="full", low_s=0.0, named_s=10.0, high_s=90.0, mode="light")
    >>> add_trail(figure, AllowanceSettings(), [200.0, 20.0], "light")
    >>> name_marks(figure)
    >>> [trace.name for trace in figure.data if trace.showlegend]
    ['low to at worst', 'over the range']
    """
    named = [trace for trace in figure.data if trace.name.startswith((RANGE, TRAIL)) and len(trace.x)]
    if named:
        if not figure.layout.showlegend:
            figure.update_traces(showlegend=False)
        legend_below(figure)
    for trace in named:
        trace.showlegend = True


def add_other_rules(figure: go.Figure, old_tokens: int | None, jobs_tokens: int | None, mode: Mode) -> None:
    """Add what the rules weighed before would give now: neither looks at the wait, so each is a level.

    >>> figure = fig_curve(AllowanceSettings(), state="full", low_s=0.0, named_s=10.0, high_s=None, mode="light")
    >>> add_other_rules(figure, 400, 2304, "light")
    >>> [trace.name for trace in figure.data if trace.showlegend]
    ['jobs rule: 2,304', 'previous rule: 400']
    """
    ends = [0.0, figure.layout.xaxis.range[1]]
    for word, level, dash in (("previous rule", old_tokens, "longdash"), ("jobs rule", jobs_tokens, "dashdot")):
        if level is not None:
            name = f"{word}: {tokens(level)}"
            draw_beneath(figure, name, ends, [level, level], dash=dash, mode=mode, hover=f"{name} tokens<extra></extra>")
    _raise_above(figure, [level for level in (old_tokens, jobs_tokens) if level is not None])


LABEL_PX: Final = 18
"""The height of a label, with what it keeps from a line."""


def _raise_above(figure: go.Figure, levels: Sequence[int]) -> None:
    """Raise the words of the wait at worst above the levels that would strike them through."""
    layout = figure.layout
    px_per_token = (layout.height - layout.margin.t - layout.margin.b) / layout.yaxis.range[1]
    for note in layout.annotations:
        if note.name == AT_WORST:
            for level in sorted(levels):
                above_px = (level - note.y) * px_per_token
                if note.yshift - 4 < above_px < note.yshift + LABEL_PX:
                    note.yshift = round(above_px) + 4
