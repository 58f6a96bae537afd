"""Columns by name out of CSV, Parquet and JSON lines, each of its kind, with every row accounted for.

Two ways with a row that breaks a rule: refused *whole*, the first such row raises with row, column, value and rule; or
*by row*, such rows are left out and counted by a named reason. The fast way reads columns at once; only a file that it
refuses is read again row by row, to name what is wrong.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv as pc

from horde_policy.errors import FrameError, InputError, shown
from horde_policy.imports.cells import POLARS_TYPES, RULES, Kind, converted, json_row_type, loosely_typed, parsed
from horde_policy.imports.containers import NotARow, csv_rows, is_packed, json_chunks, json_objects, opened, read_parquet, sniffed

__all__ = ["ROW", "Refused", "Table", "read_table"]

ROW = "row"
"""The column that holds a row's position in its file, from 0."""
CHUNK_ROWS = 100_000
ZONED_TIME = rb"[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})"


@dataclass(slots=True)
class Refused:
    """What was refused, by reason: how many rows, and what the first of them was."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, sentence: str, rows: int = 1) -> None:
        """Count ``rows`` more for a reason; the sentence of the first is kept."""
        self.counts[reason] += rows
        self.first.setdefault(reason, sentence)

    def note(self, reason: str, rows: int) -> None:
        """Count ``rows`` more for a reason that speaks for itself; none leaves no trace."""
        if rows:
            self.add(reason, reason, rows)


@dataclass(frozen=True, slots=True)
class Table:
    """The rows kept, in file order, with :data:`ROW` and the wanted columns that the file has; ``rows_read`` counts all."""

    frame: pl.DataFrame
    rows_read: int
    refused: Refused


def read_table(path: Path, kinds: Mapping[str, Kind], what: str, *, by_row: bool = False) -> Table:
    """Return the wanted columns that the file has, typed; its container is told by content.

    Parameters
    ----------
    path
        CSV with a header, JSON lines or Parquet; text may be packed as gzip, bzip2 or zstd.
    kinds
        Wanted column → its kind. Columns of the file that are not wanted are ignored.
    what
        What the file is, for messages.
    by_row
        Leave out and count rows whose cells are not of their kind; otherwise the first such row raises.

    Raises
    ------
    FrameError
        The file has none of the wanted columns, one twice, or (Parquet) one of another type.
    InputError
        The file cannot be read, or a cell is not of its kind.
    """
    found = sniffed(path, what)
    if found.container not in ("csv", "json_lines", "parquet"):
        raise InputError(what, "", path.name, "must be CSV with a header, JSON lines or Parquet")
    repeated = [name for name, times in Counter(found.columns).items() if times > 1 and name in kinds]
    if repeated:
        raise FrameError(what, f"column {repeated[0]}", found.columns.count(repeated[0]), "times in the header; must stand once")
    present = {name: kind for name, kind in kinds.items() if name in found.columns or found.container == "json_lines"}
    if not present:
        raise FrameError(what, "columns", list(found.columns), "must name at least one of " + ", ".join(kinds))
    if found.container == "parquet":
        return _parquet(path, present, what, by_row=by_row)
    if found.container == "csv":
        return _csv(path, present, what, by_row=by_row, zoned=_first_row_is_zoned(found.head))
    return _json_lines(path, present, what, by_row=by_row)


def _whole_table(frame: pl.DataFrame) -> Table:
    numbered = frame.with_row_index(ROW).with_columns(pl.col(ROW).cast(pl.Int64))
    return Table(numbered, frame.height, Refused())


def _first_row_is_zoned(head: bytes) -> bool:
    """Tell whether a time in the first row behind the header has an offset; the others must do alike to be read at once."""
    lines = head.split(b"\n", 2)
    return len(lines) > 1 and re.search(ZONED_TIME, lines[1]) is not None


def _csv(path: Path, kinds: Mapping[str, Kind], what: str, *, by_row: bool, zoned: bool) -> Table:
    types: dict[str, pa.DataType] = {
        "whole": pa.int64(),
        "real": pa.float64(),
        "flag": pa.bool_(),
        "text": pa.string(),
        "names": pa.string(),
        "instant": pa.timestamp("us", "UTC"),
        # nanoseconds: up to nine digits of a fraction are read, and cut afterwards
        "any_instant": pa.timestamp("ns", "UTC" if zoned else None),
    }
    options = pc.ConvertOptions(
        column_types={name: types[kind] for name, kind in kinds.items()},
        include_columns=list(kinds),
        null_values=[""],
        strings_can_be_null=True,
    )
    try:
        # pyarrow reads a file of its own on all cores, a Python stream on one
        with opened(path) if is_packed(path) else pa.OSFile(str(path)) as stream:
            table = pc.read_csv(stream, convert_options=options)
        frame = pl.DataFrame(pl.from_arrow(table))
        return _whole_table(frame.with_columns(converted(frame[name], kind) for name, kind in kinds.items()))
    except (pa.ArrowInvalid, ValueError, pl.exceptions.PolarsError):
        # Something is not of its kind: the slow way finds which row, and keeps the others if it may.
        return _rows(csv_rows(path, what), kinds, what, by_row=by_row)


def _json_lines(path: Path, kinds: Mapping[str, Kind], what: str, *, by_row: bool) -> Table:
    decoder, columns = json_row_type(kinds)
    parts: list[pl.DataFrame] = []
    try:
        for chunk in json_chunks(path):
            rows = decoder.decode_lines(chunk)
            parts.append(pl.DataFrame({n: columns(rows, n) for n in kinds}, schema=_polars_schema(kinds)))
    except (ValueError, TypeError, OverflowError, pl.exceptions.PolarsError):
        return _rows(json_objects(path, what), kinds, what, by_row=by_row)
    return _whole_table(pl.concat(parts) if parts else pl.DataFrame(schema=_polars_schema(kinds)))


def _polars_schema(kinds: Mapping[str, Kind]) -> dict[str, pl.DataType | type[pl.DataType]]:
    return {name: POLARS_TYPES[kind] for name, kind in kinds.items()}


def _rows(source: Iterable[Mapping[str, object] | NotARow], kinds: Mapping[str, Kind], what: str, *, by_row: bool) -> Table:
    """Read row by row: each a mapping of column to cell, or why it is no row."""
    schema = {ROW: pl.Int64, **_polars_schema(kinds)}
    refused = Refused()
    parts: list[pl.DataFrame] = []
    columns: dict[str, list[object]] = {name: [] for name in schema}
    rows_read = 0
    for number, row in enumerate(source):
        rows_read += 1
        if isinstance(row, NotARow):
            if not by_row:
                raise InputError(what, f"row {number}", row.found, row.sentence)
            refused.add(row.reason, f"row {number} {row.sentence}")
            continue
        cells, broken = _cells(row, kinds)
        if broken is not None:
            kind = kinds[broken]
            if not by_row:
                raise InputError(what, f"row {number}, column {broken}", row.get(broken), RULES[kind])
            refused.add(f"unreadable {broken}", f"row {number}, {broken} {shown(row.get(broken))} {RULES[kind]}")
            continue
        columns[ROW].append(number)
        for name, cell in cells.items():
            columns[name].append(cell)
        if len(columns[ROW]) == CHUNK_ROWS:
            parts.append(pl.DataFrame(columns, schema=schema))
            columns = {name: [] for name in schema}
    parts.append(pl.DataFrame(columns, schema=schema))
    return Table(pl.concat(parts), rows_read, refused)


def _cells(row: Mapping[str, object], kinds: Mapping[str, Kind]) -> tuple[dict[str, object], str | None]:
    cells: dict[str, object] = {}
    for name, kind in kinds.items():
        try:
            cells[name] = parsed(row.get(name), kind)
        except ValueError:
            return cells, name
    return cells, None


def _parquet(path: Path, kinds: Mapping[str, Kind], what: str, *, by_row: bool) -> Table:
    frame = read_parquet(path, list(kinds), what)
    if not by_row:
        return _whole_table(frame)
    refused = Refused()
    numbered = frame.with_row_index(ROW).with_columns(pl.col(ROW).cast(pl.Int64))
    bad = pl.repeat(value=False, n=frame.height, eager=True, dtype=pl.Boolean)
    for name, kind in kinds.items():
        column = loosely_typed(frame[name], kind, what)
        unreadable = column.is_null() & frame[name].is_not_null() & ~bad
        if unreadable.any():
            row = int(unreadable.arg_max() or 0)
            sentence = f"row {row}, {name} {shown(frame[name][row])} {RULES[kind]}"
            refused.add(f"unreadable {name}", sentence, int(unreadable.sum()))
            bad |= unreadable
        numbered = numbered.with_columns(column)
    return Table(numbered.filter(~bad), frame.height, refused)
