import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.board.wait_range import ListedQueue, WaitRange, high_listed_tokens, wait_range
from tests.unit.board import by_hand

QUEUED = sorted(path.parent.name for path in by_hand.RECORDED.glob("*/what_was_queued.json"))
SIZES = (1, 16, 80, 81, 160, 200, 256, 300, 350, 512, 768, 1024, 2048, 4096)


def known_range(raw: by_hand.RawFolder, models: tuple[str, ...] | None, max_length: int) -> WaitRange:
    waits = library_range(raw, models, max_length)
    assert waits is not None
    return waits


def library_range(raw: by_hand.RawFolder, models: tuple[str, ...] | None, max_length: int) -> WaitRange | None:
    pool = by_hand.eligible(raw, models, max_length)
    assert raw.listed is not None
    reach = {m for w in pool for m in w.models}
    return wait_range(
        speed_tok_per_s=math.fsum(w.speed for w in pool),
        named_tokens=by_hand.named_queue(raw, models),
        high_listed_tokens=high_listed_tokens(ListedQueue(*raw.listed[m]) for m in reach if m in raw.listed),
        listed_tokens=sum(q for q, _ in raw.listed.values()),
        horde_wide_tokens=raw.horde_wide,
    )


def test_there_are_recorded_queues_to_hold_against() -> None:
    assert QUEUED == ["calm_snapshot", "snapshot"]


@pytest.mark.parametrize("folder", QUEUED)
def test_the_truth_of_every_recorded_queue_lies_in_the_range(folder: str) -> None:
    raw = by_hand.raw_folder(folder)
    checked = 0
    for model in raw.names():
        for size in SIZES:
            truth = by_hand.truth_tokens(raw, (model,), size)
            waits = library_range(raw, (model,), size)
            if waits is None:
                assert not by_hand.eligible(raw, (model,), size), f"{model} at {size} has workers and a listed queue"
                continue
            truth_s = truth / waits.speed_tok_per_s
            assert waits.high_s is not None
            assert waits.low_s <= truth_s <= waits.high_s, f"{model} at {size}: {truth} tokens, {waits}"
            checked += 1
    assert checked >= 40


@pytest.mark.parametrize("folder", QUEUED)
@pytest.mark.parametrize("size", SIZES)
def test_the_truth_for_several_models_and_for_any_lies_up_to_the_worst(folder: str, size: int) -> None:
    raw = by_hand.raw_folder(folder)
    several = [*itertools.combinations(raw.listed or {}, 2), None]
    for models in several:
        waits = library_range(raw, models, size)
        if waits is not None:
            assert waits.worst_s is not None
            truth_s = by_hand.truth_tokens(raw, models, size) / waits.speed_tok_per_s
            assert waits.low_s <= truth_s <= waits.worst_s, f"{models} at {size}: {waits}"


def test_the_named_figure_alone_would_not_hold_the_truth() -> None:
    raw = by_hand.raw_folder("snapshot")
    cydonia = ("koboldcpp/Cydonia-24B-v4.1",)
    waits = known_range(raw, cydonia, 512)
    # 512 + 300 twice + 80 + 240 = 1432, and 200 of the request that names no model
    assert by_hand.truth_tokens(raw, cydonia, 512) == 1632
    assert waits.named_tokens == 1132
    assert waits.named_s == 1132 / 53.9
    assert waits.high_s == pytest.approx((1132 * 5 + 20 * (4430 - 4410)) / 53.9, rel=1e-15)


def test_low_is_reached_when_all_that_is_listed_is_too_large() -> None:
    # the one queued request wants 1024 tokens, and the only model's workers take at most 256
    raw = by_hand.raw_folder("snapshot")
    llama = ("koboldcpp/Llama-3.2-3B-Instruct",)
    assert by_hand.named_queue(raw, llama) == 1024
    assert by_hand.truth_tokens(raw, ("koboldcpp/Llama-3.2-3B-Instruct",), 160) == 200  # of the request that names none
    assert known_range(raw, llama, 160).low_s == 0.0


@pytest.mark.parametrize(
    ("queued", "jobs", "most"),
    [
        (100.0, 0.0, 100.0),
        (100.0, 1.0, 100.0),
        (100.0, 2.0, 200.0),
        (100.0, 20.0, 2000.0),
        (100.0, 21.0, 2000.0),
        (0.0, 20.0, 0.0),
        (100.0, None, 2000.0),
        (None, 20.0, 0.0),
        (None, None, 0.0),
    ],
)
def test_a_listed_queue_stands_for_at_most_its_jobs_and_never_more_than_twenty_times(
    queued: float | None, jobs: float | None, most: float
) -> None:
    assert ListedQueue(queued, jobs).most_tokens == most


@pytest.mark.parametrize(
    ("speed", "named", "horde_wide", "named_s", "high_s"),
    [
        (0.0, 100.0, 100.0, None, None),
        (10.0, None, 100.0, None, None),
        (10.0, 0.0, 0.0, 0.0, 20.0),  # high_listed 200 ÷ 10
        (10.0, 100.0, None, 10.0, None),
        (10.0, 100.0, 300.0, 10.0, 20.0),  # the total equals the list: nothing beyond it
        (10.0, 100.0, 299.0, 10.0, 20.0),  # the total lags below the list: never negative
        (10.0, 100.0, 301.0, 10.0, 22.0),  # 1 token beyond the list × 20
    ],
)
def test_null_rules_and_the_horde_wide_part(
    speed: float, named: float | None, horde_wide: float | None, named_s: float | None, high_s: float | None
) -> None:
    waits = wait_range(
        speed_tok_per_s=speed, named_tokens=named, high_listed_tokens=200.0, listed_tokens=300.0, horde_wide_tokens=horde_wide
    )
    if named_s is None:
        assert waits is None
    else:
        assert waits is not None
        assert (waits.low_s, waits.named_s, waits.high_s) == (0.0, named_s, high_s)


def test_at_worst_is_never_below_the_named_figure() -> None:
    # any model at 4096: the named queue counts models that the one worker of that size does not serve
    raw = by_hand.raw_folder("snapshot")
    waits = known_range(raw, None, 4096)
    assert waits.high_s is not None
    assert waits.high_s < waits.named_s
    assert waits.worst_s == waits.named_s


def test_each_scenario_gives_its_reasoning_with_its_figures() -> None:
    raw = by_hand.raw_folder("snapshot")
    waits = known_range(raw, ("koboldcpp/Cydonia-24B-v4.1",), 512)
    assert "too large" in waits.scenario("low").reasoning
    assert "1,132 tokens" in waits.scenario("named").reasoning
    assert "53.9 tok/s" in waits.scenario("named").reasoning
    high = waits.scenario("high")
    assert "5,660 tokens" in high.reasoning
    assert "400" in high.reasoning
    assert (high.queued_tokens, high.wait_s) == (6060.0, waits.high_s)


@given(
    speed=st.floats(0.1, 1e4),
    named=st.floats(0, 1e7),
    jobs=st.floats(0, 1e4),
    beyond=st.floats(-1e6, 1e6),
)
def test_for_one_model_low_named_and_high_never_cross(speed: float, named: float, jobs: float, beyond: float) -> None:
    waits = wait_range(
        speed_tok_per_s=speed,
        named_tokens=named,
        high_listed_tokens=high_listed_tokens([ListedQueue(named, jobs)]),
        listed_tokens=named,
        horde_wide_tokens=named + beyond,
    )
    assert waits is not None
    assert waits.high_s is not None
    assert waits.low_s <= waits.named_s <= waits.high_s
    assert waits.worst_s == waits.high_s
