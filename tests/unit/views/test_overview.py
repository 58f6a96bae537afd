import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from horde_policy.board.rows import BOARD_ROWS, Board, make_board
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.demo import DEMO_FOLDER
from horde_policy.sources.recorded import load_recorded
from horde_policy.views.exports import headings
from horde_policy.views.overview import board_columns, board_rows, export_frame, pulse_tiles, queues_apart, shown_rows
from horde_policy.views.overview_words import explanations, headline
from horde_policy.views.parameters import SORTS
from horde_policy.views.state import ViewState
from horde_policy.views.status import status_line
from horde_policy.views.text import unbroken
from horde_policy.views.tiles import age_tile
from tests.unit.board.made import AT, listed, snapshot, worker

RECORDED = Path(__file__).parents[3] / "data" / "recorded"
SETTINGS = AllowanceSettings()


def board(name: str = "demo", size: int = 80) -> Board:
    return make_board(load_recorded(DEMO_FOLDER if name == "demo" else RECORDED / name), SETTINGS, max_length=size)


def link(**changes: Any) -> str:
    return repr(changes)


NAMES = ["demo", *sorted(path.name for path in RECORDED.iterdir() if path.is_dir())]
FULL, FLOOR, NOT_KNOWN = 0.0, 5000.0, None


def made_of(queues: list[float | None], *, size: int = 80, **changes: Any) -> Board:
    """A board of models m0, m1, … of 10 tok/s each, with these queues; null: not listed."""
    workers = [worker(f"w{i}", f"m{i}", **changes) for i in range(len(queues))]
    models = [listed(f"m{i}", queue) for i, queue in enumerate(queues) if queue is not None]
    return make_board(snapshot(workers, models), SETTINGS, max_length=size)


@pytest.mark.parametrize(
    ("queues", "text"),
    [
        ([], "No model is listed and no worker serves one"),
        ([FULL], "At 80 tokens, the only model gives the full allowance"),
        ([FULL, FULL], "At 80 tokens, every one of 2 models gives the full allowance"),
        ([FULL, 1800.0], "At 80 tokens, 1 of 2 models gives the full allowance; 1 falling"),
        ([FLOOR, FLOOR, FULL, FULL], "At 80 tokens, 2 of 4 models give the full allowance; 2 at the floor"),
        ([FLOOR, FLOOR], "At 80 tokens, none of 2 models gives the full allowance; 2 at the floor"),
        ([FLOOR], "At 80 tokens, the only model does not give the full allowance; 1 at the floor"),
        ([NOT_KNOWN], "The allowance of the only model is not known"),
        ([NOT_KNOWN] * 3, "The allowance of all 3 models is not known"),
        ([NOT_KNOWN, FULL], "At 80 tokens, 1 of 2 models gives the full allowance; 1 not known"),
        ([NOT_KNOWN, FLOOR, FLOOR], "At 80 tokens, the allowance of 1 of 3 models is not known; 2 at the floor"),
    ],
)
def test_the_headline_answers_whether_it_is_all_right(queues: list[float | None], text: str) -> None:
    assert headline(made_of(queues)) == text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 80, 512, 1024, 4096, 16384])
def test_what_is_not_known_is_never_counted_as_none_and_is_said_with_its_reason(name: str, size: int) -> None:
    made = board(name, size)
    unknown, sentence = made.pulse.states["unknown"], headline(made)
    assert ("not known" in sentence) is bool(unknown)
    assert not (unknown and ("none of" in sentence or "does not give" in sentence or "every one" in sentence))
    assert any("not known" in text for text in explanations(made)) is bool(unknown)
    tile = pulse_tiles(made.pulse, status_line(made.snapshot, name="x", state="ok", sentence="", now=AT))[0]
    assert ("unknown" in str(tile["sub"])) is bool(unknown)
    assert sum(int(number) for number in re.findall(r"\d+", str(tile["sub"]))) == made.pulse.models, (
        "each model is in its caption"
    )
    cells = {row.measure.models[0]: row.measure for row in made.rows}
    for row in board_rows(shown_rows(made.rows, ViewState()), made, lambda models: models[0] if models else ""):
        measure = cells.get(str(row.query), made.any_model.measure)
        assert (row.cells["allowance"]["sub"] == "queue not reported") is (measure.allowance_tokens is None)  # type: ignore[index, call-overload]


def test_the_recorded_workers_without_a_list_are_not_said_to_give_nothing() -> None:
    made = board("production_2023-07")
    assert headline(made) == "At 80 tokens, the allowance of 8 of 12 models is not known; 4 take no such request"
    assert explanations(made)[0].startswith("The source has no list of models: no queue is reported")
    status = status_line(made.snapshot, name="x", state="ok", sentence="", now=AT)
    tile = pulse_tiles(made.pulse, status)[0]
    assert tile["sub"] == "4 too large, 8 unknown"


@pytest.mark.parametrize("size", [80, 1024])
def test_the_headline_accounts_for_every_model_of_the_demo(size: int) -> None:
    made = board(size=size)
    asked, full, models, *others = (
        int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", headline(made).replace("tokens,", "tokens"))
    )
    assert (asked, full + sum(others)) == (size, models)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 80, 512, 4096])
def test_a_full_allowance_is_told_with_its_size_and_what_of_it_a_request_can_have(name: str, size: int) -> None:
    made = board(name, size)
    full = [row.measure for row in made.rows if row.measure.state == "full"]
    if not full:
        return
    assert headline(made).startswith(f"At {size:,} tokens, "), "the allowance is that of a size"
    assert "tokens free" not in headline(made)
    largest = [measure.largest_free_request_tokens or 0 for measure in full]
    said = [text for text in explanations(made) if "full allowance" in text]
    assert bool(said) is (min(largest) < SETTINGS.ceiling_tokens)
    assert all(f"{n:,}" in said[0] for n in (min(largest), max(largest)) if said)


def test_a_full_allowance_that_workers_take_needs_no_word() -> None:
    assert explanations(made_of([FULL, FULL], max_length=4096)) == []
    few = explanations(made_of([FULL, FULL], max_length=200))
    assert few[0].endswith("the largest free on these 2 models is 200.")


def test_a_size_that_only_the_context_makes_too_large_says_so() -> None:
    for changes, sub in (({"max_context_length": 1024}, "context 2,048"), ({"max_length": 79}, None)):
        made = made_of([FULL], **changes)
        cell = board_rows(shown_rows(made.rows, ViewState()), made, link)[1].cells["state"]
        assert isinstance(cell, dict)
        assert (cell["state"], cell.get("sub")) == ("too_large", sub)
    by_context = {row.model for row in board("production_2023-07").rows if row.measure.short_of_context}
    assert len(by_context) == 4


@pytest.mark.parametrize(
    ("kind", "ticking", "label", "value", "sub"),
    [
        ("live", True, "Age of the data", "5 s", "29 Nov 2026 12:00:00 UTC"),
        ("live", False, "Data of", "29 Nov 2026", "12:00:00 UTC; refresh is off"),
        ("recorded", True, "Data of", "29 Nov 2026", "12:00:00 UTC; a recording"),
    ],
)
def test_an_age_that_does_not_tick_gives_way_to_the_time_and_the_reason(
    kind: Any, ticking: bool, label: str, value: str, sub: str
) -> None:
    status = status_line(
        replace(snapshot([], []), source_kind=kind), name="x", state="ok", sentence="", now=AT + timedelta(seconds=5)
    )
    tile = age_tile(status, ticking=ticking)
    assert (tile["label"], tile["value"], tile["sub"]) == (label, value, unbroken(sub))


def test_each_state_of_the_demo_is_named_and_the_bad_ones_in_its_headline() -> None:
    made = board()
    assert sum(made.pulse.states.values()) == made.pulse.models
    assert all(made.pulse.states[state] for state in made.pulse.states), "the demo shows every state"
    assert headline(made).endswith("; 6 falling, 2 at the floor, 1 without a worker, 1 takes no such request, 1 not known")
    status = status_line(made.snapshot, name="x", state="ok", sentence="", now=AT)
    tile = pulse_tiles(made.pulse, status)[0]
    assert tile["sub"] == "11 full, 6 falling, 2 floor, 1 no worker, 1 too large, 1 unknown"
    assert [part["number"] for part in tile["parts"]] == [11, 6, 2, 1, 1, 1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("descending", [False, True])
def test_every_sort_shows_every_row_with_what_is_not_known_last(sort: str, descending: bool) -> None:
    made = board()
    shown = shown_rows(made.rows, ViewState(sort=sort, descending=descending))
    assert shown.hidden == 0
    assert sorted(row.model or "" for row in shown.rows) == [row.model for row in made.rows]
    if sort == "model":
        names = [(row.model or "").casefold() for row in shown.rows]
        assert names == sorted(names, reverse=descending), "capital letters stand among the others"
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
    assert tiles["Past minute"]["sub"] == "not reported"
    assert tiles["Speed of all"]["value"] == "10.0"


def test_where_the_servers_total_is_not_its_lists_both_queues_are_said_with_the_rest() -> None:
    def said(total: float | None, queues: list[dict[str, object]] | None) -> str:
        return queues_apart(make_board(snapshot([worker("w", "m")], queues, horde_wide=total), SETTINGS).pulse)

    assert said(36_612.0, [listed("m", 36_532.0)]) == (
        "The tile's queue is the server's own total, 36,612 tokens: 80 more than the queues in its list, 36,532, "
        "which any model's row has."
    )
    assert "20 less than" in said(80.0, [listed("m", 100.0)])
    assert [said(100.0, [listed("m", 100.0)]), said(None, [listed("m", 1.0)]), said(9.0, None)] == ["", "", ""]


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
