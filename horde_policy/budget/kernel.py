"""The event loops of a budget replay, compiled: arrivals and ends in order of time, whole numbers only.

Requests come sorted by arrival; ``by_end`` lists them by the instant their cost is written, which is always later than their
own arrival. An end at the instant of an arrival comes first. Each window of the budget has its own counters; a request
stays in the window that admitted it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

__all__ = ["CUT", "REFUSED_AT_LIMIT", "REFUSED_EARLY", "REFUSED_UNPRICED", "SETTLED", "replay_holds", "replay_stops"]

SETTLED = 0
CUT = 1
REFUSED_EARLY = 2
REFUSED_AT_LIMIT = 3
REFUSED_UNPRICED = 4

Array = np.ndarray[Any, np.dtype[Any]]
F = TypeVar("F", bound=Callable[..., Any])


def compiled(loop: F) -> F:
    """Return an event loop compiled by numba, which has no types of its own."""
    found: F = njit(cache=True, nogil=True)(loop)
    return found


@compiled
def replay_holds(
    arrive: Array,
    end: Array,
    by_end: Array,
    window: Array,
    windows: int,
    limit: int,
    priced: Array,
    free: Array,
    unbounded: Array,
    hold: Array,
    cost: Array,
    stated: Array,
    tight: Array,
) -> tuple[Array, Array, Array]:
    """Replay the rule of B4 with given holds; return outcomes, the state after each arrival, and the windows at the end.

    State columns: spent, held, open, unbounded open, stated, tight. Window columns: spent in the end, stated worst case at
    the last admission that the limit was checked for, most open.
    """
    count = arrive.size
    outcome = np.empty(count, np.int8)
    state = np.zeros((count, 6), np.int64)
    now = np.zeros((windows, 6), np.int64)
    final = np.zeros((windows, 3), np.int64)
    ended = 0
    for i in range(count + 1):
        last = i == count
        while ended < count and (last or end[by_end[ended]] <= arrive[i]):
            k = by_end[ended]
            ended += 1
            if outcome[k] == SETTLED:
                w = now[window[k]]
                w[0] += cost[k]
                w[1] -= hold[k]
                w[2] -= 1
                w[3] -= unbounded[k]
                w[4] -= stated[k]
                w[5] -= tight[k]
        if last:
            break
        w = now[window[i]]
        if priced[i] == 0:
            outcome[i] = REFUSED_UNPRICED
        elif free[i] == 0 and (limit == 0 or w[0] + w[1] + hold[i] > limit):
            outcome[i] = REFUSED_AT_LIMIT if limit == 0 or w[0] + hold[i] > limit else REFUSED_EARLY
        else:
            outcome[i] = SETTLED
            w[1] += hold[i]
            w[2] += 1
            w[3] += unbounded[i]
            w[4] += stated[i]
            w[5] += tight[i]
            if free[i] == 0:  # a free request passes without the check, so it says nothing about the limit
                final[window[i], 1] = w[4]
            final[window[i], 2] = max(final[window[i], 2], w[2])
        state[i] = w
    final[:, 0] = now[:, 0]
    return outcome, state, final


@compiled
def _running(k: int, at: int, arrive: Array, end: Array, input_cost: Array, cost: Array, tokens: Array) -> int:
    """Return what a stream has cost at an instant: its input at once, its output token by token at an even pace."""
    if at >= end[k]:
        return int(cost[k])
    came = tokens[k] * (at - arrive[k]) // (end[k] - arrive[k])
    output = cost[k] - input_cost[k]
    if came == 0 or tokens[k] == 0:
        return int(input_cost[k])
    # quotient and remainder apart: their product with the tokens stays within 63 bits
    return int(input_cost[k] + output // tokens[k] * came + output % tokens[k] * came // tokens[k])


@compiled
def _total(
    at: int, spent: int, members: Array, size: int, arrive: Array, end: Array, input_cost: Array, cost: Array, tokens: Array
) -> int:
    total = spent
    for j in range(size):
        total += _running(members[j], at, arrive, end, input_cost, cost, tokens)
    return total


@compiled
def _stopped(
    since: int,
    at: int,
    w: Array,
    members: Array,
    limit: int,
    free: Array,
    outcome: Array,
    paid: Array,
    place: Array,
    streams: tuple[Array, Array, Array, Array, Array],
) -> bool:
    """Stop every stream of a window if its count reaches the limit by an instant, at the first microsecond at which it does."""
    size = w[2]
    if _total(at, w[0], members, size, *streams) < limit:
        return False
    low, high = since, at
    while high - low > 1:
        middle = (low + high) // 2
        if _total(middle, w[0], members, size, *streams) >= limit:
            high = middle
        else:
            low = middle
    end = streams[1]
    for j in range(size):
        m = members[j]
        place[m] = -1
        paid[m] = _running(m, high, *streams)
        outcome[m] = SETTLED if high >= end[m] or free[m] else CUT
        w[0] += paid[m]
    w[2:] = 0
    return True


@compiled
def _leave(k: int, w: Array, members: Array, place: Array, unbounded: Array, input_stated: Array) -> None:
    """Take a request out of its window's open streams."""
    w[2] -= 1
    w[3] -= unbounded[k]
    w[4] -= input_stated[k]
    w[5] -= input_stated[k]
    moved = members[w[2]]
    members[place[k]] = moved
    place[moved] = place[k]
    place[k] = -1


@compiled
def _join(i: int, w: Array, members: Array, place: Array, unbounded: Array, input_stated: Array) -> None:
    """Put a request among its window's open streams."""
    members[w[2]] = i
    place[i] = w[2]
    w[2] += 1
    w[3] += unbounded[i]
    w[4] += input_stated[i]
    w[5] += input_stated[i]


@compiled
def _wider(members: Array) -> Array:
    """Return the windows' lists of open streams with twice the room."""
    found = np.zeros((members.shape[0], 2 * members.shape[1]), np.int64)
    found[:, : members.shape[1]] = members
    return found


@compiled
def replay_stops(
    arrive: Array,
    end: Array,
    by_end: Array,
    window: Array,
    windows: int,
    limit: int,
    priced: Array,
    free: Array,
    unbounded: Array,
    input_hold: Array,
    input_cost: Array,
    cost: Array,
    tokens: Array,
    input_stated: Array,
) -> tuple[Array, Array, Array, Array]:
    """Replay B13: a running count of all open streams; when it reaches the limit, every stream of the window stops.

    A request is admitted if what is spent, what runs and its own input fit under the limit. Returns what
    :func:`replay_holds` does, and what each request had cost when it ended or was cut. Held is what runs.
    """
    count, ended = arrive.size, 0
    streams = (arrive, end, input_cost, cost, tokens)
    outcome, paid, place = np.empty(count, np.int8), np.zeros(count, np.int64), np.full(count, -1, np.int64)
    state, now, final = np.zeros((count, 6), np.int64), np.zeros((windows, 6), np.int64), np.zeros((windows, 3), np.int64)
    most, since = np.zeros(windows, np.int64), np.zeros(windows, np.int64)  # most: what the open streams cost uncut
    members = np.zeros((windows, 16), np.int64)
    for i in range(count + 1):
        while True:
            finishing = ended < count and (i == count or end[by_end[ended]] <= arrive[i])
            if i == count and not finishing:
                break
            k = by_end[ended] if finishing else i
            v, at = window[k], end[k] if finishing else arrive[k]
            w = now[v]
            near = w[2] and w[0] + most[v] >= limit
            if near and _stopped(since[v], at, w, members[v], limit, free, outcome, paid, place, streams):
                most[v] = 0
            since[v] = at
            if not finishing:
                break
            ended += 1
            if place[k] >= 0:
                paid[k] = cost[k]
                w[0] += cost[k]
                most[v] -= cost[k]
                _leave(k, w, members[v], place, unbounded, input_stated)
        if i == count:
            break
        v, w = window[i], now[window[i]]
        total = _total(arrive[i], w[0], members[v], w[2], *streams)
        if priced[i] == 0:
            outcome[i] = REFUSED_UNPRICED
        elif free[i] == 0 and (limit == 0 or total + input_hold[i] > limit or total >= limit):
            outcome[i] = REFUSED_AT_LIMIT
        else:
            outcome[i] = SETTLED
            if w[2] == members.shape[1]:
                members = _wider(members)
            _join(i, w, members[v], place, unbounded, input_stated)
            most[v] += cost[i]
            final[v, 2] = max(final[v, 2], w[2])
            if free[i] == 0:
                final[v, 1] = w[4]
            total += input_cost[i]
        w[1] = total - w[0]
        state[i] = w
    final[:, 0] = now[:, 0]
    return outcome, state, final, paid
