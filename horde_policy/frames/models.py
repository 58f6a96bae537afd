"""The models frame: one row a model that the server's list names (horde.md §1.4)."""

import polars as pl

from horde_policy.frames.schemas import Column, Schema

__all__ = ["MODELS", "MODEL_DEMAND"]

MODELS = Schema(
    "models",
    {
        "model": Column(pl.String, text="hostile text, not escaped by the server"),
        "threads": Column(pl.Int64, "jobs", null="not reported", text="the list's count: threads, not workers"),
        "job_speed_tok_per_s": Column(pl.Float64, "tok/s", null="not reported", text="mean over the last hour's jobs"),
        "queued_tokens": Column(
            pl.Float64, "tokens", null="not reported", text="max_length of each waiting request once, not times n"
        ),
        "jobs": Column(pl.Float64, "jobs", null="not reported", text="generations waiting and in flight"),
        "eta_s": Column(pl.Float64, "s", null="not reported, or the server's marker 10000 for no capacity"),
    },
    sort=("model",),
)
"""One row a listed model, sorted by name. A served model that is absent has no queue figure: unknown, not zero."""

MODEL_DEMAND = Schema(
    "model_demand",
    {
        "model": Column(pl.String),
        "requests_day": Column(pl.Int64, "requests", null="not reported"),
        "requests_month": Column(pl.Int64, "requests", null="not reported"),
        "requests_total": Column(pl.Int64, "requests", null="not reported"),
    },
    sort=("model",),
)
"""What /stats/text/models counts, compiled once a day."""
