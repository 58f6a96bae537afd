"""The kernels' entries: compiled once, kept on disk under a name that changes with any of the kernels' sources.

Numba's cache looks at the source of the cached function alone; what that calls may lie in other modules. The digest of
all kernel sources is a closure variable of each entry, and so a part of its cache key.
"""

import hashlib
from pathlib import Path
from typing import Any

import numba as nb

from horde_policy.replay import kernel_classes, kernel_events, kernel_run
from horde_policy.replay.kernel_types import Bools, Int32s, Ints, Kernel

__all__ = ["assign_bases", "classify", "rehash", "run_events", "tightest"]

SOURCES = (
    "kernel.py",
    "kernel_arrival.py",
    "kernel_classes.py",
    "kernel_events.py",
    "kernel_fleet.py",
    "kernel_jobs.py",
    "kernel_queue.py",
    "kernel_run.py",
    "kernel_types.py",
)

assign = kernel_classes.assign_bases
classify_from = kernel_classes.classify
rehashed = kernel_classes.rehash
tighten = kernel_classes.tightest
advance = kernel_events.advance
run_of = kernel_run.run_of


def _digest() -> str:
    folder = Path(__file__).parent
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in SOURCES)).hexdigest()


def _entries(digest: str) -> tuple[Kernel, Kernel, Kernel, Kernel, Kernel]:
    # Each entry reads the digest, else it would be no closure variable; the compiler drops the test.
    @nb.njit(error_model="numpy", nogil=True, cache=True)
    def run_events(table: Ints, events: int) -> Any:
        return advance(run_of(table), events if len(digest) else 0)

    @nb.njit(error_model="numpy", nogil=True, cache=True)
    def assign_bases(lengths: Ints, codes: Int32s, models: int) -> Any:
        return assign(lengths, codes, models if len(digest) else 0)

    @nb.njit(error_model="numpy", nogil=True, cache=True)
    def rehash(table_key: Ints, table_cls: Int32s, size: int) -> Any:
        return rehashed(table_key, table_cls, size if len(digest) else 0)

    @nb.njit(error_model="numpy", nogil=True, cache=True)
    def classify(table: Ints, base_of: Int32s, context: Ints, start: int) -> Any:
        return classify_from(run_of(table), base_of, context, start if len(digest) else 0)

    @nb.njit(error_model="numpy", nogil=True, cache=True)
    def tightest(table: Ints, row_start: Ints, row: Int32s, length: Ints, context: Ints, slow: Bools) -> Any:
        return tighten(run_of(table), row_start, row, length, context, slow if len(digest) else slow[:0])

    return run_events, assign_bases, rehash, classify, tightest


run_events, assign_bases, rehash, classify, tightest = _entries(_digest())
