"""What the compiled kernels work on: arrays in named groups, and the small numbers that they share.

A kernel's functions get the groups that they need. Everything mutable is an array, so that a run can stop between two
events, be given more room, be cancelled, and go on. Times are integer µs, sizes tokens; bit sets are int64 words.
"""

from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Bases",
    "Bools",
    "Classes",
    "Fleet",
    "Floats",
    "Int16s",
    "Int32s",
    "Ints",
    "Queue",
    "Requests",
    "Rules",
    "Running",
    "Seats",
]

Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Int16s = NDArray[np.int16]
Floats = NDArray[np.float64]
Bools = NDArray[np.uint8]

Whole = Any
"""A whole number in a compiled function; NumPy and Python have several types for it, numba one."""

NEVER = 2**63 - 1
"""After all time; also the level of a size that no worker declares."""

CAN_PAY, CHAT, SLOW_ALLOWED, MAY_DOWNGRADE = 1, 2, 4, 8
"""Bits of a request's flags, as sent."""

NOT_SENT, WAITING, RUNNING, RUNNING_TO_TIMEOUT, COMPLETED, TIMED_OUT, EXPIRED, REFUSED = range(8)
"""States of a request; the last four are final."""

FREE, FUNDED, DOWNGRADED, REFUSED_KUDOS, REFUSED_NO_WORKER = range(5)
"""Outcomes with their reasons."""

NO_ALLOWANCE = -(2**62)
"""Stands for the null allowance of "everyone free" """

RULE_ALLOWANCE, RULE_OLD, RULE_JOBS, RULE_EVERYONE_FREE, RULE_NO_ONE_FREE = range(5)
LEAVE, RESEND, RETURN = range(3)

# Why a kernel came back.
DONE, PAUSED, NEED_NODES, NEED_SLOTS, NEED_CLASSES, NEED_REQUESTS, NEED_IDLE_RUNS, NEED_HEAP = range(8)

NODE_SIZE = 16
"""Entries of a queue's tree node."""

STAT_FIRST, STAT_LAST, STAT_WEIGHT, STAT_FIRST_ID = range(4)
"""Of a slot: key of its first and of its last waiting request, sum of the weights, and the first request."""

REGISTERS = (
    "arrived",  # requests of the traffic that have arrived
    "repeats",  # repeated requests made
    "repeats_arrived",
    "expiry",  # next request of the traffic that might expire
    "expiry_repeat",
    "next_change",  # next fleet change
    "jobs",  # jobs running
    "waiting",  # requests waiting
    "threads",  # threads online
    "idle_threads",
    "online",  # workers online
    "stamp",  # counts fleet changes, measurements and restarts of the pool
    "pool_stamp",  # lists made before this stamp are gone
    "pool_used",
    "nodes_free",
    "slots_free",
    "words",  # words of the slot bit sets in use
    "runs_free",
    "classes",
    "need",  # how much more room the stopped event needs
    "events",
)
"""The scalars of a run, in the order in which they stand between two stays in the kernel."""

(
    R_ARRIVED, R_REPEATS, R_REPEATS_ARRIVED, R_EXPIRY, R_EXPIRY_REPEAT, R_CHANGE, R_JOBS, R_WAITING, R_THREADS, R_IDLE_THREADS,
    R_ONLINE, R_STAMP, R_POOL_STAMP, R_POOL_USED, R_NODES_FREE, R_SLOTS_FREE, R_WORDS, R_RUNS_FREE, R_CLASSES, R_NEED, R_EVENTS,
) = range(len(REGISTERS))  # fmt: skip


class Rules(NamedTuple):
    """The settings, as numbers."""

    rule: int
    client: int
    ahead_all: int
    count_threads: int
    ceiling: float
    floor: float
    wait_full_s: float
    wait_floor_s: float
    jobs_floor: float
    assumed_speed: float
    ageing_kudos: float
    ageing_every_us: int
    ttl_us: int
    timeout_us: int
    return_after_us: int
    return_times: int
    count_shift: int
    """A waiting request weighs its tokens + 1 << count_shift (62 or more: its tokens alone)."""


class Requests(NamedTuple):
    """One entry a request, in order of arrival; repeated ones behind."""

    created: Ints
    priority: Floats
    context_level: Int32s
    """Place of its context among the levels of its base."""
    output: Int16s
    """What the answer would take, cut at the largest ``max_length`` there can be."""
    asked: Int16s
    flags: Bools
    traffic_row: Ints
    """Empty when the traffic is in order of arrival."""
    length: Int16s
    """Current ``max_length``."""
    cls: Int32s
    status: Bools
    outcome: Bools
    allowance: Ints
    wait_s: Floats
    taken_by: Int32s
    """Fleet row of the last start."""
    started: Ints
    finished: Ints
    origin: Int32s
    """Of a repeated request: the first one (the traffic's come first, so this is indexed from their number)."""
    attempt: Int32s


class Fleet(NamedTuple):
    """One entry a fleet row, and the changes in their order."""

    max_length: Ints
    context: Ints
    speed: Floats
    threads: Ints
    measured: Bools
    slow: Bools
    worker: Int32s
    model_start: Ints
    model: Int32s
    change_at: Ints
    change_online: Bools
    change_row: Int32s


class Bases(NamedTuple):
    """One entry a distinct list of models ("base"), and a cached list of the seats that serve it, in fleet-row order."""

    any_base: int
    start: Ints
    model: Int32s
    of_model_start: Ints
    of_model: Int32s
    table: Int32s
    """Which level table the base uses."""
    length_start: Ints
    length: Ints
    context_start: Ints
    context: Ints
    changed: Ints
    """Stamp of the last fleet change that touched the base."""
    stamp: Ints
    pos: Int32s
    listed: Int32s
    most: Ints
    """Largest ``max_length`` that an online worker of the base declares."""
    seats_start: Ints
    seats: Int32s
    """Per model: its online seats in fleet-row order."""
    seats_count: Int32s


class Classes(NamedTuple):
    """One entry a class of requests that the same workers could take; eligible seats and their speed are cached."""

    base: Int32s
    length: Ints
    context: Ints
    slow: Bools
    slot: Int32s
    stamp: Ints
    pos: Int32s
    listed: Int32s
    speed: Floats
    threads: Ints
    table_key: Ints
    table_cls: Int32s


class Seats(NamedTuple):
    """One entry a worker online."""

    row: Int32s
    online: Int32s
    """Seats in use, in fleet-row order."""
    of_row: Int32s
    free: Int32s
    mark: Ints
    counted_speed: Floats
    idle_since: Ints
    """Since when its longest idle thread idles; NEVER without one."""
    idle: Ints
    """Idle threads."""
    run_first: Int32s
    run_last: Int32s
    run_time: Ints
    run_count: Ints
    run_next: Int32s
    run_free: Int32s
    takes: Ints
    """Bit set of the slots that it could take, ``words`` a seat."""
    done: Bools
    """Per worker: has completed a job here."""
    pool: Int32s
    base_mark: Ints


class Queue(NamedTuple):
    """Waiting requests: a slot a class that has any, each with a tree ordered by key."""

    stat: Ints
    root: Int32s
    cls: Int32s
    used: Ints
    overlap: Ints
    key: Ints
    weight: Ints
    id: Int32s
    child: Int32s
    entries: Int32s
    leaf: Bools
    free: Int32s
    path_node: Int32s
    path_entry: Int32s


class Running(NamedTuple):
    """A heap of the jobs by their end."""

    end: Ints
    id: Ints
    seat: Ints
    lost: Ints


class State(NamedTuple):
    """All of a run."""

    rules: Rules
    requests: Requests
    fleet: Fleet
    bases: Bases
    classes: Classes
    seats: Seats
    queue: Queue
    running: Running
    registers: Ints


Group = TypeVar("Group", bound=tuple[Any, ...])


def blank(group: type[Group], **given: Any) -> Group:
    """Return a group with some fields given, the others empty arrays and zeros.

    >>> len(blank(Classes).base)
    0
    """
    kinds = {Ints: np.int64, Int32s: np.int32, Int16s: np.int16, Floats: np.float64, Bools: np.uint8}
    hints = get_type_hints(group)
    empty = {name: np.zeros(0, kinds[hint]) if hint in kinds else 0 for name, hint in hints.items()}
    return group(**(empty | given))


Kernel = Any
"""A compiled function; numba gives it no type."""
