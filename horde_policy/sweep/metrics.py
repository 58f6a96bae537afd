"""What settings are judged by: each metric's sentence, unit and better side, computed from counts summed over any days.

Metrics are ratios of sums, or quantiles of summed bins, never means of daily figures: a day with few requests weighs little.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numba as nb
import numpy as np

from horde_policy.sweep.counting import BIN_UPPER_S, COUNTERS, EXPIRED_BIN, WAITERS

__all__ = [
    "METRICS",
    "PRODUCTION_METRICS",
    "Array",
    "Better",
    "Metric",
    "Tally",
    "Unit",
    "bins_of",
    "wait_quantile_s",
    "wait_quantiles_s",
]

Array = np.ndarray[Any, Any]
Unit = Literal["share", "s", "tokens"]
Better = Literal["less", "more"]

_PLACE = {name: place for place, name in enumerate(COUNTERS)}


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums of counts, over any days and with any weights; all arrays begin with the same dimensions.

    Attributes
    ----------
    counters
        … × ``COUNTERS``.
    by_group
        … × model groups × (unfunded, of them refused).
    days
        … : how many days the sums are of; one that is not whole is a part of one.
    longest_s
        … : the time to live, which no wait exceeds.
    waits
        Waiter → … × bins; only those that are asked for need be there.
    """

    counters: Array
    by_group: Array
    days: Array
    longest_s: Array
    waits: Mapping[str, Array]

    def of(self, name: str) -> Array:
        """Return one counter."""
        values: Array = self.counters[..., _PLACE[name]]
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure that settings are judged by.

    Attributes
    ----------
    key, phrase
        Its name for machines, and as it stands in a sentence.
    unit
        ``share`` (0 to 1), ``s``, or ``tokens`` (a day).
    better
        Which side is better, unless somebody says otherwise.
    text
        What it is, in one sentence.
    waiters, quantile
        For a wait: whose it is, and which quantile, 0 to 1; for other metrics there are none.
    started_only
        For a wait: whether requests that expired are left out, as production leaves them out (A27).
    """

    key: str
    phrase: str
    unit: Unit
    better: Better
    text: str
    measure: Callable[[Tally], Array]
    waiters: tuple[str, ...] = ()
    quantile: float | None = None
    started_only: bool = False


def _over(part: Array, whole: Array) -> Array:
    """Return part ÷ whole; NaN, not known, where there is nothing to have a share of."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: Array = np.where(whole > 0, part / np.where(whole > 0, whole, 1), np.nan)
    return ratio


def wait_quantile_s(bins: Array, share: float) -> Array:
    """Return the wait that a share of those counted did not exceed: the upper edge of its bin, so never understated.

    Parameters
    ----------
    bins
        … × bins, counts or weighted counts.
    share
        0 to 1.

    Returns
    -------
    numpy.ndarray
        … , seconds; NaN where nobody was counted.

    Examples
    --------
    >>> bins = np.zeros(len(BIN_UPPER_S))
    >>> bins[[0, 50]] = 9, 1
    >>> float(wait_quantile_s(bins, 0.9)), float(wait_quantile_s(bins, 0.99))
    (0.0, 5.0)
    """
    upper = BIN_UPPER_S[: bins.shape[-1]]
    reached = np.cumsum(bins, axis=-1)
    total = reached[..., -1]
    # A weighted sum misses a share by rounding; a billionth of a request is none.
    place = np.argmax(reached >= (share * total - 1e-9)[..., None], axis=-1)
    found: Array = np.where(total > 0, upper[place], np.nan)
    return found


@nb.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def quantile_bins(reached: Any, weights: Any, share: float, found: Any) -> None:
    """Find the bin of a quantile for each of many points and each of many weightings of their blocks.

    ``reached`` is points × blocks × bins, summed along the bins; ``weights`` weightings × blocks; ``found`` points ×
    weightings, −1 where nobody was counted. It finds what :func:`wait_quantile_s` finds in the weighted sums, by halving.
    """
    points, blocks, bins = reached.shape
    for p in range(points):
        for r in range(len(weights)):
            total = 0.0
            for b in range(blocks):
                total += weights[r, b] * reached[p, b, bins - 1]
            low, high = 0, bins - 1
            while low < high:
                middle = (low + high) // 2
                there = 0.0
                for b in range(blocks):
                    there += weights[r, b] * reached[p, b, middle]
                if there >= share * total - 1e-9:
                    high = middle
                else:
                    low = middle + 1
            found[p, r] = low if total > 0 else -1


def wait_quantiles_s(bins: Array, weights: Array, share: float) -> Array:
    """Return the wait quantile of points under many weightings of their blocks.

    Parameters
    ----------
    bins
        Points × blocks × bins, counts.
    weights
        Weightings × blocks.
    share
        0 to 1.

    Returns
    -------
    numpy.ndarray
        Points × weightings, seconds; NaN where nobody was counted.
    """
    found = np.empty((len(bins), len(weights)), np.int64)
    quantile_bins(np.cumsum(bins, axis=-1), weights, share, found)
    waits: Array = np.where(found >= 0, BIN_UPPER_S[np.maximum(found, 0)], np.nan)
    return waits


def _gap(tally: Tally) -> Array:
    """Return by how much a model's refused share differs from that of all, weighted by its unfunded requests.

    Requests that no worker of the fleet serves are left out: no setting helps them.
    """
    unfunded, refused = tally.by_group[..., :-1, 0], tally.by_group[..., :-1, 1]
    everyone = unfunded.sum(axis=-1)
    overall = _over(refused.sum(axis=-1), everyone)
    apart = np.where(unfunded > 0, np.abs(_over(refused, unfunded) - overall[..., None]), 0.0)
    return _over((apart * unfunded).sum(axis=-1), everyone)


def _admitted(tally: Tally) -> Array:
    admitted: Array = tally.of("requests") - tally.of("refused")
    return admitted


def bins_of(waits: Mapping[str, Array], waiters: Sequence[str], *, started_only: bool) -> Array:
    """Return the bins of some waiters together, without those that expired if only the started count."""
    bins: Array = sum((waits[who] for who in waiters[1:]), waits[waiters[0]])
    return bins[..., :EXPIRED_BIN] if started_only else bins


def _wait_metric(percent: int, waiter: str, *, started_only: bool = False) -> Metric:
    words = {"shared_key": "shared keys"}.get(waiter, waiter)
    waiters = WAITERS[:3] if waiter == "everyone" else (waiter,)
    share = percent / 100

    def measure(tally: Tally) -> Array:
        bins = bins_of(tally.waits, waiters, started_only=started_only)
        return np.minimum(wait_quantile_s(bins, share), tally.longest_s)

    text = f"Queue wait that {percent} % of the {'started' if started_only else 'admitted'} requests of {words} did not exceed"
    return Metric(
        key=f"p{percent}_{'queue_wait' if started_only else 'wait'}_{waiter}_s",
        phrase=f"p{percent} {'queue wait of started' if started_only else 'wait of'} {words}",
        unit="s",
        better="less",
        text=text + (", as production counts it (A27)." if started_only else "; one that expired waited its time to live."),
        measure=measure,
        waiters=waiters,
        quantile=share,
        started_only=started_only,
    )


_COUNTED: Final = (
    Metric(
        key="refused_share_unfunded",
        phrase="refused share of unfunded",
        unit="share",
        better="less",
        text="Of the requests that could not pay a hold, the share that was refused, by the last sending.",
        measure=lambda tally: _over(tally.of("unfunded_refused"), tally.of("unfunded")),
    ),
    Metric(
        key="refused_share",
        phrase="refused share",
        unit="share",
        better="less",
        text="Of all requests, the share that was refused, by the last sending.",
        measure=lambda tally: _over(tally.of("refused"), tally.of("requests")),
    ),
    Metric(
        key="free_tokens_per_day",
        phrase="tokens given free",
        unit="tokens",
        better="more",
        text="Output tokens a day of completed requests that were served without a hold (free or downgraded).",
        measure=lambda tally: _over(tally.of("free_tokens"), tally.days),
    ),
    Metric(
        key="completed_share",
        phrase="completed share",
        unit="share",
        better="more",
        text="Of all requests, the share that was answered in full: not refused, not expired, not timed out.",
        measure=lambda tally: _over(tally.of("completed"), tally.of("requests")),
    ),
    Metric(
        key="expired_share",
        phrase="expired share",
        unit="share",
        better="less",
        text="Of the admitted requests, the share whose time to live ran out.",
        measure=lambda tally: _over(tally.of("expired"), _admitted(tally)),
    ),
    Metric(
        key="timed_out_share",
        phrase="timed-out share",
        unit="share",
        better="less",
        text="Of the admitted requests, the share whose job was cut off at the job time-out.",
        measure=lambda tally: _over(tally.of("timed_out"), _admitted(tally)),
    ),
    Metric(
        key="model_gap",
        phrase="gap between models",
        unit="share",
        better="less",
        text="How far, on average over unfunded requests, a model's refused share is from that of all: 0 is the same for all.",
        measure=_gap,
    ),
)

METRICS: Final[Mapping[str, Metric]] = {
    metric.key: metric
    for metric in (
        *_COUNTED,
        *(_wait_metric(percent, waiter) for waiter in (*WAITERS, "everyone") for percent in (50, 90, 99)),
    )
}
"""Key → metric, in the order in which they are listed."""

PRODUCTION_METRICS: Final[Mapping[str, Metric]] = {
    metric.key: metric
    for metric in (METRICS["refused_share"], *(_wait_metric(90, who, started_only=True) for who in ("registered", "anonymous")))
}
"""Metrics as production counts them too (A25, A27), so that it can refute a replay."""
