"""Ranges and steps of time, and what a count over an interval says about them.

A row of the decisions and waits frames counts over (``interval_start``, ``interval_end``]. A range holds all of a row that lies
inside it, and between nothing and all of a row that reaches over its edge.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from horde_policy.errors import InputError, shown
from horde_policy.frames.schemas import UTC_INSTANT

__all__ = ["STEPS", "TimeRange", "in_blocks", "in_steps", "span_of", "step_for", "typical_interval", "within"]

STEPS = tuple(
    timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 20160, 40320)
)
"""The steps that time is cut into; all start at midnight UTC, or at whole days since the epoch."""

MOST_STEPS = 180
"""A range is cut into at most so many steps, if nothing else is asked."""

MOST_BLOCKS = 28
"""A range is cut into at most so many blocks to see how bursty it is: six hours each in a week."""

_LOWS = ("count_low", "sum_low_s")


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From ``start`` (exclusive) to ``end`` (inclusive), aware; null for the data's own.

    >>> TimeRange(datetime(2026, 11, 29), None)
    Traceback (most recent call last):
    horde_policy.errors.InputError: range, start: 2026-11-29T00:00:00 must be an instant with its zone
    """

    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        for where, instant in (("start", self.start), ("end", self.end)):
            if instant is not None and instant.tzinfo is None:
                raise InputError("range", where, instant, "must be an instant with its zone")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise InputError("range", "start", self.start.isoformat(), f"must be before the end, {shown(self.end.isoformat())}")

    @property
    def whole(self) -> bool:
        """Return whether the range leaves nothing out."""
        return self.start is None and self.end is None


def span_of(*frames: pl.DataFrame) -> TimeRange:
    """Return the time that the rows of the frames cover; null where they do not say.

    >>> span_of(pl.DataFrame(schema={"interval_start": UTC_INSTANT, "interval_end": UTC_INSTANT}))
    TimeRange(start=None, end=None)
    """
    times = pl.concat([frame.select("interval_start", "interval_end") for frame in frames])
    first, last = times.select(
        pl.coalesce(pl.col("interval_start"), pl.col("interval_end")).min(), pl.col("interval_end").max()
    ).row(0)
    return TimeRange(first, last) if first != last else TimeRange(None, last)


def typical_interval(frame: pl.DataFrame) -> timedelta | None:
    """Return the median length of the rows' intervals; null where no row has both ends.

    >>> typical_interval(pl.DataFrame(schema={"interval_start": UTC_INSTANT, "interval_end": UTC_INSTANT})) is None
    True
    """
    lengths = frame.select("interval_start", "interval_end").unique()
    median = lengths.select((pl.col("interval_end") - pl.col("interval_start")).median()).item()
    return median if isinstance(median, timedelta) else None


def step_for(span: TimeRange, *, interval: timedelta | None = None, most: int = MOST_STEPS) -> timedelta:
    """Return the least step that cuts the span into at most ``most`` and is no shorter than the data's interval.

    >>> step_for(TimeRange(datetime.fromisoformat("2026-11-22T00:00Z"), datetime.fromisoformat("2026-11-29T00:00Z")))
    datetime.timedelta(seconds=3600)
    """
    length = span.end - span.start if span.start is not None and span.end is not None else timedelta(0)
    least = max(length / most, interval or timedelta(0))
    return next((step for step in STEPS if step >= least), STEPS[-1])


def within(frame: pl.DataFrame, span: TimeRange) -> pl.DataFrame:
    """Return the rows that may count inside the range; of one that reaches over an edge, or is not timed, at least nothing.

    Examples
    --------
    >>> hour = pl.DataFrame({"interval_start": ["2026-11-29T00:00:00Z"], "interval_end": ["2026-11-29T01:00:00Z"]})
    >>> hour = hour.select(pl.all().str.to_datetime(time_unit="us", time_zone="UTC"), count_low=4.0, count_high=4.0)
    >>> half = TimeRange(datetime.fromisoformat("2026-11-29T00:30Z"), None)
    >>> within(hour, half).select("count_low", "count_high").row(0)
    (0.0, 4.0)
    """
    if span.whole:
        return frame
    start, end = pl.col("interval_start"), pl.col("interval_end")
    outside, inside = pl.lit(value=False), pl.lit(value=True)
    if span.start is not None:
        outside = outside | (end <= span.start)
        inside = inside & (start >= span.start)
    if span.end is not None:
        outside = outside | (start >= span.end)
        inside = inside & (end <= span.end)
    kept = frame.filter(~outside.fill_null(value=False))
    certain = inside.fill_null(value=False)
    return kept.with_columns(
        pl.when(certain | pl.col(name).is_null()).then(pl.col(name)).otherwise(0.0).alias(name)
        for name in _LOWS
        if name in frame.columns
    )


def in_steps(frame: pl.DataFrame, step: timedelta) -> pl.DataFrame:
    """Return the rows once for every step that they may count in, with its start as ``time`` and the count told in three ways.

    ``count_low`` and ``count_high`` bound what the step holds; ``count_even`` spreads the middle of the count evenly over the
    interval, which is how it is drawn. A row whose beginning is not known counts from the first instant of the frame on. A row
    without any time has a null ``time``.

    Examples
    --------
    >>> row = pl.DataFrame({"interval_start": ["2026-11-29T00:45:00Z"], "interval_end": ["2026-11-29T01:45:00Z"]})
    >>> row = row.select(pl.all().str.to_datetime(time_unit="us", time_zone="UTC"), count_low=4.0, count_high=4.0)
    >>> in_steps(row, timedelta(hours=1)).select(pl.col("time").dt.hour(), "count_low", "count_high", "count_even").rows()
    [(0, 0.0, 4.0, 1.0), (1, 0.0, 4.0, 3.0)]
    """
    width = step // timedelta(microseconds=1)
    first = span_of(frame).start
    start = pl.coalesce(pl.col("interval_start"), pl.min_horizontal(pl.lit(first, dtype=UTC_INSTANT), pl.col("interval_end")))
    begin, end = start.dt.timestamp("us"), pl.col("interval_end").dt.timestamp("us")
    middle = (pl.col("count_low") + pl.col("count_high")) / 2
    timed = frame.with_columns(
        (begin // width).alias("_first"),
        # the interval's end is inclusive: one that ends with a step lies in it
        pl.max_horizontal(begin // width, (end - 1) // width).alias("_last"),
        begin.alias("_begin"),
        end.alias("_end"),
        middle.alias("count_even"),
    )
    one = timed.filter((pl.col("_first") == pl.col("_last")) | pl.col("_end").is_null())
    one = one.with_columns(pl.col("_first").alias("_step"))
    some = timed.filter(pl.col("_first") < pl.col("_last"))
    some = some.with_columns(pl.int_ranges("_first", pl.col("_last") + 1).alias("_step")).explode("_step")
    share = (pl.min_horizontal("_end", (pl.col("_step") + 1) * width) - pl.max_horizontal("_begin", pl.col("_step") * width)) / (
        pl.col("_end") - pl.col("_begin")
    )
    some = some.with_columns(count_low=pl.lit(0.0), count_even=pl.col("count_even") * share)
    time = (pl.col("_step") * width).cast(UTC_INSTANT).alias("time")
    return pl.concat([one, some]).with_columns(time).drop("_first", "_last", "_begin", "_end", "_step")


def in_blocks(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with the number of the block of time that they end in as ``block``, and the middle of their count.

    Blocks are what a design effect is told from: at most 28, no shorter than the data's interval. A frame without times is one
    block.

    Examples
    --------
    >>> row = pl.DataFrame({"interval_start": ["2026-11-29T00:45:00Z"], "interval_end": ["2026-11-29T01:45:00Z"]})
    >>> row = row.select(pl.all().str.to_datetime(time_unit="us", time_zone="UTC"), count_low=4.0, count_high=6.0)
    >>> in_blocks(row).select(pl.col("block").is_not_null(), "count_middle").row(0)
    (True, 5.0)
    """
    width = step_for(span_of(frame), interval=typical_interval(frame), most=MOST_BLOCKS) // timedelta(microseconds=1)
    return frame.with_columns(
        ((pl.col("interval_end").dt.timestamp("us") - 1) // width).alias("block"),
        ((pl.col("count_low") + pl.col("count_high")) / 2).alias("count_middle"),
    )
