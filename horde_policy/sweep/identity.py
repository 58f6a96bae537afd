"""What names a point of a sweep: the inputs, the code that replays and counts them, the settings and the scenario."""

import ast
import hashlib
import io
import tokenize
from functools import cache
from pathlib import Path
from typing import Final

import horde_policy
from horde_policy.sweep.grid import Point, Scenario

__all__ = ["DECIDING", "code_of", "engine_digest", "key_of"]


DECIDING: Final = (
    "units", "settings", "frames.decisions", "frames.fleet", "frames.traffic",
    "replay.classes", "replay.draws", "replay.engine", "replay.fill", "replay.fill_rule",
    "replay.kernel", "replay.kernel_arrival", "replay.kernel_classes", "replay.kernel_events", "replay.kernel_fleet",
    "replay.kernel_jobs", "replay.kernel_queue", "replay.kernel_run", "replay.kernel_types", "replay.room",
    "sweep.counting", "sweep.stage",
)  # fmt: skip
"""The modules that decide what a replay of a sweep comes to: fill rules, the engine with its rules, counting.

What reads the inputs is left out, since a key holds the digest of what was read; so is what lays results out as frames.
"""


@cache
def engine_digest() -> str:
    """Return sixteen digits that change with the code of :data:`DECIDING`, and not with its comments and docstrings."""
    package = Path(horde_policy.__file__).parent
    digest = hashlib.sha256()
    for name in DECIDING:
        text = package.joinpath(*name.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        digest.update(f"{name}\n{code_of(text)}\n".encode())
    return digest.hexdigest()[:16]


def code_of(text: str) -> str:
    r"""Return a module's text without docstrings, comments and empty lines: the same under every version of Python.

    >>> code_of("'Doc.'\nx = '#'  # why\n\n\ndef f():\n    'Doc.'\n    return x\n").splitlines()
    ["x = '#'", 'def f():', '    return x']
    """
    lines = text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def key_of(inputs_digest: str, point: Point, scenario: Scenario) -> str:
    """Return what names a point under a scenario of these inputs with this engine: equal keys, equal results."""
    parts = (inputs_digest, engine_digest(), point.settings.digest(64), repr((scenario.load, scenario.seed, scenario.fill)))
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:32]
