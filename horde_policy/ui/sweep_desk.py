"""Sweeps in threads, shared by all viewers: what runs tells how far it is, what is done is kept and never done again.

A sweep is named by what it was made of, so whoever opens its link sees it run, or its result. One runs at a time, on all
cores; the engine does not hold the interpreter's lock, so pages stay quick meanwhile.
"""

import hashlib
import logging
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import streamlit as st

from horde_policy.errors import HordePolicyError, InputError
from horde_policy.sources.demo import BUNDLED_FOLDER
from horde_policy.sweep.files import read_sweep
from horde_policy.sweep.grid import Plan
from horde_policy.sweep.identity import engine_digest
from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.judge import Judgement, Question, judge
from horde_policy.sweep.proposal import Proposal, propose
from horde_policy.sweep.run import Sweep, SweepProgress, run_sweep
from horde_policy.sweep.shelf import Shelf
from horde_policy.sweep.warm import warm_up_sweep

__all__ = ["DEMO", "DEMO_FILE", "SweepDesk", "SweepJob", "run_key", "sweep_desk"]

_log = logging.getLogger(__name__)

DEMO: Final = "demo"
DEMO_FILE: Final = BUNDLED_FOLDER / "sweep" / "demo.parquet"
UPLOAD: Final = "upload-"
RUN: Final = "run-"

SWEEPS_SETTING = "HORDE_POLICY_SWEEPS"
KEPT_SWEEPS = 8
KEPT_JUDGEMENTS = 32
KEPT_JOBS = 100

Make = Callable[[], tuple[SweepInputs, Plan, dict[str, object]]]
"""Makes what a sweep replays, its plan, and what goes into the stamp beside them."""


@dataclass(slots=True)
class SweepJob:
    """A sweep that is being made: how far it is, and why it ended without a result, if it did."""

    key: str
    stage: str = "waiting for another sweep to end"
    progress: SweepProgress | None = None
    error: str | None = None
    done: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)


def run_key(*parts: str) -> str:
    """Return the key of a sweep made of these parts by this version of the engine.

    >>> run_key("a", "b") == run_key("a", "b"), run_key("a", "b") == run_key("ab", "")
    (True, False)
    """
    text = "\\x00".join((*parts, engine_digest()))
    return RUN + hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(slots=True)
class SweepDesk:
    """What all viewers share: the sweeps that run, those that are kept, and what was judged of them. Guarded by its lock."""

    shelf: Shelf
    jobs: OrderedDict[str, SweepJob] = field(default_factory=OrderedDict)
    sweeps: OrderedDict[str, Sweep] = field(default_factory=OrderedDict)
    judged: OrderedDict[tuple[str, int, str], Judgement] = field(default_factory=OrderedDict)
    proposals: OrderedDict[tuple[int, str | None], tuple[Judgement, Proposal]] = field(default_factory=OrderedDict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    queue: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "sweep"))

    def start(self, key: str, make: Make) -> SweepJob:
        """Start the sweep of a key, or go on with it; one that runs already goes on.

        Parameters
        ----------
        key
            From :func:`run_key`.
        make
            Makes the inputs and the plan; called in the job's thread.
        """
        with self.lock:
            job = self.jobs.get(key)
            if job is not None and not job.done.is_set():
                return job
            job = SweepJob(key)
            self.jobs[key] = job
            self.jobs.move_to_end(key)
            while len(self.jobs) > KEPT_JOBS:
                self.jobs.popitem(last=False)[1].cancelled.set()
        self.queue.submit(self._work, job, make).add_done_callback(_told_if_failed)
        return job

    def job(self, key: str) -> SweepJob | None:
        """Return the job of a key, done or not; null if it was never started here."""
        with self.lock:
            return self.jobs.get(key)

    def sweep(self, key: str) -> Sweep | None:
        """Return the sweep of a key; null if there is none, or not yet.

        Raises
        ------
        InputError, FrameError, ConfigError
            The bundled file breaks a rule.
        """
        with self.lock:
            if key in self.sweeps:
                self.sweeps.move_to_end(key)
                return self.sweeps[key]
        found = read_sweep(DEMO_FILE) if key == DEMO else self.shelf.load(key) if key.startswith(RUN) else None
        if found is not None:
            self._keep(key, found)
        return found

    def add(self, name: str, content: bytes) -> str:
        """Read an uploaded sweep file, keep it, and return its key: equal content has an equal key.

        Raises
        ------
        InputError, FrameError, ConfigError
            It is no sweep file, or breaks a rule: nothing is kept.
        """
        found = read_sweep(content, name)
        if found.frame.is_empty():
            raise InputError("sweep file", "", name, "must hold at least one finished replay")
        key = UPLOAD + hashlib.blake2b(content, digest_size=12).hexdigest()
        self._keep(key, found)
        return key

    def forget(self, key: str) -> None:
        """Drop an uploaded sweep and what was judged of it; one that is not kept is none."""
        with self.lock:
            self.sweeps.pop(key, None)
            for place in [place for place in self.judged if place[0] == key]:
                del self.judged[place]

    def judgement(self, key: str, sweep: Sweep, question: Question, name: str) -> Judgement:
        """Return what a sweep answers to a question; ``name`` names the question. Computed once for all viewers.

        Raises
        ------
        InputError
            The sweep cannot answer it.
        """
        place = (key, sweep.frame.height, name)
        with self.lock:
            known = self.judged.get(place)
            if known is not None:
                self.judged.move_to_end(place)
                return known
        made = judge(sweep.frame, question)
        with self.lock:
            self.judged[place] = made
            while len(self.judged) > KEPT_JUDGEMENTS:
                self.judged.popitem(last=False)
        return made

    def proposal(self, judgement: Judgement, sweep: Sweep, point: str | None) -> Proposal | None:
        """Return the proposal for a point, or for the recommended one (null); null where there is none to make."""
        if judgement.baseline is None or (point is None and judgement.recommended is None):
            return None
        place = (id(judgement), point or judgement.recommended)
        with self.lock:
            known = self.proposals.get(place)
            if known is not None and known[0] is judgement:  # an id may be given again when its owner is gone
                self.proposals.move_to_end(place)
                return known[1]
        made = propose(judgement, sweep.stamp, point)
        with self.lock:
            self.proposals[place] = (judgement, made)
            while len(self.proposals) > KEPT_JUDGEMENTS:
                self.proposals.popitem(last=False)
        return made

    def _keep(self, key: str, sweep: Sweep) -> None:
        with self.lock:
            self.sweeps[key] = sweep
            self.sweeps.move_to_end(key)
            while len(self.sweeps) > KEPT_SWEEPS:
                self.sweeps.popitem(last=False)

    def _work(self, job: SweepJob, make: Make) -> None:
        try:
            if not job.cancelled.is_set():
                self._run(job, make)
        except HordePolicyError as error:
            job.error = str(error)
        except MemoryError:
            job.error = "this sweep needs more memory than the server has; choose less traffic or fewer points"
        finally:
            if job.error is None and not job.cancelled.is_set() and job.key not in self.sweeps:
                job.error = "the sweep ended by a fault of the program, which the server's log names"
            job.done.set()

    def _run(self, job: SweepJob, make: Make) -> None:
        job.stage = "reading the traffic"
        inputs, wanted, beside = make()
        parts = self.shelf.prepare()
        job.stage = "compiling the engine and its loops, once after an installation: half a minute, on a slow machine two"
        warm_up_sweep()
        job.stage = "replaying"

        def told(progress: SweepProgress) -> None:
            job.progress = progress

        found = run_sweep(inputs, wanted, parts=parts, progress=told, cancel=job.cancelled.is_set)
        found = Sweep(frame=found.frame, stamp=dict(found.stamp) | beside, missing=found.missing)
        self._keep(job.key, found)
        self.shelf.keep(job.key, found)


def _told_if_failed(future: "Future[None]") -> None:
    """Log what a job's thread raised: nobody waits for its result."""
    error = None if future.cancelled() else future.exception()
    if error is not None:
        _log.error("a sweep failed", exc_info=error)


def _close(desk: SweepDesk) -> None:
    for job in list(desk.jobs.values()):
        job.cancelled.set()
    desk.queue.shutdown(wait=False, cancel_futures=True)


def sweeps_folder() -> Path:
    """Return where sweeps are kept; without a setting a temporary folder of this user and this installation of the program.

    Two checkouts of one user have two folders, so that neither shows, or clears away, what the other has made.
    """
    configured = os.environ.get(SWEEPS_SETTING, "").strip()
    if configured:
        return Path(configured)
    installed = hashlib.sha256(os.fsencode(BUNDLED_FOLDER.resolve())).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"horde-policy-sweeps-{os.getuid()}-{installed}"


@st.cache_resource(show_spinner=False, on_release=_close)
def sweep_desk() -> SweepDesk:
    """Return the one desk of the process; its folder is that of :func:`sweeps_folder`."""
    return SweepDesk(Shelf(sweeps_folder()))
