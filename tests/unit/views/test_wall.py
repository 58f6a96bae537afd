"""The wall's board: every model the filters leave, the worst first, each with its own figures."""

import re
from dataclasses import replace
from pathlib import Path

import horde_policy
from horde_policy.board.rows import make_board
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.recorded import load_recorded
from horde_policy.views.state import ViewState
from horde_policy.views.wall import wall_data, wall_rows
from tests.unit.views.test_overview import FLOOR, FULL, NOT_KNOWN, board, made_of

COMPONENTS = Path(horde_policy.__file__).parent / "ui" / "components"
HOSTILE = Path(__file__).parents[2] / "data" / "hostile"


def link(**changes: object) -> str:
    return repr(changes)


def test_the_worst_stands_first_and_ties_go_by_the_wait() -> None:
    made = made_of([FULL, 1800.0, FLOOR, NOT_KNOWN, 2400.0, FLOOR * 2])
    order = [row.model for row in wall_rows(made.rows, ViewState()).rows]
    assert order == ["m5", "m2", "m4", "m1", "m3", "m0"]


def test_an_order_of_the_address_is_kept() -> None:
    made = made_of([FULL, 1800.0, FLOOR])
    order = [row.model for row in wall_rows(made.rows, ViewState(sort="wait", descending=False)).rows]
    assert order == ["m0", "m1", "m2"]


def test_the_wall_has_any_model_then_every_row_and_says_what_filters_hide() -> None:
    made = made_of([FULL, 1800.0, FLOOR])
    data = wall_data(made, ViewState(), link, source="made up")
    rows = data["rows"]
    assert isinstance(rows, list)
    assert [row["name"] for row in rows] == ["any model", "m2", "m1", "m0"]
    assert [bool(row.get("pinned")) for row in rows] == [True, False, False, False]
    assert data["notes"] == []
    hidden = wall_data(made, replace(ViewState(), states=("floor",)), link, source="made up")
    assert [row["name"] for row in hidden["rows"]] == ["any model", "m2"]  # type: ignore[attr-defined]
    assert hidden["notes"] == ["2 hidden by filters"]


def test_the_wall_says_where_the_context_is_too_large_and_not_the_size() -> None:
    made = made_of([FULL], max_context_length=1024)
    assert wall_data(made, ViewState(), link, source="x")["notes"] == ["context 2,048 too large, not the size: m0"]
    assert wall_data(made_of([FULL], max_length=79), ViewState(), link, source="x")["notes"] == []
    several = made_of([FULL, FULL], max_context_length=1024)
    notes = wall_data(several, ViewState(), link, source="x")["notes"]
    assert isinstance(notes, list)
    assert notes[0].endswith("the size: 2 models")


def test_the_hatched_part_of_a_bar_is_explained_where_there_is_one() -> None:
    for made, more in ((made_of([FULL, 1800.0]), False), (board(), True)):
        data = wall_data(made, ViewState(), link, source="x")
        rows = data["rows"]
        assert isinstance(rows, list)
        assert any(row["fill"] != row["worst"] for row in rows) is bool(data["legend"]) is more


def test_hostile_names_are_made_visible() -> None:
    made = make_board(load_recorded(HOSTILE), AllowanceSettings())
    rows = wall_data(made, ViewState(), link, source="x")["rows"]
    assert isinstance(rows, list)
    assert not any(character in row["name"] for row in rows for character in "\u202e\n\x1b")
    assert len(rows) == len(made.rows) + 1


def test_a_state_has_one_mark_on_the_board_and_on_the_wall() -> None:
    board = (COMPONENTS / "grid.js").read_text(encoding="utf-8")
    wall = (COMPONENTS / "wall.css").read_text(encoding="utf-8")
    [squares] = re.findall(r"const MARKS = \{(.*)\}", board)
    marks = dict(re.findall(r'(\w+): "(.)"', squares))
    assert dict(re.findall(r'\.(\w+) \.mark::before \{ content: "(.)"; \}', wall)) == marks
    assert set(marks) == {"no_worker", "too_large", "unknown"}
    icons = dict(re.findall(r'state === "(\w+)"\) svg\.append\(shape\("path", \{ d: "([^"]+)"', board))
    assert icons["too_large"] == "M4 7h6", "the state's icon is a dash in its square, too"
    assert icons["no_worker"] == "M4 4l6 6M10 4l-6 6", "and a cross"


def test_a_bar_looks_the_same_on_the_board_and_on_the_wall() -> None:
    board, wall = ((COMPONENTS / f"{part}.css").read_text(encoding="utf-8") for part in ("grid", "wall"))
    for part in (r"\.track i", r"\.track i\.range", r"\.track\.none"):
        (rule,) = set(re.findall(rf"^{part} (\{{.*\}})$", board, re.MULTILINE))
        assert re.findall(rf"^{part} (\{{.*\}})$", wall, re.MULTILINE) == [rule]
