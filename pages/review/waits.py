"""Were the estimates honest, and what did payers wait: distributions on the rule's marks, and the bounds of the funded wait."""

import streamlit as st

from horde_policy.ui import review_waits, shell
from horde_policy.ui.headline import show_headline
from horde_policy.ui.review_page import open_review, show_data, show_looked_at
from horde_policy.views.review_headlines import waits_headline

opened = open_review()
show_headline(waits_headline(opened.exported, opened.settings))
show_looked_at(opened, only=("requester",))
# What a step of the workshop is about stands first, so that the room sees it.
first = st.container()
found = review_waits.show_estimates(opened)
review_waits.show_requesters(opened, found)
review_waits.show_other(opened)
with first if shell.shows_first("funded") else st.container():
    review_waits.show_funded(opened)
show_data(opened)
