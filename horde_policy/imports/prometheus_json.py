"""Answers of the Prometheus HTTP API, saved or live: ``query``, ``query_range``, ranges of raw samples; one or many in a file.

A range answer is evaluated on a grid and repeats a series' last value for the look-back (exports.md 2), so it is read as such.
Series without a name come of ``increase()``, ``rate()`` or ``sum by``; a mapping must say what they count (exports.md 7). The
points of a long answer stay raw until their series is known, so that what is of no use costs no memory.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw, Struct

from horde_policy.errors import InputError, shown
from horde_policy.imports.json_bounds import MAX_OBJECTS, MAX_PARTS, holds_more
from horde_policy.imports.names import LONG_SERIES, MAX_SERIES_CHARACTERS, Named, bound_of
from horde_policy.imports.otlp_json import whole_lines
from horde_policy.imports.report import ReadLog
from horde_policy.imports.samples import NO_TIME, RunBuilder
from horde_policy.imports.unpack import MAX_RECORD_BYTES, Unpacked

__all__ = ["read_prometheus_json"]

BLOCK_BYTES = 4 << 20
FLUSH_POINTS = 200_000
MOST_LABEL_BYTES = 2 * MAX_SERIES_CHARACTERS
_NONE = Raw(b"")


class _Series(Struct):
    metric: Raw = Raw(b"{}")
    values: Raw = _NONE
    value: Raw = _NONE
    histograms: Raw = _NONE
    histogram: Raw = _NONE


class _Data(Struct, rename={"result_type": "resultType"}):
    result: Raw = _NONE
    result_type: Raw = _NONE


class _Answer(Struct, rename={"error_type": "errorType"}):
    status: Raw = _NONE
    data: Raw = _NONE
    error: Raw = _NONE
    error_type: Raw = _NONE
    warnings: Raw = _NONE
    infos: Raw = _NONE
    result: Raw = _NONE
    metric: Raw = _NONE


class _Native(Struct):
    count: float
    sum: float
    buckets: list[tuple[int, float, float, float]] = []


_POINTS = msgspec.json.Decoder(list[tuple[float, float]], strict=False)
_POINT = msgspec.json.Decoder(tuple[float, float], strict=False)
_TEXT_POINTS = msgspec.json.Decoder(list[tuple[float, str]])
_TEXT_POINT = msgspec.json.Decoder(tuple[float, str])
_NATIVES = msgspec.json.Decoder(list[tuple[float, _Native]], strict=False)
_NATIVE = msgspec.json.Decoder(tuple[float, _Native], strict=False)
_SERIES = msgspec.json.Decoder(list[_Series])
_ONE_SERIES = msgspec.json.Decoder(_Series)
_LABELS = msgspec.json.Decoder(dict[str, str])
_TEXT = msgspec.json.Decoder(str)
_TEXTS = msgspec.json.Decoder(list[str])
_DATA = msgspec.json.Decoder(_Data)


def read_prometheus_json(content: Unpacked, log: ReadLog) -> RunBuilder:
    """Return the samples of the three families in API answers.

    Raises
    ------
    InputError
        The JSON is not whole, is no answer, or is the server's refusal.
    """
    reader = _Answers(log)
    if whole_lines(content.head):
        for block in content.lines(BLOCK_BYTES):
            for line in block.split(b"\n"):
                if line.strip():
                    reader.answer(memoryview(line))
    else:
        with content.document() as document:
            reader.answer(document)
    reader.flush()
    return reader.builder


class _Answers:
    def __init__(self, log: ReadLog) -> None:
        self.log = log
        self.builder = RunBuilder(lookback=True)
        self._held: list[tuple[npt.NDArray[Any], ...]] = []
        self._bins: list[list[float] | None] = []

    def answer(self, text: memoryview | bytes) -> None:
        """Take one answer: whole, or its ``data``, or its list of series."""
        name = self.log.file.name
        if holds_more(text, MAX_OBJECTS, b"{"):
            rule = "objects and more in one answer: ask for fewer series at a time"
            raise InputError("export", name, MAX_OBJECTS, rule)
        try:
            if bytes(text[:64]).lstrip().startswith(b"["):
                self._result(Raw(text))
                return
            answer = msgspec.json.decode(text, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError("export", name, "JSON", f"is not a whole answer of the Prometheus API: {error}") from error
        try:
            said = _text(answer.error)
            if _text(answer.status) == "error" or said:
                rule = f"is the server's refusal, not data: {shown(said)}"
                raise InputError("export", name, _text(answer.error_type), rule)
            for warning in (*_texts(answer.warnings), *_texts(answer.infos)):
                self.log.problem("server_warning", f"the server said of this answer: {shown(warning)}")
            if answer.metric:
                self._series(_ONE_SERIES.decode(text))
            elif answer.data:
                self._data(answer.data)
            elif answer.result:
                self._result(answer.result)
            else:
                raise InputError("export", name, sorted(_keys(text)), "are the keys of no Prometheus API answer")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError("export", name, "JSON", f"is no answer of query or query_range: {error}") from error

    def _data(self, raw: Raw) -> None:
        if bytes(raw)[:1] == b"[":
            self._result(raw)
            return
        data = _DATA.decode(raw)
        kind = _text(data.result_type)
        if kind in {"scalar", "string"}:
            self.log.skip(f"an answer of type {kind}", "(no name)")
        elif data.result:
            self._result(data.result)

    def _result(self, raw: Raw) -> None:
        for one in _SERIES.decode(raw):
            self._series(one)

    def _series(self, series: _Series) -> None:
        self._bounded(series)
        if memoryview(series.metric).nbytes > MOST_LABEL_BYTES:
            self.log.skip(LONG_SERIES, "(series)")
            return
        labels = _LABELS.decode(series.metric)
        name = labels.pop("__name__", "")
        named = self.log.namer.named(name, labels, native=True)
        points = _points(series)
        natives = _NATIVES.decode(series.histograms) if series.histograms else []
        natives += [_NATIVE.decode(series.histogram)] if series.histogram else []
        if not isinstance(named, Named):
            self.log.refuse(named, name, len(points) + len(natives))
            return
        if points and named.key.part == "native":
            self.log.skip("a value where a histogram is meant", name, len(points))
        elif points:
            times, values = zip(*points, strict=True)
            self._add(named, times, values)
        if natives and named.key.part != "native":
            self.log.skip("a histogram where a value is meant", name, len(natives))
        elif natives:
            self._natives(named, natives)

    def _bounded(self, series: _Series) -> None:
        """Refuse a series whose points would fill the memory."""
        for raw in (series.values, series.histograms, series.value, series.histogram):
            points = memoryview(raw)
            if points.nbytes > MAX_RECORD_BYTES or holds_more(points, MAX_PARTS):
                rule = f"bytes of points in one series: the most is {MAX_RECORD_BYTES}, and {MAX_PARTS} values"
                raise InputError("export", self.log.file.name, points.nbytes, rule)

    def _add(
        self, named: Named, times: Sequence[float], values: Sequence[float], bins: list[list[float] | None] | None = None
    ) -> None:
        t = _micros(times)
        start = np.full(t.size, NO_TIME) if named.range_s is None else t - round(named.range_s * 1e6)
        sid = np.full(t.size, self.log.number(self.builder, named), dtype=np.uint32)
        self._held.append((sid, start, t, np.asarray(values, dtype=np.float64) * named.scale))
        self._bins.extend([None] * t.size if bins is None else bins)
        if len(self._bins) >= FLUSH_POINTS:
            self.flush()

    def flush(self) -> None:
        """Give what was taken to the builder."""
        if self._held:
            sid, start, t, value = (np.concatenate(parts) for parts in zip(*self._held, strict=True))
            usable = t > NO_TIME
            if not usable.all():
                self.log.skip("a time that is none", "(samples)", int((~usable).sum()))
            bins = [one for one, use in zip(self._bins, usable.tolist(), strict=True) if use] if any(self._bins) else None
            self.builder.add(sid[usable], start[usable], t[usable], value[usable], bins)
        self._held, self._bins = [], []

    def _natives(self, named: Named, natives: list[tuple[float, _Native]]) -> None:
        times = [time for time, _ in natives]
        states = [state for _, state in natives]
        self._add(named, times, [state.count for state in states], [list(_bins(state, named.unit_s)) for state in states])
        counts, sums = named.key._replace(part="count"), named.key._replace(part="sum")
        self._add(replace(named, key=counts, scale=1.0), times, [state.count for state in states])
        self._add(replace(named, key=sums, scale=named.unit_s), times, [state.sum for state in states])


def _text(raw: Raw) -> str:
    """Return a text of the answer; a mark instead of one that is longer than any message."""
    if not raw:
        return ""
    return _TEXT.decode(raw) if memoryview(raw).nbytes <= MOST_LABEL_BYTES else "…"


def _texts(raw: Raw) -> list[str]:
    if not raw:
        return []
    return _TEXTS.decode(raw) if memoryview(raw).nbytes <= MOST_LABEL_BYTES else ["…"]


def _points(series: _Series) -> list[tuple[float, float]]:
    """Return the points of a range or of an instant; values are texts such as 5, NaN or +Inf."""
    raw, many = (series.values, True) if series.values else (series.value, False)
    if not raw:
        return []
    try:
        return _POINTS.decode(raw) if many else [_POINT.decode(raw)]
    except msgspec.ValidationError:
        texts = _TEXT_POINTS.decode(raw) if many else [_TEXT_POINT.decode(raw)]
        return [(time, bound if (bound := bound_of(text)) is not None else math.nan) for time, text in texts]


def _bins(state: _Native, unit_s: float) -> Iterator[float]:
    """Give the buckets as lower, upper, count, lower and so on; waits are not negative, so the bucket around 0 begins there."""
    for _, lower, upper, count in sorted(state.buckets, key=lambda bucket: bucket[2]):
        if count and upper >= 0:
            yield from (max(lower, 0.0) * unit_s, upper * unit_s, count)


def _micros(times: Sequence[float]) -> npt.NDArray[np.int64]:
    seconds = np.asarray(times, dtype=np.float64)
    fits = np.abs(seconds) < 1e11
    return np.where(fits, np.rint(np.where(fits, seconds, 0.0) * 1e6).astype(np.int64), NO_TIME)


def _keys(text: memoryview | bytes) -> list[str]:
    """Return the keys of what is no answer, if they are few enough to be named."""
    return list(msgspec.json.decode(text, type=dict[str, Raw])) if len(text) <= MOST_LABEL_BYTES else ["…"]
