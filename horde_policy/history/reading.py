"""What the history says: the snapshot at an instant, and how models and workers went over a range.

Every reading starts at a keyframe, so a range costs what changed in it and at most one keyframe's span before it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa

from horde_policy.errors import InputError, StoreError
from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.folding import keyframe_of, poll_at, state_at
from horde_policy.history.labels import digest_of, texts_of
from horde_policy.history.states import models_frame, parts_from_bodies, unpacked_speeds, workers_frame
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
    WORKER_STATES,
)

__all__ = [
    "EVENT_ROWS",
    "GAP_ROWS",
    "MODEL_CHANGES",
    "PART_CHANGES",
    "POLL_ROWS",
    "WORKER_CHANGES",
    "Run",
    "SourceSpan",
    "chosen_source",
    "events_between",
    "gaps_between",
    "model_changes",
    "part_changes",
    "polls_between",
    "runs_between",
    "snapshot_at",
    "sources_in",
    "worker_changes",
]

MOST_ASKED = 5_000
MODEL_VALUES = ("listed", "threads", "queued_tokens", "jobs")

POLL_ROWS = Schema(
    "polls",
    {
        "at": Column(UTC_INSTANT, "UTC", text="when its newest part was had"),
        "models_known": Column(pl.Boolean, text="the list of models could be had"),
        "lag_s": Column(pl.Float64, "s", text="how much older its oldest part was"),
    },
    sort=("at",),
)

MODEL_CHANGES = Schema(
    "model_changes",
    {
        "at": Column(UTC_INSTANT, "UTC", text="the poll from which this holds"),
        "model": Column(pl.String, text="hostile text"),
        "listed": Column(pl.Boolean, text="false: it left the list here, or the list was not had"),
        "threads": Column(pl.Int64, "jobs", null="not reported, or not listed"),
        "queued_tokens": Column(pl.Float64, "tokens", null="not reported, or not listed"),
        "jobs": Column(pl.Float64, "jobs", null="not reported, or not listed"),
    },
    sort=("model", "at"),
)
"""One row a model and change; a model that is listed at the first poll of the range has its first row there."""

WORKER_CHANGES = Schema(
    "worker_changes",
    {
        "at": Column(UTC_INSTANT, "UTC", text="the poll from which this holds"),
        "worker_id": Column(pl.String, text="hostile text"),
        "present": Column(pl.Boolean, text="false: it was gone from here on"),
        "profile": Column(pl.String, null="gone", text="what it declares and its flags, as JSON (history.states.profile_fields)"),
        "speed_tok_per_s": Column(pl.Float64, "tok/s", null="gone, or not reported"),
    },
    sort=("worker_id", "at"),
)
"""One row a worker and change; a worker that is there at the first poll of the range has its first row there."""

PART_CHANGES = Schema(
    "part_changes",
    {
        "at": Column(UTC_INSTANT, "UTC", text="the poll from which this holds"),
        "part": Column(pl.String),
        "body": Column(pl.String, text="JSON (history.states.parts_from_bodies)"),
    },
    sort=("part", "at"),
)
"""One row a part of the snapshots and change; the first row of each is at the first poll of the range."""

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


@dataclass(frozen=True, slots=True)
class ChosenSource:
    """A source of a store: its number, its name, and whether its data are made up."""

    number: int
    name: str
    synthetic: bool


def chosen_source(connection: sa.Connection, store: HistoryStore, source: str | None) -> ChosenSource:
    """Return the source of this name; null asks for the most recently polled one.

    Raises
    ------
    InputError
        It is not in the store.
    StoreError
        None is named, and the store holds no poll.
    """
    if source is not None:
        row = connection.execute(sa.select(SOURCES).where(SOURCES.c.name == source)).one_or_none()
        if row is None:
            raise InputError("history", "source", source, "is not in the store")
        return ChosenSource(int(row.source), str(row.name), bool(row.synthetic))
    newest = sa.select(sa.func.max(POLLS.c.at_us)).where(POLLS.c.source == SOURCES.c.source).scalar_subquery()
    query = sa.select(SOURCES, newest.label("newest")).order_by(newest.desc().nulls_last(), SOURCES.c.name).limit(1)
    row = connection.execute(query).one_or_none()
    if row is None or row.newest is None:
        raise StoreError(store.name, "holds no poll yet")
    return ChosenSource(int(row.source), str(row.name), bool(row.synthetic))


def snapshot_at(store: HistoryStore, at: datetime, source: str | None = None) -> Snapshot:
    """Return the last snapshot that was stored at or before an instant.

    Its figures are those of the snapshot that was polled; the lifetime counts of a worker are as of its last keyframe.

    Raises
    ------
    InputError
        Nothing was stored by then, or the source is not in the store.
    StoreError
        The store cannot be read, or holds no poll.
    """
    with store.reading() as connection:
        chosen = chosen_source(connection, store, source)
        poll = poll_at(connection, chosen.number, to_microseconds(at))
        if poll is None:
            raise InputError("history", "instant", at.isoformat(), f"is before the first poll of {chosen.name}")
        state = state_at(connection, chosen.number, poll.poll)
    parts = parts_from_bodies(state.parts)
    return Snapshot(
        fetched_at=from_microseconds(poll.at_us - poll.lag_us),
        source=chosen.name,
        source_kind="history",
        synthetic=chosen.synthetic,
        workers=workers_frame(state.workers),
        models=models_frame(state.models) if poll.models_known else None,
        performance=parts.performance,
        modes=parts.modes,
        heartbeat=parts.heartbeat,
        totals=parts.totals,
        demand=parts.demand,
        problems=parts.problems,
    )


# -- ranges ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """Polls that follow each other in number and in time; the state at the first rests on the keyframe."""

    keyframe: int
    first: int
    last: int


def _polls(connection: sa.Connection, source: int, start: datetime, end: datetime) -> pl.DataFrame:
    """Return the polls of a range in the order of time: the last one at or before its start, and all up to its end."""
    before = poll_at(connection, source, to_microseconds(start))
    from_us = to_microseconds(start) if before is None else before.at_us
    p = POLLS.c
    query = sa.select(p.poll, p.at_us, p.models_known, p.lag_us).where(
        p.source == source, p.at_us >= from_us, p.at_us <= to_microseconds(end)
    )
    schema = {"poll": pl.Int64, "at": pl.Int64, "models_known": pl.Boolean, "lag_us": pl.Int64}
    return _numbers(connection.execute(query.order_by(p.at_us)), schema).with_columns(pl.col("at").cast(UTC_INSTANT))


def _frame(result: sa.CursorResult[Any], schema: dict[str, Any]) -> pl.DataFrame:
    """Return a query's rows as a frame; the columns are told apart by their place."""
    columns: list[Any] = list(zip(*result.all(), strict=True)) or [()] * len(schema)
    return pl.DataFrame(dict(zip(schema, columns, strict=True)), schema=schema)


def _numbers(result: sa.CursorResult[Any], schema: dict[str, Any]) -> pl.DataFrame:
    """Return a query's rows as a frame, taken from the driver as they are: for columns of numbers, of which a range has many."""
    cursor = result.cursor
    rows = [] if cursor is None else cursor.fetchall()
    result.close()
    return pl.DataFrame(rows, schema=schema, orient="row", strict=False)


def _runs(connection: sa.Connection, source: int, polls: pl.DataFrame) -> list[Run]:
    numbers = polls["poll"].to_numpy()
    if not numbers.size:
        return []
    pieces = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return [Run(keyframe_of(connection, source, int(piece[0])), int(piece[0]), int(piece[-1])) for piece in pieces]


def runs_between(connection: sa.Connection, source: int, start: datetime, end: datetime) -> list[Run]:
    """Return the polls of a range in the order of time, as runs of numbers without a break."""
    return _runs(connection, source, _polls(connection, source, start, end))


def polls_between(store: HistoryStore, start: datetime, end: datetime, source: str | None = None) -> pl.DataFrame:
    """Return the polls that a range [start, end] rests on: frame :data:`POLL_ROWS`.

    The first may lie before ``start``: it is the poll that holds there.
    """
    with store.reading() as connection:
        polls = _polls(connection, chosen_source(connection, store, source).number, start, end)
    return POLL_ROWS.checked(polls.with_columns(lag_s=pl.col("lag_us") / 1e6))


def _changes(
    connection: sa.Connection,
    source: int,
    polls: pl.DataFrame,
    query: sa.Select[Any],
    schema: dict[str, Any],
    there: pl.Expr,
    read: Callable[[sa.CursorResult[Any], dict[str, Any]], pl.DataFrame] = _numbers,
) -> pl.DataFrame:
    """Return the rows of a range: each key's state at its first poll, and each change after it.

    Parameters
    ----------
    query
        Selects poll, key and values of a source's rows, without a condition on the poll.
    schema
        The columns it gives, ``poll`` and ``key`` first.
    there
        Whether a row says that the key is there (and not that it left).
    read
        Turns the query's rows into a frame.
    """
    poll_column = query.selected_columns[0]
    pieces: list[pl.DataFrame] = []
    present: set[int] = set()
    for run in _runs(connection, source, polls):
        within = query.where(poll_column >= run.keyframe, poll_column <= run.last).order_by(poll_column)
        rows = read(connection.execute(within), schema)
        before, after = rows.filter(pl.col("poll") <= run.first), rows.filter(pl.col("poll") > run.first)
        begun = before.group_by("key", maintain_order=True).last().filter(there).select(rows.columns)
        begun = begun.with_columns(pl.lit(run.first, pl.Int64).alias("poll"))
        left = present - set(begun["key"].to_list())
        gone = pl.DataFrame({"poll": [run.first] * len(left), "key": sorted(left)}, schema={"poll": pl.Int64, "key": pl.Int64})
        run_rows = pl.concat([begun, gone, after], how="diagonal")
        present = set(run_rows.group_by("key", maintain_order=True).last().filter(there)["key"].to_list())
        pieces.append(run_rows)
    if not pieces:
        return pl.DataFrame(schema={"at": UTC_INSTANT, **{name: kind for name, kind in schema.items() if name != "poll"}})
    together = pl.concat(pieces).join(polls.select("poll", "at"), on="poll", how="left", maintain_order="left")
    told = [name for name in schema if name not in ("poll", "key")]
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1).over("key")) for name in told)
    again = same & pl.int_range(pl.len()).over("key").gt(0)
    return together.filter(~again).drop("poll")


def _named(frame: pl.DataFrame, texts: dict[int, str], name: str) -> pl.DataFrame:
    """Replace the keys by their texts."""
    labels = pl.DataFrame({"key": list(texts), name: list(texts.values())}, schema={"key": pl.Int64, name: pl.String})
    return frame.join(labels, on="key", how="left").drop("key")


def model_changes(
    store: HistoryStore, start: datetime, end: datetime, models: Sequence[str] | None = None, source: str | None = None
) -> pl.DataFrame:
    """Return how models went from ``start`` to ``end``: frame :data:`MODEL_CHANGES`; null ``models`` asks for all."""
    m, q = MODEL_STATES.c, MODEL_QUEUES.c
    key: dict[str, Any] = {"poll": pl.Int64, "key": pl.Int64}
    with store.reading() as connection:
        number = chosen_source(connection, store, source).number
        served = sa.select(m.poll, m.model, m.listed, m.threads).where(m.source == number)
        queues = sa.select(q.poll, q.model, q.queued_tokens, q.jobs).where(q.source == number)
        if models is not None:
            digests = [digest_of(model) for model in models]
            wanted = sa.select(LABELS.c.label).where(LABELS.c.kind == "model", LABELS.c.digest.in_(digests))
            served, queues = served.where(m.model.in_(wanted)), queues.where(q.model.in_(wanted))
        polls = _polls(connection, number, start, end)
        states = _changes(
            connection, number, polls, served, {**key, "listed": pl.Boolean, "threads": pl.Int64}, pl.col("listed")
        ).with_columns(pl.col("listed").fill_null(value=False))
        waiting = _changes(
            connection, number, polls, queues, {**key, "queued_tokens": pl.Float64, "jobs": pl.Float64}, pl.lit(value=True)
        )
        together = _joined(states, waiting)
        named = _named(together, dict(texts_of(connection, "model")), "model")
    return MODEL_CHANGES.checked(named.sort(MODEL_CHANGES.sort))


def _joined(states: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Return the changes of both: at each, what holds of either; a queue of a model that is not listed is none."""
    found = pl.concat([states.select("key", "at"), queues.select("key", "at")]).unique().sort("at", "key")
    for frame in (states, queues):
        found = found.join_asof(frame.sort("at"), on="at", by="key", check_sortedness=False)
    listed = pl.col("listed").fill_null(value=False)
    told = found.with_columns(listed, pl.when(listed).then("queued_tokens"), pl.when(listed).then("jobs"))
    again = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1).over("key")) for name in MODEL_VALUES)
    return told.filter(~(again & pl.int_range(pl.len()).over("key").gt(0)))


def _profiles(connection: sa.Connection, numbers: list[int]) -> pl.DataFrame:
    """Return the profiles of these numbers, asked for in pieces that every database takes."""
    p = PROFILES.c
    schema = {"number": pl.Int64, "profile": pl.String}
    pieces = [pl.DataFrame(schema=schema)]
    for first in range(0, len(numbers), MOST_ASKED):
        query = sa.select(p.profile, p.body).where(p.profile.in_(numbers[first : first + MOST_ASKED]))
        pieces.append(_frame(connection.execute(query), schema))
    return pl.concat(pieces)


def worker_changes(store: HistoryStore, start: datetime, end: datetime, source: str | None = None) -> pl.DataFrame:
    """Return how workers went from ``start`` to ``end``: frame :data:`WORKER_CHANGES`."""
    w = WORKER_STATES.c
    schema: dict[str, Any] = {"poll": pl.Int64, "key": pl.Int64, "number": pl.Int64, "packed": pl.Float64}
    with store.reading() as connection:
        number = chosen_source(connection, store, source).number
        query = sa.select(w.poll, w.worker, w.profile, w.speed).where(w.source == number)
        polls = _polls(connection, number, start, end)
        frame = _changes(connection, number, polls, query, schema, pl.col("number").is_not_null())
        profiles = _profiles(connection, frame["number"].drop_nulls().unique().to_list())
        named = _named(frame, dict(texts_of(connection, "worker")), "worker_id")
    speed = pl.Series(unpacked_speeds(named["packed"].fill_null(np.nan).to_numpy())).fill_nan(None)
    told = named.with_columns(present=pl.col("number").is_not_null(), speed_tok_per_s=speed)
    told = told.join(profiles, on="number", how="left")
    return WORKER_CHANGES.checked(told.sort(WORKER_CHANGES.sort))


def part_changes(
    store: HistoryStore, start: datetime, end: datetime, parts: Sequence[str], source: str | None = None
) -> pl.DataFrame:
    """Return how parts of the snapshots (performance, modes, …) went from ``start`` to ``end``: frame :data:`PART_CHANGES`."""
    p = PART_STATES.c
    names = sorted(parts)
    key = sa.case({name: number for number, name in enumerate(names)}, value=p.part)
    schema = {"poll": pl.Int64, "key": pl.Int64, "body": pl.String}
    with store.reading() as connection:
        number = chosen_source(connection, store, source).number
        query = sa.select(p.poll, key, p.body).where(p.source == number, p.part.in_(names))
        polls = _polls(connection, number, start, end)
        frame = _changes(connection, number, polls, query, schema, pl.lit(value=True), _frame)
    named = _named(frame, dict(enumerate(names)), "part")
    return PART_CHANGES.checked(named.sort(PART_CHANGES.sort))


def gaps_between(store: HistoryStore, start: datetime, end: datetime, source: str | None = None) -> pl.DataFrame:
    """Return the gaps that touch [start, end]: frame :data:`GAP_ROWS`."""
    with store.reading() as connection:
        number = chosen_source(connection, store, source).number
        touching = (GAPS.c.to_us >= to_microseconds(start), GAPS.c.from_us <= to_microseconds(end))
        query = sa.select(GAPS.c.from_us, GAPS.c.to_us, GAPS.c.reason).where(GAPS.c.source == number, *touching)
        schema = {"from": pl.Int64, "to": pl.Int64, "reason": pl.String}
        frame = _frame(connection.execute(query.order_by(GAPS.c.from_us)), schema)
    return GAP_ROWS.checked(frame.with_columns(pl.col("from", "to").cast(UTC_INSTANT)))


def events_between(store: HistoryStore, start: datetime, end: datetime, source: str | None = None) -> pl.DataFrame:
    """Return what happened in [start, end], in order: frame :data:`EVENT_ROWS`."""
    with store.reading() as connection:
        number = chosen_source(connection, store, source).number
        within = (EVENTS.c.at_us >= to_microseconds(start), EVENTS.c.at_us <= to_microseconds(end))
        query = sa.select(EVENTS.c.at_us, EVENTS.c.kind, EVENTS.c.text).where(EVENTS.c.source == number, *within)
        schema = {"at": pl.Int64, "kind": pl.String, "text": pl.String}
        frame = _frame(connection.execute(query.order_by(EVENTS.c.at_us, EVENTS.c.event)), schema)
    return EVENT_ROWS.checked(frame.with_columns(pl.col("at").cast(UTC_INSTANT)))
