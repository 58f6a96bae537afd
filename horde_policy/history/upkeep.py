"""Keeping a store in order: what it holds, whether it is whole, and pruning at a keyframe, by hand or by a retention setting."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from horde_policy.errors import ConfigError
from horde_policy.history.folding import keyframe_of, poll_at
from horde_policy.history.labels import new_generation
from horde_policy.history.reading import SourceSpan, sources_in
from horde_policy.history.store import HistoryStore, from_microseconds, to_microseconds
from horde_policy.history.tables import (
    DELIVERIES,
    EVENTS,
    GAPS,
    LABELS,
    MODEL_STATES,
    POLLS,
    PROFILES,
    SOURCES,
    STATE_TABLES,
    WORKER_STATES,
)

__all__ = ["Gap", "Pruned", "Retention", "SourceInfo", "StoreInfo", "compact", "prune", "store_info"]


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was pruned of a source: so many polls, and from when on it still has everything."""

    source: str
    polls: int
    kept_from: datetime | None


def prune(store: HistoryStore, before: datetime, source: str | None = None) -> tuple[Pruned, ...]:
    """Throw away what is older than an instant, of one source or all; the state at that instant stays readable.

    The cut is at the last keyframe at or before it, so up to a keyframe's span more stays than asked. Gaps and events before
    the cut go too, and numbers of names that nothing uses any more.

    Raises
    ------
    StoreError
        Nothing was pruned.
    """
    told = []
    with store.numbering() as connection:
        for row in connection.execute(sa.select(SOURCES).order_by(SOURCES.c.name)).all():
            if source is None or row.name == source:
                told.append(_prune_source(connection, int(row.source), str(row.name), before))
        if any(pruned.polls for pruned in told):
            _drop_unused_numbers(connection)
    return tuple(told)


def _prune_source(connection: sa.Connection, source: int, name: str, before: datetime) -> Pruned:
    held = poll_at(connection, source, to_microseconds(before))
    if held is None:
        return Pruned(name, 0, None)
    keyframe = keyframe_of(connection, source, held.poll)
    mine = POLLS.c.source == source
    cut_us = int(connection.execute(sa.select(POLLS.c.at_us).where(mine, POLLS.c.poll == keyframe)).scalar_one())
    doomed = sa.select(POLLS.c.poll).where(mine, POLLS.c.at_us < cut_us)
    for table in STATE_TABLES:
        connection.execute(sa.delete(table).where(table.c.source == source, table.c.poll.in_(doomed)))
    polls = connection.execute(sa.delete(POLLS).where(mine, POLLS.c.at_us < cut_us)).rowcount
    connection.execute(sa.delete(GAPS).where(GAPS.c.source == source, GAPS.c.to_us <= cut_us))
    connection.execute(sa.delete(EVENTS).where(EVENTS.c.source == source, EVENTS.c.at_us < cut_us))
    done = (DELIVERIES.c.source == source, DELIVERIES.c.made_us < cut_us, DELIVERIES.c.outcome.is_not(None))
    connection.execute(sa.delete(DELIVERIES).where(*done))
    return Pruned(name, polls, from_microseconds(cut_us))


def _drop_unused_numbers(connection: sa.Connection) -> None:
    """Throw away labels and profiles without a row, and make other writers forget them."""
    used = {"worker": sa.select(WORKER_STATES.c.worker).distinct(), "model": sa.select(MODEL_STATES.c.model).distinct()}
    for kind, query in used.items():
        connection.execute(sa.delete(LABELS).where(LABELS.c.kind == kind, LABELS.c.label.not_in(query)))
    profiles = sa.select(WORKER_STATES.c.profile).where(WORKER_STATES.c.profile.is_not(None)).distinct()
    connection.execute(sa.delete(PROFILES).where(PROFILES.c.profile.not_in(profiles)))
    new_generation(connection)


@dataclass(slots=True)
class Retention:
    """A recorder's setting for how long the history is kept; applied as it records, in pieces of an hour.

    Raises
    ------
    ConfigError
        Less than an hour.

    Examples
    --------
    >>> Retention(timedelta(minutes=5))
    Traceback (most recent call last):
    horde_policy.errors.ConfigError: setting keep: '0:05:00' must be at least an hour
    """

    keep: timedelta
    _applied: datetime | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.keep < timedelta(hours=1):
            raise ConfigError("keep", str(self.keep), "must be at least an hour")

    def apply(self, store: HistoryStore, source: str, now: datetime) -> None:
        """Prune what is older than the setting, at most once an hour of the recorded time."""
        if self._applied is None or not timedelta(0) <= now - self._applied < timedelta(hours=1):
            with store.numbering() as connection:
                number = store.source_id(connection, source)
                _prune_source(connection, number, source, now - self.keep)
            self._applied = now


def compact(store: HistoryStore) -> None:
    """Give the space of what was pruned back to the file system; a recorder waits meanwhile.

    Raises
    ------
    StoreError
        Another program is reading or writing for too long, or there is no room for the copy.
    """
    with store.named_errors(), store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM")


class Gap(NamedTuple):
    """Between two polls where others are missing: from when to when nothing was recorded, and why."""

    from_: datetime
    to: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """A source of a store: its span, its gaps in the order of time and how long they are in all, and its events by kind."""

    span: SourceSpan
    gap_list: tuple[Gap, ...]
    gap_s: float
    events: dict[str, int]

    @property
    def gaps(self) -> int:
        """How many gaps there are."""
        return len(self.gap_list)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreInfo:
    """What a store holds.

    Attributes
    ----------
    bytes_
        Its size; of a PostgreSQL database that of its history tables.
    rows
        Rows by table.
    damages
        What a check of the whole store found; empty: it is whole. Null: it was not checked.
    """

    name: str
    bytes_: int
    rows: dict[str, int]
    sources: tuple[SourceInfo, ...]
    damages: tuple[str, ...] | None


def store_info(store: HistoryStore, *, check: bool = False) -> StoreInfo:
    """Return what a store holds; with ``check``, read all of it and say what is damaged.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    spans = sources_in(store)
    with store.reading() as connection:
        counted = (*STATE_TABLES, POLLS, GAPS, EVENTS, LABELS, PROFILES)
        rows = {t.name: int(connection.scalar(sa.select(sa.func.count()).select_from(t)) or 0) for t in counted}
        sources = tuple(_source_info(connection, span) for span in spans)
        size = _size(connection, store)
        damages = tuple(_damages(connection, store)) if check else None
    return StoreInfo(name=store.name, bytes_=size, rows=rows, sources=sources, damages=damages)


def _source_info(connection: sa.Connection, span: SourceSpan) -> SourceInfo:
    number = sa.select(SOURCES.c.source).where(SOURCES.c.name == span.name).scalar_subquery()
    g = GAPS.c
    rows = connection.execute(sa.select(g.from_us, g.to_us, g.reason).where(g.source == number).order_by(g.from_us)).all()
    gaps = tuple(Gap(from_microseconds(row.from_us), from_microseconds(row.to_us), str(row.reason)) for row in rows)
    gap_us = sum(int(row.to_us) - int(row.from_us) for row in rows)
    kinds = sa.select(EVENTS.c.kind, sa.func.count()).where(EVENTS.c.source == number).group_by(EVENTS.c.kind)
    events = {str(kind): int(count) for kind, count in connection.execute(kinds.order_by(EVENTS.c.kind))}
    return SourceInfo(span=span, gap_list=gaps, gap_s=gap_us / 1e6, events=events)


def _size(connection: sa.Connection, store: HistoryStore) -> int:
    if store.file is not None:
        beside = [store.file.with_name(store.file.name + ending) for ending in ("", "-wal")]
        return sum(path.stat().st_size for path in beside if path.exists())
    names = [table.name for table in POLLS.metadata.sorted_tables]
    sizes = sa.text("SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c WHERE c.relname = ANY(:names)")
    return int(connection.execute(sizes, {"names": names}).scalar_one())


def _damages(connection: sa.Connection, store: HistoryStore) -> list[str]:
    """Return what is wrong: by the database's own check, and rows whose poll, label or keyframe is not there."""
    found: list[str] = []
    if store.file is not None:
        found += [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check") if row[0] != "ok"]
    for table in STATE_TABLES:
        home = sa.select(POLLS.c.poll).where(POLLS.c.source == table.c.source, POLLS.c.poll == table.c.poll)
        found += _count(connection, table, ~home.exists(), "belong to no poll")
    for table, column, kind in ((WORKER_STATES, WORKER_STATES.c.worker, "worker"), (MODEL_STATES, MODEL_STATES.c.model, "model")):
        label = sa.select(LABELS.c.label).where(LABELS.c.label == column, LABELS.c.kind == kind)
        found += _count(connection, table, ~label.exists(), "name nothing")
    before = POLLS.alias("before")
    follows = sa.select(before.c.poll).where(before.c.source == POLLS.c.source, before.c.poll == POLLS.c.poll - 1)
    found += _count(connection, POLLS, sa.and_(~POLLS.c.keyframe, ~follows.exists()), "follow no poll and are no keyframe")
    return found


def _count(connection: sa.Connection, table: sa.Table, wrong: Any, what: str) -> list[str]:
    count = connection.scalar(sa.select(sa.func.count()).select_from(table).where(wrong))
    return [f"{count} rows of {table.name} {what}"] if count else []
