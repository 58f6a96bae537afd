"""Annotations from a small file: what happened when (deploys, outages, setting changes), drawn over the history.

TOML with tables ``[[annotation]]``, or CSV with a header; both with ``at``, ``kind`` and ``text``, and ``to`` for what lasted.
An instant without a zone is UTC. A file is read whole or refused, with every error named.
"""

import csv
import io
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from horde_policy.errors import InputError
from horde_policy.imports.containers import csv_fault

__all__ = ["ANNOTATION_KINDS", "Annotation", "parse_annotations", "read_annotations"]

ANNOTATION_KINDS = ("deploy", "outage", "settings", "note")
FIELDS = ("at", "to", "kind", "text")
LONGEST_TEXT = 200
MOST_ANNOTATIONS = 10_000
LARGEST_BYTES = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """Something that happened at an instant, or from it to another; ``text`` is whoever's wrote the file: not trusted."""

    at: datetime
    to: datetime | None
    kind: str
    text: str


def read_annotations(path: Path) -> tuple[Annotation, ...]:
    """Return the annotations of a ``.toml`` or ``.csv`` file, in order of time.

    Raises
    ------
    InputError
        The file cannot be read, or something in it breaks a rule: names the entry, the field, the value and the rule.
    """
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise InputError("annotations", path.name, path.stat().st_size, f"bytes must be at most {LARGEST_BYTES}")
        content = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError("annotations", "", str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError("annotations", path.name, error.object[error.start : error.start + 8], "must be UTF-8") from error
    return parse_annotations(content, path.name)


def parse_annotations(content: str, name: str) -> tuple[Annotation, ...]:
    r"""Return the annotations of a file's text; its name's ending tells the form.

    Raises
    ------
    InputError
        See :func:`read_annotations`.

    Examples
    --------
    >>> found = parse_annotations("at,kind,text\n2026-11-29T12:00,deploy,5.1.6\n", "events.csv")
    >>> found[0].at.isoformat(), found[0].text
    ('2026-11-29T12:00:00+00:00', '5.1.6')
    """
    ending = name.rpartition(".")[2].lower()
    if ending == "toml":
        entries = _toml_entries(content, name)
    elif ending == "csv":
        entries = _csv_entries(content, name)
    else:
        raise InputError("annotations", "", name, "must end in .toml or .csv")
    if len(entries) > MOST_ANNOTATIONS:
        raise InputError("annotations", name, len(entries), f"entries must be at most {MOST_ANNOTATIONS}")
    return tuple(sorted((_annotation(where, fields) for where, fields in entries), key=lambda each: (each.at, each.text)))


def _toml_entries(content: str, name: str) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        document = tomllib.loads(content)
    except ValueError as error:
        raise InputError("annotations", "", name, f"is not TOML: {error}") from error
    listed = document.get("annotation", [])
    if set(document) - {"annotation"} or not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise InputError("annotations", name, sorted(document), "must hold tables [[annotation]] only")
    return [(f"{name}, annotation {number}", fields) for number, fields in enumerate(listed, 1)]


def _csv_entries(content: str, name: str) -> list[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(content), strict=True)
    entries: list[tuple[str, Mapping[str, Any]]] = []
    try:
        for row in reader:
            where = f"{name}, line {reader.line_num}"
            if None in row or None in row.values():
                raise InputError("annotations", where, len(row), f"must have the header's {len(reader.fieldnames or ())} fields")
            entries.append((where, {field: text for field, text in row.items() if text.strip()}))
    except csv.Error as error:
        where = f"{name}, line {reader.reader.line_num}"  # the other one counts only what was read as a row
        raise InputError("annotations", where, None, f"is not CSV: {csv_fault(error)}") from error
    return entries


def _annotation(where: str, fields: Mapping[str, Any]) -> Annotation:
    for field in fields:
        if field not in FIELDS:
            raise InputError("annotations", where, field, "is no field; the fields are " + ", ".join(FIELDS))
    kind, text = fields.get("kind", "note"), fields.get("text")
    kind = kind.strip().lower() if isinstance(kind, str) else kind
    if kind not in ANNOTATION_KINDS:
        raise InputError("annotations", f"{where}, field kind", kind, "must be one of " + ", ".join(ANNOTATION_KINDS))
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_TEXT:
        raise InputError("annotations", f"{where}, field text", text, f"must be a text of at most {LONGEST_TEXT} characters")
    at = _instant(where, "at", fields.get("at"))
    to = _instant(where, "to", fields["to"]) if "to" in fields else None
    if to is not None and to < at:
        raise InputError("annotations", f"{where}, field to", to.isoformat(), f"must not lie before at, {at.isoformat()}")
    return Annotation(at=at, to=to, kind=kind, text=text.strip())


def _named_instant(text: str) -> datetime | str:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return text.strip()


def _instant(where: str, field: str, value: object) -> datetime:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if isinstance(value, str):
        value = _named_instant(value)
    if not isinstance(value, datetime):
        raise InputError("annotations", f"{where}, field {field}", value, "must be an instant as 2026-11-29T12:00:00Z")
    try:
        return value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)
    except OverflowError:
        raise InputError("annotations", f"{where}, field {field}", value.isoformat(), "lies beyond the calendar") from None
