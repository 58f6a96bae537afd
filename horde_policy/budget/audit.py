"""Reading a ledger: who holds what, what is spent by label, and whether the counters equal their rows (B7, budgets.md §10)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import polars as pl
import sqlalchemy as sa

from horde_policy.budget.bound import InputAssumption, WorstCase, input_excess_atto, quantile_up, worst_case
from horde_policy.budget.holding import HOLD_COLUMNS, Hold, hold_of_row
from horde_policy.budget.money import pico_up
from horde_policy.budget.prices import Price
from horde_policy.budget.refusal import WindowState
from horde_policy.budget.settlement import LABELS
from horde_policy.budget.statements import counters_against_rows, labels_of_rows
from horde_policy.budget.tables import budgets, disputes, entries, holds, limits, price_rows, totals, windows
from horde_policy.budget.windows import Window, instant_of, microseconds, window_at
from horde_policy.errors import InputError
from horde_policy.frames.usage import LEDGER_HOLDS, LEDGER_WINDOWS

__all__ = [
    "LABELS",
    "Audit",
    "BudgetStatus",
    "Labelled",
    "LedgerLook",
    "WindowAudit",
    "WindowStatus",
    "audit_of",
    "budget_status",
    "holds_frame",
    "holds_in",
    "look_at",
    "measured_excess",
    "windows_frame",
]

MEASURED_ROWS = 10_000
UNWRITTEN: tuple[sa.ColumnElement[str], ...] = (sa.literal_column("'open'"), sa.literal_column("'expired'"))
"""The states of a request whose real cost is not written yet, spelt as their indexes are."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Ended requests of one label and their money."""

    requests: int = 0
    pico: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStatus:
    """A running window: its state, its worst case, the money by label, and the oldest request whose cost is not written."""

    state: WindowState
    worst: WorstCase
    labels: Mapping[str, Labelled]
    oldest: Hold | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStatus:
    """A budget and its running windows."""

    name: str
    windows: tuple[WindowStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLook:
    """A ledger at one moment: every budget's running windows, and the requests whose cost is not written, the oldest first."""

    at: datetime
    budgets: tuple[BudgetStatus, ...]
    holds: tuple[Hold, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAudit:
    """A window's counters beside the same sums over its holds and over its entries.

    ``agrees`` says that all three are equal, that spent is the sum of the labels, that the running totals by label (``counted``)
    are those of the rows (``labels``), and that nothing is below zero.
    """

    budget: str
    window: Window
    limit_pico: int
    spent_pico: int
    held_pico: int
    open_count: int
    rows_spent_pico: int
    rows_held_pico: int
    rows_open_count: int
    entries_spent_pico: int
    entries_held_pico: int
    labels: Mapping[str, Labelled]
    counted: Mapping[str, Labelled]

    @property
    def agrees(self) -> bool:
        """Return whether the counters equal the rows and the entries."""
        spent = {self.spent_pico, self.rows_spent_pico, self.entries_spent_pico, sum(x.pico for x in self.labels.values())}
        held = {self.held_pico, self.rows_held_pico, self.entries_held_pico}
        counted = self.open_count == self.rows_open_count and dict(self.counted) == dict(self.labels)
        return len(spent) == len(held) == 1 and counted and min(self.spent_pico, self.held_pico, self.open_count) >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The whole ledger checked: every window, the oldest request whose cost is not written, and refused settlements."""

    windows: tuple[WindowAudit, ...]
    oldest: Hold | None
    open: int
    expired: int
    disputes: int

    @property
    def agrees(self) -> bool:
        """Return whether every window agrees with its rows."""
        return all(window.agrees for window in self.windows)


def holds_in(
    connection: sa.Connection,
    *,
    key: tuple[str, int] | None = None,
    budget: str | None = None,
    unwritten: bool = False,
) -> list[Hold]:
    """Return holds with their budgets and windows, the oldest first: by key, of a budget, or with their cost not written."""
    chosen = sa.select(holds.c.hold_id)
    if key is not None:
        chosen = chosen.where(holds.c.request_id == key[0], holds.c.attempt == key[1])
    if unwritten:
        by_state = (sa.select(holds.c.hold_id).where(holds.c.state == state) for state in UNWRITTEN)
        chosen = chosen.where(holds.c.hold_id.in_(sa.union_all(*by_state)))
    if budget is not None:
        _must_exist(connection, budget)
        chosen = chosen.where(holds.c.hold_id.in_(_placed(sa.select(entries.c.hold_id)).where(budgets.c.name == budget)))
    rows = connection.execute(
        sa.select(*HOLD_COLUMNS).where(holds.c.hold_id.in_(chosen)).order_by(holds.c.created_us, holds.c.hold_id)
    ).all()
    columns = (entries.c.hold_id, budgets.c.name, limits.c.kind, limits.c.zone, windows.c.start_us, windows.c.end_us)
    places: dict[int, list[tuple[str, Window]]] = {}
    placed = _placed(sa.select(*columns).distinct()).where(entries.c.hold_id.in_(chosen)).order_by(*columns[:4])
    for hold_id, name, kind, zone, start_us, end_us in connection.execute(placed):
        places.setdefault(hold_id, []).append((name, _window(kind, zone, start_us, end_us)))
    prices = _prices(connection)
    return [hold_of_row(row, prices, places.get(row[0], ())) for row in rows]


def _must_exist(connection: sa.Connection, budget: str) -> None:
    """Raise InputError for a budget that is not in the ledger: nothing open in a misspelt one would read as no risk."""
    if connection.execute(sa.select(budgets.c.budget_id).where(budgets.c.name == budget)).first() is None:
        raise InputError("budget", "", budget, "is not in the ledger", hint="set_budget makes it")


def look_at(connection: sa.Connection, now: datetime, inputs: InputAssumption | None = None) -> LedgerLook:
    """Return every budget with its running windows, and who holds what, all read at one moment."""
    unwritten = holds_in(connection, unwritten=True)
    return LedgerLook(at=now, budgets=tuple(_statuses(connection, now, inputs, unwritten)), holds=tuple(unwritten))


def budget_status(connection: sa.Connection, now: datetime, inputs: InputAssumption | None = None) -> list[BudgetStatus]:
    """Return every budget with its running windows, by name; a window that nothing has used yet has zeros."""
    return _statuses(connection, now, inputs, holds_in(connection, unwritten=True))


def _statuses(
    connection: sa.Connection, now: datetime, inputs: InputAssumption | None, unwritten: Sequence[Hold]
) -> list[BudgetStatus]:
    columns = (budgets.c.name, limits.c.limit_id, limits.c.kind, limits.c.zone, limits.c.limit_pico, limits.c.open_cap)
    found: dict[str, list[WindowStatus]] = {}
    query = (
        sa.select(*columns, limits.c.latest_start_us)
        .select_from(budgets.join(limits))
        .where(limits.c.active == 1)
        .order_by(budgets.c.name, limits.c.limit_id)
    )
    for name, limit_id, kind, zone, limit_pico, open_cap, latest_start_us in connection.execute(query):
        window = window_at(kind, zone, max(now, instant_of(latest_start_us or 0)))
        row = connection.execute(
            sa.select(
                windows.c.window_id, windows.c.spent_pico, windows.c.held_pico, windows.c.open_count, windows.c.settled_count
            ).where(windows.c.limit_id == limit_id, windows.c.start_us == microseconds(window.start))
        ).first()
        window_id, spent, held, open_count, settled_count = row if row is not None else (-1, 0, 0, 0, 0)
        mine = [
            hold for hold in unwritten if any(place == (name, window) for place in zip(hold.budgets, hold.windows, strict=True))
        ]
        state = WindowState(
            budget=name,
            window=window,
            limit_pico=limit_pico,
            spent_pico=spent,
            held_pico=held,
            open_count=open_count,
            open_cap=open_cap,
        )
        worst = worst_case([hold.reservation for hold in mine], inputs=inputs)
        status = WindowStatus(
            state=state,
            worst=worst,
            labels=_totals(connection, window_id, spent, settled_count),
            oldest=mine[0] if mine else None,
        )
        found.setdefault(name, []).append(status)
    return [BudgetStatus(name=name, windows=tuple(statuses)) for name, statuses in found.items()]


def audit_of(connection: sa.Connection) -> Audit:
    """Return the counters of every window beside the sums over its rows and entries, all read at one moment."""
    columns = (budgets.c.name, limits.c.kind, limits.c.zone, windows.c.start_us, windows.c.end_us, limits.c.limit_pico)
    query = sa.select(windows.c.window_id, *columns).select_from(windows.join(limits).join(budgets))
    places = {row[0]: row[1:] for row in connection.execute(query)}
    labels = _labels(connection)
    counts = connection.execute(sa.select(windows.c.window_id, windows.c.settled_count))
    settled = {window_id: int(count) for window_id, count in counts}
    found = []
    for row in connection.execute(counters_against_rows()):
        window_id, spent, held, opened, _, rows_spent, rows_held, rows_open, entries_spent, entries_held, _ = (
            int(number) for number in row
        )
        name, kind, zone, start_us, end_us, limit_pico = places[window_id]
        found.append(
            WindowAudit(
                budget=name,
                window=_window(kind, zone, start_us, end_us),
                limit_pico=limit_pico,
                spent_pico=spent,
                held_pico=held,
                open_count=opened,
                rows_spent_pico=rows_spent,
                rows_held_pico=rows_held,
                rows_open_count=rows_open,
                entries_spent_pico=entries_spent,
                entries_held_pico=entries_held,
                labels=labels.get(window_id, _NO_LABELS),
                counted=_totals(connection, window_id, spent, settled[window_id]),
            )
        )
    unwritten = holds_in(connection, unwritten=True)
    expired = sum(hold.state == "expired" for hold in unwritten)
    return Audit(
        windows=tuple(found),
        oldest=unwritten[0] if unwritten else None,
        open=len(unwritten) - expired,
        expired=expired,
        disputes=connection.execute(sa.select(sa.func.count()).select_from(disputes)).scalar_one(),
    )


def measured_excess(connection: sa.Connection, share: Decimal, budget: str | None) -> int | None:
    """Return the quantile of what the real inputs of the latest settled requests cost beyond their estimate, at least 0."""
    query = sa.select(*HOLD_COLUMNS).where(holds.c.state.in_(("settled", "late")), holds.c.output_tokens.is_not(None))
    if budget is not None:
        _must_exist(connection, budget)
        query = query.where(holds.c.hold_id.in_(_placed(sa.select(entries.c.hold_id)).where(budgets.c.name == budget)))
    prices = _prices(connection)
    excess = []
    for row in connection.execute(query.order_by(holds.c.hold_id.desc()).limit(MEASURED_ROWS)):
        hold = hold_of_row(row, prices, ())
        usage, price = hold.usage, prices.get(row.settled_price_id) or hold.reservation.price
        if usage is not None:
            real = price.cost_atto(
                fresh=usage.fresh, cache_read=usage.cache_read, write_5m=usage.write_5m, write_1h=usage.write_1h
            )
            excess.append(input_excess_atto(price, hold.reservation.input_estimate_tokens, real - price.fee_atto))
    return max(0, pico_up(quantile_up(excess, share))) if excess else None


def holds_frame(found: Sequence[Hold], now: datetime, inputs: InputAssumption | None = None) -> pl.DataFrame:
    """Return holds as a :data:`~horde_policy.frames.usage.LEDGER_HOLDS` frame: who holds what, how long, how far over."""
    rows = []
    for hold in found:
        r = hold.reservation
        worst = worst_case([r], inputs=inputs)
        bound = None if worst.unbounded or worst.input_unbounded else worst.stated_pico
        age_s = (now - hold.created).total_seconds()
        rows.append(
            {
                "request_id": hold.request_id,
                "attempt": hold.attempt,
                "budgets": list(hold.budgets),
                "owner": hold.owner,
                "model": hold.model,
                "state": hold.state,
                "created": hold.created,
                "expires": hold.expires,
                "age_s": age_s,
                "hold_pico": hold.hold_pico,
                "max_tokens": r.limit_tokens,
                "reserved_tokens": r.reserved_tokens,
                "n": r.choices,
                "bound_pico": bound,
            }
        )
    return LEDGER_HOLDS.checked(pl.DataFrame(rows, schema=LEDGER_HOLDS.polars_schema()))


def windows_frame(found: Sequence[BudgetStatus]) -> pl.DataFrame:
    """Return running windows as a :data:`~horde_policy.frames.usage.LEDGER_WINDOWS` frame."""
    rows = []
    for budget in found:
        for status in budget.windows:
            s, w, labels = status.state, status.worst, status.labels
            rows.append(
                {
                    "budget": s.budget,
                    "kind": s.window.kind,
                    "zone": s.window.zone,
                    "start": s.window.start,
                    "end": s.window.end,
                    "limit_pico": s.limit_pico,
                    "spent_pico": s.spent_pico,
                    "held_pico": s.held_pico,
                    "left_pico": s.left_pico,
                    "open": s.open_count,
                    "open_cap": s.open_cap,
                    "unbounded": w.unbounded,
                    "bound_kind": w.kind,
                    "bound_pico": w.stated_pico,
                    **{f"{label}_pico": labels[label].pico for label in LABELS if label != "released"},
                }
            )
    return LEDGER_WINDOWS.checked(pl.DataFrame(rows, schema=LEDGER_WINDOWS.polars_schema()))


_NO_LABELS: Mapping[str, Labelled] = dict.fromkeys(LABELS, Labelled())


def _placed(query: "sa.Select[Any]") -> "sa.Select[Any]":
    """Return a query over entries joined to their windows, limits and budgets."""
    return (
        query.join(windows, windows.c.window_id == entries.c.window_id)
        .join(limits, limits.c.limit_id == windows.c.limit_id)
        .join(budgets, budgets.c.budget_id == limits.c.budget_id)
    )


def _window(kind: Any, zone: str, start_us: int, end_us: int | None) -> Window:
    return Window(kind, zone, instant_of(start_us), None if end_us is None else instant_of(end_us))


def _prices(connection: sa.Connection) -> dict[str, Price]:
    rows = connection.execute(sa.select(price_rows.c.price_id, price_rows.c.price))
    return {price_id: Price.from_text(text) for price_id, text in rows}


def _labels(connection: sa.Connection) -> dict[int, dict[str, Labelled]]:
    """Return window id → label → ended requests and their money, from the rows."""
    found: dict[int, dict[str, Labelled]] = {}
    for place, name, requests, pico in connection.execute(labels_of_rows()):
        found.setdefault(place, dict(_NO_LABELS))[name] = Labelled(int(requests), int(pico))
    return found


def _totals(connection: sa.Connection, window_id: int, spent_pico: int, settled_count: int) -> dict[str, Labelled]:
    """Return label → ended requests and their money of a window, from its running totals: a few rows, however many requests."""
    found = dict(_NO_LABELS)
    query = sa.select(totals.c.label, totals.c.requests, totals.c.pico).where(totals.c.window_id == window_id)
    for name, requests, pico in connection.execute(query):
        found[name] = Labelled(int(requests), int(pico))
    found["settled"] = Labelled(settled_count, spent_pico - sum(label.pico for label in found.values()))
    return found
