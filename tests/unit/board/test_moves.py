import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.board.measure import measure
from horde_policy.board.moves import AddedWorker, Move, losses, moved, single_points, way_back
from horde_policy.board.pool import Fleet
from horde_policy.board.rows import make_board
from horde_policy.errors import InputError
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.recorded import load_recorded
from tests.unit.board import by_hand
from tests.unit.board.made import listed, snapshot, worker

SETTINGS = AllowanceSettings()
M = ("m",)


def fleet_of(
    workers: list[dict[str, Any]], queued: float | None, horde_wide: float | None = 0.0, settings: AllowanceSettings = SETTINGS
) -> Fleet:
    return Fleet.of(snapshot(workers, [listed("m", queued, 1.0)], horde_wide=horde_wide), settings)


def test_no_move_changes_nothing() -> None:
    fleet = fleet_of([worker("w"), worker("x", maintenance=True)], 1800.0, 1900.0)
    for models in (M, ()):
        assert moved(fleet, models, 80, Move()) == measure(fleet, models, 80)


def test_tokens_more_or_less_move_named_and_high_alike() -> None:
    fleet = fleet_of([worker("w")], 1800.0, 1900.0)
    more = moved(fleet, M, 80, Move(queue_change_tokens=600))
    assert more.waits is not None
    # named (1800 + 600) / 10; high (1800 · 1 + 600 + 20 · 100) / 10
    assert (more.queued_tokens, more.waits.named_s, more.waits.high_s) == (2400.0, 240.0, 440.0)
    assert more.allowance_tokens == 1408
    none_left = moved(fleet, M, 80, Move(queue_change_tokens=-5000))
    assert none_left.waits is not None
    assert (none_left.queued_tokens, none_left.waits.named_s, none_left.waits.high_s) == (0.0, 0.0, 200.0)
    assert none_left.allowance_tokens == 4096


def test_a_queue_that_is_not_reported_stays_unknown() -> None:
    assert moved(fleet_of([worker("w")], None), M, 80, Move(queue_change_tokens=10)).queued_tokens is None


def test_a_worker_lost_leaves_the_pool_and_the_last_one_leaves_the_floor() -> None:
    fleet = fleet_of([worker("w"), worker("x")], 1800.0)
    one = moved(fleet, M, 80, Move(lost=frozenset({"x"})))
    assert (one.eligible_workers, one.allowance_tokens) == (1, 2304)
    none = moved(fleet, M, 80, Move(lost=frozenset({"w", "x"})))
    assert (none.state, none.allowance_tokens, none.notes[0].text) == (
        "no_worker",
        512,
        "No worker of the list serves it: the allowance is the floor, 512 tokens.",
    )


def test_a_worker_added_takes_the_sizes_it_is_given() -> None:
    fleet = fleet_of([worker("w")], 1800.0)
    added = Move(added=(AddedWorker(speed_tok_per_s=20.0, max_length=1024, max_context_length=4096),))
    at_80, at_1024, at_1025 = (moved(fleet, M, size, added) for size in (80, 1024, 1025))
    # 1800 / 30 = 60 s; 1800 / 20 = 90 s
    assert (at_80.eligible_workers, at_80.allowance_tokens) == (2, 4096)
    assert (at_1024.eligible_workers, at_1024.allowance_tokens) == (1, 3648)
    assert at_1025.state == "too_large"
    assert at_80.largest_free_request_tokens == 1024
    assert moved(fleet, (), 80, added).eligible_workers == 2


def test_an_added_worker_never_takes_the_id_of_another() -> None:
    fleet = fleet_of([worker("added 1", speed_tok_per_s=5.0)], 0.0)
    one = AddedWorker(speed_tok_per_s=20.0, max_length=512, max_context_length=4096)
    assert moved(fleet, M, 80, Move(added=(one, one))).speed_tok_per_s == 45.0


def test_other_settings_move_the_curve() -> None:
    fleet = fleet_of([worker("w")], 1800.0)
    assert moved(fleet, M, 80, Move(settings=SETTINGS.changed(wait_full_s=180.0))).allowance_tokens == 4096
    assert moved(fleet, M, 80, Move(settings=SETTINGS.changed(assumed_speed_tok_per_s=99.0))).allowance_tokens == 2304


@pytest.mark.parametrize("folder", ["snapshot", "calm_snapshot"])
def test_every_worker_lost_from_a_recorded_fleet_is_as_worked_out_by_hand(folder: str) -> None:
    fleet = Fleet.of(load_recorded(by_hand.RECORDED / folder), SETTINGS)
    raw = by_hand.raw_folder(folder)
    for model in raw.listed or {}:
        pool = by_hand.eligible(raw, (model,), 80)
        queue = by_hand.named_queue(raw, (model,))
        assert queue is not None
        found = {loss.worker.name: loss for loss in losses(fleet, fleet.pool((model,), 2048), 80)}
        assert sorted(found, key=str) == sorted(one.name for one in pool)
        for lost in pool:
            speed = math.fsum(one.speed for one in pool if one.name != lost.name)
            expected = by_hand.curve(queue / speed) if speed else 512
            assert found[lost.name].allowance_tokens == expected
            worker_id = found[lost.name].worker.worker_id
            assert moved(fleet, (model,), 80, Move(lost=frozenset({worker_id}))).allowance_tokens == expected


def test_the_gravest_loss_comes_first() -> None:
    rows = [worker("slow", speed_tok_per_s=5.0), worker("fast", speed_tok_per_s=25.0), worker("small", max_length=16)]
    fleet = fleet_of(rows, 1800.0)
    found = losses(fleet, fleet.pool(M, 2048), 80)
    # without fast 1800 / 5 = 360 s; without slow 1800 / 25 = 72 s
    assert [(loss.worker.worker_id, loss.allowance_tokens) for loss in found] == [("fast", 512), ("slow", 3916)]


def test_models_that_one_worker_carries_are_told_with_what_they_become() -> None:
    rows = [worker("w", ["a", "b"]), worker("x", "b"), worker("y", "c", max_length=16), worker("z", "c")]
    board = make_board(snapshot(rows, [listed("a"), listed("b"), listed("c", 100.0)]), SETTINGS)
    points = single_points(board)
    assert [(p.worker.worker_id, p.model, p.now.state, p.without.state) for p in points] == [
        ("w", "a", "full", "no_worker"),
        ("z", "c", "full", "too_large"),
    ]
    assert [p.without.allowance_tokens for p in points] == [512, 512]


@pytest.mark.parametrize(
    ("queued", "speeds", "target", "clear", "add", "reached"),
    [
        (600.0, [10.0], None, 0, 0.0, True),
        (601.0, [10.0], None, 1, 0.1, False),
        (1800.0, [10.0], None, 1200, 20.0, False),
        (1800.0, [10.0], 2304, 0, 0.0, True),
        (1800.0, [10.0], 2305, 1, 0.1, False),
        (1800.0, [], None, None, 30.0, False),
        (0.0, [], None, None, 0.1, False),
        (1800.0, [], 512, None, 0.0, True),
        (9000.0, [10.0], 512, 0, 0.0, True),
        (None, [10.0], None, None, None, False),
    ],
)
def test_the_way_back_is_the_least_that_is_enough(
    queued: float | None, speeds: list[float], target: int | None, clear: int | None, add: float | None, reached: bool
) -> None:
    fleet = fleet_of([worker(f"w{place}", speed_tok_per_s=speed) for place, speed in enumerate(speeds)], queued)
    back = way_back(measure(fleet, M, 80), SETTINGS, target)
    assert (back.clear_tokens, back.add_speed_tok_per_s, back.reached) == (clear, add, reached)


@given(
    queued=st.one_of(st.integers(0, 200_000).map(float), st.floats(0, 1e6)),
    speed=st.integers(1, 4000).map(lambda tenths: tenths / 10),
    target=st.integers(513, 4096),
)
def test_one_token_or_a_tenth_less_is_not_enough(queued: float, speed: float, target: int) -> None:
    fleet = fleet_of([worker("w", speed_tok_per_s=speed)], queued)
    back = way_back(measure(fleet, M, 80), SETTINGS, target)
    assert back.clear_tokens is not None
    assert back.add_speed_tok_per_s is not None

    def allowance(cleared: int, added: float) -> int:
        found = moved(fleet, M, 80, Move(queue_change_tokens=-float(cleared))) if cleared else measure(fleet, M, 80)
        if added:
            one = AddedWorker(speed_tok_per_s=added, max_length=80, max_context_length=2048)
            found = moved(fleet, M, 80, Move(added=(one,)))
        assert found.allowance_tokens is not None
        return found.allowance_tokens

    assert allowance(back.clear_tokens, 0.0) >= target
    assert allowance(0, back.add_speed_tok_per_s) >= target
    if not back.reached:
        assert allowance(back.clear_tokens - 1, 0.0) < target
        assert allowance(0, (round(back.add_speed_tok_per_s * 10) - 1) / 10) < target


def test_no_speed_is_enough_for_a_full_wait_of_zero() -> None:
    settings = SETTINGS.changed(wait_full_s=0.0)
    fleet = fleet_of([worker("w")], 5.0, settings=settings)
    back = way_back(measure(fleet, M, 80), settings)
    assert (back.clear_tokens, back.add_speed_tok_per_s) == (5, None)


def test_a_queue_beyond_all_measure_has_an_answer_too() -> None:
    back = way_back(measure(fleet_of([worker("w")], 1e300), M, 80), SETTINGS)
    assert (back.clear_tokens is not None and back.clear_tokens > 10**299, back.add_speed_tok_per_s) == (True, None)


def test_what_makes_no_sense_is_refused() -> None:
    fleet = fleet_of([worker("w")], 0.0)
    with pytest.raises(InputError, match="above the ceiling, which is 4096"):
        way_back(measure(fleet, M, 80), SETTINGS, 4097)
    with pytest.raises(InputError, match="is no worker of this snapshot"):
        moved(fleet, M, 80, Move(lost=frozenset({"nobody"})))
    with pytest.raises(InputError, match="finite"):
        Move(queue_change_tokens=math.nan)
    for speed in (0.0, -1.0, math.inf, math.nan, True):
        with pytest.raises(InputError, match="above 0"):
            AddedWorker(speed_tok_per_s=speed, max_length=80, max_context_length=2048)
    with pytest.raises(InputError, match="max_context_length"):
        AddedWorker(speed_tok_per_s=1.0, max_length=80, max_context_length=0)
