"""A secrets file that cannot be read is told on the page, without its content, and costs no source."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit import config

from tests.pages.conftest import App

NewApp = Callable[[], App]


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only secrets file of the deployment, not written yet."""
    file = tmp_path / ".streamlit" / "secrets.toml"
    file.parent.mkdir()
    get_option = config.get_option
    monkeypatch.setattr(config, "get_option", lambda name: [str(file)] if name == "secrets.files" else get_option(name))
    return file


def told(app: NewApp) -> list[str]:
    shown = app().open("overview", source="demo")
    shown.assert_well()
    assert shown.has_part("overview.board")
    return [text.replace("\\", "").replace("\u2060", "") for text in shown.warnings]


def test_a_file_that_is_no_toml(app: NewApp, secrets: Path) -> None:
    assert told(app) == []
    secrets.write_text("this is = not toml ][ hunter2", encoding="utf-8")
    (warning,) = told(app)
    assert warning.startswith("secrets file .streamlit/secrets.toml is not TOML: at line 1")
    assert warning.endswith("nothing of it is in force: no address, no sign-in")
    assert "hunter2" not in warning
