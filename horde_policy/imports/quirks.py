"""Quirks of published traces, found and said (traces.md §5): nothing here changes a row."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from horde_policy.errors import InputError, Problem
from horde_policy.imports.containers import ends
from horde_policy.imports.tables import ZONED_TIME
from horde_policy.imports.trace_formats import Format

__all__ = ["doubled", "file_notes", "row_notes", "segments"]

MOST_SEGMENTS = 20
END_BYTES = 4096
USUAL_SESSION = r"^[0-9]{13}-[a-z0-9]{12}$"
"""RAGPulse's clients name a session by its start in ms and twelve characters; other names are test traffic."""
BATCH_MS = 3_000


def segments(ticks: pl.Series) -> list[tuple[int, int]]:
    """Return the stretches [start, stop) of rows between restarts of a relative clock; at least one.

    A step back is a restart when it undoes at least half of what the clock has run since its last start; a smaller one is
    a row out of order.

    >>> segments(pl.Series([0, 5, 9, 8, 12, 0, 3]))
    [(0, 5), (5, 7)]
    """
    clock = ticks.to_numpy()
    back = np.flatnonzero(np.diff(clock) < 0) + 1
    starts = [0]
    for row in back.tolist():
        first, so_far = clock[starts[-1]], clock[starts[-1] : row].max()
        if (clock[row] - first) * 2 <= so_far - first:
            starts.append(row)
        if len(starts) > MOST_SEGMENTS:
            rule = f"more falls back than restarts can be ({len(back)} in all): the rows are out of order, sort them by time"
            raise InputError("trace", f"row {row}, time", int(clock[row]) / 1e6, rule)
    return list(zip(starts, [*starts[1:], len(clock)], strict=True))


def file_notes(path: Path, frame: pl.DataFrame, known: Format) -> Iterator[Problem]:
    """Yield what the file's text shows: no rows, how it ends, numbers as strings, long fractions, times without a zone."""
    if frame.height == 0:
        yield Problem("no_rows", path.name, "the file has no usable rows")
    head, tail = _ends(path, known)
    if not tail.endswith(b"\n"):
        yield _note("no_last_newline", path.name, "the last line has no newline: read like any other")
    elif re.search(rb"\n[ \t\r]*\n$", tail):
        yield _note("blank_last_line", path.name, "the last line is blank: not counted as a row")
    for column, kind in known.kinds.items():
        if kind in ("whole", "real") and re.search(rb'"' + re.escape(column.encode()) + rb'"\s*:\s*"', head):
            yield _note("numbers_as_strings", column, "its numbers are strings in the file: read as numbers")
    if known.clock == "instant":
        if re.search(rb":[0-9]{2}\.[0-9]{7,9}", head):
            yield _note("long_fraction", known.created, "more than six digits after the second: cut to the microsecond")
        if frame.height and not re.search(ZONED_TIME, head):
            yield _note("assumed_zone", known.created, "the times name no zone: read as UTC")


def _ends(path: Path, known: Format) -> tuple[bytes, bytes]:
    """Return the first and last few kilobytes of a text; for Parquet, its first rows as JSON lines."""
    head, tail = ends(path, END_BYTES)
    if not head.startswith(b"PAR1"):
        return head, tail
    rows = io.BytesIO()
    first = pl.scan_parquet(path).select(known.created, known.input_tokens, known.output_tokens).head(20)
    first.collect().write_ndjson(rows)
    return rows.getvalue(), b"\n"


def _note(code: str, subject: str, text: str) -> Problem:
    return Problem(code, subject, text, "note")


def row_notes(trace: pl.DataFrame, published: pl.DataFrame, format_name: str, known: Format) -> Iterator[Problem]:
    """Yield what the rows show: order, repeats, ties and batches, failures, test traffic, assumed zones and dates."""
    rows = trace.height
    if not rows:
        return
    if not trace["row"].is_sorted():
        yield _note("out_of_order", "created", "rows stand out of time order in the file: sorted by time, then row")
    yield from _repeats(trace)
    ties = int((trace["created"] == trace["created"].shift(1)).sum())
    if ties:
        yield _note("equal_times", "created", f"{ties} of {rows} rows have the time of a row before them")
    if known.clock == "ms":
        yield from _batches(published[known.created])
    failed = int(trace["failed"].sum())
    if failed:
        yield _note("failed", "output_tokens", f"{_rows_have(failed)} no output: kept as arrivals that take no work")
    tiny = int(trace["output_tokens"].is_between(1, 3).sum())
    if tiny:
        yield _note("tiny_outputs", "output_tokens", f"{_rows_have(tiny)} 1 to 3 output tokens")
    if format_name == "ragpulse":
        test = rows - int(trace["client"].str.contains(USUAL_SESSION).sum())
        if test:
            look = "1 row looks" if test == 1 else f"{test} rows look"
            yield _note("test_traffic", "session_id", f"{look} like test traffic by session: kept")
    if not known.dated:
        yield _note("assumed_date", "created", "the trace has no date: only the time since its start means something")
    if trace["chat"].null_count() == rows:
        yield _note("chat_unknown", "chat", "neither the rows nor the file's name say whether these are chats")


def _rows_have(number: int) -> str:
    return "1 row has" if number == 1 else f"{number} rows have"


def doubled(frame: pl.DataFrame) -> Iterator[Problem]:
    """Yield a problem when the second half of the rows, in file order, repeats the first."""
    half, odd = divmod(frame.height, 2)
    if half and not odd and frame.head(half).equals(frame.tail(half)):
        if half == 1:
            text = "row 1 repeats the row before it: the file may be doubled, then its load counts twice"
        else:
            text = f"rows {half} to {frame.height - 1} repeat the rows before them: the file was doubled, its load counts twice"
        yield Problem("doubled", "rows", text)


def _repeats(trace: pl.DataFrame) -> Iterator[Problem]:
    """Say when the second half of the file repeats the first, or single rows repeat others."""
    found = list(doubled(trace.sort("row").drop("row")))
    yield from found
    tied = trace.drop("row").filter(
        (pl.col("created") == pl.col("created").shift(1)) | (pl.col("created") == pl.col("created").shift(-1))
    )
    again = tied.height - tied.n_unique()
    if again and not found:
        rows = "1 row is equal to a row before it" if again == 1 else f"{again} rows are equal to a row before them"
        yield _note("repeated_rows", "rows", f"{rows} in all that the trace tells: kept")


def _batches(milliseconds: pl.Series) -> Iterator[Problem]:
    rest = milliseconds % BATCH_MS
    near = int(((rest <= 1) | (rest >= BATCH_MS - 1)).sum())
    if len(milliseconds) and near >= 0.9 * len(milliseconds):
        share = near / len(milliseconds)
        text = f"{share:.1%} of the times lie within 1 ms of a multiple of 3 s: bursts within a minute are how it was recorded"
        yield _note("batched_times", "timestamp", text)
