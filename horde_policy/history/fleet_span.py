"""A range of the history on the grid of its polls: what each worker was at each poll, as arrays.

Read once, it gives the figures of any request over the range by additions of whole arrays, in the order in which the policy adds
workers, so that they are the board's to the last bit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.errors import InputError
from horde_policy.history.reading import model_changes, part_changes, polls_between, worker_changes
from horde_policy.history.states import parts_from_bodies, profile_fields
from horde_policy.history.store import HistoryStore
from horde_policy.settings import AllowanceSettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = ["GONE", "OPEN", "STANDINGS", "FleetSpan", "ListedSpan", "Profiles", "WorkerSpan", "load_span"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]

STANDINGS = ("gone", "offline", "maintenance", "flagged", "open")
"""How a worker stands at a poll; only an ``open`` one serves strangers. Of several, the first in this order is told."""
GONE, OFFLINE, MAINTENANCE, FLAGGED, OPEN = range(5)


@dataclass(frozen=True, slots=True)
class WorkerSpan:
    """One worker from the first poll of a range at which it is there: one value a poll from ``first`` on.

    Attributes
    ----------
    worker_id
        Whose.
    first
        The place of its first poll in the range.
    standing
        How it stands, as an index of :data:`STANDINGS`.
    profile
        Its profile, as an index of the span's profiles; −1 while it is gone.
    own_speed
        Its measured speed; NaN while it has none, which the rules replace by the assumed one (A8).
    """

    worker_id: str
    first: int
    standing: npt.NDArray[np.int8]
    profile: Counts
    own_speed: Floats

    @property
    def open_(self) -> Flags:
        """At which polls it serves strangers: there, online, not in maintenance, its owner not flagged."""
        return np.equal(self.standing, OPEN)


@dataclass(frozen=True, slots=True)
class ListedSpan:
    """What the list says of one model at each poll: whether it names it, queued tokens and jobs (NaN: not reported)."""

    listed: Flags
    queued_tokens: Floats
    jobs: Floats


@dataclass(frozen=True)
class Profiles:
    """The distinct profiles of a range, as arrays by index; sizes of 0 are not reported."""

    names: tuple[str | None, ...]
    models: tuple[tuple[str, ...], ...]
    max_length: Counts
    max_context_length: Counts
    threads: Counts
    measured: Flags
    standing: npt.NDArray[np.int8]

    @classmethod
    def of(cls, bodies: list[str]) -> "Profiles":
        """Return the profiles of these JSON texts."""
        read = [profile_fields(body) for body in bodies]
        return cls(
            names=tuple(one["name"] for one in read),
            models=tuple(tuple(one["models"] or ()) for one in read),
            max_length=np.array([one["max_length"] or 0 for one in read], np.int64),
            max_context_length=np.array([one["max_context_length"] or 0 for one in read], np.int64),
            threads=np.array([max(1, one["threads"] or 1) for one in read], np.int64),
            measured=np.array([one["measured"] is True for one in read], np.bool_),
            standing=np.array([_standing(one) for one in read], np.int8),
        )

    def serving(self, models: tuple[str, ...]) -> Flags:
        """Return which of them serve any of these models (empty: any model)."""
        wanted = set(models)
        return np.array([not models or not wanted.isdisjoint(names) for names in self.models], np.bool_)

    def sizes(self, context_tokens: int) -> Counts:
        """Return the largest size that each takes of a plain request at this context setting; 0 if it takes none."""
        largest = np.minimum(np.minimum(self.max_length, self.max_context_length), MAX_LENGTH_LIMIT_TOKENS)
        return np.where(self.max_context_length >= context_tokens, largest, 0)


@dataclass(frozen=True)
class FleetSpan:
    """A range of one source, on the grid of its polls.

    Attributes
    ----------
    polls
        Frame :data:`horde_policy.history.reading.POLL_ROWS`.
    workers
        Every worker that was there, sorted by id.
    profiles
        What they declared.
    models
        What the list said of each model that was asked for.
    whole_list
        Whether every model of the list is in ``models``.
    horde_wide_tokens
        The horde-wide queue at each poll; NaN: not reported. Null if it was not read.
    asked
        The models that the list was read for; of those that it never names there is nothing in ``models``.
    """

    polls: pl.DataFrame
    workers: tuple[WorkerSpan, ...]
    profiles: Profiles
    models: Mapping[str, ListedSpan]
    whole_list: bool
    horde_wide_tokens: Floats | None
    asked: frozenset[str] = frozenset()
    _served: dict[int, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def height(self) -> int:
        """How many polls the range has."""
        return self.polls.height

    @cached_property
    def models_known(self) -> Flags:
        """At which polls the list could be had."""
        return self.polls["models_known"].to_numpy()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every model that was listed or served over the range, sorted."""
        served = {name for names in self.profiles.models for name in names}
        return tuple(sorted(served | {name for name, span in self.models.items() if span.listed.any()}))

    def listed(self, model: str) -> ListedSpan:
        """Return what the list says of a model.

        Raises
        ------
        InputError
            The range was read for other models only.
        """
        found = self.models.get(model)
        if found is not None:
            return found
        if not self.whole_list and model not in self.asked:
            raise InputError("range of the history", "model", model, "was not read: the range was read for other models")
        nothing = np.full(self.height, np.nan)
        return ListedSpan(np.zeros(self.height, np.bool_), nothing, nothing)

    def counted(self, worker: WorkerSpan, settings: AllowanceSettings) -> Floats:
        """Return the speed that the rules count for a worker at each of its polls (A7, A8)."""
        speed = np.where(np.isnan(worker.own_speed), settings.assumed_speed_tok_per_s, worker.own_speed)
        return speed * self.profiles.threads[worker.profile] if settings.count_threads else speed


def _standing(declared: Mapping[str, Any]) -> int:
    """Return how a worker stands by its flags; what is not reported does not exclude it."""
    if declared["online"] is False:
        return OFFLINE
    if declared["maintenance"] is True:
        return MAINTENANCE
    return FLAGGED if declared["flagged"] is True else OPEN


def load_span(
    store: HistoryStore,
    start: datetime,
    end: datetime,
    *,
    models: tuple[str, ...] | None = None,
    with_horde_wide: bool = False,
    source: str | None = None,
) -> FleetSpan:
    """Return a range of a source, read once for any number of questions.

    Parameters
    ----------
    store, start, end, source
        Of the range: the poll that holds at ``start`` and all up to ``end``.
    models
        Read the list for these only; null: the whole list.
    with_horde_wide
        Also read the horde-wide queue, which the worst wait needs.

    Raises
    ------
    InputError
        The range ends before it starts, or the source is not in the store.
    StoreError
        The store cannot be read, or holds no poll.
    """
    if end < start:
        raise InputError("range of the history", "end", end.isoformat(), f"must not lie before its start, {start.isoformat()}")
    with store.reading():  # all of one state, though a recorder writes meanwhile
        polls = polls_between(store, start, end, source)
        workers = worker_changes(store, start, end, source)
        listed = model_changes(store, start, end, models, source)
        performance = part_changes(store, start, end, ("performance",), source) if with_horde_wide else None
    horde_wide = None if performance is None else _horde_wide(performance, polls)
    bodies = workers["profile"].drop_nulls().unique(maintain_order=True).to_list()
    profiles = Profiles.of(bodies)
    return FleetSpan(
        polls=polls,
        workers=tuple(_worker_spans(workers, polls, bodies, profiles)),
        profiles=profiles,
        models=_listed_spans(listed, polls),
        whole_list=models is None,
        horde_wide_tokens=horde_wide,
        asked=frozenset(models or ()),
    )


def _places(changes: pl.DataFrame, polls: pl.DataFrame) -> Counts:
    """Return the place of each change's poll in the range."""
    return np.searchsorted(polls["at"].to_physical().to_numpy(), changes["at"].to_physical().to_numpy())


def _pieces(changes: pl.DataFrame, key: str) -> Iterator[tuple[str, int, int]]:
    """Yield each key with the first and the end of its rows; the frame is sorted by key."""
    names = changes[key]
    starts = [0, *(np.flatnonzero((names != names.shift(1)).to_numpy()[1:]) + 1).tolist()] if changes.height else []
    for begin, end in pairwise([*starts, changes.height]):
        yield names[begin], begin, end


def _held(places: Counts, height: int) -> Counts:
    """Return the row that holds at each poll from the first of these places on."""
    return np.repeat(np.arange(places.size), np.diff(np.r_[places, height]))


def _worker_spans(changes: pl.DataFrame, polls: pl.DataFrame, bodies: list[str], profiles: Profiles) -> Iterator[WorkerSpan]:
    index = pl.DataFrame({"profile": bodies, "number": np.arange(len(bodies))}, schema={"profile": pl.String, "number": pl.Int64})
    rows = changes.join(index, on="profile", how="left", maintain_order="left")
    profile = rows["number"].fill_null(-1).to_numpy()
    measured = np.append(profiles.measured, False)[profile]  # of profile −1, a worker that is gone
    standing = np.append(profiles.standing, np.int8(GONE))[profile]
    speed = rows["speed_tok_per_s"].fill_null(0.0).to_numpy()
    own_speed = np.where(measured & (speed > 0), speed, np.nan)
    places = _places(rows, polls)
    for worker_id, begin, end in _pieces(rows, "worker_id"):
        held = begin + _held(places[begin:end], polls.height)
        yield WorkerSpan(worker_id, int(places[begin]), standing[held], profile[held], own_speed[held])


def _listed_spans(changes: pl.DataFrame, polls: pl.DataFrame) -> dict[str, ListedSpan]:
    places = _places(changes, polls)
    listed = changes["listed"].to_numpy()
    queued, jobs = (changes[name].fill_null(np.nan).to_numpy() for name in ("queued_tokens", "jobs"))
    spans = {}
    for model, begin, end in _pieces(changes, "model"):
        first = int(places[begin])
        held = begin + _held(places[begin:end], polls.height)

        def whole(values: Any, before: Any, *, held: Counts = held, first: int = first) -> Any:
            return np.concatenate([np.full(first, before), values[held]])

        spans[model] = ListedSpan(whole(listed, False), whole(queued, np.nan), whole(jobs, np.nan))  # noqa: FBT003
    return spans


def _horde_wide(changes: pl.DataFrame, polls: pl.DataFrame) -> Floats:
    values = [parts_from_bodies({"performance": body}).performance for body in changes["body"].to_list()]
    queued = np.array([np.nan if v is None or v.queued_tokens is None else v.queued_tokens for v in values], np.float64)
    places = _places(changes, polls)
    if not places.size:
        return np.full(polls.height, np.nan)
    return np.concatenate([np.full(int(places[0]), np.nan), queued[_held(places, polls.height)]])
