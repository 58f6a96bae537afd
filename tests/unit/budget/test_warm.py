"""After the warm-up a replay of the budget compiles nothing."""

from horde_policy.budget import kernel
from horde_policy.budget.price_table import load_prices
from horde_policy.budget.simulate import replay_budget
from horde_policy.budget.warm import warm_up_budget
from tests.unit.budget.recorded import azure_requests
from tests.unit.budget.test_budget_tables import PRICES


def test_after_the_warm_up_a_replay_of_real_requests_compiles_nothing() -> None:
    warm_up_budget()
    loops = [each for each in vars(kernel).values() if hasattr(each, "signatures")]
    before = [len(loop.signatures) for loop in loops]
    assert {loop.__name__ for loop in loops if loop.signatures} >= {"replay_holds", "replay_stops"}
    assert replay_budget(azure_requests(), load_prices(PRICES), "0.5").summary.height
    assert [len(loop.signatures) for loop in loops] == before
