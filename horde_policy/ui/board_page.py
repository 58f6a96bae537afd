"""The Overview: what stands above its board, the board, what its filters hide, and its exports."""

from collections.abc import Mapping

import streamlit as st

from horde_policy.board.rows import BOARD_ROWS
from horde_policy.ui import address, components, controls, history, past_page
from horde_policy.ui.first_minute import show_offers
from horde_policy.ui.headline import show_headline
from horde_policy.ui.page import Opened, show_problems
from horde_policy.ui.tables import show_grid
from horde_policy.ui.way_out import leave_or_enter
from horde_policy.views import overview, overview_words
from horde_policy.views.exports import file_name, headings, to_csv, to_parquet
from horde_policy.views.grid import Cell
from horde_policy.views.state import ViewState
from horde_policy.views.text import count
from horde_policy.views.words import filtered_note

__all__ = ["show_overview"]

SQUARES = (
    "By size: the fuller a square, the more of the ceiling is free at that size; – too large for every worker online, "
    "× no worker online, ? not known. A bar's solid part is what is free at worst, "
    "its hatched part what the named wait gives beyond that. Workers and speed are of those that take this size and context, of "
    "all listed for the model; the tiles count every worker that takes any request. Any model is a request that names none: the "
    "listed queues over the speeds of all that take the size, a mean between idle and busy models; the tile's time to "
    "clear the queue goes by the tokens of the past minute instead."
)
"""What the marks of the board's squares and bars mean, and how its two figures of the whole horde differ."""

TRENDS = (
    "Trend: each step shows the least of its polls, so a line may end below the allowance; where one is not known there is a "
    "gap, at the line's end a ?."
)
"""Why the small lines of the board need not end at the figure beside them."""


def show_overview(opened: Opened, past: history.Past | history.Missing) -> None:
    """Show the whole page: what it is, the answer, the figures, the board, and what the history adds.

    A room that opens the board from a step of the workshop wants to see the board: there the words stand below it.
    """
    state, board = opened.state, opened.board
    introduction = overview_words.rule_sentence(board.settings)
    if not state.step:
        st.markdown(introduction)
    show_headline(overview_words.headline(board))
    words = " ".join([*([introduction] if state.step else []), *overview_words.explanations(board)])
    above, board_itself = st.container(), st.container()
    with st.container() if state.step else above:
        if words:
            st.caption(words)
        show_offers(opened)
        _show_tiles(opened)
        past_page.show_firing(opened, past)
    with board_itself:
        controls.board_filters(state)
        _show_board(opened, past_page.sparks(opened, past))
    history.choose_range(state, past)
    past_page.show_states(opened, past)
    past_page.show_changes(opened, past)
    show_problems(opened.snapshot)


def _show_tiles(opened: Opened) -> None:
    """Show the row of figures of the whole horde."""
    tiles = overview.pulse_tiles(opened.board.pulse, opened.status, ticking=opened.state.refresh_s > 0)
    components.pulse(key="overview.pulse", data={"tiles": tiles})


def _show_board(opened: Opened, sparks: Mapping[str | None, Cell]) -> None:
    """Show one row a model that the filters leave, each a link to its page, and offer the same rows as files.

    ``sparks`` has the small line of each model by its name and of any model by null; empty without a history.
    """
    state, board = opened.state, opened.board
    rows = board.groups if state.grouped else board.rows
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
    said = (SQUARES, TRENDS if sparks else "", overview.queues_apart(board.pulse))
    st.caption(" ".join(part for part in said if part))
    with st.container(horizontal=True, vertical_alignment="center"):
        if shown.hidden:
            _say_hidden(shown)
        else:
            st.caption(f"{count(len(shown.rows))} rows", width="content")
        _offer_files(opened, shown)
        leave_or_enter(on_wall=False)


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
