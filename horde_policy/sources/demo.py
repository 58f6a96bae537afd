"""The bundled demo horde: recorded files of a synthetic fleet, moved to the present so that they never turn stale."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from horde_policy.clock import Clock
from horde_policy.frames.snapshot import Snapshot, SourceKind
from horde_policy.sources.recorded import load_recorded

__all__ = ["BUNDLED_FOLDER", "DEMO_FOLDER", "DemoSource", "moved_to"]

BUNDLED_FOLDER = Path(__file__).parents[2] / "data"
"""What comes with the program (see its README)."""

DEMO_FOLDER = BUNDLED_FOLDER / "demo"


def moved_to(snapshot: Snapshot, at: datetime) -> Snapshot:
    """Return the snapshot as if it had been fetched at another instant; its parts keep their distances.

    >>> from datetime import UTC
    >>> from horde_policy.sources.recorded import load_recorded
    >>> at = datetime(2027, 1, 1, tzinfo=UTC)
    >>> moved = moved_to(load_recorded(DEMO_FOLDER), at)
    >>> moved.fetched_at == at and moved.synthetic
    True
    """
    distance = at - snapshot.fetched_at
    return replace(snapshot, fetched_at=at, part_times={name: time + distance for name, time in snapshot.part_times.items()})


class DemoSource:
    """The demo horde on a demo clock: each load has just been fetched.

    Parameters
    ----------
    clock
        Gives the present.
    folder
        A recorded folder; the bundled demo.
    """

    kind: SourceKind = "demo"
    refresh_s = 10.0

    def __init__(self, clock: Clock, folder: Path = DEMO_FOLDER) -> None:
        self._clock = clock
        self._folder = folder
        self.name = "Demo horde"

    def load(self) -> Snapshot:
        """Return the demo's snapshot as of now (:func:`moved_to`)."""
        return moved_to(load_recorded(self._folder, kind=self.kind), self._clock.now())
