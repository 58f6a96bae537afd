"""Running a sweep: the same for any number of workers and any interruption, nothing done twice, nothing done lost."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from horde_policy.errors import InputError, StoreError
from horde_policy.replay import replay
from horde_policy.replay.sent import sent_requests
from horde_policy.settings import ReplaySettings
from horde_policy.sweep.grid import Plan
from horde_policy.sweep.identity import key_of
from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.parts import Parts
from horde_policy.sweep.results import SWEEP, settings_of_row
from horde_policy.sweep.run import Sweep, SweepProgress, Threads, run_sweep
from horde_policy.sweep.stage import scenario_traffic
from tests.unit.sweep.made import busy_week, inputs_of, planned

ROOT = Path(__file__).parents[3]
GRID = "ceiling_tokens = [1024, 4096]\nfloor_tokens = [256, 512, 1024]\nload = [0.5, 1.5]\nseed = [0, 3]"


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> SweepInputs:
    return inputs_of(tmp_path_factory.mktemp("week"), *busy_week())


@pytest.fixture(scope="module")
def wanted(week: SweepInputs) -> Plan:
    return planned(GRID, week)


@pytest.fixture(scope="module")
def whole(week: SweepInputs, wanted: Plan) -> Sweep:
    return run_sweep(week, wanted)


def test_every_point_stands_under_every_scenario_and_day(whole: Sweep, wanted: Plan) -> None:
    frame = SWEEP.checked(whole.frame)
    assert frame.height == wanted.replays * 7 == 6 * 4 * 7
    assert frame.select("point", "load", "seed", "day").n_unique() == frame.height
    assert frame.filter("baseline")["point"].unique().to_list() == [ReplaySettings().digest(16)]
    assert {settings_of_row(row) for row in frame.iter_rows(named=True)} == {p.settings for p in wanted.points}
    assert whole.missing == 0
    assert whole.stamp["varied"] == ["ceiling_tokens", "floor_tokens"]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_number_of_workers_changes_nothing(week: SweepInputs, wanted: Plan, whole: Sweep, workers: int) -> None:
    assert run_sweep(week, wanted, pool=Threads(workers)).frame.equals(whole.frame)


def test_the_order_of_the_points_changes_no_row(week: SweepInputs, wanted: Plan, whole: Sweep) -> None:
    turned = replace(wanted, points=wanted.points[::-1], scenarios=wanted.scenarios[::-1])
    keys = ["point", "load", "seed", "day"]
    assert run_sweep(week, turned).frame.sort(keys).equals(whole.frame.sort(keys))


def test_a_row_is_what_the_replay_of_its_settings_gives(week: SweepInputs, wanted: Plan, whole: Sweep) -> None:
    point, scenario = wanted.points[3], wanted.scenarios[2]
    traffic = scenario_traffic(week, scenario).frame
    sent = sent_requests(replay(traffic, week.fleet, point.settings), traffic, week.fleet, point.settings)
    rows = whole.frame.filter(
        (pl.col("point") == point.name) & (pl.col("load") == scenario.load) & (pl.col("seed") == scenario.seed)
    )
    assert rows["requests"].sum() == traffic.height
    assert rows["free_tokens"].sum() == sent.filter(pl.col("outcome") == "free")["delivered_tokens"].sum()
    begin = week.trace.frame["created"].min()
    first = sent.filter((pl.col("created") - begin).dt.total_days() == 0).filter(pl.col("outcome") != "refused")
    waited = first.with_columns(
        wait=pl.when(pl.col("status") == "expired").then(point.settings.request_ttl_s).otherwise("queue_wait_s")
    ).filter(pl.col("requester") == "registered")["wait"]
    for percent in (50, 90, 99):
        exact = float(np.quantile(waited.to_numpy(), percent / 100, method="inverted_cdf"))
        found = rows.filter(pl.col("day") == 1)[f"p{percent}_wait_registered_s"][0]
        assert exact <= found <= max(exact * (1 + 1 / 64), exact + 0.1)


def test_only_the_days_asked_for_are_kept(week: SweepInputs, whole: Sweep) -> None:
    some = run_sweep(week, planned(GRID + "\ndays = [2, 5]", week)).frame
    assert some.equals(whole.frame.filter(pl.col("day").is_in([2, 5]))), "scored apart, replayed as a whole"


def test_what_is_done_is_not_done_again(week: SweepInputs, wanted: Plan, whole: Sweep, tmp_path: Path) -> None:
    parts = Parts(tmp_path / "parts")
    half = replace(wanted, points=wanted.points[:3])
    run_sweep(week, half, parts=parts)
    done: list[str] = []
    assert run_sweep(week, wanted, parts=parts, pool=Noting(Threads(), done)).frame.equals(whole.frame)
    assert len(done) == wanted.replays - half.replays
    assert run_sweep(week, wanted, parts=parts, pool=Refusing()).frame.equals(whole.frame)
    parts.clear()
    assert not parts.folder.exists()


def test_a_part_that_cannot_be_read_is_done_again(week: SweepInputs, wanted: Plan, whole: Sweep, tmp_path: Path) -> None:
    parts = Parts(tmp_path / "parts")
    run_sweep(week, wanted, parts=parts)
    files = sorted((tmp_path / "parts").glob("*.npz"))
    files[0].write_bytes(files[0].read_bytes()[:100])
    files[1].write_bytes(b"")
    files[2].write_bytes(b"not a part")
    np.savez(files[3], counters=np.zeros(3))
    done: list[str] = []
    assert run_sweep(week, wanted, parts=parts, pool=Noting(Threads(), done)).frame.equals(whole.frame)
    assert sorted(done) == [file.stem for file in files[:4]]


def test_parts_of_other_inputs_or_another_engine_are_left_alone(
    week: SweepInputs, wanted: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = key_of(week.digest(), wanted.points[0], wanted.scenarios[0])
    assert key_of("0" * 16, wanted.points[0], wanted.scenarios[0]) != own
    assert key_of(week.digest(), wanted.points[1], wanted.scenarios[0]) != own
    assert key_of(week.digest(), wanted.points[0], wanted.scenarios[1]) != own
    monkeypatch.setattr("horde_policy.sweep.identity.engine_digest", lambda: "another")
    assert key_of(week.digest(), wanted.points[0], wanted.scenarios[0]) != own


def test_a_place_that_cannot_be_written_is_an_error_and_not_a_loss(week: SweepInputs, wanted: Plan, tmp_path: Path) -> None:
    (tmp_path / "parts").write_text("a file stands here")
    with pytest.raises(StoreError, match="cannot be written"):
        run_sweep(week, wanted, parts=Parts(tmp_path / "parts"), pool=Refusing())


def test_a_cancel_keeps_what_is_done(week: SweepInputs, wanted: Plan, whole: Sweep, tmp_path: Path) -> None:
    seen: list[SweepProgress] = []
    parts = Parts(tmp_path / "parts")
    some = run_sweep(week, wanted, parts=parts, progress=seen.append, cancel=lambda: seen[-1].done >= 5, pool=Threads(1))
    assert 5 <= some.frame.height // 7 == wanted.replays - some.missing < wanted.replays
    assert some.stamp["missing"] == some.missing
    assert some.frame.equals(whole.frame.filter(pl.col("key").is_in(some.frame["key"].implode())))
    assert len(parts.keys()) >= wanted.replays - some.missing
    assert run_sweep(week, wanted, parts=parts).frame.equals(whole.frame)


def test_a_sweep_that_is_cancelled_before_it_begins_is_empty(week: SweepInputs, wanted: Plan) -> None:
    none = run_sweep(week, wanted, cancel=lambda: True, pool=Refusing())
    assert none.frame.equals(SWEEP.empty())
    assert none.missing == wanted.replays


def test_progress_only_grows_and_tells_the_time_left(week: SweepInputs, wanted: Plan) -> None:
    seen: list[SweepProgress] = []
    ticks = iter(range(10_000))
    run_sweep(week, wanted, progress=seen.append, clock=lambda: float(next(ticks)), pool=Threads(1))
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert [p.share for p in seen] == sorted(p.share for p in seen)
    assert (seen[0].done, seen[0].share, seen[0].left_s) == (0, 0.0, None)
    assert (seen[-1].done, seen[-1].share, seen[-1].left_s) == (wanted.replays, 1.0, 0.0)
    for p in seen:
        if p.left_s:
            assert p.left_s == pytest.approx(p.elapsed_s * (1 - p.share) / p.share)


def test_an_error_of_one_replay_ends_the_sweep_with_what_is_done_kept(tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, *busy_week(40))
    raw = replace(inputs, trace=replace(inputs.trace, frame=inputs.trace.frame.drop("models")))
    bad = planned("fill = ['models=any', 'models=weighted']", raw)
    parts = Parts(tmp_path / "parts")
    with pytest.raises(InputError, match="needs the counts of the public statistics"):
        run_sweep(raw, bad, parts=parts, pool=Threads(1))
    assert len(parts.keys()) == 1


KILLED = """
import sys
from pathlib import Path
from horde_policy.sweep.inputs import load_inputs
from horde_policy.sweep.parts import Parts
from horde_policy.sweep.run import run_sweep
from tests.unit.sweep.made import planned

folder = Path(sys.argv[1])
inputs = load_inputs(folder / "traffic.parquet", folder / "fleet.parquet")
run_sweep(inputs, planned(sys.argv[2], inputs), parts=Parts(folder / "parts"))
"""


def test_a_sweep_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, *busy_week(12_000))
    grid = "floor_tokens = {from = 1, to = 400, step = 1}"
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), grid], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    until = time.monotonic() + 120
    while len(Parts(tmp_path / "parts").keys()) < 10:
        assert child.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    kept = Parts(tmp_path / "parts").keys()
    assert 10 <= len(kept) < 401
    wanted = planned("floor_tokens = {from = 1, to = 40, step = 1}", inputs)
    done: list[str] = []
    again = run_sweep(inputs, wanted, parts=Parts(tmp_path / "parts"), pool=Noting(Threads(), done))
    assert again.missing == 0
    assert not kept & set(done), "nothing that was kept is done again"
    assert again.frame.equals(run_sweep(inputs, wanted).frame)


class Noting:
    """A pool that notes what it is given."""

    def __init__(self, pool: Threads, done: list[str]) -> None:
        self.pool = pool
        self.done = done

    def outcomes(self, inputs, tasks, stop, shares):  # type: ignore[no-untyped-def]
        self.done += [task.key for task in tasks]
        yield from self.pool.outcomes(inputs, tasks, stop, shares)


class Refusing:
    """A pool that must not be asked."""

    def outcomes(self, inputs, tasks, stop, shares):  # type: ignore[no-untyped-def]
        raise AssertionError(f"asked for {len(tasks)} replays")
