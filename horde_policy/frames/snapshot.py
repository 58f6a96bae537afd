"""A snapshot: workers, models, performance and modes read together, with their age and problems (design §2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import polars as pl

from horde_policy.errors import Problem

__all__ = ["Heartbeat", "Modes", "Performance", "Snapshot", "SourceKind", "Totals"]

SourceKind = Literal["live", "recorded", "demo", "history"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """The horde-wide totals of ``/v2/status/performance`` (horde.md §1.5); null is not reported."""

    queued_text_requests: float | None = None
    queued_tokens: float | None = None
    past_minute_tokens: float | None = None
    text_worker_count: int | None = None
    text_thread_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """The server's modes; null is not reported."""

    maintenance_mode: bool | None = None
    invite_only_mode: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """One node's heartbeat."""

    message: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Requests and requested tokens over a minute, hour, day, month (30 d) and in all (``/v2/stats/text/totals``)."""

    requests: Mapping[str, int] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a source said at one time, checked.

    Attributes
    ----------
    fetched_at
        The oldest part used, UTC: the snapshot is as old as that. What the server compiles once a day (``demand``) does
        not count.
    source, source_kind
        The source's name as shown to people, never with a secret; and what kind it is.
    synthetic
        Whether the data are made up, which is then said wherever they show.
    age_limit_s
        With figures older than this (``figures_at``) it counts as stale.
    workers
        Frame :data:`horde_policy.frames.workers.WORKERS`.
    models
        Frame :data:`horde_policy.frames.models.MODELS`; null when the list could not be had, then no queue is known.
    demand
        Frame :data:`horde_policy.frames.models.MODEL_DEMAND`; null when not reported.
    performance, modes, heartbeat, totals
        Null when not reported.
    problems
        What was wrong in the data; notes for what is missing without harm.
    part_times
        When each part was fetched.
    throttled_parts
        The parts for which the server asked to be left alone; each has a problem too.
    """

    fetched_at: datetime
    source: str
    source_kind: SourceKind
    workers: pl.DataFrame
    models: pl.DataFrame | None
    synthetic: bool = False
    age_limit_s: float = 120.0
    performance: Performance | None = None
    modes: Modes | None = None
    heartbeat: Heartbeat | None = None
    totals: Totals | None = None
    demand: pl.DataFrame | None = None
    problems: tuple[Problem, ...] = ()
    part_times: Mapping[str, datetime] = field(default_factory=dict)
    throttled_parts: frozenset[str] = frozenset()

    @property
    def figures_at(self) -> datetime:
        """The older of the workers and the list of models, which every model's figures rest on: their age is counted from it.

        A part that the figures can do without may be much older, and ages ``fetched_at`` alone. Where the parts' own times are
        not known, it is ``fetched_at``.
        """
        return min((self.part_times[part] for part in ("workers", "models") if part in self.part_times), default=self.fetched_at)

    @property
    def complete_at(self) -> datetime:
        """The instant of its newest part: what it says was first known then."""
        return max([self.fetched_at, *self.part_times.values()])
