"""Exports that end early, in words: which they are, and what that means for the figures; may hold hostile text."""

from collections.abc import Sequence

from horde_policy.errors import Problem
from horde_policy.views.text import count, visible

__all__ = ["cut_short_details", "cut_short_text"]


def cut_short_text(problems: Sequence[Problem]) -> str:
    """Return which exports end early, and what that means for the figures; may hold hostile text.

    >>> cut_short_text([Problem("damaged", "a.gz", "the gzip packing ends early; what was read before that is used")])
    'a.gz ends early: what came before is shown, and nobody can tell what is missing'
    """
    names = list(dict.fromkeys(problem.subject for problem in problems))
    who = f"{visible(names[0])} ends" if len(names) == 1 else f"{count(len(names))} exports end"
    return f"{who} early: what came before is shown, and nobody can tell what is missing"


MOST_CUT = 5
"""So many words on exports that end early are told one by one."""


def cut_short_details(problems: Sequence[Problem]) -> tuple[str, ...]:
    """Return one line for each word on an export that ends early, and how many more there are; may hold hostile text."""
    told = tuple(visible(f"{problem.subject}: {problem.text}.") for problem in problems[:MOST_CUT])
    more = len(problems) - MOST_CUT
    return told if more <= 0 else (*told, f"And {count(more)} more.")
