"""The recorder: polls a source, stores what changed, and survives what goes wrong, each thing by its name.

One :meth:`Recorder.step` is one poll. What can fail is remembered and told (:class:`RecorderState`), never raised: the source
away or throttling, the store full or locked, the clock set back, another recorder at work. When it works again, the time
between is stored as a gap with its reasons. A part of the answers that fails is named where polls do not come for it.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import sqlalchemy as sa

from horde_policy.clock import Clock
from horde_policy.errors import HordePolicyError, InputError, SourceError, SourceThrottled, StoreError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.alerting import AlertKeeper, Judged
from horde_policy.history.claims import Standing, give_up_lease, note_standing, recording_lock, take_lease
from horde_policy.history.folding import last_poll
from horde_policy.history.lost import NOTABLE_WAIT_S, LostTime
from horde_policy.history.store import HistoryStore, from_microseconds, poll_instant
from horde_policy.history.tables import SOURCES
from horde_policy.history.upkeep import Retention
from horde_policy.sources.demo import moved_to
from horde_policy.sources.source import Source

__all__ = ["DEFAULT_INTERVAL_S", "GAP_FACTOR", "Recorder", "RecorderState", "State"]

DEFAULT_INTERVAL_S = 30.0
GAP_FACTOR = 1.75
"""Two polls further apart than so many intervals have at least one missing between them: a gap."""
LEASE_FACTOR = 3.0
LEASE_GRACE_S = 30.0
LONGEST_WAIT_S = 900.0
STANDBY_WAIT_S = 5.0
"""One that stands by looks so often whether it may take over; of the source it asks nothing."""
PACE_MARGIN = 0.005
"""Polls are by this share further apart than the interval: an answer that seems a moment too young, by a clock that is slewed or
a program that was held up, is not asked for again by the source."""

State = Literal["starting", "recording", "standby", "source_away", "throttled", "store_failing", "clock_behind"]


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
    alerts
        Judges each look; what it tells is stored with the poll.
    retention
        How long the history is kept; null: for ever.

    Attributes
    ----------
    state
        How it stands; read by other threads.
    latest
        The last snapshot that was stored; read by other threads.
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
        alerts: AlertKeeper | None = None,
        retention: Retention | None = None,
    ) -> None:
        self.source = source
        self.store = store
        self.owner = owner
        self.interval_s = max(interval_s, source.refresh_s)
        self._clock = clock
        self._monotonic = monotonic
        self._alerts = alerts
        self._retention = retention
        self._lock = recording_lock(store, source.name)
        self._resumed = False
        self._last: datetime | None = None
        self._last_mono: float | None = None
        self._last_parts: tuple[datetime, dict[str, datetime]] | None = None
        self._lost = LostTime()
        self._lost.add("the recorder was not running")
        self._held_up = False
        self._pending: list[tuple[datetime, str, str]] = [(clock.now(), "started", "the recorder started")]
        self._behind: str | None = None
        self._noted: Standing | None = None
        self._asked_mono = self._answered_mono = monotonic()
        self.latest: Snapshot | None = None
        self.state = RecorderState(state="starting", since=clock.now(), text="", last_stored=None, polls=0, wait_s=0.0)

    # -- one poll ------------------------------------------------------------------------------------------------------

    def step(self) -> RecorderState:
        """Poll once and store what changed; return how the recorder stands and how long it waits until the next poll."""
        try:
            if not self._take_over():
                return self._become("standby", "another recorder holds this source", min(self.interval_s, STANDBY_WAIT_S))
            waits = [self._tell_of_waits()]
            state = self._poll()
            waits.append(self._tell_of_waits())
            if any(waits) and state.state == "recording":
                state = self._become("recording", "; ".join(filter(None, waits)), state.wait_s)
            return self._note(state)
        except StoreError as error:
            self.store.taken_wait_s()  # told by the error
            self._lost.add(f"the store failed: {error}")
            return self._become("store_failing", str(error), self.interval_s)

    def _take_over(self) -> bool:
        """Take or renew the right to record; learn what the store knows when it was another's until now."""
        name, now = self.source.name, self._clock.now()
        lease_s = LEASE_FACTOR * self.interval_s + LEASE_GRACE_S
        sole = self._lock.take()
        if not take_lease(self.store, name, self.owner, now, lease_s, interval_s=self.interval_s, sole=sole):
            self._resumed, self._noted = False, None
            self._lost.clear()
            self._last_mono = None
            return False
        if not self._resumed:
            self._last = self._last_in_store()
            if self._alerts is not None:
                self._alerts.resume(self.store, name)
            self._resumed = True
        return True

    def _last_in_store(self) -> datetime | None:
        with self.store.reading() as connection:
            number = connection.scalar(sa.select(SOURCES.c.source).where(SOURCES.c.name == self.source.name))
            poll = None if number is None else last_poll(connection, int(number))
        return None if poll is None else from_microseconds(poll.at_us)

    def _poll(self) -> RecorderState:
        self._asked_mono = self._monotonic()
        try:
            snapshot = self.source.load()
        except SourceThrottled as error:
            return self._unanswered("throttled", error, max(self.interval_s, error.retry_after_s or 0.0))
        except (SourceError, InputError) as error:
            return self._unanswered("source_away", error, self.interval_s)
        self._answered_mono = self._monotonic()
        parts = (snapshot.fetched_at, dict(snapshot.part_times))
        if parts == self._last_parts:
            failure = _failed_part(snapshot)
            if failure is not None:
                self._held_up = True
                self._lost.add(f"{_UNANSWERED[failure[0]]}: {failure[1]}")
                return self._become(*failure, self.interval_s)
            return self._become("recording", "nothing new since the last poll", self.interval_s)
        return self._store(snapshot, parts)

    def _unanswered(self, state: State, error: HordePolicyError, wait_s: float) -> RecorderState:
        self._lost.add(f"{_UNANSWERED[state]}: {error}")
        judged = None if self._alerts is None else self._alerts.judge(None, self._now())
        if judged is not None and judged.changes and self._alerts is not None:
            at = judged.changes[-1].at
            stored = self.store.write_besides(
                self.source.name, at=at, owner=self.owner, events=judged.events, alerts=judged.record
            )
            if stored:
                self._alerts.accept(judged)
        return self._become(state, str(error), wait_s)

    def _now(self) -> datetime:
        """Return the present, never before the last stored poll and the time that has gone by since."""
        now = self._clock.now()
        if self._last is None:
            return now
        gone_s = 0.0 if self._last_mono is None else self._monotonic() - self._last_mono
        return max(now, self._last + timedelta(seconds=gone_s))

    def _instant(self, fetched: datetime) -> datetime:
        """Return the instant a poll is stored under: its own, or one that goes on from the last where the clock was set back."""
        if self._last is None or fetched > self._last:
            if self._behind is not None:
                self._pending.append((fetched, "clock_caught_up", "the clock is past the last stored poll again"))
            self._behind = None
            return fetched
        elapsed_s = self.interval_s if self._last_mono is None else self._monotonic() - self._last_mono
        behind_s = (self._last - fetched).total_seconds()
        text = f"the clock is {behind_s:.0f} s behind the last stored poll; instants go on from that poll until it is past it"
        if self._behind is None:
            self._pending.append((self._last, "clock_set_back", text))
            self._behind = text
        return self._last + timedelta(seconds=max(elapsed_s, 1e-6))

    def _gap_since_last(self, at: datetime) -> str | None:
        """Return why polls are missing since the last one; null if none is."""
        if self._last is None or (at - self._last).total_seconds() <= GAP_FACTOR * self.interval_s:
            return None
        if self._last_mono is not None:
            distance_s, gone_s = (at - self._last).total_seconds(), self._answered_mono - self._last_mono
            if distance_s - gone_s > self.interval_s:
                told = f"the clock went on {distance_s:.0f} s within {gone_s:.0f} s: it was set forward, or the machine slept"
                self._lost.add(told)
        return self._lost.told() or "no poll was stored"

    def _store(self, snapshot: Snapshot, parts: tuple[datetime, dict[str, datetime]]) -> RecorderState:
        at = self._instant(poll_instant(snapshot))
        reason = self._gap_since_last(at)
        moved = moved_to(snapshot, snapshot.fetched_at + (at - poll_instant(snapshot)))
        stored = replace(moved, source=self.source.name)
        judged = None if self._alerts is None else self._alerts.judge(stored, max(self._clock.now(), at))
        events = [*self._pending, *(judged.events if judged is not None else ())]
        written = self.store.write(
            stored, owner=self.owner, gap_reason=reason, events=events, alerts=None if judged is None else judged.record
        )
        if written.poll is None:
            self._resumed = False
            return self._become("standby", "another recorder stored this poll", self.interval_s)
        self._stored(stored, at, parts, judged)
        if self._retention is not None:
            self._retention.apply(self.store, self.source.name, at)
        if self._behind is not None:
            return self._become("clock_behind", self._behind, self.interval_s)
        failure = _failed_part(snapshot)
        if failure is not None and self._held_up and reason is not None:  # the other parts' slower polls do not end it
            return self._become(*failure, self.interval_s)
        self._held_up = False
        return self._become("recording", "", self.interval_s)

    def _stored(self, stored: Snapshot, at: datetime, parts: tuple[datetime, dict[str, datetime]], judged: Judged | None) -> None:
        if self._alerts is not None and judged is not None:
            self._alerts.accept(judged)
        self._pending.clear()
        self._lost.clear()
        self._last, self._last_mono = at, self._answered_mono
        self._last_parts = parts
        self.latest = stored
        self.state = replace(self.state, last_stored=at, polls=self.state.polls + 1)

    def _tell_of_waits(self) -> str:
        """Remember and return how long the store was waited for since the last call; nothing where that is not worth a word."""
        waited_s = self.store.taken_wait_s()
        if waited_s < NOTABLE_WAIT_S:
            return ""
        self._lost.add("the store was locked", waited_s)
        told = f"the store was locked for {waited_s:.0f} s"
        self._pending.append((self._clock.now(), "store_waited", told))
        return told

    # -- how it stands -------------------------------------------------------------------------------------------------

    def _become(self, state: State, text: str, wait_s: float) -> RecorderState:
        now = self._clock.now()
        changed = state != self.state.state
        if changed and state not in ("recording", "clock_behind"):
            self._pending.append((now, state, text))
        since = now if changed else self.state.since
        self.state = replace(self.state, state=state, since=since, text=text, wait_s=min(wait_s, LONGEST_WAIT_S))
        return self.state

    def _note(self, state: RecorderState) -> RecorderState:
        """Let readers of the store know how the recorder stands, when that has changed."""
        standing = Standing(state=state.state, since=state.since, text=state.text)
        if state.state != "standby" and (standing != self._noted or state.wait_s > self.interval_s):
            silent_s = state.wait_s + LEASE_FACTOR * self.interval_s + LEASE_GRACE_S
            until = self._clock.now() + timedelta(seconds=silent_s)
            note_standing(self.store, self.source.name, self.owner, standing, until)
            self._noted = standing
        return state

    # -- the loop ------------------------------------------------------------------------------------------------------

    def run(
        self,
        stop: threading.Event,
        *,
        wait: Callable[[float], object] | None = None,
        told: Callable[[RecorderState], None] | None = None,
    ) -> None:
        """Poll until ``stop`` is set, then give the lease back.

        ``wait`` passes seconds, by default until ``stop``; ``told`` is given the state whenever it or its reason changes.
        """
        pause = wait or stop.wait
        before: tuple[State, str] | None = None
        while not stop.is_set():
            self._asked_mono = self._monotonic()
            state = self.step()
            if told is not None and (state.state, state.text) != before:
                told(state)
            before = (state.state, state.text)
            pause(max(0.0, state.wait_s * (1 + PACE_MARGIN) - (self._monotonic() - self._asked_mono)))
        self.close()

    def close(self) -> None:
        """Give the right to record back."""
        try:
            give_up_lease(self.store, self.source.name, self.owner, self._clock.now())
        except StoreError:
            return  # the lease runs out by itself
        finally:
            self._lock.release()


_UNANSWERED: dict[State, str] = {"throttled": "the source throttled", "source_away": "the source gave no answer"}


def _failed_part(snapshot: Snapshot) -> tuple[State, str] | None:
    """Return the state and the words for the first part that failed and that figures rest on; null if none did."""
    for problem in snapshot.problems:
        if problem.code in ("part_failed", "missing_part") and problem.level == "problem":
            return "throttled" if problem.subject in snapshot.throttled_parts else "source_away", problem.text
    return None
