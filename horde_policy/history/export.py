"""A history as a folder of Parquet files, which other programs can read and another store can take in.

``polls``, ``workers``, ``models``, ``queues``, ``parts``, ``gaps`` and ``events``, each with its schema below, and
``about.json``. As in the store, a poll holds what changed since the one with the number before it; one that follows no such poll
is a keyframe and holds everything. The folder is there whole or not at all.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import sqlalchemy as sa

from horde_policy.errors import InputError
from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema
from horde_policy.history.folding import state_at
from horde_policy.history.reading import runs_between, sources_in
from horde_policy.history.states import COUNTS, unpacked_speed
from horde_policy.history.store import HistoryStore, from_microseconds, to_microseconds
from horde_policy.history.tables import (
    EVENTS,
    GAPS,
    LABELS,
    MODEL_QUEUES,
    MODEL_STATES,
    PART_STATES,
    POLLS,
    PROFILES,
    SOURCES,
    WORKER_COUNTS,
    WORKER_STATES,
)

__all__ = [
    "ABOUT_FILE",
    "EXPORT_FORMAT",
    "EXPORT_TABLES",
    "EXPORT_VERSION",
    "KEYS",
    "Exported",
    "export_frames",
    "export_history",
]

ABOUT_FILE = "about.json"
EXPORT_FORMAT = "horde_policy history"
EXPORT_VERSION = 1

_SOURCE = Column(pl.String, text="the horde that was polled")
_POLL = Column(pl.Int64, text="the poll's number within its source")

EXPORT_TABLES: Mapping[str, Schema] = {
    "polls": Schema(
        "polls",
        {
            "source": _SOURCE,
            "poll": _POLL,
            "at": Column(UTC_INSTANT, "UTC", text="when its newest part was had"),
            "lag_us": Column(pl.Int64, "µs", text="how much older its oldest part was"),
            "keyframe": Column(pl.Boolean, text="holds everything, not just what changed"),
            "models_known": Column(pl.Boolean, text="the list of models could be had"),
        },
        sort=("source", "poll"),
    ),
    "workers": Schema(
        "workers",
        {
            "source": _SOURCE,
            "poll": _POLL,
            "worker_id": Column(pl.String, text="hostile text"),
            "profile": Column(pl.String, null="gone from here on", text="what it declares and its flags, as JSON"),
            "speed_tok_per_s": Column(pl.Float64, "tok/s", null="gone, or not reported"),
            "requests_fulfilled": Column(pl.Int64, "jobs", null="as at its last keyframe, or not reported"),
            "uncompleted_jobs": Column(pl.Int64, "jobs", null="as at its last keyframe, or not reported"),
            "uptime_s": Column(pl.Int64, "s", null="as at its last keyframe, or not reported"),
        },
        sort=("source", "poll", "worker_id"),
    ),
    "models": Schema(
        "models",
        {
            "source": _SOURCE,
            "poll": _POLL,
            "model": Column(pl.String, text="hostile text"),
            "listed": Column(pl.Boolean, text="false: it left the list here"),
            "threads": Column(pl.Int64, "jobs", null="not reported"),
            "job_speed_tok_per_s": Column(pl.Float64, "tok/s", null="not reported"),
        },
        sort=("source", "poll", "model"),
    ),
    "queues": Schema(
        "queues",
        {
            "source": _SOURCE,
            "poll": _POLL,
            "model": Column(pl.String, text="hostile text"),
            "queued_tokens": Column(pl.Float64, "tokens", null="not reported"),
            "jobs": Column(pl.Float64, "jobs", null="not reported"),
            "eta_s": Column(pl.Float64, "s", null="not reported"),
        },
        sort=("source", "poll", "model"),
    ),
    "parts": Schema(
        "parts",
        {"source": _SOURCE, "poll": _POLL, "part": Column(pl.String), "body": Column(pl.String, text="JSON")},
        sort=("source", "poll", "part"),
    ),
    "gaps": Schema(
        "gaps",
        {
            "source": _SOURCE,
            "from": Column(UTC_INSTANT, "UTC", text="the last poll before"),
            "to": Column(UTC_INSTANT, "UTC", text="the first poll after"),
            "reason": Column(pl.String),
        },
        sort=("source", "from"),
    ),
    "events": Schema(
        "events",
        {
            "source": _SOURCE,
            "at": Column(UTC_INSTANT, "UTC"),
            "kind": Column(pl.String),
            "text": Column(pl.String, text="may hold hostile names"),
        },
        sort=("source", "at", "kind", "text"),
    ),
}
"""The files of an export, by name without their ending."""

KEYS: Mapping[str, str] = {"workers": "worker_id", "models": "model", "queues": "model", "parts": "part"}
"""What the rows of a poll are told apart by."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the folder, its size, and rows by table."""

    folder: Path
    bytes_: int
    rows: dict[str, int]


def export_history(
    store: HistoryStore,
    folder: Path,
    *,
    now: datetime,
    start: datetime | None = None,
    end: datetime | None = None,
    source: str | None = None,
) -> Exported:
    """Write a store, or a range or source of it, to a folder of Parquet files.

    Parameters
    ----------
    store
        What is exported.
    folder
        Must not be there yet; its parent must.
    now
        Stands in ``about.json``.
    start, end, source
        Null: from the first poll, to the last, of every source.

    Raises
    ------
    InputError
        The folder is there, its parent is not, it cannot be written, or the source is not in the store.
    StoreError
        The store cannot be read.
    """
    _check_place(folder)
    about, frames = export_frames(store, now=now, start=start, end=end, source=source)
    beside = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        beside.mkdir()
        for name, frame in frames.items():
            frame.write_parquet(beside / f"{name}.parquet", compression="zstd")
        (beside / ABOUT_FILE).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        _check_place(folder)
        beside.rename(folder)
    except OSError as error:
        raise InputError("--out", "", str(folder), f"cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    size = sum(path.stat().st_size for path in folder.iterdir())
    return Exported(folder, size, {name: frame.height for name, frame in frames.items()})


def _check_place(folder: Path) -> None:
    if folder.exists() or folder.is_symlink():
        raise InputError("--out", "", str(folder), "must not be there yet")
    if not folder.parent.is_dir():
        raise InputError("--out", "", str(folder), "must lie in a folder that is there")


def export_frames(
    store: HistoryStore,
    *,
    now: datetime,
    start: datetime | None = None,
    end: datetime | None = None,
    source: str | None = None,
) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    """Return ``about.json`` and the frames of an export (:data:`EXPORT_TABLES`); see :func:`export_history`."""
    pieces: dict[str, list[pl.DataFrame]] = {name: [schema.empty()] for name, schema in EXPORT_TABLES.items()}
    told: list[dict[str, Any]] = []
    with store.reading() as connection:
        spans = [span for span in sources_in(store) if span.first is not None and source in (None, span.name)]
        if source is not None and not spans:
            raise InputError("history", "source", source, "is not in the store")
        for span in sorted(spans, key=lambda span: span.name):
            assert span.first is not None
            assert span.last is not None
            number = int(connection.execute(sa.select(SOURCES.c.source).where(SOURCES.c.name == span.name)).scalar_one())
            of_source = _Export(connection, number, span.name, start or span.first, end or span.last)
            for name, frame in of_source.frames(whole=start is None and end is None).items():
                pieces[name].append(frame)
            told.append({"source": span.name, "synthetic": span.synthetic})
    frames = {
        name: EXPORT_TABLES[name].checked(pl.concat(parts).sort(EXPORT_TABLES[name].sort)) for name, parts in pieces.items()
    }
    about = {"format": EXPORT_FORMAT, "version": EXPORT_VERSION, "exported_at": now.astimezone(UTC).isoformat(), "sources": told}
    return about, frames


@dataclass(frozen=True, slots=True)
class _Export:
    """The export of one source."""

    connection: sa.Connection
    source: int
    name: str
    start: datetime
    end: datetime

    def frames(self, *, whole: bool) -> dict[str, pl.DataFrame]:
        polls: list[dict[str, Any]] = []
        states: dict[str, list[dict[str, Any]]] = {name: [] for name in KEYS}
        shift = 0
        for run in runs_between(self.connection, self.source, self.start, self.end):
            # Numbers run on over all runs, with one left out between two: there the next one stands on its own.
            first = polls[-1]["poll"] + 2 if polls else 1
            shift = first - run.first
            self._first_poll(run.first, shift, states)
            self._following(run.first, run.last, shift, states)
            polls += self._polls(run.first, run.last, shift)
        frames = {name: self._frame(name, rows) for name, rows in {"polls": polls, **states}.items()}
        return frames | {"gaps": self._gaps(), "events": self._events(whole=whole)}

    def _frame(self, name: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
        schema = EXPORT_TABLES[name]
        columns = {column: [row[column] for row in rows] for column in schema.columns if column != "source"}
        kinds = {column: kind for column, kind in schema.polars_schema().items() if column != "source"}
        return pl.DataFrame(columns, schema=kinds).select(pl.lit(self.name).alias("source"), pl.all())

    def _polls(self, first: int, last: int, shift: int) -> list[dict[str, Any]]:
        p = POLLS.c
        query = sa.select(POLLS).where(p.source == self.source, p.poll >= first, p.poll <= last).order_by(p.poll)
        return [
            {
                "poll": row.poll + shift,
                "at": from_microseconds(row.at_us),
                "lag_us": row.lag_us,
                "keyframe": bool(row.keyframe) or row.poll == first,
                "models_known": bool(row.models_known),
            }
            for row in self.connection.execute(query)
        ]

    def _first_poll(self, first: int, shift: int, states: dict[str, list[dict[str, Any]]]) -> None:
        """Add everything as of the first poll of a run."""
        state = state_at(self.connection, self.source, first)
        poll = first + shift
        for worker_id, worker in state.workers.items():
            states["workers"].append({"poll": poll, "worker_id": worker_id, **_worker_values(worker._asdict())})
        for model, listed in state.models.items():
            states["models"].append({"poll": poll, "model": model, **_model_values(listed.served())})
            states["queues"].append({"poll": poll, "model": model, **listed.queue()})
        states["parts"] += [{"poll": poll, "part": part, "body": body} for part, body in state.parts.items()]

    def _following(self, first: int, last: int, shift: int, states: dict[str, list[dict[str, Any]]]) -> None:
        """Add what changed at the polls after the first of a run."""

        def rows(table: sa.Table, joined: sa.FromClause, *more: Any) -> sa.CursorResult[Any]:
            within = (table.c.source == self.source, table.c.poll > first, table.c.poll <= last)
            return self.connection.execute(sa.select(table, *more).select_from(joined).where(*within))

        workers = WORKER_STATES.join(LABELS, LABELS.c.label == WORKER_STATES.c.worker)
        workers = workers.outerjoin(PROFILES, PROFILES.c.profile == WORKER_STATES.c.profile)
        same = [WORKER_COUNTS.c[name] == WORKER_STATES.c[name] for name in ("source", "poll", "worker")]
        workers = workers.outerjoin(WORKER_COUNTS, sa.and_(*same))
        texts = (LABELS.c.text.label("worker_id"), PROFILES.c.body.label("declared"), *(WORKER_COUNTS.c[name] for name in COUNTS))
        for row in rows(WORKER_STATES, workers, *texts):
            values = _worker_values({**row._asdict(), "profile": row.declared})
            states["workers"].append({"poll": row.poll + shift, "worker_id": row.worker_id, **values})
        models = MODEL_STATES.join(LABELS, LABELS.c.label == MODEL_STATES.c.model)
        for row in rows(MODEL_STATES, models, LABELS.c.text.label("name")):
            states["models"].append({"poll": row.poll + shift, "model": row.name, **_model_values(row._asdict())})
        queues = MODEL_QUEUES.join(LABELS, LABELS.c.label == MODEL_QUEUES.c.model)
        for row in rows(MODEL_QUEUES, queues, LABELS.c.text.label("name")):
            told = {"queued_tokens": row.queued_tokens, "jobs": row.jobs, "eta_s": row.eta_s}
            states["queues"].append({"poll": row.poll + shift, "model": row.name, **told})
        for row in rows(PART_STATES, PART_STATES):
            states["parts"].append({"poll": row.poll + shift, "part": row.part, "body": row.body})

    def _gaps(self) -> pl.DataFrame:
        g = GAPS.c
        inside = (g.source == self.source, g.from_us >= to_microseconds(self.start), g.to_us <= to_microseconds(self.end))
        rows = self.connection.execute(sa.select(GAPS).where(*inside).order_by(g.from_us))
        found = [{"from": from_microseconds(r.from_us), "to": from_microseconds(r.to_us), "reason": r.reason} for r in rows]
        return self._frame("gaps", found)

    def _events(self, *, whole: bool) -> pl.DataFrame:
        e = EVENTS.c
        inside = (e.at_us >= to_microseconds(self.start), e.at_us <= to_microseconds(self.end))
        query = sa.select(EVENTS).where(e.source == self.source, *(() if whole else inside))
        rows = self.connection.execute(query.order_by(e.at_us, e.event))
        return self._frame("events", [{"at": from_microseconds(r.at_us), "kind": r.kind, "text": r.text} for r in rows])


def _worker_values(row: Mapping[str, Any]) -> dict[str, Any]:
    told = ("profile", *COUNTS)
    return {name: row[name] for name in told} | {"speed_tok_per_s": unpacked_speed(row["speed"])}


def _model_values(row: Mapping[str, Any]) -> dict[str, Any]:
    speed = unpacked_speed(row["job_speed"])
    return {"listed": bool(row["listed"]), "threads": row["threads"], "job_speed_tok_per_s": speed}
