"""The ledger's statements, written once for both databases.

Every bound value is named ``p_…``, since a name of a column would be taken for its new value.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from horde_policy.budget.holding import HOLD_COLUMNS
from horde_policy.budget.tables import budgets, disputes, entries, holds, limits, price_rows, totals, windows

__all__ = ["Statements", "UpkeepStatements", "counters_against_rows", "labels_of_rows"]


def _p(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(f"p_{name}", type_=sa.BigInteger)


def _t(name: str) -> sa.BindParameter[str]:
    return sa.bindparam(f"p_{name}", type_=sa.Text)


Insert = Callable[[sa.Table], Any]
"""The dialect's own insert, which can leave a row alone that is there already."""

ONE: sa.ColumnElement[int] = sa.literal_column("1")

OPEN: sa.ColumnElement[str] = sa.literal_column("'open'")
"""Written out and not bound: only so does SQLite see that its index of open holds serves."""

ENDED_COLUMNS = {
    "state": _t("state"),
    "cost_pico": _p("cost"),
    "ended_us": _p("now"),
    "settled_price_id": _t("price_id"),
    "fresh_tokens": _p("fresh"),
    "cache_read_tokens": _p("read"),
    "write_5m_tokens": _p("write_5m"),
    "write_1h_tokens": _p("write_1h"),
    "output_tokens": _p("output"),
    "reasoning_tokens": _p("reasoning"),
    "flags": _t("flags"),
}

NEW_HOLD = (
    ("request_id", _t),
    ("attempt", _p),
    ("owner", _t),
    ("model", _t),
    ("state", _t),
    ("price_ids", _t),
    ("body_bytes", _p),
    ("input_estimate_tokens", _p),
    ("limit_tokens", _p),
    ("reserved_tokens", _p),
    ("choices", _p),
    ("cache", _t),
    ("hold_pico", _p),
    ("input_pico", _p),
    ("created_us", _p),
    ("expires_us", _p),
    ("flags", _t),
)


class Statements:
    """Every statement that moves money, for one dialect."""

    def __init__(self, *, is_sqlite: bool) -> None:
        insert = sqlite.insert if is_sqlite else postgresql.insert
        self._of_windows(insert)
        self._of_moves(insert)
        self._of_holds(insert)
        self._of_ends(insert)

    def _of_windows(self, insert: Insert) -> None:
        limit_columns = (limits.c.limit_id, limits.c.kind, limits.c.zone, limits.c.limit_pico, limits.c.open_cap)
        self.limits = (
            sa.select(*limit_columns, limits.c.latest_start_us)
            .join(budgets)
            .where(budgets.c.name == _t("budget"), limits.c.active == ONE)
            .order_by(limits.c.limit_id)
            .with_for_update(of=limits)
        )
        self.latest_start = sa.update(limits).where(limits.c.limit_id == _p("limit_id")).values(latest_start_us=_p("start"))
        self.window = sa.select(windows.c.window_id).where(
            windows.c.limit_id == _p("limit_id"), windows.c.start_us == _p("start")
        )
        self.new_window = (
            insert(windows)
            .values(
                limit_id=_p("limit_id"),
                start_us=_p("start"),
                end_us=_p("end"),
                spent_pico=sa.literal_column("0"),
                held_pico=sa.literal_column("0"),
                open_count=sa.literal_column("0"),
                settled_count=sa.literal_column("0"),
                moves=sa.literal_column("0"),
            )
            .on_conflict_do_nothing()
        )
        self.window_state = sa.select(windows.c.spent_pico, windows.c.held_pico, windows.c.open_count).where(
            windows.c.window_id == _p("window_id")
        )
        self.window_limits = (
            sa.select(
                windows.c.window_id,
                budgets.c.name,
                limits.c.kind,
                limits.c.zone,
                limits.c.limit_pico,
                limits.c.open_cap,
                limits.c.active,
                windows.c.start_us,
                windows.c.end_us,
            )
            .select_from(windows.join(limits).join(budgets))
            .where(windows.c.window_id.in_(sa.select(entries.c.window_id).where(entries.c.hold_id == _p("hold_id"))))
            .order_by(windows.c.window_id)
            .with_for_update(of=limits)
        )

    def _of_moves(self, insert: Insert) -> None:
        # The check and the hold are this one statement: the counters move only where the new hold fits under the limit.
        self.reserve = (
            sa.update(windows)
            .where(
                windows.c.window_id == _p("window_id"),
                windows.c.spent_pico + windows.c.held_pico <= _p("room"),
                windows.c.open_count < _p("cap"),
            )
            .values(
                held_pico=windows.c.held_pico + _p("held"),
                open_count=windows.c.open_count + _p("opened"),
                moves=windows.c.moves + ONE,
            )
            .returning(windows.c.moves)
        )
        moved = sa.update(windows).values(
            held_pico=windows.c.held_pico + _p("held"),
            spent_pico=windows.c.spent_pico + _p("spent"),
            open_count=windows.c.open_count + _p("opened"),
            settled_count=windows.c.settled_count + _p("settled"),
            moves=windows.c.moves + ONE,
        )
        self.move = moved.where(windows.c.window_id == _p("window_id")).returning(windows.c.window_id, windows.c.moves)
        # Every window of a hold at once, where one writer needs no order in which rows are locked.
        inside = sa.select(entries.c.window_id).where(entries.c.hold_id == _p("hold_id"))
        self.move_all = moved.where(windows.c.window_id.in_(inside)).returning(windows.c.window_id, windows.c.moves)
        new_total = insert(totals).values(window_id=_p("window_id"), label=_t("label"), requests=_p("requests"), pico=_p("pico"))
        self.count_label = new_total.on_conflict_do_update(
            index_elements=[totals.c.window_id, totals.c.label],
            set_={"requests": totals.c.requests + _p("requests"), "pico": totals.c.pico + _p("pico")},
        )
        self.new_entry = insert(entries).values(
            window_id=_p("window_id"),
            move=_p("move"),
            hold_id=_p("hold_id"),
            what=_t("what"),
            held_pico=_p("held"),
            spent_pico=_p("spent"),
            at_us=_p("now"),
        )

    def _of_holds(self, insert: Insert) -> None:
        self.new_price = insert(price_rows).values(price_id=_t("price_id"), price=_t("price")).on_conflict_do_nothing()
        self.price = sa.select(price_rows.c.price).where(price_rows.c.price_id == _t("price_id"))
        self.new_hold = (
            insert(holds)
            .values({name: kind(name) for name, kind in NEW_HOLD})
            .on_conflict_do_nothing()
            .returning(holds.c.hold_id)
        )
        self.hold = (
            sa.select(*HOLD_COLUMNS)
            .where(holds.c.request_id == _t("request_id"), holds.c.attempt == _p("attempt"))
            .with_for_update()
        )
        self.hold_windows = (
            sa.select(entries.c.window_id).distinct().where(entries.c.hold_id == _p("hold_id")).order_by(entries.c.window_id)
        )

    def _of_ends(self, insert: Insert) -> None:
        # An open hold of the size that the caller knows: the common end, in one step.
        self.end_open = (
            sa.update(holds)
            .where(
                holds.c.request_id == _t("request_id"),
                holds.c.attempt == _p("attempt"),
                holds.c.state == OPEN,
                holds.c.hold_pico == _p("hold"),
            )
            .values(ENDED_COLUMNS)
            .returning(holds.c.hold_id)
        )
        self.end = sa.update(holds).where(holds.c.hold_id == _p("hold_id")).values(ENDED_COLUMNS)
        self.dispute = insert(disputes).values(hold_id=_p("hold_id"), at_us=_p("now"), refused=_t("refused"))
        # The first condition is always true: it leads SQLite to the index of open holds.
        self.renew = (
            sa.update(holds)
            .where(holds.c.expires_us > sa.literal_column("0"), holds.c.state == OPEN, holds.c.owner == _t("owner"))
            .values(expires_us=_p("expires"))
        )
        self.overdue = (
            sa.select(holds.c.request_id, holds.c.attempt)
            .where(holds.c.state == OPEN, holds.c.expires_us <= _p("now"))
            .order_by(holds.c.expires_us, holds.c.hold_id)
            .limit(1000)
        )
        self.grow = (
            sa.update(holds)
            .where(holds.c.hold_id == _p("hold_id"), holds.c.state == OPEN)
            .values(
                price_ids=_t("price_ids"),
                reserved_tokens=_p("reserved_tokens"),
                hold_pico=_p("hold"),
                input_pico=_p("input"),
            )
        )


class UpkeepStatements:
    """The statements that make budgets and check counters, for one dialect."""

    def __init__(self, *, is_sqlite: bool) -> None:
        insert = sqlite.insert if is_sqlite else postgresql.insert
        self.new_budget = insert(budgets).values(name=_t("name"), created_us=_p("now")).on_conflict_do_nothing()
        self.budget_id = sa.select(budgets.c.budget_id).where(budgets.c.name == _t("name")).with_for_update()
        self.all_limits = (
            sa.select(limits.c.limit_id, limits.c.kind, limits.c.zone, limits.c.active, limits.c.latest_start_us)
            .where(limits.c.budget_id == _p("budget_id"))
            .order_by(limits.c.limit_id)
            .with_for_update()
        )
        self.new_limit = (
            insert(limits)
            .values(
                budget_id=_p("budget_id"),
                kind=_t("kind"),
                zone=_t("zone"),
                limit_pico=_p("limit"),
                open_cap=_p("cap"),
                active=sa.literal_column("1"),
            )
            .returning(limits.c.limit_id)
        )
        self.change_limit = (
            sa.update(limits)
            .where(limits.c.limit_id == _p("limit_id"))
            .values(limit_pico=_p("limit"), open_cap=_p("cap"), active=sa.literal_column("1"))
        )
        self.lock_windows = sa.select(windows.c.window_id).order_by(windows.c.window_id).with_for_update()
        self.counters = counters_against_rows()
        self.set_counters = (
            sa.update(windows)
            .where(windows.c.window_id == _p("window_id"))
            .values(
                spent_pico=_p("spent"),
                held_pico=_p("held"),
                open_count=_p("open"),
                settled_count=_p("settled"),
                moves=_p("moves"),
            )
        )
        self.settled_counts = sa.select(windows.c.window_id, windows.c.settled_count)
        self.totals = sa.select(totals.c.window_id, totals.c.label, totals.c.requests, totals.c.pico)
        self.labels_of_rows = labels_of_rows()
        self.drop_totals = sa.delete(totals).where(totals.c.window_id == _p("window_id"))
        self.new_total = insert(totals).values(
            window_id=_p("window_id"), label=_t("label"), requests=_p("requests"), pico=_p("pico")
        )
        self.adoptable = adoptable_holds()
        self.retire_limit = sa.update(limits).where(limits.c.limit_id == _p("limit_id")).values(active=sa.literal_column("0"))


def adoptable_holds() -> sa.Select[tuple[int, str, int, int, str]]:
    """Return the requests of a budget that a window's time admitted and that the window does not count yet, locked."""
    counted = sa.select(entries.c.hold_id).where(entries.c.window_id == _p("window_id"))
    of_budget = (
        sa.select(entries.c.hold_id)
        .join(windows, windows.c.window_id == entries.c.window_id)
        .join(limits, limits.c.limit_id == windows.c.limit_id)
        .where(limits.c.budget_id == _p("budget_id"))
    )
    return (
        sa.select(holds.c.hold_id, holds.c.state, holds.c.hold_pico, holds.c.cost_pico, holds.c.flags)
        .where(
            holds.c.hold_id.in_(of_budget),
            holds.c.hold_id.not_in(counted),
            holds.c.created_us >= _p("start"),
            holds.c.created_us < _p("end"),
        )
        .order_by(holds.c.hold_id)
        .with_for_update()
    )


def labels_of_rows() -> sa.Select[Any]:
    """Return window id, label, ended requests and their money, of every window, from the rows: what the totals must equal."""
    inside = sa.select(entries.c.window_id, entries.c.hold_id).distinct().subquery()
    unpriced = (sa.literal_column("','") + holds.c.flags + sa.literal_column("','")).like(sa.literal_column("'%,unpriced,%'"))
    label = sa.case(
        (sa.and_(holds.c.state == sa.literal_column("'kept'"), unpriced), sa.literal_column("'unpriced'")),
        (holds.c.state == sa.literal_column("'kept'"), sa.literal_column("'estimated'")),
        else_=holds.c.state,
    ).label("label")
    return (
        sa.select(inside.c.window_id, label, sa.func.count().label("requests"), sa.func.sum(holds.c.cost_pico).label("pico"))
        .join(holds, holds.c.hold_id == inside.c.hold_id)
        .where(holds.c.state != OPEN)
        .group_by(inside.c.window_id, label)
    )


def counters_against_rows() -> sa.Select[tuple[int, int, int, int, int, int, int, int, int, int, int]]:
    """Return window id, its counters (spent, held, open, moves), the same from the rows, and the entries' three sums."""
    inside = sa.select(entries.c.window_id, entries.c.hold_id).distinct().subquery()
    is_open = holds.c.state == OPEN
    rows = (
        sa.select(
            inside.c.window_id,
            sa.func.sum(sa.case((is_open, 0), else_=holds.c.cost_pico)).label("spent"),
            sa.func.sum(sa.case((is_open, holds.c.hold_pico), else_=0)).label("held"),
            sa.func.sum(sa.case((is_open, 1), else_=0)).label("open"),
        )
        .join(holds, holds.c.hold_id == inside.c.hold_id)
        .group_by(inside.c.window_id)
        .subquery()
    )
    written = (
        sa.select(
            entries.c.window_id,
            sa.func.sum(entries.c.spent_pico).label("spent"),
            sa.func.sum(entries.c.held_pico).label("held"),
            sa.func.max(entries.c.move).label("moves"),
        )
        .group_by(entries.c.window_id)
        .subquery()
    )

    def or_zero(column: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
        return sa.func.coalesce(column, 0)

    return (
        sa.select(
            windows.c.window_id,
            windows.c.spent_pico,
            windows.c.held_pico,
            windows.c.open_count,
            windows.c.moves,
            or_zero(rows.c.spent),
            or_zero(rows.c.held),
            or_zero(rows.c.open),
            or_zero(written.c.spent),
            or_zero(written.c.held),
            or_zero(written.c.moves),
        )
        .select_from(
            windows.outerjoin(rows, rows.c.window_id == windows.c.window_id).outerjoin(
                written, written.c.window_id == windows.c.window_id
            )
        )
        .order_by(windows.c.window_id)
    )
