"""A slider step on a day of traffic: from a new setting to the four figures, against replaying everything anew.

``python benchmarks/bench_replay_page.py`` measures, on a day of about 280,000 requests, what the page does when one slider has
moved (inputs and baseline kept; performance.md §3 asks for at most 0.8 s) and, in the same run, the same from nothing (filling,
preparing and both runs): the ratio is what keeping them saves.
"""

import statistics
import time

from horde_policy.replay.engine import warm_up
from horde_policy.replay.fill import Traffic
from horde_policy.replay.fill_rule import FillRule
from horde_policy.replay.fleets import Fleet
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.demo import DEMO_FOLDER
from horde_policy.sources.recorded import load_recorded
from horde_policy.ui.replay_desk import Desk, Replayed
from horde_policy.ui.replay_inputs import drawn_of, fleet_of, traffic_of
from horde_policy.views.figures.replay import fig_allowance, fig_changes, fig_mix, fig_waits
from horde_policy.views.replay_results import ALL_MODELS
from horde_policy.views.replay_runs import runs_of

COPIES = 473
HOURS = (24.0, 48.0)
STEPS = 9
FLEET = "drawn/300/21/10/50/1"
"""300 workers: a production fleet, which this load keeps about half busy."""
TARGET_S = 0.8


def drawn(result: Replayed) -> int:
    """Draw the page's four figures as what is sent to the browser; return their size in bytes."""
    scores = result.scores
    figures = (
        fig_changes(result.changes, "light"),
        fig_mix(scores, "requester", "light"),
        fig_waits(scores, requester=None, outcome=None, mode="light"),
        fig_allowance(scores, ALL_MODELS, dated=True, mode="light"),
    )
    return sum(len(figure.to_json()) for figure in figures)


def asked(desk: Desk, ceiling_tokens: int) -> tuple[Replayed, float]:
    """Replay the baseline and one ceiling, draw, and return what came of it with the time it took."""
    snapshot = load_recorded(DEMO_FOLDER)

    def make() -> tuple[Traffic, Fleet]:
        weights = desk.library.demand(snapshot)
        trace = desk.library.trace("ragpulse_week1")
        traffic = traffic_of(trace, FillRule(models="weighted"), weights, hours=HOURS, copies=COPIES, keep_percent=100)
        return traffic, fleet_of(drawn_of(FLEET), snapshot, weights, 10.0)

    runs, _ = runs_of([f"ceiling_tokens={ceiling_tokens}"], AllowanceSettings())
    start = time.perf_counter()
    job = desk.ask("bench", "key", make, runs)
    job.done.wait()
    if job.result is None:
        raise SystemExit(job.error)
    drawn(job.result)
    return job.result, time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    warm_up()
    desk = Desk()
    desk.warm.set()
    result, anew_s = asked(desk, 2048)
    steps_s = [asked(desk, 2048 + 64 * step)[1] for step in range(1, STEPS + 1)]
    step_s = statistics.median(steps_s)
    requests = result.inputs.world.requests
    print(f"requests: {requests:,}; workers: {result.inputs.fleet.stamp['workers']}; figures: {drawn(result):,} bytes")
    print(f"from nothing: {anew_s:.2f} s")
    print(f"slider step: median {step_s:.3f} s, slowest {max(steps_s):.3f} s of {STEPS} (to reach {TARGET_S} s)")
    print(f"ratio: {anew_s / step_s:.1f}")


if __name__ == "__main__":
    main()
