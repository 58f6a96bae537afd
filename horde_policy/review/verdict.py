"""Whether a per-request record of the outcome is needed: is the question decided by the bounds of the funded wait, or not (A28).

The question is whether the share of funded waits over a mark (300 s) is above a limit X. It is decided where the bounds with
sampling lie on one side of X. Where only sampling blurs it, more requests help, and how many more is told. Where the bounds
themselves lie around X no number of requests helps: only a record of who held kudos, beside each wait, does.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from horde_policy.errors import InputError
from horde_policy.review.bounds import (
    RATIO,
    REQUESTER,
    FundedWaits,
    funded_assignments,
    funded_bounds,
    funded_waits,
    odds_times,
    point_estimate,
    possible,
    sampled_bounds,
)
from horde_policy.review.sampling import LEVEL, Bounds, Share
from horde_policy.review.waits import MARKS_S, longer, of_kind, share_at_most

__all__ = ["ABOVE", "OVER_S", "Answer", "Verdict", "funded_verdict"]

OVER_S = 300.0
"""The mark of the question, if nothing else is asked."""

ABOVE = 0.1
"""The limit X of the question, if nothing else is asked."""

Answer = Literal["yes", "no", "more_requests", "record_needed", "not_visible"]

MOST_TIMES = 1e6
"""More than so many times the requests are told as none that would help."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to "is the share of funded waits over ``over_s`` above ``above``?".

    Attributes
    ----------
    over_s, above
        The question.
    answer
        ``yes`` or ``no``: decided, with sampling. ``more_requests``: the bounds decide it, sampling does not yet.
        ``record_needed``: the bounds lie around the limit. ``not_visible``: see ``hidden``.
    share_over
        The bounds of the share of funded waits over the mark, as far as the counts decide; null if not visible.
    share_over_sampling
        The same with sampling: the answer is yes for every limit below its low end, no for every limit from its high end.
    times_the_requests
        With ``more_requests``: how many times as many requests, in the same proportions, would decide it; null if none would.
    decided_up_to_ratio
        Up to which ``ratio`` (see :func:`~horde_policy.review.bounds.held_nothing`) these counts decide the question; null if
        not even at 1, infinite at any.
    point
        The point estimate of the share over the mark, if free registered requests wait like anonymous ones. Null if there is
        none. See ``point_off_by``.
    point_off_by
        How far the truth may lie from the point estimate, in the worst case.
    point_refuted_by
        How many anonymous waits refute that free registered requests wait like anonymous ones: no share of the funded ones would
        fit (exports.md 10). Null where they do not.
    registered
        The share of registered waits over the mark; null without waits.
    funded
        What the bounds are made of.
    """

    over_s: float
    above: float
    answer: Answer
    share_over: Bounds | None
    share_over_sampling: Bounds | None
    times_the_requests: float | None
    decided_up_to_ratio: float | None
    point: Bounds | None
    point_off_by: float | None
    point_refuted_by: Bounds | None
    registered: Share | None
    funded: FundedWaits

    @property
    def hidden(self) -> str | None:
        """Return why the funded wait is not visible, else null."""
        return self.funded.hidden


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Registered waits up to the mark, the admitted decisions that held nothing, and the confidence asked for."""

    registered: Share
    admitted: Share
    level: float


def funded_verdict(
    decisions: pl.DataFrame,
    waits: pl.DataFrame,
    *,
    over_s: float = OVER_S,
    above: float = ABOVE,
    ratio: float = RATIO,
    level: float = LEVEL,
) -> Verdict:
    """Return whether the exported counts decide the question, and if not, what would.

    Parameters
    ----------
    decisions, waits
        Schemas :data:`~horde_policy.frames.decisions.DECISIONS` and :data:`~horde_policy.frames.waits.WAITS`, of one range.
    over_s
        The mark, in seconds.
    above
        The limit X, from 0 to below 1.
    ratio, level
        See :func:`~horde_policy.review.bounds.funded_waits`.

    Raises
    ------
    InputError
        The mark is negative or infinite, the limit not from 0 to below 1, or the ratio below 1.
    """
    if not (math.isfinite(over_s) and over_s >= 0):
        raise InputError("over_s", "", over_s, "must be a finite number of seconds, at least 0")
    if not 0 <= above < 1:
        raise InputError("above", "", above, "must be a share from 0 to below 1")
    funded = funded_waits(decisions, waits, marks_s=(*MARKS_S, over_s), ratio=ratio, level=level)
    own = of_kind(waits, "queue", REQUESTER)
    registered = share_at_most(own, over_s, level=level)
    over = None if registered is None else longer(registered)
    if funded.hidden is not None or registered is None or funded.p is None:
        return Verdict(over_s, above, "not_visible", None, None, None, None, None, None, None, over, funded)
    evidence = _Evidence(registered, funded.p.by_decisions, level)
    counts, sampling = _share_over(evidence, ratio), _share_over(evidence, ratio, 1.0)
    answer = _answer(counts, sampling, above)
    p = Bounds(funded.p.low, funded.p.high)
    point, refuted_by = _point_over(registered, waits, over_s, p)
    return Verdict(
        over_s=over_s,
        above=above,
        answer=answer,
        share_over=counts,
        share_over_sampling=sampling,
        times_the_requests=_times_needed(evidence, ratio, above) if answer == "more_requests" else None,
        decided_up_to_ratio=_largest_ratio(evidence, above),
        point=point,
        point_off_by=None if point is None else max(0.0, counts.high - point.low, point.high - counts.low),
        point_refuted_by=refuted_by,
        registered=over,
        funded=funded,
    )


def _share_over(evidence: _Evidence, ratio: float, times: float | None = None) -> Bounds:
    """Return the bounds of the funded share over the mark: by the counts, or with sampling of so many times the requests."""
    p = odds_times(evidence.admitted.high, ratio)
    registered = evidence.registered
    bounds = funded_bounds(Bounds(registered.low, registered.high), Bounds(0.0, p))
    if times is not None:
        trials = funded_assignments(registered.total, p) * times
        ends = np.array([[bounds.low], [bounds.high], [trials]])
        shares = ([registered.low], [registered.high])
        low, high = sampled_bounds(shares, ends, effect=registered.design_effect, level=evidence.level)
        bounds = Bounds(float(low[0]), float(high[0]))
    return Bounds(1 - bounds.high, 1 - bounds.low)


def _decides(bounds: Bounds, above: float) -> bool:
    return bounds.low > above or bounds.high <= above


def _answer(counts: Bounds, sampling: Bounds, above: float) -> Answer:
    if _decides(sampling, above):
        return "yes" if sampling.low > above else "no"
    return "more_requests" if _decides(counts, above) else "record_needed"


def _times_needed(evidence: _Evidence, ratio: float, above: float) -> float | None:
    """Return the least factor on all counts at which sampling no longer blurs the answer, within a hundredth of itself."""

    def decided(times: float) -> bool:
        return _decides(_share_over(evidence, ratio, times), above)

    enough = 1.0
    while not decided(enough):
        enough *= 2
        if enough > MOST_TIMES:
            return None
    short = enough / 2
    while enough / short > 1.01:
        middle = math.sqrt(enough * short)
        short, enough = (short, middle) if decided(middle) else (middle, enough)
    return enough


def _largest_ratio(evidence: _Evidence, above: float) -> float | None:
    """Return the largest ratio at which the counts decide the question with sampling, within a thousandth."""

    def decided(ratio: float) -> bool:
        return _decides(_share_over(evidence, ratio, 1.0), above)

    if not decided(1.0):
        return None
    if decided(math.inf):
        return math.inf
    holds, fails = 1.0, 2.0
    while decided(fails):
        holds, fails = fails, fails * 2
    while fails / holds > 1.001:
        middle = math.sqrt(holds * fails)
        holds, fails = (middle, fails) if decided(middle) else (holds, middle)
    return holds


def _point_over(registered: Share, waits: pl.DataFrame, over_s: float, p: Bounds) -> tuple[Bounds | None, Bounds | None]:
    """Return the point estimate, and how many anonymous waits refute what it takes for granted; null where they do not."""
    beside = share_at_most(of_kind(waits, "queue", "anonymous"), over_s)
    if beside is None:
        return None, None
    up_to = point_estimate(Bounds(registered.low, registered.high), Bounds(beside.low, beside.high), p)
    if up_to is None:
        return None, None
    point = possible(Bounds(1 - up_to.high, 1 - up_to.low))
    return point, beside.total if point is None else None
