"""How wide a chooser is whose words differ much in length: what is cut off is not read."""

from typing import Final

from horde_policy.views.text import escape_markdown, shortened_name, visible

__all__ = ["MOST_NAME_CHARACTERS", "chooser_px", "whole_name"]

CHARACTER_PX: Final = 5.8
BESIDE_PX: Final = 60
"""What a chooser has beside its words: its edges and the arrow."""
MOST_NAME_CHARACTERS: Final = 64
"""A longer name is shortened within: a chooser for it would take a row of its own."""


def chooser_px(words: str, least: int) -> int:
    """Return the width of a chooser that shows these words whole, and is no narrower than ``least``.

    >>> chooser_px("Demo", 215), chooser_px("drawn: 29 workers, 21 models (synthetic)", 215)
    (215, 292)
    """
    return max(least, round(CHARACTER_PX * len(words)) + BESIDE_PX)


def whole_name(name: str) -> str:
    """Return a name as a chooser's help says it where the chooser has no room for all of it; empty where it has.

    >>> whole_name("Demo"), whole_name("*" * 65) == f" Chosen: {chr(92)}*" + f"{chr(92)}*" * 64 + "."
    ('', True)
    """
    return "" if shortened_name(name, MOST_NAME_CHARACTERS) == name else f" Chosen: {escape_markdown(visible(name))}."
