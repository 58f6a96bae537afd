"""Grafana's CSV in all its forms: series joined by time, long form, Excel's, and the old writers' (exports.md 15).

Raw exports carry epoch milliseconds and ``undefined`` for missing cells; formatted ones rounded values such as ``1.44 K``, and
local times without a zone, for which a mapping must say the zone. Header cells carry label sets, or a legend that only a mapping
understands.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from zoneinfo import ZoneInfo

import numpy as np

from horde_policy.errors import InputError, shown
from horde_policy.imports.containers import csv_fault
from horde_policy.imports.exposition import parse_series
from horde_policy.imports.names import Named
from horde_policy.imports.report import ReadLog
from horde_policy.imports.samples import NO_TIME, RunBuilder
from horde_policy.imports.unpack import Unpacked

__all__ = ["instant_of", "number_of", "read_grafana_csv"]

BLOCK_BYTES = 4 << 20
FLUSH_SAMPLES = 200_000

MAX_ROW_CHARACTERS, MAX_COLUMNS = 8 << 20, 100_000
"""The longest row, which may go over several lines, and the most columns. Ten thousand series beside each other take 3 MB."""

_TIME_TITLES = frozenset({"time", "timestamp", "date", "ts"})
_VALUE_TITLE = re.compile(r"value(\s*#\w+)?", re.IGNORECASE)
_MISSING = frozenset({"", "null", "undefined", "nan", "none", "-", "no data"})
_SHORT = {"": 1.0, "K": 1e3, "Mil": 1e6, "M": 1e6, "Bil": 1e9, "B": 1e9, "G": 1e9, "Tri": 1e12, "T": 1e12}
_NUMBER = re.compile(r"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z]*)")
_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?(\s*[A-Za-z]+)?")
_EPOCH = re.compile(r"\d{9,19}(\.\d+)?")
_LOCAL_FORMATS = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
)
_UNIT_WORDS = {"s": 1.0, "ms": 0.001, "mins": 60.0, "min": 60.0, "hour": 3600.0, "hours": 3600.0, "day": 86400.0, "days": 86400.0}


def number_of(cell: str) -> tuple[float, bool] | None:
    """Return a cell's number, and whether it was rounded for show; null for a missing value.

    Raises ValueError for a text that is no number.

    Examples
    --------
    >>> number_of("1443"), number_of("1,443"), number_of("1.44 K"), number_of("undefined")
    ((1443.0, False), (1443.0, False), (1440.0, True), None)
    """
    text = cell.strip().strip('"').replace("\u00a0", " ")
    if text.lower() in _MISSING:
        return None
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(text)
    amount, suffix = float(found[1]), found[2]
    if suffix in _SHORT:
        return amount * _SHORT[suffix], bool(suffix)
    if suffix in _UNIT_WORDS:
        return amount * _UNIT_WORDS[suffix], True
    raise ValueError(text)


def instant_of(cell: str, zone: ZoneInfo | None) -> int | None:
    """Return a cell's time in µs; null for a local time without a zone when none is known.

    Raises ValueError for a text that is no time.

    Examples
    --------
    >>> instant_of("1790000000000", None) == instant_of("2026-09-21T14:13:20Z", None) == 1_790_000_000_000_000
    True
    >>> instant_of("2026-09-21 14:13:20", None) is None
    True
    """
    text = cell.strip().strip('"')
    if _EPOCH.fullmatch(text):
        number = float(text)
        scale = next((by for least, by in ((1e17, 1e-3), (1e14, 1.0), (1e11, 1e3)) if number >= least), 1e6)
        return int(text) // 1000 if scale == 1e-3 and text.isdigit() else round(number * scale)
    for form in _LOCAL_FORMATS:
        try:
            local = datetime.strptime(text, form)  # noqa: DTZ007 (the zone is the question)
        except ValueError:
            continue
        return None if zone is None else _local_micros(local, zone)
    said = datetime.fromisoformat(text)
    if said.tzinfo is None:
        return None if zone is None else _local_micros(said, zone)
    return _micros(said)


class AmbiguousTimeError(ValueError):
    """A local time that the clock shows twice when it is set back."""


def _local_micros(local: datetime, zone: ZoneInfo) -> int:
    first, second = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        raise AmbiguousTimeError(local)
    return _micros(first)


def _micros(instant: datetime) -> int:
    return round(instant.astimezone(UTC).timestamp() * 1e6)


def read_grafana_csv(content: Unpacked, log: ReadLog) -> RunBuilder:
    """Return the samples of the three families in Grafana's CSV.

    Raises
    ------
    InputError
        Its times are local and no zone is known; or it has no column of time.
    """
    reader = _Tables(log)
    text = _lines(content)
    first = next(text, "")
    separator = None
    if first.lower().startswith("sep="):
        separator, first = first.rstrip("\r\n")[4:5] or ",", next(text, "")  # which may be a tab or a blank
    separator = separator or max("\t;,", key=_outside_quotes(first).count)
    number = 0
    try:
        feed = _Feed(log.file.name, first, text)
        for number, row in enumerate(csv.reader(feed, delimiter=separator), start=1):
            feed.characters = 0
            reader.row(number, row)
    except csv.Error as error:
        raise InputError("export", log.file.name, "CSV", f"cannot be read: {csv_fault(error)}") from error
    reader.flush()
    if content.damage is not None or reader.short_row == number:
        log.problem("truncated", "the file ends early; its last row may be incomplete")
    return reader.builder


def _outside_quotes(line: str) -> str:
    return re.sub(r'"[^"]*"', "", line)


def _lines(content: Unpacked) -> Iterator[str]:
    for block in content.lines(BLOCK_BYTES, longest=MAX_ROW_CHARACTERS):
        yield from io.StringIO(block.decode(errors="replace"), newline=None)


class _Feed:
    """Lines for a reader of rows; refuses a row that goes on and on. ``characters`` are those since the last row."""

    def __init__(self, name: str, first: str, rest: Iterator[str]) -> None:
        self.name = name
        self.characters = 0
        self._lines = chain([first], rest)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.characters += len(line)
        if self.characters > MAX_ROW_CHARACTERS:
            rule = f"characters in one row: the most is {MAX_ROW_CHARACTERS}"
            raise InputError("export", self.name, self.characters, rule)
        return line


@dataclass(slots=True)
class _Table:
    """The columns of one table: where the time is, which columns are values, and in long form which are labels."""

    time: int
    width: int
    wide: dict[int, Named] = field(default_factory=dict)
    unread: dict[int, str] = field(default_factory=dict)
    value: int | None = None
    labels: dict[int, str] = field(default_factory=dict)
    series: int | None = None


class _Tables:
    """One table, or several one after the other, each with a header row of its own."""

    def __init__(self, log: ReadLog) -> None:
        self.log = log
        self.builder = RunBuilder(lookback=True)
        self._table: _Table | None = None
        self._known: dict[tuple[str, ...], Named | None] = {}
        self._names: dict[tuple[str, ...], str] = {}
        self._sid: list[int] = []
        self._start: list[int] = []
        self._t: list[int] = []
        self._value: list[float] = []
        self._rounded = 0
        self.short_row: int | None = None

    def row(self, number: int, row: list[str]) -> None:
        """Take a header or a row of values."""
        if len(row) > MAX_COLUMNS:
            rule = f"columns: the most is {MAX_COLUMNS}"
            raise InputError("export", f"{self.log.file.name}, row {number}", len(row), rule)
        if not any(cell.strip() for cell in row):
            return  # the last line of an export, or the seam of two tables
        if self._is_header(row):
            self._table = self._header(row)
            return
        if self._table is None:
            raise InputError("export", f"{self.log.file.name}, row {number}", row[0], "is no header with a column of time")
        self._values(self._table, number, row)

    def _is_header(self, row: list[str]) -> bool:
        return any(cell.strip().lower() in _TIME_TITLES for cell in row) and not any(
            _EPOCH.fullmatch(cell.strip()) for cell in row[:2]
        )

    def _header(self, row: list[str]) -> _Table:
        titles = [cell.strip() for cell in row]
        time = next(place for place, title in enumerate(titles) if title.lower() in _TIME_TITLES)
        table = _Table(time, len(row))
        values = [place for place, title in enumerate(titles) if _VALUE_TITLE.fullmatch(title)]
        others = [place for place in range(len(row)) if place != time and place not in values]
        if len(values) == 1 and not any(self._is_series(titles[place]) for place in others):
            table.value = values[0]
            table.series = next((place for place in others if titles[place].lower() in {"series", "metric"}), None)
            table.labels = {place: titles[place] for place in others if place != table.series and titles[place]}
            return table
        for place in (*others, *values):
            if titles[place]:
                named = self._series(titles[place])
                if named is not None:
                    table.wide[place] = named
        table.wide = dict(sorted(table.wide.items()))
        table.unread = {place: titles[place] for place in (*others, *values) if titles[place] and place not in table.wide}
        return table

    def _is_series(self, title: str) -> bool:
        parsed = parse_series(title)
        return parsed is not None and ("{" in title or self.log.namer.wants(parsed[0]))

    def _series(self, title: str) -> Named | None:
        """Return what a header cell or a series name means."""
        key = ("title", title)
        if key not in self._known:
            name, labels = parse_series(title) or ("", {})
            if "{" not in title and not self.log.namer.wants(name):
                name, labels = "", {}
            self._remember(key, name, labels, title)
        return self._known[key]

    def _remember(self, key: tuple[str, ...], name: str, labels: dict[str, str], title: str | None) -> None:
        own = labels.pop("__name__", "") or name
        self.log.remember(sum(map(len, key)))
        named = self.log.namer.named(own, labels, title=title)
        self._known[key] = named if isinstance(named, Named) else None
        if not isinstance(named, Named):
            self._names[key] = named.reason

    def _values(self, table: _Table, number: int, row: list[str]) -> None:
        where = f"{self.log.file.name}, row {number}"
        if len(row) < table.width:
            self.log.skip("a row that is too short", "(row)")
            self.short_row = number
            self.log.problem("short_row", f"row {number} has {len(row)} of {table.width} cells and is left out")
            return
        try:
            t = instant_of(row[table.time], self.log.mapping.time_zone)
        except AmbiguousTimeError:
            self.log.skip("a row whose local time occurs twice", "(row)")
            self.log.problem("ambiguous_time", f"row {number}: {row[table.time]} occurs twice, as the clock is set back", "note")
            return
        except (ValueError, OverflowError):
            self.log.skip("a row without a readable time", "(row)")
            self.log.problem("unreadable_time", f"row {number}: {shown(row[table.time])} is no time")
            return
        if t is None:
            rule = "is a local time without a zone: say time_zone in a mapping, or export raw values"
            raise InputError("export", where, row[table.time], rule)
        if table.value is not None:
            self._take(self._long(table, row), number, t, row[table.value])
            return
        for place, named in table.wide.items():
            self._take(named, number, t, row[place])
        for place, title in table.unread.items():
            if row[place].strip().lower() not in _MISSING:
                self.log.skip(self._names.get(("title", title), "a column"), title)

    def _long(self, table: _Table, row: list[str]) -> Named | None:
        if table.series is not None and not table.labels:
            return self._series_of_row(row[table.series])
        cells = tuple(row[place] for place in table.labels)
        key = ("long", row[table.series] if table.series is not None else "", *cells)
        if key not in self._known:
            labels = {title: cell for title, cell in zip(table.labels.values(), cells, strict=True) if cell}
            name, own = parse_series(key[1]) or ("", {})
            self._remember(key, name, {**own, **labels}, key[1] or None)
        if self._known[key] is None:
            self.log.skip(self._names[key], key[1] or "(row)")
        return self._known[key]

    def _series_of_row(self, title: str) -> Named | None:
        named = self._series(title)
        if named is None:
            self.log.skip(self._names.get(("title", title), "a series"), title)
        return named

    def _take(self, named: Named | None, number: int, t: int, cell: str) -> None:
        if named is None:
            return
        try:
            found = number_of(cell)
        except ValueError:
            self.log.skip("a cell that is no number", "(cell)")
            self.log.problem("unreadable_cell", f"row {number}: {shown(cell)} is no number")
            return
        if found is None or not math.isfinite(found[0]):
            return
        self._rounded += found[1]
        self._sid.append(self.log.number(self.builder, named))
        self._start.append(NO_TIME if named.range_s is None else t - round(named.range_s * 1e6))
        self._t.append(t)
        self._value.append(found[0] * named.scale)
        if len(self._sid) >= FLUSH_SAMPLES:
            self.flush()

    def flush(self) -> None:
        """Give what was taken to the builder, and say if values were rounded for show."""
        if self._sid:
            columns: Sequence[list[int]] = (self._sid, self._start, self._t)
            sid, start, t = (np.asarray(column, dtype=np.int64) for column in columns)
            self.builder.add(sid.astype(np.uint32), start, t, np.asarray(self._value, dtype=np.float64))
        self._sid, self._start, self._t, self._value = [], [], [], []
        if self._rounded:
            text = f"{self._rounded} values were rounded for show (such as 1.44 K): what they counted is lost; export raw values"
            self.log.problem("rounded", text)
            self._rounded = 0
