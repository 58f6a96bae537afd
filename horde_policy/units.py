"""Units shared by all parts: what a number is called and how large it may be."""

import re

MAX_LENGTH_LIMIT_TOKENS = 16_384
"""Text routes accept up to this many output tokens (A23)."""

DEFAULT_MAX_LENGTH_TOKENS = 80
"""The API's default ``max_length`` (horde.md §2), and the board's default size."""

DEFAULT_MAX_CONTEXT_TOKENS = 2_048
"""The API's default ``max_context_length`` (horde.md §2)."""

JOB_TIME_LIMIT_S = 150.0
"""Text jobs time out after this long, whatever their size (A32)."""

MICROSECONDS_PER_S = 1_000_000

_FIGURE = re.compile(r"([+−]?[0-9][0-9,.]*) ([^0-9]+)")


def one_or_range(low: str, high: str) -> str:
    """Return a range in words from its two ends as they are written, or the one value where both read alike.

    A unit that both ends have is said once, at the end.

    >>> one_or_range("512", "4,096"), one_or_range("512", "512"), one_or_range("60 s", "300 s"), one_or_range("450 s", "15 min")
    ('512 to 4,096', '512', '60 to 300 s', '450 s to 15 min')
    """
    first = _bare(low) if _unit(low) == _unit(high) else low
    return low if low == high else f"{first} to {high}"


def with_range(value: str, low: str, high: str) -> str:
    """Return a figure and in brackets the range that it lies in, each as it is written; a unit that all three have is said once.

    >>> with_range("7.1 points", "5.4 points", "8.7 points"), with_range("10 min", "450 s", "15 min")
    ('7.1 points (5.4 to 8.7)', '10 min (450 s to 15 min)')
    """
    if _unit(value) == _unit(low) == _unit(high):
        return f"{value} ({_bare(low)} to {_bare(high)})"
    return f"{value} ({one_or_range(low, high)})"


def _unit(figure: str) -> str | None:
    """Return the unit of a figure that is one number and one unit; null of any other."""
    found = _FIGURE.fullmatch(figure)
    return None if found is None else found[2]


def _bare(figure: str) -> str:
    found = _FIGURE.fullmatch(figure)
    return figure if found is None else found[1]
