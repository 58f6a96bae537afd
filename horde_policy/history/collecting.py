"""The recorder of metrics: asks a Prometheus or Mimir for the three series (A25–A27) and keeps their samples in the history.

Asked is a range of raw samples, as they were scraped, an hour at a time, each with a margin before it: what was kept already is
merged, so asking twice adds nothing. What was missed while the server, the store or the collector was away is asked for when
all three are there again, as far back as the server has it.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, Protocol

from horde_policy.clock import Clock
from horde_policy.errors import InputError, Problem, SourceError, SourceThrottled, StoreError
from horde_policy.history.kept import collected_to, keep_samples, prune_kept
from horde_policy.history.store import HistoryStore
from horde_policy.imports import SERIES_SELECTOR, Mapping, read_samples

__all__ = ["COLLECT_EVERY_S", "LONGEST_BACK", "OVERLAP", "PIECE", "Collector", "CollectorState", "SeriesServer"]

COLLECT_EVERY_S = 300.0
PIECE = timedelta(hours=1)
"""How much is asked for at once."""

OVERLAP = timedelta(minutes=10)
"""How far before that is asked for again: a server may learn of samples late."""

LONGEST_BACK = timedelta(days=3)
"""How far back the first question goes, and one after a long time away: as long as operators keep raw series."""

LONGEST_WAIT_S = 900.0

State = Literal["starting", "collecting", "source_away", "throttled", "store_failing"]


class SeriesServer(Protocol):
    """What is asked: :class:`horde_policy.sources.prometheus.PrometheusClient`."""

    name: str

    def query(self, expression: str, *, at: datetime | None = None) -> dict[str, object]:
        """Return the API's answer to an instant query."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorState:
    """How a collector stands: its state since when and why, up to when it has everything, and when it asks next."""

    state: State
    since: datetime
    text: str
    collected_to: datetime | None
    wait_s: float
    problems: tuple[Problem, ...] = ()


class Collector:
    """Collects the three series from one server into one store; several on one store double nothing.

    Parameters
    ----------
    server, store
        What is asked, and where its samples are kept, under the server's name.
    clock
        Gives the present.
    mapping
        What the exports do not say of themselves.
    every_s
        Seconds between two looks.
    keep
        How long samples are kept; null: for ever.

    Attributes
    ----------
    state
        How it stands; read by other threads.
    """

    def __init__(
        self,
        server: SeriesServer,
        store: HistoryStore,
        *,
        clock: Clock,
        mapping: Mapping | None = None,
        every_s: float = COLLECT_EVERY_S,
        keep: timedelta | None = None,
    ) -> None:
        self.server, self.store = server, store
        self._clock, self._mapping = clock, mapping or Mapping()
        self._every_s, self._keep = every_s, keep
        self.state = CollectorState(state="starting", since=clock.now(), text="", collected_to=None, wait_s=0.0)

    def step(self) -> CollectorState:
        """Ask for all that is missing up to now, a piece at a time, and keep each; return how it went and how long to wait."""
        try:
            now = self._clock.now()
            known = collected_to(self.store, self.server.name)
            self.state = replace(self.state, collected_to=known, problems=())
            at = now - LONGEST_BACK if known is None else min(max(known, now - LONGEST_BACK), now)
            while at < now:
                until = min(at + PIECE, now)
                self._collect(at, until)
                at = until
            if self._keep is not None:
                prune_kept(self.store, now - self._keep)
        except StoreError as error:
            return self._become("store_failing", str(error), self._every_s)
        except SourceThrottled as error:
            return self._become("throttled", str(error), max(self._every_s, error.retry_after_s or 0.0))
        except (SourceError, InputError) as error:
            return self._become("source_away", str(error), self._every_s)
        return self._become("collecting", "", self._every_s)

    def _collect(self, start: datetime, end: datetime) -> None:
        length_s = round((end - start + OVERLAP).total_seconds()) + 1
        answer = self.server.query(f"{SERIES_SELECTOR}[{length_s}s]", at=end)
        samples, _, problems = read_samples(answer, mapping=self._mapping)
        keep_samples(self.store, samples, name=self.server.name, collected_to=end)
        told = tuple(problem for problem in problems if problem not in self.state.problems)
        self.state = replace(self.state, collected_to=end, problems=(*self.state.problems, *told))

    def _become(self, state: State, text: str, wait_s: float) -> CollectorState:
        since = self._clock.now() if state != self.state.state else self.state.since
        self.state = replace(self.state, state=state, since=since, text=text, wait_s=min(wait_s, LONGEST_WAIT_S))
        return self.state

    def run(
        self,
        stop: threading.Event,
        *,
        wait: Callable[[float], object] | None = None,
        told: Callable[[CollectorState], None] | None = None,
    ) -> None:
        """Collect until ``stop`` is set; ``told`` is given the state whenever it, its reason or its problems change."""
        pause = wait or stop.wait
        before: object = None
        while not stop.is_set():
            state = self.step()
            now = (state.state, state.text, state.problems)
            if told is not None and now != before:
                told(state)
            before = now
            pause(state.wait_s)
