"""What a page says of what it did not take: in a box, beside the fields that it is about."""

from collections.abc import Iterable

import streamlit as st

from horde_policy.ui.address import take_notices
from horde_policy.views.text import escape_markdown

__all__ = ["say_here", "say_in_one_box"]


def say_in_one_box(notes: Iterable[str]) -> None:
    """Say what was left out of a link, and the like, in one box, a point each; nothing for none. The texts may be hostile."""
    points = [escape_markdown(text) for text in dict.fromkeys(notes)]
    if points:
        st.warning(points[0] if len(points) == 1 else "\n".join(f"- {point}" for point in points), icon=":material/info:")


def say_here(part: str) -> bool:
    """Say what fields of this part of the page did not take (:func:`~horde_policy.ui.address.say`); return whether anything.

    The place of it is there always: what follows keeps its own, or a long run would show it twice until it ends.
    """
    told = take_notices(part)
    with st.empty().container():
        say_in_one_box(told)
    return bool(told)
