"""The history store: one transaction a poll, holding what changed; readable while it is written.

A poll is written whole or not at all, with the events and alerts that belong to it: a process killed at any instant loses the
poll in flight and nothing else. See :mod:`horde_policy.history.tables` for the layout.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.database import Database, from_microseconds, store_url, to_microseconds
from horde_policy.history.folding import PollRow, last_poll, state_at
from horde_policy.history.labels import Numbers
from horde_policy.history.states import GONE, UNLISTED, ModelState, WorkerState, model_states, part_bodies, worker_states
from horde_policy.history.tables import (
    ALERT_STATES,
    DELIVERIES,
    EVENTS,
    GAPS,
    MODEL_QUEUES,
    MODEL_STATES,
    PART_STATES,
    POLLS,
    RECORDERS,
    SOURCES,
    WORKER_COUNTS,
    WORKER_STATES,
)

__all__ = [
    "KEYFRAME_EVERY_POLLS",
    "AlertRecord",
    "Event",
    "HistoryStore",
    "Written",
    "from_microseconds",
    "poll_instant",
    "store_url",
    "to_microseconds",
]

KEYFRAME_EVERY_POLLS = 120
"""One poll in so many holds everything anew, so that no reading goes back further."""

Event = tuple[datetime, str, str]
"""When, what kind, and a sentence."""


def poll_instant(snapshot: Snapshot) -> datetime:
    """Return the instant that a snapshot is stored under: that of its newest part.

    The server's totals turn over once a minute, its lists sooner: two polls may share their oldest part and still differ.
    """
    return snapshot.complete_at


@dataclass(frozen=True, slots=True)
class Written:
    """What one poll wrote: its number (null: another recorder holds the source, or the same poll is there already)."""

    poll: int | None
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRecord:
    """What the alerts of a source know after a look, as JSON, and what a webhook is to be told: key and body of each message."""

    state: str
    deliveries: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Last:
    """The state as of the last poll of a source, kept by the writer to know what changed."""

    poll: PollRow
    keyframe: int
    workers: dict[str, WorkerState]
    models: dict[str, ModelState]
    parts: dict[str, str]


class HistoryStore(Database):
    """A history store; see :class:`~horde_policy.history.database.Database` for its parameters."""

    def __init__(
        self,
        store: str | Path,
        *,
        read_only: bool = False,
        max_pages: int | None = None,
        durable: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(store, read_only=read_only, max_pages=max_pages, durable=durable, monotonic=monotonic)
        self.numbers = Numbers()
        self._last: dict[int, _Last] = {}

    @contextmanager
    def numbering(self) -> Iterator[sa.Connection]:
        """Give a connection in a transaction that writes and may give out numbers, which are forgotten if it is not committed."""
        done = False
        try:
            with self.writing() as connection:
                self.numbers.check(connection)
                yield connection
            done = True
        finally:
            if not done:
                self.numbers.forget()

    def source_id(self, connection: sa.Connection, name: str, *, synthetic: bool = False) -> int:
        """Return the number of a source, which is made if it is new; once synthetic, it stays so."""
        found = connection.execute(sa.select(SOURCES.c.source, SOURCES.c.synthetic).where(SOURCES.c.name == name)).one_or_none()
        if found is None:
            made = SOURCES.insert().values(name=name, synthetic=synthetic).returning(SOURCES.c.source)
            return int(connection.execute(made).scalar_one())
        if synthetic and not found.synthetic:
            connection.execute(SOURCES.update().where(SOURCES.c.source == found.source).values(synthetic=True))
        return int(found.source)

    def write(
        self,
        snapshot: Snapshot,
        *,
        owner: str | None = None,
        gap_reason: str | None = None,
        events: Sequence[Event] = (),
        alerts: AlertRecord | None = None,
    ) -> Written:
        """Store what changed since the last poll of the snapshot's source, in one transaction.

        Parameters
        ----------
        snapshot
            The poll, stored under :func:`poll_instant`; one that is not younger than the last stored one changes nothing.
        owner
            Who must hold the lease (:mod:`horde_policy.history.claims`); null: no lease is asked for.
        gap_reason
            Why nothing was recorded since the last poll, if that is so: stored as a gap.
        events, alerts
            To store with it.

        Raises
        ------
        StoreError
            Nothing was stored.
        """
        at_us = to_microseconds(poll_instant(snapshot))
        with self.numbering() as connection:
            source = self.source_id(connection, snapshot.source, synthetic=snapshot.synthetic)
            if not _may_write(connection, source, owner):
                return Written(None)
            last = self._last_state(connection, source)
            if last is not None and at_us <= last.poll.at_us:
                return Written(None)
            current, rows = self._write_poll(connection, source, snapshot, at_us, last)
            if last is not None and gap_reason is not None:
                gap = {"source": source, "from_us": last.poll.at_us, "to_us": at_us, "reason": gap_reason}
                connection.execute(GAPS.insert().values(**gap))
            _write_events(connection, source, events)
            _write_alerts(connection, source, alerts, at_us)
        self._last[source] = current
        return Written(current.poll.poll, rows)

    def write_besides(
        self,
        source: str,
        *,
        at: datetime,
        owner: str | None = None,
        events: Sequence[Event] = (),
        alerts: AlertRecord | None = None,
    ) -> bool:
        """Store events and alerts without a poll; false if another recorder holds the source.

        Raises
        ------
        StoreError
            Nothing was stored.
        """
        with self.writing() as connection:
            number = self.source_id(connection, source)
            if not _may_write(connection, number, owner):
                return False
            _write_events(connection, number, events)
            _write_alerts(connection, number, alerts, to_microseconds(at))
        return True

    def _last_state(self, connection: sa.Connection, source: int) -> _Last | None:
        poll = last_poll(connection, source)
        if poll is None:
            return None
        known = self._last.get(source)
        if known is not None and known.poll == poll:
            return known
        state = state_at(connection, source, poll.poll)
        return _Last(poll, state.keyframe, state.workers, state.models, state.parts)

    def _write_poll(
        self, connection: sa.Connection, source: int, snapshot: Snapshot, at_us: int, last: _Last | None
    ) -> tuple[_Last, int]:
        newest = connection.scalar(sa.select(sa.func.max(POLLS.c.poll)).where(POLLS.c.source == source))
        poll = int(newest or 0) + 1
        # What follows an imported poll in number but not in time has nothing to be told against.
        fresh = last is None or last.poll.poll != newest
        keyframe = fresh or last is None or poll - last.keyframe >= KEYFRAME_EVERY_POLLS
        known = snapshot.models is not None
        lag_us = (poll_instant(snapshot) - snapshot.fetched_at) // timedelta(microseconds=1)
        row = PollRow(poll, at_us, known, lag_us)
        connection.execute(POLLS.insert().values(source=source, keyframe=keyframe, **row._asdict()))
        workers = worker_states(snapshot.workers)
        models = model_states(snapshot.models) if snapshot.models is not None else {}
        parts = part_bodies(snapshot)
        before = last if last is not None else _Last(row, 0, {}, {}, {})
        changed_workers = _changed(before.workers, workers, WorkerState.kept_apart, GONE, everything=keyframe)
        changed_models = _changed(before.models, models, ModelState.served, UNLISTED, everything=keyframe)
        changed_queues = _changed(before.models, models, ModelState.queue, None, everything=keyframe)
        changed_parts = [(part, body) for part, body in parts.items() if keyframe or before.parts.get(part) != body]
        made = {
            WORKER_STATES: [self._worker_row(connection, name, state) for name, state in changed_workers],
            WORKER_COUNTS: [
                {"worker": self.numbers.label(connection, "worker", name), **state.counts()}
                for name, state in workers.items()
                if keyframe or name not in before.workers
            ],
            MODEL_STATES: [
                {"model": self.numbers.label(connection, "model", name), **state.served()} for name, state in changed_models
            ],
            MODEL_QUEUES: [
                {"model": self.numbers.label(connection, "model", name), **state.queue()} for name, state in changed_queues
            ],
            PART_STATES: [{"part": part, "body": body} for part, body in changed_parts],
        }
        for table, rows in made.items():
            if rows:
                connection.execute(table.insert(), [{"source": source, "poll": poll, **values} for values in rows])
        changes = len(changed_workers) + len(changed_models) + len(changed_queues) + len(changed_parts)
        return _Last(row, poll if keyframe or last is None else last.keyframe, workers, models, parts), changes

    def _worker_row(self, connection: sa.Connection, worker_id: str, state: WorkerState) -> dict[str, Any]:
        profile = None if state.profile is None else self.numbers.profile(connection, state.profile)
        label = self.numbers.label(connection, "worker", worker_id)
        return {"worker": label, "profile": profile, "speed": state.speed}


def _may_write(connection: sa.Connection, source: int, owner: str | None) -> bool:
    if owner is None:
        return True
    query = sa.select(RECORDERS.c.owner).where(RECORDERS.c.source == source).with_for_update()
    return connection.scalar(query) == owner


def _write_events(connection: sa.Connection, source: int, events: Sequence[Event]) -> None:
    if events:
        rows = [{"source": source, "at_us": to_microseconds(at), "kind": kind, "text": text} for at, kind, text in events]
        connection.execute(EVENTS.insert(), rows)


def _write_alerts(connection: sa.Connection, source: int, alerts: AlertRecord | None, at_us: int) -> None:
    if alerts is None:
        return
    changed = connection.execute(ALERT_STATES.update().where(ALERT_STATES.c.source == source).values(body=alerts.state))
    if not changed.rowcount:
        connection.execute(ALERT_STATES.insert().values(source=source, body=alerts.state))
    keys = [key for key, _ in alerts.deliveries]
    there = set(connection.scalars(sa.select(DELIVERIES.c.key).where(DELIVERIES.c.key.in_(keys)))) if keys else set()
    open_ = {"made_us": at_us, "due_us": at_us, "tries": 0, "outcome": None}
    new = [
        {"source": source, "key": key, "body": body, **open_} for key, body in dict(alerts.deliveries).items() if key not in there
    ]
    if new:
        connection.execute(DELIVERIES.insert(), new)


State = TypeVar("State", WorkerState, ModelState)


def _changed(
    before: Mapping[str, State],
    now: Mapping[str, State],
    told_apart: Callable[[State], object],
    left: State | None,
    *,
    everything: bool,
) -> list[tuple[str, State]]:
    """Return what a poll has to store: what is new or differs, or everything at a keyframe; and, as ``left``, what left."""
    kept = [
        (name, state)
        for name, state in now.items()
        if everything or name not in before or told_apart(before[name]) != told_apart(state)
    ]
    return kept if left is None else kept + [(name, left) for name in before if name not in now]
