"""Is text generation all right, which model is at the floor, and why?"""

import streamlit as st

from horde_policy.ui import address, cache, components, controls, live
from horde_policy.ui.tables import show_grid
from horde_policy.views import overview

state, _ = address.read_state()
look = live.look(state.source)
board = cache.board_of(look.snapshot, look.snapshot_id, state.settings, max_length_tokens=state.max_length_tokens, max_context_tokens=state.max_context_tokens)
st.subheader(overview.headline(board.pulse, board.settings))
st.caption(overview.rule_sentence(board.settings))
components.pulse(key="overview.pulse", data={"tiles": overview.pulse_tiles(board.pulse, age="5 s", at="19:39:01 UTC"), "age_s": 5, "age_limit_s": 120, "ticking": True})
controls.board_filters(state)
rows = board.groups if state.grouped else board.rows
shown = overview.shown_rows(rows, state)
show_grid(overview.board_columns(state, board.strip_sizes, lambda **c: address.link(state, within=True, **c)), overview.board_rows(shown, board, lambda **c: address.link(state, **c)), key="overview.board", alt="Models and their free output allowance", here="overview", target="model")
