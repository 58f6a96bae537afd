"""What holds for every module and every test by its form: names that begin with ``_`` stay at home, a test can fail."""

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("horde_policy", "pages", "tests", "benchmarks", "tools")
OWN = ("horde_policy", "tests", "benchmarks")

ASSERTING = ("assert", "check", "expect")
"""A function whose name begins so says itself what must hold; what it calls is looked at by whoever reads it."""
MAYBE_BORROWED = re.compile(r"\bimport\b[^\n]*[ (]_[a-z]|^    _\w+,$|(?<!\bself)(?<!\bcls)\._[a-z]", re.MULTILINE | re.IGNORECASE)
"""Where a module may hold such a name, seen at a glance: most need not be parsed."""
PYTESTS = {"raises", "warns", "fail"}


def modules(places: Iterable[str] = PLACES) -> list[Path]:
    return [ROOT / "app.py", *(path for place in places for path in sorted((ROOT / place).rglob("*.py")))]


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def borrowed_private_names(tree: ast.AST) -> Iterator[str]:
    """Yield the private names that a module takes from another of ours, by import or as an attribute."""
    ours: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OWN:
            ours |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            yield from (f"{node.module}.{alias.name}" for alias in node.names if private(alias.name))
    for node in ast.walk(tree):
        # of a class only the named tuple's own methods begin with _, so what begins with a capital is none of our modules
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and private(node.attr):
            name = ours.get(node.value.id, "")
            if name and name.rpartition(".")[2].islower():
                yield f"{name}.{node.attr}"


def called(node: ast.AST) -> set[str]:
    calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls}


def can_fail(test: ast.AST) -> bool:
    """Return whether a test says what must hold, itself or by calling what is named so."""
    if any(isinstance(node, ast.Assert) for node in ast.walk(test)):
        return True
    return any(name in PYTESTS or name.lstrip("_").startswith(ASSERTING) for name in called(test))


def each_test(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


def test_no_module_takes_another_ones_private_name() -> None:
    texts = {path: path.read_text("utf-8") for path in modules()}
    maybe = {path: text for path, text in texts.items() if MAYBE_BORROWED.search(text)}
    found = {str(path.relative_to(ROOT)): sorted(set(borrowed_private_names(ast.parse(text)))) for path, text in maybe.items()}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_page_runs_again_by_the_one_way_that_sets_its_widgets_anew() -> None:
    found = [str(path.relative_to(ROOT)) for path in modules(["horde_policy", "pages"]) if "st.rerun(" in path.read_text("utf-8")]
    assert found == ["horde_policy/ui/address.py"]


def amounts_of_its_own(tree: ast.AST) -> Iterator[int]:
    """Yield the lines where an amount of money is put together by hand: a dollar sign before a value in an f-string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for before, value in pairwise(node.values):
                text = before.value if isinstance(before, ast.Constant) else ""
                if isinstance(value, ast.FormattedValue) and isinstance(text, str) and text.endswith("$"):
                    yield value.lineno


def test_money_is_written_in_one_place() -> None:
    """``to_usd`` is for files and machines: the two modules that write them, and where money is kept."""
    exact = {"horde_policy/budget/money.py", "horde_policy/cli/budget.py", "horde_policy/views/budget_exports.py"}
    found = []
    for path in modules(["horde_policy", "pages"]):
        text, name = path.read_text("utf-8"), str(path.relative_to(ROOT))
        if "$" in text and not name.endswith("budget/money.py"):
            found += [f"{name}:{line}" for line in amounts_of_its_own(ast.parse(text))]
        if name not in exact and re.search(r"\bto_usd\b", text):
            found.append(f"{name} to_usd")
    assert found == []


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ('f"${amount}"', True),
        ('f"holds ${amount:f} already"', True),
        (r'f"**\\${amount}**"', True),
        ('f"{money_text(amount)} held"', False),
        ('f"$ per {unit}"', False),
    ],
)
def test_amounts_put_together_by_hand_are_found(text: str, own: bool) -> None:
    assert bool(list(amounts_of_its_own(ast.parse(text)))) == own


def test_every_test_can_fail() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{test.lineno} {test.name}"
        for path in modules(["tests"])
        for test in each_test(ast.parse(path.read_text("utf-8")))
        if not can_fail(test)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from horde_policy.a import _b", ["horde_policy.a._b"]),
        ("from horde_policy.a import b, _C", ["horde_policy.a._C"]),
        ("from horde_policy.a import (\n    _b,\n    c,\n)", ["horde_policy.a._b"]),
        ("from horde_policy.ui import live\nlive._desk()", ["horde_policy.ui.live._desk"]),
        ("from horde_policy.a import b\nb.c()", []),
        ("from horde_policy.a import Pair\nPair._fields", []),
        ("from other import _b", []),
    ],
)
def test_borrowed_names_are_found(text: str, names: list[str]) -> None:
    assert not names or MAYBE_BORROWED.search(text)
    assert list(borrowed_private_names(ast.parse(text))) == names


@pytest.mark.parametrize(
    ("body", "fails"),
    [
        ("assert x", True),
        ("with pytest.raises(ValueError): f()", True),
        ("check_all(x)", True),
        ("expect(x).to_be_visible()", True),
        ("x.assert_well()", True),
        ("x.wait_for()", False),
        ("run(x)", False),
        ("pass", False),
    ],
)
def test_what_can_fail_is_told_from_what_cannot(body: str, fails: bool) -> None:
    assert can_fail(ast.parse(f"def test_x():\n    {body}")) == fails
