"""The 21 worked cases of budgets.md §11, exact to the last digit.

Prices: input $3, output $15 per million tokens (3 and 15 micro-dollars a token), read 0.30, writes 3.75 and 6.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horde_policy.budget import Hold, Known, Ledger, Limit, RealInput, Refusal, TokenUsage, read_request, worst_case
from horde_policy.budget.bound import Certain, Declared, split_limit_pico
from horde_policy.budget.money import pico_half_even, to_pico
from horde_policy.budget.reservation import Reservation, affordable_tokens, reserve_cost, resized
from horde_policy.budget.settlement import outcome_of
from horde_policy.clock import FixedClock
from tests.unit.budget.shapes import MICRO, ask, body_of, held, price, rates


def usd(text: str) -> int:
    return to_pico(text, "expected")


def exact(count: int, tokens: int = 10_000) -> Known:
    return Known((RealInput(tokens),) * count)


def fill(ledger: Ledger, budget: str, reservation: Reservation) -> list[Hold]:
    """Admit the same request until the first refusal."""
    found: list[Hold] = []
    while True:
        answer = ledger.admit(budget, reservation, request_id=f"{budget}-{len(found)}")
        if isinstance(answer, Refusal):
            return found
        found.append(answer)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db", owner="test")


def test_the_hold_of_the_cases() -> None:
    assert held(m=8_000).hold_pico == 91_440 * MICRO


def test_case_1_twenty_open_requests_of_32000() -> None:
    worst = worst_case([held()] * 20, inputs=exact(20))
    assert worst_case([held()], inputs=exact(1)).stated_pico == 418_560 * MICRO
    assert worst.stated_pico == worst.tight_pico == usd("8.3712")


@pytest.mark.parametrize("m", [1, 4_095, 4_096])
def test_case_2_no_request_above_the_reservation(m: int) -> None:
    assert worst_case([held(m=m)] * 1_000, inputs=exact(1_000)).stated_pico == 0


def test_case_3_reserving_all_of_it_fits_ten_and_the_default_eighty_one(ledger: Ledger) -> None:
    full, capped = held(body=0, reserve=32_000), held(body=0)
    assert worst_case([full], inputs=exact(1, 0)).stated_pico == 0
    assert full.hold_pico == usd("0.48")
    assert capped.hold_pico == usd("0.06144")
    for name, reservation, fits in (("full", full, 10), ("capped", capped, 81)):
        ledger.set_budget(name, Limit("total", "5.00"))
        assert len(fill(ledger, name, reservation)) == fits
    assert ledger.worst_case("capped", inputs=exact(81, 0)).stated_pico == usd("33.90336")


def test_case_4_no_output_limit_is_unbounded_unless_a_ceiling_is_declared() -> None:
    worst = worst_case([held(m=None)], inputs=exact(1))
    assert (worst.unbounded, worst.bounded, worst.stated_pico) == (1, False, 0)
    assert worst.text() == "unbounded: 1 of 1 open requests has no output limit or declared ceiling"
    declared = worst_case([held(m=None, at=price(ceiling=128_000))], inputs=exact(1))
    assert (declared.unbounded, declared.stated_pico) == (0, usd("1.85856"))


def test_case_5_digit_heavy_input() -> None:
    worst = worst_case([held(m=4_096)] * 50, inputs=exact(50, 16_300))
    assert worst_case([held(m=4_096)], inputs=exact(1, 16_300)).stated_pico == 18_900 * MICRO
    assert worst.stated_pico == usd("0.945")


@pytest.mark.parametrize(("short", "long", "expected"), [(100_000, 0, "0.075"), (0, 100_000, "0.30"), (40_000, 60_000, "0.21")])
def test_case_6_cache_writes(short: int, long: int, expected: str) -> None:
    request = held(m=4_096, body=400_000)
    worst = worst_case([request], inputs=Known((RealInput(100_000, write_5m=short, write_1h=long),)))
    assert worst.stated_pico == usd(expected)


def test_case_7a_three_replicas_on_one_store(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    copies = [Ledger(path, owner=f"copy-{n}") for n in range(3)]
    copies[0].set_budget("team", Limit("total", "1000"))
    for number, copy in enumerate(copies):
        for request in range(8):
            assert copy.admit("team", held(), request_id=f"{number}-{request}")
    assert {copy.worst_case("team", inputs=exact(24)).stated_pico for copy in copies} == {usd("10.04544")}


def test_case_7b_a_counter_for_each_replica_multiplies_the_limit() -> None:
    limit, replicas = usd("10"), 3
    most = replicas * limit + worst_case([held()] * 24, inputs=exact(24)).stated_pico
    assert most - limit == usd("30.04544")


def test_case_8_a_stored_conversation() -> None:
    request = held(body=400, m=4_096)
    assert request.input_pico == usd("0.0003")
    cached = TokenUsage(fresh=0, cache_read=150_000, output=0)
    assert pico_half_even(cached.cost_atto(price())) == usd("0.045")
    assert pico_half_even(TokenUsage(fresh=150_000, output=0).cost_atto(price())) == usd("0.45")
    assert worst_case([request], inputs=exact(1, 150_000)).stated_pico == usd("0.4497")


def test_case_9_several_outputs_reserved_once() -> None:
    with_n = held(n=4, m=4_096)
    once = resized(with_n, 1_024)  # 4,096 tokens in all
    assert worst_case([once], inputs=exact(1)).stated_pico == usd("0.18432")
    assert worst_case([with_n], inputs=exact(1)).stated_pico == 0


def test_case_10_two_limits_in_one_body() -> None:
    found = read_request(body_of(max_tokens=1, max_completion_tokens=32_000))
    assert found.limit_tokens == 32_000
    first_field_only = resized(reserve_cost(found, price(), output_tokens=32_000), 1)
    worst = worst_case([first_field_only], inputs=exact(1, first_field_only.input_estimate_tokens))
    assert worst.stated_pico == usd("0.479985")


def test_case_11_a_fallback_to_a_dearer_target() -> None:
    cheap, dear = price(model="cheap", row=rates(output="0.60")), price(model="dear", row=rates(output="15"))
    short = reserve_cost(ask(m=4_096), dear).hold_pico - reserve_cost(ask(m=4_096), cheap).hold_pico
    assert short == 4_096 * 14_400_000  # 58,982.4 micro-dollars
    assert -(-short // MICRO) == 58_983
    route = reserve_cost(ask(m=4_096), [cheap, dear])
    assert route.hold_pico == reserve_cost(ask(m=4_096), dear).hold_pico
    assert route.price.model == "dear"


def test_case_12_no_usage_keeps_the_hold() -> None:
    kept = outcome_of(held(), None)
    billed = pico_half_even(TokenUsage(fresh=10_000, output=32_000).cost_atto(price()))
    assert (kept.state, kept.cost_pico) == ("kept", usd("0.09144"))
    assert billed == usd("0.51")
    assert billed - kept.cost_pico == usd("0.41856")


def test_case_13_a_million_tokens_one_by_one() -> None:
    cheap = price(row=rates(input="0.05"))
    one = pico_half_even(TokenUsage(fresh=1, output=0).cost_atto(cheap))
    assert one * 1_000_000 == usd("0.05")
    assert -(-one // MICRO) * MICRO * 1_000_000 == usd("1.00")
    assert one // MICRO == 0


def test_case_14_eight_holds_of_a_crashed_copy(tmp_path: Path) -> None:
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    path = tmp_path / "ledger.db"
    crashed = Ledger(path, owner="crashed", clock=clock, expiry_s=60)
    crashed.set_budget("team", Limit("total", "5"))
    holds = [crashed.admit("team", held(), request_id=str(n)) for n in range(8)]
    crashed.close()
    survivor = Ledger(path, owner="survivor", clock=clock)
    [window] = survivor.audit().windows
    assert window.held_pico == usd("0.73152")
    assert window.held_pico * 1000 // window.limit_pico == 146  # 14.6 %
    clock.advance(60)
    assert [(hold.owner, hold.request_id) for hold in survivor.reap()] == [("crashed", str(n)) for n in range(8)]
    for hold in holds:
        assert isinstance(hold, Hold)
        late = survivor.settle(hold, TokenUsage(fresh=10_000, output=32_000))
        assert (late.state, late.cost_pico) == ("late", usd("0.51"))
    [window] = survivor.audit().windows
    assert (window.spent_pico, window.held_pico, window.agrees) == (usd("4.08"), 0, True)


def test_case_15_stated_against_tight() -> None:
    worst = worst_case([held(m=8_000)], inputs=exact(1, 8_000))
    assert worst.stated_pico == usd("0.05856")
    assert worst.tight_pico == usd("0.05256")


def test_case_16_the_live_figure_by_assumption() -> None:
    plain, hour = held(m=4_096), held(m=4_096, cache="1h")
    assert worst_case([plain], inputs=Certain()).stated_pico == usd("0.57")
    assert worst_case([plain], inputs=Declared("1.7")).stated_pico == usd("0.021")
    assert worst_case([hour], inputs=Certain()).stated_pico == usd("1.17")
    assert worst_case([hour], inputs=Declared("1.7")).stated_pico == usd("0.072")


@pytest.mark.parametrize(("more", "admitted"), [(0, True), (1, False)])
def test_case_17_a_hold_that_lands_on_the_limit_is_admitted(ledger: Ledger, more: int, admitted: bool) -> None:
    ledger.set_budget("team", Limit("total", "1.00"))
    spend = price(row=rates(input="1", output="1"))
    first = ledger.admit("team", reserve_cost(ask(body=0, m=1), spend), request_id="spent")
    assert isinstance(first, Hold)
    ledger.settle(first, TokenUsage(fresh=908_560 + more, output=0))
    assert bool(ledger.admit("team", held(m=4_096), request_id="new")) is admitted


def test_case_18_what_would_pass(ledger: Ledger) -> None:
    ledger.set_budget("team", Limit("total", "1.00"))
    spend = price(row=rates(input="1", output="1"))
    first = ledger.admit("team", reserve_cost(ask(body=0, m=1), spend), request_id="spent")
    assert isinstance(first, Hold)
    ledger.settle(first, TokenUsage(fresh=950_000, output=0))
    assert affordable_tokens(held(body=4_000), usd("0.05")) == 3_133
    refused = ledger.admit("team", held(body=4_000, m=3_134), request_id="a")
    assert isinstance(refused, Refusal)
    assert (refused.obstacle, refused.largest_limit_tokens) == ("spent", 3_133)
    assert ledger.admit("team", held(body=4_000, m=3_133), request_id="b")


def test_case_19_a_cost_lands_in_the_window_that_admitted_it(tmp_path: Path) -> None:
    clock = FixedClock(datetime(2026, 1, 1, 23, 59, 58, tzinfo=UTC))
    ledger = Ledger(tmp_path / "ledger.db", clock=clock)
    ledger.set_budget("team", Limit("day", "10"))
    hold = ledger.admit("team", held(), request_id="a")
    assert isinstance(hold, Hold)
    clock.advance(9)
    ledger.settle(hold, TokenUsage(fresh=10_000, output=32_000))
    assert ledger.admit("team", held(), request_id="b")
    old, new = ledger.audit().windows
    assert (old.window.start, old.spent_pico, old.held_pico) == (datetime(2026, 1, 1, tzinfo=UTC), usd("0.51"), 0)
    assert new.window.start - old.window.start == timedelta(days=1)
    assert (new.spent_pico, new.held_pico) == (0, usd("0.09144"))


def test_case_20_a_split_budget() -> None:
    each = split_limit_pico(usd("100"), 5, "0.01")
    assert each == usd("19.80")
    assert 5 * each == usd("99")


def test_case_21_as_many_open_as_fit_all_using_everything(ledger: Ledger) -> None:
    ledger.set_budget("team", Limit("total", "5"))
    holds = fill(ledger, "team", held(body=0))
    assert len(holds) == 81
    worst = ledger.worst_case("team", inputs=exact(81, 0)).stated_pico
    for hold in holds:
        ledger.settle(hold, TokenUsage(fresh=0, output=32_000))
    [window] = ledger.audit().windows
    assert window.spent_pico == usd("38.88")
    assert window.spent_pico - window.limit_pico == usd("33.88")
    assert usd("33.88") <= worst == usd("33.90336")
