"""Fleets for replays out of a recorded snapshot: its workers as they stood, and what its models were asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from horde_policy.frames.fleet import FLEET, normalised_fleet
from horde_policy.frames.snapshot import Snapshot
from horde_policy.frames.workers import WORKERS
from horde_policy.policy.worker import counted_speed_expression
from horde_policy.replay.fill import ModelWeights
from horde_policy.settings import AllowanceSettings

__all__ = ["EVER", "Fleet", "demand_weights", "fleet_figures", "fleet_from_snapshot", "moved_to"]

EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""A recorded fleet is there for any traffic: online from here without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A fleet ready for a replay: frame ``FLEET``, and the stamp that goes with every result."""

    frame: pl.DataFrame
    stamp: Mapping[str, Any]


def fleet_from_snapshot(snapshot: Snapshot, *, assumed_speed_tok_per_s: float = 10.0) -> Fleet:
    """Return a snapshot's workers as a fleet that is online from 1970 without end.

    Workers that are offline, in maintenance, or whose owner is flagged are left out, and so are those that do not say what
    a request needs to know (models, sizes). A worker that is not measured (A8) runs at ``assumed_speed_tok_per_s``.

    Parameters
    ----------
    snapshot
        Any snapshot.
    assumed_speed_tok_per_s
        For workers without a measured speed.

    Returns
    -------
    Fleet
        One row a worker that serves strangers, sorted by id; the stamp counts who was left out and why.
    """
    workers = WORKERS.checked(snapshot.workers).sort("worker_id")
    left_out = pl.coalesce(
        pl.when(pl.col("online").eq(other=False)).then(pl.lit("offline")),
        pl.when(pl.col("maintenance")).then(pl.lit("in maintenance")),
        pl.when(pl.col("flagged")).then(pl.lit("flagged owner")),
        pl.when(pl.col("models").is_null() | (pl.col("models").list.len() == 0)).then(pl.lit("no models reported")),
        pl.when(pl.col("max_length").is_null()).then(pl.lit("no max_length reported")),
        pl.when(pl.col("max_context_length").is_null()).then(pl.lit("no max_context_length reported")),
    )
    judged = workers.with_columns(left_out.alias("left_out"))
    speed = counted_speed_expression(AllowanceSettings(assumed_speed_tok_per_s=assumed_speed_tok_per_s))
    measured = pl.col("measured").fill_null(value=False) & (pl.col("speed_tok_per_s") > 0).fill_null(value=False)
    frame = judged.filter(pl.col("left_out").is_null()).select(
        "worker_id",
        pl.lit(EVER).cast(FLEET.columns["online_from"].dtype).alias("online_from"),
        "models",
        "max_length",
        "max_context_length",
        speed.alias("speed"),
        pl.max_horizontal(pl.col("threads").fill_null(1), pl.lit(1, pl.Int64)).alias("threads"),
        measured.alias("measured"),
    )
    fleet = normalised_fleet(frame)
    counts = judged["left_out"].drop_nulls().value_counts(sort=True)
    stamp = {
        "kind": "fleet",
        "from": "snapshot",
        "source": snapshot.source,
        "fetched_at": snapshot.fetched_at.isoformat(),
        "synthetic": snapshot.synthetic,
        "workers_read": workers.height,
        "left_out": dict(counts.iter_rows()),
        **fleet_figures(fleet),
    }
    return Fleet(frame=fleet, stamp=stamp)


def moved_to(fleet: Fleet, first: datetime, *, whole_days: bool) -> Fleet:
    """Return a fleet of other days so that it begins where traffic begins; the stamp says by how much it was moved.

    Parameters
    ----------
    fleet
        Workers that come and go; its first period begins when its record does.
    first
        The traffic's first request.
    whole_days
        Move by whole days, so that hours of the day meet: the record then begins on the traffic's first day, less than a day
        before its first request. Else the record begins with the first request.

    Examples
    --------
    >>> from horde_policy.frames.fleet import normalised_fleet
    >>> worker = {"worker_id": ["w"], "online_from": [datetime(2026, 11, 20, 18, tzinfo=UTC)], "models": [["m"]],
    ...           "max_length": [512], "max_context_length": [4096], "speed": [20.0]}
    >>> fleet = Fleet(frame=normalised_fleet(pl.DataFrame(worker)), stamp={})
    >>> moved = moved_to(fleet, datetime(2026, 11, 29, 12, tzinfo=UTC), whole_days=True)
    >>> moved.frame["online_from"][0].isoformat(), moved.stamp["moved_s"] / 86_400
    ('2026-11-28T18:00:00+00:00', 8.0)
    """
    begins = fleet.frame["online_from"].min()
    if not isinstance(begins, datetime):
        return fleet
    away = first - begins
    by = timedelta(days=away // timedelta(days=1)) if whole_days else away
    frame = fleet.frame.with_columns(pl.col("online_from", "online_to") + by)
    return Fleet(frame=FLEET.checked(frame), stamp={**fleet.stamp, "moved_s": by.total_seconds()})


def fleet_figures(fleet: pl.DataFrame) -> dict[str, Any]:
    """Return the figures of a fleet that stand on its stamp, each worker counted once."""
    first = fleet.unique("worker_id", keep="first", maintain_order=True)
    return {
        "workers": first.height,
        "periods": fleet.height,
        "unmeasured": int((~first["measured"]).sum()),
        "combined_speed_tok_per_s": round(float(first["speed"].sum()), 3),
        "models": first["models"].explode().n_unique() if first.height else 0,
    }


def demand_weights(snapshot: Snapshot) -> ModelWeights | None:
    """Return how often each model was asked for in the last day (else month, else in all), or null if nothing is counted."""
    if snapshot.demand is None:
        return None
    for column, span in (("requests_day", "day"), ("requests_month", "month"), ("requests_total", "total")):
        counts = {m: float(n) for m, n in snapshot.demand.select("model", column).iter_rows() if n}
        if counts:
            return ModelWeights(counts=counts, source=f"{snapshot.source}: requests of the {span}")
    return None
