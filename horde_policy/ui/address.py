"""The URL as the one place of a view's state: read once a run, written by the controls (T6).

Widgets never own a value: before a run draws them they are set to what the URL says whenever the URL has changed, by a link,
by back and forward, or by another control; a widget that changes writes the URL in its callback. So bounds and option lists
that move cannot reset a choice (T7), and nothing in the URL can stop a page.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import NoReturn

import streamlit as st

from horde_policy.errors import InputError
from horde_policy.settings import AllowanceSettings, load_settings
from horde_policy.views.grid import query_text
from horde_policy.views.parameters import AS_IN_COMMANDS
from horde_policy.views.review_state import PARAMETERS as REVIEW_PARAMETERS
from horde_policy.views.review_state import ReviewState, parse_review_state
from horde_policy.views.state import DEMO, ViewState, parse_view_state

__all__ = [
    "Links",
    "begin_run",
    "deployment_settings",
    "first_source",
    "links",
    "read_review",
    "read_state",
    "run_again",
    "say",
    "say_stays",
    "seed",
    "settle",
    "take_notices",
    "write_plain",
    "write_review",
    "write_state",
]

_OF_REVIEW = frozenset(parameter.name for parameter in REVIEW_PARAMETERS)
_OF_REVIEW |= {spelled for spelled, name in AS_IN_COMMANDS.items() if name in _OF_REVIEW}
_SEEN = "address.seen"
_PAGE = "address.page"
_SEEDED = "address.seeded"
_NOTICES = "address.notices"
_UNTAKEN = "address.notices.untaken"
_FIRST_SOURCE = "address.first-source"
_WALL_PAGE = "overview"
_NO_WALL = "The link's wall is left out: only the Overview has a wall's screen."
_NO_NAME = "A part of the link that has no name is left out."


def deployment_settings() -> AllowanceSettings:
    """Return the allowance's settings of this deployment, from its environment (A6).

    Raises
    ------
    ConfigError
        The environment's settings make no sense; the app then says so in place of its pages.
    """
    return load_settings(AllowanceSettings(), environment=os.environ)


def first_source() -> str:
    """Return the source that an address without one stands for, as the run began (:func:`begin_run`)."""
    return str(st.session_state.get(_FIRST_SOURCE, DEMO))


def _query() -> dict[str, list[str]]:
    return {name: st.query_params.get_all(name) for name in st.query_params}


def read_state() -> tuple[ViewState, tuple[str, ...]]:
    """Return the state that the URL stands for, and the notes on what was left out of it, the review's part included.

    It is that of the page that the run began with (:func:`begin_run`): only the Overview has a wall's screen.
    """
    query = _query()
    own = {name: values for name, values in query.items() if name not in _OF_REVIEW and name.strip()}
    state, notes = parse_view_state(own, deployment_settings(), first_source())
    _, review_notes = parse_review_state({name: values for name, values in query.items() if name in _OF_REVIEW})
    more = () if all(name.strip() for name in query) else (_NO_NAME,)
    if state.wall and st.session_state.get(_PAGE) != _WALL_PAGE:
        state, more = state.changed(wall=False), (*more, _NO_WALL)
    return state, (*notes, *review_notes, *more)


def read_review() -> ReviewState:
    """Return the review's part of the state."""
    return parse_review_state({name: values for name, values in _query().items() if name in _OF_REVIEW})[0]


def write_state(**changes: object) -> None:
    """Write the state with some fields replaced to the URL; the browser keeps the state before it for its back button."""
    _write(read_state()[0].changed(**changes), read_review())


def write_plain() -> None:
    """Write what an address without anything stands for: every choice of every page is forgotten."""
    _write(ViewState(settings=deployment_settings()), ReviewState())


def write_review(state: ReviewState) -> None:
    """Write the review's part of the state to the URL; the rest of it stays."""
    _write(read_state()[0], state)


def _write(state: ViewState, review: ReviewState) -> None:
    st.query_params.from_dict(state.query(deployment_settings()) | review.query())


@dataclass(frozen=True, slots=True)
class Links:
    """Makes the query strings of links from one state; the deployment's settings are read once for all of them."""

    state: ViewState
    base: AllowanceSettings

    def elsewhere(self, **changes: object) -> str:
        """Return the query of a link to another page: what all pages share, and the fields named."""
        return query_text(self.state.shared_query(self.base, **changes))

    def within(self, **changes: object) -> str:
        """Return the query of a link to the same page with some fields changed."""
        return query_text(self.state.changed(**changes).query(self.base))


def links(state: ViewState) -> Links:
    """Return what makes the links of a page that shows this state."""
    return Links(state, deployment_settings())


def begin_run(page: str = "", *, first_source: str = DEMO) -> None:
    """Note whether the URL has changed since the last run, which was of ``page`` or another; call once, before any widget.

    ``first_source`` is the deployment's, which an address without a source stands for.

    Streamlit hands the query of a link that leads to the page itself to the script, but leaves the browser's address as it was;
    so the query is written again. The browser takes it for a new entry of its history only where it differs from its address.
    """
    st.session_state[_FIRST_SOURCE] = first_source
    query = query_text(_query())
    seen = st.session_state.get(_SEEN)
    if seen is not None and seen != query and st.session_state.get(_PAGE) == page:
        st.query_params.from_dict(_query())
    st.session_state[_PAGE] = page
    if seen != query:
        st.session_state[_SEEN] = query
        st.session_state[_SEEDED] = []


def seed(key: str, value: object, *, in_popover: bool = False) -> None:
    """Set a widget's value to the URL's, once after each change of the URL and whenever the widget has no value yet.

    What stands ``in_popover`` the browser builds each time it is opened, from the run before: a value that this run did not set
    would be missing there, each chooser at its first option, and taken for the viewer's choice. So each run sets it again.
    """
    seeded: list[str] = st.session_state.setdefault(_SEEDED, [])
    if key not in seeded or key not in st.session_state:
        st.session_state[key] = value
        seeded.append(key)
    elif in_popover:
        st.session_state[key] = st.session_state[key]


def settle(key: str, value: object) -> None:
    """Set a widget to what was understood of what was typed into it; call in its callback.

    Where that is what the URL says already, the URL does not change, and the text would stay in the widget as it was typed.
    """
    st.session_state[key] = value


def run_again(*, settled: bool = False) -> NoReturn:
    """Run the page again, with every widget set to what the URL says.

    The browser builds a widget some time after the run that drew it, and hears a value only from the run that sets it. A run that
    follows at once would be all that it builds from: each chooser at its first option, each slider at its least, and the next
    run would take that for the viewer's choice and write it to the URL. ``settled`` says that the browser has long built its
    widgets, so that what is being typed stays.
    """
    if not settled:
        st.session_state[_SEEDED] = []
    st.rerun()


def say(text: str, *, again: str | Collection[str] = (), at: str = "") -> None:
    """Leave a notice for the next run; ``again`` names a widget, or several, to be set back to what the URL says.

    ``at`` names the part of the page that shows it (:func:`take_notices`): one at the top is out of sight from far down.
    """
    st.session_state.setdefault(_NOTICES, []).append((at, text))
    back = {again} if isinstance(again, str) else set(again)
    st.session_state[_SEEDED] = [key for key in st.session_state.get(_SEEDED, []) if key not in back]


def say_stays(what: str, error: InputError, *, again: str, at: str = "") -> None:
    """Say that what one field holds stays, and why; the field is named by ``what`` alone, not once more by the error."""
    say(f"{what}: {error.told}.", again=again, at=at)


def take_notices(at: str = "") -> list[str]:
    """Return the notices for a part of the page that were left since the last run, and forget them.

    Those that the part they were left for did not take, as it is no longer there, are for the top of the page the next time.
    """
    left: list[tuple[str, str]] = st.session_state.pop(_NOTICES, [])
    untaken: list[tuple[str, str]] = st.session_state.pop(_UNTAKEN, [])
    if at:
        st.session_state[_NOTICES] = [notice for notice in left if notice[0] != at]
        st.session_state[_UNTAKEN] = [notice for notice in untaken if notice[0] != at]
        return [text for place, text in (*untaken, *left) if place == at]
    st.session_state[_UNTAKEN] = [notice for notice in left if notice[0]]
    return [text for _, text in untaken] + [text for place, text in left if not place]
