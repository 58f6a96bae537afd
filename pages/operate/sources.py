"""Where the figures come from: every source with its state, age, limit and problems, and the history's recorder."""

import streamlit as st

from horde_policy.ui import sources_page
from horde_policy.ui.page import see_source, show_no_data
from horde_policy.views.sources import headline

state, seen = see_source()
found, now = sources_page.figures()
st.title(headline(found), anchor=False)
sources_page.show_sources(found, state, now)
if seen is not None and seen.snapshot is None:
    show_no_data(state, seen)
sources_page.show_others(now)
sources_page.show_problems(found)
sources_page.show_uploads()
sources_page.show_history(now)
