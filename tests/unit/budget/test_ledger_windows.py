"""Windows and budgets of a ledger: several at once, limits that change, clocks that step back (budgets.md §8)."""

from datetime import UTC, datetime

import pytest

from horde_policy.budget import Hold, Ledger, Limit, Refusal, TokenUsage
from horde_policy.clock import FixedClock
from horde_policy.errors import ConfigError, InputError
from tests.unit.budget.accounts import HOLD, REAL, REAL_COST, admit, money
from tests.unit.budget.shapes import MICRO, held


def test_every_window_of_a_budget_must_pass_and_the_binding_one_is_named(ledger: Ledger, clock: FixedClock) -> None:
    ledger.set_budget("team", Limit("day", "0.2", "Europe/Berlin"), Limit("month", "0.5"), Limit("total", "0.45"))
    for day in range(2):
        for number in range(2):
            hold = admit(ledger, f"{day}-{number}")
            ledger.settle(hold, TokenUsage(fresh=33_333, output=0))
        refused = ledger.admit("team", held(), request_id=f"{day}-x")
        assert isinstance(refused, Refusal)
        assert (refused.state.window.kind, refused.obstacle) == (("day", "spent") if day == 0 else ("total", "spent"))
        if day == 0:
            assert refused.retry_at == datetime(2026, 1, 10, 23, tzinfo=UTC)  # midnight in Berlin
        clock.advance(86_400)
    spent = {status.state.window.kind: status.state.spent_pico for status in ledger.status()[0].windows}
    assert spent == {"day": 0, "month": 4 * 99_999 * MICRO, "total": 4 * 99_999 * MICRO}


def test_several_budgets_all_admit_or_none_holds(ledger: Ledger) -> None:
    ledger.set_budget("person", Limit("day", "0.1"))
    first = ledger.admit(["team", "person", "team"], held(), request_id="a")
    assert isinstance(first, Hold)
    assert first.budgets == ("person", "team") or first.budgets == ("team", "person")
    refused = ledger.admit(["team", "person"], held(), request_id="b")
    assert isinstance(refused, Refusal)
    assert refused.state.budget == "person"
    assert money(ledger) == (0, HOLD, 1)
    assert money(ledger, "person") == (0, HOLD, 1)
    ledger.settle(first, REAL)
    assert money(ledger) == money(ledger, "person") == (REAL_COST, 0, 0)
    with pytest.raises(InputError, match="is not in the ledger"):
        ledger.admit(["team", "ghost"], held(), request_id="c")
    with pytest.raises(InputError, match="at least one name"):
        ledger.admit([], held(), request_id="c")
    assert money(ledger) == (REAL_COST, 0, 0)


def test_a_cap_on_open_requests(ledger: Ledger) -> None:
    ledger.set_budget("team", Limit("day", "1", open_cap=2))
    first = admit(ledger, "a")
    admit(ledger, "b")
    refused = ledger.admit("team", held(), request_id="c")
    assert isinstance(refused, Refusal)
    assert (refused.obstacle, refused.state.open_count) == ("open_cap", 2)
    ledger.settle(first, REAL)
    assert admit(ledger, "c")
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(ConfigError, match="open_cap"):
            Limit("day", "1", open_cap=wrong)  # type: ignore[arg-type]


def test_a_lowered_limit_refuses_new_work_and_keeps_what_is_spent(ledger: Ledger) -> None:
    hold = admit(ledger)
    ledger.set_budget("team", Limit("day", "0.01"))
    refused = ledger.admit("team", held(), request_id="b")
    assert isinstance(refused, Refusal)
    assert refused.state.left_pico < 0
    ledger.settle(hold, REAL)
    ledger.set_budget("team", Limit("day", "2"))
    assert money(ledger) == (REAL_COST, 0, 0)
    assert admit(ledger, "b")


def test_a_window_turned_on_later_starts_from_its_own_history(ledger: Ledger, clock: FixedClock) -> None:
    yesterday = admit(ledger, "yesterday")
    ledger.settle(yesterday, REAL)
    clock.advance(86_400)
    ledger.settle(admit(ledger, "today"), TokenUsage(fresh=1_000, output=0))
    admit(ledger, "open")
    ledger.set_budget("team", Limit("day", "1"), Limit("month", "0.14"))
    assert money(ledger, kind="month") == (REAL_COST + 3_000 * MICRO, HOLD, 1)
    assert money(ledger) == (3_000 * MICRO, HOLD, 1)
    refused = ledger.admit("team", held(), request_id="x")
    assert isinstance(refused, Refusal)
    assert refused.state.window.kind == "month"
    ledger.settle(("open", 1), REAL)
    assert money(ledger, kind="month") == (2 * REAL_COST + 3_000 * MICRO, 0, 0)


def test_a_limit_that_was_off_counts_what_it_missed_when_it_is_on_again(ledger: Ledger) -> None:
    ledger.settle(admit(ledger, "a"), REAL)
    ledger.set_budget("team", Limit("week", "1"))
    ledger.settle(admit(ledger, "b"), REAL)
    admit(ledger, "c")
    ledger.set_budget("team", Limit("day", "1"), Limit("week", "1"))
    assert money(ledger) == (2 * REAL_COST, HOLD, 1)
    assert money(ledger, kind="week") == (2 * REAL_COST, HOLD, 1)


def test_a_clock_that_steps_back_stays_in_the_later_window(ledger: Ledger, clock: FixedClock) -> None:
    clock.advance(86_400)
    admit(ledger, "a")
    clock.advance(-86_400)
    hold = admit(ledger, "b")
    assert hold.windows[0].start == datetime(2026, 1, 11, tzinfo=UTC)
    assert money(ledger) == (0, 2 * HOLD, 2)


def test_a_hold_stays_in_its_window_and_the_next_starts_at_nothing(ledger: Ledger, clock: FixedClock) -> None:
    hold = admit(ledger)
    clock.advance(86_400)
    assert money(ledger) == (0, 0, 0)
    admit(ledger, "b")
    ledger.settle(hold, REAL)
    assert money(ledger) == (0, HOLD, 1)
    old, _new = ledger.audit().windows
    assert (old.spent_pico, old.held_pico) == (REAL_COST, 0)


def test_an_admission_asked_again_after_midnight_stays_in_its_window(ledger: Ledger, clock: FixedClock) -> None:
    first = admit(ledger)
    clock.advance(86_400)
    again = admit(ledger)
    assert again == first
    assert again.windows[0].start == datetime(2026, 1, 10, tzinfo=UTC)
    assert money(ledger) == (0, 0, 0)
