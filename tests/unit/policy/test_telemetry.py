"""Exactly the instruments of A25–A27 come out of the API, into the SDK's own reader."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, Metric, NumberDataPoint, Sum

from horde_policy.errors import InputError
from horde_policy.policy.decision import Decision, Pool, Request, decide
from horde_policy.policy.eligibility import Worker
from horde_policy.policy.telemetry import AllowanceTelemetry, size_bucket
from horde_policy.settings import AllowanceSettings
from tests.unit.policy import strategies as some

SETTINGS = AllowanceSettings()
WORKER = Worker(worker_id="w", models=("m",), max_length=16384, max_context_length=16384)
LIFECYCLE = [0, 1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1200, 1800, 3600]


class Meters:
    """A reader and the telemetry that writes to it."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader], shutdown_on_exit=False)
        self.telemetry = AllowanceTelemetry(self.provider)

    def metrics(self) -> dict[str, Metric]:
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {m.name: m for r in data.resource_metrics for scope in r.scope_metrics for m in scope.metrics}

    def counts(self) -> dict[tuple[tuple[str, Any], ...], float]:
        points = self.metrics()["horde.text.free_allowance.decisions"].data.data_points
        return {
            tuple(sorted((point.attributes or {}).items())): point.value for point in points if isinstance(point, NumberDataPoint)
        }

    def histogram(self, name: str) -> list[HistogramDataPoint]:
        return [point for point in self.metrics()[name].data.data_points if isinstance(point, HistogramDataPoint)]


@pytest.fixture
def meters() -> Iterator[Meters]:
    made = Meters()
    yield made
    made.provider.shutdown()


def decided(length: int, queued: float = 1800, workers: tuple[Worker, ...] = (WORKER,), **fields: Any) -> Decision:
    request = Request(models=("m",), max_length=length, max_context_length=max(2048, length), **fields)
    return decide(request, Pool(workers=workers, queued_tokens=queued), SETTINGS)


def test_a_decision_is_counted_with_exactly_its_five_attributes(meters: Meters) -> None:
    meters.telemetry.record_decision(decided(3000, requester="registered", can_pay=True))
    meters.telemetry.record_decision(decided(3000, requester="registered", can_pay=True))
    meters.telemetry.record_decision(decided(80, chat=True))
    assert set(meters.metrics()) == {
        "horde.text.free_allowance.decisions",
        "horde.text.free_allowance.estimated_wait_seconds",
    }
    assert meters.counts() == {
        (
            ("horde.allowance_size", "2049-4096"),
            ("horde.chat", False),
            ("horde.outcome", "funded"),
            ("horde.requested_size", "2049-4096"),
            ("horde.requester", "registered"),
        ): 2,
        (
            ("horde.allowance_size", "2049-4096"),
            ("horde.chat", True),
            ("horde.outcome", "free"),
            ("horde.requested_size", "<=512"),
            ("horde.requester", "anonymous"),
        ): 1,
    }
    counter = meters.metrics()["horde.text.free_allowance.decisions"]
    assert isinstance(counter.data, Sum)
    assert counter.data.is_monotonic
    assert counter.unit == "1"


def test_the_wait_that_sized_the_allowance_is_recorded_without_attributes(meters: Meters) -> None:
    meters.telemetry.record_decision(decided(80, queued=1800))
    (point,) = meters.histogram("horde.text.free_allowance.estimated_wait_seconds")
    assert (point.count, point.sum, dict(point.attributes or {})) == (1, 180.0, {})
    assert list(point.explicit_bounds) == LIFECYCLE
    assert meters.metrics()["horde.text.free_allowance.estimated_wait_seconds"].unit == "s"


def test_without_an_eligible_worker_the_decision_is_counted_and_no_wait_recorded(meters: Meters) -> None:
    meters.telemetry.record_decision(decided(80, workers=()))
    assert set(meters.metrics()) == {"horde.text.free_allowance.decisions"}


def test_a_dry_run_leaves_nothing(meters: Meters) -> None:
    for decision in (decided(80, dry_run=True), decided(9000, dry_run=True)):
        meters.telemetry.record_decision(decision)
    assert meters.metrics() == {}


def test_an_assignment_is_recorded_with_its_requester(meters: Meters) -> None:
    for requester in ("anonymous", "registered", "shared_key"):
        meters.telemetry.record_assignment(requester, 12.5)
    assert set(meters.metrics()) == {"horde.text.queue_wait_seconds"}
    points = meters.histogram("horde.text.queue_wait_seconds")
    assert {(point.attributes or {})["horde.requester"] for point in points} == {"anonymous", "registered", "shared_key"}
    assert all(
        set(point.attributes or {}) == {"horde.requester"} and list(point.explicit_bounds) == LIFECYCLE for point in points
    )
    assert meters.metrics()["horde.text.queue_wait_seconds"].unit == "s"


@pytest.mark.parametrize(("wait_s", "bound"), [(60.0, 60), (60.001, 90), (300.0, 300), (300.001, 450), (0.0, 0), (3600.1, None)])
def test_a_wait_on_a_mark_falls_into_the_bucket_that_the_mark_bounds(meters: Meters, wait_s: float, bound: int | None) -> None:
    meters.telemetry.record_decision(decided(80, queued=wait_s * 10))
    meters.telemetry.record_assignment("anonymous", wait_s)
    for name in ("horde.text.free_allowance.estimated_wait_seconds", "horde.text.queue_wait_seconds"):
        (point,) = meters.histogram(name)
        filled = [i for i, count in enumerate(point.bucket_counts) if count]
        assert filled == [LIFECYCLE.index(bound) if bound is not None else len(LIFECYCLE)]


@pytest.mark.parametrize("wait_s", [-0.001, float("nan"), float("inf")])
def test_a_senseless_queue_wait_is_refused(meters: Meters, wait_s: float) -> None:
    with pytest.raises(InputError, match="queue wait"):
        meters.telemetry.record_assignment("anonymous", wait_s)
    assert meters.metrics() == {}


@pytest.mark.parametrize(
    ("tokens", "bucket"),
    [
        (1, "<=512"),
        (512, "<=512"),
        (513, "513-1024"),
        (1024, "513-1024"),
        (1025, "1025-2048"),
        (2048, "1025-2048"),
        (2049, "2049-4096"),
        (4096, "2049-4096"),
        (4097, ">4096"),
        (16384, ">4096"),
    ],
)
def test_size_buckets(tokens: int, bucket: str) -> None:
    assert size_bucket(tokens) == bucket


def test_a_chat_request_s_size_is_the_one_that_was_measured(meters: Meters) -> None:
    small = replace(WORKER, max_length=512)
    meters.telemetry.record_decision(decided(9000, chat=True, queued=0, workers=(small,)))
    ((attributes, _),) = meters.counts().items()
    assert dict(attributes)["horde.requested_size"] == "<=512"


ORDER = ["<=512", "513-1024", "1025-2048", "2049-4096", ">4096"]


@given(
    request=some.requests(),
    fleet=st.one_of(some.fleets(3), some.fleets(3, ok=True)),
    settings=some.settings(),
    queued=st.integers(0, 5000),
)
def test_no_cell_comes_out_that_the_rule_makes_impossible(
    request: Request, fleet: tuple[Worker, ...], settings: AllowanceSettings, queued: int
) -> None:
    meters = Meters()
    meters.telemetry.record_decision(decide(replace(request, dry_run=False), Pool(workers=fleet, queued_tokens=queued), settings))
    ((attributes, count),) = meters.counts().items()
    cell = dict(attributes)
    asked, allowed = ORDER.index(cell["horde.requested_size"]), ORDER.index(cell["horde.allowance_size"])
    assert count == 1
    assert not (cell["horde.outcome"] == "downgraded" and cell["horde.chat"])
    assert not (cell["horde.outcome"] == "free" and asked > allowed)
    assert asked >= allowed or cell["horde.outcome"] == "free" or not request.slow_workers
    meters.provider.shutdown()


def test_without_an_sdk_none_is_loaded_and_recording_goes_nowhere() -> None:
    program = """
import sys
from horde_policy.policy.decision import Pool, Request, decide
from horde_policy.policy.telemetry import AllowanceTelemetry
from horde_policy.settings import AllowanceSettings
recorder = AllowanceTelemetry()
recorder.record_decision(decide(Request(models=()), Pool(workers=(), queued_tokens=0), AllowanceSettings()))
recorder.record_assignment("registered", 60.0)
print([name for name in sys.modules if name.startswith("opentelemetry.sdk")], type(recorder._decisions).__module__)
"""
    root = Path(__file__).parents[3]
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert ran.stdout.split() == ["[]", "opentelemetry.metrics._internal.instrument"]


@pytest.mark.parametrize(
    ("requester", "wait_s", "says"),
    [
        ("nobody", 1.0, "assignment, requester: 'nobody' must be one of anonymous, registered, shared_key"),
        (None, 1.0, "assignment, requester"),
        (["anonymous"], 1.0, "assignment, requester"),
        ("anonymous", "1", "queue wait"),
        ("anonymous", None, "queue wait"),
        ("anonymous", True, "queue wait"),
    ],
)
def test_an_assignment_of_no_requester_or_no_wait_is_refused_and_not_recorded(
    meters: Meters, requester: Any, wait_s: Any, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        meters.telemetry.record_assignment(requester, wait_s)
    assert meters.metrics() == {}
