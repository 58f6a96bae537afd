"""What a finished replay comes to, a row a day: counts, tokens, waits in fine bins, refusals by model. Whole numbers only.

A sweep keeps these and not its runs: everything that is judged later, over any days and seeds together, follows from their
sums. A request counts on the day of its first sending, with what its last sending came to. The queue carries over from day
to day, since the whole traffic is replayed at once.
"""

from dataclasses import dataclass
from typing import Any, Final

import numba as nb
import numpy as np

from horde_policy.frames.decisions import REQUESTERS, SIZES
from horde_policy.replay.kernel_types import (
    CAN_PAY,
    COMPLETED,
    DOWNGRADED,
    EXPIRED,
    FREE,
    FUNDED,
    R_REPEATS,
    TIMED_OUT,
    State,
)
from horde_policy.sweep.stage import Stage
from horde_policy.units import MICROSECONDS_PER_S

__all__ = ["BINS", "BIN_UPPER_S", "COUNTERS", "EXPIRED_BIN", "WAITERS", "Outcome", "bin_of_units", "outcome_of"]

COUNTERS: Final = (
    "requests",
    "unfunded",
    "unfunded_refused",
    "free",
    "funded",
    "downgraded",
    "refused",
    "completed",
    "timed_out",
    "expired",
    "free_tokens",
    "funded_tokens",
    "sendings",
    "refusals",
)
"""The counters of a day, in their order.

``requests`` to ``expired`` count requests once each, by what their last sending came to; ``unfunded`` could not pay a hold.
``free_tokens`` are those of completed requests that were free or downgraded, ``funded_tokens`` of those that were funded.
``sendings`` counts every sending, repeated ones too, and ``refusals`` those of them that were refused.
"""

(
    N_REQUESTS, N_UNFUNDED, N_UNFUNDED_REFUSED, N_FREE, N_FUNDED, N_DOWNGRADED, N_REFUSED, N_COMPLETED, N_TIMED_OUT, N_EXPIRED,
    N_FREE_TOKENS, N_FUNDED_TOKENS, N_SENDINGS, N_REFUSALS,
) = range(len(COUNTERS))  # fmt: skip

WAITERS: Final = ("anonymous", "registered", "shared_key", "funded")
"""Whose waits are told apart: by requester, and once more those whose kudos were held (A28)."""

FUNDED_WAITER = 3

CODES = (CAN_PAY, DOWNGRADED, FUNDED, COMPLETED, TIMED_OUT, EXPIRED)
"""The engine's codes that the kernels are told: compiled in, they would outlive a change of the engine in numba's cache."""

assert (FREE, FUNDED, DOWNGRADED) == (0, 1, 2), "outcomes are counted in this order"

UNIT_US = 100_000
"""Waits are counted in units of 0.1 s, rounded up."""

SUB = 64
DOUBLINGS = 18
BINS: Final = SUB * (DOUBLINGS + 1)
"""Bins are one unit wide up to 128 units, then 1/64 of an octave: a wait is known to 1.6 %, and never understated.

The last holds the requests that expired: they waited their time to live, which no wait exceeds.
"""

EXPIRED_BIN: Final = BINS - 1


def _upper_edges_s() -> np.ndarray[Any, Any]:
    low = np.arange(SUB, dtype=np.float64)
    octaves = [((np.arange(SUB, 2 * SUB) + 1) * 2.0**shift - 1) for shift in range(DOUBLINGS)]
    edges: np.ndarray[Any, Any] = np.concatenate((low, *octaves)) * UNIT_US / MICROSECONDS_PER_S
    return edges


BIN_UPPER_S: Final = _upper_edges_s()
"""The longest wait of each bin, in seconds."""


@nb.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def bin_of_units(units: int) -> int:
    """Return the bin of a wait in units of 0.1 s.

    >>> [bin_of_units(n) for n in (0, 1, 127, 128, 129, 130)]
    [0, 1, 127, 128, 128, 129]
    """
    shift = 0
    while units >= 2 * SUB:
        units >>= 1
        shift += 1
    return min(units + shift * SUB, EXPIRED_BIN - 1)


@nb.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def last_sendings(origin: Any, repeats: int, last: Any) -> None:
    """Note the place of each request's last sending; repeats stand in the order in which they were sent."""
    for i in range(len(last)):
        last[i] = i
    for r in range(repeats):
        last[origin[r]] = len(last) + r


@nb.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def count_requests(
    created: Any,
    started: Any,
    outcome: Any,
    status: Any,
    length: Any,
    flags: Any,
    last: Any,
    marks: Any,
    codes: Any,
    counters: Any,
    waits: Any,
    by_group: Any,
    asked_by: Any,
) -> None:
    """Count every request of the traffic by its last sending; ``last`` is empty where nobody sends again."""
    day, requester, group, size, output = marks
    can_pay, admitted, held, completed, timed_out, expired = codes
    for i in range(len(day)):
        row = last[i] if len(last) else i
        d = day[i]
        came_to = outcome[row]
        counters[d, N_REQUESTS] += 1
        asked_by[d, requester[i], size[i]] += 1
        unfunded = (flags[i] & can_pay) == 0
        if unfunded:
            counters[d, N_UNFUNDED] += 1
            by_group[d, group[i], 0] += 1
        if came_to > admitted:
            counters[d, N_REFUSED] += 1
            if unfunded:
                counters[d, N_UNFUNDED_REFUSED] += 1
                by_group[d, group[i], 1] += 1
            continue
        counters[d, N_FREE + came_to] += 1
        waited = bin_of_units((started[row] - created[row] + UNIT_US - 1) // UNIT_US)
        if status[row] == completed:
            counters[d, N_COMPLETED] += 1
            tokens = min(np.int64(output[i]), np.int64(length[row]))
            counters[d, N_FUNDED_TOKENS if came_to == held else N_FREE_TOKENS] += tokens
        elif status[row] == timed_out:
            counters[d, N_TIMED_OUT] += 1
        elif status[row] == expired:
            counters[d, N_EXPIRED] += 1
            waited = EXPIRED_BIN
        waits[d, requester[i], waited] += 1
        if came_to == held:
            waits[d, FUNDED_WAITER, waited] += 1


@nb.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def count_sendings(outcome: Any, origin: Any, repeats: int, day: Any, admitted: int, counters: Any) -> None:
    """Count sendings and refusals, each on the day of its request's first sending."""
    sent = len(day)
    for row in range(sent + repeats):
        d = day[row] if row < sent else day[origin[row - sent]]
        counters[d, N_SENDINGS] += 1
        if outcome[row] > admitted:
            counters[d, N_REFUSALS] += 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one replay came to, as it is sent between machines and kept on the disk.

    Attributes
    ----------
    counters
        Days × :data:`COUNTERS`.
    wait_place, wait_count
        Of days × :data:`WAITERS` × bins, laid out in a row: the places that hold anyone, and how many.
    by_group
        Days × model groups × (unfunded, of them refused).
    asked_by
        Days × requesters × size buckets (A25): who asks for what, which is the traffic's and no setting's doing.
    utilisation
        Of the scenario; NaN for not known.
    """

    counters: np.ndarray[Any, Any]
    wait_place: np.ndarray[Any, Any]
    wait_count: np.ndarray[Any, Any]
    by_group: np.ndarray[Any, Any]
    asked_by: np.ndarray[Any, Any]
    utilisation: np.ndarray[Any, Any]


def outcome_of(stage: Stage, state: State) -> Outcome:
    """Return what the engine's final state comes to."""
    requests, repeats = state.requests, int(state.registers[R_REPEATS])
    counters = np.zeros((stage.days, len(COUNTERS)), np.int64)
    waits = np.zeros((stage.days, len(WAITERS), BINS), np.int64)
    by_group = np.zeros((stage.days, stage.groups, 2), np.int64)
    asked_by = np.zeros((stage.days, len(REQUESTERS), len(SIZES)), np.int64)
    last = np.zeros(len(stage.day) if repeats else 0, np.int64)
    if repeats:
        last_sendings(requests.origin, repeats, last)
    count_requests(
        requests.created,
        requests.started,
        requests.outcome,
        requests.status,
        requests.length,
        requests.flags,
        last,
        (stage.day, stage.requester, stage.group, stage.size, stage.output),
        CODES,
        counters,
        waits,
        by_group,
        asked_by,
    )
    count_sendings(requests.outcome, requests.origin, repeats, stage.day, DOWNGRADED, counters)
    places = np.flatnonzero(waits)
    return Outcome(
        counters=counters,
        wait_place=places.astype(np.int32),
        wait_count=waits.ravel()[places].astype(np.uint32),
        by_group=by_group.astype(np.uint32),
        asked_by=asked_by.astype(np.uint32),
        utilisation=np.array(np.nan if stage.utilisation is None else stage.utilisation),
    )
