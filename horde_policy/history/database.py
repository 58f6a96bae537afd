"""A history database opened: SQLite in WAL mode with ``synchronous=FULL``, or PostgreSQL by URL (design §2), errors named.

What goes wrong in the database is a :class:`~horde_policy.errors.StoreError` that says what (full, locked, damaged, not
reachable), never a driver's own error, and never with a password.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, NoSuchModuleError, OperationalError

from horde_policy.errors import StoreError, shown
from horde_policy.history.tables import KEPT_DAYS, META, POLLS, SCHEMA_VERSION, TABLES
from horde_policy.settings import is_broken_address

__all__ = ["BUSY_TIMEOUT_S", "Database", "from_microseconds", "store_url", "to_microseconds"]

BUSY_TIMEOUT_S = 30.0
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def to_microseconds(at: datetime) -> int:
    """Return an aware instant in microseconds since the Unix epoch, UTC, exactly.

    >>> to_microseconds(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
    1000005
    """
    return (at - EPOCH) // MICROSECOND


def from_microseconds(at_us: int) -> datetime:
    """Return the instant of :func:`to_microseconds`.

    >>> from_microseconds(1000005)
    datetime.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=datetime.timezone.utc)
    """
    return EPOCH + timedelta(microseconds=at_us)


def store_url(store: str | Path) -> sa.URL:
    """Return the database URL of a store given as a URL or as the path of an SQLite file.

    Raises
    ------
    StoreError
        It is a URL of another kind of database, or none that can be read; the message repeats nothing after its scheme.

    Examples
    --------
    >>> str(store_url("history.sqlite"))
    'sqlite:///history.sqlite'
    >>> store_url("postgresql://me:secret@db.example/horde").drivername
    'postgresql+psycopg'
    """
    text = str(store)
    if is_broken_address(text):
        raise StoreError("…", "must be an SQLite file or a postgresql:// URL; it may hold a password")
    if "://" not in text:
        return sa.URL.create("sqlite", database=text)
    try:
        url = sa.make_url(text)
        kind = url.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError):
        kind = ""
    if kind not in {"sqlite", "postgresql"}:
        raise StoreError(f"{text.partition('://')[0]}://…", "must be an SQLite file or a postgresql:// URL")
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


_MEANINGS = {
    "database or disk is full": "the disk, or the store's page limit, is full",
    "no space left on device": "the disk is full",
    "database is locked": f"another process held the store for longer than {BUSY_TIMEOUT_S:g} s",
    "attempt to write a readonly database": "the store cannot be written",
    "readonly database": "the store cannot be written",
    "read-only transaction": "the store cannot be written",
    "unable to open database file": "the store's file cannot be opened",
    "file is not a database": "the file is not a history store",
    "malformed": "the store is damaged",
    "disk I/O error": "the disk does not read or write the store",
}


def _named(error: DBAPIError) -> str:
    text = str(error.orig)
    for words, meaning in _MEANINGS.items():
        if words.lower() in text.lower():
            return meaning
    first = text.splitlines()[0] if text else type(error.orig).__name__
    if isinstance(error, OperationalError | InterfaceError) and error.connection_invalidated:
        return f"the connection to the database broke: {first}"
    return f"the database says: {first}"


class Database:
    """A history database.

    Parameters
    ----------
    store
        The path of an SQLite file, or a database URL (``sqlite:///…``, ``postgresql://…``).
    read_only
        Open for reading: the store must be there, nothing is created, and nothing can be written.
    max_pages
        SQLite only: refuse to grow beyond so many pages.
    durable
        SQLite only: wait for the disk at each transaction. Off for a store that can be made again: a power cut may damage it.
    monotonic
        Seconds that never go back, by which waiting for another writer is told.

    Attributes
    ----------
    name
        The store as shown to people, without a password.
    file
        The file of an SQLite store; null for another.

    Raises
    ------
    StoreError
        The database cannot be opened, holds another schema version, or is an SQLite file with the tables of another program, in
        which nothing is changed then.
    """

    def __init__(
        self,
        store: str | Path,
        *,
        read_only: bool = False,
        max_pages: int | None = None,
        durable: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = store_url(store)
        self.name = self.url.set(query={}).render_as_string(hide_password=True)
        self.file = Path(self.url.database or "") if self.url.get_backend_name() == "sqlite" else None
        self.read_only = read_only
        self._readings = threading.local()
        self._monotonic = monotonic
        self._waited_s = 0.0
        if read_only and self.file is not None and not self.file.is_file():
            raise StoreError(self.name, "there is no such history store")
        waits: dict[str, Any] = {"timeout": BUSY_TIMEOUT_S} if self.file is not None else {"connect_timeout": 10}
        with self.named_errors():
            self.engine = sa.create_engine(self.url, connect_args=waits, pool_pre_ping=self.file is None)
        if self.file is not None:
            self._prepare_sqlite(max_pages, durable=durable)
        try:
            if not read_only:
                self._create()
            with self.reading() as connection:
                self._check_schema(connection)
        except BaseException:
            self.engine.dispose()
            raise

    def _create(self) -> None:
        with self.reading() as connection:
            there = sa.inspect(connection)
            if there.has_table(META.name) and there.has_table(KEPT_DAYS.name):
                return
        with self.writing() as connection:
            TABLES.create_all(connection)
            if connection.scalar(sa.select(META.c.value).where(META.c.name == "schema")) is None:
                connection.execute(META.insert().values(name="schema", value=str(SCHEMA_VERSION)))

    def _prepare_sqlite(self, max_pages: int | None, *, durable: bool) -> None:
        @sa.event.listens_for(self.engine, "connect")
        def _connected(raw: Any, _record: Any) -> None:
            raw.isolation_level = None  # the driver must not begin transactions of its own
            cursor = raw.cursor()
            if self.read_only:
                cursor.execute("PRAGMA query_only=ON")
            else:
                self._refuse_anothers(raw)  # before the first word that changes the file
                cursor.execute("PRAGMA journal_mode=WAL")
                cursor.execute(f"PRAGMA synchronous={'FULL' if durable else 'OFF'}")
            if max_pages is not None:
                cursor.execute(f"PRAGMA max_page_count={max_pages:d}")
            cursor.close()

        @sa.event.listens_for(self.engine, "begin")
        def _begun(connection: sa.Connection) -> None:
            # A transaction that begins as a reader and upgrades fails at once with "busy": a writer begins as one.
            options = connection.get_execution_options()
            if options.get("isolation_level") == "AUTOCOMMIT":
                return
            before_s = self._monotonic()
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writer") else "BEGIN")
            finally:
                self._waited_s += self._monotonic() - before_s

    def _refuse_anothers(self, raw: Any) -> None:
        """Refuse an SQLite file that has tables and is no history store; a database of PostgreSQL may be shared."""
        tables = {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")}
        if tables and not {META.name, POLLS.name} <= tables:
            raw.close()
            found = shown(min(tables))
            rule = "a history has an SQLite file of its own: name a new file, an empty one, or a history store"
            raise StoreError(self.name, f"the file is not a history store, it holds {found} of another program; {rule}")

    def _check_schema(self, connection: sa.Connection) -> None:
        if not sa.inspect(connection).has_table(META.name):
            raise StoreError(self.name, "the file is not a history store" if self.file else "the database holds no history")
        found = connection.scalar(sa.select(META.c.value).where(META.c.name == "schema"))
        if found != str(SCHEMA_VERSION):
            raise StoreError(self.name, f"has schema version {found}, this program reads version {SCHEMA_VERSION}")

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Turn what the database says into a StoreError that names it."""
        try:
            yield
        except DBAPIError as error:
            raise StoreError(self.name, _named(error)) from error
        except ImportError as error:  # the driver of PostgreSQL is an extra
            raise StoreError(self.name, f"its driver is not installed ({error.name}): see requirements-postgres.txt") from error

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Give a connection in a transaction that writes; it is committed at the end, or nothing of it stays."""
        if self.read_only:
            raise StoreError(self.name, "cannot be written: it was opened to read")
        with self.named_errors(), self.engine.connect().execution_options(writer=True) as connection, connection.begin():
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a connection that reads one consistent state; within another reading of the same thread, that one's."""
        around: sa.Connection | None = getattr(self._readings, "connection", None)
        if around is not None:
            with self.named_errors():
                yield around
            return
        with self.named_errors(), self.engine.connect() as connection:
            if self.file is None:
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                self._readings.connection = connection
                try:
                    yield connection
                finally:
                    self._readings.connection = None

    def taken_wait_s(self) -> float:
        """Return for how many seconds transactions have waited to begin since the last call; only SQLite's do."""
        waited_s, self._waited_s = self._waited_s, 0.0
        return waited_s

    def close(self) -> None:
        """Close the store's connections."""
        self.engine.dispose()
