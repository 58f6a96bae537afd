"""The fleet frame: one row a worker and period online (``replay.md``, "Inputs")."""

import polars as pl

from horde_policy.errors import InputError
from horde_policy.frames.input_columns import (
    flags,
    instants,
    name_lists,
    real_numbers,
    refuse_first,
    texts,
    whole_numbers,
)
from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema

__all__ = ["FLEET", "SLOW_BELOW_TOK_PER_S", "normalised_fleet"]

SLOW_BELOW_TOK_PER_S = 5.0
"""A worker below this counts as slow where the fleet does not say (``replay.md``)."""

FLEET = Schema(
    "fleet",
    {
        "worker_id": Column(pl.String, text="one worker may have several periods, touching but not overlapping"),
        "online_from": Column(UTC_INSTANT),
        "online_to": Column(UTC_INSTANT, null="online to the end", text="exclusive"),
        "models": Column(pl.List(pl.String), text="names as declared; hostile text"),
        "max_length": Column(pl.Int64, "tokens", text="declared"),
        "max_context_length": Column(pl.Int64, "tokens", text="declared"),
        "speed": Column(pl.Float64, "tok/s", text="of one job, mean of the period, above 0"),
        "threads": Column(pl.Int64, "jobs", text="jobs at once; 1 where absent"),
        "measured": Column(pl.Boolean, text="has completed a job before this period; true where absent"),
        "slow": Column(pl.Boolean, text="below the slow-worker speed of its model; speed < 5 where absent"),
    },
)
"""One row a worker and period online, [online_from, online_to), in any order: the row number decides ties."""

MOST_THREADS = 2**31 - 1
"""So many threads on each of any number of workers can be added up."""


def normalised_fleet(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame as :data:`FLEET`, absent values filled by the contract's defaults; bad input is refused whole.

    Raises
    ------
    FrameError
        A required column is missing, or a column has another type; an instant has no time zone.
    InputError
        A value breaks its rule, a period ends before it starts, or two periods of one worker overlap: names the first
        such row (from 0), the column, the value and the rule.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> worker = {"worker_id": ["w"], "online_from": [datetime(2026, 11, 29, tzinfo=UTC)], "models": [["m"]],
    ...           "max_length": [512], "max_context_length": [4096], "speed": [4.5]}
    >>> normalised_fleet(pl.DataFrame(worker)).row(0, named=True)["slow"]
    True
    """
    what = "fleet"
    speed = real_numbers(frame, what, "speed", absent=None, above=0.0)
    columns = [
        texts(frame, what, "worker_id"),
        instants(frame, what, "online_from"),
        instants(frame, what, "online_to", required=False),
        name_lists(frame, what, "models"),
        whole_numbers(frame, what, "max_length", absent=None, least=0),
        whole_numbers(frame, what, "max_context_length", absent=None),
        speed,
        whole_numbers(frame, what, "threads", absent=1, least=1, most=MOST_THREADS),
        flags(frame, what, "measured", absent=True),
        flags(frame, what, "slow", absent=(speed < SLOW_BELOW_TOK_PER_S).alias("slow")),
    ]
    fleet = FLEET.checked(pl.DataFrame(columns))
    refuse_first(what, fleet["online_to"], fleet["online_to"] <= fleet["online_from"], "must be after online_from")
    _refuse_overlaps(fleet)
    return fleet


def _refuse_overlaps(fleet: pl.DataFrame) -> None:
    periods = (
        fleet.select("worker_id", "online_from", "online_to")
        .with_row_index("row")
        .sort("worker_id", "online_from", "row")
        .with_columns(
            same=pl.col("worker_id") == pl.col("worker_id").shift(1),
            before_row=pl.col("row").shift(1),
            before_to=pl.col("online_to").shift(1),
        )
    )
    overlaps = periods.filter(
        pl.col("same") & (pl.col("before_to").is_null() | (pl.col("before_to") > pl.col("online_from")))
    ).sort("row")
    if overlaps.height:
        first = overlaps.row(0, named=True)
        rule = f"overlaps the period of the same worker in row {first['before_row']}; periods may touch, not overlap"
        raise InputError("fleet", f"row {first['row']}, column online_from", str(first["online_from"]), rule)
