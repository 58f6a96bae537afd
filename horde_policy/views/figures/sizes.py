"""The allowance over the size asked for (A9): it is measured from the workers that take that size, so it falls in steps."""

from collections.abc import Sequence

import plotly.graph_objects as go

from horde_policy.board.detail import SizeStep
from horde_policy.settings import AllowanceSettings
from horde_policy.views.figures.style import (
    ACCENT,
    FAINT,
    STATE_COLOURS,
    TEXT,
    Mode,
    Upright,
    base_figure,
    draw_beneath,
    legend_below,
    name_axis,
)
from horde_policy.views.text import count, range_text
from horde_policy.views.words import STATES

__all__ = ["add_rules_over_sizes", "asked_mark", "fig_sizes", "sizes_alt", "sizes_end_tokens"]

LEAST_AXIS_TOKENS = 4096


def sizes_alt(largest_free_tokens: int | None) -> str:
    """Return what the figure shows, in one sentence.

    >>> sizes_alt(512)
    'Free output allowance over the size asked for, in steps as workers drop out; the largest free request is 512 tokens.'
    """
    largest = "no size is free, or it is not known" if largest_free_tokens is None else ""
    largest = largest or f"the largest free request is {count(largest_free_tokens)} tokens"
    return f"Free output allowance over the size asked for, in steps as workers drop out; {largest}."


def sizes_end_tokens(steps: Sequence[SizeStep], settings: AllowanceSettings, asked_tokens: int) -> float:
    """Return where the axis of the size ends: all that a worker takes, the ceiling and the size asked for stand on it."""
    taken = [step.to_tokens for step in steps if step.eligible_workers]
    return max(LEAST_AXIS_TOKENS, settings.ceiling_tokens, asked_tokens, max(taken, default=0)) * 1.04


def asked_mark(asked_tokens: int, mode: Mode) -> Upright:
    """Return the mark of the size asked for; it stands apart from the figure, which is the same for all sizes that fit on it.

    >>> asked_mark(1024, "light").label
    'asked 1,024'
    """
    return Upright(asked_tokens, FAINT[mode], f"asked {count(asked_tokens)}")


def fig_sizes(
    steps: Sequence[SizeStep],
    settings: AllowanceSettings,
    *,
    end_tokens: float,
    largest_free_tokens: int | None,
    mode: Mode,
) -> go.Figure:
    """Return the allowance at each size against the diagonal: left of where they cross, a request is free.

    Parameters
    ----------
    steps
        Spans of sizes with one pool each, rising, from the board's detail.
    settings
        The ceiling gives the axis of the allowance.
    end_tokens
        Where the axis of the size ends; see :func:`sizes_end_tokens`.
    largest_free_tokens
        The largest free request, marked; null for none.
    mode
        The viewer's theme.

    Notes
    -----
    A span whose allowance is not known leaves a gap. Spans that no worker takes are drawn dotted at the floor. The key below the
    plot names the diagonal, the point, and the colour of each state that is drawn.
    """
    figure = base_figure(height_px=330)
    _draw_diagonal(figure, end_tokens, mode)
    for step in steps:
        if step.allowance.named is not None and step.from_tokens <= end_tokens:
            _draw_step(figure, step, end_tokens, mode)
    if largest_free_tokens is not None:
        _draw_largest(figure, largest_free_tokens, end_tokens, mode)
    _draw_key(figure)
    name_axis(figure.layout.xaxis, "size asked for (tokens)", [0, end_tokens])
    name_axis(figure.layout.yaxis, "free output allowance (tokens)", [0, settings.ceiling_tokens * 1.12])
    return figure


def _draw_key(figure: go.Figure) -> None:
    """Name each kind of line, and the point, once below the plot."""
    legend_below(figure, rows=4)
    named: set[str] = set()
    for trace in figure.data:
        trace.legendgroup = trace.name
        trace.showlegend = trace.name not in named
        named.add(trace.name)


def _draw_diagonal(figure: go.Figure, end: float, mode: Mode) -> None:
    figure.add_scatter(
        x=[0, end],
        y=[0, end],
        mode="lines",
        name="size asked for, as an allowance",
        line={"color": FAINT[mode], "width": 1, "dash": "dash"},
        hoverinfo="skip",
    )


def _draw_step(figure: go.Figure, step: SizeStep, end: float, mode: Mode) -> None:
    allowance = step.allowance.named
    span = [step.from_tokens, min(step.to_tokens, end)]
    nobody = step.eligible_workers == 0
    workers = "no worker" if nobody else f"{count(step.eligible_workers)} worker{'s' if step.eligible_workers != 1 else ''}"
    figure.add_scatter(
        x=span,
        y=[allowance, allowance],
        mode="lines",
        name="no worker takes it" if nobody else f"allowance: {STATES[step.state].label}",
        line={"color": STATE_COLOURS[mode][step.state], "width": 2 if nobody else 4, "dash": "dot" if nobody else "solid"},
        hovertemplate=(
            f"{range_text(step.from_tokens, step.to_tokens)} tokens: {count(allowance)} free, {workers}<extra></extra>"
        ),
    )


def _draw_largest(figure: go.Figure, largest: int, end: float, mode: Mode) -> None:
    figure.add_scatter(
        x=[largest],
        y=[largest],
        mode="markers",
        name="largest free request",
        marker={"size": 12, "symbol": "diamond-open", "color": ACCENT[mode], "line": {"width": 2, "color": ACCENT[mode]}},
        hovertemplate=f"largest free request: {count(largest)} tokens<extra></extra>",
    )
    right = largest > 0.55 * end
    figure.add_annotation(
        x=largest,
        y=largest,
        text=f"<b>largest free {count(largest)}</b>",
        showarrow=False,
        xanchor="right" if right else "left",
        yanchor="bottom",
        xshift=-8 if right else 8,
        yshift=6,
        font={"size": 13, "color": TEXT[mode]},
    )


def add_rules_over_sizes(
    figure: go.Figure,
    steps: Sequence[SizeStep],
    jobs_by_step: Sequence[int | None],
    old_tokens: int | None,
    mode: Mode,
) -> None:
    """Add the jobs rule on each span of sizes (its threads are those that take the size) and the previous rule's one level."""
    end = figure.layout.xaxis.range[1]
    x: list[float | None] = []
    y: list[int | None] = []
    for step, tokens in zip(steps, jobs_by_step, strict=True):
        if step.from_tokens <= end:
            x += [step.from_tokens, min(step.to_tokens, end)]
            y += [tokens, tokens]
    if old_tokens is not None:
        hover = "previous rule: %{y:,} tokens<extra></extra>"
        draw_beneath(figure, "previous rule", [0, end], [old_tokens] * 2, dash="longdash", mode=mode, hover=hover)
    if any(tokens is not None for tokens in y):
        hover = "jobs rule: %{y:,} tokens<extra></extra>"
        draw_beneath(figure, "jobs rule", x, y, dash="dashdot", mode=mode, hover=hover)
