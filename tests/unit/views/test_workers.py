from datetime import UTC, datetime
from typing import Any

import pytest

from horde_policy.board.moves import single_points
from horde_policy.board.rows import Board, make_board
from horde_policy.policy.worker import Worker
from horde_policy.settings import AllowanceSettings
from horde_policy.views.overview import pulse_tiles
from horde_policy.views.status import status_line
from horde_policy.views.workers import STANDINGS, fleet_tiles, headline, standing, worker_rows
from tests.unit.board.made import listed, snapshot, worker


def board(*workers: dict[str, Any]) -> Board:
    return make_board(snapshot(list(workers), [listed("m")]), AllowanceSettings())


def cells(made: Board) -> dict[str, Any]:
    return dict(worker_rows(made.fleet.workers, made, (), {}, lambda **_: "")[0].cells)


@pytest.mark.parametrize(
    ("changes", "stands", "models", "taking"),
    [
        ({}, "serves everybody", "m", "1 of 1 workers take requests;"),
        ({"models": []}, "serves no model", "none", "1 of 1 workers take requests, 1 of them serves no model;"),
        (
            {"maintenance": None},
            {"text": "serves everybody", "sub": "maintenance not reported"},
            "m",
            "1 of 1 workers take requests;",
        ),
        (
            {"online": None, "flagged": None},
            {"text": "serves everybody", "sub": "online, flagged not reported"},
            "m",
            "1 of 1 workers take requests;",
        ),
        ({"models": [], "maintenance": True}, "in maintenance", "none", "0 of 1 workers take requests;"),
    ],
)
def test_who_serves_nothing_and_who_does_not_say_are_not_said_to_serve_everybody(
    changes: dict[str, Any], stands: object, models: str, taking: str
) -> None:
    made = board(worker("w", **changes))
    assert (cells(made)["standing"], cells(made)["models"]["text"]) == (stands, models)
    points = single_points(made)
    assert headline(made, points).startswith(taking)
    assert fleet_tiles(made, points)[0]["value"] == taking.split()[0]


def test_the_same_words_have_the_same_figures_on_both_pages() -> None:
    made = board(worker("w"), worker("idle", models=[]), worker("away", maintenance=True))
    status = status_line(made.snapshot, name="x", state="ok", sentence="", now=datetime(2026, 11, 29, 12, tzinfo=UTC))
    here = {tile["label"]: tile for tile in fleet_tiles(made, ())}
    there = {tile["label"]: tile for tile in pulse_tiles(made.pulse, status)}
    for label in ("Workers", "Speed of all"):
        assert here[label]["value"] == there[label]["value"], label
    assert here["Workers"]["sub"] == "of 3 listed; 1 of them serves no model"
    assert there["Workers"]["sub"] == "of 3 listed, 1 in maintenance"
    assert "Combined speed" not in here.keys() | there.keys(), "that is of the workers eligible at a size"


def test_models_that_could_not_be_read_are_not_none() -> None:
    unread = Worker(worker_id="w", models=None, max_length=80, max_context_length=2048)
    assert STANDINGS[standing(unread)] == "models not reported"


@pytest.mark.parametrize(
    ("reported", "value", "sub"),
    [([False, True], "1", ""), ([None, True], "1", "1 does not report it"), ([None, None], "—", "not reported")],
)
def test_maintenance_that_nobody_reports_is_not_zero(reported: list[bool | None], value: str, sub: str) -> None:
    made = board(*(worker(f"w{place}", maintenance=one) for place, one in enumerate(reported)))
    tile = fleet_tiles(made, ())[1]
    assert (tile["label"], tile["value"], tile["sub"]) == ("In maintenance", value, sub)
