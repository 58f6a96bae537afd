"""Is text generation all right, which model is at the floor, and why: one row a model."""

import streamlit as st

from horde_policy.ui import board_page, components, controls, past_page
from horde_policy.ui.first_minute import show_offers
from horde_policy.ui.history import choose_range, find_past
from horde_policy.ui.page import open_source, show_problems
from horde_policy.views import overview, overview_words

opened = open_source()
board, pulse = opened.board, opened.board.pulse

banner = overview_words.banner_text(pulse)
if banner:
    st.warning(banner, icon=":material/construction:")
introduction = overview_words.introduction(board.settings, demo=opened.snapshot.source_kind == "demo")
if not opened.state.step and not opened.state.wall:
    st.markdown(introduction)
st.title(overview_words.headline(board), anchor=False)
words = " ".join([*([introduction] if opened.state.step else []), *overview_words.explanations(board)])
# A room that opens the board from a step of the workshop wants to see the board: what stands above it otherwise stands below.
above = st.container()
board_itself = st.container()
with st.container() if opened.state.step else above:
    if words and not opened.state.wall:
        st.caption(words)
    show_offers(opened)
    tiles = overview.pulse_tiles(pulse, opened.status, ticking=opened.state.refresh_s > 0)
    components.pulse(key="overview.pulse", data={"tiles": tiles})
    past = find_past(opened, whole=True)
    past_page.show_firing(opened, past)
    if not opened.state.wall and not isinstance(past, str):
        choose_range(opened.state, past)
with board_itself:
    if not opened.state.wall:
        controls.board_filters(opened.state)
    board_page.show_board(opened, past_page.sparks(opened, past))
if not opened.state.wall:
    past_page.show_states(opened, past)
    past_page.show_changes(opened, past)
show_problems(opened.snapshot)
