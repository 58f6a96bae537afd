"""Say that loops are being compiled, where that takes long enough to be asked about."""

import threading
from collections.abc import Callable

from horde_policy.budget.warm import warm_up_budget
from horde_policy.cli.parquet_output import print_notes
from horde_policy.replay.engine import warm_up
from horde_policy.sweep.warm import warm_up_sweep

__all__ = ["compiled", "warm_all"]

SAY_AFTER_S = 2.0
"""Loops that are compiled already are read from the disk in less."""

WORDS = "compiling the loops, once after an installation: half a minute, on a slow machine two"


def compiled(warm_up: Callable[[], None], *, say_after_s: float = SAY_AFTER_S) -> None:
    """Compile what ``warm_up`` compiles, or read it from the disk; say so on stderr if it takes longer than that."""
    telling = threading.Timer(say_after_s, print_notes, ([WORDS],))
    telling.daemon = True
    telling.start()
    try:
        warm_up()
    finally:
        telling.cancel()


def warm_all() -> None:
    """Compile all loops of this project, those that are looked at soonest first; what is compiled lies on the disk for others."""
    for one in (warm_up, warm_up_budget, warm_up_sweep):
        one()
