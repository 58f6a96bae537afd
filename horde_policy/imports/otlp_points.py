"""What OTLP metrics mean, whichever encoding they came in: points of the three families become samples.

Cumulative histograms become series that count up to each bound, as in Prometheus, so that records of one process in both forms
merge; deltas become buckets. Exponential histograms keep their own buckets (exports.md 14).
"""

import math
from array import array
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from horde_policy.imports.histograms import exponential_bins
from horde_policy.imports.names import Named, Unread
from horde_policy.imports.report import ReadLog
from horde_policy.imports.samples import NO_TIME, RunBuilder

__all__ = [
    "NO_RECORDED_VALUE",
    "ExponentialShape",
    "HistogramSeries",
    "Layout",
    "Metric",
    "OtlpPoints",
    "counter_series",
    "exponential_point",
    "histogram_series",
    "resource_labels",
]

FLUSH_POINTS = 200_000
_TEMPORALITY = {
    1: "delta",
    2: "cumulative",
    "AGGREGATION_TEMPORALITY_DELTA": "delta",
    "AGGREGATION_TEMPORALITY_CUMULATIVE": "cumulative",
}
NO_RECORDED_VALUE = 1
"""The flag of a point that says: nothing here."""


def resource_labels(attributes: MappingOf[str, str]) -> dict[str, str]:
    """Return a resource's attributes as the labels that Prometheus makes of them: ``job`` and ``instance``.

    Without an instance id every attribute stays, and the start times tell processes apart (exports.md 5).

    Examples
    --------
    >>> resource_labels({"service.name": "ai-horde", "service.instance.id": "a", "host.name": "h"})
    {'job': 'ai-horde', 'instance': 'a'}
    """
    labels = {}
    name, space = attributes.get("service.name"), attributes.get("service.namespace")
    if name:
        labels["job"] = f"{space}/{name}" if space else name
    if instance := attributes.get("service.instance.id"):
        return {**labels, "instance": instance}
    told = {"service.name", "service.namespace"}
    return {**labels, **{key.replace(".", "_"): text for key, text in attributes.items() if key not in told}}


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of one resource: its name, how its values count, and the resource's labels."""

    name: str
    temporality: int | str
    labels: MappingOf[str, str]
    unit: str = ""

    @property
    def seconds_per_unit(self) -> float:
        """Return what bounds and sums are to be multiplied by."""
        return 0.001 if self.unit == "ms" else 1.0


@dataclass(slots=True)
class Layout:
    """Points of histograms with the same bounds, flat."""

    bounds: tuple[float, ...]
    streams: list[npt.NDArray[np.uint32]] = field(default_factory=list)
    stream: "array[int]" = field(default_factory=lambda: array("q"))
    start: "array[int]" = field(default_factory=lambda: array("q"))
    t: "array[int]" = field(default_factory=lambda: array("q"))
    counts: "array[int]" = field(default_factory=lambda: array("q"))
    cumulative: bool = True


@dataclass(frozen=True, slots=True)
class ExponentialShape:
    """The buckets of one exponential histogram point."""

    scale: int
    zero_count: int
    zero_threshold: float
    offset: int
    counts: Sequence[int]


@dataclass(slots=True)
class OtlpPoints:
    """Takes points one after the other and gives them to a builder in blocks."""

    log: ReadLog
    builder: RunBuilder = field(default_factory=lambda: RunBuilder(entire=True))
    _sid: "array[int]" = field(default_factory=lambda: array("I"))
    _start: "array[int]" = field(default_factory=lambda: array("q"))
    _t: "array[int]" = field(default_factory=lambda: array("q"))
    _value: "array[float]" = field(default_factory=lambda: array("d"))
    _layouts: dict[tuple[tuple[float, ...], bool], Layout] = field(default_factory=dict)
    _held: int = 0

    def series(self, metric: Metric, attributes: MappingOf[str, str]) -> Named | Unread:
        """Return what the points of a metric with these attributes are."""
        temporality = _TEMPORALITY.get(metric.temporality)
        if temporality is None:
            return Unread("a metric that does not say whether it is cumulative or delta")
        labels = {**metric.labels, **attributes}
        return self.log.namer.named(metric.name, labels, temporality=temporality, native=True)  # type: ignore[arg-type]

    def number_of(self, named: Named, **changes: object) -> int:
        """Return the number of a series, or of a part of its histogram."""
        return self.log.number(self.builder, replace(named, key=named.key._replace(**changes)))  # type: ignore[arg-type]

    def value(self, sid: int, start_ns: int, t_ns: int, value: float) -> None:
        """Take one number; raise OverflowError for one that no 64 bits hold, and take nothing."""
        try:
            self._value.append(value)
            self._start.append(start_ns // 1000 if start_ns else NO_TIME)
            self._t.append(t_ns // 1000)
        except OverflowError:
            for column in (self._value, self._start, self._t):
                del column[len(self._sid) :]
            raise
        self._sid.append(sid)
        self._held += 1
        if self._held >= FLUSH_POINTS:
            self.flush()

    def values(self, sids: list[int], starts_ns: list[int], times_ns: list[int], values: list[float]) -> None:
        """Take many numbers; raise OverflowError as :meth:`value`, and take none of them."""
        whole = len(self._sid)
        try:
            self._value.extend(values)
            self._start.extend([start // 1000 if start else NO_TIME for start in starts_ns])
            self._t.extend([time // 1000 for time in times_ns])
        except OverflowError:
            for column in (self._value, self._start, self._t):
                del column[whole:]
            raise
        self._sid.extend(sids)
        self._held += len(sids)
        if self._held >= FLUSH_POINTS:
            self.flush()

    def layout(self, bounds: tuple[float, ...], *, cumulative: bool) -> Layout:
        """Return where points with these bounds are gathered."""
        return self._layouts.setdefault((bounds, cumulative), Layout(bounds, cumulative=cumulative))

    def stream(self, layout: Layout, named: Named) -> int:
        """Return the number of a histogram within its layout."""
        uppers = [*layout.bounds, math.inf]
        if layout.cumulative:
            numbers = [self.number_of(named, part="le", lower_s=None, upper_s=upper) for upper in uppers]
        else:
            lowers = [0.0, *layout.bounds]
            numbers = [
                self.number_of(named, part="bin", lower_s=min(lower, upper), upper_s=upper)
                for lower, upper in zip(lowers, uppers, strict=True)
            ]
        layout.streams.append(np.array(numbers, dtype=np.uint32))
        return len(layout.streams) - 1

    def buckets(self, layout: Layout, stream: int, start_ns: int, t_ns: int, counts: Sequence[int]) -> None:
        """Take the counts of one histogram point, one more than there are bounds; raise OverflowError as :meth:`value`."""
        try:
            layout.start.append(start_ns // 1000 if start_ns else NO_TIME)
            layout.t.append(t_ns // 1000)
            layout.counts.extend(counts)
        except OverflowError:
            whole = len(layout.stream)
            del layout.start[whole:], layout.t[whole:], layout.counts[whole * (len(layout.bounds) + 1) :]
            raise
        layout.stream.append(stream)
        self._held += len(counts)
        if self._held >= FLUSH_POINTS:
            self.flush()

    def exponential(self, named: Named, start_ns: int, t_ns: int, bins: list[float], scale: float) -> None:
        """Take one exponential point; its buckets are lower, upper, count, lower and so on."""
        start, t = (start_ns // 1000 if start_ns else NO_TIME), t_ns // 1000
        bins = [entry if place % 3 == 2 else entry * scale for place, entry in enumerate(bins)]
        if named.key.temporality == "cumulative":
            sid = self.number_of(named, part="native")
            self._add([sid], [start], [t], [sum(bins[2::3])], [bins])
            return
        triples = list(zip(bins[0::3], bins[1::3], bins[2::3], strict=True))
        sids = [self.number_of(named, part="bin", lower_s=lower, upper_s=upper) for lower, upper, _ in triples]
        self._add(sids, [start] * len(sids), [t] * len(sids), [count for _, _, count in triples], None)

    def _add(
        self,
        sid: Sequence[int],
        start: Sequence[int],
        t: Sequence[int],
        value: Sequence[float],
        bins: Sequence[list[float] | None] | None,
    ) -> None:
        if sid:
            starts, times = (np.asarray(one, dtype=np.int64) for one in (start, t))
            self.builder.add(np.asarray(sid, dtype=np.uint32), starts, times, np.asarray(value, dtype=np.float64), bins)

    def flush(self) -> None:
        """Give what was taken to the builder."""
        if self._sid:
            self._add(self._sid, self._start, self._t, self._value, None)
            self._sid, self._start, self._t, self._value = array("I"), array("q"), array("q"), array("d")
        for layout in self._layouts.values():
            if layout.stream:
                self._flush_layout(layout)
        self._held = 0

    def _flush_layout(self, layout: Layout) -> None:
        width = len(layout.bounds) + 1
        counts = np.asarray(layout.counts, dtype=np.float64).reshape(-1, width)
        if layout.cumulative:
            counts = np.cumsum(counts, axis=1)
        sid = np.stack(layout.streams)[np.asarray(layout.stream)]
        start, t = (np.repeat(np.asarray(one, dtype=np.int64), width) for one in (layout.start, layout.t))
        sid, value = sid.ravel(), counts.ravel()
        if not layout.cumulative:
            held = value != 0
            sid, start, t, value = sid[held], start[held], t[held], value[held]
        if sid.size:
            self.builder.add(sid, start, t, value)
        layout.stream, layout.start, layout.t, layout.counts = array("q"), array("q"), array("q"), array("q")


@dataclass(frozen=True, slots=True)
class HistogramSeries:
    """Where the points of one histogram go: its buckets, its count and its sum; ``unit_s`` is its unit in seconds."""

    named: Named
    layout: Layout | None
    stream: int
    count: int
    sum: int
    unit_s: float


def histogram_series(
    points: OtlpPoints, metric: Metric, attributes: MappingOf[str, str], bounds: tuple[float, ...] | None
) -> HistogramSeries | Unread:
    """Return where the points of a histogram go; ``bounds`` is null for an exponential one, and for one without buckets."""
    named = points.series(metric, attributes)
    if isinstance(named, Unread):
        return named
    if named.key.family == "decisions":
        return Unread("a histogram where a counter is meant")
    unit_s = named.unit_s if named.unit_s != 1.0 else metric.seconds_per_unit
    if bounds is not None and any(not low < high for low, high in pairwise((-math.inf, *bounds, math.inf))):
        return Unread("a histogram whose bounds do not rise")
    layout, stream = None, 0
    if bounds is not None:
        cumulative = named.key.temporality == "cumulative"
        layout = points.layout(tuple(bound * unit_s for bound in bounds), cumulative=cumulative)
        stream = points.stream(layout, named)
    return HistogramSeries(
        named, layout, stream, points.number_of(named, part="count"), points.number_of(named, part="sum"), unit_s
    )


def counter_series(points: OtlpPoints, metric: Metric, attributes: MappingOf[str, str], *, monotonic: bool) -> int | Unread:
    """Return the number of the series that a counter's points belong to."""
    named = points.series(metric, attributes)
    if isinstance(named, Unread):
        return named
    if named.key.family != "decisions":
        return Unread("a counter where a histogram is meant")
    return points.number_of(named, part="value") if monotonic else Unread("a sum that may fall where a counter is meant")


def exponential_point(points: OtlpPoints, series: HistogramSeries, start_ns: int, t_ns: int, shape: ExponentialShape) -> None:
    """Take the buckets of one exponential point."""
    bins = exponential_bins(shape.scale, shape.zero_count, shape.zero_threshold, shape.offset, shape.counts)
    points.exponential(series.named, start_ns, t_ns, bins, series.unit_s)
