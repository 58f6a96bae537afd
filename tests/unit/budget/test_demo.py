"""The made-up ledger: every state of a hold, true counters, the same for the same seed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horde_policy.budget import Ledger, load_prices
from horde_policy.budget.audit import LABELS
from horde_policy.budget.demo import DEMO_BUDGETS, make_demo_ledger
from horde_policy.clock import FixedClock

PRICES = load_prices(Path(__file__).parents[3] / "data" / "prices" / "example-hosted.toml")
NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("seed", [0, 7, 2_987_654])
@pytest.mark.parametrize("now", [NOON, datetime(2026, 12, 1, 0, 0, 5, tzinfo=UTC)])
def test_it_shows_every_state_and_its_counters_are_true(tmp_path: Path, seed: int, now: datetime) -> None:
    path = tmp_path / "ledger.db"
    make_demo_ledger(path, PRICES, now, seed=seed)
    with Ledger(path, create=False, clock=FixedClock(now)) as ledger:
        audit, look = ledger.audit(), ledger.look()
        assert audit.agrees
        assert [budget.name for budget in look.budgets] == list(DEMO_BUDGETS)
        labels = {label for window in audit.windows for label in LABELS if window.labels[label].requests}
        assert labels == set(LABELS)
        assert audit.open >= 6
        assert audit.expired == 1
        assert sum(hold.reservation.ceiling_tokens is None for hold in look.holds) == 2
        assert all(timedelta(0) < now - hold.created < timedelta(hours=1) for hold in look.holds)
        for window in audit.windows:
            assert window.spent_pico + window.held_pico > 0
