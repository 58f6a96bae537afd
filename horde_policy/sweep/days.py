"""How much of each day the traffic holds: a log seldom ends on a whole day, and its last hours are no day to judge by."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl

from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.stage import days_of

__all__ = ["DAY_H", "counted_days", "day_hours", "hours_by_day", "parts_of_days"]

DAY_H: Final = 24.0
HOUR_US: Final = 3_600_000_000
MOST_LACKING: Final = 0.05
"""A last day that lacks no more than this share of what the days before brought is whole."""


def day_hours(inputs: SweepInputs) -> list[float]:
    """Return the hours of each day: 24 for a whole one, else those from its beginning to the last request.

    Day 1 begins with the first request and each day where the one before ends, so that the last alone can be short. It is, if
    of the requests of the days before more than 5 % came later in their day than its last one: where nobody asks at night, a
    log that ends in the evening lacks nothing. A day alone is short if more than 5 % of its time lies after its last request.
    """
    created = inputs.trace.frame["created"].to_physical().to_numpy()
    since_us = created - created.min()
    days = days_of(inputs)
    day_us = int(DAY_H) * HOUR_US
    tail_us = int(since_us.max()) - (days - 1) * day_us
    before = since_us[since_us < (days - 1) * day_us]
    lacking = float((before % day_us > tail_us).mean()) if len(before) else 1 - tail_us / day_us
    return [DAY_H] * (days - 1) + [DAY_H if lacking <= MOST_LACKING else tail_us / HOUR_US]


def hours_by_day(frame: pl.DataFrame) -> dict[int, float]:
    """Return day → its hours, of frame ``SWEEP``, by day."""
    return dict(frame.select("day", "day_hours").unique().sort("day").iter_rows())


def counted_days(hours: Mapping[int, float]) -> tuple[int, ...]:
    """Return the days that a judgement counts: the whole ones; where none is whole, what there is.

    >>> counted_days({1: 24.0, 2: 24.0, 3: 0.1}), counted_days({1: 6.5})
    ((1, 2), (1,))
    """
    return tuple(sorted(day for day in hours if hours[day] >= DAY_H)) or tuple(sorted(hours))


def parts_of_days(hours: pl.Series) -> np.ndarray[Any, Any]:
    """Return what part of a day each is in a figure a day.

    >>> parts_of_days(pl.Series([24.0, 6.0]))
    array([1.  , 0.25])
    """
    parts: np.ndarray[Any, Any] = hours.to_numpy() / DAY_H
    return parts
