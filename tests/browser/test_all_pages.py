"""Every page of the navigation × both themes × demo, live and failing source in one tab each, and what a stranger would miss.

The pictures lie in ``output/pages`` (not in git) for who wants to look. On the demo each page is also measured: contrast AA,
names of controls, pictures in words, room at 1280×720 and on a phone.
"""

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from horde_policy.views.figures.style import FAINT, SURFACES
from tests.browser.conftest import ROOT, App, Viewer, start_app
from tests.navigation import pages_of_the_app
from tests.replaying_server import ReplayingServer

pytestmark = pytest.mark.browser

View = Callable[..., Viewer]
OUTPUT = ROOT / "output" / "pages"
AUDIT = (Path(__file__).parent / "audit.js").read_text(encoding="utf-8")
FIRST_DRAWN = Path(__file__).parent / "first_drawn.js"
WORDS = (Path(__file__).parent / "words.js").read_text(encoding="utf-8")
PAGES = {page.url: page.title for page in pages_of_the_app()}
WIDE, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
SHOWN_WITH_THE_SIDE_BAR = {"width": 820, "height": 900}
"""The side bar takes a part of the width, and Streamlit stacks columns by the whole of it."""
PATIENCE_S = 20.0
STEPS_OF_TAB = 14
OWN: dict[str, dict[str, str]] = {"model": {"m": "koboldcpp/Fernery-24B-v1.1"}, "replay": {"copies": "2", "run": "none"}}
"""What a page needs in its address to show all that it has, and a replay that is soon done."""

GO = """address => {
  history.pushState({}, "", address)
  window.dispatchEvent(new PopStateEvent("popstate", { state: {} }))
}"""


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app with a horde that answers."""
    with ReplayingServer(ROOT / "data" / "recorded" / "snapshot") as server:
        app = start_app(tmp_path_factory.mktemp("live") / "log", HORDE_URL=server.url)
        yield app
        app.stop()


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app whose horde does not answer."""
    app = start_app(tmp_path_factory.mktemp("failing") / "log", HORDE_URL=f"http://127.0.0.1:{closed_port()}")
    yield app
    app.stop()


def visit(viewer: Viewer, page: str, query: dict[str, str], *, first: bool) -> None:
    """Go to a page inside the tab, as its links do, and wait until it stands."""
    path = f"/{page}?{urlencode(query)}"
    if first:
        viewer.page.goto(viewer.app.url + path)
    else:
        viewer.page.evaluate(GO, path)
    # The title is set by the run that draws the page, so the page before it is gone and its own run is on or done.
    viewer.page.wait_for_function("title => document.title.startsWith(title)", arg=f"{PAGES[page]} · ")
    viewer.settled()


def findings(viewer: Viewer) -> dict[str, Any]:
    """Measure the page until nothing is wrong or patience ends: figures fade in and styles arrive late."""
    until = time.monotonic() + PATIENCE_S
    while True:
        found: dict[str, Any] = viewer.page.evaluate(AUDIT)
        wrong = {name: told for name, told in found.items() if (told > 1 if name == "wide" else told)}
        if not wrong or time.monotonic() > until:
            return wrong
        viewer.page.wait_for_timeout(200)


def misplaced(viewer: Viewer) -> list[str]:
    """Return the words of figures that lie on one another, are cut or too small, once the figures have their size."""
    until = time.monotonic() + PATIENCE_S
    viewer.page.wait_for_timeout(500)  # a figure is drawn anew once the width has stood for a moment
    while True:
        told: list[str] = viewer.page.evaluate(WORDS)
        if not told or time.monotonic() > until:
            return told
        viewer.page.wait_for_timeout(200)


OVER = """() => {
  const main = document.querySelector("[data-testid=stMain]")
  return Math.max(document.documentElement.scrollWidth - innerWidth, main.scrollWidth - main.clientWidth)
}"""


def wide_on_a_phone(viewer: Viewer) -> float:
    viewer.page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    until = time.monotonic() + PATIENCE_S
    while (over := viewer.page.evaluate(OVER)) > 1 and time.monotonic() < until:
        viewer.page.wait_for_timeout(100)
    return float(over)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_of_the_demo_can_be_read_reached_and_held_in_a_hand(demo: App, view: View, theme: str) -> None:
    viewer = view(demo, color_scheme=theme)
    viewer.page.add_init_script(path=FIRST_DRAWN)
    wrong: dict[str, Any] = {}
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for number, page in enumerate(PAGES):
        visit(viewer, page, OWN.get(page, {}), first=number == 0)
        if found := findings(viewer):
            wrong[page] = found
        viewer.page.screenshot(path=OUTPUT / f"{page}-{theme}-demo.png")
        for size in (WIDE, SHOWN_WITH_THE_SIDE_BAR, PHONE) if theme == "light" else ():  # they stand alike in both themes
            viewer.page.set_viewport_size(size)  # type: ignore[arg-type]
            if told := misplaced(viewer):
                wrong.setdefault(page, {})[f"words at {size['width']} px"] = told
        if (over := wide_on_a_phone(viewer)) > 1:
            wrong.setdefault(page, {})["wide on a phone"] = over
        viewer.page.screenshot(path=OUTPUT / f"{page}-{theme}-demo-phone.png")
        viewer.page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    assert wrong == {}, json.dumps(wrong, indent=1, ensure_ascii=False)


SURFACES_SHOWN = """() => [...document.querySelectorAll(".js-plotly-plot")]
  .map((plot) => [plot._fullLayout?.paper_bgcolor, plot._fullLayout?.font.color])"""


def test_figures_follow_the_theme_that_a_viewer_changes_to(demo: App, view: View) -> None:
    viewer = view(demo, color_scheme="light")
    visit(viewer, "model", OWN["model"], first=True)
    for theme in (*SURFACES, *SURFACES):
        viewer.page.emulate_media(color_scheme=theme)
        drawn = [[SURFACES[theme][0], FAINT[theme]]] * 3
        until = time.monotonic() + PATIENCE_S
        while (shown := viewer.page.evaluate(SURFACES_SHOWN)) != drawn and time.monotonic() < until:
            viewer.page.wait_for_timeout(100)
        assert shown == drawn, theme
        viewer.settled()


@pytest.mark.parametrize(
    ("source", "theme"),
    [
        ("live", "light"),
        ("failing", "dark"),
        pytest.param("live", "dark", marks=pytest.mark.soak),
        pytest.param("failing", "light", marks=pytest.mark.soak),
    ],
)
def test_every_page_stands_on_a_live_and_on_a_failing_source(
    request: pytest.FixtureRequest, view: View, source: str, theme: str
) -> None:
    viewer = view(request.getfixturevalue(source), color_scheme=theme)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for number, page in enumerate(PAGES):
        own = {name: value for name, value in OWN.get(page, {}).items() if name != "m"}
        visit(viewer, page, {"source": "horde", **own}, first=number == 0)
        assert viewer.page.locator('[data-testid="stException"]').count() == 0, f"{page} broke"
        viewer.page.screenshot(path=OUTPUT / f"{page}-{theme}-{source}.png")


FOCUSED = """() => {
  let at = document.activeElement
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  const box = at.getBoundingClientRect()
  return `${at.tagName} ${Math.round(box.x)},${Math.round(box.y)}`
}"""


RING = """() => {
  let focused = document.activeElement
  while (focused.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement
  const style = getComputedStyle(focused)
  const probe = document.createElement("canvas").getContext("2d")
  const rgb = (colour, under) => {
    probe.fillStyle = under; probe.fillRect(0, 0, 1, 1)
    probe.fillStyle = colour; probe.fillRect(0, 0, 1, 1)
    return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3)
  }
  const part = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
  const page = getComputedStyle(document.querySelector('[data-testid="stSidebar"]')).backgroundColor
  const under = `rgb(${rgb(style.backgroundColor, page)})`
  const [low, high] = [light(rgb(style.outlineColor, under)), light(rgb(under, "#000"))].sort((a, b) => a - b)
  return [focused.tagName, style.outlineStyle, style.outlineWidth, (high + 0.05) / (low + 0.05)]
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_link_of_the_navigation_shows_that_it_has_the_focus(demo: App, view: View, theme: str) -> None:
    viewer = view(demo, color_scheme=theme)
    visit(viewer, "guide", {}, first=True)
    viewer.page.get_by_role("link", name="Overview").first.focus()
    for _ in range(3):
        viewer.page.keyboard.press("Tab")
        kind, style, width, ratio = viewer.page.evaluate(RING)
        assert (kind, style, width) == ("A", "solid", "2px")
        assert ratio >= 3.0, "what shows the focus needs a contrast of 3 to 1 (WCAG 1.4.11)"
    viewer.page.keyboard.press("Enter")
    viewer.page.wait_for_url("**/sources**")
    viewer.settled()
    kept = viewer.page.get_by_role("link", name="Sources").first.evaluate("link => link.getRootNode().activeElement === link")
    assert kept, "who chose a page by the keyboard goes on from there"


SIGNS = """() => {
  const part = document.querySelector('.st-key-shared-nav [data-testid="stBidiComponentIsolated"]').shadowRoot
  return [...part.querySelectorAll(".icon")].map(icon => [icon.textContent, icon.scrollWidth / icon.clientWidth])
}"""
"""The icons of the navigation, and their width in signs: without Streamlit's font a name would stand there, of three and more."""


def _are_signs(widths: dict[str, float]) -> bool:
    """Return whether each page has a sign about as wide as it is high, and none the name of one written out."""
    return len(widths) == len(PAGES) and max(widths.values()) < 2


def test_on_a_phone_the_navigation_has_its_signs_and_leaves_the_page_that_is_chosen(demo: App, view: View) -> None:
    viewer = view(demo, viewport={"width": 390, "height": 844})
    visit(viewer, "model", {}, first=True)
    viewer.page.get_by_test_id("stExpandSidebarButton").click()
    workers = viewer.page.get_by_role("link", name="Workers")
    workers.wait_for()
    until = time.monotonic() + PATIENCE_S
    # the side bar slides in, and its signs have no size before it is there
    while not _are_signs(signs := dict(viewer.page.evaluate(SIGNS))) and time.monotonic() < until:
        viewer.page.wait_for_timeout(100)
    assert _are_signs(signs), signs
    workers.click()
    viewer.page.wait_for_url("**/workers**")
    viewer.settled()
    viewer.page.get_by_test_id("stExpandSidebarButton").wait_for()


def test_the_keyboard_walks_through_every_page_without_a_trap(demo: App, view: View) -> None:
    viewer = view(demo)
    for number, page in enumerate(PAGES):
        visit(viewer, page, OWN.get(page, {}), first=number == 0)
        viewer.page.locator("h1").first.wait_for()
        links = viewer.page.get_by_role("link", name="Overview").first
        links.focus()
        reached = []
        for _ in range(STEPS_OF_TAB):
            viewer.page.keyboard.press("Tab")
            reached.append(viewer.page.evaluate(FOCUSED))
        assert len(set(reached)) >= STEPS_OF_TAB - 2, f"{page}: the focus stays at {reached}"
        outside = [place for place in reached if place.split()[0] in ("INPUT", "BUTTON", "A")]
        assert len(outside) >= STEPS_OF_TAB // 2, f"{page}: {reached}"
