"""Words and figures of the review as people read them: dimensions, sizes, shares with their interval, waits as bucket bounds."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from horde_policy.review.quiet import Quiet
from horde_policy.review.ranges import TimeRange
from horde_policy.review.sampling import Bounds, Share
from horde_policy.review.waits import Quantile
from horde_policy.units import one_or_range
from horde_policy.views.text import NOT_REPORTED, count, instant, ratio, seconds

__all__ = [
    "DIMENSION_WORDS",
    "bounds_text",
    "interval_text",
    "looked_at_text",
    "not_narrowed_text",
    "quantile_text",
    "quiet_text",
    "share_range_text",
    "share_text",
    "size_text",
    "span_text",
    "step_text",
    "word_text",
]

DIMENSION_WORDS: Final[dict[str, str]] = {
    "requester": "requester",
    "outcome": "outcome",
    "requested_size": "requested size",
    "allowance_size": "allowance",
    "chat": "kind",
    "time": "time (UTC)",
}
"""Dimension of a decision → its heading."""

NOT_EXPORTED: Final = "not exported or unknown"
"""A word that is null: the export did not say it, or said it in a word that is none of the rule's."""

_SIZE_TEXTS: Final = {
    "<=512": "up to 512",
    "513-1024": "513 to 1,024",
    "1025-2048": "1,025 to 2,048",
    "2049-4096": "2,049 to 4,096",
    ">4096": "over 4,096",
}
_REQUESTER_TEXTS: Final = {"anonymous": "anonymous", "registered": "registered", "shared_key": "shared key"}


def size_text(size: str | None) -> str:
    """Return a size bucket as it is read, in tokens.

    >>> size_text("1025-2048"), size_text(">4096"), size_text(None)
    ('1,025 to 2,048', 'over 4,096', 'not exported or unknown')
    """
    return NOT_EXPORTED if size is None else _SIZE_TEXTS[size]


def looked_at_text(narrowed: Sequence[str]) -> str:
    """Return which dimensions what is looked at is narrowed by.

    >>> looked_at_text([]), looked_at_text(["outcome"]), looked_at_text(["requester", "requested_size", "chat"])
    ('Looked at: everything', 'Looked at: by outcome', 'Looked at: by requester and 2 more')
    """
    if not narrowed:
        return "Looked at: everything"
    more = f" and {len(narrowed) - 1} more" if len(narrowed) > 1 else ""
    return f"Looked at: by {DIMENSION_WORDS[narrowed[0]]}{more}"


def not_narrowed_text(kept: Mapping[str, Sequence[object]], counted: Bounds) -> str:
    """Return what a page of everything says where something narrower is looked at: what that is, and where it counts.

    >>> not_narrowed_text({"requester": ["anonymous"]}, Bounds(38000, 38000))
    'The findings are of all 38,000 decisions of the range. Decisions and Waits look at less: requester anonymous.'
    >>> not_narrowed_text({"requester": ["anonymous"], "requested_size": ["<=512", None]}, Bounds(10, 12))
    'The findings are of all 10 to 12 decisions of the range. Decisions looks at less: requester anonymous; requested size up to
    512 or not exported or unknown. Waits is narrowed by the requester alone.'
    """
    told = "; ".join(
        f"{DIMENSION_WORDS[name]} {' or '.join(word_text(name, word) for word in words)}" for name, words in kept.items()
    )
    where = "Decisions and Waits look" if list(kept) == ["requester"] else "Decisions looks"
    waits = " Waits is narrowed by the requester alone." if "requester" in kept and len(kept) > 1 else ""
    return f"The findings are of all {bounds_text(counted)} decisions of the range. {where} at less: {told}.{waits}"


def word_text(dimension: str, word: object) -> str:
    """Return a word of a dimension as it is read; null was not exported, or is no word of the rule.

    >>> word_text("chat", True), word_text("requester", "shared_key"), word_text("outcome", None)
    ('chat', 'shared key', 'not exported or unknown')
    """
    if word is None:
        return NOT_EXPORTED
    if dimension in ("requested_size", "allowance_size"):
        return size_text(str(word))
    if dimension == "chat":
        return "chat" if word else "text"
    if isinstance(word, datetime):
        return f"{word.day} {word:%b %H:%M}"
    return _REQUESTER_TEXTS.get(str(word), str(word))


def step_text(step: timedelta) -> str:
    """Return the width of a step of time, as it follows "in each".

    >>> [step_text(timedelta(minutes=minutes)) for minutes in (1, 15, 60, 90, 360, 1440, 2880)]
    ['minute', '15 min', 'hour', '90 min', '6 h', 'day', '2 days']
    """
    whole = step.total_seconds()
    for unit_s, one, many in ((86400, "day", "days"), (3600, "hour", "h"), (60, "minute", "min"), (1, "second", "s")):
        if whole >= unit_s and whole % unit_s == 0:
            return one if whole == unit_s else f"{whole / unit_s:.0f} {many}"
    return f"{whole:g} s"


def quiet_text(quiet: Quiet) -> str:
    """Return in how many steps nothing was counted, and when the longest such time was, in one sentence.

    >>> at = datetime.fromisoformat("2026-11-29T18:00Z")
    >>> quiet_text(Quiet(timedelta(hours=1), 24, (at, at + timedelta(hours=1), at + timedelta(hours=4))))
    '0 decisions in 3 of 24 steps of an hour, the longest time from 29 Nov 2026 18:00:00 UTC to 29 Nov 2026 20:00:00 UTC.'
    """
    width = step_text(quiet.step)
    of = f"steps of {'an' if width == 'hour' else 'a'} {width}" if width.isalpha() else f"steps of {width}"
    return (
        f"0 decisions in {count(len(quiet.zero))} of {count(quiet.steps)} {of}, the longest time from {span_text(quiet.longest)}."
    )


def bounds_text(bounds: Bounds | None) -> str:
    """Return a count, or the two bounds that it lies between.

    >>> bounds_text(Bounds(1234, 1234)), bounds_text(Bounds(10, 12)), bounds_text(None)
    ('1,234', '10 to 12', '—')
    """
    if bounds is None:
        return NOT_REPORTED
    return one_or_range(count(bounds.low), count(bounds.high))


def share_range_text(low: float, high: float) -> str:
    """Return a share, or the two bounds that it lies between; nearly nothing and nearly all do not read as nothing and all.

    >>> share_range_text(0.25, 0.25), share_range_text(0.1, 0.2), share_range_text(0.0, 1.0), share_range_text(0.0001, 0.9999)
    ('25.0 %', '10.0 to 20.0 %', '0 to 100 %', '< 0.1 % to > 99.9 %')
    """
    return one_or_range(_percent(low), _percent(high))


def _percent(share: float) -> str:
    if 1e-12 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1 - 1e-12:
        return "> 99.9 %"
    return ratio(round(share, 12))


def share_text(share: Share | None) -> str:
    """Return a share as far as the counts decide it.

    >>> from horde_policy.review.sampling import share_of
    >>> share_text(share_of(Bounds(10, 10), Bounds(90, 90))), share_text(None)
    ('10.0 %', '—')
    """
    return NOT_REPORTED if share is None else share_range_text(share.low, share.high)


def interval_text(share: Share | None) -> str:
    """Return the sampling interval of a share.

    >>> from horde_policy.review.sampling import share_of
    >>> interval_text(share_of(Bounds(10, 10), Bounds(90, 90)))
    '95 %: 4.9 to 17.6 %'
    """
    if share is None:
        return NOT_REPORTED
    return f"95 %: {one_or_range(_percent(share.sampling_low), _percent(share.sampling_high))}"


def quantile_text(found: Quantile | None) -> str:
    """Return a quantile as bucket bounds; in the last bucket only "at least" is known.

    >>> quantile_text(Quantile(0.5, 60.0, 90.0, 60.0, 90.0)), quantile_text(Quantile(0.9, 3600.0, math.inf, 0.0, math.inf))
    ('60 to 90 s', 'at least 60 min')
    >>> quantile_text(Quantile(0.1, 0.0, 1.0, 0.0, 1.0))
    'up to 1 s'
    >>> quantile_text(Quantile(0.9, 450.0, 600.0, 450.0, 600.0)), quantile_text(Quantile(0.9, 600.0, 900.0, 600.0, 900.0))
    ('450 to 600 s', '10 to 15 min')
    """
    if found is None:
        return NOT_REPORTED
    if math.isinf(found.high_s):
        return f"at least {_wait(found.low_s)}"
    if found.high_s <= 0:
        return "0 s"
    if found.low_s <= 0:
        return f"up to {_wait(found.high_s)}"
    if found.low_s < MINUTES_FROM_S <= found.high_s <= MOST_IN_SECONDS_S:
        return f"{found.low_s:,.0f} to {found.high_s:,.0f} s"
    return one_or_range(_wait(found.low_s), _wait(found.high_s))


MINUTES_FROM_S = 600.0
MOST_IN_SECONDS_S = 3600.0
"""A range that begins below ten minutes, where waits are told in seconds, ends in seconds too, up to an hour."""


def _wait(wait_s: float) -> str:
    return "60 min" if wait_s == 3600 else seconds(wait_s)


def span_text(span: TimeRange) -> str:
    """Return a range of time.

    >>> span_text(TimeRange(None, None))
    'at a time that is not known'
    """
    if span.start is None:
        return "at a time that is not known" if span.end is None else f"up to {instant(span.end)}"
    return f"from {instant(span.start)}" if span.end is None else f"{instant(span.start)} to {instant(span.end)}"
