"""What somebody who has just opened the demo can do next: live data, the week, other settings, the workshop."""

import streamlit as st

from horde_policy.sources.catalogue import PUBLIC_KEY, URL_KEY
from horde_policy.ui import address, live
from horde_policy.ui.page import Opened
from horde_policy.ui.shell import link_to
from horde_policy.views.overview_words import MADE_UP

__all__ = ["show_offers"]


def show_offers(opened: Opened) -> None:
    """Show on the demo that its figures are made up, and four ways on; nothing on a wall's screen or in a workshop."""
    if opened.snapshot.source_kind != "demo" or opened.state.wall or opened.state.step:
        return
    base = address.deployment_settings()
    configured = live.source_labels()
    source = URL_KEY if URL_KEY in configured else PUBLIC_KEY
    offers = (
        ("overview", "See live data", ":material/sensors:", opened.state.shared_query(base, source=source)),
        ("week", "Read the week", ":material/calendar_month:", opened.state.shared_query(base)),
        ("replay", "Try settings", ":material/tune:", opened.state.shared_query(base)),
        ("guide", "Take the workshop", ":material/school:", opened.state.shared_query(base)),
    )
    with st.container(horizontal=True, vertical_alignment="center", key="overview.offers"):
        for page, label, icon, query in offers:
            link_to(page, label, query, icon=icon)
        st.caption(MADE_UP, width="content")
