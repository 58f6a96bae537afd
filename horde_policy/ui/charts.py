"""The one way to show a figure: never without its sentence, never full of chrome."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from threading import Lock
from typing import Any, Literal

import plotly.graph_objects as go
import polars as pl
import streamlit as st

from horde_policy.ui import components
from horde_policy.views.figures.dress import Dressed, dressed
from horde_policy.views.figures.style import PLOTLY_CONFIG, TIME_TITLE, Mode, Upright
from horde_policy.views.figures.zones import shown_span, with_zone

__all__ = ["KEPT", "Itself", "Kept", "show_figure", "theme_mode"]


Drag = Literal["pan", "select"]
"""What dragging over a figure does."""

FIGURES_KEPT = 48
"""Of all pages at the settings that viewers look at now: some 20 KB each, and the frames they were drawn of."""


class Itself:
    """A frame as part of what a figure was drawn of: no other frame is the same, however alike they are."""

    __slots__ = ("frame",)

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        """Held, so that no other takes its place in memory."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.frame is self.frame

    def __hash__(self) -> int:
        return id(self.frame)


class Kept:
    """Figures as they were drawn, for all viewers; what was not looked at for the longest goes first.

    >>> kept = Kept(most=1)
    >>> a, again, _, anew = (kept.drawn(of, lambda: dressed(go.Figure(), "light")) for of in ("a", "a", "b", "a"))
    >>> again is a, anew is a
    (True, False)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._figures: OrderedDict[Hashable, Dressed] = OrderedDict()

    def drawn(self, of: Hashable, draw: Callable[[], Dressed]) -> Dressed:
        """Return what was drawn of the same before, else what ``draw`` gives."""
        with self._lock:
            if of in self._figures:
                self._figures.move_to_end(of)
                return self._figures[of]
        figure = draw()
        with self._lock:
            self._figures[of] = figure
            while len(self._figures) > self._most:
                self._figures.popitem(last=False)
        return figure

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._figures.clear()


KEPT = Kept(FIGURES_KEPT)
"""Those of this process."""


def show_figure(
    figure: go.Figure | Callable[..., go.Figure],
    *,
    alt: str,
    key: str,
    of: tuple[Hashable, ...] = (),
    across: Upright | None = None,
    config: Mapping[str, Any] = PLOTLY_CONFIG,
    on_box: Callable[[Any], None] | None = None,
    on_mark: Callable[[Any], None] | None = None,
) -> None:
    """Show a Plotly figure over the full width.

    Parameters
    ----------
    figure
        From ``horde_policy.views.figures``; an empty figure is fine, an empty list is not (T9). Or a function that draws one of
        ``of`` and the viewer's theme.
    alt
        One sentence with what the figure shows; required, and not blank.
    key
        Of the page, ``<page>.<thing>``: two figures with equal content need different ones.
    of
        What the function is given: where the same was drawn of it before, for whomever, it is not drawn again (decision 0199).
    across
        A line over the figure that is no part of what is kept.
    config
        Of Plotly's tool bar.
    on_box
        Called with the ends on the axis x of a box that was drawn over the figure, as Plotly tells them.
    on_mark
        Called with the ``customdata`` of the mark that was clicked; a mark without any tells nothing.

    Raises
    ------
    ValueError
        ``alt`` is blank; or a function looks at more than it is given, so that what is kept of it may be of something else.
    """
    if not alt.strip():
        raise ValueError("a figure needs its alt text")
    if getattr(figure, "__closure__", None):
        raise ValueError("a figure that is kept is drawn of what is named alone")
    drag: Drag | None = "pan" if on_mark is not None else "select" if on_box is not None else None

    if callable(figure):
        asked = figure, of, theme_mode(), drag, st.context.timezone, st.context.timezone_offset
        ready = KEPT.drawn(asked, lambda: _ready(figure(*of, theme_mode()), drag))
    else:
        ready = _ready(figure, drag)
    if across is not None:
        ready = ready.with_upright(across)
    config = dict(config)
    if on_box is not None and ready.layout["dragmode"] != "select":
        # Where dragging moves the figure, the box is drawn by its tool.
        config["modeBarButtonsToRemove"] = [button for button in config.get("modeBarButtonsToRemove", ()) if button != "select2d"]
    told = {
        f"on_{name}_change": partial(_tell, tell, key, name)
        for name, tell in (("box", on_box), ("mark", on_mark))
        if tell is not None
    }
    data = {
        "traces": ready.traces,
        "layout": ready.layout,
        "config": config,
        "alt": alt,
        "library": components.LIBRARY,
        "box": on_box is not None,
        "mark": on_mark is not None,
    }
    components.figure(key=key, data=data, **told)


def _tell(tell: Callable[[Any], None], key: str, name: str) -> None:
    """Hand on what a viewer did to a figure."""
    tell(st.session_state[key][name])


def _ready(figure: go.Figure, drag: Drag | None) -> Dressed:
    """Return a figure as this viewer's browser gets it; ``drag`` is what dragging does where something can be chosen from it."""
    title = figure.layout.xaxis.title
    if title.text == TIME_TITLE:
        title.text = with_zone(title.text, st.context.timezone, st.context.timezone_offset, shown_span(figure))
    if drag is not None:
        figure.layout.dragmode = figure.layout.dragmode or drag
    return dressed(figure, theme_mode())


def theme_mode() -> Mode:
    """Return the viewer's theme; light until the browser has said."""
    return "dark" if st.context.theme.type == "dark" else "light"
