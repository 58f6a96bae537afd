"""Shares of counts, with what the counts leave open and what sampling adds.

A count read from exported metrics is known exactly or between two bounds (exports.md 3). A share of such counts is an interval
already; the 95 % interval around it is Clopper and Pearson's at the worst corner of the counts, on as many requests as the
data are worth: requests that come in bursts share their wait, so n is divided by the design effect of blocks of time (Korn and
Graubard's interval). Clopper and Pearson's limits rise with the part and fall with the rest, so the corners bound the box.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

__all__ = ["LEVEL", "Bounds", "Share", "design_effect", "difference", "limits", "paired_margin", "share_of", "shares"]

LEVEL = 0.95
"""The confidence of every interval, if nothing else is said."""

FEWEST_BLOCKS = 5
"""With fewer blocks of time with counts the design effect is not known and taken as 1."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """At least ``low`` and at most ``high``; both equal where the figure is known."""

    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Return whether the figure is known."""
        return self.low == self.high

    @property
    def middle(self) -> float:
        """Return the middle of the two bounds."""
        return (self.low + self.high) / 2

    def __add__(self, other: "Bounds") -> "Bounds":
        return Bounds(self.low + other.low, self.high + other.high)


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a total, each known between bounds.

    Attributes
    ----------
    part, rest, total
        Counts of the part, of the others and of everything. What may be of either counts in the high bounds of both, so the
        total may be known where neither is.
    low, high
        The share as far as the counts decide it.
    sampling_low, sampling_high
        The interval that holds the share behind the counts with the stated confidence.
    design_effect
        By how much the total was divided for the interval, because requests come in bursts.
    """

    part: Bounds
    rest: Bounds
    total: Bounds
    low: float
    high: float
    sampling_low: float
    sampling_high: float
    design_effect: float = 1.0

    @property
    def middle(self) -> float:
        """Return the middle of what the counts allow."""
        return (self.low + self.high) / 2


def limits(part: npt.ArrayLike, rest: npt.ArrayLike, level: float = LEVEL) -> tuple[Floats, Floats]:
    """Return the lower and the upper limit of Clopper and Pearson for ``part`` hits beside ``rest`` others.

    Counts may be fractions. Nothing at all gives 0 and 1. The limits hold the share at least so often as ``level`` says.

    Examples
    --------
    >>> low, high = limits(10, 90)
    >>> round(float(low), 4), round(float(high), 4)
    (0.049, 0.1762)
    >>> [float(limit) for limit in limits(0, 0)]
    [0.0, 1.0]
    """
    k, r = np.broadcast_arrays(np.asarray(part, dtype=np.float64), np.asarray(rest, dtype=np.float64))
    tail = (1 - level) / 2
    low = np.where(k > 0, scipy.special.betaincinv(np.where(k > 0, k, 1.0), r + 1, tail), 0.0)
    high = np.where(r > 0, scipy.special.betaincinv(k + 1, np.where(r > 0, r, 1.0), 1 - tail), 1.0)
    return low, high


def shares(
    part: tuple[npt.ArrayLike, npt.ArrayLike],
    rest: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    effect: npt.ArrayLike = 1.0,
    level: float = LEVEL,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return low, high, sampling low and sampling high of many shares; not a number where there may be nothing at all.

    Parameters
    ----------
    part, rest
        Low and high bounds of the part's counts and of the others' counts.
    effect
        The design effects.
    level
        The confidence of the sampling limits.

    Examples
    --------
    >>> low, high, _, _ = shares(([10.0], [20.0]), ([80.0], [90.0]))
    >>> low.tolist(), high.tolist()
    ([0.1], [0.2])
    """
    part_low, part_high = (np.asarray(one, dtype=np.float64) for one in part)
    rest_low, rest_high = (np.asarray(one, dtype=np.float64) for one in rest)
    scale = np.asarray(effect, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        least = part_low / (part_low + rest_high)
        most = part_high / (part_high + rest_low)
    # a corner without any count says nothing; without any count at all there is no share
    some = part_high + rest_high > 0
    least = np.where(some, np.where(part_low + rest_high > 0, least, 0.0), np.nan)
    most = np.where(some, np.where(part_high + rest_low > 0, most, 1.0), np.nan)
    sampling_low = np.where(some, limits(part_low / scale, rest_high / scale, level)[0], np.nan)
    sampling_high = np.where(some, limits(part_high / scale, rest_low / scale, level)[1], np.nan)
    return least, most, sampling_low, sampling_high


def share_of(
    part: Bounds, rest: Bounds, *, total: Bounds | None = None, effect: float = 1.0, level: float = LEVEL
) -> Share | None:
    """Return the share of the part in part and rest; null where nothing was counted.

    Parameters
    ----------
    part, rest
        Counts of the part and of the others.
    total
        Counts of everything, where some counts may be of either and stand in both; else part and rest.
    effect, level
        The design effect, and the confidence of the sampling limits.

    Examples
    --------
    >>> share = share_of(Bounds(10, 10), Bounds(90, 90))
    >>> share.low, round(share.sampling_low, 3), round(share.sampling_high, 3)
    (0.1, 0.049, 0.176)
    >>> share_of(Bounds(0, 0), Bounds(0, 0)) is None
    True
    """
    if part.high + rest.high <= 0:
        return None
    figures = shares((part.low, part.high), (rest.low, rest.high), effect=effect, level=level)
    low, high, sampling_low, sampling_high = (float(figure) for figure in figures)
    return Share(part, rest, part + rest if total is None else total, low, high, sampling_low, sampling_high, effect)


def design_effect(parts: npt.ArrayLike, totals: npt.ArrayLike, level: float = LEVEL) -> float:
    """Return by how much less blocks of time say than as many independent requests would; at least 1.

    The variance of the ratio of the blocks' sums over that of a binomial share, times the square of Student's over the normal
    quantile for so few blocks.

    Parameters
    ----------
    parts, totals
        Counts of the part and of everything, one a block.

    Examples
    --------
    >>> design_effect([5, 5, 5, 5, 5, 5], [10, 10, 10, 10, 10, 10])
    1.0
    >>> round(design_effect([10, 0, 10, 0, 10, 0], [10, 10, 10, 10, 10, 10]), 1)
    20.6
    """
    k, n = np.asarray(parts, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    blocks = int(np.count_nonzero(n > 0))
    total = float(n.sum())
    if blocks < FEWEST_BLOCKS or total <= 0:
        return 1.0
    share = float(k.sum()) / total
    return effect_of_sums(share, total, float(((k - share * n) ** 2).sum()), blocks, level)


def effect_of_sums(share: float, total: float, squares: float, blocks: int, level: float = LEVEL) -> float:
    """Return the design effect from the sum of squared residuals of the blocks; see :func:`design_effect`."""
    independent = share * (1 - share) * total
    if blocks < FEWEST_BLOCKS or independent <= 0:
        return 1.0
    tail = 1 - (1 - level) / 2
    few = (float(scipy.special.stdtrit(blocks - 1, tail)) / float(scipy.special.stdtrit(math.inf, tail))) ** 2
    return max(1.0, blocks / (blocks - 1) * squares / independent * few)


def difference(first: Share, second: Share) -> tuple[Bounds, Bounds]:
    """Return how much the second share is above the first: as far as the counts decide, and with sampling.

    The sampling interval recovers each side's variance from its own limits (MOVER, Newcombe's method for two independent
    shares), at the worst corners of the counts.

    Examples
    --------
    >>> a, b = (share_of(Bounds(k, k), Bounds(100 - k, 100 - k)) for k in (20, 40))
    >>> counts, sampling = difference(a, b)
    >>> round(counts.low, 3), round(sampling.low, 3), round(sampling.high, 3)
    (0.2, 0.067, 0.326)
    """
    counts = Bounds(second.low - first.high, second.high - first.low)
    below = math.hypot(second.low - second.sampling_low, first.sampling_high - first.high)
    above = math.hypot(second.sampling_high - second.high, first.low - first.sampling_low)
    return counts, Bounds(max(-1.0, counts.low - below), min(1.0, counts.high + above))


def paired_margin(
    first: tuple[npt.ArrayLike, npt.ArrayLike], second: tuple[npt.ArrayLike, npt.ArrayLike], level: float = LEVEL
) -> float | None:
    """Return half the width of the interval of a difference of two shares that come of the same times; null for too few blocks.

    Two shares of one week rise and fall together, so their difference is known better than either: its variance is that of the
    blocks' residuals of both at once.

    Parameters
    ----------
    first, second
        Parts and totals of each, one a block, the same blocks in the same order.
    level
        The confidence, of Student's quantile for so many blocks.

    Examples
    --------
    >>> parts, totals = [9, 1, 9, 1, 9, 1], [10, 10, 10, 10, 10, 10]
    >>> paired_margin((parts, totals), ([p + 1 for p in parts], totals))
    0.0
    """
    sides = [(np.asarray(parts, dtype=np.float64), np.asarray(totals, dtype=np.float64)) for parts, totals in (first, second)]
    blocks = int(np.count_nonzero(sides[0][1] + sides[1][1] > 0))
    if blocks < FEWEST_BLOCKS or any(totals.sum() <= 0 for _, totals in sides):
        return None
    (k1, n1), (k2, n2) = sides
    residuals = (k2 - k2.sum() / n2.sum() * n2) / n2.sum() - (k1 - k1.sum() / n1.sum() * n1) / n1.sum()
    variance = blocks / (blocks - 1) * float((residuals**2).sum())
    return float(scipy.special.stdtrit(blocks - 1, 1 - (1 - level) / 2)) * math.sqrt(variance)
