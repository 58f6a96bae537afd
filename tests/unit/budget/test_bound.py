"""The bound of B7 and B8: stated, tight, by assumption, without a count, and that it holds (budgets.md §5)."""

import random
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.budget.bound import (
    Certain,
    Declared,
    Known,
    Measured,
    RealInput,
    bound_without_count,
    gap_ratio,
    quantile_up,
    split_limit_pico,
    worst_case,
)
from horde_policy.budget.money import pico_half_even
from horde_policy.budget.prices import CacheAsked, Price, Tier
from horde_policy.budget.reservation import Reservation, reserve_cost
from horde_policy.budget.usage import TokenUsage
from horde_policy.errors import ConfigError, InputError
from tests.unit.budget.shapes import MICRO, USD, ask, held, price, rates

DEARER = rates(input="6", output="22.5", read="0.6", write_5m="7.5", write_1h="12")
WHOLE = (Tier(above_input_tokens=20_000, rates=DEARER, whole=True),)
EXCESS = (Tier(above_input_tokens=20_000, rates=rates(input="6"), whole=False),)


@pytest.mark.parametrize(
    ("cache", "unasked", "factor"),
    [("none", False, 3), ("none", True, 3.75), ("5m", False, 3.75), ("1h", False, 6), ("1h", True, 6)],
)
def test_the_certain_input_fills_the_window_at_the_dearest_class_it_can_reach(
    cache: CacheAsked, unasked: bool, factor: float
) -> None:
    request = held(m=10, cache=cache, at=price(unasked=unasked))
    assert worst_case([request], inputs=Certain()).stated_pico == (int(200_000 * factor) - 30_000) * MICRO


def test_without_a_context_window_the_certain_input_has_no_bound_and_that_is_said() -> None:
    worst = worst_case([held(at=price(window=None)), held()], inputs=Certain())
    assert (worst.input_unbounded, worst.bounded) == (1, False)
    assert worst.text().startswith("unbounded input: 1 of 2 open requests; without it at most $")
    assert worst_case([held(at=price(window=None))], inputs=Declared("2")).bounded


def test_the_declared_input_is_a_multiple_of_the_estimate_rounded_up() -> None:
    request = held(m=10, body=10)  # 3 tokens
    assert worst_case([request], inputs=Declared("1.7")).stated_pico == 3 * 3 * MICRO  # 5.1 → 6
    assert worst_case([request], inputs=Declared("0.5")).stated_pico == 0
    for wrong in ("-1", "NaN", "1000001"):
        with pytest.raises((ConfigError, InputError), match="declared input factor"):
            Declared(wrong)


def test_the_measured_input_is_what_usually_happens_and_no_bound() -> None:
    worst = worst_case([held(m=10)] * 3, inputs=Measured(7 * MICRO))
    assert (worst.stated_pico, worst.bounded) == (21 * MICRO, False)
    assert worst.text() == "$0.000021 (measured input), which is no bound"
    assert worst_case([held(m=10)], inputs=Measured(-5)).stated_pico == 0


def test_unbounded_requests_are_counted_apart() -> None:
    worst = worst_case([held(), held(m=None), held(m=None)], inputs=Declared("1"))
    assert (worst.open, worst.unbounded, worst.stated_pico, worst.bounded) == (3, 2, 418_560 * MICRO, False)
    assert worst.text() == (
        "unbounded: 2 of 3 open requests have no output limit or declared ceiling; the others at most $0.4186 (declared input)"
    )
    nothing = worst_case([])
    assert (nothing.open, nothing.stated_pico, nothing.bounded) == (0, 0, True)


def test_the_parts_of_the_stated_figure() -> None:
    worst = worst_case([held()], inputs=Known((RealInput(16_300, write_5m=1_000),)))
    assert worst.output_pico == 418_560 * MICRO
    assert worst.input_pico == 18_900 * MICRO + 750 * MICRO
    assert worst.stated_pico == worst.output_pico + worst.input_pico


def test_a_too_high_estimate_does_not_hide_cache_writes_in_the_stated_figure() -> None:
    worst = worst_case([held(m=10)], inputs=Known((RealInput(2_000, write_1h=2_000),)))
    assert worst.stated_pico == 2_000 * 3 * MICRO
    assert worst.tight_pico == 0


def test_a_price_row_made_by_hand_with_a_dear_read_is_bounded_too() -> None:
    at = price(row=rates(read="9"))
    request = held(m=4_096, at=at)
    real = TokenUsage(fresh=0, cache_read=10_000, output=4_096)
    over = pico_half_even(real.cost_atto(at)) - request.hold_pico
    assert over == 60_000 * MICRO
    for inputs in (Known((RealInput(10_000, read=10_000),)), Declared("1"), Certain()):
        worst = worst_case([request], inputs=inputs)
        assert over <= worst.tight_pico <= worst.stated_pico
    assert worst_case([request], inputs=Declared("1")).stated_pico == over


def test_known_inputs_must_be_one_for_each_request() -> None:
    with pytest.raises(InputError, match="must be one for each of 2 open requests"):
        worst_case([held(), held()], inputs=Known((RealInput(1),)))


@pytest.mark.parametrize(
    ("m", "body", "text"),
    [
        (32_000, 40_000, "4.58"),
        (32_000, 0, "6.81"),
        (64_000, 40_000, "9.83"),
        (64_000, 0, "14.6"),
        (128_000, 40_000, "20.3"),
        (128_000, 0, "30.25"),
        (8_000, 40_000, "0.64"),
        (8_000, 0, "0.95"),
        (4_096, 0, "0"),
    ],
)
def test_the_form_without_a_count(m: int, body: int, text: str) -> None:
    ratio = gap_ratio(held(m=m, body=body))
    assert ratio is not None
    assert round(ratio, len(text.partition(".")[2])) == Decimal(text)
    bound = bound_without_count(USD, held(m=m, body=body))
    assert bound is not None
    assert abs(Decimal(bound) / USD - ratio) < Decimal("1e-11")


def test_a_cap_on_open_requests_makes_the_bound_small() -> None:
    assert bound_without_count(5 * USD, held(body=0), open_cap=2) == 2 * 418_560 * MICRO
    assert bound_without_count(5 * USD, held(body=0), open_cap=1_000) == bound_without_count(5 * USD, held(body=0))
    assert bound_without_count(5 * USD, held(m=None), open_cap=2) is None
    assert gap_ratio(held(m=None)) is None
    nothing_held = held(body=0, reserve=0)
    assert bound_without_count(5 * USD, nothing_held) is None
    assert gap_ratio(nothing_held) is None
    assert bound_without_count(5 * USD, nothing_held, open_cap=3) == 3 * 480_000 * MICRO
    free = price(row=rates("0", "0", "0", "0", "0"))
    assert gap_ratio(held(at=free)) == 0
    assert bound_without_count(5 * USD, held(at=free)) == 0


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, 10_001])
def test_a_split_needs_a_number_of_replicas(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="replicas"):
        split_limit_pico(USD, wrong)


def test_a_split_never_hands_out_more_than_there_is() -> None:
    for replicas in range(1, 50):
        assert split_limit_pico(USD + 1, replicas, "0.01") * replicas <= USD
    with pytest.raises(ConfigError, match="margin"):
        split_limit_pico(USD, 2, "1")


def test_a_quantile_is_one_of_the_values() -> None:
    values = list(range(1, 101))
    assert [quantile_up(values, Decimal(share)) for share in ("0.001", "0.95", "0.951", "1")] == [1, 95, 96, 100]
    for share in ("0", "1.1"):
        with pytest.raises(ConfigError):
            quantile_up(values, Decimal(share))
    with pytest.raises(InputError):
        quantile_up([], Decimal("0.5"))


def made(rng: random.Random) -> tuple[Reservation, TokenUsage, RealInput]:
    """A random request and what it really used, within its own limit and its model's window."""
    first = price(
        tiers=rng.choice([(), WHOLE, EXCESS]),
        window=60_000,
        row=rates(reasoning=rng.choice([None, "20"])),
        fee=rng.choice(["0", "0.001"]),
    )
    other = price(model="other", row=rates(input="1", output="40"), window=60_000)
    route: list[Price] = [first] if rng.random() < 0.7 else [first, other]
    m, n = rng.randint(1, 40_000), rng.choice([1, 1, 1, 4])
    request = reserve_cost(
        ask(m=m, body=rng.randint(0, 200_000), n=n, cache=rng.choice(["none", "5m", "1h"])),
        route,
        output_tokens=rng.choice([0, 256, 4_096, 40_000]),
    )
    inputs = rng.randint(0, 60_000)
    parts = sorted(rng.randint(0, inputs) for _ in range(3))
    short = parts[0] if request.cache != "none" else 0
    long = parts[1] - parts[0] if request.cache == "1h" else 0
    read = parts[2] - parts[1]
    output = rng.randint(0, n * m)
    usage = TokenUsage(
        fresh=inputs - short - long - read,
        cache_read=read,
        write_5m=short,
        write_1h=long,
        output=output,
        reasoning=rng.randint(0, output),
    )
    return request, usage, RealInput(inputs, short, long)


@given(st.integers(0, 2**32))
def test_no_request_within_its_limits_costs_more_than_its_hold_and_its_bound(seed: int) -> None:
    request, usage, real = made(random.Random(seed))
    for target in request.prices:
        over = pico_half_even(usage.cost_atto(target)) - request.hold_pico
        known = worst_case([request], inputs=Known((real,)))
        certain = worst_case([request], inputs=Certain())
        assert over <= known.tight_pico <= known.stated_pico
        assert over <= certain.tight_pico <= certain.stated_pico
        enough = Declared(str(-(-usage.input_tokens // max(1, request.input_estimate_tokens))))
        if request.input_estimate_tokens:
            assert over <= worst_case([request], inputs=enough).tight_pico


def check_a_run_of_one_store(seed: int) -> None:
    """One store, random arrivals and settlements in any order: at every moment spent is within limit and bound."""
    rng = random.Random(seed)
    limit = rng.choice([USD // 10, USD, 20 * USD])
    spent = held_now = 0
    open_requests: list[tuple[Reservation, TokenUsage, RealInput]] = []
    stated = tight = 0
    for _ in range(120):
        if open_requests and rng.random() < 0.45:
            request, usage, _real = open_requests.pop(rng.randrange(len(open_requests)))
            held_now -= request.hold_pico
            spent += pico_half_even(usage.cost_atto(rng.choice(request.prices)))
            assert spent <= limit + tight <= limit + stated
            continue
        new = made(rng)
        if spent + held_now + new[0].hold_pico > limit:
            continue
        open_requests.append(new)
        held_now += new[0].hold_pico
        worst = worst_case([r for r, _, _ in open_requests], inputs=Known(tuple(real for _, _, real in open_requests)))
        stated, tight = worst.stated_pico, worst.tight_pico


@pytest.mark.parametrize("seed", range(60))
def test_spent_money_is_within_the_limit_and_the_worst_case_of_the_last_admission(seed: int) -> None:
    check_a_run_of_one_store(seed)


@pytest.mark.soak
def test_the_same_in_thousands_of_runs() -> None:
    for seed in range(60, 5_060):
        check_a_run_of_one_store(seed)
