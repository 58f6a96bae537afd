"""One poller for all viewers of a source: it asks only while someone looks, once for all, and remembers errors.

Streamlit's caches neither remember an error nor mark an old value, so five viewers of a failing source would ask five times
(dashboard.md T8). Here the last good snapshot stays, with its age, and the next question waits for its time.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from horde_policy.clock import Clock
from horde_policy.errors import HordePolicyError, SourceThrottled
from horde_policy.frames.snapshot import Snapshot
from horde_policy.sources.source import Source

__all__ = ["Look", "PollState", "Poller", "Pollers", "in_thread"]

PollState = Literal["waiting", "ok", "stale", "throttled", "failing"]

LONGEST_PAUSE_S = 300.0
LONGEST_THROTTLE_S = 900.0
FIRST_WAIT_S = 10.0
WAIT_S = 2.0
FAULT = "stopped by a fault in this program; its log has the details"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a viewer sees of a source at one instant.

    Attributes
    ----------
    snapshot
        The last good one; null before the first.
    serial
        Grows with each good snapshot: equal serials are the same snapshot.
    state
        ``waiting`` for the first answer; ``ok``; ``stale``: a live snapshot older than its age limit; ``throttled``: the
        last answer was a 429; ``failing``: the last try failed in another way.
    error, failing_since
        The last try's error and when its row of failures began; null while all is well.
    throttled_until
        Until when the server asked to be left alone, if it said.
    next_due
        Before this nothing is asked, whoever looks; null before the first question.
    polls
        How often the source was asked since the start.
    """

    snapshot: Snapshot | None
    serial: int
    state: PollState
    error: str | None
    failing_since: datetime | None
    throttled_until: datetime | None
    next_due: datetime | None
    polls: int

    def age_s(self, now: datetime) -> float | None:
        """Return how old the snapshot's figures are; null without one."""
        return None if self.snapshot is None else (now - self.snapshot.figures_at).total_seconds()

    def sentence(self) -> str:
        """Return the state as people read it: what is wrong, since when, and what stands meanwhile.

        >>> look = Look(snapshot=None, serial=0, state="waiting", error=None, failing_since=None, throttled_until=None,
        ...     next_due=None, polls=0)
        >>> look.sentence()
        'Waiting for the first answer'
        """
        if self.state == "waiting":
            return "Waiting for the first answer"
        if self.state == "ok" or self.snapshot is None:
            return self.error or "Up to date"
        last = f"last good value of {self.snapshot.figures_at.astimezone(UTC):%H:%M:%S} UTC"
        if self.error is None:
            return last[0].upper() + last[1:]
        return f"{self.error}; {last}"


@dataclass(slots=True)
class _Record:
    """What a poller remembers; guarded by its condition."""

    good: Snapshot | None = None
    serial: int = 0
    error: str | None = None
    throttled: bool = False
    failures: int = 0
    failing_since: datetime | None = None
    throttled_until: datetime | None = None
    next_due: datetime | None = None
    polls: int = 0
    loading: bool = False


def in_thread(load: Callable[[], None]) -> None:
    """Run a load in a thread of its own, which does not keep the program alive."""
    threading.Thread(target=load, name="horde_policy load", daemon=True).start()


class Poller:
    """Polls one source for all its viewers.

    Parameters
    ----------
    source
        What is polled; its ``refresh_s`` is the shortest interval.
    clock
        Gives the present.
    refresh_s
        A longer interval, if wanted.
    start
        Runs a load; another thread by default.
    draw
        Chance, for the pauses after failures.
    """

    def __init__(
        self,
        source: Source,
        *,
        clock: Clock,
        refresh_s: float = 0.0,
        start: Callable[[Callable[[], None]], None] = in_thread,
        draw: random.Random | None = None,
    ) -> None:
        self.source = source
        self.refresh_s = max(refresh_s, source.refresh_s)
        self._clock = clock
        self._start = start
        self._draw = draw or random.Random()
        self._record = _Record()
        self._changed = threading.Condition()

    def latest(self, *, wait_s: float | None = None) -> Look:
        """Look at the source: asks it if that is due and nobody else is asking, and waits a little for what is on its way.

        Without an answer within ``wait_s`` (two seconds; ten while there is no snapshot yet) the last good snapshot is
        returned; the answer is there at the next look.
        """
        record = self._record
        with self._changed:
            begin = not record.loading and self._is_due(self._clock.now())
            record.loading = record.loading or begin
        if begin:
            self._begin()
        with self._changed:
            patience_s = (FIRST_WAIT_S if record.good is None else WAIT_S) if wait_s is None else wait_s
            self._changed.wait_for(lambda: not record.loading, timeout=patience_s)
            return self._look()

    def peek(self) -> Look:
        """Look without asking the source."""
        with self._changed:
            return self._look()

    def _begin(self) -> None:
        started = False
        try:
            self._start(self._load)
            started = True
        finally:
            if not started:
                with self._changed:
                    self._record.loading = False

    def _is_due(self, now: datetime) -> bool:
        due = self._record.next_due
        # A due time further off than any pause means that the clock was set back.
        furthest_s = max(self.refresh_s, LONGEST_PAUSE_S, LONGEST_THROTTLE_S)
        return due is None or now >= due or (due - now).total_seconds() > furthest_s

    def _load(self) -> None:
        began = self._clock.now()
        snapshot: Snapshot | None = None
        error: HordePolicyError | None = None
        try:
            snapshot = self.source.load()
        except HordePolicyError as caught:
            error = caught
        finally:
            with self._changed:
                self._record.polls += 1
                if snapshot is not None:
                    self._note_good(snapshot, began)
                else:
                    self._note_failure(error, began)
                self._record.loading = False
                self._changed.notify_all()

    def _note_good(self, snapshot: Snapshot, began: datetime) -> None:
        record = self._record
        record.good = snapshot
        record.serial += 1
        record.error, record.failing_since, record.throttled_until = None, None, None
        record.failures, record.throttled = 0, False
        record.next_due = began + timedelta(seconds=self.refresh_s)

    def _note_failure(self, error: HordePolicyError | None, began: datetime) -> None:
        """Remember a failure: the next question waits twice as long each time, or as long as a 429 asks."""
        record = self._record
        record.failures += 1
        record.failing_since = record.failing_since or began
        record.error = FAULT if error is None else str(error)
        record.throttled = isinstance(error, SourceThrottled)
        record.throttled_until = None
        pause_s = min(max(LONGEST_PAUSE_S, self.refresh_s), self.refresh_s * 2.0 ** min(record.failures - 1, 10))
        pause_s = max(self.refresh_s, pause_s * self._draw.uniform(0.75, 1.0))
        now = self._clock.now()
        if isinstance(error, SourceThrottled) and error.retry_after_s is not None:
            asked_s = min(error.retry_after_s, LONGEST_THROTTLE_S)
            record.throttled_until = now + timedelta(seconds=asked_s)
            pause_s = max(self.refresh_s, asked_s)
        record.next_due = now + timedelta(seconds=pause_s)

    def _look(self) -> Look:
        record = self._record
        return Look(
            snapshot=record.good,
            serial=record.serial,
            state=self._state(),
            error=record.error,
            failing_since=record.failing_since,
            throttled_until=record.throttled_until,
            next_due=record.next_due,
            polls=record.polls,
        )

    def _state(self) -> PollState:
        record = self._record
        if record.failures:
            return "throttled" if record.throttled else "failing"
        if record.good is None:
            return "waiting"
        age_s = (self._clock.now() - record.good.figures_at).total_seconds()
        return "stale" if record.good.source_kind == "live" and age_s > record.good.age_limit_s else "ok"


class Pollers:
    """The pollers of a process, one a source, made when the source is first chosen: nothing is asked of it before.

    >>> from horde_policy.clock import SystemClock
    >>> from horde_policy.sources.demo import DemoSource
    >>> pollers = Pollers(lambda key: DemoSource(SystemClock()), clock=SystemClock())
    >>> pollers.poller("demo") is pollers.poller("demo"), list(pollers.started())
    (True, ['demo'])
    """

    def __init__(
        self,
        build: Callable[[str], Source],
        *,
        clock: Clock,
        start: Callable[[Callable[[], None]], None] = in_thread,
    ) -> None:
        self._build = build
        self._clock = clock
        self._start = start
        self._pollers: dict[str, Poller] = {}
        self._lock = threading.Lock()

    def poller(self, key: str) -> Poller:
        """Return the source's poller, the same for every viewer."""
        with self._lock:
            if key not in self._pollers:
                self._pollers[key] = Poller(self._build(key), clock=self._clock, start=self._start)
            return self._pollers[key]

    def started(self) -> dict[str, Poller]:
        """Return the pollers of the sources that were chosen so far."""
        with self._lock:
            return dict(self._pollers)
