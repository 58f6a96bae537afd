"""How the recorders of a store stand, for those who read it: recording, away, silent, stopped, and since when."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from horde_policy.history.folding import last_poll
from horde_policy.history.store import HistoryStore, from_microseconds, to_microseconds
from horde_policy.history.tables import RECORDERS, SOURCES
from horde_policy.history.webhook_standing import webhook_sentence

__all__ = ["RecorderStatus", "recorder_statuses"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderStatus:
    """How the recorder of one source stands, as far as its store tells.

    Attributes
    ----------
    source
        What is recorded.
    state
        As of :data:`horde_policy.history.recorder.State`, or ``stopped`` (ended in order), ``silent`` (no sign of it although
        it was due: it died, hangs, or cannot write), ``never`` (its polls were imported).
    since
        Since when; null for ``never``.
    text
        Why, where a word is not enough; may hold hostile names.
    last_poll
        When it last stored a poll; null before the first.
    interval_s
        Between polls; null for ``never``.
    webhook
        When and why its webhook last failed, and whether it works again; empty if it never failed.
    """

    source: str
    state: str
    since: datetime | None
    text: str
    last_poll: datetime | None
    interval_s: float | None
    webhook: str = ""

    @property
    def is_well(self) -> bool:
        """Whether it records as it should."""
        return self.state in ("recording", "starting")

    def sentence(self) -> str:
        """Return how it stands as people read it.

        >>> RecorderStatus(source="h", state="never", since=None, text="", last_poll=None, interval_s=None).sentence()
        'Not recorded here: its polls were imported'
        """
        said = {
            "starting": "Starting",
            "recording": "Recording",
            "source_away": "The source gives no answer",
            "throttled": "The source asks to be left alone",
            "clock_behind": "The clock was set back",
            "store_failing": "The store cannot be written",
            "stopped": "Stopped",
            "silent": "No sign of the recorder",
            "never": "Not recorded here: its polls were imported",
        }[self.state]
        since = "" if self.since is None else f" since {self.since:%Y-%m-%d %H:%M:%S} UTC"
        return f"{said}{since}" + (f": {self.text}" if self.text else "")


def recorder_statuses(store: HistoryStore, now: datetime) -> tuple[RecorderStatus, ...]:
    """Return how the recorders of a store stand at an instant, one a source, by its name.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    with store.reading() as connection:
        query = sa.select(SOURCES.c.source, SOURCES.c.name, RECORDERS)
        joined = query.select_from(SOURCES.outerjoin(RECORDERS, RECORDERS.c.source == SOURCES.c.source))
        rows = connection.execute(joined.order_by(SOURCES.c.name)).all()
        return tuple(_status(connection, row, now) for row in rows)


def _status(connection: sa.Connection, row: sa.Row[Any], now: datetime) -> RecorderStatus:
    poll = last_poll(connection, int(row[0]))
    last = None if poll is None else from_microseconds(poll.at_us)
    webhook = webhook_sentence(connection, int(row[0]))
    if row.state is None:
        return RecorderStatus(
            source=row.name, state="never", since=None, text="", last_poll=last, interval_s=None, webhook=webhook
        )
    state, since, text = str(row.state), from_microseconds(row.since_us), str(row.text)
    if row.owner is not None and to_microseconds(now) > row.until_us:
        text = f"the last it said was {state}" + (f": {text}" if text else "")
        state, since = "silent", from_microseconds(row.until_us)
    return RecorderStatus(
        source=row.name,
        state=state,
        since=since,
        text=text,
        last_poll=last,
        interval_s=row.interval_s,
        webhook=webhook,
    )
