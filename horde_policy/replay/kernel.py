"""The kernels' entries: compiled once, kept on disk under a name that changes with any of the kernels' sources.

Numba's cache looks at the source of the cached function alone; what that calls may lie in other modules. The digest of
all kernel sources is a closure variable of each entry, and so a part of its cache key.
"""

import hashlib
from pathlib import Path
from typing import Any

import numba as nb

from horde_policy.replay import kernel_classes, kernel_events, kernel_run
from horde_policy.replay.kernel_types import Bases, Bools, Classes, Int32s, Ints, Kernel, State

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
opened = kernel_run.opened
saved = kernel_run.saved


def _digest() -> str:
    folder = Path(__file__).parent
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in SOURCES)).hexdigest()


def _entries(digest: str) -> tuple[Kernel, Kernel, Kernel, Kernel, Kernel]:
    # Each entry reads the digest, else it would be no closure variable; the compiler drops the test.
    @nb.njit(error_model="numpy", nogil=True, cache=True)
    def run_events(state: State, events: int) -> Any:
        s = opened(state)
        stop = advance(s, events if len(digest) else 0)
        saved(s, state.registers)
        return stop

    @nb.njit(error_model="numpy", nogil=True, cache=True)
    def assign_bases(lengths: Ints, codes: Int32s, models: int) -> Any:
        return assign(lengths, codes, models if len(digest) else 0)

    @nb.njit(error_model="numpy", nogil=True, cache=True)
    def rehash(table_key: Ints, table_cls: Int32s, size: int) -> Any:
        return rehashed(table_key, table_cls, size if len(digest) else 0)

    @nb.njit(error_model="numpy", nogil=True, cache=True)
    def classify(
        bases: Bases,
        classes: Classes,
        registers: Ints,
        base_of: Int32s,
        length: Ints,
        context: Ints,
        flags: Bools,
        cls: Int32s,
        start: int,
    ) -> Any:
        return classify_from(bases, classes, registers, base_of, length, context, flags, cls, start if len(digest) else 0)

    @nb.njit(error_model="numpy", nogil=True, cache=True)
    def tightest(
        bases: Bases,
        classes: Classes,
        count: int,
        row_start: Ints,
        row: Int32s,
        row_length: Ints,
        row_context: Ints,
        row_slow: Bools,
    ) -> Any:
        return tighten(bases, classes, count if len(digest) else 0, row_start, row, row_length, row_context, row_slow)

    return run_events, assign_bases, rehash, classify, tightest


run_events, assign_bases, rehash, classify, tightest = _entries(_digest())
