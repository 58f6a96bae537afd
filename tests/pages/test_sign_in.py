"""Where a sign-in is configured, nothing of any page is drawn or asked before somebody has signed in."""

from collections.abc import Callable
from typing import Any

import pytest
import streamlit as st

from horde_policy.ui import live, sign_in
from tests.pages.conftest import App

NewApp = Callable[[], App]


@pytest.fixture
def asks_for_sign_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], None]:
    """A deployment with a section ``auth``, and whoever is there."""

    def there_is(user: dict[str, Any]) -> None:
        monkeypatch.setattr(sign_in, "sign_in_configured", lambda: True)
        monkeypatch.setattr(st, "user", user)

    return there_is


@pytest.mark.parametrize("page", ["overview", "model", "guide"])
def test_a_link_to_any_page_ends_at_the_sign_in(
    app: NewApp, asks_for_sign_in: Callable[[dict[str, Any]], None], page: str
) -> None:
    asks_for_sign_in({"is_logged_in": False})
    shown = app().open(page, m="koboldcpp/Fernery-24B-v1.1")
    shown.assert_well()
    assert shown.title == "Please sign in"
    assert [button.key for button in shown.test.button] == ["shared.sign_in"]
    assert not shown.test.get("bidi_component")
    assert not shown.test.get("page_link")
    assert list(live.pollers().started()) == []


def test_who_has_signed_in_sees_the_page_and_can_sign_out(
    app: NewApp, asks_for_sign_in: Callable[[dict[str, Any]], None]
) -> None:
    asks_for_sign_in({"is_logged_in": True, "name": "![x](http://192.0.2.1/p.png)"})
    shown = app().open("overview")
    shown.assert_well()
    assert shown.has_part("overview.board")
    assert "shared.sign_out" in {button.key for button in shown.test.button}
    captions = [str(caption.value) for caption in shown.test.caption]
    assert not any("![x](" in caption for caption in captions), "a name is text"


def test_without_a_section_nobody_has_to_sign_in(app: NewApp) -> None:
    assert not sign_in.sign_in_configured()
    shown = app().open("overview")
    assert "shared.sign_in" not in {button.key for button in shown.test.button}
