"""The estimator equals the walk over the whole queue, whatever comes and goes (A7, A8, A11)."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from horde_policy.errors import InputError
from horde_policy.policy import demands, token_blocks
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.policy.decision import lowered_for_chat
from horde_policy.policy.eligibility import Request, Worker, eligible_workers
from horde_policy.policy.estimator import Estimate, Estimator
from horde_policy.policy.queue_order import QueueKey, Waiting, queue_key, tokens_ahead
from horde_policy.policy.wait import combined_speed_tok_per_s, wait_at_speed_s
from horde_policy.settings import AllowanceSettings
from tests.unit.policy import strategies as some

SETTINGS = AllowanceSettings()
WORKER = Worker(worker_id="w", models=("m",), max_length=4096, max_context_length=8192)
SIZES = {"nameless": 8.0}


class Walked:
    """The same interface by walking over everything."""

    def __init__(self, settings: AllowanceSettings) -> None:
        self.settings = settings
        self.workers: dict[str, Worker] = {}
        self.waiting: dict[int, Waiting] = {}

    def update_worker(self, worker: Worker) -> None:
        before = self.workers[worker.worker_id]
        same = replace(before, speed_tok_per_s=worker.speed_tok_per_s, measured=worker.measured, threads=worker.threads)
        if same != worker:
            del self.workers[worker.worker_id]
        self.workers[worker.worker_id] = worker

    def estimate(self, request: Request, key: QueueKey) -> Estimate:
        pool = eligible_workers(self.workers.values(), request, self.settings, SIZES)
        queued = tokens_ahead(self.waiting.values(), pool, key, self.settings, SIZES)
        speed = combined_speed_tok_per_s(pool, self.settings)
        wait_s = wait_at_speed_s(queued, speed)
        return Estimate(wait_s, free_output_allowance(wait_s, self.settings), queued, speed, len(pool))


def check_a_walk(data: st.DataObject, settings: AllowanceSettings, steps: int, block_size: int) -> None:
    """Do random things to both and compare what they say of random requests after each."""
    estimator, walked = Estimator(settings, SIZES, block_size=block_size), Walked(settings)
    probes = data.draw(st.lists(some.requests(), min_size=1, max_size=3))
    for step in range(steps):
        act = data.draw(st.sampled_from(["join", "leave", "speed", "change", "add", "add", "add", "add", "remove", "part"]))
        worker_id = data.draw(st.sampled_from([f"w{i}" for i in range(6)]))
        there = worker_id in walked.workers
        if act == "join" and not there:
            worker = data.draw(some.workers(worker_id))
            estimator.add_worker(worker)
            walked.workers[worker_id] = worker
        elif act == "leave" and there:
            estimator.remove_worker(worker_id)
            del walked.workers[worker_id]
        elif act in {"speed", "change"} and there:
            worker = data.draw(some.workers(worker_id))
            if act == "speed":
                worker = replace(walked.workers[worker_id], speed_tok_per_s=worker.speed_tok_per_s, measured=worker.measured)
            estimator.update_worker(worker)
            walked.update_worker(worker)
        elif act == "add":
            request = data.draw(some.requests())
            key = queue_key(request.starting_priority, data.draw(st.integers(0, 90_000_000)), step)
            estimator.add(step, request, key)
            walked.waiting[step] = Waiting(request, key, request.n)
        elif act in {"remove", "part"} and walked.waiting:
            request_id = data.draw(st.sampled_from(sorted(walked.waiting)))
            if act == "remove":
                estimator.remove(request_id)
                del walked.waiting[request_id]
            else:
                n = data.draw(st.integers(0, 20))
                estimator.set_remaining(request_id, n)
                walked.waiting[request_id] = replace(walked.waiting[request_id], remaining_n=n)
        assert estimator.workers == tuple(walked.workers.values())
        assert len(estimator) == len(walked.waiting)
        created_us = data.draw(st.integers(0, 90_000_000))
        for probe in (*probes, data.draw(some.requests())):
            key = queue_key(probe.starting_priority, created_us, steps)
            assert estimator.estimate(probe, key) == walked.estimate(probe, key)
            assert estimator.lowered_for_chat(probe) == lowered_for_chat(probe, estimator.workers)


@given(data=st.data(), settings=some.settings(), block_size=st.sampled_from([2, 3, 5, 512]))
@hypothesis_settings(max_examples=60, deadline=None)
def test_it_equals_the_walk_whatever_comes_and_goes(data: st.DataObject, settings: AllowanceSettings, block_size: int) -> None:
    check_a_walk(data, settings, data.draw(st.integers(1, 25)), block_size)


@pytest.mark.soak
@given(data=st.data(), settings=some.settings(), block_size=st.sampled_from([2, 3, 5, 512]))
@hypothesis_settings(max_examples=3000, deadline=None)
def test_it_equals_the_walk_thousands_of_times(data: st.DataObject, settings: AllowanceSettings, block_size: int) -> None:
    check_a_walk(data, settings, data.draw(st.integers(1, 60)), block_size)


def grown(workers: int, waiting: int, settings: AllowanceSettings = SETTINGS, block_size: int = 16) -> tuple[Estimator, Walked]:
    """Return both with a fleet of more than one word of bits and a queue of many blocks, made by a fixed rule."""
    estimator, walked = Estimator(settings, SIZES, block_size=block_size), Walked(settings)
    for i in range(workers):
        worker = Worker(
            worker_id=f"w{i}",
            models=tuple(f"m{(i * k) % 40}-8B" for k in (1, 3, 7)),
            max_length=(80, 300, 512, 1024, 4096)[i % 5],
            max_context_length=(2048, 4096, 8192)[i % 3],
            speed_tok_per_s=0.1 * (i % 97) + 0.3,
            measured=i % 11 > 0,
        )
        estimator.add_worker(worker)
        walked.workers[worker.worker_id] = worker
    for i in range(waiting):
        request = Request(
            models=tuple(f"m{(i * k) % 40}-8B" for k in range(1, 1 + i % 3)),
            max_length=1 + (i * 37) % 5000,
            max_context_length=(1000, 2048, 4000, 9000)[i % 4],
            slow_workers=i % 5 > 0,
            n=1 + i % 4,
        )
        key = queue_key((i * 131) % 2000 - 50, (i * 7919) % 90_000_000, i)
        estimator.add(i, request, key)
        walked.waiting[i] = Waiting(request, key, request.n)
    return estimator, walked


@pytest.mark.parametrize("widest", [8, 8192])
@pytest.mark.parametrize("ahead", ["queue_order", "all"])
def test_it_equals_the_walk_on_a_large_fleet_and_a_long_queue(ahead: str, widest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_blocks, "WIDEST_PRODUCT", widest)
    estimator, walked = grown(150, 1200, SETTINGS.changed(ahead=ahead))
    for i in range(0, 150, 3):
        estimator.remove_worker(f"w{i}")
        del walked.workers[f"w{i}"]
    for i in range(0, 1200, 2):
        estimator.remove(i)
        del walked.waiting[i]
    for i in range(120):
        probe = replace(walked.waiting[2 * i + 1].request, n=1)
        key = queue_key((i * 17) % 2000 - 50, (i * 104729) % 90_000_000, 5000 + i)
        assert estimator.estimate(probe, key) == walked.estimate(probe, key)
    for i in range(1, 1200, 2):
        estimator.remove(i)
    assert len(estimator) == 0
    assert estimator.estimate(Request(models=()), queue_key(0, 0, 9999)).queued_tokens == 0


def test_kinds_and_columns_that_are_not_used_are_given_up_without_changing_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demands, "IDLE_KINDS_KEPT", 20)
    estimator, walked = grown(30, 0)
    for i in range(600):
        models = (f"m{i % 7}-8B",) if i % 3 == 0 else (f"m{i % 40}-8B", f"only-{i}")
        request = Request(models=models, max_length=1 + i % 90)
        key = queue_key(0, i, i)
        estimator.add(i, request, key)
        walked.waiting[i] = Waiting(request, key)
        if i >= 5:
            estimator.remove(i - 5)
            del walked.waiting[i - 5]
        for probe in (request, Request(models=(f"m{(i + 3) % 40}-8B",))):
            later = queue_key(0, i, 10_000)
            assert estimator.estimate(probe, later) == walked.estimate(probe, later)
        kinds = estimator._demands
        holders = [holder for holder in kinds._columns if holder is not None]
        assert kinds._idle_columns == sum(not holder.queued for holder in holders)
        assert len(holders) + len(kinds._free_columns) == len(kinds._columns)
    assert len(kinds._columns) < 200
    assert len(kinds._demands) < 300


def test_a_level_that_nobody_declared_before_re_places_what_waits() -> None:
    estimator = Estimator(SETTINGS)
    estimator.add_worker(WORKER)
    for i, length in enumerate((512, 513, 5000)):
        estimator.add(i, Request(models=("m",), max_length=length), queue_key(0, i, i))
    later = queue_key(0, 9, 9)
    assert estimator.estimate(Request(models=("m",)), later).queued_tokens == 1025
    estimator.add_worker(replace(WORKER, worker_id="small", models=("m", "s"), max_length=512))
    assert estimator.estimate(Request(models=("s",)), later).queued_tokens == 512
    estimator.add_worker(replace(WORKER, worker_id="large", models=("m", "l"), max_length=6000))
    assert estimator.estimate(Request(models=("l",)), later).queued_tokens == 6025
    assert estimator.estimate(Request(models=("m",)), later).queued_tokens == 6025
    assert estimator.estimate(Request(models=("s",)), later).queued_tokens == 512


@pytest.mark.parametrize("few_of", [1, 10**9])
@given(
    placed=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 900)), min_size=1, max_size=40),
    picked=st.data(),
)
def test_keys_that_move_together_are_where_they_would_be_one_by_one(
    few_of: int, placed: list[tuple[int, int]], picked: st.DataObject
) -> None:
    """Both ways of moving: a pass over all keys, and one by one."""
    together, alone = token_blocks.TokenBlocks(4), token_blocks.TokenBlocks(4)
    keys = [queue_key(0, i, i) for i in range(len(placed))]
    for key, (column, tokens) in zip(keys, placed, strict=True):
        together.add(key, column, tokens)
        alone.add(key, column, tokens)
    moves = picked.draw(st.dictionaries(st.sampled_from(keys), st.integers(0, 100)))
    for key, column in moves.items():
        alone.change(key, column, placed[keys.index(key)][1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_blocks, "FEW_OF", few_of)
        together.move(moves)
    for column in {*moves.values(), *(column for column, _ in placed)}:
        only = np.zeros(128, dtype=np.uint8)
        only[column] = 1
        assert together.in_all(only) == alone.in_all(only)
        assert [together.ahead_of(key, only) for key in keys] == [alone.ahead_of(key, only) for key in keys]


@pytest.mark.parametrize(
    ("lengths", "moves"),
    [((600, 700, 900), 0), ((600, 700, 2000), 1), ((600, 2000, 3000), 1), ((2000, 3000), 0)],
    ids=["a whole kind is named anew", "the larger sizes leave", "the smaller sizes leave", "nothing is cut"],
)
def test_a_new_size_moves_at_most_half_of_a_kind(lengths: tuple[int, ...], moves: int, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[int] = []
    move = token_blocks.TokenBlocks.move

    def noted(blocks: token_blocks.TokenBlocks, columns: Mapping[QueueKey, int]) -> None:
        moved.append(len(columns))
        move(blocks, columns)

    estimator = Estimator(SETTINGS)
    estimator.add_worker(WORKER)
    for i, length in enumerate(lengths):
        estimator.add(i, Request(models=("m",), max_length=length), queue_key(0, i, i))
    monkeypatch.setattr(token_blocks.TokenBlocks, "move", noted)
    estimator.add_worker(replace(WORKER, worker_id="v", models=("m", "o"), max_length=1000))
    assert moved == [moves]
    later = queue_key(0, 9, 9)
    assert estimator.estimate(Request(models=("o",)), later).queued_tokens == sum(n for n in lengths if n <= 1000)
    assert estimator.estimate(Request(models=("m",)), later).queued_tokens == sum(lengths)
    for i in range(len(lengths)):
        estimator.remove(i)
    assert estimator.estimate(Request(models=("m",)), later).queued_tokens == 0


@pytest.mark.parametrize(
    "condition",
    [
        {"slow_workers": False},
        {"trusted_workers": True},
        {"validated_backends": True},
        {"workers": ("v",)},
        {"workers": ("w",), "worker_blacklist": True},
        {"models": ("n", "o")},
        {"models": ("m-8B", "o"), "slow_workers": False},
        {"max_length": 5000},
        {"max_context_length": 9000},
    ],
)
def test_requests_that_differ_in_one_condition_are_kinds_apart(condition: dict[str, Any]) -> None:
    estimator = Estimator(SETTINGS)
    estimator.add_worker(replace(WORKER, models=("m", "m-8B"), speed_tok_per_s=2.0, measured=True))
    plain, later = Request(models=("m",), max_length=100), queue_key(0, 9, 9)
    estimator.add(0, plain, queue_key(0, 0, 0))
    estimator.add(1, replace(plain, **condition), queue_key(0, 1, 1))
    assert estimator.estimate(plain, later).queued_tokens == 100
    assert estimator.estimate(replace(plain, **condition), later).eligible_workers == 0


def test_speeds_are_added_in_joining_order_also_when_a_worker_becomes_fast_later() -> None:
    speeds = {"a": 5.1, "b": 5.3, "c": 1e16}
    assert (5.1 + 5.3) + 1e16 != (5.1 + 1e16) + 5.3
    estimator = Estimator(SETTINGS)
    for worker_id, speed in speeds.items():
        estimator.add_worker(replace(WORKER, worker_id=worker_id, speed_tok_per_s=speed, measured=True))
    asked = Request(models=("m",), slow_workers=False)
    estimator.set_speed("b", 0.1)
    assert estimator.estimate(asked, queue_key(0, 0, 0)).speed_tok_per_s == 5.1 + 1e16
    estimator.set_speed("b", 5.3)
    assert estimator.estimate(asked, queue_key(0, 0, 0)).speed_tok_per_s == (5.1 + 5.3) + 1e16


def test_a_worker_that_becomes_fast_joins_the_pools_of_requests_that_exclude_slow_ones() -> None:
    estimator = Estimator(SETTINGS)
    estimator.add_worker(replace(WORKER, models=("m-8B", "o-8B"), speed_tok_per_s=4.0, measured=True))
    estimator.add(0, Request(models=("o-8B",), max_length=500, slow_workers=False), queue_key(0, 0, 0))
    asked, later = Request(models=("m-8B",)), queue_key(0, 9, 9)
    assert estimator.estimate(asked, later)[2:] == (0, 4.0, 1)
    estimator.set_speed("w", 5.0)
    assert estimator.estimate(asked, later)[2:] == (500, 5.0, 1)
    assert estimator.estimate(replace(asked, slow_workers=False), later)[2:] == (500, 5.0, 1)
    estimator.set_speed("w", 4.9)
    assert estimator.estimate(asked, later)[2:] == (0, 4.9, 1)
    assert estimator.estimate(replace(asked, slow_workers=False), later) == Estimate(None, 512, 0, 0.0, 0)


def test_a_changed_speed_keeps_the_worker_s_place_and_anything_else_costs_it() -> None:
    estimator = Estimator(SETTINGS)
    for worker_id in ("a", "b"):
        estimator.add_worker(replace(WORKER, worker_id=worker_id))
    estimator.set_speed("a", 3.0)
    assert [worker.worker_id for worker in estimator.workers] == ["a", "b"]
    estimator.update_worker(replace(WORKER, worker_id="a", maintenance=True))
    assert [worker.worker_id for worker in estimator.workers] == ["b", "a"]
    assert estimator.estimate(Request(models=("m",)), queue_key(0, 0, 0)).eligible_workers == 1


@pytest.mark.parametrize(
    ("act", "arguments", "says"),
    [
        ("add_worker", (WORKER,), "worker: 'w' must not be there already"),
        ("remove_worker", ("v",), "worker: 'v' must be there"),
        ("update_worker", (replace(WORKER, worker_id="v"),), "worker: 'v' must be there"),
        ("set_speed", ("v", 1.0), "worker: 'v' must be there"),
        ("set_speed", ("w", math.nan), "speed_tok_per_s: nan must be a finite number"),
        ("add", (0, Request(models=()), queue_key(0, 1, 1)), "request id: 0 must not be queued already"),
        ("add", (1, Request(models=()), queue_key(0, 0, 0)), "must be finite and not be queued already"),
        ("add", (1, Request(models=()), QueueKey(math.nan, 1, 1)), "must be finite and not be queued already"),
        ("add", (1, Request(models=()), queue_key(0, 1, 1), -1), "remaining_n: -1 must be a whole number"),
        ("remove", (1,), "request id: 1 must be queued"),
        ("set_remaining", (1, 1), "request id: 1 must be queued"),
        ("set_remaining", (0, 1.5), "remaining_n: 1.5 must be a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(act: str, arguments: tuple[Any, ...], says: str) -> None:
    estimator = Estimator(SETTINGS)
    estimator.add_worker(WORKER)
    estimator.add(0, Request(models=("m",), max_length=100), queue_key(0, 0, 0))
    before = estimator.estimate(Request(models=()), queue_key(0, 9, 9))
    with pytest.raises(InputError, match=says):
        getattr(estimator, act)(*arguments)
    assert estimator.estimate(Request(models=()), queue_key(0, 9, 9)) == before
    assert (len(estimator), estimator.workers) == (1, (WORKER,))


def test_a_block_holds_at_least_two() -> None:
    with pytest.raises(InputError, match="block_size"):
        Estimator(SETTINGS, block_size=1)
