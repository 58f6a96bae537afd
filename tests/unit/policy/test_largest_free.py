"""The largest free request against trying every size, and the declaration gap (A9, A18, A19)."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from horde_policy.policy.allowance import free_output_allowance
from horde_policy.policy.eligibility import Request, Worker, could_take
from horde_policy.policy.largest_free import (
    DeclarationGap,
    Declared,
    declaration_gap,
    declared_by,
    largest_free_request,
    largest_free_request_for,
)
from horde_policy.policy.wait import estimated_wait_s
from horde_policy.settings import AllowanceSettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from tests.unit.policy import strategies as some

SETTINGS = AllowanceSettings()


def tried_one_by_one(request: Request, fleet: tuple[Worker, ...], queued: float, settings: AllowanceSettings) -> int | None:
    """What the issue says, word for word: every size from 1 to 16384."""
    smallest = replace(request, max_length=1)
    fitting = [worker for worker in fleet if could_take(worker, smallest, settings)]
    best = None
    for size in range(1, MAX_LENGTH_LIMIT_TOKENS + 1):
        context = max(request.max_context_length, size)
        pool = [w for w in fitting if (w.max_length or 0) >= size and (w.max_context_length or 0) >= context]
        if not pool:
            break
        if size <= free_output_allowance(estimated_wait_s(queued, pool, settings), settings):
            best = size
    return best


def worker(worker_id: str, length: int | None, context: int | None, speed: float = 10.0) -> Worker:
    return Worker(
        worker_id=worker_id, models=("m",), max_length=length, max_context_length=context, speed_tok_per_s=speed, measured=True
    )


@pytest.mark.parametrize(
    ("fleet", "queued", "largest"),
    [
        ((), 0, None),
        ((worker("a", 512, 4096),), 0, 512),
        ((worker("a", 8192, 32768),), 0, 4096),
        ((worker("a", 8192, 32768),), 1200, 3200),
        ((worker("a", 8192, 32768),), 10**9, 512),
        ((worker("a", 8192, 4096),), 0, 4096),
        ((worker("a", 8192, 3000),), 0, 3000),
        ((worker("a", 8192, 2047),), 0, None),
        ((worker("a", 80, 4096), worker("b", 8192, 8192)), 3000, 512),
        ((worker("a", 80, 4096), worker("b", 300, 8192)), 3000, 300),
        ((worker("a", 0, 4096),), 0, None),
        ((worker("a", None, 4096), worker("b", 80, None)), 0, None),
        ((replace(worker("a", 512, 4096), maintenance=True),), 0, None),
        ((replace(worker("a", 512, 4096), flagged=True), worker("b", 80, 2048)), 0, 80),
        # b alone (5 tok/s, 1200 queued: 240 s, 1408) could take its 1500 but not free; with a (60 s) anything a takes is free
        ((worker("a", 1000, 4096, 15.0), worker("b", 1500, 4096, 5.0)), 1200, 1408),
        ((worker("a", 1000, 4096, 15.0), worker("b", 1500, 4096, 4.0)), 1200, 1000),
    ],
)
def test_the_largest_free_request(fleet: tuple[Worker, ...], queued: float, largest: int | None) -> None:
    assert largest_free_request(fleet, queued, SETTINGS) == largest
    assert largest_free_request_for(Request(models=("m",)), fleet, queued, SETTINGS) == largest
    assert tried_one_by_one(Request(models=("m",)), fleet, queued, SETTINGS) == largest


def test_an_unknown_queue_makes_it_unknown() -> None:
    assert largest_free_request([worker("a", 512, 4096)], None, SETTINGS) is None


def test_a_request_that_excludes_slow_workers_is_never_free() -> None:
    request = Request(models=("m",), slow_workers=False)
    assert largest_free_request_for(request, [worker("a", 512, 4096)], 0, SETTINGS) is None


@given(
    fleet=st.one_of(some.fleets(5), some.fleets(6, ok=True), some.fleets(6, ok=True)),
    request=some.requests(),
    settings=some.settings(),
    queued=st.one_of(st.integers(0, 20_000), st.floats(0, 1e5)),
)
@example(fleet=(worker("a", 512, 4096),), request=Request(models=()), settings=SETTINGS, queued=0)
def test_it_is_what_trying_every_size_finds(
    fleet: tuple[Worker, ...], request: Request, settings: AllowanceSettings, queued: float
) -> None:
    free_ones = replace(request, slow_workers=True)
    largest = largest_free_request_for(free_ones, fleet, queued, settings)
    assert largest == tried_one_by_one(free_ones, fleet, queued, settings)
    if largest is not None:
        asked = replace(free_ones, max_length=largest, max_context_length=max(free_ones.max_context_length, largest))
        assert any(could_take(w, asked, settings) for w in fleet)


def test_the_context_setting_leaves_workers_out() -> None:
    fleet = [worker("a", 512, 4096), worker("b", 1024, 2048)]
    assert largest_free_request(fleet, 0, SETTINGS) == 1024
    assert largest_free_request(fleet, 0, SETTINGS, max_context_length=4096) == 512
    assert largest_free_request(fleet, 0, SETTINGS, max_context_length=4097) is None


def test_what_is_declared_counts_each_size_on_its_own_and_available_workers_only() -> None:
    fleet = [
        worker("a", 512, 8192),
        worker("b", 1024, 2048),
        worker("c", None, None),
        replace(worker("d", 9999, 99999), maintenance=True),
        replace(worker("e", 9999, 99999), online=False),
        replace(worker("f", 9999, 99999), flagged=True),
        replace(worker("g", 9999, 99999), models=("other",)),
    ]
    assert declared_by(fleet, ("m",)) == Declared(1024, 8192)
    assert declared_by(fleet, ()) == Declared(9999, 99999)
    assert declared_by(fleet, ("nobody",)) == Declared(None, None)
    assert declared_by([worker("a", 0, 0)], ("m",)) == Declared(0, 0)


@pytest.mark.parametrize(
    ("length", "context", "declared", "gap"),
    [
        (512, 2048, Declared(512, 2048), None),
        (513, 2048, Declared(512, 2048), (1, None)),
        (512, 2049, Declared(512, 2048), (None, 1)),
        (4096, 8192, Declared(512, 2048), (3584, 6144)),
        (4096, 8192, Declared(None, None), None),
        (4096, 8192, Declared(None, 4096), (None, 4096)),
    ],
)
def test_the_declaration_gap(length: int, context: int, declared: Declared, gap: tuple[int | None, int | None] | None) -> None:
    request = Request(models=("m",), max_length=length, max_context_length=context)
    expected = None if gap is None else DeclarationGap(declared, *gap)
    assert declaration_gap(request, declared) == expected
