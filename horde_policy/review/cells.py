"""The cells of the decisions table against the rule: what cannot be, what only a special case makes, what is not decided.

The rules are those of horde.md §7.4, as :func:`~horde_policy.frames.decisions.cell_rules` states them.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import polars as pl

from horde_policy.frames.decisions import SIZES, cell_rules, impossible_cells
from horde_policy.frames.schemas import Column, Schema
from horde_policy.review.decompose import WORDS, filtered, total
from horde_policy.review.ranges import in_steps, span_of, step_for, typical_interval
from horde_policy.review.sampling import Bounds
from horde_policy.settings import AllowanceSettings

__all__ = ["JUDGED", "SIZE_GRID", "judged", "level_counts", "rule_counts", "size_grid", "with_rules"]

SIZE_GRID = Schema(
    "size_grid",
    {
        "requested_size": Column(pl.String),
        "allowance_size": Column(pl.String),
        "count_low": Column(pl.Float64, "requests"),
        "count_high": Column(pl.Float64, "requests"),
        "share_low": Column(pl.Float64, null="nothing was counted", text="of all that the grid counts"),
        "share_high": Column(pl.Float64, null="nothing was counted"),
        "level": Column(
            pl.String,
            null="nothing to say",
            text="impossible, special or undecided; impossible if the rule allows none of the cell",
        ),
        "impossible_high": Column(pl.Float64, "requests", text="at most so many are of a kind that the rule does not allow"),
        "special_high": Column(pl.Float64, "requests"),
        "undecided_high": Column(pl.Float64, "requests"),
        "texts": Column(pl.List(pl.String), text="the reasons, the gravest first"),
    },
    sort=("requested_size", "allowance_size"),
)
"""One row for each of the 25 cells of requested size and allowance, from small to large."""

_GRAVEST_FIRST = ("impossible", "special", "undecided")


def judged(decisions: pl.DataFrame, settings: AllowanceSettings) -> pl.DataFrame:
    """Return the decisions with the rule that has something to say of each row: ``level``, ``code``, ``text``, null for none.

    Examples
    --------
    >>> row = {"requester": ["anonymous"], "outcome": ["free"], "requested_size": [">4096"], "allowance_size": ["<=512"],
    ...     "chat": [False]}
    >>> judged(pl.DataFrame(row), AllowanceSettings()).select("level", "code").row(0)
    ('impossible', 'free_over_allowance')
    """
    rules = cell_rules(settings)

    def first(of: str) -> pl.Expr:
        return pl.coalesce(pl.when(rule.applies).then(pl.lit(getattr(rule, of))) for rule in rules).alias(of)

    return decisions.with_columns(first("level"), first("code"), first("text"))


def _judged_cells(decisions: pl.DataFrame, settings: AllowanceSettings) -> pl.DataFrame:
    """Return the counts of each cell, however many intervals they come of, with the rule that has something to say."""
    return judged(decisions.group_by(list(WORDS)).agg(pl.col("count_low", "count_high").sum()), settings)


def rule_counts(decisions: pl.DataFrame, settings: AllowanceSettings) -> pl.DataFrame:
    """Return how many decisions each rule has something to say of: ``level``, ``code``, ``text``, ``count_low``, ``count_high``.

    The gravest level first, then the largest count.
    """
    rows = _judged_cells(decisions, settings).filter(pl.col("level").is_not_null())
    grave = pl.col("level").replace_strict(list(_GRAVEST_FIRST), [0, 1, 2], return_dtype=pl.Int8)
    counts = rows.group_by("level", "code", "text").agg(pl.col("count_low", "count_high").sum())
    return counts.sort(grave, pl.col("count_high"), "code", descending=[False, True, False])


def level_counts(decisions: pl.DataFrame, settings: AllowanceSettings) -> dict[str, Bounds]:
    """Return how many decisions lie in cells of each level."""
    rows = _judged_cells(decisions, settings)
    return {level: total(rows.filter(pl.col("level") == level)) for level in _GRAVEST_FIRST}


JUDGED = ("impossible_high", "special_high", "rules")
"""What :func:`with_rules` adds."""


def with_rules(
    cells: pl.DataFrame,
    decisions: pl.DataFrame,
    by: Sequence[str],
    settings: AllowanceSettings,
    *,
    step: timedelta | None = None,
) -> pl.DataFrame:
    """Return decomposed decisions with how many of each cell the rule does not allow, or only in a special case, and why.

    Parameters
    ----------
    cells
        From :func:`~horde_policy.review.decompose.decompose` of ``decisions`` by ``by`` and ``step``.
    decisions
        Schema :data:`~horde_policy.frames.decisions.DECISIONS`.
    settings
        The settings in force.

    Returns
    -------
    DataFrame
        The cells and :data:`JUDGED`: at most so many requests of each level, and the reasons in one text, empty for none.

    Examples
    --------
    >>> row = {"requester": ["anonymous"], "outcome": ["free"], "requested_size": [">4096"], "allowance_size": ["<=512"],
    ...     "chat": [False], "count_low": [3.0], "count_high": [3.0]}
    >>> with_rules(pl.DataFrame({"outcome": ["free"]}), pl.DataFrame(row), ["outcome"], AllowanceSettings()).row(0)
    ('free', 3.0, 0.0, 'a request over the allowance is not free (A13, A14)')
    """
    frame = judged(decisions, settings)
    if "time" in by:
        frame = in_steps(frame, step or step_for(span_of(decisions), interval=typical_interval(decisions)))
    grave = pl.col("level").is_in(["impossible", "special"]) & (pl.col("count_high") > 0)
    figures = [
        *(
            pl.col("count_high").filter(pl.col("level") == level).sum().alias(f"{level}_high")
            for level in ("impossible", "special")
        ),
        pl.col("text").filter(grave).unique().sort().str.join("; ").alias("rules"),
    ]
    counted = frame.group_by(list(by)).agg(figures) if by else frame.select(figures)
    joined = (
        cells.join(counted, on=list(by), how="left", nulls_equal=True, maintain_order="left")
        if by
        else cells.join(counted, how="cross")
    )
    return joined.with_columns(pl.col("impossible_high", "special_high").fill_null(0.0), pl.col("rules").fill_null(""))


def size_grid(
    decisions: pl.DataFrame, settings: AllowanceSettings, keep: Mapping[str, Sequence[object]] | None = None
) -> pl.DataFrame:
    """Return requested size × allowance size with the cells marked that the rule does not allow.

    Parameters
    ----------
    decisions
        Schema :data:`~horde_policy.frames.decisions.DECISIONS`, not yet filtered.
    settings
        The settings in force.
    keep
        The words that are looked at, by dimension. A cell is impossible when the rule allows none of what is looked at in it, or
        when something was counted in it that the rule does not allow.

    Returns
    -------
    DataFrame
        Schema :data:`SIZE_GRID`. Decisions of which either size is not exported are in no cell.

    Examples
    --------
    >>> empty = pl.DataFrame(schema={"requester": pl.String, "outcome": pl.String, "requested_size": pl.String,
    ...     "allowance_size": pl.String, "chat": pl.Boolean, "count_low": pl.Float64, "count_high": pl.Float64})
    >>> grid = size_grid(empty, AllowanceSettings(), {"outcome": ("free",)})
    >>> grid.filter(pl.col("requested_size") == "1025-2048").select("allowance_size", "level").rows()
    [('<=512', 'impossible'), ('513-1024', 'impossible'), ('1025-2048', 'undecided'), ('2049-4096', None), ...]
    """
    keep = keep or {}
    rows = _judged_cells(filtered(decisions, keep), settings)
    grid = pl.DataFrame({"requested_size": SIZES}).join(
        pl.DataFrame({"allowance_size": SIZES}), how="cross", maintain_order="left_right"
    )
    cell = ["requested_size", "allowance_size"]
    counted = rows.group_by(cell).agg(
        pl.col("count_low", "count_high").sum(),
        *(pl.col("count_high").filter(pl.col("level") == level).sum().alias(f"{level}_high") for level in _GRAVEST_FIRST),
        *(pl.col("text").filter(pl.col("level") == level).unique().sort().alias(f"{level}_texts") for level in _GRAVEST_FIRST),
    )
    grid = grid.join(counted, on=cell, how="left", maintain_order="left").join(
        _by_rule(settings, keep), on=cell, how="left", maintain_order="left"
    )
    numbers = ["count_low", "count_high", *(f"{level}_high" for level in _GRAVEST_FIRST)]
    grid = grid.with_columns(
        pl.col(numbers).fill_null(0.0),
        *(pl.col(f"{level}_texts").fill_null([]) for level in _GRAVEST_FIRST),
        pl.col("ruled_texts").fill_null([]),
    )
    low, high = pl.col("count_low"), pl.col("count_high")
    rest_low, rest_high = low.sum() - low, high.sum() - high
    level = pl.coalesce(
        pl.when(pl.col("nothing_allowed").fill_null(value=False)).then(pl.lit("impossible")),
        *(pl.when(pl.col(f"{level}_high") > 0).then(pl.lit(level)) for level in _GRAVEST_FIRST),
        pl.when(pl.col("all_undecided").fill_null(value=False)).then(pl.lit("undecided")),
    )
    texts = pl.concat_list("impossible_texts", "special_texts", "undecided_texts", "ruled_texts").list.unique(maintain_order=True)
    return SIZE_GRID.checked(
        grid.with_columns(
            pl.when(high.sum() > 0).then((low / (low + rest_high)).fill_nan(0.0)).alias("share_low"),
            pl.when(high.sum() > 0).then((high / (high + rest_low)).fill_nan(0.0)).alias("share_high"),
            level.alias("level"),
            texts.alias("texts"),
        )
    )


def _by_rule(settings: AllowanceSettings, keep: Mapping[str, Sequence[object]]) -> pl.DataFrame:
    """Return what the rule says of each cell of the grid as far as it is looked at, whatever was counted."""
    looked_at = filtered(impossible_cells(settings), keep)
    kinds = 1
    for dimension, words in (("requester", 3), ("outcome", 4), ("chat", 2)):
        kinds *= len([word for word in keep[dimension] if word is not None]) if dimension in keep else words
    ruled = looked_at.group_by("requested_size", "allowance_size").agg(
        ((pl.col("level") == "impossible").sum() == kinds).alias("nothing_allowed"),
        ((pl.col("code") == "same_bucket").any()).alias("all_undecided"),
        pl.col("text").filter(pl.col("level") == "impossible").unique().sort().alias("refusing_texts"),
        pl.col("text").filter(pl.col("code") == "same_bucket").unique().alias("undecided_texts"),
    )
    kept = [
        pl.when("nothing_allowed").then("refusing_texts").otherwise([]),
        pl.when("all_undecided").then("undecided_texts").otherwise([]),
    ]
    return ruled.with_columns(ruled_texts=pl.concat_list(kept)).select(
        "requested_size", "allowance_size", "nothing_allowed", "all_undecided", "ruled_texts"
    )
