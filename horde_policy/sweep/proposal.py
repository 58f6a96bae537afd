"""A change proposal as data: the settings, what speaks for them, how sure that is, what it rests on, what would refute it.

Sentences are made of it by :mod:`horde_policy.views.proposal`; nothing here is text for people but the sentences that
people typed themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl
import scipy

from horde_policy.errors import InputError
from horde_policy.frames.decisions import REQUESTERS, SIZES
from horde_policy.replay.fill_rule import FillRule
from horde_policy.settings import ENVIRONMENT_NAMES, ReplaySettings
from horde_policy.sweep.axes import SETTINGS
from horde_policy.sweep.days import DAY_H
from horde_policy.sweep.evidence import UNDER, measured_by_block
from horde_policy.sweep.inputs import made_up
from horde_policy.sweep.judge import Comparison, Decision, Judgement
from horde_policy.sweep.metrics import PRODUCTION_METRICS
from horde_policy.sweep.noise import CONFIDENCE, LEAST_BLOCKS
from horde_policy.sweep.results import settings_of_row
from horde_policy.sweep.sensitivity import Sensitivity
from horde_policy.sweep.sentences import Constraint
from horde_policy.sweep.unserved import unserved_range

__all__ = ["Caveat", "Check", "EnvironmentLine", "Expected", "Proposal", "TrafficMix", "propose"]

FOUR: Final = ("ceiling_tokens", "floor_tokens", "wait_full_s", "wait_floor_s")
"""The figures of the decision, which stand in every proposal (A2, A3, A6)."""

SURE: Final = 0.9
"""A best point that is best in fewer of the resamples is not called certain."""


@dataclass(frozen=True, slots=True)
class EnvironmentLine:
    """One setting as a line of the environment, and what it is now."""

    setting: str
    name: str
    value: str
    now: str

    @property
    def changed(self) -> bool:
        """Whether the proposal changes it."""
        return self.value != self.now

    @property
    def line(self) -> str:
        """The line."""
        return f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class Check:
    """A constraint, the figure that it is held against, and in which share of the resamples it is met."""

    constraint: Constraint
    limit: float | None
    value: float | None
    met_share: float
    met_on_holdout: bool | None


@dataclass(frozen=True, slots=True)
class Expected:
    """Where a metric of one production day should lie, if the replay is right: what would refute it.

    ``low`` and ``high`` hold a day with 95 % probability, from the spread between the replayed days; null with too few.
    """

    metric: str
    baseline_low: float | None
    baseline_high: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class TrafficMix:
    """Who asked for what in the traffic: shares by requester, and by requested size, in the order of A25."""

    requests: int
    by_requester: Mapping[str, float]
    by_size: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Caveat:
    """Something that the reader must know: a word for machines, and what the sentence about it needs."""

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Everything that a change proposal says.

    Attributes
    ----------
    decision
        What the judgement says; ``picked`` stands beside it where somebody chose another point.
    picked
        Whether the point is one that somebody picked, and not the recommended one.
    point, settings, baseline
        The point's name, its settings, and those in force.
    environment
        The four figures, and whatever else differs, as lines of the environment (A6).
    comparisons
        Objectives, then further metrics of constraints, then what production counts too.
    checks
        The constraints.
    certainty
        In which share of the resamples the point, or one exactly as good, is best.
    tried, alike
        How many points were tried, and how many cannot be told from the best.
    expected
        What production should show on one day.
    mix
        Who asked for what.
    loads, fills, days, holdout_days, seeds
        What it rests on.
    sensitivities
        How much each setting moves the first objective.
    caveats
        What the reader must know, most important first.
    stamp
        Of the sweep.
    """

    decision: Decision
    picked: bool
    point: str
    settings: ReplaySettings
    baseline: ReplaySettings
    environment: tuple[EnvironmentLine, ...]
    comparisons: tuple[Comparison, ...]
    checks: tuple[Check, ...]
    certainty: float
    tried: int
    alike: int
    expected: tuple[Expected, ...]
    mix: TrafficMix
    loads: tuple[float, ...]
    fills: tuple[str | None, ...]
    days: tuple[int, ...]
    holdout_days: tuple[int, ...]
    seeds: int
    sensitivities: tuple[Sensitivity, ...]
    caveats: tuple[Caveat, ...]
    stamp: Mapping[str, Any]
    judgement: Judgement = field(repr=False)


def propose(judgement: Judgement, stamp: Mapping[str, Any], point: str | None = None) -> Proposal:
    """Return the proposal for the recommended point, or for one that somebody picked.

    Parameters
    ----------
    judgement
        Of the sweep.
    stamp
        The sweep's stamp.
    point
        The point picked; null for the recommended one.

    Raises
    ------
    InputError
        Nothing meets the constraints and no point is picked, the point is not judged, or there is no baseline.
    """
    name = judgement.recommended if point is None else point
    if name is None:
        raise InputError("proposal", "", None, "has no point: nothing meets the constraints; pick a point, or ask for less")
    if judgement.baseline is None:
        raise InputError("proposal", "", None, "needs the baseline, which this sweep lacks")
    row, base = judgement.row(name), judgement.row(judgement.baseline)
    settings, baseline = settings_of_row(row), settings_of_row(base)
    metrics = {m.key: m for m in judgement.question.metrics}
    certainty = judgement.certainty if name in (judgement.best, *judgement.equals) else float(row["certainty"])
    return Proposal(
        decision=judgement.decision,
        picked=name != judgement.recommended,
        point=name,
        settings=settings,
        baseline=baseline,
        environment=_environment(settings, baseline),
        comparisons=tuple(judgement.comparison(name, metric) for metric in metrics.values()),
        checks=tuple(_check(judgement, name, constraint) for constraint in judgement.question.constraints),
        certainty=certainty,
        tried=judgement.points.height,
        alike=_alike(judgement),
        expected=tuple(_expected(judgement, name, key) for key in PRODUCTION_METRICS),
        mix=_mix(judgement),
        loads=tuple(sorted(judgement.rows["load"].unique().to_list())),
        fills=tuple(sorted(judgement.rows["fill"].unique().to_list(), key=lambda fill: fill or "")),
        days=judgement.chosen_days,
        holdout_days=judgement.holdout_days,
        seeds=judgement.seeds,
        sensitivities=judgement.sensitivities,
        caveats=_caveats(judgement, stamp, name, settings, certainty),
        stamp=stamp,
        judgement=judgement,
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return "none" if value is None else str(value)


def _environment(settings: ReplaySettings, baseline: ReplaySettings) -> tuple[EnvironmentLine, ...]:
    differs = [name for name in SETTINGS if getattr(settings, name) != getattr(baseline, name)]
    return tuple(
        EnvironmentLine(name, ENVIRONMENT_NAMES[name], _text(getattr(settings, name)), _text(getattr(baseline, name)))
        for name in dict.fromkeys((*FOUR, *differs))
    )


def _check(judgement: Judgement, point: str, constraint: Constraint) -> Check:
    key = constraint.metric.key
    row, base = judgement.row(point), judgement.row(str(judgement.baseline))
    evidence = judgement.evidence
    place = evidence.points["point"].to_list().index(point)
    values = evidence.values[key]
    met = constraint.met(values[place, 1:], values[0, 1:])
    on_holdout = None
    if judgement.holdout is not None and row[f"{key}_holdout"] is not None:
        later, before = (np.array([r[f"{key}_holdout"]], np.float64) for r in (row, base))
        on_holdout = bool(constraint.met(later, before)[0])
    limit = constraint.limit(values[:1, 0])[0]
    return Check(
        constraint=constraint,
        limit=None if np.isnan(limit) else float(limit),
        value=row[key],
        met_share=float(met.mean()),
        met_on_holdout=on_holdout,
    )


def _alike(judgement: Judgement) -> int:
    """Return how many other points cannot be told from the best: better in one resample and worse in another, or equal."""
    if judgement.best is None:
        return 0
    first = judgement.question.objectives[0]
    scores = first.sign * judgement.evidence.values[first.metric.key]
    best = judgement.evidence.points["point"].to_list().index(judgement.best)
    spread = judgement.evidence.spread(scores - scores[best])
    feasible = judgement.points["feasible"].to_numpy()
    with np.errstate(invalid="ignore"):
        near = ~(np.abs(scores[:, 0] - scores[best, 0]) > 2 * spread)
    return int((near & feasible).sum()) - 1


def _expected(judgement: Judgement, point: str, key: str) -> Expected:
    ranges = [_day_range(judgement, name, key) for name in (str(judgement.baseline), point)]
    (base_low, base_high), (low, high) = ranges
    return Expected(key, base_low, base_high, low, high)


def _day_range(judgement: Judgement, point: str, key: str) -> tuple[float | None, float | None]:
    """Return where one further day lies with 95 % probability, from all days that count."""
    days = measured_by_block(judgement.rows, [point], PRODUCTION_METRICS[key], "day")["value"].drop_nulls().to_numpy()
    if len(days) < LEAST_BLOCKS:
        return None, None
    half = scipy.stats.t.ppf((1 + CONFIDENCE) / 2, len(days) - 1) * days.std(ddof=1) * np.sqrt(1 + 1 / len(days))
    # no share is above 100 %, and no request waits longer than it lives
    most = 1.0 if PRODUCTION_METRICS[key].unit == "share" else float(judgement.row(point)["request_ttl_s"])
    return float(max(0.0, days.mean() - half)), float(min(most, days.mean() + half))


def _mix(judgement: Judgement) -> TrafficMix:
    rows = judgement.rows.filter(pl.col("point") == judgement.baseline)
    counts = np.array(rows["asked_by"].to_list(), np.float64).reshape(rows.height, len(REQUESTERS), len(SIZES)).sum(axis=0)
    total = max(counts.sum(), 1.0)
    return TrafficMix(
        requests=int(counts.sum()),
        by_requester={who: float(counts[k].sum() / total) for k, who in enumerate(REQUESTERS)},
        by_size={size: float(counts[:, k].sum() / total) for k, size in enumerate(SIZES)},
    )


# --- what the reader must know ------------------------------------------------------------------------------------------


def _caveats(
    judgement: Judgement, stamp: Mapping[str, Any], point: str, settings: ReplaySettings, certainty: float
) -> tuple[Caveat, ...]:
    found = [*_partial(judgement, stamp), *_on_inputs(judgement, stamp), *_on_evidence(judgement, stamp, point, certainty)]
    found += [Caveat("edge", {"setting": name, "value": value}) for name, value in _edges(judgement, point)]
    if settings.client == "leave":
        found.append(Caveat("clients_leave"))
    if settings.job_timeout_s is None:
        found.append(Caveat("no_job_timeout"))
    found.append(Caveat("waits_count_expired", {"request_ttl_s": settings.request_ttl_s}))
    return tuple(found)


def _partial(judgement: Judgement, stamp: Mapping[str, Any]) -> list[Caveat]:
    """Return how much of the sweep was judged, if it was not all of it: of what was planned, or else of what was begun."""
    question = judgement.question
    scenarios = judgement.rows.select(UNDER).n_unique()
    points, points_of = judgement.points.height, judgement.points.height + judgement.left_out
    scenarios_of = scenarios + judgement.scenarios_left_out
    seeds = int(stamp.get("seeds", 0))
    if stamp.get("missing"):
        points_of = max(points_of, int(stamp.get("points", 0)))
        scenarios_of = max(scenarios_of, judgement.rows.select("load", "fill").n_unique() * seeds)
        if question.loads is None and question.fills is None:  # else some of those that were planned are not asked about
            scenarios_of = max(scenarios_of, int(stamp.get("scenarios", 0)))
    if (points, scenarios) == (points_of, scenarios_of):
        return []
    of_what = "seeds" if scenarios_of == seeds else "scenarios"
    facts = {"points": points, "points_of": points_of, "scenarios": scenarios, "scenarios_of": scenarios_of, "of_what": of_what}
    return [Caveat("partial", facts)]


def _on_inputs(judgement: Judgement, stamp: Mapping[str, Any]) -> list[Caveat]:
    found = []
    if stamp.get("reconstruction"):
        found.append(Caveat("reconstruction"))
    which = made_up(stamp)
    if which is not None:
        found.append(Caveat("synthetic", {"which": which}))
    named = (stamp.get("traffic") or {}).get("fill")
    if not stamp.get("names_everything") or named:
        # what no rule of the grid fills was filled by the rule that the traffic names, or else by the usual one
        rules = sorted({str(fill or named or FillRule()) for fill in judgement.rows["fill"].unique().to_list()})
        found.append(Caveat("fill_rule", {"rules": rules}))
        if len(rules) < 2:
            found.append(Caveat("one_fill_rule"))
    lost = unserved_range(stamp, judgement.rows["fill"].unique().to_list())
    if lost is not None:
        found.append(Caveat("unserved_models", {"least": lost[0], "most": lost[1]}))
    if not stamp.get("dated", True):
        found.append(Caveat("undated"))
    loads = sorted(judgement.rows["load"].unique().to_list())
    if len(loads) == 1:
        found.append(Caveat("one_load", {"load": loads[0], "utilisation": judgement.rows["utilisation"][0]}))
    else:
        found.append(Caveat("across_loads", {"loads": loads, "rule": judgement.question.across}))
    return found


def _on_days(judgement: Judgement) -> list[Caveat]:
    """Return which days are not whole: those that do not count, and the one that has to where there is no other."""
    found = [Caveat("short_day", {"day": day, "hours": hours}) for day, hours in judgement.short_days.items()]
    hours = sum(judgement.day_hours[day] for day in judgement.chosen_days)
    if hours < DAY_H:
        found.append(Caveat("no_whole_day", {"hours": hours}))
    return found


def _on_evidence(judgement: Judgement, stamp: Mapping[str, Any], point: str, certainty: float) -> list[Caveat]:
    found = _on_days(judgement)
    row = judgement.row(point)
    if judgement.evidence.blocks < LEAST_BLOCKS:
        found.append(Caveat("few_days", {"days": len(judgement.chosen_days), "least": LEAST_BLOCKS}))
    elif row["verdict"] == "within_noise":
        found.append(Caveat("within_noise"))
    if not row["feasible"]:
        found.append(Caveat("does_not_meet"))
    if certainty < SURE and point == judgement.best:
        found.append(Caveat("not_certain", {"certainty": certainty}))
    if not judgement.holdout_days:
        found.append(Caveat("no_holdout"))
    elif point != judgement.baseline:
        first = judgement.comparison(point, judgement.question.objectives[0].metric)
        # a point that is worse on both, chosen for a constraint, is what the days held out bear out
        leads = first.better_days * 2 > len(judgement.chosen_days)
        if leads and first.holdout_better_days * 2 <= len(judgement.holdout_days):
            facts = {"days": len(judgement.holdout_days), "better": first.holdout_better_days}
            found.append(Caveat("holdout_disagrees", facts))
    if judgement.seeds == 1:
        found.append(Caveat("one_seed"))
    if stamp.get("dropped"):
        found.append(Caveat("dropped", {"reasons": dict(stamp["dropped"])}))
    return found


def _edges(judgement: Judgement, point: str) -> list[tuple[str, object]]:
    """Return the settings at which the point lies at the edge of what was tried and another value than the baseline's."""
    row, base = judgement.row(point), judgement.row(str(judgement.baseline))
    found: list[tuple[str, object]] = []
    for name in judgement.varied:
        values = judgement.points[name].drop_nulls()
        numeric = values.dtype.is_numeric()
        if numeric and row[name] != base[name] and row[name] in (values.min(), values.max()):
            found.append((name, row[name]))
    return found
