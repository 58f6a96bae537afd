"""A heading of a part of a page: text whatever it holds, one look and one form on every page (decision 0201)."""

import ast
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.make_hostile import MODEL_NAMES

UI = Path(__file__).parents[2] / "horde_policy" / "ui"


def headed() -> None:
    import streamlit as st

    from horde_policy.ui.headings import show_heading

    show_heading(st.session_state["words"], level=3)


@pytest.mark.parametrize("words", [*MODEL_NAMES, "a & b < c", "<script>alert(1)</script>", "# **no** [Markdown](x)"])
def test_a_heading_is_text_whatever_it_holds(words: str) -> None:
    test = AppTest.from_function(headed)
    test.session_state["words"] = words
    test.run()
    assert not test.exception
    body = str(test.get("html")[0].proto.body)
    inner = body.removeprefix("<h3>").removesuffix("</h3>")
    assert body == f"<h3>{inner}</h3>"
    assert "<" not in inner
    assert ">" not in inner


def test_streamlits_own_heading_stands_only_where_it_does_more() -> None:
    plain = []
    for path in UI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("header", "subheader"):
                given = {word.arg: ast.unparse(word.value) for word in node.keywords}
                if given.get("anchor", "False") == "False" and "help" not in given:
                    plain.append(f"{path.name}:{node.lineno}")
    assert plain == []
