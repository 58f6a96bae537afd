"""Write the reference pages that repeat what the code says: ``python tools/reference.py`` after a word or a command has changed.

``docs/reference/glossary.md`` comes from the app's glossary, ``docs/reference/commands.md`` from the commands themselves.
A test says when they are behind.
"""

import os
from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.main import get_command

from horde_policy.cli.main import build_app
from horde_policy.views.words import STATES, glossary_entries

ROOT = Path(__file__).parents[1]
MADE_BY = "<!-- made by tools/reference.py: change the code, not this page -->"


def glossary_page() -> str:
    """Return the glossary as Markdown: every word of the pages, and the states of a model."""
    lines = ["# Glossary", "", MADE_BY, "", "The same words stand at each figure in the app, and on its page *Guide*.", ""]
    for _, term in glossary_entries():
        also = f" On pages also: {', '.join(term.also)}." if term.also else ""
        beside = "; ".join(f"*{label}* ({what})" for label, what in term.beside)
        lines.append(f"- **{term.word}**: {term.text}{also}{f' Beside it on pages: {beside}.' if beside else ''}")
    lines += ["", "## States of a model at a size", "", "| state | meaning |", "|---|---|"]
    lines += [f"| {words.label} | {words.text} |" for words in STATES.values()]
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """Return every command with its options as Markdown."""
    lines = [
        "# Commands",
        "",
        MADE_BY,
        "",
        "`python -m horde_policy COMMAND`; `--help` at each. Exit codes: 0 ok, 1 interrupted, 2 bad input (one line on stderr "
        "says what, where and which rule), 3 the source cannot be reached, 4 the answer is there, but one of several exports "
        "could not be read and was left out (stderr names it). Lists are comma-separated or the option repeated.",
        "",
    ]
    for name, command in _inside(get_command(build_app())):
        lines += _command(name, command)
    return "\n".join(lines).rstrip() + "\n"


def _inside(command: object) -> list[tuple[str, object]]:
    return list(command.commands.items()) if isinstance(command, TyperGroup) else []


def _command(name: str, command: object) -> list[str]:
    if isinstance(command, TyperGroup):
        return [line for part, one in _inside(command) for line in _command(f"{name} {part}", one)]
    if not isinstance(command, TyperCommand):
        raise TypeError(f"{name}: {type(command).__name__} is no command")
    told = " ".join((command.help or "").split())
    rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
    table = ["| option | meaning |", "|---|---|", *rows, ""] if rows else []
    return [f"## `{name}`", "", told, "", *table]


def _row(parameter: Any) -> str:
    names = (
        [(parameter.metavar or parameter.name.upper()).strip("{}")] if isinstance(parameter, TyperArgument) else parameter.opts
    )
    words = ", ".join(f"`{name}`" for name in names)
    told = " ".join((parameter.help or "").split()).replace("|", "\\|")
    needed = " Required." if parameter.required else ""
    return f"| {words} | {told}{needed} |"


def main() -> None:
    """Write the pages."""
    folder = ROOT / "docs" / "reference"
    for name, text in (("glossary.md", glossary_page()), ("commands.md", commands_page())):
        (folder / name).write_text(text, encoding="utf-8")
        print(os.path.relpath(folder / name))


if __name__ == "__main__":
    main()
