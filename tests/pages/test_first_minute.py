"""The first minute: one line says what the Overview is, and four links lead on; live data are asked for on a press alone."""

from collections.abc import Callable
from urllib.parse import parse_qs

import pytest

from horde_policy.ui import live
from tests.pages.conftest import FILES, ROOT, App
from tests.replaying_server import ReplayingServer

NewApp = Callable[[], App]
OFFERS = {"See live data": "overview", "Read the week": "week", "Try settings": "replay", "Take the workshop": "guide"}


def offers(shown: App) -> dict[str, tuple[str, dict[str, list[str]]]]:
    found = {}
    for element in shown.test.get("page_link"):
        if element.proto.label in OFFERS:
            found[element.proto.label] = (element.proto.page, parse_qs(element.proto.query_string))
    return found


def test_the_overview_says_what_it_is_and_offers_four_ways_on(app: NewApp) -> None:
    shown = app().open()
    intro = next(text for text in shown.test.markdown if str(text.value).startswith("What the AI Horde gives free: "))
    in_order = [element for element in shown.test.main if element.type in ("markdown", "title")]
    assert in_order.index(intro) < in_order.index(shown.test.title[0]), "what the page is stands first"
    found = offers(shown)
    assert set(found) == {label for label, page in OFFERS.items() if page in FILES}
    assert {"See live data", "Try settings", "Take the workshop"} <= set(found)
    assert found["See live data"][1] == {"source": ["aihorde"]}
    assert list(live.pollers().started()) == ["demo"]


def test_a_configured_horde_is_the_live_one(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORDE_URL", "http://192.0.2.1/api")
    assert offers(app().open(source="demo"))["See live data"][1] == {}, "which a link without a source stands for"


def test_a_configured_horde_is_what_a_link_without_a_source_shows_and_the_demo_is_one_click_away(
    app: NewApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ReplayingServer(ROOT / "data" / "recorded" / "snapshot") as running:
        monkeypatch.setenv("HORDE_URL", running.url)
        shown = app().open()
        shown.assert_well()
        assert list(live.pollers().started()) == ["horde"]
        assert shown.part("shared.status")["kind"] == "live"
        shown.test.selectbox(key="shared.source").set_value("demo").run()
        shown.assert_well()
        assert shown.address["source"] == ["demo"]
        assert shown.part("shared.status")["kind"] == "demo"
        shown.test.selectbox(key="shared.source").set_value("horde").run()
        assert "source" not in shown.address


def test_an_address_of_a_horde_that_cannot_be_used_leaves_the_demo_first(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORDE_URL", "ftp://nowhere")
    shown = app().open()
    shown.assert_well()
    assert list(live.pollers().started()) == ["demo"]


def test_the_wall_and_other_sources_offer_nothing(app: NewApp) -> None:
    assert offers(app().open(wall="1")) == {}
    assert offers(app().open(source="recorded-snapshot")) == {}
    assert offers(app().open(step="1")) == {}


def test_a_workshop_opens_the_board_with_the_words_under_it(app: NewApp) -> None:
    shown = app().open(step="1")
    captions = [str(caption.value) for caption in shown.test.caption]
    intro = next(n for n, text in enumerate(captions) if text.startswith("What the AI Horde gives free: "))
    assert intro > next(n for n, text in enumerate(captions) if text.startswith("By size:"))


def test_a_source_without_figures_leads_back_to_the_demo(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORDE_URL", "http://127.0.0.1:9/api")
    shown = app().open(source="horde", size="1024")
    back = [e.proto for e in shown.test.get("page_link") if e.proto.label == "Back to the demo"]
    assert [parse_qs(link.query_string) for link in back] == [{"source": ["demo"], "size": ["1024"]}]
    assert not [e for e in app().open(source="demo").test.get("page_link") if e.proto.label == "Back to the demo"]
