"""Laws that every run obeys whatever the settings: each request ends once, and workers are busy for the work done, no longer."""

import math
from datetime import timedelta
from typing import Any

import polars as pl

from horde_policy.settings import ReplaySettings

Row = dict[str, Any]


def check_conservation(traffic: pl.DataFrame, fleet: pl.DataFrame, settings: ReplaySettings, run: pl.DataFrame) -> None:
    """Assert the laws on a run; the frames as given to the replay, without absent columns or nulls that matter here."""
    every_request_ends_once(traffic, run)
    outcomes_fit_their_columns(settings, run)
    work_is_what_was_done(traffic, fleet, settings, run)
    no_worker_does_more_than_its_threads(fleet, run)


def every_request_ends_once(traffic: pl.DataFrame, run: pl.DataFrame) -> None:
    assert run["status"].null_count() == 0
    assert run["outcome"].null_count() == 0
    assert run.filter(pl.col("retry_of").is_null()).height == traffic.height
    counts = dict(run.group_by("status").len().iter_rows())
    assert sum(counts.values()) == run.height
    assert counts.get("refused", 0) == run.filter(pl.col("outcome") == "refused").height


def outcomes_fit_their_columns(settings: ReplaySettings, run: pl.DataFrame) -> None:
    refused = pl.col("outcome") == "refused"
    ended = pl.col("status").is_in(["completed", "timed_out"])
    never_started = pl.col("started").is_null()
    laws = run.select(
        reason_iff_refused=(refused == pl.col("reason").is_not_null()).all(),
        length_iff_admitted=(refused == pl.col("admitted_max_length").is_null()).all(),
        finished_iff_ended=(ended == pl.col("finished").is_not_null()).all(),
        worker_iff_started=(never_started == pl.col("worker_id").is_null()).all(),
        wait_iff_started=(never_started == pl.col("queue_wait_s").is_null()).all(),
        ended_started=(~ended | ~never_started).all(),
        refused_never_started=(~refused | never_started).all(),
        wait_not_negative=(pl.col("queue_wait_s").fill_null(0.0) >= 0).all(),
        estimate_not_negative=(pl.col("estimated_wait_s").fill_null(0.0) >= 0).all(),
        timed_out_only_with_a_limit=(pl.lit(settings.job_timeout_s is not None) | (pl.col("status") != "timed_out")).all(),
        allowance_null_iff_everyone_free=(pl.col("allowance").is_null() == (settings.rule == "everyone_free")).all(),
        started_within_its_time=(
            pl.col("queue_wait_s").fill_null(0.0) <= round(settings.request_ttl_s * 1e6) / 1e6
        ).all(),
    )  # fmt: skip
    broken = [name for name, holds in laws.row(0, named=True).items() if not holds]
    assert not broken, broken


def work_is_what_was_done(traffic: pl.DataFrame, fleet: pl.DataFrame, settings: ReplaySettings, run: pl.DataFrame) -> None:
    """Each ended job took its tokens at the speed of a period of its worker that holds it, or the time limit."""
    periods: dict[str, list[Row]] = {}
    for row in fleet.iter_rows(named=True):
        periods.setdefault(row["worker_id"], []).append(row)
    output = dict(zip(run["request_id"].head(traffic.height), _outputs(traffic), strict=True))
    limit_us = None if settings.job_timeout_s is None else round(settings.job_timeout_s * 1e6)
    for row in run.filter(pl.col("finished").is_not_null()).iter_rows(named=True):
        [period] = [p for p in periods[row["worker_id"]] if _holds(p, row)][-1:]
        tokens = min(output[row["retry_of"] or row["request_id"]], row["admitted_max_length"])
        takes_us = math.ceil(tokens * 1e6 / period["speed"])
        busy_us = (row["finished"] - row["started"]) // timedelta(microseconds=1)
        if row["status"] == "timed_out":
            assert limit_us is not None
            assert busy_us == limit_us < takes_us, row
        else:
            assert busy_us == takes_us, row
            assert limit_us is None or takes_us <= limit_us, row


def _outputs(traffic: pl.DataFrame) -> list[int]:
    if "output_tokens" not in traffic.columns:
        return traffic["max_length"].to_list()
    return traffic["output_tokens"].fill_null(traffic["max_length"]).to_list()


def _holds(period: Row, job: Row) -> bool:
    """Return whether the job could have begun in the period: a job ends at the latest with its period."""
    begins = period["online_from"] <= job["started"]
    return bool(begins and (period["online_to"] is None or job["finished"] <= period["online_to"]))


def no_worker_does_more_than_its_threads(fleet: pl.DataFrame, run: pl.DataFrame) -> None:
    """Over each worker's life, its ended jobs take no more time than its threads had."""
    threads = fleet["threads"].fill_null(1) if "threads" in fleet.columns else pl.Series([1] * fleet.height)
    done = run.filter(pl.col("finished").is_not_null())
    if done.is_empty():
        return
    last = done["finished"].max()
    offered = fleet.select(
        "worker_id",
        thread_us=((pl.col("online_to").fill_null(last) - pl.col("online_from")).dt.total_microseconds() * threads).clip(0),
    )
    offered = offered.group_by("worker_id").agg(pl.col("thread_us").sum())
    busy = done.group_by("worker_id").agg(busy_us=(pl.col("finished") - pl.col("started")).dt.total_microseconds().sum())
    over = busy.join(offered, on="worker_id", how="left").filter(pl.col("busy_us") > pl.col("thread_us"))
    assert over.is_empty(), over
