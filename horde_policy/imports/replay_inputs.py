"""Traffic and fleet files for a replay: CSV, JSON lines or Parquet of our own schema, and the stamp a Parquet file carries."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from horde_policy.errors import FrameError, Problem, shown
from horde_policy.frames.fleet import normalised_fleet
from horde_policy.frames.traffic import normalised_traffic
from horde_policy.imports.cells import Kind
from horde_policy.imports.containers import opened
from horde_policy.imports.quirks import doubled
from horde_policy.imports.tables import ROW, read_table
from horde_policy.imports.traces import OWN_KINDS

__all__ = ["FLEET_KINDS", "STAMP_KEY", "ReplayInput", "absence_notes", "load_fleet", "load_traffic", "stamp_of"]

STAMP_KEY = "horde_policy"
"""Key of a Parquet file's metadata under which the stamp stands, as JSON."""

RECORDED_OUTCOME = "recorded_outcome"

FLEET_KINDS: dict[str, Kind] = {
    "worker_id": "text",
    "online_from": "instant",
    "online_to": "instant",
    "models": "names",
    "max_length": "whole",
    "max_context_length": "whole",
    "speed": "real",
    "threads": "whole",
    "measured": "flag",
    "slow": "flag",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayInput:
    """A checked frame, the stamp its file carries (null: none), and what was odd about it."""

    frame: pl.DataFrame
    stamp: Mapping[str, Any] | None
    problems: tuple[Problem, ...] = ()


def stamp_of(path: Path) -> Mapping[str, Any] | None:
    """Return the stamp of a Parquet file that this package wrote, else null."""
    with opened(path) as stream:
        if stream.read(4) != b"PAR1":
            return None
    text = pl.read_parquet_metadata(path).get(STAMP_KEY)
    try:
        stamp = json.loads(text) if text else None
    except json.JSONDecodeError:
        return None
    return stamp if isinstance(stamp, dict) else None


def load_traffic(path: Path) -> ReplayInput:
    """Return a traffic file as frame ``TRAFFIC``, in the file's row order; bad input is refused whole.

    A column ``recorded_outcome``, if the file has it, stands behind: what really became of each request.

    Raises
    ------
    InputError
        The file cannot be read, or a value breaks its rule: names row, column, value and rule.
    FrameError
        A required column is missing or of another type: names the columns that the file has.
    """
    frame = _read(path, {**OWN_KINDS, RECORDED_OUTCOME: "text"}, "traffic")
    problems = list(doubled(frame))
    traffic = _normalised(frame, "traffic", path)
    if RECORDED_OUTCOME in frame.columns and frame[RECORDED_OUTCOME].null_count() < frame.height:
        traffic = traffic.with_columns(frame[RECORDED_OUTCOME])
    if not traffic.height:
        problems.append(Problem("no_rows", path.name, "the file has no rows"))
    elif not traffic["created"].is_sorted():
        problems.append(Problem("out_of_order", "created", "rows stand out of time order: replayed in time order", "note"))
    return ReplayInput(frame=traffic, stamp=stamp_of(path), problems=tuple(problems))


def load_fleet(path: Path) -> ReplayInput:
    """Return a fleet file as frame ``FLEET``, in the file's row order; bad input is refused whole, as for traffic."""
    return ReplayInput(frame=_normalised(_read(path, FLEET_KINDS, "fleet"), "fleet", path), stamp=stamp_of(path))


def absence_notes(traffic: pl.DataFrame, fleet: pl.DataFrame) -> tuple[Problem, ...]:
    """Return what is odd about a fleet of other days than the traffic's; nothing where the whole traffic meets the fleet.

    Parameters
    ----------
    traffic
        ``created``, UTC instants.
    fleet
        ``online_from`` and ``online_to`` (null: without end), UTC instants.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> traffic = pl.DataFrame({"created": [datetime(2025, 9, 1, tzinfo=UTC), datetime(2025, 9, 2, tzinfo=UTC)]})
    >>> online = {"online_from": [datetime(2025, 9, 2, tzinfo=UTC)], "online_to": [datetime(2025, 9, 3, tzinfo=UTC)]}
    >>> [note.text for note in absence_notes(traffic, pl.DataFrame(online))]
    ['1 of 2 requests come outside the time of the fleet, 2025-09-02 00:00 to 2025-09-03 00:00 UTC: no worker is online']
    """
    if not traffic.height:
        return ()
    if not fleet.height:
        return (Problem("no_worker", "fleet", "the fleet has no worker: no request can be served"),)
    first, last = fleet["online_from"].min(), fleet["online_to"].max() if not fleet["online_to"].null_count() else None
    assert isinstance(first, datetime)
    assert last is None or isinstance(last, datetime)
    early = pl.col("created") < first
    outside = traffic.filter(early if last is None else early | (pl.col("created") >= last)).height
    if not outside:
        return ()
    span = f"{first:%Y-%m-%d %H:%M} to {'no end' if last is None else f'{last:%Y-%m-%d %H:%M}'} UTC"
    text = f"{outside} of {traffic.height} requests come outside the time of the fleet, {span}: no worker is online"
    return (Problem("no_worker", "fleet", text, "problem" if outside == traffic.height else "note"),)


def _read(path: Path, kinds: Mapping[str, Kind], what: str) -> pl.DataFrame:
    return read_table(path, kinds, what).frame.drop(ROW)


def _normalised(frame: pl.DataFrame, what: str, path: Path) -> pl.DataFrame:
    try:
        return normalised_traffic(frame) if what == "traffic" else normalised_fleet(frame)
    except FrameError as error:
        if error.rule != "is missing":
            raise
        hint = f"of the columns it wants, {shown(path.name)} has: {', '.join(frame.columns)}"
        raise FrameError(error.what, error.where, error.value, error.rule, hint=hint) from None
