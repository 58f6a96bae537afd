"""The workshop's figure: the curve with named points on it, large enough for the last row."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from horde_policy.policy.allowance import free_output_allowance
from horde_policy.settings import AllowanceSettings
from horde_policy.views.figures.style import FAINT, STATE_COLOURS, SURFACES, TEXT, Mode, base_figure, draw_marks
from horde_policy.views.text import escape_plotly, seconds, tokens

__all__ = ["NamedPoint", "fig_named_points", "named_points_alt"]

HEIGHT_PX = 320
MARK_FONT_PX = 15
AXIS_END = 2.0
"""The axis ends at so many times the floor wait; what waits longer stands at its end."""


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """One point: its name, its estimated wait and its state."""

    name: str
    wait_s: float
    state: str


def named_points_alt(points: Sequence[NamedPoint], settings: AllowanceSettings) -> str:
    """Return what the figure shows, in one sentence.

    >>> named_points_alt([NamedPoint("a", 180.0, "falling")], AllowanceSettings())
    'Free output allowance over estimated wait: a at 180 s gets 2,304 tokens.'
    """
    told = (f"{p.name} at {seconds(p.wait_s)} gets {tokens(free_output_allowance(p.wait_s, settings))} tokens" for p in points)
    return f"Free output allowance over estimated wait: {'; '.join(told)}."


def fig_named_points(points: Sequence[NamedPoint], settings: AllowanceSettings, mode: Mode) -> go.Figure:
    """Return the curve with a labelled point for each entry.

    >>> figure = fig_named_points([NamedPoint("a", 180.0, "falling")], AllowanceSettings(), "light")
    >>> figure.data[1].y[0]
    2304
    """
    end_s = AXIS_END * settings.wait_floor_s
    corners = [0.0, settings.wait_full_s, settings.wait_floor_s, end_s]
    figure = base_figure(height_px=HEIGHT_PX)
    figure.add_scatter(
        x=corners,
        y=[free_output_allowance(wait, settings) for wait in corners],
        mode="lines",
        name="allowance",
        line={"color": FAINT[mode], "width": 4},
        hovertemplate="wait %{x:,.0f} s: %{y:,} tokens<extra></extra>",
    )
    for point in points:
        _add_point(figure, point, settings, end_s, mode)
    figure.update_annotations(font_size=16)
    _draw_marks_in_large_type(figure, settings, mode)
    figure.update_xaxes(title={"text": "estimated wait (s)", "font": {"size": 17}}, range=[-24, end_s + 8], tickfont={"size": 16})
    top = settings.ceiling_tokens * 1.3
    figure.update_yaxes(title={"text": "free (tokens)", "font": {"size": 17}}, range=[0, top], tickfont={"size": 16})
    return figure


def _draw_marks_in_large_type(figure: go.Figure, settings: AllowanceSettings, mode: Mode) -> None:
    """Draw both marks with their words over the plot, each in a row of its own: between the lines there is no room for both."""
    points = len(figure.layout.annotations)
    draw_marks(figure, settings, mode, above=True)
    for row, note in enumerate(reversed(figure.layout.annotations[points:])):
        note.update(font_size=MARK_FONT_PX, yshift=row * (MARK_FONT_PX + 4), xanchor="left" if row else "center")
    figure.update_layout(margin_t=2 * (MARK_FONT_PX + 6))


def _add_point(figure: go.Figure, point: NamedPoint, settings: AllowanceSettings, end_s: float, mode: Mode) -> None:
    allowance = free_output_allowance(point.wait_s, settings)
    x = min(point.wait_s, end_s)
    figure.add_scatter(
        x=[x],
        y=[allowance],
        mode="markers",
        name=escape_plotly(point.name),
        marker={"size": 20, "color": STATE_COLOURS[mode][point.state], "line": {"width": 2, "color": TEXT[mode]}},
        hovertemplate=f"{seconds(point.wait_s)}: {tokens(allowance)} tokens<extra></extra>",
    )
    figure.add_annotation(
        x=x,
        y=allowance,
        text=f"<b>{escape_plotly(point.name)}</b> {tokens(allowance)}",
        showarrow=False,
        xanchor="right" if x > 0.75 * end_s else "left",
        yanchor="bottom",
        xshift=12 if x <= 0.75 * end_s else 30,
        yshift=13,
        font={"color": TEXT[mode]},
        bgcolor=SURFACES[mode][0],
    )
