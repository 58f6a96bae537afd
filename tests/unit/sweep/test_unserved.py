from dataclasses import replace
from pathlib import Path

import pytest

from horde_policy.replay import draws
from horde_policy.replay.fill import ModelWeights
from horde_policy.sweep import counting
from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.run import run_sweep
from horde_policy.sweep.unserved import AS_NAMED, UNSERVED, unserved_of_stamp, unserved_range, unserved_shares
from horde_policy.sweep.warm import warm_up_sweep
from tests.unit.sweep.made import START, fleet_frame, inputs_of, planned, traffic_frame

WEIGHTED = "models=weighted,max_length=ladder"
WEIGHTS = ModelWeights(counts={"m": 6.0, "gone": 3.0, "away": 1.0, "never asked": 0.0}, source="a test")


@pytest.fixture
def inputs(tmp_path: Path) -> SweepInputs:
    models = [["m"], ["gone"], ["gone", "m"], []]
    traffic = traffic_frame([{"created": START, "models": names} for names in models])
    return inputs_of(tmp_path, traffic, fleet_frame([{"worker_id": "w", "models": ["m"]}]))


def without_models(inputs: SweepInputs) -> SweepInputs:
    trace = replace(inputs.trace, frame=inputs.trace.frame.drop("models"))
    return replace(inputs, trace=trace, weights=WEIGHTS)


def test_models_that_the_traffic_names_are_counted_whatever_the_rule(inputs: SweepInputs) -> None:
    assert unserved_shares(inputs, [None]) == {AS_NAMED: 0.25}
    assert unserved_shares(replace(inputs, weights=WEIGHTS), [WEIGHTED]) == {WEIGHTED: 0.25}


def test_models_that_a_rule_draws_are_expected_by_their_weight(inputs: SweepInputs) -> None:
    assert unserved_shares(without_models(inputs), [None, WEIGHTED, "models=any"]) == {WEIGHTED: 0.4}


def test_a_fleet_without_workers_is_told_elsewhere(inputs: SweepInputs) -> None:
    assert unserved_shares(replace(inputs, fleet=inputs.fleet.clear()), [None]) == {}


def test_a_sweep_carries_it_and_what_a_file_says_otherwise_is_left_out(inputs: SweepInputs) -> None:
    found = run_sweep(inputs, planned("floor_tokens = [256]", inputs))
    assert found.stamp[UNSERVED] == {AS_NAMED: 0.25}
    for odd in (None, [0.5], {"": "0.5"}, {"": float("nan")}, {"": 2.0}, {"": -0.5}):
        assert unserved_of_stamp({UNSERVED: odd}) == {}
    assert unserved_range({UNSERVED: {AS_NAMED: 0.25}}, [WEIGHTED]) is None


def test_after_the_warm_up_a_sweep_compiles_nothing(inputs: SweepInputs) -> None:
    warm_up_sweep()
    kernels = [each for module in (counting, draws) for each in vars(module).values() if hasattr(each, "signatures")]
    before = [len(kernel.signatures) for kernel in kernels]
    assert {kernel.__name__ for kernel in kernels if kernel.signatures} >= {"count_requests", "last_sendings", "_hash_rows"}
    run_sweep(inputs, planned("floor_tokens = [256]\nclient = ['leave', 'resend']", inputs))
    assert [len(kernel.signatures) for kernel in kernels] == before
