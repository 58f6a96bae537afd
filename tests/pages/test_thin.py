"""The surface stays thin: pages read like a table of contents, the shell holds all of them, wrappers ask for what they need."""

import ast
from pathlib import Path

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from horde_policy.ui.charts import show_figure
from horde_policy.ui.tables import show_grid
from tests.pages.conftest import FILES, ROOT, figures_of

PAGE_FILES = sorted((ROOT / "pages").rglob("*.py"))


def test_no_page_file_stands_directly_in_pages() -> None:
    # T1: Streamlit runs such a file by itself, past the shell.
    assert list((ROOT / "pages").glob("*.py")) == []
    assert PAGE_FILES


@pytest.mark.parametrize("path", PAGE_FILES, ids=lambda path: path.stem)
def test_a_page_holds_no_logic(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert len(source.splitlines()) <= 100
    assert ast.get_docstring(tree)
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Try | ast.While | ast.For | ast.FunctionDef | ast.Lambda), ast.unparse(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
            assert not any(name.split(".")[0] in ("polars", "plotly", "httpx", "os") for name in names)
    for word in ("unsafe_allow", "st.html", "st.query_params", "st.session_state", "set_page_config"):
        assert word not in source


def test_the_entry_is_short_and_lists_every_page() -> None:
    source = (ROOT / "app.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 110
    for path in PAGE_FILES:
        assert f'"{path.name}"' in source
    assert len(PAGE_FILES) == len(FILES)


def test_a_figure_or_a_table_without_its_sentence_is_refused() -> None:
    with pytest.raises(ValueError, match="alt"):
        show_figure(go.Figure(), alt=" ", key="x")
    with pytest.raises(ValueError, match="alt"):
        show_grid([], [], alt="", key="x")


def test_two_figures_without_anything_in_them_stand_side_by_side() -> None:
    # T9 and 7.2: equal figures need their keys, and an empty one must be a figure.
    def script() -> None:
        import plotly.graph_objects as go

        from horde_policy.ui.charts import show_figure

        show_figure(go.Figure(), alt="nothing", key="a")
        show_figure(go.Figure(), alt="nothing", key="b")

    test = AppTest.from_function(script).run()
    assert not test.exception
    assert len(figures_of(test)) == 2
