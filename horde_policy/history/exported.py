"""An export read back from its folder, and checked whole: a file that breaks a rule is named, and nothing of it is used."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from horde_policy.errors import HordePolicyError, InputError
from horde_policy.history.export import ABOUT_FILE, EXPORT_FORMAT, EXPORT_TABLES, EXPORT_VERSION, KEYS
from horde_policy.history.states import parts_from_bodies, profile_fields

__all__ = ["read_export"]


def read_export(folder: Path) -> tuple[dict[str, bool], dict[str, pl.DataFrame]]:
    """Return an export's sources (name → synthetic) and its frames, checked whole.

    Raises
    ------
    InputError
        The folder is no export, a file cannot be read, or what is in it breaks a rule: names the file, the row and the rule.
    """
    sources = _about(folder)
    frames = {name: _read_table(folder, name) for name in EXPORT_TABLES}
    for name, frame in frames.items():
        for source in frame["source"].unique().to_list():
            if source not in sources:
                raise InputError("export", f"{name}.parquet, column source", source, f"is not among those of {ABOUT_FILE}")
    for source in sources:
        _check_polls(frames, source)
    for profile in frames["workers"]["profile"].drop_nulls().unique().to_list():
        _check_body("profile", profile, profile_fields)
    for part, body in frames["parts"].select("part", "body").unique().iter_rows():
        _check_body("body", body, partial(_read_part, part))
    return sources, frames


def _about(folder: Path) -> dict[str, bool]:
    try:
        about = json.loads((folder / ABOUT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("export", "", str(folder), f"is no export of a history: {ABOUT_FILE} cannot be read") from error
    if not isinstance(about, dict) or about.get("format") != EXPORT_FORMAT:
        raise InputError("export", f"{ABOUT_FILE}, field format", about, f"must be {EXPORT_FORMAT!r}")
    if about.get("version") != EXPORT_VERSION:
        rule = f"is not the version that this program reads, {EXPORT_VERSION}"
        raise InputError("export", f"{ABOUT_FILE}, field version", about.get("version"), rule)
    try:
        return {str(one["source"]): bool(one["synthetic"]) for one in about["sources"]}
    except (KeyError, TypeError) as error:
        raise InputError("export", f"{ABOUT_FILE}, field sources", about.get("sources"), "must list sources") from error


def _read_table(folder: Path, name: str) -> pl.DataFrame:
    path = folder / f"{name}.parquet"
    try:
        frame = pl.read_parquet(path, hive_partitioning=False, glob=False)
    except (OSError, PolarsError) as error:
        raise InputError("export", path.name, str(folder), f"cannot be read: {str(error).splitlines()[0]}") from error
    schema = EXPORT_TABLES[name]
    return schema.checked(frame).sort(schema.sort)


def _check_polls(frames: Mapping[str, pl.DataFrame], source: str) -> None:
    """Refuse polls out of order, that rest on nothing, or rows of no poll."""
    polls = frames["polls"].filter(pl.col("source") == source)
    rules = {
        "must grow from poll to poll": ((pl.col("at") <= pl.col("at").shift(1)), "at"),
        "must be numbered by time": ((pl.col("poll") <= pl.col("poll").shift(1)), "poll"),
        "must be at least 0": (pl.col("lag_us") < 0, "lag_us"),
        "must be true, as no poll is numbered just before it": (
            ~pl.col("keyframe") & ((pl.col("poll") - pl.col("poll").shift(1)) != 1).fill_null(value=True),
            "keyframe",
        ),
    }
    for rule, (wrong, column) in rules.items():
        bad = polls.with_row_index("row").filter(wrong)
        if bad.height:
            row = bad.row(0, named=True)
            raise InputError("export", f"polls.parquet, {source}, poll {row['poll']}, column {column}", row[column], rule)
    for name, key in KEYS.items():
        rows = frames[name].filter(pl.col("source") == source)
        homeless = rows.join(polls, on="poll", how="anti")
        if homeless.height:
            raise InputError("export", f"{name}.parquet, {source}", homeless["poll"][0], "is the number of no poll")
        if rows.select("poll", key).is_duplicated().any():
            raise InputError("export", f"{name}.parquet, {source}", key, "stands twice at one poll")


def _read_part(part: str, body: str) -> object:
    return parts_from_bodies({part: body})


def _check_body(column: str, body: str, read: Callable[[str], object]) -> None:
    try:
        read(body)
    except (ValueError, TypeError, KeyError, AttributeError, PolarsError, HordePolicyError) as error:
        raise InputError("export", f"column {column}", body, f"cannot be read: {error}") from error
