"""A field for a number that is cleared holds nothing: it is told, and what it held stays."""

import ast
import re
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1.element_tree import Block, Selectbox

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


def type_into(shown: App, key: str, typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    box, of_options = shown.test.selectbox(key=key), Selectbox._widget_state

    def as_typed(other: Selectbox[object]) -> WidgetState:
        # a test sends options only; a browser sends the text that stands there
        return WidgetState(id=other.id, string_value=typed) if other.id == box.id else of_options.fget(other)  # type: ignore[attr-defined]

    with monkeypatch.context() as patched:
        patched.setattr(Selectbox, "_widget_state", property(as_typed))
        shown.test.run()
    shown.assert_well()


def plain(text: str) -> str:
    return text.replace("\\", "").replace("\N{WORD JOINER}", "")


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
    before, address = shown.test.selectbox(key=key).value, shown.address
    type_into(shown, key, typed, monkeypatch)
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


@pytest.mark.parametrize(
    ("page", "key", "typed", "told"),
    [
        ("overview", "shared.size", "80.5", "The size stays at 80: '80.5' must be a whole number from 16 to 16384."),
        ("replay", "replay.hours", "noon", "The range stays: 'noon' must be hours from and to, as 24-48, or all."),
        ("budget", "budget.reserve", "much", "The reservation stays: 'much' must be a whole number from 0 to 1000000."),
        (
            "week", "review.range", "x",
            "The range stays: 'x' must be a day as 2026-11-23, two instants as 2026-11-23 00:00 to 2026-11-24 12:00 (UTC), or "
            "all.",
        ),
    ],
)  # fmt: skip
def test_a_field_that_refuses_says_its_name_once(
    app: NewApp, page: str, key: str, typed: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = app().open(page)
    before = shown.address
    type_into(shown, key, typed, monkeypatch)
    assert plain(shown.warnings[0]) == told
    assert shown.address == before


def test_no_page_says_the_name_of_a_refused_field_twice() -> None:
    """``What stays: {error}`` begins with what the error is about: that is for forms, which say which of their fields it was."""
    forms = ("The assumptions stay", "The fill rule stays", "The settings of {letter} stay")
    for path in [*(ROOT / "horde_policy" / "ui").glob("*.py"), *(ROOT / "pages").rglob("*.py")]:
        said = re.findall(r'"([^"]*\bstays?\b[^"]*): \{error\}', path.read_text(encoding="utf-8"))
        assert set(said) <= set(forms), path


REFUSED = [
    ("replay", "replay.copies", None, "popover"),
    ("replay", "replay.segment", None, "popover"),
    ("replay", "replay.fill.anonymous", "replay.fill.form-Apply", "form"),
    ("replay", "replay.B.return_times", "replay.B.form-Apply", "form"),
    ("replay", "shared.floor_tokens", "shared.settings-Apply", "form"),
    ("budget", "budget.pace", "budget.assumptions-Apply", "form"),
    ("budget", "budget.alike", None, "column"),
    ("sweep", "sweep.copies", None, "expander"),
]


@pytest.mark.parametrize(("page", "key", "button", "part"), REFUSED)
def test_what_a_number_field_does_not_take_is_said_in_its_part_of_the_page(
    app: NewApp, page: str, key: str, button: str | None, part: str
) -> None:
    shown = app().open(page)
    shown.test.number_input(key=key).set_value(None)
    (shown.test.run if button is None else shown.test.button(key=f"FormSubmitter:{button}").click().run)()
    shown.assert_well()
    assert [held for held in parts(shown, part) if key in keys(held) and kinds(held) & {"warning"}], "said beside the field"
    assert len([text for text in shown.warnings if "nothing was typed" in text or "left empty" in text]) == 1


@pytest.mark.parametrize(
    ("page", "key", "typed", "below"),
    [
        ("replay", "replay.hours", "noon", "replay.edited"),
        ("budget", "budget.reserve", "much", "budget.body"),
        ("budget", "budget.limit", "much", "budget.body"),
        ("sweep", "sweep.first", "the best", "sweep.x"),
    ],
)
def test_what_a_chooser_does_not_take_is_said_below_its_row(
    app: NewApp, page: str, key: str, typed: str, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = app().open(page)
    if key == "budget.limit":
        shown.test.text_input(key=key).set_value(typed).run()
    else:
        type_into(shown, key, typed, monkeypatch)
    said = [element.type if element.type == "warning" else str(getattr(element, "key", "")) for element in shown.test.main]
    assert said.index(key) < said.index("warning") < said.index(below)


@pytest.mark.parametrize("page", ["overview", "model", "replay", "sweep", "budget", "decisions"])
def test_each_run_sets_what_stands_in_a_popover(app: NewApp, page: str) -> None:
    """The browser builds it when it is opened, from the run before: what that did not set stood empty, or at its first option."""
    shown = app().open(page)
    shown.test.run()
    held = [widget for popover in parts(shown, "popover") for widget in under(popover) if hasattr(widget.proto, "set_value")]
    assert held
    assert [widget.key for widget in held if not widget.proto.set_value] == []


def under(block: Any) -> list[Any]:
    return [part for child in block.children.values() for part in ([child] if not isinstance(child, Block) else under(child))]


def parts(shown: App, kind: str) -> list[Any]:
    """Return the blocks of a kind on the page, however deep."""

    def within(block: Any) -> list[Any]:
        blocks = [child for child in block.children.values() if isinstance(child, Block)]
        return [part for child in blocks for part in ([child] if child.type == kind else []) + within(child)]

    return within(shown.test.main)


def keys(block: Any) -> set[str]:
    return {str(getattr(element, "key", "")) for element in under(block)}


def kinds(block: Any) -> set[str]:
    return {element.type for element in under(block)}
