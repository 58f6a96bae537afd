"""Replay: what would these settings have done. One contract, one compiled engine, scores of its runs.

The engine and with it numba are loaded when one of their names is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from horde_policy.replay.classes import World, prepare
    from horde_policy.replay.engine import replay, run, warm_up

__all__ = ["World", "prepare", "replay", "run", "warm_up"]

_HOMES = {"World": "classes", "prepare": "classes", "replay": "engine", "run": "engine", "warm_up": "engine"}


def __getattr__(name: str) -> Any:
    """Return one of the engine's names from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
