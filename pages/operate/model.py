"""Why does a model give what it gives, and what would change it: the curve, its workers in or out, the refusal's words."""

import streamlit as st

from horde_policy.board.detail import model_detail
from horde_policy.ui import model_page
from horde_policy.ui.page import open_source, show_problems
from horde_policy.views.model import answer

opened = open_source()
model_page.choose_models(opened.state, opened.board.fleet.names)
detail = model_detail(opened.board.fleet, opened.state.models, opened.state.max_length_tokens, opened.state.max_context_tokens)
st.title(answer(detail, opened.board.settings), anchor=False)
model_page.show_tiles(detail)
model_page.show_figures(opened, detail)
model_page.show_refusal(opened, detail)
model_page.show_workers(detail)
model_page.show_unknowns(detail)
show_problems(opened.snapshot)
