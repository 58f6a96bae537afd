"""The first minute: one line says what the Overview is, and four links lead on; live data are asked for on a press alone."""

from collections.abc import Callable
from urllib.parse import parse_qs

import pytest

from horde_policy.ui import live
from tests.pages.conftest import FILES, App

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
    captions = [str(caption.value) for caption in shown.test.caption]
    assert any(text.startswith("How many output tokens each model of the AI Horde gives free right now") for text in captions)
    found = offers(shown)
    assert set(found) == {label for label, page in OFFERS.items() if page in FILES}
    assert {"See live data", "Try settings", "Take the workshop"} <= set(found)
    assert found["See live data"][1] == {"source": ["aihorde"]}
    assert list(live._desk().pollers.started()) == ["demo"]


def test_a_configured_horde_is_the_live_one(app: NewApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORDE_URL", "http://192.0.2.1/api")
    assert offers(app().open())["See live data"][1] == {"source": ["horde"]}


def test_the_wall_and_other_sources_offer_nothing(app: NewApp) -> None:
    assert offers(app().open(wall="1")) == {}
    assert offers(app().open(source="recorded-snapshot")) == {}
