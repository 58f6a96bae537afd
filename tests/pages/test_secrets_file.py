"""A secrets file that cannot be read may ask for a sign-in: nothing of any page is shown, and nothing of the file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit import config

from horde_policy.ui import live
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


def closed(app: NewApp, page: str) -> str:
    """Return what a page says that shows nothing else."""
    shown = app().open(page, source="demo")
    shown.assert_well()
    assert shown.title == "Whether to sign in cannot be read"
    assert not shown.test.get("bidi_component")
    assert not shown.test.get("page_link")
    assert not shown.test.button
    assert list(live.pollers().started()) == [], "no source is asked"
    (error,) = shown.test.error
    return str(error.value).replace("\\", "").replace("\u2060", "")


@pytest.mark.parametrize("page", ["overview", "budget"])
def test_a_file_that_is_no_toml_shows_nothing_of_any_page(app: NewApp, secrets: Path, page: str) -> None:
    secrets.write_text("this is = not toml ][ hunter2", encoding="utf-8")
    error = closed(app, page)
    assert error.startswith("secrets file .streamlit/secrets.toml is not TOML: at line 1")
    assert "hunter2" not in error


@pytest.mark.parametrize("forbidden", ["is_file", "read_text"])
def test_a_file_that_may_not_be_read_shows_nothing_either(
    app: NewApp, secrets: Path, monkeypatch: pytest.MonkeyPatch, forbidden: str
) -> None:
    secrets.write_text("", encoding="utf-8")
    plain = getattr(Path, forbidden)

    def refused(self: Path, *args: object, **given: object) -> object:
        if self == secrets:
            raise PermissionError(13, "Permission denied")
        return plain(self, *args, **given)

    monkeypatch.setattr(Path, forbidden, refused)
    assert "cannot be read: Permission denied" in closed(app, "overview")


def test_without_a_file_the_page_is_shown(app: NewApp, secrets: Path) -> None:
    assert not secrets.exists()
    shown = app().open("overview", source="demo")
    shown.assert_well()
    assert shown.has_part("overview.board")
    assert shown.warnings == []
