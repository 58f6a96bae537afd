"""The waits frames (A26, A27): histograms of the estimated wait and of the queue wait, counted over intervals."""

import polars as pl

from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema

__all__ = ["WAITS", "WAIT_SUMS"]

# kind: ``estimated``, the wait that sized the allowance, one a creation (A26); ``queue``, creation to pop, one a pop (A27)
_WHO_AND_WHEN = {
    "interval_start": Column(UTC_INSTANT, null="the beginning is not known", text="exclusive"),
    "interval_end": Column(UTC_INSTANT, null="one scrape without a time", text="inclusive"),
    "instance": Column(pl.String, text="the process that counted, by its identifying labels; hostile text"),
    "kind": Column(pl.String, text="estimated or queue"),
    "requester": Column(pl.String, null="not exported, or no word of the rule"),
    "chat": Column(pl.Boolean, null="not exported"),
}
_SORT = ("interval_end", "interval_start", "instance", "kind", "requester", "chat")

WAITS = Schema(
    "waits",
    {
        **_WHO_AND_WHEN,
        "lower_s": Column(pl.Float64, "s", text="exclusive, but a wait of 0 lies in the bucket from 0"),
        "upper_s": Column(pl.Float64, "s", text="inclusive (le); infinite in the last bucket"),
        "count_low": Column(pl.Float64, "waits", text="at least so many; equal to count_high where the count is known"),
        "count_high": Column(pl.Float64, "waits", text="at most so many"),
    },
    sort=(*_SORT, "lower_s", "upper_s"),
)
"""One row an interval, instance, label set and bucket with any count. Exactly 60 s lies in the bucket that ends at 60."""

WAIT_SUMS = Schema(
    "wait_sums",
    {
        **_WHO_AND_WHEN,
        "count_low": Column(pl.Float64, "waits"),
        "count_high": Column(pl.Float64, "waits"),
        "sum_low_s": Column(pl.Float64, "s", null="no sum was exported"),
        "sum_high_s": Column(pl.Float64, "s", null="no sum was exported"),
    },
    sort=_SORT,
)
"""One row an interval, instance and label set with any count: how many waits, and how long together."""
