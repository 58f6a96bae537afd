"""What a refusal says: the window, held or spent, what would pass and when (budgets.md §10)."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from horde_policy.budget.refusal import Refusal, WindowState, refusal_of
from horde_policy.budget.windows import WindowKind, window_at
from tests.unit.budget.shapes import MICRO, USD, held, price, rates

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
HOLD = 91_440 * MICRO


def state(
    kind: WindowKind = "day",
    *,
    limit: int = USD,
    spent: int = 0,
    held_pico: int = 0,
    open_count: int = 0,
    cap: int | None = None,
    budget: str = "team",
) -> WindowState:
    return WindowState(
        budget=budget,
        window=window_at(kind, "UTC", NOW),
        limit_pico=limit,
        spent_pico=spent,
        held_pico=held_pico,
        open_count=open_count,
        open_cap=cap,
    )


def refused(*states: WindowState) -> Refusal:
    found = refusal_of(held(), states, NOW)
    assert found is not None
    assert not found
    return found


def test_what_fits_is_no_refusal() -> None:
    assert refusal_of(held(), [state(spent=USD - HOLD)], NOW) is None
    assert refusal_of(held(), [state(spent=USD - HOLD, open_count=1, cap=2)], NOW) is None


def test_held_money_passes_in_seconds() -> None:
    found = refused(state(held_pico=USD, open_count=12))
    assert (found.obstacle, found.http_status, found.retry_at, found.retry_after_s) == ("held", 429, None, 5)
    assert found.largest_limit_tokens == 0
    assert found.sentence() == (
        "Refused by the day budget 'team' (limit $1.0000, spent $0.0000, held $1.0000, needed $0.0914): the money is held by "
        "12 open requests; retry in 5 s. No output limit would pass now."
    )


def test_spent_money_passes_when_the_window_ends() -> None:
    found = refused(state(spent=USD - 50_000 * MICRO))
    assert (found.obstacle, found.http_status) == ("spent", 402)
    assert found.retry_at == datetime(2026, 1, 11, tzinfo=UTC)
    assert found.retry_after_s == 12 * 3600
    assert found.largest_limit_tokens == 1_333
    assert "the money is spent; retry at 2026-01-11 00:00:00 UTC. An output limit of up to 1,333 tokens would pass now." in (
        found.sentence()
    )


def test_a_total_budget_does_not_start_again() -> None:
    found = refused(state("total", spent=USD))
    assert (found.retry_at, found.retry_after_s) == (None, None)
    assert "does not start again" in found.sentence()
    assert found.sentence().startswith("Refused by the budget 'team'")


def test_a_request_larger_than_the_limit_never_passes_as_it_is() -> None:
    found = refused(state(limit=HOLD - 1))
    assert (found.obstacle, found.http_status, found.retry_at, found.retry_after_s) == ("too_large", 402, None, None)
    assert (found.largest_limit_tokens, found.largest_ever_tokens) == (4_095, 4_095)
    assert "waiting does not help. An output limit of up to 4,095 tokens would pass now." in found.sentence()
    never = refused(state(limit=1))
    assert (never.largest_limit_tokens, never.largest_ever_tokens) == (0, 0)
    assert never.sentence().endswith("No output limit will ever pass.")


def test_a_limit_of_zero_allows_nothing() -> None:
    found = refused(state(limit=0))
    assert (found.obstacle, found.largest_limit_tokens) == ("too_large", 0)
    free_of_hold = refusal_of(held(body=0, reserve=0), [state(limit=0)], NOW)
    assert free_of_hold is not None
    assert free_of_hold.largest_limit_tokens == 0


def test_a_free_target_passes_even_over_the_limit() -> None:
    free = held(at=price(row=rates("0", "0", "0", "0", "0")))
    assert refusal_of(free, [state(spent=2 * USD)], NOW) is None
    assert refusal_of(free, [state(limit=0)], NOW) is None
    capped = refusal_of(free, [state(open_count=3, cap=3)], NOW)
    assert capped is not None
    assert capped.obstacle == "open_cap"


def test_a_cap_on_open_requests_is_a_refusal_of_its_own() -> None:
    found = refused(state(open_count=3, cap=3))
    assert (found.obstacle, found.http_status, found.retry_after_s, found.largest_limit_tokens) == ("open_cap", 429, 5, 0)
    assert "3 requests are open, which is as many as may be; retry in 5 s. A smaller output limit does not help." in (
        found.sentence()
    )


def test_the_binding_window_is_the_one_that_stands_in_the_way_longest() -> None:
    day, month = state(spent=USD), state("month", spent=USD)
    assert refused(day, month).state.window.kind == "month"
    assert refused(state(held_pico=USD), month).obstacle == "spent"
    assert refused(state(held_pico=USD), state("month", limit=1)).obstacle == "too_large"
    assert refused(state(open_count=1, cap=1), state("month", held_pico=USD)).obstacle == "held"
    assert refused(month, state("total", spent=USD)).state.window.kind == "total"
    # what would pass must pass every window
    assert refused(state(spent=USD - 50_000 * MICRO), state("month", spent=USD - 45_000 * MICRO)).largest_limit_tokens == 1_000


def test_the_end_of_the_window_is_waited_for_to_the_full_second() -> None:
    late = datetime(2026, 1, 10, 23, 59, 59, 999_000, tzinfo=UTC)
    found = refusal_of(held(), [state(spent=USD)], late)
    assert found is not None
    assert found.retry_after_s == 1
    assert found.retry_at is not None
    assert found.retry_at - late < timedelta(seconds=1)


@pytest.mark.parametrize(("more", "obstacle"), [(HOLD // 2, "held"), (HOLD, "held")])
def test_a_raise_is_measured_by_what_it_adds(more: int, obstacle: str) -> None:
    half = HOLD - more
    assert refusal_of(held(), [state(held_pico=USD - more)], NOW, more_pico=more) is None
    found = refusal_of(held(), [state(held_pico=USD - more + 1)], NOW, more_pico=more)
    assert found is not None
    assert (found.obstacle, found.needed_pico) == (obstacle, more)
    assert found.largest_limit_tokens == 4_095
    assert half + more == HOLD


@pytest.mark.parametrize("over", [1, MICRO, 50 * MICRO, 1_000 * MICRO])
@pytest.mark.parametrize("limit", [USD, 5 * USD // 100, 2_000 * USD])
@pytest.mark.parametrize("open_count", [0, 1])
def test_the_figures_of_a_refusal_add_up_to_more_than_the_limit(over: int, limit: int, open_count: int) -> None:
    taken = limit - HOLD + over
    spent, held_pico = (0, max(taken, 0)) if open_count else (max(taken, 0), 0)
    sentence = refused(state(limit=limit, spent=spent, held_pico=held_pico, open_count=open_count)).sentence()
    shown = [Decimal(text.replace(",", "")) for text in re.findall(r"(?:limit|spent|held|needed) \$([\d,.]+\d)", sentence)]
    assert len(shown) == 4
    assert sum(shown[1:]) > shown[0]
    assert open_count == 0 or "held by 1 open request;" in sentence or "whole limit" in sentence


def test_one_micro_dollar_over_shows_the_digits_it_takes() -> None:  # budgets.md, case 17
    sentence = refused(state(spent=908_561 * MICRO)).sentence()
    assert "limit $1.000000, spent $0.908561, held $0.000000, needed $0.091440" in sentence
    assert "limit $1.0000, spent $0.9500, held $0.0000, needed $0.0914" in refused(state(spent=950_000 * MICRO)).sentence()


def test_a_limit_of_zero_is_named_as_the_reason() -> None:
    empty = refusal_of(held(body=0, reserve=0), [state(limit=0)], NOW)
    assert empty is not None
    assert "the limit is 0, which admits nothing" in empty.sentence()
    assert "more than the whole limit" not in empty.sentence()


def test_one_open_request_is_one() -> None:
    assert "1 request is open" in refused(state(open_count=1, cap=1)).sentence()
    assert "2 requests are open" in refused(state(open_count=2, cap=2)).sentence()
