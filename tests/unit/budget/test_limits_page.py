"""Every figure of ``docs/limits.md`` is computed here, in the order of the page."""

import re
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from horde_policy.budget import Certain, Declared, Known, RealInput, TokenUsage, worst_case
from horde_policy.budget.bound import bound_without_count, gap_ratio, split_limit_pico
from horde_policy.budget.money import MAX_LIMIT_PICO, money_column, money_text, pico_half_even
from horde_policy.budget.prices import Rates
from horde_policy.budget.reservation import DEFAULT_OUTPUT_TOKENS, affordable_tokens
from tests.unit.budget.shapes import ATTO_PER_MILLION, MICRO, USD, held, price, rates

PAGE = (Path(__file__).parents[3] / "docs" / "limits.md").read_text(encoding="utf-8")


def known(count: int, tokens: int, short: int = 0, long: int = 0) -> Known:
    return Known((RealInput(tokens, short, long),) * count)


def dear() -> Rates:
    return rates(output="30")


def expected_dollars() -> list[str]:
    per_token = price().rates
    one = held()
    read, output, total = (line.amount_pico for line in one.explanation())
    prices = [rate // ATTO_PER_MILLION for rate in (per_token.input, per_token.output)]
    found: list[int] = []
    long_body = held(m=4_096, body=400_000)
    found += [
        worst_case([one] * 20, inputs=known(20, 10_000)).stated_pico,
        worst_case([held(m=4_096)] * 99, inputs=known(99, 10_000)).stated_pico,
        worst_case([held(m=4_096)] * 50, inputs=known(50, 16_300)).stated_pico,
        worst_case([long_body], inputs=known(1, 100_000, 100_000)).stated_pico,
        worst_case([long_body], inputs=known(1, 100_000, 0, 100_000)).stated_pico,
        worst_case([held(m=4_096, body=400)], inputs=known(1, 150_000)).stated_pico,
        worst_case([one] * 24, inputs=known(24, 10_000)).stated_pico,
    ]
    small = worst_case([held(m=8_000)], inputs=known(1, 8_000))
    found += [small.tight_pico, small.stated_pico]
    found.append(worst_case([held(m=None, at=price(ceiling=128_000))], inputs=known(1, 10_000)).stated_pico)
    plain, hour = held(m=4_096), held(m=4_096, cache="1h")
    for assumption in (Certain(), Declared("1.7")):
        found += [worst_case([request], inputs=assumption).stated_pico for request in (plain, hour)]
    capped = bound_without_count(10**6 * USD, held(body=0), open_cap=2)
    assert capped is not None
    limit = 5 * USD
    found += [capped, limit]
    for reserve in (4_096, 16_384, 32_000):
        request = held(body=0, reserve=reserve)
        fit = limit // request.hold_pico
        found += [request.hold_pico, worst_case([request] * fit, inputs=known(fit, 0)).stated_pico]
    spent = 81 * pico_half_even(TokenUsage(fresh=0, output=32_000).cost_atto(price()))
    found += [spent, spent - limit]
    repriced = pico_half_even(TokenUsage(fresh=10_000, output=4_096).cost_atto(price(row=dear())))
    short = held(m=4_096)
    found += [repriced, repriced - short.hold_pico, worst_case([short], inputs=known(1, 10_000)).stated_pico]
    found += [100 * USD, split_limit_pico(100 * USD, 5, "0.01"), MAX_LIMIT_PICO, 50_000 * MICRO]
    in_words = [money_text(pico) for pico in found]
    return [*(f"${price}" for price in prices), money_text(1_000 * USD), *money_column([read, output, total]), *in_words]


def test_every_amount_of_money_on_the_page_is_computed() -> None:
    assert re.findall(r"\$\d{1,3}(?:,\d{3})*(?:\.\d+)?", PAGE) == expected_dollars()


def test_every_multiple_of_the_limit_is_computed() -> None:
    ratios = [gap_ratio(held(m=m, body=body)) for m in (8_000, 32_000, 64_000, 128_000) for body in (40_000, 0)]
    written = [f"{ratio.quantize(Decimal('0.01'), ROUND_HALF_UP)} × L" for ratio in ratios if ratio is not None]
    assert len(written) == 8
    assert re.findall(r"[\d.]+ × L", PAGE) == written


def test_every_count_in_bold_is_computed() -> None:
    fits = [5 * USD // held(body=0, reserve=reserve).hold_pico for reserve in (4_096, 16_384, 32_000)]
    passes = affordable_tokens(held(body=4_000), 50_000 * MICRO)
    assert passes is not None
    assert re.findall(r"\*\*([\d,]+)\*\*", PAGE) == [f"{number:,}" for number in (*fits, passes)]


def test_the_page_states_the_default() -> None:
    assert f"`reservation.output_tokens` ({DEFAULT_OUTPUT_TOKENS:,} if nothing is set)" in PAGE
