"""Units shared by all parts: what a number is called and how large it may be."""

MAX_LENGTH_LIMIT_TOKENS = 16_384
"""Text routes accept up to this many output tokens (A23)."""

DEFAULT_MAX_LENGTH_TOKENS = 80
"""The API's default ``max_length`` (horde.md §2), and the board's default size."""

DEFAULT_MAX_CONTEXT_TOKENS = 2_048
"""The API's default ``max_context_length`` (horde.md §2)."""

JOB_TIME_LIMIT_S = 150.0
"""Text jobs time out after this long, whatever their size (A32)."""

MICROSECONDS_PER_S = 1_000_000


def one_or_range(low: str, high: str) -> str:
    """Return a range in words from its two ends as they are written, or the one value where both read alike.

    >>> one_or_range("512", "4,096"), one_or_range("512", "512")
    ('512 to 4,096', '512')
    """
    return low if low == high else f"{low} to {high}"
