"""From the engine's final state to the run frame, which takes over the state's arrays without copying them."""

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from horde_policy.frames.runs import OUTCOME, REASON, RUNS, STATUS
from horde_policy.frames.schemas import UTC_INSTANT
from horde_policy.frames.traffic import row_numbers
from horde_policy.replay.classes import World
from horde_policy.replay.kernel_types import (
    COMPLETED,
    NO_ALLOWANCE,
    R_REPEATS,
    REFUSED_KUDOS,
    TIMED_OUT,
    State,
)
from horde_policy.units import MICROSECONDS_PER_S

__all__ = ["run_frame"]

Array = np.ndarray[Any, Any]


def _masked(values: Array, known: Array) -> pl.Series:
    """Return the values as a series that shares their memory, with nulls where they are not known."""
    mask = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    buffers = [mask, pa.py_buffer(np.ascontiguousarray(values))]
    shared = pl.from_arrow(pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers))
    assert isinstance(shared, pl.Series)
    return shared


def _words(codes: Array, kind: pl.Enum) -> pl.Series:
    """Return codes as words; a code beyond the last word is null."""
    known = codes < len(kind.categories)
    return _masked(np.where(known, codes, 0).astype(np.uint8), known).cat.to(kind)


def run_frame(world: World, state: State) -> pl.DataFrame:
    """Return the run as :data:`~horde_policy.frames.runs.RUNS`."""
    requests = state.requests
    repeats = int(state.registers[R_REPEATS])
    total = world.requests + repeats

    def column(array: Array) -> Array:
        if world.order is None:
            return array[:total]
        ordered = array[:total].copy()
        ordered[world.order] = array[: world.requests]
        return ordered

    outcome, status, row = column(requests.outcome), column(requests.status), column(requests.taken_by)
    ran = row >= 0
    started = column(requests.started)
    allowance, wait_s = column(requests.allowance), column(requests.wait_s)
    length = column(requests.length).astype(np.int64)
    ended = (status == COMPLETED) | (status == TIMED_OUT)
    request_id, retry_of = _ids(world, state, repeats)
    columns = {
        "request_id": request_id,
        "outcome": _words(np.minimum(outcome, REFUSED_KUDOS), OUTCOME),
        "reason": _words(outcome - np.uint8(REFUSED_KUDOS), REASON),
        "allowance": _masked(allowance, allowance != NO_ALLOWANCE),
        "estimated_wait_s": _masked(wait_s, ~np.isnan(wait_s)),
        "admitted_max_length": _masked(length, outcome < REFUSED_KUDOS),
        "worker_id": world.worker_id.gather(_masked(row, ran)),
        "started": _masked(started, ran).cast(UTC_INSTANT),
        "finished": _masked(column(requests.finished), ended).cast(UTC_INSTANT),
        "queue_wait_s": _masked((started - column(requests.created)) / MICROSECONDS_PER_S, ran),
        "status": _words(status - np.uint8(COMPLETED), STATUS),
        "retry_of": retry_of,
    }
    return RUNS.checked(pl.DataFrame(columns))


def _ids(world: World, state: State, repeats: int) -> tuple[pl.Series, pl.Series]:
    """Return request_id and retry_of."""
    ids = row_numbers(world.requests) if world.request_id is None else world.request_id
    none = pl.Series("retry_of", [None], dtype=pl.String).new_from_index(0, world.requests)
    if not repeats:
        return ids, none
    origin = state.requests.origin[:repeats]
    row = origin if world.order is None else world.order[origin]
    first = ids.gather(pl.Series(row))
    mark = "#" if world.request_id is None else _free_mark(ids)
    again = first + mark + pl.Series(state.requests.attempt[:repeats]).cast(pl.String)
    return pl.concat([ids, again]), pl.concat([none, first.alias("retry_of")])


def _free_mark(ids: pl.Series) -> str:
    """Return what stands between an id and the number of the attempt: ``#``, or so many that no given id reads like that.

    It follows from the traffic alone, so that a repeated request has one id under all settings.

    >>> _free_mark(pl.Series(["a", "b", "c#2"])), _free_mark(pl.Series(["b", "b#2"])), _free_mark(pl.Series(["b", "b#2", "b##3"]))
    ('#', '##', '###')
    """
    marked = ids.filter(ids.str.contains("#[0-9]+$"))
    mark = "#"
    while marked.str.extract(f"(?s)^(.*){mark}[0-9]+$").drop_nulls().is_in(ids.implode()).any():
        mark += "#"
    return mark
