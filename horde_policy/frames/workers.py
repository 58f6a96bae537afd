"""The workers frame: one row a worker that a source lists, as it declares itself (horde.md §1.3)."""

import polars as pl

from horde_policy.frames.schemas import Column, Schema

__all__ = ["WORKERS"]

WORKERS = Schema(
    "workers",
    {
        "worker_id": Column(pl.String, text="the server's id of the worker"),
        "name": Column(pl.String, null="not reported", text="hostile text: escape wherever it is shown"),
        "models": Column(pl.List(pl.String), text="names as the worker declares them; hostile text"),
        "max_length": Column(pl.Int64, "tokens", null="not reported", text="largest max_length it accepts"),
        "max_context_length": Column(pl.Int64, "tokens", null="not reported", text="largest context it accepts"),
        "speed_tok_per_s": Column(
            pl.Float64, "tok/s", null="not reported or unreadable", text="mean of its last jobs; meaningless if not measured"
        ),
        "measured": Column(pl.Boolean, null="not known", text="has completed a job: requests_fulfilled above 0 (A8)"),
        "threads": Column(pl.Int64, "jobs", null="not reported", text="jobs it says it runs at once"),
        "online": Column(pl.Boolean, null="not reported"),
        "maintenance": Column(pl.Boolean, null="not reported", text="serves only its owner"),
        "flagged": Column(pl.Boolean, null="not reported", text="of the owner; flagged owners cannot pop"),
        "trusted": Column(pl.Boolean, null="not reported", text="of the owner"),
        "bridge_agent": Column(pl.String, null="not reported", text="name:version:url; hostile text"),
        "owner": Column(pl.String, null="not public", text="hostile text"),
        "requests_fulfilled": Column(pl.Int64, "jobs", null="not reported", text="lifetime"),
        "uncompleted_jobs": Column(pl.Int64, "jobs", null="not reported", text="lifetime aborted, not in flight"),
        "uptime_s": Column(pl.Int64, "s", null="not reported"),
    },
    sort=("worker_id",),
)
"""One row a worker, sorted by id. A field that is unreadable is null (models: an empty list), with a Problem."""
