"""Money is exact: whole pico-dollars inside, decimals at the border (budgets.md §4)."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.budget.money import MAX_PICO, decimal_of, money_column, money_text, pico_half_even, pico_up, to_pico, to_usd
from horde_policy.errors import InputError


@pytest.mark.parametrize(
    ("typed", "pico"),
    [("0", 0), ("1", 10**12), (5, 5 * 10**12), ("0.09144", 91_440_000_000), (Decimal("0.000000000001"), 1), ("1e-3", 10**9)],
)
def test_dollars_become_whole_pico_dollars(typed: object, pico: int) -> None:
    assert to_pico(typed, "limit") == pico


@pytest.mark.parametrize(
    "typed",
    [
        0.1,
        1.0,
        True,
        None,
        "",
        "NaN",
        "inf",
        "-0.01",
        "1,5",
        "0x10",
        "1_000",
        "٣",
        Decimal("NaN"),
        Decimal("Infinity"),
        "0.0000000000001",
        "9223373",
        "1" * 70,
        "1e999",
        b"1",
    ],
)
def test_what_is_no_exact_amount_is_refused(typed: object) -> None:
    with pytest.raises(InputError, match="limit"):
        to_pico(typed, "limit")


@given(st.integers(0, MAX_PICO))
def test_pico_dollars_survive_the_border(pico: int) -> None:
    assert to_pico(to_usd(pico), "amount") == pico
    assert to_pico(f"{to_usd(pico):f}", "amount") == pico


@given(st.integers(0, 10**30))
def test_a_hold_rounds_up_and_a_cost_to_the_nearest(atto: int) -> None:
    assert 0 <= pico_up(atto) * 10**6 - atto < 10**6
    assert abs(pico_half_even(atto) * 10**6 - atto) <= 500_000


@pytest.mark.parametrize(
    ("pico", "text"),
    [
        (0, "$0.0000"),
        (49_999_999, "$0.00005"),
        (50_000_000, "$0.0001"),
        (91_440_000_000, "$0.0914"),
        (99_950_000_000, "$0.1000"),
        (996_000_000_000, "$0.9960"),
        (4_999_900_000_000, "$4.9999"),
        (999_999_960_000_000, "$1,000.0000"),
        (12_345_678_905_000_000_000, "$12,345,678.91"),
        (1, "$0.000000000001"),
        (-8_371_200_000_000, "−$8.3712"),
    ],
)
def test_display_rounds_half_up_and_never_hides_a_small_amount(pico: int, text: str) -> None:
    assert money_text(pico) == text


@given(st.lists(st.integers(0, 10**18), min_size=1, max_size=5))
def test_what_is_added_up_is_seen_to_add_up(parts: list[int]) -> None:
    *lines, total = (Decimal(text[1:].replace(",", "")) for text in money_column([*parts, sum(parts)]))
    assert sum(lines) == total
    assert len({line.as_tuple().exponent for line in (*lines, total)}) == 1, "one column of decimals"


def test_a_long_decimal_is_kept_to_its_last_digit() -> None:
    assert decimal_of("0.123456789012345678901234567890123456789", "x") == Decimal("0.123456789012345678901234567890123456789")
