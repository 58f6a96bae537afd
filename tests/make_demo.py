"""Makes the bundled demo horde, ``data/demo``: a synthetic fleet and queue, written in the layout of a recorded folder.

``python -m tests.make_demo [FOLDER]`` writes it; the same seed writes the same bytes. Magnitudes follow horde.md §9, and
the answers are counted as the server counts them (horde_observed.md): ``queued`` adds each request's ``max_length`` once,
``jobs`` adds generations, ``count`` adds threads, models without a worker outside maintenance are not listed.
"""

import json
import random
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SEED = 20261129
RECORDED_AT = "2026-11-29T12:00:00.000Z"
NOTE = "synthetic: made by tests/make_demo.py, no server ever said this"
DEMO = Path(__file__).parents[1] / "data" / "demo"

KOBOLDCPP = "KoboldCppEmbedWorker:2:https://github.com/LostRuins/koboldcpp"
APHRODITE = "AI Horde Worker~aphrodite~oai:8:https://github.com/Haidra-Org/AI-Horde-Worker"
TABBY = "TabbyAPI:1:https://github.com/theroyallab/tabbyAPI"
OLD_BRIDGE = "KoboldAI Bridge:10:https://github.com/db0/KoboldAI-Horde-Bridge"


@dataclass(frozen=True)
class Worker:
    """One made-up worker: what it serves, its size limits and speed."""

    name: str
    models: tuple[str, ...]
    speed: float
    max_length: int
    max_context_length: int
    threads: int = 1
    done: int | None = None
    maintenance: bool = False
    flagged: bool = False
    trusted: bool = True
    bridge: str = KOBOLDCPP
    owner: str | None = None
    info: str | None = None


@dataclass
class Request:
    """One made-up request of the queue: generations waiting and in flight."""

    models: tuple[str, ...]
    max_length: int
    max_context_length: int
    waiting: int
    processing: int = 0


# The fleet: mostly one or two workers a model, sizes mostly 512, one in ten in maintenance, a few unmeasured.
WORKERS = (
    Worker("harbour-01", ("koboldcpp/Tidepool-8B-v2",), 41.3, 512, 8192, owner="Harbour#11"),
    Worker("harbour-02", ("koboldcpp/Tidepool-8B-v2", "koboldcpp/Saltmarsh-12B"), 27.9, 1024, 8192, owner="Harbour#11"),
    Worker("harbour-03", ("aphrodite/harbour/Tidepool-8B-v2",), 62.5, 2048, 16384, 4, bridge=APHRODITE, owner="Harbour#11"),
    Worker("tin-whistle", ("koboldcpp/Saltmarsh-12B",), 18.4, 512, 4096),
    Worker("glasshouse", ("koboldcpp/Fernery-24B-v1.1",), 14.2, 512, 8192, trusted=False),
    Worker("glasshouse-annex", ("koboldcpp/Fernery-24B-v1.1",), 9.6, 400, 8192, trusted=False),
    Worker("brass-heron", ("koboldcpp/Mirador-22B",), 8.8, 512, 8192),
    Worker(
        "longboat",
        ("aphrodite/northway/Cairn-123B",),
        16.7,
        4096,
        32768,
        8,
        bridge=APHRODITE,
        info="8 threads &amp; long context",
    ),
    Worker("shelf-tabby", ("northway/Fernery-24B-v1.1",), 21.5, 1024, 16384, bridge=TABBY),
    Worker("kitchen-3060", ("koboldcpp/Tidepool-8B-v2",), 11.0, 256, 4096, trusted=False),
    Worker("snailmail", ("koboldcpp/Pebble-3B",), 2.6, 160, 2048, trusted=False, info="CPU only, be patient &lt;3"),
    Worker("snailmail-2", ("koboldcpp/Pebble-3B", "koboldcpp/Pebble-1B"), 5.1, 240, 4096, trusted=False),
    Worker("quartz", ("koboldcpp/Pebble-1B",), 58.0, 512, 4096, 2),
    Worker("old-lantern", ("Lantern-6B-classic",), 6.4, 80, 1024, bridge=OLD_BRIDGE, trusted=False),
    Worker("night-ferry", ("koboldcpp/Nocturne-70B",), 4.3, 512, 4096, owner="Ferry#27"),
    Worker("night-ferry-b", ("koboldcpp/Nocturne-70B",), 3.7, 512, 8192, owner="Ferry#27"),
    Worker("wheelwright", ("koboldcpp/Cartographer-13B",), 12.1, 512, 4096),
    Worker("wheelwright-2", ("koboldcpp/Cartographer-13B", "koboldcpp/Hollyhock-7B"), 10.4, 512, 8192),
    Worker("hollow", ("koboldcpp/Hollyhock-7B",), 23.0, 1024, 8192),
    Worker("attic-4090", ("koboldcpp/Ironwood-32B", "koboldcpp/Ironwood-14B"), 19.8, 1024, 16384),
    Worker("attic-3090", ("koboldcpp/Ironwood-14B",), 25.6, 768, 8192),
    Worker("mooring", ("koboldcpp/Möwe 12B::Zoë#4",), 24.2, 350, 6144, owner="Zoë#4"),
    Worker("driftwood", ("my merge (Q4_K_M).gguf",), 8.7, 200, 4096, bridge="unknown:0:unknown"),
    Worker("rookery", ("koboldcpp/Sparrow-0.6B",), 83.5, 512, 4096, 10),
    Worker("foundry-a", ("aphrodite/foundry/Anvil-70B",), 13.8, 2048, 16384, 4, bridge=APHRODITE, owner="Foundry#3"),
    Worker("foundry-b", ("aphrodite/foundry/Anvil-70B",), 12.9, 2048, 16384, 4, bridge=APHRODITE, owner="Foundry#3"),
    Worker("just-arrived", ("koboldcpp/Vesper-27B",), 1.0, 512, 8192, done=0),
    Worker("just-arrived-2", ("koboldcpp/Hollyhock-7B",), 1.0, 512, 4096, done=0, trusted=False),
    Worker("new-in-town", ("koboldcpp/Overture-9B",), 1.0, 1024, 8192, done=0),
    Worker("in-the-shop", ("koboldcpp/Gable-27B-it",), 12.9, 512, 8192, maintenance=True),
    Worker("spring-cleaning", ("koboldcpp/Mirador-22B",), 9.4, 512, 8192, maintenance=True),
    Worker("repainting", ("koboldcpp/Saltmarsh-12B",), 15.3, 512, 4096, maintenance=True),
    Worker("out-of-favour", ("koboldcpp/Tidepool-8B-v2",), 35.0, 512, 8192, flagged=True, trusted=False),
    Worker("ghost", (), 1.0, 80, 2048, done=0, trusted=False),
)

# Joined since the list of models was last built: served, and not yet in the list (its queue is not reported).
NOT_YET_LISTED = {"koboldcpp/Overture-9B"}

# Queued tokens of a model, aimed at; the requests below make them up.
BACKLOG = {
    "koboldcpp/Tidepool-8B-v2": 2600,
    "aphrodite/harbour/Tidepool-8B-v2": 900,
    "koboldcpp/Saltmarsh-12B": 6300,
    "koboldcpp/Fernery-24B-v1.1": 4700,
    "northway/Fernery-24B-v1.1": 0,
    "koboldcpp/Mirador-22B": 3300,
    "aphrodite/northway/Cairn-123B": 2000,
    "koboldcpp/Pebble-3B": 1450,
    "koboldcpp/Pebble-1B": 0,
    "Lantern-6B-classic": 560,
    "koboldcpp/Nocturne-70B": 4100,
    "koboldcpp/Cartographer-13B": 1100,
    "koboldcpp/Hollyhock-7B": 400,
    "koboldcpp/Ironwood-32B": 2900,
    "koboldcpp/Ironwood-14B": 0,
    "koboldcpp/Möwe 12B::Zoë#4": 150,
    "my merge (Q4_K_M).gguf": 0,
    "koboldcpp/Sparrow-0.6B": 0,
    "aphrodite/foundry/Anvil-70B": 5200,
    "koboldcpp/Vesper-27B": 512,
    "koboldcpp/Gable-27B-it": 160,
}
SIZES = (80, 100, 120, 150, 200, 240, 300, 400, 512, 512, 1024)


@dataclass
class Horde:
    """The made-up truth that the answers are counted from."""

    draw: random.Random = field(default_factory=lambda: random.Random(SEED))
    requests: list[Request] = field(default_factory=list)

    def fill(self) -> None:
        """Queue requests up to each model's backlog, and three that are special."""
        for model, backlog in BACKLOG.items():
            left = backlog
            while left > 0:
                size = min(left, self.draw.choice(SIZES))
                waiting = self.draw.choice((1, 1, 1, 1, 2, 3))
                taken = waiting > 1 and self.draw.random() < 0.3
                self.requests.append(Request((model,), size, self.context(size), waiting, int(taken)))
                left -= size
        self.requests.append(Request((), 100, 2048, 2))
        self.requests.append(Request(("koboldcpp/Hollyhock-7B", "koboldcpp/Cartographer-13B"), 180, 2048, 1))
        self.requests.append(Request(("koboldcpp/Pebble-1B",), 240, 2048, 0, 1))

    def context(self, size: int) -> int:
        """Draw a context that the request may ask with its size."""
        return max(size, self.draw.choice((2048, 2048, 2048, 4096, 8192)))

    def waiting(self, model: str) -> Iterator[Request]:
        """The requests that still wait and name the model."""
        return (request for request in self.requests if request.waiting and model in request.models)


def serving(model: str) -> list[Worker]:
    return [worker for worker in WORKERS if model in worker.models and not worker.maintenance]


def listed_models(horde: Horde) -> list[dict[str, Any]]:
    rows = []
    for model in sorted({model for worker in WORKERS for model in worker.models} - NOT_YET_LISTED):
        workers = serving(model)
        if not workers:
            continue
        threads = sum(worker.threads for worker in workers)
        measured = [worker.speed for worker in workers if worker.done != 0]
        speed = round(sum(measured) / len(measured), 1) if measured else 0.0
        queued = float(sum(request.max_length for request in horde.waiting(model)))
        jobs = float(sum(request.waiting + request.processing for request in horde.requests if model in request.models))
        capacity = threads * speed
        eta = 0 if not queued else int(queued / capacity) if capacity else 10000
        row = {"performance": speed, "queued": queued, "jobs": jobs, "eta": eta, "type": "text", "name": model, "count": threads}
        rows.append(row)
    horde.draw.shuffle(rows)
    return rows


def listed_workers(horde: Horde) -> list[dict[str, Any]]:
    rows = []
    for worker in WORKERS:
        done = int(horde.draw.lognormvariate(7.5, 1.4)) + 20 if worker.done is None else worker.done
        generated = round(done * horde.draw.uniform(8, 30), 1) if done else None
        row: dict[str, Any] = {
            "requests_fulfilled": done,
            "kudos_rewards": generated or 0.0,
            "kudos_details": {"generated": generated, "uptime": None},
            "performance": f"{worker.speed} tokens per second",
            "threads": worker.threads,
            "uptime": 600 * int(horde.draw.lognormvariate(6, 1.5)) if done else 0,
            "maintenance_mode": worker.maintenance,
            "nsfw": True,
            "trusted": worker.trusted,
            "flagged": worker.flagged,
            "uncompleted_jobs": int(done * horde.draw.betavariate(1, 60)),
            "models": list(worker.models),
            "team": {"name": None, "id": None},
            "bridge_agent": worker.bridge,
            "max_length": worker.max_length,
            "max_context_length": worker.max_context_length,
            "type": "text",
            "name": worker.name,
            "id": str(uuid.UUID(int=horde.draw.getrandbits(128), version=4)),
            "online": True,
        }
        row |= {name: value for name, value in (("owner", worker.owner), ("info", worker.info)) if value is not None}
        rows.append(row)
    horde.draw.shuffle(rows)
    return rows


def performance(horde: Horde) -> dict[str, Any]:
    waiting = [request for request in horde.requests if request.waiting]
    return {
        "queued_requests": 0,
        "queued_text_requests": sum(r.waiting * max(1, r.processing) + r.processing for r in waiting),
        "worker_count": 0,
        "text_worker_count": len(WORKERS),
        "thread_count": 0,
        "text_thread_count": sum(worker.threads for worker in WORKERS),
        "queued_megapixelsteps": 0.0,
        "past_minute_megapixelsteps": 0.0,
        "queued_forms": 0.0,
        "interrogator_count": 0,
        "interrogator_thread_count": 0,
        "queued_tokens": float(sum(r.max_length * max(1, r.processing) for r in waiting)),
        "past_minute_tokens": 19840.0,
    }


def demand(horde: Horde) -> tuple[dict[str, Any], dict[str, Any]]:
    """The day's, month's and all requests a model, and their totals; some models are asked for far more than others."""
    models = sorted(BACKLOG)
    horde.draw.shuffle(models)
    day = {model: int(14_000 / (rank + 1) ** 0.9 * horde.draw.uniform(0.8, 1.2)) for rank, model in enumerate(models)}
    month = {model: int(count * horde.draw.uniform(20, 31)) for model, count in day.items()}
    total = {model: int(count * horde.draw.uniform(2, 9)) for model, count in month.items()}
    requests = {
        "minute": sum(day.values()) // 1440,
        "hour": sum(day.values()) // 24,
        "day": sum(day.values()),
        "month": sum(month.values()),
        "total": sum(total.values()),
    }
    totals = {period: {"requests": count, "tokens": int(count * 131)} for period, count in requests.items()}
    return {"day": day, "month": month, "total": total}, totals


def envelope(path: str, query: dict[str, str], body: object) -> dict[str, Any]:
    return {
        "recorded_at": RECORDED_AT,
        "note": NOTE,
        "request": {"method": "GET", "path": f"/api{path}", "query": query, "apikey": None, "body": None},
        "response": {"status": 200, "headers": {"Content-Type": "application/json; charset=utf-8"}, "body": body},
    }


def truth(horde: Horde) -> dict[str, Any]:
    rows = [
        {
            "models": list(request.models),
            "max_length": request.max_length,
            "max_context_length": request.max_context_length,
            "things": request.max_length,
            "asked": request.waiting + request.processing,
            "waiting": request.waiting,
            "processing": request.processing,
            "finished": 0,
            "restarted": 0,
            "slow_workers": True,
            "faulted": False,
        }
        for request in horde.requests
    ]
    return {"note": NOTE, "taken_at": RECORDED_AT, "requests": rows}


def make(folder: Path) -> None:
    """Write the demo horde into the folder, which is made if needed."""
    horde = Horde()
    horde.fill()
    text = {"type": "text"}
    by_model, totals = demand(horde)
    files = {
        "about.json": {"title": "Demo horde", "synthetic": True, "note": NOTE},
        "workers_text.json": envelope("/v2/workers", text, listed_workers(horde)),
        "models_text.json": envelope("/v2/status/models", text, listed_models(horde)),
        "performance.json": envelope("/v2/status/performance", {}, performance(horde)),
        "modes.json": envelope("/v2/status/modes", {}, {"maintenance_mode": False, "invite_only_mode": False}),
        "heartbeat.json": envelope("/v2/status/heartbeat", {}, {"message": "OK", "version": "5.1.5"}),
        "stats_text_totals.json": envelope("/v2/stats/text/totals", {}, totals),
        "stats_text_models.json": envelope("/v2/stats/text/models", {}, by_model),
        "what_was_queued.json": truth(horde),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO)
