"""How much each setting moves an objective: the mean over all points that share a value of it, value by value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from horde_policy.frames.schemas import Column, Schema
from horde_policy.sweep.evidence import Evidence
from horde_policy.sweep.metrics import Array, Metric
from horde_policy.sweep.noise import LEAST_BLOCKS, half_width
from horde_policy.units import one_or_range

__all__ = ["LEVELS", "Sensitivity", "sensitivity"]

MOST_LEVELS: Final = 12
GROUPS: Final = 8
"""A setting with more values than can be shown one by one is cut into so many groups of equally many points."""

ROUNDING: Final = 1e-9
"""An effect so small beside the figures is what a fit leaves by rounding."""

LEVELS: Final = Schema(
    "levels",
    {
        "setting": Column(pl.String),
        "level": Column(pl.String, text="the value, or the ends of a group of values"),
        "points": Column(pl.Int64),
        "mean": Column(pl.Float64, null="not known at any of the points", text="of the metric over the points"),
        "half_width": Column(
            pl.Float64,
            null="one day and one seed only",
            text="of its distance from the mean of all levels: half the width of the 95 % interval",
        ),
    },
)
"""One row a setting and level, levels in the order of their values."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How much one setting moves the metric.

    Attributes
    ----------
    setting
        Its name.
    effect
        The mean at its highest level less that at its lowest; levels are picked by their means.
    half_width
        Half the width of the effect's 95 % interval; null with too few days.
    share
        Of all variation between points, the part that the setting makes alone; 0 to 1. Null if nothing varies.
    within_noise
        Whether the effect cannot be told from none.
    """

    setting: str
    effect: float
    half_width: float | None
    share: float | None
    within_noise: bool


def sensitivity(evidence: Evidence, metric: Metric, varied: Sequence[str]) -> tuple[tuple[Sensitivity, ...], pl.DataFrame]:
    """Return how much each varied setting moves a metric, the strongest first, and the mean at each of its levels.

    The means are those of an additive fit over the points, so that settings that are not quite crossed (combinations that
    make no sense were dropped) do not stand in for each other. A baseline that is no point of the grid is left out.

    Parameters
    ----------
    evidence
        What was measured.
    metric
        Of which.
    varied
        The settings that differ between points.

    Returns
    -------
    tuple
        One :class:`Sensitivity` a setting, and frame :data:`LEVELS`.
    """
    points, values = _on_the_grid(evidence, metric, varied)
    known = ~np.isnan(values[:, 0])
    settings = {name: _levels(points[name].filter(pl.Series(known))) for name in varied if known.any()}
    settings = {name: (names, member) for name, (names, member) in settings.items() if len(names) > 1}
    if not settings:
        return (), LEVELS.empty()
    values = values[known]
    fits = _fitted(values, [member for _, member in settings.values()])
    found = []
    levels = []
    for (setting, (names, member)), means in zip(settings.items(), fits, strict=True):
        counts = np.bincount(member, minlength=len(names))
        # Days that are high or low for all levels move no level against the others.
        widths = half_width(evidence.spread(means - means.mean(axis=0)), evidence.blocks)
        levels += [
            (setting, name, int(n), _known(mean), _known(width))
            for name, n, mean, width in zip(names, counts, means[:, 0], widths, strict=True)
        ]
        found.append(_one(setting, evidence, values[:, 0], means, counts))
    frame = pl.DataFrame(levels, schema=LEVELS.polars_schema(), orient="row")
    return tuple(sorted(found, key=lambda s: (-(s.share or 0.0), s.setting))), LEVELS.checked(frame)


def _on_the_grid(evidence: Evidence, metric: Metric, varied: Sequence[str]) -> tuple[pl.DataFrame, Array]:
    """Return the points and their values, without a baseline that has a value of its own."""
    points, values = evidence.points, evidence.values[metric.key]
    if points.height > 2 and points["baseline"][0]:
        others = points[1:]
        if any(not others[name].eq_missing(points[name][0]).any() for name in varied):
            return others, values[1:]
    return points, values


def _fitted(values: Array, members: Sequence[Array]) -> list[Array]:
    """Return for each setting its levels × resamples: the mean of an additive fit at each level."""
    columns = [np.eye(member.max() + 1)[member] for member in members]
    with np.errstate(invalid="ignore"):
        effects = np.linalg.pinv(np.hstack((np.ones((len(values), 1)), *columns))) @ values
        overall = values.mean(axis=0)
    found = []
    at = 1
    for member, column in zip(members, columns, strict=True):
        effect = effects[at : at + column.shape[1]]
        at += column.shape[1]
        weight = np.bincount(member) / len(member)
        found.append(overall + effect - weight @ effect)
    return found


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _one(setting: str, evidence: Evidence, estimates: Array, means: Array, counts: Array) -> Sensitivity:
    at = means[:, 0]
    apart = means[at.argmax()] - means[at.argmin()]
    if abs(apart[0]) <= ROUNDING * np.abs(estimates).max():
        apart = np.zeros_like(apart)
    width = float(half_width(evidence.spread(apart[None, :]), evidence.blocks)[0])
    total = float(((estimates - estimates.mean()) ** 2).sum())
    between = float((counts * (at - estimates.mean()) ** 2).sum())
    few = evidence.blocks < LEAST_BLOCKS
    return Sensitivity(
        setting=setting,
        effect=float(apart[0]),
        half_width=None if few else _known(width),
        share=between / total if total > 0 else None,
        within_noise=few or not abs(apart[0]) > width,
    )


def _levels(values: pl.Series) -> tuple[list[str], Array]:
    """Return the names of a setting's levels in order, and each point's level."""
    distinct = values.unique().sort(nulls_last=True)
    if len(distinct) <= MOST_LEVELS or not values.dtype.is_numeric():
        names = ["none" if v is None else f"{v:g}" if isinstance(v, float) else str(v) for v in distinct.to_list()]
        places = {value: place for place, value in enumerate(distinct.to_list())}
        return names, np.array([places[value] for value in values.to_list()])
    ranks = values.rank("ordinal").to_numpy() - 1
    member = (ranks * GROUPS // len(values)).astype(np.int64)
    ends = [values.filter(pl.Series(member == k)).cast(pl.Float64).sort() for k in range(GROUPS)]
    return [one_or_range(f"{part[0]:g}", f"{part[-1]:g}") for part in ends], member
