import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Header

from horde_policy.clock import SystemClock
from horde_policy.history.store import HistoryStore
from horde_policy.sources.catalogue import configured_sources
from horde_policy.ui import charts

ROOT = Path(__file__).parents[2]
PAGES = {name: f"pages/operate/{name}.py" for name in ("overview", "model", "workers", "sources")}
"""The pages that show a source with its status; the tests of every state of a source take each."""

REVIEW_PAGES = {name: f"pages/review/{name}.py" for name in ("week", "decisions", "waits")}
FILES = (
    PAGES
    | REVIEW_PAGES
    | {
        "replay": "pages/lab/replay.py",
        "guide": "pages/learn/guide.py",
        "budget": "pages/lab/budget.py",
        "sweep": "pages/lab/sweep.py",
    }
)
OWN_SETTINGS = (
    "HORDE_POLICY_EXPORTS",
    "HORDE_POLICY_PROMETHEUS_URL",
    "HORDE_POLICY_PROMETHEUS_TENANT",
    "HORDE_POLICY_PROMETHEUS_TOKEN",
    "HORDE_POLICY_HISTORY",
    "HORDE_POLICY_ANNOTATIONS",
    "HORDE_URL",
    "HORDE_POLICY_RECORDED",
    "HORDE_POLICY_SWEEPS",
    "HORDE_POLICY_CONTACT",
    "HORDE_TEXT_FREE_OUTPUT_FLOOR",
    "HORDE_POLICY_LEDGER",
)


@dataclass(frozen=True)
class Figure:
    """A figure as its page's part was given it."""

    id: str
    given: dict[str, Any]

    @property
    def spec(self) -> dict[str, Any]:
        """As Plotly has it."""
        return {"data": json.loads(self.given["traces"]), "layout": self.given["layout"]}

    @property
    def text(self) -> str:
        """Its specification as a text, for what may or may not stand in it."""
        return json.dumps(self.spec, ensure_ascii=False)


def figures_of(test: AppTest) -> list[Figure]:
    parts = (element.proto for element in test.get("bidi_component"))
    return [Figure(part.id, json.loads(part.json)) for part in parts if part.component_name == "horde_policy.figure"]


class App:
    """One viewer of the app in a test: opens pages with an address, reads what they show."""

    def __init__(self) -> None:
        self.test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)

    def open(self, page: str = "overview", **query: str | list[str]) -> "App":
        if page != "overview":
            self.test.switch_page(FILES[page])
        self.test.query_params.clear()
        for name, value in query.items():
            self.test.query_params[name] = value
        self.test.run()
        return self

    @property
    def address(self) -> dict[str, list[str]]:
        """The query string, name → values in order; AppTest itself gives a value alone, or in a list."""
        given = dict(self.test.query_params)
        return {name: [values] if isinstance(values, str) else list(values) for name, values in given.items()}

    def part(self, key: str) -> dict[str, Any]:
        """Return what a part of the page was given, by its key."""
        for element in self.test.get("bidi_component"):
            if key in element.proto.id:
                data: dict[str, Any] = json.loads(element.proto.json)
                return data
        raise AssertionError(f"no part {key}")

    @property
    def navigation(self) -> dict[str, str]:
        """Page → the query of its link in the navigation."""
        sections = self.part("shared.nav")["sections"]
        return {link["page"]: link["query"] for section in sections for link in section["links"]}

    @property
    def figures(self) -> list[Figure]:
        return figures_of(self.test)

    def has_part(self, key: str) -> bool:
        return any(key in element.proto.id for element in self.test.get("bidi_component"))

    def rows(self, key: str = "overview.board") -> dict[str, dict[str, Any]]:
        """Return the rows of a table by the text of their first cell."""
        data = self.part(key)
        first = data["columns"][0]["key"]
        names = [row["cells"][first] for row in data["rows"]]
        return {n if isinstance(n, str) else n["text"]: row for n, row in zip(names, data["rows"], strict=True)}

    def state_of(self, name: str) -> str:
        """Return the state of a model on the board."""
        cell = self.rows()[name]["cells"]["state"]
        return str(cell if isinstance(cell, str) else cell["state"])

    def tiles(self, key: str = "overview.pulse") -> dict[str, dict[str, Any]]:
        return {tile["label"]: tile for tile in self.part(key)["tiles"]}

    @property
    def title(self) -> str:
        return str(self.test.title[0].value).replace("\N{NO-BREAK SPACE}", " ")

    @property
    def headings(self) -> list[str]:
        """The headings of the page's parts in their order, as words."""
        found: list[str] = []
        for element in self.test.main:
            if element.type == "html":
                found += [unescape(words) for words in re.findall(r"<h[23]>(.*)</h[23]>", str(element.proto.body))]
            elif isinstance(element, Header):
                found.append(str(element.value))
        return found

    @property
    def warnings(self) -> list[str]:
        """What is warned of: of a box with several points each by itself."""
        boxes = [str(w.value) for w in self.test.warning]
        return [point for box in boxes for point in (box[2:].split("\n- ") if box.startswith("- ") else [box])]

    def assert_well(self) -> None:
        assert not self.test.exception, [e.message for e in self.test.exception]


@pytest.fixture(autouse=True, scope="session")
def _parts_looked_for_once() -> Iterator[None]:
    """Streamlit looks through every installed package for parts of pages, once a server; in a test that is once a viewer."""
    found = manifest_scanner.scan_component_manifests()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", lambda: found)
        yield


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test starts without caches, pollers and settings of another."""
    for name in OWN_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    st.cache_data.clear()
    st.cache_resource.clear()
    charts.KEPT.clear()
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def app() -> Callable[[], App]:
    return App


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> str:
    """The key of a configured recorded folder with hostile names."""
    monkeypatch.setenv("HORDE_POLICY_RECORDED", str(ROOT / "tests" / "data" / "hostile"))
    return "recorded-hostile"


@dataclass(frozen=True)
class MadeHistory:
    """A history of the recorded snapshot: one poll each 30 min over 30 h, made up by changing it.

    A worker of 40 tok/s that carries every listed model leaves ten hours before the end; there is a gap of two hours.
    """

    store: Path
    source: str
    polls: tuple[datetime, ...]
    lost_id: str
    model: str


@pytest.fixture
def made_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeHistory:
    """A configured history of the source ``recorded-snapshot``."""
    return write_history(tmp_path / "history.db", monkeypatch)


def write_history(path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeHistory:
    source = configured_sources({}, {}, clock=SystemClock()).build("recorded-snapshot")
    now = source.load()
    model = "koboldcpp/Cydonia-24B-v4.1"
    extra = now.workers.head(1).with_columns(
        worker_id=pl.lit("extra"),
        name=pl.lit("extra [b](http://192.0.2.1/)"),
        models=pl.Series([[model]], dtype=pl.List(pl.String)),
        speed_tok_per_s=pl.lit(40.0),
        measured=pl.lit(value=True),
        online=pl.lit(value=True),
        maintenance=pl.lit(value=False),
        max_length=pl.lit(4096, pl.Int64),
        max_context_length=pl.lit(8192, pl.Int64),
    )
    store = HistoryStore(path, durable=False)
    polls = []
    for place in range(61):
        if 20 <= place < 24:
            continue
        at = now.fetched_at - timedelta(minutes=30 * (60 - place))
        workers = pl.concat([now.workers, extra.select(now.workers.columns)]) if place < 40 else now.workers
        assert now.models is not None
        queue = pl.when(pl.col("model") == model).then(0.25 * place).otherwise(1.0)
        models = now.models.with_columns(queued_tokens=pl.col("queued_tokens") * queue) if place < 60 else now.models
        polled = replace(now, fetched_at=at, part_times={}, workers=workers.sort("worker_id"), models=models)
        store.write(polled, gap_reason="the server was away" if place == 24 else None)
        polls.append(at)
    store.close()
    monkeypatch.setenv("HORDE_POLICY_HISTORY", str(path))
    return MadeHistory(path, now.source, tuple(polls), "extra", model)
