"""The ledger on SQLite from three processes: admit-and-settle pairs a second, kill-safe and power-safe; and a budget replay.

Target: at least 2,000 pairs a second on 2 cores, kill-safe (``synchronous = NORMAL``). Beside it the power-safe figure of this
disk (``FULL``), and two twins of the same job in the same run: the same rows and counters written by bare statements on the
driver's connection, without any rule of this package, and through SQLAlchemy's ``engine.begin()``. A look at a ledger (status and
open holds of a ``total`` window) must not grow with what has ended: with ten times the requests at most 1.5 times as long. The
replay: 100,000 requests (synthetic) at 8 reservations in seconds.
"""

import multiprocessing
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
import sqlalchemy as sa

from horde_policy.budget import Ask, Hold, Ledger, Limit, TokenUsage, reserve_cost
from horde_policy.budget.price_table import PriceTable
from horde_policy.budget.prices import Price, Rates

TARGET_PAIRS_PER_S = 2_000
COPIES = 3
PAIRS = int(os.environ.get("PAIRS", "3000"))
POWER_SAFE_PAIRS = int(os.environ.get("POWER_SAFE_PAIRS", "200"))
LOOK_ROWS = int(os.environ.get("LOOK_ROWS", "30000"))
MOST_GROWTH = 1.5
SPAWN = multiprocessing.get_context("spawn")
PRICE = Price(
    provider="example",
    model="m",
    rates=Rates(
        input=3 * 10**12, output=15 * 10**12, cache_read=3 * 10**11, cache_write_5m=375 * 10**10, cache_write_1h=6 * 10**12
    ),
)
RESERVATION = reserve_cost(Ask(api="chat", model="m", body_bytes=40_000, limit_tokens=8_000), PRICE)
USAGE = TokenUsage(fresh=10_000, output=500)
COST_PICO = 37_500_000_000

TWIN_TABLES = (
    "CREATE TABLE windows (id INTEGER PRIMARY KEY, spent INTEGER, held INTEGER, moves INTEGER) STRICT",
    "CREATE TABLE holds (id INTEGER PRIMARY KEY, request TEXT UNIQUE, owner TEXT, state TEXT, hold INTEGER, cost INTEGER) STRICT",
    "CREATE TABLE entries (window INTEGER, move INTEGER, hold INTEGER, what TEXT, held INTEGER, spent INTEGER, "
    "PRIMARY KEY (window, move)) STRICT, WITHOUT ROWID",
    "INSERT INTO windows VALUES (1, 0, 0, 0)",
)
TWIN_ADMIT = (
    "INSERT INTO holds (request, owner, state, hold) VALUES (:request, :owner, 'open', :hold) RETURNING id",
    "UPDATE windows SET held = held + :hold, moves = moves + 1 WHERE id = 1 AND spent + held + :hold <= :most RETURNING moves",
    "INSERT INTO entries VALUES (1, :move, :id, 'admit', :hold, 0)",
)
TWIN_SETTLE = (
    "UPDATE holds SET state = 'settled', cost = :cost WHERE request = :request AND state = 'open' RETURNING id",
    "UPDATE windows SET held = held - :hold, spent = spent + :cost, moves = moves + 1 WHERE id = 1 RETURNING moves",
    "INSERT INTO entries VALUES (1, :move, :id, 'settle', -:hold, :cost)",
)
MOST = 4 * 10**18

Waits = list[float]


class Start:
    """Where a copy waits for the others; its CPU time counts from there, without opening its store."""

    def __init__(self, barrier: Barrier) -> None:
        self._barrier = barrier
        self.cpu_s = 0.0

    def wait(self) -> None:
        self._barrier.wait()
        self.cpu_s = time.process_time()


def through_the_ledger(path: Path, name: str, pairs: int, power_safe: bool, ready: Start) -> Waits:
    with Ledger(path, owner=name, power_safe=power_safe, patience_s=60) as ledger:
        ready.wait()
        waits = []
        for number in range(pairs):
            began = time.perf_counter()
            hold = ledger.admit("team", RESERVATION, request_id=f"{name}-{number}")
            assert isinstance(hold, Hold)
            ledger.settle(hold, USAGE)
            waits.append(time.perf_counter() - began)
        return waits


def prepared(connection: sqlite3.Connection, power_safe: bool) -> None:
    connection.isolation_level = None
    for pragma in ("busy_timeout = 60000", "journal_mode = WAL", f"synchronous = {'FULL' if power_safe else 'NORMAL'}"):
        connection.execute(f"PRAGMA {pragma}")


def through_the_driver(path: Path, name: str, pairs: int, power_safe: bool, ready: Start) -> Waits:
    connection = sqlite3.connect(path)
    prepared(connection, power_safe)
    ready.wait()
    waits = []
    for number in range(pairs):
        began = time.perf_counter()
        values = {"request": f"{name}-{number}", "owner": name, "hold": RESERVATION.hold_pico, "cost": COST_PICO, "most": MOST}
        for statements in (TWIN_ADMIT, TWIN_SETTLE):
            connection.execute("BEGIN IMMEDIATE")
            values["id"] = connection.execute(statements[0], values).fetchone()[0]
            values["move"] = connection.execute(statements[1], values).fetchone()[0]
            connection.execute(statements[2], values)
            connection.execute("COMMIT")
        waits.append(time.perf_counter() - began)
    connection.close()
    return waits


def through_engine_begin(path: Path, name: str, pairs: int, power_safe: bool, ready: Start) -> Waits:
    engine = sa.create_engine(f"sqlite:///{path}")
    sa.event.listen(engine, "connect", lambda connection, _: prepared(connection, power_safe))
    sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    ready.wait()
    waits = []
    for number in range(pairs):
        began = time.perf_counter()
        values = {"request": f"{name}-{number}", "owner": name, "hold": RESERVATION.hold_pico, "cost": COST_PICO, "most": MOST}
        for statements in (TWIN_ADMIT, TWIN_SETTLE):
            with engine.begin() as connection:
                values["id"] = connection.execute(sa.text(statements[0]), values).scalar_one()
                values["move"] = connection.execute(sa.text(statements[1]), values).scalar_one()
                connection.execute(sa.text(statements[2]), values)
        waits.append(time.perf_counter() - began)
    engine.dispose()
    return waits


Job = Callable[[Path, str, int, bool, Start], Waits]
Done: TypeAlias = "multiprocessing.SimpleQueue[tuple[Waits, float]]"


def copy(
    job: Job,
    path: Path,
    name: str,
    pairs: int,
    power_safe: bool,
    ready: Barrier,
    done: Done,
) -> None:
    start = Start(ready)
    waits = job(path, name, pairs, power_safe, start)
    done.put((waits, time.process_time() - start.cpu_s))


def measured(job: Job, *, pairs: int, power_safe: bool = False) -> tuple[float, float, float, float]:
    """Return pairs a second of three processes together, the median and the longest wait in ms, and the CPU time of a pair in µs.

    The CPU time hardly depends on what else the machine does, which the pairs a second do.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        if job is through_the_ledger:
            with Ledger(path, power_safe=power_safe) as ledger:
                ledger.set_budget("team", Limit("total", "4000000"))
        else:
            connection = sqlite3.connect(path)
            prepared(connection, power_safe)
            for statement in TWIN_TABLES:
                connection.execute(statement)
            connection.close()
        ready, done = SPAWN.Barrier(COPIES + 1, timeout=120), SPAWN.SimpleQueue()
        copies = [SPAWN.Process(target=copy, args=(job, path, str(n), pairs, power_safe, ready, done)) for n in range(COPIES)]
        for each in copies:
            each.start()
        ready.wait()
        began = time.perf_counter()
        found = [done.get() for _ in copies]
        seconds = time.perf_counter() - began
        waits = [wait for mine, _ in found for wait in mine]
        cpu_s = sum(spent for _, spent in found)
        for each in copies:
            each.join()
        if job is through_the_ledger:
            with Ledger(path) as ledger:
                audit = ledger.audit()
                assert audit.agrees
                assert audit.windows[0].spent_pico == COPIES * pairs * COST_PICO
    return COPIES * pairs / seconds, statistics.median(waits) * 1e3, max(waits) * 1e3, cpu_s / (COPIES * pairs) * 1e6


def say(what: str, found: tuple[float, float, float, float]) -> None:
    rate, median, longest, cpu = found
    figures = f"{rate:>8,.0f} pairs/s   median {median:7.2f} ms   longest {longest:8.1f} ms   CPU {cpu:6.0f} µs a pair"
    print(f"  {what:<55} {figures}", flush=True)


def look_seconds(path: Path, ended: int) -> tuple[float, float]:
    """Return the median CPU seconds of a look at a ledger with so many ended requests and 20 open ones, and of a full audit.

    CPU time, since whatever else a machine does moves milliseconds of waiting about.
    """
    with Ledger(path) as ledger:
        ledger.set_budget("team", Limit("total", "4000000"))
        there = ledger.status()[0].windows[0].labels["settled"].requests
        for number in range(there, ended):
            hold = ledger.admit("team", RESERVATION, request_id=f"ended-{number}")
            assert isinstance(hold, Hold)
            ledger.settle(hold, USAGE)
        for number in range(20):
            ledger.admit("team", RESERVATION, request_id=f"open-{number}")
        looks = []
        for _ in range(21):
            began = time.thread_time()
            look = ledger.look()
            looks.append(time.thread_time() - began)
        assert look.budgets[0].windows[0].labels["settled"].requests == ended
        assert len(look.holds) == 20
        began = time.thread_time()
        assert ledger.audit().agrees
        return statistics.median(looks), time.thread_time() - began


def say_looks() -> None:
    """Print how long a look takes with few and with ten times as many ended requests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        few, _ = look_seconds(path, LOOK_ROWS // 10)
        many, audit = look_seconds(path, LOOK_ROWS)
    verdict = "reached" if many <= MOST_GROWTH * few else "MISSED"
    print(
        f"A look at a total window, 20 open, CPU: {few * 1e3:.1f} ms with {LOOK_ROWS // 10:,} ended, {many * 1e3:.1f} ms with "
        f"{LOOK_ROWS:,} ({many / few:.2f} ×; target at most {MOST_GROWTH} ×: {verdict}); "
        f"the audit, which reads every row: {audit * 1e3:.0f} ms"
    )


def replay_seconds(requests: int) -> tuple[float, float]:
    """Return the seconds of the first replay (the loops may have to be compiled) and of the second."""
    from horde_policy.budget.requests import checked_requests
    from horde_policy.budget.simulate import DEFAULT_RESERVES, replay_budget

    rng = np.random.default_rng(1)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    inputs, asked = rng.integers(100, 20_000, requests), rng.choice([1_000, 4_096, 32_000], requests)
    output = np.minimum(rng.lognormal(5.5, 1.0, requests).astype(np.int64) + 1, asked)
    ends = start + timedelta(milliseconds=300 * (requests - 1))
    frame = checked_requests(
        pl.DataFrame(
            {
                "created": pl.datetime_range(start, ends, "300ms", eager=True, time_unit="us"),
                "model": pl.repeat("m", requests, eager=True),
                "body_bytes": (inputs * 4 * rng.uniform(0.6, 1.3, requests)).astype(np.int64),
                "input_tokens": inputs,
                "max_tokens": asked,
                "output_tokens": output,
                "duration_s": output / 30.0,
            }
        )
    )
    limit = f"{(3 * int(inputs.sum()) + 15 * int(output.sum())) * 6 // 10}e-6"
    table = PriceTable("synthetic", "for this benchmark", (PRICE,))
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        found = replay_budget(frame, table, limit, reserves=DEFAULT_RESERVES)
        seconds.append(time.perf_counter() - began)
        assert found.run.height == requests * found.summary.height
    return seconds[0], seconds[1]


def main() -> None:
    """Print the figures against their targets, with the twins of the same run."""
    load = os.getloadavg()[0]
    print(f"Ledger on SQLite, {COPIES} processes, {PAIRS:,} admit-and-settle pairs each, {os.cpu_count()} cores, load {load:.1f}")
    ledger = measured(through_the_ledger, pairs=PAIRS)
    driver = measured(through_the_driver, pairs=PAIRS)
    engine = measured(through_engine_begin, pairs=PAIRS)
    say("ledger, kill-safe (NORMAL)", ledger)
    say("twin: bare statements on the driver's connection", driver)
    say("twin: bare statements through engine.begin()", engine)
    verdict = "reached" if ledger[0] >= TARGET_PAIRS_PER_S else "MISSED"
    print(
        f"  target {TARGET_PAIRS_PER_S:,} pairs/s: {verdict}; {ledger[0] / driver[0]:.2f} × the driver, "
        f"{ledger[0] / engine[0]:.2f} × engine.begin()"
    )
    safe = measured(through_the_ledger, pairs=POWER_SAFE_PAIRS, power_safe=True)
    safe_driver = measured(through_the_driver, pairs=POWER_SAFE_PAIRS, power_safe=True)
    say("ledger, power-safe (FULL), as this disk has it", safe)
    say("twin: bare statements on the driver's connection, FULL", safe_driver)
    say_looks()
    first, second = replay_seconds(100_000)
    print(
        f"Budget replay, 100,000 requests × 8 reservations and 3 alternatives: {second:.2f} s "
        f"(first {first:.2f} s; target: seconds)"
    )


if __name__ == "__main__":
    main()
