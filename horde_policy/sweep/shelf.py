"""A folder of sweeps that a server keeps: finished replays for whoever goes on, and whole sweeps by their key.

The folder is this user's alone, since what lies in it is taken for replays that were done.
"""

import os
import re
import stat
from pathlib import Path

from horde_policy.errors import HordePolicyError, StoreError
from horde_policy.sweep.files import read_sweep, sweep_content
from horde_policy.sweep.parts import Parts
from horde_policy.sweep.run import Sweep

__all__ = ["Shelf"]

MOST_SWEEPS = 50
MOST_PARTS = 20_000
_KEY = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Shelf:
    """Sweeps in a folder.

    Parameters
    ----------
    folder
        Made when it is first written; its parent is there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> Parts:
        """Make the folder and return the finished replays in it.

        Raises
        ------
        StoreError
            It cannot be made, or others can write it.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.folder.lstat()
        except OSError as error:
            raise StoreError(str(self.folder), f"cannot be written: {error.strerror}") from error
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise StoreError(str(self.folder), "must be a folder of this user that nobody else can write")
        parts = Parts(self.folder / "parts")
        parts.prepare()
        return parts

    def keep(self, key: str, sweep: Sweep) -> None:
        """Keep a sweep under its key, in place of an earlier state of it; the oldest of too many are dropped.

        Raises
        ------
        StoreError
            It cannot be written.
        """
        self.prepare()
        place = self._place(key)
        beside = self.folder / f".{key}.{os.getpid()}.part"
        try:
            beside.write_bytes(sweep_content(sweep))
            beside.replace(place)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise StoreError(str(self.folder), f"cannot be written: {error.strerror}") from error
        _drop_oldest(self.folder, "*.parquet", MOST_SWEEPS)
        _drop_oldest(self.folder / "parts", "*.npz", MOST_PARTS)

    def load(self, key: str) -> Sweep | None:
        """Return the sweep of a key; null if none is kept, or none that can be read."""
        place = self._place(key)
        try:
            return read_sweep(place) if place.is_file() else None
        except HordePolicyError:
            return None

    def _place(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise StoreError(str(self.folder), f"holds no sweep {key!r}: a key is letters, digits and hyphens")
        return self.folder / f"{key}.parquet"


def _drop_oldest(folder: Path, pattern: str, most: int) -> None:
    files = list(folder.glob(pattern))
    if len(files) <= most:
        return
    ages = []
    for path in files:
        try:
            ages.append((path.stat().st_mtime_ns, path))
        except OSError:  # another server dropped it
            continue
    for _, path in sorted(ages)[: len(ages) - most]:
        path.unlink(missing_ok=True)
