"""OTLP protobuf: requests after 4-byte lengths (the Collector's file exporter), after varint lengths, or one request a file."""

from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2

from horde_policy.errors import InputError
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

__all__ = ["read_otlp_proto"]

MAX_REQUEST_BYTES = 16 << 20
"""The longest request. It is read as a whole, and takes up to 35 times its size; a sender's own limit is usually 4 MiB."""

_FIRST_FIELD = 0x0A

Data = metrics_pb2.Sum | metrics_pb2.Histogram | metrics_pb2.ExponentialHistogram
Point = metrics_pb2.NumberDataPoint | metrics_pb2.HistogramDataPoint | metrics_pb2.ExponentialHistogramDataPoint


def read_otlp_proto(content: Unpacked, log: ReadLog) -> RunBuilder:
    """Return the samples of the three families in OTLP protobuf; the framing is told by what the lengths lead to.

    Raises
    ------
    InputError
        No request can be read.
    """
    reader = _OtlpProto(log)
    try:
        if _prefix_size(content.head) == 4:
            reader.take_all(_length_prefixed(content))
        else:
            with content.document() as document:
                if len(document) > MAX_REQUEST_BYTES or not reader.take(bytes(document)):
                    reader.take_all(_varint_prefixed(document))
    except _TooLongError as error:
        rule = f"bytes in one request of OTLP protobuf: the most is {MAX_REQUEST_BYTES}"
        raise InputError("export", log.file.name, error.size, rule) from error
    return reader.close()


class _TooLongError(ValueError):
    """A request is longer than any is; ``size`` is what its length says."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def _prefix_size(head: bytes) -> int:
    """Return 4 where a 4-byte length stands before the first request, else 0."""
    size = int.from_bytes(head[:4], "big")
    return 4 if 0 < size <= MAX_RECORD_BYTES and head[4:5] == bytes([_FIRST_FIELD]) else 0


def _length_prefixed(content: Unpacked) -> Iterator[bytes | None]:
    """Give the requests behind 4-byte lengths; null for a last one that is cut off."""
    held, at = b"", 0
    for chunk in content.chunks():
        held, at = held[at:] + chunk, 0
        while len(held) - at >= 4:
            size = int.from_bytes(held[at : at + 4], "big")
            if size > MAX_RECORD_BYTES:  # no length of a record: the file is damaged
                yield None
                return
            if size > MAX_REQUEST_BYTES:
                raise _TooLongError(size)
            if len(held) - at - 4 < size:
                break
            yield held[at + 4 : at + 4 + size]
            at += 4 + size
    if len(held) > at:
        yield None


def _varint_prefixed(document: memoryview) -> Iterator[bytes | None]:
    """Give the requests behind varint lengths; null for a last one that is cut off."""
    at = 0
    while at < len(document):
        size, shift = 0, 0
        while at < len(document) and shift < 35:
            byte = document[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if at + size > len(document):
            yield None
            return
        if size > MAX_REQUEST_BYTES:
            raise _TooLongError(size)
        yield bytes(document[at : at + size])
        at += size


class _OtlpProto:
    def __init__(self, log: ReadLog) -> None:
        self.log = log
        self.points = OtlpPoints(log)
        self._requests = self._unreadable = 0
        self._series: dict[tuple[object, ...], HistogramSeries | int | Unread] = {}

    def take_all(self, records: Iterable[bytes | None]) -> None:
        """Take requests; one that cannot be read is counted, as a request of another signal often cannot."""
        for record in records:
            if record is None:
                self.log.skip("a last record that is cut off", "(record)")
                self.log.problem("truncated", "the last record is cut off and left out")
            elif not self.take(record):
                self._unreadable += 1
                self.log.skip("a record that is no request of metrics", "(record)")

    def take(self, record: bytes) -> bool:
        """Take one request; return whether it was one of metrics."""
        try:
            request = ExportMetricsServiceRequest.FromString(record)
        except DecodeError:
            return False
        metrics = [metric for of in request.resource_metrics for scope in of.scope_metrics for metric in scope.metrics]
        if not any(metric.name for metric in metrics):
            empty = not metrics and _all_known(request, record)
            self._requests += empty and len(record) > 0
            return empty
        self._requests += 1
        for of_resource in request.resource_metrics:
            resource = of_resource.resource
            labels = resource_labels({pair.key: _text(pair.value) for pair in resource.attributes})
            origin = resource.SerializeToString(deterministic=True)
            for scope in of_resource.scope_metrics:
                for metric in scope.metrics:
                    self._metric(origin, labels, metric)
        return True

    def close(self) -> RunBuilder:
        """Return the samples; raise InputError if no request was readable."""
        if not self._requests:
            raise InputError("export", self.log.file.name, "OTLP protobuf", "holds no request of metrics that can be read")
        self.points.flush()
        return self.points.builder

    def _metric(self, origin: bytes, labels: dict[str, str], metric: metrics_pb2.Metric) -> None:
        if not self.log.namer.wants(metric.name):
            self.log.skip("another metric", metric.name)
            return
        kind = metric.WhichOneof("data")
        kinds: dict[str, Data] = {
            "sum": metric.sum,
            "histogram": metric.histogram,
            "exponential_histogram": metric.exponential_histogram,
        }
        data = kinds.get(kind or "")
        if data is None:
            count = len(getattr(metric, kind).data_points) if kind else 0
            self.log.skip(f"a {kind} where a counter or a histogram is meant", metric.name, count)
            return
        of = Metric(metric.name, int(data.aggregation_temporality), labels, metric.unit)
        for point in data.data_points:
            if point.flags & NO_RECORDED_VALUE:
                self.log.skip("a point without a recorded value", metric.name)
            else:
                self._point(origin, of, point, monotonic=isinstance(data, metrics_pb2.Sum) and data.is_monotonic)

    def _point(self, origin: bytes, of: Metric, point: Point, *, monotonic: bool) -> None:
        texts = {pair.key: _text(pair.value) for pair in point.attributes}
        characters = sum(len(key) + len(text) for key, text in texts.items())
        if characters > MAX_SERIES_CHARACTERS:
            self.log.skip(LONG_SERIES, of.name)
            return
        bounds = None
        if isinstance(point, metrics_pb2.HistogramDataPoint) and point.bucket_counts:
            bounds = tuple(point.explicit_bounds)
        key = (origin, of.name, of.unit, of.temporality, tuple(sorted(texts.items())), type(point), bounds)
        series = self._series.get(key)
        if series is None:
            self.log.remember(len(origin) + characters)
            if isinstance(point, metrics_pb2.NumberDataPoint):
                series = counter_series(self.points, of, texts, monotonic=monotonic)
            else:
                series = histogram_series(self.points, of, texts, bounds)
            self._series[key] = series
        if isinstance(series, Unread):
            self.log.refuse(series, of.name, 1)
        elif isinstance(series, int):
            self._number(series, of, point)
        else:
            self._histogram(series, of, point)

    def _number(self, sid: int, of: Metric, point: Point) -> None:
        if not isinstance(point, metrics_pb2.NumberDataPoint):
            return
        kind = point.WhichOneof("value")
        if kind is None:
            self.log.skip("a point without a recorded value", of.name)
            return
        self.points.value(sid, point.start_time_unix_nano, point.time_unix_nano, getattr(point, kind))

    def _histogram(self, series: HistogramSeries, of: Metric, point: Point) -> None:
        if isinstance(point, metrics_pb2.HistogramDataPoint):
            start, t = point.start_time_unix_nano, point.time_unix_nano
            if series.layout is not None:
                if len(point.bucket_counts) != len(series.layout.bounds) + 1:
                    self.log.skip("a histogram point whose buckets do not fit its bounds", of.name)
                    return
                self.points.buckets(series.layout, series.stream, start, t, point.bucket_counts)
        elif isinstance(point, metrics_pb2.ExponentialHistogramDataPoint):
            start, t = point.start_time_unix_nano, point.time_unix_nano
            held = point.positive
            shape = ExponentialShape(point.scale, point.zero_count, point.zero_threshold, held.offset, held.bucket_counts)
            exponential_point(self.points, series, start, t, shape)
        else:
            return
        self.points.value(series.count, start, t, point.count)
        if point.HasField("sum"):
            self.points.value(series.sum, start, t, point.sum * series.unit_s)


def _all_known(request: ExportMetricsServiceRequest, record: bytes) -> bool:
    """Return whether a request holds nothing but what one of metrics may hold."""
    known = ExportMetricsServiceRequest()
    known.CopyFrom(request)
    known.DiscardUnknownFields()
    return bool(known.ByteSize() == len(record))


def _text(value: AnyValue) -> str:
    kind = value.WhichOneof("value")
    held = getattr(value, kind) if kind else ""
    if isinstance(held, bool):
        return "true" if held else "false"
    return str(held)
