"""The sweep frame: every point tried, one row per (settings, load, seed, fill, day), with counts and the metrics of that day.

All views are projections of it. The counts add up over rows; the metrics of several rows together are computed from the
summed counts (:mod:`horde_policy.sweep.metrics`), never from the metrics of each.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, get_type_hints

import numpy as np
import polars as pl

from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema
from horde_policy.settings import ReplaySettings
from horde_policy.sweep.axes import SETTINGS
from horde_policy.sweep.counting import BINS, COUNTERS, WAITERS, Outcome
from horde_policy.sweep.days import parts_of_days
from horde_policy.sweep.grid import Point, Scenario
from horde_policy.sweep.metrics import METRICS, Array, Tally

__all__ = ["SWEEP", "frame_of", "settings_of_row", "tally_of"]

_KINDS: Final[dict[Any, Any]] = {int: pl.Int64, float: pl.Float64, float | None: pl.Float64, bool: pl.Boolean}
_NULLS: Final = {"job_timeout_s": "no job is cut off"}
_UNITS: Final = {"_tokens": "tokens", "_tok_per_s": "tok/s", "_kudos": "kudos", "_s": "s"}


def _unit(name: str) -> str:
    return next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")


def _setting_columns() -> dict[str, Column]:
    hints = get_type_hints(ReplaySettings)
    return {n: Column(_KINDS.get(hints[n], pl.String), _unit(n), null=_NULLS.get(n, "")) for n in SETTINGS}


_WAIT_PARTS: Final = (
    ("bin", pl.UInt16, "places of the bins of wait that hold anyone"),
    ("count", pl.UInt32, "admitted requests in each of these bins"),
)

SWEEP: Final = Schema(
    "sweep",
    {
        "key": Column(pl.String, text="names inputs, engine, settings and scenario: equal keys, equal rows"),
        "point": Column(pl.String, text="sixteen digits that name the settings"),
        "baseline": Column(pl.Boolean, text="the settings in force"),
        **_setting_columns(),
        "load": Column(pl.Float64, text="1 is the traffic as it is"),
        "seed": Column(pl.Int64),
        "fill": Column(pl.String, null="the traffic as it is, or the default rule for a trace"),
        "day": Column(pl.Int64, text="day 1 is the first 24 hours from the first request on"),
        "day_from": Column(UTC_INSTANT),
        "day_hours": Column(
            pl.Float64, "h", text="24, or of a last day that is not whole those that the requests span; it is not judged"
        ),
        "utilisation": Column(
            pl.Float64, null="no span of time or no fleet", text="of the whole scenario: tokens used ÷ tokens possible"
        ),
        **{name: Column(pl.Int64, "tokens" if name.endswith("tokens") else "") for name in COUNTERS},
        **{f"waits_{who}_{part}": Column(pl.List(kind), text=text) for who in WAITERS for part, kind, text in _WAIT_PARTS},
        "model_unfunded": Column(pl.List(pl.UInt32), text="unfunded requests by model group, in the stamp's order"),
        "model_refused": Column(pl.List(pl.UInt32), text="of them refused"),
        "asked_by": Column(pl.List(pl.UInt32), text="requests by requester and, within, by requested size (A25)"),
        **{m.key: Column(pl.Float64, "" if m.unit == "share" else m.unit, null="nobody to count") for m in METRICS.values()},
    },
    sort=("point", "load", "seed", "fill", "day"),
)
"""One row a point, scenario and day."""


def frame_of(
    done: Sequence[tuple[str, Point, Scenario, Outcome]],
    *,
    day_from: Sequence[datetime],
    day_hours: Sequence[float],
    days: tuple[int, ...] | None,
) -> pl.DataFrame:
    """Return replays as frame :data:`SWEEP`, in their order, a row a day.

    Parameters
    ----------
    done
        Key, point, scenario and what it came to.
    day_from
        When each day of the traffic begins.
    day_hours
        How many hours of each day the requests span.
    days
        The days that are kept; null for all.
    """
    if not done:
        return SWEEP.empty()
    kept = np.array([d - 1 for d in days] if days is not None else range(len(day_from)), np.int64)
    columns = _names(done, len(kept))
    columns |= {
        "day": np.tile(kept + 1, len(done)),
        "day_from": pl.Series([day_from[d] for d in kept] * len(done), dtype=UTC_INSTANT),
        "day_hours": pl.Series([day_hours[d] for d in kept] * len(done), dtype=pl.Float64),
    }
    counters = np.concatenate([outcome.counters[kept] for *_, outcome in done])
    by_group = np.concatenate([outcome.by_group[kept] for *_, outcome in done])
    columns |= {name: counters[:, place] for place, name in enumerate(COUNTERS)}
    columns |= _waits(done, kept, len(day_from))
    columns |= {f"model_{what}": pl.Series(by_group[:, :, k].tolist()) for k, what in enumerate(("unfunded", "refused"))}
    columns["asked_by"] = pl.Series(np.concatenate([o.asked_by[kept] for *_, o in done]).reshape(len(counters), -1).tolist())
    counts = pl.DataFrame({name: pl.Series(values) for name, values in columns.items()}).cast(
        {name: column.dtype for name, column in SWEEP.columns.items() if name not in METRICS}
    )
    return SWEEP.checked(counts.hstack(_measured(counts)))


def _names(done: Sequence[tuple[str, Point, Scenario, Outcome]], days: int) -> dict[str, Any]:
    """Return the columns that are the same for all days of a replay."""
    same: dict[str, list[object]] = {
        "key": [key for key, *_ in done],
        "point": [point.name for _, point, *_ in done],
        "baseline": [point.baseline for _, point, *_ in done],
        **{name: [getattr(point.settings, name) for _, point, *_ in done] for name in SETTINGS},
        "load": [scenario.load for *_, scenario, _ in done],
        "seed": [scenario.seed for *_, scenario, _ in done],
        "fill": [scenario.fill for *_, scenario, _ in done],
        "utilisation": [float(outcome.utilisation) for *_, outcome in done],
    }
    place = pl.Series(np.repeat(np.arange(len(done)), days))
    kinds = {name: SWEEP.columns[name].dtype for name in same}
    columns = {name: pl.Series(values, dtype=kinds[name], strict=False).gather(place) for name, values in same.items()}
    columns["utilisation"] = columns["utilisation"].fill_nan(None)
    return columns


def _waits(done: Sequence[tuple[str, Point, Scenario, Outcome]], kept: Array, days: int) -> dict[str, pl.Series]:
    """Return the waits' columns: for each kept day and waiter, which bins hold anyone and how many."""
    per_cell = [np.searchsorted(o.wait_place, np.arange(days * len(WAITERS) + 1) * BINS) for *_, o in done]
    columns: dict[str, pl.Series] = {}
    for w, who in enumerate(WAITERS):
        bins: list[Array] = []
        held: list[Array] = []
        for (*_, outcome), edge in zip(done, per_cell, strict=True):
            for day in kept:
                cell = day * len(WAITERS) + w
                span = slice(edge[cell], edge[cell + 1])
                bins.append((outcome.wait_place[span] - cell * BINS).astype(np.uint16))
                held.append(outcome.wait_count[span].astype(np.uint32))
        columns[f"waits_{who}_bin"] = pl.Series(bins, dtype=pl.List(pl.UInt16))
        columns[f"waits_{who}_count"] = pl.Series(held, dtype=pl.List(pl.UInt32))
    return columns


ROWS_AT_A_TIME = 2048
"""Rows whose waits are laid out in full together, to bound the memory."""


def _measured(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the metrics of each row."""
    parts = []
    for start in range(0, counts.height, ROWS_AT_A_TIME):
        tally = tally_of(counts[start : start + ROWS_AT_A_TIME], WAITERS)
        parts.append(pl.DataFrame({m.key: pl.Series(m.measure(tally)).fill_nan(None) for m in METRICS.values()}))
    return pl.concat(parts)


def settings_of_row(row: dict[str, Any]) -> ReplaySettings:
    """Return the settings of one row of the frame."""
    return ReplaySettings(**{name: row[name] for name in SETTINGS})


def _waits_dense(frame: pl.DataFrame, who: str) -> Array:
    places, held = frame[f"waits_{who}_bin"], frame[f"waits_{who}_count"]
    dense = np.zeros((frame.height, BINS))
    rows = np.repeat(np.arange(frame.height), places.list.len().to_numpy())
    dense[rows, places.explode(empty_as_null=False).to_numpy()] = held.explode(empty_as_null=False).to_numpy()
    return dense


def tally_of(frame: pl.DataFrame, waiters: Sequence[str] = ()) -> Tally:
    """Return the rows' counts as a tally whose first dimension is the rows."""
    groups = [
        frame[f"model_{what}"].explode(empty_as_null=False).to_numpy().astype(np.float64).reshape(frame.height, -1)
        for what in ("unfunded", "refused")
    ]
    return Tally(
        counters=frame.select(COUNTERS).to_numpy().astype(np.float64),
        by_group=np.stack(groups, axis=-1),
        days=parts_of_days(frame["day_hours"]),
        longest_s=frame["request_ttl_s"].to_numpy(),
        waits={who: _waits_dense(frame, who) for who in waiters},
    )
