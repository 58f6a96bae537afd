"""Replay: what would these settings have done. One contract, one compiled engine, scores of its runs."""

from horde_policy.replay.classes import World, prepare
from horde_policy.replay.engine import replay, run, warm_up

__all__ = ["World", "prepare", "replay", "run", "warm_up"]
