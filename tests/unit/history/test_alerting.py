"""Alerts in the recorder: judged at each poll, kept with it, told once each, whatever ends the recorder in between."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest

from horde_policy.board.alerts import AlertState, evaluate
from horde_policy.board.rows import make_board
from horde_policy.clock import FixedClock
from horde_policy.errors import ConfigError, SourceUnavailable, StoreError
from horde_policy.frames.snapshot import Snapshot, SourceKind
from horde_policy.history.alerting import AlertKeeper, firing_alerts, stored_alerts
from horde_policy.history.reading import events_between, snapshot_at
from horde_policy.history.recorder import Recorder
from horde_policy.history.service import RecordingPlan, RecordingService
from horde_policy.history.status import recorder_statuses
from horde_policy.history.store import HistoryStore
from horde_policy.history.tables import ALERT_STATES
from horde_policy.history.webhook import WebhookSender, checked_webhook
from horde_policy.settings import AllowanceSettings
from tests.unit.board.made import listed, snapshot, worker
from tests.unit.history.churn import START, changing
from tests.webhook_receiver import WebhookReceiver

FLOOR = 9000.0
LONG = timedelta(days=9)


class Queue:
    """A source of one model with one worker, whose queue a test sets."""

    kind: SourceKind = "recorded"
    refresh_s = 10.0
    name = "made up"

    def __init__(self, clock: FixedClock) -> None:
        self.clock = clock
        self.queued = 0.0
        self.fleet = [worker("w")]
        self.ages_s: dict[str, float] = {}
        self.failing: Exception | None = None

    def load(self) -> Snapshot:
        if self.failing is not None:
            raise self.failing
        now = self.clock.now()
        oldest = now - timedelta(seconds=max(self.ages_s.values(), default=0.0))
        made = snapshot(self.fleet, [listed("m", self.queued, 1.0)] if self.fleet else [], at=oldest)
        times = {part: now - timedelta(seconds=age_s) for part, age_s in self.ages_s.items()}
        return replace(made, source=self.name, part_times=times)


class Watch:
    """A recorder with alerts on a made clock; ``restart`` lets the process die and another begin."""

    def __init__(self, path: Path, *, deliver: bool = False) -> None:
        self.path = path
        self.deliver = deliver
        self.clock = FixedClock(START)
        self.mono_s = 0.0
        self.source = Queue(self.clock)
        self.starts = 0
        self.begin()

    def begin(self) -> None:
        self.starts += 1
        self.store = HistoryStore(self.path, durable=False)
        self.recorder = Recorder(
            self.source,
            self.store,
            clock=self.clock,
            monotonic=lambda: self.mono_s,
            owner=f"process {self.starts}",
            alerts=AlertKeeper(AllowanceSettings(), deliver=self.deliver),
        )

    def restart(self) -> None:
        self.recorder._lock.release()
        self.store.close()
        self.begin()

    def go(self, polls: int, queued: float | None = None) -> None:
        if queued is not None:
            self.source.queued = queued
        for _ in range(polls):
            self.recorder.step()
            self.clock.advance(30)
            self.mono_s += 30

    def told(self) -> list[tuple[str, float]]:
        rows = events_between(self.store, START - LONG, START + LONG).iter_rows()
        return [(text, (at - START).total_seconds()) for at, kind, text in rows if kind.startswith("alert_")]

    def firing(self) -> list[tuple[str, str | None, float]]:
        alerts = firing_alerts(self.store)
        return [(alert.rule, alert.model, (alert.since - START).total_seconds()) for alert in alerts]


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    made = Watch(tmp_path / "history.sqlite")
    yield made
    made.store.close()


def test_ten_minutes_at_the_floor_fire_once_with_since_when(watch: Watch) -> None:
    watch.go(3, queued=0.0)
    watch.go(20, queued=FLOOR)
    assert watch.told() == []
    watch.go(5)
    assert watch.firing() == [("at_floor", "m", 90.0)]
    assert watch.told() == [("m: the allowance is at the floor, since 2026-11-29 12:01:30 UTC", 690.0)]
    watch.go(1, queued=0.0)
    assert watch.firing() == []
    assert watch.told()[1:] == [
        ("m: the allowance was at the floor, from 2026-11-29 12:01:30 UTC to 2026-11-29 12:14:00 UTC", 840.0)
    ]


@pytest.mark.parametrize("every", [1, 3, 7])
def test_a_restart_neither_forgets_nor_doubles(tmp_path: Path, every: int) -> None:
    whole, broken = Watch(tmp_path / "whole.sqlite"), Watch(tmp_path / "broken.sqlite")
    for step in range(60):
        queued = FLOOR if 3 <= step < 40 else 0.0
        for one in (whole, broken):
            one.go(1, queued)
        if step % every == 0:
            broken.restart()
    assert broken.told() == whole.told()
    assert len(whole.told()) == 2
    assert stored_alerts(broken.store) == stored_alerts(whole.store)


def test_a_poll_that_is_not_stored_tells_nothing_twice(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    watch.go(21, queued=FLOOR)
    before = watch.told()
    with monkeypatch.context() as patched:

        def full(*_args: object, **_kwargs: object) -> None:
            raise StoreError("the store", "the disk is full")

        patched.setattr(watch.store, "write", full)
        watch.go(3, queued=0.0)
    watch.go(3)
    assert len(before) == 1
    assert [text.partition(",")[0] for text, _ in watch.told()] == [
        "m: the allowance is at the floor",
        "m: the allowance was at the floor",
    ]


def test_a_source_that_stays_away_fires_stale_though_no_poll_is_stored(watch: Watch) -> None:
    watch.go(2)
    watch.source.failing = SourceUnavailable("made up", "no answer")
    watch.go(10)
    assert watch.firing() == [("stale", None, 150.0)]
    watch.restart()
    watch.go(3)
    assert watch.firing() == [("stale", None, 150.0)], "a restart knows it from the store"
    watch.source.failing = None
    watch.go(1)
    assert watch.firing() == []
    assert [text for text, _ in watch.told()] == [
        "the data are stale, since 2026-11-29 12:02:30 UTC",
        "the data were stale, from 2026-11-29 12:02:30 UTC to 2026-11-29 12:07:30 UTC",
    ]


def test_since_when_is_told_as_the_history_tells_it_though_an_old_part_stands(watch: Watch) -> None:
    """Modes that answer no more, whose last answer stands, and a queue's list that is older than the workers."""
    watch.source.ages_s = {"workers": 0.0, "models": 10.0, "modes": 110.0}
    watch.go(3)
    watch.source.fleet = [worker("w", maintenance=True)]
    watch.go(1)
    (alert,) = firing_alerts(watch.store)
    assert (alert.rule, alert.since) == ("no_worker", START + timedelta(seconds=90))

    def served(at: datetime) -> bool:
        made = snapshot_at(watch.store, at)
        assert made.fetched_at < at, "the stamp is that of the oldest part"
        return make_board(made, AllowanceSettings()).by_model["m"].measure.eligible_workers > 0

    assert not served(alert.since)
    assert served(alert.since - timedelta(microseconds=1))


def test_a_part_that_figures_do_without_never_makes_the_data_stale_not_even_after_a_restart(watch: Watch) -> None:
    watch.source.ages_s = {"workers": 0.0, "models": 20.0, "modes": 119.0}
    watch.go(2)
    watch.source.failing = SourceUnavailable("made up", "no answer")
    watch.restart()
    watch.go(3)
    assert watch.firing() == []
    watch.go(1)
    assert watch.firing() == [("stale", None, 30.0 - 20.0 + 120.0)]


def test_a_state_of_an_earlier_version_is_stale_by_its_last_poll(watch: Watch) -> None:
    watch.go(2)
    with watch.store.writing() as connection:
        body = json.loads(str(connection.exec_driver_sql("SELECT body FROM history_alert_state").scalar_one()))
        del body["fresh_until"]
        connection.execute(ALERT_STATES.update().values(body=json.dumps(body)))
    watch.restart()
    watch.source.failing = SourceUnavailable("made up", "no answer")
    watch.go(10)
    assert watch.firing() == [("stale", None, 150.0)]


def test_what_ends_as_the_last_worker_leaves_says_so_and_tells_from_when_to_when(tmp_path: Path) -> None:
    watch = Watch(tmp_path / "history.sqlite", deliver=True)
    watch.source.fleet = [worker("w", max_length=400)]
    watch.go(2)
    watch.source.fleet = []
    watch.go(1)
    watch.source.fleet = [worker("w")]
    watch.go(1)
    assert [text for text, _ in watch.told()] == [
        "m: the largest free request is under 512 tokens, since 2026-11-29 12:00:00 UTC",
        "m: no worker is online, since 2026-11-29 12:01:00 UTC",
        "m: the largest free request was under 512 tokens, from 2026-11-29 12:00:00 UTC to 2026-11-29 12:01:00 UTC; "
        "since then no worker is online",
        "m: no worker was online, from 2026-11-29 12:01:00 UTC to 2026-11-29 12:01:30 UTC",
    ]
    with watch.store.reading() as connection:
        rows = connection.exec_driver_sql("SELECT body FROM history_delivery ORDER BY delivery")
        bodies = [json.loads(str(row[0])) for row in rows]
    assert [(body["rule"], body["kind"], body["instead"]) for body in bodies] == [
        ("small_free_request", "fired", None),
        ("no_worker", "fired", None),
        ("small_free_request", "resolved", "no_worker"),
        ("no_worker", "resolved", None),
    ]
    watch.store.close()


def test_the_recorder_tells_what_the_state_machine_tells(tmp_path: Path) -> None:
    """On a horde that changes at random, with restarts: the same changes as one pass over the same snapshots."""
    snapshots = list(changing(150, seed=21))
    state, wanted = AlertState(), []
    for made in snapshots:
        state, changes = evaluate(state, make_board(made, AllowanceSettings()), made.fetched_at)
        wanted += [(change.kind, change.alert.key, change.at) for change in changes]
    store = HistoryStore(tmp_path / "history.sqlite", durable=False)
    found = []
    keeper = AlertKeeper(AllowanceSettings())
    for number, made in enumerate(snapshots):
        if number % 10 == 0:
            keeper = AlertKeeper(AllowanceSettings())
            keeper.resume(store, made.source)
        judged = keeper.judge(made, made.fetched_at)
        assert judged is not None
        store.write(made, events=judged.events, alerts=judged.record)
        keeper.accept(judged)
        found += [(change.kind, change.alert.key, change.at) for change in judged.changes]
    assert found == wanted
    assert len(wanted) > 20
    assert stored_alerts(store) == state
    store.close()


def test_what_cannot_be_read_back_is_judged_anew(watch: Watch) -> None:
    watch.go(25, queued=FLOOR)
    with watch.store.writing() as connection:
        connection.exec_driver_sql('UPDATE history_alert_state SET body = \'{"alerts": [{"rule": "unheard of"}]}\'')
    watch.restart()
    assert watch.firing() == []
    watch.go(21)
    assert [rule for rule, _, _ in watch.firing()] == ["at_floor"]


# -- the webhook -------------------------------------------------------------------------------------------------------


def messages(store: HistoryStore) -> list[tuple[str | None, int]]:
    with store.reading() as connection:
        rows = connection.exec_driver_sql("SELECT outcome, tries FROM history_delivery ORDER BY delivery")
        return [(row[0], row[1]) for row in rows]


@pytest.fixture
def fallen(tmp_path: Path) -> Iterator[Watch]:
    """A recorder with two changes to tell: an alert that fired and was resolved."""
    made = Watch(tmp_path / "history.sqlite", deliver=True)
    made.go(22, queued=FLOOR)
    made.go(2, queued=0.0)
    yield made
    made.store.close()


def sender(watch: Watch, url: str, transport: httpx.BaseTransport | None = None) -> WebhookSender:
    return WebhookSender(watch.store, "made up", url, clock=watch.clock, transport=transport)


def test_each_change_is_told_once_in_order(fallen: Watch) -> None:
    with WebhookReceiver() as receiver, sender(fallen, receiver.url) as sending:
        assert sending.send_due() == 2
        assert sending.send_due() == 0
    assert [one.body["kind"] for one in receiver.received] == ["fired", "resolved"]
    first = receiver.received[0].body
    assert (first["source"], first["rule"], first["model"]) == ("made up", "at_floor", "m")
    assert first["since"] == "2026-11-29T12:00:00+00:00"
    assert first["text"] == "m: the allowance is at the floor, since 2026-11-29 12:00:00 UTC"
    assert first["key"] == receiver.received[0].key != receiver.received[1].key
    assert messages(fallen.store) == [("sent", 1), ("sent", 1)]


@pytest.mark.parametrize("manner", ["error", "redirect", "drop"])
def test_a_receiver_that_fails_is_told_again_later_and_in_order(fallen: Watch, manner: str) -> None:
    with WebhookReceiver(manner, manner, manner, "ok") as receiver, sender(fallen, receiver.url) as sending:  # type: ignore[arg-type]
        assert sending.send_due() == 0
        assert sending.send_due() == 0, "it waits before it tries again"
        for pause_s, delivered in ((2, 0), (4, 0), (8, 2)):
            fallen.clock.advance(pause_s - 0.1)
            assert sending.send_due() == 0
            fallen.clock.advance(0.1)
            assert sending.send_due() == delivered
        assert len(set(receiver.accepted)) == len(receiver.accepted) == 2
        assert [one.body["kind"] for one in receiver.received] == ["fired"] * 4 + ["resolved"]
    events = events_between(fallen.store, START - LONG, START + LONG)
    told = [text for kind, text in events.select("kind", "text").iter_rows() if kind == "webhook_failed"]
    assert len(told) == 1
    assert "very-secret" not in told[0]


def test_a_webhook_that_fails_and_works_again_is_told_once_each_and_stands_with_the_recorder(fallen: Watch) -> None:
    def standing() -> str:
        (found,) = recorder_statuses(fallen.store, fallen.clock.now())
        return found.webhook

    heard: list[str] = []
    with WebhookReceiver("error", "error", "error", "ok") as receiver:
        host = receiver.url.split("/")[2]
        assert standing() == ""
        for _ in range(2):  # the second is a process that is started while it fails
            sending = WebhookSender(fallen.store, "made up", receiver.url, clock=fallen.clock, told=heard.append)
            with sending:
                sending.send_due()
                fallen.clock.advance(10)
        assert heard == [f"webhook failed: {host} answers 503; it is tried again"] * 2
        assert standing() == f"The webhook failed at 2026-11-29 12:12:00 UTC: {host} answers 503; it is tried again"
        with WebhookSender(fallen.store, "made up", receiver.url, clock=fallen.clock, told=heard.append) as sending:
            sending.send_due()
            fallen.clock.advance(20)
            assert sending.send_due() == 2
            assert sending.send_due() == 0
    assert heard[3:] == [f"webhook recovered: {host} was told"]
    failed = f"The webhook failed at 2026-11-29 12:12:00 UTC: {host} answers 503"
    assert standing() == f"{failed}; it works again since 2026-11-29 12:12:40 UTC"
    kinds = events_between(fallen.store, START - LONG, START + LONG)["kind"].to_list()
    assert [kind for kind in kinds if kind.startswith("webhook_")] == ["webhook_failed", "webhook_recovered"]
    assert not [text for text in (*heard, standing()) if "secret" in text]


def test_a_recording_that_runs_hands_on_what_its_webhook_says(fallen: Watch) -> None:
    fallen.recorder._lock.release()
    heard: list[str] = []
    stop = threading.Event()

    def hear(sentence: str) -> None:
        heard.append(sentence)
        stop.set()

    plan = RecordingPlan(store=fallen.path, webhook="http://127.0.0.1:9/T000/very-secret")
    service = RecordingService(
        fallen.source, plan, clock=fallen.clock, monotonic=lambda: fallen.mono_s, owner="another", told_of_webhook=hear
    )
    last = threading.Timer(20.0, stop.set)
    last.start()
    service.run(stop)
    last.cancel()
    assert heard == ["webhook failed: 127.0.0.1:9 cannot be reached (ConnectError); it is tried again"]


def test_a_message_that_is_given_up_is_told_without_what_it_held(fallen: Watch) -> None:
    heard: list[str] = []
    fallen.clock.advance(86_400 + 600)
    with WebhookSender(fallen.store, "made up", "http://127.0.0.1:9/", clock=fallen.clock, told=heard.append) as sending:
        sending.send_due()
    assert heard == ["webhook gave up: 2 changes of alerts could not be told within a day"]
    (found,) = recorder_statuses(fallen.store, fallen.clock.now())
    assert found.webhook.endswith("UTC: the webhook could not be told within a day, after 0 tries")


def test_a_receiver_that_does_not_answer_is_given_up_for_now(fallen: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    with WebhookReceiver("hang", "ok") as receiver:
        with monkeypatch.context() as impatient:
            impatient.setattr("horde_policy.history.webhook.ANSWER_S", 0.2)
            with sender(fallen, receiver.url) as sending:
                assert sending.send_due() == 0
        fallen.clock.advance(2)
        with sender(fallen, receiver.url) as sending:  # as patient as ever: on a busy machine an answer takes its time
            assert sending.send_due() == 2
        keys = [one.key for one in receiver.received]
        assert keys[0] == keys[1], "it may have been read: the repetition carries the same key"


def test_a_process_that_dies_after_the_answer_repeats_the_same_key_and_nothing_else(fallen: Watch) -> None:
    class DiesAfterTheAnswer(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            super().handle_request(request)
            raise KeyboardInterrupt

    with WebhookReceiver() as receiver:
        with sender(fallen, receiver.url, DiesAfterTheAnswer()) as sending, pytest.raises(KeyboardInterrupt):
            sending.send_due()
        fallen.restart()
        with sender(fallen, receiver.url) as sending:
            assert sending.send_due() == 0, "what another process may be sending is left alone for a minute"
            fallen.clock.advance(60)
            assert sending.send_due() == 2
    keys = [one.key for one in receiver.received]
    assert keys[0] == keys[1]
    assert len(keys) == 3
    assert len(set(keys)) == 2


def test_two_processes_on_one_store_tell_each_change_once(fallen: Watch) -> None:
    with WebhookReceiver() as receiver, sender(fallen, receiver.url) as one:
        other_store = HistoryStore(fallen.path, durable=False)
        told: list[int] = []

        class Meanwhile(httpx.HTTPTransport):
            def handle_request(self, request: httpx.Request) -> httpx.Response:
                told.append(one.send_due())
                return super().handle_request(request)

        with WebhookSender(other_store, "made up", receiver.url, clock=fallen.clock, transport=Meanwhile()) as other:
            assert other.send_due() == 2
        other_store.close()
    assert told == [0, 0]
    assert len(receiver.accepted) == len(set(receiver.accepted)) == 2


def test_after_a_day_a_message_is_given_up_and_that_is_told(fallen: Watch) -> None:
    fallen.clock.advance(86_400 + 600)
    with WebhookReceiver() as receiver, sender(fallen, receiver.url) as sending:
        assert sending.send_due() == 0
        assert receiver.received == []
    assert messages(fallen.store) == [("given_up", 0)] * 2
    assert events_between(fallen.store, START, START + LONG)["kind"].to_list().count("webhook_gave_up") == 2


def test_a_clock_set_back_does_not_hold_a_message_up(fallen: Watch) -> None:
    fallen.clock.advance(-7200)
    with WebhookReceiver() as receiver, sender(fallen, receiver.url) as sending:
        assert sending.send_due() == 2


def test_without_a_webhook_nothing_is_kept_for_one(watch: Watch) -> None:
    watch.go(25, queued=FLOOR)
    assert messages(watch.store) == []


@pytest.mark.parametrize("address", ["", "hooks.example/x", "file:///etc/passwd", "https://", "http://h:99999/", "https://h:0/x"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="must be an address"):
        checked_webhook(address)


def test_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as refused:
        checked_webhook("https://me:topsecret@hooks.example/T000/hidden")
    assert "topsecret" not in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    name = '"},{"kind":"fired"\n\0\u202e<b>'
    store = HistoryStore(tmp_path / "history.sqlite", durable=False)
    keeper = AlertKeeper(AllowanceSettings(), deliver=True)
    keeper.resume(store, "made up")
    bodies: list[str] = []
    for seconds in range(0, 630, 30):
        at: datetime = START + timedelta(seconds=seconds)
        made = snapshot([worker("w", name)], [listed(name, FLOOR, 1.0)], at=at)
        judged = keeper.judge(made, at)
        assert judged is not None
        store.write(made, events=judged.events, alerts=judged.record)
        keeper.accept(judged)
        bodies += [body for _, body in judged.record.deliveries]
    assert [alert.model for alert in firing_alerts(store)] == [name]
    assert [json.loads(body)["model"] for body in bodies] == [name]
    store.close()
