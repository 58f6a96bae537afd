"""Replay: the engine against the targets of performance.md §1, and against plain Python twins of the same job in the same run.

``python -m benchmarks.bench_replay [--large] [--quick]``. Worlds are synthetic: 300 workers on 1–5 of 60 models. "Quiet" is
load 0.1 with a fleet that stays; the others have workers that come and go every few hours. Times are medians of three; the
engine's own time is also given as processor time of its thread, which other work on the machine disturbs less. ``--large``
adds 10 million requests, ``--quick`` leaves out everything above 200 thousand.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import polars as pl

from benchmarks.replay_twins import run_heapq, run_simpy, same_as
from benchmarks.replay_worlds import Job, world_of
from horde_policy.replay import prepare, replay, run, warm_up
from horde_policy.replay.engine import final_state
from horde_policy.settings import ReplaySettings

SETTINGS = ReplaySettings()
TWIN_REQUESTS = 200_000
QUIET, LOADED, CROWDED, OVERLOAD = (0.1, False), (0.75, True), (1.1, True), (1.5, True)


def seconds(job: Callable[[], Any], times: int = 3) -> tuple[float, float]:
    """Return the medians of wall and of this thread's processor time."""
    wall, processor = [], []
    for _ in range(times):
        began, thread = time.perf_counter(), time.thread_time()
        job()
        wall.append(time.perf_counter() - began)
        processor.append(time.thread_time() - thread)
    return statistics.median(wall), statistics.median(processor)


def mean_waiting(traffic: pl.DataFrame, frame: pl.DataFrame) -> float:
    """Return how many wait on average (Little): the time that requests spent waiting over the time of the traffic."""
    created = traffic["created"].to_physical()
    expired = frame.filter(pl.col("status") == "expired").height
    waited_s = float(frame["queue_wait_s"].sum()) + expired * SETTINGS.request_ttl_s
    return waited_s / ((int(created[-1]) - int(created[0])) / 1e6)


def measured(requests: int, load: float, *, churn: bool) -> dict[str, float]:
    """Measure one world; return its figures."""
    traffic, fleet = world_of(Job(requests, load, churn))
    world = prepare(traffic, fleet)
    frame = run(world, SETTINGS)
    engine_s, engine_cpu_s = seconds(lambda: final_state(world, SETTINGS))
    return {
        "requests": requests,
        "load": load,
        "classes": world.class_count,
        "fleet_rows": fleet.height,
        "waiting": mean_waiting(traffic, frame),
        "engine_s": engine_s,
        "engine_cpu_s": engine_cpu_s,
        "run_s": seconds(lambda: run(world, SETTINGS))[0],
        "whole_s": seconds(lambda: replay(traffic, fleet, SETTINGS))[0],
    }


def print_engine(rows: list[dict[str, float]]) -> None:
    print("\nrequests    load  classes  fleet rows  mean waiting  engine s  (cpu s)  ns/request (cpu)  run() s  replay() s")
    for row in rows:
        asked = f"{row['requests']:>10,}  {row['load']:4.2f}  {row['classes']:>7,}"
        world = f"{asked}  {row['fleet_rows']:>10,}  {row['waiting']:>12,.0f}"
        each_ns = 1e9 * row["engine_cpu_s"] / row["requests"]
        times = f"{row['engine_s']:8.3f}  {row['engine_cpu_s']:7.3f}  {each_ns:16.0f}"
        print(f"{world}  {times}  {row['run_s']:7.3f}  {row['whole_s']:10.3f}")


def print_target(what: str, reached: float, target: float, *, unit: str, at_least: bool = False) -> None:
    held = reached >= target if at_least else reached <= target
    sign = "≥" if at_least else "≤"
    print(f"  {what:<58} {reached:8.2f} {unit:<3} target {sign} {target:g}  {'reached' if held else 'NOT REACHED'}")


def compare_with_twins(load: float, *, churn: bool) -> dict[str, float]:
    """Run the twins on 200 thousand requests beside the engine; return requests per second and whether all agree."""
    traffic, fleet = world_of(Job(TWIN_REQUESTS, load, churn))
    world = prepare(traffic, fleet)
    frame = run(world, SETTINGS)
    rates = {}
    for name, twin in (("heapq", run_heapq), ("simpy", run_simpy)):
        go = twin(traffic, fleet, SETTINGS)
        began, thread = time.perf_counter(), time.thread_time()
        desk = go()
        rates[name] = TWIN_REQUESTS / (time.perf_counter() - began)
        rates[name + "_cpu"] = TWIN_REQUESTS / (time.thread_time() - thread)
        if not same_as(desk, frame):
            raise SystemExit(f"the {name} twin disagrees with the engine at load {load}")
    wall, processor = seconds(lambda: final_state(world, SETTINGS))
    return rates | {"engine": TWIN_REQUESTS / wall, "engine_cpu": TWIN_REQUESTS / processor, "load": load}


MEMORY = """
import json, sys, time
import horde_policy  # before Polars, as the commands and the app do
import polars as pl
began = time.perf_counter()
from horde_policy.replay import prepare, run, warm_up
warm_up()
warm_s = time.perf_counter() - began
def peak():
    # Not ru_maxrss, which a process takes over from the one that started it.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
base = peak()
figures = {"warm_s": warm_s, "base_mb": base}
if len(sys.argv) > 1:
    traffic = pl.read_parquet(sys.argv[1])
    figures["read_mb"] = peak()
    world = prepare(traffic, pl.read_parquet(sys.argv[2]))
    del traffic
    from horde_policy.settings import ReplaySettings
    run(world, ReplaySettings())
    figures["peak_mb"] = peak()
print(json.dumps(figures))
"""


ALLOCATOR = "_RJEM_MALLOC_CONF"
KEEP = {ALLOCATOR: "dirty_decay_ms:500,muzzy_decay_ms:1000"}
"""Lets Polars' allocator keep freed memory for a while, as where Polars is loaded before this package."""


def in_child(*arguments: str, **variables: str) -> dict[str, float]:
    """Run the measuring script in a process of its own, with more environment variables; return what it found."""
    # Without what Polars, loaded here, has set for itself: the child says it anew.
    environment = {name: value for name, value in os.environ.items() if name != ALLOCATOR} | variables
    done = subprocess.run([sys.executable, "-c", MEMORY, *arguments], env=environment, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def memory_of(requests: int, load: float, *, churn: bool) -> dict[str, float]:
    """Return what processes took at their peak that read the files, replayed them and held the whole result."""
    with tempfile.TemporaryDirectory() as folder:
        traffic, fleet = world_of(Job(requests, load, churn))
        traffic.write_parquet(f"{folder}/traffic.parquet")
        fleet.write_parquet(f"{folder}/fleet.parquet")
        del traffic
        files = f"{folder}/traffic.parquet", f"{folder}/fleet.parquet"
        peaks = [in_child(*files)["peak_mb"] for _ in range(3)]
        kept = [in_child(*files, **KEEP)["peak_mb"] for _ in range(2)]
        return in_child(*files) | {"peak_mb": max(peaks), "least_peak_mb": min(peaks), "kept_mb": max(kept)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--large", action="store_true", help="also 10 million requests")
    parser.add_argument("--quick", action="store_true", help="nothing above 200 thousand requests")
    options = parser.parse_args()
    warm_up()
    print(f"processors {os.cpu_count()}, load average before {os.getloadavg()[0]:.1f} (above 1, wall times are not its own)")

    sizes = [10_000, 100_000] if options.quick else [10_000, 100_000, 1_000_000, 2_000_000]
    rows = [measured(n, QUIET[0], churn=QUIET[1]) for n in sizes]
    grown = sizes + ([10_000_000] if options.large else [])
    rows += [measured(n, LOADED[0], churn=LOADED[1]) for n in grown]
    rows += [measured(sizes[-1], load, churn=churn) for load, churn in (CROWDED, OVERLOAD)]
    print_engine(rows)

    twins = [compare_with_twins(load, churn=churn) for load, churn in (QUIET, LOADED)]
    print(f"\nrequests per second over {TWIN_REQUESTS:,} (processor time), all agreeing on every request")
    for row in twins:
        heapq_times, simpy_times = (row["engine_cpu"] / row[name + "_cpu"] for name in ("heapq", "simpy"))
        print(
            f"  load {row['load']:4.2f}: engine {row['engine_cpu']:11,.0f}   heapq {row['heapq_cpu']:8,.0f} ({heapq_times:.0f} ×)"
            f"   SimPy {row['simpy_cpu']:8,.0f} ({simpy_times:.0f} ×)"
        )

    with tempfile.TemporaryDirectory() as cache:
        cold = in_child(NUMBA_CACHE_DIR=cache)["warm_s"]
    memory = memory_of(sizes[-1], LOADED[0], churn=LOADED[1])
    print(f"\nimport and warm-up: cold {cold:.1f} s, from the cache {memory['warm_s']:.2f} s")
    print(f"memory of a process: {memory['base_mb']:.0f} MB warm, {memory['read_mb']:.0f} MB with {sizes[-1]:,} requests read")
    print(
        f"at its peak {memory['least_peak_mb']:.0f} to {memory['peak_mb']:.0f} MB;"
        f" {memory['kept_mb']:.0f} MB where Polars is loaded first and frees late"
    )

    by = {(row["requests"], row["load"]): row for row in rows}
    print("\ntargets (performance.md §1)")
    if not options.quick:
        for what, load, target_s in (("quiet week", 0.1, 0.5), ("load 0.75 with churn", 0.75, 1.5)):
            row = by[2_000_000, load]
            print_target(f"2 M requests, {what}: engine", row["engine_s"], target_s, unit="s")
            print_target(f"2 M requests, {what}: engine, processor time", row["engine_cpu_s"], target_s, unit="s")
        print_target("memory of the process, 2 M, the largest of three", memory["peak_mb"], 600, unit="MB")
    first, last = by[grown[0], 0.75], by[grown[-1], 0.75]
    growth = (last["engine_cpu_s"] / last["requests"]) / (first["engine_cpu_s"] / first["requests"])
    print_target(f"time a request, {grown[0]:,} to {grown[-1]:,} at load 0.75", growth, 1.5, unit="×")
    for row in twins:
        print_target(f"against heapq, load {row['load']}", row["engine_cpu"] / row["heapq_cpu"], 30, unit="×", at_least=True)
        print_target(f"against SimPy, load {row['load']}", row["engine_cpu"] / row["simpy_cpu"], 40, unit="×", at_least=True)
    print(f"load average after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
