"""The house's one direction (design §2): a module imports only from its left, Streamlit stays in the surface."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "horde_policy"

LEAVES = {"errors", "units", "clock", "settings"}
MIDDLE = {"policy", "sources", "imports"}
JUDGING = {"board", "history", "review", "replay", "budget"}

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "units": set(),
    "clock": {"errors", "units"},
    "settings": {"errors", "units", "clock"},
    "frames": LEAVES,
    **{part: LEAVES | {"frames"} for part in MIDDLE},
    "board": LEAVES | {"frames", "policy", "imports"},
    "history": LEAVES | {"frames", "policy", "imports", "sources", "board"},
    "review": LEAVES | {"frames", "policy", "imports"},
    "replay": LEAVES | {"frames", "policy", "imports"},
    "budget": LEAVES | {"frames", "policy", "imports"},
    "sweep": LEAVES | {"frames", "policy", "imports"} | JUDGING,
    "views": LEAVES | {"frames", "policy", "imports", "sweep"} | JUDGING,
    "ui": LEAVES | MIDDLE | JUDGING | {"frames", "sweep", "views"},
    "cli": LEAVES | MIDDLE | JUDGING | {"frames", "sweep", "views"},
    "__main__": {"cli"},
}
MAY_IMPORT_ALSO = {"horde_policy.board.probe": {"sources"}}
ONLY_IN: dict[str, set[str]] = {
    "streamlit": {"ui"},
    "plotly": {"views", "ui"},
    "typer": {"cli"},
    "httpx": {"sources", "history"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imported_modules(path: Path) -> frozenset[str]:
    return frozenset(_imported(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_module_imports_only_from_its_left(path: Path) -> None:
    name = name_of(path)
    if name == "horde_policy":
        return
    part = name.split(".")[1]
    allowed = MAY_IMPORT[part] | {part} | MAY_IMPORT_ALSO.get(name, set())
    reached = {m.split(".")[1] for m in imported_modules(path) if m.startswith("horde_policy.")} - {"__version__"}
    assert reached <= allowed, f"{name} imports {sorted(reached - allowed)}, which stand to its right"


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_a_surface_library_stays_in_its_part(library: str) -> None:
    users = {
        name_of(path) for path in modules() if any(m == library or m.startswith(library + ".") for m in imported_modules(path))
    }
    astray = {name for name in users if name.split(".")[1] not in ONLY_IN[library]}
    assert not astray, f"{library} is imported by {sorted(astray)}"


def test_no_start_waits_for_parts_of_scipy() -> None:
    # They take as long to import as all the rest; ``import scipy`` brings each when it is first used.
    early = {name_of(path) for path in modules() if any(name.startswith("scipy.") for name in imported_modules(path))}
    assert early == set()


def test_every_part_of_the_package_has_its_place() -> None:
    parts = {name_of(path).split(".")[1] for path in modules() if name_of(path) != "horde_policy"}
    assert parts <= set(MAY_IMPORT), f"{sorted(parts - set(MAY_IMPORT))} are not on the list of design §2"
