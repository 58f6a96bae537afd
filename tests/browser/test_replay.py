"""The Replay page in Chromium: from the demo to an exported report that opens without a network."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import App, Viewer, until_true

pytestmark = pytest.mark.browser

View = Callable[..., Viewer]
CHARTS = ".horde-figure .main-svg"
SMALL = {"hours": "24-30", "copies": "20"}


def shown(tab: Viewer) -> Viewer:
    tab.page.wait_for_selector(CHARTS, timeout=180_000)
    return tab.settled()


def saved(page: Page, label: str, folder: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name=label).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_from_the_demo_to_a_report_that_opens_offline(demo: App, view: View, chromium: Browser, tmp_path: Path) -> None:
    tab = shown(view(demo).open("replay"))
    title = tab.page.locator("h1").inner_text()
    assert title.startswith("B (ceiling 2,048, floor 256) differs most: ")
    report = saved(tab.page, "Report", tmp_path)
    assert report.name.startswith("replay_ragpulse-week1_")
    assert report.suffix == ".html"
    context = chromium.new_context(offline=True, viewport={"width": 1200, "height": 900})
    page, asked, errors = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(report.as_uri())
    page.wait_for_selector(".main-svg")
    assert page.locator("h1").inner_text() == title
    assert page.locator(".js-plotly-plot").count() == 5
    until_true(page, "document.querySelectorAll('.js-plotly-plot .main-svg').length >= 10")
    assert page.locator(".js-plotly-plot .bars path, .js-plotly-plot .point path").count() > 20
    text = page.locator("body").inner_text()
    assert "60 copies superposed (synthetic load)" in text
    assert "max_length=ladder,models=weighted" in text
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert errors == []
    context.close()


def test_a_long_replay_shows_how_far_it_is_and_is_cancelled(demo: App, view: View) -> None:
    tab = view(demo).open("replay", traffic="azure2023_conv", hours="all", copies="100", run="rule=old")
    tab.page.get_by_role("progressbar").wait_for()
    tab.page.get_by_role("button", name="Cancel").click()
    tab.page.get_by_text("The replay was cancelled; nothing of it is kept.").wait_for()
    assert tab.settled().page.locator(CHARTS).count() == 0
    tab.page.get_by_role("button", name="Replay again").wait_for()


def test_the_files_hold_every_request_and_every_figure(demo: App, view: View, tmp_path: Path) -> None:
    tab = shown(view(demo).open("replay", **SMALL, run="rule=old"))
    requests = pl.read_parquet(saved(tab.page, "Requests (Parquet)", tmp_path))
    counts = dict(requests.group_by("run").len().iter_rows())
    assert len(set(counts.values())) == 1
    rows = list(csv.DictReader(io.StringIO(saved(tab.page, "Figures (CSV)", tmp_path).read_text("utf-8-sig"))))
    total = [row for row in rows if row["figure"] == "requests" and not row["requester"]]
    assert {row["run"]: float(row["value"]) for row in total} == {str(run): float(n) for run, n in counts.items()}
    assert all(row["fill rule"].startswith("max_length=ladder") for row in rows)


def test_a_slider_moves_the_result_and_back_undoes_it(demo: App, view: View) -> None:
    tab = shown(view(demo).open("replay", **SMALL, run="ceiling_tokens=2048"))
    title, slider = tab.page.locator("h1").inner_text(), tab.page.get_by_role("slider").first
    assert "2,048" in title
    slider.focus()
    tab.page.keyboard.press("ArrowRight")
    tab.page.wait_for_url("**run=ceiling_tokens%3D2049*")
    tab.settled()
    until_true(tab.page, "document.querySelector('h1')?.innerText.includes('2,049')")
    assert slider.input_value() == "2049"
    tab.page.go_back()
    until_true(tab.page, "document.querySelector('h1')?.innerText.includes('2,048')")
    tab.settled()
    assert tab.page.locator("h1").inner_text() == title
    assert slider.input_value() == "2048"


@pytest.mark.parametrize(("scheme", "size"), [("light", (390, 844)), pytest.param("dark", (1280, 720), marks=pytest.mark.soak)])
def test_it_is_usable_in_both_themes_and_on_a_phone(demo: App, view: View, scheme: str, size: tuple[int, int]) -> None:
    tab = shown(view(demo, color_scheme=scheme, viewport={"width": size[0], "height": size[1]}).open("replay", **SMALL))
    assert tab.page.locator(CHARTS).count() >= 4
    wider = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert tab.page.evaluate(wider) <= 0, "the page is no wider than the screen"
    images = tab.page.locator(".horde-figure")
    assert images.count() == 4
    tab.assert_well()


def test_a_popover_opened_after_a_refused_field_shows_what_is_in_force(demo: App, view: View) -> None:
    rule = "max_length=service_cap:700,models=weighted,requester=0.7/0.1,can_pay=0.5,allow_downgrade=0"
    tab = shown(view(demo).open("replay", **SMALL, fill=rule))
    hours = tab.page.get_by_role("combobox", name="Range (hours)")
    hours.fill("noon")
    hours.press("Enter")
    tab.page.get_by_text("The range stays").wait_for()
    tab.settled()
    tab.page.get_by_role("button", name="Fill rule").click()
    popover = tab.page.locator('[data-testid="stPopoverBody"]')
    expect(popover.get_by_role("combobox", name="Size asked for")).to_have_value("one constant (service cap)")
    expect(popover.get_by_label("The constant (tokens)", exact=True)).to_have_value("700")
