"""A judged sweep as rows and squares for the page: the points in order, the squares of two settings, days and seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from horde_policy.settings import ReplaySettings
from horde_policy.sweep.evidence import measured_by_block, measured_evidence
from horde_policy.sweep.judge import Judgement
from horde_policy.sweep.metrics import Array, Metric
from horde_policy.sweep.results import settings_of_row
from horde_policy.units import one_or_range
from horde_policy.views.replay_runs import settings_words
from horde_policy.views.sweep_words import setting_value

__all__ = [
    "ROUNDED",
    "Heat",
    "Level",
    "Square",
    "blocks_of",
    "default_axes",
    "heat_of",
    "levels_of",
    "named_points",
    "settings_of",
    "values_of",
]

MOST_LEVELS: Final = 10
ROUNDED: Final = 9
"""Figures that differ in later digits only are equal."""

GROUPS: Final = 8
"""A setting with more values than squares have room for is cut into so many groups of equally many points."""


def settings_of(judgement: Judgement, point: str) -> ReplaySettings:
    """Return the settings of a judged point."""
    return settings_of_row(judgement.row(point))


def named_points(judgement: Judgement) -> dict[str, str]:
    """Return point → its settings in words, best first in the deciding objective; those in force and the proposed are marked."""
    first = judgement.question.objectives[0]
    score = (pl.col(first.metric.key) * -first.sign).round(ROUNDED)  # better is more, so its sign turned around stands first
    ordered = judgement.points.sort(
        pl.col("point") != (judgement.best or ""), ~pl.col("feasible"), score, ~pl.col("baseline"), "point", nulls_last=True
    )
    base = None if judgement.baseline is None else settings_of(judgement, judgement.baseline)
    names: dict[str, str] = {}
    for row in ordered.iter_rows(named=True):
        settings = settings_of_row(row)
        words = "in force" if row["baseline"] else settings_words(settings, base or ReplaySettings())
        names[row["point"]] = words + (" (proposed)" if row["point"] == judgement.recommended else "")
    return names


def values_of(judgement: Judgement, metric: Metric) -> Array:
    """Return a metric of every judged point on the days chosen on, in the points' order; NaN is not known."""
    known = judgement.evidence.values.get(metric.key)
    if known is None:
        question = judgement.question
        found = measured_evidence(judgement.rows, [metric], days=judgement.chosen_days, across=question.across, resamples=1)
        known = found.values[metric.key]
    first: Array = known[:, 0]
    return first


# --- the squares of two settings -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Level:
    """One place on an axis: its label, and the values that stand there."""

    label: str
    values: frozenset[object]


@dataclass(frozen=True, slots=True)
class Square:
    """One square: its place on both axes, the figure (null: none to show), the point that a click opens, and all its points."""

    x: int
    y: int
    value: float | None
    point: str
    members: frozenset[str]
    feasible: int


@dataclass(frozen=True, slots=True)
class Heat:
    """Squares of two settings, the levels of both, the metric that they show, and each point's own figure (null: not known)."""

    x_name: str
    y_name: str
    x_levels: tuple[Level, ...]
    y_levels: tuple[Level, ...]
    metric: Metric
    squares: tuple[Square, ...]
    figures: Mapping[str, float | None]


def default_axes(judgement: Judgement) -> tuple[str, str]:
    """Return the two settings that move the deciding objective most; the first varied ones where nothing moves it.

    A sweep of one setting gives it twice, and the squares are then one row.
    """
    ranked = list(dict.fromkeys([*(each.setting for each in judgement.sensitivities), *judgement.varied]))
    if not ranked:
        return "ceiling_tokens", "floor_tokens"
    return ranked[0], ranked[1] if len(ranked) > 1 else ranked[0]


def levels_of(points: pl.DataFrame, name: str) -> tuple[Level, ...]:
    """Return the levels of a setting in the order of its values.

    >>> [level.label for level in levels_of(pl.DataFrame({"floor_tokens": [512, 256, 512]}), "floor_tokens")]
    ['256 tokens', '512 tokens']
    """
    distinct = points[name].unique().sort(nulls_last=True).to_list()
    if len(distinct) <= MOST_LEVELS or not points[name].dtype.is_numeric():
        return tuple(Level(setting_value(name, value), frozenset([value])) for value in distinct)
    parts = [part.tolist() for part in np.array_split(np.array(distinct, dtype=object), GROUPS)]
    return tuple(Level(one_or_range(setting_value(name, p[0]), setting_value(name, p[-1])), frozenset(p)) for p in parts)


def heat_of(
    judgement: Judgement,
    x_name: str,
    y_name: str,
    metric: Metric,
    *,
    others: Literal["best", "mean", "worst"],
    fixed: Mapping[str, object],
) -> Heat:
    """Return the squares of two settings.

    Parameters
    ----------
    judgement
        What was judged.
    x_name, y_name
        The settings.
    metric
        The figure that a square shows.
    others
        What stands for several points of one square: the one that is best in the deciding objective among those that meet
        the constraints, the mean of all, or the worst of all in the metric.
    fixed
        Other settings that are held at a value.
    """
    points, values = judgement.points, values_of(judgement, metric)
    rank = {name: place for place, name in enumerate(named_points(judgement))}
    feasible, names = points["feasible"].to_numpy(), points["point"].to_list()
    kept = np.ones(points.height, bool)
    for name, value in fixed.items():
        kept &= np.array([held == value for held in points[name].to_list()], bool)
    x_levels, y_levels = levels_of(points, x_name), levels_of(points, y_name)
    squares = []
    at_x, at_y = _places(points, x_name, x_levels), _places(points, y_name, y_levels)
    for x in range(len(x_levels)):
        for y in range(len(y_levels)):
            members = np.flatnonzero(kept & (at_x == x) & (at_y == y))
            if len(members):
                eligible = members[feasible[members]]
                chosen = min((int(k) for k in members), key=lambda k: rank[names[k]])
                value = _figure(values, members, eligible, chosen, others, better=metric.better)
                squares.append(Square(x, y, value, names[chosen], frozenset(names[k] for k in members), len(eligible)))
    figures = {name: None if np.isnan(value) else float(value) for name, value in zip(names, values, strict=True)}
    return Heat(x_name, y_name, x_levels, y_levels, metric, tuple(squares), figures)


def _places(points: pl.DataFrame, name: str, levels: Sequence[Level]) -> Array:
    """Return each point's place on an axis."""
    places = {value: place for place, level in enumerate(levels) for value in level.values}
    return np.array([places[value] for value in points[name].to_list()])


def _figure(values: Array, members: Array, eligible: Array, chosen: int, others: str, *, better: str) -> float | None:
    known = values[members][~np.isnan(values[members])]
    if others == "best":
        found = values[chosen] if len(eligible) else np.nan
    elif not len(known):
        found = np.nan
    elif others == "mean":
        found = known.mean()
    else:
        found = known.min() if better == "more" else known.max()
    return None if np.isnan(found) else float(found)


# --- days and seeds ------------------------------------------------------------------------------------------------------


def blocks_of(
    judgement: Judgement, points: Sequence[str], metric: Metric, by: Literal["day", "seed"]
) -> dict[str, dict[int, Any]]:
    """Return point → day or seed → the metric there (null: not known); seeds over the days chosen on, days all of them."""
    rows = judgement.rows
    if by == "seed":
        rows = rows.filter(pl.col("day").is_in(list(judgement.chosen_days)))
    found = measured_by_block(rows, list(dict.fromkeys(points)), metric, by)
    return {
        point: dict(found.filter(pl.col("point") == point).select(by, "value").iter_rows()) for point in dict.fromkeys(points)
    }
