"""Compiled: who could take what. Workers online sit on seats; lists of eligible seats are kept until the fleet changes.

A base is a distinct list of models, a class a base with the sizes and the slow-worker flag. Both cache a list of seats in
fleet-row order in one pool. A list is good while its stamp is not below the base's last change; when the pool is full it
starts over, and every list made before is void. Slots (see ``kernel_queue``) know by bit which seats could take them.
"""

import numba as nb

from horde_policy.replay.kernel_queue import lowest_bit, new_leaf
from horde_policy.replay.kernel_run import Run
from horde_policy.replay.kernel_types import (
    NEVER,
    Ints,
    Whole,
)

__all__ = [
    "bind_slot",
    "class_of",
    "fresh_base",
    "fresh_class",
    "idle_thread",
    "longest_idle",
    "mark_changed",
    "seat_arrives",
    "seat_leaves",
    "table_place",
    "take_thread",
    "unbind_slot",
]


@nb.njit(error_model="numpy", forceinline=True)
def level_of(levels: Ints, start: int, stop: int, value: int) -> Whole:
    """Return the place (from ``start``) of the smallest level not below the value; ``stop − start`` if there is none."""
    low = start
    left = stop - start
    # Without a branch to guess: the levels of one request say nothing of the next one's.
    while left > 1:
        half = left >> 1
        low += half * (levels[low + half - 1] < value)
        left -= half
    return low - start + (left == 1 and levels[low] < value)


@nb.njit(error_model="numpy", forceinline=True)
def level_value(levels: Ints, start: int, stop: int, level: int) -> Whole:
    """Return the level's value; NEVER for the one above all."""
    return levels[start + level] if start + level < stop else NEVER


@nb.njit(error_model="numpy", forceinline=True)
def table_place(table_key: Ints, key: int) -> Whole:
    """Return where the key stands, or would stand, in an open hash table whose size is a power of two."""
    mask = len(table_key) - 1
    place = ((key * -7046029254386353131) >> 20) & mask
    while table_key[place] != key and table_key[place] != -1:
        place = (place + 1) & mask
    return place


@nb.njit(error_model="numpy")
def class_of(s: Run, base: int, length: int, context_level: int, slow: int) -> Whole:
    """Return the class of a request, made if it is new; needs room for one more."""
    table = s.base_table[base]
    length_start, length_stop = s.base_length_start[table], s.base_length_start[table + 1]
    context_start, context_stop = s.base_context_start[table], s.base_context_start[table + 1]
    length_level = level_of(s.base_length, length_start, length_stop, length)
    key = (((base << 19 | length_level) << 19 | context_level) << 1) | slow
    place = table_place(s.class_table_key, key)
    if s.class_table_key[place] == key:
        return s.class_table_cls[place]
    new = s.classes
    s.classes += 1
    s.class_base[new] = base
    s.class_length[new] = level_value(s.base_length, length_start, length_stop, length_level)
    s.class_context[new] = level_value(s.base_context, context_start, context_stop, context_level)
    s.class_slow[new] = slow
    s.class_slot[new] = -1
    s.class_stamp[new] = -1
    s.class_table_key[place] = key
    s.class_table_cls[place] = new
    return new


@nb.njit(error_model="numpy")
def fresh_base(s: Run, base: int) -> None:
    """Bring the base's list of online seats up to date."""
    if s.base_stamp[base] >= max(s.base_changed[base], s.pool_stamp):
        return
    online = s.online
    if s.pool_used + 2 * online > len(s.seat_pool):
        s.stamp += 1
        s.pool_stamp = s.stamp
        s.pool_used = 0
    start = s.pool_used
    pos = start
    models = s.base_start[base + 1] - s.base_start[base]
    if base == s.base_any_base:
        for k in range(online):
            s.seat_pool[pos + k] = s.seat_online[k]
        pos += online
    elif models == 1:
        model = s.base_model[s.base_start[base]]
        # A negative one stands for models that no worker serves.
        first = s.base_seats_start[max(model, 0)]
        for k in range(first, first + (s.base_seats_count[model] if model >= 0 else 0)):
            s.seat_pool[pos] = s.base_seats[k]
            pos += 1
    else:
        stamp = s.stamp
        for m in range(s.base_start[base], s.base_start[base + 1]):
            first = s.base_seats_start[s.base_model[m]]
            for k in range(first, first + s.base_seats_count[s.base_model[m]]):
                s.seat_mark[s.base_seats[k]] = stamp * (len(s.base_stamp) + 1) + base
        for k in range(online):
            seat = s.seat_online[k]
            s.seat_pool[pos] = seat
            pos += s.seat_mark[seat] == stamp * (len(s.base_stamp) + 1) + base
    most = -1
    for k in range(start, pos):
        most = max(most, s.fleet_max_length[s.seat_row[s.seat_pool[k]]])
    s.base_most[base] = most
    s.base_pos[base] = start
    s.base_listed[base] = pos - start
    s.base_stamp[base] = s.stamp
    s.pool_used = pos


@nb.njit(error_model="numpy", forceinline=True)
def suits(s: Run, row: int, cls: int) -> bool:
    """Return whether a fleet row takes the sizes of the class, whatever its models."""
    return bool(
        s.fleet_max_length[row] >= s.class_length[cls]
        and s.fleet_context[row] >= s.class_context[cls]
        and (s.class_slow[cls] != 0 or s.fleet_slow[row] == 0)
    )


@nb.njit(error_model="numpy")
def refresh_class(s: Run, cls: int) -> None:
    """Make the class's list of eligible seats anew, with their combined speed, added in fleet-row order, and threads."""
    base = s.class_base[cls]
    fresh_base(s, base)
    if s.pool_used + s.online > len(s.seat_pool):
        s.stamp += 1
        s.pool_stamp = s.stamp
        s.pool_used = 0
        fresh_base(s, base)
    pos = s.pool_used
    s.class_pos[cls] = pos
    speed = 0.0
    threads = 0
    first = s.base_pos[base]
    for k in range(first, first + s.base_listed[base]):
        seat = s.seat_pool[k]
        row = s.seat_row[seat]
        if suits(s, row, cls):
            s.seat_pool[pos] = seat
            pos += 1
            speed += s.seat_counted_speed[seat]
            threads += s.fleet_threads[row]
    s.class_listed[cls] = pos - s.pool_used
    s.class_speed[cls] = speed
    s.class_threads[cls] = threads
    s.class_stamp[cls] = s.stamp
    s.pool_used = pos


@nb.njit(error_model="numpy", forceinline=True)
def fresh_class(s: Run, cls: int) -> None:
    """Bring the class's list of eligible seats up to date."""
    base = s.class_base[cls]
    if s.class_stamp[cls] < max(s.base_changed[base], s.pool_stamp):
        refresh_class(s, cls)


@nb.njit(error_model="numpy", forceinline=True)
def longest_idle(s: Run, cls: int) -> Whole:
    """Return the eligible seat whose idle thread has been idle longest, then by fleet row; −1 if none idles."""
    best = -1
    best_since = NEVER
    first = s.class_pos[cls]
    for k in range(first, first + s.class_listed[cls]):
        seat = s.seat_pool[k]
        if s.seat_idle_since[seat] < best_since:
            best_since = s.seat_idle_since[seat]
            best = seat
    return best


@nb.njit(error_model="numpy")
def idle_thread(s: Run, seat: int, now: int, threads: int) -> None:
    """Let threads of a seat become idle now; needs a run."""
    s.idle_threads += threads
    s.seat_idle[seat] += threads
    last = s.seat_run_last[seat]
    if s.seat_idle[seat] > threads and s.seat_run_time[last] == now:
        s.seat_run_count[last] += threads
        return
    s.runs_free -= 1
    run = s.seat_run_free[s.runs_free]
    s.seat_run_time[run] = now
    s.seat_run_count[run] = threads
    if s.seat_idle[seat] > threads:
        s.seat_run_next[last] = run
    else:
        s.seat_run_first[seat] = run
        s.seat_idle_since[seat] = now
    s.seat_run_last[seat] = run


@nb.njit(error_model="numpy")
def take_thread(s: Run, seat: int) -> None:
    """Take the longest idle thread of a seat that has one."""
    s.idle_threads -= 1
    s.seat_idle[seat] -= 1
    run = s.seat_run_first[seat]
    s.seat_run_count[run] -= 1
    if s.seat_run_count[run] > 0:
        return
    s.seat_run_free[s.runs_free] = run
    s.runs_free += 1
    if s.seat_idle[seat] == 0:
        s.seat_idle_since[seat] = NEVER
        return
    s.seat_run_first[seat] = s.seat_run_next[run]
    s.seat_idle_since[seat] = s.seat_run_time[s.seat_run_first[seat]]


@nb.njit(error_model="numpy")
def mark_changed(s: Run, row: int) -> None:
    """Void the lists of all bases that the fleet row serves."""
    s.stamp += 1
    stamp = s.stamp
    if s.base_any_base >= 0:
        s.base_changed[s.base_any_base] = stamp
    for m in range(s.fleet_model_start[row], s.fleet_model_start[row + 1]):
        model = s.fleet_model[m]
        for k in range(s.base_of_model_start[model], s.base_of_model_start[model + 1]):
            s.base_changed[s.base_of_model[k]] = stamp


@nb.njit(error_model="numpy")
def put_by_row(s: Run, seat: int, place: int, count: int, target: int) -> None:
    """Insert the seat into a list ordered by fleet row; target 0: seats online, 1: seats of a model."""
    row = s.seat_row[seat]
    items = s.seat_online if target == 0 else s.base_seats
    at = place + count
    while at > place and s.seat_row[items[at - 1]] > row:
        items[at] = items[at - 1]
        at -= 1
    items[at] = seat


@nb.njit(error_model="numpy")
def drop_from(s: Run, seat: int, place: int, count: int, target: int) -> None:
    """Take the seat out of such a list."""
    items = s.seat_online if target == 0 else s.base_seats
    at = place
    while items[at] != seat:
        at += 1
    for k in range(at, place + count - 1):
        items[k] = items[k + 1]


@nb.njit(error_model="numpy")
def seat_arrives(s: Run, row: int, now: int) -> Whole:
    """Give the fleet row a seat, idle on all threads, and mark the slots it could take; return the seat."""
    online = s.online
    seat = s.seat_free[len(s.seat_free) - 1 - online]
    s.seat_row[seat] = row
    s.seat_of_row[row] = seat
    put_by_row(s, seat, 0, online, 0)
    s.online += 1
    s.threads += s.fleet_threads[row]
    mark_changed(s, row)
    if s.base_any_base >= 0:
        s.seat_base_mark[s.base_any_base] = s.stamp
    for m in range(s.fleet_model_start[row], s.fleet_model_start[row + 1]):
        model = s.fleet_model[m]
        put_by_row(s, seat, s.base_seats_start[model], s.base_seats_count[model], 1)
        s.base_seats_count[model] += 1
        for k in range(s.base_of_model_start[model], s.base_of_model_start[model + 1]):
            s.seat_base_mark[s.base_of_model[k]] = s.stamp
    words = len(s.queue_used)
    for w in range(s.words):
        word = s.queue_used[w]
        takes = 0
        while word != 0:
            bit = lowest_bit(word)
            word &= word - 1
            cls = s.queue_cls[w * 64 + bit]
            if s.seat_base_mark[s.class_base[cls]] == s.stamp and suits(s, row, cls):
                takes |= 1 << bit
        s.seat_takes[seat * words + w] = takes
    s.seat_idle[seat] = 0
    idle_thread(s, seat, now, s.fleet_threads[row])
    return seat


@nb.njit(error_model="numpy")
def seat_leaves(s: Run, seat: int) -> None:
    """Free the seat of a worker that goes offline."""
    row = s.seat_row[seat]
    while s.seat_idle[seat] > 0:
        run = s.seat_run_first[seat]
        s.idle_threads -= s.seat_run_count[run]
        s.seat_idle[seat] -= s.seat_run_count[run]
        s.seat_run_first[seat] = s.seat_run_next[run]
        s.seat_run_free[s.runs_free] = run
        s.runs_free += 1
    s.seat_idle_since[seat] = NEVER
    drop_from(s, seat, 0, s.online, 0)
    s.online -= 1
    s.threads -= s.fleet_threads[row]
    for m in range(s.fleet_model_start[row], s.fleet_model_start[row + 1]):
        model = s.fleet_model[m]
        drop_from(s, seat, s.base_seats_start[model], s.base_seats_count[model], 1)
        s.base_seats_count[model] -= 1
    words = len(s.queue_used)
    for w in range(s.words):
        s.seat_takes[seat * words + w] = 0
    s.seat_of_row[row] = -1
    s.seat_free[len(s.seat_free) - 1 - s.online] = seat
    mark_changed(s, row)


@nb.njit(error_model="numpy")
def bind_slot(s: Run, cls: int) -> Whole:
    """Give a class with nothing waiting the lowest free slot and tell its eligible seats; needs a slot and a node."""
    word = 0
    while s.queue_used[word] == -1:
        word += 1
    bit = lowest_bit(~s.queue_used[word])
    slot = word * 64 + bit
    words = len(s.queue_used)
    if word >= s.words:
        s.words = word + 1
    s.queue_used[word] |= 1 << bit
    s.slots_free -= 1
    s.queue_cls[slot] = cls
    s.queue_stat[slot * 4 + 2] = 0
    s.queue_root[slot] = new_leaf(s)
    s.class_slot[cls] = slot
    fresh_class(s, cls)
    first = s.class_pos[cls]
    for k in range(first, first + s.class_listed[cls]):
        s.seat_takes[s.seat_pool[k] * words + word] |= 1 << bit
    return slot


@nb.njit(error_model="numpy")
def unbind_slot(s: Run, slot: int) -> None:
    """Free the slot of a class whose last waiting request has gone."""
    cls = s.queue_cls[slot]
    word = slot >> 6
    keep = ~(1 << (slot & 63))
    words = len(s.queue_used)
    fresh_class(s, cls)
    first = s.class_pos[cls]
    for k in range(first, first + s.class_listed[cls]):
        s.seat_takes[s.seat_pool[k] * words + word] &= keep
    s.queue_used[word] &= keep
    s.slots_free += 1
    while s.words > 0 and s.queue_used[s.words - 1] == 0:
        s.words -= 1
    s.queue_free[s.nodes_free] = s.queue_root[slot]
    s.nodes_free += 1
    s.class_slot[cls] = -1
