import itertools

import pytest

from horde_policy.board.detail import model_detail, size_steps
from horde_policy.board.measure import measure
from horde_policy.board.pool import Fleet
from horde_policy.errors import InputError
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.recorded import load_recorded
from tests.unit.board import by_hand
from tests.unit.board.made import listed, snapshot, worker

SETTINGS = AllowanceSettings()
CYDONIA = "koboldcpp/Cydonia-24B-v4.1"


def fleet_of(folder: str) -> Fleet:
    return Fleet.of(load_recorded(by_hand.RECORDED / folder), SETTINGS)


def test_each_worker_says_whether_it_is_in_and_why_not() -> None:
    rows = [
        worker("in", max_length=1024, speed_tok_per_s=30.0),
        worker("small", max_length=80),
        worker("resting", maintenance=True, max_length=80),
        worker("new", measured=False, speed_tok_per_s=1.0, max_length=2048),
        worker("other", "n"),
    ]
    detail = model_detail(Fleet.of(snapshot(rows, [listed("m")]), SETTINGS), ("m",), 1000)
    parts = {part.worker.worker_id: part for part in detail.workers}
    assert list(parts) == ["in", "new", "resting", "small"]
    assert [part.eligible for part in detail.workers] == [True, True, False, False]
    assert (parts["in"].speed_share, parts["new"].speed_share, parts["small"].speed_share) == (0.75, 0.25, None)
    assert (parts["new"].speed_tok_per_s, parts["new"].assumed, parts["in"].assumed) == (10.0, True, False)
    assert [reason.code for reason in parts["resting"].reasons] == ["maintenance", "max_length"]
    assert [reason.code for reason in parts["small"].reasons] == ["max_length"]
    assert [part.largest_size_tokens for part in detail.workers] == [1024, 2048, 80, 80]


def test_whether_a_size_finishes_within_150_s_is_told_for_each_worker() -> None:
    rows = [worker("fast", max_length=4096, speed_tok_per_s=27.4), worker("slow", max_length=4096, speed_tok_per_s=27.3)]
    parts = model_detail(Fleet.of(snapshot(rows, [listed("m")]), SETTINGS), ("m",), 4096).workers
    assert [(part.worker.worker_id, part.finishes) for part in parts] == [("fast", True), ("slow", False)]
    assert parts[1].finish_s == 4096 / 27.3


def test_a_share_with_threads_counted_is_of_the_speed_counted() -> None:
    fleet = Fleet.of(snapshot([worker("a", threads=3), worker("b")], [listed("m")]), SETTINGS.changed(count_threads=True))
    assert [part.speed_share for part in model_detail(fleet, ("m",), 80).workers] == [0.75, 0.25]


def test_a_worker_of_several_models_names_the_others() -> None:
    fleet = Fleet.of(snapshot([worker("w", ["n", "m", "k"])], [listed("m")]), SETTINGS)
    assert model_detail(fleet, ("m",), 80).workers[0].other_models == ("k", "n")
    assert model_detail(fleet, ("m", "n"), 80).workers[0].other_models == ("k",)
    assert model_detail(fleet, (), 80).workers[0].other_models == ()


@pytest.mark.parametrize("context", [1024, 2048, 8192])
@pytest.mark.parametrize("folder", by_hand.FOLDERS)
def test_the_steps_hold_what_is_measured_at_every_size_in_them(folder: str, context: int) -> None:
    fleet = fleet_of(folder)
    for models in [(), *((name,) for name in fleet.names)]:
        pool = fleet.pool(models, context)
        steps = size_steps(fleet, pool)
        assert steps[0].from_tokens == 1
        assert steps[-1].to_tokens == 16384
        assert all(a.to_tokens + 1 == b.from_tokens for a, b in itertools.pairwise(steps))
        for step in steps:
            for size in {step.from_tokens, (step.from_tokens + step.to_tokens) // 2, step.to_tokens}:
                found = measure(fleet, models, size, context)
                assert (found.state, found.eligible_workers, found.speed_tok_per_s, found.waits) == (
                    step.state,
                    step.eligible_workers,
                    step.speed_tok_per_s,
                    step.waits,
                )
                assert found.allowance_tokens == step.allowance.named
        largest = [step.largest_free_tokens for step in steps if step.largest_free_tokens is not None]
        assert (max(largest) if largest else None) == measure(fleet, models, 80, context).largest_free_request_tokens


def test_the_steps_of_a_recorded_model_stand_on_paper() -> None:
    fleet = fleet_of("snapshot")
    steps = size_steps(fleet, fleet.pool((CYDONIA,), 2048))
    assert [(s.from_tokens, s.to_tokens, s.eligible_workers, s.state) for s in steps] == [
        (1, 512, 2, "full"),
        (513, 1024, 1, "full"),
        (1025, 16384, 0, "too_large"),
    ]
    assert [s.largest_free_tokens for s in steps] == [512, 1024, None]


def test_a_size_out_of_range_is_refused() -> None:
    fleet = fleet_of("fresh_server")
    with pytest.raises(InputError, match="max_length"):
        model_detail(fleet, ("m",), 0)
    with pytest.raises(InputError, match="max_context_length"):
        model_detail(fleet, ("m",), 80, 0)
