"""A local AI Horde whose fleet and queues are other ones at each poll: synthetic answers in the server's own form.

Each request for the list of models begins a new *tick*, and so each poll has one of its own; the other parts answer for the tick
that was begun last. Every answer says its tick in a figure that a history keeps, so that what was stored can be held against
what was served: the worker ``beacon`` is ``tick`` tenths fast, the model ``beacon`` has ``tick`` tokens queued, the totals count
``tick`` requests. A client that finds an answer fresh enough does not ask again: it then tells an earlier tick.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from horde_policy.frames.snapshot import Snapshot
from horde_policy.sources.parts import PARTS, Part, PartName, read_part
from tests.replaying_server import Asked, ReplayingServer, Reply, as_json

BASE = Path(__file__).parents[1] / "data" / "recorded" / "snapshot"
BEACON = "beacon"
SOME_TIME = datetime(2026, 11, 29, tzinfo=UTC)
MODELS = [f"koboldcpp/Model-{number}" for number in range(8)]


def _worker(rng: random.Random, number: int, speed: float) -> dict[str, Any]:
    return {
        "id": f"worker-{number:03d}",
        "name": f"worker {number} <b>&amp;",
        "type": "text",
        "online": True,
        "performance": f"{speed:.1f} tokens per second",
        "threads": 1 + number % 3,
        "max_length": (80, 512, 1024, 4096)[number % 4],
        "max_context_length": 8192,
        "models": sorted(MODELS[(number + step) % len(MODELS)] for step in range(1 + number % 3)),
        "maintenance_mode": rng.random() < 0.1,
        "requests_fulfilled": rng.randrange(0, 3),
        "uncompleted_jobs": 0,
        "uptime": 600,
        "trusted": True,
        "flagged": False,
        "nsfw": False,
        "bridge_agent": "KoboldCppEmbedWorker:2:x",
        "kudos_details": {"generated": 1.0, "uptime": 1.0},
        "team": {"name": None, "id": None},
    }


@dataclass(frozen=True)
class Tick:
    """What the server says at one tick, by part."""

    bodies: dict[PartName, Any]

    def part(self, name: PartName) -> Part:
        return read_part(name, self.bodies[name], SOME_TIME, "the churning server")


@cache
def tick_of(number: int, seed: int) -> Tick:
    """What the server says at a tick: about twenty workers, of which some come, go or change at each."""
    rng = random.Random(f"{seed} {number}")
    there = [worker for worker in range(30) if random.Random(f"{seed} {worker} {number // (3 + worker % 5)}").random() < 0.7]
    workers = [_worker(rng, worker, round(rng.uniform(1, 50), 1)) for worker in there]
    workers.append({**_worker(rng, 0, number / 10), "id": BEACON, "requests_fulfilled": 5})
    models = [
        {
            "name": model,
            "count": 2,
            "performance": 10.0,
            "queued": float(rng.randrange(5000)),
            "jobs": 2.0,
            "eta": 9,
            "type": "text",
        }
        for model in MODELS
        if rng.random() < 0.9
    ]
    models.append(
        {"name": BEACON, "count": 1, "performance": 1.0, "queued": float(number), "jobs": 0.0, "eta": 0, "type": "text"}
    )
    return Tick(
        {
            "workers": workers,
            "models": models,
            "performance": {"queued_text_requests": number, "queued_tokens": rng.randrange(90_000), "past_minute_tokens": 5},
            "modes": {"maintenance_mode": False, "invite_only_mode": number % 7 == 0},
            "heartbeat": {"message": "OK", "version": "5.1.5"},
            "totals": {period: {"requests": number, "tokens": number * 100} for period in ("minute", "hour", "day")},
            "demand": {"day": dict.fromkeys(MODELS, 5), "month": {}, "total": {}},
        }
    )


class _Churn:
    """Answers with the present tick; stands in for a recorded folder."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.tick = 0
        self.begun: list[tuple[str, int]] = []
        self.at_next_poll: Callable[[], None] | None = None
        self._names = {f"/api{spec.path}": name for name, spec in PARTS.items()}

    def reply(self, asked: Asked) -> Reply:
        name = self._names.get(asked.raw_path)
        if name is None:
            return as_json(404, {"message": "no such endpoint"})
        if name == "models" and self.at_next_poll is not None:
            act, self.at_next_poll = self.at_next_poll, None
            act()
            return as_json(503, {"message": "away"})
        if name == "models":
            self.tick += 1
            self.begun.append((asked.headers.get("client-agent", ""), self.tick))
        return as_json(200, tick_of(self.tick, self.seed).bodies[name])


class ChurningServer(ReplayingServer):
    """Serves a changing horde on a free loopback port; fails as a :class:`ReplayingServer` does when it is told to."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(BASE)
        self.churn = _Churn(seed)
        self._recording = self.churn  # type: ignore[assignment]

    @property
    def begun(self) -> list[tuple[str, int]]:
        """Who began which tick, in order: the ``Client-Agent`` of each request for the list of models."""
        return list(self.churn.begun)

    def leave(self) -> None:
        """Be away from the next poll on, until :meth:`heal`; the poll in flight is not cut in two."""
        self.churn.at_next_poll = lambda: self.fail("drop")

    def ticks_of(self, agent: str) -> list[int]:
        """The ticks that one asker began."""
        return [tick for who, tick in self.begun if agent in who]


COUNTS = ("requests_fulfilled", "uncompleted_jobs", "uptime_s")


def tick_in(snapshot: Snapshot) -> int:
    """The tick that a stored poll began: that of its list of models."""
    assert snapshot.models is not None
    queued: float = snapshot.models.filter(pl.col("model") == BEACON)["queued_tokens"].item()
    return int(queued)


def differences(snapshot: Snapshot, seed: int) -> list[str]:
    """Return in which parts a stored poll differs from what was served at the ticks that its parts tell."""
    number = tick_in(snapshot)
    speed: float = snapshot.workers.filter(pl.col("worker_id") == BEACON)["speed_tok_per_s"].item()
    told = snapshot.performance
    requests = number if told is None or told.queued_text_requests is None else int(told.queued_text_requests)
    ticks = {"models": number, "workers": round(speed * 10), "performance": requests}
    served = {name: tick_of(tick, seed).part(name).value for name, tick in ticks.items()}  # type: ignore[arg-type]
    found = [f"tick {number}: {name} of tick {tick}" for name, tick in ticks.items() if not number - 5 <= tick <= number]
    workers = served["workers"]
    assert isinstance(workers, pl.DataFrame)
    if not snapshot.workers.drop(COUNTS).equals(workers.drop(COUNTS)):
        found.append(f"tick {number}: workers")
    if snapshot.models is None or not snapshot.models.equals(served["models"]):  # type: ignore[arg-type]
        found.append(f"tick {number}: models")
    if told != served["performance"]:
        found.append(f"tick {number}: totals")
    return found
