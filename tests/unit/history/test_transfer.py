"""Export, import and pruning: whatever is moved, merged or cut, each instant still says what was served."""

import itertools
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from horde_policy.errors import ConfigError, InputError, StoreError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.export import EXPORT_TABLES
from horde_policy.history.fleet_span import load_span
from horde_policy.history.reading import events_between, gaps_between, polls_between, snapshot_at, sources_in
from horde_policy.history.store import KEYFRAME_EVERY_POLLS, HistoryStore
from horde_policy.history.transfer import export_history, import_history
from horde_policy.history.trend import trend
from horde_policy.history.upkeep import Retention, compact, prune, store_info
from horde_policy.settings import AllowanceSettings
from tests.unit.history.churn import START, changing

NOW = datetime(2026, 12, 24, tzinfo=UTC)
COUNTS = ("requests_fulfilled", "uncompleted_jobs", "uptime_s")
SERVED = list(changing(KEYFRAME_EVERY_POLLS + 80, seed=31))
LAST = SERVED[-1].fetched_at


def at(poll: float) -> datetime:
    return START + timedelta(seconds=30 * poll)


def recorded(path: Path, polls: Iterable[int]) -> HistoryStore:
    """A store that recorded these polls of SERVED, with a gap wherever one is missing between."""
    store = HistoryStore(path, durable=False)
    before: int | None = None
    for poll in polls:
        reason = f"{path.stem} was away" if before is not None and poll != before + 1 else None
        store.write(
            SERVED[poll], gap_reason=reason, events=[(at(poll), "noted", f"{path.stem} {poll}")] if poll % 50 == 0 else ()
        )
        before = poll
    return store


def assert_serves(store: HistoryStore, polls: Sequence[int]) -> None:
    """The store has exactly these polls, says of each what was served, and is whole."""
    found = polls_between(store, START - timedelta(days=1), LAST)
    assert found["at"].to_list() == [at(poll) for poll in polls]
    for poll in polls:
        same_figures(snapshot_at(store, at(poll)), SERVED[poll])
    assert store_info(store, check=True).damages == ()


def same_figures(found: Snapshot, served: Snapshot) -> None:
    assert found.fetched_at == served.fetched_at
    assert_frame_equal(found.workers.drop(COUNTS), served.workers.drop(COUNTS))
    assert (found.models is None) == (served.models is None)
    if found.models is not None and served.models is not None:
        assert_frame_equal(found.models, served.models)
    assert found.performance == served.performance


def gaps(store: HistoryStore) -> list[tuple[float, float, str]]:
    rows = gaps_between(store, START - timedelta(days=1), LAST).iter_rows()
    return [((start - START).total_seconds() / 30, (end - START).total_seconds() / 30, reason) for start, end, reason in rows]


def test_an_export_taken_into_an_empty_store_is_the_same_history(tmp_path: Path) -> None:
    polls = [*range(70), *range(90, len(SERVED))]
    store = recorded(tmp_path / "a.sqlite", polls)
    exported = export_history(store, tmp_path / "export", now=NOW)
    assert exported.rows["polls"] == len(polls)
    other = HistoryStore(tmp_path / "other.sqlite", durable=False)
    (told,) = import_history(other, tmp_path / "export")
    assert (told.polls, told.of_polls, told.events) == (len(polls), len(polls), 4)
    assert_serves(other, polls)
    assert gaps(other) == gaps(store) == [(69.0, 90.0, "a was away")]
    assert events_between(other, START, LAST).equals(events_between(store, START, LAST))
    again = export_history(other, tmp_path / "again", now=NOW)
    for name in EXPORT_TABLES:
        first, second = (pl.read_parquet(tmp_path / folder / f"{name}.parquet") for folder in ("export", "again"))
        assert first.equals(second), name
    assert again.rows == exported.rows
    (told,) = import_history(other, tmp_path / "export")
    assert (told.polls, told.events) == (0, 0), "a second time adds nothing"
    store.close()
    other.close()


def test_two_recordings_with_holes_join_into_one(tmp_path: Path) -> None:
    mine = [*range(20, 60), *range(100, 160)]
    theirs = [*range(50), *range(55, 110), *range(150, 190)]
    store, other = recorded(tmp_path / "mine.sqlite", mine), recorded(tmp_path / "theirs.sqlite", theirs)
    export_history(other, tmp_path / "export", now=NOW)
    import_history(store, tmp_path / "export")
    union = sorted({*mine, *theirs})
    assert union == list(range(190))
    assert_serves(store, union)
    assert gaps(store) == []
    span = load_span(store, START, LAST, with_horde_wide=True)
    whole = recorded(tmp_path / "whole.sqlite", union)
    wanted = trend(load_span(whole, START, LAST, with_horde_wide=True), ("a",), AllowanceSettings())
    assert trend(span, ("a",), AllowanceSettings()).equals(wanted)
    # the recorder goes on behind what was taken in
    store.write(SERVED[190])
    assert_serves(store, range(191))
    for each in (store, other, whole):
        each.close()


def test_what_stays_missing_stays_a_gap(tmp_path: Path) -> None:
    store = recorded(tmp_path / "mine.sqlite", [*range(10), *range(100, 110)])
    other = recorded(tmp_path / "theirs.sqlite", [*range(30, 50), *range(60, 70), *range(150, 160)])
    export_history(other, tmp_path / "export", now=NOW)
    import_history(store, tmp_path / "export")
    assert gaps(store) == [
        (9.0, 30.0, "mine was away"),
        (49.0, 60.0, "theirs was away"),
        (69.0, 100.0, "mine was away"),
        (109.0, 150.0, "nothing was recorded between what was imported and what was there"),
    ]
    store.close()
    other.close()


def test_what_the_store_recorded_itself_stays(tmp_path: Path) -> None:
    """Polls between its own ones, at other instants, are another view of a time it already knows."""
    store = recorded(tmp_path / "mine.sqlite", range(0, 40))
    shifted = HistoryStore(tmp_path / "theirs.sqlite", durable=False)
    for poll in range(50):
        shifted.write(replace(SERVED[poll], fetched_at=SERVED[poll].fetched_at + timedelta(seconds=11)))
    export_history(shifted, tmp_path / "export", now=NOW)
    (told,) = import_history(store, tmp_path / "export")
    assert told.polls == 11
    times = polls_between(store, START, LAST)["at"].to_list()
    assert times == [at(poll) for poll in range(40)] + [at(poll) + timedelta(seconds=11) for poll in range(39, 50)]
    store.close()
    shifted.close()


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_exports_in_any_order_join_into_all_of_them(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    tmp_path = tmp_path_factory.mktemp("join")
    # stretches of at least two polls: a lone one does not say how far apart polls are
    of = st.lists(st.builds(lambda first, more: range(first, first + more), st.integers(0, 36), st.integers(2, 4)), max_size=6)
    pieces = [sorted({poll for stretch in data.draw(of) for poll in stretch}) for _ in range(3)]
    for number, polls in enumerate(pieces):
        store = recorded(tmp_path / f"piece{number}.sqlite", polls)
        if polls:
            export_history(store, tmp_path / f"export{number}", now=NOW)
        store.close()
    joined = HistoryStore(tmp_path / "joined.sqlite", durable=False)
    for number in data.draw(st.permutations([0, 1, 2, 0])):
        if pieces[number]:
            import_history(joined, tmp_path / f"export{number}")
    union = sorted({poll for polls in pieces for poll in polls})
    if union:
        assert_serves(joined, union)
        missing = [(float(a), float(b)) for a, b in itertools.pairwise(union) if b > a + 1]
        assert [(a, b) for a, b, _ in gaps(joined)] == missing
    joined.close()
    shutil.rmtree(tmp_path)


def test_a_range_of_a_store_stands_on_its_own(tmp_path: Path) -> None:
    store = recorded(tmp_path / "a.sqlite", range(len(SERVED)))
    exported = export_history(store, tmp_path / "export", now=NOW, start=at(40.5), end=at(160))
    assert exported.rows["polls"] == 121
    other = HistoryStore(tmp_path / "other.sqlite", durable=False)
    import_history(other, tmp_path / "export")
    assert_serves(other, range(40, 161))
    assert sources_in(other)[0].first == at(40)
    with pytest.raises(InputError, match="'nobody' is not in the store"):
        export_history(store, tmp_path / "none", now=NOW, source="nobody")
    with pytest.raises(InputError, match="must not be there yet"):
        export_history(store, tmp_path / "export", now=NOW)
    with pytest.raises(InputError, match="must lie in a folder that is there"):
        export_history(store, tmp_path / "no" / "where", now=NOW)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["export"], "nothing half-written is left"
    store.close()
    other.close()


def test_several_sources_and_made_up_ones_keep_their_names(tmp_path: Path) -> None:
    store = recorded(tmp_path / "a.sqlite", range(5))
    store.write(replace(SERVED[0], source="another|'horde'", synthetic=True))
    export_history(store, tmp_path / "export", now=NOW)
    other = HistoryStore(tmp_path / "other.sqlite", durable=False)
    told = import_history(other, tmp_path / "export")
    assert [(one.source, one.polls) for one in told] == [("another|'horde'", 1), ("made up", 5)]
    assert snapshot_at(other, LAST, "another|'horde'").synthetic
    assert not snapshot_at(other, LAST, "made up").synthetic
    store.close()
    other.close()


# -- exports that break a rule -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    store = recorded(folder / "a.sqlite", range(12))
    export_history(store, folder / "export", now=NOW)
    store.close()
    return folder / "export"


def changed(export: Path, tmp_path: Path, table: str, change: pl.Expr | None = None, drop: str | None = None) -> Path:
    folder = tmp_path / "changed"
    shutil.copytree(export, folder)
    path = folder / f"{table}.parquet"
    frame = pl.read_parquet(path)
    frame = frame.drop(drop) if drop is not None else frame
    (frame if change is None else frame.with_columns(change)).write_parquet(path)
    return folder


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("polls", pl.col("at").first().alias("at"), "must grow from poll to poll"),
        ("polls", (pl.col("poll") + 1000).alias("poll"), "is the number of no poll"),
        ("polls", pl.lit(value=False).alias("keyframe"), "must be true, as no poll is numbered just before it"),
        ("polls", (pl.col("poll") * 2).alias("poll"), "must be true, as no poll is numbered just before it"),
        ("polls", pl.lit(-1, pl.Int64).alias("lag_us"), "must be at least 0"),
        ("polls", pl.lit("other").alias("source"), "column source: 'other' is not among those"),
        ("workers", pl.lit('["w"]').alias("profile"), "column profile.*cannot be read"),
        ("workers", pl.lit("w").alias("worker_id"), "stands twice at one poll"),
        ("workers", pl.lit(float("nan")).alias("speed_tok_per_s"), "must be a number or null"),
        ("queues", pl.col("queued_tokens").cast(pl.String), "must be Float64"),
        ("parts", pl.lit("{").alias("body"), "column body.*cannot be read"),
        ("parts", pl.lit("[1,2,3]").alias("body"), "column body.*cannot be read"),
        ("events", pl.lit(None, pl.String).alias("kind"), "must not be null"),
    ],
)
def test_an_export_that_breaks_a_rule_is_refused_whole(
    export: Path, tmp_path: Path, table: str, change: pl.Expr, message: str
) -> None:
    store = recorded(tmp_path / "mine.sqlite", range(3))
    with pytest.raises(InputError, match=message):
        import_history(store, changed(export, tmp_path, table, change))
    assert_serves(store, range(3))
    store.close()


def test_a_folder_that_is_no_export_is_named(export: Path, tmp_path: Path) -> None:
    store = HistoryStore(tmp_path / "mine.sqlite", durable=False)
    with pytest.raises(InputError, match=r"about\.json cannot be read"):
        import_history(store, tmp_path)
    with pytest.raises(InputError, match="column threads: is missing"):
        import_history(store, changed(export, tmp_path, "models", drop="threads"))
    folder = tmp_path / "changed"
    shutil.copy(export / "models.parquet", folder)
    (folder / "parts.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"export, parts\.parquet: .* cannot be read"):
        import_history(store, folder)
    for about, message in (
        ("[]", "must be 'horde_policy history'"),
        (json.dumps({"format": "horde_policy history", "version": 9}), "9 is not the version"),
        (json.dumps({"format": "horde_policy history", "version": 1, "sources": [{}]}), "must list sources"),
    ):
        (folder / "about.json").write_text(about, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            import_history(store, folder)
    assert sources_in(store) == ()
    store.close()


# -- pruning -----------------------------------------------------------------------------------------------------------


def test_pruning_cuts_at_a_keyframe_and_the_state_at_the_cut_stays(tmp_path: Path) -> None:
    store = recorded(tmp_path / "a.sqlite", range(len(SERVED)))
    (pruned,) = prune(store, at(KEYFRAME_EVERY_POLLS + 30))
    assert (pruned.polls, pruned.kept_from) == (KEYFRAME_EVERY_POLLS, at(KEYFRAME_EVERY_POLLS))
    assert_serves(store, range(KEYFRAME_EVERY_POLLS, len(SERVED)))
    with pytest.raises(InputError, match="before the first poll"):
        snapshot_at(store, at(KEYFRAME_EVERY_POLLS - 1))
    events = events_between(store, START - timedelta(days=1), LAST)["text"].to_list()
    assert events == ["a 150"]
    (pruned,) = prune(store, at(KEYFRAME_EVERY_POLLS + 30))
    assert pruned.polls == 0
    assert prune(store, START - timedelta(days=1))[0].kept_from is None
    store.close()


def test_a_recorder_goes_on_though_another_program_throws_numbers_away(tmp_path: Path) -> None:
    store = recorded(tmp_path / "a.sqlite", range(KEYFRAME_EVERY_POLLS + 5))
    other = HistoryStore(tmp_path / "a.sqlite", durable=False)
    everybody_else = SERVED[KEYFRAME_EVERY_POLLS + 5].workers.head(0)
    store.write(replace(SERVED[KEYFRAME_EVERY_POLLS + 5], workers=everybody_else))
    for poll in range(KEYFRAME_EVERY_POLLS + 6, 2 * KEYFRAME_EVERY_POLLS + 10):
        store.write(replace(SERVED[0], fetched_at=at(poll), workers=everybody_else))
    prune(other, at(2 * KEYFRAME_EVERY_POLLS + 9))
    assert store_info(other).rows["history_profile"] == 0
    returns = replace(SERVED[7], fetched_at=at(2 * KEYFRAME_EVERY_POLLS + 10))
    store.write(returns)
    same_figures(snapshot_at(other, returns.fetched_at), returns)
    assert store_info(other, check=True).damages == ()
    store.close()
    other.close()


def test_pruning_a_joined_history_keeps_what_follows(tmp_path: Path) -> None:
    store = recorded(tmp_path / "mine.sqlite", [*range(60, 80), *range(120, 190)])
    other = recorded(tmp_path / "theirs.sqlite", range(190))
    export_history(other, tmp_path / "export", now=NOW)
    import_history(store, tmp_path / "export")
    assert_serves(store, range(190))
    prune(store, at(100))
    kept = polls_between(store, START, LAST)["at"].to_list()
    assert kept[0] <= at(100)
    assert_serves(store, range(int((kept[0] - START).total_seconds() // 30), 190))
    store.close()
    other.close()


def test_a_retention_is_applied_as_the_recorder_goes(tmp_path: Path) -> None:
    store = HistoryStore(tmp_path / "a.sqlite", durable=False)
    retention = Retention(timedelta(hours=2))
    for poll in range(6 * KEYFRAME_EVERY_POLLS):
        made = replace(SERVED[poll % 50], fetched_at=at(poll))
        store.write(made)
        retention.apply(store, made.source, made.fetched_at)
    (span,) = sources_in(store)
    assert span.first is not None
    assert timedelta(hours=2) <= at(6 * KEYFRAME_EVERY_POLLS - 1) - span.first <= timedelta(hours=4)
    assert store_info(store, check=True).damages == ()
    with pytest.raises(ConfigError, match="at least an hour"):
        Retention(timedelta(minutes=59))
    store.close()


def test_compacting_gives_space_back_and_damage_is_found(tmp_path: Path) -> None:
    store = recorded(tmp_path / "a.sqlite", range(len(SERVED)))
    before = store_info(store).bytes_
    prune(store, LAST)
    compact(store)
    store.close()
    reopened = HistoryStore(tmp_path / "a.sqlite", durable=False)
    assert store_info(reopened).bytes_ < before
    with reopened.writing() as connection:
        connection.exec_driver_sql("DELETE FROM history_label WHERE label = (SELECT min(worker) FROM history_worker_state)")
        connection.exec_driver_sql("DELETE FROM history_poll WHERE poll = 150")
    damages = store_info(reopened, check=True).damages
    assert damages is not None
    assert [damage.partition(" rows ")[2] for damage in damages] == [
        "of history_worker_state belong to no poll",
        "of history_model_state belong to no poll",
        "of history_model_queue belong to no poll",
        "of history_part_state belong to no poll",
        "of history_worker_state name nothing",
        "of history_poll follow no poll and are no keyframe",
    ]
    reopened.close()
    path = tmp_path / "a.sqlite"
    content = bytearray(path.read_bytes())
    content[8192:12288] = b"\xff" * 4096
    path.write_bytes(content)
    try:
        broken = HistoryStore(path, read_only=True)
        found = store_info(broken, check=True).damages
    except StoreError as error:
        found = (str(error),)
    assert found, "a page of rubbish is either found by the check or stops it"
