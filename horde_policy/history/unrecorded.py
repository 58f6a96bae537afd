"""What an instant that no poll holds for is told: it lies in a gap of the history, or after its last poll."""

from datetime import UTC, datetime
from itertools import pairwise

import sqlalchemy as sa

from horde_policy.errors import Problem
from horde_policy.history.folding import last_poll
from horde_policy.history.reading import chosen_source
from horde_policy.history.recorder import DEFAULT_INTERVAL_S, GAP_FACTOR
from horde_policy.history.store import HistoryStore, from_microseconds, to_microseconds
from horde_policy.history.tables import GAPS, POLLS, RECORDERS

__all__ = ["UNRECORDED", "unrecorded_at"]

UNRECORDED = "not_recorded"
"""The code of the problem."""

POLLS_COMPARED = 50


def unrecorded_at(store: HistoryStore, at: datetime, source: str | None = None) -> Problem | None:
    """Return that the figures of an instant are those of an earlier poll, as none was stored near it; null where one was.

    An instant is after the end when it is later than the last poll by as much as makes a gap, 1.75 intervals (decision 0103).
    The interval is the recorder's; of polls that were imported, their median distance.

    Raises
    ------
    InputError
        The source is not in the store.
    StoreError
        The store cannot be read, or holds no poll.
    """
    at_us = to_microseconds(at)
    with store.reading() as connection:
        chosen = chosen_source(connection, store, source)
        number = chosen.number
        query = sa.select(GAPS).where(GAPS.c.source == number, GAPS.c.from_us < at_us, GAPS.c.to_us > at_us)
        gap = connection.execute(query.order_by(GAPS.c.from_us.desc()).limit(1)).one_or_none()
        if gap is not None:
            start, end = _said(gap.from_us), _said(gap.to_us)
            text = f"not recorded from {start} to {end} ({gap.reason}); the figures are of the last poll before, at {start}"
            return Problem(UNRECORDED, chosen.name, text)
        last = last_poll(connection, number)
        if last is None or (at_us - last.at_us) / 1e6 <= GAP_FACTOR * _interval_s(connection, number):
            return None
    text = f"not recorded at {_said(at_us)}; the last poll is of {_said(last.at_us)}, and so are the figures"
    return Problem(UNRECORDED, chosen.name, text)


def _said(at_us: int) -> str:
    return f"{from_microseconds(at_us).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _interval_s(connection: sa.Connection, source: int) -> float:
    interval = connection.execute(sa.select(RECORDERS.c.interval_s).where(RECORDERS.c.source == source)).scalar_one_or_none()
    if interval is not None:
        return float(interval)
    query = sa.select(POLLS.c.at_us).where(POLLS.c.source == source).order_by(POLLS.c.at_us.desc()).limit(POLLS_COMPARED)
    instants = connection.execute(query).scalars().all()
    apart = sorted(later - earlier for later, earlier in pairwise(instants))
    return apart[len(apart) // 2] / 1e6 if apart else DEFAULT_INTERVAL_S
