"""The state as of one poll: its keyframe and what changed since, folded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from horde_policy.history.states import COUNTS, ModelState, WorkerState
from horde_policy.history.tables import (
    LABELS,
    MODEL_QUEUES,
    MODEL_STATES,
    PART_STATES,
    POLLS,
    PROFILES,
    WORKER_COUNTS,
    WORKER_STATES,
)

__all__ = ["PollRow", "StateAt", "keyframe_of", "last_poll", "make_keyframe", "poll_at", "state_at"]


class PollRow(NamedTuple):
    """A poll's number, instant, whether it had a models list, and how much older its oldest part is."""

    poll: int
    at_us: int
    models_known: bool
    lag_us: int


NO_COUNTS = (None,) * len(COUNTS)
_POLL = (POLLS.c.poll, POLLS.c.at_us, POLLS.c.models_known, POLLS.c.lag_us)


def poll_at(connection: sa.Connection, source: int, at_us: int) -> PollRow | None:
    """Return the last poll at or before an instant; null if there is none."""
    query = sa.select(*_POLL).where(POLLS.c.source == source, POLLS.c.at_us <= at_us)
    row = connection.execute(query.order_by(POLLS.c.at_us.desc()).limit(1)).one_or_none()
    return None if row is None else PollRow(*row)


def last_poll(connection: sa.Connection, source: int) -> PollRow | None:
    """Return the newest poll of a source; null if there is none."""
    row = connection.execute(
        sa.select(*_POLL).where(POLLS.c.source == source).order_by(POLLS.c.at_us.desc()).limit(1)
    ).one_or_none()
    return None if row is None else PollRow(*row)


def keyframe_of(connection: sa.Connection, source: int, poll: int) -> int:
    """Return the keyframe that the state of a poll rests on."""
    query = sa.select(POLLS.c.poll).where(POLLS.c.source == source, POLLS.c.poll <= poll, POLLS.c.keyframe)
    return int(connection.execute(query.order_by(POLLS.c.poll.desc()).limit(1)).scalar_one())


@dataclass(frozen=True, slots=True)
class StateAt:
    """The state as of one poll, and the keyframe it started from; workers that are gone and unlisted models are not in it."""

    keyframe: int
    workers: dict[str, WorkerState]
    models: dict[str, ModelState]
    parts: dict[str, str]


def state_at(connection: sa.Connection, source: int, poll: int) -> StateAt:
    """Return the state as of a poll."""
    first = keyframe_of(connection, source, poll)
    w, c, m, q, p = WORKER_STATES.c, WORKER_COUNTS.c, MODEL_STATES.c, MODEL_QUEUES.c, PART_STATES.c
    worker_rows = connection.execute(
        sa.select(LABELS.c.text, PROFILES.c.body, w.speed)
        .select_from(WORKER_STATES.join(LABELS, LABELS.c.label == w.worker).outerjoin(PROFILES, PROFILES.c.profile == w.profile))
        .where(w.source == source, w.poll >= first, w.poll <= poll)
        .order_by(w.poll)
    )
    workers = {row[0]: row[1:] for row in worker_rows}
    count_rows = connection.execute(
        sa.select(LABELS.c.text, *(c[name] for name in COUNTS))
        .select_from(WORKER_COUNTS.join(LABELS, LABELS.c.label == c.worker))
        .where(c.source == source, c.poll >= first, c.poll <= poll)
        .order_by(c.poll)
    )
    counts = {row[0]: row[1:] for row in count_rows}
    model_rows = connection.execute(
        sa.select(LABELS.c.text, m.listed, m.threads, m.job_speed)
        .select_from(MODEL_STATES.join(LABELS, LABELS.c.label == m.model))
        .where(m.source == source, m.poll >= first, m.poll <= poll)
        .order_by(m.poll)
    )
    models = {row[0]: row[1:] for row in model_rows}
    queue_rows = connection.execute(
        sa.select(LABELS.c.text, q.queued_tokens, q.jobs, q.eta_s)
        .select_from(MODEL_QUEUES.join(LABELS, LABELS.c.label == q.model))
        .where(q.source == source, q.poll >= first, q.poll <= poll)
        .order_by(q.poll)
    )
    queues = {row[0]: row[1:] for row in queue_rows}
    part_rows = connection.execute(
        sa.select(p.part, p.body).where(p.source == source, p.poll >= first, p.poll <= poll).order_by(p.poll)
    )
    return StateAt(
        first,
        {
            worker_id: WorkerState(*state, *counts.get(worker_id, NO_COUNTS))
            for worker_id, state in workers.items()
            if state[0] is not None
        },
        {model: ModelState(*state, *queues[model]) for model, state in models.items() if state[0]},
        {row[0]: row[1] for row in part_rows},
    )


def _is_there(state: Mapping[str, Any]) -> bool:
    """Tell whether a row says that its worker is there, its model listed."""
    return bool(state.get("listed", True)) and state.get("profile", 0) is not None


def make_keyframe(connection: sa.Connection, source: int, poll: int) -> None:
    """Let a poll hold everything, so that it no longer rests on the polls numbered before it."""
    first = keyframe_of(connection, source, poll)
    if first == poll:
        return
    keys = {WORKER_STATES: "worker", WORKER_COUNTS: "worker", MODEL_STATES: "model", MODEL_QUEUES: "model", PART_STATES: "part"}
    for table, key in keys.items():
        c = table.c
        rows = sa.select(table).where(c.source == source, c.poll >= first, c.poll <= poll).order_by(c.poll)
        held = {row[key]: dict(row) for row in connection.execute(rows).mappings()}
        there = [state | {"poll": poll} for state in held.values() if _is_there(state)]
        connection.execute(sa.delete(table).where(c.source == source, c.poll == poll))
        if there:
            connection.execute(table.insert(), there)
    connection.execute(POLLS.update().where(POLLS.c.source == source, POLLS.c.poll == poll).values(keyframe=True))
