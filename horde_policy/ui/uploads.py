"""What this session has uploaded, whatever for: its name, what it was understood as, and how it is forgotten.

A session remembers names and keys only. What was read lies with the page that reads it, named by its content.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

import streamlit as st

from horde_policy.ui import address, replay_desk, review_library
from horde_policy.views.state import ViewState

__all__ = ["KINDS", "Upload", "forget", "forget_here", "listed", "remember"]

Kind = Literal["exports", "traffic"]

KINDS: Final[dict[Kind, tuple[str, str, str]]] = {
    "exports": ("exported metrics", "week", "data"),
    "traffic": ("request log", "replay", "traffic"),
}
"""Kind → its words, the page that shows it, and the parameter of that page's address that names it."""

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


def _held() -> list[Upload]:
    held: list[Upload] = st.session_state.setdefault(_HELD, [])
    return held


def listed(kind: Kind | None = None) -> tuple[Upload, ...]:
    """Return the uploads that this session remembers, the newest last; of one kind, if it is named."""
    return tuple(upload for upload in _held() if kind is None or upload.kind == kind)


def remember(upload: Upload) -> None:
    """Remember an upload; the same content twice is one upload, the oldest beyond what is kept of its kind is forgotten."""
    held = _held()
    held[:] = [one for one in held if one.key != upload.key] + [upload]
    for old in listed(upload.kind)[:-MOST_KEPT]:
        forget(old.key)


def forget(key: str) -> None:
    """Forget an upload: its name in this session, and what was read of it in this process."""
    held = _held()
    dropped = [one for one in held if one.key == key]
    held[:] = [one for one in held if one.key != key]
    for one in dropped:
        _FORGET[one.kind](key)


def forget_here(key: str) -> None:
    """Forget an upload, and take it out of the address with what was chosen of it: no page is then asked for what is gone."""
    forget(key)
    review, (view, _) = address.read_review(), address.read_state()
    if review.data == key:
        review = review.changed(data="", start=None, end=None)
    if review.against == key:
        review = review.changed(against="", against_start=None, against_end=None)
    plain = ViewState()
    if view.traffic == key:
        address.write_state(traffic=plain.traffic, hours=plain.hours, copies=plain.copies)
    if view.sweep.sweep == key:
        address.write_state(sweep=plain.sweep)
    if view.budget.requests == key:
        address.write_state(budget=replace(view.budget, requests=plain.budget.requests))
    if review != address.read_review():
        address.write_review(review)


_FORGET: Final[dict[Kind, Callable[[str], None]]] = {
    "exports": lambda key: review_library.library().forget(key),
    "traffic": lambda key: replay_desk.desk().library.forget(key),
}
