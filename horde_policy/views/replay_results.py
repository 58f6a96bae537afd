"""What a replay's runs come to, as small data: figures, waits in bins, allowances over time, differences from the baseline.

A run of hundreds of thousands of rows is looked at once; everything that a page, a file or a report shows comes from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import polars as pl

from horde_policy.frames.runs import OUTCOME
from horde_policy.frames.traffic import REQUESTER
from horde_policy.replay.comparison import comparison
from horde_policy.replay.score import allowance_over_time, summary
from horde_policy.replay.sent import SIZE
from horde_policy.settings import AllowanceSettings

__all__ = [
    "ALL_MODELS",
    "BIN_S",
    "EVERY",
    "OUTCOMES",
    "REQUESTERS",
    "SIZES",
    "Compared",
    "Scored",
    "compared",
    "every_of",
    "mix_shares",
    "models_asked_for",
    "scored",
    "share_waiting_at_most",
    "wait_of",
    "waits_table",
]

OUTCOMES: Final = tuple(OUTCOME.categories)
REQUESTERS: Final = tuple(REQUESTER.categories)
SIZES: Final = tuple(SIZE.categories)

BIN_S = 5
LAST_BIN = 240
"""Waits are counted in bins of five seconds up to twenty minutes, the time a request lives; longer ones share the last."""

ALL_MODELS = "all models"

EVERY: Final = ((6.0, "5m"), (60.0, "1h"), (24.0 * 60, "6h"))
"""Traffic of up to so many hours → the span of a point of the allowance over time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One run's figures.

    Attributes
    ----------
    summary
        Of :func:`horde_policy.replay.score.summary`.
    waits
        ``requester``, ``outcome``, ``bin`` (null: never started) and ``requests``: admitted requests by their queue wait;
        bin *n* holds waits above ``5·(n−1)`` s and at most ``5·n`` s.
    over_time
        Of :func:`horde_policy.replay.score.allowance_over_time`, and rows of :data:`ALL_MODELS`.
    """

    summary: Mapping[str, Any]
    waits: pl.DataFrame
    over_time: pl.DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """How the requests of a traffic fare under other settings: :func:`horde_policy.replay.comparison.comparison`."""

    figures: Mapping[str, Any]

    @property
    def gain_share(self) -> float | None:
        """The share of requests that fare better; null without requests."""
        requests = self.figures["requests"]
        return self.figures["gain"] / requests if requests else None

    @property
    def lose_share(self) -> float | None:
        """The share of requests that fare worse; null without requests."""
        requests = self.figures["requests"]
        return self.figures["lose"] / requests if requests else None


def every_of(sent: pl.DataFrame) -> str:
    """Return the span of a point of the allowance over time for requests over such a time.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 11, 29, tzinfo=UTC)
    >>> every_of(pl.DataFrame({"created": [at, at + timedelta(days=2)]}))
    '1h'
    """
    span = sent.select(pl.col("created").max() - pl.col("created").min()).item() if sent.height else None
    hours = (span or timedelta(0)).total_seconds() / 3600
    return next((every for most, every in EVERY if hours <= most), "1d")


def scored(sent: pl.DataFrame, traffic: pl.DataFrame, settings: AllowanceSettings) -> Scored:
    """Return a run's figures.

    Parameters
    ----------
    sent
        Of :func:`horde_policy.replay.sent.sent_requests`.
    traffic
        As it was replayed, with ``recorded_outcome`` where it is known.
    settings
        The run's settings.
    """
    admitted = sent.lazy().filter(pl.col("outcome") != "refused")
    bins = (pl.col("queue_wait_s") / BIN_S).ceil().clip(0, LAST_BIN + 1).cast(pl.Int32)
    waits = admitted.group_by("requester", "outcome", bins.alias("bin")).agg(requests=pl.len()).collect()
    every = every_of(sent)
    named = allowance_over_time(sent, settings, every=every)
    anybody = allowance_over_time(sent, settings, every=every, together=ALL_MODELS)
    return Scored(
        summary=summary(sent, traffic, settings),
        waits=waits.sort("requester", "outcome", "bin"),
        over_time=pl.concat([anybody, named]),
    )


def compared(baseline: pl.DataFrame, sent: pl.DataFrame) -> Compared:
    """Return how the requests of a run fare against the baseline's."""
    return Compared(figures=comparison(baseline, sent))


def mix_shares(run: Scored, by: str, group: str) -> dict[str, tuple[int, float]]:
    """Return outcome → requests and their share, of one requester or one requested size.

    Parameters
    ----------
    run
        The run.
    by
        ``requester`` or ``requested_size``.
    group
        One word of it.
    """
    counts = dict.fromkeys(OUTCOMES, 0)
    for row in run.summary["mix"]:
        if row[by] == group:
            counts[row["outcome"]] += row["requests"]
    total = sum(counts.values())
    return {outcome: (n, n / total if total else 0.0) for outcome, n in counts.items()}


def share_waiting_at_most(run: Scored, *, requester: str | None = None, outcome: str | None = None) -> list[tuple[int, float]]:
    """Return seconds → share of the admitted requests that were started within them; nothing without admitted requests.

    Requests that never started count as admitted, so the curve ends below 1 by their share.
    """
    chosen = run.waits
    if requester is not None:
        chosen = chosen.filter(pl.col("requester") == requester)
    if outcome is not None:
        chosen = chosen.filter(pl.col("outcome") == outcome)
    total = int(chosen["requests"].sum())
    if not total:
        return []
    counts = [0] * (LAST_BIN + 2)
    for place, requests in chosen.drop_nulls("bin").select("bin", "requests").iter_rows():
        counts[place] += requests
    curve, reached = [], 0
    for place, requests in enumerate(counts[: LAST_BIN + 1]):
        reached += requests
        curve.append((place * BIN_S, reached / total))
    return curve


def wait_of(run: Scored, figure: str) -> float | None:
    """Return a figure of the queue wait of all requests that started, such as ``p95_s``; null if none did."""
    everyone = [row for row in run.summary["queue_waits"] if row["requester"] is None]
    value = everyone[0][figure] if everyone else None
    return None if value is None else float(value)


def waits_table(run: Scored) -> list[Mapping[str, Any]]:
    """Return the waits by requester and outcome, of all first."""
    rows: list[Mapping[str, Any]] = list(run.summary["queue_waits"])
    return sorted(rows, key=lambda row: row["requester"] is not None)


def models_asked_for(run: Scored) -> list[str]:
    """Return the models of a run, most requests first, any model by its own word, all of them before."""
    return [ALL_MODELS, *(str(row["model"]) for row in run.summary["allowances"])]
