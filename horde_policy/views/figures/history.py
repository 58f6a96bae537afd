"""Figures over time: how an allowance went, with the days before behind it; and which workers were there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from horde_policy.settings import AllowanceSettings
from horde_policy.views.figures.style import (
    ACCENT,
    FAINT,
    STATE_COLOURS,
    TEXT,
    Mode,
    base_figure,
    legend_below,
    name_axis,
    utc_axis,
    wall_time,
)
from horde_policy.views.text import count, escape_plotly, shortened, shortened_name, visible
from horde_policy.views.words import STANDINGS, STATES

__all__ = ["Behind", "Mark", "fig_presence", "fig_states", "fig_trend", "presence_alt", "states_alt", "trend_alt"]


@dataclass(frozen=True, slots=True)
class Behind:
    """A line of an earlier time, moved onto the range: its word, and a frame with ``at`` and ``allowance_tokens``."""

    word: str
    frame: pl.DataFrame
    dash: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at an instant or lasted to another; the text is not trusted."""

    at: datetime
    to: datetime | None
    text: str


def _times(frame: pl.DataFrame) -> list[str]:
    """Return the instants of ``at`` as the wall time of UTC, since Plotly drops the zone; as the text that it sends anyway.

    >>> from datetime import UTC
    >>> _times(pl.DataFrame({"at": [datetime(2026, 11, 29, 12, tzinfo=UTC)]}))
    ['2026-11-29T12:00:00']
    """
    return frame["at"].dt.convert_time_zone("UTC").dt.to_string("%Y-%m-%dT%H:%M:%S%.f").to_list()


def trend_alt(frame: pl.DataFrame, gaps: int) -> str:
    """Return what the figure shows, in one sentence.

    >>> trend_alt(pl.DataFrame({"allowance_tokens": [4096, 512, 2048]}), 1)
    'Free output allowance over the range: between 512 and 4,096 tokens, 2,048 at its end; 1 gap in the history.'
    """
    known = frame["allowance_tokens"].drop_nulls()
    told = "1 gap" if gaps == 1 else f"{count(gaps)} gaps"
    if known.is_empty():
        return f"Free output allowance over the range: not known at any time; {told} in the history."
    least, most, last = known.min(), known.max(), known[-1]
    span = f"between {count(least)} and {count(most)} tokens, {count(last)} at its end"  # type: ignore[arg-type]
    return f"Free output allowance over the range: {span}; {told} in the history."


def fig_trend(
    frame: pl.DataFrame,
    settings: AllowanceSettings,
    mode: Mode,
    *,
    behind: Sequence[Behind] = (),
    gaps: pl.DataFrame | None = None,
    marks: Sequence[Mark] = (),
    span: tuple[datetime, datetime] | None = None,
    held_until: datetime | None = None,
) -> go.Figure:
    """Return the allowance over time as steps, earlier days behind it, gaps hatched and never drawn over, marks labelled.

    Parameters
    ----------
    frame
        ``at`` and ``allowance_tokens``; null is not known and breaks the line.
    settings
        The ceiling and the floor.
    mode
        The viewer's theme.
    behind
        Earlier lines, moved onto the range.
    gaps
        Frame with ``from`` and ``to``.
    marks
        Annotations within the range.
    span
        The ends of the range, where the axis ends; without it the data say where.
    held_until
        Up to where what the last poll of the range found is known to hold; null does not say. It is drawn a little further where
        its step would have no width, and the axis with it.
    """
    figure = base_figure(height_px=300)
    for line in behind:
        figure.add_scatter(
            x=_times(line.frame),
            y=line.frame["allowance_tokens"].to_list(),
            mode="lines",
            name=line.word,
            line={"color": FAINT[mode], "width": 1.4, "dash": line.dash, "shape": "hv"},
            hovertemplate=f"{line.word}: %{{y:,}} tokens<extra></extra>",
        )
    span, held_until = _seen(frame, span, held_until)
    broken = _broken(_held(frame, held_until, gaps), gaps)
    figure.add_scatter(
        x=_times(broken),
        y=broken["allowance_tokens"].to_list(),
        # Markers that nobody sees: without any, a box drawn over the figure selects no span of time.
        mode="lines+markers",
        name="this range",
        marker={"size": 1, "color": ACCENT[mode]},
        line={"color": ACCENT[mode], "width": 2.4, "shape": "hv"},
        hovertemplate="%{x|%-d %b %H:%M} UTC: %{y:,} tokens<extra></extra>",
    )
    _draw_gaps(figure, gaps, mode)
    _draw_marks(figure, marks, mode)
    if behind:
        legend_below(figure)
    figure.layout.dragmode, figure.layout.selectdirection = "select", "h"
    utc_axis(figure, span=span)
    name_axis(figure.layout.yaxis, "free output allowance (tokens)", [0, settings.ceiling_tokens * 1.12])
    return figure


STACKED: Final = ("no_worker", "floor", "falling", "too_large", "unknown", "full")
"""States from the bottom up: what a reader looks for stands on the axis, where its size can be read."""


def states_alt(frame: pl.DataFrame) -> str:
    """Return what the figure shows, in one sentence.

    >>> from datetime import UTC
    >>> at = [datetime(2026, 11, 29, hour, tzinfo=UTC) for hour in (0, 6)]
    >>> states_alt(pl.DataFrame({"at": at, "no_worker": [0, 0], "floor": [1, 4], "full": [9, 6]}))
    'How many models were in which state over the range: at most 4 at the floor or without a worker, 4 at its end.'
    """
    worst = frame["floor"] + frame["no_worker"]
    if worst.is_empty():
        return "How many models were in which state over the range: no poll."
    told = f"at most {count(worst.max())} at the floor or without a worker, {count(worst[-1])} at its end"  # type: ignore[arg-type]
    return f"How many models were in which state over the range: {told}."


def fig_states(
    frame: pl.DataFrame,
    mode: Mode,
    *,
    gaps: pl.DataFrame | None = None,
    marks: Sequence[Mark] = (),
    span: tuple[datetime, datetime] | None = None,
    held_until: datetime | None = None,
) -> go.Figure:
    """Return how many models were in which state over time, one on the other, the worst at the bottom.

    Parameters
    ----------
    frame
        ``at``, and a column a state with how many models were in it; see :func:`horde_policy.views.past.states_over`.
    mode
        The viewer's theme.
    gaps, marks, span, held_until
        As for :func:`fig_trend`; nobody looked in a gap, so it is shaded over what was last seen.
    """
    figure = base_figure(height_px=220)
    span, held_until = _seen(frame, span, held_until)
    frame = _held(frame, held_until, gaps)
    times = _times(frame)
    for state in STACKED:
        if state not in frame.columns or not frame[state].sum():
            continue
        colour = STATE_COLOURS[mode][state]
        figure.add_scatter(
            x=times,
            y=frame[state].to_list(),
            mode="lines+markers",  # without a marker, a box drawn over the figure selects no span of time
            name=STATES[state].label,
            stackgroup="models",
            marker={"size": 1, "color": colour},
            line={"width": 0.6, "color": colour, "shape": "hv"},
            fillcolor=colour,
            hovertemplate=f"%{{y:,}} {STATES[state].label}<extra></extra>",
        )
    _draw_gaps(figure, gaps, mode)
    _draw_marks(figure, marks, mode)
    legend_below(figure, rows=2)
    figure.layout.hovermode, figure.layout.dragmode, figure.layout.selectdirection = "x unified", "select", "h"
    utc_axis(figure, span=span)
    name_axis(figure.layout.yaxis, "models")
    figure.layout.yaxis.rangemode = "tozero"
    return figure


LAST_STEP: Final = 1 / 120
"""The last poll's step is at least this share of the range wide, be it beyond its end: one without a width is not seen."""

Span = tuple[datetime, datetime]


def _seen(frame: pl.DataFrame, span: Span | None, held_until: datetime | None) -> tuple[Span | None, datetime | None]:
    """Return the ends of the axis, and up to where the last poll is drawn, so that its step has a width.

    >>> from datetime import UTC
    >>> at = [datetime(2026, 11, 29, hour, tzinfo=UTC) for hour in (0, 2)]
    >>> [f"{end:%H:%M}" for end in _seen(pl.DataFrame({"at": at}), (at[0], at[1]), at[1])[0]]
    ['00:00', '02:01']
    """
    last = frame["at"].max() if frame.height else None
    if span is None or held_until is None or not isinstance(last, datetime):
        return span, held_until
    until = max(held_until, last + LAST_STEP * (span[1] - span[0]))
    return (span[0], max(span[1], until)), until


def _held(frame: pl.DataFrame, until: datetime | None, gaps: pl.DataFrame | None) -> pl.DataFrame:
    """Return the frame with what its last poll found once more at ``until``, up to which it holds unless a gap begins before.

    >>> from datetime import UTC
    >>> at = [datetime(2026, 11, 29, hour, tzinfo=UTC) for hour in (0, 6, 9)]
    >>> _held(pl.DataFrame({"at": at[:1], "full": [3]}), at[1], None)["full"].to_list()
    [3, 3]
    >>> gap = pl.DataFrame({"from": [at[1]], "to": [at[2]]})
    >>> [_held(pl.DataFrame({"at": at[:1], "full": [3]}), until, gap).height for until in (None, at[0], at[1], at[2])]
    [1, 1, 1, 1]
    """
    last = frame["at"].max() if frame.height else None
    if until is None or not isinstance(last, datetime) or until <= last:
        return frame
    if gaps is not None and gaps.filter((pl.col("from") <= until) & (pl.col("to") > last)).height:
        return frame
    end = frame.sort("at").tail(1).with_columns(at=pl.lit(until).cast(frame.schema["at"]))
    return pl.concat([frame, end])


def _broken(frame: pl.DataFrame, gaps: pl.DataFrame | None) -> pl.DataFrame:
    """Return the line with nothing known from the beginning of each gap on, so that a gap is never drawn over.

    What is known holds up to that instant: the last value is told there once more, since a step ends at its next point.

    >>> from datetime import UTC
    >>> at = [datetime(2026, 11, 29, hour, tzinfo=UTC) for hour in (0, 6)]
    >>> gap = pl.DataFrame({"from": [datetime(2026, 11, 29, 2, tzinfo=UTC)], "to": [at[1]]})
    >>> _broken(pl.DataFrame({"at": at, "allowance_tokens": [9, 5]}), gap)["allowance_tokens"].to_list()
    [9, 9, None, 5]
    """
    line = frame.select("at", "allowance_tokens").sort("at")
    value = pl.col("allowance_tokens")
    if gaps is not None and not gaps.is_empty() and line.height:
        within = gaps.filter(pl.col("from") >= line["at"][0])
        breaks = within.select(at=pl.col("from").cast(line.schema["at"])).with_columns(
            allowance_tokens=pl.lit(None, dtype=line.schema["allowance_tokens"])
        )
        # The poll at which a gap begins stands before the break, so the sort must keep their order.
        line = pl.concat([line, breaks]).sort("at", maintain_order=True)
    ends = line.with_columns(before=value.shift(1)).filter(value.is_null() & pl.col("before").is_not_null())
    held = ends.select("at", allowance_tokens=pl.col("before"))
    return pl.concat([held, line]).sort("at", maintain_order=True) if held.height else line


def _draw_gaps(figure: go.Figure, gaps: pl.DataFrame | None, mode: Mode) -> None:
    if gaps is None:
        return
    look = {"fillcolor": FAINT[mode], "opacity": 0.18, "layer": "above"}
    figure.layout.shapes += tuple(_upright_band(start, end, **look) for start, end in gaps.select("from", "to").iter_rows())


def _upright_band(start: datetime, end: datetime, **look: Any) -> go.layout.Shape:
    """Return what Plotly's ``add_vrect`` adds, without its comparing of the whole layout."""
    across = {"xref": "x", "yref": "y domain", "y0": 0, "y1": 1}
    return go.layout.Shape(type="rect", x0=wall_time(start), x1=wall_time(end), line={"width": 0}, **across, **look)


def _draw_marks(figure: go.Figure, marks: Sequence[Mark], mode: Mode) -> None:
    for mark in marks:
        at = wall_time(mark.at)
        if mark.to is not None:
            figure.layout.shapes += (_upright_band(mark.at, mark.to, fillcolor=ACCENT[mode], opacity=0.12),)
        figure.add_shape(
            type="line", x0=at, x1=at, y0=0, y1=1, yref="paper", line={"width": 1, "dash": "dot", "color": TEXT[mode]}
        )
        figure.add_annotation(
            x=at,
            y=1,
            yref="paper",
            text=escape_plotly(shortened(mark.text, 40)),
            showarrow=False,
            xanchor="left",
            yanchor="top",
            font={"size": 11, "color": TEXT[mode]},
        )


# --- presence ---------------------------------------------------------------------------------------------------------------

_LINES: Final = {
    "open": (STANDINGS["open"], "full", "solid", 7),
    "idle": ("no model known", "too_large", "dashdot", 4),
    "maintenance": (STANDINGS["maintenance"], "falling", "dot", 4),
    "offline": (STANDINGS["offline"], "unknown", "dot", 3),
    "flagged": (STANDINGS["flagged"], "floor", "dash", 4),
}
"""Standing → its word, as in the table, the state's colour it borrows, its dash and width: it reads without the colour.

Who serves and names no model is ``idle``; the history does not tell an empty list from one that was not reported.
"""

SHORT_STAY = 1 / 200
"""A stay of less of the range than this gets a mark: its bar would be a pixel or two, and none for a single poll."""

MOST_WORKERS_DRAWN = 60


def presence_alt(workers: int, drawn: int) -> str:
    """Return what the figure shows, in one sentence.

    >>> presence_alt(70, 60)
    'When each worker was there over the range, and whether it served everybody; the 60 of 70 that were there longest.'
    """
    longest = "" if drawn == workers else f"; the {count(drawn)} of {count(workers)} that were there longest"
    return f"When each worker was there over the range, and whether it served everybody{longest}."


CHARACTER_PX = 6.5
"""About the width of a label's character; a name of wide ones gets more room from Plotly."""


def fig_presence(
    periods: pl.DataFrame,
    order: Sequence[str],
    names: Sequence[str],
    end: datetime,
    gaps: pl.DataFrame,
    mode: Mode,
    *,
    span: tuple[datetime, datetime] | None = None,
) -> go.Figure:
    """Return a row a worker with a bar for each stretch of the range in which it was there; a very short one has a mark.

    Parameters
    ----------
    periods
        Frame ``PERIOD_ROWS`` of the history.
    order, names
        The ids of the workers drawn, from the top, and what they are called; hostile text.
    end
        Up to where the history tells of the range, for stretches that are not over.
    gaps
        Frame with ``from`` and ``to``: nobody looked then, so they are shaded over the bars.
    mode
        The viewer's theme.
    span
        The ends of the range, where the axis ends; without it the stretches say where.
    """
    figure = base_figure(height_px=90 + 19 * max(3, len(order)))
    place = {worker_id: len(order) - number for number, worker_id in enumerate(order)}
    shown = periods.filter(pl.col("worker_id").is_in(list(order))).with_columns(
        pl.when(pl.col("standing").eq("open") & pl.col("models").list.len().eq(0))
        .then(pl.lit("idle"))
        .otherwise(pl.col("standing"))
        .alias("standing")
    )
    start = min(shown["from"].to_list(), default=end) if span is None else span[0]
    for standing, (word, state, dash, width) in _LINES.items():
        x: list[datetime | None] = []
        y: list[int | None] = []
        marks: list[int] = []
        of_it = shown.filter(pl.col("standing") == standing)
        for worker_id, came, left in of_it.select("worker_id", "from", "to").iter_rows():
            stop = left or end
            x += [wall_time(max(came, start)), wall_time(stop), None]
            y += [place[worker_id], place[worker_id], None]
            marks += [width + 1 if stop - came < SHORT_STAY * (end - start) else 0, 0, 0]
        if x:
            colour = STATE_COLOURS[mode][state]
            figure.add_scatter(
                x=x,
                y=y,
                mode="lines+markers" if any(marks) else "lines",
                name=word,
                line={"color": colour, "width": width, "dash": dash},
                marker={"color": colour, "size": marks, "symbol": "square", "opacity": 1, "line": {"width": 0}},
                cliponaxis=False,
                hovertemplate="%{x|%-d %b %H:%M} UTC<extra></extra>",
            )
    _draw_gaps(figure, gaps, mode)
    utc_axis(figure, span=span or (start, end))
    called = [shortened_name(visible(name), 28) for name in names]
    labels = [escape_plotly(name) for name in called]
    figure.layout.margin.l = 14 + round(CHARACTER_PX * max(map(len, called), default=0))
    figure.update_yaxes(tickmode="array", tickvals=[place[i] for i in order], ticktext=labels, range=[0.3, len(order) + 0.7])
    legend_below(figure)
    return figure
