"""The demo's history: whole, small, labelled, joined to the demo's snapshot, and never stale."""

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from horde_policy.board.changes import changes
from horde_policy.board.rows import make_board
from horde_policy.errors import InputError
from horde_policy.history.alerting import firing_alerts
from horde_policy.history.demo import ALERTS_FILE, DEMO_HISTORY_FOLDER, MOVED_EVERY_S, DemoHistory, demo_history
from horde_policy.history.exported import read_export
from horde_policy.history.fleet_span import load_span
from horde_policy.history.presence import workers_over
from horde_policy.history.reading import gaps_between, snapshot_at, sources_in
from horde_policy.history.since import changes_over
from horde_policy.history.states import COUNTS
from horde_policy.history.trend import trends
from horde_policy.history.upkeep import store_info
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.demo import DEMO_FOLDER
from horde_policy.sources.recorded import load_recorded
from tests.make_demo_history import EVERY, GONE, make

NOW = datetime(2031, 3, 4, 17, 23, 45, tzinfo=UTC)
WEEK = timedelta(days=7)
SETTINGS = AllowanceSettings()


@pytest.fixture
def demo(tmp_path: Path) -> DemoHistory:
    history = DemoHistory(DEMO_HISTORY_FOLDER, tmp_path)
    history.move_to(NOW)
    return history


def test_it_is_small_whole_and_said_to_be_made_up(demo: DemoHistory) -> None:
    assert sum(path.stat().st_size for path in DEMO_HISTORY_FOLDER.iterdir()) <= 2_000_000
    sources, _ = read_export(DEMO_HISTORY_FOLDER)
    assert sources == {"Demo horde": True}
    info = store_info(demo.store, check=True)
    assert info.damages == ()
    assert info.sources[0].span.synthetic
    assert info.sources[0].span.polls > 3_000


def test_it_ends_now_wherever_the_clock_stands(demo: DemoHistory) -> None:
    last = datetime(2031, 3, 4, 17, 20, tzinfo=UTC)
    span = sources_in(demo.store)[0]
    assert (span.first, span.last) == (last - WEEK, last)
    before = gaps_between(demo.store, last - WEEK, last).row(0)
    assert demo.move_to(NOW + timedelta(seconds=60)) == last, "within a step nothing moves"
    for at in (NOW + timedelta(days=400, seconds=MOVED_EVERY_S), NOW - timedelta(days=3), NOW):
        moved = demo.move_to(at)
        assert timedelta(0) <= at - moved < timedelta(seconds=MOVED_EVERY_S)
        assert sources_in(demo.store)[0].last == moved
        by = moved - last
        assert gaps_between(demo.store, moved - WEEK, moved).row(0) == (before[0] + by, before[1] + by, before[2])
        assert all(moved - WEEK <= alert.since <= moved for alert in firing_alerts(demo.store))


def test_its_last_poll_is_the_demos_snapshot(demo: DemoHistory) -> None:
    now = load_recorded(DEMO_FOLDER, kind="demo")
    last = snapshot_at(demo.store, NOW, now.source)
    assert last.workers.drop(COUNTS).equals(now.workers.drop(COUNTS))
    assert now.models is not None
    assert last.models is not None
    assert last.models.equals(now.models)
    assert (last.performance, last.totals, last.modes) == (now.performance, now.totals, now.modes)
    told = changes(make_board(last, SETTINGS), make_board(now, SETTINGS))
    assert told.models == ()


def test_the_queues_lead_to_the_demos(demo: DemoHistory) -> None:
    """The poll before the last, which the replay made, is near the snapshot, which it did not: no cliff at the end."""
    now = load_recorded(DEMO_FOLDER, kind="demo").models
    end = demo.move_to(NOW)
    then = snapshot_at(demo.store, end - EVERY).models
    assert now is not None
    assert then is not None
    both = now.join(then, on="model", suffix="_then")
    assert both.height >= 19
    away = pl.col("queued_tokens") - pl.col("queued_tokens_then")
    worked = pl.col("threads") * pl.col("job_speed_tok_per_s") * EVERY.total_seconds()
    cliffs = both.filter(away.abs() > worked + 1_024)
    assert cliffs.is_empty(), "a queue moved by more than its workers do from one poll to the next"


def test_there_is_something_to_see_in_every_range(demo: DemoHistory) -> None:
    end = demo.move_to(NOW)
    week = load_span(demo.store, end - WEEK, end)
    for hours in (1, 6, 24, 168):
        told = changes_over(demo.store, end - timedelta(hours=hours), end, SETTINGS)
        assert len(told.models) >= 3, f"{hours} h"
        assert any(change.workers for change in told.models)
    states = pl.concat([frame["state"] for frame in trends(week, week.names, SETTINGS).values()])
    assert set(states.unique()) == {"full", "falling", "floor", "no_worker", "too_large", "unknown"}
    workers = workers_over(week)
    assert set(workers.filter(pl.col("gone_since").is_not_null())["name"]) == {worker.name for worker, _ in GONE}
    assert workers.filter(pl.col("periods") > 1).height >= 10
    assert {alert.rule for alert in firing_alerts(demo.store)} >= {"at_floor", "no_worker"}


def test_several_threads_may_move_and_read_it(demo: DemoHistory) -> None:
    wrong: list[object] = []

    def look(number: int) -> None:
        for step in range(6):
            demo.move_to(NOW + timedelta(seconds=MOVED_EVERY_S * (step + number)))
            span = sources_in(demo.store)[0]
            if span.first is None or span.last is None or span.last - span.first != WEEK:
                wrong.append(span)

    threads = [threading.Thread(target=look, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_program_takes_it_in_once() -> None:
    assert demo_history() is demo_history()


def test_a_folder_without_its_alerts_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in DEMO_HISTORY_FOLDER.iterdir():
        if path.name != ALERTS_FILE:
            (broken / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InputError, match=r"demo history.*alerts\.json"):
        DemoHistory(broken, tmp_path)
    assert "alerts" in json.loads((DEMO_HISTORY_FOLDER / ALERTS_FILE).read_text(encoding="utf-8"))


@pytest.mark.soak
def test_the_script_makes_the_same_files_again(tmp_path: Path) -> None:
    make(tmp_path / "again")
    for path in DEMO_HISTORY_FOLDER.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name
