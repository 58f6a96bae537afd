"""What is kept between runs: the right snapshot for its id (T3), nothing in a session that cannot be stored."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest

from horde_policy.frames.snapshot import Modes, Performance, Snapshot
from horde_policy.settings import AllowanceSettings
from horde_policy.ui.cache import board_of
from horde_policy.ui.live import content_id
from tests.pages.conftest import App
from tests.unit.board.made import AT, listed, snapshot, worker


def big(changed: int | None = None) -> Snapshot:
    workers = [worker(f"w{i:04d}", f"m{i % 50}", speed_tok_per_s=10.0 + (i == changed)) for i in range(1000)]
    return snapshot(workers, [listed(f"m{i}") for i in range(50)])


def test_one_cell_in_the_middle_makes_another_id_and_another_board() -> None:
    # A cache keyed by a polars frame itself would return the first board for nearly all of these (T3).
    first = big()
    first_id = content_id(first)
    for cell in range(15, 985, 97):
        other = big(cell)
        assert content_id(other) != first_id
        boards = [
            board_of(s, content_id(s), AllowanceSettings(), max_length_tokens=80, max_context_tokens=2048) for s in (first, other)
        ]
        assert boards[1].pulse.speed_tok_per_s == pytest.approx(boards[0].pulse.speed_tok_per_s + 1)


def test_the_id_stays_when_only_the_time_of_the_fetch_moves_on() -> None:
    first = big()
    later = replace(first, fetched_at=AT + timedelta(minutes=5), part_times={"workers": AT})
    assert content_id(later) == content_id(first)
    assert content_id(replace(first, workers=pl.concat([first.workers[:500], first.workers[500:]]))) == content_id(first)


@pytest.mark.parametrize(
    "changes",
    [
        {"performance": Performance(queued_tokens=1.0)},
        {"performance": None},
        {"modes": Modes(maintenance_mode=True)},
        {"models": None},
        {"synthetic": True},
        {"source": "other"},
    ],
)
def test_the_id_moves_with_every_part(changes: dict[str, object]) -> None:
    first = big()
    assert content_id(replace(first, **changes)) != content_id(first)  # type: ignore[arg-type]


@pytest.mark.parametrize("page", ["overview", "model"])
def test_a_session_holds_only_small_things_that_can_be_stored(app: Callable[[], App], page: str) -> None:
    # Streamlit's own check cannot be switched on: the state of its component parts does not pass it.
    shown = app().open(page)
    parts = tuple(element.proto.id for element in shown.test.get("bidi_component"))
    assert parts
    for key, value in shown.test.session_state.items():
        if not any(part.endswith(f"-{key}") for part in parts):
            assert len(pickle.dumps(value)) < 10_000, key
