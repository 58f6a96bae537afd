"""Three copies of a program on one ledger, killed now and then: what B9 and B10 are tested with.

Run as a module it prints the figures for SQLite and a real PostgreSQL.
Every request is made from its id alone, so that whoever looks afterwards knows what the provider really billed.
"""

import multiprocessing
import os
import random
import signal
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import sqlalchemy as sa

from horde_policy.budget import Hold, Known, Ledger, Limit, RealInput, Refusal, TokenUsage, worst_case
from horde_policy.budget.audit import holds_in
from horde_policy.budget.body import Ask
from horde_policy.budget.money import money_text
from horde_policy.budget.reservation import Reservation, reserve_cost
from horde_policy.budget.tables import entries, limits, windows
from tests.unit.budget.shapes import USD, price

FORK = multiprocessing.get_context("fork")
COPIES = 3
LIMIT_USD = "2"
ADMITTED_EACH = 4
"""No budget of this limit takes fewer of these requests: so many budgets are enough."""
LEAST_KILLS = 3
ADMITTED_BETWEEN_KILLS = 25
EXPIRY_S = 0.5
PRICE = price(ceiling=20_000, window=60_000)


@dataclass(frozen=True)
class Request:
    """One request as its id makes it: what it asks, what it really uses, and how it ends."""

    reservation: Reservation
    usage: TokenUsage
    real: RealInput
    ending: str


def request_of(request_id: str, mode: str) -> Request:
    """Make a request from its id. ``capped``: R = 4096; ``full``: R = the clients' own limits (B10)."""
    rng = random.Random(request_id)
    n = rng.choice([1, 1, 1, 2])
    limit = rng.choice([None, rng.randint(1, 4_096), rng.randint(1, 20_000), 20_000])
    cache = rng.choice(["none", "none", "5m", "1h"])
    ask = Ask(api="chat", model="m", body_bytes=rng.randint(40, 40_000), limit_tokens=limit, choices=n, cache=cache)  # type: ignore[arg-type]
    reservation = reserve_cost(ask, PRICE, output_tokens=4_096 if mode == "capped" else 20_000)
    inputs = int(reservation.input_estimate_tokens * rng.uniform(0.5, 1.7))
    short = rng.randint(0, inputs // 2) if cache == "5m" else 0
    long = rng.randint(0, inputs // 2) if cache == "1h" else 0
    most = n * (reservation.ceiling_tokens or 0)
    output = rng.choice([most, rng.randint(0, most), rng.randint(0, most // 4)])
    usage = TokenUsage(fresh=inputs - short - long, write_5m=short, write_1h=long, output=output)
    ending = rng.choices(["usage", "none", "never_sent", "forgotten"], [88, 5, 4, 3])[0]
    return Request(reservation, usage, RealInput(inputs, short, long), ending)


def be_a_copy(url: str, name: str, mode: str, budget: int, budgets: int) -> None:
    """Admit, run and settle requests until killed; a spent budget is left for the next one, and after the last it waits."""
    rng = random.Random(name)
    ledger = Ledger(url, owner=name, expiry_s=EXPIRY_S, patience_s=60)
    open_requests: list[tuple[Hold, Request]] = []
    number = 0
    while budget < budgets:
        if open_requests and (len(open_requests) >= 6 or rng.random() < 0.5):
            hold, request = open_requests.pop(rng.randrange(len(open_requests)))
            if request.ending == "usage":
                ledger.settle(hold, request.usage)
            elif request.ending == "none":
                ledger.settle(hold, None, ended="timed_out")
            elif request.ending == "never_sent":
                ledger.release(hold)
            continue
        number += 1
        request = request_of(f"{name}/{number}", mode)
        answer = ledger.admit(f"team-{budget}", request.reservation, request_id=f"{name}/{number}")
        if isinstance(answer, Refusal):
            # what the dead hold stays held until it expires: a copy with nothing of its own to settle goes on now and then
            budget += answer.obstacle == "spent" or (not open_requests and rng.random() < 0.2)
        else:
            open_requests.append((answer, request))
        if number % 20 == 0:
            ledger.renew()
        if number % 50 == 0:
            ledger.reap()
        time.sleep(rng.uniform(0, 0.004))
    signal.pause()


@dataclass
class Figures:
    """What a run showed."""

    store: str
    mode: str
    seconds: float = 0.0
    admitted: int = 0
    kills: int = 0
    orphans: int = 0
    late: int = 0
    windows: int = 0
    over: int = 0
    largest_over_pico: int = 0
    bound_there_pico: int = 0
    closest_to_bound: float = 0.0

    def text(self) -> str:
        """Say the figures in one line."""
        return (
            f"{self.store}, {self.mode}: {self.admitted:,} requests admitted by {COPIES} copies in {self.seconds:.0f} s, "
            f"{self.kills} kills, {self.orphans} orphans found, {self.late} late; {self.windows} windows of ${LIMIT_USD}, "
            f"{self.over} overspent, the most by {money_text(self.largest_over_pico)} where "
            f"{money_text(self.bound_there_pico)} was the worst case (nearest to its bound: {self.closest_to_bound:.0%})"
        )


def run(url: str, *, mode: str, requests: int, seed: int = 1) -> Figures:
    """Let three copies work until so many requests were admitted, killing one every now and then; check every moment."""
    figures = Figures("PostgreSQL" if url.startswith("postgresql") else "SQLite", mode)
    with Ledger(url, owner="watcher", patience_s=60) as ledger:
        let_them_work(ledger, url, figures, requests, seed)
        take_stock(ledger, figures)
        check_every_moment(ledger, figures)
    return figures


def let_them_work(ledger: Ledger, url: str, figures: Figures, requests: int, seed: int) -> None:
    """Run three copies until enough was admitted, killing one at a time on the way and all of them at the end."""
    rng = random.Random(seed)
    budgets = requests // ADMITTED_EACH + 100
    for number in range(budgets):
        ledger.set_budget(f"team-{number}", Limit("total", LIMIT_USD))
    began = time.monotonic()
    copies = [start_copy(url, f"{seed}.{slot}.0", figures.mode, 0, budgets) for slot in range(COPIES)]
    try:
        while figures.admitted < requests or figures.kills < LEAST_KILLS:
            time.sleep(rng.uniform(0.02, 0.1))
            figures.admitted, used = ledger.store.read(progress)
            slot = rng.randrange(COPIES)
            if figures.admitted > ADMITTED_BETWEEN_KILLS * (figures.kills + 1):
                kill(copies[slot])
                figures.kills += 1
                copies[slot] = start_copy(url, f"{seed}.{slot}.{figures.kills}", figures.mode, max(0, used - 1), budgets)
            elif copies[slot].exitcode is not None:
                raise RuntimeError(f"a copy ended by itself with {copies[slot].exitcode}")
    finally:
        for copy in copies:
            kill(copy)
    figures.kills += COPIES
    figures.seconds = time.monotonic() - began


def progress(connection: sa.Connection) -> tuple[int, int]:
    """Return the requests admitted and the budgets used so far."""
    row = connection.execute(
        sa.text("SELECT (SELECT count(*) FROM holds), (SELECT count(DISTINCT window_id) FROM entries)")
    ).one()
    return row[0], row[1]


def start_copy(url: str, name: str, mode: str, budget: int, budgets: int) -> BaseProcess:
    """Start one copy as a process of its own, at the first budget that may have money left."""
    copy = FORK.Process(target=be_a_copy, args=(url, name, mode, budget, budgets), daemon=True)
    copy.start()
    return copy


def kill(copy: BaseProcess) -> None:
    """End a copy as the kernel does: without a word."""
    copy.kill()
    copy.join()


def take_stock(ledger: Ledger, figures: Figures) -> None:
    """Find what the killed copies left, and let the provider's bill for half of it arrive late."""
    abandoned = {hold.key: hold.owner for hold in ledger.open_holds()}
    time.sleep(EXPIRY_S)
    ledger.reap()
    left = ledger.open_holds()
    assert {hold.key: hold.owner for hold in left} == abandoned, "an orphan must be found, with its owner's name"
    assert all(hold.state == "expired" for hold in left)
    figures.orphans = len(left)
    for number, hold in enumerate(left):
        if number % 2 == 0:
            assert ledger.settle(hold, request_of(hold.request_id, figures.mode).usage).state == "late"
    audit = ledger.audit()
    assert audit.agrees, "spent and held must equal their rows and entries"
    assert audit.open == 0
    assert audit.disputes == 0


def check_every_moment(ledger: Ledger, figures: Figures) -> None:
    """Walk through every movement of every window, in order, against limit and bound (B4, B7, B9).

    A request counts as open until its real cost is written: an expired one still is.
    """
    holds = {hold.hold_id: hold for hold in ledger.store.read(holds_in)}
    figures.admitted = len(holds)
    figures.late = sum(hold.state == "late" for hold in holds.values())
    stated = {}
    for hold_id, hold in holds.items():
        made = request_of(hold.request_id, figures.mode)
        assert hold.reservation.hold_pico == made.reservation.hold_pico
        if hold.state in ("settled", "late"):
            assert hold.usage is not None
            assert (hold.usage.fresh, hold.usage.output) == (made.usage.fresh, made.usage.output)
        worst = worst_case([made.reservation], inputs=Known((made.real,)))
        assert worst.bounded
        stated[hold_id] = worst.stated_pico
        if figures.mode == "full":
            assert worst.output_pico == 0
    query = (
        sa.select(
            entries.c.window_id, entries.c.move, entries.c.hold_id, entries.c.what, entries.c.held_pico, entries.c.spent_pico
        )
        .join(windows, windows.c.window_id == entries.c.window_id)
        .join(limits, limits.c.limit_id == windows.c.limit_id)
        .order_by(entries.c.window_id, entries.c.move)
    )
    rows = ledger.store.read(lambda connection: connection.execute(query).all())
    by_window: dict[int, list[tuple[int, str, int, int]]] = {}
    for window_id, move, hold_id, what, held_pico, spent_pico in rows:
        moves = by_window.setdefault(window_id, [])
        assert move == len(moves) + 1, "the movements of a window are numbered without a gap"
        moves.append((hold_id, what, held_pico, spent_pico))
    for moves in by_window.values():
        check_window(moves, stated, figures)
    figures.windows = len(by_window)


def check_window(moves: list[tuple[int, str, int, int]], stated: dict[int, int], figures: Figures) -> None:
    """Check one window after each of its movements."""
    limit = int(LIMIT_USD) * USD
    spent = held = open_bound = bound = 0
    for hold_id, what, held_pico, spent_pico in moves:
        held, spent = held + held_pico, spent + spent_pico
        assert held >= 0
        assert spent >= 0
        if what == "admit":
            assert spent + held <= limit, "admitted above the limit"
            open_bound += stated[hold_id]
            bound = open_bound
        elif what in ("settle", "keep", "release", "late"):
            open_bound -= stated[hold_id]
        else:
            assert what == "expire"
        assert spent <= limit + bound, "settled above the limit and the worst case of the last admission"
    over = max(0, spent - limit)
    figures.over += over > 0
    if over > figures.largest_over_pico:
        figures.largest_over_pico, figures.bound_there_pico = over, bound
    if bound:
        figures.closest_to_bound = max(figures.closest_to_bound, over / bound)


def main() -> None:
    """Print the figures of full-size runs on both stores."""
    from tests.server_postgres import new_cluster, postgres_programs

    requests = int(os.environ.get("REQUESTS", "3000"))
    programs = postgres_programs()
    for mode in ("capped", "full"):
        with tempfile.TemporaryDirectory() as folder:
            print(run(f"sqlite:///{folder}/ledger.db", mode=mode, requests=requests).text(), flush=True)
        if programs is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            server = new_cluster(programs, Path(folder))
            server.start()
            try:
                print(run(server.url(), mode=mode, requests=requests).text(), flush=True)
            finally:
                server.stop()


if __name__ == "__main__":
    main()
