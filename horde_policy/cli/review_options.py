"""What the commands of the review share: their files, range and settings, and how a text table is printed."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from horde_policy.cli.measure_table import console, safe
from horde_policy.errors import InputError, Problem
from horde_policy.imports import load_mapping
from horde_policy.imports.report import OTHER_SERIES
from horde_policy.review.exported import Exported, ExportFile
from horde_policy.review.loading import exported_kept, load_exports
from horde_policy.review.ranges import TimeRange
from horde_policy.views.review_words import bounds_text, span_text
from horde_policy.views.text import count, visible

__all__ = [
    "FilesArgument",
    "FromOption",
    "HistoryOption",
    "JsonOption",
    "KeptOption",
    "MappingOption",
    "ToOption",
    "listed",
    "load_both",
    "print_data",
    "print_json",
    "print_rows",
    "write_whole",
]

FilesArgument = Annotated[
    list[Path] | None, typer.Argument(metavar="FILE…", help="Exported metrics of any supported form, or folders of them.")
]
HistoryOption = Annotated[
    str | None,
    typer.Option("--history", metavar="STORE", help="Read the exports that a history keeps, instead of files (history collect)."),
]
KeptOption = Annotated[
    str | None, typer.Option("--kept", metavar="NAME", help="Which of those that the history keeps; needed if there are several.")
]
MappingOption = Annotated[
    Path | None,
    typer.Option("--mapping", metavar="FILE", help="What exports do not say of themselves (TOML; see the imports' guide)."),
]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="T", help="Only what came after this instant (UTC if no zone).")
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="T", help="Only what came up to this instant (UTC if no zone).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def instant_of(option: str, text: str | None) -> datetime | None:
    """Return an option's instant in UTC; null if it is not given.

    >>> instant_of("--from", "2026-11-29").isoformat()
    '2026-11-29T00:00:00+00:00'
    """
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InputError(option, "", text, "must be an instant as 2026-11-29T12:00:00Z") from error


def load_both(
    files: Sequence[Path] | None,
    mapping: Path | None,
    start: str | None,
    end: str | None,
    *,
    history: str | None = None,
    kept: str | None = None,
) -> tuple[Exported, Exported]:
    """Return all counts of exported files, or of the exports that a history keeps, and those inside the range of the options.

    Raises
    ------
    InputError
        A file cannot be read or is of no supported form, the range makes no sense, or both files and a history are given.
    StoreError
        The history cannot be read, or keeps no exports.
    """
    span = TimeRange(instant_of("--from", start), instant_of("--to", end))
    said = None if mapping is None else load_mapping(mapping)
    if (history is None) == (not files):
        raise InputError("FILE…", "", None, "or --history must be given, one of the two")
    if history is None:
        whole = load_exports(files or (), mapping=said)
        return whole, whole.within(span)
    # read here and not above: without a history none of it is needed
    from horde_policy.history.kept import kept_samples
    from horde_policy.history.store import HistoryStore

    store = HistoryStore(history, read_only=True)
    try:
        samples, export = kept_samples(store, kept)
    finally:
        store.close()
    read = ExportFile(name=export.name, form="history", samples=export.runs, skipped=0, first=export.first, last=export.last)
    title = export.title or f"Metrics of {export.name}, kept in {store.name}"
    whole = exported_kept(samples, read, title=title, synthetic=export.synthetic, mapping=said)
    return whole, whole.within(span)


def listed(given: Iterable[str] | None) -> list[str]:
    """Return the words of an option that is a comma-separated list, repeated, or both.

    >>> listed(["requester, outcome", "chat"])
    ['requester', 'outcome', 'chat']
    """
    return [word.strip() for text in given or () for word in text.split(",") if word.strip()]


def print_json(document: object) -> None:
    """Print a document for machines."""
    print(json.dumps(document, indent=2, allow_nan=False))


def print_data(exported: Exported) -> None:
    """Print what the figures are made of on one line, and what is wrong with it on stderr."""
    made_up = " (made up)" if exported.synthetic else ""
    line = f"{exported.title}{made_up}: {bounds_text(exported.counted)} decisions, {span_text(exported.covered)}"
    console().print(safe(line), soft_wrap=True)
    print_problems(exported.problems)
    other = other_series_text(exported)
    if other is not None:
        print(visible(f"note: {other}"), file=sys.stderr)


def other_series_text(exported: Exported) -> str | None:
    """Return how many samples of series that are none of the three the files hold; null for none, or where no file was read."""
    files = () if exported.report is None else exported.report.files
    left = [skipped for file in files for skipped in file.skipped if skipped.reason in OTHER_SERIES]
    if not left:
        return None
    samples, names = sum(one.count for one in left), len({one.subject for one in left})
    return (
        f"{count(samples)} {'sample' if samples == 1 else 'samples'} of {count(names)} other "
        f"{'name was' if names == 1 else 'names were'} not read; --json lists them"
    )


def print_problems(problems: Iterable[Problem]) -> None:
    """Print what is wrong in the data on stderr, a line each."""
    for problem in problems:
        subject = "" if problem.text.startswith(problem.subject) else f"{problem.subject}: "
        print(visible(f"{problem.level}: {subject}{problem.text}"), file=sys.stderr)


def print_rows(headings: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: headings with whether the column is right-aligned, and cells, in which hostile text may stand."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, right in headings:
        table.add_column(heading, justify="right" if right else "left", no_wrap=right)
    for row in rows:
        table.add_row(*(safe(cell) for cell in row))
    console().print(table)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: beside it first, then in its place."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        raise InputError("--out", "", str(path), f"cannot be written: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)
