"""The quote cache never tells a refused requester what a funded one was quoted (A21, A22)."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.clock import FixedClock
from horde_policy.errors import InputError
from horde_policy.policy.decision import Decision, Pool, Request, decide
from horde_policy.policy.eligibility import Worker
from horde_policy.policy.quotes import QuoteCache
from horde_policy.settings import AllowanceSettings
from tests.unit.policy import strategies as some

SETTINGS = AllowanceSettings()
WORKER = Worker(worker_id="w", models=("m",), max_length=4096, max_context_length=8192)
BUSY = Pool(workers=(WORKER,), queued_tokens=1800)  # 180 s: 2304 tokens
ANONYMOUS = Request(models=("m",), max_length=4096, max_context_length=4096, dry_run=True)
FUNDED = replace(ANONYMOUS, requester="registered", can_pay=True)


def decided(request: Request, pool: Pool = BUSY) -> Decision:
    return decide(request, pool, SETTINGS)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(datetime(2026, 11, 29, 12, tzinfo=UTC))


def test_a_quote_of_a_funded_requester_is_not_given_to_an_anonymous_dry_run_over_the_allowance(clock: FixedClock) -> None:
    cache = QuoteCache(clock)
    cache.put("p", decided(FUNDED), 24.0)
    assert cache.get("p", decided(FUNDED)) == 24.0
    refused = decided(ANONYMOUS)
    assert refused.outcome == "refused"
    assert cache.get("p", refused) is None


def test_the_same_dry_run_under_the_allowance_finds_it(clock: FixedClock) -> None:
    cache = QuoteCache(clock)
    idle = Pool(workers=(WORKER,), queued_tokens=0)
    cache.put("p", decided(FUNDED), 24.0)
    assert cache.get("p", decided(ANONYMOUS, idle)) == 24.0


def test_a_lowered_dry_run_does_not_find_the_quote_of_the_full_size(clock: FixedClock) -> None:
    cache = QuoteCache(clock)
    cache.put("p", decided(FUNDED), 24.0)
    lowered = decided(replace(ANONYMOUS, allow_downgrade=True))
    assert lowered.admitted_max_length == 2304
    assert cache.get("p", lowered) is None
    cache.put("p", lowered, 13.0)
    assert cache.get("p", lowered) == 13.0
    assert cache.get("p", decided(FUNDED)) == 24.0


def test_chat_dry_runs_neither_find_nor_leave_a_quote(clock: FixedClock) -> None:
    cache = QuoteCache(clock)
    chat = decided(replace(FUNDED, chat=True))
    cache.put("p", decided(FUNDED), 24.0)
    assert cache.get("p", chat) is None
    cache.put("q", chat, 24.0)
    assert len(cache) == 1


def test_a_refused_request_has_no_quote_to_keep(clock: FixedClock) -> None:
    with pytest.raises(InputError, match="A21"):
        QuoteCache(clock).put("p", decided(ANONYMOUS), 24.0)


def test_only_dry_runs_find_or_leave_a_quote(clock: FixedClock) -> None:
    cache = QuoteCache(clock)
    real = decided(replace(FUNDED, dry_run=False))
    assert real.admitted_max_length == 4096
    cache.put("p", real, 24.0)
    assert len(cache) == 0
    cache.put("p", decided(FUNDED), 24.0)
    assert cache.get("p", real) is None


@pytest.mark.parametrize("kudos", [float("nan"), float("inf"), -1.0, -1e-9, "24", None, True])
def test_kudos_must_be_a_finite_number_of_at_least_none(clock: FixedClock, kudos: Any) -> None:
    with pytest.raises(InputError, match="kudos"):
        QuoteCache(clock).put("p", decided(FUNDED), kudos)


@pytest.mark.parametrize(
    "change",
    [
        {"models": ("o",)},
        {"n": 2},
        {"max_length": 4095},
        {"max_context_length": 8192},
        {"slow_workers": False},
        {"workers": ("w",)},
        {"workers": ("v",), "worker_blacklist": True},
        {"trusted_workers": True},
        {"validated_backends": True},
    ],
)
def test_another_request_has_another_quote(clock: FixedClock, change: dict[str, object]) -> None:
    cache = QuoteCache(clock)
    cache.put("p", decided(FUNDED), 24.0)
    assert cache.get("p", decided(replace(FUNDED, **change))) is None  # type: ignore[arg-type]
    assert cache.get("other prompt", decided(FUNDED)) is None


def test_a_quote_is_not_given_out_after_its_time(clock: FixedClock) -> None:
    cache = QuoteCache(clock, kept_s=60)
    cache.put("p", decided(FUNDED), 24.0)
    clock.advance(59.999999)
    assert cache.get("p", decided(FUNDED)) == 24.0
    clock.advance(0.000001)
    assert cache.get("p", decided(FUNDED)) is None
    assert len(cache) == 0


def test_the_quote_unused_for_longest_goes_first(clock: FixedClock) -> None:
    cache = QuoteCache(clock, most=2)
    for payload in ("a", "b"):
        cache.put(payload, decided(FUNDED), 1.0)
    cache.get("a", decided(FUNDED))
    cache.put("c", decided(FUNDED), 1.0)
    assert [cache.get(payload, decided(FUNDED)) for payload in ("a", "b", "c")] == [1.0, None, 1.0]


@pytest.mark.parametrize(("most", "kept_s"), [(0, 1.0), (1, 0.0), (1, float("inf"))])
def test_a_senseless_cache_is_refused(clock: FixedClock, most: int, kept_s: float) -> None:
    with pytest.raises(InputError, match="quote cache"):
        QuoteCache(clock, most=most, kept_s=kept_s)


@given(asked=st.lists(st.tuples(some.requests(plain=True), st.integers(0, 5000)), min_size=1, max_size=12))
def test_whatever_was_quoted_before_only_an_admitted_native_request_gets_the_quote_of_its_own_size(
    asked: list[tuple[Request, int]],
) -> None:
    cache = QuoteCache(FixedClock(datetime(2026, 11, 29, tzinfo=UTC)), most=4)
    for request, queued in asked:
        decision = decided(replace(request, models=("m",), dry_run=True), Pool(workers=(WORKER,), queued_tokens=queued))
        found = cache.get("p", decision)
        if decision.outcome == "refused" or decision.request.chat:
            assert found is None
        else:
            assert found in (None, decision.admitted_max_length)
            cache.put("p", decision, float(decision.admitted_max_length or 0))
        assert len(cache) <= 4
