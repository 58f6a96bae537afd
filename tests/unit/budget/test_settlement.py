"""What becomes of a hold, by how its request ended (B5, B6; budgets.md §6)."""

import pytest

from horde_policy.budget.settlement import Ending, EndingRules, outcome_of
from horde_policy.budget.usage import TokenUsage
from horde_policy.errors import InputError
from tests.unit.budget.shapes import MICRO, held, price, rates

REAL = TokenUsage(fresh=10_000, output=500)
HOLD = 91_440 * MICRO


@pytest.mark.parametrize(
    ("ended", "usage", "state", "micro"),
    [
        ("answered", REAL, "settled", 37_500),
        ("answered", TokenUsage(fresh=0, output=0), "settled", 0),
        ("answered", None, "kept", 91_440),
        ("never_sent", None, "released", 0),
        ("refused", None, "released", 0),
        ("refused", REAL, "settled", 37_500),
        ("server_error", None, "kept", 91_440),
        ("server_error", REAL, "settled", 37_500),
        ("cut_by_client", REAL, "settled", 37_500),
        ("cut_by_client", None, "kept", 91_440),
        ("cut_by_provider", None, "kept", 91_440),
        ("timed_out", None, "kept", 91_440),
    ],
)
def test_the_table_of_endings(ended: Ending, usage: TokenUsage | None, state: str, micro: int) -> None:
    found = outcome_of(held(), usage, ended=ended)
    assert (found.state, found.cost_pico) == (state, micro * MICRO)


def test_the_two_disputed_endings_are_settings() -> None:
    other = EndingRules(release_refused=False, release_server_error=True)
    assert outcome_of(held(), None, ended="refused", rules=other).state == "kept"
    assert outcome_of(held(), None, ended="server_error", rules=other).state == "released"
    assert outcome_of(held(), None, ended="timed_out", rules=other).state == "kept"


@pytest.mark.parametrize(("output", "micro"), [(10, 91_440), (8_000, 30_000 + 120_000)])
def test_input_usage_alone_keeps_the_hold_or_what_is_known_to_be_more(output: int, micro: int) -> None:
    started = TokenUsage(fresh=10_000, output=output, output_known=False, flags=("cut",))
    found = outcome_of(held(), started, ended="cut_by_provider")
    assert (found.state, found.cost_pico, found.flags) == ("kept", micro * MICRO, ("cut",))


def test_output_usage_alone_keeps_the_estimated_input_and_the_output_if_that_is_more() -> None:
    only_output = TokenUsage(fresh=0, output=8_000, input_known=False, flags=("input_missing",))
    found = outcome_of(held(), only_output)
    assert (found.state, found.cost_pico) == ("kept", 150_000 * MICRO)


def test_the_larger_of_hold_and_input_estimate_is_taken_literally() -> None:
    dear = price(model="dear", row=rates(input="30", output="15"))
    found = outcome_of(held(reserve=0), None, price=dear)
    assert found.cost_pico == 300_000 * MICRO  # the target that answered has the dearer input
    assert found.flags == ("repriced",)


def test_usage_above_the_own_limit_is_charged_and_said() -> None:
    found = outcome_of(held(m=100, n=2), TokenUsage(fresh=1, output=201))
    assert (found.state, found.cost_pico) == ("settled", (3 + 201 * 15) * MICRO)
    assert found.flags == ("above_own_limit",)
    assert outcome_of(held(m=100, n=2), TokenUsage(fresh=1, output=200)).flags == ()


def test_a_target_without_a_price_keeps_the_hold_apart_as_unpriced() -> None:
    found = outcome_of(held(), REAL, priced=False)
    assert (found.state, found.cost_pico, found.price_id) == ("kept", HOLD, None)
    assert "unpriced" in found.flags


def test_a_price_that_changed_while_open_is_charged_as_the_provider_bills() -> None:
    raised = price(row=rates(output="30"))
    found = outcome_of(held(), REAL, price=raised)
    assert (found.cost_pico, found.flags, found.price_id) == (45_000 * MICRO, ("repriced",), raised.price_id)


def test_a_cost_is_rounded_once_at_the_end() -> None:
    odd = price(row=rates(input="0.0000005", output="0.0000005", read="0.0000005"))
    found = outcome_of(held(at=odd), TokenUsage(fresh=1, cache_read=1, output=1))
    assert found.cost_pico == 2  # 1.5 pico-dollars, half to even; never three times a half


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="settlement, ended"):
        outcome_of(held(), None, ended="gone")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a request that never left"):
        outcome_of(held(), REAL, ended="never_sent")
