"""What this session has uploaded, whatever for: its name, what it was understood as, and how it is forgotten.

A session remembers names and keys only. What was read lies with the page that reads it, named by its content.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal
from weakref import WeakSet

import streamlit as st

from horde_policy.ui import address, replay_desk, review_library
from horde_policy.views.state import ViewState

if TYPE_CHECKING:
    from horde_policy.ui.budget_desk import BudgetDesk

__all__ = ["KINDS", "Held", "Sessions", "Upload", "forget", "forget_here", "listed", "remember", "sessions"]

Kind = Literal["exports", "traffic", "requests", "prices", "sweep"]

KINDS: Final[dict[Kind, str]] = {
    "exports": "Week, Decisions, Waits",
    "traffic": "Replay, Sweep",
    "requests": "Budget: requests",
    "prices": "Budget: prices",
    "sweep": "Sweep",
}
"""Kind → the pages that it is for."""

MOST_KEPT = 4
"""So many uploads of a kind a session keeps; the oldest is forgotten for one more."""

_HELD = "uploads.held"


@dataclass(frozen=True, slots=True)
class Upload:
    """One upload: its key, what it is for, its files' names (hostile text), what it was understood as, and what was left."""

    key: str
    kind: Kind
    name: str
    understood: str
    left: str


@dataclass(eq=False)
class Held:
    """What one session has uploaded; gone with the session."""

    uploads: list[Upload] = field(default_factory=list)


@dataclass(slots=True)
class Sessions:
    """What every session holds; one for the process."""

    lock: Lock = field(default_factory=Lock)
    held: "WeakSet[Held]" = field(default_factory=WeakSet)


@st.cache_resource(show_spinner=False)
def sessions() -> Sessions:
    """Return what every session holds, the process's one."""
    return Sessions()


def _held() -> list[Upload]:
    if _HELD not in st.session_state:
        st.session_state[_HELD] = Held()
    own: Held = st.session_state[_HELD]
    every = sessions()
    with every.lock:
        every.held.add(own)
    return own.uploads


def _held_elsewhere(upload: Upload, own: list[Upload]) -> bool:
    every = sessions()
    with every.lock:
        others = [held.uploads for held in every.held if held.uploads is not own]
    return any((one.kind, one.key) == (upload.kind, upload.key) for held in others for one in held)


def listed(kind: Kind | None = None) -> tuple[Upload, ...]:
    """Return the uploads that this session remembers, the newest last; of one kind, if it is named."""
    return tuple(upload for upload in _held() if kind is None or upload.kind == kind)


def remember(upload: Upload) -> None:
    """Remember an upload; the same content twice is one upload, the oldest beyond what is kept of its kind is forgotten."""
    held = _held()
    held[:] = [one for one in held if (one.kind, one.key) != (upload.kind, upload.key)] + [upload]
    for old in listed(upload.kind)[:-MOST_KEPT]:
        forget(old)


def forget(upload: Upload) -> None:
    """Forget an upload: its name in this session, and what was read of it in this process.

    What another session has uploaded, too, stays for that one: the same content is kept once.
    """
    held = _held()
    held[:] = [one for one in held if (one.kind, one.key) != (upload.kind, upload.key)]
    if not _held_elsewhere(upload, held):
        _FORGET[upload.kind](upload.key)


def forget_here(upload: Upload) -> None:
    """Forget an upload, and take it out of the address with what was chosen of it: no page is then asked for what is gone."""
    forget(upload)
    key, plain, view = upload.key, ViewState(), address.read_state()[0]
    match upload.kind:
        case "exports":
            _leave_out_of_the_review(key)
        case "traffic" if view.traffic == key:
            address.write_state(traffic=plain.traffic, hours=plain.hours, copies=plain.copies)
        case "sweep" if view.sweep.sweep == key:
            address.write_state(sweep=plain.sweep)
        case "requests" if view.budget.requests == key:
            address.write_state(budget=replace(view.budget, requests=plain.budget.requests))
        case "prices" if view.budget.prices == key:
            address.write_state(budget=replace(view.budget, prices=plain.budget.prices, model=plain.budget.model))


def _leave_out_of_the_review(key: str) -> None:
    review = address.read_review()
    if review.data == key:
        review = review.changed(data="", start=None, end=None)
    if review.against == key:
        review = review.changed(against="", against_start=None, against_end=None)
    if review != address.read_review():
        address.write_review(review)


def _budget_desk() -> "BudgetDesk":
    from horde_policy.ui.budget_desk import budget_desk  # only a session that uploaded for it has loaded it

    return budget_desk()


def _forget_sweep(key: str) -> None:
    from horde_policy.ui.sweep_desk import sweep_desk  # as above

    sweep_desk().forget(key)


_FORGET: Final[dict[Kind, Callable[[str], None]]] = {
    "exports": lambda key: review_library.library().forget(key),
    "traffic": lambda key: replay_desk.desk().library.forget(key),
    "requests": lambda key: _budget_desk().forget_requests(key),
    "prices": lambda key: _budget_desk().forget_prices(key),
    "sweep": _forget_sweep,
}
