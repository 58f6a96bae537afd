"""The ledger's database: one writer connection a process, short transactions that are retried, and consistent reads.

SQLite is opened in WAL mode; a transaction begins as a writer (``BEGIN IMMEDIATE``), so it is never turned away half-way.
PostgreSQL runs READ COMMITTED with row locks in a fixed order. Hot statements are compiled once and run on the driver's
connection. Busy and lost connections are retried until the patience ends, then ``StoreError`` says "budget store
unavailable": a caller never sees a busy error, and a busy store is never a refusal by budget (budgets.md §9).
"""

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import PoolProxiedConnection

from horde_policy.budget.tables import METADATA, SCHEMA_VERSION, holds, meta
from horde_policy.budget.windows import instant_of, microseconds
from horde_policy.clock import Clock
from horde_policy.errors import InputError, StoreError, shown
from horde_policy.settings import is_broken_address

__all__ = ["Session", "Store"]

T = TypeVar("T")
Row = tuple[Any, ...]

WHAT = "ledger"
CREATION_LOCK = 0x686F_7264_6503  # one number for all ledgers: only the creation of tables takes it
# SQLite's own waiting doubles its pauses up to 0.1 s, and of three busy copies one then waits for most of a second. Short
# random pauses cost no throughput and keep the longest wait near a tenth of that.
BUSY_PAUSE_S = (0.0002, 0.001)
LOST_PAUSE_S = (0.02, 0.1)
LEAST_SQLITE = (3, 37)
MOST_PAUSES = (
    4  # each try that finds the store busy waits that much longer: whoever holds it has no processor, and tries take one
)
# A request changes about twelve pages and writes each whole: small ones are less to write. A ledger keeps those it was made with.
PAGE_BYTES = 1024
# A checkpoint waits for the disk. At SQLite's own 1,000 pages that is each eighty requests.
CHECKPOINT_BYTES = 32 * 2**20
PG_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class Compiled(NamedTuple):
    """A statement as the driver takes it; it is kept itself too, so that its identity is never another's."""

    statement: sa.Executable
    sql: str
    arranged: Callable[[dict[str, object]], Any]
    """What the driver wants of the values by name: themselves, or a tuple in the order of their places."""
    has_rows: bool


class Session:
    """One write transaction: runs statements on the driver's connection."""

    def __init__(self, store: "Store", cursor: Any) -> None:
        self._store = store
        self._cursor = cursor
        self._after: list[Callable[[], None]] = []
        self.undone = False

    def rows(self, statement: sa.Executable, **values: object) -> list[Row]:
        """Run a statement and return its rows."""
        _, sql, arranged, has_rows = self._store.compiled(statement)
        self._cursor.execute(sql, arranged(values))
        return self._cursor.fetchall() if has_rows else []

    def now_us(self) -> int:
        """Return the store's time in microseconds since the epoch: one clock for all copies."""
        if self._store.clock is not None:
            return microseconds(self._store.clock.now())
        if self._store.is_sqlite:
            return time.time_ns() // 1000
        self._cursor.execute(PG_NOW)
        return int(self._cursor.fetchone()[0])

    def undo(self) -> None:
        """Leave no trace of this transaction when it ends."""
        self.undone = True

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call something when, and only when, this transaction has been committed."""
        self._after.append(call)

    def committed(self) -> None:
        """Make the calls that wait for the commit."""
        for call in self._after:
            call()


class Store:
    """A ledger's database by URL, or by the path of a SQLite file.

    Parameters
    ----------
    url
        ``sqlite:///file``, a path, or ``postgresql://user:password@host/database``.
    power_safe
        SQLite waits for the disk at every commit. Without it a crash of the process loses nothing, a power cut may lose
        the last transactions.
    patience_s
        How long a call may wait for the store.
    create
        Make the tables if they are not there; without it a missing ledger is an error.
    clock
        Null for the store's own: this machine's for SQLite, the server's for PostgreSQL.

    Raises
    ------
    InputError
        The URL is none of these.
    StoreError
        The database cannot be reached, is no ledger, or one of another version.
    """

    def __init__(
        self,
        url: str | Path,
        *,
        power_safe: bool = False,
        patience_s: float = 10.0,
        create: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock
        self._url = _database_url(url)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self.name = _shown_url(self._url)
        self._patience_s = patience_s
        self._power_safe = power_safe
        self._lock = threading.Lock()
        self._compiled: dict[int, Compiled] = {}
        self._writer: PoolProxiedConnection | None = None
        self._connected: Any = None  # the driver's connection of the writer
        self._pid = os.getpid()
        if self.is_sqlite and sqlite3.sqlite_version_info < LEAST_SQLITE:
            raise StoreError(self.name, f"SQLite {sqlite3.sqlite_version} is too old: strict tables need 3.37")
        if self.is_sqlite and not create and not Path(str(self._url.database)).is_file():
            raise StoreError(self.name, "there is no ledger")
        self._engine = self._new_engine()
        self._dbapi: Any = self._engine.dialect.loaded_dbapi
        self._open(create=create)

    def compiled(self, statement: sa.Executable) -> Compiled:
        """Return a statement as the driver takes it, compiled at its first use."""
        found = self._compiled.get(id(statement))
        if found is None:
            compiled = statement.compile(dialect=self._engine.dialect)  # type: ignore[attr-defined]
            order = tuple(compiled.positiontup) if compiled.positional else None
            constants = {name: value for name, value in compiled.params.items() if not name.startswith("p_")}
            changes = compiled.isinsert or compiled.isupdate or compiled.isdelete
            has_rows = bool(compiled.effective_returning) or not changes
            found = Compiled(statement, str(compiled), _arrangement(order, constants), has_rows)
            self._compiled[id(statement)] = found
        return found

    def write(self, work: Callable[[Session], T]) -> T:
        """Run one write transaction, again when the store was busy or the connection lost; undone if ``work`` raises."""
        deadline, tries = time.monotonic() + self._patience_s, 0
        if not self._lock.acquire(timeout=self._patience_s):
            raise StoreError(self.name, "budget store unavailable: other calls of this program are waiting for it")
        try:
            while True:
                try:
                    return self._once(work)
                except self._dbapi.Error as error:
                    if not self._is_passing(error):
                        raise StoreError(self.name, f"budget store failed: {_first_line(error)}") from error
                    if time.monotonic() > deadline:
                        raise StoreError(self.name, f"budget store unavailable: {_first_line(error)}") from error
                tries += 1
                time.sleep(
                    min(tries, MOST_PAUSES) * random.uniform(*BUSY_PAUSE_S) if self.is_sqlite else random.uniform(*LOST_PAUSE_S)
                )
        finally:
            self._lock.release()

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run reads that all see the same state."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                with self._engine.connect() as connection:
                    if self.is_sqlite:
                        connection.exec_driver_sql("BEGIN")
                        try:
                            return work(connection)
                        finally:
                            connection.exec_driver_sql("ROLLBACK")
                    connection.execution_options(isolation_level="REPEATABLE READ")
                    return work(connection)
            except sa.exc.DBAPIError as error:
                cause = error.orig if isinstance(error.orig, BaseException) else error
                if not self._is_passing(cause):
                    raise StoreError(self.name, f"budget store failed: {_first_line(cause)}") from error
                if time.monotonic() > deadline:
                    raise StoreError(self.name, f"budget store unavailable: {_first_line(cause)}") from error
            time.sleep(random.uniform(*LOST_PAUSE_S))

    def now(self, connection: sa.Connection) -> datetime:
        """Return the store's time, for a read."""
        if self.clock is not None:
            return self.clock.now()
        return datetime.now(UTC) if self.is_sqlite else instant_of(int(connection.exec_driver_sql(PG_NOW).scalar_one()))

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            self._drop_writer()
            self._engine.dispose()

    def _once(self, work: Callable[[Session], T]) -> T:
        connection = self._connection()
        try:
            cursor = connection.cursor()
            if self.is_sqlite:
                cursor.execute("BEGIN IMMEDIATE")
            session = Session(self, cursor)
            result = work(session)
            if session.undone:
                cursor.close()
                connection.rollback()
                return result
            if self.is_sqlite:
                cursor.execute("COMMIT")
                cursor.close()
            else:
                cursor.close()
                connection.commit()
        except BaseException:
            self._give_up(connection)
            raise
        session.committed()
        return result

    def _give_up(self, connection: Any) -> None:
        """End a transaction that failed; a connection that cannot even do that is thrown away."""
        try:
            connection.rollback()
        except self._dbapi.Error:
            self._drop_writer()

    def _connection(self) -> Any:
        if self._pid != os.getpid():  # a fork: the parent's connections are not ours to use, nor to close
            self._pid, self._writer, self._connected = os.getpid(), None, None
            self._engine.dispose(close=False)
        if self._connected is not None and not self.is_sqlite and self._connected.closed:
            self._drop_writer()
        if self._writer is None:
            try:
                self._writer = self._engine.raw_connection()
                self._connected = self._writer.driver_connection
            except sa.exc.DBAPIError as error:
                if isinstance(error.orig, BaseException):
                    raise error.orig from None
                raise
        return self._connected

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.invalidate()
            self._writer = self._connected = None

    def _is_passing(self, error: BaseException) -> bool:
        """Return whether trying again can help: busy, locked, deadlock, serialisation, or a lost connection."""
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", None)
            return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        state = getattr(error, "sqlstate", None)
        if state is None:  # no answer from the server: never reached, or gone
            return isinstance(error, self._dbapi.OperationalError)
        return state in ("40001", "40P01", "55P03") or state[:2] in ("08", "53", "57")

    def _new_engine(self) -> sa.Engine:
        if not self.is_sqlite:
            return sa.create_engine(self._url, pool_size=2, pool_pre_ping=True, connect_args={"connect_timeout": 5})
        engine = sa.create_engine(self._url, connect_args={"check_same_thread": False, "timeout": 0})

        def prepare(connection: sqlite3.Connection, _record: object) -> None:
            connection.isolation_level = None  # this module says when a transaction begins
            self._refuse_anothers(connection)  # before the first word that changes the file
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._power_safe else 'NORMAL'}")
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_BYTES // page_bytes}")
            connection.execute("PRAGMA foreign_keys = ON")

        sa.event.listen(engine, "connect", prepare)
        return engine

    def _refuse_anothers(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that has tables and is no ledger; a database of PostgreSQL may be shared."""
        found = connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
        tables = {str(name) for (name,) in found}
        if tables and not {meta.name, holds.name} <= tables:
            connection.close()
            rule = "a ledger has an SQLite file of its own: name a new file, an empty one, or a ledger"
            raise StoreError(self.name, f"there is no ledger: the file holds {shown(min(tables))} of another program; {rule}")

    def _open(self, *, create: bool) -> None:
        """Make the tables if asked to, under a lock that three copies starting at once wait for; check the version."""
        if create:
            self.write(lambda _session: None)  # waits for the store with patience, and shows that it can be written
            self._create()

        def version(connection: sa.Connection) -> str | None:
            if not sa.inspect(connection).has_table(meta.name):
                return None
            return connection.execute(sa.select(meta.c.value).where(meta.c.name == "schema_version")).scalar()

        found = self.read(version)
        if found is None:
            raise StoreError(self.name, "there is no ledger")
        if found != SCHEMA_VERSION:
            raise StoreError(self.name, f"the ledger has version {found}, this program writes version {SCHEMA_VERSION}")

    def _create(self) -> None:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                with self._engine.connect() as connection:
                    if self.is_sqlite:
                        connection.exec_driver_sql("BEGIN IMMEDIATE")
                    else:
                        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(CREATION_LOCK)))
                    METADATA.create_all(connection)
                    if connection.execute(sa.select(sa.func.count()).select_from(meta)).scalar() == 0:
                        connection.execute(meta.insert().values(name="schema_version", value=SCHEMA_VERSION))
                    if self.is_sqlite:
                        connection.exec_driver_sql("COMMIT")
                    connection.commit()
                    return
            except sa.exc.DBAPIError as error:
                cause = error.orig if isinstance(error.orig, BaseException) else error
                if not self._is_passing(cause) or time.monotonic() > deadline:
                    raise StoreError(self.name, f"budget store unavailable: {_first_line(cause)}") from error
            time.sleep(random.uniform(*LOST_PAUSE_S))


def _arrangement(order: tuple[str, ...] | None, constants: dict[str, object]) -> Callable[[dict[str, object]], Any]:
    """Return what makes a statement's values into what its driver takes: by name without an order, else a tuple."""
    if order is None:
        return lambda values: values | constants
    if constants or len(order) < 2:  # of one name an itemgetter gives the bare value
        return lambda values: [constants[name] if name in constants else values[name] for name in order]
    return itemgetter(*order)


def _database_url(url: str | Path) -> sa.URL:
    text = str(url)
    if is_broken_address(text):
        raise InputError(WHAT, "URL", "…", "is neither the path of a file nor a postgresql:// URL; it may hold a password")
    if isinstance(url, Path) or "://" not in text:
        return sa.URL.create("sqlite", database=text)
    try:
        parsed = sa.make_url(text)
    except sa.exc.ArgumentError as error:
        raise InputError(WHAT, "URL", text.split("://")[0] + "://…", "is not a database URL") from error
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if kind != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise InputError(WHAT, "URL", _shown_url(parsed), "must name a SQLite file or a PostgreSQL database")
    return parsed.set(drivername="sqlite")


def _shown_url(url: sa.URL) -> str:
    """Return a database URL without its password and without its options, which may hold one as well."""
    return url.set(query={}).render_as_string(hide_password=True)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
