"""The HTML report in Chromium, from disk and without any network."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page

from horde_policy.review.exported import Exported
from horde_policy.review.findings import review_week
from horde_policy.settings import AllowanceSettings
from horde_policy.views.report import report_html
from tests.browser.conftest import new_context, until_true
from tests.unit.review.weeks import made_week
from tests.unit.views.test_review_report import NOTHING, hostile_week

pytestmark = pytest.mark.browser

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Iterator[Callable[[Exported], Page]]:
    """Open a report from disk in a browser that has no network; every request and error is noted on the page."""
    context = new_context(chromium)
    context.set_offline(True)

    def show(exported: Exported) -> Page:
        path = tmp_path / "report.html"
        path.write_text(report_html(review_week(exported, AllowanceSettings()), made_at=AT), encoding="utf-8")
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
        page.on("dialog", refuse)
        page.goto(path.as_uri())
        return page

    def refuse(dialog: Dialog) -> None:
        errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    asked: list[str] = []
    errors: list[str] = []
    yield show
    foreign = [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    context.close()
    assert foreign == []
    assert errors == []


def test_it_opens_from_disk_with_every_figure_drawn_and_alive(opened: Callable[[Exported], Page]) -> None:
    page = opened(made_week())
    until_true(page, "document.querySelectorAll('.chart .main-svg').length >= document.querySelectorAll('.chart').length")
    charts = page.locator(".chart.js-plotly-plot")
    assert charts.count() == page.locator("figure").count() >= 8
    for number in range(charts.count()):
        box = charts.nth(number).bounding_box()
        assert box is not None
        assert box["width"] > 600
        assert box["height"] > 150
    grid = page.locator("#chart-responds-0")
    grid.scroll_into_view_if_needed()
    point = grid.locator(".scatterlayer .point").nth(3)
    point.hover(force=True)
    page.wait_for_selector("#chart-responds-0 .hoverlayer .hovertext")
    assert "decisions" in str(page.locator("#chart-responds-0 .hoverlayer .hovertext").text_content())
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_its_links_lead_to_what_they_say(opened: Callable[[Exported], Page]) -> None:
    page = opened(made_week(hours=48))
    for link in page.locator(".findings a").all():
        target = link.get_attribute("href")
        assert target is not None
        assert page.locator(target).count() == 1


def test_on_paper_every_figure_keeps_its_width(opened: Callable[[Exported], Page]) -> None:
    page = opened(made_week(hours=48))
    page.wait_for_selector(".chart .main-svg")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    until_true(
        page, "[...document.querySelectorAll('.chart .main-svg')].every((svg) => svg.getBoundingClientRect().width <= 681)"
    )
    page.emulate_media(media="print")
    assert page.locator(".modebar-container").first.is_hidden()
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF-")
    assert len(paper) > 50_000
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    until_true(page, "document.querySelector('.chart .main-svg').getBoundingClientRect().width > 700")


def test_hostile_names_do_nothing(opened: Callable[[Exported], Page]) -> None:
    page = opened(hostile_week())
    page.wait_for_selector(".chart .main-svg")
    assert page.locator("img").count() == 0
    assert "alert(1)" in page.locator("h1").inner_text()


def test_without_data_it_says_so(opened: Callable[[Exported], Page]) -> None:
    page = opened(NOTHING)
    assert page.locator(".nothing").count() == 5
    assert page.locator("figure").count() == 0


def test_on_a_narrow_screen_nothing_runs_over(opened: Callable[[Exported], Page]) -> None:
    page = opened(hostile_week())
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_selector(".chart .main-svg")
    until_true(page, "document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    ends = page.locator(".chart .main-svg").evaluate_all("charts => charts.map(chart => chart.getBoundingClientRect().right)")
    assert ends
    assert all(right <= 390 for right in ends)
