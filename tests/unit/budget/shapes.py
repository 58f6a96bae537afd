"""Prices, bodies and holds that the budget's tests share."""

import json
from decimal import Decimal

from horde_policy.budget.body import Ask
from horde_policy.budget.prices import CacheAsked, Price, Rates, Tier
from horde_policy.budget.reservation import Reservation, reserve_cost

ATTO_PER_MILLION = 10**12
"""A dollar per million tokens, in atto-dollars a token."""

USD = 10**12
"""A dollar in pico-dollars."""

MICRO = 10**6
"""A micro-dollar in pico-dollars."""


def atto(usd_per_million: str) -> int:
    return int(Decimal(usd_per_million) * ATTO_PER_MILLION)


def rates(
    input: str = "3",
    output: str = "15",
    read: str = "0.3",
    write_5m: str = "3.75",
    write_1h: str = "6",
    reasoning: str | None = None,
) -> Rates:
    return Rates(
        input=atto(input),
        output=atto(output),
        cache_read=atto(read),
        cache_write_5m=atto(write_5m),
        cache_write_1h=atto(write_1h),
        reasoning=None if reasoning is None else atto(reasoning),
    )


def price(
    *,
    model: str = "m",
    provider: str = "p",
    row: Rates | None = None,
    tiers: tuple[Tier, ...] = (),
    window: int | None = 200_000,
    ceiling: int | None = None,
    unasked: bool = False,
    fee: str = "0",
) -> Price:
    return Price(
        provider=provider,
        model=model,
        rates=row or rates(),
        tiers=tiers,
        context_window_tokens=window,
        max_output_tokens=ceiling,
        caches_unasked=unasked,
        fee_atto=int(Decimal(fee) * 10**18),
    )


def ask(
    *,
    m: int | None = 32_000,
    body: int = 40_000,
    n: int = 1,
    cache: CacheAsked = "none",
    model: str = "m",
) -> Ask:
    return Ask(api="chat", model=model, body_bytes=body, limit_tokens=m, choices=n, cache=cache)


def held(
    *,
    m: int | None = 32_000,
    body: int = 40_000,
    n: int = 1,
    cache: CacheAsked = "none",
    reserve: int = 4_096,
    at: Price | None = None,
) -> Reservation:
    return reserve_cost(ask(m=m, body=body, n=n, cache=cache), at or price(), output_tokens=reserve)


def body_of(**fields: object) -> bytes:
    return json.dumps({"model": "m", "messages": [], **fields}).encode()
