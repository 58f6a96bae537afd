"""The running totals by label: equal to the rows, repaired when they are not, and all that a look at a ledger reads."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from horde_policy.budget import Ledger, Limit, TokenUsage
from horde_policy.budget.audit import Labelled, holds_frame, windows_frame
from horde_policy.budget.bound import Declared
from horde_policy.clock import FixedClock
from tests.unit.budget.accounts import HOLD, REAL, REAL_COST, admit
from tests.unit.budget.shapes import MICRO


def ended_in_every_way(ledger: Ledger, clock: FixedClock) -> None:
    """End nine requests: three settled, one kept, one without a price, one given back, one late, one expired, one by hand."""
    for name in ("a", "b", "c"):
        ledger.settle(admit(ledger, name), REAL)
    ledger.settle(admit(ledger, "kept"), None)
    ledger.settle(admit(ledger, "unpriced"), REAL, served="nowhere in the table")
    ledger.release(admit(ledger, "released"))
    for name in ("late", "expired", "hand"):
        admit(ledger, name)
    clock.advance(700)
    assert len(ledger.reap()) == 3
    ledger.settle(("late", 1), TokenUsage(fresh=10_000, output=400))
    ledger.release_by_hand("hand")
    admit(ledger, "open")


def test_a_look_counts_every_label_as_the_rows_do(ledger: Ledger, clock: FixedClock) -> None:
    ended_in_every_way(ledger, clock)
    look = ledger.look(inputs=Declared("1.7"))
    labels = look.budgets[0].windows[0].labels
    assert labels == {
        "settled": Labelled(3, 3 * REAL_COST),
        "estimated": Labelled(1, HOLD),
        "unpriced": Labelled(1, HOLD),
        "expired": Labelled(1, HOLD),
        "late": Labelled(1, 36_000 * MICRO),
        "released": Labelled(2, 0),
    }
    assert labels == ledger.audit().windows[0].labels == ledger.status()[0].windows[0].labels
    assert look.at == clock.now()
    assert [hold.request_id for hold in look.holds] == ["expired", "open"]
    assert look.holds == tuple(ledger.open_holds())
    assert windows_frame(look.budgets)["estimated_pico"].to_list() == [HOLD]
    assert holds_frame(look.holds, look.at)["state"].to_list() == ["expired", "open"]


def test_a_limit_added_later_counts_what_has_ended_by_label(ledger: Ledger, clock: FixedClock) -> None:
    ended_in_every_way(ledger, clock)
    ledger.set_budget("team", Limit("day", "1"), Limit("total", "2"))
    day, total = ledger.status()[0].windows
    assert dict(total.labels) == dict(day.labels)
    ledger.settle(("expired", 1), REAL)
    assert all(window.labels["expired"] == Labelled() for window in ledger.status()[0].windows)
    assert ledger.audit().agrees


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE windows SET settled_count = settled_count + 1",
        "UPDATE totals SET pico = pico + 1 WHERE label = 'estimated'",
        "UPDATE totals SET requests = requests - 1 WHERE label = 'released'",
        "DELETE FROM totals WHERE label = 'late'",
    ],
)
def test_damaged_totals_are_seen_and_rebuilt(store_url: str, clock: FixedClock, damage: str) -> None:
    with Ledger(store_url, clock=clock, expiry_s=600) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        ended_in_every_way(ledger, clock)
        before = ledger.status()[0].windows[0].labels
        assert ledger.rebuild() == 0
        engine = sa.create_engine(store_url.replace("postgresql://", "postgresql+psycopg://"))
        with engine.begin() as connection:
            assert connection.execute(sa.text(damage)).rowcount == 1
        engine.dispose()
        assert not ledger.audit().agrees
        assert ledger.rebuild() == 1
        assert ledger.audit().agrees
        assert ledger.status()[0].windows[0].labels == before


def test_a_look_reads_no_table_of_requests_from_end_to_end(tmp_path: Path, clock: FixedClock) -> None:
    with Ledger(tmp_path / "ledger.db", clock=clock, expiry_s=600) as ledger:
        ledger.set_budget("team", Limit("total", "1"), Limit("day", "1"))
        ended_in_every_way(ledger, clock)
        said: list[tuple[str, object]] = []

        def note(_c: object, _cursor: object, statement: str, parameters: object, _context: object, _many: object) -> None:
            said.append((statement, parameters))

        engine = ledger.store._engine
        sa.event.listen(engine, "before_cursor_execute", note)
        ledger.look()
        ledger.status()
        sa.event.remove(engine, "before_cursor_execute", note)
        with engine.connect() as connection:
            plans = [
                str(row[3])
                for statement, parameters in said
                if statement.startswith("SELECT")
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)  # type: ignore[arg-type]
            ]
        assert any("totals" in plan for plan in plans)
        scans = [plan for plan in plans if plan.startswith("SCAN") and plan.split()[1] in ("holds", "entries")]
        assert [plan for plan in scans if "holds_open" not in plan and "holds_expired" not in plan] == []
