"""What a figure wears on a page, and how it is written for the browser."""

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from horde_policy.views.figures.dress import dressed
from horde_policy.views.figures.style import SURFACES, TEXT, Mode, base_figure


def spec_of(figure: go.Figure, mode: Mode = "light") -> dict[str, Any]:
    """As the browser reads it."""
    ready = dressed(figure, mode)
    return {"data": json.loads(ready.traces), "layout": ready.layout}


@pytest.mark.parametrize("figure", [base_figure(), go.Figure(), go.Figure(layout={"template": "plotly_dark"})])
def test_no_figure_takes_a_template_with_it(figure: go.Figure) -> None:
    assert "template" not in spec_of(figure)["layout"]


def test_arrays_go_as_lists_whose_unknown_places_are_null() -> None:
    drawn = go.Figure(go.Scatter(x=np.arange(3.0), y=np.array([1.5, np.nan, 2.0])))
    assert drawn.to_dict()["data"][0]["x"].keys() == {"bdata", "dtype"}, "what Plotly would send"
    (trace,) = spec_of(drawn)["data"]
    assert (trace["x"], trace["y"]) == ([0.0, 1.0, 2.0], [1.5, None, 2.0])


def test_what_a_figure_says_itself_stays_and_the_figure_too() -> None:
    figure = base_figure()
    figure.layout.xaxis.gridcolor, figure.layout.legend.font.size = "#ff0000", 17
    figure.layout.annotations = ({"text": "a", "font": {"size": 12}},)
    before = figure.to_dict()
    layout = spec_of(figure, "dark")["layout"]
    assert layout["xaxis"]["gridcolor"] == "#ff0000"
    assert layout["legend"]["font"] == {"size": 17, "color": TEXT["dark"]}
    assert layout["annotations"] == [{"text": "a", "font": {"size": 12}}]
    assert figure.to_dict() == before


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_figure_lies_on_its_page(mode: Mode) -> None:
    layout = spec_of(base_figure(), mode)["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == SURFACES[mode][0]
