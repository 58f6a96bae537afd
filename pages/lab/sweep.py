"""Which settings should be chosen: a search over settings, load and seeds, judged, and written down as a change proposal."""

import streamlit as st

from horde_policy.ui import sweep_figures, sweep_page
from horde_policy.ui.headline import show_headline
from horde_policy.views.sweep_tables import INTRODUCTION, headline

answer = st.container()
opened = sweep_page.open_sweep()
sweep_page.show_controls(opened)
result = sweep_page.result_of(opened)
with answer:
    sweep_page.show_source(opened, result)
    show_headline("Sweep" if result is None else headline(result.proposal))
    st.caption(INTRODUCTION)
if result is not None:
    sweep_page.show_answer(result)
    sweep_page.show_files(result)
    sweep_figures.show_maps(result)
    sweep_figures.show_looked_at(result)
    sweep_page.show_caveats(result)
    sweep_figures.show_settings(result)
    sweep_figures.show_parallel(result)
    sweep_figures.show_points(result)
sweep_page.follow(opened)
