"""A running count of output tokens that says stop (B13): inside one program, and on a shared ledger."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.budget import Hold, Ledger, Limit, TokenUsage
from horde_policy.budget.money import pico_half_even
from horde_policy.budget.stop import RunningCount, StreamGuard
from horde_policy.errors import InputError
from tests.unit.budget.shapes import MICRO, USD, held, price, rates

FREE = price(row=rates("0", "0", "0", "0", "0"))


def test_a_chain_of_requests_stops_at_its_limit() -> None:
    count = RunningCount("0.10")
    assert count.begin("a", price(), input_tokens=10_000)  # 30,000 micro-dollars
    assert count.tokens_left("a") == 4_666
    assert not count.add("a", 1_000)
    count.end("a", 40_000 * MICRO)  # the real cost was less than the 45,000 that were counted
    assert count.spent_pico == 40_000 * MICRO
    assert count.begin("b", price(), input_tokens=10_000)
    assert count.tokens_left("b") == 2_000
    assert not count.add("b", 1_999)
    assert count.add("b", 1)
    assert count.stopped
    assert not count.begin("c", price(), input_tokens=0)
    count.end("b")
    assert count.counted_pico == 100_000 * MICRO


def test_streams_of_one_session_count_together() -> None:
    count = RunningCount("0.001")
    assert count.begin("a", price(), input_tokens=0)
    assert count.begin("b", price(), input_tokens=0)
    assert not count.add("a", 40)
    assert count.add("b", 27)  # 67 tokens are 1,005 micro-dollars
    assert count.add("a", 0)
    assert count.counted_pico == 1_005 * MICRO


def test_an_input_that_does_not_fit_never_begins() -> None:
    count = RunningCount("0.01")
    assert not count.begin("a", price(), input_tokens=3_334)
    assert count.begin("a", price(), input_tokens=3_333)
    with pytest.raises(InputError, match="is running already"):
        count.begin("a", price(), input_tokens=1)


def test_a_free_target_is_never_stopped() -> None:
    count = RunningCount("0")
    assert count.begin("a", FREE, input_tokens=10**6)
    assert not count.add("a", 10**6)
    assert count.tokens_left("a") is None
    assert not count.begin("b", price(), input_tokens=0)


@pytest.mark.parametrize("wrong", [-1, 1.5, True, None])
def test_counts_are_whole_numbers(wrong: Any) -> None:
    count = RunningCount("1")
    count.begin("a", price(), input_tokens=0)
    for call in (
        lambda: count.add("a", wrong),
        lambda: count.begin("b", price(), input_tokens=wrong),
        lambda: count.add("ghost", 1),
        lambda: count.end("ghost"),
        lambda: count.end("a", -1),
    ):
        with pytest.raises(InputError):
            call()
    with pytest.raises(InputError):
        RunningCount(0.5)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 500)), max_size=60), st.integers(1, 20_000))
def test_no_more_than_the_last_addition_goes_over(steps: list[tuple[int, int]], limit_micro: int) -> None:
    count = RunningCount(f"0.{limit_micro:06d}")
    running: set[str] = set()
    for number, tokens in steps:
        key = str(number)
        if key not in running:
            if not count.begin(key, price(), input_tokens=tokens):
                continue
            running.add(key)
        assert count.counted_pico <= limit_micro * MICRO
        if count.add(key, tokens):
            assert count.counted_pico < limit_micro * MICRO + tokens * 15 * MICRO
            assert count.counted_pico >= limit_micro * MICRO
            return


def test_many_threads_share_one_count() -> None:
    count = RunningCount("0.15")
    with ThreadPoolExecutor(8) as pool:
        for number in range(8):
            assert count.begin(str(number), price(), input_tokens=0)

        def stream(number: int) -> int:
            sent = 0
            while not count.add(str(number), 1):
                sent += 1
            return sent

        sent = sum(pool.map(stream, range(8)))
    assert 10_000 - 8 <= sent <= 10_000
    assert count.counted_pico <= (10_000 + 8) * 15 * MICRO


def test_a_guarded_stream_never_outgrows_the_budget_on_a_ledger(store_url: str) -> None:
    with Ledger(store_url) as ledger:
        ledger.set_budget("team", Limit("day", "0.10"))
        hold = ledger.admit("team", held(m=32_000, body=0, reserve=1_000), request_id="a")
        assert isinstance(hold, Hold)
        guard = StreamGuard(ledger, hold, step_tokens=500)
        sent = 0
        while True:
            sent += 100
            if guard.add(100):
                break
        assert guard.refusal is not None
        assert guard.refusal.obstacle in ("held", "too_large")
        # $0.10 is 6,666 tokens: one more addition of 100 would have gone over
        assert sent == 6_600
        assert guard.hold.hold_pico >= sent * 15 * MICRO
        cost = pico_half_even(TokenUsage(fresh=0, output=sent).cost_atto(price()))
        ledger.settle(guard.hold, TokenUsage(fresh=0, output=sent))
        [window] = ledger.audit().windows
        assert window.agrees
        assert window.spent_pico == cost <= USD // 10


@pytest.mark.parametrize("step", [1, 256, 500, 4_096, 100_000])
@pytest.mark.parametrize(
    ("each", "n", "expected"), [(1, 1, 6_666), (7, 1, 6_664), (100, 1, 6_600), (100, 2, 6_600), (2, 2, 6_666)]
)
def test_whatever_the_step_a_stream_goes_on_while_the_budget_has_money(
    step: int, each: int, n: int, expected: int, tmp_path: Path
) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.set_budget("team", Limit("day", "0.10"))
        hold = ledger.admit("team", held(m=None, body=0, n=n, reserve=3_000), request_id="a")
        assert isinstance(hold, Hold)
        guard = StreamGuard(ledger, hold, step_tokens=step)
        guard.output_tokens = 5_600 // each * each if step == 1 else 0  # by ones the whole way would be slow
        while not guard.add(each):
            assert guard.output_tokens <= guard.hold.reservation.choices * guard.hold.reservation.reserved_tokens
        assert guard.output_tokens == expected
        done = ledger.settle(guard.hold, TokenUsage(fresh=0, output=guard.output_tokens))
        assert done.cost_pico <= done.hold_pico <= USD // 10


def test_a_guarded_stream_holds_no_more_than_its_own_limit(store_url: str) -> None:
    with Ledger(store_url) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        hold = ledger.admit("team", held(m=1_300, body=0, n=2, reserve=1_000), request_id="a")
        assert isinstance(hold, Hold)
        guard = StreamGuard(ledger, hold, step_tokens=500)
        assert not any(guard.add(100) for _ in range(26))
        assert guard.hold.hold_pico == 2 * 1_300 * 15 * MICRO
        assert guard.hold.reservation.reserved_tokens == 1_300
    with pytest.raises(InputError, match="at least one token"):
        StreamGuard(ledger, hold, step_tokens=0)


def test_two_guarded_streams_share_what_is_left(store_url: str) -> None:
    with Ledger(store_url) as ledger:
        ledger.set_budget("team", Limit("day", "0.15"))  # 10,000 tokens
        guards = []
        for key in ("a", "b"):
            hold = ledger.admit("team", held(m=32_000, body=0, reserve=100), request_id=key)
            assert isinstance(hold, Hold)
            guards.append(StreamGuard(ledger, hold, step_tokens=100))
        running = list(guards)
        while running:
            running = [guard for guard in running if not guard.add(50)]
        sent = [guard.output_tokens for guard in guards]
        assert 10_000 - 400 <= sum(sent) <= 10_000
        for guard in guards:
            ledger.settle(guard.hold, TokenUsage(fresh=0, output=guard.output_tokens))
        [window] = ledger.audit().windows
        assert window.spent_pico <= window.limit_pico
