"""The model, workers and sources pages in Chromium: what is tried, a range drawn, hostile names, both themes, a phone."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import App, Viewer, until_true
from tests.pages.conftest import write_history

pytestmark = pytest.mark.browser

View = Callable[..., Viewer]
FERNERY = "koboldcpp/Fernery-24B-v1.1"


def test_the_keyboard_moves_the_queue_and_the_address_follows(demo: App, view: View) -> None:
    tab = view(demo).open("model", m=FERNERY)
    tab.page.wait_for_selector(".main-svg")
    tab.settled()
    fold = tab.page.locator("summary", has_text="Try a longer queue, workers or settings")
    fold.focus()
    tab.page.keyboard.press("Enter")
    slider = tab.page.get_by_role("slider", name="Queue")
    slider.wait_for()
    tab.settled()
    before = slider.input_value()
    slider.focus()
    tab.page.keyboard.press("ArrowRight")
    tab.page.wait_for_url("**queue_by=100**")
    tab.page.wait_for_selector("td:has-text('Then')")
    assert int(slider.input_value()) == int(before) + 1, "one step of its own"
    tab.page.go_back()
    until_true(tab.page, "!document.location.search.includes('queue_by')")
    tab.page.locator("td:has-text('Then')").first.wait_for(state="detached")
    expect(slider).to_have_value(before)


def test_a_span_drawn_over_the_trend_becomes_the_range(
    new_app: Callable[..., App], view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = write_history(tmp_path / "history.db", monkeypatch)
    tab = view(new_app(HORDE_POLICY_HISTORY=str(made.store))).open("model", source="recorded-snapshot", m=made.model)
    draw_a_span(tab, 2)
    tab.page.wait_for_url("**from=2026-11-29T**")
    assert "to=2026-11-29T" in tab.page.url


def draw_a_span(tab: Viewer, number: int) -> None:
    """Draw over the middle of the page's figure of this number, from left to right."""
    plot = tab.page.locator(".js-plotly-plot").nth(number)
    plot.locator(".main-svg").first.wait_for()
    tab.settled()
    plot.scroll_into_view_if_needed()
    box = plot.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    tab.page.mouse.move(box["x"] + 0.5 * box["width"], middle)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=5)
    tab.page.mouse.move(box["x"] + 0.75 * box["width"], middle, steps=5)
    tab.page.mouse.up()


def test_a_span_drawn_over_the_overviews_states_becomes_the_range_of_every_page(demo: App, view: View) -> None:
    tab = view(demo).open("overview", refresh="0")
    draw_a_span(tab, 0)
    tab.page.wait_for_url("**from=20**")
    tab.settled()
    assert "to=20" in tab.page.url
    assert tab.page.get_by_text("synthetic").first.is_visible()
    tab.page.get_by_role("link", name="Workers").first.click()
    tab.page.wait_for_url("**/workers**from=20**")


@pytest.mark.parametrize("page", ["workers", "sources"])
def test_hostile_names_stay_text_and_fetch_nothing(demo: App, view: View, page: str) -> None:
    tab = view(demo).open(page, source="recorded-hostile")
    tab.page.wait_for_selector("tbody tr td.name")
    tab.settled()
    assert tab.page.evaluate("() => document.querySelectorAll('td b, td img, td script, td a a').length") == 0
    links = tab.page.locator("a").evaluate_all("links => links.map(link => link.href)")
    assert all(link.startswith(demo.url) for link in links)


def test_on_a_phone_a_model_is_two_lines_and_the_rest_comes_on_demand(demo: App, view: View) -> None:
    tab = view(demo, viewport={"width": 390, "height": 844}).open("overview").board()
    board = tab.page.locator(".grid", has=tab.page.locator("tr.pinned")).first
    assert board.locator("tbody tr").count() == 23
    box = board.bounding_box()
    assert box is not None
    assert box["height"] <= 3_000
    card = board.locator("tbody tr", has_text="koboldcpp/Fernery")
    speed, more = card.locator("td[data-label=Speed]"), card.get_by_role("button", name="More of koboldcpp/Fernery-24B-v1.1")
    assert not speed.is_visible()
    assert card.locator("td[data-label=State]").is_visible()
    assert card.locator("td[data-label='Free allowance']").is_visible()
    assert card.locator("td[data-label=Wait]").is_visible()
    more.press("Enter")
    assert more.get_attribute("aria-expanded") == "true"
    assert speed.is_visible()
    assert speed.evaluate("cell => getComputedStyle(cell, '::before').content") == '"Speed, tok/s"'
    assert "/overview" in tab.page.url, "the button opens the card and not the model's page"
    more.click()
    assert not speed.is_visible()


def test_cards_show_no_empty_cell(demo: App, view: View) -> None:
    tab = view(demo, viewport={"width": 390, "height": 844}).open("model")
    why = tab.page.locator("td[data-label^='Why not']")
    why.first.wait_for(state="attached")
    assert not [cell for cell in why.all() if cell.text_content() == "" and cell.is_visible()]
    assert not why.last.is_visible(), "a worker's card is folded until it is opened"
    assert why.first.evaluate("cell => cell.classList.contains('blank')"), "the first counts and reports everything"
    tab = view(demo, viewport={"width": 390, "height": 844}).open("sources")
    at, unasked = (tab.page.locator(".grid tbody td[data-label='Data of']").nth(place) for place in (0, 1))
    unasked.wait_for(state="attached")
    assert unasked.inner_text() == ""
    assert not unasked.is_visible()
    assert tab.page.locator(".grid tbody td[data-label='What is wrong']").count() == 0, "no row has anything there"
    assert at.inner_text().endswith(" UTC")
    assert (at.get_attribute("title") or "").endswith(" in your time zone"), "and in the viewer's zone on hover"


@pytest.mark.parametrize("page", ["overview", "workers"])
@pytest.mark.parametrize("source", ["demo", "recorded-hostile"])
def test_no_name_pushes_a_column_off_the_screen_or_loses_its_end(demo: App, view: View, page: str, source: str) -> None:
    tab = view(demo).open(page, source=source)
    tab.page.locator(".grid tbody tr:visible").first.wait_for()
    tab.settled()
    wider = "nodes => nodes.filter(node => node.scrollWidth > node.clientWidth + 1).length"
    assert tab.page.locator(".grid").evaluate_all(wider) == 0
    if source == "demo":
        ends = tab.page.locator(".grid .ends .end")
        assert ends.count() > 0
        assert ends.evaluate_all(wider) == 0, "the end of a name tells models apart"


def test_a_models_name_is_broken_only_where_it_fits_into_no_line(demo: App, view: View) -> None:
    tab = view(demo).open("workers").settled()
    names = tab.page.locator("td .whole")
    names.first.wait_for()
    assert names.filter(has_text="koboldcpp/Ironwood-14B").count() == 2
    broken = "nodes => nodes.filter(node => node.offsetHeight > 1.6 * parseFloat(getComputedStyle(node).fontSize)).length"
    assert names.evaluate_all(broken) == 0
    column = names.filter(has_text="koboldcpp/Ironwood-14B").first.locator("xpath=..")
    column.evaluate("cell => { cell.style.display = 'block'; cell.style.minWidth = '0'; cell.style.width = '6em' }")
    assert column.evaluate("cell => cell.scrollWidth <= cell.clientWidth"), "what is longer than a line is broken, and not cut"
