"""What the squares of a judged sweep show: two settings, a figure, settings held at a value; and what of a link they cannot."""

from collections.abc import Mapping
from dataclasses import dataclass

from horde_policy.sweep.judge import Judgement
from horde_policy.sweep.metrics import METRICS, Metric
from horde_policy.views.address_values import left_out
from horde_policy.views.sweep_results import default_axes
from horde_policy.views.sweep_state import SweepAsked
from horde_policy.views.sweep_words import SETTING_WORDS

__all__ = ["Squares", "squares_of"]


@dataclass(frozen=True, slots=True)
class Squares:
    """The settings of both axes, the figure, the settings held at a value, and a note on each part of a link that is left out."""

    x: str
    y: str
    metric: Metric
    fixed: Mapping[str, object]
    notes: tuple[str, ...]


def squares_of(asked: SweepAsked, judgement: Judgement) -> Squares | None:
    """Return what the squares show of what the address asks; null where no setting was varied."""
    varied = list(judgement.varied)
    if not varied:
        return None
    notes: list[str] = []
    x, y = default_axes(judgement)
    for name, given in (("x", asked.x), ("y", asked.y)):
        if given and given not in varied:
            words = ", ".join(SETTING_WORDS[setting][0] for setting in varied)
            notes.append(left_out(name, [given], f"must be a setting that this sweep varies: {words}"))
    if asked.y in varied and asked.y == asked.x:
        notes.append(left_out("y", [asked.y], "must be another setting than x"))
    x = asked.x if asked.x in varied else x
    y = asked.y if asked.y in varied and asked.y != x else y if y != x else next((name for name in varied if name != x), x)
    if asked.metric and asked.metric not in METRICS:
        notes.append(left_out("show", [asked.metric], f"must be one of the {len(METRICS)} figures that can be chosen at Figure"))
    metric = METRICS.get(asked.metric, judgement.question.objectives[0].metric)
    fixed, unknown = _fixed(asked, judgement, x, y)
    if unknown:
        rule = "must hold a setting of neither axis at a value that this sweep tried"
        notes.append(left_out("fix", unknown, rule, several=True))
    return Squares(x, y, metric, fixed, tuple(notes))


def _fixed(asked: SweepAsked, judgement: Judgement, x: str, y: str) -> tuple[dict[str, object], list[str]]:
    """Return the settings that the address holds at a value, as far as the sweep has such points, and those that it has not."""
    found: dict[str, object] = {}
    unknown: list[str] = []
    for pair in asked.fixed:
        name, _, text = pair.partition("=")
        held = name in judgement.varied and name not in (x, y)
        values = {str(value): value for value in judgement.points[name].unique().to_list()} if held else {}
        if text in values:
            found[name] = values[text]
        else:
            unknown.append(pair)
    return found, unknown
