"""What a figure wears on a page: the house's type and colours, in its own layout; and how it is written for the browser."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import plotly.graph_objects as go
from plotly.io.json import to_json_plotly

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


@dataclass(frozen=True)
class Dressed:
    """A figure as a browser gets it."""

    traces: str
    """As JSON: written once, however many viewers look at it."""
    layout: Mapping[str, Any]

    def with_upright(self, line: Upright) -> "Dressed":
        """Return this figure with one more line across it, which is no part of this one: what is kept of it stays as it is.

        >>> plain = dressed(go.Figure(go.Scatter(y=[1, 2])), "light")
        >>> crossed = plain.with_upright(Upright(0.5, "#4d5967", "asked"))
        >>> [len(each.layout.get("shapes", ())) for each in (plain, crossed)]
        [0, 1]
        """
        more = {name: [*self.layout.get(name, ()), *getattr(line, name)] for name in ("shapes", "annotations")}
        return replace(self, layout={**self.layout, **more})


def dressed(figure: go.Figure, mode: Mode) -> Dressed:
    """Return a figure in the look of the page it is put on; what it says itself about its type and colours stays.

    >>> drawn = go.Figure(go.Scatter(y=[1, 2]), layout={"legend_font_size": 13})
    >>> layout = dressed(drawn, "dark").layout
    >>> layout["plot_bgcolor"], layout["xaxis"]["gridcolor"], layout["legend"]["font"]
    ('#0f151d', '#31333f', {'size': 13, 'color': '#e4e9f0'})
    >>> "template" in layout
    False
    """
    layout = figure.layout.to_plotly_json()
    surface = SURFACES[mode][0]
    layout.pop("template", None)
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
    # What a page's part is given is plain JSON, without a figure's dates and arrays.
    return Dressed(to_json_plotly([trace.to_plotly_json() for trace in figure.data]), json.loads(to_json_plotly(layout)))


def _lacking(into: dict[str, Any], given: dict[str, Any]) -> None:
    """Add what is given and not there yet, level by level."""
    for name, value in given.items():
        if isinstance(value, dict):
            _lacking(into.setdefault(name, {}), value)
        else:
            into.setdefault(name, value)
