"""A recorder with all that runs beside it: the metrics' server and the webhook's sender, started and ended together."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from horde_policy.clock import Clock
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.alerting import AlertKeeper
from horde_policy.history.exporter import BoardCollector, serve_metrics
from horde_policy.history.recorder import DEFAULT_INTERVAL_S, Recorder, RecorderState
from horde_policy.history.store import HistoryStore
from horde_policy.history.upkeep import Retention
from horde_policy.history.webhook import WebhookSender, checked_webhook
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.source import Source
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_LENGTH_TOKENS

__all__ = ["RecordingPlan", "RecordingService"]

LONGEST_GOODBYE_S = 10.0
"""A poll in flight may end within this after the stop; then it is left behind, as if the process had been killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPlan:
    """What is recorded how.

    Attributes
    ----------
    store
        An SQLite file or a database URL.
    interval_s
        Between polls.
    settings, max_length, context_tokens
        What alerts and metrics are read at.
    metrics_port, metrics_address
        Where metrics are served; a null port: nowhere. Port 0 takes a free one.
    webhook
        Whom each change of an alert is told to; null: nobody.
    retention
        How long the history is kept; null: for ever.
    """

    store: str | Path
    interval_s: float = DEFAULT_INTERVAL_S
    settings: AllowanceSettings = field(default_factory=AllowanceSettings)
    max_length: int = DEFAULT_MAX_LENGTH_TOKENS
    context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS
    metrics_port: int | None = None
    metrics_address: str = "127.0.0.1"
    webhook: str | None = None
    retention: Retention | None = None


class RecordingService:
    """Runs a plan until it is stopped.

    Parameters
    ----------
    source
        What is polled.
    plan
        The rest.
    clock, monotonic, owner
        As for :class:`~horde_policy.history.recorder.Recorder`.
    told
        Is given the recorder's state whenever that changes.
    told_of_webhook
        Is given a sentence when the webhook begins to fail or works again; from another thread.
    wait
        Passes seconds between polls; by default until the stop.

    Raises
    ------
    StoreError, ConfigError, InputError
        The store, the webhook or the port cannot be used; nothing runs then.
    """

    def __init__(
        self,
        source: Source,
        plan: RecordingPlan,
        *,
        clock: Clock,
        monotonic: Callable[[], float],
        owner: str,
        told: Callable[[RecorderState], None] | None = None,
        told_of_webhook: Callable[[str], None] | None = None,
        wait: Callable[[threading.Event, float], object] | None = None,
    ) -> None:
        self._source = source
        self._plan = plan
        self._clock = clock
        self._told = told
        self._told_of_webhook = told_of_webhook
        self._wait = wait or threading.Event.wait
        self._open = ExitStack()
        if plan.webhook is not None:
            checked_webhook(plan.webhook)
        self._starting = RecorderState(state="starting", since=clock.now(), text="", last_stored=None, polls=0, wait_s=0.0)
        self._begun: Recorder | None = None
        # The port first: where it cannot be had, no new store is left behind.
        self.metrics_port = self._serve()
        try:
            self.recorder = self._begun = self._recorder(monotonic, owner)
        except BaseException:
            self._open.close()
            raise

    def _recorder(self, monotonic: Callable[[], float], owner: str) -> Recorder:
        plan = self._plan
        alerts = AlertKeeper(
            plan.settings,
            max_length=plan.max_length,
            context_tokens=plan.context_tokens,
            deliver=plan.webhook is not None,
        )
        return Recorder(
            self._source,
            self._opened(),
            clock=self._clock,
            monotonic=monotonic,
            owner=owner,
            interval_s=plan.interval_s,
            alerts=alerts,
            retention=plan.retention,
        )

    def _opened(self) -> HistoryStore:
        store = HistoryStore(self._plan.store)
        self._open.callback(store.close)
        return store

    def _serve(self) -> int | None:
        plan = self._plan
        if plan.metrics_port is None:
            return None
        collector = BoardCollector(
            self._look, plan.settings, clock=self._clock, max_length=plan.max_length, context_tokens=plan.context_tokens
        )
        server = serve_metrics(collector, plan.metrics_port, plan.metrics_address)
        self._open.callback(server.stop)
        return server.port

    def _look(self) -> tuple[Snapshot | None, RecorderState]:
        recorder = self._begun
        return (None, self._starting) if recorder is None else (recorder.latest, recorder.state)

    def run(self, stop: threading.Event) -> None:
        """Record until ``stop`` is set, then end everything; a fault of the recorder ends it too, and is raised."""
        faults: list[BaseException] = []
        beside = [threading.Thread(target=self._record, args=(stop, faults), name="recorder", daemon=True)]
        if self._plan.webhook is not None:
            sender = WebhookSender(
                self._opened(), self._source.name, self._plan.webhook, clock=self._clock, told=self._told_of_webhook
            )
            self._open.enter_context(sender)
            wait = _waiting(self._wait, stop)
            beside.append(threading.Thread(target=sender.run, args=(stop,), kwargs={"wait": wait}, name="webhook", daemon=True))
        with self._open:
            for thread in beside:
                thread.start()
            stop.wait()
            for thread in beside:
                thread.join(LONGEST_GOODBYE_S)
            self.recorder.close()
        if faults:
            raise faults[0]

    def _record(self, stop: threading.Event, faults: list[BaseException]) -> None:
        try:
            self.recorder.run(stop, wait=_waiting(self._wait, stop), told=self._told)
        except BaseException as fault:
            faults.append(fault)
            raise
        finally:
            stop.set()


def _waiting(wait: Callable[[threading.Event, float], object], stop: threading.Event) -> Callable[[float], object]:
    return lambda seconds: wait(stop, seconds)
