"""The traffic frame: one row a request that a replay sends (``replay.md``, "Inputs")."""

import polars as pl

from horde_policy.frames.input_columns import flags, instants, name_lists, real_numbers, refuse_first, texts, whole_numbers, words
from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, MAX_LENGTH_LIMIT_TOKENS

__all__ = [
    "ANONYMOUS_PRIORITY_KUDOS",
    "REQUESTER",
    "TRAFFIC",
    "normalised_requests",
    "normalised_traffic",
    "request_ids",
    "row_numbers",
]

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
    ids = request_ids(frame)
    return TRAFFIC.checked(normalised_requests(frame).with_columns(row_numbers(frame.height) if ids is None else ids))


def normalised_requests(frame: pl.DataFrame) -> pl.DataFrame:
    """Return what :func:`normalised_traffic` returns, without the ids; raises the same of these columns."""
    what = "traffic"
    created = instants(frame, what, "created")
    models = name_lists(frame, what, "models")
    requester = words(frame, what, "requester", REQUESTER)
    max_length = whole_numbers(frame, what, "max_length", absent=None, least=1, most=MAX_LENGTH_LIMIT_TOKENS)
    columns = [
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
    return pl.DataFrame(columns)


def request_ids(frame: pl.DataFrame) -> pl.Series | None:
    """Return the ids, the row number where one is absent; null if all are. An id that stands twice is refused."""
    ids = texts(frame, "traffic", "request_id", required=False)
    if ids.null_count() == frame.height:
        return None
    if ids.null_count():
        ids = ids.zip_with(ids.is_not_null(), row_numbers(frame.height))
    if ids.n_unique() != len(ids):
        refuse_first("traffic", ids, ~ids.is_first_distinct(), "must be unique, and stands twice")
    return ids


def row_numbers(height: int) -> pl.Series:
    """Return the row numbers from 0 as texts: the ids of requests that have none.

    >>> row_numbers(2).to_list()
    ['0', '1']
    """
    return pl.int_range(0, height, eager=True).cast(pl.String).alias("request_id")


def _default_priority(frame: pl.DataFrame, requester: pl.Series) -> pl.Series | float:
    if "priority" in frame.columns and not frame["priority"].null_count():
        return 0.0  # there is nothing to fill
    filled = pl.when(requester == "anonymous").then(ANONYMOUS_PRIORITY_KUDOS).otherwise(0.0)
    return pl.select(filled.alias("priority")).to_series()
