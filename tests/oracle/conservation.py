"""Laws that every run obeys whatever the settings: each request ends once, and workers are busy for the work done, no longer."""

import polars as pl

from horde_policy.policy.exact import quotient
from horde_policy.settings import ReplaySettings


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
    """Each ended job took its tokens at its worker's speed, or the time limit, and ended with its worker online."""
    asked = pl.DataFrame({"first": run["request_id"].head(traffic.height), "output_tokens": _outputs(traffic)})
    periods = fleet.select("worker_id", "online_from", "online_to", "speed").sort("online_from")
    # A job of no tokens may start at the very instant at which its worker's next period begins: of 0 µs in either.
    jobs = (
        run.filter(pl.col("finished").is_not_null())
        .with_columns(first=pl.coalesce("retry_of", "request_id"))
        .join(asked, on="first")
        .sort("started")
        .join_asof(periods, left_on="started", right_on="online_from", by="worker_id", check_sortedness=False)
        .with_columns(
            takes_us=quotient(pl.min_horizontal("output_tokens", "admitted_max_length") * 1e6, pl.col("speed")).ceil(),
            busy_us=(pl.col("finished") - pl.col("started")).dt.total_microseconds(),
            limit_us=pl.lit(None if settings.job_timeout_s is None else round(settings.job_timeout_s * 1e6), pl.Int64),
        )
    )
    assert jobs.height == run["finished"].count()
    timed_out = pl.col("status") == "timed_out"
    right = (
        pl.when(timed_out)
        .then((pl.col("busy_us") == pl.col("limit_us")) & (pl.col("takes_us") > pl.col("limit_us")))
        .otherwise((pl.col("busy_us") == pl.col("takes_us")) & (pl.col("takes_us") <= pl.col("limit_us").fill_null(2**62)))
    )
    online = pl.col("online_to").is_null() | (pl.col("finished") <= pl.col("online_to"))
    wrong = jobs.filter(~(right & online).fill_null(value=False))
    assert wrong.is_empty(), wrong.row(0, named=True)


def _outputs(traffic: pl.DataFrame) -> pl.Series:
    if "output_tokens" not in traffic.columns:
        return traffic["max_length"]
    return traffic["output_tokens"].zip_with(traffic["output_tokens"].is_not_null(), traffic["max_length"])


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
