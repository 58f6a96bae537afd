"""The fenced blocks of a Markdown page: which are run, which are files for the ones after them, and which are not run and why.

A block is told by the line before it: ``<!-- file: NAME -->`` makes it a file, ``<!-- not run: REASON -->`` leaves it out. All
others are run: ``console`` holds commands after ``$ `` with what they print, ``python`` holds a session as a doctest.
"""

import doctest
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMAND = "python -m horde_policy "

_MARK = re.compile(r"<!-- (file|not run): (.+?) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its page and line, its language, its text, and what its mark says."""

    page: Path
    line: int
    language: str
    text: str
    mark: str = ""
    told: str = ""


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found: list[Block] = []
    start: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
            continue
        mark = _MARK.fullmatch(lines[start - 1].strip()) if start else None
        text = "\n".join(lines[start + 1 : number]) + "\n"
        given = (mark[1], mark[2]) if mark else ("", "")
        found.append(Block(page, start + 1, lines[start][3:].strip(), text, *given))
        start = None
    if start is not None:
        raise ValueError(f"{page}: the block of line {start + 1} has no end")
    return found


def commands_of(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with what the page says that it prints."""
    told: list[tuple[str, str]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            told.append((line[2:], ""))
        elif told:
            told[-1] = (told[-1][0], told[-1][1] + line + "\n")
        else:
            raise ValueError(f"{block.page}:{block.line}: a console block begins with '$ '")
    return told


def run_page(page: Path, run: Callable[[list[str]], tuple[int, str]]) -> int:
    """Run a page in the working directory, in its order; return how many blocks were run.

    ``run`` takes the words of a command after ``python -m horde_policy`` and returns its exit code and all it printed.
    """
    names: dict[str, object] = {}
    done = 0
    for block in blocks_of(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.mark == "not run":
            continue
        if block.mark == "file":
            Path(block.told).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            _run_session(block, where, names)
        elif block.language == "console":
            _run_commands(block, where, run)
        else:
            pytest.fail(f"{where}: a block of {block.language or 'no language'} is neither run nor marked")
        done += block.mark != "file"
    return done


def _run_session(block: Block, where: str, names: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, where, str(block.page), block.line)
    assert test.examples, f"{where}: a python block is a session with >>>"
    said: list[str] = []
    test.globs = names
    failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False).failed
    assert not failed, "".join(said)


def _run_commands(block: Block, where: str, run: Callable[[list[str]], tuple[int, str]]) -> None:
    for command, expected in commands_of(block):
        assert command.startswith(COMMAND), f"{where}: only commands of this product are run, not {command!r}"
        code, printed = run(shlex.split(command)[3:])
        assert code == 0, f"{where}: {command} ended with {code}:\n{printed}"
        fits = not expected or doctest.OutputChecker().check_output(expected, printed, FLAGS)
        assert fits, f"{where}: {command} printed\n{printed}\nand the page says\n{expected}"
