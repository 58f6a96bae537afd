"""The one way to show a figure: never without its sentence, never full of chrome."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from horde_policy.views.figures.dress import dressed
from horde_policy.views.figures.style import PLOTLY_CONFIG, TIME_TITLE, Mode
from horde_policy.views.figures.zones import shown_span, with_zone

__all__ = ["show_figure", "theme_mode"]


def show_figure(
    figure: go.Figure,
    *,
    alt: str,
    key: str,
    config: Mapping[str, Any] = PLOTLY_CONFIG,
    on_box: Callable[[Any], None] | None = None,
    on_mark: Callable[[Any], None] | None = None,
) -> None:
    """Show a Plotly figure over the full width.

    Parameters
    ----------
    figure
        From ``horde_policy.views.figures``; an empty figure is fine, an empty list is not (T9).
    alt
        One sentence with what the figure shows; required, and not blank.
    key
        Of the page, ``<page>.<thing>``: two figures with equal content need different ones.
    config
        Of Plotly's tool bar.
    on_box
        Called with the ends on the axis x of a box that was drawn over the figure, as Plotly tells them.
    on_mark
        Called with the ``customdata`` of the mark that was clicked; a mark without any tells nothing. Lines without markers and
        heatmaps have no marks (T9).

    Raises
    ------
    ValueError
        ``alt`` is blank.
    """
    if not alt.strip():
        raise ValueError("a figure needs its alt text")
    title = figure.layout.xaxis.title
    if title.text == TIME_TITLE:
        title.text = with_zone(title.text, st.context.timezone, st.context.timezone_offset, shown_span(figure))
    arguments: dict[str, Any] = {"width": "stretch", "theme": None, "key": key, "config": dict(config), "alt": alt}
    modes: list[Literal["box", "points"]] = []
    modes += ["box"] if on_box is not None else []
    modes += ["points"] if on_mark is not None else []
    if not modes:
        st.plotly_chart(dressed(figure, theme_mode()), **arguments)
        return
    # What Streamlit would set in the browser, each in a drawing of its own, unless it is there already.
    drag = figure.layout.dragmode or ("pan" if on_mark is not None else "select")
    figure.layout.dragmode, figure.layout.clickmode = drag, "event" if drag == "select" else "event+select"
    if on_box is not None and drag != "select":  # where dragging moves the figure, the box is drawn by its tool
        kept = [button for button in config.get("modeBarButtonsToRemove", ()) if button != "select2d"]
        arguments["config"] |= {"modeBarButtonsToRemove": kept}

    def selected() -> None:
        selection = st.session_state[key].selection
        # a box selects the marks inside it too, so it is looked for first
        if selection.box and on_box is not None:
            on_box(selection.box[0]["x"])
        elif on_mark is not None and (data := next((point.get("customdata") for point in selection.points), None)):
            on_mark(data)

    st.plotly_chart(dressed(figure, theme_mode()), on_select=selected, selection_mode=modes, **arguments)


def theme_mode() -> Mode:
    """Return the viewer's theme; light until the browser has said."""
    return "dark" if st.context.theme.type == "dark" else "light"
