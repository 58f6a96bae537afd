"""Makes ``tests/data/hostile``: the recorded snapshot with every name from the network turned hostile.

``python -m tests.make_hostile [FOLDER]`` writes it. Figures are the recorded ones; names, infos, owners and texts are made up
to break what shows them: HTML, Markdown, formulas, directions of writing, length.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HOSTILE = ROOT / "tests" / "data" / "hostile"
NOTE = "made up: the recorded snapshot with hostile names, made by tests/make_hostile.py"

MODEL_NAMES = (
    '<b>bold</b><img src=x onerror="alert(1)">',
    "![x](http://elsewhere.invalid/p.png)",
    "=1+1",
    "a" * 200,
    "\u202ekcartoom\u202c/\u05de\u05d5\u05d3\u05dc \u0639\u0631\u0628\u064a",
    "[click](javascript:alert(1))",
    "</script><script>alert(1)</script>",
    "@SUM(A1:A9)|cmd",
    ":red[alarm] $\\frac{1}{0}$ `code` **bold** | cell | ~~gone~~",
    "\t-2+3\r\nsecond line",
    "koboldcpp/%3Cscript%3E?m=x&y=1#frag/../..",
)
WORKER_NAMES = (
    "<script>alert('worker')</script>",
    "![w](http://elsewhere.invalid/w.png)",
    '=HYPERLINK("http://elsewhere.invalid","win")',
    "w" * 200,
    "\u202e\u05e2\u05d5\u05d1\u05d3 \u0639\u0627\u0645\u0644",
    "javascript:alert(1)",
    "<a href='http://elsewhere.invalid'>link</a>",
    "+1-1",
    "{{7*7}} ${7*7} %s %(x)s {0}",
    "name\x00with\x1bcontrols\u2028and\u200bnothing",
    "&lt;escaped&gt; &amp; <i>not</i>",
    "\U0001f600" * 20 + "e\u0301" * 40,
    "'; DROP TABLE workers; --",
)
TEXT = '<img src="http://elsewhere.invalid/i.png"> ![i](http://elsewhere.invalid/i.png) =1+1'


def _renamed(names: dict[str, str], name: str, choices: tuple[str, ...]) -> str:
    return names.setdefault(name, choices[len(names) % len(choices)])


def hostile(folder: Path, recorded: Path) -> None:
    """Write the hostile folder, from a recorded one."""
    models: dict[str, str] = {}
    workers: dict[str, str] = {}
    listed: dict[str, Any] = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(recorded.glob("*.json"))}
    files = {
        "about.json": {"title": MODEL_NAMES[0], "synthetic": True, "note": NOTE},
        **{
            name: listed[name]
            for name in (
                "models_text.json",
                "workers_text.json",
                "performance.json",
                "modes.json",
                "heartbeat.json",
                "stats_text_totals.json",
                "stats_text_models.json",
            )
        },
    }
    for model in files["models_text.json"]["response"]["body"]:
        model["name"] = _renamed(models, model["name"], MODEL_NAMES)
    for worker in files["workers_text.json"]["response"]["body"]:
        worker["models"] = [_renamed(models, model, MODEL_NAMES) for model in worker["models"]]
        worker["name"] = _renamed(workers, worker["name"], WORKER_NAMES)
        worker |= {"info": TEXT, "owner": f"{TEXT}#7", "bridge_agent": f"{TEXT}:1:javascript:alert(1)"}
        worker["team"] = {"name": TEXT, "id": TEXT}
    periods = files["stats_text_models.json"]["response"]["body"]
    for period, counts in periods.items():
        periods[period] = {_renamed(models, model, MODEL_NAMES): count for model, count in counts.items()}
    files["heartbeat.json"]["response"]["body"] |= {"message": TEXT, "version": TEXT}
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        if "response" in value:
            value["note"] = NOTE
            value["response"]["headers"] = {"Content-Type": "application/json; charset=utf-8"}
        (folder / name).write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    hostile(Path(sys.argv[1]) if len(sys.argv) > 1 else HOSTILE, ROOT / "data" / "recorded" / "snapshot")
