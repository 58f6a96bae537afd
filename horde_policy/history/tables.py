"""The history database's tables: what changed at each poll, in an order that only ever grows at its end.

Rows are keyed by poll, so that the file is written at its end and stays full; every so many polls one is a *keyframe*, which
holds every worker and model anew. The state at an instant is a keyframe and the changes after it, a bounded read.
Whole-number columns hold instants in microseconds since the Unix epoch, UTC. A speed with one decimal, as the server writes
it, is kept in tenths; any other is kept as it is in ``…_raw``. Null is not reported.
"""

import sqlalchemy as sa

__all__ = [
    "EVENTS",
    "GAPS",
    "LABELS",
    "LEASES",
    "META",
    "MODEL_STATES",
    "PART_STATES",
    "POLLS",
    "PROFILES",
    "SCHEMA_VERSION",
    "SOURCES",
    "TABLES",
    "WORKER_STATES",
]

SCHEMA_VERSION = 1

TABLES = sa.MetaData()

META = sa.Table("history_meta", TABLES, sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False))

SOURCES = sa.Table(
    "history_source",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("synthetic", sa.Boolean, nullable=False),
)
"""The hordes that were polled, by the name that is shown; never with a secret."""

LABELS = sa.Table(
    "history_label",
    TABLES,
    sa.Column("label", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.UniqueConstraint("kind", "text"),
)
"""Model names and worker ids, each once."""

PROFILES = sa.Table(
    "history_profile",
    TABLES,
    sa.Column("profile", sa.Integer, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False, unique=True),
    sa.Column("body", sa.Text, nullable=False),
)
"""What a worker declares and seldom changes (name, models, sizes, threads, flags of its owner), each combination once."""

POLLS = sa.Table(
    "history_poll",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at_us", sa.BigInteger, nullable=False),
    sa.Column("keyframe", sa.Boolean, nullable=False),
    sa.Column("models_known", sa.Boolean, nullable=False),
    sa.UniqueConstraint("source", "at_us"),
    sqlite_with_rowid=False,
)
"""One row a poll that was answered; ``at_us`` grows with ``poll``. ``models_known``: the models list could be had."""

WORKER_STATES = sa.Table(
    "history_worker_state",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("worker", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("profile", sa.Integer),
    sa.Column("flags", sa.Integer),
    sa.Column("speed_tenths", sa.Integer),
    sa.Column("speed_raw", sa.Float),
    sa.Column("requests_fulfilled", sa.BigInteger),
    sa.Column("uncompleted_jobs", sa.BigInteger),
    sa.Column("uptime_s", sa.BigInteger),
    sqlite_with_rowid=False,
)
"""A worker from this poll on; ``profile`` null: it is gone. The three counts are those of this poll, not followed after it."""

MODEL_STATES = sa.Table(
    "history_model_state",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("poll", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("model", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("listed", sa.Boolean, nullable=False),
    sa.Column("threads", sa.BigInteger),
    sa.Column("job_speed_tenths", sa.Integer),
    sa.Column("job_speed_raw", sa.Float),
    sa.Column("queued_tokens", sa.Float),
    sa.Column("jobs", sa.Float),
    sa.Column("eta_s", sa.Float),
    sqlite_with_rowid=False,
)
"""A model of the list from this poll on; ``listed`` false: it left the list."""

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

GAPS = sa.Table(
    "history_gap",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("from_us", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("to_us", sa.BigInteger, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
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
    sa.Column("text", sa.Text, nullable=False),
    sa.Index("history_event_at", "source", "at_us"),
)
"""What happened to the recorder (started, source away, clock set back, disk full) and the alerts that began and ended."""

LEASES = sa.Table(
    "history_lease",
    TABLES,
    sa.Column("source", sa.Integer, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("until_us", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Who records a source: one owner at a time, so that two recorders on one store never double."""
