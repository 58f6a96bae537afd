"""Run a sweep: every point under every scenario, on all cores of this machine or on others, resumable, the same everywhere.

What a point comes to depends on nothing but inputs, settings and scenario: not on the number of workers, their order or
where they are. The rows stand in the plan's order, whoever was done first.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any, Protocol

import polars as pl

from horde_policy.errors import ReplayCancelled
from horde_policy.replay.engine import final_state
from horde_policy.sweep.counting import Outcome, outcome_of
from horde_policy.sweep.days import day_hours
from horde_policy.sweep.grid import Plan, Point, Scenario
from horde_policy.sweep.identity import engine_digest, key_of
from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.parts import Parts
from horde_policy.sweep.results import frame_of
from horde_policy.sweep.stage import Stage, day_starts, model_groups, stage_of
from horde_policy.sweep.unserved import UNSERVED, unserved_shares

__all__ = ["Done", "Pool", "Sweep", "SweepProgress", "Task", "Threads", "run_sweep"]

TICK_S = 0.2
"""How often progress is told and a cancel is heard while nothing ends."""


@dataclass(frozen=True, slots=True)
class Task:
    """One replay that is to be done."""

    key: str
    scenario: Scenario
    point: Point


Done = tuple[Task, Outcome]


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """How far a sweep is: replays done of how many, the share of the work, and the time left (null: not known yet)."""

    done: int
    total: int
    share: float
    elapsed_s: float
    left_s: float | None


class Pool(Protocol):
    """Who does the replays."""

    def outcomes(
        self, inputs: SweepInputs, tasks: Sequence[Task], stop: Event, shares: dict[str, float]
    ) -> Iterator[Done | None]:
        """Yield what is done as it is done, in any order, and null now and then while nothing is.

        ``stop`` ends it: what is under way is dropped. ``shares`` may be told how far the replays under way are.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What a sweep found.

    Attributes
    ----------
    frame
        Frame ``SWEEP``: every point that was tried, in the plan's order.
    stamp
        Where it comes from: inputs, engine, grid, dropped combinations, model groups, what is missing.
    missing
        Replays that were not done, because the sweep was cancelled.
    """

    frame: pl.DataFrame
    stamp: Mapping[str, Any]
    missing: int


class _Stages:
    """The scenarios that are under way: each prepared by the first who needs it, dropped after its last task."""

    def __init__(self, inputs: SweepInputs, tasks: Sequence[Task]) -> None:
        self.inputs = inputs
        self.lock = Lock()
        self.locks = {task.scenario: Lock() for task in tasks}
        self.left = {scenario: sum(task.scenario == scenario for task in tasks) for scenario in self.locks}
        self.stages: dict[Scenario, Stage] = {}

    def get(self, scenario: Scenario) -> Stage:
        with self.locks[scenario]:
            if scenario not in self.stages:
                self.stages[scenario] = stage_of(self.inputs, scenario)
            return self.stages[scenario]

    def finished(self, scenario: Scenario) -> None:
        with self.lock:
            self.left[scenario] -= 1
            if not self.left[scenario]:
                self.stages.pop(scenario, None)


class Threads:
    """All cores of this machine: threads, since the engine holds no lock while it runs.

    Parameters
    ----------
    workers
        How many at once; null for one a core.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))

    def outcomes(
        self, inputs: SweepInputs, tasks: Sequence[Task], stop: Event, shares: dict[str, float]
    ) -> Iterator[Done | None]:
        """Yield what is done as it is done."""
        stages = _Stages(inputs, tasks)

        def one(task: Task) -> Outcome:
            if stop.is_set():
                raise ReplayCancelled("the sweep was cancelled before this replay began")
            stage = stages.get(task.scenario)
            settings = task.point.settings

            def note(share: float) -> None:
                shares[task.key] = share

            state = final_state(stage.world, settings, progress=note, cancel=stop.is_set)
            outcome = outcome_of(stage, state)
            stages.finished(task.scenario)
            return outcome

        with ThreadPoolExecutor(self.workers, thread_name_prefix="sweep") as pool:
            pending: dict[Future[Outcome], Task] = {pool.submit(one, task): task for task in tasks}
            try:
                while pending and not stop.is_set():
                    ended, _ = wait(pending, timeout=TICK_S, return_when=FIRST_COMPLETED)
                    for future in ended:
                        task = pending.pop(future)
                        if not (stop.is_set() and isinstance(future.exception(), ReplayCancelled)):
                            yield task, future.result()
                    if not ended:
                        yield None
            finally:
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)


def run_sweep(
    inputs: SweepInputs,
    plan: Plan,
    *,
    pool: Pool | None = None,
    parts: Parts | None = None,
    progress: Callable[[SweepProgress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Sweep:
    """Replay every point of the plan under every scenario; return all of it.

    Parameters
    ----------
    inputs
        Requests and fleet.
    plan
        From :func:`horde_policy.sweep.stage.check_plan`.
    pool
        Who does it; null for all cores of this machine.
    parts
        Where finished replays are kept; what is there already is not done again. Null: nowhere.
    progress
        Is told how far it is, at least every 0.2 s.
    cancel
        Is asked as often whether to stop; what is done is kept and returned.
    clock
        Seconds that only go forward.

    Returns
    -------
    Sweep
        The same for any pool, number of workers, and interruptions before.

    Raises
    ------
    InputError
        A fill rule needs what is not there.
    StoreError
        A part cannot be written.
    """
    digest = inputs.digest()
    tasks = [Task(key_of(digest, p, s), s, p) for s in plan.scenarios for p in plan.points]
    done: dict[str, Outcome] = {}
    if parts is not None:
        parts.prepare()
        kept = parts.keys()
        found = ((task.key, parts.load(task.key)) for task in tasks if task.key in kept)
        done = {key: outcome for key, outcome in found if outcome is not None}
    wanted = [task for task in tasks if task.key not in done]
    watch = _Watch(tasks, wanted, progress, clock)
    stop = Event()
    watch.tell(len(done))
    if wanted and not (cancel is not None and cancel()):
        for each in (pool or Threads()).outcomes(inputs, wanted, stop, watch.shares):
            if each is not None:
                task, outcome = each
                done[task.key] = outcome
                watch.finished(task)
                if parts is not None:
                    parts.keep(task.key, outcome)
            watch.tell(len(done))
            if cancel is not None and cancel():
                stop.set()
    return _assembled(inputs, digest, plan, tasks, done)


class _Watch:
    """Tells how far a sweep is; the work of a replay is taken as its load."""

    def __init__(
        self,
        tasks: Sequence[Task],
        wanted: Sequence[Task],
        progress: Callable[[SweepProgress], None] | None,
        clock: Callable[[], float],
    ) -> None:
        self.progress = progress
        self.clock = clock
        self.total = len(tasks)
        self.loads = {task.key: task.scenario.load for task in wanted}
        self.work = sum(self.loads.values())
        self.behind = sum(task.scenario.load for task in tasks) - self.work
        self.finished_work = 0.0
        self.shares: dict[str, float] = {}
        self.began = clock()

    def finished(self, task: Task) -> None:
        self.finished_work += self.loads[task.key]
        self.shares.pop(task.key, None)

    def tell(self, done: int) -> None:
        if self.progress is None:
            return
        under_way = sum(self.loads[key] * share for key, share in list(self.shares.items()))
        now_done = min(self.finished_work + under_way, self.work)
        elapsed = self.clock() - self.began
        left = elapsed * (self.work - now_done) / now_done if now_done > 0 else None
        everything = self.behind + self.work
        share = (self.behind + now_done) / everything if everything else 1.0
        self.progress(SweepProgress(done, self.total, share, elapsed, 0.0 if done == self.total else left))


def _assembled(inputs: SweepInputs, digest: str, plan: Plan, tasks: Sequence[Task], done: Mapping[str, Outcome]) -> Sweep:
    starts = day_starts(inputs).to_list()
    rows = [(task.key, task.point, task.scenario, done[task.key]) for task in tasks if task.key in done]
    stamp = {
        "kind": "sweep",
        "inputs": digest,
        "engine": engine_digest(),
        "synthetic": inputs.synthetic,
        "synthetic_traffic": inputs.synthetic_traffic,
        "reconstruction": inputs.reconstruction,
        "trace": inputs.trace.name,
        "base_load": inputs.base_load,
        "names_everything": inputs.names_everything,
        "dated": inputs.trace.dated,
        "traffic": dict(inputs.traffic_stamp),
        "fleet": dict(inputs.fleet_stamp),
        "varied": list(plan.varied),
        "points": len(plan.points),
        "scenarios": len(plan.scenarios),
        "seeds": len({scenario.seed for scenario in plan.scenarios}),
        "dropped": dict(plan.dropped),
        "missing": len(tasks) - len(rows),
        "models": list(model_groups(inputs.fleet)),
        UNSERVED: unserved_shares(inputs, (scenario.fill for scenario in plan.scenarios)),
    }
    frame = frame_of(rows, day_from=starts, day_hours=day_hours(inputs), days=plan.days)
    return Sweep(frame=frame, stamp=stamp, missing=len(tasks) - len(rows))
