"""What other settings would have done with real traffic, and who gains or loses by them: runs side by side, files of them."""

import streamlit as st

from horde_policy.ui import replay_page
from horde_policy.ui.replay_controls import show_choices
from horde_policy.ui.replay_settings import show_settings
from horde_policy.views.replay_words import headline

opened = replay_page.open_replay()
replay_page.show_source(opened)
answer = st.container()
show_choices(opened)
show_settings(opened.runs, opened.state.replay.edited)
replay_page.show_notes(opened)
result = replay_page.replayed(opened, answer)
with answer:
    replay_page.show_left_out(opened, result)
    replay_page.show_title("Replay" if result is None else headline(result.scores, result.changes))
if result is not None:
    replay_page.show_runs(result)
    replay_page.show_inputs(result)
    replay_page.show_figures(opened, result)
    replay_page.show_details(opened, result)
    replay_page.show_files(opened, result)
