"""The page parts that Streamlit has not, or not so: tables of real HTML, links, the source's status, figures, a wall's board.

Plain scripts without a build step, registered once as inline components: they run in the page, ask no server, and set every
text as text. What they are given is built and checked in ``horde_policy.views``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from horde_policy.views.figures import library

__all__ = ["LIBRARY", "figure", "grid", "nav", "pulse", "status", "wall"]

_FOLDER = Path(__file__).parent
LIBRARY = f"app/static/{library.LIBRARY.name}"
"""Where a browser finds Plotly's library, from the address of the app."""


def _registered(name: str, *scripts: str, shadow: bool = True) -> Callable[..., Any]:
    """Register ``name`` with its html, css and scripts; return what mounts it, in a shadow root or on the page itself."""
    return st.components.v2.component(
        f"horde_policy.{name}",
        html=(_FOLDER / f"{name}.html").read_text(encoding="utf-8"),
        css=(_FOLDER / f"{name}.css").read_text(encoding="utf-8"),
        js="\n".join((_FOLDER / script).read_text(encoding="utf-8") for script in scripts),
        isolate_styles=shadow,
    )


# Plotly writes its own style into the page, and measures its text there.
figure = _registered("figure", "library.js", "figure.js", shadow=False)
grid = _registered("grid", "link.js", "element.js", "grid.js")
nav = _registered("nav", "library.js", "link.js", "element.js", "nav.js")
pulse = _registered("pulse", "age.js", "pulse.js")
status = _registered("status", "age.js", "copy.js", "status.js")
wall = _registered("wall", "link.js", "element.js", "wall.js")
