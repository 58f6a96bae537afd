"""Who records a source: one recorder at a time, so that two on one store never double, and a dead one never blocks the next.

Two things decide. A *lock* that the operating system (a file beside an SQLite store) or PostgreSQL (an advisory lock of a
session) frees the instant its holder dies: whoever has it knows that no other recorder lives. And a *lease*, a row with an owner
and an end, without which no poll is written: it takes over from a recorder that lives but hangs, where the lock cannot.
"""

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from horde_policy.history.database import to_microseconds
from horde_policy.history.labels import digest_of
from horde_policy.history.store import HistoryStore
from horde_policy.history.tables import RECORDERS

__all__ = ["Lock", "Standing", "give_up_lease", "note_standing", "recording_lock", "take_lease"]

CLOCKS_APART_US = 60_000_000


class Lock(Protocol):
    """Is held by at most one living recorder of a source."""

    def take(self) -> bool:
        """Take or keep the lock; false while another living recorder has it, or where it cannot be known."""
        ...

    def release(self) -> None:
        """Give the lock back."""
        ...


class _FileLock:
    """A lock on a file beside the store, which stays there empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self) -> bool:
        if self._file is not None:
            return True
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class _SessionLock:
    """An advisory lock of a PostgreSQL session that is open as long as the recorder lives."""

    def __init__(self, engine: sa.Engine, key: int) -> None:
        self._engine = engine
        self._key = key
        self._session: sa.Connection | None = None

    def take(self) -> bool:
        try:
            if self._session is not None:
                self._session.exec_driver_sql("SELECT 1")
                return True
            session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        except DBAPIError:
            self._end()
            return False
        try:
            for name, seconds in (("idle", 30), ("interval", 10)):  # a host that lost its power is noticed within a minute
                session.exec_driver_sql(f"SET tcp_keepalives_{name} = {seconds:d}")
            session.exec_driver_sql("SET tcp_keepalives_count = 3")
            taken = bool(session.scalar(sa.select(sa.func.pg_try_advisory_lock(self._key))))
        except DBAPIError:
            taken = False
        if taken:
            self._session = session
        else:
            _drop(session)
        return taken

    def release(self) -> None:
        if self._session is not None:
            with suppress(SQLAlchemyError):  # the server frees it with the session too, only a moment later
                self._session.execute(sa.select(sa.func.pg_advisory_unlock(self._key)))
        self._end()

    def _end(self) -> None:
        if self._session is not None:
            _drop(self._session)
            self._session = None


def _drop(session: sa.Connection) -> None:
    """End a session for good, not back to the pool: what it locked is free then."""
    session.invalidate()
    session.close()


def recording_lock(store: HistoryStore, source: str) -> Lock:
    """Return the lock of a source in a store, not taken yet."""
    digest = digest_of(source)
    if store.file is not None:
        return _FileLock(store.file.with_name(f"{store.file.name}-recorder-{digest[:8]}"))
    return _SessionLock(store.engine, int(digest[:15], 16))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a recorder stands: its state since when, and a sentence that says why if that is needed."""

    state: str
    since: datetime
    text: str = ""


def take_lease(
    store: HistoryStore, source: str, owner: str, now: datetime, duration_s: float, *, interval_s: float, sole: bool
) -> bool:
    """Take or renew the right to record a source; false while another owner's may still be in use.

    Parameters
    ----------
    store, source, owner
        Who records what and where.
    now, duration_s
        The lease ends so long from now unless it is renewed.
    interval_s
        Between polls, for readers.
    sole
        No other recorder lives (:class:`Lock`), so another owner's lease is void.
    """
    now_us, until_us = to_microseconds(now), to_microseconds(now + timedelta(seconds=duration_s))
    values = {"owner": owner, "until_us": until_us, "interval_s": interval_s}
    with store.writing() as connection:
        number = store.source_id(connection, source)
        held = connection.execute(sa.select(RECORDERS).where(RECORDERS.c.source == number).with_for_update()).one_or_none()
        if held is None:
            since = {"state": "starting", "since_us": now_us, "text": ""}
            connection.execute(RECORDERS.insert().values(source=number, **values, **since))
            return True
        # A lease far in the future was taken by a clock that has since been set back: it counts as over.
        running = now_us < held.until_us <= until_us + CLOCKS_APART_US
        if held.owner not in (None, owner) and running and not sole:
            return False
        connection.execute(RECORDERS.update().where(RECORDERS.c.source == number).values(**values))
        return True


def note_standing(store: HistoryStore, source: str, owner: str, standing: Standing, until: datetime) -> None:
    """Let readers know how the recorder stands, and until when no other sign of it is to be expected."""
    values = {
        "state": standing.state,
        "since_us": to_microseconds(standing.since),
        "text": standing.text,
        "until_us": to_microseconds(until),
    }
    with store.writing() as connection:
        number = store.source_id(connection, source)
        mine = (RECORDERS.c.source == number, RECORDERS.c.owner == owner)
        connection.execute(RECORDERS.update().where(*mine).values(**values))


def give_up_lease(store: HistoryStore, source: str, owner: str, now: datetime) -> None:
    """Give the right to record a source back, if this owner has it, and say that recording was stopped."""
    stopped = {"owner": None, "state": "stopped", "since_us": to_microseconds(now), "text": "", "until_us": to_microseconds(now)}
    with store.writing() as connection:
        number = store.source_id(connection, source)
        connection.execute(RECORDERS.update().where(RECORDERS.c.source == number, RECORDERS.c.owner == owner).values(**stopped))
