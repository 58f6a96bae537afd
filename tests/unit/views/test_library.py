"""Plotly's library in the browser is of the version that figures are made for, and draws every kind of them."""

import re
from pathlib import Path

import plotly.graph_objects as go
from plotly.basedatatypes import BaseTraceType
from plotly.offline import get_plotlyjs_version

from horde_policy.views.figures.library import LIBRARY, LIBRARY_VERSION, library_script

ROOT = Path(__file__).parents[3]
MADE = re.compile(r"\bgo\.([A-Z]\w+)|\.add_(\w+)\(")


def is_trace(name: str) -> bool:
    kind = getattr(go, name.capitalize(), None)
    return isinstance(kind, type) and issubclass(kind, BaseTraceType)


def test_the_library_is_of_the_version_that_figures_are_made_for() -> None:
    assert get_plotlyjs_version() == LIBRARY_VERSION
    assert f"plotly.js (cartesian - minified) v{LIBRARY_VERSION}" in LIBRARY.read_text("utf-8")[:200]


def test_it_draws_every_kind_of_figure_that_is_made() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "horde_policy").rglob("*.py")]
    made = {(one or other).lower() for text in sources for one, other in MADE.findall(text)}
    kinds = {name for name in made if is_trace(name)}
    assert kinds >= {"scatter", "bar", "heatmap"}
    assert kinds <= set(re.findall(r'moduleType:"trace",name:"(\w+)"', library_script()))
