"""Compiled: handing out work. The running jobs are a heap by their end; what starts, waits and is offered."""

import numba as nb
import numpy as np

from horde_policy.replay.kernel_fleet import bind_slot, fresh_class, longest_idle, take_thread, unbind_slot
from horde_policy.replay.kernel_queue import goes_before, insert_waiting, lowest_bit, remove_waiting
from horde_policy.replay.kernel_run import Run
from horde_policy.replay.kernel_types import NEVER, RUNNING, RUNNING_TO_TIMEOUT, STAT_FIRST, STAT_FIRST_ID, WAITING, Whole

__all__ = ["best_for", "dequeue", "enqueue", "key_of", "lose_jobs", "offer", "push_job", "sift_down", "start"]


@nb.njit(error_model="numpy", forceinline=True)
def weight_of(s: Run, i: int) -> Whole:
    """Return what a waiting request weighs: its tokens, and one count above them where the rule counts."""
    shift = s.rule_count_shift
    return s.length[i] + ((1 << shift) if shift < 62 else 0)


@nb.njit(error_model="numpy", forceinline=True)
def key_of(s: Run, i: int) -> Whole:
    """Return the request's key as an int64 that grows as the key falls: the smaller stands further ahead."""
    aged = float(s.created[i] // s.rule_ageing_every_us)
    behind = s.rule_ageing_kudos * aged - s.priority[i] + 0.0
    bits = np.float64(behind).view(np.int64)
    return bits if bits >= 0 else bits ^ NEVER


@nb.njit(error_model="numpy", forceinline=True)
def ends_before(s: Run, end: int, i: int, other_end: int, other: int) -> bool:
    """Return whether a job ends before another; at one instant by traffic row."""
    if end != other_end:
        return end < other_end
    rows = s.traffic_row
    if i < len(rows) and other < len(rows):
        return bool(rows[i] < rows[other])
    return i < other


@nb.njit(error_model="numpy")
def sift_up(s: Run, at: int, end: int, i: int, seat: int) -> None:
    """Put a job at ``at`` or nearer to the top."""
    while at > 0:
        above = (at - 1) >> 1
        if not ends_before(s, end, i, s.job_end[above], s.job_id[above]):
            break
        s.job_end[at] = s.job_end[above]
        s.job_id[at] = s.job_id[above]
        s.job_seat[at] = s.job_seat[above]
        at = above
    s.job_end[at] = end
    s.job_id[at] = i
    s.job_seat[at] = seat


@nb.njit(error_model="numpy")
def sift_down(s: Run, at: int, end: int, i: int, seat: int) -> None:
    """Put a job at ``at`` or further from the top."""
    size = s.jobs
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        right = below + 1
        if right < size and ends_before(s, s.job_end[right], s.job_id[right], s.job_end[below], s.job_id[below]):
            below = right
        if not ends_before(s, s.job_end[below], s.job_id[below], end, i):
            break
        s.job_end[at] = s.job_end[below]
        s.job_id[at] = s.job_id[below]
        s.job_seat[at] = s.job_seat[below]
        at = below
    s.job_end[at] = end
    s.job_id[at] = i
    s.job_seat[at] = seat


@nb.njit(error_model="numpy", forceinline=True)
def job_ends_at(s: Run, i: int, row: int, now: int) -> Whole:
    """Return when a job started now would end, and note whether that is its time-out."""
    timeout_us = s.rule_timeout_us
    takes = np.ceil(float(min(s.output[i], np.int64(s.length[i]))) * 1e6 / s.fleet_speed[row])
    s.status[i] = RUNNING
    if timeout_us >= 0 and takes > float(timeout_us):
        s.status[i] = RUNNING_TO_TIMEOUT
        takes = float(timeout_us)
    return now + np.int64(takes) if takes < float(NEVER - now) else NEVER


@nb.njit(error_model="numpy", forceinline=True)
def start(s: Run, i: int, seat: int, now: int) -> Whole:
    """Note that request i starts on the seat now; return when the job ends."""
    row = s.seat_row[seat]
    s.taken_by[i] = row
    s.started[i] = now
    return job_ends_at(s, i, row, now)


@nb.njit(error_model="numpy", forceinline=True)
def push_job(s: Run, i: int, seat: int, end: int) -> None:
    """Add a job to the running ones."""
    at = s.jobs
    s.jobs += 1
    sift_up(s, at, end, i, seat)


@nb.njit(error_model="numpy")
def enqueue(s: Run, i: int) -> None:
    """Let request i wait."""
    cls = s.cls[i]
    slot = np.int64(s.class_slot[cls])
    if slot < 0:
        slot = bind_slot(s, cls)
    insert_waiting(s, slot, key_of(s, i), i, weight_of(s, i))
    s.status[i] = WAITING
    s.waiting += 1


@nb.njit(error_model="numpy")
def dequeue(s: Run, i: int) -> None:
    """Take request i out of the queue."""
    slot = s.class_slot[s.cls[i]]
    s.waiting -= 1
    key, weight = key_of(s, i), weight_of(s, i)
    if remove_waiting(s, slot, key, i, weight):
        unbind_slot(s, slot)


@nb.njit(error_model="numpy", forceinline=True)
def best_for(s: Run, seat: int) -> Whole:
    """Return the waiting request with the best key that the seat could take; −1 if there is none."""
    takes = s.seat_takes
    first_word = seat * len(s.queue_used)
    best = -1
    best_key = NEVER
    for w in range(s.words):
        word = takes[first_word + w]
        while word != 0:
            stat = (w * 64 + lowest_bit(word)) * 4
            word &= word - 1
            key = s.queue_stat[stat + STAT_FIRST]
            if key > best_key:
                continue
            i = s.queue_stat[stat + STAT_FIRST_ID]
            if best < 0 or goes_before(s, key, i, best_key, best):
                best, best_key = i, key
    return best


@nb.njit(error_model="numpy", forceinline=True)
def offer(s: Run, i: int, now: int) -> bool:
    """Start request i on the eligible worker that has been idle longest, if there is one."""
    if s.idle_threads == 0:
        return False
    cls = s.cls[i]
    fresh_class(s, cls)
    seat = longest_idle(s, cls)
    if seat < 0:
        return False
    take_thread(s, seat)
    push_job(s, i, seat, start(s, i, seat, now))
    return True


@nb.njit(error_model="numpy")
def lose_jobs(s: Run, seat: int) -> Whole:
    """Take the seat's jobs out of the running ones into ``lost``, in queue order; return how many."""
    kept = 0
    lost = 0
    for at in range(s.jobs):
        if s.job_seat[at] != seat:
            s.job_end[kept], s.job_id[kept], s.job_seat[kept] = s.job_end[at], s.job_id[at], s.job_seat[at]
            kept += 1
            continue
        i = s.job_id[at]
        key = key_of(s, i)
        place = lost
        while place > 0 and goes_before(s, key, i, key_of(s, s.job_lost[place - 1]), s.job_lost[place - 1]):
            s.job_lost[place] = s.job_lost[place - 1]
            place -= 1
        s.job_lost[place] = i
        lost += 1
    s.jobs = kept
    for at in range((kept >> 1) - 1, -1, -1):
        sift_down(s, at, s.job_end[at], s.job_id[at], s.job_seat[at])
    return lost
