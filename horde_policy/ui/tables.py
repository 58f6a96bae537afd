"""The two ways to show rows: the page's own table of real HTML, and Streamlit's data frame where rows are many.

Rows are named by ids and never by places: a selection is turned into an id the moment it is made, and is dropped when the id
is gone (T4).
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from horde_policy.ui import components
from horde_policy.views.grid import Column, Row, grid_data

__all__ = ["selected_id", "show_frame", "show_grid"]


def show_grid(
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    key: str,
    alt: str,
    empty: str = "",
    here: str = "",
    target: str = "",
    ceiling: int = 0,
) -> None:
    """Show a table whose rows can be read, reached by keyboard and opened as links; up to some thousand rows.

    Raises
    ------
    ValueError
        ``alt`` is blank, or two rows have one id.
    """
    components.grid(key=key, data=grid_data(columns, rows, alt=alt, empty=empty, here=here, target=target, ceiling=ceiling))


def show_frame(
    frame: pl.DataFrame,
    *,
    key: str,
    alt: str,
    column_config: Mapping[str, Any] | None = None,
    id_column: str | None = None,
    on_select: Callable[[str | None], None] | None = None,
    height: int | None = None,
) -> None:
    """Show a polars frame in Streamlit's data frame, sorted as it comes.

    Parameters
    ----------
    frame
        In a total order; cells are text, numbers and instants that the caller has made readable.
    key, alt
        The element's key, ``<page>.<thing>``, and its sentence; both required.
    column_config
        Streamlit's column configuration.
    id_column
        The column that names a row; with it one row can be selected, and :func:`selected_id` returns its id.
    on_select
        Called with the id that was selected, null when the selection was taken back.
    height
        In pixels; null for Streamlit's own.

    Raises
    ------
    ValueError
        ``alt`` is blank.
    """
    if not alt.strip():
        raise ValueError("a table needs its alt text")
    arguments: dict[str, Any] = {"hide_index": True, "alt": alt, "column_config": column_config}
    if height is not None:
        arguments["height"] = height
    if id_column is None:
        st.dataframe(frame, **arguments)
        return
    ids = frame[id_column].cast(pl.String).to_list()
    holder = _selection_key(key)
    if st.session_state.get(holder) not in ids:
        st.session_state[holder] = None
    chosen = st.session_state[holder]
    # A selection is kept by place, so other rows or another order make another element, which starts at the id's new place.
    element = f"{key}.{hashlib.blake2b(json.dumps(ids).encode(), digest_size=8).hexdigest()}"

    def picked() -> None:
        rows = st.session_state[element].selection.rows
        st.session_state[holder] = ids[rows[0]] if rows and rows[0] < len(ids) else None
        if on_select is not None:
            on_select(st.session_state[holder])

    st.dataframe(
        frame,
        key=element,
        on_select=picked,
        selection_mode="single-row",
        selection_default={"selection": {"rows": [ids.index(chosen)] if chosen is not None else []}},
        **arguments,
    )


def selected_id(key: str) -> str | None:
    """Return the id of the row selected in the frame of that key; null for none, or when the id is gone."""
    value = st.session_state.get(_selection_key(key))
    return value if isinstance(value, str) else None


def _selection_key(key: str) -> str:
    return f"{key}.selected-id"
