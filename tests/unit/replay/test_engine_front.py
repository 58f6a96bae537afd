"""The engine's front: progress, cancelling, worlds that are shared, and frames in any shape that the contract allows."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import horde_policy.replay
from horde_policy.errors import ReplayCancelled, ReplayError
from horde_policy.frames.runs import RUNS
from horde_policy.replay import engine, kernel, prepare, replay, room, run, warm_up
from horde_policy.settings import AllowanceSettings, ReplaySettings
from tests.oracle.worlds import crowded_world, random_world
from tests.unit.replay.small_worlds import fleet_of, request, traffic_of, worker


def test_progress_rises_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "EVENTS_AT_A_TIME", 20)
    traffic, fleet, settings = crowded_world(1)
    told: list[float] = []
    replay(traffic, fleet, settings, progress=told.append)
    assert len(told) > 5
    assert told == sorted(told)
    assert (told[0] >= 0.0, told[-1]) == (True, 1.0)


def test_a_cancelled_replay_stops_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "EVENTS_AT_A_TIME", 20)
    traffic, fleet, settings = crowded_world(1)
    stop = threading.Event()
    told: list[float] = []

    def progress(share: float) -> None:
        told.append(share)
        stop.set()

    with pytest.raises(ReplayCancelled, match="cancelled"):
        replay(traffic, fleet, settings, progress=progress, cancel=stop.is_set)
    assert len(told) == 1


def test_a_replay_that_is_not_cancelled_is_not_changed_by_being_asked() -> None:
    traffic, fleet, settings = random_world(3)
    assert_frame_equal(replay(traffic, fleet, settings, cancel=lambda: False), replay(traffic, fleet, settings))


def test_one_world_serves_many_settings_at_the_same_time() -> None:
    traffic, fleet, _ = crowded_world(2)
    world = prepare(traffic, fleet)
    choices = [
        ReplaySettings(),
        ReplaySettings(ceiling_tokens=600, client="return"),
        ReplaySettings(rule="old", client="resend"),
        ReplaySettings(rule="jobs", count_threads=True),
    ]
    alone = [replay(traffic, fleet, settings) for settings in choices]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda settings: run(world, settings), choices * 3))
    for k, frame in enumerate(together):
        assert_frame_equal(frame, alone[k % 4])


def test_plain_allowance_settings_are_lifted() -> None:
    traffic, fleet, _ = random_world(5)
    plain = AllowanceSettings(ceiling_tokens=1000, floor_tokens=100)
    assert_frame_equal(replay(traffic, fleet, plain), replay(traffic, fleet, ReplaySettings.lifted(plain)))


def test_the_order_of_the_traffic_rows_decides_nothing_but_ties() -> None:
    """With instants all different, shuffled rows end as the sorted ones do."""
    traffic, fleet, settings = crowded_world(4)
    apart = pl.Series(np.arange(traffic.height) * 1_000).cast(pl.Duration("us"))
    traffic = traffic.with_columns(pl.col("created") + apart, request_id=pl.int_range(pl.len()).cast(pl.String))
    settings = settings.changed(client="leave")
    shuffled = traffic.sample(fraction=1.0, shuffle=True, seed=7)
    assert shuffled["request_id"].to_list() != traffic["request_id"].to_list()
    run = replay(shuffled, fleet, settings)
    assert run["request_id"].to_list() == shuffled["request_id"].to_list()
    assert_frame_equal(run.sort("request_id"), replay(traffic, fleet, settings).sort("request_id"))


def test_empty_frames_give_an_empty_run() -> None:
    assert_frame_equal(replay(traffic_of(), fleet_of(), ReplaySettings()), RUNS.empty())
    assert replay(traffic_of(), fleet_of(worker()), ReplaySettings()).height == 0
    assert replay(traffic_of(request()), fleet_of(), ReplaySettings())["status"].to_list() == ["expired"]


def test_chunked_frames_are_replayed_as_whole_ones() -> None:
    traffic, fleet, settings = crowded_world(6)
    chunked = pl.concat([traffic[:7], traffic[7:50], traffic[50:]], rechunk=False)
    assert chunked.n_chunks() == 3
    assert_frame_equal(replay(chunked, fleet, settings), replay(traffic, fleet, settings))


def test_the_inputs_are_left_as_they_were() -> None:
    traffic, fleet, settings = random_world(9)
    before = traffic.clone(), fleet.clone()
    replay(traffic, fleet, settings.changed(client="return"))
    assert_frame_equal(traffic, before[0])
    assert_frame_equal(fleet, before[1])


def test_the_jobs_rule_refuses_more_requests_than_it_can_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_COUNTED", 1)
    traffic = traffic_of(request(), request())
    with pytest.raises(ReplayError, match="at most 1 requests in one replay, and there are 2"):
        replay(traffic, fleet_of(worker()), ReplaySettings(rule="jobs"))
    assert replay(traffic, fleet_of(worker()), ReplaySettings()).height == 2


def test_a_worker_may_have_any_number_of_threads() -> None:
    run = replay(traffic_of(*[request(0)] * 5), fleet_of(worker(threads=2**31 - 1)), ReplaySettings(rule="old"))
    assert run["queue_wait_s"].to_list() == [0.0] * 5


def test_a_job_may_outlast_the_calendar() -> None:
    run = replay(traffic_of(request()), fleet_of(worker(speed=1e-300, slow=False)), ReplaySettings())
    assert run["finished"].to_physical().to_list() == [2**63 - 1]


def test_warming_up_runs_in_a_thread() -> None:
    thread = threading.Thread(target=warm_up)
    thread.start()
    thread.join(timeout=300)
    assert not thread.is_alive()


def test_every_kernel_source_is_part_of_the_cache_key() -> None:
    folder = Path(horde_policy.replay.__file__).parent
    assert sorted(path.name for path in folder.glob("kernel*.py")) == sorted(kernel.SOURCES)


def test_the_packages_names_are_there_and_load_numba_only_when_used() -> None:
    assert {name: getattr(horde_policy.replay, name).__name__ for name in horde_policy.replay.__all__} == {
        name: name for name in ("World", "prepare", "replay", "run", "warm_up")
    }
    with pytest.raises(AttributeError, match="has no attribute 'replays'"):
        horde_policy.replay.replays  # noqa: B018
    script = "import sys, horde_policy.replay; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
