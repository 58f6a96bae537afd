"""What a sweep has done so far, on the disk: a file a replay, written whole or not at all, found again by its key.

A sweep that is killed at any moment loses only what was under way. A key names inputs, engine, settings and scenario, so a
later sweep over the same inputs takes what it finds, and nothing that another version of the engine did.
"""

import contextlib
import os
import re
import zipfile
from pathlib import Path

import numpy as np

from horde_policy.errors import StoreError
from horde_policy.sweep.counting import Outcome

__all__ = ["Parts"]

_FIELDS = tuple(Outcome.__dataclass_fields__)
_KEY = re.compile(r"[0-9a-f]{32}")


class Parts:
    """A folder of finished replays.

    Parameters
    ----------
    folder
        Where they are; its parent is there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> None:
        """Make the folder, so that a place that cannot be written is told before any work.

        Raises
        ------
        StoreError
            It cannot be made.
        """
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise StoreError(str(self.folder), f"cannot be written: {error.strerror}") from error

    def keys(self) -> frozenset[str]:
        """Return the keys of what is kept."""
        try:
            return frozenset(path.stem for path in self.folder.glob("*.npz") if _KEY.fullmatch(path.stem))
        except OSError as error:
            raise StoreError(str(self.folder), f"cannot be read: {error.strerror}") from error

    def load(self, key: str) -> Outcome | None:
        """Return what is kept under a key; null if there is nothing, or nothing that can be read (it is done again then)."""
        try:
            with (self.folder / f"{key}.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return Outcome(**{name: arrays[name] for name in _FIELDS})
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def keep(self, key: str, outcome: Outcome) -> None:
        """Keep a replay: beside its place first, then in its place.

        Raises
        ------
        StoreError
            It cannot be written.
        """
        beside = self.folder / f".{key}.{os.getpid()}.part"
        try:
            with beside.open("wb") as file:
                np.savez(file, **{name: getattr(outcome, name) for name in _FIELDS})
            beside.replace(self.folder / f"{key}.npz")
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise StoreError(str(self.folder), f"cannot be written: {error.strerror}") from error

    def clear(self) -> None:
        """Remove the folder with all that is kept, and with what a killed sweep left half-written."""
        for path in self.folder.glob("*.npz") if self.folder.is_dir() else ():
            path.unlink(missing_ok=True)
        for path in self.folder.glob(".*.part") if self.folder.is_dir() else ():
            path.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()
