"""Secrets files that cannot be read: what is in them is not in force, and somebody should say so."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

from horde_policy.errors import Problem

__all__ = ["unreadable_secrets"]


def unreadable_secrets(files: Iterable[Path | str]) -> tuple[Problem, ...]:
    """Return a problem for each secrets file that is there and cannot be read or is no TOML; nothing of its content is repeated.

    Examples
    --------
    >>> unreadable_secrets(["no/such/secrets.toml"])
    ()
    """
    return tuple(problem for file in files if (problem := _unreadable(Path(file))) is not None)


def _unreadable(file: Path) -> Problem | None:
    try:
        if not file.is_file():
            return None
        tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        why = "is not UTF-8 text"
    except tomllib.TOMLDecodeError as error:
        why = f"is not TOML: {_where(str(error))}"
    else:
        return None
    named = "/".join(file.parts[-2:])
    text = f"secrets file {named} {why}; nothing of it is in force: no address, no sign-in"
    return Problem("bad_setting", "secrets file", text)


def _where(message: str) -> str:
    """Return where TOML ends to be TOML: the parser's own words may repeat a character of a secret."""
    _, found, place = message.rpartition("(")
    return place.rstrip(")") if found else "somewhere in it"
