"""Makes the bundled demo week: ``python -m tests.make_demo_week`` writes ``data/week`` again.

The arrivals are real: a week of the public trace ragpulse_week1, laid over itself ``COPIES`` times, each copy moved by a seeded
shift of up to 45 minutes and drawing anew what no trace records. All else is made up: five workers, who asks, what they ask for,
who can pay, which route. The requests are replayed through the rule, and what two server processes would have counted of it is
exported by the project's own telemetry on the OpenTelemetry SDK, whose own exporter writes the files, on the week's own clock.
"""

import gzip
import io
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
from opentelemetry.exporter.otlp.json.file.metric_exporter import FileMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from horde_policy.frames.decisions import size_of
from horde_policy.imports.traces import load_trace
from horde_policy.policy.decision import Decision, Request
from horde_policy.policy.telemetry import WAIT_BOUNDARIES_S, AllowanceTelemetry
from horde_policy.replay import replay
from horde_policy.replay.fill import filled
from horde_policy.replay.fill_rule import FillRule
from horde_policy.replay.parametric import ParametricFleet, parametric_fleet
from horde_policy.settings import ReplaySettings

ROOT = Path(__file__).parents[1]
TRACE = ROOT / "data" / "traces" / "ragpulse_week1.parquet"
FOLDER = ROOT / "data" / "week"
TALLY = ROOT / "tests" / "data" / "week" / "tally.json"
EXPORTS = ("process_a.otlp.jsonl.gz", "process_b.otlp.jsonl.gz")

COPIES = 10
"""The least number at which each outcome makes at least 1 % of the requests."""

SEED = 7
FILL = "max_length=client_setting:2/3/3/2/1,models=any,requester=0.5/0.1,can_pay=0.5,allow_downgrade=0.3"
FLEET = ParametricFleet(
    seed=5,
    workers=5,
    models=1,
    speed_median_tok_per_s=8.0,
    speed_p95_tok_per_s=14.0,
    single_thread_share=1.0,
    unmeasured_share=0.0,
    output_sizes={1024: 1.0, 2048: 1.0, 4096: 3.0},
    context_sizes={16384: 1.0},
)
EVERY = timedelta(minutes=30)
RESTART = timedelta(days=3, hours=9, minutes=7)
"""When the first process is stopped, exports for the last time and starts again from zero."""

TITLE = "Demo week: real arrivals (RAGPulse), replayed"
ABOUT = (
    f"The arrivals are those of a public trace, laid over themselves {COPIES} times; workers, requesters, sizes and means are "
    "made up, and every figure is a replay's. See README.md."
)

_SDK = "opentelemetry.sdk.metrics._internal."
_CLOCKS = ("metric_reader_storage.time_ns", "_view_instrument_match.time_ns", "instrument.time_ns")


def replayed() -> pl.DataFrame:
    """Return one row a request: what it asked, what it got, and when it was handed out, in order of creation."""
    traffic = filled(load_trace(TRACE), FillRule.parsed(FILL), superpose=COPIES, seed=SEED)
    # the trace is all chat; every second copy asks by the native text route, which alone can downgrade (A16, A17)
    frame = traffic.frame.with_columns((pl.col("copy") % 2 == 0).alias("chat"))
    run = replay(frame, parametric_fleet(FLEET).frame, ReplaySettings())
    asked = frame.select("request_id", "created", "requester", "max_length", "chat", "can_pay", "allow_downgrade")
    return asked.join(run, on="request_id", how="left", maintain_order="left", validate="1:1")


@dataclass
class Clock:
    """What the SDK takes for the time."""

    ns: int

    def __call__(self) -> int:
        return self.ns


class Process:
    """A server process: its telemetry, and the file that its exporter writes."""

    def __init__(self, name: str, stream: io.StringIO) -> None:
        self._name, self._stream = name, stream
        self.start()

    def start(self) -> None:
        """Begin a life, with every counter at nothing."""
        self._reader = PeriodicExportingMetricReader(FileMetricExporter(stream=self._stream), export_interval_millis=math.inf)
        resource = Resource({"service.name": "ai-horde", "service.instance.id": f"{self._name} (replayed, made up)"})
        self._provider = MeterProvider([self._reader], resource=resource, shutdown_on_exit=False)
        self.telemetry = AllowanceTelemetry(self._provider)

    def export(self) -> None:
        """Write what was counted so far."""
        self._reader.collect()

    def stop(self) -> None:
        """End the life; what was counted since the last export is flushed."""
        self.export()  # a reader that never exports by itself does not flush by itself either
        self._provider.shutdown()


def micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def events(rows: pl.DataFrame) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield time in µs, 0 for a creation and 1 for an assignment, and the request's row, in order of time."""
    found = []
    for number, row in enumerate(rows.iter_rows(named=True)):
        created = micros(row["created"])
        found.append((created, number, 0, row))
        if row["queue_wait_s"] is not None:
            found.append((created + round(row["queue_wait_s"] * 1e6), number, 1, row))
    for at, _, kind, row in sorted(found, key=lambda event: event[:3]):
        yield at, kind, row


def decision_of(row: dict[str, Any]) -> Decision:
    """Return the decision that a replayed request got; what telemetry does not read is left at nothing."""
    request = Request(
        models=(),
        max_length=row["max_length"],
        requester=row["requester"],
        chat=row["chat"],
        can_pay=row["can_pay"],
        allow_downgrade=row["allow_downgrade"],
    )
    return Decision(
        request=request,
        outcome=row["outcome"],
        reason=row["reason"],
        message="",
        allowance_tokens=row["allowance"],
        measured_max_length=row["max_length"],
        admitted_max_length=row["admitted_max_length"],
        slow_workers=True,
        estimated_wait_s=row["estimated_wait_s"],
        wait_time_s=None,
        queued_tokens=0,
        speed_tok_per_s=0,
        eligible_workers=0,
        gap=None,
        context_adjustments=(),
        notes=(),
    )


def exported(rows: pl.DataFrame) -> list[bytes]:
    """Return the OTLP JSON lines that the two processes' exporters write over the week."""
    streams = [io.StringIO(), io.StringIO()]
    begin = micros(rows["created"][0].replace(hour=0, minute=0, second=0, microsecond=0))
    step, restart = EVERY // timedelta(microseconds=1), begin + RESTART // timedelta(microseconds=1)
    clock = Clock(begin * 1000)
    patches = [patch(_SDK + name, clock) for name in _CLOCKS]
    for one in patches:
        one.start()
    try:
        processes = [Process(f"demo-{name}", stream) for name, stream in zip("ab", streams, strict=True)]
        due, restarted = begin + step, False
        for at, kind, row in events(rows):
            while due <= at or (not restarted and restart <= at):
                if not restarted and restart <= min(due, at):
                    clock.ns, restarted = restart * 1000, True
                    processes[0].stop()
                    processes[0].start()
                    continue
                clock.ns = due * 1000
                for process in processes:
                    process.export()
                due += step
            clock.ns = at * 1000
            # a request stays with one process: the odd rows of the trace with the second
            telemetry = processes[int(row["request_id"].partition("~")[0]) % 2].telemetry
            if kind == 0:
                telemetry.record_decision(decision_of(row))
            else:
                telemetry.record_assignment(row["requester"], row["queue_wait_s"])
        clock.ns = due * 1000
        for process in processes:
            process.stop()
    finally:
        for one in patches:
            one.stop()
    return [stream.getvalue().encode() for stream in streams]


def tally(rows: pl.DataFrame) -> dict[str, Any]:
    """Return what was counted, told from the replay's rows and not from any metric."""
    decisions: Counter[tuple[Any, ...]] = Counter()
    waits: Counter[tuple[Any, ...]] = Counter()
    for row in rows.iter_rows(named=True):
        sizes = (size_of(row["max_length"]), size_of(row["allowance"]))
        decisions[row["requester"], row["outcome"], *sizes, row["chat"]] += 1
        for kind, wait_s in (("estimated", row["estimated_wait_s"]), ("queue", row["queue_wait_s"])):
            if wait_s is not None:
                requester = row["requester"] if kind == "queue" else None
                waits[kind, requester, next((bound for bound in WAIT_BOUNDARIES_S if wait_s <= bound), None)] += 1
    return {
        "requests": rows.height,
        "decisions": [[*key, count] for key, count in sorted(decisions.items())],
        "waits": [[*key, count] for key, count in sorted(waits.items(), key=str)],
        # what no exported series tells (A28): the waits of the funded registered requests
        "funded": _up_to_each_bound(rows.filter((pl.col("requester") == "registered") & (pl.col("outcome") == "funded"))),
        "sum_s": {
            "estimated": float(rows["estimated_wait_s"].sum()),
            "queue": float(rows["queue_wait_s"].sum()),
        },
    }


def _up_to_each_bound(rows: pl.DataFrame) -> list[list[float]]:
    waits = rows["queue_wait_s"].drop_nulls()
    return [[bound, int((waits <= bound).sum()), waits.len()] for bound in WAIT_BOUNDARIES_S]


def main() -> None:
    rows = replayed()
    shares = {outcome: count / rows.height for outcome, count in rows["outcome"].value_counts().iter_rows()}
    if len(shares) < 4 or min(shares.values()) < 0.01:
        raise SystemExit(f"not every outcome makes 1 %: {shares}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, content in zip(EXPORTS, exported(rows), strict=True):
        (FOLDER / name).write_bytes(gzip.compress(content, 9, mtime=0))
        print(f"{name}: {len(content):,} bytes, {(FOLDER / name).stat().st_size:,} packed")
    about = {"title": TITLE, "synthetic": True, "note": ABOUT}
    (FOLDER / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    TALLY.parent.mkdir(parents=True, exist_ok=True)
    TALLY.write_text(json.dumps(tally(rows)) + "\n", encoding="utf-8")
    print({outcome: round(share, 4) for outcome, share in shares.items()})


if __name__ == "__main__":
    main()
