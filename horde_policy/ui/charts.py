"""The one way to show a figure: never without its sentence, never full of chrome."""

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from horde_policy.views.figures.style import PLOTLY_CONFIG, Mode

__all__ = ["show_figure", "theme_mode"]


def show_figure(figure: go.Figure, *, alt: str, key: str, config: Mapping[str, Any] = PLOTLY_CONFIG) -> None:
    """Show a Plotly figure over the full width.

    Parameters
    ----------
    figure
        From ``horde_policy.views.figures``; an empty figure is fine, an empty list is not (T9).
    alt
        One sentence with what the figure shows; required, and not blank.
    key
        Of the page, ``<page>.<thing>``: two figures with equal content need different ones.

    Raises
    ------
    ValueError
        ``alt`` is blank.
    """
    if not alt.strip():
        raise ValueError("a figure needs its alt text")
    st.plotly_chart(figure, width="stretch", theme="streamlit", key=key, config=dict(config), alt=alt)


def theme_mode() -> Mode:
    """Return the viewer's theme; light until the browser has said."""
    return "dark" if st.context.theme.type == "dark" else "light"
