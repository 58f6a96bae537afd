"""The mean allowance that a histogram of estimated waits implies, as sharp bounds (budgets.md §12).

The allowance is linear between the marks, so inside a bucket only the mean wait matters, and the exported sum of all waits
narrows it. What is left is a linear programme over where in its bucket each wait may lie.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

from horde_policy.review.sampling import Bounds
from horde_policy.settings import AllowanceSettings

__all__ = ["MeanAllowance", "mean_allowance"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MeanAllowance:
    """What is known of the mean allowance, in tokens, before each is rounded down (which takes less than a token, A4).

    Attributes
    ----------
    by_buckets
        From the bucket counts alone.
    tokens
        With the sum of the waits, where it is known and does not contradict the buckets.
    sum_contradicts
        Whether no waits inside the buckets add up to the exported sum.
    """

    by_buckets: Bounds
    tokens: Bounds
    sum_contradicts: bool


@dataclass(frozen=True, slots=True)
class _Places:
    """Where waits may lie: of each place its bucket, wait and allowance; of each bucket its counts and whether it has no end."""

    bucket: npt.NDArray[np.int64]
    wait_s: Floats
    tokens: Floats
    low: Floats
    high: Floats
    endless: npt.NDArray[np.bool_]


def mean_allowance(waits: pl.DataFrame, settings: AllowanceSettings, sum_s: Bounds | None = None) -> MeanAllowance | None:
    """Return the bounds of the mean allowance; null where nothing was counted.

    Parameters
    ----------
    waits
        Schema :data:`~horde_policy.frames.waits.WAITS`, estimated waits only.
    settings
        The settings in force, which gave the allowances.
    sum_s
        The exported sum of exactly these waits in seconds; null if not known.

    Notes
    -----
    The bounds are attained, or approached at a bucket's open lower end. Requests without an eligible worker have no wait and are
    not in the mean (A26).

    Examples
    --------
    >>> rows = pl.DataFrame({"lower_s": [0.0, 60.0, 300.0], "upper_s": [60.0, 300.0, float("inf")],
    ...     "count_low": [700.0, 200.0, 100.0], "count_high": [700.0, 200.0, 100.0]})
    >>> mean = mean_allowance(rows, AllowanceSettings(), Bounds(60_000, 60_000))
    >>> [round(one, 1) for one in (mean.by_buckets.low, mean.by_buckets.high, mean.tokens.low, mean.tokens.high)]
    [3020.8, 3737.6, 3468.8, 3737.6]
    """
    buckets = waits.group_by("lower_s", "upper_s").agg(pl.col("count_low", "count_high").sum()).sort("lower_s", "upper_s")
    buckets = buckets.filter(pl.col("count_high") > 0)
    if not buckets.height:
        return None
    places = _places(buckets, settings)
    by_buckets = _bounds(places, None)
    if by_buckets is None:
        return None
    narrowed = None if sum_s is None else _bounds(places, sum_s)
    return MeanAllowance(by_buckets, narrowed or by_buckets, sum_s is not None and narrowed is None)


def _real_allowance(wait_s: float, settings: AllowanceSettings) -> float:
    fall = settings.ceiling_tokens - settings.floor_tokens
    down = (wait_s - settings.wait_full_s) / (settings.wait_floor_s - settings.wait_full_s)
    return settings.ceiling_tokens - fall * min(1.0, max(0.0, down))


def _places(buckets: pl.DataFrame, settings: AllowanceSettings) -> _Places:
    marks = (settings.wait_full_s, settings.wait_floor_s)
    found: list[tuple[int, float]] = []
    for number, (lower, upper) in enumerate(buckets.select("lower_s", "upper_s").iter_rows()):
        ends = {lower, *(mark for mark in marks if lower < mark < upper), *([upper] if math.isfinite(upper) else [])}
        found.extend((number, wait) for wait in sorted(ends))
    return _Places(
        bucket=np.array([number for number, _ in found], dtype=np.int64),
        wait_s=np.array([wait for _, wait in found]),
        tokens=np.array([_real_allowance(wait, settings) for _, wait in found]),
        low=buckets["count_low"].to_numpy(),
        high=buckets["count_high"].to_numpy(),
        endless=np.isinf(buckets["upper_s"].to_numpy()),
    )


def _bounds(places: _Places, sum_s: Bounds | None) -> Bounds | None:
    """Return the least and the largest mean allowance; null where no waits inside the buckets have the sum.

    Unknowns: the share of all waits at each place; one over the number of waits (the programme is a quotient, in Charnes and
    Cooper's form); how much longer than its places' waits the endless bucket is, per wait, which costs no allowance.
    """
    count, buckets = places.wait_s.size, places.low.size
    scale = float(places.high.sum())
    own = (places.bucket[None, :] == np.arange(buckets)[:, None]).astype(np.float64)
    none = np.zeros((buckets, 1))
    rows = [np.hstack([own, -places.high[:, None] / scale, none]), np.hstack([-own, places.low[:, None] / scale, none])]
    right = [np.zeros(buckets), np.zeros(buckets)]
    if sum_s is not None:
        reach = max(1.0, float(places.wait_s.max()))
        longer = 1.0 if places.endless.any() else 0.0
        for sign, end in ((1.0, sum_s.high), (-1.0, sum_s.low)):
            rows.append(np.hstack([sign * places.wait_s / reach, [-sign * end / scale / reach, sign * longer]])[None, :])
            right.append(np.zeros(1))
    everything = np.hstack([np.ones(count), [0.0, 0.0]])[None, :]
    ends = []
    for sign in (1.0, -1.0):
        answer = scipy.optimize.linprog(
            sign * np.hstack([places.tokens, [0.0, 0.0]]),
            A_ub=np.vstack(rows),
            b_ub=np.concatenate(right),
            A_eq=everything,
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
        )
        if not answer.success:
            return None
        ends.append(sign * float(answer.fun))
    return Bounds(*ends)
