"""How long a review takes: ``python -m benchmarks.bench_review [MINUTES]``, on a made-up week of one export a minute.

Prints the medians, and the ratio of the library's decomposition to counting the same rows in plain Python, in the same run.
"""

import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from horde_policy.frames.decisions import DECISIONS, OUTCOMES, REQUESTERS, SIZES
from horde_policy.frames.waits import WAIT_SUMS, WAITS
from horde_policy.policy.telemetry import WAIT_BOUNDARIES_S
from horde_policy.review.cells import size_grid
from horde_policy.review.decompose import decompose
from horde_policy.review.exported import Exported
from horde_policy.review.findings import review_week
from horde_policy.review.verdict import funded_verdict
from horde_policy.review.whatif import what_if
from horde_policy.settings import AllowanceSettings
from horde_policy.views.report import report_html

START = datetime(2026, 11, 23, tzinfo=UTC)
A_STEP = 45
"""Label sets with a count in one export."""


def made(minutes: int, seed: int = 1) -> Exported:
    """Return a week's worth of rows at random; what they say makes no sense, how many there are does."""
    rng = np.random.default_rng(seed)
    rows = minutes * A_STEP
    step = np.repeat(np.arange(minutes), A_STEP)
    start = pl.Series("interval_start", step * 60_000_000 + round(START.timestamp() * 1e6)).cast(pl.Datetime("us", "UTC"))
    when = {
        "interval_start": start,
        "interval_end": start + timedelta(minutes=1),
        "instance": pl.Series(["one"]).new_from_index(0, rows),
    }
    counts = rng.integers(1, 9, rows).astype(float)

    def words(choices: tuple[str, ...]) -> pl.Series:
        return pl.Series(choices)[rng.integers(len(choices), size=rows)]

    decisions = pl.DataFrame(
        when
        | {
            "requester": words(REQUESTERS),
            "outcome": words(OUTCOMES),
            "requested_size": words(SIZES),
            "allowance_size": words(SIZES[:4]),
            "chat": pl.Series(rng.random(rows) < 0.3),
            "count_low": counts,
            "count_high": counts,
        }
    )
    place = rng.integers(len(WAIT_BOUNDARIES_S) - 1, size=rows)
    bounds = np.array(WAIT_BOUNDARIES_S)
    kinds = pl.Series(["estimated", "queue"])[rng.integers(2, size=rows)]
    waits = pl.DataFrame(
        when
        | {
            "kind": kinds,
            "requester": pl.Series(REQUESTERS)[rng.integers(3, size=rows)],
            "chat": pl.Series([None], dtype=pl.Boolean).new_from_index(0, rows),
            "lower_s": bounds[place],
            "upper_s": bounds[place + 1],
            "count_low": counts,
            "count_high": counts,
        }
    )
    return Exported(
        decisions=DECISIONS.checked(decisions), waits=WAITS.checked(waits), wait_sums=WAIT_SUMS.empty(), title="bench"
    )


def median_s(work: Callable[[], object], runs: int = 5) -> float:
    """Return the median of some runs in seconds, after one that is not counted."""
    work()
    taken = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def counted_plainly(decisions: pl.DataFrame) -> Counter[tuple[object, ...]]:
    """Return counts by requester and outcome in plain Python, rows already at hand as tuples."""
    found: Counter[tuple[object, ...]] = Counter()
    for requester, outcome, count in decisions.select("requester", "outcome", "count_low").rows():
        found[requester, outcome] += count
    return found


def main() -> None:
    minutes = int(sys.argv[1]) if len(sys.argv) > 1 else 10_080
    exported, settings = made(minutes), AllowanceSettings()
    decisions, waits = exported.decisions, exported.waits
    print(f"{decisions.height:,} rows of decisions, {waits.height:,} of waits, {minutes:,} exports")
    plain_s = median_s(lambda: counted_plainly(decisions), 3)
    split_s = median_s(lambda: decompose(decisions, ["requester", "outcome"]))
    ratio = plain_s / split_s
    print(f"requester × outcome with intervals: {split_s:.3f} s; plain Python, counts alone: {plain_s:.3f} s ({ratio:.1f}×)")
    jobs: list[tuple[str, Callable[[], object]]] = [
        ("outcome over time", lambda: decompose(decisions, ["time", "outcome"])),
        ("grid of sizes", lambda: size_grid(decisions, settings)),
        ("what-if", lambda: what_if(decisions, settings, settings.changed(floor_tokens=1024))),
        ("verdict on funded waits", lambda: funded_verdict(decisions, waits)),
        ("the whole week", lambda: review_week(exported, settings)),
    ]
    for name, work in jobs:
        print(f"{name}: {median_s(work, 3):.3f} s")
    week = review_week(exported, settings)
    print(f"report: {median_s(lambda: report_html(week, made_at=START), 3):.3f} s")


if __name__ == "__main__":
    main()
