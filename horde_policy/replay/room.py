"""The state of one run: made for a world and settings, and given more room when the kernel asks for it."""

import numpy as np

from horde_policy.errors import ReplayError
from horde_policy.replay.classes import World, wider, wider_classes
from horde_policy.replay.kernel_types import (
    LEAVE,
    NEED_CLASSES,
    NEED_HEAP,
    NEED_IDLE_RUNS,
    NEED_NODES,
    NEED_REQUESTS,
    NEED_SLOTS,
    NEVER,
    NODE_SIZE,
    NOT_SENT,
    R_CLASSES,
    R_NEED,
    R_NODES_FREE,
    R_RUNS_FREE,
    R_SLOTS_FREE,
    R_STAMP,
    REGISTERS,
    RESEND,
    RETURN,
    RULE_JOBS,
    Queue,
    Requests,
    Rules,
    Running,
    Seats,
    State,
)
from horde_policy.settings import ReplaySettings
from horde_policy.units import MICROSECONDS_PER_S

__all__ = ["RULES", "more_room", "new_state"]

RULES = ("allowance", "old", "jobs", "everyone_free", "no_one_free")
CLIENTS = {"leave": LEAVE, "resend": RESEND, "return": RETURN}

MOST_COUNTED = 1 << 24
COUNT_SHIFT = 38
"""So many requests of the largest size have fewer tokens than 1 << 38, and their count fits above."""

FIRST_WORDS = 24
FIRST_NODES = 4096
FIRST_HEAP = 1024
FIRST_REPEATS = 1024
SPARE_CLASSES = 64
POOL = 1 << 18


def _us(seconds: float) -> int:
    """Return seconds as whole µs, to the nearest; more than fit as the largest span."""
    return min(round(seconds * MICROSECONDS_PER_S), 2**62)


def _marks_s(seconds: float) -> float:
    return round(seconds * MICROSECONDS_PER_S) / MICROSECONDS_PER_S


def _check_countable(rule: int, requests: int) -> None:
    """Refuse more requests than the jobs rule can count beside their tokens in one number."""
    if rule == RULE_JOBS and requests > MOST_COUNTED:
        raise ReplayError(f"the jobs rule counts at most {MOST_COUNTED:,} requests in one replay, and there are {requests:,}")


def _rules(settings: ReplaySettings) -> Rules:
    return Rules(
        rule=RULES.index(settings.rule),
        client=CLIENTS[settings.client],
        ahead_all=int(settings.ahead == "all"),
        count_threads=int(settings.count_threads),
        ceiling=float(settings.ceiling_tokens),
        floor=float(settings.floor_tokens),
        wait_full_s=_marks_s(settings.wait_full_s),
        wait_floor_s=_marks_s(settings.wait_floor_s),
        jobs_floor=float(settings.jobs_rule_floor_per_thread),
        assumed_speed=float(settings.assumed_speed_tok_per_s),
        ageing_kudos=float(settings.ageing_kudos),
        ageing_every_us=max(_us(settings.ageing_every_s), 1),
        ttl_us=_us(settings.request_ttl_s),
        timeout_us=-1 if settings.job_timeout_s is None else _us(settings.job_timeout_s),
        return_after_us=_us(settings.return_after_s),
        return_times=settings.return_times,
        count_shift=COUNT_SHIFT if settings.rule == "jobs" else 63,
    )


def _requests(world: World, repeats: int) -> Requests:
    """Return the requests' arrays with room for so many repeated ones; with none, the world's arrays are shared."""
    size = world.requests + repeats
    given = {name: getattr(world, name) for name in ("created", "priority", "context_level", "output", "asked", "flags")}
    if repeats:
        given = {name: wider(array, size) for name, array in given.items()}
    return Requests(
        **given,
        traffic_row=np.zeros(0, np.int64) if world.order is None else world.order,
        length=wider(world.asked, size),
        cls=wider(world.cls, size),
        status=np.full(size, NOT_SENT, np.uint8),
        outcome=np.zeros(size, np.uint8),
        allowance=np.zeros(size, np.int64),
        wait_s=np.zeros(size),
        taken_by=np.full(size, -1, np.int32),
        started=np.zeros(size, np.int64),
        finished=np.zeros(size, np.int64),
        origin=np.zeros(repeats, np.int32),
        attempt=np.zeros(repeats, np.int32),
    )


def _seats(world: World) -> Seats:
    count = max(world.most_online, 1)
    runs = min(2 * count, count + world.most_threads)
    return Seats(
        row=np.zeros(count, np.int32),
        online=np.zeros(count, np.int32),
        of_row=np.full(len(world.fleet.speed), -1, np.int32),
        free=np.arange(count - 1, -1, -1, dtype=np.int32),
        mark=np.zeros(count, np.int64),
        counted_speed=np.zeros(count),
        idle_since=np.full(count, NEVER),
        idle=np.zeros(count, np.int64),
        run_first=np.zeros(count, np.int32),
        run_last=np.zeros(count, np.int32),
        run_time=np.zeros(runs, np.int64),
        run_count=np.zeros(runs, np.int64),
        run_next=np.zeros(runs, np.int32),
        run_free=np.arange(runs, dtype=np.int32),
        takes=np.zeros(count * FIRST_WORDS, np.int64),
        done=np.zeros(int(world.fleet.worker.max(initial=-1)) + 1, np.uint8),
        pool=np.zeros(max(POOL, 16 * count), np.int32),
        base_mark=np.zeros(len(world.bases.stamp), np.int64),
    )


def _queue() -> Queue:
    slots = FIRST_WORDS * 64
    return Queue(
        stat=np.zeros(4 * slots, np.int64),
        root=np.zeros(slots, np.int32),
        cls=np.zeros(slots, np.int32),
        used=np.zeros(FIRST_WORDS, np.int64),
        overlap=np.zeros(FIRST_WORDS, np.int64),
        key=np.zeros(FIRST_NODES * NODE_SIZE, np.int64),
        weight=np.zeros(FIRST_NODES * NODE_SIZE, np.int64),
        id=np.zeros(FIRST_NODES * NODE_SIZE, np.int32),
        child=np.zeros(FIRST_NODES * NODE_SIZE, np.int32),
        entries=np.zeros(FIRST_NODES, np.int32),
        leaf=np.zeros(FIRST_NODES, np.uint8),
        free=np.arange(FIRST_NODES - 1, -1, -1, dtype=np.int32),
        path_node=np.zeros(64, np.int32),
        path_entry=np.zeros(64, np.int32),
    )


def new_state(world: World, settings: ReplaySettings) -> State:
    """Return the state before the first event.

    Raises
    ------
    ReplayError
        The jobs rule over more than 16,777,216 requests.
    """
    registers = np.zeros(len(REGISTERS), np.int64)
    registers[R_STAMP] = 1
    registers[R_CLASSES] = world.class_count
    rules = _rules(settings)
    _check_countable(rules.rule, world.requests)
    bases = world.bases
    seats, queue = _seats(world), _queue()
    registers[R_RUNS_FREE] = len(seats.run_free)
    registers[R_NODES_FREE] = FIRST_NODES
    registers[R_SLOTS_FREE] = FIRST_WORDS * 64
    classes = wider_classes(world.classes, world.class_count, world.class_count + SPARE_CLASSES)
    classes.slot[:] = -1
    classes.stamp[:] = -1
    return State(
        rules=rules,
        requests=_requests(world, 0 if rules.client == LEAVE else max(FIRST_REPEATS, world.requests // 8)),
        fleet=world.fleet,
        bases=bases._replace(
            **{
                name: getattr(bases, name).copy()
                for name in ("changed", "stamp", "pos", "listed", "most", "seats", "seats_count")
            }
        ),
        classes=classes,
        seats=seats,
        queue=queue,
        running=Running(*(np.zeros(FIRST_HEAP, np.int64) for _ in range(4))),
        registers=registers,
    )


def _more_nodes(state: State) -> State:
    queue, registers = state.queue, state.registers
    have = len(queue.entries)
    size = 2 * have + int(registers[R_NEED])
    free = wider(queue.free[: registers[R_NODES_FREE]], size)
    free[registers[R_NODES_FREE] : registers[R_NODES_FREE] + size - have] = np.arange(size - 1, have - 1, -1)
    registers[R_NODES_FREE] += size - have
    wide = {name: wider(getattr(queue, name), size * NODE_SIZE) for name in ("key", "weight", "id", "child")}
    wide |= {name: wider(getattr(queue, name), size) for name in ("entries", "leaf")}
    return state._replace(queue=queue._replace(**wide, free=free))


def _more_slots(state: State) -> State:
    queue, seats, registers = state.queue, state.seats, state.registers
    have = len(queue.used)
    words = 2 * have + int(registers[R_NEED]) // 64 + 1
    registers[R_SLOTS_FREE] += 64 * (words - have)
    takes = np.zeros((len(seats.row), words), np.int64)
    takes[:, :have] = seats.takes.reshape(-1, have)
    wide = {name: wider(getattr(queue, name), 64 * words) for name in ("root", "cls")}
    wide |= {name: wider(getattr(queue, name), words) for name in ("used", "overlap")}
    queue = queue._replace(**wide, stat=wider(queue.stat, 4 * 64 * words))
    return state._replace(queue=queue, seats=seats._replace(takes=takes.ravel()))


def _more_classes(state: State) -> State:
    count = int(state.registers[R_CLASSES])
    return state._replace(classes=wider_classes(state.classes, count, 2 * count + 64))


def _more_requests(state: State) -> State:
    requests = state.requests
    have = len(requests.attempt)
    repeats = 2 * have
    size = len(requests.created) - have + repeats
    _check_countable(state.rules.rule, size)
    per_request = [name for name in Requests._fields if name not in {"traffic_row", "origin", "attempt"}]
    wide = {name: wider(getattr(requests, name), size) for name in per_request}
    wide["taken_by"][len(requests.created) :] = -1
    wide |= {name: wider(getattr(requests, name), repeats) for name in ("origin", "attempt")}
    return state._replace(requests=requests._replace(**wide))


def _more_idle_runs(state: State) -> State:
    seats, registers = state.seats, state.registers
    have = len(seats.run_free)
    size = 2 * have + 64
    free = wider(seats.run_free[: registers[R_RUNS_FREE]], size)
    free[registers[R_RUNS_FREE] : registers[R_RUNS_FREE] + size - have] = np.arange(have, size)
    registers[R_RUNS_FREE] += size - have
    wide = {name: wider(getattr(seats, name), size) for name in ("run_time", "run_count", "run_next")}
    return state._replace(seats=seats._replace(**wide, run_free=free))


def _more_heap(state: State) -> State:
    size = 2 * len(state.running.end) + int(state.registers[R_NEED])
    return state._replace(running=Running(*(wider(array, size) for array in state.running)))


_MORE = {
    NEED_NODES: _more_nodes,
    NEED_SLOTS: _more_slots,
    NEED_CLASSES: _more_classes,
    NEED_REQUESTS: _more_requests,
    NEED_IDLE_RUNS: _more_idle_runs,
    NEED_HEAP: _more_heap,
}


def more_room(state: State, short_of: int) -> State:
    """Return the state with more of what the kernel came back for."""
    return _MORE[short_of](state)
