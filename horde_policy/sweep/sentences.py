"""Objectives and constraints as people write them: "p90 wait of registered ≤ 120 s", "fewest tokens given free".

A sentence is a metric's phrase, a comparison, and a bound with its unit; the bound may be the baseline's own figure.
"""

import math
import re
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from horde_policy.errors import InputError
from horde_policy.sweep.metrics import METRICS, Array, Better, Metric

__all__ = ["Constraint", "Objective", "bound_text", "parse_constraint", "parse_objective"]

Sense = Literal["≤", "≥", "<", ">"]

_SENSES: Final[dict[str, Sense]] = {
    "≤": "≤", "<=": "≤", "=<": "≤", "at most": "≤", "not above": "≤", "no more than": "≤",
    "≥": "≥", ">=": "≥", "=>": "≥", "at least": "≥", "not below": "≥", "no less than": "≥",
    "<": "<", "below": "<", "less than": "<", "under": "<",
    ">": ">", "above": ">", "more than": ">", "over": ">",
}  # fmt: skip
_SENSE = re.compile("|".join(rf"\b{re.escape(w)}\b" if w[0].isalpha() else re.escape(w) for w in sorted(_SENSES, key=len)[::-1]))
_NUMBER = r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?"
_BOUND = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>[^\d\s][\w\s%]*)?")
_OF_BASELINE = re.compile(rf"(?:(?P<number>{_NUMBER})\s*(?P<kind>%\s*of|[×x*]))?\s*(?:the\s+)?baseline")
_UNITS: Final[dict[str, dict[str, float]]] = {
    "share": {"%": 0.01, "percent": 0.01, "": 1.0},
    "s": {"": 1.0, "s": 1.0, "seconds": 1.0, "min": 60.0, "minutes": 60.0, "h": 3600.0, "hours": 3600.0},
    "tokens": {"": 1.0, "tokens": 1.0, "k": 1e3, "k tokens": 1e3, "m": 1e6, "m tokens": 1e6},
}
_A_DAY = re.compile(r"\s*(a|per) day$")
_BETTER: Final[dict[str, Better]] = {
    "least": "less", "fewest": "less", "lowest": "less", "shortest": "less", "smallest": "less",
    "min": "less", "minimise": "less",
    "most": "more", "highest": "more", "largest": "more", "max": "more", "maximise": "more",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric and which side of it is wanted."""

    metric: Metric
    better: Better

    @property
    def sign(self) -> float:
        """1 where more is better, −1 where less is: the metric times it is to be made large."""
        return 1.0 if self.better == "more" else -1.0

    def __str__(self) -> str:
        return f"{'most' if self.better == 'more' else 'least'} {self.metric.phrase}"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A bound on a metric: a number in the metric's unit, or so many times what the baseline has."""

    metric: Metric
    sense: Sense
    bound: float
    of_baseline: bool = False

    def limit(self, baseline: Array) -> Array:
        """Return the bound as a number, given what the baseline has."""
        limit: Array = self.bound * baseline if self.of_baseline else np.full_like(baseline, self.bound)
        return limit

    def met(self, values: Array, baseline: Array) -> Array:
        """Return where the values meet it; what is not known does not."""
        limit = self.limit(baseline)
        compare = {"≤": np.less_equal, "≥": np.greater_equal, "<": np.less, ">": np.greater}[self.sense]
        with np.errstate(invalid="ignore"):
            met: Array = compare(values, limit)
        return met

    def __str__(self) -> str:
        if self.of_baseline:
            bound = "baseline" if self.bound == 1 else f"{self.bound * 100:.12g} % of baseline"
        else:
            bound = bound_text(self.bound, self.metric)
        return f"{self.metric.phrase} {self.sense} {bound}"


def bound_text(value: float, metric: Metric) -> str:
    """Return a bound as it is typed, to be read again as the same number.

    >>> bound_text(0.05, METRICS["expired_share"]), bound_text(120.0, METRICS["p90_wait_registered_s"])
    ('5 %', '120 s')
    """
    if metric.unit == "share":
        return f"{value * 100:.12g} %"
    number = f"{value:,.0f}" if value == round(value) else repr(value)
    return f"{number} {metric.unit}"


def _words(text: str) -> str:
    return " ".join(text.strip().rstrip(".").lower().replace("_", " ").split())


_PHRASES: Final = {_words(name): metric for metric in METRICS.values() for name in (metric.key, metric.phrase)}


def _metric(what: str, sentence: str, words: str) -> Metric:
    found = _PHRASES.get(words.removeprefix("the "))
    if found is None:
        known = "; ".join(metric.phrase for metric in METRICS.values())
        raise InputError(what, sentence, words, "is no metric", hint=f"the metrics are: {known}")
    return found


def parse_objective(sentence: str) -> Objective:
    """Return the objective that a sentence names: a metric, and "least" or "most" before it if not its own better side.

    Raises
    ------
    InputError
        It names no metric: the message lists them.

    Examples
    --------
    >>> str(parse_objective("refused share of unfunded")), str(parse_objective("fewest tokens given free"))
    ('least refused share of unfunded', 'least tokens given free')
    """
    words = _words(sentence)
    first, _, rest = words.partition(" ")
    if first.rstrip(":") in _BETTER:
        return Objective(_metric("objective", sentence, rest), _BETTER[first.rstrip(":")])
    metric = _metric("objective", sentence, words)
    return Objective(metric, metric.better)


def parse_constraint(sentence: str) -> Constraint:
    """Return the constraint that a sentence states.

    Comparisons: ``≤ ≥ < >``, ``<= >=``, "at most", "at least", "below", "above". Bounds: a number with its unit (``%``, ``s``,
    ``min``, ``h``, ``tokens``, ``k``, ``M``), ``baseline``, ``110 % of baseline``, ``1.1 × baseline``.

    Raises
    ------
    InputError
        The metric, the comparison or the bound cannot be read, or no figure can meet it: says which, and what can stand there.

    Examples
    --------
    >>> str(parse_constraint("p90 wait of registered <= 2 min"))
    'p90 wait of registered ≤ 120 s'
    >>> str(parse_constraint("expired share at most the baseline"))
    'expired share ≤ baseline'
    >>> parse_constraint("p90 wait of registered 120 s")
    Traceback (most recent call last):
    horde_policy.errors.InputError: constraint, p90 wait of registered 120 s: ... must hold a comparison: ≤, ≥, <, >, ...
    """
    words = _words(sentence)
    found = _SENSE.search(words)
    if found is None:
        raise InputError("constraint", sentence, words, "must hold a comparison: ≤, ≥, <, >, at most, at least")
    metric = _metric("constraint", sentence, words[: found.start()].strip())
    sense = _SENSES[found.group()]
    bound = words[found.end() :].strip()
    of_baseline = _OF_BASELINE.fullmatch(bound)
    if of_baseline:
        factor = float((of_baseline["number"] or "1").replace(",", ""))
        if of_baseline["kind"] and of_baseline["kind"].startswith("%"):
            factor /= 100
        return _meetable(sentence, Constraint(metric, sense, factor, of_baseline=True))
    return _meetable(sentence, Constraint(metric, sense, _bound(sentence, metric, bound)))


def _meetable(sentence: str, constraint: Constraint) -> Constraint:
    """Return the constraint, unless no figure can meet it, whatever is tried."""
    if constraint.sense == "<" and constraint.bound == 0:
        raise InputError("constraint", sentence, str(constraint), "can be met by nothing: no figure is below 0")
    if constraint.sense == ">" and constraint.metric.unit == "share" and constraint.bound == 1 and not constraint.of_baseline:
        raise InputError("constraint", sentence, str(constraint), "can be met by nothing: no share is above 100 %")
    return constraint


def _bound(sentence: str, metric: Metric, text: str) -> float:
    units = _UNITS[metric.unit]
    named = ", ".join(unit for unit in units if unit)
    if metric.unit == "tokens":
        text = _A_DAY.sub("", text)
    found = _BOUND.fullmatch(text)
    unit = (found["unit"] or "").strip() if found else ""
    if not found or unit not in units:
        raise InputError("constraint", sentence, text, f"must be a number with its unit ({named}), or the baseline")
    value = float(found["number"].replace(",", "")) * units[unit]
    if not math.isfinite(value) or (metric.unit == "share" and value > 1):
        raise InputError("constraint", sentence, text, "must be a share of 0 % to 100 %: 5 % or 0.05")
    return float(f"{value:.12g}")
