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
    the last admission, most open.
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
            final[window[i], 1] = w[4]
            final[window[i], 2] = max(final[window[i], 2], w[2])
        state[i] = w
    for j in range(windows):
        final[j, 0] = now[j, 0]
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
    count = arrive.size
    outcome = np.empty(count, np.int8)
    paid = np.zeros(count, np.int64)
    state = np.zeros((count, 6), np.int64)
    now = np.zeros((windows, 6), np.int64)
    final = np.zeros((windows, 3), np.int64)
    most = np.zeros(windows, np.int64)  # what a window's open streams cost if none is cut
    since = np.zeros(windows, np.int64)
    place = np.full(count, -1, np.int64)
    members = np.zeros((windows, 16), np.int64)
    ended = 0
    for i in range(count + 1):
        last = i == count
        while True:
            finishing = ended < count and (last or end[by_end[ended]] <= arrive[i])
            if not finishing and last:
                break
            k = by_end[ended] if finishing else i
            v = window[k]
            w = now[v]
            at = end[k] if finishing else arrive[k]
            size = w[2]
            if size and w[0] + most[v] >= limit:
                reached = _total(at, w[0], members[v], size, arrive, end, input_cost, cost, tokens) >= limit
                if reached:  # the first microsecond at which the count is at the limit
                    low, high = since[v], at
                    while high - low > 1:
                        middle = (low + high) // 2
                        if _total(middle, w[0], members[v], size, arrive, end, input_cost, cost, tokens) >= limit:
                            high = middle
                        else:
                            low = middle
                    for j in range(size):
                        m = members[v, j]
                        place[m] = -1
                        paid[m] = _running(m, high, arrive, end, input_cost, cost, tokens)
                        outcome[m] = SETTLED if high >= end[m] or free[m] else CUT
                        w[0] += paid[m]
                    w[2] = 0
                    w[3] = 0
                    w[4] = 0
                    w[5] = 0
                    most[v] = 0
            since[v] = at
            if not finishing:
                break
            ended += 1
            if place[k] >= 0:
                paid[k] = cost[k]
                w[0] += cost[k]
                w[2] -= 1
                w[3] -= unbounded[k]
                w[4] -= input_stated[k]
                w[5] -= input_stated[k]
                most[v] -= cost[k]
                moved = members[v, w[2]]
                members[v, place[k]] = moved
                place[moved] = place[k]
                place[k] = -1
        if last:
            break
        v = window[i]
        w = now[v]
        total = _total(arrive[i], w[0], members[v], w[2], arrive, end, input_cost, cost, tokens)
        if priced[i] == 0:
            outcome[i] = REFUSED_UNPRICED
        elif free[i] == 0 and (limit == 0 or total + input_hold[i] > limit or total >= limit):
            outcome[i] = REFUSED_AT_LIMIT
        else:
            outcome[i] = SETTLED
            if w[2] == members.shape[1]:
                wider = np.zeros((windows, 2 * members.shape[1]), np.int64)
                wider[:, : members.shape[1]] = members
                members = wider
            members[v, w[2]] = i
            place[i] = w[2]
            w[2] += 1
            w[3] += unbounded[i]
            w[4] += input_stated[i]
            w[5] += input_stated[i]
            most[v] += cost[i]
            final[v, 1] = w[4]
            final[v, 2] = max(final[v, 2], w[2])
            total += input_cost[i]
        w[1] = total - w[0]
        state[i] = w
    for j in range(windows):
        final[j, 0] = now[j, 0]
    return outcome, state, final, paid
