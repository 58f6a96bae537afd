"""One poller for all viewers (issue 2): no more requests than one, errors remembered, the last good value kept (T8)."""

import itertools
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from horde_policy.clock import FixedClock
from horde_policy.errors import InputError, SourceThrottled, SourceUnavailable
from horde_policy.frames.snapshot import Snapshot, SourceKind
from horde_policy.sources.horde import LiveSource
from horde_policy.sources.poller import FAULT, LONGEST_PAUSE_S, Poller, Pollers
from horde_policy.sources.recorded import load_recorded
from tests.unit.sources.conftest import NOW, RECORDED, Stage

SNAPSHOT = replace(load_recorded(RECORDED / "snapshot"), source_kind="live")


def at_once(load: Callable[[], None]) -> None:
    load()


class Scripted:
    """A source that gives or raises what the test puts into it, and counts."""

    name = "scripted"

    def __init__(self, clock: FixedClock, kind: SourceKind = "live", refresh_s: float = 10.0) -> None:
        self.kind: SourceKind = kind
        self.refresh_s = refresh_s
        self.clock = clock
        self.error: Exception | None = None
        self.ages_s: dict[str, float] = {}
        self.loads: list[datetime] = []

    def load(self) -> Snapshot:
        self.loads.append(self.clock.now())
        if self.error is not None:
            raise self.error
        now = self.clock.now()
        times = {part: now - timedelta(seconds=self.ages_s.get(part, 0.0)) for part in SNAPSHOT.part_times}
        return replace(SNAPSHOT, source_kind=self.kind, fetched_at=min(times.values()), part_times=times)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def source(clock: FixedClock) -> Scripted:
    return Scripted(clock)


@pytest.fixture
def poller(source: Scripted, clock: FixedClock) -> Poller:
    return Poller(source, clock=clock, start=at_once, draw=random.Random(3))


def seconds_between(times: list[datetime]) -> list[float]:
    return [(after - before).total_seconds() for before, after in itertools.pairwise(times)]


def test_nothing_is_asked_before_someone_looks(poller: Poller, source: Scripted, clock: FixedClock) -> None:
    clock.advance(3600)
    look = poller.peek()
    assert (look.state, look.snapshot, look.next_due, look.polls) == ("waiting", None, None, 0)
    assert source.loads == []


def test_a_look_brings_the_snapshot(poller: Poller) -> None:
    look = poller.latest()
    assert look.state == "ok"
    assert look.snapshot is not None
    assert look.snapshot.fetched_at == NOW
    assert (look.serial, look.polls, look.error, look.failing_since, look.throttled_until) == (1, 1, None, None, None)
    assert look.next_due == NOW + timedelta(seconds=10)
    assert look.age_s(NOW + timedelta(seconds=4)) == 4.0


def test_ten_viewers_ask_no_more_than_one(clock: FixedClock) -> None:
    """Each looks every second for ten minutes; one alone makes as many requests."""
    counts = []
    for viewers in (1, 10):
        source = Scripted(clock)
        poller = Poller(source, clock=clock, start=at_once)
        for _ in range(600):
            for _ in range(viewers):
                poller.latest()
            clock.advance(1)
        counts.append(len(source.loads))
    assert counts == [60, 60]


def test_no_one_looking_no_polling(poller: Poller, source: Scripted, clock: FixedClock) -> None:
    poller.latest()
    clock.advance(86_400)
    assert len(source.loads) == 1
    assert poller.latest().snapshot is not None
    assert len(source.loads) == 2


@pytest.mark.parametrize(("wanted_s", "interval_s"), [(0.0, 10.0), (1.0, 10.0), (60.0, 60.0)])
def test_no_interval_is_shorter_than_the_sources(source: Scripted, clock: FixedClock, wanted_s: float, interval_s: float) -> None:
    poller = Poller(source, clock=clock, refresh_s=wanted_s, start=at_once)
    for _ in range(301):
        poller.latest()
        clock.advance(1)
    assert set(seconds_between(source.loads)) == {interval_s}


def test_the_last_good_snapshot_stays_while_the_source_fails(poller: Poller, source: Scripted, clock: FixedClock) -> None:
    good = poller.latest().snapshot
    source.error = SourceUnavailable("a horde", "answers 502")
    clock.advance(10)
    look = poller.latest()
    assert look.snapshot is good
    assert look.serial == 1
    assert look.state == "failing"
    assert look.error == "a horde: answers 502"
    assert look.failing_since == NOW + timedelta(seconds=10)
    assert look.sentence() == "a horde: answers 502; last good value of 20:00:00 UTC"
    source.error = None
    assert look.next_due is not None
    clock.advance((look.next_due - clock.now()).total_seconds())
    look = poller.latest()
    assert (look.state, look.error, look.failing_since, look.serial) == ("ok", None, None, 2)
    assert look.sentence() == "Up to date"


def test_an_error_is_remembered_for_every_viewer(poller: Poller, source: Scripted) -> None:
    """T8: five sessions of a failing source are one question, not five."""
    source.error = SourceUnavailable("a horde", "cannot be reached")
    looks = [poller.latest() for _ in range(5)]
    assert len(source.loads) == 1
    assert {look.state for look in looks} == {"failing"}
    assert {look.error for look in looks} == {"a horde: cannot be reached"}
    assert looks[0].snapshot is None
    assert looks[0].sentence() == "a horde: cannot be reached"


def test_a_source_that_keeps_failing_is_asked_ever_less(poller: Poller, source: Scripted, clock: FixedClock) -> None:
    source.error = SourceUnavailable("a horde", "cannot be reached")
    for _ in range(3600):
        poller.latest()
        clock.advance(1)
    pauses = seconds_between(source.loads)
    assert pauses[0] >= 10
    assert all(after >= before * 0.75 for before, after in itertools.pairwise(pauses))
    assert max(pauses) <= LONGEST_PAUSE_S + 1
    assert all(pause >= LONGEST_PAUSE_S * 0.75 for pause in pauses[6:])
    assert len(set(pauses[6:])) > 1
    assert len(source.loads) < 25


def test_a_429_is_left_alone_as_long_as_it_asks(poller: Poller, source: Scripted, clock: FixedClock) -> None:
    poller.latest()
    source.error = SourceThrottled("a horde", "answers 429", retry_after_s=59.0)
    clock.advance(10)
    look = poller.latest()
    assert look.state == "throttled"
    assert look.throttled_until == look.next_due == NOW + timedelta(seconds=69)
    assert look.sentence() == "a horde: answers 429; last good value of 20:00:00 UTC"
    clock.advance(58)
    poller.latest()
    assert len(source.loads) == 2
    source.error = None
    clock.advance(1)
    assert poller.latest().state == "ok"
    assert len(source.loads) == 3


@pytest.mark.parametrize(("asked_s", "pause_s"), [(0.0, 10.0), (3.0, 10.0), (1e9, 900.0)])
def test_what_a_429_asks_is_bounded(poller: Poller, source: Scripted, clock: FixedClock, asked_s: float, pause_s: float) -> None:
    source.error = SourceThrottled("a horde", "answers 429", retry_after_s=asked_s)
    assert poller.latest().next_due == NOW + timedelta(seconds=pause_s)


def test_a_429_that_does_not_say_how_long_is_a_failure_like_others(poller: Poller, source: Scripted) -> None:
    source.error = SourceThrottled("a horde", "answers 429", retry_after_s=None)
    look = poller.latest()
    assert (look.state, look.throttled_until) == ("throttled", None)
    assert look.next_due is not None
    assert look.next_due >= NOW + timedelta(seconds=10)


@pytest.mark.parametrize(("kind", "state"), [("live", "stale"), ("recorded", "ok"), ("demo", "ok"), ("history", "ok")])
def test_only_a_live_snapshot_turns_stale(clock: FixedClock, kind: SourceKind, state: str) -> None:
    poller = Poller(Scripted(clock, kind), clock=clock, start=at_once)
    poller.latest()
    clock.advance(SNAPSHOT.age_limit_s)
    assert poller.peek().state == "ok"
    clock.advance(0.001)
    look = poller.peek()
    assert look.state == state
    if state == "stale":
        assert look.sentence() == "Last good value of 20:00:00 UTC"


def test_a_folder_that_vanished_is_a_failure_with_its_error(poller: Poller, source: Scripted) -> None:
    source.error = InputError("recorded folder", "", "gone", "is not a folder")
    assert poller.latest().error == "recorded folder: 'gone' is not a folder"


def test_a_fault_of_the_program_is_not_hidden_and_does_not_stop_the_poller(
    poller: Poller, source: Scripted, clock: FixedClock
) -> None:
    source.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        poller.latest()
    look = poller.latest()
    assert (look.state, look.error) == ("failing", FAULT)
    source.error = None
    clock.advance(11)
    assert poller.latest().state == "ok"


def test_a_load_that_cannot_begin_does_not_stop_the_poller(source: Scripted, clock: FixedClock) -> None:
    refusals = [RuntimeError("can't start new thread")]

    def start(load: Callable[[], None]) -> None:
        if refusals:
            raise refusals.pop()
        load()

    poller = Poller(source, clock=clock, start=start)
    with pytest.raises(RuntimeError, match="new thread"):
        poller.latest()
    assert poller.latest().state == "ok"


def test_a_clock_that_is_set_back_does_not_stop_the_polling(poller: Poller, source: Scripted, clock: FixedClock) -> None:
    poller.latest()
    clock.advance(-86_400)
    poller.latest()
    assert len(source.loads) == 2


def test_ten_viewers_in_ten_threads_make_one_load_and_all_get_it(clock: FixedClock) -> None:
    go = threading.Event()

    class Slow(Scripted):
        def load(self) -> Snapshot:
            assert go.wait(60)
            return super().load()

    source = Slow(clock)
    poller = Poller(source, clock=clock)
    serials: list[int] = []
    viewers = [threading.Thread(target=lambda: serials.append(poller.latest(wait_s=10).serial)) for _ in range(10)]
    for viewer in viewers:
        viewer.start()
    go.set()
    for viewer in viewers:
        viewer.join(60)
    assert serials == [1] * 10
    assert len(source.loads) == 1


def test_a_viewer_does_not_wait_for_a_slow_source(clock: FixedClock) -> None:
    go = threading.Event()
    done = threading.Event()

    class Slow(Scripted):
        def load(self) -> Snapshot:
            assert go.wait(60)
            return super().load()

    def start(load: Callable[[], None]) -> None:
        def run() -> None:
            load()
            done.set()

        threading.Thread(target=run, daemon=True).start()

    source = Slow(clock)
    poller = Poller(source, clock=clock, start=start)
    assert poller.latest(wait_s=0.01).state == "waiting"
    go.set()
    assert done.wait(60)
    assert poller.peek().state == "ok"
    assert len(source.loads) == 1


def test_ten_viewers_of_a_real_server_make_the_requests_of_one(stage: Stage) -> None:
    with stage.client() as client:
        poller = Poller(LiveSource(client), clock=stage.clock, start=at_once)
        for _ in range(30):
            for _ in range(10):
                assert poller.latest().state == "ok"
            stage.clock.advance(10)
    assert stage.server.counts["/api/v2/status/models"] == 30
    assert stage.server.counts["/api/v2/workers"] == 10
    assert stage.server.counts["/api/v2/status/performance"] == 5


def test_a_server_that_begins_to_answer_429_is_left_alone_and_its_last_value_stays(stage: Stage) -> None:
    with stage.client() as client:
        poller = Poller(LiveSource(client), clock=stage.clock, start=at_once)
        poller.latest()
        stage.server.fail("throttled", retry_after="40")
        stage.clock.advance(30)
        before = sum(stage.server.counts.values())
        for _ in range(39):
            look = poller.latest()
            assert look.state == "throttled"
            assert look.snapshot is not None
            assert look.snapshot.fetched_at == NOW
            stage.clock.advance(1)
        assert sum(stage.server.counts.values()) == before + 1
        stage.server.heal()
        stage.clock.advance(1)
        assert poller.latest().state == "ok"


def test_pollers_are_shared_and_made_when_first_chosen(clock: FixedClock) -> None:
    built: list[str] = []

    def build(key: str) -> Scripted:
        if key == "nowhere":
            raise InputError("source", "", key, "must be one of a, b")
        built.append(key)
        return Scripted(clock)

    pollers = Pollers(build, clock=clock, start=at_once)
    assert pollers.started() == {}
    assert pollers.poller("a") is pollers.poller("a")
    pollers.poller("b").latest()
    assert built == ["a", "b"]
    assert {key: poller.peek().polls for key, poller in pollers.started().items()} == {"a": 0, "b": 1}
    with pytest.raises(InputError, match="must be one of"):
        pollers.poller("nowhere")


@pytest.mark.parametrize(("old", "state"), [("workers", "stale"), ("models", "stale"), ("modes", "ok"), ("performance", "ok")])
def test_only_an_old_part_that_figures_rest_on_makes_a_snapshot_stale(
    poller: Poller, source: Scripted, clock: FixedClock, old: str, state: str
) -> None:
    source.ages_s = {old: 121.0}
    look = poller.latest()
    assert look.state == state
    assert look.age_s(clock.now()) == (121.0 if state == "stale" else 0.0)
