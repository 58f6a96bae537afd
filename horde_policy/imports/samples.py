"""Samples in a common long form, whatever the file they came from: series, and runs of equal values.

A **run** is a stretch of a series over which every sample read had the same value: it says as much about a counter as its
samples do, and takes memory for what changed and not for what was written. A run knows when its file last looked at the same
process before it (``prev``), and, where the series is gone while its process is still there, the first look without it
(``next``). Runs of several files are merged by time: the same sample twice is one sample.

Times are integer microseconds since the epoch, UTC; :data:`NO_TIME` is not known, :data:`UNTIMED` is the time of a scrape that
carries none.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.imports.joined import MOST_VALUES, NO_TIME, RUNS, contested, further_value, joined, nth_value
from horde_policy.imports.names import SeriesKey

__all__ = ["NO_TIME", "RUNS", "UNTIMED", "RunBuilder", "Samples", "group_of", "merged", "numbered_instances"]

UNTIMED = -(2**61)
LATEST = 7_258_118_400_000_000

GAP_STEPS = 1.5
"""Within a chunk a run ends where a series was silent for more than so many of its usual steps; whether it was is told later."""

MEDIAN_OF = 2000
"""So many steps, spread over a chunk, tell its usual one."""

LONGEST_SILENCE_S = 300.0
"""No run reaches over a longer time without a sample: a collector forgets a series that was silent for longer."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Samples:
    """Series and their runs; ``conflicts`` counts samples that gave one series two values at one time (the larger is kept)."""

    keys: tuple[SeriesKey, ...]
    runs: pl.DataFrame
    conflicts: int = 0

    @property
    def cumulative(self) -> npt.NDArray[np.bool_]:
        """Return, for each series, whether its values count up."""
        return np.array([key.temporality == "cumulative" for key in self.keys], dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Runs of one chunk of a file, sorted; ``bins`` is null where no histogram is native."""

    sid: npt.NDArray[np.uint32]
    start: Ints
    t_from: Ints
    t_to: Ints
    value: Floats
    bins: list[list[float] | None] | None


@dataclass(slots=True)
class RunBuilder:
    """Turns chunks of samples of one file into runs; memory goes with what changes, not with what is read."""

    lookback: bool = False
    entire: bool = False
    unusable: dict[str, int] = field(default_factory=dict)
    points: dict[int, int] = field(default_factory=dict)
    _numbers: dict[SeriesKey, int] = field(default_factory=dict)
    _views: dict[tuple[str, str], int] = field(default_factory=dict)
    _view_of: list[int] = field(default_factory=list)
    _times: dict[int, Ints] = field(default_factory=dict)
    _chunks: list[_Chunk] = field(default_factory=list)
    _further: dict[int, list[_Chunk]] = field(default_factory=dict)
    _at_odds: list[tuple[npt.NDArray[np.uint32], Ints]] = field(default_factory=list)

    @property
    def keys(self) -> Collection[SeriesKey]:
        """Return the series known so far, in the order of their numbers."""
        return self._numbers.keys()

    def number(self, key: SeriesKey) -> int:
        """Return the number of a series within this file."""
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self._view_of.append(self._views.setdefault((key.instance, key.family), len(self._views)))
        return self._numbers[key]

    def add(
        self, sid: npt.NDArray[np.uint32], start: Ints, t: Ints, value: Floats, bins: Sequence[list[float] | None] | None = None
    ) -> None:
        """Take samples in any order; ``start`` is :data:`NO_TIME` where not said. Unusable values are counted, not kept."""
        nan = np.isnan(value)
        wrong = ~nan & ~((value >= 0) & (value < np.inf))
        misplaced = (t != UNTIMED) & ((t < 0) | (t > LATEST))
        wrong &= ~misplaced
        reasons = ("no value (NaN: the series went away)", "a negative or infinite count", "a time before 1970 or after 2199")
        for reason, mask in zip(reasons, (nan, wrong, misplaced), strict=True):
            if n := int(mask.sum()):
                self.unusable[reason] = self.unusable.get(reason, 0) + n
        kept = ~(nan | wrong | misplaced)
        if not kept.all():
            sid, start, t, value = sid[kept], start[kept], t[kept], value[kept]
            bins = None if bins is None else [one for one, use in zip(bins, kept.tolist(), strict=True) if use]
        if sid.size:
            self._look(sid, t)
            self._chunks.append(self._compacted(sid, start, t, value, bins))

    def _look(self, sid: npt.NDArray[np.uint32], t: Ints) -> None:
        """Remember when the file looked at each process and family, and how many samples each series had."""
        counts = np.bincount(sid)
        for number in np.flatnonzero(counts).tolist():
            self.points[number] = self.points.get(number, 0) + int(counts[number])
        view = np.asarray(self._view_of, dtype=np.int64)[sid]
        times = np.unique(t)
        looked = np.zeros((len(self._views), times.size), dtype=np.bool_)
        looked[view, np.searchsorted(times, t)] = True
        for number in np.flatnonzero(looked.any(axis=1)).tolist():
            own = times[looked[number]]
            self._times[number] = np.union1d(self._times[number], own) if number in self._times else own

    def _compacted(
        self,
        sid: npt.NDArray[np.uint32],
        start: Ints,
        t: Ints,
        value: Floats,
        bins: Sequence[list[float] | None] | None,
    ) -> _Chunk:
        order = _order(sid, start, t, value)
        sid, start, t, value = sid[order], start[order], t[order], value[order]
        same = (sid[1:] == sid[:-1]) & (start[1:] == start[:-1])
        step = np.diff(t)
        again = same & (step == 0)
        if again.any():
            return self._greatest(order, np.append(~again, True), (sid, start, t, value), bins)
        usual = float(np.median(step[same][:: max(1, step.size // MEDIAN_OF)])) if same.any() else 0.0
        goes_on = same & (np.diff(value) == 0) & (step <= min(GAP_STEPS * usual, LONGEST_SILENCE_S * 1e6))
        cumulative = np.array([key.temporality == "cumulative" for key in self._numbers], dtype=np.bool_)
        goes_on &= cumulative[sid[1:]]
        first, last = np.append(True, ~goes_on), np.append(~goes_on, True)
        held = None if bins is None else [bins[place] for place in order[first].tolist()]
        return _Chunk(sid[first], start[first], t[first], t[last], value[first], held)

    def _greatest(
        self,
        order: Ints,
        last: npt.NDArray[np.bool_],
        columns: tuple[npt.NDArray[np.uint32], Ints, Ints, Floats],
        bins: Sequence[list[float] | None] | None,
    ) -> _Chunk:
        """Return the runs of the greatest value at each time, which is its last; what is less is set aside, by its place."""
        sids, starts, times, value = columns
        distinct = last | np.append(np.diff(value) != 0, True)
        place = np.cumsum(distinct)
        ends = place[last]
        nth = ends[np.searchsorted(ends, place)] - place + 1

        def of(mask: npt.NDArray[np.bool_]) -> _Chunk:
            held = None if bins is None else [bins[place] for place in order[mask].tolist()]
            return self._compacted(sids[mask], starts[mask], times[mask], value[mask], held)

        # of the distinct alone: what equals the very first value has no place of its own
        for number in range(2, min(int(nth[distinct].max()), MOST_VALUES) + 1):
            mask = distinct & (nth == number)
            self._further.setdefault(number, []).append(of(mask))
            self._at_odds.append((sids[mask], times[mask]))
        return of(last)

    def finish(self) -> Samples:
        """Return the file's series and runs, sorted by series, start time and time."""
        runs, conflicts = self._apart()
        keys = tuple(self._numbers)
        samples = Samples(keys, runs, conflicts)
        of_instance: dict[str, list[int]] = {}
        for (instance, _), view in self._views.items():
            of_instance.setdefault(instance, []).append(view)
        kin = {view: views for views in of_instance.values() for view in views} if self.entire else {}
        runs = _linked(samples, np.asarray(self._view_of, dtype=np.int64), self._times, kin)
        return _with_known_starts(Samples(keys, runs, samples.conflicts))

    def _apart(self) -> tuple[pl.DataFrame, int]:
        """Return the runs, and how many values gave way; where that is the rule those are runs of further series."""
        (chunks, self._chunks), (further, self._further) = (self._chunks, []), (self._further, {})
        runs, lost = self._gathered(chunks)
        found = [*self._at_odds, _times_of(lost)]
        sid, t = (np.concatenate([one[place] for one in found]) for place in (0, 1))
        keys = tuple(self._numbers)
        instance = np.array([hash(key.instance) for key in keys], dtype=np.int64)
        wide: set[int] = set()
        for number in np.unique(instance[sid]).tolist():
            views = np.unique(np.asarray(self._view_of, dtype=np.int64)[instance == number]).tolist()
            looks = max((self._times[view].size for view in views if view in self._times), default=0)
            if contested(t[instance[sid] == number], looks):
                wide.update(np.flatnonzero(instance == number).tolist())
        parts = [runs]
        pieces = [(2, pl.DataFrame(lost, schema=RUNS))] if lost else []
        pieces += [(nth, self._gathered(held)[0]) for nth, held in further.items()] if wide else []
        for nth, frame in pieces:
            mine = frame.filter(pl.col("sid").is_in(sorted(wide)))
            numbers = {number: self.number(further_value(keys[number], nth)) for number in mine["sid"].unique().to_list()}
            parts.append(mine.with_columns(pl.col("sid").replace_strict(numbers, return_dtype=pl.UInt32)))
        if len(parts) > 1:
            runs, _ = joined(pl.concat(parts))
        return runs, int((~np.isin(sid, sorted(wide))).sum())

    def _gathered(self, chunks: list[_Chunk]) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
        """Return the runs of chunks, sorted and joined, and what gave way."""
        if not chunks:
            return pl.DataFrame(schema=RUNS), []
        names = ("sid", "start", "t_from", "t_to", "value")
        sid, start, t_from, t_to, value = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in names)
        order = _order(sid, start, t_from, value)
        never = np.full(sid.size, NO_TIME)
        columns = {"sid": sid[order], "start": start[order], "t_from": t_from[order], "t_to": t_to[order], "value": value[order]}
        runs = pl.DataFrame(columns | {"low": value[order], "prev": never, "next": never})
        bins: pl.Expr | pl.Series = pl.lit(None, dtype=RUNS["bins"])
        if any(chunk.bins is not None for chunk in chunks):
            held = [one for chunk in chunks for one in (chunk.bins or [None] * chunk.sid.size)]
            bins = pl.Series([held[place] for place in order.tolist()], dtype=RUNS["bins"], strict=False)
        runs = runs.with_columns(lookback=pl.lit(self.lookback), entire=pl.lit(self.entire), bins=bins)
        runs = runs.select(pl.col(name).cast(dtype) for name, dtype in RUNS.items())
        sid, start, t_from, t_to = (columns[name] for name in ("sid", "start", "t_from", "t_to"))
        overlap = (sid[1:] == sid[:-1]) & (start[1:] == start[:-1]) & (t_from[1:] <= t_to[:-1])
        return joined(runs) if overlap.any() else (runs, [])


def _order(sid: npt.NDArray[np.uint32], start: Ints, t: Ints, value: Floats) -> Ints:
    """Return the order of samples by series, start, time and value; by one number where they fit into it."""
    least = int(t.min())
    bits = int(t.max() - least).bit_length()
    if bits + int(sid.max()).bit_length() > 62 or (start != start[0]).any():
        return np.lexsort((value, t, start, sid))
    place = (sid.astype(np.int64) << bits) | (t - least)
    order: Ints = pl.Series(place).arg_sort().to_numpy().astype(np.int64)
    ties = np.flatnonzero(np.diff(place[order]) == 0)
    return np.lexsort((value, t, start, sid)) if ties.size else order


def _times_of(lost: Sequence[dict[str, Any]]) -> tuple[npt.NDArray[np.uint32], Ints]:
    sid, t = ([one[name] for one in lost] for name in ("sid", "t_from"))
    return np.array(sid, dtype=np.uint32), np.array(t, dtype=np.int64)


def _set_apart(samples: Samples, lost: Sequence[dict[str, Any]]) -> tuple[Samples | None, int]:
    """Return what gave way in merging as further series, of the processes for which that is the rule, and how much else did.

    The series are null if it is the rule for none.
    """
    sid, t = _times_of(lost)
    instance = np.array([hash(key.instance) for key in samples.keys], dtype=np.int64)
    known = [number for number, key in enumerate(samples.keys) if nth_value(key) > 1]
    wide = set(np.flatnonzero(np.isin(instance, instance[known])).tolist())
    of_runs = instance[samples.runs["sid"].to_numpy()]
    for number in np.unique(instance[sid]).tolist():
        looks = np.unique(samples.runs["t_from"].to_numpy()[of_runs == number]).size
        if contested(t[instance[sid] == number], looks):
            wide.update(np.flatnonzero(instance == number).tolist())
    rows = [one for one in lost if one["sid"] in wide and nth_value(samples.keys[one["sid"]]) < MOST_VALUES]
    others = sum(one["sid"] not in wide for one in lost)
    if not rows:
        return None, others
    numbers: dict[SeriesKey, int] = {}
    for one in rows:
        key = samples.keys[one["sid"]]
        one["sid"] = numbers.setdefault(further_value(key, nth_value(key) + 1), len(numbers))
    return Samples(tuple(numbers), pl.DataFrame(rows, schema=RUNS)), others


def merged(parts: Iterable[Samples]) -> Samples:
    """Return the samples of several files as one; the result depends neither on their order nor on repetition (exports.md 8).

    Start times that one file knows hold for the same series of another that does not carry them.
    """
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    numbers: dict[SeriesKey, int] = {}
    frames, conflicts = [], 0
    for part in parts:
        own = np.array([numbers.setdefault(key, len(numbers)) for key in part.keys], dtype=np.uint32)
        conflicts = max(conflicts, part.conflicts)
        if part.runs.height:
            frames.append(part.runs.with_columns(pl.Series("sid", own[part.runs["sid"].to_numpy()], dtype=pl.UInt32)))
    keys = tuple(sorted(numbers, key=_key_order))
    place = np.empty(len(keys), dtype=np.uint32)
    place[[numbers[key] for key in keys]] = np.arange(len(keys), dtype=np.uint32)
    runs = pl.concat(frames) if frames else pl.DataFrame(schema=RUNS)
    runs = runs.with_columns(pl.Series("sid", place[runs["sid"].to_numpy()], dtype=pl.UInt32))
    samples = _with_known_starts(Samples(keys, runs))
    whole, lost = joined(samples.runs)
    further, others = _set_apart(Samples(keys, whole), lost) if lost else (None, 0)
    if further is not None:
        return merged([Samples(keys, whole, conflicts + others), further])
    return Samples(keys, _looked_across(keys, whole), conflicts + others)


def _looked_across(keys: tuple[SeriesKey, ...], runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs with ``prev`` as all files together know it that show everything there is of a process."""
    views: dict[tuple[str, str], int] = {}
    view_of = np.array([views.setdefault((key.instance, key.family), len(views)) for key in keys], dtype=np.int64)
    if not runs.height or not runs["entire"].any():
        return runs
    view = view_of[runs["sid"].to_numpy()]
    entire, t_from, prev = (runs[name].to_numpy() for name in ("entire", "t_from", "prev"))
    latest = prev.copy()
    for number in np.unique(view[entire]):
        mine = np.flatnonzero((view == number) & entire)
        looks = np.unique(np.concatenate([runs[name].to_numpy()[mine] for name in ("t_from", "t_to", "prev", "next")]))
        before = np.searchsorted(looks, t_from[mine], side="left") - 1
        latest[mine] = np.maximum(prev[mine], np.where(before >= 0, looks[np.maximum(before, 0)], NO_TIME))
    return runs.with_columns(prev=pl.Series(latest))


def _key_order(key: SeriesKey) -> tuple[str, ...]:
    return tuple("" if part is None else f"{part:.17e}" if isinstance(part, float) else str(part) for part in key)


def _linked(samples: Samples, view_of: Ints, times: dict[int, Ints], kin: dict[int, list[int]]) -> pl.DataFrame:
    """Return the runs with the file's looks before and after them, and those that no look parts as one.

    A look is at the series of one family of a process, its view. ``kin`` are views of one process: where a file shows all there
    is of it, a look at another family tells that a family is not there yet.
    """
    runs = samples.runs
    if not runs.height:
        return runs
    sid, start, t_from, t_to = (runs[name].to_numpy() for name in ("sid", "start", "t_from", "t_to"))
    value = runs["value"].to_numpy()
    view = view_of[sid]
    prev, following, last_look = (np.full(runs.height, NO_TIME) for _ in range(3))
    for number, looks in times.items():
        mine = view == number
        before = np.searchsorted(looks, t_from[mine], side="left") - 1
        after = np.searchsorted(looks, t_to[mine], side="right")
        prev[mine] = np.where(before >= 0, looks[np.maximum(before, 0)], NO_TIME)
        for other in kin.get(number, ()):
            alone = mine & (prev == NO_TIME)
            before = np.searchsorted(times[other], t_from[alone], side="left") - 1
            prev[alone] = np.where(before >= 0, times[other][np.maximum(before, 0)], NO_TIME)
        following[mine] = np.where(after < looks.size, looks[np.minimum(after, looks.size - 1)], NO_TIME)
        last_look[mine] = looks[-1]
    same = (sid[1:] == sid[:-1]) & (start[1:] == start[:-1])
    goes_on = same & (value[1:] == value[:-1]) & (prev[1:] == t_to[:-1]) & samples.cumulative[sid[1:]]
    goes_on &= t_from[1:] - t_to[:-1] <= LONGEST_SILENCE_S * 1e6
    first, last = np.append(True, ~goes_on), np.append(~goes_on, True)
    back = np.append(same & (t_from[1:] <= following[:-1]), False)
    gone = (following != NO_TIME) & ~back & (following < last_look)  # a file's last look may be cut short
    linked = runs.with_columns(prev=prev, next=np.where(gone, following, NO_TIME))
    closing = linked.filter(pl.Series(last))
    return linked.filter(pl.Series(first)).with_columns(t_to=closing["t_to"], next=closing["next"]).select(*RUNS)


def _with_known_starts(samples: Samples) -> Samples:
    """Return the samples with start times learned: from ``_created`` values, and from other files' samples of the same series.

    A run that reaches over a later start is cut there: what follows belongs to the new process.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, key in enumerate(samples.keys):
        if key.temporality == "cumulative":
            groups.setdefault(group_of(key), []).append(number)
    created = np.array([key.part == "created" for key in samples.keys], dtype=np.bool_)
    runs = samples.runs
    if not created.any() and (runs["start"] == NO_TIME).n_unique() < 2:
        return samples  # none has a start time, or all have
    sid, start, t_from, value = (runs[name].to_numpy() for name in ("sid", "start", "t_from", "value"))
    said = np.rint(np.where(created[sid], np.minimum(value, LATEST / 1e6), 0.0) * 1e6).astype(np.int64)
    known = np.where(created[sid], np.where(said < LATEST, said, NO_TIME), start)
    frames = [runs.filter(pl.Series(~created[sid] & ((start != NO_TIME) | ~samples.cumulative[sid])))]
    by_sid = np.argsort(sid, kind="stable")
    edges = np.searchsorted(sid[by_sid], np.arange(len(samples.keys) + 1))
    for members in groups.values():
        rows = np.concatenate([by_sid[edges[number] : edges[number + 1]] for number in members])
        unknown = np.sort(rows[(start[rows] == NO_TIME) & ~created[sid[rows]]])
        telling = rows[known[rows] != NO_TIME]
        if unknown.size and telling.size:
            starts, of = np.unique(known[telling], return_inverse=True)
            first_seen = np.full(starts.size, LATEST)
            here = created[sid[telling]]  # in the same file, so that every look of the run is a look at it
            np.minimum.at(first_seen, of[here], t_from[telling[here]])
            frames.append(_cut_at(runs[unknown], starts, first_seen))
        elif unknown.size:
            frames.append(runs[unknown])
    return Samples(samples.keys, pl.concat(frames).sort("sid", "start", "t_from", "t_to"), samples.conflicts)


def numbered_instances(samples: Samples) -> dict[str, int]:
    """Return the processes by their numbers, in the order of the series."""
    numbers: dict[str, int] = {}
    for key in samples.keys:
        numbers.setdefault(key.instance, len(numbers))
    return numbers


def group_of(key: SeriesKey) -> tuple[Any, ...]:
    """Return what the parts of one histogram, or one counter, have in common."""
    return (key.instance, key.family, *key[5:11])


def _cut_at(runs: pl.DataFrame, starts: Ints, first_seen: Ints) -> pl.DataFrame:
    """Return runs of unknown start with the latest of ``starts`` at or before each, cut where one falls inside.

    Of a run only its first and last sample are known: what precedes a cut ends with the first, what follows begins where that
    start was first seen in the same file, or with the last. A life between them that it has no sample of gets none.
    """
    t_from, t_to = runs["t_from"].to_numpy(), runs["t_to"].to_numpy()
    first, last = (np.searchsorted(starts, t, side="right") for t in (t_from, t_to))
    pieces = last - first + 1
    row = np.repeat(np.arange(runs.height), pieces)
    nth = np.arange(row.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    own = first[row] + nth
    latest = np.where(own == last[row], t_to[row], starts[np.minimum(own, starts.size - 1)] - 1)
    seen = first_seen[np.maximum(own - 1, 0)]
    begin = np.where(nth == 0, t_from[row], np.where(seen <= latest, seen, latest))
    end = np.where(own == last[row], latest, begin)
    between = (nth > 0) & (own < last[row])
    cut = runs[row].with_columns(
        start=np.where(own == 0, NO_TIME, starts[np.maximum(own - 1, 0)]),
        t_from=begin,
        t_to=end,
        prev=np.where(nth == 0, runs["prev"].to_numpy()[row], NO_TIME),
        next=np.where(own == last[row], runs["next"].to_numpy()[row], NO_TIME),
    )
    return cut.filter(pl.Series(~between))
