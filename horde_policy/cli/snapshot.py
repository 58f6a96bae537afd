"""``snapshot``: one look at a horde, a row a model (A5, A8, A9)."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from horde_policy.board.document import snapshot_document
from horde_policy.board.measure import check_context, check_size
from horde_policy.board.rows import BOARD_ROWS, Board, make_board
from horde_policy.cli.measure_table import console, print_head, print_measures, print_problems
from horde_policy.cli.parquet_output import check_not_input
from horde_policy.cli.settings_option import SetOption, SettingsOption, allowance_settings
from horde_policy.cli.sources_option import (
    AtOption,
    DemoOption,
    RecordedOption,
    SourceChoice,
    StoreOption,
    UrlOption,
    load_snapshot,
    say_unrecorded,
)
from horde_policy.clock import SystemClock
from horde_policy.errors import InputError
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_LENGTH_TOKENS, MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views.exports import Stamp, headings, to_csv, to_parquet

__all__ = ["register"]

SizeOption = Annotated[
    int, typer.Option("--max-length", metavar="N", help=f"The size asked, 1 to {MAX_LENGTH_LIMIT_TOKENS} tokens.")
]
ContextOption = Annotated[
    int, typer.Option("--max-context-length", metavar="N", help="The context asked, in tokens; never less than the size.")
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Also write the answer to a file: .json, .csv or .parquet."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("snapshot")(snapshot)


def snapshot(
    url: UrlOption = None,
    recorded: RecordedOption = None,
    store: StoreOption = None,
    at: AtOption = None,
    demo: DemoOption = False,
    max_length: SizeOption = DEFAULT_MAX_LENGTH_TOKENS,
    max_context_length: ContextOption = DEFAULT_MAX_CONTEXT_TOKENS,
    settings: SettingsOption = None,
    set_: SetOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """One look at a horde: for every model how much output a request without kudos is allowed now, and why."""
    check_size(max_length)
    check_context(max_context_length)
    in_force = allowance_settings(os.environ, settings, set_)
    ending = None if out is None else _ending(out)
    choice = SourceChoice(url=url, recorded=recorded, store=store, at=at, demo=demo)
    if out is not None:
        check_not_input(out, recorded, store, settings)
    look = load_snapshot(choice, os.environ, SystemClock())
    board = make_board(look, in_force, max_length=max_length, context_tokens=max_context_length)
    if out is not None and ending is not None:
        _write(out, _content(board, ending))
        print(f"written to {out}", file=sys.stderr)
    if as_json:
        say_unrecorded(look)
        print(json.dumps(snapshot_document(board), indent=2, allow_nan=False))
    else:
        _print_table(board)


def _ending(out: Path) -> str:
    ending = out.suffix.lower()
    if ending not in (".json", ".csv", ".parquet"):
        raise InputError("--out", "", str(out), "must end in .json, .csv or .parquet")
    return ending


def _content(board: Board, ending: str) -> bytes:
    """Return the file's bytes: the JSON document, or one row a model and one for any model."""
    if ending == ".json":
        return (json.dumps(snapshot_document(board), indent=2, allow_nan=False) + "\n").encode()
    frame = board.frame()
    stamp = Stamp(
        source=board.snapshot.source,
        synthetic=board.snapshot.synthetic,
        fetched_at=board.snapshot.fetched_at,
        settings_digest=board.settings.digest(),
        max_length_tokens=board.max_length,
        max_context_tokens=max(board.context_tokens, board.max_length),
    )
    return to_csv(frame, headings(BOARD_ROWS), stamp) if ending == ".csv" else to_parquet(frame, stamp)


def _write(path: Path, content: bytes) -> None:
    """Write the file whole or not at all: beside it first, then in its place."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError("--out", "", str(path), f"cannot be written: {error.strerror}") from error


def _print_table(board: Board) -> None:
    out = console()
    context = max(board.context_tokens, board.max_length)
    print_head(out, board.snapshot, f"asked: {board.max_length:,} output tokens, context {context:,}")
    rows = [*board.rows, board.any_model]
    print_measures(out, [row.measure for row in rows], "model", [*(row.model or "" for row in board.rows), "any model"])
    print_problems(out, board.snapshot.problems)
