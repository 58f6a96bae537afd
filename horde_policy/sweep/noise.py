"""When is a difference more than noise: many settings against one baseline, on few days.

Each difference is measured on the same days and seeds for both sides. With a handful of days a single standard error is itself
a guess, and among hundreds of settings some come out small by chance. So the variances borrow from each other (the moderated
t statistic of Smyth 2004, DOI 10.2202/1544-6115.1027), and the limit rises with the number of different settings compared
(Šidák 1967). ``docs/decisions/0145-when-a-difference-is-more-than-noise.md`` has the rates of false alarms.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy

from horde_policy.sweep.metrics import Array

__all__ = ["CONFIDENCE", "LEAST_BLOCKS", "Differences", "bounds", "compared", "half_width", "known_variance"]

CONFIDENCE: Final = 0.95
LEAST_BLOCKS: Final = 4
"""With fewer days (or seeds) nothing is called more than noise."""


@dataclass(frozen=True, slots=True)
class Differences:
    """How points differ from one of them.

    Attributes
    ----------
    estimate
        The difference of each; 0 for the one itself.
    half_width
        Half the width of its interval; all of them together hold with 95 % confidence. NaN with too few days.
    beyond
        Where the interval leaves zero out.
    """

    estimate: Array
    half_width: Array

    @property
    def beyond(self) -> Array:
        """Return where a difference is more than noise."""
        with np.errstate(invalid="ignore"):
            beyond: Array = np.abs(self.estimate) > self.half_width
        return beyond


def known_variance(values: Array) -> Array:
    """Return the variance along the last axis of what is known; NaN where fewer than two are.

    >>> known_variance(np.array([[1.0, 3.0, np.nan], [1.0, np.nan, np.nan]]))
    array([ 1., nan])
    """
    known = ~np.isnan(values)
    count = known.sum(axis=-1)
    mean = np.where(known, values, 0.0).sum(axis=-1) / np.maximum(count, 1)
    squares = np.where(known, (values - mean[..., None]) ** 2, 0.0).sum(axis=-1)
    variance: Array = np.where(count > 1, squares / np.maximum(count, 1), np.nan)
    return variance


def half_width(spread: Array, blocks: int) -> Array:
    """Return half the width of a single figure's interval, from its standard error over so many days.

    >>> half_width(np.array([1.0]), 5).round(2)
    array([2.78])
    """
    if blocks < 2:
        return np.full_like(spread, np.nan)
    half: Array = scipy.stats.t.ppf((1 + CONFIDENCE) / 2, blocks - 1) * spread
    return half


def bounds(values: Array, blocks: int) -> tuple[Array, Array]:
    """Return both bounds of each single figure's interval: quantiles of its resamples, so none that a resample cannot reach.

    With few days the quantiles lie further out than 2.5 % and 97.5 %, as far as the t distribution does (the expanded percentile
    interval of Hesterberg 2015, DOI 10.1080/00031305.2015.1089789).

    Parameters
    ----------
    values
        Points × (1 + resamples), as in ``Evidence``.
    blocks
        How many independent days (or seeds) the resamples are of; with fewer than two the bounds are NaN.

    Examples
    --------
    >>> dice = np.random.default_rng(1)
    >>> skewed = np.concatenate(([1.0], dice.exponential(1.0, 400)))[None, :]
    >>> low, high = bounds(skewed, 7)
    >>> bool(0 < low[0] < 1 < high[0])
    True
    """
    low, high = np.full(len(values), np.nan), np.full(len(values), np.nan)
    if blocks < 2:
        return low, high
    tail = scipy.stats.norm.cdf(-np.sqrt(blocks / (blocks - 1)) * scipy.stats.t.ppf((1 + CONFIDENCE) / 2, blocks - 1))
    known = (~np.isnan(values[:, 1:])).sum(axis=1) > 1
    if known.any():
        low[known], high[known] = np.nanquantile(values[known, 1:], (tail, 1 - tail), axis=1)
    return np.fmin(low, np.where(known, values[:, 0], np.nan)), np.fmax(high, np.where(known, values[:, 0], np.nan))


def compared(values: Array, against: Array, blocks: int) -> Differences:
    """Return how points differ from one, with intervals that hold for all of them together.

    Parameters
    ----------
    values
        Points × (1 + resamples), as in ``Evidence``.
    against
        1 + resamples: the one that all are compared with.
    blocks
        How many independent days (or seeds) the resamples are of.

    Examples
    --------
    >>> dice = np.random.default_rng(1)
    >>> days = dice.normal(0, 1, 400)
    >>> same, better = days, days + 3 + dice.normal(0, 0.1, 400)
    >>> compared(np.stack((same, better)), same, 7).beyond
    array([False,  True])
    """
    apart = values - against
    # What is left of a difference by rounding, a trillionth of the figures, is none.
    rounding = 1e-12 * float(np.abs(np.nan_to_num(values)).max(initial=0.0))
    apart = np.where(np.abs(apart) <= rounding, 0.0, apart)
    estimate = apart[:, 0]
    if blocks < LEAST_BLOCKS:
        return Differences(estimate, np.full_like(estimate, np.nan))
    variance = known_variance(apart[:, 1:]) * blocks / (blocks - 1)
    variance[variance <= rounding**2] = 0.0
    moved = (variance > 0) | (np.nan_to_num(estimate) != 0)
    different = len(np.unique(np.round(apart[moved], 12), axis=0)) if moved.any() else 1
    moderated, freedom = _moderated(variance[variance > 0], blocks - 1)
    level = 1 - CONFIDENCE ** (1 / different)
    limit = scipy.stats.norm.ppf(1 - level / 2) if np.isinf(freedom) else scipy.stats.t.ppf(1 - level / 2, freedom)
    width = np.zeros_like(estimate)
    width[variance > 0] = limit * np.sqrt(moderated)
    width[np.isnan(estimate)] = np.nan
    return Differences(estimate, width)


def _moderated(variance: Array, freedom: int) -> tuple[Array, float]:
    """Return the variances drawn towards what they have in common, and the degrees of freedom that they then have."""
    if len(variance) < 3:
        return variance, float(freedom)
    logs = np.log(variance) - scipy.special.digamma(freedom / 2) + np.log(freedom / 2)
    excess = float(np.var(logs, ddof=1)) - float(scipy.special.polygamma(1, freedom / 2))
    if excess <= 0:  # no more apart than chance makes them: one variance for all
        return np.full_like(variance, np.exp(logs.mean())), float("inf")
    prior = 2 * _inverse_trigamma(excess)
    common = np.exp(logs.mean() + scipy.special.digamma(prior / 2) - np.log(prior / 2))
    return (prior * common + freedom * variance) / (prior + freedom), prior + freedom


def _inverse_trigamma(value: float) -> float:
    """Return x with trigamma(x) = value > 0, by Newton's method on 1/trigamma, which converges from below."""
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(scipy.special.polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(scipy.special.polygamma(2, x))
        x += step
        if -step < 1e-10 * x:
            break
    return x
