"""Reading a large horde: answers of 2,000 workers and 500 models, from bytes to a snapshot, against the JSON parser alone.

``python -m benchmarks.bench_sources`` prints medians. Target: the first figures of such a board stand within 1 s of the data
being there, of which reading may take the smaller part.
"""

import json
import random
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime

from horde_policy.frames.snapshot import Snapshot
from horde_policy.sources.parts import PartName, assemble, read_part
from horde_policy.sources.payloads import parse_json

WORKERS, MODELS, ROUNDS = 2_000, 500, 9
AT = datetime(2026, 11, 29, tzinfo=UTC)


def bodies(seed: int) -> dict[PartName, bytes]:
    """Make the two answers: synthetic, sizes and speeds as horde.md §9 has them."""
    draw = random.Random(seed)
    names = [f"koboldcpp/Model-{number}-12B-v{draw.randint(1, 9)}" for number in range(MODELS)]
    workers = [
        {
            "requests_fulfilled": float(draw.randint(0, 100_000)),
            "kudos_details": {"generated": draw.random() * 1e6, "uptime": None},
            "performance": f"{draw.lognormvariate(2.4, 0.8):.1f} tokens per second",
            "threads": 1,
            "uptime": draw.randint(0, 10**7),
            "maintenance_mode": draw.random() < 0.1,
            "trusted": True,
            "flagged": False,
            "uncompleted_jobs": draw.randint(0, 3000),
            "models": draw.sample(names, draw.randint(1, 3)),
            "team": {"name": None, "id": None},
            "bridge_agent": "KoboldCppEmbedWorker:2:https://github.com/LostRuins/koboldcpp",
            "max_length": draw.choice((80, 256, 400, 512, 512, 1024, 2048, 4096)),
            "max_context_length": draw.choice((2048, 4096, 8192, 16384)),
            "type": "text",
            "name": f"worker {number}",
            "id": f"{number:032x}",
            "online": True,
        }
        for number in range(WORKERS)
    ]
    models = [
        {
            "name": name,
            "count": 3,
            "performance": 18.4,
            "queued": 512.0 * draw.randint(0, 9),
            "jobs": 4.0,
            "eta": 37,
            "type": "text",
        }
        for name in names
    ]
    return {"workers": json.dumps(workers).encode(), "models": json.dumps(models).encode()}


def read(given: dict[PartName, bytes]) -> Snapshot:
    """Read the answers as the live source does."""
    parts = {}
    for name, content in given.items():
        value, mended = parse_json(content, "bench", name)
        parts[name] = read_part(name, value, AT, "bench", mended)
    return assemble(parts, source="bench", kind="live")


def median_ms(job: Callable[[], object]) -> float:
    """Return the median time of a job, in milliseconds."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        job()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def main() -> None:
    """Print the figures."""
    given = bodies(seed=1)
    size_kb = sum(map(len, given.values())) / 1000
    snapshot = read(given)
    assert snapshot.workers.height == WORKERS
    assert snapshot.models is not None
    assert snapshot.models.height == MODELS
    assert snapshot.problems == ()
    parsed = median_ms(lambda: [json.loads(content) for content in given.values()])
    whole = median_ms(lambda: read(given))
    print(f"{WORKERS} workers and {MODELS} models, {size_kb:.0f} kB of JSON, median of {ROUNDS}")
    print(f"  json.loads alone      {parsed:8.1f} ms")
    print(f"  bytes to a snapshot   {whole:8.1f} ms   {whole / parsed:.1f} x the parser (target: well under 1000 ms)")


if __name__ == "__main__":
    main()
