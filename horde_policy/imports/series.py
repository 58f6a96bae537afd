"""From samples to increments: how much each series grew over each interval, and between which bounds that is known.

A counter's growth between two looks is the difference of its values; the first value after a restart counts in full. The first
value inside the window counts in full when the series was born there, belongs to the time before when it existed, and is an
interval from zero to itself when nothing tells which (exports.md 3). Deltas and answers of ``increase()`` are added, never
differenced (exports.md 6, 7).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.imports.joined import nth_value
from horde_policy.imports.restarts import FORGET_S, Restart, Restarts, Rows, find_restarts
from horde_policy.imports.samples import NO_TIME, Samples, numbered_instances

__all__ = ["INCREMENTS", "Grown", "Window", "increments"]

INCREMENTS = {
    "sid": pl.UInt32,
    "layout": pl.Int64,
    "t0": pl.Int64,
    "t1": pl.Int64,
    "low": pl.Float64,
    "high": pl.Float64,
    "before": pl.Boolean,
    "row": pl.Int64,
    "from_row": pl.Int64,
}
"""Series, number of the life of its histogram (buckets of one life belong together), interval, bounds of the growth, whether it
belongs to the time before the window; and for native histograms the runs it is the difference of (−1: from zero)."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SLACK_STEPS = 1.5
"""A life that began within so many steps before the first look began with the window."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time that is asked about, in µs; null bounds are the first and the last sample."""

    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Runs cut at restarts: each lies within one life of its series. ``row`` is its run; ``seen_after`` bounds its restart."""

    row: Ints
    t_from: Ints
    t_to: Ints
    prev: Ints
    life: Ints
    seen_after: Ints


@dataclass(frozen=True, slots=True)
class Grown:
    """What grew (:data:`INCREMENTS`), the restarts, and the runs that both were told from.

    ``layouts`` says when each series was seen in each life of its histogram: ``sid``, ``layout``, ``first``, ``last``.
    """

    frame: pl.DataFrame
    layouts: pl.DataFrame
    restarts: Restarts
    rows: Rows


def increments(samples: Samples, window: Window, lookback_us: int) -> Grown:
    """Return how much every series grew over each interval."""
    rows = Rows.of(samples)
    restarts = find_restarts(rows, lookback_us)
    numbers = numbered_instances(samples)
    restarts.contested.update(numbers[key.instance] for key in samples.keys if nth_value(key) > 1)
    steps = rows.own_steps()
    first = _first_look(samples, window)
    pieces = _cut(rows, restarts, lookback_us)
    frames = [_cumulative(rows, restarts, pieces, steps, first), *_added(samples, first)]
    frame = pl.concat(frames).with_columns(
        low=pl.when(pl.col("sid").is_in(_of_many(samples, restarts))).then(0.0).otherwise("low")
    )
    return Grown(_within(frame, window), _layouts(samples, rows, pieces), restarts, rows)


def _first_look(samples: Samples, window: Window) -> int:
    """Return when the window begins: the first sample, or the start asked for where that is later."""
    least = samples.runs["t_from"].min() if samples.runs.height else NO_TIME
    first = int(least) if isinstance(least, int) else NO_TIME
    return first if window.start is None else max(first, window.start)


def _of_many(samples: Samples, restarts: Restarts) -> list[int]:
    """Return the series that several processes write."""
    numbers, many = numbered_instances(samples), restarts.interleaved | restarts.contested
    return [sid for sid, key in enumerate(samples.keys) if numbers[key.instance] in many]


def _layout(rows: Rows, pieces: _Pieces) -> Ints:
    """Return the number of the life of each piece's histogram, across all series of it."""
    return rows.unit[pieces.row] * 65536 + np.minimum(pieces.life, 65535)


def _layouts(samples: Samples, rows: Rows, pieces: _Pieces) -> pl.DataFrame:
    columns = {"sid": rows.sid[pieces.row], "layout": _layout(rows, pieces), "first": pieces.t_from, "last": pieces.t_to}
    frame = pl.DataFrame(columns, schema={"sid": pl.UInt32, "layout": pl.Int64, "first": pl.Int64, "last": pl.Int64})
    added = samples.runs.filter(pl.Series(~samples.cumulative[samples.runs["sid"].to_numpy()], dtype=pl.Boolean))
    added = added.select(
        "sid", pl.lit(-1, dtype=pl.Int64).alias("layout"), pl.col("t_from").alias("first"), pl.col("t_to").alias("last")
    )
    frame = pl.concat([frame, added])
    return frame.group_by("sid", "layout").agg(pl.col("first").min(), pl.col("last").max()).sort("sid", "layout")


def _cumulative(rows: Rows, restarts: Restarts, pieces: _Pieces, steps: dict[int, int], first: int) -> pl.DataFrame:
    if not rows.sid.size:
        return pl.DataFrame(schema=INCREMENTS)
    row, value = pieces.row, rows.value[pieces.row]
    after = np.zeros(row.size, dtype=np.bool_)
    after[1:] = (rows.sid[row[1:]] == rows.sid[row[:-1]]) & (rows.start[row[1:]] == rows.start[row[:-1]])
    after[1:] &= pieces.life[1:] == pieces.life[:-1]
    earlier = np.where(after, np.roll(value, 1), 0.0)
    last_seen = np.where(after, np.roll(pieces.t_to, 1), NO_TIME)
    high = np.maximum(value - earlier, 0.0)
    t0 = np.maximum(pieces.prev, last_seen)
    reborn = ~after & (pieces.life > 0)
    t0 = np.where(reborn & (pieces.prev < pieces.seen_after), pieces.seen_after, t0)
    born = ~after & (pieces.life == 0)
    step = np.array([steps.get(int(number), 0) for number in range(int(rows.instance.max()) + 1)], dtype=np.int64)[
        rows.instance[row]
    ]
    low, t0, high, before = _first_values(rows, restarts, pieces, born, step, first, t0, high)
    columns = {
        "sid": rows.sid[row],
        "layout": _layout(rows, pieces),
        "t0": t0,
        "t1": pieces.t_from,
        "low": low,
        "high": high,
        "before": before,
        "row": row,
        "from_row": np.where(after, np.roll(row, 1), -1),
    }
    grown = pl.DataFrame(columns).select(pl.col(name).cast(dtype) for name, dtype in INCREMENTS.items())
    return grown.filter(pl.col("high") > 0)


def _first_values(
    rows: Rows, restarts: Restarts, pieces: _Pieces, born: Flags, step: Ints, first: int, t0: Ints, high: Floats
) -> tuple[Floats, Ints, Floats, Flags]:
    """Return the growths with each series' first value judged: born inside, existed before, or not known (exports.md 3, 4)."""
    row = pieces.row
    start, prev, t1 = rows.start[row], pieces.prev, pieces.t_from
    started = start != NO_TIME
    baseline = born & started & (t1 == start)  # a first point of no duration is where the counting was taken over
    high = np.where(baseline, 0.0, high)
    at_begin = (t1 == first) | (t1 - first < step)
    begins = started & (start >= first - (SLACK_STEPS * step).astype(np.int64))
    sparse = np.isin(rows.instance[row], list(restarts.sparse))
    forgotten = ~sparse | (t1 - first > FORGET_S * 1e6)
    inside = np.where(started, begins, (prev != NO_TIME) & forgotten)
    before = born & ~inside & at_begin
    unknown = born & ~inside & ~at_begin
    low = np.where(unknown, 0.0, high)
    t0 = np.where(born & started, np.maximum(t0, start), t0)
    t0 = np.where(unknown, np.maximum(t0, first), t0)
    return low, t0, high, before


def _cut(rows: Rows, restarts: Restarts, lookback_us: int) -> _Pieces:
    """Return the runs cut at the restarts of their instance and unit; repeats of a series that is gone are left out."""
    size = rows.sid.size
    first, last = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    marks: dict[int, list[Restart]] = {}
    for instance, whole in restarts.whole.items():
        for unit in np.unique(rows.unit[(rows.instance == instance) & (rows.start == NO_TIME)]).tolist():
            marks[unit] = sorted([*whole, *restarts.own.get(unit, [])], key=lambda one: one.seen)
    for unit, own in restarts.own.items():
        marks.setdefault(unit, own)
    if not marks:
        return _Pieces(np.arange(size), rows.t_from, rows.t_to, rows.prev, first, np.full(size, NO_TIME))
    of_unit = np.argsort(rows.unit, kind="stable")
    edges = np.searchsorted(rows.unit[of_unit], np.arange(int(rows.unit.max()) + 2))
    base = np.zeros(size, dtype=np.int64)
    seen: list[int] = []
    after: list[int] = []
    for unit, list_ in marks.items():
        mine = of_unit[edges[unit] : edges[unit + 1]]
        times = np.array([one.seen for one in list_], dtype=np.int64)
        first[mine] = np.searchsorted(times, rows.t_from[mine], side="right")
        last[mine] = np.searchsorted(times, rows.t_to[mine], side="right")
        base[mine] = len(seen)
        seen.extend(one.seen for one in list_)
        after.extend(one.after for one in list_)
    all_seen, all_after = np.array([*seen, NO_TIME], dtype=np.int64), np.array([*after, NO_TIME], dtype=np.int64)
    count = last - first + 1
    row = np.repeat(np.arange(size), count)
    nth = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    life = first[row] + nth
    mark = base[row] + life - 1
    begin = np.where(nth == 0, rows.t_from[row], all_seen[mark])
    ends = np.where(life == last[row], rows.t_to[row], np.maximum(begin, all_after[np.minimum(mark + 1, len(seen))]))
    prev = np.where(nth == 0, rows.prev[row], all_after[mark])
    born_of = np.where(life > 0, all_after[mark], NO_TIME)
    repeats = (nth > 0) & rows.lookback[row] & (ends <= begin + lookback_us)
    kept = ~repeats
    return _Pieces(row[kept], begin[kept], ends[kept], prev[kept], life[kept], born_of[kept])


def _added(samples: Samples, first: int) -> list[pl.DataFrame]:
    """Return deltas, answers of ``increase()`` that do not overlap, and what was counted before, as growths."""
    if not samples.runs.height:
        return []
    frames = []
    kinds = np.array([key.temporality for key in samples.keys])[samples.runs["sid"].to_numpy()]
    for kind in ("delta", "increase", "counted"):
        runs = samples.runs.filter(pl.Series(kinds == kind))
        if not runs.height:
            continue
        if kind == "increase":
            runs = _apart(samples, runs)
        t1 = pl.col("t_to")
        t0 = pl.when(pl.col("start") == NO_TIME).then("prev").otherwise("start")
        grown = runs.with_columns(t0.alias("t0"), t1.alias("t1"))
        length = grown.filter(pl.col("t0") != NO_TIME).select((pl.col("t1") - pl.col("t0")).median()).item() or 0.0
        begins = (pl.col("t0") != NO_TIME) & (pl.col("t0") >= first - SLACK_STEPS * length)
        begins = begins if kind == "delta" else pl.lit(value=True)
        before = ~begins & ((pl.col("t0") == NO_TIME) | (pl.col("t1") - first <= length))
        grown = grown.with_columns(
            before=before,
            low=pl.when(~begins & ~before).then(0.0).otherwise("low"),
            high=pl.col("value"),
            layout=pl.lit(-1),
            row=pl.lit(-1),
            from_row=pl.lit(-1),
        )
        frames.append(grown.select(pl.col(name).cast(dtype) for name, dtype in INCREMENTS.items()).filter(pl.col("high") > 0))
    return frames


def _apart(samples: Samples, runs: pl.DataFrame) -> pl.DataFrame:
    """Return the answers of ``increase()`` whose ranges do not overlap, the same times for all series of a process."""
    views = {(key.instance, key.family) for key in samples.keys}
    frames = []
    for view in sorted(views):
        mine = [number for number, key in enumerate(samples.keys) if (key.instance, key.family) == view]
        own = runs.filter(pl.col("sid").is_in(mine))
        taken, reach = [], NO_TIME
        for start, end in own.select("start", "t_to").unique().sort("t_to", "start").iter_rows():
            if start >= reach:
                taken.append(end)
                reach = end
        frames.append(own.filter(pl.col("t_to").is_in(taken)))
    return pl.concat(frames)


def _within(frame: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Return the growths inside the window; one that reaches over its edge lies inside with between none and all of it."""
    if window.start is not None:
        earlier = pl.col("t1") <= window.start
        across = ~earlier & (pl.col("t0") < window.start) & ~pl.col("before")
        frame = frame.with_columns(before=pl.col("before") | earlier, low=pl.when(across).then(0.0).otherwise("low"))
    if window.end is not None:
        frame = frame.filter(pl.col("before") | (pl.col("t0") < window.end))
        across = (pl.col("t1") > window.end) & ~pl.col("before")
        frame = frame.with_columns(low=pl.when(across).then(0.0).otherwise("low"))
    return frame
