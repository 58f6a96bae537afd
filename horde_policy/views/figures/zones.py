"""What an axis of time says of the viewer's zone: its distance from UTC at the instants that are shown, not today's."""

from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import plotly.graph_objects as go

from horde_policy.views.figures.style import TIME_TITLE

__all__ = ["shown_span", "with_zone"]

MOST_LOOKS: Final = 800
"""So often a span is asked for its distance from UTC: each day of two years, and of a longer one not every day."""

Span = tuple[datetime, datetime]


def shown_span(figure: go.Figure) -> Span | None:
    """Return the first and the last instant on the axis x of a figure of time, in UTC; null where it shows none.

    An instant without a zone is the wall time of UTC, as Plotly is given it.

    >>> drawn = go.Figure(go.Scatter(x=["2025-07-02T12:00:00.5", None, "2025-07-01T00:00:00"], y=[1, None, 2]))
    >>> [at.isoformat() for at in shown_span(drawn)]
    ['2025-07-01T00:00:00+00:00', '2025-07-02T12:00:00.500000+00:00']
    >>> shown_span(go.Figure()) is None
    True
    """
    ends: list[datetime] = []
    for trace in figure.data:
        known = [at for at in (() if trace.x is None else trace.x) if at is not None]
        if known:
            ends += [_instant(min(known)), _instant(max(known))]
    return (min(ends), max(ends)) if ends else None


def _instant(at: object) -> datetime:
    read = datetime.fromisoformat(str(at))
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


def with_zone(title: str | None, zone: str | None, behind_min: int | None, span: Span | None) -> str | None:
    """Return the title of an axis of time with the viewer's distance from UTC over what is shown; else as it is.

    Parameters
    ----------
    title
        Of the axis x.
    zone
        What the viewer's browser calls its zone, a name of the IANA data base (hostile text).
    behind_min
        How many minutes the viewer's clock is behind UTC today: it stands where the zone is not known or nothing is shown.
    span
        The first and last instant that are shown. Where the distance changes between them, each is said, the earliest first.

    Examples
    --------
    >>> summer, autumn = datetime(2025, 7, 1, tzinfo=UTC), datetime(2025, 11, 30, tzinfo=UTC)
    >>> with_zone("time (UTC)", "Europe/Berlin", -60, (summer, summer))
    'time (UTC; yours: UTC+2:00)'
    >>> with_zone("time (UTC)", "Europe/Berlin", -60, (summer, autumn))
    'time (UTC; yours: UTC+2:00 or UTC+1:00)'
    >>> with_zone("time (UTC)", "No/Such", 210, (summer, summer)), with_zone("wait (s)", "Europe/Berlin", -60, None)
    ('time (UTC; yours: UTC−3:30)', 'wait (s)')
    """
    if title != TIME_TITLE:
        return title
    offsets_min = _offsets_min(zone, span) or ([] if behind_min is None else [-behind_min])
    if not any(offsets_min):
        return title
    return f"time (UTC; yours: {' or '.join(map(_offset_text, offsets_min))})"


def _offsets_min(zone: str | None, span: Span | None) -> list[int]:
    """Return the minutes that a zone is ahead of UTC over a span, each once, the earliest first; none where that is not known."""
    if not zone or span is None:
        return []
    first, last = span
    step = max(timedelta(days=1), (last - first) / MOST_LOOKS)
    looks = [first + step * number for number in range(int((last - first) / step) + 1)]
    try:
        place = ZoneInfo(zone)
        offsets = [at.astimezone(place).utcoffset() or timedelta() for at in (*looks, last)]
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError, AttributeError, OverflowError):
        return []
    return list(dict.fromkeys(round(offset / timedelta(minutes=1)) for offset in offsets))


def _offset_text(ahead_min: int) -> str:
    hours, minutes = divmod(abs(ahead_min), 60)
    return f"UTC{'−' if ahead_min < 0 else '+'}{hours}:{minutes:02d}"
