"""The pages on the demo in Chromium against a bare Streamlit page with as many charts, in the same run (performance.md §3).

Two bare pages: one with simple lines, and one with the very figures of our page, so that what the page adds can be told from
what its figures cost the browser.
Measured, p95 of a dozen each, ours and the bare page's in turn: a new page until all its charts are drawn; a switch between two
pages of an open tab; a filter, through the address, until the charts show it: one that changes one chart (the size asked for),
and one that changes all (the ceiling). Target: each at most 1.3 times the bare page's. Then ten viewers at once, each with a
browser profile of its own: all have stood still, then all switch.
``python -m benchmarks.bench_pages`` needs Debian's chromium; a busy machine moves the seconds more than the ratios.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, Page, sync_playwright
from streamlit.testing.v1 import AppTest

from benchmarks.bench_board_page import CHROMIUM, FLAGS, ROOT, served
from horde_policy.views.figures.model import ROOM_ABOVE

TIMES = 12
VIEWERS = 10
TARGET = 1.3
PATIENCE_MS = 120_000
NAMES = ("ours", "bare", "same figures")
SETTLED_MS = 300
"""After a page stands, before the next act: what the browser still does after the last run is no part of it."""

OUR_MODEL = "koboldcpp/Fernery-24B-v1.1"
MODEL = f"m={quote(OUR_MODEL, safe='')}"
IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'

PAGE = """
import json
from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

part, whole = (int(st.query_params.get(name, 80)) for name in ("part", "whole"))
FIGURES

def charts(name):
    st.title(f"{name} {part} {whole}")
    for number, figure in enumerate(figures()):
        figure.update_layout(title=f"{name} {whole}" + (f" {part}" if number == 0 else ""))
        st.plotly_chart(figure, key=f"{name}{number}")

def one():
    charts("one")

def two():
    charts("two")

start = st.Page(lambda: charts("start"), title="start", url_path="start", default=True)
st.navigation([start, st.Page(one, url_path="one"), st.Page(two, url_path="two")]).run()
"""
"""The first page stands at the address without a name alone, so neither of the two that are measured is the first."""

BARE = PAGE.replace(
    "FIGURES",
    """
def figures():
    return [go.Figure(go.Scatter(x=list(range(200)), y=[whole * (x % 7) for x in range(200)])) for _ in range(3)]
""",
)
SAME = PAGE.replace(
    "FIGURES",
    """
def figures():
    specs = json.loads((Path(__file__).parent / "specs.json").read_text(encoding="utf-8"))
    return [go.Figure(spec).update_yaxes(range=[0, whole * 60]) for spec in specs]
""",
)
"""With the very figures of our page in place of simple lines: what is left between the two is the page's own."""


def specs_of_our_page() -> str:
    """Return the figures of the Model page as one JSON list."""
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE_MS / 1000)
    test.query_params["m"] = OUR_MODEL
    test.switch_page("pages/operate/model.py").run()
    parts = [json.loads(part.proto.json) for part in test.get("bidi_component")]
    return json.dumps([{"data": json.loads(part["traces"]), "layout": part["layout"]} for part in parts if "traces" in part])


GO = "address => { history.pushState({}, '', address); window.dispatchEvent(new PopStateEvent('popstate', { state: {} })) }"

DRAWN = """names => names.every(name => {
  const plot = document.querySelector(`.st-key-${name} .js-plotly-plot`)
  return plot && plot.querySelector('.cartesianlayer .trace')
})"""
"""The charts of these keys stand, each with its first line."""

SAYS = """([names, text]) => names.every(name =>
  [...document.querySelectorAll(`.st-key-${name} .js-plotly-plot text`)].some(t => t.textContent.includes(text)))"""
"""Each chart of these keys has a text that holds this one."""

REACHES = """ends => Object.entries(ends).every(([name, end]) => {
  const plot = document.querySelector(`.st-key-${name} .js-plotly-plot`)
  return plot && plot._fullLayout && Math.abs(plot._fullLayout.yaxis.range[1] - end) < 0.01
})"""
"""The axis y of each chart of these keys is drawn up to this end."""


@dataclass(frozen=True)
class App(ABC):
    """A page with charts, another page to come from, and what filters the first one's charts."""

    url: str
    page: str
    other: str
    charts: tuple[str, ...]
    query: str = ""

    def first(self, page: Page) -> None:
        page.goto(f"{self.url}/{self.page}?{self.query}")
        self.stands(page)

    def stands(self, page: Page) -> None:
        page.wait_for_function(DRAWN, arg=list(self.charts), timeout=PATIENCE_MS)

    def away(self, page: Page) -> None:
        page.evaluate(GO, f"/{self.other}")
        page.wait_for_function(f"document.title.toLowerCase().startsWith('{self.other}')", timeout=PATIENCE_MS)
        rest(page)

    def go(self, page: Page) -> None:
        page.evaluate(GO, f"/{self.page}?{self.query}")

    @abstractmethod
    def filter_one(self, page: Page, place: int) -> None:
        """Ask for what changes one chart, and wait until it shows it; ``place`` makes each time another."""

    @abstractmethod
    def filter_all(self, page: Page, place: int) -> None:
        """Ask for what changes all charts, and wait until they show it."""


class Ours(App):
    """The Model page, the Workers page beside it; the size asked for, and the ceiling."""

    def filter_one(self, page: Page, place: int) -> None:
        page.evaluate(GO, f"/model?{self.query}&size={100 + place}")
        page.wait_for_function(SAYS, arg=[["model-sizes"], f"asked {100 + place}"], timeout=PATIENCE_MS)

    def filter_all(self, page: Page, place: int) -> None:
        ceiling = 4000 - 8 * place
        ends = {"model-curve": ceiling * ROOM_ABOVE, "model-sizes": ceiling * 1.12, "model-trend": ceiling * 1.12}
        page.evaluate(GO, f"/model?{self.query}&ceiling={ceiling}")
        page.wait_for_function(REACHES, arg=ends, timeout=PATIENCE_MS)


class Bare(App):
    """The bare app of two pages with as many charts."""

    def filter_one(self, page: Page, place: int) -> None:
        page.evaluate(GO, f"/one?part={100 + place}")
        page.wait_for_function(SAYS, arg=[["one0"], f"one 80 {100 + place}"], timeout=PATIENCE_MS)

    def filter_all(self, page: Page, place: int) -> None:
        page.evaluate(GO, f"/one?whole={100 + place}")
        page.wait_for_function(SAYS, arg=[list(self.charts), f"one {100 + place}"], timeout=PATIENCE_MS)


def p95(values: list[float]) -> float:
    """Return the 95th percentile, the largest but for one in twenty."""
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def rest(page: Page) -> None:
    """Wait until a page's script has ended, and the browser has drawn what came of it."""
    page.wait_for_selector(IDLE, timeout=PATIENCE_MS)
    page.wait_for_timeout(SETTLED_MS)


def acts(page: Page, app: App, place: int) -> dict[str, float]:
    """Return the seconds of each act, one after the other in one tab."""
    found = {}
    began = time.perf_counter()
    app.first(page)
    found["first charts"] = time.perf_counter() - began
    rest(page)
    app.away(page)
    began = time.perf_counter()
    app.go(page)
    app.stands(page)
    found["page switch"] = time.perf_counter() - began
    rest(page)
    began = time.perf_counter()
    app.filter_one(page, place)
    found["filter, 1 chart"] = time.perf_counter() - began
    rest(page)
    began = time.perf_counter()
    app.filter_all(page, place)
    found[f"filter, {len(app.charts)} charts"] = time.perf_counter() - began
    rest(page)
    return found


def measured(browser: Browser, apps: Sequence[App], times: int) -> list[dict[str, list[float]]]:
    """Return each app's seconds of each act, the apps in turn; a new page has a profile that has seen the app before."""
    pages = [browser.new_context(viewport={"width": 1280, "height": 720}).new_page() for _ in apps]
    found: list[dict[str, list[float]]] = [{} for _ in apps]
    for place in range(-1, times):
        for app, page, values in zip(apps, pages, found, strict=True):
            for what, seconds in acts(page, app, place).items():
                if place >= 0:  # the first time reads Streamlit's own files and fills the caches
                    values.setdefault(what, []).append(seconds)
    for page in pages:
        page.context.close()
    return found


def ten_viewers(browser: Browser, app: App) -> list[float]:
    """Return the seconds of a switch while ten viewers switch: all stand still, are sent on their way, then waited for."""
    contexts = [browser.new_context(viewport={"width": 1280, "height": 720}) for _ in range(VIEWERS)]
    pages = [context.new_page() for context in contexts]
    for page in pages:
        app.first(page)
        rest(page)
        app.away(page)
    began = time.perf_counter()
    for page in pages:
        app.go(page)
    found = []
    for page in pages:
        app.stands(page)
        found.append(time.perf_counter() - began)
    for context in contexts:
        context.close()
    return found


def main() -> None:
    """Print the p95 and the median of each, ours and the bare page's, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=TIMES, help="how often each is measured, twice at least")
    times = max(2, parser.parse_args().times)
    charts = ("model-curve", "model-sizes", "model-trend")
    print(f"p95 (median) of {times} on the demo, against a bare Streamlit page with {len(charts)} charts")
    print(f"target: a ratio of at most {TARGET:g}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the start")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        scripts = {"bare": BARE, "same": SAME}
        for script, text in scripts.items():
            (Path(name) / f"{script}.py").write_text(text, encoding="utf-8")
        (Path(name) / "specs.json").write_text(specs_of_our_page(), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with ExitStack() as servers:
            plain = ("one0", "one1", "one2")
            apps: list[App] = [Ours(servers.enter_context(served(ROOT / "app.py")), "model", "workers", charts, MODEL)]
            apps += [Bare(servers.enter_context(served(Path(name) / f"{script}.py")), "one", "two", plain) for script in scripts]
            told(measured(browser, apps, times))
            told([{f"{VIEWERS} viewers": ten_viewers(browser, app)} for app in apps])
        browser.close()
    print(f"load {os.getloadavg()[0]:.1f} at the end")


def told(found: Sequence[dict[str, list[float]]]) -> None:
    """Print ours beside the bare page's and the bare page's with our figures, as soon as all are known."""
    for whats in zip(*found, strict=True):
        ours, bare, same = (values[what] for values, what in zip(found, whats, strict=True))
        shown = [
            f"{name} {p95(v):5.2f} s ({statistics.median(v):.2f})" for name, v in zip(NAMES, (ours, bare, same), strict=True)
        ]
        ratios = [f"{p95(ours) / p95(v):.2f} ({statistics.median(ours) / statistics.median(v):.2f})" for v in (bare, same)]
        print(f"  {whats[0]:16} {'   '.join(shown)}   ratio {'   '.join(ratios)}", flush=True)


if __name__ == "__main__":
    main()
