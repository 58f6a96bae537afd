"""A made-up horde that changes at random, for histories: workers that come, go and change, queues that move, parts missing."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from horde_policy.frames.snapshot import Performance, Snapshot
from tests.unit.board.made import listed, snapshot, worker

START = datetime(2026, 11, 29, 12, tzinfo=UTC)
MODELS = ("a", "koboldcpp/b", "c|d", "e", "f")
SIZES = (None, 0, 80, 512, 1024, 2048, 4096, 20_000)


def _worker(rng: random.Random, number: int) -> dict[str, Any]:
    return worker(
        f"w{number}",
        rng.sample(MODELS, rng.randint(0, 3)),
        max_length=rng.choice(SIZES),
        max_context_length=rng.choice([None, 1024, 2048, 4096, 8192, 32_768]),
        threads=rng.choice([None, 0, 1, 2, 5]),
        flagged=rng.choice([None, False, False, False, True]),
        speed_tok_per_s=rng.choice([None, 0.0, 1.0, 26.9, 1 / 3, round(rng.uniform(1, 60), 1), rng.uniform(1, 60)]),
        measured=rng.choice([None, True, True, True, False]),
        online=rng.choice([None, True, True, True, False]),
        maintenance=rng.choice([None, False, False, False, True]),
    )


def changing(polls: int, seed: int, *, every_s: float = 30.0) -> Iterator[Snapshot]:
    """Yield snapshots of a horde of up to twelve workers and five models."""
    rng = random.Random(seed)
    fleet = {number: _worker(rng, number) for number in range(8)}
    queues: dict[str, tuple[float | None, float | None]] = {}
    for poll in range(polls):
        for number in range(12):
            if rng.random() < 0.15:
                fleet[number] = _worker(rng, number)
            elif rng.random() < 0.05:
                fleet.pop(number, None)
        for model in MODELS:
            if rng.random() < 0.4:
                queued = rng.choice([None, 0.0, 60.0, 900.0, 3000.0, float(rng.randrange(20_000)), rng.uniform(0, 5000)])
                queues[model] = (queued, rng.choice([None, 0.0, 1.0, 3.0, 40.0]))
            elif rng.random() < 0.1:
                queues.pop(model, None)
        rows = [listed(model, queued, jobs) for model, (queued, jobs) in queues.items()]
        made = snapshot(list(fleet.values()), None if rng.random() < 0.05 else rows, at=START + timedelta(seconds=poll * every_s))
        wide = None if rng.random() < 0.1 else Performance(queued_tokens=rng.choice([None, 0.0, rng.uniform(0, 50_000)]))
        object.__setattr__(made, "performance", wide)
        yield made
