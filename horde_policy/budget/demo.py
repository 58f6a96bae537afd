"""A made-up ledger for the demo: three copies of a gateway, four budgets, holds in every state. Everything in it is synthetic."""

import random
from datetime import datetime
from pathlib import Path

from horde_policy.budget.body import Ask
from horde_policy.budget.holding import Hold, Limit
from horde_policy.budget.ledger import Ledger
from horde_policy.budget.price_table import PriceTable
from horde_policy.budget.reservation import reserve_cost
from horde_policy.budget.usage import TokenUsage
from horde_policy.clock import FixedClock

__all__ = ["DEMO_BUDGETS", "make_demo_ledger"]

DEMO_BUDGETS: dict[str, tuple[Limit, ...]] = {
    "agents": (Limit("total", "2.50", open_cap=40),),
    "assistant": (Limit("day", "1.50"), Limit("month", "20.00")),
    "batch": (Limit("week", "0.75", "Europe/Berlin"),),
    "trial": (Limit("total", "0.02"),),
}
OWNERS = ("gateway-a", "gateway-b", "gateway-c")
ENDED = 90
STEP_S = 18.0
EXPIRY_S = 900.0
OPEN = (
    ("agents", 48_000, 32_000, "large"),
    ("agents", 260_000, 32_000, "large"),
    ("agents", 91_000, None, "large"),
    ("assistant", 9_000, 8_192, "small"),
    ("assistant", 22_000, 4_096, "large"),
    ("batch", 180_000, 16_000, "long"),
    ("agents", 130_000, None, "large"),
    ("assistant", 6_500, None, "small"),
)
"""Budget, body bytes, output limit and model of the requests that are open; the newest last."""


def make_demo_ledger(path: Path, prices: PriceTable, now: datetime, *, seed: int = 7) -> None:
    """Write a made-up ledger as it would stand at an instant: half an hour of requests, some of them open.

    Parameters
    ----------
    path
        Where the SQLite file goes; there must be none yet.
    prices
        A table with the models ``large``, ``small`` and ``long``: the bundled example's.
    now
        The instant it stands at.
    seed
        Of the sizes and the budgets of the requests that have ended.
    """
    rng = random.Random(seed)
    clock = FixedClock(now)
    clock.advance(-STEP_S * (ENDED + len(OPEN)) - EXPIRY_S)
    copies = [Ledger(path, owner=owner, expiry_s=EXPIRY_S, clock=clock) for owner in OWNERS]
    try:
        first = copies[0]
        for name, limits in DEMO_BUDGETS.items():
            first.set_budget(name, *limits)
        lost = [_admit(copies[2], prices, "agents", 70_000, 32_000, "large", f"lost-{number}") for number in (1, 2)]
        clock.advance(EXPIRY_S)
        first.reap()
        for number in range(ENDED):
            _one_request(rng, copies[number % len(copies)], prices, number)
            clock.advance(STEP_S)
        late = lost[0]
        if late is not None:
            first.settle(late, TokenUsage(fresh=16_800, output=21_400))
        for number, (budget, size, limit, model) in enumerate(OPEN):
            _admit(copies[number % len(copies)], prices, budget, size, limit, model, f"open-{number + 1}")
            clock.advance(STEP_S)
    finally:
        for copy in copies:
            copy.close()


def _admit(
    ledger: Ledger, prices: PriceTable, budget: str, body_bytes: int, limit: int | None, model: str, request_id: str
) -> Hold | None:
    ask = Ask(api="chat", model=model, body_bytes=body_bytes, limit_tokens=limit)
    answer = ledger.admit(budget, reserve_cost(ask, prices.price(model)), request_id=request_id)
    return answer if isinstance(answer, Hold) else None


def _one_request(rng: random.Random, ledger: Ledger, prices: PriceTable, number: int) -> None:
    """Admit one request and end it: mostly with usage, now and then without, or never sent."""
    budget = rng.choice(["agents", "assistant", "assistant", "batch", "trial"])
    model = "small" if budget == "trial" else rng.choice(["large", "large", "small"])
    size = rng.choice([4_000, 12_000, 40_000, 120_000])
    hold = _admit(ledger, prices, budget, size, rng.choice([4_096, 8_192, 32_000]), model, f"request-{number:04d}")
    if hold is None:
        return
    if number % 23 == 7:
        ledger.release(hold)
    elif number % 13 == 5:
        ledger.settle(hold, None, ended="cut_by_provider")
    elif number % 31 == 11:
        ledger.settle(hold, TokenUsage(fresh=size // 4, output=300), served="a model without a price")
    else:
        tokens = int(size / 4 * rng.uniform(0.8, 1.2))
        ledger.settle(hold, TokenUsage(fresh=tokens, output=min(4_000, int(rng.lognormvariate(5.7, 0.9)))))
