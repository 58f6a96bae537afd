"""The demo's history: seven made-up days that end with the demo's snapshot, on a demo clock.

They come with the program as an export, are taken once into a store of the running program, and are moved so that the last poll
is never more than a few minutes ago, whenever that is: what they show is never stale.
"""

import atexit
import json
import shutil
import tempfile
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import sqlalchemy as sa

from horde_policy.board.alerts import AlertState
from horde_policy.errors import InputError
from horde_policy.history.reading import sources_in
from horde_policy.history.store import HistoryStore, to_microseconds
from horde_policy.history.tables import ALERT_STATES, EVENTS, GAPS, POLLS
from horde_policy.history.transfer import import_history
from horde_policy.sources.demo import BUNDLED_FOLDER

__all__ = ["ALERTS_FILE", "DEMO_HISTORY_FOLDER", "MOVED_EVERY_S", "DemoHistory", "demo_history"]

DEMO_HISTORY_FOLDER = BUNDLED_FOLDER / "history"
"""A folder of :func:`horde_policy.history.export.export_history`, and what the alerts knew at its end."""

ALERTS_FILE = "alerts.json"

MOVED_EVERY_S = 300
"""The demo's history moves on in steps of this, so that what was read of it holds for a while."""


class DemoHistory:
    """An exported history in a store of its own that moves with the clock; safe to use from several threads.

    Parameters
    ----------
    folder
        The export; it holds one source.
    place
        A folder for the store's file; it must be there.

    Attributes
    ----------
    store
        Its last poll is where :meth:`move_to` last put it.

    Raises
    ------
    InputError, StoreError
        The export cannot be read, or taken in.
    """

    def __init__(self, folder: Path, place: Path) -> None:
        self.store = HistoryStore(place / "demo-history.sqlite", durable=False)
        import_history(self.store, folder)
        self._lock = threading.Lock()
        span = sources_in(self.store)[0]
        assert span.last is not None
        self._last = self._made_for = span.last
        self._alerts = _read_alerts(folder / ALERTS_FILE)

    def move_to(self, now: datetime) -> datetime:
        """Let the last poll be at the whole step at or before an instant; return when that is."""
        last = datetime.fromtimestamp(now.timestamp() // MOVED_EVERY_S * MOVED_EVERY_S, tz=UTC)
        with self._lock:
            if last != self._last:
                self._move(last)
                self._last = last
        return last

    def _move(self, last: datetime) -> None:
        by = to_microseconds(last) - to_microseconds(self._last)
        moved = {POLLS: ("at_us",), GAPS: ("from_us", "to_us"), EVENTS: ("at_us",)}
        with self.store.writing() as connection:
            for table, columns in moved.items():
                # Instants are unique, and checked row by row: below zero the moved ones meet none of the others.
                connection.execute(table.update().values({name: -(table.c[name] + by) for name in columns}))
                connection.execute(table.update().values({name: -table.c[name] for name in columns}))
            state = _moved(self._alerts, last - self._made_for)
            connection.execute(sa.delete(ALERT_STATES))
            source = connection.execute(sa.select(POLLS.c.source).limit(1)).scalar_one()
            connection.execute(ALERT_STATES.insert().values(source=source, body=json.dumps(state.stored())))


def _read_alerts(path: Path) -> AlertState:
    try:
        return AlertState.restored(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise InputError("demo history", "", str(path), f"cannot be read: {error}") from error


def _moved(state: AlertState, by: timedelta) -> AlertState:
    """Return what the alerts know as if everything had been so much later.

    >>> at = datetime(2026, 11, 29, tzinfo=UTC)
    >>> _moved(AlertState(looked_at=at), timedelta(days=1)).looked_at.day
    30
    """
    alerts = {
        key: replace(alert, since=alert.since + by, fired_at=None if alert.fired_at is None else alert.fired_at + by)
        for key, alert in state.alerts.items()
    }
    seen = {model: at + by for model, at in state.seen.items()}
    return AlertState(alerts=alerts, seen=seen, looked_at=None if state.looked_at is None else state.looked_at + by)


_LOADING = threading.Lock()


@cache
def _loaded() -> DemoHistory:
    place = Path(tempfile.mkdtemp(prefix="horde-policy-demo-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return DemoHistory(DEMO_HISTORY_FOLDER, place)


def demo_history() -> DemoHistory:
    """Return the demo's history, which is taken in when it is first asked for, once a process, and thrown away at its end."""
    with _LOADING:
        return _loaded()
