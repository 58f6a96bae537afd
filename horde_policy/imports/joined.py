"""Runs of one series that overlap: equal ones become one, and of two values at one time one gives way.

Where that is the rule and not a slip, several processes write the same series at the same instants, without a label that tells
them apart. What gave way is then kept as a series of its own, the second or third value at one time, so that together they hold
what was counted; which value is whose is not known, and no growth of such a process is more than an interval (exports.md 5).
"""

from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.imports.names import SeriesKey

__all__ = ["MOST_VALUES", "NO_TIME", "RUNS", "contested", "further_value", "joined", "nth_value"]

NO_TIME = -(2**62)

RUNS: dict[str, Any] = {
    "sid": pl.UInt32,
    "start": pl.Int64,
    "t_from": pl.Int64,
    "t_to": pl.Int64,
    "value": pl.Float64,
    "low": pl.Float64,
    "prev": pl.Int64,
    "next": pl.Int64,
    "lookback": pl.Boolean,
    "entire": pl.Boolean,
    "bins": pl.List(pl.Float64),
}
"""Columns of the runs: series number, start time, first and last sample, value (``low``: its lower bound), looks, and whether the
file repeats values of series that went away (``lookback``) or shows all there are of a process (``entire``); ``bins`` of a native
histogram as lower, upper, count, lower, …"""

MOST_VALUES = 16
"""So many values of one series at one time are kept apart."""

CONTESTED_SHARE, CONTESTED_LEAST = 0.1, 10
"""Two values at more than this share of the times at which a process was looked at, and at so many at least: the series of
several processes."""

_NTH = "__at_one_time__"  # no label of an export: those with two underscores on both sides are left out


def nth_value(key: SeriesKey) -> int:
    """Return which of several values at one time a series holds: 1 for the greatest, and for all where there is one."""
    return int(key.extra.split('"', 2)[1]) if key.extra.startswith(_NTH) else 1


def further_value(key: SeriesKey, nth: int) -> SeriesKey:
    """Return the series of the ``nth`` value at one time."""
    plain = key.extra.partition('"')[2].partition('"')[2].removeprefix(",") if key.extra.startswith(_NTH) else key.extra
    return key._replace(extra=f'{_NTH}="{nth}"' + ("," + plain if plain else ""))


def contested(at_odds: npt.NDArray[np.int64], looks: int) -> bool:
    """Return whether two values at one time are the rule, from the times at which there were and how many there are."""
    times = np.unique(at_odds).size
    return times >= CONTESTED_LEAST and times > CONTESTED_SHARE * looks


def joined(runs: pl.DataFrame) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Return the runs sorted, those of one value that overlap in time as one, and the pieces that had to give way to another."""
    runs = runs.sort("sid", "start", "t_from")
    if runs.height < 2:
        return runs, []
    if runs.select(pl.all_horizontal(pl.col("sid", "start", "t_from") == pl.col("sid", "start", "t_from").shift(1)).any()).item():
        runs = runs.sort("sid", "start", "t_from", "t_to", "value", "prev", "next")
    stream = (pl.col("sid") != pl.col("sid").shift(1)) | (pl.col("start") != pl.col("start").shift(1))
    runs = runs.with_columns(stream.fill_null(value=True).cum_sum().alias("stream"))
    reach = pl.col("t_to").cum_max().over("stream").shift(1)
    overlaps = ((pl.col("stream") == pl.col("stream").shift(1)) & (pl.col("t_from") <= reach)).fill_null(value=False)
    runs = runs.with_columns(
        overlaps.alias("overlaps"), (pl.col("value") == pl.col("value").shift(1)).fill_null(value=False).alias("equal")
    )
    at_odds = runs.filter(pl.col("overlaps") & ~pl.col("equal"))["stream"].unique()
    if at_odds.len():
        cut, lost = _cut_conflicts(_once(runs.filter(pl.col("stream").is_in(at_odds.implode()))))
        rest, _ = joined(runs.filter(~pl.col("stream").is_in(at_odds.implode())).select(*RUNS))
        return pl.concat([rest, cut]).sort("sid", "start", "t_from"), lost
    if not runs["overlaps"].any():
        return runs.select(*RUNS), []
    latest = pl.col("t_to") == pl.col("t_to").max()
    whole = runs.group_by((~pl.col("overlaps")).cum_sum().alias("run"), maintain_order=True).agg(
        pl.col("sid", "start", "t_from").first(),
        pl.col("t_to").max(),
        pl.col("value", "low").first(),
        pl.col("prev").filter(pl.col("t_from") == pl.col("t_from").min()).max(),
        pl.col("next").filter(latest).max(),
        pl.col("lookback").all(),
        pl.col("entire").any(),
        pl.col("bins").first(),
    )
    return whole.select(*RUNS), []


def _once(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs without repetitions, so that a file that is there twice changes no cut."""
    same = ["sid", "start", "t_from", "t_to", "value"]
    others = [pl.col(name).first() for name in ("low", "lookback", "entire", "bins")]
    return runs.group_by(same, maintain_order=True).agg(pl.col("prev").max(), pl.col("next").max(), *others).select(*RUNS)


def _cut_conflicts(runs: pl.DataFrame) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Return runs that do not overlap, and what gave way.

    Where two values claim one time the shorter run stands inside the longer.
    This is a sample out of order, or two records at odds: at the very same time the larger value is kept.
    """
    kept: list[dict[str, Any]] = []
    lost: list[dict[str, Any]] = []
    order = ("sid", "start", "t_from", "t_to", "value", "prev", "next")
    waiting = [(*(run[name] for name in order), nth, run) for nth, run in enumerate(runs.select(*RUNS).rows(named=True))]
    heapify(waiting)
    nth = len(waiting)
    while waiting:
        run = heappop(waiting)[-1]
        last = kept[-1] if kept else None
        if last is None or (last["sid"], last["start"]) != (run["sid"], run["start"]) or run["t_from"] > last["t_to"] + 1:
            kept.append(run)
            continue
        if run["value"] == last["value"]:
            prev = max(last["prev"], run["prev"]) if run["t_from"] == last["t_from"] else last["prev"]
            following = max(one["next"] for one in (last, run) if one["t_to"] == max(last["t_to"], run["t_to"]))
            kept[-1] = {**last, "t_to": max(last["t_to"], run["t_to"]), "prev": prev, "next": following}
            continue
        if run["t_from"] > last["t_to"]:  # what was cut, and goes on
            kept.append(run)
            continue
        kept.pop()
        pieces = [{**last, "t_to": run["t_from"] - 1, "next": NO_TIME}] if last["t_from"] < run["t_from"] else []
        both = max(last, run, key=lambda one: one["value"]) if last["t_from"] == run["t_from"] else run
        end = min(last["t_to"], run["t_to"])
        loser = run if both is last else last
        lost.append({**loser, "t_from": run["t_from"], "t_to": end, "prev": NO_TIME, "next": NO_TIME})
        pieces.append({**both, "t_from": run["t_from"], "t_to": end})
        longer = last if last["t_to"] > run["t_to"] else run
        if longer["t_to"] > end:
            pieces.append({**longer, "t_from": end + 1, "prev": NO_TIME})
        kept.extend(pieces[:-1])
        nth += 1
        heappush(waiting, (*(pieces[-1][name] for name in order), nth, pieces[-1]))
    return pl.DataFrame(kept, schema=RUNS), lost
