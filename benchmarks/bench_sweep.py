"""A sweep on all cores: 64 settings on busy and quiet traffic, and the demo week under 256 settings.

Run ``python -m benchmarks.bench_sweep [--small]``. Targets (performance page, 2 cores, warm): 64 settings × 200,000 requests at
most 4 s at load 0.75 and at most 1.5 s on a quiet fleet; 64 × 2,000,000 quiet at most 13 s. Beside each stands what the same
points take one after the other through ``replay`` and its summary, as measured on a few of them in the same run.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from benchmarks.replay_worlds import Job, world_of
from horde_policy.imports.traces import load_trace
from horde_policy.replay import replay, warm_up
from horde_policy.replay.fleets import demand_weights, fleet_from_snapshot
from horde_policy.replay.score import summary
from horde_policy.replay.sent import sent_requests
from horde_policy.settings import ReplaySettings
from horde_policy.sources.demo import BUNDLED_FOLDER, DEMO_FOLDER
from horde_policy.sources.recorded import load_recorded
from horde_policy.sweep.grid import Plan, parse_grid, plan
from horde_policy.sweep.inputs import SweepInputs, load_inputs
from horde_policy.sweep.judge import DEFAULT_CONSTRAINTS, DEFAULT_OBJECTIVES, Question, judge
from horde_policy.sweep.run import Threads, run_sweep
from horde_policy.sweep.sentences import parse_constraint, parse_objective
from horde_policy.sweep.stage import check_plan, scenario_traffic

SIXTY_FOUR = """
ceiling_tokens = [1024, 2048, 4096, 8192]
floor_tokens = [128, 256, 512, 1000]
wait_full_s = [30, 60]
wait_floor_s = [300, 600]
"""
DEMO_WEEK = """
ceiling_tokens = [1024, 2048, 4096, 8192]
floor_tokens = [128, 256, 512, 768]
wait_full_s = [15, 30, 60, 120]
wait_floor_s = [150, 300, 600, 1200]
fill = "models=weighted"
"""
DEMO_LOAD = 60.0
COMPARED = 3


def inputs_of(job: Job) -> SweepInputs:
    traffic, fleet = world_of(job)
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "t.parquet", Path(folder) / "f.parquet"
        for frame, path in zip((traffic, fleet), paths, strict=True):
            frame.write_parquet(path)
        return load_inputs(*paths)


def demo_week() -> SweepInputs:
    snapshot = load_recorded(DEMO_FOLDER)
    fleet = fleet_from_snapshot(snapshot)
    return SweepInputs(
        trace=load_trace(BUNDLED_FOLDER / "traces" / "ragpulse_week1.parquet"),
        fleet=fleet.frame,
        weights=demand_weights(snapshot),
        traffic_stamp={},
        fleet_stamp=fleet.stamp,
        base_load=DEMO_LOAD,
    )


def one_by_one_s(inputs: SweepInputs, wanted: Plan) -> float:
    """Return what all points would take one after the other through the replay's own front, from a few of them."""
    traffic = scenario_traffic(inputs, wanted.scenarios[0]).frame
    start = time.perf_counter()
    for point in wanted.points[1 : 1 + COMPARED]:
        run = replay(traffic, inputs.fleet, point.settings)
        summary(sent_requests(run, traffic, inputs.fleet, point.settings), traffic, point.settings)
    return (time.perf_counter() - start) / COMPARED * wanted.replays


def measured(name: str, inputs: SweepInputs, grid: str, target_s: float | None) -> pl.DataFrame:
    wanted = check_plan(plan(parse_grid(grid), ReplaySettings()), inputs)
    begun, used = time.perf_counter(), time.process_time()
    found = run_sweep(inputs, wanted, pool=Threads())
    took_s, cpu_s = time.perf_counter() - begun, time.process_time() - used
    requests = int(found.frame["requests"].sum())
    plain_s = one_by_one_s(inputs, wanted)
    reach = "" if target_s is None else f"  to reach {target_s:g} s"
    print(
        f"{name:34} {wanted.replays:4} replays {requests / 1e6:7.1f} M requests  {took_s:6.2f} s  "
        f"{requests / took_s / 1e6:5.2f} M/s  cpu {cpu_s:6.2f} s  one by one {plain_s:6.1f} s  × {plain_s / took_s:4.1f}{reach}"
    )
    return found.frame


def judged(frame: pl.DataFrame) -> None:
    question = Question(
        objectives=tuple(parse_objective(sentence) for sentence in DEFAULT_OBJECTIVES),
        constraints=tuple(parse_constraint(sentence) for sentence in DEFAULT_CONSTRAINTS),
    )
    start = time.perf_counter()
    answer = judge(frame, question)
    took_s = time.perf_counter() - start
    print(f"judging {answer.points.height} points by {len(question.metrics)} metrics, 400 resamples: {took_s:.2f} s")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="leave out the 2,000,000 requests")
    small = parser.parse_args(arguments).small
    print(f"{len(os.sched_getaffinity(0))} cores, load of the machine {os.getloadavg()[0]:.1f}")
    warm_up()
    run_sweep(
        inputs_of(Job(2_000, 0.5, churn=False)),
        check_plan(plan(parse_grid(""), ReplaySettings()), inputs_of(Job(2_000, 0.5, churn=False))),
    )
    measured("64 × 200 k at load 0.75", inputs_of(Job(200_000, 0.75, churn=True)), SIXTY_FOUR, 4.0)
    measured("64 × 200 k quiet (load 0.1)", inputs_of(Job(200_000, 0.1, churn=False)), SIXTY_FOUR, 1.5)
    judged(measured("demo week, 256 settings", demo_week(), DEMO_WEEK, None))
    if not small:
        measured("64 × 2 M quiet (load 0.1)", inputs_of(Job(2_000_000, 0.1, churn=False)), SIXTY_FOUR, 13.0)


if __name__ == "__main__":
    main()
