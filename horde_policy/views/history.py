"""The history in words and numbers: which range a page shows, what it would need without one, lines thinned for a figure."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import polars as pl

from horde_policy.views.parameters import RANGES_S
from horde_policy.views.state import ViewState
from horde_policy.views.text import instant

__all__ = ["HISTORY_NEEDS", "MOST_POINTS", "Range", "outside_sentence", "range_of", "range_text_utc", "spark_points", "thinned"]

HISTORY_NEEDS: Final = (
    "No history is configured. Run the recorder (python -m horde_policy record) and set HORDE_POLICY_HISTORY to its store: "
    "then trends, presence, changes and alerts stand on Overview, Model and Workers."
)
MOST_POINTS: Final = 1_500
STEPS_OF_A_RANGE = 288
"""A range up to now moves on in steps of this part of it, so that a long one is not read again at each poll."""

LONGEST_RANGE_S = 31 * 86_400


@dataclass(frozen=True, slots=True)
class Range:
    """A range of the history, UTC, both ends in it."""

    start: datetime
    end: datetime

    @property
    def ends(self) -> tuple[datetime, datetime]:
        """Both ends."""
        return self.start, self.end

    def shifted(self, by: timedelta) -> "Range":
        """Return the range as long before."""
        return Range(self.start - by, self.end - by)


def range_of(state: ViewState, first: datetime, last: datetime) -> Range:
    """Return the range that the address asks for: between its two instants, or the named one up to the last poll.

    No range is longer than 31 days: of a longer one what the history has of it counts, and of that the end.

    Parameters
    ----------
    state
        Of the page.
    first, last
        The first and the last poll of the history. A named range ends on a whole step of it, at most a 288th of its length
        before the last poll.

    Examples
    --------
    >>> last = datetime(2026, 11, 29, 12, 4, tzinfo=UTC)
    >>> range_text_utc(range_of(ViewState(), last - timedelta(days=3), last))
    '28 Nov 2026 12:00:00 UTC to 29 Nov 2026 12:00:00 UTC'
    """
    if state.from_at is not None and state.to_at is not None:
        start, end = state.from_at.astimezone(UTC), state.to_at.astimezone(UTC)
        longest = timedelta(seconds=LONGEST_RANGE_S)
        within = max(start, first.astimezone(UTC)), min(end, last.astimezone(UTC))
        if end - start > longest and within[0] < within[1]:
            start, end = within
        return Range(start if end - start <= longest else end - longest, end)
    length_s = RANGES_S[state.range_name]
    step_s = max(1, length_s // STEPS_OF_A_RANGE)
    whole = datetime.fromtimestamp(last.timestamp() // step_s * step_s, tz=UTC)
    end = whole if whole >= first else last.astimezone(UTC)
    return Range(end - timedelta(seconds=length_s), end)


def outside_sentence(state: ViewState, shown: Range, first: datetime, last: datetime) -> str | None:
    """Return the sentence that the history has nothing of the range that was asked for; null where it reaches into it.

    >>> day = datetime(2026, 11, 29, tzinfo=UTC)
    >>> asked = ViewState(from_at=day + timedelta(days=1), to_at=day + timedelta(days=60))
    >>> outside_sentence(asked, range_of(asked, day, day), day, day)[:88]
    'The history has no poll from 30 Nov 2026 00:00:00 UTC to 28 Jan 2027 00:00:00 UTC; it is'
    """
    if shown.start <= last and shown.end >= first:
        return None
    # In the words of the address: a range too long was cut for reading, to a start that nobody gave.
    asked = Range(state.from_at or shown.start, state.to_at or shown.end)
    return f"The history has no poll from {range_text_utc(asked)}; it is of {range_text_utc(Range(first, last))}."


def range_text_utc(shown: Range) -> str:
    """Return the range in words, with its zone."""
    return f"{instant(shown.start)} to {instant(shown.end)}"


def thinned(frame: pl.DataFrame, column: str, most: int = MOST_POINTS) -> pl.DataFrame:
    """Return the rows at which a column changes, and of those no more than some ``most``: each bucket's least and largest.

    Ends stay, and so does every change between known and not known, so that a gap is never drawn over.

    >>> at = [datetime(2026, 11, 29, 12, minute, tzinfo=UTC) for minute in range(6)]
    >>> thinned(pl.DataFrame({"at": at, "y": [1, 1, 2, None, None, 5]}), "y")["y"].to_list()
    [1, 2, None, 5]
    """
    value = pl.col(column)
    changes = value.ne_missing(value.shift(1)) | pl.int_range(pl.len()).eq(0) | pl.int_range(pl.len()).eq(pl.len() - 1)
    kept = frame.filter(changes)
    if kept.height <= most:
        return kept
    buckets = max(1, most // 2)
    numbered = kept.with_row_index("place").with_columns(bucket=pl.col("place") * buckets // kept.height)
    edge = value.is_null().ne(value.is_null().shift(1)).fill_null(value=True) | pl.col("place").eq(kept.height - 1)
    least = pl.col("place").eq(pl.col("place").sort_by(value).first().over("bucket"))
    largest = pl.col("place").eq(pl.col("place").sort_by(value).last().over("bucket"))
    return numbered.filter(edge | least | largest).drop("place", "bucket")


def spark_points(frame: pl.DataFrame, ceiling_tokens: int, most: int = 48) -> list[float | None]:
    """Return a line for a small chart: equal parts of time, each at its least share of the ceiling; null: no poll, not known.

    The least, since what a reader looks for is when it fell; where a poll of a part is not known, neither is its least. A poll
    holds until the next one within the same part only.

    Parameters
    ----------
    frame
        Of a trend: ``at`` and ``allowance_tokens``.
    ceiling_tokens
        What is drawn at full height.
    most
        Parts; no more than there are polls.

    Examples
    --------
    >>> at = [datetime(2026, 11, 29, hour, tzinfo=UTC) for hour in (0, 1, 2, 6)]
    >>> spark_points(pl.DataFrame({"at": at, "allowance_tokens": [4096, 2048, None, 512]}), 4096)
    [0.5, None, None, 0.125]
    >>> spark_points(pl.DataFrame({"at": at, "allowance_tokens": [4096, 512, 512, None]}), 4096, most=2)
    [0.125, None]
    """
    if frame.is_empty():
        return []
    parts = min(most, frame.height)
    since_s = (frame["at"] - frame["at"][0]).dt.total_microseconds()
    length = max(1, int(since_s[-1]))
    place = (since_s * parts // (length + 1)).alias("place")
    tokens = pl.col("allowance_tokens")
    least = frame.with_columns(place).group_by("place").agg(pl.when(tokens.is_not_null().all()).then(tokens.min()))
    shares = {
        where: None if tokens is None else round(min(1.0, tokens / ceiling_tokens), 3) for where, tokens in least.iter_rows()
    }
    return [shares.get(part) for part in range(parts)]
