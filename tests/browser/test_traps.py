"""The traps of Streamlit that were measured (T1 to T9), as far as they need a browser to be seen."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import ROOT, App, Viewer, free_port, own_environment, start_app, wait_until_up

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


def test_without_a_first_run_the_same_link_would_open_under_page_not_found(tmp_path: Path, view: View) -> None:
    # T2. When this fails Streamlit has mended it, and tools/serve.py is no longer needed.
    app = start_app(tmp_path / "log", warm=False)
    try:
        assert "Page not found" in "".join(dialogs(view(app).open("model")))
    finally:
        app.stop()


@pytest.fixture
def selection(tmp_path: Path) -> Iterator[App]:
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "tests/browser/scripts/selection.py", "--server.port", str(port)]
    with (tmp_path / "log").open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=own_environment(), stdout=out, stderr=out, start_new_session=True)
    app = App(f"http://127.0.0.1:{port}", process, tmp_path / "log")
    wait_until_up(app, "health")
    yield app
    app.stop()


def test_a_selection_follows_its_row_and_goes_with_it(selection: App, view: View) -> None:
    # T4: Streamlit keeps the place that was selected, whatever row stands there now.
    tab = view(selection).open("")
    page = tab.page
    page.wait_for_selector('[data-testid="stDataFrame"] canvas')
    tab.settled()
    box = page.locator('[data-testid="stDataFrame"]').bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 15, box["y"] + 52)
    page.wait_for_selector("text=selected: alpha")
    for order, selected in (("turned", "alpha"), ("first", "alpha"), ("gone", "None"), ("first", "None")):
        page.get_by_text(order, exact=True).click()
        page.wait_for_timeout(300)
        tab.settled()
        page.wait_for_selector(f"text=selected: {selected}")
