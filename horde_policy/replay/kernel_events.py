"""Compiled: the events of a replay in their order, and what each does (``replay.md``)."""

import numba as nb
import numpy as np

from horde_policy.replay.kernel_arrival import arrive
from horde_policy.replay.kernel_fleet import idle_thread, mark_changed, seat_arrives, seat_leaves, take_thread
from horde_policy.replay.kernel_jobs import best_for, dequeue, enqueue, lose_jobs, offer, push_job, sift_down, start
from horde_policy.replay.kernel_run import Run
from horde_policy.replay.kernel_types import (
    COMPLETED,
    DONE,
    EXPIRED,
    LEAVE,
    NEED_CLASSES,
    NEED_HEAP,
    NEED_IDLE_RUNS,
    NEED_NODES,
    NEED_REQUESTS,
    NEED_SLOTS,
    NEVER,
    PAUSED,
    RUNNING,
    TIMED_OUT,
    WAITING,
    Whole,
)

__all__ = ["advance"]

NODES_AN_INSERT = 40
"""More than a tree can be deep: each level may split once, and a new slot takes a leaf."""


@nb.njit(error_model="numpy")
def end_first_job(s: Run) -> None:
    """End the first of the running jobs; its worker takes the best waiting request that it could take."""
    now, i, seat = s.job_end[0], s.job_id[0], s.job_seat[0]
    row = s.seat_row[seat]
    s.finished[i] = now
    if s.status[i] == RUNNING:
        s.status[i] = COMPLETED
        worker = s.fleet_worker[row]
        if s.seat_done[worker] == 0:
            s.seat_done[worker] = 1
            if s.fleet_measured[row] == 0:
                count_speed(s, seat)
                mark_changed(s, row)
    else:
        s.status[i] = TIMED_OUT
    next_up = -1
    # A worker with an idle thread besides could take nothing of what waits.
    if s.waiting > 0 and s.seat_idle[seat] == 0:
        next_up = best_for(s, seat)
    if next_up >= 0:
        dequeue(s, next_up)
        sift_down(s, 0, start(s, next_up, seat, now), next_up, seat)
        return
    s.jobs -= 1
    last = s.jobs
    sift_down(s, 0, s.job_end[last], s.job_id[last], s.job_seat[last])
    idle_thread(s, seat, now, 1)


@nb.njit(error_model="numpy")
def count_speed(s: Run, seat: int) -> None:
    """Note the speed at which the seat counts in an estimate (A7, A8)."""
    row = s.seat_row[seat]
    measured = s.fleet_measured[row] != 0 or s.seat_done[s.fleet_worker[row]] != 0
    speed = s.fleet_speed[row] if measured else s.rule_assumed_speed
    s.seat_counted_speed[seat] = speed * float(s.fleet_threads[row]) if s.rule_count_threads else speed


@nb.njit(error_model="numpy")
def come_online(s: Run, row: int, now: int) -> None:
    """Seat a worker, which takes requests until none fits."""
    seat = seat_arrives(s, row, now)
    count_speed(s, seat)
    while s.seat_idle[seat] > 0 and s.waiting > 0:
        i = best_for(s, seat)
        if i < 0:
            break
        dequeue(s, i)
        take_thread(s, seat)
        push_job(s, i, seat, start(s, i, seat, now))


@nb.njit(error_model="numpy")
def go_offline(s: Run, seat: int, now: int) -> None:
    """Let a worker leave; its jobs go back to the queue with their old keys and are offered."""
    lost = 0
    if s.seat_idle[seat] < s.fleet_threads[s.seat_row[seat]]:
        lost = lose_jobs(s, seat)
    seat_leaves(s, seat)
    for k in range(lost):
        i = s.job_lost[k]
        if s.created[i] + s.rule_ttl_us <= now:
            s.status[i] = EXPIRED
        elif not offer(s, i, now):
            enqueue(s, i)


@nb.njit(error_model="numpy")
def expire_waiting(s: Run, now: int) -> None:
    """Let what waits and has run out of time leave the queue."""
    sent = len(s.created) - len(s.attempt)
    latest = now - s.rule_ttl_us
    while s.expiry < s.arrived and s.created[s.expiry] <= latest:
        i = s.expiry
        s.expiry += 1
        if s.status[i] == WAITING:
            dequeue(s, i)
            s.status[i] = EXPIRED
    while s.expiry_repeat < s.repeats_arrived:
        i = sent + s.expiry_repeat
        if s.created[i] > latest:
            break
        s.expiry_repeat += 1
        if s.status[i] == WAITING:
            dequeue(s, i)
            s.status[i] = EXPIRED


@nb.njit(error_model="numpy", forceinline=True)
def room_for_any(s: Run) -> Whole:
    """Return what an arrival or a job's end might be short of; DONE if of nothing."""
    if s.nodes_free < NODES_AN_INSERT:
        return NEED_NODES
    if s.slots_free < 1:
        return NEED_SLOTS
    if s.classes + 4 > len(s.class_base) or 2 * s.classes + 8 > len(s.class_table_key):
        return NEED_CLASSES
    if s.rule_client != LEAVE and s.repeats >= len(s.attempt):
        return NEED_REQUESTS
    if s.runs_free < 1:
        return NEED_IDLE_RUNS
    if s.jobs >= len(s.job_end):
        return NEED_HEAP
    return DONE


@nb.njit(error_model="numpy")
def room_for_change(s: Run, row: int, online: bool) -> Whole:  # noqa: FBT001
    """Return what a fleet change might be short of; DONE if of nothing. What it needs goes to a register."""
    if online:
        s.need = s.jobs + min(s.fleet_threads[row], s.waiting)
        return NEED_HEAP if s.need > len(s.job_end) else DONE
    seat = s.seat_of_row[row]
    lost = s.fleet_threads[row] - s.seat_idle[seat]
    s.need = lost * NODES_AN_INSERT
    if s.nodes_free < s.need:
        return NEED_NODES
    s.need = lost
    return NEED_SLOTS if s.slots_free < lost else DONE


@nb.njit(error_model="numpy", forceinline=True)
def next_arrival(s: Run, sent: int) -> Whole:
    """Return the next request to arrive; the traffic's before repeated ones of the same instant; −1 for none."""
    i = s.arrived
    repeat = sent + s.repeats_arrived
    if s.repeats_arrived < s.repeats and (i >= sent or s.created[repeat] < s.created[i]):
        return repeat
    return i if i < sent else -1


@nb.njit(error_model="numpy")
def one_event(s: Run, sent: int) -> Whole:
    """Do the next event; return PAUSED after it, or why it was not done."""
    short = room_for_any(s)
    if short != DONE:
        s.need = 0
        return short
    i = next_arrival(s, sent)
    changes = len(s.fleet_change_at)
    arrival = s.created[i] if i >= 0 else NEVER
    change = s.fleet_change_at[s.next_change] if s.next_change < changes else NEVER
    end = s.job_end[0] if s.jobs > 0 else NEVER
    if i < 0 and s.jobs == 0 and (s.waiting == 0 or s.next_change >= changes):
        expire_waiting(s, NEVER)
        return DONE
    now = min(arrival, change, end)
    expire_waiting(s, now)
    if s.jobs > 0 and end == now:
        end_first_job(s)
    elif s.next_change < changes and change == now:
        row = s.fleet_change_row[s.next_change]
        online = s.fleet_change_online[s.next_change] != 0
        short = room_for_change(s, row, online)
        if short != DONE:
            return short
        s.next_change += 1
        if online:
            come_online(s, row, now)
        else:
            go_offline(s, np.int64(s.seat_of_row[row]), now)
    else:
        if i < sent:
            s.arrived += 1
        else:
            s.repeats_arrived += 1
        arrive(s, i, now)
    s.events += 1
    return PAUSED


@nb.njit(error_model="numpy")
def advance(s: Run, events: int) -> Whole:
    """Do up to so many events; return why it stopped."""
    sent = len(s.created) - len(s.attempt)
    stop = PAUSED
    done = 0
    while stop == PAUSED and done < events:
        stop = one_event(s, sent)
        done += 1
    return stop
