from typing import Any

import pytest

from horde_policy.board.moves import single_points
from horde_policy.board.rows import Board, make_board
from horde_policy.policy.worker import Worker
from horde_policy.settings import AllowanceSettings
from horde_policy.views.workers import STANDINGS, fleet_tiles, headline, standing, worker_rows
from tests.unit.board.made import listed, snapshot, worker


def board(*workers: dict[str, Any]) -> Board:
    return make_board(snapshot(list(workers), [listed("m")]), AllowanceSettings())


def cells(made: Board) -> dict[str, Any]:
    return dict(worker_rows(made.fleet.workers, made, (), {}, lambda **_: "")[0].cells)


@pytest.mark.parametrize(
    ("changes", "stands", "models", "serving"),
    [
        ({}, "serves everybody", "m", 1),
        ({"models": []}, "serves no model", "none", 0),
        ({"maintenance": None}, {"text": "serves everybody", "sub": "maintenance not reported"}, "m", 1),
        ({"online": None, "flagged": None}, {"text": "serves everybody", "sub": "online, flagged not reported"}, "m", 1),
        ({"models": [], "maintenance": True}, "in maintenance", "none", 0),
    ],
)
def test_who_serves_nothing_and_who_does_not_say_are_not_said_to_serve_everybody(
    changes: dict[str, Any], stands: object, models: str, serving: int
) -> None:
    made = board(worker("w", **changes))
    assert (cells(made)["standing"], cells(made)["models"]["text"]) == (stands, models)
    points = single_points(made)
    assert headline(made, points).startswith(f"{serving} of 1 workers serve everybody")
    assert fleet_tiles(made, points)[0]["value"] == str(serving)


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
