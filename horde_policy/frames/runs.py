"""The run frame: what a replay gives, one row a request (``replay.md``, "Output")."""

import polars as pl

from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema

__all__ = ["OUTCOME", "REASON", "RUNS", "STATUS"]

OUTCOME = pl.Enum(["free", "funded", "downgraded", "refused"])
"""What was decided at creation (A13–A16)."""

REASON = pl.Enum(["KudosUpfront", "NoEligibleWorker"])
"""Why a request was refused (A15, A19)."""

STATUS = pl.Enum(["completed", "timed_out", "expired", "refused"])
"""How a request ended; every one ends in exactly one of them."""

RUNS = Schema(
    "runs",
    {
        "request_id": Column(pl.String, text="a repeated request: the first one's and #2, #3, …"),
        "outcome": Column(OUTCOME),
        "reason": Column(REASON, null="not refused"),
        "allowance": Column(pl.Int64, "tokens", null="the rule has none: everyone free"),
        "estimated_wait_s": Column(pl.Float64, "s", null="no eligible worker, so no estimate"),
        "admitted_max_length": Column(pl.Int64, "tokens", null="refused"),
        "worker_id": Column(pl.String, null="never started", text="of the last start"),
        "started": Column(
            UTC_INSTANT, null="never started", text="the last start; kept when that job is lost and it then expires"
        ),
        "finished": Column(UTC_INSTANT, null="no job of it ended", text="end of a completed or timed-out job"),
        "queue_wait_s": Column(pl.Float64, "s", null="never started", text="last start − created"),
        "status": Column(STATUS),
        "retry_of": Column(pl.String, null="not a repeated request", text="request_id of the first one"),
    },
)
"""One row a request in the traffic's row order; repeated requests follow, in the order in which they were sent."""
