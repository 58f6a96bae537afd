import json

import pytest

from horde_policy.views.grid import Column, Row, allowance_cell, grid_data, name_cell, query_text, state_cell, strip_cell
from horde_policy.views.words import STATES


def test_a_table_needs_its_sentence_and_rows_of_their_own_names() -> None:
    with pytest.raises(ValueError, match="alt"):
        grid_data([], [], alt=" ")
    with pytest.raises(ValueError, match="one id"):
        grid_data([], [Row(id="a", cells={}), Row(id="a", cells={})], alt="x")


def test_what_the_table_part_gets_is_json() -> None:
    cells = {
        "name": name_cell("\ud800<b>\u202e"),
        "state": state_cell("floor", text="why"),
        "allowance": allowance_cell("falling", allowance=2304, at_high=None, ceiling=4096),
        "strip": strip_cell([("unknown", None)]),
    }
    data = grid_data([Column(key="name", label="n", kind="name")], [Row(id="a", cells=cells)], alt="x")
    assert json.loads(json.dumps(data).encode())["rows"] == [
        {
            "id": "a",
            "cells": {
                "name": "⟨U+D800⟩<b>⟨U+202E⟩",
                "state": {"state": "floor", "title": "why"},
                "allowance": {"state": "falling", "text": "2,304", "fill": 0.5625, "worst": None, "sub": "at worst —"},
                "strip": ["unknown"],
            },
        }
    ]


@pytest.mark.parametrize(
    ("allowance", "at_high", "fill", "worst", "sub"),
    [
        (4096, 4096, 1.0, 1.0, ""),
        (4096, 512, 1.0, 0.125, "at worst 512"),
        (512, 4096, 0.125, 0.125, ""),  # the named wait can be above that of the high scenario
        (2048, None, 0.5, None, "at worst —"),
        (None, None, None, None, "queue not reported"),
    ],
)
def test_an_allowance_and_what_is_left_of_it_at_worst(
    allowance: int | None, at_high: int | None, fill: float | None, worst: float | None, sub: str
) -> None:
    cell = allowance_cell("falling", allowance=allowance, at_high=at_high, ceiling=4096)
    assert isinstance(cell, dict)
    assert (cell["fill"], cell["worst"], cell["sub"]) == (fill, worst, sub)


def test_the_table_part_knows_the_words_of_each_state() -> None:
    words = grid_data([], [], alt="x")["words"]
    assert isinstance(words, dict)
    assert list(words) == list(STATES)
    assert words["no_worker"][:2] == ["no worker", True]


def test_a_query_holds_any_name() -> None:
    assert query_text({"m": ["a/b &=#?%\u202e", "\ud800"]}) == "m=a%2Fb%20%26%3D%23%3F%25%E2%80%AE&m=%3F"


def test_a_column_that_is_sorted_by_never_folds() -> None:
    columns = [Column(key="a", label="a", fold=1), Column(key="b", label="b", fold=2, sorted="ascending")]
    data = grid_data(columns, [], alt="Numbers")
    assert [column["fold"] for column in data["columns"]] == [1, 0]  # type: ignore[attr-defined]


def test_a_column_in_which_no_row_says_anything_is_left_out_but_one_to_sort_by() -> None:
    columns = [Column(key=key, label=key, query="sort=d" if key == "d" else None) for key in "abcde"]
    rows = [Row(id="1", cells={"a": "", "b": {"text": "", "title": "x"}, "c": {"text": "", "sub": "y"}, "d": None, "e": ""})]
    said = [*rows, Row(id="2", cells={"e": "0"})]
    keys = [[column["key"] for column in grid_data(columns, some, alt="x")["columns"]] for some in (rows, said, [])]  # type: ignore[attr-defined]
    assert keys == [["c", "d"], ["c", "d", "e"], list("abcde")]
