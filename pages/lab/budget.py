"""What a hard budget with capped output reservations refuses, how far it can be overspent, and who holds what now."""

import streamlit as st

from horde_policy.ui import budget_page
from horde_policy.ui.address import read_state
from horde_policy.ui.budget_calculator import show_calculator
from horde_policy.ui.budget_controls import show_choices
from horde_policy.ui.budget_desk import budget_desk
from horde_policy.ui.budget_ledger import show_ledger
from horde_policy.views.budget_words import INTRODUCTION

opened = budget_page.open_budget()
st.title(budget_page.title_of(opened), anchor=False)
st.caption(INTRODUCTION)
show_choices(opened.state, budget_desk(), opened.table, opened.automatic)
budget_page.show_trouble(opened)
if opened.result is not None:
    budget_page.show_inputs(opened, opened.result)
    budget_page.show_figures(opened, opened.result)
    budget_page.show_details(opened.result)
    budget_page.show_files(opened, opened.result)
show_calculator(opened.state, opened.table)
show_ledger(read_state()[0])
