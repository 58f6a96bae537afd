import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.board.measure import measure
from horde_policy.board.pool import Fleet, largest_size_tokens
from horde_policy.errors import InputError
from horde_policy.policy.eligibility import Request, could_take
from horde_policy.policy.worker import Worker
from horde_policy.settings import AllowanceSettings
from tests.unit.board.made import listed, snapshot, worker

SETTINGS = AllowanceSettings()

sizes = st.sampled_from([None, 0, 1, 15, 80, 512, 2048, 4096, 16384, 20000])
workers = st.lists(
    st.builds(
        lambda **fields: fields,
        models=st.sampled_from([["a"], ["b"], ["a", "b"], ["c", "c", "a"], []]),
        max_length=sizes,
        max_context_length=sizes,
        speed_tok_per_s=st.sampled_from([0.0, 1.0, 7.4, 33.3]),
        measured=st.booleans(),
        online=st.sampled_from([True, False, None]),
        maintenance=st.sampled_from([True, False, None]),
        flagged=st.sampled_from([True, False, None]),
    ),
    max_size=6,
)


@given(
    fleet_of=workers,
    models=st.sampled_from([(), ("a",), ("b",), ("a", "b"), ("c",), ("nobody",), ("nobody", "b")]),
    max_length=st.sampled_from([1, 15, 16, 80, 81, 512, 2047, 2048, 2049, 4096, 16384]),
    context=st.sampled_from([1, 80, 512, 2048, 4096, 20000]),
)
def test_the_pool_is_what_the_policy_finds_eligible_in_the_same_order(
    fleet_of: list[dict[str, object]], models: tuple[str, ...], max_length: int, context: int
) -> None:
    rows = [worker(f"w{place}", **fields) for place, fields in enumerate(fleet_of)]  # type: ignore[arg-type]
    fleet = Fleet.of(snapshot(rows, [listed("a", 100.0)]), SETTINGS)
    request = Request(models=models, max_length=max_length, max_context_length=max(context, max_length))
    expected = tuple(one for one in fleet.workers if could_take(one, request, SETTINGS))
    assert fleet.pool(models, context).eligible(max_length) == expected


@given(max_length=sizes, context=sizes, asked=st.integers(1, 5000))
def test_the_largest_size_is_the_last_that_a_worker_takes(max_length: int | None, context: int | None, asked: int) -> None:
    one = Worker(worker_id="w", models=("m",), max_length=max_length, max_context_length=context)

    def takes(size: int) -> bool:
        return could_take(one, Request(models=("m",), max_length=size, max_context_length=max(asked, size)), SETTINGS)

    largest = largest_size_tokens(one, asked)
    if largest is None:
        assert not takes(1)
    else:
        assert takes(largest)
        assert largest == 16384 or not takes(largest + 1)


def test_the_named_queue_of_several_models_is_their_sum_and_of_any_all_that_is_listed() -> None:
    rows = [worker("w1", "a"), worker("w2", "b"), worker("w3", "served")]
    fleet = Fleet.of(snapshot(rows, [listed("a", 100.0), listed("b", 20.0), listed("c", 3.0)]), SETTINGS)
    assert fleet.named_tokens(("a", "b")) == 120.0
    assert fleet.named_tokens(("a", "c")) == 103.0
    assert fleet.named_tokens(()) == 123.0
    assert fleet.named_tokens(("a", "served")) is None  # served and not listed: its queue is not known
    assert fleet.named_tokens(("a", "nobody")) == 100.0  # nobody serves it: no eligible worker could take its work
    assert fleet.named_tokens(("nobody",)) is None


def test_an_empty_list_is_an_empty_queue_for_any_model_and_no_list_is_none() -> None:
    assert Fleet.of(snapshot([worker("w")], []), SETTINGS).named_tokens(()) == 0.0
    assert Fleet.of(snapshot([worker("w")], None), SETTINGS).named_tokens(()) is None


def test_a_listed_model_without_a_figure_makes_the_queue_of_any_model_unknown() -> None:
    fleet = Fleet.of(snapshot([worker("w")], [listed("m", 5.0), listed("x", None)]), SETTINGS)
    assert fleet.named_tokens(()) is None
    assert fleet.named_tokens(("m",)) == 5.0
    assert fleet.listed_tokens == 5.0


def test_high_counts_each_model_that_the_eligible_workers_serve_once() -> None:
    rows = [worker("w1", ["a", "b"]), worker("w2", ["a", "c"], max_length=80)]
    fleet = Fleet.of(snapshot(rows, [listed("a", 10.0, 2.0), listed("b", 5.0, 1.0), listed("c", 7.0, 30.0)]), SETTINGS)
    at_80 = measure(fleet, ("a",), 80).waits
    at_512 = measure(fleet, ("a",), 512).waits
    assert at_80 is not None
    assert at_512 is not None
    assert at_80.high_listed_tokens == 10 * 2 + 5 + 7 * 20
    assert at_512.high_listed_tokens == 10 * 2 + 5


def test_what_waits_beyond_the_list_counts_twenty_times() -> None:
    fleet = Fleet.of(snapshot([worker("w")], [listed("m", 10.0, 1.0)], horde_wide=25.0), SETTINGS)
    waits = measure(fleet, ("m",), 80).waits
    assert waits is not None
    assert waits.high_unlisted_tokens == 300.0


def test_threads_count_only_when_asked_for() -> None:
    made = snapshot([worker("w", threads=4)], [listed("m", 400.0)])
    assert measure(Fleet.of(made, SETTINGS), ("m",), 80).speed_tok_per_s == 10.0
    assert measure(Fleet.of(made, SETTINGS.changed(count_threads=True)), ("m",), 80).speed_tok_per_s == 40.0


@pytest.mark.parametrize("size", [0, -1, 16385, True, 80.0, "80", None])
def test_a_size_out_of_range_is_refused(size: object) -> None:
    with pytest.raises(InputError, match="must be a whole number from 1 to 16384"):
        measure(Fleet.of(snapshot([], []), SETTINGS), ("m",), size)  # type: ignore[arg-type]


@pytest.mark.parametrize("context", [0, 1_048_577, False, 2048.5])
def test_a_context_out_of_range_is_refused(context: object) -> None:
    with pytest.raises(InputError, match="must be a whole number from 1 to 1048576"):
        measure(Fleet.of(snapshot([], []), SETTINGS), ("m",), 80, context)  # type: ignore[arg-type]


def test_the_context_asked_is_never_below_the_size() -> None:
    fleet = Fleet.of(snapshot([worker("w", max_length=4096, max_context_length=3000)], [listed("m")]), SETTINGS)
    assert measure(fleet, ("m",), 3000).eligible_workers == 1
    at_3001 = measure(fleet, ("m",), 3001)
    assert (at_3001.eligible_workers, at_3001.max_context_length) == (0, 3001)
    assert at_3001.largest_free_request_tokens == 3000


def test_a_fleet_does_not_change() -> None:
    fleet = Fleet.of(snapshot([worker("w")], []), SETTINGS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fleet.workers = ()  # type: ignore[misc]
