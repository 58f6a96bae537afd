"""The demo on a fresh start, with nothing configured: trend, range, alerts, changes, presence, and figures of a past instant."""

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import streamlit as st

from horde_policy.board.rows import make_board
from horde_policy.history.demo import demo_history
from horde_policy.history.presence import WORKER_ROWS
from horde_policy.history.reading import snapshot_at, sources_in
from horde_policy.settings import AllowanceSettings
from horde_policy.ui import past_page
from horde_policy.views.exports import Stamp
from horde_policy.views.text import count
from tests.pages.conftest import App, MadeHistory

NewApp = Callable[[], App]


def captions(shown: App) -> list[str]:
    return [str(caption.value) for caption in shown.test.caption]


def test_the_overview_has_lines_range_alerts_and_changes(app: NewApp) -> None:
    shown = app().open()
    shown.assert_well()
    rows = shown.rows()
    lines = [row["cells"].get("trend") for row in rows.values()]
    assert sum(line is not None for line in lines) >= 20
    assert any(caption.endswith("UTC, synthetic") for caption in captions(shown))
    assert len(shown.part("overview.firing")["rows"]) == 6
    (line,) = [str(expander.label) for expander in shown.test.expander if "alerts fire" in str(expander.label)]
    assert line.startswith("**6 alerts fire**")
    assert line.endswith("3 more")
    changed = shown.rows("overview.changes")
    assert "lamplighter left" in changed["koboldcpp/Fernery-24B-v1.1"]["cells"]["why"]["text"]
    assert "Models by state over the range" in shown.headings
    figure = shown.figures[0].spec
    assert {trace["name"] for trace in figure["data"]} >= {"full", "falling", "floor", "no worker"}
    tops = [sum(values) for values in zip(*(trace["y"] for trace in figure["data"]), strict=True)]
    assert set(tops) == {len(rows) - 1}, "each model of the board is in one state at each poll"


@pytest.mark.parametrize("name", ["1h", "6h", "7d", "30d"])
def test_every_range_shows_something(app: NewApp, name: str) -> None:
    shown = app().open(range=name)
    shown.assert_well()
    assert len(shown.part("overview.changes")["rows"]) >= 3


def test_the_model_page_has_a_trend_and_its_trail(app: NewApp) -> None:
    shown = app().open("model", m="koboldcpp/Fernery-24B-v1.1", range="24h")
    shown.assert_well()
    names = {trace.get("name") for figure in shown.figures for trace in figure.spec["data"]}
    assert {"this range", "the day before", "over the range"} <= names
    assert not shown.has_part("model.then"), "a range up to now ends with the tiles above"


def test_the_workers_page_has_presence_and_who_is_gone(app: NewApp) -> None:
    shown = app().open("workers", range="7d")
    shown.assert_well()
    gone = shown.rows("workers.gone")
    assert {"lamplighter", "brine", "grand-opening"} <= set(gone)
    assert gone["lamplighter"]["cells"]["size"] == {"text": "1,024", "sub": ""}
    listed = [row["cells"]["speed"] for row in shown.rows("workers.list").values()]
    assert sum(cell["sub"].endswith("over the range") for cell in listed) >= 20
    assert sum(cell["sub"] == "assumed" for cell in listed) == 4


def test_another_source_never_gets_the_demos_history(app: NewApp) -> None:
    shown = app().open(source="recorded-snapshot")
    shown.assert_well()
    assert any("HORDE_POLICY_HISTORY" in str(info.value).replace("\\", "") for info in shown.test.info)
    assert not shown.has_part("overview.changes")


def test_a_configured_history_of_other_sources_leaves_the_demo_its_own(app: NewApp, made_history: MadeHistory) -> None:
    shown = app().open()
    shown.assert_well()
    assert len(shown.part("overview.changes")["rows"]) >= 3


def test_the_tiles_of_a_past_instant_are_those_of_the_snapshot_that_held_then(app: NewApp) -> None:
    model = "koboldcpp/Mirador-22B"
    history = demo_history()
    at = history.move_to(datetime.now(UTC)) - timedelta(hours=30)
    text = {name: f"{instant:%Y-%m-%dT%H:%MZ}" for name, instant in (("from", at - timedelta(hours=2)), ("to", at))}
    shown = app().open("model", m=model, **text)
    shown.assert_well()
    moved = sources_in(history.store)[0].last  # should a step of the clock lie between, both move by it
    assert moved is not None
    board = make_board(snapshot_at(history.store, at), AllowanceSettings(), max_length=80, context_tokens=2048)
    then = shown.tiles("model.then")
    allowance = board.by_model[model].measure.allowance_tokens
    assert count(allowance) in json.dumps(then, ensure_ascii=False)
    assert f"As of {at:%d %b %Y %H:%M}" in " ".join(shown.headings)


def test_what_is_offered_as_csv_has_units_a_stamp_and_no_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    offered: dict[str, Any] = {}

    def button(label: str, made: Callable[[], bytes], name: str, *_: object, **rest: object) -> None:
        offered.update(label=label, text=made().decode("utf-8-sig"), name=name, key=rest["key"])

    monkeypatch.setattr(st, "download_button", button)
    at = datetime(2026, 11, 29, 12, tzinfo=UTC)
    stamp = Stamp(
        source="Demo horde",
        synthetic=True,
        fetched_at=at,
        settings_digest="0a1b2c3d",
        max_length_tokens=80,
        max_context_tokens=2048,
    )
    row = dict.fromkeys(WORKER_ROWS.columns) | {
        "worker_id": "w",
        "name": "=1+1",
        "models": ["@a", "b"],
        "gone_since": at,
    }
    frame = pl.DataFrame([tuple(row.values())], schema=WORKER_ROWS.polars_schema(), orient="row")
    past_page.offer_csv(SimpleNamespace(stamp=stamp), "workers.past", lambda: frame, WORKER_ROWS, "note")  # type: ignore[arg-type]
    heading, values = csv.reader(io.StringIO(offered["text"]))
    told = dict(zip(heading, values, strict=True))
    assert told["name"] == "'=1+1"
    assert told["models"] == "'@a; b"
    assert told["gone_since (UTC)"] == "2026-11-29T12:00:00.000000Z"
    assert "speed_tok_per_s (tok/s)" in told
    assert told["source"] == "Demo horde (synthetic)"
    assert offered["name"] == "workers-past_Demo-horde_20261129T120000Z_0a1b2c3d.csv"
    assert offered["key"] == "workers.past.csv"
