"""What a hard budget with capped output reservations refuses, how far it can be overspent, and who holds what now."""

import streamlit as st

from horde_policy.ui import budget_page, shell
from horde_policy.ui.address import read_state
from horde_policy.ui.budget_calculator import show_calculator
from horde_policy.ui.budget_controls import show_choices
from horde_policy.ui.budget_desk import budget_desk
from horde_policy.ui.budget_ledger import show_ledger

opened = budget_page.open_budget()
# What a step of the workshop is about stands first, so that the room sees it.
first = st.container()
answer = st.container()
show_choices(opened.state, budget_desk(), opened.table, opened.automatic)
result = budget_page.replay(opened, answer)
with answer:
    budget_page.show_source(opened, result)
    budget_page.show_title(budget_page.title_of(opened, result))
if result is not None:
    budget_page.show_inputs(opened, result)
    budget_page.show_figures(opened, result)
    budget_page.show_details(result)
    budget_page.show_files(opened, result)
budget_page.show_rules()
with first if shell.shows_first("request") else st.container():
    show_calculator(opened.state, opened.table)
show_ledger(read_state()[0])
