"""Reading and filling traffic: CSV, Parquet and JSON lines of synthetic requests, against plain Python on a slice.

Run ``python -m benchmarks.bench_traffic [ROWS]`` (2,000,000 by default; 10,000,000 for the largest upload). Targets (performance
page): CSV at least 150 MB/s (aim 400), Parquet of 2,000,000 rows at most 0.1 s. Each file is read in a process of its own, whose
peak memory is printed beside what its result takes.
"""

import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl

from horde_policy.frames.traffic import REQUESTER
from horde_policy.imports.replay_inputs import load_traffic
from horde_policy.imports.tables import read_table
from horde_policy.imports.traces import OWN_KINDS, load_trace
from horde_policy.replay.draws import u_of_rows
from horde_policy.replay.fill import ModelWeights, filled
from horde_policy.replay.fill_rule import FillRule

ROWS = 2_000_000
SLICE_ROWS = 100_000
CSV_TARGET_MB_PER_S, CSV_AIM_MB_PER_S = 150, 400
PARQUET_TARGET_S = 0.1
RULES = (
    "max_length=ladder",
    "max_length=ladder,models=weighted,requester=0.7/0.1,can_pay=0.5",
    "max_length=client_setting,models=weighted,clients=4247/0.8,allow_downgrade=0.3",
)
WEIGHTS = ModelWeights(counts={f"koboldcpp/model-{n}": n + 1.0 for n in range(60)}, source="synthetic")


def synthetic(rows: int) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "request_id": pl.int_range(rows, eager=True).cast(pl.String),
            "created": (1_700_000_000_000_000 + np.cumsum(draw.integers(0, 600_000, rows))).astype(np.int64),
            "models": pl.Series([[name] for name in WEIGHTS.counts]).gather(pl.Series(draw.integers(0, 60, rows))),
            "requester": pl.Series(draw.integers(0, 3, rows).astype(np.uint8)).cat.to(REQUESTER),
            "max_length": draw.integers(1, 4097, rows),
            "output_tokens": draw.integers(0, 2000, rows),
            "max_context_length": 2048 << draw.integers(0, 4, rows),
            "can_pay": draw.random(rows) < 0.5,
            "chat": draw.random(rows) < 0.5,
        }
    ).with_columns(pl.col("created").cast(pl.Datetime("us", "UTC")))


def write_files(folder: Path, rows: int) -> None:
    frame = synthetic(rows)
    frame.write_parquet(folder / "own.parquet")
    stamped = pl.col("created").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
    frame.with_columns(pl.col("models").list.join("|"), stamped, pl.col("requester").cast(pl.String)).write_csv(
        folder / "own.csv"
    )
    azure = pl.col("created").dt.strftime("%Y-%m-%d %H:%M:%S%.6f") + "0"
    sizes = [pl.col("max_length").alias("ContextTokens"), pl.col("output_tokens").alias("GeneratedTokens")]
    frame.select(azure.alias("TIMESTAMP"), *sizes).write_csv(folder / "azure2023_conv.csv")
    clock = (pl.col("created").to_physical() - frame["created"].to_physical()[0]) // 1000
    lengths = [pl.col("max_length").alias("input_length"), pl.col("output_tokens").alias("output_length")]
    few = frame.head(rows // 10).select(clock.alias("timestamp"), *lengths, pl.lit([1, 2, 3]).alias("hash_ids"))
    few.write_ndjson(folder / "mooncake_conversation.jsonl")


def best(work: Callable[[], object], repeats: int = 3) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def plain_csv_mb_per_s(path: Path) -> float:
    """Return the speed of the csv module with the same kinds of cells, on the first rows."""
    with path.open(encoding="utf-8", newline="") as file:
        start = time.perf_counter()
        read = 0
        for row in csv.DictReader(file):
            datetime.fromisoformat(row["created"])
            row["models"].split("|")
            int(row["max_length"]), int(row["output_tokens"]), int(row["max_context_length"])
            read += 1
            if read == SLICE_ROWS:
                break
        seconds = time.perf_counter() - start
    with path.open("rb") as raw:
        return sum(len(raw.readline()) for _ in range(read + 1)) / 1e6 / seconds


def in_a_process(work: str, path: Path) -> dict[str, float]:
    """Run one of the measures below in a process of its own; return seconds and megabytes."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_traffic", work, str(path)], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def peak_mb() -> float:
    """Return the peak memory of this process; unlike getrusage, not that of its parent before it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def measured(work: str, path: Path) -> dict[str, float]:
    def read() -> pl.DataFrame:
        if work == "columns":
            return read_table(path, OWN_KINDS, "traffic").frame
        return load_traffic(path).frame if work == "checked" else load_trace(path).frame

    before_mb = peak_mb()
    result_mb = read().estimated_size("mb")
    after_mb = peak_mb()
    return {
        "s": best(read),
        "before_mb": before_mb,
        "peak_mb": after_mb,
        "result_mb": result_mb,
        "file_mb": path.stat().st_size / 1e6,
    }


def report_reading(folder: Path) -> None:
    plain = plain_csv_mb_per_s(folder / "own.csv")
    print(f"{'':34} {'file MB':>8} {'s':>7} {'MB/s':>6} {'× plain':>8} {'peak MB':>8} {'of it before':>12} {'result MB':>9}")
    jobs = [("columns", "own.csv"), ("checked", "own.csv"), ("columns", "own.parquet"), ("checked", "own.parquet")]
    for work, name in [*jobs, ("trace", "azure2023_conv.csv"), ("trace", "mooncake_conversation.jsonl")]:
        found = in_a_process(work, folder / name)
        speed = found["file_mb"] / found["s"]
        ratio = f"{speed / plain:8.1f}" if name == "own.csv" else " " * 8
        memory = f"{found['peak_mb']:8.0f} {found['before_mb']:12.0f} {found['result_mb']:9.0f}"
        print(f"{work + ' ' + name:34} {found['file_mb']:8.1f} {found['s']:7.2f} {speed:6.0f} {ratio} {memory}")
    print(f"plain csv module: {plain:.0f} MB/s; targets: CSV ≥ {CSV_TARGET_MB_PER_S} MB/s (aim {CSV_AIM_MB_PER_S}),", end=" ")
    print(f"Parquet of {ROWS:,} rows ≤ {PARQUET_TARGET_S} s for the columns; checked = with every rule of the contract")


def report_filling(folder: Path) -> None:
    trace = load_trace(folder / "azure2023_conv.csv")
    rows = trace.frame["row"].to_numpy()
    u_of_rows("requester", "t", rows)  # compile, or read from the disk
    compiled = best(lambda: u_of_rows("requester", trace.name, rows)) / len(rows)
    plain = best(
        lambda: [int.from_bytes(sha256(f"requester|t|{n}".encode()).digest()[:8], "big") / 2**64 for n in range(SLICE_ROWS)], 2
    )
    plain /= SLICE_ROWS
    print(f"\ndraw of a row: {compiled * 1e9:.0f} ns compiled, {plain * 1e9:.0f} ns with hashlib: × {plain / compiled:.1f}")
    for text in RULES:
        seconds = best(partial(filled, trace, FillRule.parsed(text), weights=WEIGHTS), 2)
        print(f"fill {len(rows):,} rows, {text}: {seconds:.2f} s, {len(rows) / seconds / 1e6:.2f} M rows/s")


def main(rows: int = ROWS) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, rows)
        print(f"{rows:,} synthetic requests ({rows // 10:,} as JSON lines)")
        report_reading(folder)
        report_filling(folder)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measured(sys.argv[1], Path(sys.argv[2]))))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
