"""The history store: one transaction a poll, holding what changed; readable while it is written.

SQLite in WAL mode with ``synchronous=FULL`` by default, PostgreSQL by URL (design §2). A poll is written whole or not at all:
a process killed at any instant loses the poll in flight and nothing else. What goes wrong in the database is a
:class:`~horde_policy.errors.StoreError` that names it (full, locked, not reachable), never a driver's own error.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from horde_policy.errors import StoreError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.states import GONE, UNLISTED, ModelState, WorkerState, model_states, part_bodies, worker_states
from horde_policy.history.tables import (
    EVENTS,
    GAPS,
    LABELS,
    LEASES,
    META,
    MODEL_STATES,
    PART_STATES,
    POLLS,
    PROFILES,
    SCHEMA_VERSION,
    SOURCES,
    TABLES,
    WORKER_STATES,
)

__all__ = ["KEYFRAME_EVERY_POLLS", "HistoryStore", "Written", "from_microseconds", "store_url", "to_microseconds"]

KEYFRAME_EVERY_POLLS = 120
"""One poll in so many holds everything anew, so that no reading goes back further."""

BUSY_TIMEOUT_S = 30.0
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_microseconds(at: datetime) -> int:
    """Return an aware instant in microseconds since the Unix epoch, UTC, exactly.

    >>> to_microseconds(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
    1000005
    """
    return (at - EPOCH) // timedelta(microseconds=1)


def from_microseconds(at_us: int) -> datetime:
    """Return the instant of :func:`to_microseconds`.

    >>> from_microseconds(1000005)
    datetime.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=datetime.timezone.utc)
    """
    return EPOCH + timedelta(microseconds=at_us)


def store_url(store: str | Path) -> sa.URL:
    """Return the database URL of a store given as a URL or as the path of an SQLite file.

    >>> str(store_url("history.sqlite"))
    'sqlite:///history.sqlite'
    """
    text = str(store)
    if "://" not in text:
        return sa.URL.create("sqlite", database=text)
    url = sa.make_url(text)
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def _named(error: DBAPIError) -> str:
    text = str(error.orig)
    known = {
        "database or disk is full": "the disk, or the store's page limit, is full",
        "database is locked": f"another process held the store for longer than {BUSY_TIMEOUT_S:g} s",
        "attempt to write a readonly database": "the store cannot be written",
        "unable to open database file": "the store's file cannot be opened",
        "file is not a database": "the file is not a history store",
        "malformed": "the store is damaged",
    }
    for words, meaning in known.items():
        if words in text:
            return meaning
    return f"the database says: {text.splitlines()[0] if text else type(error.orig).__name__}"


@dataclass(frozen=True, slots=True)
class Written:
    """What one poll wrote: its number (null: another recorder holds the source, or the same poll is there already)."""

    poll: int | None
    rows: int = 0


@dataclass(slots=True)
class _Last:
    """The state as of the last poll of a source, kept by the writer to know what changed."""

    poll: int
    at_us: int
    keyframe: int
    workers: dict[str, WorkerState]
    models: dict[str, ModelState]
    parts: dict[str, str]


class HistoryStore:
    """A history database.

    Parameters
    ----------
    store
        The path of an SQLite file, or a database URL (``sqlite:///…``, ``postgresql://…``).
    read_only
        Open for reading: the file must be there, and nothing is created.
    max_pages
        SQLite only: refuse to grow beyond so many pages.

    Raises
    ------
    StoreError
        The database cannot be opened, or holds another schema version.
    """

    def __init__(self, store: str | Path, *, read_only: bool = False, max_pages: int | None = None) -> None:
        self.url = store_url(store)
        self.name = self.url.render_as_string(hide_password=True)
        if self.url.get_backend_name() not in {"sqlite", "postgresql"}:
            raise StoreError(self.name, "must be an SQLite file or a postgresql:// URL")
        self._sqlite = self.url.get_backend_name() == "sqlite"
        if read_only and self._sqlite and not Path(self.url.database or "").is_file():
            raise StoreError(self.name, "there is no such history store")
        options: dict[str, Any] = {"connect_args": {"timeout": BUSY_TIMEOUT_S}} if self._sqlite else {"pool_pre_ping": True}
        self.engine = sa.create_engine(self.url, **options)
        if self._sqlite:
            self._prepare_sqlite(max_pages)
        self._last: dict[int, _Last] = {}
        self._labels: dict[tuple[str, str], int] = {}
        self._profiles: dict[str, int] = {}
        with self._named_errors():
            if not read_only:
                with self.writing() as connection:
                    TABLES.create_all(connection)
                    if connection.scalar(sa.select(META.c.value).where(META.c.name == "schema")) is None:
                        connection.execute(META.insert().values(name="schema", value=str(SCHEMA_VERSION)))
            with self.reading() as connection:
                self._check_schema(connection)

    def _prepare_sqlite(self, max_pages: int | None) -> None:
        @sa.event.listens_for(self.engine, "connect")
        def _connected(raw: Any, _record: Any) -> None:
            raw.isolation_level = None  # the driver must not begin transactions of its own
            cursor = raw.cursor()
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=FULL")
            if max_pages is not None:
                cursor.execute(f"PRAGMA max_page_count={max_pages:d}")
            cursor.close()

        @sa.event.listens_for(self.engine, "begin")
        def _begun(connection: sa.Connection) -> None:
            # A transaction that begins as a reader and upgrades fails at once with "busy": a writer begins as one.
            writer = connection.get_execution_options().get("writer")
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writer else "BEGIN")

    def _check_schema(self, connection: sa.Connection) -> None:
        if not sa.inspect(connection).has_table(META.name):
            raise StoreError(self.name, "the file is not a history store")
        found = connection.scalar(sa.select(META.c.value).where(META.c.name == "schema"))
        if found != str(SCHEMA_VERSION):
            raise StoreError(self.name, f"has schema version {found}, this program reads version {SCHEMA_VERSION}")

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise StoreError(self.name, _named(error)) from error

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Give a connection in a transaction that writes; it is committed at the end, or nothing of it stays."""
        done = False
        try:
            with self._named_errors(), self.engine.connect().execution_options(writer=True) as connection, connection.begin():
                yield connection
            done = True
        finally:
            if not done:  # numbers given out in a transaction that was rolled back are not in the database
                self._labels.clear()
                self._profiles.clear()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a connection that reads one consistent state."""
        with self._named_errors(), self.engine.connect() as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Close the store's connections."""
        self.engine.dispose()

    # -- sources, labels, leases ---------------------------------------------------------------------------------------

    def source_id(self, connection: sa.Connection, name: str, *, synthetic: bool = False) -> int:
        """Return the number of a source, which is made if it is new."""
        found = connection.scalar(sa.select(SOURCES.c.source).where(SOURCES.c.name == name))
        if found is not None:
            return int(found)
        number = int(connection.scalar(sa.select(sa.func.coalesce(sa.func.max(SOURCES.c.source), 0))) or 0) + 1
        connection.execute(SOURCES.insert().values(source=number, name=name, synthetic=synthetic))
        return number

    def _label(self, connection: sa.Connection, kind: str, text: str) -> int:
        key = (kind, text)
        if key not in self._labels:
            found = connection.scalar(sa.select(LABELS.c.label).where(LABELS.c.kind == kind, LABELS.c.text == text))
            if found is None:
                found = connection.scalar(LABELS.insert().values(kind=kind, text=text).returning(LABELS.c.label))
            self._labels[key] = int(found or 0)
        return self._labels[key]

    def _profile(self, connection: sa.Connection, body: str) -> int:
        digest = hashlib.sha256(body.encode()).hexdigest()
        if digest not in self._profiles:
            found = connection.scalar(sa.select(PROFILES.c.profile).where(PROFILES.c.digest == digest))
            if found is None:
                found = connection.scalar(PROFILES.insert().values(digest=digest, body=body).returning(PROFILES.c.profile))
            self._profiles[digest] = int(found or 0)
        return self._profiles[digest]

    def take_lease(self, source: str, owner: str, now: datetime, duration_s: float) -> bool:
        """Take or renew the right to record a source; false while another owner's is still running."""
        until_us = to_microseconds(now + timedelta(seconds=duration_s))
        with self.writing() as connection:
            number = self.source_id(connection, source)
            held = connection.execute(sa.select(LEASES).where(LEASES.c.source == number).with_for_update()).one_or_none()
            if held is None:
                connection.execute(LEASES.insert().values(source=number, owner=owner, until_us=until_us))
                return True
            # A lease far in the future was taken by a clock that has since been set back: it counts as over.
            foreign = held.owner != owner and to_microseconds(now) < held.until_us <= until_us + 60_000_000
            if foreign:
                return False
            mine = LEASES.update().where(LEASES.c.source == number).values(owner=owner, until_us=until_us)
            connection.execute(mine)
            return True

    def give_up_lease(self, source: str, owner: str) -> None:
        """Give the right to record a source back, if this owner has it."""
        with self.writing() as connection:
            number = self.source_id(connection, source)
            connection.execute(LEASES.delete().where(LEASES.c.source == number, LEASES.c.owner == owner))

    # -- writing -------------------------------------------------------------------------------------------------------

    def write(
        self,
        snapshot: Snapshot,
        *,
        owner: str | None = None,
        gap_reason: str | None = None,
        events: Sequence[tuple[datetime, str, str]] = (),
    ) -> Written:
        """Store what changed since the last poll of the snapshot's source, in one transaction.

        Parameters
        ----------
        snapshot
            The poll; a snapshot that is not younger than the last stored one changes nothing.
        owner
            Who must hold the lease (:meth:`take_lease`); null: no lease is asked for.
        gap_reason
            Why nothing was recorded since the last poll, if that is so: stored as a gap.
        events
            ``(instant, kind, text)`` to store with it.

        Raises
        ------
        StoreError
            Nothing was stored.
        """
        at_us = to_microseconds(snapshot.fetched_at)
        with self.writing() as connection:
            source = self.source_id(connection, snapshot.source, synthetic=snapshot.synthetic)
            if owner is not None:
                held = connection.scalar(sa.select(LEASES.c.owner).where(LEASES.c.source == source))
                if held != owner:
                    return Written(None)
            last = self._last_state(connection, source)
            if last is not None and at_us <= last.at_us:
                return Written(None)
            current, rows = self._write_poll(connection, source, snapshot, at_us, last)
            if last is not None and gap_reason is not None:
                gap = {"source": source, "from_us": last.at_us, "to_us": at_us, "reason": gap_reason}
                connection.execute(GAPS.insert().values(**gap))
            self._write_events(connection, source, events)
        self._last[source] = current
        return Written(current.poll, rows)

    def write_events(self, source: str, events: Sequence[tuple[datetime, str, str]]) -> None:
        """Store ``(instant, kind, text)`` events without a poll."""
        with self.writing() as connection:
            self._write_events(connection, self.source_id(connection, source), events)

    def _write_events(self, connection: sa.Connection, source: int, events: Sequence[tuple[datetime, str, str]]) -> None:
        if events:
            rows = [{"source": source, "at_us": to_microseconds(at), "kind": kind, "text": text} for at, kind, text in events]
            connection.execute(EVENTS.insert(), rows)

    def _last_state(self, connection: sa.Connection, source: int) -> _Last | None:
        row = connection.execute(
            sa.select(POLLS.c.poll, POLLS.c.at_us).where(POLLS.c.source == source).order_by(POLLS.c.poll.desc()).limit(1)
        ).one_or_none()
        if row is None:
            return None
        known = self._last.get(source)
        if known is not None and known.poll == row.poll:
            return known
        state = state_at(connection, source, row.poll)
        return _Last(row.poll, row.at_us, state.keyframe, state.workers, state.models, state.parts)

    def _write_poll(
        self, connection: sa.Connection, source: int, snapshot: Snapshot, at_us: int, last: _Last | None
    ) -> tuple[_Last, int]:
        poll = 1 if last is None else last.poll + 1
        keyframe = last is None or poll - last.keyframe >= KEYFRAME_EVERY_POLLS
        workers = worker_states(snapshot.workers)
        known = snapshot.models is not None
        models = model_states(snapshot.models) if snapshot.models is not None else {}
        parts = part_bodies(snapshot)
        before = last if last is not None else _Last(0, 0, 0, {}, {}, {})
        head = {"source": source, "poll": poll, "at_us": at_us, "keyframe": keyframe, "models_known": known}
        connection.execute(POLLS.insert().values(**head))

        worker_rows = [
            self._worker_row(connection, source, poll, worker_id, state)
            for worker_id, state in _changed(before.workers, workers, WorkerState.kept_apart, GONE, everything=keyframe).items()
        ]
        model_rows = [
            {"source": source, "poll": poll, "model": self._label(connection, "model", model), **state._asdict()}
            for model, state in _changed(before.models, models, tuple, UNLISTED, everything=keyframe).items()
        ]
        part_rows = [
            {"source": source, "poll": poll, "part": part, "body": body}
            for part, body in parts.items()
            if keyframe or before.parts.get(part) != body
        ]
        for table, rows in ((WORKER_STATES, worker_rows), (MODEL_STATES, model_rows), (PART_STATES, part_rows)):
            if rows:
                connection.execute(table.insert(), rows)
        kept_keyframe = poll if keyframe or last is None else last.keyframe
        current = _Last(poll, at_us, kept_keyframe, workers, models, parts)
        return current, len(worker_rows) + len(model_rows) + len(part_rows)

    def _worker_row(
        self, connection: sa.Connection, source: int, poll: int, worker_id: str, state: WorkerState
    ) -> dict[str, Any]:
        row = {"source": source, "poll": poll, "worker": self._label(connection, "worker", worker_id), **state._asdict()}
        row["profile"] = None if state.profile is None else self._profile(connection, state.profile)
        return row


State = TypeVar("State", WorkerState, ModelState)


def _changed(
    before: Mapping[str, State], now: Mapping[str, State], told_apart: Callable[[State], object], left: State, *, everything: bool
) -> dict[str, State]:
    """Return what a poll has to store: what is new or differs, or everything at a keyframe; and what left, always."""
    kept = {
        name: state
        for name, state in now.items()
        if everything or name not in before or told_apart(before[name]) != told_apart(state)
    }
    return kept | {name: left for name in before if name not in now}


@dataclass(frozen=True, slots=True)
class StateAt:
    """The state as of one poll: what :func:`state_at` found, and the keyframe it started from."""

    keyframe: int
    workers: dict[str, WorkerState]
    models: dict[str, ModelState]
    parts: dict[str, str]


def state_at(connection: sa.Connection, source: int, poll: int) -> StateAt:
    """Return the state as of a poll: its last keyframe and the changes since, gone workers and unlisted models left out."""
    keyframe = connection.scalar(
        sa.select(sa.func.max(POLLS.c.poll)).where(POLLS.c.source == source, POLLS.c.poll <= poll, POLLS.c.keyframe)
    )
    first = int(keyframe or 0)
    w, m, p = WORKER_STATES.c, MODEL_STATES.c, PART_STATES.c
    names, profiles = LABELS.alias("names"), PROFILES
    fields = (w.flags, w.speed_tenths, w.speed_raw, w.requests_fulfilled, w.uncompleted_jobs, w.uptime_s)
    worker_rows = connection.execute(
        sa.select(names.c.text, profiles.c.body, *fields)
        .select_from(WORKER_STATES.join(names, names.c.label == w.worker).outerjoin(profiles, profiles.c.profile == w.profile))
        .where(w.source == source, w.poll >= first, w.poll <= poll)
        .order_by(w.poll)
    )
    workers = {row[0]: WorkerState(*row[1:]) for row in worker_rows}
    fields_m = (m.listed, m.threads, m.job_speed_tenths, m.job_speed_raw, m.queued_tokens, m.jobs, m.eta_s)
    model_rows = connection.execute(
        sa.select(names.c.text, *fields_m)
        .select_from(MODEL_STATES.join(names, names.c.label == m.model))
        .where(m.source == source, m.poll >= first, m.poll <= poll)
        .order_by(m.poll)
    )
    models = {row[0]: ModelState(*row[1:]) for row in model_rows}
    part_rows = connection.execute(
        sa.select(p.part, p.body).where(p.source == source, p.poll >= first, p.poll <= poll).order_by(p.poll)
    )
    return StateAt(
        first,
        {worker_id: state for worker_id, state in workers.items() if state.profile is not None},
        {model: state for model, state in models.items() if state.listed},
        {row[0]: row[1] for row in part_rows},
    )
