"""``week``: what a production week showed, as findings and as one HTML file (issue 4)."""

import os
import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from horde_policy.cli.left_out import leave_if_any
from horde_policy.cli.measure_table import console, safe
from horde_policy.cli.parquet_output import check_not_input
from horde_policy.cli.review_options import (
    FilesArgument,
    FromOption,
    HistoryOption,
    JsonOption,
    KeptOption,
    MappingOption,
    ToOption,
    load_both,
    print_data,
    print_json,
    write_whole,
)
from horde_policy.cli.settings_option import SetOption, SettingsOption, allowance_settings
from horde_policy.cli.waits import AboveOption, OverOption, RatioOption, ratio_of
from horde_policy.clock import SystemClock
from horde_policy.errors import InputError
from horde_policy.review.annotations import load_annotations
from horde_policy.review.bounds import RATIO
from horde_policy.review.document import exported_document, week_document
from horde_policy.review.exported import Exported
from horde_policy.review.findings import Question, Week, review_week
from horde_policy.review.verdict import ABOVE, OVER_S
from horde_policy.settings import AllowanceSettings
from horde_policy.views.finding_text import SECTION_TITLES, finding_text, no_data_text
from horde_policy.views.report import report_html
from horde_policy.views.review_headlines import nothing_in_range

__all__ = ["register"]

OutOption = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the report to this .html file.")]
NotesOption = Annotated[
    Path | None,
    typer.Option(
        "--notes", metavar="FILE", help="What happened when, drawn as lines: TOML of [[note]] entries with at and text."
    ),
]
AppOption = Annotated[
    str, typer.Option("--app-url", metavar="URL", help="Where the app runs: the report's links then open its pages.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("week")(week)


def week(
    files: FilesArgument = None,
    out: OutOption = None,
    from_: FromOption = None,
    to: ToOption = None,
    over: OverOption = OVER_S,
    above: AboveOption = ABOVE,
    ratio: RatioOption = f"{RATIO:g}",
    app_url: AppOption = "",
    notes: NotesOption = None,
    history: HistoryOption = None,
    kept: KeptOption = None,
    mapping: MappingOption = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what the week showed: findings by consequence, and with --out one HTML file that opens without any network."""
    if out is not None:
        _check_out(out)
        check_not_input(out, *(files or []), notes, history, kept, mapping, settings)
    _check_address(app_url)
    noted = () if notes is None else load_annotations(notes)
    question = Question(over_s=over, above=above, ratio=ratio_of(ratio))
    in_force = allowance_settings(os.environ, settings, set_)
    whole, exported = load_both(files, mapping, from_, to, history=history, kept=kept)
    nothing = nothing_in_range(whole, exported)
    if nothing is not None:
        _tell_nothing(exported, in_force, nothing, out=out, as_json=as_json)
        return
    reviewed = review_week(exported, in_force, question=question)
    if out is not None:
        write_whole(out, report_html(reviewed, made_at=SystemClock().now(), app_address=app_url, notes=noted).encode())
        print(f"written to {out}", file=sys.stderr)
    if as_json:
        document = week_document(reviewed) | {"nothing_in_range": None}
        for finding, entry in zip(reviewed.findings, document["findings"], strict=True):
            text = finding_text(finding)
            entry["text"] = text.sentence
            entry["details"] = list(text.details)
        print_json(document)
    else:
        _print(reviewed)
    leave_if_any(reviewed.exported.problems, told=not as_json)


def _tell_nothing(exported: Exported, settings: AllowanceSettings, nothing: str, *, out: Path | None, as_json: bool) -> None:
    """Say as the page does why the range has no week to read: nothing is found in it, and nothing is as it should be."""
    if out is not None:
        raise InputError("--out", "", str(out), f"would hold nothing. {nothing.rstrip('.')}")
    if as_json:
        print_json(exported_document(exported, settings) | {"nothing_in_range": nothing, "findings": []})
    else:
        print_data(exported)
        print(nothing)
    leave_if_any(exported.problems, told=not as_json)


def _check_out(out: Path) -> None:
    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError("--out", "", str(out), "must end in .html")
    if not out.parent.is_dir():
        raise InputError("--out", "", str(out), "must lie in a folder that is there")


def _check_address(address: str) -> None:
    if not address:
        return
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise InputError("--app-url", "", address, f"is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise InputError("--app-url", "", address, "must be an address as http://localhost:8501")


def _print(reviewed: Week) -> None:
    print_data(reviewed.exported)
    out = console()
    for number, finding in enumerate(reviewed.findings, start=1):
        text = finding_text(finding)
        beside = f" {text.beside}" if text.beside else ""
        out.print(safe(f"{number}. [{text.severity}] {text.sentence}{beside}"), soft_wrap=True)
        for detail in text.details:
            out.print(safe(f"     {detail}"), soft_wrap=True)
    for section in reviewed.sections:
        missing = no_data_text(section)
        if missing is not None:
            out.print(safe(f"{SECTION_TITLES[section.code]} {missing}"), soft_wrap=True)
