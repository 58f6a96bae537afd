"""A snapshot as an operator reads it: one row a model, one for any model, the horde's pulse (design §1, Overview).

Every model that is listed or served by any worker of the list has its row, in maintenance or not. Rows are dataclasses and,
by :meth:`Board.frame`, a frame; both hold names as the network gives them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import polars as pl

from horde_policy.board.measure import Measure, check_context, check_size, measure_pool
from horde_policy.board.names import group_name
from horde_policy.board.notes import Note
from horde_policy.board.pool import Fleet, Pool
from horde_policy.board.states import STATES, State, allowance_range, state_of
from horde_policy.frames.schemas import Column, Schema
from horde_policy.frames.snapshot import Snapshot
from horde_policy.policy.wait import combined_speed_tok_per_s
from horde_policy.policy.worker import Worker, counted_threads, is_measured, standing
from horde_policy.settings import AllowanceSettings
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_LENGTH_TOKENS

__all__ = ["BOARD_ROWS", "STRIP_SIZES_TOKENS", "Board", "Pulse", "Row", "StripCell", "make_board"]

N = TypeVar("N", int, float)

STRIP_SIZES_TOKENS: tuple[int, ...] = (80, 512, 1024, 2048, 4096)
"""The sizes of a row's strip (design §1)."""

BOARD_ROWS = Schema(
    "board_rows",
    {
        "model": Column(pl.String, null="any model", text="hostile text"),
        "group": Column(pl.String, null="any model", text="the name behind the backend's prefix; hostile text"),
        "state": Column(pl.String, text="no_worker, too_large, unknown, full, falling or floor"),
        "max_length": Column(pl.Int64, "tokens", text="the size asked"),
        "max_context_length": Column(pl.Int64, "tokens", text="the context asked, never below the size"),
        "eligible_workers": Column(pl.Int64, "workers"),
        "unmeasured_workers": Column(pl.Int64, "workers", text="eligible ones whose speed is assumed (A8)"),
        "open_workers": Column(pl.Int64, "workers", text="online, not in maintenance, owner not flagged"),
        "serving_workers": Column(pl.Int64, "workers", text="all of the list that name the model"),
        "maintenance_workers": Column(pl.Int64, "workers", text="those of them in maintenance"),
        "speed_tok_per_s": Column(pl.Float64, "tok/s", text="combined, of the eligible workers"),
        "queued_tokens": Column(pl.Float64, "tokens", null="not reported"),
        "wait_low_s": Column(pl.Float64, "s", null="no eligible worker, or the queue not reported"),
        "wait_named_s": Column(pl.Float64, "s", null="no eligible worker, or the queue not reported"),
        "wait_high_s": Column(pl.Float64, "s", null="as the others, or the horde-wide total not reported"),
        "wait_worst_s": Column(pl.Float64, "s", null="as wait_high_s", text="the larger of named and high"),
        "allowance_tokens": Column(pl.Int64, "tokens", null="the queue is not reported"),
        "allowance_at_high_tokens": Column(pl.Int64, "tokens", null="the wait at worst is not known"),
        "allowance_at_low_tokens": Column(pl.Int64, "tokens", null="the queue is not reported"),
        "largest_free_request_tokens": Column(pl.Int64, "tokens", null="no worker takes any size, or the queue not reported"),
        "listed_threads": Column(pl.Int64, "jobs", null="not listed"),
        "listed_jobs": Column(pl.Float64, "jobs", null="not listed"),
        "requests_day": Column(pl.Int64, "requests", null="not reported"),
        "strip_allowance_tokens": Column(pl.List(pl.Int64), "tokens", text="at the sizes of the strip, null as above"),
        "strip_state": Column(pl.List(pl.String), text="at the sizes of the strip"),
        "notes": Column(pl.List(pl.String), text="sentences; hostile text"),
    },
    sort=("model",),
)
"""One row a model, sorted by name."""


@dataclass(frozen=True, slots=True)
class StripCell:
    """State and allowance at one size; the allowance is null when the queue is not reported."""

    max_length: int
    state: State
    allowance_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model, a group of a model's names asked for together, or any model.

    Attributes
    ----------
    measure
        The figures at the board's size; ``measure.models`` are the names.
    group
        The name behind the backend's prefix; null for any model.
    serving_workers, maintenance_workers
        Workers of the list that name it, and those of them in maintenance.
    listed_threads, listed_jobs
        What the list says; summed over a group or all models; null when not listed.
    requests_day
        The day's requests by the statistics, compiled once a day; null when not reported.
    strip
        Allowance and state at the sizes of the strip.
    """

    measure: Measure
    group: str | None
    serving_workers: int
    maintenance_workers: int
    listed_threads: int | None
    listed_jobs: float | None
    requests_day: int | None
    strip: tuple[StripCell, ...]

    @property
    def model(self) -> str | None:
        """The model's name; of a group its group name; null for any model."""
        return self.measure.model or self.group

    @property
    def maintenance_share(self) -> float | None:
        """The share of its workers that are in maintenance; null without a worker."""
        return self.maintenance_workers / self.serving_workers if self.serving_workers else None

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader should know of the figures."""
        return self.measure.notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """The horde at a glance; null is not reported.

    ``states`` counts the models by state at the board's size; the workers are those of the list, not of the totals, which the
    server keeps up to five minutes and counts with those in maintenance. ``closed_workers`` has how the listed ones that
    are not open stand, each once. ``speed_tok_per_s`` is of all open workers.
    """

    models: int
    states: Mapping[State, int]
    listed_workers: int
    open_workers: int
    closed_workers: Mapping[str, int]
    unmeasured_workers: int
    threads: int
    speed_tok_per_s: float
    listed_tokens: float | None
    horde_wide_tokens: float | None
    queued_text_requests: float | None
    past_minute_tokens: float | None
    maintenance_mode: bool | None
    invite_only_mode: bool | None
    requests_day: int | None

    @property
    def drain_s(self) -> float | None:
        """Seconds to empty the horde-wide queue at the last minute's pace; it overstates (horde.md §1.5); null if unknown."""
        if self.horde_wide_tokens is None or not self.past_minute_tokens:
            return 0.0 if self.horde_wide_tokens == 0 else None
        return 60.0 * self.horde_wide_tokens / self.past_minute_tokens


@dataclass(frozen=True)
class Board:
    """A snapshot read at one size, context and settings.

    ``rows`` has one row a model, sorted by name; ``any_model`` is the row of a request that names none.
    """

    snapshot: Snapshot
    fleet: Fleet
    max_length: int
    context_tokens: int
    strip_sizes: tuple[int, ...]
    rows: tuple[Row, ...]
    any_model: Row
    pulse: Pulse

    @property
    def settings(self) -> AllowanceSettings:
        """The settings it was read with."""
        return self.fleet.settings

    @cached_property
    def by_model(self) -> Mapping[str, Row]:
        """Model → its row."""
        return {row.measure.models[0]: row for row in self.rows}

    @cached_property
    def groups(self) -> tuple[Row, ...]:
        """One row for the names that are the same model behind their backend's prefix, sorted by that name.

        A group of several names is read as one request that names them all; a group of one is that model's row.
        """
        members: dict[str, list[str]] = {}
        for name in self.by_model:
            members.setdefault(group_name(name), []).append(name)
        reader = _Reader(self.snapshot, self.fleet, self.max_length, self.context_tokens, self.strip_sizes)
        return tuple(
            self.by_model[names[0]] if len(names) == 1 else reader.row(tuple(names), group)
            for group, names in sorted(members.items())
        )

    def frame(self, rows: Iterable[Row] | None = None) -> pl.DataFrame:
        """Return rows (all models' when not given) as a frame of :data:`BOARD_ROWS`, in their order."""
        records = [_record(row) for row in (self.rows if rows is None else rows)]
        columns = {name: [record[name] for record in records] for name in BOARD_ROWS.columns}
        return BOARD_ROWS.checked(pl.DataFrame(columns, schema=BOARD_ROWS.polars_schema(), strict=True))


def make_board(
    snapshot: Snapshot,
    settings: AllowanceSettings,
    *,
    max_length: int = DEFAULT_MAX_LENGTH_TOKENS,
    context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS,
    strip_sizes: tuple[int, ...] = STRIP_SIZES_TOKENS,
) -> Board:
    """Return the board of a snapshot.

    Parameters
    ----------
    snapshot
        Workers and list, with or without totals.
    settings
        The curve, and the speed that an unmeasured worker counts.
    max_length
        The size asked, 1 to 16384 tokens.
    context_tokens
        The context setting; at a larger size the context asked is that size.
    strip_sizes
        The sizes at which every row also has allowance and state.

    Raises
    ------
    InputError
        A size or the context is out of its range.
    FrameError
        A frame of the snapshot does not match its schema.
    """
    check_context(context_tokens)
    for size in (max_length, *strip_sizes):
        check_size(size)
    fleet = Fleet.of(snapshot, settings)
    reader = _Reader(snapshot, fleet, max_length, context_tokens, strip_sizes)
    rows = tuple(reader.row((name,), group_name(name)) for name in fleet.names)
    any_model = reader.row((), None)
    pulse = _pulse(snapshot, fleet, rows, any_model)
    return Board(snapshot, fleet, max_length, context_tokens, strip_sizes, rows, any_model, pulse)


class _Reader:
    """Reads rows of one snapshot at one size, looking the list and the demand up once."""

    def __init__(
        self, snapshot: Snapshot, fleet: Fleet, max_length: int, context_tokens: int, strip_sizes: tuple[int, ...]
    ) -> None:
        self.fleet = fleet
        self.max_length = max_length
        self.context_tokens = context_tokens
        self.strip_sizes = strip_sizes
        models = snapshot.models
        self.listed: dict[str, tuple[int | None, float | None]] = (
            {}
            if models is None
            else {name: (threads, jobs) for name, threads, jobs in models.select("model", "threads", "jobs").iter_rows()}
        )
        demand = snapshot.demand
        self.demand: dict[str, int | None] = {} if demand is None else dict(demand.select("model", "requests_day").iter_rows())
        self.serving = {name: _ids(workers) for name, workers in fleet.serving.items()}
        self.in_maintenance = _ids(worker for worker in fleet.workers if worker.maintenance is True)

    def row(self, models: tuple[str, ...], group: str | None) -> Row:
        pool = self.fleet.pool(models, self.context_tokens)
        measure = measure_pool(self.fleet, pool, self.max_length)
        if models:
            serving = set().union(*(self.serving.get(model, set()) for model in models))
        else:
            serving = {worker.worker_id for worker in self.fleet.workers}
        names = models or tuple(self.listed)
        return Row(
            measure=measure,
            group=group,
            serving_workers=len(serving),
            maintenance_workers=len(serving & self.in_maintenance),
            listed_threads=_total(self.listed[name][0] for name in names if name in self.listed),
            listed_jobs=_total(self.listed[name][1] for name in names if name in self.listed),
            requests_day=_total(self.demand.get(name) for name in models or self.demand),
            strip=tuple(self._cell(pool, measure, size) for size in self.strip_sizes),
        )

    def _cell(self, pool: Pool, measure: Measure, size: int) -> StripCell:
        if size == measure.max_length:
            return StripCell(size, measure.state, measure.allowance_tokens)
        eligible = pool.eligible(size)
        waits = self.fleet.waits(pool.models, eligible)
        allowance = allowance_range(waits, eligible_workers=len(eligible), settings=self.fleet.settings).named
        state = state_of(
            open_workers=len(pool.workers),
            eligible_workers=len(eligible),
            allowance_tokens=allowance,
            settings=self.fleet.settings,
        )
        return StripCell(size, state, allowance)


def _ids(workers: Iterable[Worker]) -> set[str]:
    return {worker.worker_id for worker in workers}


def _total(values: Iterable[N | None]) -> N | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _pulse(snapshot: Snapshot, fleet: Fleet, rows: tuple[Row, ...], any_model: Row) -> Pulse:
    performance, modes, totals = snapshot.performance, snapshot.modes, snapshot.totals
    open_workers = fleet.open_workers
    taking = _ids(open_workers)
    return Pulse(
        models=len(rows),
        states={state: sum(row.measure.state == state for row in rows) for state in STATES},
        listed_workers=len(fleet.workers),
        open_workers=len(open_workers),
        closed_workers=Counter(standing(worker) for worker in fleet.workers if worker.worker_id not in taking),
        unmeasured_workers=sum(not is_measured(worker) for worker in open_workers),
        threads=sum(counted_threads(worker) for worker in open_workers),
        speed_tok_per_s=combined_speed_tok_per_s(open_workers, fleet.settings),
        listed_tokens=None if fleet.listed is None else fleet.listed_tokens,
        horde_wide_tokens=fleet.horde_wide_tokens,
        queued_text_requests=None if performance is None else performance.queued_text_requests,
        past_minute_tokens=None if performance is None else performance.past_minute_tokens,
        maintenance_mode=None if modes is None else modes.maintenance_mode,
        invite_only_mode=None if modes is None else modes.invite_only_mode,
        requests_day=None if totals is None else totals.requests.get("day"),
    )


def _record(row: Row) -> dict[str, object]:
    measure, waits = row.measure, row.measure.waits
    return {
        "model": row.model,
        "group": row.group,
        "state": measure.state,
        "max_length": measure.max_length,
        "max_context_length": measure.max_context_length,
        "eligible_workers": measure.eligible_workers,
        "unmeasured_workers": measure.unmeasured_workers,
        "open_workers": measure.open_workers,
        "serving_workers": row.serving_workers,
        "maintenance_workers": row.maintenance_workers,
        "speed_tok_per_s": measure.speed_tok_per_s,
        "queued_tokens": measure.queued_tokens,
        "wait_low_s": None if waits is None else waits.low_s,
        "wait_named_s": None if waits is None else waits.named_s,
        "wait_high_s": None if waits is None else waits.high_s,
        "wait_worst_s": None if waits is None else waits.worst_s,
        "allowance_tokens": measure.allowance_tokens,
        "allowance_at_high_tokens": measure.allowance_at_high_tokens,
        "allowance_at_low_tokens": measure.allowance_at_low_tokens,
        "largest_free_request_tokens": measure.largest_free_request_tokens,
        "listed_threads": row.listed_threads,
        "listed_jobs": row.listed_jobs,
        "requests_day": row.requests_day,
        "strip_allowance_tokens": [cell.allowance_tokens for cell in row.strip],
        "strip_state": [cell.state for cell in row.strip],
        "notes": [note.text for note in measure.notes],
    }
