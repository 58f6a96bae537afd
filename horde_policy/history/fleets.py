"""The fleet frame of ``replay.md`` from recorded days: periods online, mean speed of each, measured or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from horde_policy.errors import InputError
from horde_policy.frames.fleet import FLEET, normalised_fleet
from horde_policy.history.fleet_span import OPEN, FleetSpan, load_span
from horde_policy.history.presence import Period, periods_of
from horde_policy.history.reading import chosen_source, gaps_between
from horde_policy.history.store import HistoryStore
from horde_policy.settings import AllowanceSettings

__all__ = ["RecordedFleet", "fleet_from_history", "fleet_of_span"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFleet:
    """A recorded fleet: frame :data:`horde_policy.frames.fleet.FLEET`, and what it was made from and leaves out."""

    frame: pl.DataFrame
    stamp: Mapping[str, Any]


def fleet_of_span(span: FleetSpan, settings: AllowanceSettings) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the fleet of a range, and how many workers were left out altogether, by why.

    A row is a stretch in which a worker served strangers (online, not in maintenance, owner not flagged) with the same models,
    sizes and threads; it ends at the poll that saw it otherwise. The speed is the mean over the period's polls with a measured
    speed, the assumed one (A8) where there is none; ``measured`` says whether it had one when the period began.
    """
    at = span.polls["at"].to_list()
    rows: list[dict[str, Any]] = []
    left_out: dict[str, int] = {}
    for worker, periods in periods_of(span):
        serving = [period for period in periods if period.standing == OPEN]
        kept = [period for period in serving if _takes_requests(span, period)]
        if not kept:
            why = "never served strangers" if not serving else "no models or sizes reported"
            left_out[why] = left_out.get(why, 0) + 1
        for period in kept:
            rows.append(
                {
                    "worker_id": worker.worker_id,
                    "online_from": at[period.first],
                    "online_to": at[period.end] if period.end < len(at) else None,
                    "models": list(span.profiles.models[period.profile]),
                    "max_length": int(span.profiles.max_length[period.profile]),
                    "max_context_length": int(span.profiles.max_context_length[period.profile]),
                    "speed": float(period.speeds.mean()) if period.speeds.size else float(settings.assumed_speed_tok_per_s),
                    "threads": int(span.profiles.threads[period.profile]),
                    "measured": period.measured_at_first,
                }
            )
    names = [name for name in FLEET.columns if name != "slow"]
    schema = {name: FLEET.columns[name].dtype for name in names}
    frame = pl.DataFrame({name: [row[name] for row in rows] for name in names}, schema=schema)
    return normalised_fleet(frame), left_out


def _takes_requests(span: FleetSpan, period: Period) -> bool:
    p = span.profiles
    return bool(p.models[period.profile]) and p.max_length[period.profile] > 0 and p.max_context_length[period.profile] > 0


def fleet_from_history(
    store: HistoryStore, start: datetime, end: datetime, *, settings: AllowanceSettings | None = None, source: str | None = None
) -> RecordedFleet:
    """Return the fleet that was recorded from ``start`` to ``end``, ready for a replay of those days.

    Parameters
    ----------
    store, start, end, source
        What of which history.
    settings
        Its assumed speed stands for workers that were never measured.

    Raises
    ------
    InputError
        Nothing was recorded in the range, or it ends before it starts.
    StoreError
        The store cannot be read.

    Notes
    -----
    The first period of a worker begins at the first poll of the range, and a worker that is there at the last poll stays
    without end. Over a gap a worker counts as online if it is seen in the same form on both sides; the stamp tells the gaps.
    """
    with store.reading() as connection:
        chosen = chosen_source(connection, store, source)
        span = load_span(store, start, end, models=(), source=source)
        gaps = gaps_between(store, start, end, source)
    if not span.height:
        raise InputError("history", "range", f"{start.isoformat()} to {end.isoformat()}", f"holds no poll of {chosen.name}")
    frame, left_out = fleet_of_span(span, settings or AllowanceSettings())
    stamp = {
        "kind": "fleet",
        "from": "history",
        "source": chosen.name,
        "synthetic": chosen.synthetic,
        "first_poll": span.polls["at"][0].isoformat(),
        "last_poll": span.polls["at"][-1].isoformat(),
        "polls": span.height,
        "gaps": gaps.height,
        "gap_s": (gaps["to"] - gaps["from"]).dt.total_seconds().sum(),
        "workers_read": len(span.workers),
        "left_out": left_out,
    }
    return RecordedFleet(frame=frame, stamp=stamp)
