"""Any sequence of calls keeps counters, rows and entries equal (budgets.md §6)."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horde_policy.budget import Hold, Ledger, Limit, TokenUsage
from horde_policy.budget.reservation import resized
from horde_policy.clock import FixedClock
from horde_policy.errors import ConflictError, InputError
from tests.unit.budget.accounts import START, money
from tests.unit.budget.shapes import USD, held


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    step = st.tuples(
        st.sampled_from(["admit", "admit", "settle", "keep", "release", "reap", "hand", "raise", "day", "window"]),
        st.integers(0, 7),
        st.integers(0, 40_000),
    )
    return draw(st.lists(step, min_size=5, max_size=30))


def perform(ledger: Ledger, clock: FixedClock, budget: str, what: str, number: int, size: int) -> None:
    key = (f"{budget}-{number}", 1)
    usage = TokenUsage(fresh=size, output=size)
    if what == "admit":
        there = {hold.key for hold in ledger.open_holds(budget)}
        answer = ledger.admit(budget, held(m=size + 1, body=size), request_id=key[0])
        if isinstance(answer, Hold) and key not in there:
            spent, held_now, _ = money(ledger, budget)
            assert spent + held_now <= USD // 2
    elif what == "settle":
        ledger.settle(key, usage)
    elif what == "keep":
        ledger.settle(key, None)
    elif what == "release":
        ledger.release(key)
    elif what == "reap":
        clock.advance(700)
        ledger.reap()
    elif what == "hand":
        ledger.release_by_hand(*key)
    elif what == "raise":
        found = ledger.find(*key)
        ledger.raise_hold(found, resized(found.reservation, size))
    elif what == "day":
        clock.advance(86_400)
    else:
        ledger.set_budget(budget, Limit("day", "0.5"), Limit("week" if number % 2 else "month", "1"))


def check_script(url: str, script: list[tuple[str, int, int]]) -> None:
    clock = FixedClock(START)
    with Ledger(url, clock=clock, expiry_s=600, owner="copy") as ledger:
        budget = f"team-{len(ledger.status())}"
        ledger.set_budget(budget, Limit("day", "0.5"))
        for what, number, size in script:
            with suppress(ConflictError, InputError):
                perform(ledger, clock, budget, what, number, size)
            assert ledger.audit().agrees


FIXTURE = HealthCheck.function_scoped_fixture


@settings(max_examples=4, suppress_health_check=[FIXTURE, HealthCheck.too_slow], deadline=None)
@given(scripts())
def test_any_sequence_keeps_counters_rows_and_entries_equal(store_url: str, script: list[tuple[str, int, int]]) -> None:
    check_script(store_url, script)


@pytest.mark.soak
@settings(max_examples=200, suppress_health_check=[FIXTURE, HealthCheck.too_slow], deadline=None)
@given(scripts())
def test_the_same_for_many_sequences(store_url: str, script: list[tuple[str, int, int]]) -> None:
    check_script(store_url, script)
