"""The board of a large made-up horde: 500 models, 2,000 workers (issue 2, "Must show" 6), against a scan of all workers.

Target: the first figures within 1 s of the data being there; the page's own part of that second is not measured here.
The baseline asks the policy, for each model and size, about every worker of the list.
"""

import random
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import polars as pl

from horde_policy.board.rows import STRIP_SIZES_TOKENS, make_board
from horde_policy.frames.models import MODELS
from horde_policy.frames.snapshot import Performance, Snapshot
from horde_policy.frames.workers import WORKERS
from horde_policy.policy.eligibility import Request, eligible_workers
from horde_policy.policy.wait import combined_speed_tok_per_s
from horde_policy.policy.worker import workers_from_frame
from horde_policy.settings import AllowanceSettings

TARGET_S = 1.0
SETTINGS = AllowanceSettings()


def made_horde(models: int, workers: int, *, models_per_worker: int, seed: int = 1) -> Snapshot:
    """Return a synthetic snapshot: lognormal speeds, declared sizes of horde.md §9, a tenth in maintenance."""
    rng = random.Random(seed)
    names = [f"koboldcpp/Model-{place:04d}" for place in range(models)]
    fleet = {
        "worker_id": [f"w{place:06d}" for place in range(workers)],
        "name": [f"worker {place}" for place in range(workers)],
        "models": [rng.sample(names, rng.randint(1, models_per_worker)) for _ in range(workers)],
        "max_length": rng.choices([80, 256, 400, 512, 1024, 2048, 4096], [5, 10, 10, 50, 15, 7, 3], k=workers),
        "max_context_length": rng.choices([2048, 4096, 8192, 16384], k=workers),
        "speed_tok_per_s": [round(rng.lognormvariate(2.3, 0.8), 1) for _ in range(workers)],
        "measured": [rng.random() > 0.05 for _ in range(workers)],
        "threads": rng.choices([1, 2, 8], [8, 1, 1], k=workers),
        "online": [True] * workers,
        "maintenance": [rng.random() < 0.1 for _ in range(workers)],
        "flagged": [False] * workers,
        "trusted": [True] * workers,
        "bridge_agent": ["KoboldCppEmbedWorker:2:x"] * workers,
        "owner": [None] * workers,
        "requests_fulfilled": [5] * workers,
        "uncompleted_jobs": [0] * workers,
        "uptime_s": [600] * workers,
    }
    queued = [float(rng.choice([0, 0, 0, 512, 4096, 20000])) for _ in names]
    listed = {
        "model": names,
        "threads": [1] * models,
        "job_speed_tok_per_s": [10.0] * models,
        "queued_tokens": queued,
        "jobs": [float(rng.randint(0, 30)) for _ in names],
        "eta_s": [None] * models,
    }
    return Snapshot(
        fetched_at=datetime(2026, 11, 29, tzinfo=UTC),
        source="synthetic",
        source_kind="recorded",
        synthetic=True,
        workers=pl.DataFrame(fleet, schema=WORKERS.polars_schema()),
        models=pl.DataFrame(listed, schema=MODELS.polars_schema()),
        performance=Performance(queued_tokens=sum(queued) + 1000.0),
    )


def timed(work: Callable[[], object], repeats: int) -> float:
    """Return the median of the seconds that the work takes."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def scan_of_all_workers(snapshot: Snapshot, models: list[str]) -> None:
    """Ask the policy about every worker of the list, for each model and each size of the strip."""
    workers = workers_from_frame(snapshot.workers)
    for model in models:
        for size in STRIP_SIZES_TOKENS:
            request = Request(models=(model,), max_length=size, max_context_length=max(2048, size))
            combined_speed_tok_per_s(eligible_workers(workers, request, SETTINGS), SETTINGS)


def main() -> None:
    """Print the measured figures."""
    for models, workers, per_worker in ((500, 2_000, 5), (500, 2_000, 200), (40, 50, 3)):
        snapshot = made_horde(models, workers, models_per_worker=per_worker)
        board_s = timed(partial(make_board, snapshot, SETTINGS), 5 if per_worker < 50 else 1)
        board = make_board(snapshot, SETTINGS)
        frame_s = timed(board.frame, 5)
        part = [row.model or "" for row in board.rows[:: max(1, models // 20)]]
        scan_s = timed(partial(scan_of_all_workers, snapshot, part), 1) * models / len(part)
        verdict = "met" if board_s + frame_s <= TARGET_S else "MISSED"
        print(
            f"board of {models} models, {workers:,} workers with up to {per_worker} models each: rows {board_s:.3f} s, "
            f"frame {frame_s:.3f} s; target {TARGET_S:g} s {verdict}; scan of all workers {scan_s:.2f} s "
            f"(from {len(part)} models), {scan_s / board_s:.0f} times as long"
        )


if __name__ == "__main__":
    main()
