"""The ledger's tables, on SQLite (STRICT) and PostgreSQL alike.

Money is whole pico-dollars, instants are microseconds since the epoch (UTC), everything else is whole numbers or text: no
column can hold a binary float. Every movement of money is an entry with its number in its window, so the counters of a
window can be rebuilt and the order of what happened is known.
"""

from typing import Final

import sqlalchemy as sa

__all__ = [
    "METADATA",
    "SCHEMA_VERSION",
    "budgets",
    "disputes",
    "entries",
    "holds",
    "limits",
    "meta",
    "price_rows",
    "totals",
    "windows",
]

SCHEMA_VERSION: Final = "2"

METADATA = sa.MetaData()

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _whole(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, INT, nullable=null)


def _text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=null)


def _key(name: str) -> sa.Column[int]:
    return sa.Column(name, INT, primary_key=True, autoincrement=True)


meta = sa.Table("meta", METADATA, sa.Column("name", sa.Text, primary_key=True), _text("value"), sqlite_strict=True)

budgets = sa.Table(
    "budgets",
    METADATA,
    _key("budget_id"),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    _whole("created_us"),
    sqlite_strict=True,
)

limits = sa.Table(
    "limits",
    METADATA,
    _key("limit_id"),
    sa.Column("budget_id", INT, sa.ForeignKey(budgets.c.budget_id), nullable=False),
    _text("kind"),
    _text("zone"),
    _whole("limit_pico"),
    _whole("open_cap", null=True),
    _whole("active"),
    _whole("latest_start_us", null=True),
    sa.UniqueConstraint("budget_id", "kind", "zone"),
    sa.CheckConstraint("limit_pico >= 0"),
    sqlite_strict=True,
)

windows = sa.Table(
    "windows",
    METADATA,
    _key("window_id"),
    sa.Column("limit_id", INT, sa.ForeignKey(limits.c.limit_id), nullable=False),
    _whole("start_us"),
    _whole("end_us", null=True),
    _whole("spent_pico"),
    _whole("held_pico"),
    _whole("open_count"),
    _whole("settled_count"),
    _whole("moves"),
    sa.UniqueConstraint("limit_id", "start_us"),
    sa.CheckConstraint("spent_pico >= 0 AND held_pico >= 0 AND open_count >= 0"),
    sqlite_strict=True,
)

price_rows = sa.Table(
    "price_rows", METADATA, sa.Column("price_id", sa.Text, primary_key=True), _text("price"), sqlite_strict=True
)

holds = sa.Table(
    "holds",
    METADATA,
    _key("hold_id"),
    _text("request_id"),
    _whole("attempt"),
    _text("owner"),
    _text("model"),
    _text("state"),
    _text("price_ids"),
    _whole("body_bytes"),
    _whole("input_estimate_tokens"),
    _whole("limit_tokens", null=True),
    _whole("reserved_tokens"),
    _whole("choices"),
    _text("cache"),
    _whole("hold_pico"),
    _whole("input_pico"),
    _whole("created_us"),
    _whole("expires_us"),
    _whole("ended_us", null=True),
    _whole("cost_pico", null=True),
    _text("settled_price_id", null=True),
    _whole("fresh_tokens", null=True),
    _whole("cache_read_tokens", null=True),
    _whole("write_5m_tokens", null=True),
    _whole("write_1h_tokens", null=True),
    _whole("output_tokens", null=True),
    _whole("reasoning_tokens", null=True),
    _text("flags"),
    sa.UniqueConstraint("request_id", "attempt"),
    sa.CheckConstraint("hold_pico >= 0 AND (cost_pico IS NULL OR cost_pico >= 0)"),
    sa.CheckConstraint("(state = 'open') = (cost_pico IS NULL)"),
    sqlite_strict=True,
)
# Requests whose cost is not written yet are few among many, and are asked for all the time.
for _state in ("open", "expired"):
    _is_in = holds.c.state == sa.literal_column(f"'{_state}'")
    sa.Index(f"holds_{_state}", holds.c.expires_us, sqlite_where=_is_in, postgresql_where=_is_in)

entries = sa.Table(
    "entries",
    METADATA,
    sa.Column("window_id", INT, sa.ForeignKey(windows.c.window_id), primary_key=True, autoincrement=False),
    sa.Column("move", INT, primary_key=True, autoincrement=False),
    sa.Column("hold_id", INT, sa.ForeignKey(holds.c.hold_id), nullable=False, index=True),
    _text("what"),
    _whole("held_pico"),
    _whole("spent_pico"),
    _whole("at_us"),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

totals = sa.Table(
    "totals",
    METADATA,
    sa.Column("window_id", INT, sa.ForeignKey(windows.c.window_id), primary_key=True, autoincrement=False),
    sa.Column("label", sa.Text, primary_key=True),
    _whole("requests"),
    _whole("pico"),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)
"""Ended requests and their money by label, but for the settled ones: those are counted in the window's own row, by the
statement that moves its money anyway, and their money is what is spent beside these. So a look reads a few rows, however many
requests a window has."""

disputes = sa.Table(
    "disputes",
    METADATA,
    _key("dispute_id"),
    sa.Column("hold_id", INT, sa.ForeignKey(holds.c.hold_id), nullable=False),
    _whole("at_us"),
    _text("refused"),
    sqlite_strict=True,
)
"""Settlements that were refused since the hold had ended with other figures (the first is kept)."""
