"""The headings of a page's parts, as plain HTML.

Streamlit builds its own of a dozen pieces each, and looks at all of them again in every run (decision 0201).
"""

import html
from typing import Final, Literal

import streamlit as st

__all__ = ["HEADINGS", "show_heading"]

HEADINGS: Final = """<style>
.stHtml > :is(h2, h3) {
  margin: 0 0 -1rem; padding: 1rem 0; font-size: 1.08rem; font-weight: 600; line-height: 1.2; letter-spacing: -0.005em; }
.stHtml > h3 { padding-top: 0.75rem; }
</style>"""
"""As Streamlit sets its own in the house's theme."""


def show_heading(words: str, *, level: Literal[2, 3] = 2) -> None:
    """Show the heading of a part of the page; the words are text, whatever they hold."""
    st.html(f"<h{level}>{html.escape(words)}</h{level}>")
