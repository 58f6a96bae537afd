"""A recorded folder whose names are hostile: markup, images, formulas, very long, right to left; made by the tests.

``python -m tests.hostile FOLDER`` writes one to look at.
"""

import json
import sys
from pathlib import Path
from typing import Any

HOSTILE_NAMES = (
    "<img src=http://192.0.2.1/html.png onerror=alert(1)>",
    "![x](http://192.0.2.1/markdown.png)",
    "[click](javascript:alert(1)) :red[alarm] :material/home: $x^2$",
    "=HYPERLINK(\"http://192.0.2.1/\",\"x\")",
    "koboldcpp/" + "long-name-" * 20,
    "evil\u202egnp.exe\u2066",
    "שלום-עולם-7B",
    "**bold** `code` <b>b</b> &lt;i&gt; \"quoted\" 'single'",
    "a/b?c#d&e=f%20g+h",
    "line\nbreak\ttab\x07bell",
)


def write_hostile_folder(folder: Path) -> Path:
    """Write workers, models, totals and modes with hostile names everywhere a name can stand; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    workers = [_worker(number, name) for number, name in enumerate(HOSTILE_NAMES)]
    models = [_model(number, name) for number, name in enumerate(HOSTILE_NAMES)]
    unreadable = {**_worker(99, "![y](http://192.0.2.1/problem.png)"), "max_length": "lots"}
    bodies: dict[str, Any] = {
        "workers_text": [*workers, unreadable],
        "models_text": models,
        "performance": {"queued_text_requests": 9, "queued_tokens": 9000.0, "past_minute_tokens": 12.0},
        "modes": {"maintenance_mode": True, "invite_only_mode": False},
        "stats_text_models": {"day": {name: number for number, name in enumerate(HOSTILE_NAMES)}},
    }
    for name, body in bodies.items():
        recorded = {"recorded_at": "2026-11-29T12:04:05Z", "response": {"status": 200, "body": body}}
        (folder / f"{name}.json").write_text(json.dumps(recorded), encoding="utf-8")
    return folder


def _worker(number: int, name: str) -> dict[str, Any]:
    return {
        "id": f"{number:08d}-0000-4000-8000-000000000000",
        "name": name,
        "models": [name, HOSTILE_NAMES[(number + 1) % len(HOSTILE_NAMES)]],
        "max_length": 512 + number,
        "max_context_length": 8192,
        "performance": f"{10 + number}.5 tokens per second",
        "requests_fulfilled": number,
        "threads": 1,
        "online": True,
        "maintenance_mode": number % 4 == 3,
        "flagged": False,
        "trusted": True,
        "bridge_agent": f"{name}:1:http://192.0.2.1/agent.png",
        "owner": name,
        "type": "text",
        "uncompleted_jobs": 0,
        "uptime": 100,
    }


def _model(number: int, name: str) -> dict[str, Any]:
    queued = 1500.0 * number
    return {"name": name, "count": 1, "performance": 10.0, "queued": queued, "jobs": 2.0, "eta": 10, "type": "text"}


if __name__ == "__main__":
    print(write_hostile_folder(Path(sys.argv[1])))
