"""The compiled functions' view of a run: one structure, passed by reference, with every array and scalar as a field.

Its fields are those of the groups in ``kernel_types`` under the group's prefix, and the registers by their names.
"""

from typing import Any, get_type_hints

import numba as nb
from numba.core import types
from numba.experimental import structref

from horde_policy.replay import kernel_types
from horde_policy.replay.kernel_types import (
    REGISTERS,
    Bases,
    Classes,
    Fleet,
    Ints,
    Queue,
    Requests,
    Rules,
    Running,
    Seats,
    State,
)

__all__ = ["Run", "opened", "opened_classes", "saved"]

Run = Any
"""What a compiled function gets as ``s``."""

PREFIXES: dict[str, type[tuple[Any, ...]]] = {
    "rule_": Rules,
    "": Requests,
    "fleet_": Fleet,
    "base_": Bases,
    "class_": Classes,
    "seat_": Seats,
    "queue_": Queue,
    "job_": Running,
}


@structref.register
class RunType(types.StructRef):  # type: ignore[misc, name-defined]
    """Numba's type of the structure."""

    def preprocess_fields(self, fields: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
        """Return the fields as they are."""
        return fields


NUMBA_TYPES = {
    kernel_types.Ints: types.Array(types.int64, 1, "C"),
    kernel_types.Int32s: types.Array(types.int32, 1, "C"),
    kernel_types.Floats: types.Array(types.float64, 1, "C"),
    kernel_types.Bools: types.Array(types.uint8, 1, "C"),
    int: types.int64,
    float: types.float64,
    bool: types.boolean,
}


def _fields() -> list[tuple[str, Any]]:
    fields = [
        (prefix + name, NUMBA_TYPES[hint]) for prefix, group in PREFIXES.items() for name, hint in get_type_hints(group).items()
    ]
    return fields + [(name, types.int64) for name in REGISTERS]


RUN = RunType(_fields())


@nb.njit(error_model="numpy")
def open_rules(s: Run, rules: Rules) -> None:
    """Put the settings into the structure."""
    s.rule_rule = rules.rule
    s.rule_client = rules.client
    s.rule_ahead_all = rules.ahead_all
    s.rule_count_threads = rules.count_threads
    s.rule_ceiling = rules.ceiling
    s.rule_floor = rules.floor
    s.rule_wait_full_s = rules.wait_full_s
    s.rule_wait_floor_s = rules.wait_floor_s
    s.rule_jobs_floor = rules.jobs_floor
    s.rule_assumed_speed = rules.assumed_speed
    s.rule_ageing_kudos = rules.ageing_kudos
    s.rule_ageing_every_us = rules.ageing_every_us
    s.rule_ttl_us = rules.ttl_us
    s.rule_timeout_us = rules.timeout_us
    s.rule_return_after_us = rules.return_after_us
    s.rule_return_times = rules.return_times
    s.rule_count_shift = rules.count_shift


@nb.njit(error_model="numpy")
def open_requests(s: Run, requests: Requests) -> None:
    """Put the requests' arrays into the structure."""
    s.created = requests.created
    s.priority = requests.priority
    s.context = requests.context
    s.output = requests.output
    s.asked = requests.asked
    s.flags = requests.flags
    s.traffic_row = requests.traffic_row
    s.length = requests.length
    s.cls = requests.cls
    s.status = requests.status
    s.outcome = requests.outcome
    s.allowance = requests.allowance
    s.wait_s = requests.wait_s
    s.taken_by = requests.taken_by
    s.started = requests.started
    s.finished = requests.finished
    s.origin = requests.origin
    s.attempt = requests.attempt


@nb.njit(error_model="numpy")
def open_fleet(s: Run, fleet: Fleet) -> None:
    """Put the fleet's arrays into the structure."""
    s.fleet_max_length = fleet.max_length
    s.fleet_context = fleet.context
    s.fleet_speed = fleet.speed
    s.fleet_threads = fleet.threads
    s.fleet_measured = fleet.measured
    s.fleet_slow = fleet.slow
    s.fleet_worker = fleet.worker
    s.fleet_model_start = fleet.model_start
    s.fleet_model = fleet.model
    s.fleet_change_at = fleet.change_at
    s.fleet_change_online = fleet.change_online
    s.fleet_change_row = fleet.change_row


@nb.njit(error_model="numpy")
def open_bases(s: Run, bases: Bases) -> None:
    """Put the arrays of the lists of models into the structure."""
    s.base_any_base = bases.any_base
    s.base_start = bases.start
    s.base_model = bases.model
    s.base_of_model_start = bases.of_model_start
    s.base_of_model = bases.of_model
    s.base_table = bases.table
    s.base_length_start = bases.length_start
    s.base_length = bases.length
    s.base_context_start = bases.context_start
    s.base_context = bases.context
    s.base_changed = bases.changed
    s.base_stamp = bases.stamp
    s.base_pos = bases.pos
    s.base_listed = bases.listed
    s.base_most = bases.most
    s.base_seats_start = bases.seats_start
    s.base_seats = bases.seats
    s.base_seats_count = bases.seats_count


@nb.njit(error_model="numpy")
def open_classes(s: Run, classes: Classes) -> None:
    """Put the classes' arrays into the structure."""
    s.class_base = classes.base
    s.class_length = classes.length
    s.class_context = classes.context
    s.class_slow = classes.slow
    s.class_slot = classes.slot
    s.class_stamp = classes.stamp
    s.class_pos = classes.pos
    s.class_listed = classes.listed
    s.class_speed = classes.speed
    s.class_threads = classes.threads
    s.class_table_key = classes.table_key
    s.class_table_cls = classes.table_cls


@nb.njit(error_model="numpy")
def open_seats(s: Run, seats: Seats) -> None:
    """Put the seats' arrays into the structure."""
    s.seat_row = seats.row
    s.seat_online = seats.online
    s.seat_of_row = seats.of_row
    s.seat_free = seats.free
    s.seat_mark = seats.mark
    s.seat_counted_speed = seats.counted_speed
    s.seat_idle_since = seats.idle_since
    s.seat_idle = seats.idle
    s.seat_run_first = seats.run_first
    s.seat_run_last = seats.run_last
    s.seat_run_time = seats.run_time
    s.seat_run_count = seats.run_count
    s.seat_run_next = seats.run_next
    s.seat_run_free = seats.run_free
    s.seat_takes = seats.takes
    s.seat_done = seats.done
    s.seat_pool = seats.pool
    s.seat_base_mark = seats.base_mark


@nb.njit(error_model="numpy")
def open_queue(s: Run, queue: Queue, running: Running) -> None:
    """Put the arrays of what waits and of what runs into the structure."""
    s.queue_stat = queue.stat
    s.queue_root = queue.root
    s.queue_cls = queue.cls
    s.queue_used = queue.used
    s.queue_overlap = queue.overlap
    s.queue_key = queue.key
    s.queue_weight = queue.weight
    s.queue_id = queue.id
    s.queue_child = queue.child
    s.queue_entries = queue.entries
    s.queue_leaf = queue.leaf
    s.queue_free = queue.free
    s.queue_path_node = queue.path_node
    s.queue_path_entry = queue.path_entry
    s.job_end = running.end
    s.job_id = running.id
    s.job_seat = running.seat
    s.job_lost = running.lost


@nb.njit(error_model="numpy")
def open_registers(s: Run, registers: Ints) -> None:
    """Put the registers' values into the structure."""
    s.arrived, s.repeats, s.repeats_arrived = registers[0], registers[1], registers[2]
    s.expiry, s.expiry_repeat, s.next_change = registers[3], registers[4], registers[5]
    s.jobs, s.waiting, s.threads = registers[6], registers[7], registers[8]
    s.idle_threads, s.online, s.stamp = registers[9], registers[10], registers[11]
    s.pool_stamp, s.pool_used, s.nodes_free = registers[12], registers[13], registers[14]
    s.slots_free, s.words, s.runs_free = registers[15], registers[16], registers[17]
    s.classes, s.need, s.events = registers[18], registers[19], registers[20]


@nb.njit(error_model="numpy")
def saved(s: Run, registers: Ints) -> None:
    """Keep the registers' values for the next stay in the kernel."""
    registers[0], registers[1], registers[2] = s.arrived, s.repeats, s.repeats_arrived
    registers[3], registers[4], registers[5] = s.expiry, s.expiry_repeat, s.next_change
    registers[6], registers[7], registers[8] = s.jobs, s.waiting, s.threads
    registers[9], registers[10], registers[11] = s.idle_threads, s.online, s.stamp
    registers[12], registers[13], registers[14] = s.pool_stamp, s.pool_used, s.nodes_free
    registers[15], registers[16], registers[17] = s.slots_free, s.words, s.runs_free
    registers[18], registers[19], registers[20] = s.classes, s.need, s.events


@nb.njit(error_model="numpy")
def opened(state: State) -> Run:
    """Return the structure of a run's state."""
    s = structref.new(RUN)
    open_rules(s, state.rules)
    open_requests(s, state.requests)
    open_fleet(s, state.fleet)
    open_bases(s, state.bases)
    open_classes(s, state.classes)
    open_seats(s, state.seats)
    open_queue(s, state.queue, state.running)
    open_registers(s, state.registers)
    return s


@nb.njit(error_model="numpy")
def opened_classes(bases: Bases, classes: Classes, registers: Ints) -> Run:
    """Return a structure that can only make classes."""
    s = structref.new(RUN)
    open_bases(s, bases)
    open_classes(s, classes)
    open_registers(s, registers)
    return s
