"""From traffic and fleet frames to a :class:`World`: arrays in order of arrival, and requests in classes.

Requests that the same workers could take are one class, so the engine keeps one queue a class. Sizes are raised to the next
level that some worker declares, then classes that suit the same fleet rows are made one. A world holds nothing of the
settings: many replays, at the same time too, can share it.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from horde_policy.frames.fleet import normalised_fleet
from horde_policy.frames.traffic import normalised_requests, request_ids
from horde_policy.replay.kernel import assign_bases, classify, rehash, tightest
from horde_policy.replay.kernel_run import table_of
from horde_policy.replay.kernel_types import (
    CAN_PAY,
    CHAT,
    MAY_DOWNGRADE,
    R_CLASSES,
    REGISTERS,
    SLOW_ALLOWED,
    Bases,
    Bools,
    Classes,
    Fleet,
    Floats,
    Int16s,
    Int32s,
    Ints,
    Queue,
    Requests,
    Rules,
    Running,
    Seats,
    State,
    blank,
)
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = ["World", "prepare", "wider", "wider_classes"]

Array = np.ndarray[Any, Any]

PER_CLASS = ("base", "length", "context", "slow", "slot", "stamp", "pos", "listed", "speed", "threads")

MOST_TIGHTENING_STEPS = 50_000_000
"""Making classes one costs a step a class and fleet row of its models; beyond this the classes stay as they are."""


@dataclass(frozen=True, slots=True)
class World:
    """Traffic and fleet, ready to be replayed under any settings.

    Attributes
    ----------
    request_id, worker_id
        Of each traffic row (null: the row numbers) and each fleet row.
    order
        Traffic row of each request in order of arrival; null if the traffic is in that order.
    created, priority, context_level, output, asked, flags, cls
        One entry a request in order of arrival.
    fleet, bases, classes, class_count
        The fleet's arrays; the lists of models; the classes, with nothing cached yet.
    most_online, most_threads
        The largest number of workers, and of threads, online together.
    """

    request_id: pl.Series | None
    worker_id: pl.Series
    order: Ints | None
    created: Ints
    priority: Floats
    context_level: Int32s
    output: Int16s
    asked: Int16s
    flags: Bools
    cls: Int32s
    fleet: Fleet
    bases: Bases
    classes: Classes
    class_count: int
    most_online: int
    most_threads: int

    @property
    def requests(self) -> int:
        """The number of requests in the traffic."""
        return len(self.created)


class _Shared:
    """A frame's buffer as seen by NumPy, which takes it for writable: a table of arrays knows no other.

    The kernels write to these only behind the traffic's own requests, in a copy that is made when clients repeat requests.
    """

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], False)}


def _shared(series: pl.Series) -> Array:
    array = series.rechunk().to_physical().to_numpy()
    return array if array.flags.writeable else np.asarray(_Shared(array))


def wider(array: Array, size: int, fill: int = 0) -> Array:
    """Return a copy with room for ``size`` entries, the new ones ``fill``.

    >>> wider(np.array([1, 2]), 3, -1)
    array([ 1,  2, -1])
    """
    grown = np.full(size, fill, array.dtype)
    grown[: len(array)] = array
    return grown


def wider_classes(classes: Classes, count: int, room: int) -> Classes:
    """Return the first ``count`` classes with room for ``room``, the hash table made anew so that it stays half empty."""
    size = 16
    while size < 2 * (int((classes.table_key >= 0).sum()) + room):
        size *= 2
    table_key, table_cls = rehash(classes.table_key, classes.table_cls, size)
    grown = {name: wider(getattr(classes, name)[:count], room) for name in PER_CLASS}
    return Classes(**grown, table_key=table_key, table_cls=table_cls)


def _flag_bits(traffic: pl.DataFrame) -> Bools:
    bits = np.zeros(traffic.height, np.uint8)
    for name, bit in (("can_pay", CAN_PAY), ("chat", CHAT), ("slow_workers", SLOW_ALLOWED), ("allow_downgrade", MAY_DOWNGRADE)):
        bits |= traffic[name].to_numpy().astype(np.uint8) * np.uint8(bit)
    return bits


def _model_codes(models: pl.Series, names: list[str]) -> tuple[Array, Int32s]:
    """Return the lists' lengths and their names as codes into ``names``, −1 for others, one list after the other."""
    kind = pl.Enum(names)
    codes = [
        chunk.explode(empty_as_null=False).cast(kind, strict=False).to_physical().cast(pl.Int32).fill_null(-1).to_numpy()
        for chunk in models.get_chunks()
    ]
    return models.list.len().to_numpy(), np.concatenate(codes) if codes else np.zeros(0, np.int32)


def _fleet_arrays(fleet: pl.DataFrame, names: list[str]) -> Fleet:
    rows = fleet.height
    lengths, codes = _model_codes(fleet["models"].list.unique(maintain_order=True), names)
    start = np.zeros(rows + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    going = fleet["online_to"].is_not_null().to_numpy()
    at = np.concatenate((fleet["online_to"].drop_nulls().to_physical().to_numpy(), fleet["online_from"].to_physical().to_numpy()))
    online = np.repeat(np.array([0, 1], np.uint8), [int(going.sum()), rows])
    row = np.concatenate((np.flatnonzero(going), np.arange(rows))).astype(np.int32)
    order = np.lexsort((row, online, at))
    limit = np.int64(2**31 - 1)
    return Fleet(
        max_length=np.minimum(fleet["max_length"].to_numpy(), limit),
        context=fleet["max_context_length"].to_numpy().copy(),
        speed=fleet["speed"].to_numpy().copy(),
        threads=fleet["threads"].to_numpy().copy(),
        measured=fleet["measured"].to_numpy().astype(np.uint8),
        slow=fleet["slow"].to_numpy().astype(np.uint8),
        worker=(fleet["worker_id"].rank("dense").cast(pl.Int32) - 1).to_numpy().copy(),
        model_start=start,
        model=codes.copy(),
        change_at=at[order],
        change_online=online[order],
        change_row=row[order],
    )


def _grouped(codes: Int32s, owner: Int32s, groups: int) -> tuple[Ints, Int32s]:
    """Return starts and owners of each code, owners in order."""
    start = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=groups), out=start[1:])
    return start, owner[np.argsort(codes, kind="stable")]


def _levels(values: Ints, rows_start: Ints, rows: Int32s) -> tuple[Ints, Ints]:
    """Return starts and sorted distinct values: of all rows, then of the rows of each model."""
    tables = [np.unique(values)]
    tables += [np.unique(values[rows[a:b]]) for a, b in pairwise(rows_start)]
    start = np.zeros(len(tables) + 1, np.int64)
    np.cumsum([len(table) for table in tables], out=start[1:])
    return start, np.concatenate(tables).astype(np.int64)


def _bases(starts: Ints, listed: Int32s, fleet: Fleet, models: int, by_model: tuple[Ints, Int32s]) -> Bases:
    count = len(starts) - 1
    sizes = np.diff(starts)
    first = listed[starts[:-1]] if count else np.zeros(0, np.int32)
    any_base = int(np.flatnonzero(first == -1)[0]) if (first == -1).any() else -1
    owner = np.repeat(np.arange(count, dtype=np.int32), sizes)
    real = listed >= 0
    of_model_start, of_model = _grouped(listed[real], owner[real], models)
    length_start, length = _levels(fleet.max_length, *by_model)
    context_start, context = _levels(fleet.context, *by_model)
    # A base of one model uses that model's levels, any other those of all rows.
    table = np.where((sizes == 1) & (first >= 0), first + 1, 0).astype(np.int32)
    return Bases(
        any_base=any_base, start=starts, model=listed, of_model_start=of_model_start, of_model=of_model, table=table,
        length_start=length_start, length=length, context_start=context_start, context=context,
        changed=np.zeros(count, np.int64), stamp=np.full(count, -1, np.int64), pos=np.zeros(count, np.int32),
        listed=np.zeros(count, np.int32), most=np.zeros(count, np.int64), seats_start=by_model[0],
        seats=np.zeros(len(by_model[1]), np.int32), seats_count=np.zeros(models, np.int32),
    )  # fmt: skip


def _merged(bases: Bases, classes: Classes, count: int, fleet: Fleet, by_model: tuple[Ints, Int32s]) -> tuple[Classes, Int32s]:
    """Return the classes with those that suit the same rows made one, and the new class of each."""
    rows = len(fleet.max_length)
    start = np.append(by_model[0], len(by_model[1]) + rows)
    row = np.concatenate((by_model[1], np.arange(rows, dtype=np.int32)))
    per_model = np.append(np.diff(start), 0)
    codes = np.where(bases.model == -1, len(start) - 2, np.where(bases.model == -2, len(start) - 1, bases.model))
    per_base = np.add.reduceat(per_model[codes], bases.start[:-1]) if len(bases.start) > 1 else np.zeros(0, np.int64)
    if count == 0 or per_base[classes.base[:count]].sum() > MOST_TIGHTENING_STEPS:
        return classes, np.arange(count, dtype=np.int32)
    length, context, slow = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.uint8)
    table, _ = table_of(_only_classes(bases, classes, fleet, count))
    tightest(table, start, row, length, context, slow)
    tight = pl.DataFrame({"base": classes.base[:count], "length": length, "context": context, "slow": slow}).with_row_index("cls")
    first = tight.select(pl.col("cls").first().over("base", "length", "context", "slow")).to_series().to_numpy()
    kept, group = np.unique(first, return_inverse=True)
    table_cls = np.where(classes.table_key >= 0, group[classes.table_cls], 0).astype(np.int32)
    members = {name: getattr(classes, name)[kept] for name in PER_CLASS}
    merged = Classes(**members, table_key=classes.table_key, table_cls=table_cls)
    return wider_classes(merged, len(kept), len(kept)), group.astype(np.int32)


def _most_together(fleet: Fleet, weight: Ints) -> int:
    change = np.where(fleet.change_online == 1, 1, -1) * np.minimum(weight, 2**40)[fleet.change_row]
    return int(max(np.cumsum(change).max(initial=0), 0))


def _only_classes(bases: Bases, classes: Classes, fleet: Fleet, count: int, requests: Requests | None = None) -> State:
    """Return a state that can do no more than make and compare classes."""
    registers = np.zeros(len(REGISTERS), np.int64)
    registers[R_CLASSES] = count
    return State(
        rules=blank(Rules), requests=requests or blank(Requests), fleet=fleet, bases=bases, classes=classes,
        seats=blank(Seats), queue=blank(Queue), running=blank(Running), registers=registers,
    )  # fmt: skip


def _sizes(column: pl.Series) -> Int16s:
    """Return sizes as small numbers, those above the largest cut to it; chunk by chunk, so that no wide copy is made."""
    sizes = np.empty(len(column), np.int16)
    at = 0
    for chunk in column.get_chunks():
        np.minimum(chunk.to_numpy(), MAX_LENGTH_LIMIT_TOKENS, out=sizes[at : at + len(chunk)], casting="unsafe")
        at += len(chunk)
    return sizes


def _classified(bases: Bases, fleet: Fleet, base_of: Int32s, sent: pl.DataFrame) -> tuple[Classes, int, Requests]:
    """Return the classes, their number, and the requests with their sizes, flags, context levels and classes."""
    requests = blank(
        Requests,
        flags=_flag_bits(sent),
        asked=_sizes(sent["max_length"]),
        output=_sizes(sent["output_tokens"]),
        context_level=np.zeros(sent.height, np.int32),
        cls=np.zeros(sent.height, np.int32),
    )
    context = sent["max_context_length"].to_numpy()
    classes, count, at, room = wider_classes(blank(Classes), 0, 1024), 0, 0, 1024
    while True:
        table, state = table_of(_only_classes(bases, classes, fleet, count, requests))
        at = classify(table, base_of, context, at)
        count = int(state.registers[R_CLASSES])
        if at == sent.height:
            return classes, count, requests
        room *= 4
        classes = wider_classes(classes, count, room)


def prepare(traffic: pl.DataFrame, fleet: pl.DataFrame) -> World:
    """Return traffic and fleet ready to be replayed; bad input is refused whole.

    Parameters
    ----------
    traffic, fleet
        As :func:`~horde_policy.frames.traffic.normalised_traffic` and
        :func:`~horde_policy.frames.fleet.normalised_fleet` take them.

    Raises
    ------
    InputError
        A value or a column breaks a rule of ``replay.md``, "Inputs".
    """
    ids, sent, fleet = request_ids(traffic), normalised_requests(traffic), normalised_fleet(fleet)
    created = _shared(sent["created"])
    in_order = bool((created[1:] >= created[:-1]).all())
    order = None if in_order else np.argsort(created, kind="stable")
    if order is not None:
        sent = sent[order]
        created = _shared(sent["created"])
    names = fleet["models"].explode(empty_as_null=False).unique().sort().to_list()
    arrays = _fleet_arrays(fleet, names)
    owner = np.repeat(np.arange(fleet.height, dtype=np.int32), np.diff(arrays.model_start))
    by_model = _grouped(arrays.model, owner, len(names))
    base_of, starts, listed = assign_bases(*_model_codes(sent["models"], names), len(names))
    bases = _bases(starts, listed, arrays, len(names), by_model)
    classes, count, requests = _classified(bases, arrays, base_of, sent)
    del base_of
    classes, group = _merged(bases, classes, count, arrays, by_model)
    return World(
        request_id=ids,
        worker_id=fleet["worker_id"],
        order=order,
        created=created,
        priority=_shared(sent["priority"]),
        context_level=requests.context_level,
        output=requests.output,
        asked=requests.asked,
        flags=requests.flags,
        cls=group[requests.cls] if count else requests.cls,
        fleet=arrays,
        bases=bases,
        classes=classes,
        class_count=int(group.max(initial=-1)) + 1,
        most_online=_most_together(arrays, np.ones(fleet.height, np.int64)),
        most_threads=_most_together(arrays, arrays.threads),
    )
