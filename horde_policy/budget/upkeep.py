"""Making budgets, changing their limits, and writing counters anew from their rows (budgets.md §7, §8)."""

from collections.abc import Sequence

import sqlalchemy as sa

from horde_policy.budget.books import Books
from horde_policy.budget.holding import Limit
from horde_policy.budget.money import MAX_PICO
from horde_policy.budget.settlement import label_of
from horde_policy.budget.statements import UpkeepStatements
from horde_policy.budget.store import Session
from horde_policy.budget.windows import instant_of, microseconds, window_at

__all__ = ["Upkeep"]


class Upkeep:
    """Work on a ledger that is not in the way of requests."""

    def __init__(self, books: Books, *, is_sqlite: bool) -> None:
        self._books = books
        self._do = UpkeepStatements(is_sqlite=is_sqlite)

    def set_limits(self, session: Session, budget: str, limits: Sequence[Limit]) -> None:
        """Make a budget or replace its limits; what is spent and held in a running window stays.

        A limit that was not in force counts what the budget admitted since its running window began.
        """
        now_us = session.now_us()
        session.rows(self._do.new_budget, p_name=budget, p_now=now_us)
        budget_id = session.rows(self._do.budget_id, p_name=budget)[0][0]
        known = {(kind, zone): rest for *rest, kind, zone in self._limits(session, budget_id)}
        for limit in limits:
            limit_id, active, latest_start_us = known.pop((limit.kind, limit.zone), (None, 0, None))
            values = {"p_limit": limit.pico, "p_cap": limit.open_cap}
            if limit_id is None:
                new = {"p_budget_id": budget_id, "p_kind": limit.kind, "p_zone": limit.zone, **values}
                limit_id = session.rows(self._do.new_limit, **new)[0][0]
            else:
                session.rows(self._do.change_limit, p_limit_id=limit_id, **values)
            if not active:
                self._adopt(session, budget_id, limit_id, limit, latest_start_us, now_us)
        for limit_id, _active, _latest in known.values():
            session.rows(self._do.retire_limit, p_limit_id=limit_id)

    def rebuild(self, session: Session) -> int:
        """Write the counters of every window anew from its rows; return how many were wrong."""
        session.rows(self._do.lock_windows)
        settled: dict[int, int] = dict(session.rows(self._do.settled_counts))
        counted, real = (self._by_window(session, statement) for statement in (self._do.totals, self._do.labels_of_rows))
        wrong = 0
        for window_id, *found in session.rows(self._do.counters):
            counters, rows, moves = found[:4], [int(n) for n in found[4:7]], int(found[9])
            labels = real.get(window_id, {})
            really_settled = labels.pop("settled", (0, 0))[0]
            kept = {label: total for label, total in counted.get(window_id, {}).items() if total != (0, 0)}
            if counters != [*rows, moves] or settled[window_id] != really_settled or kept != labels:
                wrong += 1
                session.rows(self._do.drop_totals, p_window_id=window_id)
                for label, (requests, pico) in labels.items():
                    session.rows(self._do.new_total, p_window_id=window_id, p_label=label, p_requests=requests, p_pico=pico)
                session.rows(
                    self._do.set_counters,
                    p_window_id=window_id,
                    p_spent=rows[0],
                    p_held=rows[1],
                    p_open=rows[2],
                    p_settled=really_settled,
                    p_moves=moves,
                )
        return wrong

    def _by_window(self, session: Session, statement: sa.Executable) -> dict[int, dict[str, tuple[int, int]]]:
        """Return window id → label → requests and money."""
        found: dict[int, dict[str, tuple[int, int]]] = {}
        for window_id, label, requests, pico in session.rows(statement):
            found.setdefault(window_id, {})[label] = (int(requests), int(pico))
        return found

    def _limits(self, session: Session, budget_id: int) -> list[tuple[int, int, int | None, str, str]]:
        rows = session.rows(self._do.all_limits, p_budget_id=budget_id)
        return [(limit_id, active, latest, kind, zone) for limit_id, kind, zone, active, latest in rows]

    def _adopt(
        self, session: Session, budget_id: int, limit_id: int, limit: Limit, latest_start_us: int | None, now_us: int
    ) -> None:
        """Count in a limit's running window what the budget admitted in it while the limit was not in force."""
        window = window_at(limit.kind, limit.zone, instant_of(max(now_us, latest_start_us or 0)))
        window_id = self._books.window_id(session, limit_id, window, latest_start_us)
        found = session.rows(
            self._do.adoptable,
            p_window_id=window_id,
            p_budget_id=budget_id,
            p_start=microseconds(window.start),
            p_end=MAX_PICO if window.end is None else microseconds(window.end),
        )
        for hold_id, state, hold_pico, cost_pico, flags in found:
            held, spent = (hold_pico, 0) if state == "open" else (0, cost_pico)
            labels = () if state == "open" else ((label_of(state, flags.split(",")), 1, cost_pico),)
            self._books.move_in(session, window_id, hold_id, "adopt", held, spent, int(state == "open"), now_us, labels)
