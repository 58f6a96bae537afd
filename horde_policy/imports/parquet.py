"""Our own Parquet: samples as they are kept, so that imports of many days merge as if they had been read together.

The table is flat, one row a run (:mod:`horde_policy.imports.samples`) with its series spelled out, and carries a stamp in its
metadata. Frames of counts can be written and read too: they come back as what was counted over each interval.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import ComputeError, PolarsError

from horde_policy.errors import InputError
from horde_policy.frames.decisions import DECISIONS
from horde_policy.frames.waits import WAIT_SUMS, WAITS
from horde_policy.imports.counts import Counts
from horde_policy.imports.mapping import DIMENSIONS
from horde_policy.imports.names import MAX_SERIES_CHARACTERS, SeriesKey
from horde_policy.imports.report import MAX_SERIES, MAX_TEXT_CHARACTERS
from horde_policy.imports.samples import NO_TIME, RUNS, UNTIMED, Samples
from horde_policy.imports.unpack import Unpacked

__all__ = ["STAMP", "read_parquet", "samples_frame", "samples_of_frame", "write_parquet"]

STAMP = "horde_policy"
"""The metadata key that says what a Parquet file of ours is: ``samples/1``, ``decisions/1``, ``waits/1`` or ``wait_sums/1``."""

_KEY_TYPES: dict[str, Any] = {
    "instance": pl.String,
    "family": pl.String,
    "part": pl.String,
    "lower_s": pl.Float64,
    "upper_s": pl.Float64,
    **dict.fromkeys(DIMENSIONS, pl.String),
    "chat": pl.Boolean,
    "extra": pl.String,
    "temporality": pl.String,
}
_FLAT = {**_KEY_TYPES, **{name: dtype for name, dtype in RUNS.items() if name != "sid"}}
_LONG = ("instance", "extra")
MAX_CHARACTERS = 8 * MAX_SERIES_CHARACTERS
"""The longest text: a series as it is spelled, in which one character may be written as six."""

_FRAMES = {schema.name: schema for schema in (DECISIONS, WAITS, WAIT_SUMS)}


def samples_frame(samples: Samples) -> pl.DataFrame:
    """Return samples as one flat table, as they are written and kept."""
    series = pl.DataFrame([tuple(key) for key in samples.keys], schema=_KEY_TYPES, orient="row")
    flat = pl.concat([series[samples.runs["sid"].to_numpy()], samples.runs.drop("sid")], how="horizontal")
    return flat.select(pl.col(name).cast(dtype) for name, dtype in _FLAT.items())


def samples_of_frame(flat: pl.DataFrame, name: str) -> Samples:
    """Return the samples of a flat table.

    Raises
    ------
    InputError
        A column is missing or has another type; a word is not one that a series has.
    """
    for column, dtype in _FLAT.items():
        if flat.schema.get(column) != dtype:
            raise InputError("export", f"{name}, column {column}", flat.schema.get(column), f"must be {dtype}")
    _check_texts(flat, name)
    words = {
        "family": ("decisions", "estimated", "queue"),
        "part": ("value", "le", "bin", "native", "sum", "count", "created"),
        "temporality": ("cumulative", "delta", "increase", "counted"),
    }
    for column, known in words.items():
        odd = flat.filter(~pl.col(column).is_in(known) | pl.col(column).is_null())
        if odd.height:
            raise InputError("export", f"{name}, column {column}", odd[column][0], "must be one of " + ", ".join(known))
    needed = [column for column in _FLAT if column not in {*DIMENSIONS, "lower_s", "upper_s", "bins"}]
    broken = flat.filter(
        pl.any_horizontal(pl.col(needed).is_null()) | ~(pl.col("value") >= 0) | (pl.col("t_to") < pl.col("t_from"))
    )
    if broken.height:
        raise InputError("export", name, broken.row(0), "is no run: times in order, a value of at least 0, nothing missing")
    keys = flat.select(*_KEY_TYPES).unique(maintain_order=True)
    characters = int(keys.select(pl.sum_horizontal(pl.col(*_LONG).str.len_chars()).sum()).item() or 0)
    if keys.height > MAX_SERIES or characters > MAX_TEXT_CHARACTERS:
        rule = f"series, with {characters} characters of text: the most is {MAX_SERIES}, and {MAX_TEXT_CHARACTERS} characters"
        raise InputError("export", name, keys.height, rule)
    numbered = keys.with_columns(pl.Series("sid", np.arange(keys.height), dtype=pl.UInt32))
    runs = flat.join(numbered, on=list(_KEY_TYPES), how="left", nulls_equal=True, maintain_order="left").select(*RUNS)
    return Samples(tuple(SeriesKey(*row) for row in keys.iter_rows()), runs)


def _check_texts(flat: pl.DataFrame, name: str) -> None:
    """Refuse texts that are longer than any series: one text of a Parquet file is shared by rows, and is not once it is read."""
    texts = [column for column, dtype in _KEY_TYPES.items() if dtype == pl.String]
    for column, longest in flat.select(pl.col(texts).str.len_chars().max()).row(0, named=True).items():
        if longest is not None and longest > MAX_CHARACTERS:
            rule = f"characters in one text: the most is {MAX_CHARACTERS}"
            raise InputError("export", f"{name}, column {column}", longest, rule)


def write_parquet(content: Samples | Counts, path: Path) -> None:
    """Write samples as one stamped file; counts as three, whose names end in what they hold.

    Writing is by a temporary name first, so that no half file is left under the real one.
    """
    if isinstance(content, Samples):
        _write(samples_frame(content), "samples", path)
        return
    for kind in _FRAMES:
        _write(getattr(content, kind), kind, path.with_stem(f"{path.stem}.{kind}"))


def _write(frame: pl.DataFrame, kind: str, path: Path) -> None:
    partial = path.with_name(path.name + ".partial")
    frame.write_parquet(partial, compression="zstd", metadata={STAMP: f"{kind}/1"})
    partial.replace(path)


def read_parquet(content: Unpacked) -> Samples:
    """Return the samples in a Parquet file of ours.

    Raises
    ------
    InputError
        It is no Parquet, not one of ours, or of a newer version.
    """
    name = content.file.name
    with content.document() as document:
        source = io.BytesIO(document)
    try:
        stamp = pl.read_parquet_metadata(source).get(STAMP)
        if stamp is None:
            raise InputError("export", name, "Parquet", "carries no stamp of this program: it is not one of its files")
        kind, _, version = stamp.partition("/")
        if kind not in {"samples", *_FRAMES} or version != "1":
            raise InputError("export", name, stamp, "is of a version that this program does not read")
        source.seek(0)
        frame = pl.read_parquet(source)
    except (ComputeError, PolarsError, OSError) as error:
        raise InputError("export", name, "Parquet", f"cannot be read: {error}") from error
    return samples_of_frame(frame, name) if kind == "samples" else _of_counts(kind, frame, name)


def _of_counts(kind: str, frame: pl.DataFrame, name: str) -> Samples:
    """Return counts over intervals as samples: what was counted stays counted over its interval, between its bounds."""
    frame = _FRAMES[kind].checked(frame)
    texts = [pl.lit(None, dtype=_KEY_TYPES[name]).alias(name) for name in _KEY_TYPES if name not in frame.columns]
    times = [
        pl.col("interval_start").dt.timestamp("us").fill_null(NO_TIME).alias("start"),
        pl.col("interval_end").dt.timestamp("us").fill_null(UNTIMED).alias("t_from"),
        pl.col("interval_end").dt.timestamp("us").fill_null(UNTIMED).alias("t_to"),
    ]
    flat = frame.with_columns(*texts, *times).with_columns(
        family=pl.lit("decisions") if kind == "decisions" else pl.col("kind"),
        extra=pl.lit(""),
        temporality=pl.lit("counted"),
        prev=pl.lit(NO_TIME),
        next=pl.lit(NO_TIME),
        lookback=pl.lit(value=False),
        entire=pl.lit(value=False),
        bins=pl.lit(None, dtype=RUNS["bins"]),
    )
    parts = {"decisions": [("value", "count_low", "count_high")], "waits": [("bin", "count_low", "count_high")]}
    sums = [("count", "count_low", "count_high"), ("sum", "sum_low_s", "sum_high_s")]
    tables = [
        flat.with_columns(part=pl.lit(part), low=pl.col(low), value=pl.col(high)).filter(pl.col("value").is_not_null())
        for part, low, high in parts.get(kind, sums)
    ]
    return samples_of_frame(pl.concat([table.select(*_FLAT) for table in tables]), name)
