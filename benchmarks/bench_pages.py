"""The pages on the demo in Chromium against a bare Streamlit page with as many charts, in the same run (performance.md §3).

Measured, p95 of a dozen each: a new page until all its charts are drawn; a switch between two pages of an open tab; a filter
(the size asked for, through the address) until every chart shows it. Target: each at most 1.3 times the bare page's. Then
ten viewers at once, each with a browser profile of its own: the switch again, one after the other has begun.
``python -m benchmarks.bench_pages`` needs Debian's chromium; a busy machine moves the seconds, the ratios less.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.bench_board_page import CHROMIUM, FLAGS, ROOT, served

TIMES = 12
VIEWERS = 10
TARGET = 1.3
CHARTS = 2
MODEL = "m=koboldcpp%2FFernery-24B-v1.1"
DRAWN = f"document.querySelectorAll('.js-plotly-plot .main-svg').length >= {CHARTS}"
"""As many charts as the Model page draws without a history; a figure has more than one layer, so this is the least."""

BARE = """
import plotly.graph_objects as go
import streamlit as st

size = int(st.query_params.get("size", 80))

def charts(name):
    st.title(f"{name} {size}")
    for number in range(2):
        figure = go.Figure(go.Scatter(x=list(range(200)), y=[size * (x % 7) for x in range(200)]))
        figure.update_layout(title=f"{name} {number} {size}")
        st.plotly_chart(figure, key=f"{name}{number}")

def one():
    charts("one")

def two():
    charts("two")

st.navigation([st.Page(one, url_path="one"), st.Page(two, url_path="two")]).run()
"""

GO = "address => { history.pushState({}, '', address); window.dispatchEvent(new PopStateEvent('popstate', { state: {} })) }"


def p95(values: list[float]) -> float:
    """Return the 95th percentile, the largest but for one in twenty."""
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def until(page: Page, expression: str) -> None:
    """Wait until an expression holds in the page."""
    page.wait_for_function(expression, timeout=120_000)


def timed(act: Callable[[], object], seen: Callable[[], object]) -> float:
    """Return the seconds from an act to what is then seen."""
    began = time.perf_counter()
    act()
    seen()
    return time.perf_counter() - began


class Ours:
    """The Model page, the Overview beside it, and the size as a filter."""

    def __init__(self, url: str) -> None:
        self.url = url

    def first(self, page: Page) -> None:
        page.goto(f"{self.url}/model?{MODEL}")
        until(page, DRAWN)

    def away(self, page: Page) -> None:
        page.evaluate(GO, "/workers")
        until(page, "document.title.startsWith('Workers')")
        page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')

    def switch(self, page: Page) -> None:
        page.evaluate(GO, f"/model?{MODEL}")
        until(page, f"document.title.startsWith('Model') && {DRAWN}")

    def filter(self, page: Page, size: int) -> None:
        page.evaluate(GO, f"/model?{MODEL}&size={size}")
        until(page, f"[...document.querySelectorAll('.js-plotly-plot text')].some(t => t.textContent.includes('asked {size}'))")


class Bare:
    """The bare app of two pages with as many charts."""

    def __init__(self, url: str) -> None:
        self.url = url

    def first(self, page: Page) -> None:
        page.goto(f"{self.url}/one")
        until(page, DRAWN)

    def away(self, page: Page) -> None:
        page.evaluate(GO, "/two")
        until(page, f"document.title.startsWith('two') && {DRAWN}")

    def switch(self, page: Page) -> None:
        page.evaluate(GO, "/one")
        until(page, f"document.title.startsWith('one') && {DRAWN}")
        until(page, "[...document.querySelectorAll('.js-plotly-plot text')].some(t => t.textContent.startsWith('one'))")

    def filter(self, page: Page, size: int) -> None:
        page.evaluate(GO, f"/one?size={size}")
        until(page, f"[...document.querySelectorAll('.js-plotly-plot text')].some(t => t.textContent.endsWith(' {size}'))")


def measured(browser: Browser, app: Ours | Bare, times: int) -> dict[str, float]:
    """Return the p95 of each act in one tab; a new page has a profile that has seen the app before."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    app.first(page)
    found: dict[str, list[float]] = {"first charts": [], "page switch": [], "filter": []}
    for place in range(times):
        size = 100 + place
        found["first charts"].append(timed(lambda: app.first(page), lambda: None))
        app.away(page)
        page.wait_for_timeout(300)
        found["page switch"].append(timed(lambda: app.switch(page), lambda: None))
        page.wait_for_timeout(300)
        found["filter"].append(timed(lambda size=size: app.filter(page, size), lambda: None))  # type: ignore[misc]
    context.close()
    return {what: p95(values) for what, values in found.items()}


def ten_viewers(browser: Browser, app: Ours | Bare) -> float:
    """Return the p95 of a switch while ten viewers switch: all are sent on their way first, then waited for."""
    contexts = [browser.new_context(viewport={"width": 1280, "height": 720}) for _ in range(VIEWERS)]
    pages = [context.new_page() for context in contexts]
    for page in pages:
        app.first(page)
        app.away(page)
    began = time.perf_counter()
    address = f"/model?{MODEL}" if isinstance(app, Ours) else "/one"
    for page in pages:
        page.evaluate(GO, address)
    found = []
    for page in pages:
        until(page, f"location.pathname.endsWith('{address.partition('?')[0]}') && {DRAWN}")
        found.append(time.perf_counter() - began)
    for context in contexts:
        context.close()
    return p95(found)


def main() -> None:
    """Print the p95 of each, ours and the bare page's, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=TIMES, help="how often each is measured")
    times = parser.parse_args().times
    print(f"p95 of {times} on the demo, against a bare Streamlit page with {CHARTS} charts (target at most {TARGET:g} times)")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        script = Path(name) / "bare.py"
        script.write_text(BARE, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with served(ROOT / "app.py") as ours, served(script) as bare:
            app, other = Ours(ours), Bare(bare)
            told(measured(browser, app, times), measured(browser, other, times))
            told({f"{VIEWERS} viewers": ten_viewers(browser, app)}, {f"{VIEWERS} viewers": ten_viewers(browser, other)})
        browser.close()


def told(mine: dict[str, float], theirs: dict[str, float]) -> None:
    """Print ours beside the bare page's as soon as both are known."""
    for what, seconds in mine.items():
        print(f"  {what:14} {seconds:6.2f} s   bare {theirs[what]:6.2f} s   ratio {seconds / theirs[what]:.2f}", flush=True)


if __name__ == "__main__":
    main()
