"""A recorder that is killed again and again: its history is what the server served, its gaps are marked, its file is whole.

The recorders are processes on an accelerated clock, polling a local server whose horde changes at each poll. Killed means
``kill -9`` at a random instant. A power cut is not simulated: the store waits for the disk at each commit (``synchronous=FULL``).
"""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horde_policy.errors import InputError, StoreError
from horde_policy.history.reading import events_between, gaps_between, polls_between, snapshot_at
from horde_policy.history.recorder import GAP_FACTOR
from horde_policy.history.status import RecorderStatus, recorder_statuses
from horde_policy.history.store import HistoryStore
from horde_policy.history.upkeep import store_info
from tests.churning_server import ChurningServer, differences, tick_in

ROOT = Path(__file__).parents[3]
START = datetime(2026, 11, 29, 12, tzinfo=UTC)
EVER = (START - timedelta(days=1), START + timedelta(days=1))
PACE = 40.0
"""So many times as fast as the machine's is the recorders' clock."""


@dataclass
class Recorders:
    """Starts and kills recorders of one server into one store, on a clock that starts with the first of them."""

    url: str
    store: str
    forker: "subprocess.Popen[str]"
    zero: float = field(default_factory=time.time)
    runs: dict[str, int] = field(default_factory=dict)

    def start(self, **more: object) -> str:
        run = f"run-{len(self.runs):04d}."
        told = {"run": run, "url": self.url, "store": self.store, "pace": PACE, "zero": self.zero, "start": START.isoformat()}
        assert self.forker.stdin is not None
        assert self.forker.stdout is not None
        self.forker.stdin.write(json.dumps({**told, **more}) + "\n")
        self.forker.stdin.flush()
        self.runs[run] = int(self.forker.stdout.readline())
        return run

    def kill(self, run: str, number: int = signal.SIGKILL) -> None:
        os.kill(self.runs[run], number)
        deadline = time.monotonic() + 20
        while Path(f"/proc/{self.runs[run]}").exists() and time.monotonic() < deadline:
            time.sleep(0.002)
        assert not Path(f"/proc/{self.runs[run]}").exists(), "the recorder does not end"


@pytest.fixture(scope="module")
def forker(tmp_path_factory: pytest.TempPathFactory) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.recorder_process"]
    with (
        (tmp_path_factory.mktemp("recorders") / "log").open("w") as log,
        subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as started,
    ):
        yield started


@pytest.fixture
def server() -> Iterator[ChurningServer]:
    with ChurningServer(seed=7) as running:
        yield running


class Reader(threading.Thread):
    """Reads the history while it is written and its writers are killed; notes what is not as it was served."""

    def __init__(self, store: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.store, self.seed = store, seed
        self.over = threading.Event()
        self.reads = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        while not self.over.wait(0.1):
            try:
                opened = HistoryStore(self.store, read_only=True)
                found = snapshot_at(opened, EVER[1])
                opened.close()
            except (StoreError, InputError) as error:
                if self.reads:  # before the first poll there is nothing to read
                    self.wrong.append(str(error))
                continue
            self.reads += 1
            self.wrong += differences(found, self.seed)


def assert_history_is_what_was_served(store: HistoryStore, server: ChurningServer, recorders: Recorders) -> dict[str, float]:
    polls = polls_between(store, *EVER)["at"].to_list()
    stored = []
    for at in polls:
        found = snapshot_at(store, at)
        assert differences(found, server.churn.seed) == []
        stored.append(tick_in(found))
    assert stored == sorted(set(stored)), "each poll once, in the order in which they were served"
    for run in recorders.runs:
        ticks = server.ticks_of(run)
        lost = set(ticks) - set(stored)
        assert lost <= set(ticks[-1:]), f"{run} lost more than the poll in flight: {sorted(lost)} of {ticks}"
    wanted = [(a, b) for a, b in itertools.pairwise(polls) if (b - a).total_seconds() > GAP_FACTOR * 30]
    gaps = gaps_between(store, *EVER)
    assert list(gaps.select("from", "to").iter_rows()) == wanted
    assert store_info(store, check=True).damages == ()
    return {
        "polls served": len(server.begun),
        "polls stored": len(stored),
        "gaps": len(wanted),
        "seconds in gaps": sum((b - a).total_seconds() for a, b in wanted),
        "longest distance of two polls, s": max((b - a).total_seconds() for a, b in itertools.pairwise(polls)),
    }


def kill_each_minute(server: ChurningServer, recorders: Recorders, minutes: int, seed: int) -> None:
    """Let a recorder run for so many minutes of its clock, killed once at a random instant of each."""
    rng = random.Random(seed)
    for minute in range(minutes):
        run = recorders.start()
        until = recorders.zero + (minute + rng.random()) * 60 / PACE
        time.sleep(max(0.0, until - time.time()))
        recorders.kill(run)
        if rng.random() < 0.1:  # now and then it stays away for a while
            time.sleep(rng.uniform(0.5, 2.0) * 60 / PACE)
    last = recorders.start()
    before = len(server.begun)
    deadline = time.monotonic() + 30
    while len(server.begun) < before + 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    recorders.kill(last, signal.SIGTERM)


def check_a_history_of_kills(
    path: str, server: ChurningServer, forker: "subprocess.Popen[str]", minutes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    recorders = Recorders(server.url, path, forker)
    reader = Reader(path, server.churn.seed)
    reader.start()
    kill_each_minute(server, recorders, minutes, seed=minutes)
    reader.over.set()
    reader.join(20)
    store = HistoryStore(path)
    figures = assert_history_is_what_was_served(store, server, recorders)
    (standing,) = recorder_statuses(store, EVER[1])
    assert standing.state == "stopped"
    assert events_between(store, *EVER)["kind"].to_list().count("started") > 1
    store.close()
    assert reader.wrong == []
    assert reader.reads > minutes / 4
    with capsys.disabled():
        told = {"minutes": minutes, "kills": len(recorders.runs) - 1, **figures, "reads meanwhile": reader.reads}
        print("\n" + ", ".join(f"{name}: {value:g}" for name, value in told.items()))


def test_ten_minutes_with_a_kill_in_each(
    tmp_path: Path, server: ChurningServer, forker: "subprocess.Popen[str]", capsys: pytest.CaptureFixture[str]
) -> None:
    check_a_history_of_kills(str(tmp_path / "history.sqlite"), server, forker, 10, capsys)


@pytest.mark.soak
@pytest.mark.parametrize("minutes", [30, 240])
def test_half_an_hour_and_hundreds_of_kills(
    tmp_path: Path, server: ChurningServer, forker: "subprocess.Popen[str]", capsys: pytest.CaptureFixture[str], minutes: int
) -> None:
    check_a_history_of_kills(str(tmp_path / "history.sqlite"), server, forker, minutes, capsys)


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.05)


def test_two_recorders_on_one_store_do_not_double_and_one_takes_over_from_the_other(
    tmp_path: Path, server: ChurningServer, forker: "subprocess.Popen[str]"
) -> None:
    recorders = Recorders(server.url, str(tmp_path / "history.sqlite"), forker)
    first = recorders.start()
    wait_until(lambda: len(server.ticks_of(first)) >= 2)
    second = recorders.start()
    wait_until(lambda: len(server.ticks_of(first)) >= 5)
    assert server.ticks_of(second) == [], "the one that stands by asks nothing"
    recorders.kill(first)
    wait_until(lambda: len(server.ticks_of(second)) >= 3)
    recorders.kill(second, signal.SIGTERM)
    store = HistoryStore(tmp_path / "history.sqlite")
    assert_history_is_what_was_served(store, server, recorders)
    store.close()


def test_a_server_away_for_an_hour_is_seen_while_it_lasts_and_a_gap_afterwards(
    tmp_path: Path, server: ChurningServer, forker: "subprocess.Popen[str]"
) -> None:
    path = str(tmp_path / "history.sqlite")
    pace = 600.0
    recorders = Recorders(server.url, path, forker)
    run = recorders.start(pace=pace)
    wait_until(lambda: len(server.ticks_of(run)) >= 2)
    server.leave()
    store = HistoryStore(path, read_only=True)

    def standing() -> RecorderStatus:
        now = START + timedelta(seconds=(time.time() - recorders.zero) * pace)
        return recorder_statuses(store, now)[0]

    wait_until(lambda: standing().state == "source_away")
    assert "cannot be reached" in standing().text
    time.sleep(3600 / pace)
    before = len(server.begun)
    server.heal()
    wait_until(lambda: len(server.begun) >= before + 2)
    wait_until(lambda: standing().state == "recording")
    recorders.kill(run, signal.SIGTERM)
    assert standing().state == "stopped"
    gaps = gaps_between(store, *EVER)
    longest = gaps.sort(gaps["to"] - gaps["from"]).row(-1, named=True)
    assert (longest["to"] - longest["from"]).total_seconds() > 3600
    assert "the source gave no answer: the churning server" in longest["reason"]
    assert "source_away" in events_between(store, *EVER)["kind"].to_list()
    for at in polls_between(store, *EVER)["at"].to_list():
        assert differences(snapshot_at(store, at), server.churn.seed) == []
    store.close()
