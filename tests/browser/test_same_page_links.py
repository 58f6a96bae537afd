"""Links from a page to itself: each writes the address, which a reload and Back then agree with."""

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.conftest import PATIENCE_S, App, Viewer

pytestmark = pytest.mark.browser
View = Callable[..., Viewer]
LINK = ':is([data-testid="stPageLink-NavLink"], nav a)'
STUCK = "koboldcpp/Nocturne-70B"
FERNERY = "koboldcpp/Fernery-24B-v1.1"

KINDS = [
    pytest.param("overview", {"size": "1024", "find": "Pebble"}, "Overview", {"size": ["1024"]}, id="the navigation"),
    pytest.param("guide", {}, "2. ", {"step": ["2"]}, id="a step of the guide"),
    pytest.param(
        "model",
        {"m": STUCK, "step": "7", "try_floor": "1024", "try_ceiling": "8192"},
        "The model at the floor",
        {"m": [STUCK], "step": ["7"], "try_floor": ["1024"]},
        id="the workshop's reset of what is tried",
    ),
    pytest.param(
        "model",
        {"m": FERNERY, "step": "3"},
        "A client that names both",
        None,
        marks=pytest.mark.soak,
        id="the workshop's other models",
    ),
]


def query(viewer: Viewer) -> dict[str, list[str]]:
    return parse_qs(urlsplit(viewer.page.url).query)


def until_query(viewer: Viewer, wanted: Callable[[dict[str, list[str]]], bool]) -> None:
    waited_ms = 0
    while not wanted(query(viewer)):
        assert waited_ms < PATIENCE_S * 250, f"the address is {viewer.page.url}"
        viewer.page.wait_for_timeout(50)
        waited_ms += 50


@pytest.mark.parametrize(("path", "before", "label", "after"), KINDS)
def test_a_link_to_the_page_itself_writes_the_address(
    demo: App, view: View, path: str, before: dict[str, str], label: str, after: dict[str, list[str]] | None
) -> None:
    tab = view(demo).open(path, **before)
    tab.page.locator(LINK).first.wait_for()
    tab.settled()
    first, length = query(tab), tab.page.evaluate("history.length")
    tab.page.locator(LINK, has_text=label).first.click()
    until_query(tab, lambda now: now != first if after is None else now == after)
    shown = query(tab)
    if after is None:
        assert len(shown["m"]) > 1
    tab.settled()
    assert tab.page.evaluate("history.length") == length + 1, "one click is one entry"
    tab.page.reload()
    tab.page.locator(LINK).first.wait_for()
    assert query(tab.settled()) == shown
    tab.page.go_back()
    until_query(tab, lambda now: now == first)


def test_the_workshops_reset_empties_the_search_in_the_address_too(demo: App, view: View) -> None:
    tab = view(demo).open("overview", sort="wait", descending="1", step="1").board()
    first = query(tab)
    tab.page.get_by_placeholder("Find a model").fill("Pebble")
    until_query(tab, lambda now: now.get("find") == ["Pebble"])
    tab.settled()
    tab.page.locator('.st-key-shared\\.workshop a, [class*="shared-workshop"] a').first.click()
    until_query(tab, lambda now: now == first)
    tab.settled()
    assert tab.page.get_by_placeholder("Find a model").input_value() == ""
    assert query(tab) == first


def test_live_data_and_the_way_back_to_the_demo_stand_in_the_address(new_app: Callable[..., App], view: View) -> None:
    tab = view(new_app(HORDE_URL="http://127.0.0.1:9/api")).open("", source="demo")
    live, back = tab.page.locator(LINK, has_text="See live data"), tab.page.locator(LINK, has_text="Back to the demo")
    live.click()
    until_query(tab, lambda now: now == {})
    back.wait_for()
    live.wait_for(state="detached")
    back.click()
    until_query(tab, lambda now: now == {"source": ["demo"]})
    live.wait_for()
    assert back.count() == 0
    tab.page.go_back()
    until_query(tab, lambda now: now == {})
    back.wait_for()
    live.wait_for(state="detached")
