"""Run a sweep's replays on a Dask cluster: the same outcomes to the bit, and nothing lost with a worker that dies.

Every worker gets the inputs once and prepares the scenarios that it is given; what comes back is an outcome, small and made
of whole numbers. Only this process writes parts. Dask is asked for where a cluster is named, and not needed otherwise.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue
from threading import Event, Lock
from typing import Any

from horde_policy.errors import ConfigError, HordePolicyError, ReplayError, SourceUnavailable
from horde_policy.replay.engine import final_state
from horde_policy.settings import ReplaySettings
from horde_policy.sweep.counting import Outcome, outcome_of
from horde_policy.sweep.grid import Scenario
from horde_policy.sweep.identity import engine_digest
from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.run import TICK_S, Done, Task
from horde_policy.sweep.stage import Stage, stage_of

__all__ = ["Cluster"]

KEPT_STAGES = 2
"""Scenarios that a worker holds prepared; tasks come scenario by scenario."""

TRIES = 10
"""How often a replay is sent out again because whoever did it, or held its inputs, is gone."""

REACH_S = 10.0

MOST_PORT = 65_535
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss)://)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.%]+\]):(?P<port>[0-9]{1,5})")


class _Kept:
    """The scenarios that this worker process has prepared, the latest last."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.stages: OrderedDict[tuple[str, Scenario], Stage] = OrderedDict()

    def get(self, digest: str, inputs: SweepInputs, scenario: Scenario) -> Stage:
        with self.lock:  # one thread prepares, the others of this process wait for it and share it
            key = (digest, scenario)
            if key not in self.stages:
                self.stages[key] = stage_of(inputs, scenario)
                while len(self.stages) > KEPT_STAGES:
                    self.stages.popitem(last=False)
            self.stages.move_to_end(key)
            return self.stages[key]


_KEPT = _Kept()


def remote_outcome(inputs: SweepInputs, digest: str, scenario: Scenario, settings: ReplaySettings) -> tuple[str, Outcome | str]:
    """Return the engine's digest on this worker, and what a replay comes to there, or the error that it came to."""
    try:
        stage = _KEPT.get(digest, inputs, scenario)
        return engine_digest(), outcome_of(stage, final_state(stage.world, settings))
    except HordePolicyError as error:  # its text travels, the exception itself cannot be sent
        return engine_digest(), str(error)


def _check_address(address: str) -> None:
    """Refuse what no scheduler can have for an address: Dask would take its time with it and leave a client behind."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 1 <= int(found["port"]) <= MOST_PORT:
        raise ConfigError("dask", address, "must be a scheduler's address with its port, as tcp://10.0.0.1:8786")


class Cluster:
    """The workers of a Dask scheduler.

    Parameters
    ----------
    address
        As ``tcp://127.0.0.1:8786``. Its workers run this version of the package.

    Raises
    ------
    ConfigError
        The address is none, or the package ``distributed`` is not installed.
    """

    def __init__(self, address: str) -> None:
        _check_address(address)
        try:
            import distributed
        except ImportError as error:
            rule = "needs the package distributed: pip install -r requirements-dask.txt"
            raise ConfigError("dask", address, rule) from error
        self.address = address
        self._dask: Any = distributed
        encrypted = address.startswith(("tls://", "wss://"))
        if encrypted and distributed.Security().get_connection_args("client")["ssl_context"] is None:
            raise ConfigError("dask", address, "needs certificates in the configuration of Dask (distributed.comm.tls)")

    def outcomes(
        self, inputs: SweepInputs, tasks: Sequence[Task], stop: Event, shares: dict[str, float]
    ) -> Iterator[Done | None]:
        """Yield what is done as it is done.

        Raises
        ------
        SourceUnavailable
            The scheduler cannot be reached, or is lost.
        ReplayError
            The workers run another version, or a replay keeps killing the worker that does it.
        """
        try:
            client = self._dask.Client(self.address, timeout=REACH_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise SourceUnavailable(f"Dask scheduler {self.address}", f"cannot be reached: {error}") from error
        try:
            yield from _Sending(self._dask, client, inputs, tasks).outcomes(stop)
        except OSError as error:
            raise SourceUnavailable(f"Dask scheduler {self.address}", f"is lost: {error}") from error
        finally:
            client.close()


class _Sending:
    """Tasks on their way to a cluster, those that come back without an answer sent again."""

    def __init__(self, dask: Any, client: Any, inputs: SweepInputs, tasks: Sequence[Task]) -> None:
        self.dask = dask
        self.client = client
        self.inputs = inputs
        self.digest = inputs.digest()
        self.pending: dict[Any, Task] = {}
        self.ended: SimpleQueue[Any] = SimpleQueue()
        self.tries: dict[str, int] = {}
        self.held = self._scattered()
        for task in tasks:
            self._send(task)

    def _scattered(self) -> Any:
        try:
            return self.client.scatter(self.inputs, broadcast=True, hash=False, timeout=REACH_S)
        except TimeoutError as error:
            raise SourceUnavailable(f"Dask scheduler {self.client.scheduler.address}", "has no worker") from error

    def _send(self, task: Task) -> None:
        future = self.client.submit(
            remote_outcome, self.held, self.digest, task.scenario, task.point.settings, pure=False, key=self._name(task)
        )
        self.pending[future] = task
        future.add_done_callback(self.ended.put)

    def _name(self, task: Task) -> str:
        return f"sweep-{task.key}-{self.tries.get(task.key, 0)}-{id(self):x}"

    def _again(self, task: Task, why: BaseException) -> None:
        """Send a task again, with the inputs sent anew if nobody holds them any more."""
        self.tries[task.key] = self.tries.get(task.key, 0) + 1
        if self.tries[task.key] > TRIES:
            raise ReplayError(f"a replay was lost {TRIES} times on the Dask cluster; the last time: {why}") from why
        if self.held.status != "finished":
            self.held = self._scattered()
        self._send(task)

    def outcomes(self, stop: Event) -> Iterator[Done | None]:
        try:
            while self.pending and not stop.is_set():
                future = self._next_ended()
                if future is None:
                    yield None
                    continue
                task = self.pending.pop(future)
                try:
                    engine, outcome = future.result(timeout=REACH_S)
                except (CancelledError, self.dask.KilledWorker, TimeoutError) as why:
                    self._again(task, why)
                    continue
                if engine != engine_digest():
                    raise ReplayError("the Dask workers run another version of this package; nothing of theirs is kept")
                if isinstance(outcome, str):
                    raise ReplayError(f"a Dask worker says: {outcome}")
                yield task, outcome
        finally:
            self.client.cancel(list(self.pending))

    def _next_ended(self) -> Any:
        """Return a future that has ended; null after a while without."""
        try:
            future = self.ended.get(timeout=TICK_S)
        except Empty:
            if self.client.status != "running":
                raise SourceUnavailable(f"Dask scheduler {self.client.scheduler.address}", "is lost") from None
            return None
        return future if future in self.pending else None
