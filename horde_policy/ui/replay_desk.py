"""Replays in threads, shared by all viewers: what is computed once is kept, what takes long tells how far it is.

A page asks for a set of runs and waits a moment. What comes within it is shown at once; for what takes longer the page shows
how far it is, and can cancel. The engine does not hold the interpreter's lock, so pages stay quick meanwhile.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import polars as pl
import streamlit as st

from horde_policy.errors import HordePolicyError, ReplayCancelled
from horde_policy.replay.classes import World, prepare
from horde_policy.replay.engine import run as run_engine
from horde_policy.replay.engine import warm_up
from horde_policy.replay.fill import Traffic
from horde_policy.replay.fleets import Fleet
from horde_policy.replay.sent import sent_requests
from horde_policy.replay.unserved import unserved
from horde_policy.ui.replay_inputs import Library
from horde_policy.views.replay_results import Compared, Scored, compared, scored
from horde_policy.views.replay_runs import Run

__all__ = ["Desk", "Inputs", "Job", "Ran", "Replayed", "desk"]

_log = logging.getLogger(__name__)

KEPT_INPUTS = 4
KEPT_ROWS = 6_000_000
"""Rows of runs that are kept for files and further comparisons; at some 200 bytes each."""
KEPT_VIEWERS = 200
AT_ONCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Traffic and fleet, ready to be replayed, the key that names them, and how many requests no worker serves a model of."""

    key: str
    traffic: Traffic
    fleet: Fleet
    world: World
    unserved: int = 0


@dataclass(frozen=True, slots=True)
class Ran:
    """One run: each request with what became of it, and the figures."""

    sent: pl.DataFrame
    scored: Scored


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Everything a page shows: the inputs, the runs in their order, and each letter's differences from the baseline."""

    inputs: Inputs
    runs: tuple[tuple[Run, Ran], ...]
    changes: Mapping[str, Compared]

    @property
    def scores(self) -> tuple[tuple[Run, Scored], ...]:
        """The runs with their figures."""
        return tuple((run, ran.scored) for run, ran in self.runs)


@dataclass(slots=True)
class Job:
    """A set of runs that is being made: how far it is, and at last what came of it or why nothing did."""

    key: str
    stage: str = "waiting for another replay to end"
    shares: dict[str, float] = field(default_factory=dict)
    result: Replayed | None = None
    error: str | None = None
    done: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def share(self) -> float:
        """How far the runs are, from 0 to 1."""
        return min(1.0, sum(self.shares.values()) / len(self.shares)) if self.shares else 0.0


@dataclass(slots=True)
class Desk:
    """What all viewers share: the traces read, the inputs prepared, the runs made; guarded by its lock."""

    library: Library = field(default_factory=Library)
    inputs: OrderedDict[str, Inputs] = field(default_factory=OrderedDict)
    runs: OrderedDict[tuple[str, str], Ran] = field(default_factory=OrderedDict)
    changes: OrderedDict[tuple[str, str, str], Compared] = field(default_factory=OrderedDict)
    jobs: OrderedDict[str, Job] = field(default_factory=OrderedDict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    warming: threading.Lock = field(default_factory=threading.Lock)
    warm: threading.Event = field(default_factory=threading.Event)
    queue: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(AT_ONCE, "replay"))

    def ask(self, viewer: str, key: str, make: Callable[[], tuple[Traffic, Fleet]], runs: Sequence[Run]) -> Job:
        """Return the viewer's job for these inputs and runs; one for others is cancelled, an equal one goes on.

        Parameters
        ----------
        viewer
            Who asks: each has one job at a time.
        key
            Names the traffic and the fleet.
        make
            Makes them; called in the job's thread, and only if they are not kept.
        runs
            The baseline first.
        """
        name = "|".join([key, *(run.digest for run in runs)])
        with self.lock:
            current = self.jobs.get(viewer)
            if current is not None and current.key == name:
                return current
            if current is not None:
                current.cancelled.set()
            job = Job(name)
            self.jobs[viewer] = job
            self.jobs.move_to_end(viewer)
            while len(self.jobs) > KEPT_VIEWERS:
                self.jobs.popitem(last=False)[1].cancelled.set()
        self.queue.submit(self._work, job, key, make, tuple(runs)).add_done_callback(_told_if_failed)
        return job

    def forget(self, viewer: str) -> None:
        """Cancel the viewer's job and drop it, so that the same can be asked for again."""
        with self.lock:
            job = self.jobs.pop(viewer, None)
        if job is not None:
            job.cancelled.set()

    def _work(self, job: Job, key: str, make: Callable[[], tuple[Traffic, Fleet]], runs: tuple[Run, ...]) -> None:
        try:
            if not job.cancelled.is_set():
                job.result = self._replayed(job, key, make, runs)
        except ReplayCancelled:
            job.cancelled.set()
        except HordePolicyError as error:
            job.error = str(error)
        except MemoryError:
            job.error = "this replay needs more memory than the server has; choose less traffic"
        finally:
            if job.result is None and job.error is None and not job.cancelled.is_set():
                job.error = "the replay ended by a fault of the program, which the server's log names"
            job.done.set()

    def _replayed(self, job: Job, key: str, make: Callable[[], tuple[Traffic, Fleet]], runs: tuple[Run, ...]) -> Replayed:
        job.stage = "reading the traffic and filling in what it does not say"
        inputs = self._prepared(key, make)
        if not self.warm.is_set():
            job.stage = "compiling the engine, once after an installation: half a minute, on a slow machine two"
            with self.warming:
                warm_up()
                self.warm.set()
        job.stage = f"replaying {inputs.world.requests:,} requests"
        job.shares = dict.fromkeys((run.digest for run in runs), 0.0)
        with ThreadPoolExecutor(AT_ONCE) as side_by_side:
            made = list(side_by_side.map(lambda run: self._ran(job, inputs, run), runs))
        job.stage = "comparing request by request"
        changes = {
            run.letter: self._compared(inputs.key, runs[0].digest, run.digest, made[0], ran)
            for run, ran in zip(runs[1:], made[1:], strict=True)
        }
        return Replayed(inputs=inputs, runs=tuple(zip(runs, made, strict=True)), changes=changes)

    def _prepared(self, key: str, make: Callable[[], tuple[Traffic, Fleet]]) -> Inputs:
        with self.lock:
            if key in self.inputs:
                self.inputs.move_to_end(key)
                return self.inputs[key]
        traffic, fleet = make()
        lost = unserved(traffic.frame, fleet.frame)
        made = Inputs(key=key, traffic=traffic, fleet=fleet, world=prepare(traffic.frame, fleet.frame), unserved=lost)
        with self.lock:
            self.inputs[key] = made
            while len(self.inputs) > KEPT_INPUTS:
                self.inputs.popitem(last=False)
        return made

    def _ran(self, job: Job, inputs: Inputs, run: Run) -> Ran:
        name = (inputs.key, run.digest)
        with self.lock:
            known = self.runs.get(name)
            if known is not None:
                self.runs.move_to_end(name)
        if known is None:

            def told(share: float) -> None:
                job.shares[run.digest] = 0.9 * share

            frame = run_engine(inputs.world, run.settings, progress=told, cancel=job.cancelled.is_set)
            sent = sent_requests(frame, inputs.traffic.frame, inputs.fleet.frame, run.settings)
            known = Ran(sent, scored(sent, inputs.traffic.frame, run.settings))
            with self.lock:
                self.runs[name] = known
                self._drop_old_runs()
        job.shares[run.digest] = 1.0
        return known

    def _drop_old_runs(self) -> None:
        rows = sum(ran.sent.height for ran in self.runs.values())
        while rows > KEPT_ROWS and len(self.runs) > 1:
            _, dropped = self.runs.popitem(last=False)
            rows -= dropped.sent.height

    def _compared(self, key: str, before: str, after: str, baseline: Ran, ran: Ran) -> Compared:
        name = (key, before, after)
        with self.lock:
            known = self.changes.get(name)
        if known is None:
            known = compared(baseline.sent, ran.sent)
            with self.lock:
                self.changes[name] = known
                while len(self.changes) > KEPT_VIEWERS:
                    self.changes.popitem(last=False)
        return known


def _told_if_failed(future: "Future[None]") -> None:
    """Log what a job's thread raised: nobody waits for its result."""
    error = None if future.cancelled() else future.exception()
    if error is not None:
        _log.error("a replay failed", exc_info=error)


def _close(desk: Desk) -> None:
    for job in list(desk.jobs.values()):
        job.cancelled.set()
    desk.queue.shutdown(wait=False, cancel_futures=True)


@st.cache_resource(show_spinner=False, on_release=_close)
def desk() -> Desk:
    """Return the one desk of the process."""
    return Desk()
