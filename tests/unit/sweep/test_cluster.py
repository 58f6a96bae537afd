"""The same sweep on a real Dask scheduler with worker processes of its own: equal to the bit, whoever dies on the way."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
import pytest

from horde_policy.errors import ConfigError, ReplayError, SourceUnavailable
from horde_policy.sweep.cluster import Cluster
from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.parts import Parts
from horde_policy.sweep.run import SweepProgress, run_sweep
from tests.unit.sweep.made import busy_week, inputs_of, planned

ROOT = Path(__file__).parents[3]
GRID = "floor_tokens = {from = 1, to = 12, step = 1}\nload = [0.5, 1.5]\nseed = [0, 1]"
PATIENCE_S = 60.0


@dataclass
class Processes:
    """A scheduler and its workers, each a process of its own on loopback."""

    folder: Path
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        place = ["--scheduler-file", str(self.folder / "scheduler.json"), "--host", "127.0.0.1", "--no-dashboard"]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *command, *place],
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__WORKER__HEARTBEAT": "1s"},
                stdout=log,
                stderr=log,
            )

    def start_scheduler(self) -> None:
        self.scheduler = self.start("distributed.cli.dask_scheduler", "--port", "0")
        until = time.monotonic() + PATIENCE_S
        while not (self.folder / "scheduler.json").exists():
            assert self.scheduler.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.05)

    def start_worker(self) -> subprocess.Popen[bytes]:
        self.workers.append(self.start("distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1"))
        return self.workers[-1]

    @property
    def address(self) -> str:
        found = pl.read_json(self.folder / "scheduler.json", schema={"address": pl.String})["address"][0]
        return str(found)

    def wait_for_workers(self, count: int) -> None:
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=PATIENCE_S)

    def stop(self) -> None:
        for process in [*self.workers, *filter(None, [self.scheduler])]:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path)
    started.start_scheduler()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> SweepInputs:
    return inputs_of(tmp_path_factory.mktemp("week"), *busy_week(4000))


def when_done(count: int, act: Callable[[], object]) -> Callable[[SweepProgress], None]:
    """Return a progress sink that acts once so many replays are done."""
    acted: list[bool] = []

    def note(progress: SweepProgress) -> None:
        if progress.done >= count and not acted:
            acted.append(True)
            act()

    return note


def test_two_worker_processes_give_the_same_rows_and_one_that_is_killed_loses_nothing(
    processes: Processes, week: SweepInputs, tmp_path: Path
) -> None:
    wanted = planned(GRID, week)
    local = run_sweep(week, wanted).frame
    first, _ = processes.start_worker(), processes.start_worker()
    processes.wait_for_workers(2)
    parts = Parts(tmp_path / "parts")
    swept = run_sweep(week, wanted, pool=Cluster(processes.address), parts=parts, progress=when_done(10, first.kill))
    assert first.wait() != 0, "it was killed half-way"
    assert swept.missing == 0
    assert swept.frame.equals(local)
    assert len(parts.keys()) == wanted.replays

    # a fill rule that needs what is not there is told as on one machine, and no worker dies of it
    lacking = replace(week, trace=replace(week.trace, frame=week.trace.frame.drop("models")))
    with pytest.raises(ReplayError, match="a Dask worker says: fill rule, models: 'weighted' needs the counts"):
        run_sweep(lacking, planned("fill = 'models=weighted'", lacking), pool=Cluster(processes.address))


@pytest.mark.soak
def test_whoever_comes_after_all_workers_are_gone_goes_on(processes: Processes, week: SweepInputs) -> None:
    wanted = planned(GRID, week)
    for _ in range(2):
        processes.start_worker()
    processes.wait_for_workers(2)

    def nobody_left() -> None:
        for worker in processes.workers:
            worker.kill()
        processes.start_worker()

    swept = run_sweep(week, wanted, pool=Cluster(processes.address), progress=when_done(5, nobody_left))
    assert [worker.wait() != 0 for worker in processes.workers[:2]] == [True, True], "the inputs went with them"
    assert swept.frame.equals(run_sweep(week, wanted).frame)


def test_a_cancel_and_a_lost_scheduler_keep_what_is_done(
    processes: Processes, week: SweepInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horde_policy.sweep.cluster.REACH_S", 3.0)
    processes.start_worker()
    processes.wait_for_workers(1)
    wanted = planned("floor_tokens = {from = 1, to = 300, step = 1}", week)
    parts = Parts(tmp_path / "parts")
    seen: list[SweepProgress] = []
    some = run_sweep(
        week, wanted, pool=Cluster(processes.address), parts=parts, progress=seen.append, cancel=lambda: seen[-1].done >= 5
    )
    assert 0 < some.missing < wanted.replays
    kept = len(parts.keys())
    assert kept >= 5
    assert processes.scheduler is not None
    with pytest.raises(SourceUnavailable, match=r"Dask scheduler tcp://127.0.0.1:.* is lost"):
        run_sweep(
            week, wanted, pool=Cluster(processes.address), parts=parts, progress=when_done(kept + 5, processes.scheduler.kill)
        )
    assert len(parts.keys()) >= kept + 5


def test_a_scheduler_that_is_not_there_is_named(week: SweepInputs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horde_policy.sweep.cluster.REACH_S", 0.5)
    with pytest.raises(SourceUnavailable, match=r"Dask scheduler tcp://127.0.0.1:9: cannot be reached"):
        run_sweep(week, planned("floor_tokens = 256", week), pool=Cluster("tcp://127.0.0.1:9"))
    with pytest.raises(ConfigError, match="setting dask: 'nonsense' must be a scheduler's address with its port"):
        Cluster("nonsense")


def test_a_scheduler_without_workers_is_named(processes: Processes, week: SweepInputs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horde_policy.sweep.cluster.REACH_S", 1.0)
    with pytest.raises(SourceUnavailable, match="has no worker"):
        run_sweep(week, planned("floor_tokens = 256", week), pool=Cluster(processes.address))


def test_without_the_package_the_option_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=r"setting dask: .* needs the package distributed: .*requirements-dask.txt"):
        Cluster("tcp://127.0.0.1:8786")
