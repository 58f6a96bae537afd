"""What happened when: changes of policy, deployments, outages, as lines over time. From a small TOML file.

The file::

    [[note]]
    at = 2026-11-24T12:00:00Z
    text = "ceiling raised to 8192"
"""

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from horde_policy.errors import InputError

__all__ = ["Annotation", "load_annotations"]

MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Annotation:
    """An instant, and what happened then (hostile text)."""

    at: datetime
    text: str


def load_annotations(path: Path) -> tuple[Annotation, ...]:
    """Return the notes of a file, in order of time.

    Raises
    ------
    InputError
        The file cannot be read or is not TOML, or an entry has no instant with a zone, or no short text.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("notes file", "", str(path), f"cannot be read: {error.strerror}") from error
    except ValueError as error:  # not TOML, or not UTF-8
        raise InputError("notes file", "", str(path), f"is not TOML: {error}") from error
    entries = content.get("note", [])
    if set(content) - {"note"} or not isinstance(entries, list):
        raise InputError("notes file", "", str(path), "must hold [[note]] entries and nothing else")
    return tuple(sorted((_annotation(number, entry) for number, entry in enumerate(entries, start=1)), key=lambda note: note.at))


def _annotation(number: int, entry: object) -> Annotation:
    where = f"note {number}"
    if not isinstance(entry, dict) or set(entry) != {"at", "text"}:
        raise InputError("notes file", where, entry, "must have at and text")
    at, text = entry["at"], entry["text"]
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InputError("notes file", f"{where}, at", at, "must be an instant with its zone, as 2026-11-24T12:00:00Z")
    if not isinstance(text, str) or not 0 < len(text) <= MOST_CHARACTERS:
        raise InputError("notes file", f"{where}, text", text, f"must be a text of 1 to {MOST_CHARACTERS} characters")
    return Annotation(at.astimezone(UTC), text)
