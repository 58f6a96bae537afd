"""The wall's board: every model the filters leave, the worst first, each with its own figures."""

from dataclasses import replace
from pathlib import Path

from horde_policy.board.rows import make_board
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.recorded import load_recorded
from horde_policy.views.state import ViewState
from horde_policy.views.wall import wall_data, wall_rows
from tests.unit.views.test_overview import FLOOR, FULL, NOT_KNOWN, made_of

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


def test_hostile_names_are_made_visible() -> None:
    made = make_board(load_recorded(HOSTILE), AllowanceSettings())
    rows = wall_data(made, ViewState(), link, source="x")["rows"]
    assert isinstance(rows, list)
    assert not any(character in row["name"] for row in rows for character in "\u202e\n\x1b")
    assert len(rows) == len(made.rows) + 1
