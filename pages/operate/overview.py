"""Is text generation all right, which model is at the floor, and why: one row a model."""

import streamlit as st

from horde_policy.ui import board_page, wall
from horde_policy.ui.history import find_past
from horde_policy.ui.page import open_source
from horde_policy.views import overview_words

opened = open_source()
past = find_past(opened, whole=True)

banner = overview_words.banner_text(opened.board.pulse)
if banner:
    st.warning(banner, icon=":material/construction:")
if opened.state.wall:
    wall.show_wall(opened, past)
else:
    board_page.show_overview(opened, past)
