"""The judgement of a sweep: which point is best under the constraints, how sure that is, and what it does on other days.

A point is chosen on some days and looked at again on the days held out. The best of many is always partly luck, so beside
every difference stands whether it is more than noise, beside the best how often it is best on resampled days, and how it
does on days that had no say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from horde_policy.errors import InputError
from horde_policy.sweep.axes import SETTINGS
from horde_policy.sweep.days import counted_days, hours_by_day
from horde_policy.sweep.evidence import Across, Evidence, complete_part, measured_by_block, measured_evidence
from horde_policy.sweep.metrics import Array, Metric
from horde_policy.sweep.noise import LEAST_BLOCKS, Differences, bounds, compared
from horde_policy.sweep.pareto import front
from horde_policy.sweep.sensitivity import Sensitivity, sensitivity
from horde_policy.sweep.sentences import Constraint, Objective

__all__ = [
    "DEFAULT_CONSTRAINTS",
    "DEFAULT_OBJECTIVES",
    "Comparison",
    "Judgement",
    "Question",
    "Verdict",
    "default_holdout",
    "judge",
    "narrowed",
]

DEFAULT_OBJECTIVES: Final = ("refused share of unfunded", "p90 wait of registered")
DEFAULT_CONSTRAINTS: Final = ("p90 wait of registered ≤ 110 % of baseline",)
"""What is asked where nobody asks: fewer refusals, and payers may wait little longer than now."""

Verdict = Literal["better", "worse", "within_noise", "same", "too_few_days", "not_known"]
"""How a point stands to the baseline in the first objective."""

Decision = Literal["change", "keep", "nothing_meets", "no_baseline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a sweep.

    Attributes
    ----------
    objectives
        What is wanted; the first decides, all of them make the front.
    constraints
        What a point must meet.
    holdout_days
        Days that have no say in the choice; null for the last third, as long as four days are left to choose on.
    loads, fills
        The scenarios that count; null for all.
    across
        How several scenarios become one figure.
    """

    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...] = ()
    holdout_days: tuple[int, ...] | None = None
    loads: tuple[float, ...] | None = None
    fills: tuple[str | None, ...] | None = None
    across: Across = "mean"

    def __post_init__(self) -> None:
        if not self.objectives:
            raise InputError("sweep", "objectives", (), "must name at least one metric")
        keys = [objective.metric.key for objective in self.objectives]
        if len(set(keys)) != len(keys):
            raise InputError("sweep", "objectives", [str(o) for o in self.objectives], "must not name a metric twice")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of objectives and constraints, each once."""
        found = {o.metric.key: o.metric for o in self.objectives} | {c.metric.key: c.metric for c in self.constraints}
        return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One metric of a point beside the baseline's, on the days it was chosen on and on those held out.

    Each figure has the bounds of its 95 % interval, a difference half the width of its own; null is not known. ``better_days``
    counts days on which the point is better than the baseline, of all days of that part.
    """

    metric: str
    baseline: float | None
    baseline_low: float | None
    baseline_high: float | None
    point: float | None
    point_low: float | None
    point_high: float | None
    difference: float | None
    difference_half_width: float | None
    verdict: Verdict
    better_days: int
    holdout_baseline: float | None
    holdout_point: float | None
    holdout_better_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The answer to a question.

    Attributes
    ----------
    question
        What was asked.
    points
        One row a point: ``point``, ``baseline``, settings; per metric its figure, ``…_low``, ``…_high`` and ``…_holdout``;
        ``feasible``, ``met_share`` (of the resamples, how many meet all constraints), ``front``, ``certainty`` (of the
        resamples, in how many it is best), ``gain`` and ``gain_half_width`` (how much better than the baseline in the first
        objective, all intervals holding together), ``verdict``.
    best
        The point that is best on the chosen days among those that meet the constraints; null if none does.
    equals
        Other points that are exactly as good on every resample.
    certainty
        Of the resamples, in how many the best or one of its equals is best.
    recommended
        The point to propose: the best of those that are better than the baseline beyond noise; without any, the baseline,
        or the best where the baseline does not meet the constraints. Null if nothing meets them.
    decision
        ``change``, ``keep`` the baseline, ``nothing_meets``, or ``no_baseline`` to compare with.
    chosen_days, holdout_days, seeds
        What it rests on: whole days, as far as there are any.
    day_hours
        Every day of the sweep → its hours.
    sensitivities, levels
        How much each setting moves the first objective.
    left_out, scenarios_left_out
        Points, and scenarios (load, fill rule and seed), that lack replays, because the sweep was stopped.
    rows
        What was judged: the points and scenarios that are complete, on the days that count.
    evidence, holdout
        The measurements behind it.
    """

    question: Question
    points: pl.DataFrame
    best: str | None
    equals: tuple[str, ...]
    certainty: float
    recommended: str | None
    decision: Decision
    chosen_days: tuple[int, ...]
    holdout_days: tuple[int, ...]
    seeds: int
    day_hours: Mapping[int, float]
    sensitivities: tuple[Sensitivity, ...]
    levels: pl.DataFrame
    left_out: int
    scenarios_left_out: int
    rows: pl.DataFrame = field(repr=False)
    evidence: Evidence = field(repr=False)
    holdout: Evidence | None = field(repr=False)

    @property
    def baseline(self) -> str | None:
        """The baseline's point; null if the sweep lacks it."""
        first = self.points.filter(pl.col("baseline"))["point"]
        return None if first.is_empty() else str(first[0])

    @property
    def short_days(self) -> dict[int, float]:
        """The days that are not whole and count nowhere → their hours."""
        counted = (*self.chosen_days, *self.holdout_days)
        return {day: hours for day, hours in self.day_hours.items() if day not in counted}

    @property
    def varied(self) -> tuple[str, ...]:
        """The settings that differ between points."""
        return tuple(name for name in SETTINGS if self.points[name].n_unique() > 1)

    def row(self, point: str) -> dict[str, Any]:
        """Return a point's row."""
        found = self.points.filter(pl.col("point") == point)
        if found.is_empty():
            raise InputError("sweep", "point", point, "is not among the points judged")
        return found.row(0, named=True)

    def comparison(self, point: str, metric: Metric) -> Comparison:
        """Return one metric of a point beside the baseline's.

        Raises
        ------
        InputError
            The point is not judged, or the sweep has no baseline.
        """
        return _comparison(self, point, metric)


def default_holdout(days: Sequence[int]) -> tuple[int, ...]:
    """Return the days to hold out: the last third, as long as four are left to choose on.

    >>> default_holdout(range(1, 8)), default_holdout(range(1, 5))
    ((6, 7), ())
    """
    held = max(0, min(len(days) // 3, len(days) - LEAST_BLOCKS))
    return tuple(sorted(days)[len(days) - held :]) if held else ()


def narrowed(frame: pl.DataFrame, question: Question) -> pl.DataFrame:
    """Return the rows of the scenarios that count.

    Raises
    ------
    InputError
        None is of such a load or fill rule.
    """
    rows = frame
    if question.loads is not None:
        rows = rows.filter(pl.col("load").is_in(list(question.loads)))
    if question.fills is not None:
        rows = rows.filter(
            pl.col("fill").is_in([f for f in question.fills if f is not None])
            | (pl.col("fill").is_null() & (None in question.fills))
        )
    if rows.is_empty():
        raise InputError("sweep", "loads and fill rules", [question.loads, question.fills], "leave no finished replay")
    return rows


def judge(frame: pl.DataFrame, question: Question, *, resamples: int = 400, seed: int = 0) -> Judgement:
    """Return the answer to a question about a sweep.

    Parameters
    ----------
    frame
        Frame ``SWEEP``.
    question
        What is wanted, and what must be met.
    resamples, seed
        How many resamples of the days, and of their draws.

    Raises
    ------
    InputError
        The sweep has no finished replay of what is asked, a day held out is not among its days, or not whole, or all of them are
        held out.
    """
    rows, left_out, scenarios_left_out = complete_part(narrowed(frame, question))
    hours = hours_by_day(rows)
    days = list(counted_days(hours))
    rows = rows.filter(pl.col("day").is_in(days))
    held = default_holdout(days) if question.holdout_days is None else question.holdout_days
    if not set(held) <= set(days):
        raise InputError("sweep", "hold-out days", list(held), f"must be among the whole days of the sweep, {days}")
    chosen = tuple(day for day in days if day not in held)
    if not chosen:
        raise InputError("sweep", "hold-out days", list(held), "leave no day to choose on")
    better = {o.metric.key: o.better for o in question.objectives}
    options: dict[str, Any] = {"across": question.across, "better": better, "resamples": resamples, "seed": seed}
    evidence = measured_evidence(rows, question.metrics, days=chosen, **options)
    holdout = measured_evidence(rows, question.metrics, days=held, **options) if held else None
    first = question.objectives[0]
    varied = [name for name in SETTINGS if evidence.points[name].n_unique() > 1]
    sensitivities, levels = sensitivity(evidence, first.metric, varied)
    return Judgement(
        question=question,
        chosen_days=chosen,
        holdout_days=held,
        seeds=evidence.seeds,
        day_hours=hours,
        sensitivities=sensitivities,
        levels=levels,
        left_out=left_out,
        scenarios_left_out=scenarios_left_out,
        rows=rows,
        evidence=evidence,
        holdout=holdout,
        **_chosen(question, evidence, holdout),
    )


def _chosen(question: Question, evidence: Evidence, holdout: Evidence | None) -> dict[str, Any]:
    first = question.objectives[0]
    scores = first.sign * evidence.values[first.metric.key]
    has_baseline = bool(evidence.points["baseline"][0])
    met = _met(question.constraints, evidence, has_baseline=has_baseline)
    feasible = met[:, 0] & ~np.isnan(scores[:, 0])
    certain = _certainty(scores, met)
    gains = compared(scores, scores[0] if has_baseline else np.full(scores.shape[1], np.nan), evidence.blocks)
    verdicts = _verdicts(gains, evidence.blocks)
    best = _best(scores[:, 0], feasible, evidence.points)
    equal = np.zeros(len(scores), bool)
    if best is not None:
        equal = feasible & (np.abs(scores - scores[best]) <= 1e-12 * np.abs(np.nan_to_num(scores)).max(initial=0.0)).all(axis=1)
    better = feasible & (np.array(verdicts) == "better")
    surely = _best(scores[:, 0], better, evidence.points)
    decision, recommended = _decision(best, surely, baseline_meets=bool(feasible[0]), has_baseline=has_baseline)
    names = evidence.points["point"].to_list()
    judged = evidence.points.with_columns(
        *_figures(question, evidence, holdout),
        pl.Series("feasible", feasible),
        pl.Series("met_share", met[:, 1:].mean(axis=1)),
        pl.Series("front", front(_objective_scores(question, evidence), feasible)),
        pl.Series("certainty", certain),
        pl.Series("gain", gains.estimate).fill_nan(None),
        pl.Series("gain_half_width", gains.half_width).fill_nan(None),
        pl.Series("verdict", verdicts),
    )
    return {
        "points": judged,
        "best": None if best is None else names[best],
        "equals": tuple(names[k] for k in np.flatnonzero(equal) if k != best),
        "certainty": float(certain[equal].sum()),
        "recommended": None if recommended is None else names[recommended],
        "decision": decision,
    }


def _met(constraints: Sequence[Constraint], evidence: Evidence, *, has_baseline: bool) -> Array:
    """Return where a point meets all constraints: points × (1 + resamples)."""
    met = np.ones(next(iter(evidence.values.values())).shape, bool)
    for constraint in constraints:
        values = evidence.values[constraint.metric.key]
        if constraint.of_baseline and not has_baseline:
            raise InputError("constraint", str(constraint), None, "needs the baseline, which this sweep lacks")
        met &= constraint.met(values, values[:1])
    return met


def _certainty(scores: Array, met: Array) -> Array:
    """Return in which share of the resamples each point is the best that meets the constraints; ties are shared out."""
    ranked = np.where(met[:, 1:] & ~np.isnan(scores[:, 1:]), scores[:, 1:], -np.inf)
    top = ranked.max(axis=0, initial=-np.inf)
    winners = (ranked == top) & (top > -np.inf)
    share: Array = (winners / np.maximum(winners.sum(axis=0), 1)).mean(axis=1)
    return share


def _verdicts(gains: Differences, blocks: int) -> list[Verdict]:
    found: list[Verdict] = []
    for estimate, beyond in zip(gains.estimate, gains.beyond, strict=True):
        if np.isnan(estimate):
            found.append("not_known")
        elif estimate == 0 and (blocks < LEAST_BLOCKS or not beyond):
            found.append("same")
        elif blocks < LEAST_BLOCKS:
            found.append("too_few_days")
        elif not beyond:
            found.append("within_noise")
        else:
            found.append("better" if estimate > 0 else "worse")
    return found


def _best(scores: Array, feasible: Array, points: pl.DataFrame) -> int | None:
    """Return the best feasible point; of equally good ones the one that changes least from the first row, the baseline."""
    if not feasible.any():
        return None
    top = scores[feasible].max()
    equal = np.flatnonzero(feasible & (scores >= top - 1e-12 * abs(top)))
    rows = points.rows(named=True)
    return int(min(equal, key=lambda k: _distance(rows[0], rows[k])))


def _distance(base: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[int, float, str]:
    """Return how far settings are from others: how many differ, by what in all, then the name, so that there are no ties."""
    changed = [name for name in SETTINGS if row[name] != base[name]]
    far = 0.0
    for name in changed:
        a, b = base[name], row[name]
        if isinstance(a, int | float) and isinstance(b, int | float) and a > 0 and b > 0:
            far += abs(float(np.log(b / a)))
        else:
            far += 1.0
    return len(changed), far, str(row["point"])


def _decision(
    best: int | None, surely_better: int | None, *, baseline_meets: bool, has_baseline: bool
) -> tuple[Decision, int | None]:
    """Return what to do and the point to propose: a change only for a point that is better beyond noise."""
    if best is None:
        return "nothing_meets", None
    if not has_baseline:
        return "no_baseline", best
    if surely_better is not None:
        return "change", surely_better
    return ("keep", 0) if baseline_meets else ("change", best)


def _objective_scores(question: Question, evidence: Evidence) -> Array:
    return np.stack([o.sign * evidence.values[o.metric.key][:, 0] for o in question.objectives], axis=1)


def _figures(question: Question, evidence: Evidence, holdout: Evidence | None) -> list[pl.Series]:
    """Return the columns of figures: per metric the estimate, half its interval, and what it is on the days held out."""
    columns = []
    names = evidence.points["point"]
    for metric in question.metrics:
        values = evidence.values[metric.key]
        low, high = bounds(values, evidence.blocks)
        columns.append(pl.Series(metric.key, values[:, 0]).fill_nan(None))
        columns.append(pl.Series(f"{metric.key}_low", low).fill_nan(None))
        columns.append(pl.Series(f"{metric.key}_high", high).fill_nan(None))
        if holdout is None:
            columns.append(pl.Series(f"{metric.key}_holdout", [None] * len(names), dtype=pl.Float64))
        else:
            order = {point: place for place, point in enumerate(holdout.points["point"].to_list())}
            later = holdout.values[metric.key][[order[point] for point in names.to_list()], 0]
            columns.append(pl.Series(f"{metric.key}_holdout", later).fill_nan(None))
    return columns


def _comparison(judgement: Judgement, point: str, metric: Metric) -> Comparison:
    baseline = judgement.baseline
    if baseline is None:
        raise InputError("sweep", "", None, "has no baseline to compare with")
    objectives = {o.metric.key: o for o in judgement.question.objectives}
    sign = objectives[metric.key].sign if metric.key in objectives else 1.0 if metric.better == "more" else -1.0
    evidence = judgement.evidence
    place = evidence.points["point"].to_list().index(point)
    values = evidence.values[metric.key]
    gain = compared(sign * values[[place]], sign * values[0], evidence.blocks)
    is_first = metric.key == judgement.question.objectives[0].metric.key
    row, base = judgement.row(point), judgement.row(baseline)
    # In the first objective the point was picked among all, so its interval is the one that holds for all together.
    width = row["gain_half_width"] if is_first else _known(gain.half_width[0])
    by_day = measured_by_block(judgement.rows, [point, baseline], metric, "day").pivot(on="point", index="day", values="value")
    wins = by_day if point == baseline else by_day.filter(sign * (pl.col(point) - pl.col(baseline)) > 0)
    won = set() if point == baseline else set(wins["day"].to_list())
    return Comparison(
        metric=metric.key,
        baseline=base[metric.key],
        baseline_low=base[f"{metric.key}_low"],
        baseline_high=base[f"{metric.key}_high"],
        point=row[metric.key],
        point_low=row[f"{metric.key}_low"],
        point_high=row[f"{metric.key}_high"],
        difference=_known(values[place, 0] - values[0, 0]),
        difference_half_width=width,
        verdict=row["verdict"] if is_first else _verdicts(gain, evidence.blocks)[0],
        better_days=len(won & set(judgement.chosen_days)),
        holdout_baseline=base[f"{metric.key}_holdout"],
        holdout_point=row[f"{metric.key}_holdout"],
        holdout_better_days=len(won & set(judgement.holdout_days)),
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
