"""A field for a number that is cleared holds nothing: it is told, and what it held stays."""

import ast
from collections.abc import Callable

import pytest

from tests.pages.conftest import ROOT, App

NewApp = Callable[[], App]


@pytest.mark.parametrize(
    ("page", "key"),
    [
        ("replay", "replay.copies"),
        ("sweep", "sweep.copies"),
        ("budget", "budget.alike"),
        ("decisions", "decisions.what-if-floor"),
        ("waits", "waits.over"),
    ],
)
def test_a_field_that_is_cleared_stays_and_is_told(app: NewApp, page: str, key: str) -> None:
    shown = app().open(page)
    before, address = shown.test.number_input(key=key).value, shown.address
    assert before is not None
    shown.test.number_input(key=key).set_value(None).run()
    shown.assert_well()
    assert "stays as it is" in shown.warnings[0]
    assert (shown.test.number_input(key=key).value, shown.address) == (before, address)


@pytest.mark.parametrize(
    ("page", "key", "form"),
    [
        ("replay", "replay.fill.anonymous", "replay.fill.form"),
        ("replay", "replay.B.return_times", None),
        ("budget", "budget.pace", "budget.assumptions"),
    ],
)
def test_a_form_with_a_field_that_is_cleared_changes_nothing(app: NewApp, page: str, key: str, form: str | None) -> None:
    shown = app().open(page)
    before, address = shown.test.number_input(key=key).value, shown.address
    shown.test.number_input(key=key).set_value(None)
    names = [str(button.key) for button in shown.test.button if "Apply" in str(button.key)]
    chosen = next(name for name in names if (form or key.rsplit(".", 1)[0]) in name)
    shown.test.button(key=chosen).click().run()
    shown.assert_well()
    assert "left empty" in shown.warnings[0]
    assert (shown.test.number_input(key=key).value, shown.address) == (before, address)


def test_no_page_shows_a_number_field_of_another_kind() -> None:
    for path in [*(ROOT / "horde_policy" / "ui").glob("*.py"), *(ROOT / "pages").rglob("*.py")]:
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        named = {node.func.attr for node in calls if isinstance(node.func, ast.Attribute)}
        # the job's time limit may be none, so its field is empty by right
        assert "number_input" not in named or path.name in {"fields.py", "replay_settings.py"}, path
