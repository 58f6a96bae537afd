"""The dashboard: what stands around every page, then the page that the address names."""

from pathlib import Path

import streamlit as st

from horde_policy.ui import shell

PAGES = Path(__file__).parent / "pages"
SECTIONS = {
    "Operate": [
        shell.PageEntry(
            PAGES / "operate" / "overview.py",
            "overview",
            "Overview",
            ":material/monitoring:",
            "Is text generation all right, which model is at the floor, and why?",
        ),
        shell.PageEntry(
            PAGES / "operate" / "model.py",
            "model",
            "Model",
            ":material/query_stats:",
            "Why does a model give what it gives, and what would change it?",
        ),
    ],
}

st.set_page_config(page_title="horde policy", page_icon=str(PAGES / "icon.png"), layout="wide", initial_sidebar_state=220)
shell.frame(SECTIONS).run()
