"""The button that leads to the wall's screen or out of it; the way out is there whatever the source gives."""

import streamlit as st

from horde_policy.ui import address

__all__ = ["leave_or_enter"]

FROM_THE_TOP = "overview.from-the-top"
TO_TOP = """<script>document.querySelector('[data-testid="stMain"]').scrollTo(0, 0)</script>"""


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
