"""How figures look: one colour a state and an outcome, one way to draw the two marks, UTC on every axis of time.

Colours carry meaning only together with a word, a shape or a pattern. Each palette differs in lightness from entry to
entry and has a contrast of at least 3 to 1 against both surfaces of its theme, which ``tests/unit/views/test_style.py``
computes. ``.streamlit/config.toml`` repeats the state colours, and the same test compares the two.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

import plotly.graph_objects as go

from horde_policy.settings import AllowanceSettings
from horde_policy.views.text import seconds

__all__ = [
    "ACCENT",
    "FAINT",
    "MARK_ROW_PX",
    "OUTCOMES",
    "OUTCOME_PATTERNS",
    "PLOTLY_CONFIG",
    "SERIES",
    "STATE_COLOURS",
    "SURFACES",
    "TEXT",
    "TIME_TITLE",
    "Mode",
    "Upright",
    "base_figure",
    "draw_beneath",
    "draw_mark_above",
    "draw_marks",
    "draw_upright",
    "legend_below",
    "name_axis",
    "name_squares",
    "percent",
    "share_axis",
    "utc_axis",
    "wall_time",
]

Mode = Literal["light", "dark"]

SURFACES: Final[dict[Mode, tuple[str, str]]] = {"light": ("#ffffff", "#f3f5f8"), "dark": ("#0f151d", "#18212c")}
"""The page's and the panels' background."""

TEXT: Final[dict[Mode, str]] = {"light": "#17202b", "dark": "#e4e9f0"}
FAINT: Final[dict[Mode, str]] = {"light": "#4d5967", "dark": "#b3bfcd"}
ACCENT: Final[dict[Mode, str]] = {"light": "#2457c5", "dark": "#8ab4ff"}

STATE_COLOURS: Final[dict[Mode, dict[str, str]]] = {
    "light": {
        "full": "#159c85",
        "falling": "#9a5f00",
        "floor": "#a8261b",
        "no_worker": "#56103f",
        "too_large": "#5f7391",
        "unknown": "#7f8896",
    },
    "dark": {
        "full": "#1f8f7c",
        "falling": "#d39a2c",
        "floor": "#ffab9a",
        "no_worker": "#ffd9ee",
        "too_large": "#7b90ad",
        "unknown": "#6d7786",
    },
}
"""State of a model → colour. The worse the state, the further its lightness is from the page's."""

OUTCOMES: Final[dict[Mode, dict[str, str]]] = {
    "light": {"free": "#159c85", "funded": "#386cd0", "downgraded": "#7d4d00", "refused": "#6e120a"},
    "dark": {"free": "#1f8f7c", "funded": "#6f9ff2", "downgraded": "#e2ab3f", "refused": "#ffc4b8"},
}
"""Outcome of a decision → colour, the same on every page."""

SERIES: Final[dict[Mode, tuple[str, ...]]] = {
    "light": ("#3b4654", "#8a3d86", "#c1661c", "#5f7391"),
    "dark": ("#cbd5e1", "#c98ac6", "#e59a5c", "#9db0c9"),
}
"""Colours of series that are no outcomes, out of the theme's categories; a dash or a pattern tells them apart too."""

OUTCOME_PATTERNS: Final[dict[str, str]] = {"free": "", "funded": ".", "downgraded": "/", "refused": "x"}
"""Outcome → Plotly fill pattern, so that a figure reads in grey."""

PLOTLY_CONFIG: Final[dict[str, Any]] = {
    "displaylogo": False,
    "toImageButtonOptions": {"format": "png", "scale": 2},
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
}
"""What the chart's own tool bar offers; the camera saves a picture."""


LABELS_PX: Final = {"l": 70, "b": 57}
"""Room for the labels and the title of an axis of thousands, left, and of one that is no axis of time, below.

Plotly gives what needs more room the room that it needs, but draws the whole figure again for it: with too little from the start
half of a figure's time goes there (decision 0196).
"""
_AXIS: Final = {"zeroline": False, "automargin": True, "separatethousands": True, "ticklabeloverflow": "allow"}
"""Numbers on axes as everywhere. No label is cut where it has its room, so none need be measured for it."""
SECOND_LINE_PX: Final = 13
"""An axis of time has labels of two lines."""


LEAST_LABEL_PX: Final = 9
"""A bar too small for a label of this size has none: Plotly would set it in ever smaller type. The hover has its figure."""


def base_figure(*, height_px: int = 320) -> go.Figure:
    """Return an empty figure with the house's margins and axes; the page it is put on adds type and colours (:mod:`.dress`).

    >>> base_figure(height_px=200).layout.height
    200
    """
    # Whole, or property by property: Plotly's ``update_…`` compare every path with the template's, milliseconds a call.
    figure = go.Figure(
        layout={
            "height": height_px,
            "margin": {"r": 8, "t": 24, **LABELS_PX},
            "showlegend": False,
            "hovermode": "closest",
            "dragmode": False,
            "uniformtext": {"minsize": LEAST_LABEL_PX, "mode": "hide"},
            "xaxis": {"showgrid": False, **_AXIS},
            "yaxis": dict(_AXIS),
            "template": "none",
        }
    )
    figure.layout.template = None  # each property that is set would be compared with it
    return figure


def name_axis(axis: Any, title: str, span: Sequence[float] | None = None) -> None:
    """Name an axis, and set what it spans; null leaves it to the data.

    >>> figure = base_figure()
    >>> name_axis(figure.layout.xaxis, "estimated wait (s)", [0, 300])
    >>> figure.layout.xaxis.title.text, figure.layout.xaxis.range
    ('estimated wait (s)', (0, 300))
    """
    axis.title.text = title
    if span is not None:
        axis.range = span


def name_squares(axis: Any, title: str, labels: Sequence[str]) -> None:
    """Name an axis of squares, a label each, that ends half a square's place beyond them.

    Left to itself Plotly keeps as much free beyond marks as they are large, and on a phone the squares then lie on each other.

    >>> figure = base_figure()
    >>> name_squares(figure.layout.xaxis, "size", ["small", "large"])
    >>> figure.layout.xaxis.range, figure.layout.xaxis.categoryarray
    ((-0.5, 1.5), ('small', 'large'))
    """
    axis.type, axis.categoryorder, axis.categoryarray = "category", "array", labels
    name_axis(axis, title, [-0.5, max(1, len(labels)) - 0.5])


def percent(shares: Iterable[float | None]) -> list[float | None]:
    """Return shares as their places on an axis of :func:`share_axis`.

    >>> percent([0.25, None])
    [25.0, None]
    """
    return [None if share is None else share * 100 for share in shares]


def share_axis(axis: Any, title: str, span: Sequence[float] | None = None) -> None:
    """Name an axis of shares in percent: as everywhere the unit stands in the title, and the ticks are plain numbers.

    Plotly's own format of a percentage has no blank before its sign, which every text has.

    >>> figure = base_figure()
    >>> share_axis(figure.layout.yaxis, "share of the requests", [0, 100])
    >>> figure.layout.yaxis.title.text, figure.layout.yaxis.range
    ('share of the requests (%)', (0, 100))
    """
    name_axis(axis, f"{title} (%)", span)


_ACROSS: Final = {"xref": "x", "yref": "y domain"}


@dataclass(frozen=True, slots=True)
class Upright:
    """A dotted line across the plot at a place of the axis x; its label stands right of its top unless ``placed`` elsewhere."""

    at: float
    colour: str
    label: str = ""
    label_colour: str = ""
    placed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shapes(self) -> tuple[dict[str, Any], ...]:
        """The line, as a layout has it."""
        line = {"width": 1, "dash": "dot", "color": self.colour}
        return ({"type": "line", "x0": self.at, "x1": self.at, "y0": 0, "y1": 1, "line": line, **_ACROSS},)

    @property
    def annotations(self) -> tuple[dict[str, Any], ...]:
        """The label, as a layout has it; none without words."""
        if not self.label:
            return ()
        place = {"x": self.at, "y": 1, "xanchor": "left", "yanchor": "top", **_ACROSS, **self.placed}
        font = {"size": 11, "color": self.label_colour or self.colour}
        return ({"text": self.label, "showarrow": False, "font": font, **place},)


def draw_upright(figure: go.Figure, at: float, *, colour: str, label: str = "", label_colour: str = "", **placed: Any) -> None:
    """Draw an :class:`Upright`: what Plotly's ``add_vline`` draws, in a fraction of its time.

    >>> figure, theirs = base_figure(), base_figure()
    >>> draw_upright(figure, 60.0, colour="#4d5967", label="full wait")
    >>> _ = theirs.add_vline(
    ...     60.0, line={"width": 1, "dash": "dot", "color": "#4d5967"}, annotation_text="full wait",
    ...     annotation_position="top right", annotation_font={"size": 11, "color": "#4d5967"},
    ... )
    >>> figure == theirs
    True
    """
    upright = Upright(at, colour, label, label_colour, placed)
    figure.layout.shapes += upright.shapes
    figure.layout.annotations += upright.annotations


LEGEND_ROW_PX = 26
"""The height of one row of a legend with its distance from what stands above it."""
LEGEND_TEXT_PX, LEGEND_FRAME_PX = 19, 10
"""What a row of a legend takes as Plotly draws it, and what all of them have around them."""


def legend_below(figure: go.Figure, *, rows: int = 1) -> None:
    """Put the legend at the foot of the figure, in room that it is given: however many rows it has, none lies on the data.

    The figure grows by so many rows; where a narrow screen needs more, the plot gives way. A legend that is anchored to the plot,
    over it or a share of its height below it, covers what is drawn or the axis as soon as a narrow screen gives it a second row.

    >>> figure = base_figure(height_px=300)
    >>> legend_below(figure)
    >>> figure.layout.legend.yref, figure.layout.legend.yanchor, figure.layout.height
    ('container', 'bottom', 326)
    >>> legend_below(figure)  # again: one more row
    >>> figure.layout.height, figure.layout.margin.b - LABELS_PX["b"]
    (352, 48)
    """
    first = not figure.layout.showlegend
    place = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "xanchor": "left"}
    # wide enough to tell one pattern of dashes from another
    look = {"traceorder": "normal", "font": {"size": 12}, "itemwidth": 40}
    figure.layout.showlegend = True
    figure.layout.legend = place | look
    figure.layout.height += LEGEND_ROW_PX * rows
    figure.layout.margin.b += LEGEND_TEXT_PX * rows + LEGEND_FRAME_PX * first


def draw_beneath(
    figure: go.Figure, name: str, x: Sequence[float | None], y: Sequence[float | None], *, dash: str, mode: Mode, hover: str
) -> None:
    """Draw a line to compare with beneath all that the figure has, named in a legend below it.

    A line's name beside it would stand across the marks, or across another line of the same level; below the figure it cannot.
    What the figure says itself lies on top, so that a line at the same level never hides it.

    >>> figure = base_figure()
    >>> _ = figure.add_scatter(x=[0, 1], y=[1, 1], name="own")
    >>> draw_beneath(figure, "other", [0, 1], [1, 1], dash="dash", mode="light", hover="")
    >>> [(trace.name, trace.showlegend) for trace in figure.data]
    [('other', True), ('own', False)]
    """
    if not figure.layout.showlegend:
        for trace in figure.data:
            trace.showlegend = False
        legend_below(figure)
    line = {"color": FAINT[mode], "width": 1.4, "dash": dash}
    figure.add_scatter(x=x, y=y, mode="lines", name=name, line=line, hovertemplate=hover, showlegend=True, legendrank=1001)
    figure.data = (figure.data[-1], *figure.data[:-1])


MARK_ROW_PX = 14
"""The height of one row of labels over a plot."""


MARKS_APART = 0.35
"""The labels of both marks have room between them where the full wait is less than this share of the floor wait."""


def draw_mark_above(
    figure: go.Figure, text: str, at: float, mode: Mode, *, row: int, colour: str = "", anchor: str = "left"
) -> None:
    """Draw one labelled line across the plot; its label stands over the plot, in the row ``row`` counted from its top edge.

    ``anchor`` is the edge of the label that stands at the line.
    """
    draw_upright(
        figure,
        at,
        colour=colour or FAINT[mode],
        label=text,
        label_colour=FAINT[mode],
        xanchor=anchor,
        yanchor="bottom",
        yshift=row * MARK_ROW_PX,
    )


def draw_marks(
    figure: go.Figure,
    settings: AllowanceSettings,
    mode: Mode,
    *,
    axis: Literal["x", "y"] = "x",
    scale: Callable[[float], float] = float,
    above: bool = False,
) -> None:
    """Draw the full wait and the floor wait as two labelled lines: the one threshold scale of every page.

    ``scale`` turns a wait into its place on the axis, where the axis is not in seconds. ``above`` puts the labels over the plot,
    each in a row of its own, where curves reach the top of the plot or the lines stand close together.

    >>> figure = base_figure()
    >>> draw_marks(figure, AllowanceSettings(), "light")
    >>> [note.text for note in figure.layout.annotations]
    ['full wait 60 s', 'floor wait 300 s']
    """
    # The floor wait's words before its line where there is room: on a phone the axis may end close behind it.
    room = settings.wait_full_s < MARKS_APART * settings.wait_floor_s
    marks = (("full wait", settings.wait_full_s, "left"), ("floor wait", settings.wait_floor_s, "right" if room else "left"))
    for word, at_s, anchor in marks:
        label = f"{word} {seconds(at_s)}"
        if axis == "y":
            line = {"width": 1, "dash": "dot", "color": FAINT[mode]}
            font = {"size": 11, "color": FAINT[mode]}
            place = scale(at_s)
            figure.add_hline(y=place, line=line, annotation_position="top left", annotation_text=label, annotation_font=font)
        elif above:
            draw_mark_above(figure, label, scale(at_s), mode, row=1 if word == "full wait" else 0, anchor=anchor)
        else:
            draw_upright(figure, scale(at_s), colour=FAINT[mode], label=label, xanchor=anchor)


TIME_TITLE: Final = "time (UTC)"


def wall_time(at: datetime) -> datetime:
    """Return an instant as the wall time of UTC, since Plotly drops the zone.

    >>> wall_time(datetime(2026, 11, 29, 12, tzinfo=UTC)).isoformat()
    '2026-11-29T12:00:00'
    """
    return at.astimezone(UTC).replace(tzinfo=None)


_DATE_STOPS: Final = (
    {"dtickrange": [None, 59_999], "value": "%H:%M:%S\n%-d %b %Y"},
    {"dtickrange": [60_000, 86_399_999], "value": "%H:%M\n%-d %b %Y"},
    {"dtickrange": [86_400_000, 2_000_000_000], "value": "%-d %b\n%Y"},
    {"dtickrange": ["M1", "M11"], "value": "%b\n%Y"},
    {"dtickrange": ["M12", None], "value": "%Y"},
)
"""Distance of two ticks (ms, or months) → how they are written: the day before the month, as in every text."""


def utc_axis(figure: go.Figure, *, title: str = TIME_TITLE, span: tuple[datetime, datetime] | None = None) -> None:
    """Say UTC on the axis of time, and write dates as texts do; Plotly drops the zone and shows the wall time that it is given.

    Without a ``span`` the data give the axis its ends, and markers have it run past them.

    >>> figure = base_figure()
    >>> utc_axis(figure)
    >>> figure.layout.xaxis.title.text
    'time (UTC)'
    """
    axis = figure.layout.xaxis
    axis.title.text, axis.type, axis.hoverformat = title, "date", "%-d %b %Y %H:%M:%S UTC"
    axis.tickformatstops = _DATE_STOPS
    if span is not None and span[0] < span[1]:
        axis.range = [wall_time(at) for at in span]
    figure.layout.margin.b += SECOND_LINE_PX
