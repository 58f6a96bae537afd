"""What a figure wears on a page: the house's type and colours, in its own layout and not in a template.

Streamlit lays each changed figure out twice when it puts it on the page. Plotly draws a second time only what differs from the
first, but takes a template, and arrays without a revision, for different each time (decision 0198).
"""

from typing import Any, Final

import plotly.graph_objects as go
from plotly.basedatatypes import BaseFigure

from horde_policy.views.figures.style import FAINT, SURFACES, TEXT, Mode, Upright

__all__ = ["Dressed", "dressed"]

FONT: Final = '"Source Sans", sans-serif'
"""As the page's text; it comes with Streamlit."""
TYPE_PX, TITLE_PX, HOVER_PX = 10.5, 12.25, 12
GRID: Final[dict[Mode, str]] = {"light": "#e6eaf1", "dark": "#31333f"}
FRAME: Final[dict[Mode, str]] = {"light": "#d5dce5", "dark": "#2c3847"}
PAD_PX: Final = 7
"""Between the plot and the labels of its axes."""
STANDOFF_PX: Final = {"x": 17.5, "y": 21}
"""Between the labels of an axis and its title."""
REVISION: Final = 1
"""Of the data: Streamlit gives each figure with other data an element of its own, so within one they never change."""


class Dressed(BaseFigure):  # type: ignore[misc]
    """A figure that has its specification ready: Streamlit takes that from a figure as it is, and checks a dictionary anew."""

    def __init__(self, specification: dict[str, Any]) -> None:
        self._specification = specification

    def to_dict(self) -> dict[str, Any]:
        """Return the specification, not a copy of it."""
        return self._specification

    def with_upright(self, line: Upright) -> "Dressed":
        """Return this figure with one more line across it, which is no part of this one: what is kept of it stays as it is.

        >>> plain = dressed(go.Figure(go.Scatter(y=[1, 2])), "light")
        >>> crossed = plain.with_upright(Upright(0.5, "#4d5967", "asked"))
        >>> [len(each.to_dict()["layout"].get("shapes", ())) for each in (plain, crossed)]
        [0, 1]
        """
        layout = dict(self._specification["layout"])
        layout["shapes"] = [*layout.get("shapes", ()), *line.shapes]
        layout["annotations"] = [*layout.get("annotations", ()), *line.annotations]
        return Dressed(self._specification | {"layout": layout})


def dressed(figure: go.Figure, mode: Mode) -> Dressed:
    """Return a figure in the look of the page it is put on; what it says itself about its type and colours stays.

    >>> drawn = go.Figure(go.Scatter(y=[1, 2]), layout={"legend_font_size": 13})
    >>> layout = dressed(drawn, "dark").to_dict()["layout"]
    >>> layout["plot_bgcolor"], layout["xaxis"]["gridcolor"], layout["legend"]["font"]
    ('#0f151d', '#31333f', {'size': 13, 'color': '#e4e9f0'})
    >>> "template" in layout
    False
    """
    # Trace by trace, as a figure as a whole packs its arrays, and packed ones Plotly takes for different, too.
    data, layout = [trace.to_plotly_json() for trace in figure.data], figure.layout.to_plotly_json()
    surface = SURFACES[mode][0]
    layout.pop("template", None)
    layout["datarevision"] = REVISION
    of_text = {"color": TEXT[mode]}
    _lacking(
        layout,
        {
            "font": {"family": FONT, "size": TYPE_PX, "color": FAINT[mode]},
            "paper_bgcolor": surface,
            "plot_bgcolor": surface,
            "margin": {"pad": PAD_PX},
            "legend": {"font": of_text, "valign": "top"},
            "hoverlabel": {"bgcolor": surface, "bordercolor": FRAME[mode], "font": {"family": FONT, "size": HOVER_PX, **of_text}},
        },
    )
    for name in sorted({"xaxis", "yaxis"} | {name for name in layout if name.startswith(("xaxis", "yaxis"))}):
        title = {"font": {"size": TITLE_PX}, "standoff": STANDOFF_PX[name[0]]}
        _lacking(layout, {name: {"gridcolor": GRID[mode], "title": title}})
    return Dressed({"data": data, "layout": layout})


def _lacking(into: dict[str, Any], given: dict[str, Any]) -> None:
    """Add what is given and not there yet, level by level."""
    for name, value in given.items():
        if isinstance(value, dict):
            _lacking(into.setdefault(name, {}), value)
        else:
            into.setdefault(name, value)
