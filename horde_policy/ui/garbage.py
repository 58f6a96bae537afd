"""What Streamlit's collection of garbage after each run need not look through: what the imported modules hold.

Streamlit collects garbage after every run of a script. With Polars, Plotly and this project imported that looks through a
quarter of a million objects which never go away, for 0.13 s in which no other viewer's run, and no message to a browser, moves.
"""

import gc
import sys
from dataclasses import dataclass, field
from threading import Lock

__all__ = ["KEPT", "Kept", "keep_modules"]


@dataclass(slots=True)
class Kept:
    """How many modules were imported when what they hold was last set aside; one for a process, whose collector is one, too."""

    modules: int = 0
    lock: Lock = field(default_factory=Lock)


KEPT = Kept()
"""This process's."""


def keep_modules(kept: Kept) -> bool:
    """Set aside what is in use, where modules were imported since this was last done; return whether it was done now.

    Garbage goes first, and what was set aside before is looked through again, so that nothing is kept for good but what is in
    use when a page is seen for the first time.
    """
    with kept.lock:
        if len(sys.modules) == kept.modules:
            return False
        kept.modules = len(sys.modules)
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    return True
