"""The history on a real PostgreSQL: the same history as on SQLite, the same survival."""

import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from horde_policy.clock import FixedClock
from horde_policy.errors import StoreError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.alerting import AlertKeeper, firing_alerts
from horde_policy.history.claims import recording_lock
from horde_policy.history.fleet_span import load_span
from horde_policy.history.kept import keep_samples, kept_exports, kept_samples, prune_kept
from horde_policy.history.reading import (
    events_between,
    gaps_between,
    model_changes,
    polls_between,
    snapshot_at,
    worker_changes,
)
from horde_policy.history.recorder import Recorder
from horde_policy.history.status import recorder_statuses
from horde_policy.history.store import KEYFRAME_EVERY_POLLS, HistoryStore
from horde_policy.history.transfer import export_history, import_history
from horde_policy.history.trend import trend
from horde_policy.history.upkeep import compact, prune, store_info
from horde_policy.settings import AllowanceSettings
from tests.churning_server import ChurningServer
from tests.server_postgres import PostgresServer, postgres_server, postgres_url  # noqa: F401
from tests.unit.history.churn import START, changing
from tests.unit.history.test_alerting import FLOOR, Queue
from tests.unit.history.test_crashes import (
    Recorders,
    assert_history_is_what_was_served,
    forker,  # noqa: F401
    kill_each_minute,
)
from tests.unit.history.test_kept import DAYS, samples_of

pytestmark = pytest.mark.server

COUNTS = ("requests_fulfilled", "uncompleted_jobs", "uptime_s")
NOW = datetime(2026, 12, 24, tzinfo=UTC)
EVER = (START - timedelta(days=1), START + timedelta(days=1))


@pytest.fixture
def store(postgres_url: str) -> Iterator[HistoryStore]:  # noqa: F811
    opened = HistoryStore(postgres_url)
    yield opened
    opened.close()


def at(poll: int) -> datetime:
    return START + timedelta(seconds=30 * poll)


def same_figures(found: Snapshot, served: Snapshot) -> None:
    assert found.fetched_at == served.fetched_at
    assert_frame_equal(found.workers.drop(COUNTS), served.workers.drop(COUNTS))
    assert (found.models is None) == (served.models is None)
    if found.models is not None and served.models is not None:
        assert_frame_equal(found.models, served.models)
    assert found.performance == served.performance


def test_the_same_history_as_on_sqlite(store: HistoryStore, tmp_path: Path) -> None:
    served = list(changing(KEYFRAME_EVERY_POLLS + 40, seed=17))
    other = HistoryStore(tmp_path / "history.sqlite", durable=False)
    for number, made in enumerate(served):
        for each in (store, other):
            told = [(made.fetched_at, "noted", f"poll {number}")] if number % 30 == 0 else []
            each.write(made, events=told, gap_reason="away" if number == 50 else None)
    for number, made in enumerate(served):
        same_figures(snapshot_at(store, at(number) + timedelta(seconds=29)), made)
    for read in (polls_between, model_changes, worker_changes, gaps_between, events_between):
        assert read(store, at(20), at(150)).equals(read(other, at(20), at(150))), read.__name__
    spans = [load_span(each, at(10), at(155), with_horde_wide=True) for each in (store, other)]
    assert trend(spans[0], ("a",), AllowanceSettings()).equals(trend(spans[1], ("a",), AllowanceSettings()))
    for each, folder in ((store, "pg"), (other, "sqlite")):
        export_history(each, tmp_path / folder, now=NOW)
    for name in ("polls", "workers", "models", "queues", "parts", "gaps", "events"):
        files = [pl.read_parquet(tmp_path / folder / f"{name}.parquet") for folder in ("pg", "sqlite")]
        assert files[0].equals(files[1]), name
    pruned = [prune(each, at(KEYFRAME_EVERY_POLLS + 20)) for each in (store, other)]
    assert pruned[0] == pruned[1]
    assert import_history(store, tmp_path / "sqlite")[0].polls == KEYFRAME_EVERY_POLLS
    for number in range(0, len(served), 7):
        same_figures(snapshot_at(store, at(number)), served[number])
    compact(store)
    info = store_info(store, check=True)
    assert info.damages == ()
    assert info.rows["history_poll"] == len(served)
    assert info.bytes_ > 100_000
    other.close()


@pytest.mark.parametrize("name", ["nul \0 inside", "back\\slash \\0", "x" * 20_000, "'; DROP TABLE history_poll; --", "%s %(x)s"])
def test_any_name_comes_back_as_it_was(store: HistoryStore, name: str, tmp_path: Path) -> None:
    served = replace(next(changing(1, seed=1)), source=f"source {name}")
    workers = served.workers.with_columns(
        worker_id=pl.col("worker_id") + name, name=pl.lit(name), models=pl.concat_list(pl.lit(name))
    )
    served = replace(served, workers=workers.sort("worker_id"))
    store.write(served, events=[(served.fetched_at, "started", name)])
    same_figures(snapshot_at(store, served.fetched_at), served)
    assert events_between(store, *EVER)["text"].to_list() == [name]
    export_history(store, tmp_path / "export", now=NOW)
    other = HistoryStore(tmp_path / "history.sqlite", durable=False)
    import_history(other, tmp_path / "export")
    same_figures(snapshot_at(other, served.fetched_at), served)
    other.close()


def test_one_recorder_at_a_time_and_a_dead_one_is_replaced_at_once(postgres_url: str) -> None:  # noqa: F811
    stores = [HistoryStore(postgres_url) for _ in range(2)]
    first, second = (recording_lock(store, "a horde") for store in stores)
    assert first.take()
    assert first.take(), "it keeps what it has"
    assert not second.take()
    other = recording_lock(stores[1], "another horde")
    assert other.take()
    other.release()
    stores[0].engine.dispose()  # what is lent out stays open
    assert not second.take()
    first.release()
    assert second.take()
    second.release()
    for store in stores:
        store.close()


def test_a_read_only_store_writes_nothing(postgres_url: str) -> None:  # noqa: F811
    with pytest.raises(StoreError, match="the database holds no history"):
        HistoryStore(postgres_url, read_only=True)
    writer = HistoryStore(postgres_url)
    reader = HistoryStore(postgres_url, read_only=True)
    with pytest.raises(StoreError, match="cannot be written"):
        reader.write(next(changing(1, seed=1)))
    reader.close()
    writer.close()


def test_a_wrong_password_is_named_and_not_repeated(postgres_url: str) -> None:  # noqa: F811
    wrong = postgres_url.replace("owner:", "owner:notsecret")
    with pytest.raises(StoreError, match="password authentication failed") as refused:
        HistoryStore(wrong)
    assert "notsecret" not in str(refused.value)


def test_alerts_survive_restarts(postgres_url: str) -> None:  # noqa: F811
    clock = FixedClock(START)
    source = Queue(clock)
    source.queued = FLOOR
    for start in range(24):
        store = HistoryStore(postgres_url)
        recorder = Recorder(
            source, store, clock=clock, monotonic=lambda: 0.0, owner=f"{start}", alerts=AlertKeeper(AllowanceSettings())
        )
        recorder.step()
        assert recorder.state.state == "recording"
        recorder._lock.release()
        clock.advance(30)
        store.close()
    store = HistoryStore(postgres_url)
    assert [(alert.rule, alert.since) for alert in firing_alerts(store)] == [("at_floor", START)]
    kinds = events_between(store, *EVER)["kind"].to_list()
    assert kinds.count("alert_fired") == 1
    store.close()


def test_a_database_that_goes_away_is_named_and_survived(
    postgres_server: PostgresServer,  # noqa: F811
    postgres_url: str,  # noqa: F811
) -> None:
    clock = FixedClock(START)
    store = HistoryStore(postgres_url)
    recorder = Recorder(Queue(clock), store, clock=clock, monotonic=lambda: 0.0, owner="first")
    seen = []

    def go(polls: int) -> None:
        for _ in range(polls):
            seen.append(recorder.step().state)
            clock.advance(30)

    go(3)
    postgres_server.stop()  # at once, as after a crash
    go(4)
    postgres_server.start()
    deadline = time.monotonic() + 30
    while recorder.step().state != "recording" and time.monotonic() < deadline:
        time.sleep(0.2)
    go(2)
    assert seen == ["recording"] * 3 + ["store_failing"] * 4 + ["recording"] * 2
    (gap,) = gaps_between(store, *EVER).iter_rows()
    assert "the store failed" in gap[2]
    assert store_info(store, check=True).damages == ()
    assert recorder_statuses(store, clock.now())[0].state == "recording"
    recorder.close()
    store.close()


def test_recorders_that_are_killed(
    postgres_url: str,  # noqa: F811
    forker: "subprocess.Popen[str]",  # noqa: F811
) -> None:
    with ChurningServer(seed=7) as server:
        recorders = Recorders(server.url, postgres_url, forker)
        kill_each_minute(server, recorders, 4, seed=4)
        store = HistoryStore(postgres_url)
        figures = assert_history_is_what_was_served(store, server, recorders)
        assert figures["polls stored"] > 0, "how many there is time for between two kills is the machine's"
        assert recorder_statuses(store, EVER[1])[0].state == "stopped"
        store.close()


def test_exports_are_kept_as_on_sqlite(store: HistoryStore, tmp_path: Path) -> None:
    other = HistoryStore(tmp_path / "other.sqlite", durable=False)
    for to in (store, other):
        for day in (1, 0, 1, 2):
            keep_samples(to, samples_of(DAYS[day]), name="nul\0 and <b>", collected_to=START if day else None)
        assert keep_samples(to, samples_of(DAYS[2]), name="nul\0 and <b>").days == 0
    assert [replace(one, bytes_=0) for one in kept_exports(store)] == [replace(one, bytes_=0) for one in kept_exports(other)]
    assert_frame_equal(kept_samples(store)[0].runs, kept_samples(other)[0].runs)
    assert prune_kept(store, datetime(2026, 11, 24, tzinfo=UTC)) == 2
    reading = HistoryStore(str(store.url.render_as_string(hide_password=False)), read_only=True)
    assert kept_exports(reading)[0].days == 2
    reading.close()
