"""The Sweep page in Chromium: from a typed grid to a downloaded change proposal; clicks; both themes and a phone."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import App, Viewer, until_true

pytestmark = pytest.mark.browser

View = Callable[..., Viewer]
CHARTS = ".horde-figure .main-svg"


def shown(tab: Viewer) -> Viewer:
    tab.page.locator(CHARTS).first.wait_for(timeout=180_000)
    return tab.settled()


def typed(tab: Viewer, label: str, text: str) -> None:
    field = tab.page.get_by_label(label, exact=True)
    field.fill(text)
    field.press("Enter")
    tab.settled()


def saved(page: Page, label: str, folder: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name=label).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def click_square(tab: Viewer, text: str) -> None:
    """Click the square that shows a figure, in the middle of its figure."""
    label = tab.page.locator(".horde-figure").first.locator("g.textpoint text", has_text=text).first
    label.scroll_into_view_if_needed()
    box = label.bounding_box()
    assert box is not None
    tab.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_from_a_grid_to_a_downloaded_proposal(new_app: Callable[..., App], view: View, chromium: Browser, tmp_path: Path) -> None:
    app = new_app(HORDE_POLICY_SWEEPS=str(tmp_path / "sweeps"))
    grid = 'ceiling_tokens = [1024]\nwait_floor_s = [150, 300]\nfill = ["max_length=client_setting:1/2/3/3/2"]\n'
    tab = shown(view(app).open("sweep", times="20", grid=grid))
    page = tab.page
    page.get_by_text("New sweep", exact=True).click()
    typed(tab, "Floor (tokens)", "0")
    expect(page.get_by_text("0 must be a whole number of at least 1")).to_be_visible()
    expect(page.get_by_role("button", name="Start the sweep")).to_be_disabled()
    typed(tab, "Floor (tokens)", "256, 512")
    typed(tab, "Ceiling (tokens)", "512, 1024, 4096")
    page.get_by_text(re.compile(r"^1[0-9] settings, those in force among them, under 1 scenario")).wait_for()
    page.get_by_role("button", name="Start the sweep").click()
    page.wait_for_url("**sweep=run-*")
    page.get_by_text("One seed only").first.wait_for(timeout=180_000)
    shown(tab)
    click_square(tab, "%")
    page.wait_for_url("**point=*")
    tab.settled()
    markdown = saved(page, "Proposal (Markdown)", tmp_path).read_text("utf-8")
    for part in ("HORDE_TEXT_FREE_OUTPUT_CEILING=", "## Evidence", "## Caveats", "## What would refute it", "synthetic"):
        assert part in markdown
    html = saved(page, "Proposal (HTML)", tmp_path)
    context = chromium.new_context(offline=True)
    document, asked = context.new_page(), []
    document.on("request", lambda request: asked.append(request.url))
    document.goto(html.as_uri())
    assert document.locator("h1").inner_text() == markdown.splitlines()[0].removeprefix("# ")
    assert [url for url in asked if not url.startswith("file:")] == []
    document.set_viewport_size({"width": 390, "height": 844})
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert document.evaluate(wider) <= 0, "a table scrolls by itself on a phone"
    context.close()
    page.get_by_role("link", name="Open in Replay").click()
    page.wait_for_url("**/replay?*")
    shown(tab)
    assert "copies=20" in page.url
    assert "drawn" in page.url


def test_a_square_a_dot_and_back(demo: App, view: View) -> None:
    tab = shown(view(demo).open("sweep"))
    until_true(tab.page, "document.querySelector('h1')?.innerText === 'Keep the settings in force'")
    click_square(tab, "42.9")
    tab.page.wait_for_url("**point=*")
    tab.settled()
    tab.page.locator(".horde-figure").nth(1).locator("text", has_text="looked at").first.wait_for()
    opened = tab.page.url
    # a dot on the front is under Plotly's own layer, so it is clicked where it is
    dot = tab.page.locator(".horde-figure").nth(1).locator("g.trace").nth(2).locator("path.point").first
    dot.evaluate("dot => dot.scrollIntoView({block: 'center'})")  # at the top of the screen it would lie under the tool bar
    box = dot.bounding_box()
    assert box is not None
    tab.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    until_true(tab.page, f"location.href !== {opened!r}")
    tab.settled()
    tab.page.go_back()
    until_true(tab.page, f"location.href === {opened!r}")
    tab.page.go_back()
    until_true(tab.page, "!location.search.includes('point=')")


@pytest.mark.parametrize(("scheme", "size"), [("light", (390, 844)), pytest.param("dark", (1280, 720), marks=pytest.mark.soak)])
def test_it_is_usable_in_both_themes_and_on_a_phone(demo: App, view: View, scheme: str, size: tuple[int, int]) -> None:
    tab = shown(view(demo, color_scheme=scheme, viewport={"width": size[0], "height": size[1]}).open("sweep"))
    expect(tab.page.locator(".horde-figure")).to_have_count(6)
    wider = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert tab.page.evaluate(wider) <= 0, "the page is no wider than the screen"
    tab.assert_well()


def test_the_choosers_of_the_squares_stand_in_two_rows_on_a_screen_of_1280(demo: App, view: View) -> None:
    tab = shown(view(demo).open("sweep"))
    ends = []
    for key in ("x", "y", "metric", "others", "others-held"):
        box = tab.page.locator(f".st-key-sweep-{key}").first.bounding_box()
        assert box is not None
        ends.append(round(box["y"] + box["height"]))
    assert ends[0] == ends[1] == ends[2] < ends[3] == ends[4]
