"""A synthetic production week: the project's own telemetry on the real OpenTelemetry SDK, in compressed time.

A script drives real decisions of the rule through :class:`AllowanceTelemetry` in two server processes. One restarts several
times, the other is born in mid-week; one label set is born late. What the SDK's own exporters write is kept beside the script's
own tally. Nothing here is recorded from a real server.
"""

import io
import math
import random
from collections import Counter
from dataclasses import dataclass, field
from unittest.mock import patch

from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.json.file.metric_exporter import FileMetricExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics import Counter as SdkCounter
from opentelemetry.sdk.metrics import Histogram as SdkHistogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, generate_latest

from horde_policy.frames.decisions import size_of
from horde_policy.policy.decision import Pool, Request, decide
from horde_policy.policy.eligibility import Worker
from horde_policy.policy.telemetry import WAIT_BOUNDARIES_S, AllowanceTelemetry
from horde_policy.settings import AllowanceSettings

MIDNIGHT = 1_790_035_200
"""2026-09-22 00:00:00 UTC, a Tuesday."""

DAY = 86_400
_SDK = "opentelemetry.sdk.metrics._internal."
_CLOCKS = ("metric_reader_storage.time_ns", "_view_instrument_match.time_ns", "instrument.time_ns")
_SIZES = (80, 300, 512, 600, 1024, 1500, 2048, 3000, 4096, 6000)

Key = tuple[str, str, str, str, bool]
WaitKey = tuple[str, str | None, float]


@dataclass
class Tally:
    """What was counted: decisions by label set, waits by kind, requester and bucket's upper bound, seconds by kind."""

    decisions: Counter[Key] = field(default_factory=Counter)
    waits: Counter[WaitKey] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        self.decisions.update(other.decisions)
        self.waits.update(other.waits)
        for kind, total in other.seconds.items():
            self.seconds[kind] += total


@dataclass
class Week:
    """What the exporters wrote, and the tallies: of everything, of each day, and of what no scrape saw before a restart."""

    begin: int
    cumulative: bytes = b""
    delta: bytes = b""
    scrapes: bytes = b""
    tally: Tally = field(default_factory=Tally)
    days: list[Tally] = field(default_factory=list)
    unscraped: Tally = field(default_factory=Tally)
    restarts: int = 0

    def protobuf(self) -> list[bytes]:
        """The cumulative export as protobuf requests."""
        lines = [line for line in self.cumulative.splitlines() if line.strip()]
        return [json_format.Parse(line, ExportMetricsServiceRequest()).SerializeToString() for line in lines]


class _Clock:
    def __init__(self, begin: int) -> None:
        self.ns = begin * 10**9

    def __call__(self) -> int:
        return self.ns


class _Process:
    """One life of a server process: its SDK with three exporters, and what it counted since the last scrape."""

    def __init__(self, name: str, cumulative: io.StringIO, delta: io.StringIO) -> None:
        deltas = {SdkCounter: AggregationTemporality.DELTA, SdkHistogram: AggregationTemporality.DELTA}
        self.registry = CollectorRegistry()
        self.readers = [
            PeriodicExportingMetricReader(FileMetricExporter(stream=cumulative), export_interval_millis=math.inf),
            PeriodicExportingMetricReader(
                FileMetricExporter(stream=delta, preferred_temporality=deltas), export_interval_millis=math.inf
            ),
        ]
        prometheus = PrometheusMetricReader(
            registry=self.registry, resource_attribute_filter=lambda key: key.startswith("service.")
        )
        resource = Resource({"service.name": "ai-horde", "service.instance.id": name})
        self.provider = MeterProvider([*self.readers, prometheus], resource=resource, shutdown_on_exit=False)
        self.telemetry = AllowanceTelemetry(self.provider)
        self.since = Tally()

    def export(self) -> None:
        for reader in self.readers:
            reader.collect()

    def scrape(self, at: float) -> str:
        self.since = Tally()
        lines = generate_latest(self.registry).decode().splitlines()
        return "".join(line + "\n" if line.startswith("#") else f"{line} {round(at * 1000)}\n" for line in lines)


def _bound(wait_s: float) -> float:
    return next((bound for bound in WAIT_BOUNDARIES_S if wait_s <= bound), math.inf)


def _serve(process: _Process, rng: random.Random, hour: float, *, late: bool) -> Tally:
    """One request: the rule's decision and, if it is served, its assignments, into telemetry and tally."""
    worker = Worker(worker_id="w", models=("m",), max_length=16384, max_context_length=16384, speed_tok_per_s=20.0)
    load = 4000.0 * (1.0 + math.sin((hour - 9.0) / 24.0 * 2.0 * math.pi))
    queued = rng.choice([0.0, 1200.0, 6000.0, round(rng.random() * load)])  # 1200 and 6000 tokens: exactly 60 and 300 s
    length, chat = rng.choice(_SIZES), rng.random() < 0.3
    requester = "shared_key" if late and rng.random() < 0.1 else rng.choice(["anonymous", "anonymous", "registered"])
    request = Request(
        models=("m",),
        max_length=length,
        max_context_length=max(2048, length),
        requester=requester,  # type: ignore[arg-type]
        can_pay=requester != "anonymous" and rng.random() < 0.5,
        chat=chat,
        allow_downgrade=not chat and rng.random() < 0.3,
    )
    decision = decide(request, Pool(workers=(worker,), queued_tokens=queued), AllowanceSettings())
    process.telemetry.record_decision(decision)
    tally = Tally()
    tally.decisions[
        (requester, decision.outcome, size_of(decision.measured_max_length), size_of(decision.allowance_tokens), chat)
    ] += 1
    if decision.estimated_wait_s is not None:
        tally.waits[("estimated", None, _bound(decision.estimated_wait_s))] += 1
        tally.seconds["estimated"] += decision.estimated_wait_s  # type: ignore[assignment]
    if decision.outcome != "refused":
        for _ in range(rng.choice([1, 1, 2])):
            wait_s = rng.choice([60.0, 300.0, round(rng.random() * 400.0, 3)])
            process.telemetry.record_assignment(request.requester, wait_s)
            tally.waits[("queue", requester, _bound(wait_s))] += 1
            tally.seconds["queue"] += wait_s  # type: ignore[assignment]
    return tally


def produced(seed: int, step_s: int, days: int = 7, requests_per_step: int = 6, begin: int = MIDNIGHT) -> Week:
    """The week from ``begin`` on, exported and scraped every ``step_s`` seconds."""
    rng, clock, week = random.Random(seed), _Clock(begin), Week(begin)
    streams = {name: (io.StringIO(), io.StringIO()) for name in ("a", "b")}
    scrapes: list[str] = []
    living: dict[str, _Process] = {}
    with _Patches(clock):
        for step in range(days * DAY // step_s):
            now = begin + step * step_s
            if step % (DAY // step_s) == 0:
                week.days.append(Tally())
            for name, (cumulative, delta) in streams.items():
                clock.ns = now * 10**9 + 1
                born_later = name == "b" and now < begin + 2.5 * DAY
                if name not in living and not born_later:
                    living[name] = _Process(name, cumulative, delta)
                if name in living:
                    _live(living, name, week, rng, clock, now, step_s, scrapes, requests_per_step)
        for process in living.values():
            process.provider.shutdown()
    week.cumulative = "".join(cumulative.getvalue() for cumulative, _ in streams.values()).encode()
    week.delta = "".join(delta.getvalue() for _, delta in streams.values()).encode()
    week.scrapes = "".join(scrapes).encode()
    for day in week.days:
        week.tally.add(day)
    return week


def _live(
    living: dict[str, _Process], name: str, week: Week, rng: random.Random, clock: _Clock, begin: int, step_s: int,
    scrapes: list[str], most: int,
) -> None:  # fmt: skip
    """One step of one process: requests, an export and a scrape at its end; a restart now and then, in mid-step."""
    process = living[name]
    late = begin >= week.begin + 5 * DAY
    for part in range(rng.randint(0, most)):
        clock.ns = begin * 10**9 + (part + 1) * step_s * 10**9 // (most + 2)
        tally = _serve(process, rng, begin % DAY / 3600.0, late=late)
        week.days[-1].add(tally)
        process.since.add(tally)
    end = begin + step_s
    if name == "a" and rng.random() < 5.0 * step_s / (7 * DAY):
        clock.ns = end * 10**9 - 10**6
        process.export()  # the last flush of a server that is stopped; what no scrape saw is gone for Prometheus
        process.provider.shutdown()
        week.unscraped.add(process.since)
        week.restarts += 1
        del living[name]
        return
    clock.ns = end * 10**9
    process.export()
    scrapes.append(process.scrape(end))


class _Patches:
    def __init__(self, clock: _Clock) -> None:
        self._patches = [patch(_SDK + name, clock) for name in _CLOCKS]

    def __enter__(self) -> None:
        for one in self._patches:
            one.start()

    def __exit__(self, *_: object) -> None:
        for one in self._patches:
            one.stop()
