"""What a request holds, and the explanation that adds up to it (B1–B3, B11, B12)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.budget.money import MAX_PICO
from horde_policy.budget.prices import Tier
from horde_policy.budget.reservation import affordable_tokens, reserve_cost, resized
from horde_policy.errors import ConfigError, InputError
from tests.unit.budget.shapes import MICRO, USD, ask, held, price, rates


@pytest.mark.parametrize(
    ("m", "reserve", "r"),
    [(1, 4096, 1), (4095, 4096, 4095), (4096, 4096, 4096), (4097, 4096, 4096), (None, 4096, 4096), (100, 0, 0), (None, 0, 0)],
)
def test_the_output_part_is_the_smaller_of_limit_and_reservation(m: int | None, reserve: int, r: int) -> None:
    found = held(m=m, reserve=reserve)
    assert found.reserved_tokens == r
    assert found.hold_pico == (10_000 * 3 + r * 15) * MICRO
    assert found.input_pico == 30_000 * MICRO


def test_every_output_is_reserved() -> None:
    assert held(m=4_096, n=4).hold_pico == (30_000 + 4 * 4_096 * 15) * MICRO


def test_the_alternatives_hold_all_of_it_or_the_input_only() -> None:
    assert reserve_cost(ask(m=32_000), price(), rule="full").reserved_tokens == 32_000
    assert reserve_cost(ask(m=None), price(ceiling=9_000), rule="full").reserved_tokens == 9_000
    assert reserve_cost(ask(m=None), price(), rule="full").reserved_tokens == 4_096
    assert reserve_cost(ask(m=32_000), price(), rule="input").hold_pico == 30_000 * MICRO


@pytest.mark.parametrize("wrong", [-1, 1.5, True, None, 10**9 + 1])
def test_a_senseless_reservation_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"reservation\.output_tokens"):
        held(reserve=wrong)
    with pytest.raises(ConfigError, match="hold rule"):
        reserve_cost(ask(), price(), rule="most")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least one target"):
        reserve_cost(ask(), [])


def test_a_limit_that_no_target_allows_is_refused() -> None:
    small, large = price(ceiling=8_000), price(model="l", ceiling=64_000)
    with pytest.raises(InputError, match="is more than the 8,000 output tokens that the model allows"):
        reserve_cost(ask(m=32_000), small)
    assert reserve_cost(ask(m=32_000), [small, large]).limit_tokens == 32_000
    assert reserve_cost(ask(m=32_000), [small, price()]).limit_tokens == 32_000


def test_a_hold_rounds_up_once() -> None:
    odd = price(row=rates(input="0.0000015", output="0.0000015"))  # 1.5 pico-dollars a token
    found = reserve_cost(ask(body=4, m=2), odd)
    assert found.hold_pico == 5  # 1.5 + 3.0, up
    *parts, last = found.explanation()
    assert [line.amount_pico for line in parts] == [2, 3]
    assert (last.amount_pico, last.note) == (5, "")


def test_the_dearer_of_output_and_reasoning_is_reserved() -> None:
    found = held(m=10, at=price(row=rates(reasoning="60")))
    assert found.hold_pico == (30_000 + 10 * 60) * MICRO


def test_a_long_request_is_held_at_its_tier_and_its_fee() -> None:
    tier = Tier(
        above_input_tokens=9_999, rates=rates(input="6", output="30", read="0.6", write_5m="7.5", write_1h="12"), whole=True
    )
    found = held(m=100, at=price(tiers=(tier,), fee="0.5"))
    assert found.hold_pico == (10_000 * 6 + 100 * 30 + 500_000) * MICRO
    labels = [line.label for line in found.explanation()]
    assert labels == ["input", "output", "fee of one call", "hold"]


def test_the_explanation_names_the_limit_that_counted() -> None:
    found = reserve_cost(
        ask(m=32_000).__class__(
            api="chat",
            model="m",
            body_bytes=401,
            limit_tokens=32_000,
            choices=3,
            limits=(("max_tokens", 1), ("max_completion_tokens", 32_000)),
        ),
        price(),
    )
    read, output, total = found.explanation()
    assert (read.label, read.tokens, read.note) == ("input", 101, "401 bytes ÷ 4, rounded up")
    assert output.tokens == 3 * 4_096
    assert output.note == "3 × 4,096 reserved; limit 32,000, the largest of max_tokens 1, max_completion_tokens 32,000"
    assert total.amount_pico == read.amount_pico + output.amount_pico == found.hold_pico
    no_limit = held(m=None).explanation()[1]
    assert no_limit.note == "4,096 reserved; no limit stated"


def test_an_amount_that_no_ledger_can_hold_is_refused() -> None:
    with pytest.raises(InputError, match="reservation, hold"):
        reserve_cost(ask(m=10**9, n=1_000_000), price(), rule="full")


sizes = st.integers(0, 200_000)


@given(sizes, st.one_of(st.none(), st.integers(1, 200_000)), st.integers(1, 8), sizes, sizes)
def test_the_hold_never_shrinks_with_any_size(body: int, m: int | None, n: int, reserve: int, more: int) -> None:
    base = held(m=m, body=body, n=n, reserve=reserve).hold_pico
    assert 0 <= base <= MAX_PICO
    assert held(m=m, body=body + more, n=n, reserve=reserve).hold_pico >= base
    assert held(m=m, body=body, n=n, reserve=reserve + more).hold_pico >= base
    assert held(m=m, body=body, n=n + 1, reserve=reserve).hold_pico >= base
    if m is not None:
        assert held(m=m + more, body=body, n=n, reserve=reserve).hold_pico >= base


@given(st.integers(0, 3 * USD // 10), sizes, st.integers(1, 60_000), st.integers(1, 4), st.integers(0, 8_192))
def test_what_would_pass_passes_and_one_token_more_does_not(left: int, body: int, m: int, n: int, reserve: int) -> None:
    found = held(m=m, body=body, n=n, reserve=reserve)
    most = affordable_tokens(found, left)
    if most is None:
        assert found.hold_pico <= left
        return
    assert most < max(1, found.reserved_tokens)
    assert resized(found, most + 1).hold_pico > left
    if most:
        assert resized(found, most).hold_pico <= left


def test_any_limit_passes_where_the_reservation_fits_and_none_where_the_input_does_not() -> None:
    assert affordable_tokens(held(), 91_440 * MICRO) is None
    assert affordable_tokens(held(), 91_440 * MICRO - 1) == 4_095
    assert affordable_tokens(held(), 30_000 * MICRO - 1) == 0
    assert affordable_tokens(held(), 30_000 * MICRO) == 0
    assert affordable_tokens(held(), -1) == 0
    assert affordable_tokens(held(at=price(row=rates(output="0"))), 30_000 * MICRO) is None


@pytest.mark.parametrize("wrong", [-1, True, 1.5])
def test_a_reservation_is_resized_to_whole_tokens_only(wrong: Any) -> None:
    with pytest.raises(InputError, match="reserved tokens"):
        resized(held(), wrong)
