"""The wait of funded requests, which no exported series tells: its sharp bounds (A28).

The queue wait of registered requesters, F_R, mixes assignments that held kudos (funded) with those that held nothing (free and
downgraded). If the share ``p`` held nothing, then F_R = p · F_nothing + (1 − p) · F_funded, and all that is known of F_nothing is
that it lies between 0 and 1. So

    max(0, (F_R − p)/(1 − p)) ≤ F_funded ≤ min(1, F_R/(1 − p)),

and both ends are attained, at all waits at once: by the funded waiting longest, or shortest, of all. The bounds widen with p, so
over an interval of p those at its upper end hold.

Sampling: the range's own funded share lies within these bounds for certain. How far that of an endless stream of such weeks may
be off is a matter of the M = (1 − p) · N funded assignments alone, so the interval is Clopper and Pearson's for the low end and
for the high end of the bounds on M trials.

``p`` is a share of assignments, and only decisions tell who held kudos. The two differ, since a request has several answers
(n > 1), is handed out again, or expires before it is handed out (exports.md 10). With the mean number of assignments of an
admitted request a₀ for those that held nothing and a₁ for the funded, p/(1 − p) = (a₀/a₁) · (held nothing)/(funded) by decisions.
Nothing exported bounds a₀/a₁; what is taken for it is stated as ``ratio``, and the verdict says how far off it may be.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.errors import InputError
from horde_policy.frames.schemas import Column, Schema
from horde_policy.review.decompose import count_of, filtered, rate
from horde_policy.review.sampling import LEVEL, Bounds, Share, limits
from horde_policy.review.waits import MARKS_S, distribution, of_kind

__all__ = [
    "FUNDED_WAITS",
    "RATIO",
    "REQUESTER",
    "FundedWaits",
    "HeldNothing",
    "funded_assignments",
    "funded_bounds",
    "funded_waits",
    "held_nothing",
    "odds_times",
    "point_estimate",
    "possible",
    "sampled_bounds",
]

RATIO = 2.0
"""At most so many times as many assignments is an admitted request that held nothing taken to have as a funded one; and the other
way round. It was 1.17 in the week of exports.md 10."""

REQUESTER = "registered"
"""Whose waits are looked at: an anonymous requester funds next to nothing, a shared key has a balance of its own."""

_NO_POINT = "not known without anonymous waits or at p = 1; where no share fits, the counts refute what it takes for granted"

FUNDED_WAITS = Schema(
    "funded_waits",
    {
        "edge_s": Column(pl.Float64, "s", text="a finite bound of any bucket or a mark; all shares are of waits at most so long"),
        "registered_low": Column(pl.Float64, text="of all registered assignments"),
        "registered_high": Column(pl.Float64),
        "funded_low": Column(pl.Float64, text="the sharp bounds of the funded, as far as the counts decide"),
        "funded_high": Column(pl.Float64),
        "sampling_low": Column(pl.Float64, text="the bounds with sampling"),
        "sampling_high": Column(pl.Float64),
        "point_low": Column(pl.Float64, null=_NO_POINT, text="no bound: see the note"),
        "point_high": Column(pl.Float64, null=_NO_POINT),
    },
    sort=("edge_s",),
)
"""One row an edge of the buckets. The point estimates hold if free registered requests wait like anonymous ones, which may be far
off; outside 0 and 1 the data refute it."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HeldNothing:
    """The share of registered assignments that held nothing, as far as it is known.

    Attributes
    ----------
    low, high
        The interval of p, in the range itself.
    by_decisions
        The share among the decisions that were admitted.
    ratio
        The most that a₀/a₁ and a₁/a₀ are taken to be; infinite where nothing is taken.
    funded
        How many decisions held kudos.
    """

    low: float
    high: float
    by_decisions: Share
    ratio: float
    funded: Bounds


@dataclass(frozen=True, slots=True)
class FundedWaits:
    """The funded wait between its bounds.

    Attributes
    ----------
    p
        The share of assignments that held nothing; null without admitted registered decisions.
    assignments
        How many registered assignments there were.
    rows
        Schema :data:`FUNDED_WAITS`; empty where nothing is visible.
    hidden
        Why nothing is visible, else null: ``no_decisions`` (nobody registered was admitted), ``no_waits`` (no registered
        assignment), ``none_funded`` (p = 1: whatever the waits, they say nothing of funded ones).
    """

    p: HeldNothing | None
    assignments: Bounds
    rows: pl.DataFrame
    hidden: str | None


def funded_bounds(registered: Bounds, p: Bounds) -> Bounds:
    """Return the sharp bounds of the share of funded waits, from that of registered waits and the share p that held nothing.

    Parameters
    ----------
    registered, p
        Each between bounds, 0 to 1. With p = 1 the funded wait is not visible: 0 to 1.

    Examples
    --------
    >>> bounds = funded_bounds(Bounds(0.9, 0.9), Bounds(0.5, 0.8))
    >>> round(bounds.low, 12), bounds.high
    (0.5, 1.0)
    >>> funded_bounds(Bounds(0.9, 0.9), Bounds(1.0, 1.0))
    Bounds(low=0.0, high=1.0)
    """
    low, high = _unmixed(np.array([registered.low]), np.array([registered.high]), p.high)
    return Bounds(float(low[0]), float(high[0]))


def _unmixed(low: Floats, high: Floats, p: float) -> tuple[Floats, Floats]:
    if p >= 1:
        return np.zeros_like(low), np.ones_like(high)
    return np.clip((low - p) / (1 - p), 0.0, 1.0), np.clip(high / (1 - p), 0.0, 1.0)


def sampled_bounds(
    registered: tuple[npt.ArrayLike, npt.ArrayLike], funded: Floats, *, effect: npt.ArrayLike = 1.0, level: float = LEVEL
) -> tuple[Floats, Floats]:
    """Return the bounds of the funded shares with sampling.

    Parameters
    ----------
    registered
        The shares of registered waits, low and high.
    funded
        Three rows: the low and the high bound of the funded shares, and the number of funded assignments.
    effect
        The design effects of the registered shares. What exceeds 1 of them weighs more among fewer: bursts that sway a share s
        of all sway the same waits' share t of the funded by (1 − s)/(1 − t) times as much, relative to chance.
    level
        The confidence, half of what it leaves at either end.

    Examples
    --------
    >>> low, high = sampled_bounds(([0.9], [0.9]), np.array([[0.5], [1.0], [100.0]]))
    >>> low.round(3).tolist(), high.tolist()
    ([0.398], [1.0])
    """
    low, high, trials = funded
    least, most = (np.asarray(one, dtype=np.float64) for one in registered)
    excess = np.asarray(effect, dtype=np.float64) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        # the low end is attained by all long waits being funded ones, the high end by all short ones
        at_low = trials / (1 + excess * np.where(low > 0, least / np.where(low > 0, low, 1), 1))
        at_high = trials / (1 + excess * np.where(high < 1, (1 - most) / np.where(high < 1, 1 - high, 1), 1))
    down, _ = limits(low * at_low, (1 - low) * at_low, level)
    _, up = limits(high * at_high, (1 - high) * at_high, level)
    return down, up


def held_nothing(decisions: pl.DataFrame, *, ratio: float = RATIO, level: float = LEVEL) -> HeldNothing | None:
    """Return the interval of p from the decisions of registered requesters; null if none was admitted.

    Parameters
    ----------
    decisions
        Schema :data:`~horde_policy.frames.decisions.DECISIONS`.
    ratio
        How unlike the mean numbers of assignments of the two kinds may be; at least 1, infinite for not known.
    level
        The confidence of the interval around the share by decisions.

    Raises
    ------
    InputError
        The ratio is below 1 or not a number.

    Examples
    --------
    >>> rows = pl.DataFrame({"requester": ["registered"] * 2, "outcome": ["free", "funded"], "count_low": [917.0, 83.0],
    ...     "count_high": [917.0, 83.0], "interval_start": [None, None], "interval_end": [None, None]}, schema_overrides={
    ...     "interval_start": pl.Datetime("us", "UTC"), "interval_end": pl.Datetime("us", "UTC")})
    >>> p = held_nothing(rows)
    >>> round(p.low, 3), round(p.by_decisions.middle, 3), round(p.high, 3)
    (0.847, 0.917, 0.957)
    """
    if not ratio >= 1:
        raise InputError("ratio", "", ratio, "must be at least 1")
    admitted = filtered(decisions, {"requester": (REQUESTER,), "outcome": ("free", "downgraded", "funded")})
    by_decisions = rate(admitted, pl.col("outcome") != "funded", level=level)
    if by_decisions is None:
        return None
    return HeldNothing(
        low=odds_times(by_decisions.low, 1 / ratio),
        high=odds_times(by_decisions.high, ratio),
        by_decisions=by_decisions,
        ratio=ratio,
        funded=count_of(admitted, outcome="funded"),
    )


def odds_times(share: float, factor: float) -> float:
    """Return the share whose odds are so many times those of a share; 0 and 1 stay.

    >>> round(odds_times(0.5, 3.0), 12), odds_times(0.5, math.inf), odds_times(0.0, math.inf), odds_times(1.0, 0.0)
    (0.75, 1.0, 0.0, 1.0)
    """
    if share <= 0 or share >= 1:
        return share
    return 1.0 if math.isinf(factor) else share * factor / (share * factor + (1 - share))


def point_estimate(registered: Bounds, anonymous: Bounds, p: Bounds) -> Bounds | None:
    """Return the funded share if free registered requests waited like anonymous ones, over the interval of p and not clipped.

    Null at p = 1. Outside 0 and 1 the data refute the assumption. Only to be shown with the warning how far off it can be
    (exports.md 10).

    Examples
    --------
    >>> estimate = point_estimate(Bounds(0.6, 0.6), Bounds(0.5, 0.5), Bounds(0.5, 0.8))
    >>> round(estimate.low, 3), round(estimate.high, 3)
    (0.7, 1.0)
    """
    if p.high >= 1:
        return None
    lows = [(registered.low - one * anonymous.high) / (1 - one) for one in (p.low, p.high)]
    highs = [(registered.high - one * anonymous.low) / (1 - one) for one in (p.low, p.high)]
    return Bounds(min(lows), max(highs))


def possible(estimate: Bounds) -> Bounds | None:
    """Return the part of a point estimate that is a share; null where none is, which refutes what it takes for granted.

    >>> possible(Bounds(-0.25, 0.5)), possible(Bounds(-1.6, -0.3)), possible(Bounds(1.1, 1.2))
    (Bounds(low=0.0, high=0.5), None, None)
    """
    if estimate.high < -_ROUNDING or estimate.low > 1 + _ROUNDING:
        return None
    return Bounds(min(1.0, max(0.0, estimate.low)), max(0.0, min(1.0, estimate.high)))


_ROUNDING = 1e-9
"""A share of exactly 0 or 1 may come out of the quotient a little beside it."""


def funded_waits(
    decisions: pl.DataFrame,
    waits: pl.DataFrame,
    *,
    marks_s: Sequence[float] = MARKS_S,
    ratio: float = RATIO,
    level: float = LEVEL,
) -> FundedWaits:
    """Return the bounds of the funded wait at every bucket bound and at the marks.

    Parameters
    ----------
    decisions, waits
        Schemas :data:`~horde_policy.frames.decisions.DECISIONS` and :data:`~horde_policy.frames.waits.WAITS`, of one range.
    marks_s
        Waits to tell the bounds at beside the bucket bounds.
    ratio
        See :func:`held_nothing`.
    level
        The confidence of the bounds with sampling, at every bucket bound by itself.

    """
    own = of_kind(waits, "queue", REQUESTER)
    assignments = Bounds(float(own["count_low"].sum()), float(own["count_high"].sum()))
    p = held_nothing(decisions, ratio=ratio, level=level)
    hidden = _hidden(p, assignments)
    if p is None or hidden is not None:
        return FundedWaits(p, assignments, FUNDED_WAITS.empty(), hidden)
    shares_at = distribution(own, marks_s=marks_s, level=level)
    columns = {name: shares_at[name].to_numpy() for name in shares_at.columns}
    low, high = _unmixed(columns["share_low"], columns["share_high"], p.high)
    ends = np.array([low, high, np.full_like(low, funded_assignments(assignments, p.high))])
    shares_between = (columns["share_low"], columns["share_high"])
    least, most = sampled_bounds(shares_between, ends, effect=columns["design_effect"], level=level)
    points = _points(shares_at, of_kind(waits, "queue", "anonymous"), p)
    frame = {
        "edge_s": columns["edge_s"],
        "registered_low": columns["share_low"],
        "registered_high": columns["share_high"],
        "funded_low": low,
        "funded_high": high,
        "sampling_low": least,
        "sampling_high": most,
        "point_low": [None if point is None else point.low for point in points],
        "point_high": [None if point is None else point.high for point in points],
    }
    return FundedWaits(p, assignments, FUNDED_WAITS.checked(pl.DataFrame(frame, schema=FUNDED_WAITS.polars_schema())), None)


def funded_assignments(assignments: Bounds, p: float) -> float:
    """Return how many registered assignments were funded ones, at least, if the share ``p`` held nothing."""
    return assignments.low * (1 - min(1.0, p))


def _hidden(p: HeldNothing | None, assignments: Bounds) -> str | None:
    if p is None:
        return "no_decisions"
    if assignments.high <= 0:
        return "no_waits"
    return "none_funded" if p.funded.high <= 0 else None


def _points(registered: pl.DataFrame, anonymous: pl.DataFrame, p: HeldNothing) -> list[Bounds | None]:
    """Return the point estimate at each edge; null without anonymous waits, and where it is no share."""
    beside = distribution(anonymous, edges_s=registered["edge_s"].to_list())
    if not beside.height:
        return [None] * registered.height
    pairs = zip(
        registered.select("share_low", "share_high").iter_rows(),
        beside.select("share_low", "share_high").iter_rows(),
        strict=True,
    )
    estimates = (point_estimate(Bounds(*own), Bounds(*other), Bounds(p.low, p.high)) for own, other in pairs)
    return [None if estimate is None else possible(estimate) for estimate in estimates]
