"""What names a replay: the code that decides its result, all of it and nothing else; the bundled sweep is of this code."""

import ast
from pathlib import Path

import pytest

import horde_policy
from horde_policy.sweep.files import read_sweep
from horde_policy.sweep.identity import DECIDING, code_of, engine_digest
from horde_policy.ui.sweep_desk import DEMO_FILE

PACKAGE = Path(horde_policy.__file__).parent
NOT_DECIDING = {
    "errors",  # the words of refusals
    "frames.input_columns", "frames.schemas", "sweep.inputs",  # reading, whose outcome is in the inputs' digest
    "replay.fleets", "policy.worker", "frames.snapshot", "frames.workers",  # the fleet as it is read and moved
    "sweep.axes", "sweep.grid",  # which settings are tried, which are in the key
    "frames.runs", "replay.run_frame",  # a run as a frame, which a sweep does not make
    "replay",  # names its parts only
}  # fmt: skip


def path_of(name: str) -> Path:
    file = PACKAGE.joinpath(*name.split(".")).with_suffix(".py")
    return file if file.is_file() else file.with_suffix("") / "__init__.py"


def imported(name: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path_of(name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("horde_policy."):
            module = (node.module or "").removeprefix("horde_policy.")
            found |= {deep if path_of(deep := f"{module}.{each.name}").is_file() else module for each in node.names}
    return found


def test_all_code_that_a_replay_of_a_sweep_runs_through_is_in_the_digest() -> None:
    reached: set[str] = set()
    ahead = {"replay.engine", "sweep.stage", "sweep.counting"}
    while ahead:
        name = ahead.pop()
        reached.add(name)
        if not name.startswith("imports."):
            ahead |= imported(name) - reached
    others = {name for name in reached if not name.startswith("imports.")}  # reading traces, as above
    assert others == set(DECIDING) | NOT_DECIDING


def test_the_bundled_sweep_was_made_by_this_engine() -> None:
    assert read_sweep(DEMO_FILE).stamp["engine"] == engine_digest(), "the engine changed: run tools/demo_sweep.py"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("x = 1\n\n\n# why\ny = 2  # and why\n", True),
        ('"""What.\n\nMore.\n"""\nx = 1\n"""Of x."""\ny = 2\n', True),
        ("x = 1\ny = 3\n", False),
        ("y = 2\nx = 1\n", False),
        ("x = 1\ny = '#2'\n", False),
    ],
)
def test_words_about_the_code_do_not_change_it(text: str, same: bool) -> None:
    assert (code_of(text) == code_of("x = 1\ny = 2\n")) is same


def test_a_hash_within_text_stays() -> None:
    assert code_of('colour = "#fff"  # white\n') == 'colour = "#fff"'
