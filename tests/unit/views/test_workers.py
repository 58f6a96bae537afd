from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from horde_policy.board.moves import single_points
from horde_policy.board.rows import Board, make_board
from horde_policy.frames.schemas import UTC_INSTANT
from horde_policy.policy.worker import Worker, standing
from horde_policy.settings import AllowanceSettings
from horde_policy.views.figures.history import fig_presence
from horde_policy.views.overview import CLOSED, pulse_tiles
from horde_policy.views.status import status_line
from horde_policy.views.words import STANDINGS
from horde_policy.views.workers import fleet_tiles, headline, point_rows, worker_rows
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
    assert there["Workers"]["sub"] == "of 3 listed; 1 in maintenance"
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


def presence(*stays: tuple[str, str, float, float | None, list[str]]) -> Any:
    """The figure of stays: worker, standing, from and to in hours (null: to the end, at 24), models."""
    start = datetime(2026, 11, 29, tzinfo=UTC)
    rows = [
        (name, standing, start + timedelta(hours=came), None if left is None else start + timedelta(hours=left), models)
        for name, standing, came, left, models in stays
    ]
    types: dict[str, Any] = {
        "worker_id": pl.String,
        "standing": pl.String,
        "from": UTC_INSTANT,
        "to": UTC_INSTANT,
        "models": pl.List(pl.String),
    }
    names = list(dict.fromkeys(row[0] for row in rows))
    gaps = pl.DataFrame(schema={"from": UTC_INSTANT, "to": UTC_INSTANT})
    return fig_presence(pl.DataFrame(rows, schema=types, orient="row"), names, names, start + timedelta(hours=24), gaps, "light")


def test_a_worker_without_models_is_not_drawn_as_one_that_serves_everybody() -> None:
    figure = presence(("w", "open", 0, 12, ["m"]), ("idle", "open", 0, None, []), ("off", "maintenance", 0, None, []))
    assert {trace.name: {y for y in trace.y if y} for trace in figure.data} == {
        "serves everybody": {3},
        "no model known": {2},
        "in maintenance": {1},
    }


def test_the_shortest_stay_leaves_a_mark_and_no_long_one_does() -> None:
    figure = presence(("long", "open", 0, None, ["m"]), ("new", "open", 24, None, ["m"]), ("passed", "open", 5, 5.1, ["m"]))
    [trace] = figure.data
    marked = {y: size for y, size in zip(trace.y, trace.marker.size, strict=True) if size}
    assert (set(marked), trace.mode) == ({1, 2}, "lines+markers")
    assert min(marked.values()) > trace.line.width
    assert presence(("long", "open", 0, None, ["m"])).data[0].mode == "lines"


def test_a_worker_that_takes_no_size_is_known_to_and_is_no_gap() -> None:
    assert cells(board(worker("w", max_context_length=1024)))["size"]["text"] == "none"
    assert cells(board(worker("w", max_context_length=None)))["size"]["text"] == "—"


def test_every_listed_worker_is_accounted_for() -> None:
    states: list[dict[str, Any]] = [
        {},
        {"models": []},
        {"maintenance": True},
        {"maintenance": True, "online": False},
        {"flagged": True},
        {"flagged": True, "maintenance": True},
        {"online": None, "flagged": None},
    ]
    made = board(*(worker(f"w{place}", **changes) for place, changes in enumerate(states)))
    pulse = made.pulse
    assert pulse.open_workers + sum(pulse.closed_workers.values()) == pulse.listed_workers == len(states)
    status = status_line(made.snapshot, name="x", state="ok", sentence="", now=datetime(2026, 11, 29, 12, tzinfo=UTC))
    there = {tile["label"]: tile for tile in pulse_tiles(pulse, status)}
    assert there["Workers"]["sub"] == "of 7 listed; 2 in maintenance, 1 offline, 1 flagged"
    here = {tile["label"]: tile for tile in fleet_tiles(made, ())}
    assert here["In maintenance"]["sub"] == "besides: 1 offline, 1 flagged"
    assert set(CLOSED) == set(STANDINGS) - {"open", "idle"}, "each has its words"


def test_long_names_keep_their_end_wherever_the_page_cuts_them() -> None:
    long, model = f"{'worker-' * 20}0017", f"koboldcpp/{'merge-' * 20}Q4_K_M"
    made = board(worker("w", model, name=long))
    points = single_points(made)
    [row] = worker_rows(made.fleet.workers, made, points, {}, lambda **_: "")
    [point] = point_rows(points, 4096, lambda **_: "")
    figure = presence((long, "open", 0, None, [model]))
    shown: list[Any] = [row.cells["models"], point.cells["worker"], {"text": figure.layout.yaxis.ticktext[0]}]
    for cell, end in zip(shown, ["Q4_K_M", "0017", "0017"], strict=True):
        assert "…" in cell["text"]
        assert cell["text"].endswith(end)
