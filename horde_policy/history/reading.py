"""What the history says: the snapshot at an instant, and how models and workers went over a range.

Every reading starts at a keyframe, so a range costs what changed in it and at most one keyframe's span before it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import polars as pl
import sqlalchemy as sa

from horde_policy.errors import InputError, StoreError
from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.states import models_frame, parts_from_bodies, unpacked_speed, workers_frame
from horde_policy.history.store import HistoryStore, from_microseconds, state_at, to_microseconds
from horde_policy.history.tables import (
    EVENTS,
    GAPS,
    LABELS,
    MODEL_STATES,
    POLLS,
    PROFILES,
    SOURCES,
    WORKER_STATES,
)

__all__ = [
    "EVENT_ROWS",
    "GAP_ROWS",
    "MODEL_CHANGES",
    "WORKER_CHANGES",
    "SourceSpan",
    "events_between",
    "gaps_between",
    "model_changes",
    "poll_instants",
    "snapshot_at",
    "sources_in",
    "worker_changes",
]

MODEL_CHANGES = Schema(
    "model_changes",
    {
        "at": Column(UTC_INSTANT, "UTC", text="the poll from which this holds"),
        "model": Column(pl.String, text="hostile text"),
        "listed": Column(pl.Boolean, text="false: it left the list here"),
        "threads": Column(pl.Int64, "jobs", null="not reported, or not listed"),
        "queued_tokens": Column(pl.Float64, "tokens", null="not reported, or not listed"),
        "jobs": Column(pl.Float64, "jobs", null="not reported, or not listed"),
    },
    sort=("model", "at"),
)
"""One row a model and change; the first row of a model is its state at the start of the range."""

WORKER_CHANGES = Schema(
    "worker_changes",
    {
        "at": Column(UTC_INSTANT, "UTC", text="the poll from which this holds"),
        "worker_id": Column(pl.String),
        "present": Column(pl.Boolean, text="false: it was gone from here on"),
        "profile": Column(pl.String, null="gone", text="what it declares, as JSON"),
        "flags": Column(pl.Int64, null="gone", text="measured, online, maintenance, packed"),
        "speed_tok_per_s": Column(pl.Float64, "tok/s", null="gone, or not reported"),
    },
    sort=("worker_id", "at"),
)
"""One row a worker and change; the first row of a worker is its state at the start of the range, if it was there."""

GAP_ROWS = Schema(
    "gaps",
    {
        "from": Column(UTC_INSTANT, "UTC", text="the last poll before"),
        "to": Column(UTC_INSTANT, "UTC", text="the first poll after"),
        "reason": Column(pl.String),
    },
    sort=("from",),
)

EVENT_ROWS = Schema(
    "events",
    {"at": Column(UTC_INSTANT, "UTC"), "kind": Column(pl.String), "text": Column(pl.String, text="may hold hostile names")},
)


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """A recorded source: its name, whether its data are made up, how many polls it has and from when to when."""

    name: str
    synthetic: bool
    polls: int
    first: datetime | None
    last: datetime | None


def sources_in(store: HistoryStore) -> tuple[SourceSpan, ...]:
    """Return the sources that a store holds, the most recently polled first."""
    spans = []
    with store.reading() as connection:
        query = (
            sa.select(
                SOURCES.c.name,
                SOURCES.c.synthetic,
                sa.func.count(POLLS.c.poll),
                sa.func.min(POLLS.c.at_us),
                sa.func.max(POLLS.c.at_us),
            )
            .select_from(SOURCES.outerjoin(POLLS, POLLS.c.source == SOURCES.c.source))
            .group_by(SOURCES.c.source, SOURCES.c.name, SOURCES.c.synthetic)
        )
        for name, synthetic, polls, first, last in connection.execute(query):
            ends = [None if us is None else from_microseconds(us) for us in (first, last)]
            spans.append(SourceSpan(name, bool(synthetic), int(polls), *ends))
    return tuple(sorted(spans, key=lambda span: (span.last is None, -(span.last.timestamp() if span.last else 0.0), span.name)))


def _source(connection: sa.Connection, store: HistoryStore, source: str | None) -> tuple[int, str, bool]:
    """Return number, name and synthetic of a source; null asks for the only one, or the most recently polled."""
    if source is None:
        spans = sources_in(store)
        if not spans or not spans[0].polls:
            raise StoreError(store.name, "holds no poll yet")
        source = spans[0].name
    row = connection.execute(sa.select(SOURCES).where(SOURCES.c.name == source)).one_or_none()
    if row is None:
        raise InputError("history", "source", source, "is not in the store")
    return int(row.source), str(row.name), bool(row.synthetic)


class _Poll(NamedTuple):
    poll: int
    at_us: int
    models_known: bool


def _poll_at(connection: sa.Connection, source: int, at_us: int) -> _Poll | None:
    query = sa.select(POLLS.c.poll, POLLS.c.at_us, POLLS.c.models_known).where(POLLS.c.source == source, POLLS.c.at_us <= at_us)
    row = connection.execute(query.order_by(POLLS.c.at_us.desc()).limit(1)).one_or_none()
    return None if row is None else _Poll(*row)


def snapshot_at(store: HistoryStore, at: datetime, source: str | None = None) -> Snapshot:
    """Return the last snapshot that was stored at or before an instant.

    Its figures are those of the snapshot that was polled; the lifetime counts of a worker are as of its last change.

    Raises
    ------
    InputError
        Nothing was stored by then, or the source is not in the store.
    """
    with store.reading() as connection:
        number, name, synthetic = _source(connection, store, source)
        poll = _poll_at(connection, number, to_microseconds(at))
        if poll is None:
            raise InputError("history", "instant", at.isoformat(), f"is before the first poll of {name}")
        state = state_at(connection, number, poll.poll)
    parts = parts_from_bodies(state.parts)
    fetched_at = from_microseconds(poll.at_us)
    return Snapshot(
        fetched_at=fetched_at,
        source=name,
        source_kind="history",
        synthetic=synthetic,
        workers=workers_frame(state.workers),
        models=models_frame(state.models) if poll.models_known else None,
        performance=parts.performance,
        modes=parts.modes,
        heartbeat=parts.heartbeat,
        totals=parts.totals,
        demand=parts.demand,
        problems=parts.problems,
        part_times={"poll": fetched_at},
    )


def _span(connection: sa.Connection, source: int, start: datetime, end: datetime) -> tuple[int, int, int] | None:
    """Return keyframe, first and last poll of a range: the state at its start begins at the keyframe."""
    last = _poll_at(connection, source, to_microseconds(end))
    if last is None:
        return None
    first = _poll_at(connection, source, to_microseconds(start))
    first_poll = 1 if first is None else first.poll
    keyframe = connection.scalar(
        sa.select(sa.func.max(POLLS.c.poll)).where(POLLS.c.source == source, POLLS.c.poll <= first_poll, POLLS.c.keyframe)
    )
    return int(keyframe or 0), int(first_poll), int(last.poll)


def poll_instants(store: HistoryStore, start: datetime, end: datetime, source: str | None = None) -> pl.Series:
    """Return when the source was polled in [start, end], in order, as a series of UTC instants."""
    with store.reading() as connection:
        number, _, _ = _source(connection, store, source)
        span = (POLLS.c.at_us >= to_microseconds(start), POLLS.c.at_us <= to_microseconds(end))
        query = sa.select(POLLS.c.at_us).where(POLLS.c.source == number, *span).order_by(POLLS.c.at_us)
        return pl.Series("at", list(connection.scalars(query)), dtype=pl.Int64).cast(UTC_INSTANT)


def _from_start(frame: pl.DataFrame, key: str, first_poll: int, gone: pl.Expr) -> pl.DataFrame:
    """Keep of each key its state at the range's first poll and what came after; one that was gone by then starts later."""
    before = frame.filter(pl.col("poll") <= first_poll).group_by(key, maintain_order=True).last().filter(~gone)
    after = frame.filter(pl.col("poll") > first_poll)
    return pl.concat([before.select(frame.columns), after])


def model_changes(
    store: HistoryStore, start: datetime, end: datetime, models: tuple[str, ...] | None = None, source: str | None = None
) -> pl.DataFrame:
    """Return how models went from ``start`` to ``end``: frame :data:`MODEL_CHANGES`; null ``models`` asks for all."""
    m = MODEL_STATES.c
    with store.reading() as connection:
        number, _, _ = _source(connection, store, source)
        span = _span(connection, number, start, end)
        if span is None:
            return MODEL_CHANGES.empty()
        keyframe, first, last = span
        query = (
            sa.select(m.poll, POLLS.c.at_us, LABELS.c.text, m.listed, m.threads, m.queued_tokens, m.jobs)
            .select_from(
                MODEL_STATES.join(LABELS, LABELS.c.label == m.model).join(
                    POLLS, sa.and_(POLLS.c.source == m.source, POLLS.c.poll == m.poll)
                )
            )
            .where(m.source == number, m.poll >= keyframe, m.poll <= last)
            .order_by(m.poll)
        )
        if models is not None:
            wanted = sa.select(LABELS.c.label).where(LABELS.c.kind == "model", LABELS.c.text.in_(models))
            query = query.where(m.model.in_(wanted))
        rows = connection.execute(query).all()
    schema = {
        "poll": pl.Int64,
        "at": pl.Int64,
        "model": pl.String,
        "listed": pl.Boolean,
        "threads": pl.Int64,
        "queued_tokens": pl.Float64,
        "jobs": pl.Float64,
    }
    frame = pl.DataFrame([tuple(row) for row in rows], schema=schema, orient="row").with_columns(pl.col("at").cast(UTC_INSTANT))
    kept = _from_start(frame, "model", first, ~pl.col("listed"))
    return MODEL_CHANGES.checked(kept.sort(MODEL_CHANGES.sort))


def worker_changes(store: HistoryStore, start: datetime, end: datetime, source: str | None = None) -> pl.DataFrame:
    """Return how workers went from ``start`` to ``end``: frame :data:`WORKER_CHANGES`."""
    w = WORKER_STATES.c
    with store.reading() as connection:
        number, _, _ = _source(connection, store, source)
        span = _span(connection, number, start, end)
        if span is None:
            return WORKER_CHANGES.empty()
        keyframe, first, last = span
        query = (
            sa.select(w.poll, POLLS.c.at_us, LABELS.c.text, PROFILES.c.body, w.flags, w.speed_tenths, w.speed_raw)
            .select_from(
                WORKER_STATES.join(LABELS, LABELS.c.label == w.worker)
                .join(POLLS, sa.and_(POLLS.c.source == w.source, POLLS.c.poll == w.poll))
                .outerjoin(PROFILES, PROFILES.c.profile == w.profile)
            )
            .where(w.source == number, w.poll >= keyframe, w.poll <= last)
            .order_by(w.poll)
        )
        rows = [
            (poll, at_us, worker, body is not None, body, flags, unpacked_speed(tenths, raw))
            for poll, at_us, worker, body, flags, tenths, raw in connection.execute(query)
        ]
    schema = {"poll": pl.Int64, "at": pl.Int64, "worker_id": pl.String, "present": pl.Boolean, "profile": pl.String}
    schema |= {"flags": pl.Int64, "speed_tok_per_s": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("at").cast(UTC_INSTANT))
    kept = _from_start(frame, "worker_id", first, ~pl.col("present"))
    return WORKER_CHANGES.checked(kept.sort(WORKER_CHANGES.sort))


def gaps_between(store: HistoryStore, start: datetime, end: datetime, source: str | None = None) -> pl.DataFrame:
    """Return the gaps that touch [start, end]: frame :data:`GAP_ROWS`."""
    with store.reading() as connection:
        number, _, _ = _source(connection, store, source)
        touching = (GAPS.c.to_us >= to_microseconds(start), GAPS.c.from_us <= to_microseconds(end))
        query = sa.select(GAPS.c.from_us, GAPS.c.to_us, GAPS.c.reason).where(GAPS.c.source == number, *touching)
        rows = [tuple(row) for row in connection.execute(query.order_by(GAPS.c.from_us))]
    frame = pl.DataFrame(rows, schema={"from": pl.Int64, "to": pl.Int64, "reason": pl.String}, orient="row")
    return GAP_ROWS.checked(frame.with_columns(pl.col("from", "to").cast(UTC_INSTANT)))


def events_between(store: HistoryStore, start: datetime, end: datetime, source: str | None = None) -> pl.DataFrame:
    """Return what happened in [start, end], in order: frame :data:`EVENT_ROWS`."""
    with store.reading() as connection:
        number, _, _ = _source(connection, store, source)
        within = (EVENTS.c.at_us >= to_microseconds(start), EVENTS.c.at_us <= to_microseconds(end))
        query = sa.select(EVENTS.c.at_us, EVENTS.c.kind, EVENTS.c.text).where(EVENTS.c.source == number, *within)
        rows = [tuple(row) for row in connection.execute(query.order_by(EVENTS.c.at_us, EVENTS.c.event))]
    frame = pl.DataFrame(rows, schema={"at": pl.Int64, "kind": pl.String, "text": pl.String}, orient="row")
    return EVENT_ROWS.checked(frame.with_columns(pl.col("at").cast(UTC_INSTANT)))
