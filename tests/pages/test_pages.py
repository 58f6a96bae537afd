"""Every page in every state of its data: no exception, the right words and numbers, hostile names as text."""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from horde_policy.clock import FixedClock
from horde_policy.sources.demo import DEMO_FOLDER
from horde_policy.sources.poller import Look, Poller, Pollers
from horde_policy.ui import live
from horde_policy.views.text import visible
from tests.make_hostile import MODEL_NAMES, TEXT, WORKER_NAMES
from tests.pages.conftest import PAGES, ROOT, App
from tests.replaying_server import ReplayingServer

RECORDED = ROOT / "data" / "recorded"
NOON = datetime(2026, 11, 29, 12, 4, tzinfo=UTC)

NewApp = Callable[[], App]


def assert_recorded_words(page: App) -> None:
    page.assert_well()
    assert page.title
    status = page.part("shared.status")
    assert status["kind"] == "recorded"
    assert status["ticking"] is False, "a recording has a date and no age"


@pytest.mark.parametrize("page", PAGES)
def test_the_demo_opens_without_a_network_and_says_that_it_is_made_up(app: NewApp, page: str) -> None:
    shown = app().open(page)
    shown.assert_well()
    status = shown.part("shared.status")
    assert status["label"] == "demo, synthetic data"
    assert status["ticking"] is True
    assert shown.warnings == []
    assert list(live.pollers().started()) == ["demo"], "no other source is built, much less asked"


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("folder", sorted(path.name for path in RECORDED.iterdir() if path.is_dir()))
def test_every_recorded_folder_opens(app: NewApp, page: str, folder: str) -> None:
    key = "recorded-" + folder.replace("_", "-")
    assert_recorded_words(app().open(page, source=key))


def test_the_board_of_the_recorded_snapshot_has_the_figures_of_the_rule(app: NewApp) -> None:
    shown = app().open(source="recorded-snapshot")
    cells = shown.rows()["koboldcpp/Cydonia-24B-v4.1"]["cells"]
    assert cells["queued"] == "1,132"
    assert shown.state_of("koboldcpp/Cydonia-24B-v4.1") == "full"
    assert cells["wait"]["text"] == "21 s"  # 1132 tokens over 53.9 tok/s
    assert cells["wait"]["sub"].startswith("at worst 112 s")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("query", [{}, {"m": list(MODEL_NAMES[:5])}, {"m": [MODEL_NAMES[9]], "size": "16384"}])
def test_hostile_names_are_only_ever_text(app: NewApp, hostile: str, page: str, query: dict[str, str | list[str]]) -> None:
    shown = app().open(page, source=hostile, **query)
    shown.assert_well()
    markdown = [
        str(getattr(element, "value", ""))
        for kind in ("title", "header", "subheader", "markdown", "caption", "warning", "info", "error")
        for element in shown.test.get(kind)
    ]
    hostile_texts = [*MODEL_NAMES, *WORKER_NAMES, TEXT]
    for name in hostile_texts:
        assert not any(name in text for text in markdown), "a name stands in Markdown without an escape"
    if page == "overview":
        assert {visible(name) for name in MODEL_NAMES} <= set(shown.rows())
    figures = [json.dumps(figure.spec) for figure in shown.figures]
    assert all(json.dumps(name) not in figure for figure in figures for name in hostile_texts)


def test_an_empty_fleet_is_a_board_that_says_so(app: NewApp) -> None:
    shown = app().open(source="recorded-fresh-server")
    shown.assert_well()
    assert shown.title == "No model is listed and no worker serves one"
    assert list(shown.rows()) == ["any model"]
    assert shown.state_of("any model") == "no_worker"
    assert shown.tiles()["Workers"]["value"] == "0"


def test_a_queue_that_is_not_reported_is_a_dash_and_not_zero(
    app: NewApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "workers-only"
    folder.mkdir()
    shutil.copy(DEMO_FOLDER / "workers_text.json", folder)
    monkeypatch.setenv("HORDE_POLICY_RECORDED", str(folder))
    shown = app().open(source="recorded-workers-only")
    shown.assert_well()
    served = [row for name, row in shown.rows().items() if shown.state_of(name) == "unknown"]
    assert served
    assert all(row["cells"]["queued"] == "—" and row["cells"]["allowance"]["text"] == "—" for row in served)
    assert shown.tiles()["Past minute"]["value"] == "—"
    assert "is not known" in shown.title
    assert any("has no list of models" in str(text.value) for text in shown.test.caption), (
        "the reason can be read, not only hovered"
    )
    model = app().open("model", source="recorded-workers-only", m="koboldcpp/Fernery-24B-v1.1")
    model.assert_well()
    assert model.title == "The allowance is not known, since the queue is not reported"
    assert "no refusal can be foretold" in " ".join(str(c.value) for c in model.test.caption)


# --- live sources ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FixedClock:
    fixed = FixedClock(NOON)
    monkeypatch.setattr(live, "SystemClock", lambda: fixed)
    return fixed


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplayingServer]:
    with ReplayingServer(RECORDED / "snapshot") as replaying:
        monkeypatch.setenv("HORDE_URL", replaying.url)
        yield replaying


@pytest.mark.parametrize("page", PAGES)
def test_a_live_source_shows_its_data_with_their_age(app: NewApp, server: ReplayingServer, clock: FixedClock, page: str) -> None:
    shown = app().open(page, source="horde")
    shown.assert_well()
    status = shown.part("shared.status")
    assert (status["label"], status["at"], status["ticking"]) == ("live", "29 Nov 2026 12:04:00 UTC", True)
    assert status["failing"] is False


def test_a_throttled_source_keeps_its_last_good_value_and_says_when_it_was(
    app: NewApp, server: ReplayingServer, clock: FixedClock
) -> None:
    shown = app().open(source="horde")
    rows = shown.rows()
    server.fail("throttled")
    clock.advance(130)
    shown.test.run()
    shown.assert_well()
    status = shown.part("shared.status")
    assert status["failing"] is True
    assert "429" in status["trouble"]
    assert "last good value of 12:04:00 UTC" in status["trouble"]
    assert status["age_s"] == 130
    assert shown.rows() == rows


@pytest.mark.parametrize("kind", ["status", "garbage", "html", "drop"])
def test_a_source_that_fails_after_its_first_good_answer_keeps_it(
    app: NewApp, server: ReplayingServer, clock: FixedClock, kind: str
) -> None:
    shown = app().open(source="horde")
    rows = shown.rows()
    server.fail(kind)  # type: ignore[arg-type]
    clock.advance(130)
    shown.test.run()
    shown.assert_well()
    assert shown.part("shared.status")["failing"] is True
    assert shown.rows() == rows


@pytest.mark.parametrize("page", PAGES)
def test_a_source_that_never_answered_is_said_to_and_is_no_error_page(
    app: NewApp, server: ReplayingServer, clock: FixedClock, page: str
) -> None:
    server.fail("status", status=503)
    shown = app().open(page, source="horde")
    shown.assert_well()
    assert shown.part("shared.status")["label"] == "failing"
    assert "503" in shown.part("shared.status")["trouble"]
    said = " ".join(str(e.value) for e in shown.test.error).replace("\\", "").replace("\N{WORD JOINER}", "")
    assert "It was asked once since" in said
    assert "it has a fault of its own" in said
    assert "It is asked again not before" in said
    ways = {element.proto.label for element in shown.test.get("page_link")}
    assert {"Back to the demo", "Read the week", "Take the workshop"} <= ways
    assert any("docs/how-to/watch-a-horde.md" in str(caption.value) for caption in shown.test.caption)
    assert not shown.has_part("overview.board")


def test_a_source_that_is_slow_to_answer_leaves_the_page_opening(
    app: NewApp, server: ReplayingServer, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    latest = Poller.latest
    monkeypatch.setattr(live, "Pollers", partial(Pollers, start=lambda load: None))
    monkeypatch.setattr(Poller, "latest", lambda poller, wait_s=0.0: latest(poller, wait_s=0.0))
    shown = app().open(source="horde")
    shown.assert_well()
    status = shown.part("shared.status")
    assert (status["label"], status["trouble"], status["failing"]) == ("opening", None, False)
    assert not shown.test.error
    assert not shown.has_part("overview.board")


def test_a_click_does_not_wait_for_newer_figures(
    app: NewApp, server: ReplayingServer, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = app().open(source="horde")
    waits: list[float | None] = []
    latest = Poller.latest

    def noted(poller: Poller, *, wait_s: float | None = None) -> Look:
        waits.append(wait_s)
        return latest(poller, wait_s=wait_s)

    monkeypatch.setattr(Poller, "latest", noted)
    shown.test.toggle(key="overview.grouped").set_value(True).run()
    assert waits == [0.0]
    clock.advance(130)
    shown.test.run()
    assert waits[1:] == [None], "what is stale is worth a moment"


@pytest.mark.parametrize("page", ["overview", "workers"])
@pytest.mark.parametrize("source", ["demo", "horde"])
@pytest.mark.parametrize(("refresh", "left_s"), [("30", 110), ("30", 360), ("off", 110)])
def test_a_new_viewer_sees_what_is_one_question_away_and_not_what_the_last_one_left(
    app: NewApp, server: ReplayingServer, clock: FixedClock, page: str, source: str, refresh: str, left_s: int
) -> None:
    app().open(page, source=source)
    clock.advance(left_s)
    shown = app().open(page, source=source, refresh=refresh)
    shown.assert_well()
    status = shown.part("shared.status")
    assert (status["age_s"], status["trouble"]) == (0, None)


def test_without_a_timer_a_click_brings_what_is_due(app: NewApp, server: ReplayingServer, clock: FixedClock) -> None:
    shown = app().open(source="horde", refresh="off")
    clock.advance(110)
    shown.test.toggle(key="overview.grouped").set_value(True).run()
    assert shown.part("shared.status")["age_s"] == 0


def test_a_viewer_who_was_away_does_not_find_old_figures(app: NewApp, server: ReplayingServer, clock: FixedClock) -> None:
    shown = app().open(source="horde", refresh="300")
    clock.advance(live.KEPT_UP_S + 15)
    shown.test.run()
    assert shown.part("shared.status")["age_s"] == 0


def test_viewers_of_one_source_make_it_be_asked_once(app: NewApp, server: ReplayingServer, clock: FixedClock) -> None:
    app().open(source="horde")
    asked = server.counts.copy()
    assert set(asked.values()) == {1}
    for _ in range(5):
        app().open(source="horde")
    assert server.counts == asked


def test_a_source_that_fails_is_not_asked_by_each_viewer(app: NewApp, server: ReplayingServer, clock: FixedClock) -> None:
    server.fail("status")
    app().open(source="horde")
    asked = server.counts.copy()
    for _ in range(5):
        app().open(source="horde")
    assert server.counts == asked


# --- the address ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page", ["overview", *(pytest.param(page, marks=pytest.mark.soak) for page in PAGES if page != "overview")]
)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ceiling", "1e309"),
        ("ceiling", "-1"),
        ("floor", "99999999999999999999"),
        ("full_wait", "nan"),
        ("size", "1e309"),
        ("size", "inf"),
        ("context", "0x10"),
        ("refresh", "-5"),
        ("sort", "'; drop table"),
        ("state", "<b>"),
        ("grouped", "maybe"),
        ("unheard_of", "1"),
        ("![x](http://192.0.2.1/name.png)", "1"),
        ("size", "![x](http://192.0.2.1/value.png)"),
    ],
)
def test_nothing_in_an_address_stops_a_page_and_what_is_left_out_is_said(app: NewApp, page: str, name: str, value: str) -> None:
    shown = app().open(page, **{name: value})
    shown.assert_well()
    assert len(shown.warnings) == 1
    assert "left out" in shown.warnings[0]
    assert "![x]" not in shown.warnings[0], "a link's text must not become an image"
    assert shown.part("shared.status")["kind"] == "demo"


def test_a_source_that_is_not_configured_is_said_and_stays_chosen(app: NewApp) -> None:
    shown = app().open(source="gone-source")
    shown.assert_well()
    assert shown.warnings == ["The source `gone-source` is not configured on this server. Choose one above."]
    assert shown.test.selectbox(key="shared.source").value == "gone-source"


def test_a_model_that_is_gone_stays_asked_for(app: NewApp) -> None:
    shown = app().open("model", m=["koboldcpp/Gone-7B", "koboldcpp/Fernery-24B-v1.1"])
    shown.assert_well()
    assert shown.test.multiselect(key="model.models").value == ["koboldcpp/Gone-7B", "koboldcpp/Fernery-24B-v1.1"]
    assert "koboldcpp/Gone-7B (gone)" in shown.test.multiselect(key="model.models").options


def test_settings_of_the_address_are_in_force_and_in_the_form(app: NewApp) -> None:
    shown = app().open(ceiling="2048", floor="256")
    shown.assert_well()
    assert "2,048 up to" in " ".join(str(text.value) for text in shown.test.markdown)
    assert shown.test.number_input(key="shared.ceiling_tokens").value == 2048
    assert shown.test.number_input(key="shared.floor_tokens").value == 256


# --- the controls -------------------------------------------------------------------------------------------------------------


def test_what_the_controls_choose_stands_in_the_address_and_on_the_page(app: NewApp) -> None:
    shown = app().open()
    shown.test.selectbox(key="shared.size").set_value(512).run()
    shown.test.selectbox(key="shared.refresh").set_value(0).run()
    shown.test.text_input(key="overview.find").set_value("cairn").run()
    shown.test.toggle(key="overview.grouped").set_value(True).run()
    shown.assert_well()
    assert shown.address == {"refresh": ["off"], "size": ["512"], "grouped": ["1"], "find": ["cairn"]}
    assert shown.part("shared.status")["ticking"] is False, "off: the absolute time stands"
    assert all("Cairn" in name or name == "any model" for name in shown.rows())
    assert shown.part("overview.board")["columns"][1]["unit"] == "at 512 tokens"


def test_settings_are_taken_together_or_refused_together(app: NewApp) -> None:
    shown = app().open()
    shown.test.number_input(key="shared.ceiling_tokens").set_value(1024)
    shown.test.number_input(key="shared.floor_tokens").set_value(2048)
    shown.test.button(key="FormSubmitter:shared.settings-Apply").click().run()
    shown.assert_well()
    assert shown.address == {}
    assert "must not be above" in shown.warnings[0].replace("\\", "").replace("\u2060", "")
    shown.test.number_input(key="shared.floor_tokens").set_value(None)
    shown.test.button(key="FormSubmitter:shared.settings-Apply").click().run()
    assert shown.address == {}, "what is cleared is not the least"
    assert "left empty" in shown.warnings[0]
    shown.test.number_input(key="shared.floor_tokens").set_value(256)
    shown.test.button(key="FormSubmitter:shared.settings-Apply").click().run()
    assert shown.address == {"ceiling": ["1024"], "floor": ["256"]}
    shown.test.button(key="FormSubmitter:shared.settings-As deployed").click().run()
    assert shown.address == {}
    assert shown.test.number_input(key="shared.ceiling_tokens").value == 4096


def test_filters_that_hide_all_say_so_and_can_be_taken_back(app: NewApp) -> None:
    shown = app().open(find="no such model")
    assert "The filters hide all 22 rows." in [str(c.value) for c in shown.test.caption]
    assert list(shown.rows()) == ["any model"]
    shown.test.button(key="overview.reset").click().run()
    assert shown.address == {}
    assert len(shown.rows()) == 23
    assert shown.test.text_input(key="overview.find").value == ""


def test_settings_of_the_deployment_come_from_its_environment(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORDE_TEXT_FREE_OUTPUT_FLOOR", "256")
    shown = app().open()
    assert "256 at 300 s" in " ".join(str(text.value) for text in shown.test.markdown)
    assert shown.address == {}


def test_settings_of_the_deployment_that_make_no_sense_are_said_in_place_of_the_page(
    app: NewApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORDE_TEXT_FREE_OUTPUT_FLOOR", "9999")
    shown = app().open()
    shown.assert_well()
    assert "floor" in shown.test.error[0].value
    assert not shown.has_part("overview.board")
