"""Is text generation all right, which model is at the floor, and why: one row a model."""

import streamlit as st

from horde_policy.ui import board_page, components, controls
from horde_policy.ui.page import open_source, show_problems
from horde_policy.views import overview

opened = open_source()
board, pulse = opened.board, opened.board.pulse

banner = overview.banner_text(pulse)
if banner:
    st.warning(banner, icon=":material/construction:")
st.title(overview.headline(pulse, board.settings), anchor=False)
st.caption(overview.introduction(board.settings, demo=opened.snapshot.source_kind == "demo"))
components.pulse(key="overview.pulse", data={"tiles": overview.pulse_tiles(pulse, opened.status)})
if not opened.state.wall:
    controls.board_filters(opened.state)
board_page.show_board(opened)
show_problems(opened.snapshot)
