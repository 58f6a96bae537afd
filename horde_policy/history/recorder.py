"""The recorder: polls a source, stores what changed, and survives what goes wrong, each thing by its name.

One :meth:`Recorder.step` is one poll. What can fail is remembered and told (:class:`RecorderState`), never raised: the source
away or throttling, the store full or locked, the clock set back, another recorder at work. When it works again, the time
between is stored as a gap with its reason.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from horde_policy.clock import Clock
from horde_policy.errors import InputError, SourceError, SourceThrottled, StoreError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.reading import sources_in
from horde_policy.history.store import HistoryStore
from horde_policy.sources.source import Source

__all__ = ["DEFAULT_INTERVAL_S", "Recorder", "RecorderState"]

DEFAULT_INTERVAL_S = 30.0
GAP_FACTOR = 2.5
"""A distance between two polls beyond so many intervals is a gap."""
LEASE_FACTOR = 3.0
LONGEST_WAIT_S = 3600.0

State = Literal["recording", "standby", "source_away", "throttled", "store_failing"]
Watcher = Callable[[Snapshot], Iterable[tuple[str, str]]]
"""Looks at each stored snapshot and gives ``(kind, text)`` events to store with it, such as alerts that began or ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderState:
    """How a recorder stands: its state since when and why, when it last stored a poll, and when it asks next."""

    state: State
    since: datetime
    text: str
    last_stored: datetime | None
    polls: int
    wait_s: float


class Recorder:
    """Records one source into one store.

    Parameters
    ----------
    source, store
        What is polled, and where it is kept.
    clock, monotonic
        The wall clock, and seconds that never go back, by which a wall clock that was set back is told.
    owner
        Names this recorder among those that share the store.
    interval_s
        Seconds between polls; never shorter than the source can bring anything new.
    watcher
        Sees each snapshot before it is stored.
    """

    def __init__(
        self,
        source: Source,
        store: HistoryStore,
        *,
        clock: Clock,
        monotonic: Callable[[], float],
        owner: str,
        interval_s: float = DEFAULT_INTERVAL_S,
        watcher: Watcher | None = None,
    ) -> None:
        self.source = source
        self.store = store
        self.owner = owner
        self.interval_s = max(interval_s, source.refresh_s)
        self._clock = clock
        self._monotonic = monotonic
        self._watcher = watcher
        self._last_stored: datetime | None = None
        self._last_stored_mono: float | None = None
        self._last_fetched: datetime | None = None
        self._gap_reason: str | None = "the recorder was not running"
        self._pending: list[tuple[datetime, str, str]] = [(clock.now(), "started", "the recorder started")]
        self._clock_back = False
        self._polls = 0
        self.state = RecorderState(state="recording", since=clock.now(), text="starting", last_stored=None, polls=0, wait_s=0.0)

    def _become(self, state: State, text: str, wait_s: float) -> RecorderState:
        now = self._clock.now()
        changed = state != self.state.state
        if changed and state != "recording":
            self._pending.append((now, state, text))
        since = now if changed else self.state.since
        self.state = RecorderState(
            state=state,
            since=since,
            text=text,
            last_stored=self._last_stored,
            polls=self._polls,
            wait_s=min(wait_s, LONGEST_WAIT_S),
        )
        return self.state

    def step(self) -> RecorderState:
        """Poll once and store what changed; return how the recorder stands and how long it waits until the next poll."""
        try:
            lease_s = LEASE_FACTOR * self.interval_s + 30
            if not self.store.take_lease(self.source.name, self.owner, self._clock.now(), lease_s):
                # whoever holds the lease records: what this one knew of the store is over
                self._gap_reason = self._last_stored = self._last_stored_mono = None
                return self._become("standby", "another recorder holds this source", self.interval_s)
        except StoreError as error:
            return self._store_failed(error)
        try:
            snapshot = self.source.load()
        except SourceThrottled as error:
            self._gap_reason = f"the source throttled: {error}"
            return self._become("throttled", str(error), max(self.interval_s, error.retry_after_s or 0.0))
        except (SourceError, InputError) as error:
            self._gap_reason = f"the source gave no answer: {error}"
            return self._become("source_away", str(error), self.interval_s)
        if snapshot.fetched_at == self._last_fetched:
            return self._become("recording", "nothing new since the last poll", self.interval_s)
        try:
            return self._store(snapshot)
        except StoreError as error:
            return self._store_failed(error)

    def _store_failed(self, error: StoreError) -> RecorderState:
        self._gap_reason = f"the store failed: {error}"
        return self._become("store_failing", str(error), self.interval_s)

    def _last_in_store(self) -> datetime | None:
        if self._last_stored is None:
            spans = [span for span in sources_in(self.store) if span.name == self.source.name]
            self._last_stored = spans[0].last if spans else None
        return self._last_stored

    def _instant(self, fetched_at: datetime, last: datetime | None) -> datetime:
        """Return the instant a poll is stored under: its own, or one that goes on from the last where the clock was set back."""
        if last is None or fetched_at > last:
            if self._clock_back:
                self._pending.append((fetched_at, "clock_caught_up", "the clock is past the last stored poll again"))
            self._clock_back = False
            return fetched_at
        elapsed_s = self.interval_s if self._last_stored_mono is None else self._monotonic() - self._last_stored_mono
        if not self._clock_back:
            behind_s = (last - fetched_at).total_seconds()
            text = f"the clock is {behind_s:.0f} s behind the last stored poll; instants go on from that poll until it is past it"
            self._pending.append((last, "clock_set_back", text))
            self._clock_back = True
        return last + timedelta(seconds=max(elapsed_s, 1e-6))

    def _store(self, snapshot: Snapshot) -> RecorderState:
        last = self._last_in_store()
        at = self._instant(snapshot.fetched_at, last)
        late = last is not None and (at - last).total_seconds() > GAP_FACTOR * self.interval_s
        reason = (self._gap_reason or "no poll was stored") if late else None
        stored = replace(snapshot, fetched_at=at, source=self.source.name)
        told = [(at, kind, text) for kind, text in self._watcher(stored)] if self._watcher is not None else []
        written = self.store.write(stored, owner=self.owner, gap_reason=reason, events=[*self._pending, *told])
        if written.poll is None:
            self._last_stored = None
            return self._become("standby", "another recorder stored this poll", self.interval_s)
        self._pending.clear()
        self._gap_reason = None
        self._last_stored, self._last_stored_mono = at, self._monotonic()
        self._last_fetched = snapshot.fetched_at
        self._polls += 1
        return self._become("recording", f"poll {written.poll} stored, {written.rows} changes", self.interval_s)

    def run(self, stop: threading.Event) -> None:
        """Poll until ``stop`` is set, then give the lease back."""
        while not stop.is_set():
            began = self._monotonic()
            state = self.step()
            stop.wait(max(0.0, state.wait_s - (self._monotonic() - began)))
        try:
            self.store.give_up_lease(self.source.name, self.owner)
        except StoreError:
            return  # the lease runs out by itself
