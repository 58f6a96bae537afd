"""The URL as the one place of a view's state: read once a run, written by the controls (T6).

Widgets never own a value: before a run draws them they are set to what the URL says whenever the URL has changed, by a link,
by back and forward, or by another control; a widget that changes writes the URL in its callback. So bounds and option lists
that move cannot reset a choice (T7), and nothing in the URL can stop a page.
"""

import os
from collections.abc import Callable, Mapping

import streamlit as st

from horde_policy.settings import AllowanceSettings, load_settings
from horde_policy.views.grid import query_text
from horde_policy.views.state import ViewState, parse_view_state

__all__ = ["deployment_settings", "link_query", "read_state", "seed", "write_state", "writes"]

_SEEN = "address.seen"
_SEEDED = "address.seeded"


def deployment_settings() -> AllowanceSettings:
    """Return the allowance's settings of this deployment, from its environment (A6).

    Raises
    ------
    ConfigError
        The environment's settings make no sense; the app then says so in place of its pages.
    """
    return load_settings(AllowanceSettings(), environment=os.environ)


def _query() -> dict[str, list[str]]:
    return {name: st.query_params.get_all(name) for name in st.query_params}


def read_state() -> tuple[ViewState, tuple[str, ...]]:
    """Return the state that the URL stands for, and the notes on what was left out of it."""
    return parse_view_state(_query(), deployment_settings())


def write_state(**changes: object) -> None:
    """Write the state with some fields replaced to the URL; the browser keeps the state before it for its back button."""
    state, _ = read_state()
    st.query_params.from_dict(state.changed(**changes).query(deployment_settings()))


def link_query(state: ViewState, **changes: object) -> str:
    """Return the query string of a link to another page: what all pages share, and the fields named."""
    return query_text(state.shared_query(deployment_settings(), **changes))


def begin_run() -> None:
    """Note whether the URL has changed since the last run; call once, before any widget."""
    query = query_text(_query())
    if st.session_state.get(_SEEN) != query:
        st.session_state[_SEEN] = query
        st.session_state[_SEEDED] = set()


def seed(key: str, value: object) -> None:
    """Set a widget's value to the URL's, once after each change of the URL and whenever the widget has no value yet."""
    seeded: set[str] = st.session_state.setdefault(_SEEDED, set())
    if key not in seeded or key not in st.session_state:
        st.session_state[key] = value
        seeded.add(key)


def writes(name: str, key: str, value: Callable[[object], object] = lambda v: v) -> Callable[[], None]:
    """Return a callback that writes a widget's value to a field of the state.

    Parameters
    ----------
    name
        The field.
    key
        The widget.
    value
        What becomes of the widget's value; raises nothing.
    """

    def write() -> None:
        write_state(**{name: value(st.session_state[key])})

    return write


def query_for(state: ViewState) -> Mapping[str, list[str]]:
    """Return the whole state as a query, for links within a page."""
    return state.query(deployment_settings())
