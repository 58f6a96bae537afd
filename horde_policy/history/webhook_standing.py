"""How the webhook of a source stands, as the events of its history tell: when it last failed, and whether it works again."""

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from horde_policy.history.database import from_microseconds
from horde_policy.history.tables import EVENTS

__all__ = ["FAILURES", "RECOVERED", "WEBHOOK_EVENTS", "last_of", "webhook_sentence"]

RECOVERED = "webhook_recovered"
FAILURES = ("webhook_failed", "webhook_gave_up")
WEBHOOK_EVENTS = (*FAILURES, RECOVERED)


def last_of(connection: sa.Connection, source: int | None, kinds: Collection[str]) -> sa.Row[Any] | None:
    """Return the event of a source that was written last among some kinds; null if there is none."""
    query = sa.select(EVENTS).where(EVENTS.c.source == source, EVENTS.c.kind.in_(kinds))
    return connection.execute(query.order_by(EVENTS.c.event.desc()).limit(1)).one_or_none()


def webhook_sentence(connection: sa.Connection, source: int) -> str:
    """Return when and why the webhook of a source last failed, and since when it works again; empty if it never failed.

    The receiver's host is all that it tells of the address. What was to be told, which holds names from the network, is left out.
    """
    failure = last_of(connection, source, FAILURES)
    if failure is None:
        return ""
    why = str(failure.text).partition(": {")[0][:300]
    sentence = f"The webhook failed at {from_microseconds(failure.at_us):%Y-%m-%d %H:%M:%S} UTC: {why}"
    last = last_of(connection, source, WEBHOOK_EVENTS)
    if last is None or last.kind != RECOVERED:
        return sentence
    why = why.removesuffix("; it is tried again")
    return f"{sentence.partition(': ')[0]}: {why}; it works again since {from_microseconds(last.at_us):%Y-%m-%d %H:%M:%S} UTC"
