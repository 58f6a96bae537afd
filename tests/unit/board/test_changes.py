from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.board.changes import Changes, changes
from horde_policy.board.rows import Board, make_board
from horde_policy.errors import InputError
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.recorded import load_recorded
from tests.unit.board import by_hand
from tests.unit.board.made import AT, listed, snapshot, worker

SETTINGS = AllowanceSettings()
Rows = list[dict[str, Any]]


def board_of(workers: Rows, models: Rows | None, minutes: int = 0, max_length: int = 80) -> Board:
    return make_board(snapshot(workers, models, at=AT + timedelta(minutes=minutes)), SETTINGS, max_length=max_length)


def between(workers: tuple[Rows, Rows], models: tuple[Rows | None, Rows | None]) -> Changes:
    return changes(board_of(workers[0], models[0]), board_of(workers[1], models[1], minutes=1))


def test_two_equal_looks_have_no_change() -> None:
    found = between(([worker("w")], [worker("w")]), ([listed("m", 100.0)], [listed("m", 100.0)]))
    assert (found.models, found.workers) == ((), ())
    assert found.to_at - found.from_at == timedelta(minutes=1)


def test_a_queue_that_grew_accounts_for_the_whole_fall() -> None:
    # 10 tok/s: 60 s → 4096; 180 s → 2304
    found = between(([worker("w")], [worker("w")]), ([listed("m", 600.0)], [listed("m", 1800.0)]))
    change = found.models[0]
    assert (change.allowance_change_tokens, change.by_queue_tokens, change.by_pool_tokens) == (-1792, -1792.0, 0.0)
    assert (change.queue_change_tokens, change.workers) == (1200.0, ())


def test_a_worker_that_left_accounts_for_the_whole_fall() -> None:
    # 1800 tokens: 20 tok/s → 90 s → 3648; 10 tok/s → 180 s → 2304
    found = between(([worker("w"), worker("x")], [worker("w")]), ([listed("m", 1800.0)], [listed("m", 1800.0)]))
    change = found.models[0]
    assert (change.allowance_change_tokens, change.by_queue_tokens, change.by_pool_tokens) == (-1344, 0.0, -1344.0)
    assert [(w.kind, w.worker_id, w.speed_change_tok_per_s) for w in change.workers] == [("left", "x", -10.0)]
    assert [(w.kind, w.worker_id) for w in found.workers] == [("left", "x")]


def test_both_causes_get_the_mean_of_both_orders() -> None:
    # 20 tok/s and 1200 tokens: 60 s, 4096. Queue alone → 2400/20 = 120 s, 3200; pool alone → 1200/10 = 120 s, 3200;
    # both → 2400/10 = 240 s, 1408. Queue: (3200 − 4096 + 1408 − 3200) / 2 = −1344, and the pool as much
    found = between(([worker("w"), worker("x")], [worker("w")]), ([listed("m", 1200.0)], [listed("m", 2400.0)]))
    change = found.models[0]
    assert (change.allowance_change_tokens, change.by_queue_tokens, change.by_pool_tokens) == (-2688, -1344.0, -1344.0)


@given(
    queues=st.tuples(st.integers(0, 20000), st.integers(0, 20000)),
    speeds=st.tuples(st.lists(st.integers(1, 60), max_size=3), st.lists(st.integers(1, 60), max_size=3)),
)
def test_the_two_parts_always_add_up_to_the_change(queues: tuple[int, int], speeds: tuple[list[int], list[int]]) -> None:
    sides = tuple(
        board_of(
            [worker(f"w{place}", speed_tok_per_s=float(speed)) for place, speed in enumerate(fleet)], [listed("m", float(queue))]
        )
        for queue, fleet in zip(queues, speeds, strict=True)
    )
    for change in changes(sides[0], sides[1]).models:
        assert change.by_queue_tokens is not None
        assert change.by_pool_tokens is not None
        assert change.by_queue_tokens + change.by_pool_tokens == change.allowance_change_tokens


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ([worker("w")], [], "left"),
        ([], [worker("w")], "joined"),
        ([worker("w")], [worker("w", maintenance=True)], "into_maintenance"),
        ([worker("w", maintenance=True)], [worker("w")], "out_of_maintenance"),
        ([worker("w")], [worker("w", online=False)], "offline"),
        ([worker("w", online=False)], [worker("w")], "online"),
        ([worker("w")], [worker("w", flagged=True)], "flagged"),
        ([worker("w", flagged=True)], [worker("w")], "unflagged"),
        ([worker("w")], [worker("w", "n")], "dropped_model"),
        ([worker("w", "n")], [worker("w")], "took_model"),
        ([worker("w")], [worker("w", max_length=16)], "smaller_sizes"),
        ([worker("w", max_context_length=1024)], [worker("w")], "larger_sizes"),
        ([worker("w", measured=False)], [worker("w", speed_tok_per_s=5.0)], "measured"),
        ([worker("w")], [worker("w", speed_tok_per_s=5.0)], "speed"),
    ],
)
def test_what_a_worker_did_is_named(before: Rows, after: Rows, kind: str) -> None:
    found = between((before, after), ([listed("m", 900.0)], [listed("m", 900.0)]))
    change = next(change for change in found.models if change.model == "m")
    assert [w.kind for w in change.workers] == [kind]
    assert [w.kind for w in found.workers] == ([kind] if kind in ("left", "joined") or "maintenance" in kind else [])


def test_a_worker_that_never_served_is_not_among_the_models_workers() -> None:
    found = between(([worker("w"), worker("n", "n")], [worker("w")]), ([listed("m", 600.0)], [listed("m", 900.0)]))
    assert next(change for change in found.models if change.model == "m").workers == ()
    assert [w.worker_id for w in found.workers] == ["n"]


def test_models_turned_bad_come_first_then_the_largest_move_and_falls_before_rises() -> None:
    fleet = [worker(name, name) for name in ("bad", "fell", "fell_more", "rose", "same")]
    before = [
        listed("bad", 2990.0),
        listed("fell", 900.0),
        listed("fell_more", 600.0),
        listed("rose", 1200.0),
        listed("same", 5.0),
    ]
    after = [
        listed("bad", 3000.0),
        listed("fell", 1200.0),
        listed("fell_more", 1200.0),
        listed("rose", 900.0),
        listed("same", 6.0),
    ]
    found = between((fleet, fleet), (before, after))
    assert [change.model for change in found.models] == ["bad", "fell_more", "fell", "rose"]
    assert [change.turned_bad for change in found.models] == [True, False, False, False]


def test_a_model_that_is_gone_had_its_last_worker_leave() -> None:
    found = between(([worker("w"), worker("o", "o")], [worker("o", "o")]), ([listed("m"), listed("o")], [listed("o")]))
    change = found.models[0]
    assert (change.model, change.before.state, change.after.state, change.turned_bad) == ("m", "full", "no_worker", True)
    assert (change.allowance_change_tokens, change.by_queue_tokens) == (-3584, None)  # its queue is not listed any more


def test_a_queue_that_is_no_longer_reported_is_no_fall() -> None:
    found = between(([worker("w")], [worker("w")]), ([listed("m")], None))
    change = found.models[0]
    assert (change.after.state, change.allowance_change_tokens, change.turned_bad) == ("unknown", None, False)


def test_a_recovery_is_told() -> None:
    found = between(([worker("w")], [worker("w")]), ([listed("m", 3000.0)], [listed("m")]))
    assert (found.models[0].turned_good, found.models[0].allowance_change_tokens) == (True, 3584)


def test_boards_read_differently_are_not_compared() -> None:
    with pytest.raises(InputError, match="max_length"):
        changes(board_of([], []), board_of([], [], max_length=512))
    other = make_board(snapshot([], []), SETTINGS.changed(floor_tokens=256))
    with pytest.raises(InputError, match="settings"):
        changes(board_of([], []), other)


def test_between_two_recorded_looks_the_fleet_came_back() -> None:
    gone, back = (
        make_board(load_recorded(by_hand.RECORDED / folder), SETTINGS)
        for folder in ("later_nearly_everyone_gone", "calm_snapshot")
    )
    found = changes(gone, back)
    assert {w.kind for w in found.workers} == {"joined"}
    assert len(found.workers) == 11
    assert all(change.turned_good for change in found.models)
    bad = {change.model for change in changes(back, gone).models if change.turned_bad}
    assert bad == set(by_hand.raw_folder("calm_snapshot").names()) - {"koboldcpp/Qwen3-0.6B-Base"}
