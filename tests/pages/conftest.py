import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]
PAGES = {"overview": "pages/operate/overview.py", "model": "pages/operate/model.py"}
OWN_SETTINGS = ("HORDE_URL", "HORDE_POLICY_RECORDED", "HORDE_POLICY_CONTACT", "HORDE_TEXT_FREE_OUTPUT_FLOOR")


class App:
    """One viewer of the app in a test: opens pages with an address, reads what they show."""

    def __init__(self) -> None:
        self.test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)

    def open(self, page: str = "overview", **query: str | list[str]) -> "App":
        self.test.query_params.clear()
        for name, value in query.items():
            self.test.query_params[name] = value
        if page == "overview":
            self.test.run()
        else:
            self.test.run()
            for name, value in query.items():
                self.test.query_params[name] = value
            self.test.switch_page(PAGES[page]).run()
        return self

    def part(self, key: str) -> dict[str, Any]:
        """Return what a part of the page was given, by its key."""
        for element in self.test.get("bidi_component"):
            if key in element.proto.id:
                data: dict[str, Any] = json.loads(element.proto.json)
                return data
        raise AssertionError(f"no part {key}")

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
        return str(self.test.title[0].value)

    @property
    def warnings(self) -> list[str]:
        return [str(w.value) for w in self.test.warning]

    def assert_well(self) -> None:
        assert not self.test.exception, [e.message for e in self.test.exception]


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test starts without caches, pollers and settings of another."""
    for name in OWN_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    st.cache_data.clear()
    st.cache_resource.clear()
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
