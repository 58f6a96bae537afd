"""A judged sweep as a file: every point with its settings, figures, intervals and verdict, and where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from horde_policy.sweep.axes import SETTINGS
from horde_policy.sweep.inputs import made_up
from horde_policy.sweep.judge import Judgement
from horde_policy.sweep.results import SWEEP
from horde_policy.views.exports import to_csv
from horde_policy.views.sweep_tables import MADE_UP
from horde_policy.views.sweep_words import days_words, short_days_words

__all__ = ["SweepStamp", "points_csv"]


@dataclass(frozen=True, slots=True)
class SweepStamp:
    """Where the points come from: the sweep's stamp and what was asked."""

    judgement: Judgement
    stamp: Mapping[str, Any]

    def columns(self) -> dict[str, str | int]:
        """Return the stamp's columns, by heading."""
        question = self.judgement.question
        which = made_up(self.stamp)
        drawn = which not in (None, "fleet") or float(self.stamp.get("base_load", 1.0)) > 1
        return {
            "traffic": str(self.stamp.get("trace", "not named")) + (" (synthetic)" if drawn else ""),
            "made up": "nothing" if which is None else MADE_UP[which],
            "wanted": "; ".join(str(objective) for objective in question.objectives),
            "must hold": "; ".join(str(constraint) for constraint in question.constraints) or "nothing",
            "chosen on": days_words(self.judgement.chosen_days),
            "held out": days_words(self.judgement.holdout_days),
            "not counted": short_days_words(self.judgement.short_days).removesuffix("; ") or days_words(()),
            "inputs": str(self.stamp.get("inputs", "")),
            "engine": str(self.stamp.get("engine", "")),
        }


def points_csv(judgement: Judgement, stamp: Mapping[str, Any]) -> bytes:
    """Return every judged point as CSV: shares from 0 to 1, waits in seconds, tokens a day; empty is not known.

    Parameters
    ----------
    judgement
        What was judged.
    stamp
        The sweep's.
    """
    names = {"point": "settings", "baseline": "in force"}
    for name in SETTINGS:
        unit = SWEEP.columns[name].unit
        names[name] = f"{name} ({unit})" if unit else name
    for metric in judgement.question.metrics:
        unit = {"share": "share", "s": "s", "tokens": "tokens a day"}[metric.unit]
        names[metric.key] = f"{metric.phrase} ({unit})"
        names[f"{metric.key}_low"] = f"{metric.phrase}, from ({unit}, 95 % interval)"
        names[f"{metric.key}_high"] = f"{metric.phrase}, to ({unit}, 95 % interval)"
        names[f"{metric.key}_holdout"] = f"{metric.phrase}, days held out ({unit})"
    names |= {
        "feasible": "meets the constraints",
        "met_share": "of the resamples, meets them in",
        "front": "on the front",
        "certainty": "of the resamples, best in",
        "gain": "better than in force by",
        "gain_half_width": "half width of that, for all settings together",
        "verdict": "verdict",
    }
    return to_csv(judgement.points, names, SweepStamp(judgement, stamp))
