"""The pages of the app's navigation, read from ``app.py`` without running it, so that tests of all pages find new ones."""

import ast
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class NavigationPage:
    """One page: its name in the address, its title, and its file below the repository."""

    url: str
    title: str
    file: str


def pages_of_the_app() -> list[NavigationPage]:
    """Return the pages in the navigation's order."""
    found: list[NavigationPage] = []
    for node in ast.walk(ast.parse((ROOT / "app.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("PageEntry"):
            parts = [str(part.value) for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)]
            # the tree of a / b / c holds the last part first
            path = "/".join(["pages", *sorted(parts, key=lambda part: part.endswith(".py"))])
            found.append(NavigationPage(str(ast.literal_eval(node.args[1])), str(ast.literal_eval(node.args[2])), path))
    return found
