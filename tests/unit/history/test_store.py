"""What is stored comes back: every snapshot at every instant, whatever changed in between."""

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from horde_policy.errors import InputError, StoreError
from horde_policy.frames.models import MODELS
from horde_policy.frames.snapshot import Performance, Snapshot
from horde_policy.frames.workers import WORKERS
from horde_policy.history.claims import give_up_lease, take_lease
from horde_policy.history.reading import (
    events_between,
    gaps_between,
    model_changes,
    polls_between,
    snapshot_at,
    sources_in,
    worker_changes,
)
from horde_policy.history.store import KEYFRAME_EVERY_POLLS, HistoryStore, poll_instant
from horde_policy.sources.demo import moved_to
from horde_policy.sources.recorded import load_recorded

RECORDED = Path(__file__).parents[3] / "data" / "recorded"
START = datetime(2026, 11, 29, 12, tzinfo=UTC)
COUNTS = ("requests_fulfilled", "uncompleted_jobs", "uptime_s")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[HistoryStore]:
    opened = HistoryStore(tmp_path / "history.sqlite", durable=False)
    yield opened
    opened.close()


def changing_horde(polls: int, seed: int) -> list[Snapshot]:
    """Snapshots of a made-up horde whose workers come and go and whose queues move."""
    rng = random.Random(seed)
    base = replace(load_recorded(RECORDED / "snapshot"), part_times={})
    assert base.models is not None
    snapshots = []
    workers, models = base.workers, base.models
    for number in range(polls):
        present = [rng.random() > 0.1 for _ in range(workers.height)]
        speeds = [rng.choice([None, round(rng.uniform(1, 60), 1), rng.uniform(1, 60)]) for _ in range(workers.height)]
        moved = workers.with_columns(pl.Series("speed_tok_per_s", speeds, dtype=pl.Float64)).filter(pl.Series(present))
        listed = [rng.random() > 0.1 for _ in range(models.height)]
        queued = [float(rng.randrange(0, 5000)) for _ in range(models.height)]
        moving = models.with_columns(pl.Series("queued_tokens", queued)).filter(pl.Series(listed))
        snapshots.append(
            replace(
                base,
                fetched_at=START + timedelta(seconds=30 * number),
                workers=moved,
                models=None if rng.random() < 0.05 else moving,
                performance=Performance(queued_tokens=float(rng.randrange(9000))) if rng.random() > 0.1 else None,
            )
        )
    return snapshots


def assert_same_figures(found: Snapshot, served: Snapshot) -> None:
    assert found.fetched_at == served.fetched_at
    assert_frame_equal(found.workers.drop(COUNTS), served.workers.drop(COUNTS))
    assert (found.models is None) == (served.models is None)
    if found.models is not None and served.models is not None:
        assert_frame_equal(found.models, served.models)
    assert found.performance == served.performance
    assert found.modes == served.modes
    assert found.problems == served.problems
    assert (found.demand is None) == (served.demand is None)


@pytest.mark.parametrize("folder", sorted(path.name for path in RECORDED.iterdir() if path.is_dir()))
def test_a_recorded_snapshot_comes_back_as_it_was(store: HistoryStore, folder: str) -> None:
    served = load_recorded(RECORDED / folder)
    store.write(served)
    assert_same_figures(snapshot_at(store, poll_instant(served)), served)


def test_every_instant_gives_the_last_snapshot_before_it(store: HistoryStore) -> None:
    snapshots = changing_horde(2 * KEYFRAME_EVERY_POLLS + 20, seed=1)
    for snapshot in snapshots:
        assert store.write(snapshot).poll is not None
    for served in snapshots[::7]:
        assert_same_figures(snapshot_at(store, served.fetched_at + timedelta(seconds=29)), served)
    with pytest.raises(InputError, match="before the first poll"):
        snapshot_at(store, START - timedelta(seconds=1))


def test_a_store_opened_anew_goes_on_where_it_was(tmp_path: Path) -> None:
    snapshots = changing_horde(20, seed=2)
    for snapshot in snapshots:
        store = HistoryStore(tmp_path / "history.sqlite", durable=False)
        store.write(snapshot)
        store.close()
    store = HistoryStore(tmp_path / "history.sqlite", read_only=True)
    for served in snapshots:
        assert_same_figures(snapshot_at(store, served.fetched_at), served)
    assert [span.polls for span in sources_in(store)] == [20]
    store.close()


def test_the_same_poll_twice_is_stored_once(store: HistoryStore) -> None:
    first = load_recorded(RECORDED / "snapshot")
    assert store.write(first).poll == 1
    assert store.write(first).poll is None
    assert store.write(moved_to(first, first.fetched_at - timedelta(seconds=5))).poll is None
    assert polls_between(store, poll_instant(first), poll_instant(first)).height == 1


def test_a_range_tells_each_change_and_the_state_at_its_start(store: HistoryStore) -> None:
    snapshots = changing_horde(KEYFRAME_EVERY_POLLS + 30, seed=3)
    for snapshot in snapshots:
        store.write(snapshot)
    first, last = 40, KEYFRAME_EVERY_POLLS + 20
    start, end = snapshots[first].fetched_at, snapshots[last].fetched_at
    models = model_changes(store, start, end)
    workers = worker_changes(store, start, end)
    for served in snapshots[first : last + 1 : 5]:
        upto = models.filter(pl.col("at") <= served.fetched_at).group_by("model").last().filter("listed")
        told = dict(upto.select("model", "queued_tokens").iter_rows())
        listed = MODELS.empty() if served.models is None else served.models
        assert told == dict(listed.select("model", "queued_tokens").iter_rows())
        there = workers.filter(pl.col("at") <= served.fetched_at).group_by("worker_id").last().filter("present")
        speeds = dict(there.select("worker_id", "speed_tok_per_s").iter_rows())
        assert speeds == dict(served.workers.select("worker_id", "speed_tok_per_s").iter_rows())


def test_a_gap_is_stored_with_its_reason(store: HistoryStore) -> None:
    first, second = changing_horde(2, seed=4)
    later = replace(second, fetched_at=first.fetched_at + timedelta(hours=1))
    store.write(first)
    store.write(later, gap_reason="the server was away")
    gaps = gaps_between(store, first.fetched_at, later.fetched_at)
    assert gaps.rows() == [(first.fetched_at, later.fetched_at, "the server was away")]


def lease(store: HistoryStore, owner: str, now: datetime, *, sole: bool = False) -> bool:
    name = load_recorded(RECORDED / "snapshot").source
    return take_lease(store, name, owner, now, 90, interval_s=30.0, sole=sole)


def test_one_owner_records_a_source_at_a_time(store: HistoryStore) -> None:
    now = START
    snapshot = load_recorded(RECORDED / "snapshot")
    assert lease(store, "first", now)
    assert not lease(store, "second", now)
    assert store.write(snapshot, owner="second").poll is None
    assert store.write(snapshot, owner="first").poll == 1
    assert lease(store, "second", now + timedelta(seconds=91)), "a hanging owner's lease runs out"
    assert not lease(store, "first", now + timedelta(seconds=92))
    assert lease(store, "first", now + timedelta(seconds=93), sole=True), "the lease of a dead owner is void at once"
    give_up_lease(store, snapshot.source, "second", now)
    assert not lease(store, "second", now + timedelta(seconds=94)), "only one's own lease can be given back"
    give_up_lease(store, snapshot.source, "first", now)
    assert lease(store, "second", now + timedelta(seconds=95))


def test_a_lease_from_a_clock_that_was_ahead_does_not_block_for_ever(store: HistoryStore) -> None:
    assert lease(store, "first", START + timedelta(days=1))
    assert lease(store, "second", START)


def test_a_full_disk_is_named_and_what_was_stored_stays(tmp_path: Path) -> None:
    snapshots = changing_horde(400, seed=5)
    store = HistoryStore(tmp_path / "history.sqlite", max_pages=40, durable=False)
    kept: list[Snapshot] = []

    def record_all() -> None:
        for snapshot in snapshots:
            store.write(snapshot)
            kept.append(snapshot)

    with pytest.raises(StoreError, match="full"):
        record_all()
    assert kept
    assert_same_figures(snapshot_at(store, kept[-1].fetched_at), kept[-1])
    store.close()
    roomier = HistoryStore(tmp_path / "history.sqlite")
    assert roomier.write(snapshots[len(kept)]).poll == len(kept) + 1
    assert_same_figures(snapshot_at(roomier, snapshots[len(kept)].fetched_at), snapshots[len(kept)])
    roomier.close()


@pytest.mark.parametrize("content", [b"no database at all" * 100, b""])
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.sqlite"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a history store"):
        HistoryStore(path, read_only=True)


@pytest.mark.parametrize("table", ["t", "history_meta", "o'brien \n"])
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_another_programs_file_is_refused_and_left_as_it_was(tmp_path: Path, table: str, journal: str) -> None:
    path = tmp_path / "app.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute(f'CREATE TABLE "{table}" (x)')
    connection.close()
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError, match="a history has an SQLite file of its own"):
            HistoryStore(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["app.sqlite"]


def test_an_empty_file_and_one_that_another_adds_a_table_to_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    path.touch()
    HistoryStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE meta (x)")
    connection.close()
    served = load_recorded(RECORDED / "snapshot")
    taken = HistoryStore(path)
    taken.write(served)
    assert snapshot_at(taken, poll_instant(served)).workers.height == served.workers.height
    taken.close()


def test_a_missing_store_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such"):
        HistoryStore(tmp_path / "none.sqlite", read_only=True)
    assert not (tmp_path / "none.sqlite").exists()


def test_workers_of_a_snapshot_match_their_schema(store: HistoryStore) -> None:
    served = load_recorded(RECORDED / "production_2023-07")
    store.write(served)
    assert snapshot_at(store, poll_instant(served)).workers.schema == WORKERS.empty().schema


@pytest.mark.parametrize(
    "name", ["nul \0 inside", "back\\slash \\0", "x" * 20_000, "'; DROP TABLE history_poll; --", "\N{PILE OF POO} \u202e", ""]
)
def test_any_name_comes_back_as_it_was(store: HistoryStore, name: str) -> None:
    served = replace(load_recorded(RECORDED / "snapshot"), source=f"source {name}", part_times={})
    assert served.models is not None
    worker_id, model = served.workers["worker_id"][0], served.models["model"][0]
    workers = served.workers.with_columns(
        worker_id=pl.col("worker_id").replace(worker_id, name), name=pl.lit(name), models=pl.concat_list(pl.lit(name), "models")
    )
    models = served.models.with_columns(model=pl.col("model").replace(model, name))
    served = replace(served, workers=workers.sort("worker_id"), models=models.sort("model"))
    store.write(served, events=[(served.fetched_at, "started", name)])
    assert_same_figures(snapshot_at(store, served.fetched_at), served)
    changes = model_changes(store, served.fetched_at, served.fetched_at, (name,))
    assert changes["model"].to_list() == [name]
    assert events_between(store, served.fetched_at, served.fetched_at)["text"].to_list() == [name]


def test_a_store_opened_to_read_is_not_written(tmp_path: Path) -> None:
    snapshot = load_recorded(RECORDED / "snapshot")
    written = HistoryStore(tmp_path / "history.sqlite")
    written.write(snapshot)
    reader = HistoryStore(tmp_path / "history.sqlite", read_only=True)
    assert snapshot_at(reader, poll_instant(snapshot)).workers.height == snapshot.workers.height
    with pytest.raises(StoreError, match="cannot be written"):
        reader.write(replace(snapshot, source="another"))
    reader.close()
    written.close()


@pytest.mark.parametrize("url", ["mysql://me:secret@host/db", "nonsense://x?password=secret", "postgresql://me:secret@["])
def test_a_store_of_another_kind_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StoreError) as refused:
        HistoryStore(url)
    assert "secret" not in str(refused.value)


def test_a_store_that_another_program_holds_is_named_and_usable_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horde_policy.history.database.BUSY_TIMEOUT_S", 0.1)
    snapshots = changing_horde(2, seed=6)
    store = HistoryStore(tmp_path / "history.sqlite", durable=False)
    store.write(snapshots[0])
    holder = sqlite3.connect(tmp_path / "history.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="another process held the store"):
        store.write(snapshots[1])
    assert_same_figures(snapshot_at(store, snapshots[1].fetched_at), snapshots[0])
    holder.execute("ROLLBACK")
    holder.close()
    assert store.write(snapshots[1]).poll == 2
    assert_same_figures(snapshot_at(store, snapshots[1].fetched_at), snapshots[1])
    store.close()


def test_a_store_waits_for_the_disk_at_each_commit(tmp_path: Path) -> None:
    store = HistoryStore(tmp_path / "history.sqlite")
    with store.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2, "FULL"
    store.close()


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
    with pytest.raises(StoreError) as caught:
        HistoryStore(kind(address))
    assert "s3cret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
