"""Alerts judged at each poll and kept in the history, so that a restart neither forgets nor doubles one (issue 3).

The state machine is :mod:`horde_policy.board.alerts`. Its state after a look is written in the transaction of the poll that it
was judged by, with an event for each change and, if a webhook is configured, a message for it.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from horde_policy.board.alerts import DEFAULT_RULES, Alert, AlertChange, AlertRules, AlertState, evaluate, evaluate_age
from horde_policy.board.rows import Board, make_board
from horde_policy.errors import InputError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.reading import chosen_source, snapshot_at, sources_in
from horde_policy.history.store import AlertRecord, Event, HistoryStore
from horde_policy.history.tables import ALERT_STATES
from horde_policy.settings import AllowanceSettings
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_LENGTH_TOKENS

__all__ = ["AlertKeeper", "Judged", "alert_sentence", "firing_alerts", "stored_alerts"]

_SENTENCES = {
    "at_floor": "{model}: the allowance {is_} at the floor",
    "no_worker": "{model}: no worker {is_} online",
    "small_free_request": "{model}: the largest free request {is_} under {small} tokens",
    "stale": "the data {are} stale",
}


def alert_sentence(change: AlertChange, rules: AlertRules = DEFAULT_RULES) -> str:
    """Return a change as a sentence without its full stop; the model's name in it is hostile text.

    It calls the states as the pages do: a model of the state ``no_worker`` has no worker at all, of whatever size.

    >>> from datetime import UTC
    >>> at = datetime(2026, 11, 29, 12, tzinfo=UTC)
    >>> alert_sentence(AlertChange(kind="fired", alert=Alert(rule="at_floor", model="m", since=at, fired_at=at), at=at))
    'm: the allowance is at the floor, since 2026-11-29 12:00:00 UTC'
    """
    alert = change.alert
    is_, are = ("was", "were") if change.kind == "resolved" else ("is", "are")
    text = _SENTENCES[alert.rule].format(model=alert.model, is_=is_, are=are, small=rules.small_free_tokens)
    since, at = (f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" for moment in (alert.since, change.at))
    if change.kind == "resolved":
        left = "; since then no worker is online" if change.instead == "no_worker" else ""
        return f"{text}, from {since} to {at}{left}"
    forgotten = f"; not seen again by {at}, the model is forgotten" if change.kind == "forgotten" else ""
    return f"{text}, since {since}{forgotten}"


def _message(source: str, change: AlertChange, rules: AlertRules) -> tuple[str, str]:
    """Return key and body of the message that tells a change; equal changes have equal keys."""
    alert = change.alert
    named = [source, change.kind, alert.rule, alert.model, alert.since.isoformat()]
    key = hashlib.sha256(json.dumps(named).encode()).hexdigest()[:32]
    body = {
        "key": key,
        "source": source,
        "kind": change.kind,
        "rule": alert.rule,
        "model": alert.model,
        "since": alert.since.isoformat(),
        "fired_at": None if alert.fired_at is None else alert.fired_at.isoformat(),
        "at": change.at.isoformat(),
        "instead": change.instead,
        "text": alert_sentence(change, rules),
    }
    return key, json.dumps(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a look told of the alerts: their next state, and what to store of it."""

    state: AlertState
    changes: tuple[AlertChange, ...]
    events: tuple[Event, ...]
    record: AlertRecord


class AlertKeeper:
    """Judges the alerts of one source at each look; what it knows it takes from the store when it starts.

    Parameters
    ----------
    settings, max_length, context_tokens
        What the boards are read at.
    rules
        Durations and marks.
    deliver
        Whether a webhook is to be told.
    """

    def __init__(
        self,
        settings: AllowanceSettings,
        *,
        max_length: int = DEFAULT_MAX_LENGTH_TOKENS,
        context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS,
        rules: AlertRules = DEFAULT_RULES,
        deliver: bool = False,
    ) -> None:
        self._settings = settings
        self._max_length = max_length
        self._context_tokens = context_tokens
        self._rules = rules
        self._deliver = deliver
        self._state, self._source = AlertState(), ""

    def resume(self, store: HistoryStore, source: str) -> None:
        """Take up what the store says of the source's alerts and of its last look; again whenever another may have written.

        Raises
        ------
        StoreError
            The store cannot be read.
        """
        state = stored_alerts(store, source)
        spans = {span.name: span.last for span in sources_in(store)}
        last = spans.get(source)
        if state.fresh_until is None and last is not None:  # polls, but nothing or nothing of this version told of them
            held = snapshot_at(store, last, source)
            state = replace(state, fresh_until=held.figures_at + timedelta(seconds=held.age_limit_s))
        self._state, self._source = state, source

    def _read(self, snapshot: Snapshot) -> Board:
        return make_board(
            snapshot, self._settings, max_length=self._max_length, context_tokens=self._context_tokens, strip_sizes=()
        )

    def judge(self, snapshot: Snapshot | None, now: datetime) -> Judged | None:
        """Return what a look tells; without a snapshot, what the age of the last one tells. Null while there was never one."""
        if snapshot is not None:
            state, changes = evaluate(self._state, self._read(snapshot), now, self._rules)
            source = self._source = snapshot.source
        elif self._state.fresh_until is not None:
            state, changes = evaluate_age(self._state, now, self._rules)
            source = self._source
        else:
            return None
        return Judged(
            state=state,
            changes=changes,
            events=tuple((change.at, f"alert_{change.kind}", alert_sentence(change, self._rules)) for change in changes),
            record=AlertRecord(
                state=json.dumps(state.stored(), separators=(",", ":")),
                deliveries=tuple(_message(source, change, self._rules) for change in changes) if self._deliver else (),
            ),
        )

    def accept(self, judged: Judged) -> None:
        """Go on from what was judged: it is stored now."""
        self._state = judged.state


def stored_alerts(store: HistoryStore, source: str | None = None) -> AlertState:
    """Return what the alerts of a source know after its last look; nothing, where nothing or nothing readable is stored.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    with store.reading() as connection:
        try:
            chosen = chosen_source(connection, store, source)
        except InputError:
            return AlertState()
        body = connection.scalar(sa.select(ALERT_STATES.c.body).where(ALERT_STATES.c.source == chosen.number))
    if body is None:
        return AlertState()
    try:
        return AlertState.restored(json.loads(body))
    except InputError:  # written by another version: judged anew from here on
        return AlertState()


def firing_alerts(store: HistoryStore, source: str | None = None) -> tuple[Alert, ...]:
    """Return the alerts that fire as of the last look, by rule, then the longest first, with since-when.

    Parameters
    ----------
    store
        A history that a recorder writes; what it last knew stands, see
        :func:`horde_policy.history.status.recorder_statuses` for whether it still records.
    source
        Null: the most recently polled one.

    Raises
    ------
    StoreError
        The store cannot be read, or holds no poll.
    """
    return stored_alerts(store, source).firing
