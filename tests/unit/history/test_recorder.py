"""The recorder survives what goes wrong: each thing named, the time between stored as a gap."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from horde_policy.clock import FixedClock
from horde_policy.errors import Problem, SourceThrottled, SourceUnavailable, StoreError
from horde_policy.frames.snapshot import Snapshot, SourceKind
from horde_policy.history.reading import events_between, gaps_between, polls_between, snapshot_at
from horde_policy.history.recorder import Recorder
from horde_policy.history.status import recorder_statuses
from horde_policy.history.store import HistoryStore
from horde_policy.sources.demo import moved_to
from horde_policy.sources.recorded import load_recorded

RECORDED = Path(__file__).parents[3] / "data" / "recorded"
START = datetime(2026, 11, 29, 12, tzinfo=UTC)
FEW_PAGES = 40
LONG_AGO, LONG_AHEAD = START - timedelta(days=9), START + timedelta(days=9)


class MadeSource:
    """A source whose answers and failures a test sets."""

    kind: SourceKind = "recorded"
    refresh_s = 10.0
    name = "made up"

    def __init__(self, clock: FixedClock) -> None:
        self.clock = clock
        self.base = replace(load_recorded(RECORDED / "snapshot"), part_times={})
        self.failing: Exception | None = None
        self.answer: Snapshot | None = None

    def load(self) -> Snapshot:
        if self.failing is not None:
            raise self.failing
        if self.answer is not None:
            return self.answer
        return replace(moved_to(self.base, self.clock.now()), source=self.name)


class Bench:
    """A recorder on a made clock: ``go(n)`` lets n intervals pass, one poll each."""

    def __init__(self, path: Path) -> None:
        self.clock = FixedClock(START)
        self.mono_s = 0.0
        self.source = MadeSource(self.clock)
        self.interval_s = 30.0
        self.store = HistoryStore(path, durable=False, monotonic=lambda: self.mono_s)
        self.recorder = self.new_recorder("first")

    def new_recorder(self, owner: str) -> Recorder:
        return Recorder(
            self.source,
            self.store,
            clock=self.clock,
            monotonic=lambda: self.mono_s,
            owner=owner,
            interval_s=self.interval_s,
        )

    def lock_for(self, seconds: float) -> None:
        """Let another hold the store for so long before the next writer gets it."""

        @sa.event.listens_for(self.store.engine, "before_cursor_execute", once=True)
        def _held(*_: object) -> None:
            self.clock.advance(seconds)
            self.mono_s += seconds

    def go(self, polls: int, seconds: float = 30.0) -> list[str]:
        states: list[str] = []
        for _ in range(polls):
            states.append(self.recorder.step().state)
            self.clock.advance(seconds)
            self.mono_s += seconds
        return states

    def instants(self) -> list[datetime]:
        return list(polls_between(self.store, LONG_AGO, LONG_AHEAD, "made up")["at"])

    def gaps(self) -> list[tuple[float, str]]:
        rows = gaps_between(self.store, LONG_AGO, LONG_AHEAD, "made up").rows()
        return [((to - start).total_seconds(), reason) for start, to, reason in rows]

    def event_kinds(self) -> list[str]:
        return events_between(self.store, LONG_AGO, LONG_AHEAD, "made up")["kind"].to_list()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "history.sqlite")
    yield made
    made.store.close()


def test_every_interval_is_a_poll_and_none_a_gap(bench: Bench) -> None:
    assert bench.go(10) == ["recording"] * 10
    assert bench.instants() == [START + timedelta(seconds=30 * n) for n in range(10)]
    assert bench.gaps() == []
    assert bench.event_kinds() == ["started"]


def test_a_server_away_for_an_hour_is_a_gap_with_its_reason(bench: Bench) -> None:
    bench.go(2)
    bench.source.failing = SourceUnavailable("made up", "no answer within 10 s")
    assert set(bench.go(120)) == {"source_away"}
    bench.source.failing = None
    assert bench.go(1) == ["recording"]
    [(seconds, reason)] = bench.gaps()
    assert seconds == 121 * 30
    assert "no answer within 10 s" in reason
    assert bench.event_kinds() == ["started", "source_away"]


def test_a_throttled_source_is_left_alone_as_long_as_it_asks(bench: Bench) -> None:
    bench.go(1)
    bench.source.failing = SourceThrottled("made up", "429", retry_after_s=75.0)
    state = bench.recorder.step()
    assert (state.state, state.wait_s) == ("throttled", 75.0)
    bench.source.failing = SourceThrottled("made up", "429", retry_after_s=None)
    assert bench.recorder.step().wait_s == 30.0


def test_a_restart_goes_on_and_the_time_between_is_a_gap(bench: Bench) -> None:
    bench.go(3)
    bench.clock.advance(600)
    bench.mono_s += 600
    bench.recorder = bench.new_recorder("after the restart")
    assert bench.go(2) == ["recording"] * 2
    assert bench.gaps() == [(630.0, "the recorder was not running")]


def test_two_recorders_do_not_double(bench: Bench) -> None:
    other = bench.new_recorder("second")
    for _ in range(5):
        assert bench.go(1) == ["recording"]
        assert other.step().state == "standby"
    assert len(bench.instants()) == 5
    # the first one dies; when its lease has run out the second takes over
    bench.clock.advance(200)
    bench.mono_s += 200
    assert other.step().state == "recording"
    assert bench.recorder.step().state == "standby"


def test_a_clock_set_back_loses_no_poll_and_no_order(bench: Bench) -> None:
    bench.go(4)
    bench.clock.advance(-3600)
    assert bench.go(4) == ["clock_behind"] * 4
    assert "3570 s behind" in bench.recorder.state.text
    instants = bench.instants()
    assert len(instants) == 8
    assert instants == sorted(instants)
    assert [(b - a).total_seconds() for a, b in itertools.pairwise(instants)] == [30.0] * 7
    assert bench.event_kinds() == ["started", "clock_set_back"]
    bench.clock.advance(7200)
    bench.mono_s += 7200
    bench.go(1)
    assert bench.event_kinds()[-1] == "clock_caught_up"


def failing_write(store: HistoryStore, message: str) -> Callable[..., None]:
    def write(*_args: object, **_kwargs: object) -> None:
        raise StoreError(store.name, message)

    return write


@pytest.mark.parametrize("message", ["the disk, or the store's page limit, is full", "another process held the store"])
def test_a_store_that_fails_is_survived_and_named(bench: Bench, monkeypatch: pytest.MonkeyPatch, message: str) -> None:
    bench.go(2)
    with monkeypatch.context() as patched:
        patched.setattr(bench.store, "write", failing_write(bench.store, message))
        assert set(bench.go(10)) == {"store_failing"}
        assert message in bench.recorder.state.text
    assert bench.go(1) == ["recording"]
    [(seconds, reason)] = bench.gaps()
    assert seconds == 11 * 30
    assert message in reason
    assert "store_failing" in bench.event_kinds()


def test_a_real_full_disk_is_survived(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "history.sqlite")
    bench.store.close()
    bench.store = HistoryStore(tmp_path / "history.sqlite", max_pages=FEW_PAGES, durable=False)
    bench.recorder = bench.new_recorder("first")
    states = []
    for number in range(400):
        queued = bench.source.base.models
        assert queued is not None
        bench.source.base = replace(bench.source.base, models=queued.with_columns(queued_tokens=float(number)))
        states += bench.go(1)
        if states[-1] == "store_failing":
            break
    assert states[-1] == "store_failing"
    assert "full" in bench.recorder.state.text
    kept = bench.instants()
    assert snapshot_at(bench.store, kept[-1], "made up").fetched_at == kept[-1]
    bench.store.close()


def test_polls_that_share_their_oldest_part_are_both_stored(bench: Bench) -> None:
    """The totals turn over once a minute, the lists sooner: between two polls the oldest part may stand still."""
    totals_at = bench.clock.now()
    for seconds in (0, 30):
        fetched = totals_at + timedelta(seconds=seconds)
        queued = None if bench.source.base.models is None else bench.source.base.models.with_columns(queued_tokens=float(seconds))
        bench.source.answer = replace(
            bench.source.base, fetched_at=totals_at, models=queued, part_times={"totals": totals_at, "models": fetched}
        )
        assert bench.go(1) == ["recording"]
    assert bench.instants() == [totals_at, totals_at + timedelta(seconds=30)]
    later = snapshot_at(bench.store, bench.clock.now(), "made up")
    assert later.fetched_at == totals_at
    assert later.models is not None
    assert later.models["queued_tokens"].to_list() == [30.0] * later.models.height
    assert bench.go(1) == ["recording"]
    assert len(bench.instants()) == 2, "an answer that brings nothing new is no poll"


def test_made_up_data_stay_labelled(bench: Bench) -> None:
    bench.source.base = replace(bench.source.base, synthetic=True)
    bench.go(1)
    bench.source.base = replace(bench.source.base, synthetic=False)
    bench.go(1)
    assert snapshot_at(bench.store, bench.clock.now(), "made up").synthetic


def test_a_recorder_that_died_is_replaced_at_once_and_one_that_hangs_when_its_lease_ends(bench: Bench) -> None:
    bench.go(2)
    successor = bench.new_recorder("second")
    assert successor.step().state == "standby"
    bench.recorder._lock.release()  # as the system does when a process dies
    assert successor.step().state == "recording"
    assert bench.recorder.step().state == "standby"
    third = bench.new_recorder("third")
    bench.clock.advance(151)
    bench.mono_s += 151
    assert third.step().state == "recording", "the second one lives and hangs: its lease has ended"
    assert len(bench.instants()) == 4


def test_a_clock_set_forward_is_told_apart_from_missing_polls(bench: Bench) -> None:
    bench.go(2)
    bench.clock.advance(3600)
    bench.go(1)
    [(seconds, reason)] = bench.gaps()
    assert seconds == 3630
    assert "the clock went on 3630 s within 30 s" in reason


def test_readers_see_how_the_recorder_stands(bench: Bench) -> None:
    def status() -> tuple[str, str]:
        (found,) = recorder_statuses(bench.store, bench.clock.now())
        return found.state, found.sentence()

    bench.go(3)
    assert status() == ("recording", "Recording since 2026-11-29 12:00:00 UTC")
    bench.source.failing = SourceUnavailable("made up", "no answer within 10 s")
    bench.go(3)
    assert status() == ("source_away", "The source gives no answer since 2026-11-29 12:01:30 UTC: made up: no answer within 10 s")
    bench.source.failing = SourceThrottled("made up", "429", retry_after_s=600.0)
    bench.recorder.step()
    bench.clock.advance(650)
    assert status()[0] == "throttled", "it asked to be left alone for longer than a lease"
    bench.clock.advance(200)
    state, sentence = status()
    assert state == "silent"
    assert "the last it said was throttled" in sentence
    bench.source.failing = None
    bench.clock.advance(-7200)
    bench.go(1)
    assert status()[0] == "clock_behind"
    bench.recorder.close()
    assert status() == ("stopped", "Stopped since 2026-11-29 10:17:40 UTC")
    bench.store.write(replace(bench.source.base, source="another"))
    assert [found.state for found in recorder_statuses(bench.store, bench.clock.now())] == ["never", "stopped"]


# -- a part that fails, a store that is locked, and several reasons ------------------------------------------------------


def parts_of(bench: Bench, *, workers_s: float, models_s: float, state: str | None = None) -> Snapshot:
    """Return an answer whose list of models failed (``state``), or came like the workers."""
    told = "models could not be had since 12:00:10 UTC (made up: 429); its answer of 12:00:00 UTC stands"
    problem = () if state is None else (Problem("part_failed", "models", told),)
    times = {"workers": START + timedelta(seconds=workers_s), "models": START + timedelta(seconds=models_s)}
    return replace(
        moved_to(bench.source.base, min(times.values())),
        source=bench.source.name,
        part_times=times,
        problems=problem,
        throttled_parts=frozenset({"models"} if state == "throttled" else ()),
    )


@pytest.mark.parametrize("failing", ["throttled", "source_away"])
def test_a_part_that_fails_is_named_where_no_poll_comes_for_it(bench: Bench, failing: str) -> None:
    bench.interval_s = 10.0
    bench.recorder = bench.new_recorder("first")
    states = []
    for at in range(0, 100, 10):  # the workers turn over every 30 s, the models every 10 s
        ok = at in (0, 80, 90)
        bench.source.answer = parts_of(bench, workers_s=at // 30 * 30, models_s=at if ok else 0, state=None if ok else failing)
        states += bench.go(1, seconds=10.0)
        if at == 20:
            (status,) = recorder_statuses(bench.store, bench.clock.now())
            assert (status.state, status.text) == (failing, bench.source.answer.problems[0].text)
    assert states == ["recording", *[failing] * 7, "recording", "recording"]
    assert bench.event_kinds() == ["started", failing]
    what = {"throttled": "the source throttled", "source_away": "the source gave no answer"}[failing]
    told = f"{what}: models could not be had since 12:00:10 UTC (made up: 429); its answer of 12:00:00 UTC stands"
    assert bench.gaps() == [(30.0, told), (30.0, told), (20.0, told)]


def test_a_part_that_fails_while_polls_come_is_recording(bench: Bench) -> None:
    for at in range(0, 150, 30):
        bench.source.answer = parts_of(bench, workers_s=at, models_s=0, state="throttled")
        assert bench.go(1) == ["recording"]
    assert bench.gaps() == []
    assert bench.event_kinds() == ["started"]


def test_a_store_that_was_locked_for_less_than_the_writer_waits_is_named(bench: Bench) -> None:
    bench.go(2)
    bench.lock_for(20.0)
    assert bench.go(1, seconds=10.0) == ["recording"]
    assert bench.recorder.state.text == "the store was locked for 20 s"
    bench.go(1)
    assert bench.recorder.state.text == ""
    assert bench.event_kinds() == ["started", "store_waited"]
    assert bench.gaps() == [], "50 s are within the gap factor"
    bench.lock_for(28.0)
    bench.go(1)
    assert bench.gaps() == [(58.0, "the store was locked for 28 s")]
    bench.lock_for(2.0)
    bench.go(1)
    assert bench.recorder.state.text == "", "a moment is not worth a word"


def test_a_gap_carries_all_its_reasons_in_their_order(bench: Bench) -> None:
    bench.go(2)
    bench.source.failing = SourceUnavailable("made up", "no answer within 10 s")
    bench.lock_for(20.0)
    bench.go(3)
    bench.source.failing = SourceThrottled("made up", "429", retry_after_s=75.0)
    bench.go(1)
    bench.source.failing = None
    bench.go(1)
    [(_, reason)] = bench.gaps()
    assert reason.split("; ") == [
        "the store was locked for 20 s",
        "the source gave no answer: made up: no answer within 10 s",
        "the source throttled: made up: 429",
    ]


def test_a_gap_of_many_reasons_stays_short_and_has_the_first_and_the_last(bench: Bench) -> None:
    bench.go(1)
    for number in range(20):
        bench.source.failing = SourceUnavailable("made up", f"fault {number} {'x' * 999}")
        bench.go(1)
    bench.source.failing = None
    bench.go(1)
    [(_, reason)] = bench.gaps()
    assert len(reason) < 3000
    assert "fault 0 " in reason
    assert "fault 19 " in reason
    assert "12 more reasons" in reason
