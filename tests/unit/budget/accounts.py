"""What the ledger's tests share: how to admit, and what is spent and held."""

from datetime import UTC, datetime

from horde_policy.budget import Hold, Ledger, TokenUsage
from horde_policy.budget.reservation import Reservation
from tests.unit.budget.shapes import MICRO, held

START = datetime(2026, 1, 10, 12, tzinfo=UTC)
HOLD = 91_440 * MICRO
REAL = TokenUsage(fresh=10_000, output=500)
REAL_COST = 37_500 * MICRO


def admit(ledger: Ledger, request_id: str = "a", *, attempt: int = 1, reservation: Reservation | None = None) -> Hold:
    answer = ledger.admit("team", reservation or held(), request_id=request_id, attempt=attempt)
    assert isinstance(answer, Hold)
    return answer


def money(ledger: Ledger, budget: str = "team", kind: str = "day") -> tuple[int, int, int]:
    """Spent, held and open of a budget's running window."""
    [state] = [
        window.state
        for status in ledger.status()
        for window in status.windows
        if status.name == budget and window.state.window.kind == kind
    ]
    return state.spent_pico, state.held_pico, state.open_count
