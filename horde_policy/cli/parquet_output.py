"""Parquet files of the commands: written whole or not at all, with the stamp of their making in the file's metadata."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from horde_policy.errors import InputError
from horde_policy.imports.replay_inputs import STAMP_KEY
from horde_policy.views.text import visible

__all__ = ["check_not_input", "check_parquet_path", "print_notes", "print_stamp", "write_parquet"]


def check_not_input(path: Path, *inputs: str | Path | None) -> None:
    """Raise InputError, before any work, if the file to write is read, under whatever name, or lies in a folder that is.

    An input may be a file, a recorded folder, the path or the sqlite:// URL of a store, or none.
    """
    if not path.exists():
        return
    for given in inputs:
        source = None if given is None else Path(str(given).removeprefix("sqlite:///"))
        if source is None or not source.exists():
            continue
        if path.samefile(source) or (source.is_dir() and source.resolve() in path.resolve().parents):
            raise InputError("--out", "", str(path), "is an input of the same command, which would be lost")


def check_parquet_path(path: Path, *inputs: str | Path | None) -> None:
    """Raise InputError, before any work, if no Parquet file can be written there, or it would take the place of an input."""
    check_not_input(path, *inputs)
    if path.suffix.lower() != ".parquet":
        raise InputError("--out", "", str(path), "must end in .parquet")
    if not path.parent.is_dir():
        raise InputError("--out", "", str(path), "must lie in a folder that is there")


def write_parquet(path: Path, frame: pl.DataFrame, stamp: Mapping[str, Any]) -> None:
    """Write a frame and its stamp: beside the place first, then in its place, so that no half file is ever there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        frame.write_parquet(beside, metadata={STAMP_KEY: json.dumps(stamp, allow_nan=False)})
        beside.replace(path)
    except OSError as error:
        raise InputError("--out", "", str(path), f"cannot be written: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)


def print_notes(notes: list[str]) -> None:
    """Print what was odd about the input on stderr, a line each, unseen characters shown by their number."""
    for note in notes:
        print(visible(note), file=sys.stderr)


def print_stamp(stamp: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what was made: as JSON, or a line a field."""
    if as_json:
        print(json.dumps(stamp, indent=2, allow_nan=False))
        return
    for name, value in stamp.items():
        if name != "problems" and value not in (None, {}, [], ""):
            print(f"{name}: {visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))}")
