"""The command line's frame: sub-commands from their modules, errors as one line on stderr, exit codes of design §3.

Exit 0 ok, 1 interrupted, 2 bad input, 3 source not reachable, 4 answered without a file that cannot be read. A command's module
has ``register(app)``, which adds it to the Typer app.
"""

import importlib
import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from horde_policy.errors import HordePolicyError, SourceError

__all__ = ["EXIT_BAD_INPUT", "EXIT_INTERRUPTED", "EXIT_LEFT_OUT", "EXIT_UNREACHABLE", "build_app", "main", "run"]

EXIT_INTERRUPTED = 1
EXIT_BAD_INPUT = 2
EXIT_UNREACHABLE = 3
EXIT_LEFT_OUT = 4

COMMAND_MODULES: tuple[str, ...] = (
    "snapshot",
    "allowance",
    "record",
    "history",
    "probe",
    "decisions",
    "waits",
    "week",
    "traffic",
    "fleet",
    "replay",
    "sweep",
    "budget",
)
"""Modules below ``horde_policy.cli``, in the order of the help text; each has ``register(app)``."""


def build_app(commands: Sequence[str] = COMMAND_MODULES) -> typer.Typer:
    """Return the Typer app with these commands of :data:`COMMAND_MODULES`."""
    app = typer.Typer(
        name="horde_policy",
        help="The free output allowance of AI Horde and capped output reservations: watched, judged and tried.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    @app.callback()
    def _root() -> None:
        """Keep a single command a sub-command."""

    for name in commands:
        importlib.import_module(f"horde_policy.cli.{name}").register(app)
    return app


def main(arguments: Sequence[str]) -> int:
    """Run one command; return its exit code, with an error of the package as one line on stderr."""
    named = arguments[0] if arguments else ""
    # Only the command that is asked for is imported: the compiler behind a replay takes seconds and a recorder runs for months.
    try:
        app = build_app((named,)) if named in COMMAND_MODULES else build_app()
        code = app(args=list(arguments), prog_name="python -m horde_policy", standalone_mode=False)
    except TyperException as error:
        print(_usage_line(error), file=sys.stderr)
        return EXIT_BAD_INPUT
    except (typer.Abort, KeyboardInterrupt):  # the latter while a command's module is imported
        print("error: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else EXIT_BAD_INPUT
    except HordePolicyError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_UNREACHABLE if isinstance(error, SourceError) else EXIT_BAD_INPUT
    return code if isinstance(code, int) else 0


def _usage_line(error: TyperException) -> str:
    """Return a usage error as one line that names the command; where nothing was asked, the help that stands in its place."""
    text = error.format_message()
    if text.startswith("Usage:"):
        return text
    command = getattr(getattr(error, "ctx", None), "command_path", "python -m horde_policy")
    return f"error: {' '.join(text.split()).rstrip('.')}; see {command} --help"


def run() -> None:
    """Run the command line of this process and leave with its exit code."""
    sys.exit(main(sys.argv[1:]))
