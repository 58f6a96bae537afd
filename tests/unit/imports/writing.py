"""Writers of small exports for the tests: values stand in the test, the form is made here."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from horde_policy.imports import Imported, read_exports

DECISIONS = "horde_text_free_allowance_decisions"
ESTIMATED = "horde_text_free_allowance_estimated_wait_seconds"
QUEUE = "horde_text_queue_wait_seconds"
T0 = 1_790_000_000
"""2026-09-21 14:13:20 UTC."""


def labels(**of: str) -> str:
    """Labels as exposition writes them."""
    return "{" + ",".join(f'{name}="{text}"' for name, text in of.items()) + "}" if of else ""


def exposition(samples: Iterable[tuple[str, float, float]]) -> bytes:
    """Series, seconds after T0, value: as Prometheus text with timestamps in milliseconds."""
    return "".join(f"{series} {value:g} {round((T0 + at) * 1000)}\n" for series, at, value in samples).encode()


def decision(outcome: str, instance: str = "a", **more: str) -> str:
    return DECISIONS + labels(instance=instance, horde_outcome=outcome, **more)


def matrix(series: Mapping[str, Sequence[tuple[float, float]]], kind: str = "matrix") -> bytes:
    """A query_range answer: label set as JSON text, or a name, to points of (seconds after T0, value)."""
    result = []
    for key, points in series.items():
        metric = json.loads(key) if key.startswith("{") else {"__name__": key}
        result.append({"metric": metric, "values": [[T0 + at, f"{value:g}"] for at, value in points]})
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


def metric(outcome: str, instance: str = "a", **more: str) -> str:
    return json.dumps({"__name__": DECISIONS, "instance": instance, "horde_outcome": outcome, **more})


def attributes(of: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return [{"key": key, "value": {kinds[type(value)]: value}} for key, value in of.items()]


def nano(at: float) -> str:
    return str(round((T0 + at) * 1e9))


def otlp(
    *points: dict[str, Any],
    name: str = "horde.text.free_allowance.decisions",
    temporality: Any = 2,
    kind: str = "sum",
    resource: dict[str, Any] | None = None,
    unit: str = "1",
) -> bytes:
    """One line of the Collector's file exporter with one metric."""
    data: dict[str, Any] = {"dataPoints": list(points), "aggregationTemporality": temporality}
    if kind == "sum":
        data["isMonotonic"] = True
    of = {"service.name": "ai-horde", "service.instance.id": "a"} if resource is None else resource
    scope = {"scope": {"name": "horde"}, "metrics": [{"name": name, "unit": unit, kind: data}]}
    request = {"resourceMetrics": [{"resource": {"attributes": attributes(of)}, "scopeMetrics": [scope]}]}
    return json.dumps(request, separators=(",", ":")).encode() + b"\n"


def number(value: int, start: float, at: float, **of: Any) -> dict[str, Any]:
    """A counter's point; seconds after T0, 64-bit integers as strings."""
    names = {f"horde.{key}": text for key, text in of.items()}
    return {"attributes": attributes(names), "startTimeUnixNano": nano(start), "timeUnixNano": nano(at), "asInt": str(value)}


def histogram(counts: list[int], bounds: list[float], total: float, start: float, at: float, **of: Any) -> dict[str, Any]:
    names = {f"horde.{key}": text for key, text in of.items()}
    return {
        "attributes": attributes(names),
        "startTimeUnixNano": nano(start),
        "timeUnixNano": nano(at),
        "count": str(sum(counts)),
        "sum": total,
        "bucketCounts": [str(count) for count in counts],
        "explicitBounds": bounds,
    }


def outcomes(imported: Imported) -> dict[str | None, tuple[float, float]]:
    """Outcome to (low, high), over the whole import."""
    totals = imported.decisions.group_by("outcome").agg(pl.col("count_low", "count_high").sum())
    return {outcome: (low, high) for outcome, low, high in totals.iter_rows()}


def intervals(imported: Imported) -> list[tuple[Any, ...]]:
    """Rows of the decisions as (start, end, outcome, low, high), times in seconds after T0."""
    rows = imported.decisions.select("interval_start", "interval_end", "outcome", "count_low", "count_high").rows()
    return sorted((seconds(start), seconds(end), *rest) for start, end, *rest in rows)


def seconds(instant: Any) -> float | None:
    return None if instant is None else instant.timestamp() - T0


def buckets(imported: Imported, kind: str = "queue") -> dict[tuple[float, float], tuple[float, float]]:
    """(lower, upper] to (low, high), over the whole import."""
    waits = imported.waits.filter(pl.col("kind") == kind)
    totals = waits.group_by("lower_s", "upper_s").agg(pl.col("count_low", "count_high").sum())
    return {(lower, upper): (low, high) for lower, upper, low, high in totals.sort("lower_s", "upper_s").iter_rows()}


def codes(imported: Imported) -> set[str]:
    return {problem.code for problem in imported.problems}


def sums(imported: Imported, kind: str = "queue") -> tuple[float, float]:
    """(count, seconds) of the waits, over the whole import."""
    of = imported.wait_sums.filter(pl.col("kind") == kind)
    return float(of["count_high"].sum()), float(of["sum_high_s"].sum())


def classic(name: str, per_bucket: dict[float, int], total: float, at: float, **of: str) -> list[tuple[str, float, float]]:
    """A classic histogram's series at one time, from the count in each bucket by its upper bound."""
    rows, running = [], 0
    for upper, count in per_bucket.items():
        running += count
        rows.append((name + "_bucket" + labels(**of, le="+Inf" if upper == float("inf") else f"{upper:g}"), at, float(running)))
    return [*rows, (name + "_count" + labels(**of), at, float(running)), (name + "_sum" + labels(**of), at, total)]


def exponential(scale: int, offset: int, counts: list[int], start: float, at: float, zero: int = 0) -> dict[str, Any]:
    return {
        "attributes": [],
        "startTimeUnixNano": nano(start),
        "timeUnixNano": nano(at),
        "count": str(sum(counts) + zero),
        "sum": 10.0,
        "scale": scale,
        "zeroCount": str(zero),
        "positive": {"offset": offset, "bucketCounts": [str(count) for count in counts]},
    }


PLAIN = exposition([(decision("free"), 0, 1), (decision("free"), 60, 4)])
"""Three free decisions between two looks."""

OTLP_LINES = otlp(number(5, 0, 60, outcome="free")) + otlp(number(9, 0, 120, outcome="free"))
"""Five free decisions in the first minute, four in the second."""


def rich() -> Imported:
    """An import with decisions, classic and exponential waits, and two records with start times."""
    rows = [(decision("free", horde_chat="true"), float(at), 7.0 + at // 20) for at in range(0, 600, 60)]
    for at in range(0, 600, 60):
        rows += classic(ESTIMATED, {0.0: 1, 60.0: at // 60, float("inf"): at // 120}, at * 2.0, at, instance="a")
    native = otlp(exponential(1, 11, [3, 1], 0, 60), name="horde.text.queue_wait_seconds", kind="exponentialHistogram")
    return read_exports([exposition(rows), OTLP_LINES, native])
