"""A figure in the browser: drawn once for each change, as wide as its place or the screen, told where it cannot be drawn."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import App, Viewer, until_true

pytestmark = pytest.mark.browser

View = Callable[..., Viewer]
MODEL = "koboldcpp/Fernery-24B-v1.1"

WATCHED = """() => {
  window.drawn = []
  let library
  Object.defineProperty(window, "Plotly", { get: () => library, set: (given) => {
    library = given
    for (const name of ["react", "newPlot", "relayout", "restyle"]) {
      const own = given[name]
      given[name] = (root, ...rest) => {
        window.drawn.push(`${name} ${root.closest("[class*=st-key-]").className.match(/st-key-(\\S+)/)[1]}`)
        return own.call(given, root, ...rest)
      }
    }
  } })
}"""
"""Notes each time that a figure is drawn."""

AS_WIDE = """() => [...document.querySelectorAll('.horde-figure')].every(figure =>
  Math.abs(figure.querySelector('.main-svg').getBoundingClientRect().width - figure.clientWidth) < 1)"""


def three(tab: Viewer) -> Page:
    """Wait until all figures of the Model page stand."""
    page = tab.page
    page.locator(".st-key-model-trend .main-svg").first.wait_for()
    expect(page.locator(".horde-figure .cartesianlayer")).to_have_count(3)
    tab.settled()
    return page


def test_each_change_is_drawn_once_and_what_stays_the_same_not_at_all(demo: App, view: View) -> None:
    tab = view(demo)
    tab.page.add_init_script(f"({WATCHED})()")
    page = three(tab.open("model", m=MODEL, refresh="off"))
    until_true(page, "window.drawn.length >= 3")
    # One place may still move by a few pixels while the page is built: its figure follows, which is no second drawing of it.
    drawn = [name for name in page.evaluate("window.drawn.splice(0)") if not name.startswith("relayout")]
    assert sorted(drawn) == ["react model-curve", "react model-sizes", "react model-trend"]
    page.evaluate(
        "address => { history.pushState({}, '', address); dispatchEvent(new PopStateEvent('popstate', { state: {} })) }",
        page.url + "&size=512",
    )
    page.locator(".st-key-model-sizes text", has_text="asked 512").first.wait_for()
    tab.settled()
    assert page.evaluate("window.drawn.splice(0)").count("react model-sizes") == 1


def test_it_is_as_wide_as_its_place_and_stays_so(demo: App, view: View) -> None:
    page = three(view(demo).open("model", m=MODEL))
    until_true(page, f"({AS_WIDE})()")
    for width in (1600, 700, 390):
        page.set_viewport_size({"width": width, "height": 800})
        until_true(page, f"innerWidth === {width} && ({AS_WIDE})()")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_fills_the_whole_screen_and_goes_back(demo: App, view: View) -> None:
    page = three(view(demo).open("model", m=MODEL))
    figure = page.locator(".st-key-model-curve .horde-figure")
    before = figure.bounding_box()
    figure.hover()
    figure.locator('.modebar-btn[data-title="Full screen"]').click()
    until_true(page, "document.fullscreenElement?.querySelector('.main-svg').getBoundingClientRect().height >= innerHeight - 1")
    until_true(page, "document.fullscreenElement.querySelector('.main-svg').getBoundingClientRect().width >= innerWidth - 1")
    page.evaluate("document.exitFullscreen()")
    until_true(page, f"!document.fullscreenElement && ({AS_WIDE})()")
    after = figure.bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] == pytest.approx(before["height"], abs=1)


def test_where_the_library_does_not_come_each_figure_says_so_and_the_page_stands(demo: App, view: View) -> None:
    tab = view(demo)
    tab.page.route("**/app/static/**", lambda route: route.abort())
    tab.open("model", m=MODEL)
    told = tab.page.locator(".st-key-model-curve .horde-figure")
    expect(told).to_contain_text("This figure cannot be drawn")
    expect(told).to_contain_text("Free output allowance")
    expect(tab.page.locator("h1")).to_contain_text("is free")
    tab.page.unroute("**/app/static/**")
    tab.page.reload()
    three(tab)


def test_it_is_named_and_what_it_shows_is_said(demo: App, view: View) -> None:
    page = three(view(demo).open("model", m=MODEL))
    figures = page.get_by_role("figure")
    assert figures.count() == 3
    assert all(len(figures.nth(place).get_attribute("aria-label") or "") > 40 for place in range(3))
