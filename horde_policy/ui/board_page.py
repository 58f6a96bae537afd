"""The board of the Overview: its table, what its filters hide, and its exports."""

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from horde_policy.board.rows import BOARD_ROWS
from horde_policy.ui import address
from horde_policy.ui.page import Opened
from horde_policy.ui.tables import show_grid
from horde_policy.views import overview
from horde_policy.views.exports import file_name, headings, to_csv, to_parquet
from horde_policy.views.grid import Cell
from horde_policy.views.state import ViewState
from horde_policy.views.text import count
from horde_policy.views.words import filtered_note

__all__ = ["show_board"]

FROM_THE_TOP = "overview.from-the-top"
TO_TOP = """<script>document.querySelector('[data-testid="stMain"]').scrollTo(0, 0)</script>"""

SQUARES = (
    "By size: the fuller a square, the more of the ceiling is free at that size; – too large for every worker online, "
    "× no worker online, ? not known. A bar's solid part is what is free at worst, "
    "its hatched part what the named wait gives beyond that. Workers are those that take this size and context, of all "
    "listed for the model; the tiles count every worker that takes any request."
)
"""What the marks of the board's squares and bars mean."""


def show_board(opened: Opened, sparks: Mapping[str | None, Cell]) -> None:
    """Show one row a model that the filters leave, each a link to its page, and offer the same rows as files.

    ``sparks`` has the small line of each model by its name and of any model by null; empty without a history.
    """
    state, board = opened.state, opened.board
    rows = board.groups if state.grouped else board.rows
    if state.wall and state.sort == ViewState().sort:
        state = replace(state, sort="allowance")  # a screen has room for few: those with the least first
    shown = overview.shown_rows(rows, state)
    links = address.links(state)
    show_grid(
        overview.board_columns(state, board.strip_sizes, links.within, with_trend=bool(sparks)),
        overview.board_rows(shown, board, links.elsewhere, sparks),
        key="overview.board",
        alt=f"Models of {opened.status.source} with their free output allowance at {count(state.max_length_tokens)} tokens",
        here="overview",
        target="model",
        ceiling=board.settings.ceiling_tokens,
    )
    st.caption(SQUARES)
    _show_from_the_top()
    with st.container(horizontal=True, vertical_alignment="center"):
        if state.wall:
            st.button("Leave the wall screen", key="overview.wall", on_click=_set_wall, args=(False,), type="tertiary")
            return
        if shown.hidden:
            _say_hidden(shown)
        else:
            st.caption(f"{count(len(shown.rows))} rows", width="content")
        _offer_files(opened, shown)
        st.button(
            "Wall screen",
            key="overview.wall",
            on_click=_set_wall,
            args=(True,),
            type="tertiary",
            icon=":material/tv:",
            help="The board alone, in large type.",
        )


def _set_wall(on: bool) -> None:  # noqa: FBT001 (a callback's argument)
    address.write_state(wall=on)
    st.session_state[FROM_THE_TOP] = True


def _show_from_the_top() -> None:
    """Scroll to the top once after the wall screen was chosen or left: its button stands at the end of the board."""
    if st.session_state.pop(FROM_THE_TOP, False):
        st.html(TO_TOP, unsafe_allow_javascript=True)


def _say_hidden(shown: overview.Shown) -> None:
    hidden = (
        filtered_note(shown.hidden)
        if not shown.rows
        else f"{count(len(shown.rows))} rows; {count(shown.hidden)} hidden by filters"
    )
    st.caption(hidden, width="content")
    st.button("Show all", key="overview.reset", on_click=_reset_filters, type="tertiary")


def _reset_filters() -> None:
    plain = ViewState()
    address.write_state(find=plain.find, states=plain.states)


def _offer_files(opened: Opened, shown: overview.Shown) -> None:
    """Offer what is shown as CSV and Parquet; a file is made only when it is asked for."""
    board, stamp = opened.board, opened.stamp
    st.download_button(
        "CSV",
        lambda: to_csv(overview.export_frame(board, shown), headings(BOARD_ROWS), stamp),
        file_name("overview", stamp, "csv"),
        "text/csv",
        key="overview.csv",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
        help="The rows shown, with units, source, time and settings.",
    )
    st.download_button(
        "Parquet",
        lambda: to_parquet(overview.export_frame(board, shown), stamp),
        file_name("overview", stamp, "parquet"),
        "application/vnd.apache.parquet",
        key="overview.parquet",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
        help="The rows shown, with their types.",
    )
