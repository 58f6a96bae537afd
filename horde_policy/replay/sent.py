"""A run beside what was asked: one row a request that was sent, repeated ones too, with the figures that scores are made of."""

import polars as pl

from horde_policy.errors import FrameError
from horde_policy.frames.fleet import normalised_fleet
from horde_policy.frames.runs import RUNS
from horde_policy.frames.schemas import UTC_INSTANT
from horde_policy.frames.traffic import normalised_traffic
from horde_policy.policy.exact import quotient
from horde_policy.policy.telemetry import LARGEST_SIZE_BUCKET, SIZE_BUCKETS
from horde_policy.settings import AllowanceSettings, ReplaySettings
from horde_policy.units import MICROSECONDS_PER_S

__all__ = ["SIZE", "sent_requests", "size_of"]

SIZE = pl.Enum([name for _, name in SIZE_BUCKETS] + [LARGEST_SIZE_BUCKET])
"""Size buckets of A25, smallest first."""

ASKED = ("created", "models", "requester", "max_length", "output_tokens", "can_pay", "chat")


def size_of(tokens: pl.Expr) -> pl.Expr:
    """Return the bucket of a size as an expression (A25).

    >>> pl.select(size_of(pl.lit(513))).item()
    '513-1024'
    """
    bucket = pl.lit(LARGEST_SIZE_BUCKET)
    for largest, name in reversed(SIZE_BUCKETS):
        bucket = pl.when(tokens <= largest).then(pl.lit(name)).otherwise(bucket)
    return bucket.cast(SIZE)


def sent_requests(run: pl.DataFrame, traffic: pl.DataFrame, fleet: pl.DataFrame, settings: AllowanceSettings) -> pl.DataFrame:
    """Return each request of a run with what it asked, and what its job took and gave.

    Parameters
    ----------
    run
        A run of this traffic on this fleet under these settings (:data:`~horde_policy.frames.runs.RUNS`).
    traffic, fleet, settings
        What was replayed.

    Returns
    -------
    polars.DataFrame
        The run's columns, and: ``created``, ``models``, ``requester``, ``max_length`` (asked, by a client that sends again:
        then), ``output_tokens``, ``can_pay``, ``chat``; ``attempt`` (1, 2, …); ``first_row`` (traffic row of the first
        one); ``requested_size`` (A25); ``busy_s`` of an ended job; ``delivered_tokens`` (0 unless completed); ``speed`` of
        the last start's worker in tok/s, null if never started. Rows in the run's order.

    Raises
    ------
    FrameError
        The run has other requests than the traffic.
    """
    run = RUNS.checked(run)
    traffic = normalised_traffic(traffic)
    if run.height < traffic.height or not run["request_id"].head(traffic.height).equals(traffic["request_id"]):
        raise FrameError("run", "column request_id", None, "must hold the requests of the traffic, in its order")
    asked = _asked(run, traffic, ReplaySettings.lifted(settings))
    sent = pl.concat([run, asked], how="horizontal").with_columns(_speeds(run, fleet))
    completed = pl.col("status") == "completed"
    return sent.with_columns(
        requested_size=size_of(pl.col("max_length")),
        busy_s=quotient((pl.col("finished") - pl.col("started")).dt.total_microseconds(), MICROSECONDS_PER_S),
        delivered_tokens=pl.when(completed).then(pl.min_horizontal("output_tokens", "admitted_max_length")).otherwise(0),
    )


def _asked(run: pl.DataFrame, traffic: pl.DataFrame, settings: ReplaySettings) -> pl.DataFrame:
    rows = pl.int_range(0, traffic.height, dtype=pl.Int64, eager=True).alias("first_row")
    first = traffic.select(*ASKED).with_columns(rows, attempt=pl.lit(1, pl.Int64))
    if run.height == traffic.height:
        return first
    repeated = run.slice(traffic.height).select("request_id", "retry_of")
    known = first.with_columns(retry_of=traffic["request_id"], allowance=run["allowance"].head(traffic.height))
    again = repeated.join(known, on="retry_of", how="left", maintain_order="left").with_columns(
        attempt=pl.col("request_id").str.extract(r"#(\d+)$").cast(pl.Int64)
    )
    if settings.client == "resend":
        again = again.with_columns(max_length=pl.col("allowance"))
    else:
        after_us = round(settings.return_after_s * MICROSECONDS_PER_S) * (pl.col("attempt") - 1)
        again = again.with_columns(created=(pl.col("created").to_physical() + after_us).cast(UTC_INSTANT))
    return pl.concat([first, again.select(first.columns)])


def _speeds(run: pl.DataFrame, fleet: pl.DataFrame) -> pl.Series:
    """Return the speed of the worker of each request's last start, in the period in which it started."""
    periods = normalised_fleet(fleet).select("worker_id", "online_from", "speed")
    if periods["worker_id"].is_unique().all():
        return run.select("worker_id").join(periods, on="worker_id", how="left", maintain_order="left")["speed"]
    starts = run.select("worker_id", "started").with_row_index("row").filter(pl.col("started").is_not_null()).sort("started")
    found = starts.join_asof(
        periods.sort("online_from"), left_on="started", right_on="online_from", by="worker_id", check_sortedness=False
    )
    speeds = run.select(row=pl.int_range(pl.len(), dtype=pl.UInt32)).join(
        found.select("row", "speed"), on="row", how="left", maintain_order="left"
    )
    return speeds["speed"]
