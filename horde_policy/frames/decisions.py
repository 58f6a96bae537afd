"""The decisions frame (A25): what was decided, counted over intervals; and the cells that the rule does not allow.

Words and size buckets are those of the counter ``horde.text.free_allowance.decisions``; the consistency rules are those of
horde.md §7.4. Counts come from exported metrics, which know them exactly or only between two bounds.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

import polars as pl

from horde_policy.frames.schemas import UTC_INSTANT, Column, Schema
from horde_policy.settings import AllowanceSettings

__all__ = [
    "DECISIONS",
    "IMPOSSIBLE_CELLS",
    "OUTCOMES",
    "REQUESTERS",
    "SIZES",
    "SIZE_EDGES_TOKENS",
    "CellLevel",
    "CellRule",
    "cell_rules",
    "impossible_cells",
    "size_of",
]

REQUESTERS = ("anonymous", "registered", "shared_key")
"""Who asks (A25)."""

OUTCOMES = ("free", "funded", "refused", "downgraded")
"""What became of the request (A25)."""

SIZES = ("<=512", "513-1024", "1025-2048", "2049-4096", ">4096")
"""The size buckets of A25, from small to large."""

SIZE_EDGES_TOKENS = (512, 1024, 2048, 4096)
"""The largest size of each bucket but the last, in tokens."""

DECISIONS = Schema(
    "decisions",
    {
        "interval_start": Column(UTC_INSTANT, null="the beginning is not known", text="exclusive"),
        "interval_end": Column(UTC_INSTANT, null="one scrape without a time", text="inclusive"),
        "instance": Column(pl.String, text="the process that counted, by its identifying labels; hostile text"),
        "requester": Column(pl.String, null="not exported, or no word of the rule"),
        "outcome": Column(pl.String, null="not exported, or no word of the rule"),
        "requested_size": Column(pl.String, null="not exported, or no bucket of the rule"),
        "allowance_size": Column(pl.String, null="not exported, or no bucket of the rule"),
        "chat": Column(pl.Boolean, null="not exported"),
        "count_low": Column(pl.Float64, "requests", text="at least so many; equal to count_high where the count is known"),
        "count_high": Column(pl.Float64, "requests", text="at most so many"),
    },
    sort=("interval_end", "interval_start", "instance", "requester", "outcome", "requested_size", "allowance_size", "chat"),
)
"""One row an interval, instance and label set with any count; fractions come from ``increase()`` answers only."""


def size_of(tokens: int) -> str:
    """Return the size bucket of a number of output tokens (A25).

    >>> [size_of(tokens) for tokens in (1, 512, 513, 4096, 4097)]
    ['<=512', '<=512', '513-1024', '2049-4096', '>4096']
    """
    return SIZES[bisect_left(SIZE_EDGES_TOKENS, tokens)]


CellLevel = Literal["impossible", "special", "undecided"]


@dataclass(frozen=True, slots=True)
class CellRule:
    """A rule on one cell of the decisions table.

    ``impossible``: the server's rule cannot produce it. ``special``: only what ``text`` names can. ``undecided``: the buckets
    do not tell on which side of the allowance the request was. ``applies`` is a Boolean expression over the frame's columns.
    """

    code: str
    level: CellLevel
    text: str
    applies: pl.Expr


def _rank(column: str) -> pl.Expr:
    """Return the position of a size among :data:`SIZES`; null for an unknown size."""
    return pl.col(column).replace_strict(list(SIZES), list(range(len(SIZES))), default=None, return_dtype=pl.Int8)


def cell_rules(settings: AllowanceSettings) -> tuple[CellRule, ...]:
    """Return the rules of horde.md §7.4, the first that applies being the one to show; the settings bound the allowances.

    Requested size and allowance in one bucket do not say which is larger, except in the bucket whose upper edge is the floor (by
    default ``<=512``): every allowance in it is the floor itself, and no request in it is larger.
    """
    asked, allowed, outcome = _rank("requested_size"), _rank("allowance_size"), pl.col("outcome")
    least, most = (SIZES.index(size_of(tokens)) for tokens in (settings.floor_tokens, settings.ceiling_tokens))
    # the bucket that the floor ends holds no other allowance, so whatever was asked in it is under or at the allowance
    ends_bucket = settings.floor_tokens in SIZE_EDGES_TOKENS
    exact = (asked == allowed) & (allowed == least) if ends_bucket else pl.lit(value=False)
    within = (asked < allowed) | exact
    under = outcome.is_in(["funded", "refused"]) & within
    return (
        CellRule(
            "downgraded_chat",
            "impossible",
            "a chat request is never downgraded (A17)",
            (outcome == "downgraded") & pl.col("chat"),
        ),
        CellRule(
            "free_over_allowance",
            "impossible",
            "a request over the allowance is not free (A13, A14)",
            (outcome == "free") & (asked > allowed),
        ),
        CellRule(
            "allowance_out_of_range",
            "impossible",
            f"the allowance lies between {settings.floor_tokens} and {settings.ceiling_tokens} tokens (A2, A3)",
            (allowed < least) | (allowed > most),
        ),
        CellRule(
            "anonymous_funded",
            "special",
            "the anonymous account has no kudos to hold, so this should be next to nothing (A1, A14)",
            (pl.col("requester") == "anonymous") & (outcome == "funded"),
        ),
        CellRule(
            "refused_shared_key_under_allowance",
            "special",
            "not over the allowance; only slow_workers=false or a shared key short of its own kudos leads here (A20)",
            under & (outcome == "refused") & (pl.col("requester") == "shared_key"),
        ),
        CellRule("held_under_allowance", "special", "not over the allowance; only slow_workers=false leads here (A20)", under),
        CellRule(
            "downgraded_under_allowance",
            "special",
            "a downgrade lowers to the allowance; from no larger size only slow_workers=false leads here (A16, A20)",
            (outcome == "downgraded") & within,
        ),
        CellRule(
            "same_bucket",
            "undecided",
            "requested size and allowance lie in one bucket, which does not say which of them is larger",
            (asked == allowed) & ~exact,
        ),
    )


def impossible_cells(settings: AllowanceSettings | None = None) -> pl.DataFrame:
    """Return every cell of requester × outcome × requested size × allowance size × chat on which a rule has something to say.

    Parameters
    ----------
    settings
        The settings in force; null for the defaults.

    Returns
    -------
    DataFrame
        Schema :data:`IMPOSSIBLE_CELLS`, one row a cell with the first rule that applies, in the order of the words.

    Examples
    --------
    >>> cells = impossible_cells()
    >>> cells.filter(pl.col("level") == "impossible").group_by("code").len().sort("code").rows()
    [('allowance_out_of_range', 105), ('downgraded_chat', 75), ('free_over_allowance', 60)]
    """
    frame = pl.DataFrame({"requester": REQUESTERS})
    words: dict[str, list[object]] = {
        "outcome": [*OUTCOMES],
        "requested_size": [*SIZES],
        "allowance_size": [*SIZES],
        "chat": [False, True],
    }
    for name, values in words.items():
        frame = frame.join(pl.DataFrame({name: values}), how="cross", maintain_order="left_right")
    rules = cell_rules(settings or AllowanceSettings())
    found = pl.coalesce(pl.when(rule.applies).then(pl.lit(number)) for number, rule in enumerate(rules))
    frame = frame.with_columns(found.alias("rule")).filter(pl.col("rule").is_not_null())
    spelled = {"level": [r.level for r in rules], "code": [r.code for r in rules], "text": [r.text for r in rules]}
    table = pl.DataFrame({"rule": range(len(rules)), **spelled}, schema_overrides={"rule": frame.schema["rule"]})
    return IMPOSSIBLE_CELLS.checked(frame.join(table, on="rule", how="left", maintain_order="left"))


IMPOSSIBLE_CELLS = Schema(
    "impossible_cells",
    {
        "requester": Column(pl.String),
        "outcome": Column(pl.String),
        "requested_size": Column(pl.String),
        "allowance_size": Column(pl.String),
        "chat": Column(pl.Boolean),
        "level": Column(pl.String, text="impossible, special or undecided"),
        "code": Column(pl.String, text="one word for machines"),
        "text": Column(pl.String, text="the reason with the rule's number"),
    },
    sort=("requester", "outcome", "requested_size", "allowance_size", "chat"),
)
"""One row a cell that the rule does not allow, allows only through a special case, or does not decide."""
