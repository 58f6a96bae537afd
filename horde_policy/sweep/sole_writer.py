"""One sweep at a time writes a file: whoever ends first would take the finished replays of the other with its own.

A lock that the operating system frees the instant its holder dies, on a file beside the one to write. The lock decides; what
stands in that file only tells others who holds it.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from horde_policy.errors import InputError

__all__ = ["sole_writer"]

MOST_WORDS: Final = 200


@contextlib.contextmanager
def sole_writer(out: Path, who: str) -> Iterator[None]:
    """Hold the right to write a sweep's file and the replays beside it.

    Parameters
    ----------
    out
        The file; its folder is there.
    who
        What another sweep is told about this one, as ``process 12 on host``.

    Raises
    ------
    InputError
        Another sweep holds it: says which; or the folder cannot be written or locked.
    """
    place = out.with_name(f"{out.name}.lock")
    file = _locked(out, place)
    try:
        with contextlib.suppress(OSError):  # a full disk: the lock holds without words
            os.ftruncate(file, 0)
            os.pwrite(file, who.encode()[:MOST_WORDS], 0)
        yield
    finally:
        place.unlink(missing_ok=True)  # while it is held, so that nobody else's is removed
        os.close(file)


def _locked(out: Path, place: Path) -> int:
    while True:
        try:
            file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise InputError("--out", "", str(out), f"cannot be locked by {place.name}: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(file, MOST_WORDS, 0).decode(errors="replace")
            os.close(file)
            rule = f"is being written by another sweep{f', {holder}' if holder else ''}"
            raise InputError("--out", "", str(out), rule, hint="wait for its end, or name another file") from error
        except OSError as error:
            os.close(file)
            raise InputError("--out", "", str(out), f"cannot be locked by {place.name}: {error.strerror}") from error
        if _is_there(file, place):
            return file
        os.close(file)  # its holder ended between our two steps and removed it: nobody would see a lock on it


def _is_there(file: int, place: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), place.stat())
    except FileNotFoundError:
        return False
