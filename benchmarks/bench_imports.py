"""Reading exports: synthetic text and OTLP lines of 200 MB, against prometheus_client's parser and a plain JSON walk.

Run ``python -m benchmarks.bench_imports [MEGABYTES]``. Targets (performance page): text at least 200 MB/s (aim 400), OTLP lines
at least 100 MB/s (aim 130), memory bounded by the result and not by the file. Each reading runs in a process of its own, whose
peak memory is measured; the slow parsers read a part of the same file. Wall time counts, as on the performance page; time of the
processors stands beside it, since other work on the machine disturbs it less.
"""

import io
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_fd_to_metric_families

from horde_policy.frames.decisions import OUTCOMES, REQUESTERS, SIZES
from horde_policy.imports import count_samples, read_samples

MEGABYTE = 1_000_000
BEGIN_S, STEP_S = 1_790_000_000, 60
BOUNDS = (0, 1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1200, 1800, 3600)
TARGETS = {"text": (200, 400), "otlp": (100, 130)}
SLOW_BYTES = {"text": 5 * MEGABYTE, "otlp": 30 * MEGABYTE}


class Counters:
    """A synthetic server process that counts: 150 label sets of decisions and four histograms, restarting now and then."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        cells = [(r, o, a, b, c) for r in REQUESTERS for o in OUTCOMES for a in SIZES for b in SIZES[:4] for c in (True, False)]
        self.cells = self.rng.sample(cells, 150)
        self.rates = [self.rng.random() ** 3 for _ in self.cells]
        self.clear()

    def clear(self) -> None:
        self.decisions = [0] * len(self.cells)
        self.buckets = [[0] * (len(BOUNDS) + 1) for _ in range(4)]
        self.sums = [0.0] * 4

    def step(self) -> None:
        if self.rng.random() < 1 / 3000:
            self.clear()
        for place, rate in enumerate(self.rates):
            if self.rng.random() < rate:
                self.decisions[place] += 1 + int(self.rng.random() * 3 * rate)
        for number, (buckets, mean_s) in enumerate(zip(self.buckets, (40.0, 60.0, 90.0, 30.0), strict=True)):
            for _ in range(self.rng.randint(5, 25)):
                wait_s = self.rng.expovariate(1 / mean_s)
                buckets[next((place for place, bound in enumerate(BOUNDS) if wait_s <= bound), len(BOUNDS))] += 1
                self.sums[number] += wait_s


def write_text(path: Path, size: int) -> None:
    """Scrape after scrape, as a script that saves them would write."""
    servers = [Counters(seed) for seed in (1, 2)]
    written, t_s = 0, BEGIN_S
    heads = [list(_text_heads(server, f"10.0.0.{number}:9464")) for number, server in enumerate(servers, start=1)]
    with path.open("wb") as out:
        while written < size:
            for server, of_server in zip(servers, heads, strict=True):
                server.step()
                stamp = f" {t_s}000\n"
                values = [float(value) for value in server.decisions]
                for buckets, total in zip(server.buckets, server.sums, strict=True):
                    running = 0
                    for count in buckets:
                        running += count
                        values.append(float(running))
                    values += [total, float(running)]
                written += out.write(
                    "".join(f"{head} {value!r}{stamp}" for head, value in zip(of_server, values, strict=True)).encode()
                )
            t_s += STEP_S


def _text_heads(server: Counters, instance: str) -> Iterator[str]:
    base = f'job="ai-horde",instance="{instance}"'
    for requester, outcome, asked, allowed, chat in server.cells:
        yield (
            f'horde_text_free_allowance_decisions{{{base},horde_requester="{requester}",horde_outcome="{outcome}"'
            f',horde_requested_size="{asked}",horde_allowance_size="{allowed}",horde_chat="{str(chat).lower()}"}}'
        )
    names = [("horde_text_free_allowance_estimated_wait_seconds", "")]
    names += [("horde_text_queue_wait_seconds", f',horde_requester="{requester}"') for requester in REQUESTERS]
    for name, more in names:
        yield from (f'{name}_bucket{{{base}{more},le="{bound}"}}' for bound in (*BOUNDS, "+Inf"))
        yield from (f"{name}_{part}{{{base}{more}}}" for part in ("sum", "count"))


def write_quiet(path: Path, size: int) -> None:
    """Scrapes every 15 s of a server where something counts in one of twenty: much text, little to know."""
    server, rng = Counters(3), random.Random(3)
    heads = list(_text_heads(server, "10.0.0.3:9464"))
    values, written, t_s = [1.0] * len(heads), 0, BEGIN_S
    with path.open("wb") as out:
        while written < size:
            if rng.random() < 0.05:
                values[rng.randrange(len(server.cells))] += 1.0
            scrape = "".join(f"{head} {value!r} {t_s}000\n" for head, value in zip(heads, values, strict=True))
            written += out.write(scrape.encode())
            t_s += 15


def write_otlp(path: Path, size: int) -> None:
    """One export a line, as the Collector's file exporter writes."""
    servers = [Counters(seed) for seed in (1, 2)]
    written, t_s = 0, BEGIN_S
    with path.open("wb") as out:
        while written < size:
            for number, server in enumerate(servers):
                server.step()
                written += out.write(
                    json.dumps(_request(server, f"server-{number}", t_s), separators=(",", ":")).encode() + b"\n"
                )
            t_s += STEP_S


def _request(server: Counters, instance: str, t_s: int) -> dict[str, object]:
    times = {"startTimeUnixNano": f"{BEGIN_S - 30}000000000", "timeUnixNano": f"{t_s}000000000"}

    def attributes(**of: object) -> list[dict[str, object]]:
        return [
            {"key": f"horde.{k}", "value": {"boolValue": v} if isinstance(v, bool) else {"stringValue": v}} for k, v in of.items()
        ]

    names = ("requester", "outcome", "requested_size", "allowance_size", "chat")
    points = [
        {"attributes": attributes(**dict(zip(names, cell, strict=True))), **times, "asInt": str(value)}
        for cell, value in zip(server.cells, server.decisions, strict=True)
    ]
    waits = [
        {
            **times,
            "attributes": attributes(requester=REQUESTERS[number - 1]) if number else [],
            "count": str(sum(buckets)),
            "sum": server.sums[number],
            "bucketCounts": [str(count) for count in buckets],
            "explicitBounds": BOUNDS,
        }
        for number, buckets in enumerate(server.buckets)
    ]
    metrics = [
        {
            "name": "horde.text.free_allowance.decisions",
            "unit": "1",
            "sum": {"dataPoints": points, "aggregationTemporality": 2, "isMonotonic": True},
        },
        {
            "name": "horde.text.free_allowance.estimated_wait_seconds",
            "unit": "s",
            "histogram": {"dataPoints": waits[:1], "aggregationTemporality": 2},
        },
        {
            "name": "horde.text.queue_wait_seconds",
            "unit": "s",
            "histogram": {"dataPoints": waits[1:], "aggregationTemporality": 2},
        },
    ]
    resource_attributes = [{"key": "service.instance.id", "value": {"stringValue": instance}}]
    return {
        "resourceMetrics": [
            {"resource": {"attributes": resource_attributes}, "scopeMetrics": [{"scope": {"name": "horde"}, "metrics": metrics}]}
        ]
    }


def peak_memory_mb() -> float:
    """The most memory that this process has held; unlike getrusage's figure it does not inherit its parent's."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(found[1]) / 1000 if found else math.nan


def measure(path: Path) -> dict[str, float]:
    """Read one file in this process: seconds of wall and processors for reading and counting, and the peak memory."""
    idle_mb = peak_memory_mb()
    began, began_cpu = time.perf_counter(), time.process_time()
    samples, files, problems = read_samples(path)
    read, read_cpu = time.perf_counter() - began, time.process_time() - began_cpu
    imported = count_samples(samples, files=files, problems=problems)
    return {
        "read_s": read,
        "read_cpu_s": read_cpu,
        "count_s": time.perf_counter() - began - read,
        "peak_mb": peak_memory_mb(),
        "idle_mb": idle_mb,
        "decisions": float(imported.decisions["count_high"].sum()),
        "samples": float(sum(file.samples for file in files)),
    }


def slow_rate(kind: str, path: Path) -> float:
    """MB/s of the usual way: prometheus_client's parser, or json.loads and a walk over every point."""
    text = path.read_bytes()[: SLOW_BYTES[kind]]
    text = text[: text.rfind(b"\n") + 1]
    began = time.perf_counter()
    if kind == "text":
        seen = sum(len(family.samples) for family in text_fd_to_metric_families(io.StringIO(text.decode())))
    else:
        seen = sum(_walked(json.loads(line)) for line in text.splitlines())
    assert seen
    return len(text) / MEGABYTE / (time.perf_counter() - began)


def _walked(request: dict[str, Any]) -> int:
    seen = 0
    for of_resource in request["resourceMetrics"]:
        for scope in of_resource["scopeMetrics"]:
            for metric in scope["metrics"]:
                for point in (metric.get("sum") or metric["histogram"])["dataPoints"]:
                    key = tuple((one["key"], str(one["value"])) for one in point["attributes"])
                    seen += bool(key) or math.isfinite(float(point.get("sum", 0)))
    return seen


def measured(path: Path, times: int) -> dict[str, float]:
    """The quickest of several readings, each in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_imports", "--child", str(path)]
    readings = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(times)]
    best: dict[str, float] = min(readings, key=lambda reading: reading["read_s"])
    return best


def run(kind: str, megabytes: int, folder: Path) -> None:
    """Write a file, read it, and print what was measured beside the usual way's figure."""
    path = folder / "week"
    (write_text if kind == "text" else write_otlp)(path, megabytes * MEGABYTE)
    size = path.stat().st_size / MEGABYTE
    best = measured(path, 3)
    reach, aim = TARGETS[kind]
    rate, slow = size / best["read_s"], slow_rate(kind, path)
    other = "prometheus_client's parser" if kind == "text" else "json.loads and a walk"
    verdict = "ok" if rate >= reach else "MISSED"
    print(f"{kind}: {size:.0f} MB, {best['samples']:,.0f} samples; {rate:.0f} MB/s (reach {reach}, aim {aim}; {verdict})")
    print(f"  by processor time {size / best['read_cpu_s']:.0f} MB/s; counting took {best['count_s']:.2f} s more")
    print(f"  {other}: {slow:.1f} MB/s; ratio {rate / slow:.0f}")
    print(f"  peak memory {best['peak_mb']:.0f} MB, of which {best['idle_mb']:.0f} MB before the file was opened")


def run_quiet(megabytes: int, folder: Path) -> None:
    """Print how memory goes with the size of a file that says little."""
    for size in (megabytes // 4, megabytes, 3 * megabytes):
        path = folder / "quiet"
        write_quiet(path, size * MEGABYTE)
        best = measured(path, 1)
        rate = path.stat().st_size / MEGABYTE / best["read_s"]
        above = best["peak_mb"] - best["idle_mb"]
        print(f"quiet text: {size} MB at {rate:.0f} MB/s; peak memory above the idle process {above:.0f} MB")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--child"]:
        print(json.dumps(measure(Path(arguments[1]))))
        return
    megabytes = int(arguments[0]) if arguments else 200
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("text", "otlp"):
            run(kind, megabytes, Path(folder))
        run_quiet(megabytes, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
