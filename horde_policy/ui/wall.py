"""The Overview on a screen on a wall: one line of figures, what fires, and as many models as fit, the worst first."""

import streamlit as st

from horde_policy.ui import address, components, history, past_page
from horde_policy.ui.page import Opened
from horde_policy.views import overview, overview_words
from horde_policy.views.wall import wall_data

__all__ = ["leave_or_enter", "show_wall"]

FROM_THE_TOP = "overview.from-the-top"
TO_TOP = """<script>document.querySelector('[data-testid="stMain"]').scrollTo(0, 0)</script>"""


def show_wall(opened: Opened, past: history.Past | str) -> None:
    """Show the page as a wall's screen has room for it; the way out is a button in its corner."""
    board = opened.board
    st.title(overview_words.headline(board), anchor=False)
    components.pulse(key="overview.pulse", data={"tiles": overview.wall_tiles(board.pulse, opened.status)})
    past_page.show_firing(opened, past)
    data = wall_data(board, opened.state, address.links(opened.state).elsewhere, source=opened.status.source)
    components.wall(key="overview.wall-board", data=data)
    leave_or_enter(on_wall=True)


def leave_or_enter(*, on_wall: bool) -> None:
    """Show the button that leads to the wall's screen or out of it; either begins at the top of the page."""
    if st.session_state.pop(FROM_THE_TOP, False):
        st.html(TO_TOP, unsafe_allow_javascript=True)
    st.button(
        "Leave the wall screen" if on_wall else "Wall screen",
        key="overview.wall",
        on_click=_set_wall,
        args=(not on_wall,),
        type="tertiary",
        icon=":material/close_fullscreen:" if on_wall else ":material/tv:",
        help=None if on_wall else "The board alone, the worst first, in large type.",
    )


def _set_wall(on: bool) -> None:  # noqa: FBT001 (a callback's argument)
    address.write_state(wall=on)
    st.session_state[FROM_THE_TOP] = True
