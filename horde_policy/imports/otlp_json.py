"""OTLP JSON: one request a line as the Collector's file exporter writes it, or a document, or an array of requests.

64-bit integers may be strings or numbers, enums numbers or names, NaN a string; lines of logs and traces may lie between
(exports.md 12). Typed structs are decoded and attributes stay raw: equal bytes are the same series.
"""

import json
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct

from horde_policy.errors import InputError
from horde_policy.imports.json_bounds import MAX_PARTS, elements, holds_more
from horde_policy.imports.names import LONG_SERIES, MAX_SERIES_CHARACTERS, Unread
from horde_policy.imports.otlp_points import (
    NO_RECORDED_VALUE,
    ExponentialShape,
    HistogramSeries,
    Metric,
    OtlpPoints,
    counter_series,
    exponential_point,
    histogram_series,
    resource_labels,
)
from horde_policy.imports.report import ReadLog
from horde_policy.imports.samples import RunBuilder
from horde_policy.imports.unpack import MAX_RECORD_BYTES, Unpacked

__all__ = ["read_otlp_json", "whole_lines"]

BLOCK_BYTES = 4 << 20
MOST_ATTRIBUTE_BYTES = 2 * MAX_SERIES_CHARACTERS
"""The longest text of attributes, or of bounds, that is looked into: JSON takes up to twice what it says."""

_NONE = Raw(b"")
_FLAGS = attrgetter("flags")
_PROTO_NAMES = (
    *("resource_metrics", "resource_logs", "resource_spans", "scope_metrics", "instrumentation_library_metrics", "data_points"),
    *("exponential_histogram", "aggregation_temporality", "is_monotonic", "start_time_unix_nano", "time_unix_nano"),
    *("as_int", "as_double", "bucket_counts", "explicit_bounds", "zero_count", "zero_threshold"),
)
"""The fields that are read and that proto files spell otherwise than JSON."""


class _Number(Struct, rename="camel", gc=False):
    attributes: Raw = Raw(b"[]")
    start_time_unix_nano: int = 0
    time_unix_nano: int = 0
    as_int: int | None = None
    as_double: float | None = None
    flags: int = 0


class _Histogram(Struct, rename="camel", gc=False):
    attributes: Raw = Raw(b"[]")
    start_time_unix_nano: int = 0
    time_unix_nano: int = 0
    count: int = 0
    sum: float | None = None
    bucket_counts: list[int] = []
    explicit_bounds: Raw = Raw(b"[]")
    flags: int = 0


class _Buckets(Struct, rename="camel"):
    offset: int = 0
    bucket_counts: list[int] = []


class _Exponential(Struct, rename="camel"):
    attributes: Raw = Raw(b"[]")
    start_time_unix_nano: int = 0
    time_unix_nano: int = 0
    count: int = 0
    sum: float | None = None
    scale: int = 0
    zero_count: int = 0
    zero_threshold: float = 0.0
    positive: _Buckets = msgspec.field(default_factory=_Buckets)
    flags: int = 0


class _Sum(Struct, rename="camel"):
    data_points: list[_Number] = []
    aggregation_temporality: int | str = 0
    is_monotonic: bool = False


class _Histograms(Struct, rename="camel"):
    data_points: list[_Histogram] = []
    aggregation_temporality: int | str = 0


class _Exponentials(Struct, rename="camel"):
    data_points: list[_Exponential] = []
    aggregation_temporality: int | str = 0


class _Points(Struct, rename="camel"):
    data_points: list[Raw] = []


class _Metric(Struct, rename="camel"):
    name: str = ""
    unit: str = ""
    sum: Raw = _NONE
    histogram: Raw = _NONE
    exponential_histogram: Raw = _NONE
    gauge: Raw = _NONE
    summary: Raw = _NONE


class _Scope(Struct, rename="camel"):
    metrics: list[_Metric] = []


class _Resource(Struct, rename="camel"):
    resource: Raw = Raw(b"{}")
    scope_metrics: list[_Scope] = []
    instrumentation_library_metrics: list[_Scope] = []


class _Request(Struct, rename="camel"):
    resource_metrics: list[_Resource] = []
    resource_logs: Raw = _NONE
    resource_spans: Raw = _NONE


class _Attribute(Struct):
    key: str
    value: dict[str, Any] = {}


class _Attributes(Struct):
    attributes: list[_Attribute] = []


_REQUEST = msgspec.json.Decoder(_Request, strict=False)
_SUM = msgspec.json.Decoder(_Sum, strict=False)
_HISTOGRAMS = msgspec.json.Decoder(_Histograms, strict=False)
_EXPONENTIALS = msgspec.json.Decoder(_Exponentials, strict=False)
_POINTS = msgspec.json.Decoder(_Points)
_ATTRIBUTES = msgspec.json.Decoder(list[_Attribute])
_OF_RESOURCE = msgspec.json.Decoder(_Attributes)
_BOUNDS = msgspec.json.Decoder(list[float], strict=False)


def read_otlp_json(content: Unpacked, log: ReadLog) -> RunBuilder:
    """Return the samples of the three families in OTLP JSON.

    Raises
    ------
    InputError
        Nothing of it can be read; or a document is not whole.
    """
    reader = _OtlpJson(log)
    if whole_lines(content.head):
        for block in content.lines(BLOCK_BYTES):
            ended = block.endswith(b"\n")
            lines = block.split(b"\n")
            for place, line in enumerate(lines):
                if line.strip():
                    reader.line(line, last=not ended and place == len(lines) - 1)
    else:
        with content.document() as document:
            reader.document(document)
    return reader.close()


def whole_lines(head: bytes) -> bool:
    r"""Return whether a JSON file has one document a line, as far as its beginning tells.

    >>> whole_lines(b'{"a":1}\n{"a":2}'), whole_lines(b'{\n"a":1}'), whole_lines(b'[{"a":1},')
    (True, False, False)
    """
    first, end, _ = head.lstrip().partition(b"\n")
    if not end:
        return not first.startswith(b"[")
    try:
        msgspec.json.decode(first, type=Raw)
    except msgspec.DecodeError:
        return False
    return True


@dataclass(slots=True)
class _Known:
    """One metric of one resource, and the series found for each raw text of attributes (and bounds)."""

    metric: Metric
    counters: dict[bytes, int | Unread] = field(default_factory=dict)
    histograms: dict[tuple[bytes, bytes], HistogramSeries | Unread] = field(default_factory=dict)
    unread: bool = False


class _OtlpJson:
    def __init__(self, log: ReadLog) -> None:
        self.log = log
        self.points = OtlpPoints(log)
        self._requests = self._unreadable = 0
        self._labels: dict[bytes, dict[str, str]] = {}
        self._metrics: dict[tuple[bytes, str, str, int | str], _Known] = {}

    def document(self, document: memoryview) -> None:
        """Take a request, or an array of requests."""
        try:
            if not bytes(document[:64]).lstrip().startswith(b"["):
                self._whole(msgspec.json.decode(document, type=Raw))
            elif holds_more(document, MAX_PARTS):
                for element in elements(document):
                    self._whole(element)
            else:
                for raw in msgspec.json.decode(document, type=list[Raw]):
                    self._whole(raw)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise InputError("export", self.log.file.name, "JSON", f"is not whole: {error}") from error

    def _whole(self, request: Raw | memoryview) -> None:
        size = memoryview(request).nbytes
        if size > MAX_RECORD_BYTES:
            raise InputError("export", self.log.file.name, size, f"bytes in one request: the most is {MAX_RECORD_BYTES}")
        self.line(bytes(request), last=False)

    def line(self, line: bytes, *, last: bool) -> None:
        """Take one request; a last line that is cut off is left out."""
        if holds_more(line, MAX_PARTS):
            rule = f"values and more in one request of {len(line)} bytes: export fewer points in one request"
            raise InputError("export", self.log.file.name, MAX_PARTS, rule)
        try:
            request = _REQUEST.decode(_camel(line) if b'"resource_' in line else line)
            self._requests += 1
            self._take(request)
        except (msgspec.DecodeError, UnicodeDecodeError, OverflowError, ValueError, RecursionError) as error:
            if last and not isinstance(error, msgspec.ValidationError):
                self.log.skip("a last line that is cut off", "(line)")
                self.log.problem("truncated", "the last line is cut off and left out")
                return
            self._unreadable += 1
            self.log.skip("a line that is no OTLP request", "(line)")
            self.log.problem("unreadable_line", f"a line is no OTLP request: {error}"[:300])

    def close(self) -> RunBuilder:
        """Return the samples; raise InputError if nothing was readable."""
        if self._unreadable and not self._requests:
            raise InputError("export", self.log.file.name, f"{self._unreadable} lines", "and none of them is an OTLP request")
        self.points.flush()
        return self.points.builder

    def _take(self, request: _Request) -> None:
        for name, raw in (("logs", request.resource_logs), ("traces", request.resource_spans)):
            if raw:
                self.log.skip("a request of another signal", name)
        for of_resource in request.resource_metrics:
            resource = bytes(of_resource.resource)
            if len(resource) > MOST_ATTRIBUTE_BYTES:
                self.log.skip(LONG_SERIES, "(resource)")
                continue
            for scope in (*of_resource.scope_metrics, *of_resource.instrumentation_library_metrics):
                for metric in scope.metrics:
                    self._metric(resource, metric)

    def _metric(self, resource: bytes, metric: _Metric) -> None:
        if not self.log.namer.wants(metric.name):
            self.log.skip("another metric", metric.name)
            return
        try:
            if metric.sum:
                self._sum(resource, metric, _SUM.decode(metric.sum))
            elif metric.histogram:
                self._histogram(resource, metric, _HISTOGRAMS.decode(metric.histogram))
            elif metric.exponential_histogram:
                self._exponential(resource, metric, _EXPONENTIALS.decode(metric.exponential_histogram))
            else:
                kind, raw = ("a gauge", metric.gauge) if metric.gauge else ("a summary", metric.summary)
                count = len(_POINTS.decode(raw).data_points) if raw else 0
                self.log.skip(f"{kind} where a counter or a histogram is meant", metric.name, count)
        except (msgspec.DecodeError, OverflowError) as error:
            self.log.skip("a metric whose points cannot be read", metric.name)
            self.log.problem("unreadable_points", f"points of {metric.name} cannot be read: {error}"[:300])

    def _of(self, resource: bytes, metric: _Metric, temporality: int | str) -> _Known:
        if isinstance(temporality, str):
            temporality = temporality[:64]
        key = (resource, metric.name, metric.unit[:64], temporality)
        if key not in self._metrics:
            self.log.remember(len(resource) + len(metric.name))
            if resource not in self._labels:
                self._labels[resource] = resource_labels(_texts(_OF_RESOURCE.decode(resource).attributes))
            self._metrics[key] = _Known(Metric(metric.name, temporality, self._labels[resource], metric.unit[:64]))
        return self._metrics[key]

    def _sum(self, resource: bytes, metric: _Metric, data: _Sum) -> None:
        of = self._of(resource, metric, data.aggregation_temporality)
        known, points = of.counters, data.data_points
        keys = [bytes(point.attributes) for point in points]
        for key in keys if not known.keys() >= set(keys) else ():
            if key not in known:
                texts = self._attributes(key)
                known[key] = found = (
                    counter_series(self.points, of.metric, texts, monotonic=data.is_monotonic)
                    if isinstance(texts, dict)
                    else texts
                )
                of.unread |= isinstance(found, Unread)
        values = [point.as_int for point in points]
        if of.unread or None in values or any(map(_FLAGS, points)):
            self._sum_one_by_one(metric.name, known, points)
            return
        self.points.values(
            [known[key] for key in keys],  # type: ignore[misc]
            [point.start_time_unix_nano for point in points],
            [point.time_unix_nano for point in points],
            values,  # type: ignore[arg-type]
        )

    def _sum_one_by_one(self, name: str, known: dict[bytes, int | Unread], points: list[_Number]) -> None:
        for point in points:
            sid = known[bytes(point.attributes)]
            value = point.as_int if point.as_int is not None else point.as_double
            if isinstance(sid, Unread):
                self.log.refuse(sid, name, 1)
            elif value is None or point.flags & NO_RECORDED_VALUE:
                self.log.skip("a point without a recorded value", name)
            else:
                self.points.value(sid, point.start_time_unix_nano, point.time_unix_nano, value)

    def _histogram(self, resource: bytes, metric: _Metric, data: _Histograms) -> None:
        of = self._of(resource, metric, data.aggregation_temporality)
        for point in data.data_points:
            if point.flags & NO_RECORDED_VALUE:
                self.log.skip("a point without a recorded value", metric.name)
                continue
            key = (bytes(point.attributes), bytes(point.explicit_bounds) if point.bucket_counts else b"")
            series = of.histograms.get(key)
            if series is None:
                series = of.histograms[key] = self._histogram_series(of.metric, *key, bucketed=bool(point.bucket_counts))
            if isinstance(series, Unread):
                self.log.refuse(series, metric.name, 1)
            elif series.layout is not None and len(point.bucket_counts) != len(series.layout.bounds) + 1:
                self.log.skip("a histogram point whose buckets do not fit its bounds", metric.name)
            else:
                start, t = point.start_time_unix_nano, point.time_unix_nano
                if series.layout is not None:
                    self.points.buckets(series.layout, series.stream, start, t, point.bucket_counts)
                self._count_and_sum(series, start, t, point.count, point.sum)

    def _histogram_series(self, metric: Metric, raw: bytes, bounds: bytes, *, bucketed: bool) -> HistogramSeries | Unread:
        texts = self._attributes(raw)
        if len(bounds) > MOST_ATTRIBUTE_BYTES:
            return Unread("a histogram of more buckets than any export has")
        if isinstance(texts, Unread):
            return texts
        return histogram_series(self.points, metric, texts, tuple(_BOUNDS.decode(bounds)) if bucketed else None)

    def _attributes(self, raw: bytes) -> dict[str, str] | Unread:
        """Return the attributes of a series that was not met before, as texts."""
        self.log.remember(len(raw))
        return _texts(_ATTRIBUTES.decode(raw)) if len(raw) <= MOST_ATTRIBUTE_BYTES else Unread(LONG_SERIES)

    def _exponential(self, resource: bytes, metric: _Metric, data: _Exponentials) -> None:
        of = self._of(resource, metric, data.aggregation_temporality)
        for point in data.data_points:
            if point.flags & NO_RECORDED_VALUE:
                self.log.skip("a point without a recorded value", metric.name)
                continue
            key = (bytes(point.attributes), b"exponential")
            series = of.histograms.get(key)
            if series is None:
                series = of.histograms[key] = self._histogram_series(of.metric, *key, bucketed=False)
            if isinstance(series, Unread):
                self.log.refuse(series, metric.name, 1)
                continue
            held = point.positive
            shape = ExponentialShape(point.scale, point.zero_count, point.zero_threshold, held.offset, held.bucket_counts)
            start, t = point.start_time_unix_nano, point.time_unix_nano
            exponential_point(self.points, series, start, t, shape)
            self._count_and_sum(series, start, t, point.count, point.sum)

    def _count_and_sum(self, series: HistogramSeries, start: int, t: int, count: int, total: float | None) -> None:
        self.points.value(series.count, start, t, count)
        if total is not None:
            self.points.value(series.sum, start, t, total * series.unit_s)


def _texts(attributes: list[_Attribute]) -> dict[str, str]:
    """Return attributes as texts; booleans as true and false, what is no plain value as JSON."""
    return {attribute.key: _text(attribute.value) for attribute in attributes}


def _text(value: dict[str, Any]) -> str:
    held = next(iter(value.values()), "")
    if isinstance(held, bool):
        return "true" if held else "false"
    return held if isinstance(held, str) else json.dumps(held)


def _camel(line: bytes) -> bytes:
    """Return a request with the field names of proto files as one with those of JSON.

    >>> _camel(b'{"resource_metrics":[{"key":"a_b","as_int":1}]}')
    b'{"resourceMetrics":[{"key":"a_b","asInt":1}]}'
    """
    for name in _PROTO_NAMES:  # by replacing, which takes no memory for each field, as decoding would
        first, *words = name.split("_")
        line = line.replace(f'"{name}":'.encode(), f'"{first}{"".join(map(str.capitalize, words))}":'.encode())
    return line
