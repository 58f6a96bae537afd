"""Compiled: what happens to an arrival: estimate, allowance, outcome, and whether a refused client sends again."""

import math

import numba as nb
import numpy as np

from horde_policy.replay.kernel_fleet import class_of, fresh_base, fresh_class
from horde_policy.replay.kernel_jobs import enqueue, key_of, offer
from horde_policy.replay.kernel_queue import ahead_in_slot, lowest_bit
from horde_policy.replay.kernel_run import Run
from horde_policy.replay.kernel_types import (
    CAN_PAY,
    CHAT,
    DOWNGRADED,
    FREE,
    FUNDED,
    LEAVE,
    MAY_DOWNGRADE,
    NEVER,
    NO_ALLOWANCE,
    REFUSED,
    REFUSED_KUDOS,
    REFUSED_NO_WORKER,
    RESEND,
    RULE_EVERYONE_FREE,
    RULE_JOBS,
    RULE_NO_ONE_FREE,
    RULE_OLD,
    SLOW_ALLOWED,
    STAT_FIRST,
    STAT_LAST,
    STAT_WEIGHT,
    Whole,
)

__all__ = ["arrive"]


@nb.njit(error_model="numpy")
def weight_ahead(s: Run, cls: int, key: int) -> Whole:
    """Return the weight of what waits with a key of at most ``key`` and could be taken by a worker that suits the class."""
    overlap = s.queue_overlap
    words = s.words
    for w in range(words):
        overlap[w] = 0
    first = s.class_pos[cls]
    for k in range(first, first + s.class_listed[cls]):
        row = s.seat_pool[k] * len(s.queue_used)
        for w in range(words):
            overlap[w] |= s.seat_takes[row + w]
    weight = 0
    for w in range(words):
        word = overlap[w]
        while word != 0:
            slot = w * 64 + lowest_bit(word)
            word &= word - 1
            stat = slot * 4
            if s.queue_stat[stat + STAT_LAST] <= key:
                weight += s.queue_stat[stat + STAT_WEIGHT]
            elif s.queue_stat[stat + STAT_FIRST] <= key:
                weight += ahead_in_slot(s, slot, key)
    return weight


@nb.njit(error_model="numpy", forceinline=True)
def on_curve(s: Run, value: float, full: float, least: float) -> Whole:
    """Return the allowance between ceiling and floor (A2–A4); never under the floor by a rounding error."""
    if value >= least:
        return np.int64(s.rule_floor)
    if value <= full:
        return np.int64(s.rule_ceiling)
    fallen = np.floor(s.rule_ceiling - (s.rule_ceiling - s.rule_floor) * (value - full) / (least - full))
    return np.int64(max(s.rule_floor, fallen))


@nb.njit(error_model="numpy")
def allowance_of(s: Run, i: int, cls: int, wait_s: float, ahead: int) -> Whole:
    """Return the allowance by the rule in force; ``ahead`` is the number of requests ahead, for the jobs rule (A30)."""
    if s.rule_rule == RULE_EVERYONE_FREE:
        return NO_ALLOWANCE
    if s.rule_rule == RULE_NO_ONE_FREE:
        return 0
    if s.rule_rule == RULE_OLD:
        tokens = 512 + 5 * s.threads - np.int64(np.rint(0.9 * float(s.waiting)))
        return min(max(tokens, 256), 512) if s.flags[i] & SLOW_ALLOWED else tokens
    if s.class_listed[cls] == 0:
        return np.int64(s.rule_floor)
    if s.rule_rule == RULE_JOBS:
        return on_curve(s, float(ahead) / float(s.class_threads[cls]), 0.0, s.rule_jobs_floor)
    return on_curve(s, wait_s, s.rule_wait_full_s, s.rule_wait_floor_s)


@nb.njit(error_model="numpy", forceinline=True)
def outcome_of(s: Run, i: int, cls: int, allowance: int) -> Whole:
    """Return what becomes of an arrival, the first that holds (A13–A20)."""
    rule, flags, length = s.rule_rule, s.flags[i], s.length[i]
    if rule == RULE_EVERYONE_FREE or (flags & SLOW_ALLOWED and length <= allowance):
        return FREE
    if flags & CAN_PAY:
        return FUNDED
    if flags & MAY_DOWNGRADE and not flags & CHAT and rule != RULE_NO_ONE_FREE:
        return DOWNGRADED
    if s.class_listed[cls] == 0 and length > allowance:
        return REFUSED_NO_WORKER
    return REFUSED_KUDOS


@nb.njit(error_model="numpy")
def class_again(s: Run, i: int, length: int, slow: int) -> None:
    """Give request i another size and slow-worker flag, and so another class."""
    base = s.class_base[s.cls[i]]
    s.length[i] = length
    s.cls[i] = class_of(s, base, length, s.context_level[i], slow)


@nb.njit(error_model="numpy")
def lower_chat(s: Run, i: int) -> None:
    """Lower a chat request to the largest size that an online worker of its models declares (A18)."""
    cls = s.cls[i]
    base = s.class_base[cls]
    fresh_base(s, base)
    most = s.base_most[base]
    if s.base_listed[base] > 0 and most < s.length[i]:
        class_again(s, i, most, 1 if s.flags[i] & SLOW_ALLOWED else 0)


@nb.njit(error_model="numpy")
def ask_again(s: Run, i: int, now: int) -> None:
    """Let the client of a refused request send again, if it does: a row of its own behind all others."""
    sent = len(s.created) - len(s.attempt)
    first = i if i < sent else np.int64(s.origin[i - sent])
    attempt = 1 if i < sent else np.int64(s.attempt[i - sent])
    length = s.asked[first]
    when = now
    if s.rule_client == RESEND:
        allowance = s.allowance[i]
        larger = s.length[i] > allowance
        if attempt > 1 or s.outcome[i] != REFUSED_KUDOS or not larger or allowance < 1:
            return
        length = allowance
    else:
        if attempt > s.rule_return_times:
            return
        when = now + s.rule_return_after_us if now < NEVER - s.rule_return_after_us else NEVER
    new = sent + s.repeats
    s.origin[s.repeats] = first
    s.attempt[s.repeats] = attempt + 1
    s.repeats += 1
    s.created[new] = when
    s.priority[new] = s.priority[first]
    s.context_level[new] = s.context_level[first]
    s.output[new] = s.output[first]
    s.flags[new] = s.flags[first]
    s.cls[new] = s.cls[i]
    class_again(s, new, length, 1 if s.flags[first] & SLOW_ALLOWED else 0)


@nb.njit(error_model="numpy")
def arrive(s: Run, i: int, now: int) -> None:
    """Measure, decide, and queue or start an arrival."""
    if s.flags[i] & CHAT:
        lower_chat(s, i)
    cls = s.cls[i]
    fresh_class(s, cls)
    ahead = 0
    wait_s = math.nan
    if s.class_listed[cls] > 0:
        tokens = 0
        if s.waiting > 0:
            tokens = weight_ahead(s, cls, NEVER if s.rule_ahead_all else key_of(s, i))
            if s.rule_count_shift < 62:
                ahead = tokens >> s.rule_count_shift
                tokens &= (1 << s.rule_count_shift) - 1
        wait_s = float(tokens) / s.class_speed[cls]
    s.wait_s[i] = wait_s
    allowance = allowance_of(s, i, cls, wait_s, ahead)
    s.allowance[i] = allowance
    outcome = outcome_of(s, i, cls, allowance)
    s.outcome[i] = outcome
    if outcome >= REFUSED_KUDOS:
        s.status[i] = REFUSED
        if s.rule_client != LEAVE:
            ask_again(s, i, now)
        return
    if outcome == DOWNGRADED:
        length = min(np.int64(s.length[i]), allowance)
        class_again(s, i, max(1, length) if s.rule_rule == RULE_OLD else length, 1)
    if not offer(s, i, now):
        enqueue(s, i)
