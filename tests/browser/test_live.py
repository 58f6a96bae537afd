"""A live source in Chromium, a local server that replays recorded answers: once for all tabs, unchanged, changed, failing."""

import re
import time
from collections.abc import Callable, Iterator

import pytest

from tests.browser.conftest import ROOT, App, Viewer, start_app
from tests.replaying_server import ReplayingServer

pytestmark = pytest.mark.browser

View = Callable[..., Viewer]
RECORDED = ROOT / "data" / "recorded"
REFRESH_S = 10.0
GRID = b"horde_policy.grid"
STATUS = b"horde_policy.status"


@pytest.fixture(scope="module")
def server() -> Iterator[ReplayingServer]:
    with ReplayingServer(RECORDED / "snapshot") as replaying:
        yield replaying


@pytest.fixture(scope="module")
def live(server: ReplayingServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    app = start_app(tmp_path_factory.mktemp("live") / "log", HORDE_URL=server.url)
    yield app
    app.stop()


def test_a_configured_horde_stands_first_and_the_demo_is_one_choice_away(live: App, server: ReplayingServer, view: View) -> None:
    tab = view(live).open("overview").board()
    assert server.counts.total() > 0
    assert tab.part("kind") == "live"
    assert "koboldcpp/Cydonia-24B-v4.1" in tab.names
    tab.page.get_by_role("combobox", name="Source").click()
    tab.page.get_by_role("option", name="Demo horde").click()
    tab.page.wait_for_url("**source=demo*")
    tab.board()
    assert tab.part("kind") == "demo, synthetic data"


def test_ten_tabs_ask_no_more_than_one(live: App, server: ReplayingServer, view: View) -> None:
    before = server.counts.copy()
    began = time.monotonic()
    tabs = [view(live).open("overview", source="horde", refresh="10").board() for _ in range(10)]
    most = (time.monotonic() - began) // REFRESH_S + 2
    asked = {path: n - before[path] for path, n in server.counts.items()}
    assert max(asked.values()) <= most, "one viewer would have asked as often"
    assert all(len(tab.names) == len(tabs[0].names) for tab in tabs)


def test_a_look_sends_the_table_only_when_it_has_changed_and_keeps_it_when_the_source_fails(
    live: App, server: ReplayingServer, view: View
) -> None:
    tab = view(live).open("overview", source="horde", refresh="10").board()
    names, asked = tab.names, server.counts.total()
    tab.received.clear()
    wait_until(lambda: server.counts.total() > asked and any(STATUS in data for data in tab.received), tab)
    tab.settled()
    assert not any(GRID in data for data in tab.received), "an unchanged refresh sends no new table"
    assert sum(len(data) for data in tab.received) < 40_000

    server.folder = RECORDED / "calm_snapshot"
    wait_until(lambda: tab.names != names, tab)
    assert any(GRID in data for data in tab.received)
    changed = tab.names

    server.fail("throttled", retry_after="30")
    wait_until(lambda: "429" in tab.part("trouble"), tab)
    assert "stands" in tab.part("trouble") or "last good value of" in tab.part("trouble")
    assert tab.names == changed
    assert tab.page.get_by_role("alert").count() == 0
    server.heal()


def test_a_link_to_a_model_that_is_asked_alone_shows_what_it_says_and_keeps_its_address(
    live: App, server: ReplayingServer, view: View
) -> None:
    server.folder = RECORDED / "snapshot"
    tab = view(live).open("model", source="horde", size="200", refresh="30", m="koboldcpp/Cydonia-24B-v4.1", try_floor="300")
    opened = tab.page.url
    tab.page.get_by_text(re.compile("this model alone.*, jobs [0-9]+, wait")).first.wait_for()
    tab.settled()
    tab.page.wait_for_timeout(2_000)  # the page runs again once the answer is there, while the browser builds its widgets
    tab.settled()
    assert tab.page.get_by_role("combobox", name="Source").input_value().startswith("Live: 127.0.0.1")
    assert tab.page.get_by_role("combobox", name="Size asked for").input_value() == "200 tokens"
    assert tab.page.url == opened


def wait_until(true: Callable[[], bool], tab: Viewer) -> None:
    until = time.monotonic() + 6 * REFRESH_S
    while not true():
        assert time.monotonic() < until, "nothing came of waiting"
        tab.page.wait_for_timeout(200)
