"""Frames made by hand: decisions, waits and wait sums with what a test does not name filled in."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from horde_policy.frames.decisions import DECISIONS
from horde_policy.frames.waits import WAIT_SUMS, WAITS

MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
LIFECYCLE_S = (0, 1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1200, 1800, 3600)


def hour(number: float, hours: float = 1) -> dict[str, datetime]:
    start = MONDAY + timedelta(hours=number)
    return {"interval_start": start, "interval_end": start + timedelta(hours=hours)}


def decision(count: float, high: float | None = None, **words: Any) -> dict[str, Any]:
    row = {
        **hour(0),
        "instance": "one",
        "requester": "registered",
        "outcome": "free",
        "requested_size": "<=512",
        "allowance_size": "2049-4096",
        "chat": False,
    }
    return row | words | {"count_low": float(count), "count_high": float(count if high is None else high)}


def decisions(*rows: dict[str, Any]) -> pl.DataFrame:
    return DECISIONS.checked(pl.DataFrame(list(rows), schema=DECISIONS.polars_schema()))


def bucket(upper_s: float, lower_s: float, count: float, high: float | None = None, **words: Any) -> dict[str, Any]:
    row = {**hour(0), "instance": "one", "kind": "queue", "requester": "registered", "chat": None}
    bounds = {"lower_s": float(lower_s), "upper_s": float(upper_s)}
    return row | words | bounds | {"count_low": float(count), "count_high": float(count if high is None else high)}


def waits(*rows: dict[str, Any]) -> pl.DataFrame:
    return WAITS.checked(pl.DataFrame(list(rows), schema=WAITS.polars_schema()))


def wait_sum(count: float, sum_s: float, **words: Any) -> dict[str, Any]:
    row = {**hour(0), "instance": "one", "kind": "queue", "requester": "registered", "chat": None}
    counts = {"count_low": float(count), "count_high": float(count)}
    return row | words | counts | {"sum_low_s": float(sum_s), "sum_high_s": float(sum_s)}


def wait_sums(*rows: dict[str, Any]) -> pl.DataFrame:
    return WAIT_SUMS.checked(pl.DataFrame(list(rows), schema=WAIT_SUMS.polars_schema()))


def histogram(values_s: Iterable[float], edges: Sequence[float] = LIFECYCLE_S, **words: Any) -> list[dict[str, Any]]:
    """Rows of buckets as an explicit-bucket histogram counts the values: each bucket includes its upper bound."""
    tops = [*map(float, edges), math.inf]
    values = np.fromiter(values_s, dtype=np.float64)
    counts = np.bincount(np.searchsorted(np.array(tops), values, side="left"), minlength=len(tops)).tolist()
    lowers = [0.0, *tops[:-1]]
    return [bucket(top, low, count, **words) for top, low, count in zip(tops, lowers, counts, strict=True) if count]
