"""The history database's tables: what changed at each poll, in an order that only ever grows at its end.

Rows are keyed by poll, so that the file is written at its end and stays full; every so many polls one is a *keyframe*, which
holds every worker and model anew. The state at an instant is a keyframe and the changes after it, a bounded read.

What changed at a poll is told against the poll with the number before it. Numbers follow the order of writing: polls that were
imported into a gap, or before the first poll, have later numbers than what follows them in time. Read in the order of time,
polls are therefore a row of *runs*, each of numbers without a break, each beginning with a keyframe; mostly there is just one.

Whole-number columns hold instants in microseconds since the Unix epoch, UTC. A speed with one decimal, as the server writes
it, is kept in tenths, which take two bytes; any other as it is, below zero. Null is not reported.
"""

from typing import Any

import sqlalchemy as sa

__all__ = [
    "ALERT_STATES",
    "DELIVERIES",
    "EVENTS",
    "GAPS",
    "KEPT_DAYS",
    "KEPT_EXPORTS",
    "LABELS",
    "META",
    "MODEL_QUEUES",
    "MODEL_STATES",
    "PART_STATES",
    "POLLS",
    "PROFILES",
    "RECORDERS",
    "SCHEMA_VERSION",
    "SOURCES",
    "STATE_TABLES",
    "TABLES",
    "WORKER_COUNTS",
    "WORKER_STATES",
]

SCHEMA_VERSION = 1

TABLES = sa.MetaData()


class PlainText(sa.types.TypeDecorator[str]):
    r"""Text from the network: a NUL, which PostgreSQL takes in no text, is written as ``\0`` and read back as it was."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        """Return the text as it is stored."""
        return None if value is None else value.replace("\\", "\\\\").replace("\0", "\\0")

    def process_result_value(self, value: str | None, dialect: Any) -> str | None:
        """Return the text as it was given."""
        if value is None or "\\" not in value:
            return value
        return "\\".join(part.replace("\\0", "\0") for part in value.split("\\\\"))


META = sa.Table("history_meta", TABLES, sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False))

SOURCES = sa.Table(
    "history_source",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("name", PlainText, nullable=False, unique=True),
    sa.Column("synthetic", sa.Boolean, nullable=False),
)
"""The hordes that were polled, by the name that is shown, never with a secret; ``synthetic``: some of the data are made up."""

LABELS = sa.Table(
    "history_label",
    TABLES,
    sa.Column("label", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("text", PlainText, nullable=False),
    sa.UniqueConstraint("kind", "digest"),
)
"""Model names and worker ids, each once, told apart by their SHA-256: a name may be longer than an index takes."""

PROFILES = sa.Table(
    "history_profile",
    TABLES,
    sa.Column("profile", sa.Integer, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False, unique=True),
    sa.Column("body", sa.Text, nullable=False),
)
"""What a worker declares and seldom changes (name, models, sizes, threads, its flags and its owner's), each combination once."""

POLLS = sa.Table(
    "history_poll",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at_us", sa.BigInteger, nullable=False),
    sa.Column("keyframe", sa.Boolean, nullable=False),
    sa.Column("models_known", sa.Boolean, nullable=False),
    sa.Column("lag_us", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("source", "at_us"),
    sqlite_with_rowid=False,
)
"""One row a poll that was answered, at the instant of its newest part; its oldest part is ``lag_us`` older.

``models_known``: the models list could be had.
"""

WORKER_STATES = sa.Table(
    "history_worker_state",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("worker", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("profile", sa.Integer),
    sa.Column("speed", sa.Float),
    sqlite_with_rowid=False,
)
"""A worker from this poll on; ``profile`` null: it is gone."""

WORKER_COUNTS = sa.Table(
    "history_worker_count",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("worker", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("requests_fulfilled", sa.BigInteger),
    sa.Column("uncompleted_jobs", sa.BigInteger),
    sa.Column("uptime_s", sa.BigInteger),
    sqlite_with_rowid=False,
)
"""A worker's lifetime counts, written when it comes and at keyframes only: no figure rests on them."""

MODEL_STATES = sa.Table(
    "history_model_state",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("model", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("listed", sa.Boolean, nullable=False),
    sa.Column("threads", sa.BigInteger),
    sa.Column("job_speed", sa.Float),
    sqlite_with_rowid=False,
)
"""A model of the list from this poll on, as its workers serve it; ``listed`` false: it left the list."""

MODEL_QUEUES = sa.Table(
    "history_model_queue",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("model", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("queued_tokens", sa.Float),
    sa.Column("jobs", sa.Float),
    sa.Column("eta_s", sa.Float),
    sqlite_with_rowid=False,
)
"""What waits for a listed model from this poll on."""

PART_STATES = sa.Table(
    "history_part_state",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("part", sa.Text, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)
"""The other parts of a snapshot as JSON, when they changed."""

STATE_TABLES = (WORKER_STATES, WORKER_COUNTS, MODEL_STATES, MODEL_QUEUES, PART_STATES)
"""The tables whose rows belong to a poll."""

GAPS = sa.Table(
    "history_gap",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("from_us", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("to_us", sa.BigInteger, nullable=False),
    sa.Column("reason", PlainText, nullable=False),
    sqlite_with_rowid=False,
)
"""Time between two polls in which nothing was recorded although it should have been."""

EVENTS = sa.Table(
    "history_event",
    TABLES,
    sa.Column("event", sa.Integer, primary_key=True),
    sa.Column("source", sa.Integer, nullable=False),
    sa.Column("at_us", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("text", PlainText, nullable=False),
    sa.Index("history_event_at", "source", "at_us"),
)
"""What happened to the recorder (started, source away, clock set back, disk full) and the alerts that began and ended."""

RECORDERS = sa.Table(
    "history_recorder",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("owner", sa.Text),
    sa.Column("until_us", sa.BigInteger, nullable=False),
    sa.Column("interval_s", sa.Float, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("since_us", sa.BigInteger, nullable=False),
    sa.Column("text", PlainText, nullable=False),
    sqlite_with_rowid=False,
)
"""Who records a source (null: nobody any more), until when that holds unless renewed, and how the recorder stands since when."""

ALERT_STATES = sa.Table(
    "history_alert_state",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("body", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)
"""What the alerts of a source know after the last look, as JSON: written with the poll they were judged by."""

DELIVERIES = sa.Table(
    "history_delivery",
    TABLES,
    sa.Column("delivery", sa.Integer, primary_key=True),
    sa.Column("source", sa.Integer, nullable=False),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("made_us", sa.BigInteger, nullable=False),
    sa.Column("due_us", sa.BigInteger, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("outcome", sa.Text),
    sa.Index("history_delivery_open", "source", "outcome"),
)
"""What a webhook is to be told, one row a change, written with the change; ``outcome`` null: not delivered yet."""

KEPT_EXPORTS = sa.Table(
    "history_export",
    TABLES,
    sa.Column("export", sa.Integer, primary_key=True),
    sa.Column("name", PlainText, nullable=False, unique=True),
    sa.Column("title", PlainText, nullable=False),
    sa.Column("synthetic", sa.Boolean, nullable=False),
    sa.Column("collected_us", sa.BigInteger),
)
"""Metrics exports that are kept, by the name they are collected under; ``collected_us``: up to when a server was asked, null if
none was. Added after the first stores were made: one that lacks it holds none."""

KEPT_DAYS = sa.Table(
    "history_export_day",
    TABLES,
    sa.Column("export", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("runs", sa.BigInteger, nullable=False),
    sa.Column("first_us", sa.BigInteger, nullable=False),
    sa.Column("last_us", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""The samples of one UTC day (days since 1970, by the first sample of each run) as our own Parquet of samples."""
