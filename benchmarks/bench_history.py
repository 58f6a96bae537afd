"""The history of 50 workers and 40 models, polled every 30 s (issue 3): how large 30 days are, and how fast 24 h are read.

The churn is generated as the issue states it: a tenth of the workers leave or join in an hour, a speed changes every few jobs,
every queue changes at every poll; totals change once a minute, as the server's do. Some days are recorded and the size is scaled
to thirty (``--days 30`` records them all). Baselines in the same run: each poll as whole JSON, zlib-compressed (size), and the
board read from the snapshot of each poll (reading).
"""

import argparse
import json
import random
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.bench_board import timed
from horde_policy.board.measure import measure
from horde_policy.board.pool import Fleet
from horde_policy.frames.models import MODELS
from horde_policy.frames.snapshot import Heartbeat, Modes, Performance, Snapshot, Totals
from horde_policy.frames.workers import WORKERS
from horde_policy.history.fleet_span import load_span
from horde_policy.history.presence import workers_over
from horde_policy.history.reading import snapshot_at
from horde_policy.history.store import HistoryStore
from horde_policy.history.trend import trend
from horde_policy.history.upkeep import store_info
from horde_policy.settings import AllowanceSettings

START = datetime(2026, 11, 1, tzinfo=UTC)
EVERY_S = 30
WORKERS_ONLINE, MODELS_LISTED = 50, 40
JOB_S = 25.0
JOBS_BETWEEN_SPEEDS = 3.0
SIZE_TARGET_MB, READ_TARGET_S = 150.0, 0.3
NAMES = [f"koboldcpp/Model-{number:02d}-8B" for number in range(MODELS_LISTED)]


def _joining(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "worker_id": f"{rng.getrandbits(128):032x}",
        "name": f"worker {number}",
        "models": rng.sample(NAMES, rng.choice([1, 1, 1, 2, 3])),
        "max_length": rng.choices([80, 256, 400, 512, 1024, 2048, 4096], [5, 10, 10, 50, 15, 7, 3])[0],
        "max_context_length": rng.choice([2048, 4096, 8192, 16384]),
        "speed_tok_per_s": round(rng.lognormvariate(2.3, 0.8), 1),
        "measured": True,
        "threads": rng.choices([1, 2, 8], [8, 1, 1])[0],
        "online": True,
        "maintenance": rng.random() < 0.1,
        "flagged": False,
        "trusted": rng.random() < 0.5,
        "bridge_agent": "KoboldCppEmbedWorker:2:https://github.com/LostRuins/koboldcpp",
        "owner": None,
        "requests_fulfilled": rng.randrange(100_000),
        "uncompleted_jobs": rng.randrange(300),
        "uptime_s": rng.randrange(3_000_000),
    }


def churning_horde(polls: int, seed: int) -> Iterator[Snapshot]:
    """Yield synthetic snapshots with the churn that the issue states."""
    rng = random.Random(seed)
    fleet = [_joining(rng, number) for number in range(WORKERS_ONLINE)]
    share = 0.1 * EVERY_S / 3600
    new_speed = EVERY_S / (JOB_S * JOBS_BETWEEN_SPEEDS)
    requests = 0
    performance, totals = Performance(), Totals()
    for poll in range(polls):
        # of those that are there, against those who might come: so the fleet stays about as large for a month
        if rng.random() < share * len(fleet):
            fleet.pop(rng.randrange(len(fleet)))
        if rng.random() < share * WORKERS_ONLINE:
            fleet.append(_joining(rng, poll))
        for worker in fleet:
            if rng.random() < new_speed:
                worker["speed_tok_per_s"] = round(max(0.5, worker["speed_tok_per_s"] * rng.uniform(0.9, 1.1)), 1)
                worker["requests_fulfilled"] += 3
        queued = [float(rng.randrange(0, 20_000)) for _ in NAMES]
        listed = {
            "model": NAMES,
            "threads": [2] * MODELS_LISTED,
            "job_speed_tok_per_s": [10.0] * MODELS_LISTED,
            "queued_tokens": queued,
            "jobs": [float(rng.randrange(30)) for _ in NAMES],
            "eta_s": [float(rng.randrange(1000)) for _ in NAMES],
        }
        rows = sorted(fleet, key=lambda worker: str(worker["worker_id"]))
        columns = {name: [row[name] for row in rows] for name in WORKERS.columns}
        if poll % 2 == 0:
            requests += rng.randrange(60)
            periods = enumerate(("minute", "hour", "day", "month", "total"))
            counts = {period: requests % (97 * 10**place) for place, period in periods}
            totals = Totals(requests=counts, tokens={period: count * 200 for period, count in counts.items()})
            performance = Performance(
                queued_text_requests=float(rng.randrange(500)),
                queued_tokens=sum(queued) + 500,
                past_minute_tokens=float(rng.randrange(20_000)),
                text_worker_count=len(fleet),
                text_thread_count=len(fleet) * 2,
            )
        yield Snapshot(
            fetched_at=START + timedelta(seconds=EVERY_S * poll),
            source="synthetic",
            source_kind="recorded",
            synthetic=True,
            workers=pl.DataFrame(columns, schema=WORKERS.polars_schema()),
            models=pl.DataFrame(listed, schema=MODELS.polars_schema()),
            performance=performance,
            modes=Modes(maintenance_mode=False, invite_only_mode=False),
            heartbeat=Heartbeat(message="OK", version="5.1.5"),
            totals=totals,
        )


def _as_json(snapshot: Snapshot) -> bytes:
    parts = {
        "workers": snapshot.workers.to_dicts(),
        "models": None if snapshot.models is None else snapshot.models.to_dicts(),
        "performance": None if snapshot.performance is None else asdict(snapshot.performance),
        "totals": None if snapshot.totals is None else asdict(snapshot.totals),
    }
    return json.dumps(parts, default=str).encode()


def main(days: float = 1.1) -> None:
    """Print size and speeds against the targets."""
    polls = int(days * 86_400 / EVERY_S)
    with tempfile.TemporaryDirectory() as folder:
        store = HistoryStore(Path(folder) / "history.sqlite", durable=False)
        spent_s, packed, sampled = 0.0, 0, 0
        for number, snapshot in enumerate(churning_horde(polls, seed=1)):
            began = time.perf_counter()
            store.write(snapshot)
            spent_s += time.perf_counter() - began
            if number % 100 == 0:
                packed += len(zlib.compress(_as_json(snapshot)))
                sampled += 1
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")  # the log beside the file does not grow with the days
        size_mb = store_info(store).bytes_ / 1e6 * 30 / days
        json_mb = packed / sampled * 30 * 86_400 / EVERY_S / 1e6
        print(f"recorded {polls:,} polls ({days:g} days) of 50 workers and 40 models, {spent_s / polls * 1e3:.2f} ms a poll")
        print(
            f"size, scaled to 30 days: {size_mb:.0f} MB (target {SIZE_TARGET_MB:g}); whole polls as zipped JSON: {json_mb:.0f} MB"
        )
        _print_rows(store)
        _print_reading(store, START + timedelta(seconds=EVERY_S * (polls - 1)))
        store.close()


def _print_rows(store: HistoryStore) -> None:
    with store.reading() as connection:
        found = connection.exec_driver_sql("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 6").all()
    print("of which: " + ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in found))


def _print_reading(store: HistoryStore, end: datetime) -> None:
    settings = AllowanceSettings()
    start, model = end - timedelta(hours=24), NAMES[7]

    def one_model() -> pl.DataFrame:
        return trend(load_span(store, start, end, models=(model,)), (model,), settings)

    def every_model() -> None:
        span = load_span(store, start, end, with_horde_wide=True)
        for name in NAMES:
            trend(span, (name,), settings)

    def by_snapshots() -> None:
        for hour in range(24):
            look = snapshot_at(store, start + timedelta(hours=hour))
            measure(Fleet.of(look, settings), (model,), 80)

    span = load_span(store, start, end, models=(model,))
    read_s = timed(one_model, 5)
    again_s = timed(lambda: trend(span, (model,), settings, max_length=512), 5)
    boards_s = timed(by_snapshots, 3) / 24 * one_model().height
    print(f"24 h of one model, read and computed: {read_s:.3f} s (target {READ_TARGET_S:g}), {one_model().height:,} polls")
    print(f"  at another size, without reading again: {again_s * 1e3:.1f} ms")
    print(f"  by the board of each poll's snapshot: {boards_s:.1f} s, {boards_s / read_s:.0f} times as long")
    print(f"24 h of all 40 models, with the worst wait: {timed(every_model, 3):.3f} s")
    print(f"24 h of the workers' presence: {timed(lambda: workers_over(load_span(store, start, end, models=())), 3):.3f} s")
    print(f"one snapshot of a past instant: {timed(lambda: snapshot_at(store, start), 20) * 1e3:.1f} ms")


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--days", type=float, default=1.1)
    main(reader.parse_args().days)
