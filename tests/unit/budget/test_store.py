"""The ledger's store: never a busy error at the caller, nothing lost at a crash, one state for all copies (budgets.md §7, §9)."""

import multiprocessing
import os
import signal
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from horde_policy.budget import Hold, Ledger, Limit, Refusal, TokenUsage
from horde_policy.budget.store import Session
from horde_policy.errors import InputError, StoreError
from tests.server_postgres import PostgresServer
from tests.unit.budget.shapes import MICRO, held, price, rates

HOLD = 91_440 * MICRO
REAL = TokenUsage(fresh=10_000, output=500)
FORK = multiprocessing.get_context("fork")


def in_child(work: Callable[[], None]) -> int | None:
    """Run in a forked process; return its exit code, negative for the signal that ended it."""
    child = FORK.Process(target=work)
    child.start()
    child.join(60)
    return child.exitcode


def test_a_store_that_stays_busy_is_unavailable_and_never_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path, patience_s=0.2) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        for call in (
            lambda: ledger.admit("team", held(), request_id="a"),
            lambda: ledger.settle(("a", 1), None),
            ledger.renew,
            ledger.reap,
        ):
            with pytest.raises((StoreError, InputError), match=r"budget store unavailable|is not in the ledger"):
                call()
        with pytest.raises(StoreError, match="budget store unavailable"):
            Ledger(path, patience_s=0.1)
        assert ledger.open_holds() == []  # reading goes on while another writes
        blocker.execute("ROLLBACK")
        blocker.close()
        assert isinstance(ledger.admit("team", held(), request_id="a"), Hold)


def test_a_store_that_is_busy_for_a_while_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path, patience_s=30) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        blocker.execute("BEGIN IMMEDIATE")
        threading.Timer(0.3, lambda: blocker.execute("COMMIT")).start()
        assert isinstance(ledger.admit("team", held(), request_id="a"), Hold)
        blocker.close()


def test_another_thread_that_does_not_come_back_is_named(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db", patience_s=0.1) as ledger:
        entered, leave = threading.Event(), threading.Event()

        def stay(_session: Session) -> None:
            entered.set()
            leave.wait(60)

        with ThreadPoolExecutor(1) as pool:
            pool.submit(ledger.store.write, stay)
            entered.wait(60)
            with pytest.raises(StoreError, match="other calls of this program are waiting"):
                ledger.renew()
            leave.set()


def test_many_threads_share_one_ledger(store_url: str) -> None:
    with Ledger(store_url) as ledger:
        ledger.set_budget("team", Limit("day", "2"))  # room for 21

        def one(number: int) -> bool:
            answer = ledger.admit("team", held(), request_id=str(number))
            if isinstance(answer, Hold) and number % 2:
                ledger.settle(answer, TokenUsage(fresh=0, output=6_096))
            return bool(answer)

        with ThreadPoolExecutor(8) as pool:
            admitted = sum(pool.map(one, range(40)))
        audit = ledger.audit()
        assert audit.agrees
        assert admitted == 21
        assert audit.windows[0].spent_pico + audit.windows[0].held_pico <= audit.windows[0].limit_pico


def test_a_forked_copy_opens_its_own_connection(store_url: str) -> None:
    with Ledger(store_url) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        assert ledger.admit("team", held(), request_id="parent")
        assert in_child(lambda: assert_admitted(ledger, "child")) == 0
        assert ledger.admit("team", held(), request_id="parent again")
        assert {hold.request_id for hold in ledger.open_holds()} == {"parent", "child", "parent again"}


def assert_admitted(ledger: Ledger, request_id: str) -> None:
    os._exit(0 if ledger.admit("team", held(), request_id=request_id) else 1)


def test_copies_that_start_at_once_make_one_ledger(store_url: str) -> None:
    def start(number: int) -> None:
        with Ledger(store_url, patience_s=60) as ledger:
            ledger.set_budget("team", Limit("day", "1"))
            assert_admitted(ledger, str(number))

    children = [FORK.Process(target=start, args=(number,)) for number in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    with Ledger(store_url, create=False) as ledger:
        assert len(ledger.open_holds()) == 4
        assert ledger.audit().agrees


class _Killed:
    """Ends its process with SIGKILL before the n-th statement, or before or after the commit."""

    def __init__(self, ledger: Ledger, moment: int | str) -> None:
        self.moment = moment
        self.count = 0
        rows, once = Session.rows, ledger.store._once

        def counted(session: Session, statement: Any, **values: object) -> Any:
            if self.count == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            self.count += 1
            return rows(session, statement, **values)

        def around(work: Callable[[Session], Any]) -> Any:
            def last(session: Session) -> Any:
                result = work(session)
                if moment == "before commit":
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            result = once(last)
            if moment == "after commit":
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        Session.rows = counted  # type: ignore[method-assign, assignment]
        ledger.store._once = around  # type: ignore[method-assign]


MOMENTS: list[int | str] = [*range(9), "before commit", "after commit"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_copy_killed_at_any_statement_of_an_admission_loses_and_doubles_nothing(store_url: str, moment: int | str) -> None:
    with Ledger(store_url, owner="survivor") as ledger:
        ledger.set_budget("team", Limit("day", "1"))

        def work() -> None:
            mine = Ledger(store_url, owner="killed")
            _Killed(mine, moment)
            mine.admit("team", held(), request_id="a")
            os._exit(3)  # it ended before the n-th statement

        code = in_child(work)
        assert code in (-signal.SIGKILL, 3)
        audit = ledger.audit()
        assert audit.agrees
        there = code == 3 or moment == "after commit"
        found = ledger.open_holds()
        assert [(hold.owner, hold.request_id) for hold in found] == ([("killed", "a")] if there else [])
        assert sum(window.held_pico for window in audit.windows) == (HOLD if there else 0)
        again = ledger.admit("team", held(), request_id="a")  # the client tries again
        assert isinstance(again, Hold)
        assert sum(window.held_pico for window in ledger.audit().windows) == HOLD


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_copy_killed_at_any_statement_of_a_settlement_loses_and_doubles_nothing(store_url: str, moment: int | str) -> None:
    with Ledger(store_url, owner="survivor") as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        hold = ledger.admit("team", held(), request_id="a")
        assert isinstance(hold, Hold)

        def work() -> None:
            mine = Ledger(store_url, owner="killed")
            _Killed(mine, moment)
            mine.settle(hold, REAL)
            os._exit(3)

        code = in_child(work)
        assert code in (-signal.SIGKILL, 3)
        [window] = ledger.audit().windows
        assert window.agrees
        done = code == 3 or moment == "after commit"
        assert (window.spent_pico, window.held_pico) == ((37_500 * MICRO, 0) if done else (0, HOLD))
        assert ledger.settle(hold, REAL).again is done
        [window] = ledger.audit().windows
        assert (window.spent_pico, window.held_pico, window.agrees) == (37_500 * MICRO, 0, True)


@pytest.mark.server
def test_a_lost_connection_is_made_again(postgres_url: str) -> None:
    with Ledger(postgres_url) as ledger, psycopg.connect(postgres_url, autocommit=True) as other:
        ledger.set_budget("team", Limit("day", "1"))
        for number in range(3):
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"
            )
            assert ledger.admit("team", held(), request_id=str(number))
            assert len(ledger.open_holds()) == number + 1
        assert ledger.audit().agrees


@pytest.mark.server
def test_a_server_that_crashes_and_recovers_has_every_hold_and_one_that_is_gone_is_unavailable(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    with Ledger(postgres_url, patience_s=20) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        assert ledger.admit("team", held(), request_id="before")
        postgres_server.stop()
        impatient = ledger.store
        impatient._patience_s = 0.3
        with pytest.raises(StoreError, match="budget store unavailable") as caught:
            ledger.admit("team", held(), request_id="lost")
        assert postgres_server.password not in str(caught.value)
        impatient._patience_s = 20
        restart = threading.Timer(0.3, postgres_server.start)
        restart.start()
        assert ledger.admit("team", held(), request_id="after")
        restart.join()
        assert [hold.request_id for hold in ledger.open_holds()] == ["before", "after"]
        assert ledger.audit().agrees


@pytest.mark.server
def test_a_password_is_never_shown(postgres_server: PostgresServer, postgres_url: str) -> None:
    wrong = postgres_url.replace(postgres_server.password, "sesame-wrong")
    with pytest.raises(StoreError) as caught:
        Ledger(wrong, patience_s=0.1)
    assert "sesame" not in str(caught.value)
    with Ledger(postgres_url) as ledger:
        assert postgres_server.password not in ledger.name
        assert "***" in ledger.name


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "mysql://u:secret@h/d", "redis://h", "postgresql:/x://", "://", "sqlite:///"]
)
def test_an_address_that_is_no_ledger_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="URL") as caught:
        Ledger(url)
    assert "secret" not in str(caught.value)


BROKEN_ADDRESSES = [
    "host=127.0.0.1 user=u password=s3cret dbname=x",
    "dbname = x password = s3cret",
    "password=s3cret",
    "postgresql:/u:s3cret@127.0.0.1/x",
    "postgresql:u:s3cret@127.0.0.1/x",
    "Postgres:/u:s3cret@h/x",
    "u:s3cret@127.0.0.1/x",
    "//u:s3cret@127.0.0.1/x",
    "postgresql:///u:s3cret@127.0.0.1/x",
    "sqlite:///postgresql:/u:s3cret@h/x",
    "sqlite:///host=h password=s3cret",
    "host=h password=s3cret://",
]


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("address", BROKEN_ADDRESSES)
def test_an_address_that_is_no_url_makes_no_file_and_shows_no_password(
    address: str, kind: type[str] | type[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InputError, StoreError)) as caught:
        Ledger(kind(address))
    assert "s3cret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a=b.db", "me@home.db", "my user.db", "ledger:1.db"])
def test_an_odd_file_name_is_still_a_file(name: str, tmp_path: Path) -> None:
    with Ledger(str(tmp_path / name)) as ledger:
        assert ledger.open_holds() == []
    assert (tmp_path / name).is_file()


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no ledger"):
        Ledger(tmp_path / "none.db", create=False)
    assert not (tmp_path / "none.db").exists()
    text = tmp_path / "text.db"
    text.write_text("hello, this is not a database at all " * 100)
    with pytest.raises(StoreError, match="budget store failed"):
        Ledger(text)
    empty = tmp_path / "empty.db"
    sqlite3.connect(empty).close()
    empty.touch()
    with pytest.raises(StoreError, match="there is no ledger"):
        Ledger(empty, create=False)
    with pytest.raises(StoreError, match="unable to open"):
        Ledger(tmp_path / "no" / "folder.db")


@pytest.mark.parametrize("table", ["t", "meta"])
@pytest.mark.parametrize("create", [True, False])
def test_another_programs_file_is_refused_and_left_as_it_was(tmp_path: Path, table: str, create: bool) -> None:
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {table} (name TEXT, value TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"there is no ledger: the file holds '{table}' of another program"):
        Ledger(path, create=create)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["app.db"]


def test_an_empty_file_becomes_a_ledger_of_small_pages(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch()
    Ledger(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA page_size").fetchone() == (1024,)
        connection.execute("CREATE TABLE another (x)")
    connection.close()
    Ledger(path).close()


def test_a_ledger_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = '999'")
    connection.close()
    with pytest.raises(StoreError, match="the ledger has version 999"):
        Ledger(path)


def test_the_tables_take_no_binary_float(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        ledger.admit("team", held(), request_id="a")
    connection = sqlite3.connect(path)
    tables = [
        row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    ]
    assert len(tables) == 9
    assert all("STRICT" in sql for sql in tables)
    for column, table in (("spent_pico", "windows"), ("hold_pico", "holds"), ("limit_pico", "limits")):
        with pytest.raises(sqlite3.IntegrityError, match="cannot store REAL value in INTEGER column"):
            connection.execute(f"UPDATE {table} SET {column} = 1.5")
    connection.close()


def test_what_is_asked_all_the_time_goes_by_an_index(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        do = ledger._books.do
        for statement, index in ((do.overdue, "holds_open"), (do.renew, "holds_open"), (do.end_open, "sqlite_autoindex_holds_1")):
            _, sql, arranged, _ = ledger.store.compiled(statement)
            values = arranged(defaultdict(lambda: 1))

            def plan(session: Session, sql: str = sql, values: object = values) -> str:
                return str(session._cursor.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall())

            assert f"SEARCH holds USING INDEX {index}" in ledger.store.write(plan)


def test_sqlite_is_opened_as_promised(tmp_path: Path) -> None:
    for power_safe, level in ((False, 1), (True, 2)):
        with Ledger(tmp_path / f"{level}.db", power_safe=power_safe) as ledger:

            def pragmas(session: Session) -> tuple[Any, ...]:
                cursor = session._cursor
                return tuple(
                    cursor.execute(f"PRAGMA {name}").fetchone()[0]
                    for name in ("journal_mode", "synchronous", "foreign_keys", "page_size", "wal_autocheckpoint")
                )

            assert ledger.store.write(pragmas) == ("wal", level, 1, 1024, 32 * 1024)


def test_a_ledger_of_other_pages_keeps_them_and_its_checkpoints_are_as_large(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE older (x)")
        connection.execute("DROP TABLE older")
    connection.close()
    with Ledger(path) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        hold = ledger.admit("team", held(), request_id="a")
        assert isinstance(hold, Hold)
        ledger.settle(hold, REAL)

        def pragmas(session: Session) -> list[Any]:
            return [session._cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "wal_autocheckpoint")]

        assert ledger.store.write(pragmas) == [4096, 8192]
        assert ledger.audit().agrees


def test_every_statement_says_whether_it_has_rows(store_url: str) -> None:
    with Ledger(store_url) as ledger:
        for statement in vars(ledger._books.do).values():
            found = ledger.store.compiled(statement)
            assert found.has_rows == (found.sql.startswith("SELECT") or " RETURNING " in found.sql)


def test_more_money_than_the_store_can_hold_is_an_error_and_changes_nothing(store_url: str) -> None:
    dear = price(row=rates(output="9999"))
    with Ledger(store_url) as ledger:
        ledger.set_budget("team", Limit("total", "4000000"))
        for number in range(3):
            assert ledger.admit("team", held(m=1, at=dear), request_id=str(number))
        with pytest.raises(InputError, match=r"must be at most \$4,000,000\.00 a request"):
            ledger.settle(("0", 1), TokenUsage(fresh=0, output=10**9))
        most = TokenUsage(fresh=0, output=390_000_000)
        for number in range(2):
            assert ledger.settle((str(number), 1), most).cost_pico == 390_000_000 * 9_999 * MICRO
        with pytest.raises(StoreError, match="budget store failed"):
            ledger.settle(("2", 1), most)  # the sum would need more than 63 bits
        assert [hold.request_id for hold in ledger.open_holds()] == ["2"]
        assert ledger.audit().agrees


def test_a_refusal_is_not_an_error_of_the_store(store_url: str) -> None:
    with Ledger(store_url) as ledger:
        ledger.set_budget("team", Limit("day", "0.01"))
        assert isinstance(ledger.admit("team", held(), request_id="a"), Refusal)


def test_a_sqlite_without_strict_tables_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(StoreError, match=r"is too old: strict tables need 3\.37"):
        Ledger(tmp_path / "ledger.db")
