"""Where processes restarted, told from counters that carry no start time.

A restart resets a whole process: one series that falls resets all of its instance, also those that have already passed their
old value again (exports.md 1). A histogram is judged by what each of its buckets holds: while the counts up to each bound all
grow, one bucket may still have lost. Three things look alike and are not:

- A series that is not born again yet shows its old value for up to the look-back in answers of ``query_range`` (exports.md 2);
  its later fall belongs to the restart that has been seen.
- A collector that turns deltas into cumulative sums forgets one series that was silent for five minutes, and starts that one
  from zero (horde.md §7.1). A series that comes back after such a silence counts in full, whether it fell or not; its fall is
  its own where series come and go all the time, or where another shows that the process went on: it would have had to grow
  many times faster than it ever did.
- Where several processes write one series in turn, falls mean nothing; that is told by their number (exports.md 5).
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.imports.samples import LONGEST_SILENCE_S, NO_TIME, Samples, group_of, numbered_instances

__all__ = ["Restart", "Restarts", "Rows", "find_restarts"]

FORGET_S = LONGEST_SILENCE_S
"""Silence after which a collector forgets one series (``deltatocumulative``, ``max_stale``)."""

PLAUSIBLE_GROWTH = 4.0
"""A restart is refuted by a series that would have grown in one step more than so many times its greatest growth."""

ENOUGH_STEPS = 8
"""Fewer steps of growth refute nothing."""

INTERLEAVED_SHARE, INTERLEAVED_LEAST = 0.2, 10
"""More restarts than this share of all steps, and at least so many: several processes write the same series in turn."""

SPARSE_SHARE, SPARSE_LEAST = 0.1, 3
"""Series that go while their process stays, at more than this share of the times at which anything changed: they are written
only when they count."""

_RETURN, _FALL, _GONE, _LOSS = 0, 1, 2, 3
"""What tells that counting began again, judged in this order at one time: a series comes back after a silence at which its
process was looked at, it fell, it is gone while its process stays, or a bucket lost."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart between two looks at a process: after ``after``, at or before ``seen``."""

    after: int
    seen: int


@dataclass(frozen=True, slots=True)
class Rows:
    """The runs of cumulative series as arrays, sorted by series, start and time, with what their series belong to."""

    sid: Ints
    start: Ints
    t_from: Ints
    t_to: Ints
    prev: Ints
    next: Ints
    lookback: npt.NDArray[np.bool_]
    value: npt.NDArray[np.float64]
    instance: Ints
    unit: Ints
    is_sum: npt.NDArray[np.bool_]
    upper_s: npt.NDArray[np.float64]
    same: npt.NDArray[np.bool_]
    """Whether the run before is of the same series and start."""
    bins: pl.Series

    @classmethod
    def of(cls, samples: Samples) -> "Rows":
        """Return the runs of the samples' cumulative series."""
        runs = samples.runs.filter(samples.cumulative[samples.runs["sid"].to_numpy()]) if samples.runs.height else samples.runs
        runs = runs.sort("sid", "start", "t_from")
        sid = runs["sid"].to_numpy().astype(np.int64)
        start = runs["start"].to_numpy()
        numbers = numbered_instances(samples)
        instance = np.array([numbers[key.instance] for key in samples.keys], dtype=np.int64)
        groups: dict[tuple[object, ...], int] = {}
        group = np.array([groups.setdefault(group_of(key), len(groups)) for key in samples.keys], dtype=np.int64)
        sums = np.array([key.part == "sum" for key in samples.keys], dtype=np.bool_)
        bounds = [key.upper_s if key.part == "le" and key.upper_s is not None else np.nan for key in samples.keys]
        upper_s = np.array(bounds, dtype=np.float64)
        same = np.zeros(sid.size, dtype=np.bool_)
        same[1:] = (sid[1:] == sid[:-1]) & (start[1:] == start[:-1])
        heads = np.flatnonzero(~same)
        units: dict[tuple[int, int], int] = {}
        pairs = zip(group[sid[heads]].tolist(), start[heads].tolist(), strict=True)
        of_stream = np.array([units.setdefault(pair, len(units)) for pair in pairs], dtype=np.int64)
        unit = np.repeat(of_stream, np.diff(np.append(heads, sid.size)))
        columns = {name: runs[name].to_numpy() for name in ("t_from", "t_to", "prev", "next", "lookback", "value")}
        of_series = {"instance": instance[sid], "is_sum": sums[sid], "upper_s": upper_s[sid]}
        return cls(sid=sid, start=start, unit=unit, same=same, **of_series, **columns, bins=runs["bins"])

    def steps(self) -> dict[int, int]:
        """Return each instance's usual time between two looks, in µs; those that were looked at once are left out."""
        looks = pl.DataFrame({"instance": self.instance, "apart": self.t_from - self.prev}).filter(
            pl.Series(self.prev != NO_TIME)
        )
        return {number: int(apart) for number, apart in looks.group_by("instance").median().iter_rows()}

    def own_steps(self) -> dict[int, int]:
        """Return each instance's usual time between two looks that show the same series, in µs.

        That is longer than between two looks where several processes write one series in turn; where files of several
        observers are read together, the single file tells.
        """
        apart = self.t_from[1:] - self.t_to[:-1]
        own = pl.DataFrame({"instance": self.instance[1:], "apart": apart}).filter(pl.Series(self.same[1:], dtype=pl.Boolean))
        looked = self.steps()
        quartile = own.group_by("instance").agg(pl.col("apart").quantile(0.25))
        return looked | {number: max(int(step), looked.get(number, 0)) for number, step in quartile.iter_rows()}


@dataclass(slots=True)
class Restarts:
    """Restarts of whole instances, and of single counters or histograms (by unit: one with one start time).

    ``interleaved`` are instances in which several processes write the same series in turn, ``contested`` those in which they do
    so at the same instants, ``sparse`` those whose series are written only when they count.
    """

    whole: dict[int, list[Restart]] = field(default_factory=dict)
    own: dict[int, list[Restart]] = field(default_factory=dict)
    interleaved: set[int] = field(default_factory=set)
    contested: set[int] = field(default_factory=set)
    sparse: set[int] = field(default_factory=set)


def find_restarts(rows: Rows, lookback_us: int) -> Restarts:
    """Return where counters started again from zero, judged on the whole instance (exports.md 1, 2, 5)."""
    found = Restarts()
    slack = np.where(rows.is_sum, 1e-9 * rows.value + 1e-6, 0.0)
    fell = rows.same.copy()
    fell[1:] &= rows.value[1:] < rows.value[:-1] - slack[:-1]
    own: dict[int, list[Restart]] = defaultdict(list)
    started = rows.start != NO_TIME
    for row in np.flatnonzero(fell & started).tolist():
        own[int(rows.unit[row])].append(Restart(int(rows.t_to[row - 1]), int(rows.t_from[row])))
    lost = _bucket_losses(rows)
    troubled = {*rows.instance[(fell | ((rows.next != NO_TIME) & ~rows.lookback)) & ~started].tolist(), *lost}
    steps = rows.steps()
    for instance in sorted(troubled):
        mine = np.flatnonzero((rows.instance == instance) & ~started)
        _Judge(rows, mine, fell, lost.get(instance, []), lookback_us, steps.get(instance, 0)).judge(instance, found, own)
    found.own = {unit: _in_order(restarts) for unit, restarts in own.items()}
    return found


def _bucket_losses(rows: Rows) -> dict[int, list[int]]:
    """Return, for each instance, the rows at whose beginning some bucket of a classic histogram held less than before."""
    classic = np.flatnonzero(~np.isnan(rows.upper_s) & (rows.start == NO_TIME))
    by_unit = classic[np.lexsort((rows.upper_s[classic], rows.unit[classic]))]
    found: dict[int, list[int]] = defaultdict(list)
    for of_unit in np.split(by_unit, np.flatnonzero(np.diff(rows.unit[by_unit])) + 1) if by_unit.size else []:
        streams = np.split(of_unit, np.flatnonzero(np.diff(rows.sid[of_unit])) + 1)
        looks, place = np.unique(rows.t_from[of_unit], return_index=True)
        upto = np.zeros((looks.size, len(streams) + 1))
        for number, stream in enumerate(streams, start=1):
            at = np.searchsorted(rows.t_from[stream], looks, side="right") - 1
            there = (at >= 0) & (looks <= rows.t_to[stream[np.maximum(at, 0)]])
            upto[:, number] = np.where(there, rows.value[stream[np.maximum(at, 0)]], np.nan)
        held = np.diff(upto, axis=1)
        with np.errstate(invalid="ignore"):
            less = (held[1:] < held[:-1]).any(axis=1)
        found[int(rows.instance[of_unit[0]])].extend(of_unit[place[1:][less]].tolist())
    return {instance: lost for instance, lost in found.items() if lost}


def _in_order(restarts: list[Restart]) -> list[Restart]:
    """Return restarts by time, those that are seen at one time as one."""
    by_time: dict[int, Restart] = {}
    for restart in sorted(restarts, key=lambda one: (one.seen, one.after)):
        by_time[restart.seen] = restart
    return list(by_time.values())


@dataclass(slots=True)
class _Judge:
    """Judges the falls and disappearances of one instance in the order of time."""

    rows: Rows
    mine: Ints
    fell: npt.NDArray[np.bool_]
    lost: list[int]
    lookback_us: int
    step: int
    _busiest: list[Ints] = field(init=False)

    def __post_init__(self) -> None:
        counting = self.mine[~self.rows.is_sum[self.mine]]
        streams = np.split(counting, np.flatnonzero(~self.rows.same[counting])[1:]) if counting.size else []
        self._busiest = sorted(streams, key=lambda stream: (-stream.size, int(self.rows.sid[stream[0]])))[:3]

    def judge(self, instance: int, found: Restarts, own: dict[int, list[Restart]]) -> None:
        rows = self.rows
        whole: list[Restart] = []
        gone = self.mine[rows.next[self.mine] != NO_TIME]
        steps = self._steps()
        changes = np.unique(rows.t_from[self.mine]).size
        sparse = np.unique(rows.next[gone]).size > max(SPARSE_LEAST, SPARSE_SHARE * changes)
        if sparse:
            found.sparse.add(instance)
        for seen, kind, row in sorted(self._events(gone[:0] if sparse else gone[~rows.lookback[gone]], sparse=sparse)):
            unit = int(rows.unit[row])
            if kind != _GONE and (self._belongs(row, whole) or any(one.seen == seen for one in own[unit][-1:])):
                continue
            after = int(rows.t_to[row] if kind == _GONE else rows.t_to[row - 1] if rows.same[row] else rows.prev[row])
            if kind == _RETURN:
                own[unit].append(Restart(after, seen))
            elif kind == _FALL or not any(after < one.seen <= seen for one in whole[-3:]):
                if self._is_whole(row, kind, seen, sparse=sparse):
                    whole.append(Restart(after, seen))
                elif kind != _GONE:
                    own[unit].append(Restart(after, seen))
        if len(whole) >= INTERLEAVED_LEAST and len(whole) > INTERLEAVED_SHARE * steps:
            found.interleaved.add(instance)
        if whole:
            found.whole[instance] = _in_order(whole)

    def _steps(self) -> float:
        span = int(self.rows.t_to[self.mine].max() - self.rows.t_from[self.mine].min())
        return span / self.step if self.step else 1.0

    def _events(self, gone: Ints, *, sparse: bool) -> list[tuple[int, int, int]]:
        """Return what tells that counting began again, as (time, what, row).

        Where series are written only when they count, silence alone tells it, if what the series then shows can be the growth of
        one step.
        """
        rows = self.rows
        falls = self.mine[self.fell[self.mine]]
        later = self.mine[rows.same[self.mine]]
        absent = rows.prev[later] > rows.t_to[later - 1]
        silent = rows.t_from[later] - rows.t_to[later - 1] > FORGET_S * 1e6
        missing = rows.t_from[later] - rows.t_to[later - 1] > 1.5 * self.step
        forgotten = silent | (rows.lookback[later] & missing)
        if sparse:
            absent |= missing & (rows.value[later] <= PLAUSIBLE_GROWTH * self._greatest_growth()[later])
        back = later[absent & forgotten]
        events = [(int(rows.t_from[row]), _RETURN, row) for row in back.tolist()]
        events += [(int(rows.t_from[row]), _FALL, row) for row in falls.tolist()]
        events += [(int(rows.next[row]), _GONE, row) for row in gone.tolist()]
        return events + [(int(rows.t_from[row]), _LOSS, row) for row in self.lost]

    def _greatest_growth(self) -> npt.NDArray[np.float64]:
        """Return, for each row, the greatest growth of its series from one sample to the next."""
        rows = self.rows
        grown = np.where(rows.same, rows.value - np.roll(rows.value, 1), 0.0)
        heads = np.flatnonzero(~rows.same)
        sizes = np.diff(np.append(heads, rows.sid.size))
        return np.repeat(np.maximum(np.maximum.reduceat(grown, heads), 1.0), sizes)

    def _belongs(self, row: int, whole: list[Restart]) -> bool:
        """Return whether a fall is the late rebirth of a series after a restart that is known already."""
        if not self.rows.same[row]:
            return False
        rows, before = self.rows, row - 1
        last = next((one for one in reversed(whole) if one.seen <= rows.t_from[row]), None)
        if last is None or rows.t_from[before] >= last.seen:
            return False
        return bool(rows.t_to[before] < last.seen or (rows.lookback[row] and rows.t_to[before] <= last.seen + self.lookback_us))

    def _is_whole(self, row: int, kind: int, seen: int, *, sparse: bool) -> bool:
        """Return whether the whole process began again, and not one series that a collector forgot.

        A counter that stood still was silent; only one that was silent for long can have been forgotten.
        """
        rows = self.rows
        if kind == _FALL and rows.t_from[row] - rows.t_from[row - 1] <= FORGET_S * 1e6 - self.step:
            return True
        return not (sparse or self._refuted(seen))

    def _refuted(self, seen: int) -> bool:
        """Return whether one of the busiest series could not have grown from zero to what it shows at that look.

        One that is not there at that look refutes nothing: it may be gone with its process. Neither does an old value that an
        answer on a grid repeats.
        """
        rows = self.rows
        for stream in self._busiest:
            at = int(np.searchsorted(rows.t_from[stream], seen, side="right")) - 1
            before = int(np.searchsorted(rows.t_from[stream], seen, side="left")) - 1
            if stream.size <= ENOUGH_STEPS or before < 0 or rows.value[stream[at]] < rows.value[stream[before]]:
                continue
            if rows.t_to[stream[at]] < seen or (at == before and self._may_repeat(stream, at)):
                continue
            growth = np.diff(rows.value[stream])
            if rows.value[stream[at]] > PLAUSIBLE_GROWTH * growth.max():
                return True
        return False

    def _may_repeat(self, stream: Ints, at: int) -> bool:
        """Return whether a value that stands still may be one that is repeated for the look-back: it does not grow from there."""
        rows = self.rows
        if not rows.lookback[stream[at]] or at + 1 >= stream.size:
            return bool(rows.lookback[stream[at]])
        here, later = stream[at], stream[at + 1]
        return bool(rows.value[later] < rows.value[here] or rows.t_from[later] - rows.t_to[here] > 1.5 * self.step)
