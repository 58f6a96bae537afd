"""A sweep's figures as people read them: units, bounds of intervals, verdicts, settings."""

import math
from collections.abc import Mapping
from typing import Final

from horde_policy.errors import ConfigError, shown
from horde_policy.replay.fill_rule import FillRule
from horde_policy.sweep.metrics import METRICS, PRODUCTION_METRICS, Metric
from horde_policy.sweep.sentences import Constraint, Objective
from horde_policy.units import with_range
from horde_policy.views.text import NOT_REPORTED, count, ratio, seconds

__all__ = [
    "SETTING_WORDS",
    "VERDICTS",
    "constraint_words",
    "days_words",
    "difference_words",
    "effect_words",
    "figure_words",
    "fill_words",
    "metric_words",
    "objective_words",
    "setting_told",
    "setting_value",
    "short_days_words",
    "with_bounds",
]

VERDICTS: Final[dict[str, str]] = {
    "better": "better, beyond noise",
    "worse": "worse, beyond noise",
    "within_noise": "within the noise",
    "same": "the same",
    "too_few_days": "too few days to tell",
    "not_known": "not known",
}
"""Verdict → how it reads."""

SETTING_WORDS: Final[dict[str, tuple[str, str]]] = {
    "ceiling_tokens": ("Ceiling", "tokens"),
    "floor_tokens": ("Floor", "tokens"),
    "wait_full_s": ("Full wait", "s"),
    "wait_floor_s": ("Floor wait", "s"),
    "assumed_speed_tok_per_s": ("Assumed speed", "tok/s"),
    "ahead": ("What counts as ahead", ""),
    "count_threads": ("Threads counted", ""),
    "jobs_rule_floor_per_thread": ("Jobs rule's floor", "jobs a thread"),
    "request_ttl_s": ("Requests live", "s"),
    "ageing_kudos": ("Ageing", "kudos"),
    "ageing_every_s": ("Ageing every", "s"),
    "job_timeout_s": ("Jobs end after", "s"),
    "rule": ("Rule", ""),
    "client": ("A refused client", ""),
    "return_after_s": ("Back after", "s"),
    "return_times": ("Back so often", ""),
}
"""Setting → its label and its unit."""


def _metric(metric: Metric | str) -> Metric:
    return {**METRICS, **PRODUCTION_METRICS}[metric] if isinstance(metric, str) else metric


def metric_words(metric: Metric | str) -> str:
    """Return a metric's phrase, as a label.

    >>> metric_words("p90_wait_registered_s")
    'P90 wait of registered'
    """
    phrase = _metric(metric).phrase
    return phrase[:1].upper() + phrase[1:]


def figure_words(metric: Metric | str, value: float | None) -> str:
    """Return a figure with its unit.

    >>> figure_words("refused_share", 0.0523), figure_words("p90_wait_registered_s", 12.34)
    ('5.2 %', '12.3 s')
    >>> figure_words("free_tokens_per_day", 1234567.8), figure_words("refused_share", None)
    ('1,234,568 tokens a day', '—')
    """
    unit = _metric(metric).unit
    if value is None:
        return NOT_REPORTED
    if unit == "share":
        return ratio(value) if value == 0 or abs(value) >= 0.0005 else f"{value * 100:.2g} %"
    if unit == "s":
        return f"{value:.1f} s" if abs(value) < 100 else f"{count(value)} s"
    return f"{count(value)} tokens a day"


def _decimals(metric: Metric, value: float, *, points: bool = False) -> int:
    """Return with how many decimals a figure is written, as both ends of its range then are; ``points``: a difference."""
    if metric.unit != "share":
        return int(metric.unit == "s" and abs(value) < 100)
    percent = abs(value) * 100
    if percent == 0 or (percent >= 0.05 and not points):
        return 1
    return min(4, max(0, 1 - math.floor(math.log10(percent))))  # two digits, of what is not next to nothing


def _written(metric: Metric, value: float, decimals: int, *, points: bool = False, signed: bool = False) -> str:
    """Return a figure or, with ``points``, a difference with its unit and so many decimals; no sign stands before nothing."""
    share = metric.unit == "share"
    number = f"{abs(value) * (100 if share else 1):,.{decimals}f}"
    sign = "" if not signed or not number.strip("0.") else "+" if value > 0 else "−"
    return f"{sign}{number} {('points' if points else '%') if share else 's' if metric.unit == 's' else 'tokens a day'}"


def with_bounds(metric: Metric | str, value: float | None, low: float | None, high: float | None) -> str:
    """Return a figure with both bounds of its interval, where they are known.

    >>> with_bounds("refused_share", 0.05, 0.0, 0.062), with_bounds("refused_share", 0.05, None, None)
    ('5.0 % (0.0 to 6.2)', '5.0 %')
    >>> with_bounds("p90_wait_registered_s", 98.52, 90.0, 105.21)
    '98.5 s (90.0 to 105.2)'
    """
    if value is None or low is None or high is None:
        return figure_words(metric, value)
    metric = _metric(metric)
    decimals = _decimals(metric, value)
    return with_range(*(_written(metric, each, decimals) for each in (value, low, high)))


def difference_words(
    metric: Metric | str,
    value: float | None,
    half_width: float | None,
    baseline_low: float | None,
    baseline_high: float | None,
) -> str:
    """Return a difference from the baseline with its sign and both bounds of its interval, where they are known.

    No figure is below 0 and no share above 100 %, so a bound goes no further than from the baseline's own bounds to there.

    >>> difference_words("refused_share", -0.021, 0.004, 0.05, 0.07)
    '−2.1 points (−2.5 to −1.7)'
    >>> difference_words("refused_share", 0.13, 0.43, 0.01, 0.04)
    '+13 points (−4 to +56)'
    >>> difference_words("refused_share", 0.0273, 0.0129, 0.01, 0.04), difference_words("refused_share", 0.0, 0.004, 0.01, 0.04)
    ('+2.7 points (+1.4 to +4.0)', '0.00 points (−0.40 to +0.40)')
    >>> difference_words("p90_wait_registered_s", 12.0, None, None, None)
    '+12.0 s (bounds not known)'
    """
    metric = _metric(metric)
    if value is None:
        return NOT_REPORTED
    decimals = _decimals(metric, value or half_width or 0.0, points=True)
    if half_width is None or baseline_low is None or baseline_high is None:
        return f"{_written(metric, value, decimals, points=True, signed=True)} (bounds not known)"
    low, high = max(value - half_width, -baseline_high), value + half_width
    if metric.unit == "share":
        high = min(high, 1 - baseline_low)
    return with_range(*(_written(metric, each, decimals, points=True, signed=True) for each in (value, low, high)))


def effect_words(metric: Metric | str, value: float, half_width: float | None) -> str:
    """Return by how much a setting moves a figure, with both bounds of the interval, where they are known.

    >>> effect_words("refused_share", 0.3, 0.4), effect_words("p90_wait_registered_s", 9.0, None)
    ('30 points (0 to 70)', '9.0 s (bounds not known)')
    """
    metric = _metric(metric)
    decimals = _decimals(metric, value or half_width or 0.0, points=True)
    if half_width is None:
        return f"{_written(metric, value, decimals, points=True)} (bounds not known)"
    most = 1.0 if metric.unit == "share" else float("inf")
    low, high = max(value - half_width, 0.0), min(value + half_width, most)
    return with_range(*(_written(metric, each, decimals, points=True) for each in (value, low, high)))


def fill_words(fill: str | None) -> str:
    """Return a fill rule by what differs from the usual one, as short as it can be told.

    >>> fill_words(None), fill_words("max_length=tight,models=weighted,requester=0.7/0.1,can_pay=0.5,allow_downgrade=0")
    ('as the traffic says', 'max_length=tight, models=weighted')
    """
    if fill is None:
        return "as the traffic says"
    usual = set(str(FillRule()).split(","))
    parts = [part for part in fill.split(",") if part not in usual]
    return ", ".join(parts) or "the usual fill rule"


def objective_words(objective: Objective) -> str:
    """Return an objective as a sentence.

    >>> from horde_policy.sweep.sentences import parse_objective
    >>> objective_words(parse_objective("refused share"))
    'Least refused share'
    """
    text = str(objective)
    return text[:1].upper() + text[1:]


def constraint_words(constraint: Constraint) -> str:
    """Return a constraint as a sentence."""
    text = str(constraint)
    return text[:1].upper() + text[1:]


def setting_told(error: ConfigError) -> str:
    """Return why a setting is refused, in the words of its field and not by its name in a configuration.

    >>> setting_told(ConfigError("floor_tokens", 512, "must not be above ceiling_tokens, which is 100"))
    'the floor, 512, must not be above the ceiling, which is 100'
    """
    told = f"{error.setting}, {shown(error.value)}, {error.rule}"
    for name, (words, unit) in SETTING_WORDS.items():
        if unit:  # a quantity; what has none is chosen from a list, where nothing is refused
            told = told.replace(name, f"the {words.lower()}")
    return told


def setting_value(name: str, value: object) -> str:
    """Return a setting's value with its unit.

    >>> setting_value("ceiling_tokens", 4096), setting_value("wait_full_s", 60.0), setting_value("job_timeout_s", None)
    ('4,096 tokens', '60 s', 'no limit')
    """
    unit = SETTING_WORDS[name][1]
    if value is None:
        return "no limit"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        text = count(value)
    elif isinstance(value, float):
        text = f"{value:,.10g}"
    else:
        text = str(value).replace("_", " ")
    return f"{text} {unit}".strip()


def days_words(days: tuple[int, ...]) -> str:
    """Return days as people name them.

    >>> days_words((1, 2, 3, 5)), days_words((4,)), days_words(())
    ('days 1 to 3 and 5', 'day 4', 'no day')
    """
    if not days:
        return "no day"
    runs: list[list[int]] = []
    for day in sorted(days):
        if runs and day == runs[-1][-1] + 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    text = words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" and {words[-1]}"
    return f"day{'s' if len(days) > 1 else ''} {text}"


def short_days_words(hours: Mapping[int, float]) -> str:
    """Return the days that are not whole with what they span, to stand in a list of facts; nothing if there is none.

    >>> short_days_words({8: 0.25}), short_days_words({})
    ('day 8 (15 min) does not count; ', '')
    """
    return "".join(f"day {day} ({seconds(spanned * 3600)}) does not count; " for day, spanned in hours.items())
