"""Who got what: counts and shares of decisions by any of their dimensions, each with its interval (A25)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import numpy as np
import polars as pl

from horde_policy.errors import InputError
from horde_policy.frames.decisions import OUTCOMES, REQUESTERS, SIZES
from horde_policy.review.ranges import TimeRange, in_blocks, in_steps, span_of, step_for, typical_interval
from horde_policy.review.sampling import LEVEL, Bounds, Share, effect_of_sums, share_of, shares

__all__ = ["COUNTED", "DIMENSIONS", "WORDS", "compare", "count_of", "decompose", "filtered", "rate", "shared", "total"]

WORDS: Mapping[str, tuple[object, ...]] = {
    "requester": REQUESTERS,
    "outcome": OUTCOMES,
    "requested_size": SIZES,
    "allowance_size": SIZES,
    "chat": (False, True),
}
"""Dimension of a decision → its words in their order."""

DIMENSIONS: tuple[str, ...] = (*WORDS, "time")
"""What decisions can be told apart by; ``time`` is the start of a step."""

COUNTED: tuple[str, ...] = (
    *("count_low", "count_high", "n_low", "n_high"),
    *("share_low", "share_high", "sampling_low", "sampling_high", "design_effect"),
)
"""The columns of figures of :func:`decompose`: the cell's counts, those of its base, its share of them and the interval."""


def filtered(decisions: pl.DataFrame, keep: Mapping[str, Sequence[object]]) -> pl.DataFrame:
    """Return the rows whose dimensions have one of the words given; null is the word for what was not exported.

    Examples
    --------
    >>> rows = pl.DataFrame({"outcome": ["free", "refused", None]})
    >>> filtered(rows, {"outcome": ("free", None)}).height
    2
    """
    check_dimensions(list(keep), time=False)
    for dimension, words in keep.items():
        decisions = decisions.filter(pl.col(dimension).is_in(list(words), nulls_equal=True))
    return decisions


def check_dimensions(by: Sequence[str], *, time: bool = True) -> None:
    """Raise InputError for a name that is no dimension, or stands twice."""
    known = DIMENSIONS if time else tuple(WORDS)
    for number, name in enumerate(by):
        if name not in known:
            raise InputError("dimension", "", name, "must be one of " + ", ".join(known))
        if name in by[:number]:
            raise InputError("dimension", "", name, "must not stand twice")


def total(frame: pl.DataFrame) -> Bounds:
    """Return how much all rows count together.

    >>> total(pl.DataFrame({"count_low": [1.0, 2.0], "count_high": [1.0, 4.0]}))
    Bounds(low=3.0, high=5.0)
    """
    low, high = frame.select(pl.col("count_low").sum(), pl.col("count_high").sum()).row(0)
    return Bounds(float(low), float(high))


def count_of(decisions: pl.DataFrame, **words: object) -> Bounds:
    """Return how many decisions have the words given.

    >>> rows = pl.DataFrame({"outcome": ["free", "refused"], "count_low": [1.0, 2.0], "count_high": [1.0, 4.0]})
    >>> count_of(rows, outcome="refused")
    Bounds(low=2.0, high=4.0)
    """
    return total(filtered(decisions, {dimension: (word,) for dimension, word in words.items()}))


def rate(frame: pl.DataFrame, part: pl.Expr, *, level: float = LEVEL) -> Share | None:
    """Return the share of the rows that ``part`` picks among all rows, with the design effect of its own blocks of time.

    Parameters
    ----------
    frame
        Rows of counts over intervals (decisions or waits).
    part
        A Boolean expression over its columns; null counts as false.

    Returns
    -------
    Share or None
        Null where nothing was counted.
    """
    hit = frame.with_columns(part.fill_null(value=False).alias("_part"))
    inside, outside = (total(hit.filter(pl.col("_part") == side)) for side in (True, False))
    effects = _effects(hit, ["_part"], [], level).filter(pl.col("_part"))
    effect = float(effects["design_effect"][0]) if effects.height else 1.0
    return share_of(inside, outside, effect=effect, level=level)


def decompose(
    decisions: pl.DataFrame,
    by: Sequence[str],
    *,
    of: Sequence[str] | None = None,
    step: timedelta | None = None,
    span: TimeRange | None = None,
    level: float = LEVEL,
) -> pl.DataFrame:
    """Return counts and shares of decisions by some of their dimensions.

    Parameters
    ----------
    decisions
        Schema :data:`~horde_policy.frames.decisions.DECISIONS`, already of the range asked about.
    by
        Dimensions of :data:`DIMENSIONS`; none for the one total.
    of
        The dimensions whose groups the shares are taken within; by default all but the last, so that the last one is split
        within the others. Must be among ``by``.
    step
        Width of the steps of ``time``; by default what cuts the frame's span into a readable number.
    span
        The range asked about: a count that reaches over its edge may lie in a step of ``time`` wholly outside, which is left out.
    level
        The confidence of the sampling limits.

    Returns
    -------
    DataFrame
        The columns of ``by`` and :data:`COUNTED`; one row a combination with any count, in the order of the words, null (not
        exported) last. With ``time``, ``count_low`` and ``count_high`` bound what a step holds and ``count_even`` spreads each
        count evenly over its interval.

    Raises
    ------
    InputError
        A name is no dimension, or ``of`` is not among ``by``.

    Examples
    --------
    >>> rows = pl.DataFrame({"outcome": ["free", "refused"], "count_low": [90.0, 10.0], "count_high": [90.0, 10.0],
    ...     "interval_start": [None, None], "interval_end": [None, None]}, schema_overrides={
    ...     "interval_start": pl.Datetime("us", "UTC"), "interval_end": pl.Datetime("us", "UTC")})
    >>> decompose(rows, ["outcome"]).select("outcome", "count_low", "share_low", pl.col("sampling_high").round(3)).rows()
    [('free', 90.0, 0.9, 0.951), ('refused', 10.0, 0.1, 0.176)]
    """
    by = list(by)
    check_dimensions(by)
    within = list(by[:-1] if of is None else of)
    if not set(within) <= set(by):
        raise InputError("dimension", "of", ", ".join(within), "must be among " + (", ".join(by) or "none"))
    frame = decisions
    width = None
    if "time" in by:
        width = step or step_for(span_of(frame), interval=typical_interval(frame))
        frame = in_steps(frame, width)
    counts = ["count_low", "count_high", *(["count_even"] if "time" in by else [])]
    cells = frame.group_by(by).agg(pl.col(counts).sum()) if by else frame.select(pl.col(counts).sum())
    base = cells.group_by(within).agg(_base()) if within else cells.select(_base())
    cells = cells.join(base, on=within, how="left", nulls_equal=True) if within else cells.join(base, how="cross")
    if by and "time" not in by:
        cells = cells.join(_effects(frame, by, within, level), on=by, how="left", nulls_equal=True)
    else:
        cells = cells.with_columns(design_effect=pl.lit(1.0))
    if width is not None and span is not None:
        cells = _steps_within(cells, width, span)
    even = ["count_even"] if "time" in by else []
    return _in_order(_with_shares(cells, level), by).select(*by, *COUNTED, *even)


def _steps_within(cells: pl.DataFrame, width: timedelta, span: TimeRange) -> pl.DataFrame:
    outside = pl.lit(value=False)
    if span.start is not None:
        outside = outside | (pl.col("time") + width <= span.start)
    if span.end is not None:
        outside = outside | (pl.col("time") >= span.end)
    return cells.filter(~outside.fill_null(value=False))


def _base() -> list[pl.Expr]:
    return [pl.col("count_low").sum().alias("n_low"), pl.col("count_high").sum().alias("n_high")]


def _with_shares(cells: pl.DataFrame, level: float) -> pl.DataFrame:
    columns = {name: cells[name].fill_null(1.0).to_numpy() for name in (*COUNTED[:4], "design_effect")}
    low, high, sampling_low, sampling_high = shares(
        (columns["count_low"], columns["count_high"]),
        # sums of many counts differ from their own parts by rounding errors
        tuple(np.maximum(columns[f"n_{end}"] - columns[f"count_{end}"], 0.0) for end in ("low", "high")),
        effect=columns["design_effect"],
        level=level,
    )
    figures = {"share_low": low, "share_high": high, "sampling_low": sampling_low, "sampling_high": sampling_high}
    return cells.with_columns(pl.Series(name, values).fill_nan(None) for name, values in figures.items())


def _effects(frame: pl.DataFrame, by: list[str], within: list[str], level: float) -> pl.DataFrame:
    """Return the design effect of each cell's share within its base, from blocks of time."""
    own = in_blocks(frame).group_by(*by, "block").agg(pl.col("count_middle").sum().alias("_k"))
    base = own.group_by(*within, "block").agg(pl.col("_k").sum().alias("_n"))
    summed = [
        pl.col("_n").sum().alias("_total"),
        (pl.col("_n") ** 2).sum().alias("_nn"),
        (pl.col("_n") > 0).sum().alias("_blocks"),
    ]
    totals = base.group_by(within).agg(summed) if within else base.select(summed)
    own = own.join(base, on=[*within, "block"], nulls_equal=True)
    sums = own.group_by(by).agg(
        pl.col("_k").sum().alias("_own"),
        (pl.col("_k") ** 2).sum().alias("_kk"),
        (pl.col("_k") * pl.col("_n")).sum().alias("_kn"),
    )
    sums = sums.join(totals, on=within, nulls_equal=True) if within else sums.join(totals, how="cross")
    effects = []
    for part, kk, kn, everything, nn, count in sums.select("_own", "_kk", "_kn", "_total", "_nn", "_blocks").iter_rows():
        share = part / everything if everything else 0.0
        squares = max(0.0, kk - 2 * share * kn + share * share * nn)
        effects.append(effect_of_sums(share, everything, squares, count, level))
    return sums.select(*by, pl.Series("design_effect", effects, dtype=pl.Float64))


def _in_order(cells: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return the cells in the order of the words, null last."""
    order = [
        pl.col(name).replace_strict(list(WORDS[name]), list(range(len(WORDS[name]))), default=None, return_dtype=pl.Int8)
        if name in WORDS
        else pl.col(name)
        for name in by
    ]
    return cells.sort(order, nulls_last=True) if by else cells


def compare(
    first: pl.DataFrame,
    second: pl.DataFrame,
    by: Sequence[str],
    *,
    of: Sequence[str] | None = None,
    level: float = LEVEL,
) -> pl.DataFrame:
    """Return how the shares of two ranges or two exports differ, cell by cell.

    Parameters
    ----------
    first, second
        Schema :data:`~horde_policy.frames.decisions.DECISIONS`; the differences are second less first.
    by, of, level
        See :func:`decompose`; ``time`` has no place here.

    Returns
    -------
    DataFrame
        The columns of ``by``; :data:`COUNTED` with ``first_`` and ``second_`` in front; ``difference_low`` and
        ``difference_high`` (as far as the counts decide), ``sampling_difference_low`` and ``…_high`` (with sampling, see
        :func:`~horde_policy.review.sampling.difference`). A cell that only one side has counts 0 on the other; where a side has
        no base at all the difference is null.
    """
    by = list(by)
    check_dimensions(by, time=False)
    within = list(by[:-1] if of is None else of)
    sides = {name: decompose(side, by, of=of, level=level) for name, side in (("first", first), ("second", second))}
    cells = pl.concat([side.select(by) for side in sides.values()]).unique()
    both = cells
    for name, side in sides.items():
        full = _filled(cells, side, by, within, level).rename({one: f"{name}_{one}" for one in COUNTED})
        both = both.join(full, on=by, how="left", nulls_equal=True)
    return _in_order(both.with_columns(_differences()), by)


def shared(first: pl.DataFrame, second: pl.DataFrame) -> Bounds:
    """Return how many decisions both sides of a comparison hold: the same process counted them over the same time.

    What reaches over the edge of a range is between none and all of it on that side. Sides that share decisions are not
    independent, and the sampling interval of their difference is then too wide or too narrow.

    Parameters
    ----------
    first, second
        Schema :data:`~horde_policy.frames.decisions.DECISIONS`.
    """
    same = [name for name in first.columns if name not in {"count_low", "count_high"}]
    timed = pl.col("interval_end").is_not_null()
    both = first.filter(timed).join(second.filter(timed), on=same, how="inner", nulls_equal=True)
    low, high = (both.select(pl.min_horizontal(name, f"{name}_right").sum()).item() for name in ("count_low", "count_high"))
    return Bounds(float(low), float(high))


def _filled(cells: pl.DataFrame, side: pl.DataFrame, by: list[str], within: list[str], level: float) -> pl.DataFrame:
    """Return one side of a comparison with a row for every cell of both."""
    base = side.select(*within, "n_low", "n_high").unique(subset=within or None)
    full = cells.join(side.select(*by, "count_low", "count_high", "design_effect"), on=by, how="left", nulls_equal=True)
    if within:
        full = full.join(base, on=within, how="left", nulls_equal=True)
    else:
        ends = base.row(0) if base.height else (0.0, 0.0)
        full = full.with_columns(n_low=pl.lit(ends[0]), n_high=pl.lit(ends[1]))
    figures = ("count_low", "count_high", "n_low", "n_high")
    full = full.with_columns(pl.col(*figures).fill_null(0.0), pl.col("design_effect").fill_null(1.0))
    return _with_shares(full, level).select(*by, *COUNTED)


def _differences() -> list[pl.Expr]:
    """Return the columns of differences; the scalar form is :func:`~horde_policy.review.sampling.difference`."""
    low = pl.col("second_share_low") - pl.col("first_share_high")
    high = pl.col("second_share_high") - pl.col("first_share_low")
    first_up = pl.col("first_sampling_high") - pl.col("first_share_high")
    first_down = pl.col("first_share_low") - pl.col("first_sampling_low")
    second_up = pl.col("second_sampling_high") - pl.col("second_share_high")
    second_down = pl.col("second_share_low") - pl.col("second_sampling_low")
    below, above = (second_down**2 + first_up**2).sqrt(), (second_up**2 + first_down**2).sqrt()
    return [
        low.alias("difference_low"),
        high.alias("difference_high"),
        (low - below).clip(lower_bound=-1.0).alias("sampling_difference_low"),
        (high + above).clip(upper_bound=1.0).alias("sampling_difference_high"),
    ]
