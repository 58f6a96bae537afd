"""The title of a page: what it shows, in one sentence."""

import streamlit as st

from horde_policy.views.text import unbroken

__all__ = ["show_headline"]


def show_headline(sentence: str) -> None:
    """Show a page's title; no line of it ends within a figure, however narrow the screen is."""
    st.title(unbroken(sentence), anchor=False)
