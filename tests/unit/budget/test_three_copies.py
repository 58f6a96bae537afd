"""The bound holds with three copies of the program on one store, with kills in between (B9), and reserving all of it (B10)."""

import pytest

from tests.unit.budget.shapes import USD
from tests.unit.budget.three_copies import LIMIT_USD, Figures, run

DEFAULT_REQUESTS = 200
SOAK_REQUESTS = 5_000


def checked(figures: Figures) -> None:
    print(figures.text())
    assert figures.windows >= 3
    assert figures.kills >= 6
    assert figures.orphans > 0
    assert figures.late > 0
    assert figures.largest_over_pico <= figures.bound_there_pico
    if figures.mode == "full":
        # only the input can cost more than was held for it: almost nothing of the limit
        assert figures.largest_over_pico * 20 < int(LIMIT_USD) * USD
    else:
        assert figures.over > 0, "the run must reach the limit and go over it, or it shows nothing"


@pytest.mark.parametrize("mode", ["capped", "full"])
def test_three_copies_never_spend_more_than_limit_and_worst_case(store_url: str, mode: str) -> None:
    figures = run(store_url, mode=mode, requests=DEFAULT_REQUESTS)
    assert figures.admitted >= DEFAULT_REQUESTS
    checked(figures)


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["capped", "full"])
def test_the_same_with_thousands_of_requests(store_url: str, mode: str) -> None:
    figures = run(store_url, mode=mode, requests=SOAK_REQUESTS, seed=2)
    assert figures.admitted >= SOAK_REQUESTS
    checked(figures)
