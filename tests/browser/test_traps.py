"""The traps of Streamlit that were measured (T1 to T9), as far as they need a browser to be seen."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import App, Viewer, start_app

pytestmark = pytest.mark.browser

View = Callable[..., Viewer]


def dialogs(tab: Viewer) -> list[str]:
    tab.page.wait_for_selector("h1")
    tab.settled().page.wait_for_timeout(300)
    return tab.page.get_by_role("dialog").all_inner_texts()


def test_a_link_into_a_fresh_app_opens_its_page_inside_the_shell(new_app: Callable[..., App], view: View) -> None:
    tab = view(new_app()).open("model", m="koboldcpp/Fernery-24B-v1.1")
    assert dialogs(tab) == []
    assert tab.page.locator("h1").inner_text().startswith("A request for 80 tokens is free")
    for role, name in (("link", "Overview"), ("combobox", "Source")):
        part = tab.page.get_by_role(role, name=name)  # type: ignore[arg-type]
        part.first.wait_for()
        assert part.count() == 1


def test_a_tab_that_is_open_while_the_app_starts_finds_its_page(tmp_path: Path, view: View) -> None:
    app = start_app(tmp_path / "log", at_once=True)
    try:
        assert dialogs(view(app).open("week")) == []
    finally:
        app.stop()


@pytest.mark.soak
def test_without_a_first_run_the_same_link_would_open_under_page_not_found(tmp_path: Path, view: View) -> None:
    # T2. When this fails Streamlit has mended it, and tools/serve.py is no longer needed.
    app = start_app(tmp_path / "log", warm=False)
    try:
        assert "Page not found" in "".join(dialogs(view(app).open("model")))
    finally:
        app.stop()


def test_no_page_that_frames_the_dashboard_may_command_it(demo: App) -> None:
    with urllib.request.urlopen(f"{demo.url}/_stcore/host-config", timeout=60) as answer:
        told = json.load(answer)
    assert (told["allowedOrigins"], told["enableCustomParentMessages"], told["useExternalAuthToken"]) == ([], False, False)
