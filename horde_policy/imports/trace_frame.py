"""Requests as a source tells them, before anything is assigned: the trace frame and what was made of its file."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from horde_policy.errors import InputError, Problem
from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema
from horde_policy.imports.tables import Refused

__all__ = ["OTHER_SEGMENT", "OUTSIDE_RANGE", "TRACE", "Trace", "TraceOptions", "in_range"]

TRACE = Schema(
    "trace",
    {
        "row": Column(pl.Int64, text="0-based position in the published file: tie-break and hash key"),
        "created": Column(UTC_INSTANT),
        "client": Column(pl.String, null="the trace names none", text="published session or client; hostile text"),
        "model": Column(pl.String, null="the trace names none", text="published model, served by no horde worker"),
        "input_tokens": Column(pl.Int64, "tokens", null="not known"),
        "output_tokens": Column(pl.Int64, "tokens", null="not known"),
        "chat": Column(pl.Boolean, null="not known"),
        "failed": Column(pl.Boolean, text="no output: a failure of the recorded service"),
    },
    sort=("created", "row"),
)
"""One row a request. Columns of the traffic frame that a source does know may follow; they are kept by the fill rules."""

OUTSIDE_RANGE = "outside the range asked for"
OTHER_SEGMENT = "in another segment of the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Requests as their source tells them, and what was made of the file.

    Attributes
    ----------
    name
        The trace's name in the keys of its draws.
    format
        Format name.
    frame
        Frame :data:`TRACE`, sorted, with any traffic columns that the source knows.
    rows_read, refused
        Rows in the file, and those not kept by reason: ``rows_read`` = kept + refused.
    dated
        Whether ``created`` is a real date; otherwise only the time since the start means something.
    synthetic
        Whether requests were drawn from distributions, which is then said wherever they show.
    reconstruction
        Whether requests were rebuilt from counts.
    thin_by_row
        Thinning keeps or leaves out single rows, where clients are few and large; else whole clients.
    anonymous_known
        A null ``requester`` means "not the anonymous account".
    problems
        Quirks met and what was done about them.
    """

    name: str
    format: str
    frame: pl.DataFrame
    rows_read: int
    refused: Mapping[str, int]
    dated: bool = True
    synthetic: bool = False
    reconstruction: bool = False
    thin_by_row: bool = False
    anonymous_known: bool = False
    problems: tuple[Problem, ...] = ()

    def __post_init__(self) -> None:
        kept = self.frame.height
        lost = self.rows_read - kept - sum(self.refused.values())
        if lost:
            raise InputError("trace", self.name, lost, "rows are neither kept nor refused by a named reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """How to read a trace: each null means what the format says.

    ``origin`` puts a relative clock; ``segment`` picks one (from 1) where the clock restarts; ``chat`` overrides the flag;
    ``from_s`` and ``to_s`` keep requests of [from, to) seconds after the first; ``seed`` draws what must be drawn, at most
    ``most_drawn`` requests at once.
    """

    name: str | None = None
    origin: datetime | None = None
    segment: int | None = None
    chat: bool | None = None
    from_s: float | None = None
    to_s: float | None = None
    seed: int | None = None
    most_drawn: int = 20_000_000


def in_range(trace: pl.DataFrame, options: TraceOptions, refused: Refused) -> pl.DataFrame:
    """Return the rows of [from_s, to_s) after the first; count the others."""
    if not trace.height or (options.from_s is None and options.to_s is None):
        return trace
    since_s = (pl.col("created") - trace["created"][0]).dt.total_microseconds() / 1e6
    low, high = options.from_s or 0.0, options.to_s if options.to_s is not None else float("inf")
    if not low < high:
        raise InputError("trace", "range", [low, high], "must have from before to")
    kept = trace.filter((since_s >= low) & (since_s < high))
    refused.note(OUTSIDE_RANGE, trace.height - kept.height)
    return kept
