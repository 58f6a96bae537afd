"""The exit code of a command that answered from several files and had to leave one of them out (decision 0193)."""

import sys
from collections.abc import Iterable

import typer

from horde_policy.cli.main import EXIT_LEFT_OUT
from horde_policy.errors import Problem
from horde_policy.views.text import count_of, visible

__all__ = ["leave_if_any"]


def leave_if_any(problems: Iterable[Problem], *, told: bool = True) -> None:
    """End the command with exit code 4 if a file was left out; nothing else changes what it has printed or written.

    Parameters
    ----------
    problems
        Of the import.
    told
        Whether they stand on stderr already.

    Raises
    ------
    typer.Exit
        A file was left out.
    """
    files = [problem for problem in problems if problem.code == "unreadable_file"]
    if not files:
        return
    for problem in () if told else files:
        print(visible(f"{problem.level}: {problem.subject}: {problem.text}"), file=sys.stderr)
    were = "was" if len(files) == 1 else "were"
    print(f"note: {count_of(len(files), 'file')} {were} left out: the answer is that of the others, exit code 4", file=sys.stderr)
    raise typer.Exit(EXIT_LEFT_OUT)
