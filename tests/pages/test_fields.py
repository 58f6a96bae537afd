"""A field for a number that is cleared holds nothing: it is told, and what it held stays."""

import ast
from collections.abc import Callable

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1.element_tree import Selectbox

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


@pytest.mark.parametrize(
    ("page", "key", "typed"),
    [
        ("overview", "shared.size", " 80 "),
        ("replay", "replay.hours", " 24 - 48"),
        ("budget", "budget.reserve", "04,096"),
        ("week", "review.range", " all "),
    ],
)
def test_what_is_typed_and_stands_there_already_is_written_as_it_is_understood(
    app: NewApp, page: str, key: str, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = app().open(page)
    box = shown.test.selectbox(key=key)
    before, address, of_options = box.value, shown.address, Selectbox._widget_state

    def as_typed(other: Selectbox[object]) -> WidgetState:
        # a test sends options only; a browser sends the text that stands there
        return WidgetState(id=other.id, string_value=typed) if other.id == box.id else of_options.fget(other)  # type: ignore[attr-defined]

    with monkeypatch.context() as patched:
        patched.setattr(Selectbox, "_widget_state", property(as_typed))
        shown.test.run()
    shown.assert_well()
    assert (shown.test.selectbox(key=key).value, shown.address) == (before, address)
    assert shown.warnings == []


def test_a_sentence_typed_again_stands_there_once(app: NewApp) -> None:
    shown = app().open("sweep")
    held = list(shown.test.multiselect(key="sweep.must").value)
    shown.test.multiselect(key="sweep.must").set_value([*held, "P90 wait of registered at most 110% of baseline"]).run()
    shown.assert_well()
    assert shown.test.multiselect(key="sweep.must").value == held


def test_every_chooser_that_takes_typed_text_writes_what_it_understood() -> None:
    taking = [
        path for path in (ROOT / "horde_policy" / "ui").glob("*.py") if "accept_new_options=True" in path.read_text("utf-8")
    ]
    assert len(taking) >= 5
    assert [path.name for path in taking if "settle(" not in path.read_text("utf-8")] == []
