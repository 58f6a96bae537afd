"""A field for a number that is never taken for its least value when somebody clears it.

Streamlit's own field, given a value to begin with, hands the least number it takes to the script when it is cleared. Here an
empty field is no answer: what it held stays, and the page says so.
"""

from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st

from horde_policy.ui.address import say

__all__ = ["left_empty", "number_field"]


def number_field(
    label: str,
    least: float,
    most: float,
    *,
    key: str,
    on_change: Callable[..., None] | None = None,
    args: tuple[Any, ...] = (),
    told_at: str = "",
    **arguments: Any,
) -> None:
    """Show a field for a number, whose value was seeded; ``on_change`` is called where it holds one.

    ``told_at`` is the part of the page that says what was not taken (:func:`~horde_policy.ui.address.say`).

    Within a form there is no ``on_change``: what is done with the form asks :func:`left_empty`.
    """
    _labels()[key] = label
    if on_change is None:
        st.number_input(label, least, most, value=None, key=key, **arguments)
        return

    def changed() -> None:
        if st.session_state[key] is None:
            say(f"{label} stays as it is: nothing was typed.", again=key, at=told_at)
        else:
            on_change(*args)

    st.number_input(label, least, most, value=None, key=key, on_change=changed, **arguments)


def left_empty(keys: Iterable[str], *, told_at: str = "") -> bool:
    """Return whether one of a form's fields of this kind holds no number; it is then said, and what that one held comes back.

    What was typed into the others stays typed. ``told_at`` is as in :func:`number_field`.
    """
    labels = _labels()
    empty = [key for key in keys if key in labels and st.session_state[key] is None]
    if empty:
        say(f"Nothing was changed: {', '.join(labels[key] for key in empty)} was left empty.", again=empty, at=told_at)
    return bool(empty)


def _labels() -> dict[str, str]:
    """Return the label of each field that this session was shown, by key."""
    labels: dict[str, str] = st.session_state.setdefault("fields.labels", {})
    return labels
