"""The recorder of metrics: what it asks, what it survives, and that nothing is asked for or counted twice for good."""

import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from horde_policy.clock import FixedClock
from horde_policy.errors import SourceFormatError, SourceThrottled, SourceUnavailable
from horde_policy.history.collecting import LONGEST_BACK, OVERLAP, PIECE, Collector, CollectorState
from horde_policy.history.kept import collected_to, kept_exports, kept_samples
from horde_policy.history.store import HistoryStore
from horde_policy.imports import SERIES_SELECTOR, count_samples

NAME = "horde_text_free_allowance_decisions_total"
START = datetime(2026, 11, 29, 6, tzinfo=UTC)
EVERY_S = 60


class Server:
    """Scrapes a counter that grows by two a minute, keeps all of it, and answers for any range."""

    name = "prometheus.example:9090"

    def __init__(self, since: datetime = START - timedelta(days=10)) -> None:
        self.since = since
        self.asked: list[tuple[datetime, datetime]] = []
        self.error: Exception | None = None
        self.late = timedelta(0)
        self.now: datetime | None = None

    def query(self, expression: str, *, at: datetime | None = None) -> dict[str, Any]:
        found = re.fullmatch(re.escape(SERIES_SELECTOR) + r"\[(\d+)s\]", expression)
        assert found
        assert at is not None
        self.asked.append((at - timedelta(seconds=int(found[1])), at))
        if self.error is not None:
            raise self.error
        first, last = max(self.asked[-1][0], self.since), at if self.now is None else min(at, self.now - self.late)
        place = -(-(first - self.since) // timedelta(seconds=EVERY_S))
        values = []
        while self.since + timedelta(seconds=EVERY_S * place) <= last:
            when = self.since + timedelta(seconds=EVERY_S * place)
            values.append([when.timestamp(), str(2 * place)])
            place += 1
        metric = {"__name__": NAME, "horde_outcome": "free", "instance": "a"}
        result = [{"metric": metric, "values": values}] if values else []
        return {"status": "success", "data": {"resultType": "matrix", "result": result}}


@pytest.fixture
def store(tmp_path: Path) -> HistoryStore:
    return HistoryStore(tmp_path / "history.sqlite", durable=False)


def total(store: HistoryStore) -> float:
    return float(count_samples(kept_samples(store)[0]).decisions["count_high"].sum())


def test_the_first_look_reaches_back_as_far_as_a_server_keeps_and_in_pieces(store: HistoryStore) -> None:
    server = Server()
    state = Collector(server, store, clock=FixedClock(START)).step()
    assert (state.state, state.collected_to, state.wait_s) == ("collecting", START, 300.0)
    assert len(server.asked) == LONGEST_BACK // PIECE
    assert server.asked[0][0] <= START - LONGEST_BACK - OVERLAP
    assert server.asked[-1][1] == START
    assert all(end - start <= PIECE + OVERLAP + timedelta(seconds=1) for start, end in server.asked)
    minutes = (LONGEST_BACK + OVERLAP) // timedelta(minutes=1)
    assert total(store) == 2 * minutes


def test_a_look_asks_from_where_the_last_ended_with_a_margin(store: HistoryStore) -> None:
    server, clock = Server(since=START), FixedClock(START + timedelta(minutes=30))
    collector = Collector(server, store, clock=clock)
    collector.step()
    server.asked.clear()
    clock.advance(300)
    assert collector.step().state == "collecting"
    assert len(server.asked) == 1
    start, end = server.asked[0]
    assert end == clock.now()
    assert start == end - timedelta(seconds=301) - OVERLAP
    assert total(store) == 2 * 35


def test_what_was_missed_is_asked_for_when_all_are_there_again(store: HistoryStore, tmp_path: Path) -> None:
    server, clock = Server(since=START), FixedClock(START + timedelta(hours=1))
    Collector(server, store, clock=clock).step()
    clock.advance(13 * 3600)
    later = Collector(server, store, clock=clock)  # another program, hours later
    assert later.step().collected_to == clock.now()
    assert total(store) == 2 * 14 * 60
    assert not any(problem for problem in count_samples(kept_samples(store)[0]).report.instances[0].gaps)


def test_samples_that_a_server_learns_of_late_are_in_the_margin(store: HistoryStore) -> None:
    server, clock = Server(since=START), FixedClock(START + timedelta(hours=1))
    server.late, server.now = timedelta(minutes=8), clock.now()
    collector = Collector(server, store, clock=clock)
    collector.step()
    assert total(store) == 2 * 52
    clock.advance(300)
    server.late, server.now = timedelta(0), clock.now()
    collector.step()
    assert total(store) == 2 * 65


@pytest.mark.parametrize(
    ("error", "state", "wait_s"),
    [
        (SourceUnavailable("prometheus.example:9090", "no answer"), "source_away", 300.0),
        (SourceFormatError("prometheus.example:9090", "answers nonsense", field="data"), "source_away", 300.0),
        (SourceThrottled("prometheus.example:9090", "asks to be left alone", retry_after_s=700.0), "throttled", 700.0),
    ],
)
def test_a_server_that_is_away_is_said_and_asked_again(store: HistoryStore, error: Exception, state: str, wait_s: float) -> None:
    server, clock = Server(since=START), FixedClock(START + timedelta(hours=1))
    collector = Collector(server, store, clock=clock)
    server.error = error
    stands = collector.step()
    assert (stands.state, stands.wait_s, stands.collected_to) == (state, wait_s, None)
    assert stands.text
    clock.advance(7200)
    server.error = None
    assert collector.step().state == "collecting"
    assert total(store) == 2 * 180


def test_a_server_that_fails_in_the_middle_loses_nothing_of_what_came(store: HistoryStore) -> None:
    server, clock = Server(), FixedClock(START)
    collector = Collector(server, store, clock=clock)
    answered = server.query

    def third_fails(expression: str, *, at: datetime | None = None) -> dict[str, Any]:
        if len(server.asked) == 2:
            raise SourceUnavailable(server.name, "no answer")
        return answered(expression, at=at)

    server.query = third_fails  # type: ignore[method-assign]
    assert collector.step().state == "source_away"
    assert collected_to(store, server.name) == START - LONGEST_BACK + 2 * PIECE
    server.query = answered  # type: ignore[method-assign]
    server.asked.clear()
    assert collector.step().state == "collecting"
    assert len(server.asked) == LONGEST_BACK // PIECE - 2


def test_after_weeks_away_no_more_is_asked_for_than_a_server_keeps(store: HistoryStore) -> None:
    server, clock = Server(), FixedClock(START)
    Collector(server, store, clock=clock).step()
    server.asked.clear()
    clock.advance(30 * 86_400)
    Collector(server, store, clock=clock).step()
    assert len(server.asked) == LONGEST_BACK // PIECE


def test_a_clock_set_back_asks_for_nothing_until_it_is_past_what_was_collected(store: HistoryStore) -> None:
    server, clock = Server(since=START), FixedClock(START + timedelta(hours=2))
    collector = Collector(server, store, clock=clock)
    collector.step()
    server.asked.clear()
    clock.advance(-3600)
    assert collector.step().state == "collecting"
    assert server.asked == []
    assert collected_to(store, server.name) == START + timedelta(hours=2)


def test_a_server_that_has_none_of_the_series_is_no_failure(store: HistoryStore) -> None:
    server = Server(since=START + timedelta(days=1))
    assert Collector(server, store, clock=FixedClock(START)).step().state == "collecting"
    export = kept_exports(store)[0]
    assert (export.days, export.collected_to) == (0, START)


def test_a_store_that_cannot_be_written_is_said_and_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    HistoryStore(path, durable=False).close()
    server = Server(since=START)
    reading = HistoryStore(path, read_only=True)
    state = Collector(server, reading, clock=FixedClock(START + timedelta(hours=1))).step()
    assert state.state == "store_failing"
    assert "opened to read" in state.text


def test_what_is_older_than_asked_for_is_pruned(store: HistoryStore) -> None:
    server = Server()
    Collector(server, store, clock=FixedClock(START), keep=timedelta(days=1)).step()
    assert kept_exports(store)[0].first == datetime(2026, 11, 28, tzinfo=UTC)


def test_it_runs_until_it_is_stopped_and_tells_what_changes(store: HistoryStore) -> None:
    server, clock, stop = Server(since=START), FixedClock(START + timedelta(hours=1)), threading.Event()
    told: list[CollectorState] = []
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(seconds)
        server.error = SourceUnavailable(server.name, "no answer") if len(waits) in (3, 4) else None
        if len(waits) == 7:
            stop.set()

    Collector(server, store, clock=clock).run(stop, wait=wait, told=told.append)
    assert [state.state for state in told] == ["collecting", "source_away", "collecting"]
    assert waits == [300.0] * 7


def test_two_collectors_on_one_store_double_nothing(store: HistoryStore) -> None:
    clock = FixedClock(START + timedelta(hours=5))
    for _ in range(2):
        Collector(Server(since=START), store, clock=clock).step()
        clock.advance(300)
    assert total(store) == 2 * 305
