"""What names a point of a sweep: the inputs, the code that replays and counts them, the settings and the scenario."""

import hashlib
from functools import cache
from pathlib import Path

import horde_policy.replay
from horde_policy.sweep.grid import Point, Scenario

__all__ = ["engine_digest", "key_of"]


@cache
def engine_digest() -> str:
    """Return sixteen digits that change with the code whose results a sweep keeps: rules, fill rules, engine, counting."""
    here = Path(__file__).parent
    folders = (Path(horde_policy.replay.__file__).parent, here.parent / "frames", here.parent / "policy")
    sources = sorted(path for folder in folders for path in folder.glob("*.py"))
    sources += [here / name for name in ("counting.py", "results.py", "stage.py")]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def key_of(inputs_digest: str, point: Point, scenario: Scenario) -> str:
    """Return what names a point under a scenario of these inputs with this engine: equal keys, equal results."""
    parts = (inputs_digest, engine_digest(), point.settings.digest(64), repr((scenario.load, scenario.seed, scenario.fill)))
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:32]
