"""The events that ``docs/limits.md`` says the bound does not cover, each made to happen on a ledger (budgets.md §5.4)."""

from pathlib import Path

from horde_policy.budget import Hold, Known, Ledger, Limit, RealInput, Refusal, TokenUsage
from horde_policy.budget.price_table import PriceTable
from horde_policy.clock import FixedClock
from tests.unit.budget.accounts import HOLD, admit, money
from tests.unit.budget.shapes import MICRO, held, price, rates

PAGE = (Path(__file__).parents[3] / "docs" / "limits.md").read_text(encoding="utf-8")
NOT_COVERED = PAGE.split("## What the bound does not cover")[1].split("## Why a request is refused")[0]
FULL = TokenUsage(fresh=10_000, output=4_096)
EXACT_INPUT = Known((RealInput(10_000),))


def test_a_price_raised_while_a_request_is_open_breaks_the_bound_and_the_page_says_so(ledger: Ledger) -> None:
    limit = HOLD
    ledger.set_budget("team", Limit("day", "0.09144"))
    hold = admit(ledger, reservation=held(m=4_096))
    worst = ledger.worst_case("team", inputs=EXACT_INPUT).stated_pico
    ledger.prices = PriceTable("t", "s", (price(row=rates(output="30")),))
    done = ledger.settle(hold, FULL)
    assert done.flags == ("repriced",)
    assert done.over_hold_pico == 61_440 * MICRO
    assert money(ledger)[0] > limit + worst
    assert "a price raised while the request was open" in NOT_COVERED
    assert "`repriced`" in NOT_COVERED


def test_an_expired_hold_in_the_bound_until_a_person_releases_it_which_breaks_the_bound_and_the_page_says_so(
    ledger: Ledger, clock: FixedClock
) -> None:
    ledger.set_budget("team", Limit("day", "0.09144"))
    first = admit(ledger, "a", reservation=held(m=4_096))
    clock.advance(600)
    ledger.reap()
    assert ledger.worst_case("team").open == 1
    assert isinstance(ledger.admit("team", held(m=4_096), request_id="b"), Refusal)
    ledger.release_by_hand("a")
    assert ledger.worst_case("team").open == 0
    second = admit(ledger, "b", reservation=held(m=4_096))
    worst = ledger.worst_case("team", inputs=EXACT_INPUT).stated_pico
    ledger.settle(second, FULL)
    late = ledger.settle(first, FULL)
    assert (late.state, late.flags) == ("late", ("by_hand",))
    assert money(ledger)[0] - (HOLD + worst) == late.cost_pico  # all of it, not only what is beyond the hold
    assert "an expired hold released by hand, and its cost comes late" in NOT_COVERED
    assert "`by_hand`" in NOT_COVERED


def test_a_limit_lowered_below_what_is_held_admits_nothing_more(ledger: Ledger) -> None:
    hold = admit(ledger)
    ledger.set_budget("team", Limit("day", "0.01"))
    assert isinstance(ledger.admit("team", held(), request_id="b"), Refusal)
    ledger.settle(hold, FULL)
    assert money(ledger)[0] == 91_440 * MICRO
    assert "a limit lowered while requests are open" in NOT_COVERED


def test_a_window_that_ends_keeps_its_requests(ledger: Ledger, clock: FixedClock) -> None:
    hold = admit(ledger)
    clock.advance(86_400)
    ledger.settle(hold, TokenUsage(fresh=10_000, output=32_000))
    assert money(ledger) == (0, 0, 0)
    assert isinstance(ledger.admit("team", held(), request_id="b"), Hold)
    assert "a window that ends while the request is open" in NOT_COVERED


def test_a_retry_is_another_attempt_with_a_hold_of_its_own(ledger: Ledger) -> None:
    admit(ledger, attempt=1)
    admit(ledger, attempt=2)
    assert money(ledger) == (0, 2 * HOLD, 2)
    assert "a retry under the hold of its first attempt" in NOT_COVERED
