from pathlib import Path
from typing import Any

import pytest

from horde_policy.board.rows import BOARD_ROWS, Board, make_board
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.demo import DEMO_FOLDER
from horde_policy.sources.recorded import load_recorded
from horde_policy.views.exports import headings
from horde_policy.views.overview import board_columns, board_rows, export_frame, headline, pulse_tiles, shown_rows
from horde_policy.views.state import SORTS, ViewState
from horde_policy.views.status import status_line
from tests.unit.board.made import AT, listed, snapshot, worker

RECORDED = Path(__file__).parents[3] / "data" / "recorded"
SETTINGS = AllowanceSettings()


def board(name: str = "demo") -> Board:
    return make_board(load_recorded(DEMO_FOLDER if name == "demo" else RECORDED / name), SETTINGS)


def link(**changes: Any) -> str:
    return repr(changes)


@pytest.mark.parametrize(
    ("queues", "text"),
    [
        ([], "No model is listed and no worker serves one"),
        ([0.0], "The only model gives the full 4,096 tokens free"),
        ([0.0, 0.0], "Every one of 2 models gives the full 4,096 tokens free"),
        ([0.0, 1800.0], "1 of 2 models gives the full 4,096 tokens free"),
        ([5000.0, 5000.0, 0.0, 0.0], "2 of 4 models give the full 4,096 tokens free; 2 at the floor"),
        ([5000.0, 5000.0], "None of 2 models gives the full 4,096 tokens free; 2 at the floor"),
        ([5000.0], "The only model does not give the full 4,096 tokens free; 1 at the floor"),
    ],
)
def test_the_headline_answers_whether_it_is_all_right(queues: list[float], text: str) -> None:
    workers = [worker(f"w{i}", f"m{i}") for i in range(len(queues))]
    made = make_board(snapshot(workers, [listed(f"m{i}", q) for i, q in enumerate(queues)]), SETTINGS)
    assert headline(made.pulse, SETTINGS) == text


def test_each_state_of_the_demo_is_named_and_the_bad_ones_in_its_headline() -> None:
    made = board()
    assert sum(made.pulse.states.values()) == made.pulse.models
    assert all(made.pulse.states[state] for state in made.pulse.states), "the demo shows every state"
    assert headline(made.pulse, SETTINGS).endswith("; 2 at the floor, 1 without a worker")
    status = status_line(made.snapshot, name="x", state="ok", sentence="", now=AT)
    tile = pulse_tiles(made.pulse, status)[0]
    assert tile["sub"] == "6 falling, 2 other"
    assert [part["number"] for part in tile["parts"]] == [11, 6, 2, 1, 1, 1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("descending", [False, True])
def test_every_sort_shows_every_row_with_what_is_not_known_last(sort: str, descending: bool) -> None:
    made = board()
    shown = shown_rows(made.rows, ViewState(sort=sort, descending=descending))
    assert shown.hidden == 0
    assert sorted(row.model or "" for row in shown.rows) == [row.model for row in made.rows]
    if sort == "wait":
        waits = [row.measure.waits.named_s for row in shown.rows if row.measure.waits]
        assert waits == sorted(waits, reverse=descending)
        assert all(row.measure.waits is None for row in shown.rows[len(waits) :])


def test_ties_keep_the_order_of_the_names() -> None:
    made = make_board(snapshot([worker("w", ["c", "a", "b"])], [listed(n) for n in "cab"]), SETTINGS)
    for descending in (False, True):
        rows = shown_rows(made.rows, ViewState(sort="speed", descending=descending)).rows
        assert [row.model for row in rows] == ["a", "b", "c"]


def test_words_and_states_narrow_and_the_hidden_are_counted() -> None:
    made = board()
    found = shown_rows(made.rows, ViewState(find="KOBOLDCPP 13b"))
    assert [row.model for row in found.rows] == ["koboldcpp/Cartographer-13B"]
    assert found.hidden == len(made.rows) - 1
    floor = shown_rows(made.rows, ViewState(states=("floor",)))
    assert {row.measure.state for row in floor.rows} == {"floor"}
    assert shown_rows(made.rows, ViewState(find="no such model")).rows == ()


@pytest.mark.parametrize("name", ["demo", *sorted(path.name for path in RECORDED.iterdir() if path.is_dir())])
@pytest.mark.parametrize("grouped", [False, True])
def test_every_recorded_horde_has_a_row_a_model_and_one_for_any(name: str, grouped: bool) -> None:
    made = board(name)
    rows = made.groups if grouped else made.rows
    cells = board_rows(shown_rows(rows, ViewState()), made, link)
    columns = board_columns(ViewState(), made.strip_sizes, link)
    assert len(cells) == len(rows) + 1
    assert "any model" in str(cells[0].cells["model"])
    assert all(set(row.cells) == {column.key for column in columns} for row in cells)
    assert all(value is not None for row in cells for value in row.cells.values())


def test_a_hostile_name_is_shown_as_it_is_and_links_as_a_whole() -> None:
    name = "<img src=x onerror=alert(1)>\u202e" + "x" * 200
    made = make_board(snapshot([worker("w", [name])], [listed(name)]), SETTINGS)
    row = board_rows(shown_rows(made.rows, ViewState()), made, link)[1]
    assert row.cells["model"] == name.replace("\u202e", "⟨U+202E⟩")
    assert row.query == repr({"models": (name,)})


def test_a_queue_not_reported_reads_as_a_dash_and_not_as_zero() -> None:
    made = make_board(snapshot([worker("w", "m")], []), SETTINGS)
    cells = board_rows(shown_rows(made.rows, ViewState()), made, link)[1].cells
    assert cells["queued"] == "—"
    assert cells["wait"] == {"text": "—", "title": "The queue is not reported."}
    assert cells["largest"] == {"text": "—", "title": "The queue is not reported."}
    assert cells["allowance"]["text"] == "—"  # type: ignore[index, call-overload]
    assert cells["state"]["state"] == "unknown"  # type: ignore[index, call-overload]


def test_totals_that_are_not_reported_leave_their_tiles_empty_and_without_a_unit() -> None:
    made = make_board(snapshot([worker("w", "m")], None, horde_wide=None), SETTINGS)
    status = status_line(made.snapshot, name="made up", state="ok", sentence="Up to date", now=AT)
    tiles = {tile["label"]: tile for tile in pulse_tiles(made.pulse, status)}
    assert (tiles["Queued"]["value"], tiles["Queued"]["unit"]) == ("—", "")
    assert (tiles["Past minute"]["value"], tiles["Past minute"]["unit"]) == ("—", "")
    assert tiles["Combined speed"]["value"] == "10.0"


def test_the_first_click_on_a_heading_puts_what_matters_on_top_and_the_second_turns_it() -> None:
    columns = {c.key: c for c in board_columns(ViewState(), (80,), link)}
    assert columns["wait"].query == repr({"sort": "wait", "descending": True})
    assert columns["allowance"].query == repr({"sort": "allowance", "descending": False})
    turned = {c.key: c for c in board_columns(ViewState(sort="wait", descending=True), (80,), link)}
    assert turned["wait"].query == repr({"sort": "wait", "descending": False})
    assert turned["wait"].sorted == "descending"
    assert turned["model"].sorted is None


def test_the_export_has_every_column_of_the_boards_frame_with_its_unit() -> None:
    names = headings(BOARD_ROWS)
    assert names["wait_named_s"] == "wait_named_s (s)"
    assert list(names) == board().frame().columns


def test_what_is_exported_is_what_is_shown_in_its_order() -> None:
    made = board()
    shown = shown_rows(made.rows, ViewState(sort="queued", descending=True, states=("falling",)))
    frame = export_frame(made, shown)
    assert frame["model"].to_list() == ["any model", *(row.model for row in shown.rows)]
    assert BOARD_ROWS.checked(frame).equals(frame)
