"""Compiled: from lists of models to bases, and from requests to classes, before a replay starts."""

import numba as nb
import numpy as np

from horde_policy.replay.kernel_fleet import class_of, level_of, suits, table_place
from horde_policy.replay.kernel_run import Run
from horde_policy.replay.kernel_types import NEVER, SLOW_ALLOWED, Bools, Int32s, Ints, Whole

__all__ = ["assign_bases", "classify", "rehash", "tightest"]

ANY, NOBODY = -1, -2
"""Bases that are not a list of fleet models: the empty list, and a list of which no worker serves any.

As indices they count from the end, where ``assign_bases`` keeps room for them.
"""


@nb.njit(error_model="numpy")
def distinct_sorted(codes: Int32s, start: int, stop: int, target: Int32s) -> Whole:
    """Write the distinct codes of at least 0 in order to ``target``; return how many."""
    count = 0
    for k in range(start, stop):
        code = codes[k]
        if code < 0:
            continue
        place = count
        while place > 0 and target[place - 1] > code:
            place -= 1
        if place > 0 and target[place - 1] == code:
            continue
        for at in range(count, place, -1):
            target[at] = target[at - 1]
        target[place] = code
        count += 1
    return count


@nb.njit(error_model="numpy")
def same_list(first: Int32s, start: int, second: Int32s, count: int) -> bool:
    """Return whether ``count`` entries are equal."""
    for k in range(count):  # noqa: SIM110 (the compiler has no generators here)
        if first[start + k] != second[k]:
            return False
    return True


@nb.njit(error_model="numpy")
def assign_bases(lengths: Ints, codes: Int32s, models: int) -> tuple[Int32s, Ints, Int32s]:
    """Return each request's base, and the bases' models as starts and codes; ANY and NOBODY as one code in their list.

    ``lengths`` are of the requests' lists, whose model codes stand in ``codes`` one list after the other, −1 for a model
    that no worker serves. Bases are numbered as they first appear.
    """
    base_of = np.empty(len(lengths), np.int32)
    known = np.full(models + 2, -1, np.int32)
    starts = np.zeros(1025, np.int64)
    listed = np.empty(4096, np.int32)
    table = np.full(4096, -1, np.int32)
    scratch = np.empty(max(models, 1), np.int32)
    bases = 0
    at = 0
    for i in range(len(lengths)):
        stop = at + lengths[i]
        count = distinct_sorted(codes, at, stop, scratch)
        if count == 0:
            scratch[0] = ANY if lengths[i] == 0 else NOBODY
            count = 1
        at = stop
        if count == 1 and known[scratch[0]] >= 0:
            base_of[i] = known[scratch[0]]
            continue
        place = 0
        if count > 1:
            place = scratch[0] * 31
            for k in range(1, count):
                place = (place ^ scratch[k]) * 16777619 + k
            place = (place ^ (place >> 29)) & (len(table) - 1)
            while table[place] >= 0:
                other = table[place]
                if starts[other + 1] - starts[other] == count and same_list(listed, starts[other], scratch, count):
                    break
                place = (place + 1) & (len(table) - 1)
            if table[place] >= 0:
                base_of[i] = table[place]
                continue
        if bases + 2 > len(starts):
            starts = np.concatenate((starts, np.zeros(len(starts), np.int64)))
        if starts[bases] + count > len(listed):
            listed = np.concatenate((listed, np.empty(len(listed) + count, np.int32)))
        listed[starts[bases] : starts[bases] + count] = scratch[:count]
        starts[bases + 1] = starts[bases] + count
        base_of[i] = bases
        if count == 1:
            known[scratch[0]] = bases
        else:
            table[place] = bases
        bases += 1
        if 2 * bases > len(table):
            table = rehashed(starts, listed, bases, 4 * len(table))
    return base_of, starts[: bases + 1], listed[: starts[bases]]


@nb.njit(error_model="numpy")
def rehashed(starts: Ints, listed: Int32s, bases: int, size: int) -> Int32s:
    """Return a larger hash table of the bases of more than one model."""
    table = np.full(size, -1, np.int32)
    for base in range(bases):
        count = starts[base + 1] - starts[base]
        if count < 2:
            continue
        place = listed[starts[base]] * 31
        for k in range(1, count):
            place = (place ^ listed[starts[base] + k]) * 16777619 + k
        place = (place ^ (place >> 29)) & (size - 1)
        while table[place] >= 0:
            place = (place + 1) & (size - 1)
        table[place] = base
    return table


@nb.njit(error_model="numpy")
def rehash(table_key: Ints, table_cls: Int32s, size: int) -> tuple[Ints, Int32s]:
    """Return the hash table of the classes with another size, a power of two."""
    new_key = np.full(size, -1, np.int64)
    new_cls = np.zeros(size, np.int32)
    for k in range(len(table_key)):
        if table_key[k] >= 0:
            place = table_place(new_key, table_key[k])
            new_key[place] = table_key[k]
            new_cls[place] = table_cls[k]
    return new_key, new_cls


@nb.njit(error_model="numpy")
def classify(s: Run, base_of: Int32s, context: Ints, start: int) -> Whole:
    """Give the requests from ``start`` on their classes; return where room ran out, or their number."""
    at = start
    while at < len(base_of) and s.classes + 1 <= len(s.class_base) and 2 * s.classes + 2 <= len(s.class_table_key):
        slow = 1 if s.flags[at] & SLOW_ALLOWED else 0
        table = s.base_table[base_of[at]]
        s.context_level[at] = level_of(s.base_context, s.base_context_start[table], s.base_context_start[table + 1], context[at])
        s.cls[at] = class_of(s, base_of[at], s.asked[at], s.context_level[at], slow)
        at += 1
    return at


@nb.njit(error_model="numpy")
def tightest(s: Run, row_start: Ints, row: Int32s, least_length: Ints, least_context: Ints, any_slow: Bools) -> None:
    """Give for each class the least sizes of the fleet rows that suit it, and whether one of them is slow.

    Classes of one base for which these agree suit the same rows: {row of at least the least sizes} is the set itself.
    ``row_start`` and ``row`` list the rows of each model, after the last one all rows.
    """
    every = len(row_start) - 2
    for c in range(s.classes):
        least_length[c] = NEVER
        least_context[c] = NEVER
        any_slow[c] = 0
        base = s.class_base[c]
        for m in range(s.base_start[base], s.base_start[base + 1]):
            model = s.base_model[m]
            if model == NOBODY:
                continue
            model = every if model == ANY else model
            for k in range(row_start[model], row_start[model + 1]):
                r = row[k]
                if not suits(s, r, c):
                    continue
                least_length[c] = min(least_length[c], s.fleet_max_length[r])
                least_context[c] = min(least_context[c], s.fleet_context[r])
                any_slow[c] |= s.fleet_slow[r]
