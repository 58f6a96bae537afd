"""A webhook that is told each alert's change once: an outbox in the history, worked off in order, with back-off.

A message is written with the change it tells and marked when the receiver has answered 2xx. Between a receiver's answer and the
mark a process can die; the message is then sent again with the same ``Idempotency-Key``, by which a receiver tells a repetition.
No way over a network can do without that.
"""

import contextlib
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx
import sqlalchemy as sa

from horde_policy import __version__
from horde_policy.clock import Clock
from horde_policy.errors import ConfigError, StoreError
from horde_policy.history.store import HistoryStore, to_microseconds
from horde_policy.history.tables import DELIVERIES, EVENTS, SOURCES
from horde_policy.history.webhook_standing import RECOVERED, WEBHOOK_EVENTS, last_of

__all__ = ["WebhookSender", "checked_webhook"]

SETTING = "--webhook"
ANSWER_S = 10.0
CLAIM_S = 60.0
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 300.0
LOOK_EVERY_S = 2.0
GIVE_UP_AFTER = timedelta(days=1)
OK = range(200, 300)


def checked_webhook(address: str) -> str:
    """Return the address of a webhook; what of it may be a secret (its path and query) is in no error.

    Raises
    ------
    ConfigError
        It is no http(s) address, or carries a user name or password.

    Examples
    --------
    >>> checked_webhook("https://hooks.example/T0/secret?x=1")
    'https://hooks.example/T0/secret?x=1'
    >>> checked_webhook("ftp://hooks.example/secret")
    Traceback (most recent call last):
    horde_policy.errors.ConfigError: setting --webhook: 'ftp://…' must be an address like https://host/path
    >>> checked_webhook("notaurl")
    Traceback (most recent call last):
    horde_policy.errors.ConfigError: setting --webhook: 'notaurl' must be an address like https://host/path
    >>> checked_webhook("hooks.example/T0/secret")
    Traceback (most recent call last):
    horde_policy.errors.ConfigError: setting --webhook: 'hooks.example…' must be an address like https://host/path
    """
    text = address.strip()
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        httpx.URL(text)
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable:
        raise ConfigError(SETTING, _shown(text), "must be an address like https://host/path")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(SETTING, f"{parts.scheme}://…@…", "must carry no user name or password")
    return text


def _shown(text: str) -> str:
    """Return what can be shown of a text that is no address: its scheme, or what stands before any path, query or password."""
    scheme, there, _ = text.partition("://")
    if there:
        return f"{scheme[:20]}://…"
    host = re.split(r"[/\\?#]", text, maxsplit=1)[0]
    return "…" if "@" in host else host if host == text and len(host) <= 40 else f"{host[:20]}…"


@dataclass(frozen=True, slots=True)
class _Message:
    delivery: int
    key: str
    body: str
    tries: int
    given_up: bool


class WebhookSender:
    """Works off what a webhook of one source is to be told.

    Parameters
    ----------
    store
        A store of its own connections, which it does not close.
    source, address
        Whose changes, and where to. Redirects are not followed.
    clock
        Tells what is due.
    transport
        Another way to the receiver, for tests.
    told
        Is given a sentence when the webhook begins to fail, when a message is given up, and when it works again.
    """

    def __init__(
        self,
        store: HistoryStore,
        source: str,
        address: str,
        *,
        clock: Clock,
        transport: httpx.BaseTransport | None = None,
        told: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store
        self._source = source
        self._address = checked_webhook(address)
        self._host = urlsplit(self._address).netloc
        self._clock = clock
        self._told = told or (lambda _: None)
        self._failing = False
        headers = {"Content-Type": "application/json", "User-Agent": f"horde_policy/{__version__}"}
        self._client = httpx.Client(headers=headers, timeout=ANSWER_S, follow_redirects=False, transport=transport)

    def __enter__(self) -> Self:
        """Return the sender."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the connections."""
        self._client.close()

    def send_due(self) -> int:
        """Send what is due, the oldest first, up to the first failure; return how many were delivered.

        Raises
        ------
        StoreError
            The store cannot be read or written.
        """
        delivered = given_up = 0
        while (message := self._claim()) is not None:
            if message.given_up:
                given_up += 1
                continue
            failure = self._post(message)
            recovered = self._mark(message, failure)
            if failure is not None:
                if not self._failing:
                    self._told(f"webhook failed: {failure}; it is tried again")
                self._failing = True
                break
            if recovered or self._failing:
                self._told(f"webhook recovered: {self._host} was told")
            self._failing = False
            delivered += 1
        if given_up:
            self._told(f"webhook gave up: {given_up} changes of alerts could not be told within a day")
        return delivered

    def _claim(self) -> _Message | None:
        """Take the oldest open message, if it is due: for a while no other process of this store takes it."""
        now = self._clock.now()
        now_us, d = to_microseconds(now), DELIVERIES.c
        # Due later than any pause can be: the clock was set back since.
        latest_us = to_microseconds(now + timedelta(seconds=max(LONGEST_PAUSE_S, CLAIM_S)))
        with self._store.writing() as connection:
            source = sa.select(SOURCES.c.source).where(SOURCES.c.name == self._source).scalar_subquery()
            query = sa.select(DELIVERIES).where(d.source == source, d.outcome.is_(None)).order_by(d.delivery).limit(1)
            row = connection.execute(query.with_for_update()).one_or_none()
            if row is None or now_us < row.due_us <= latest_us:
                return None
            given_up = row.made_us < to_microseconds(now - GIVE_UP_AFTER)
            mine = DELIVERIES.update().where(d.delivery == row.delivery)
            if given_up:
                connection.execute(mine.values(outcome="given_up"))
                text = f"the webhook could not be told within a day, after {row.tries} tries: {row.body[:500]}"
                event = {"source": row.source, "at_us": now_us, "kind": "webhook_gave_up", "text": text}
                connection.execute(EVENTS.insert().values(**event))
            else:
                held_us = to_microseconds(now + timedelta(seconds=CLAIM_S))
                connection.execute(mine.values(due_us=held_us, tries=row.tries + 1))
        return _Message(row.delivery, row.key, row.body, row.tries + 1, given_up)

    def _post(self, message: _Message) -> str | None:
        """Send a message; return what went wrong, without the address, or null."""
        try:
            headers = {"Idempotency-Key": message.key}
            with self._client.stream("POST", self._address, content=message.body, headers=headers) as answer:
                return None if answer.status_code in OK else f"{self._host} answers {answer.status_code}"
        except (httpx.HTTPError, httpx.StreamError) as error:
            return f"{self._host} cannot be reached ({type(error).__name__})"

    def _mark(self, message: _Message, failure: str | None) -> bool:
        """Store what came of a message; return whether it is the first that got through after a stored failure."""
        now = self._clock.now()
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(message.tries - 1, 10))
        again_us = to_microseconds(now + timedelta(seconds=pause_s))
        with self._store.writing() as connection:
            mine = DELIVERIES.update().where(DELIVERIES.c.delivery == message.delivery)
            connection.execute(mine.values(outcome="sent") if failure is None else mine.values(due_us=again_us))
            if failure is not None and message.tries == 1:
                source = sa.select(DELIVERIES.c.source).where(DELIVERIES.c.delivery == message.delivery).scalar_subquery()
                event = {"at_us": to_microseconds(now), "kind": "webhook_failed", "text": f"{failure}; it is tried again"}
                connection.execute(EVENTS.insert().values(source=source, **event))
            return failure is None and self._note_recovery(connection, to_microseconds(now))

    def _note_recovery(self, connection: sa.Connection, now_us: int) -> bool:
        source = connection.scalar(sa.select(SOURCES.c.source).where(SOURCES.c.name == self._source))
        last = last_of(connection, source, WEBHOOK_EVENTS)
        if last is None or last.kind == RECOVERED:
            return False
        event = {"source": source, "at_us": now_us, "kind": RECOVERED, "text": f"{self._host} was told"}
        connection.execute(EVENTS.insert().values(**event))
        return True

    def run(self, stop: threading.Event, *, wait: Callable[[float], object] | None = None) -> None:
        """Send what is due until ``stop`` is set; ``wait`` passes seconds, by default until ``stop``."""
        pause = wait or stop.wait
        while not stop.is_set():
            with contextlib.suppress(StoreError):  # the recorder tells it; what was not marked is sent again
                self.send_due()
            pause(LOOK_EVERY_S)
