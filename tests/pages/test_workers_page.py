"""The workers page: who carries what, single points of failure, and the history with and without a store."""

from collections.abc import Callable
from pathlib import Path

import pytest

from horde_policy.board.moves import single_points
from horde_policy.board.rows import make_board
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.recorded import load_recorded
from horde_policy.views.text import visible
from tests.pages.conftest import ROOT, App, MadeHistory

NewApp = Callable[[], App]
SNAPSHOT = load_recorded(ROOT / "data" / "recorded" / "snapshot")


def infos(shown: App) -> str:
    return " ".join(str(info.value) for info in shown.test.info).replace("\\", "").replace("\u2060", "")


def test_every_worker_of_the_list_has_its_row_and_what_hangs_on_one_is_named(app: NewApp) -> None:
    board = make_board(SNAPSHOT, AllowanceSettings(), max_length=80, context_tokens=2048)
    points = single_points(board)
    assert points
    shown = app().open("workers", source="recorded-snapshot")
    shown.assert_well()
    assert len(shown.part("workers.list")["rows"]) == SNAPSHOT.workers.height
    rows = shown.rows("workers.points")
    assert set(rows) == {visible(point.model) for point in points}
    assert rows[visible(points[0].model)]["cells"]["without"]["text"] == "512"
    assert shown.tiles("workers.pulse")["Single points of failure"]["value"] == str(len(points))
    alone = {row["cells"]["worker"]["text"]: int(row["cells"]["alone"]["text"]) for row in shown.part("workers.list")["rows"]}
    assert sum(alone.values()) == len(points)


def test_a_larger_size_hangs_on_fewer_workers(app: NewApp) -> None:
    shown = app().open("workers", source="recorded-snapshot", size="4096")
    board = make_board(SNAPSHOT, AllowanceSettings(), max_length=4096, context_tokens=2048)
    assert len(shown.part("workers.points")["rows"]) == len(single_points(board))


def test_who_was_there_as_long_stands_in_the_order_of_the_names(app: NewApp) -> None:
    shown = app().open("workers", range="24h")
    shown.assert_well()
    names = shown.figures[0].spec["layout"]["yaxis"]["ticktext"]
    cells = [row["cells"] for row in shown.part("workers.list")["rows"]]
    wholly = {cell["worker"]["text"] for cell in cells if cell["present"]["text"] == "100 %"}
    assert len(names) > len(wholly) > 10
    assert names[: len(wholly)] == sorted(wholly)
    points = [row["cells"]["model"] for row in shown.part("workers.points")["rows"]]
    assert points == sorted(points, key=str.casefold)


def test_words_narrow_the_list_and_one_that_hides_all_says_so(app: NewApp) -> None:
    shown = app().open("workers", source="recorded-snapshot")
    shown.test.text_input(key="workers.find").set_value("cydonia").run()
    shown.assert_well()
    rows = shown.part("workers.list")["rows"]
    assert 0 < len(rows) < SNAPSHOT.workers.height
    assert all("cydonia" in row["cells"]["models"]["title"].lower() for row in rows)
    none = app().open("workers", source="recorded-snapshot", find="no such worker")
    assert none.part("workers.list")["empty"] == f"The filters hide all {SNAPSHOT.workers.height} workers."


def test_without_a_history_the_page_says_what_it_would_need(app: NewApp) -> None:
    shown = app().open("workers", source="recorded-snapshot")
    shown.assert_well()
    assert "HORDE_POLICY_HISTORY" in infos(shown)
    assert not shown.has_part("workers.gone")


def test_with_a_history_it_tells_presence_and_who_is_gone(app: NewApp, made_history: MadeHistory) -> None:
    shown = app().open("workers", source="recorded-snapshot")
    shown.assert_well()
    assert infos(shown) == ""
    gone = shown.rows("workers.gone")
    assert list(gone) == ["extra [b](http://192.0.2.1/)"]
    assert gone["extra [b](http://192.0.2.1/)"]["cells"]["gone"].endswith("UTC")
    there = [row["cells"]["present"]["text"] for row in shown.part("workers.list")["rows"]]
    assert set(there) == {"100 %"}
    assert len(shown.figures) == 1
    shown.test.segmented_control(key="shared.range").set_value("1h").run()
    shown.assert_well()
    assert shown.rows("workers.gone") == {}
    assert shown.part("workers.gone")["empty"].startswith("Nobody")


@pytest.mark.parametrize(
    ("configured", "words"), [("missing.db", "no such history store"), ("postgresql://u:secret@192.0.2.1:1/h", "cannot be read")]
)
def test_a_history_that_cannot_be_opened_is_said_in_its_place(
    app: NewApp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, configured: str, words: str
) -> None:
    if configured.startswith("postgresql"):
        configured = configured.replace("192.0.2.1:1", "127.0.0.1:1")
    monkeypatch.setenv("HORDE_POLICY_HISTORY", configured if "://" in configured else str(tmp_path / configured))
    shown = app().open("workers")
    shown.assert_well()
    assert words in infos(shown)
    assert "secret" not in infos(shown)


def test_a_history_of_another_source_and_a_range_without_a_poll_are_said(app: NewApp, made_history: MadeHistory) -> None:
    other = app().open("workers", source="recorded-production-2023-07")
    other.assert_well()
    assert "The history holds nothing of" in infos(other)
    before = app().open("workers", **{"source": "recorded-snapshot", "from": "2020-01-01T00:00Z", "to": "2020-01-02T00:00Z"})
    before.assert_well()
    assert "no poll from 1 Jan 2020" in infos(before)
    after = app().open("workers", **{"source": "recorded-snapshot", "from": "2190-01-01T00:00Z", "to": "2199-01-01T00:00Z"})
    after.assert_well()
    assert "no poll from 1 Jan 2190" in infos(after), "the start that was given, and no error"


def test_hostile_names_are_text_in_the_list_and_the_single_points(app: NewApp, hostile: str) -> None:
    shown = app().open("workers", source=hostile)
    shown.assert_well()
    assert shown.part("workers.list")["rows"]
