"""What a grid file says of one setting: a value, a list of values, or a range, each value checked where it is typed (A4)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_type_hints

from horde_policy.errors import ConfigError
from horde_policy.settings import LARGEST_SETTING, ReplaySettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = ["MOST_VALUES", "SETTINGS", "Axis", "Listed", "Span", "read_axis", "spread"]

SETTINGS: tuple[str, ...] = tuple(ReplaySettings.__dataclass_fields__)
"""Every setting that a grid can name, in the order in which settings are shown."""

WHOLE = frozenset(name for name, kind in get_type_hints(ReplaySettings).items() if kind is int)

MOST_VALUES = 10_000
"""An axis of more values is a slip of the keyboard."""

DIGITS = 4
"""A value drawn from a range without steps is rounded to so many digits, so that it can be typed."""

_RANGE_KEYS = ("from", "to", "step", "count", "scale")
_WIDEST: Mapping[str, Mapping[str, float]] = {
    "ceiling_tokens": {"floor_tokens": 1},
    "floor_tokens": {"ceiling_tokens": MAX_LENGTH_LIMIT_TOKENS},
    "wait_full_s": {"wait_floor_s": LARGEST_SETTING},
    "wait_floor_s": {"wait_full_s": 0.0},
}
"""What a value is checked against when it is looked at alone: the widest that its neighbour could be."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An axis of some values, in order, none twice."""

    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """An axis of all values between two ends, for random and Sobol search."""

    low: float
    high: float
    log: bool
    whole: bool

    def at(self, share: float) -> float:
        """Return the value so far along the range, 0 ≤ share < 1, rounded so that it can be typed.

        >>> Span(100.0, 1000.0, log=True, whole=True).at(0.5)
        316
        """
        if self.log:
            value = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + share * (self.high - self.low)
        rounded = round(value) if self.whole else float(f"{value:.{DIGITS}g}")
        return min(max(rounded, type(rounded)(self.low)), type(rounded)(self.high))


Axis = Listed | Span


def spread(axis: Axis, share: float) -> object:
    """Return the value so far along the axis, 0 ≤ share < 1.

    >>> spread(Listed((512, 1024)), 0.7)
    1024
    """
    if isinstance(axis, Span):
        return axis.at(share)
    return axis.values[min(int(share * len(axis.values)), len(axis.values) - 1)]


def read_axis(name: str, given: object) -> Axis:
    """Return the axis that a grid file gives for a setting, every value of it checked alone.

    A value stands for itself, a list for its values. A table is a range: ``from``, ``to``, and either ``step``, or
    ``count`` values evenly spaced on a ``scale`` (``linear`` or ``log``), or neither: then any value between is drawn,
    which only random and Sobol search can do.

    Raises
    ------
    ConfigError
        A value breaks its rule, stands twice, or the range is none: names the setting, the value and the rule.

    Examples
    --------
    >>> read_axis("floor_tokens", {"from": 256, "to": 1024, "step": 256})
    Listed(values=(256, 512, 768, 1024))
    >>> read_axis("wait_full_s", {"from": 10, "to": 1000, "count": 3, "scale": "log"})
    Listed(values=(10.0, 100.0, 1000.0))
    >>> read_axis("floor_tokens", [512, 0])
    Traceback (most recent call last):
    horde_policy.errors.ConfigError: setting floor_tokens: 0 must be a whole number of at least 1
    """
    axis = _range(name, given) if isinstance(given, Mapping) else Listed(_listed(given))
    if isinstance(axis, Span):
        _checked(name, (axis.low, axis.high) if not axis.whole else (int(axis.low), int(axis.high)))
        return axis
    if not axis.values:
        raise ConfigError(name, given, "must hold at least one value")
    return Listed(_checked(name, axis.values))


def _listed(given: object) -> tuple[object, ...]:
    return tuple(given) if isinstance(given, list) else (given,)


def _checked(name: str, values: tuple[object, ...]) -> tuple[object, ...]:
    """Return the values of a setting in its own type; refuse the first that breaks its rule or stands twice."""
    typed = [_typed(name, value) for value in values]
    seen: set[object] = set()
    for value in typed:
        ReplaySettings(**{**_WIDEST.get(name, {}), name: value})  # type: ignore[arg-type]
        if value in seen:
            raise ConfigError(name, value, "stands twice")
        seen.add(value)
    return tuple(typed)


def _typed(name: str, value: object) -> object:
    if name == "job_timeout_s" and value == "none":  # TOML has no null
        return None
    return float(value) if name not in WHOLE and isinstance(value, int) and not isinstance(value, bool) else value


def _range(name: str, given: Mapping[str, object]) -> Axis:
    strange = [key for key in given if key not in _RANGE_KEYS]
    if strange:
        raise ConfigError(name, strange[0], "is not part of a range; its parts are " + ", ".join(_RANGE_KEYS))
    low, high = _end(name, given, "from"), _end(name, given, "to")
    if not low < high:
        raise ConfigError(name, dict(given), "must have from below to")
    scale = given.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise ConfigError(name, scale, "must be linear or log")
    if scale == "log" and low <= 0:
        raise ConfigError(name, low, "must be above 0 for a range on a log scale")
    if "step" in given and ("count" in given or scale == "log"):
        raise ConfigError(name, dict(given), "must have a step, or a count and a scale, not both")
    whole = name in WHOLE
    if whole and not (low.is_integer() and high.is_integer()):
        raise ConfigError(name, dict(given), "must have whole numbers at both ends")
    if "step" in given:
        return Listed(_steps(name, low, high, given["step"], whole=whole))
    span = Span(low, high, log=scale == "log", whole=whole)
    if "count" not in given:
        return span
    count = given["count"]
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MOST_VALUES:
        raise ConfigError(name, count, f"must be a count of 2 to {MOST_VALUES:,} values")
    return Listed(tuple(dict.fromkeys(span.at(k / (count - 1)) for k in range(count))))


def _end(name: str, given: Mapping[str, object], key: str) -> float:
    value = given.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(name, value, f"must be a finite number: a range has from and to, and this is its {key}")
    return float(value)


def _steps(name: str, low: float, high: float, step: object, *, whole: bool) -> tuple[object, ...]:
    """Return low, low + step, … up to high; a step that misses the end by rounding still reaches it."""
    if isinstance(step, bool) or not isinstance(step, int | float) or not (math.isfinite(step) and step > 0):
        raise ConfigError(name, step, "must be a step above 0")
    if whole and not float(step).is_integer():
        raise ConfigError(name, step, "must be a whole step")
    count = math.floor((high - low) / step * (1 + 1e-12) + 1e-9) + 1
    if count > MOST_VALUES:
        raise ConfigError(name, step, f"makes {count:,} values; at most {MOST_VALUES:,}")
    values = (low + k * step for k in range(count))
    return tuple(int(v) if whole else float(f"{v:.12g}") for v in values)
