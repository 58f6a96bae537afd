"""Prometheus text exposition and OpenMetrics: one scrape, or many with timestamps, scrape by scrape or series by series.

Blocks of lines go through Polars; a line that does not have the usual shape goes through an exact parser, one by one. The strict
OpenMetrics grammar is not asked for: dumps that list a histogram series by series are real.
"""

import re

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.exceptions import PolarsError

from horde_policy.errors import InputError, shown
from horde_policy.imports.names import LONG_SERIES, MAX_SERIES_CHARACTERS, Named
from horde_policy.imports.report import MOST_NAMES, ReadLog
from horde_policy.imports.samples import NO_TIME, UNTIMED, RunBuilder
from horde_policy.imports.unpack import HEAD_BYTES, Unpacked, long_lines

__all__ = ["parse_line", "parse_series", "read_exposition"]

BLOCK_BYTES = 8 << 20

MOST_REMEMBERED = 4_000_000
"""So many series of any metric are known by their hash; beyond that those of other metrics are told anew in each block."""

MILLISECONDS_FROM = 1e11
"""A timestamp from here on is in milliseconds (Prometheus text), below in seconds (OpenMetrics): the year 5138, or 1973."""

_STEMS = ["free_allowance", "queue_wait", "free.allowance", "queue.wait"]
# possessive: what a label's text holds is never tried again, which would take 200 bytes a character
_QUOTED = r'"((?:[^"\\]++|\\.)*+)"'
_LABEL = re.compile(rf"\s*(?:([A-Za-z_:][\w:.]*)|{_QUOTED})\s*(?:=\s*{_QUOTED})?\s*(,|$)", re.DOTALL)
_NAME = re.compile(r"\s*([A-Za-z_:][\w:.]*)?\s*")
_ESCAPE = re.compile(r'\\([\\"n])')
_BROKEN = -1

Codes = npt.NDArray[np.int64]


def parse_series(text: str) -> tuple[str, dict[str, str]] | None:
    r"""Return the metric's name and the labels of a series as exposition writes it; null if it is not well-formed.

    Examples
    --------
    >>> parse_series('a_total{x="1",le="+Inf"}')
    ('a_total', {'x': '1', 'le': '+Inf'})
    >>> parse_series('{"horde.text.queue_wait_seconds",x="a}\\"b"}')
    ('horde.text.queue_wait_seconds', {'x': 'a}"b'})
    """
    head = _NAME.match(text)
    name = head[1] or "" if head else ""
    rest = text[head.end() :] if head else text
    labels: dict[str, str] = {}
    if not rest:
        return (name, labels) if name else None
    if not (rest.startswith("{") and rest.rstrip().endswith("}")):
        return None
    inside, at = rest.rstrip()[1:-1].rstrip(), 0
    while at < len(inside):
        found = _LABEL.match(inside, at)
        if found is None:
            return None
        plain, quoted, value, _ = found.groups()
        label = plain if plain is not None else _unescaped(quoted)
        if value is None:
            if name or plain is not None:
                return None
            name = label
        else:
            labels[label] = _unescaped(value)
        at = found.end()
    return (name, labels) if name or labels else None


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], text) if "\\" in text else text


def parse_line(line: str) -> tuple[str, float, float | None] | None:
    """Return series, value and timestamp (as written) of one sample line; null if it is none.

    >>> parse_line('a{x="} 1"} +Inf 1790000000.5 # {trace_id="b"} 1')
    ('a{x="} 1"}', inf, 1790000000.5)
    """
    text = line.strip()
    end = _end_of_series(text)
    if end is None:
        return None
    words = text[end:].split(" # ", 1)[0].split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return None
    if not 1 <= len(numbers) <= 2:
        return None
    return text[:end], numbers[0], numbers[1] if len(numbers) == 2 else None


def _end_of_series(text: str) -> int | None:
    head = _NAME.match(text)
    at = head.end() if head else 0
    if not text.startswith("{", at):
        return at if head and head[1] and at < len(text) else None
    quoted, escaped = False, False
    for place in range(at, len(text)):
        letter = text[place]
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = quoted
        elif letter == '"':
            quoted = not quoted
        elif letter == "}" and not quoted:
            return place + 1
    return None


def read_exposition(content: Unpacked, log: ReadLog) -> RunBuilder:
    """Return the samples of the three families in a text exposition.

    A sample without a timestamp takes the time that the mapping says for the file, or :data:`UNTIMED`.

    Raises
    ------
    InputError
        The same series occurs twice without a timestamp; or a line is longer than any export's.
    """
    reader = _Exposition(log)
    tail = b""
    for block in content.lines(BLOCK_BYTES):
        end = block.rfind(b"\n") + 1
        tail = block[end:]
        if end:
            reader.read(block[:end])
    reader.close(tail, damaged=content.damage is not None)
    return reader.builder


class _KnownSeries:
    """What the series texts of a file mean; each is parsed once and then known by its hash.

    A code of 0 or more stands for a series that was understood; below :data:`_BROKEN` for one that was not, by what it is.
    """

    def __init__(self, log: ReadLog, builder: RunBuilder) -> None:
        self.log = log
        self.builder = builder
        self._hashes = np.empty(0, dtype=np.uint64)
        self._codes = np.empty(0, dtype=np.int64)
        self._named: list[tuple[int, float, int]] = []
        self._others: dict[tuple[str, str], int] = {}
        self._prefilter = not log.mapping.series

    def codes(self, texts: pl.Series) -> Codes:
        """Return the code of each series text."""
        if self._hashes.size > MOST_REMEMBERED:
            ours = self._codes >= 0
            self._hashes, self._codes = self._hashes[ours], self._codes[ours]
        hashes = texts.hash().to_numpy()
        place = np.searchsorted(self._hashes, hashes)
        known = np.zeros(hashes.size, dtype=np.bool_)
        inside = place < self._hashes.size
        known[inside] = self._hashes[place[inside]] == hashes[inside]
        if not known.all():
            fresh, first = np.unique(hashes[~known], return_index=True)
            self._learn(fresh, texts.filter(pl.Series(~known))[first])
            place = np.searchsorted(self._hashes, hashes)
        return self._codes[place]

    def _learn(self, hashes: npt.NDArray[np.uint64], texts: pl.Series) -> None:
        codes = np.empty(hashes.size, dtype=np.int64)
        ours = texts.str.contains_any(_STEMS).to_numpy() if self._prefilter else np.ones(hashes.size, dtype=np.bool_)
        for place in np.flatnonzero(ours).tolist():
            codes[place] = self._code(texts[place])
        names = texts.filter(pl.Series(~ours)).str.extract(r"^\s*([A-Za-z_:][\w:.]*)\s*(?:\{|$)")
        codes[~ours] = [_BROKEN if name is None else self._other("another metric", name) for name in names]
        everything = np.concatenate([self._hashes, hashes])
        order = np.argsort(everything, kind="stable")
        self._hashes, self._codes = everything[order], np.concatenate([self._codes, codes])[order]

    def _code(self, text: str) -> int:
        parsed = parse_series(text)
        if parsed is None:
            return _BROKEN
        named = self.log.namer.named(*parsed)
        if not isinstance(named, Named):
            return self._other(named.reason, parsed[0] or "(no name)")
        self.log.remember(len(text))
        covers = NO_TIME if named.range_s is None else round(named.range_s * 1e6)
        self._named.append((self.log.number(self.builder, named), named.scale, covers))
        return len(self._named) - 1

    def _other(self, reason: str, name: str) -> int:
        if len(self._others) > MOST_NAMES and (reason, name) not in self._others:
            name = "…"
        return _BROKEN - 1 - self._others.setdefault((reason, name), len(self._others))

    def refuse(self, codes: Codes) -> None:
        """Count samples of series that were not understood."""
        others = list(self._others)
        for place, count in zip(*np.unique(_BROKEN - 1 - codes, return_counts=True), strict=True):
            reason, name = others[place]
            self.log.skip(reason, name, int(count))

    def meaning(self, codes: Codes) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return number, factor and covered time in µs of each understood series."""
        sid, scale, covers = zip(*self._named, strict=True)
        numbers = np.array(sid, dtype=np.uint32)
        return numbers[codes], np.array(scale, dtype=np.float64)[codes], np.array(covers, dtype=np.int64)[codes]


class _Exposition:
    def __init__(self, log: ReadLog) -> None:
        self.log = log
        self.builder = RunBuilder(entire=True)
        self._series = _KnownSeries(log, self.builder)
        self._untimed: set[int] = set()
        self._stamp_sizes: set[int] = set()
        self._ended = self._fractions = False
        said = log.mapping.scrape_time(log.file.name, log.file.modified)
        self._scraped = UNTIMED if said is None else round(said.timestamp() * 1e6)

    def read(self, block: bytes) -> None:
        """Take whole lines: at once if every line has the usual shape, else each as it is."""
        block = self._without_long_lines(block)
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        self._ended = block[-64:].rstrip().endswith(b"# EOF")
        if not self._at_once(block):
            self._line_by_line(block)

    def _without_long_lines(self, block: bytes) -> bytes:
        """Return the block without lines that are longer than a series may be; those that are no comments are counted."""
        kept, at = [], 0
        for begin, end in long_lines(block, MAX_SERIES_CHARACTERS):
            if not block[begin : begin + HEAD_BYTES].lstrip().startswith(b"#"):
                self.log.skip(LONG_SERIES, "(line)")
            kept.append(block[at:begin])
            at = end
        return b"".join([*kept, block[at:]]) if at else block

    def _at_once(self, block: bytes) -> bool:
        """Take a block in which each line is a series, a blank, a value, a blank and a timestamp; return whether it is one."""
        try:
            frame = pl.read_csv(
                block,
                separator=" ",
                has_header=False,
                quote_char=None,
                schema={"series": pl.String, "value": pl.Float64, "t": pl.Float64},
                encoding="utf8-lossy",
                ignore_errors=True,
                truncate_ragged_lines=True,
                missing_columns="insert",
                extra_columns="ignore",
            )
        except PolarsError:
            return False
        if b"#" in block:  # cheaper than to have Polars look for comments
            frame = frame.filter(~pl.col("series").str.starts_with("#"))
        if not frame.height or frame["t"].null_count() or frame["value"].null_count() or frame["series"].null_count():
            return False
        code = self._series.codes(frame["series"])
        if (code == _BROKEN).any():
            return False
        if not self._stamp_sizes:
            self._stamp_sizes.update(len(line.rsplit(b" ", 1)[-1]) for line in block[:HEAD_BYTES].split(b"\n")[:-1])
        self._add(code, frame["value"], frame["t"])
        return True

    def _line_by_line(self, block: bytes) -> None:
        """Take lines of any shape: those without labels or time in one go, what is left one by one."""
        separator = next((mark for mark in map(chr, range(1, 32)) if mark not in "\t\n\r" and mark.encode() not in block), None)
        if separator is None:
            self._one_by_one(block.decode(errors="replace").split("\n"))
            return
        lines = pl.read_csv(
            block,
            separator=separator,
            has_header=False,
            quote_char=None,
            schema={"line": pl.String},
            encoding="utf8-lossy",
            comment_prefix="#",
        ).filter(pl.col("line") != "")
        if lines.height:
            self._split(lines, exemplars=b" # " in block)

    def _split(self, lines: pl.DataFrame, *, exemplars: bool) -> None:
        labelled = pl.col("line").str.splitn("} ", 2)
        bare = pl.col("line").str.splitn(" ", 2)
        frame = lines.select("line", (labelled.struct[0] + "}").alias("series"), labelled.struct[1].alias("rest"))
        if frame["rest"].null_count():
            frame = frame.with_columns(
                pl.when(pl.col("rest").is_null()).then(bare.struct[0]).otherwise("series").alias("series"),
                pl.coalesce("rest", bare.struct[1]),
            )
        if exemplars:
            frame = frame.with_columns(pl.col("rest").str.splitn(" # ", 2).struct[0].str.strip_chars_end())
        words = pl.col("rest").str.splitn(" ", 2)
        frame = frame.with_columns(words.struct[0].alias("value"), words.struct[1].alias("stamp"))
        frame = frame.with_columns(
            pl.col("value").cast(pl.Float64, strict=False), pl.col("stamp").cast(pl.Float64, strict=False).alias("t")
        )
        self._stamp_sizes.update(frame["stamp"].str.len_bytes().drop_nulls().unique().to_list())
        code = self._series.codes(frame["series"].fill_null(""))
        # a brace and a blank inside a label's value look like the end of the labels
        odd = frame["value"].is_null() | (frame["t"].is_null() & frame["stamp"].is_not_null()) | pl.Series(code == _BROKEN)
        if odd.any():
            self._one_by_one(frame.filter(odd)["line"].to_list())
            frame, code = frame.filter(~odd), code[~odd.to_numpy()]
        self._add(code, frame["value"], frame["t"])

    def _one_by_one(self, lines: list[str]) -> None:
        """Take lines that do not have the usual shape."""
        rows = []
        for line in lines:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            parsed = parse_line(line)
            if parsed is None or parse_series(parsed[0]) is None:
                self.log.skip("a line that is no sample", "(line)")
                self.log.problem("unreadable_line", f"{shown(line)} is no sample: name, labels, value and time", "note")
            else:
                rows.append(parsed)
        if rows:
            schema = {"series": pl.String, "value": pl.Float64, "t": pl.Float64}
            frame = pl.DataFrame(rows, schema=schema, orient="row")
            self._add(self._series.codes(frame["series"]), frame["value"], frame["t"])

    def _add(self, code: Codes, value: pl.Series, stamps: pl.Series) -> None:
        """Take samples of series by their codes; those that were not understood are counted."""
        ours = code >= 0
        if not ours.all():
            self._series.refuse(code[~ours])
            code, value, stamps = code[ours], value.filter(pl.Series(ours)), stamps.filter(pl.Series(ours))
        if code.size:
            sid, scale, covers = self._series.meaning(code)
            t = self._times(stamps, sid)
            start = np.where((covers != NO_TIME) & (t > UNTIMED), t - covers, NO_TIME)
            self.builder.add(sid, start, t, value.to_numpy() * scale)

    def _times(self, stamps: pl.Series, sid: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        known = stamps.is_not_null().to_numpy()
        said = stamps.fill_null(0.0).to_numpy()
        said = np.where(np.isfinite(said), said, 0.0)
        seconds = np.abs(said) < MILLISECONDS_FROM
        self._fractions |= bool((seconds & known).any())
        micro = np.rint(np.clip(np.where(seconds, said * 1e6, said * 1e3), -(2.0**60), 2.0**60)).astype(np.int64)
        if not known.all():
            without = sid[~known].tolist()
            again = self._untimed.intersection(without) or len(set(without)) < len(without)
            if again:
                rule = "several scrapes in one file need timestamps; else a file each, and scraped_at in a mapping"
                raise InputError("export", self.log.file.name, "a series twice without a timestamp", rule)
            self._untimed.update(without)
        return np.where(known, micro, self._scraped)

    def close(self, tail: bytes, *, damaged: bool) -> None:
        """Take the last line if it lacks its end but is whole all the same; say if the file seems to be cut short."""
        line = self._without_long_lines(tail).decode(errors="replace").strip()
        if line.startswith("#"):
            self._ended = line == "# EOF"
        elif line:
            self._take_tail(line, damaged=damaged)
        if self._fractions and not self._ended and not damaged:
            self.log.problem("no_eof", "OpenMetrics ends with # EOF, which is not there: the file may be cut short", "note")

    def _take_tail(self, line: str, *, damaged: bool) -> None:
        stamp = line.rsplit(" ", 1)[-1]
        whole = parse_line(line) is not None and not damaged
        if whole and self._stamp_sizes:
            whole = len(stamp) in self._stamp_sizes
        if not whole:
            self.log.skip("a last line that is cut off", "(line)")
            self.log.problem("truncated", f"the last line is cut off and left out: {shown(line)}")
            return
        if not self._stamp_sizes:
            self.log.problem("unterminated", f"the last line has no end; its value may be cut off: {shown(line)}", "note")
        self._one_by_one([line])
