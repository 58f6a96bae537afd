"""The traffic frame: one row a request that a replay sends (``replay.md``, "Inputs")."""

import polars as pl

from horde_policy.frames.input_columns import flags, instants, name_lists, real_numbers, refuse_first, texts, whole_numbers, words
from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, MAX_LENGTH_LIMIT_TOKENS

__all__ = ["ANONYMOUS_PRIORITY_KUDOS", "REQUESTER", "TRAFFIC", "normalised_traffic"]

REQUESTER = pl.Enum(["anonymous", "registered", "shared_key"])
"""Who asks (A25)."""

ANONYMOUS_PRIORITY_KUDOS = -50.0
"""The anonymous account sits at its floor of −50 kudos (horde.md §4); others count 0 where nothing is said."""

TRAFFIC = Schema(
    "traffic",
    {
        "request_id": Column(pl.String, text="unique; the row number from 0 where absent"),
        "created": Column(UTC_INSTANT, text="when the request is sent"),
        "models": Column(pl.List(pl.String), text="names it would take; the empty list is any model"),
        "requester": Column(REQUESTER),
        "max_length": Column(pl.Int64, "tokens", text="output asked for, 1 to 16384 (A23)"),
        "output_tokens": Column(pl.Int64, "tokens", text="what the answer would really take; max_length where absent"),
        "max_context_length": Column(pl.Int64, "tokens", text="2048 where absent; taken as given even below max_length"),
        "can_pay": Column(pl.Boolean, text="the kudos for a hold are there; false where absent"),
        "chat": Column(pl.Boolean, text="false where absent"),
        "slow_workers": Column(pl.Boolean, text="slow workers allowed; true where absent"),
        "allow_downgrade": Column(pl.Boolean, text="false where absent"),
        "priority": Column(pl.Float64, "kudos", text="at creation; −50 for anonymous, else 0, where absent"),
    },
)
"""One row a request, in any order: the row number decides ties."""


def normalised_traffic(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame as :data:`TRAFFIC`, absent values filled by the contract's defaults; bad input is refused whole.

    Columns that the contract does not name are left out. Rows keep their order. ``models`` may be texts joined by ``|``
    as in CSV, where an empty cell is the empty list.

    Raises
    ------
    FrameError
        A required column is missing, or a column has another type; an instant has no time zone.
    InputError
        A value breaks its rule: names the first such row (from 0), the column, the value and the rule.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> sent = {"created": [datetime(2026, 11, 29, tzinfo=UTC)], "models": [["m"]], "requester": ["anonymous"]}
    >>> normalised_traffic(pl.DataFrame(sent | {"max_length": [80]})).row(0, named=True)["priority"]
    -50.0
    >>> normalised_traffic(pl.DataFrame(sent | {"max_length": [16385]}))
    Traceback (most recent call last):
    horde_policy.errors.InputError: traffic, row 0, column max_length: 16385 must be at most 16384
    """
    what = "traffic"
    created = instants(frame, what, "created")
    models = name_lists(frame, what, "models")
    requester = words(frame, what, "requester", REQUESTER)
    max_length = whole_numbers(frame, what, "max_length", absent=None, least=1, most=MAX_LENGTH_LIMIT_TOKENS)
    columns = [
        _request_ids(frame),
        created,
        models,
        requester,
        max_length,
        whole_numbers(frame, what, "output_tokens", absent=max_length, least=0),
        whole_numbers(frame, what, "max_context_length", absent=DEFAULT_MAX_CONTEXT_TOKENS),
        flags(frame, what, "can_pay", absent=False),
        flags(frame, what, "chat", absent=False),
        flags(frame, what, "slow_workers", absent=True),
        flags(frame, what, "allow_downgrade", absent=False),
        real_numbers(frame, what, "priority", absent=_default_priority(frame, requester)),
    ]
    return TRAFFIC.checked(pl.DataFrame(columns))


def _request_ids(frame: pl.DataFrame) -> pl.Series:
    """Return the ids, the row number where absent; an id that stands twice is refused at its second row."""
    ids = texts(frame, "traffic", "request_id", required=False)
    if ids.null_count():
        rows = pl.int_range(0, frame.height, eager=True).cast(pl.String).alias("request_id")
        if ids.null_count() == frame.height:
            return rows
        ids = ids.zip_with(ids.is_not_null(), rows)
    if ids.n_unique() != len(ids):
        refuse_first("traffic", ids, ~ids.is_first_distinct(), "must be unique, and stands twice")
    return ids


def _default_priority(frame: pl.DataFrame, requester: pl.Series) -> pl.Series | float:
    if "priority" in frame.columns and not frame["priority"].null_count():
        return 0.0  # there is nothing to fill
    # The sum turns the −0.0 of the others into 0.0.
    return ((requester == "anonymous").cast(pl.Float64) * ANONYMOUS_PRIORITY_KUDOS + 0.0).alias("priority")
