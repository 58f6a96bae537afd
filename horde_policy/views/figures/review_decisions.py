"""Figures of decisions: over time, by any two dimensions, requested size against allowance, and two ranges compared."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import plotly.graph_objects as go
import polars as pl

from horde_policy.frames.decisions import SIZES
from horde_policy.review.annotations import Annotation
from horde_policy.review.decompose import WORDS
from horde_policy.review.quiet import Quiet
from horde_policy.units import one_or_range
from horde_policy.views.figures.contrast import tint
from horde_policy.views.figures.style import (
    ACCENT,
    FAINT,
    OUTCOME_PATTERNS,
    OUTCOMES,
    SERIES,
    STATE_COLOURS,
    SURFACES,
    TEXT,
    Mode,
    base_figure,
    legend_below,
    name_squares,
    utc_axis,
)
from horde_policy.views.review_words import DIMENSION_WORDS, share_range_text, size_text, step_text, word_text
from horde_policy.views.text import count, escape_plotly

__all__ = ["fig_bars", "fig_comparison", "fig_over_time", "fig_size_grid", "grid_alt", "longest_bar", "split_alt"]

SIZE_COLOURS: Final[dict[Mode, tuple[str, ...]]] = {
    "light": ("#0b2559", "#1d479f", "#3364c6", "#5580d6", "#7497d6"),
    "dark": ("#dce8ff", "#b3ccff", "#8ab4ff", "#6f9ff2", "#5b86d6"),
}
"""Sizes from small to large: further from the page for smaller ones."""

PATTERNS: Final = ("", ".", "/", "x", "-", "+")

SIZE_PATTERNS: Final = ("x", "/", ".", "", "-")

UNKNOWN_COLOURS: Final[dict[Mode, str]] = {mode: STATE_COLOURS[mode]["unknown"] for mode in STATE_COLOURS}

CELL_PX = 50


def colour_of(dimension: str, word: object, mode: Mode) -> tuple[str, str]:
    """Return the colour and the fill pattern of a word; what was not exported is grey.

    >>> colour_of("outcome", "free", "light"), colour_of("chat", None, "light")
    (('#159c85', ''), ('#7f8896', '|'))
    """
    if word is None:
        return UNKNOWN_COLOURS[mode], "|"
    if dimension == "outcome":
        return OUTCOMES[mode][str(word)], OUTCOME_PATTERNS[str(word)]
    place = WORDS[dimension].index(word) if dimension in WORDS else 0
    if dimension in ("requested_size", "allowance_size"):
        return SIZE_COLOURS[mode][place], SIZE_PATTERNS[place]
    return SERIES[mode][place % len(SERIES[mode])], PATTERNS[place % len(PATTERNS)]


def fill_pattern(shape: str, mode: Mode) -> dict[str, Any]:
    """Return a fill pattern in the page's colour, drawn over the fill."""
    return {"shape": shape, "fillmode": "overlay", "fgcolor": SURFACES[mode][0], "fgopacity": 0.45, "size": 7, "solidity": 0.2}


def _words_of(cells: pl.DataFrame, dimension: str) -> list[object]:
    """Return the words that a dimension has in the cells, in their order, null last."""
    found = set(cells[dimension].to_list())
    if dimension == "time":
        return [*sorted(word for word in found if word is not None), *([None] if None in found else [])]
    return [word for word in (*WORDS[dimension], None) if word in found]


def split_alt(cells: pl.DataFrame, by: list[str]) -> str:
    """Return what a figure of decomposed decisions shows, in one sentence.

    >>> cells = pl.DataFrame({"outcome": ["free", "refused"], "count_high": [90.0, 10.0]})
    >>> split_alt(cells, ["outcome"])
    'Decisions by outcome: 100 in 2 groups; the largest is free with 90.'
    """
    by_words = ", ".join(DIMENSION_WORDS[name] for name in by)
    if not cells.height:
        return f"Decisions by {by_words}: none were counted."
    largest = cells.sort("count_high", descending=True, maintain_order=True).row(0, named=True)
    who = ", ".join(word_text(name, largest[name]) for name in by)
    total = count(float(cells["count_high"].sum()))
    return f"Decisions by {by_words}: {total} in {cells.height} groups; the largest is {who} with {count(largest['count_high'])}."


def fig_over_time(
    cells: pl.DataFrame,
    colour: str,
    mode: Mode,
    *,
    notes: tuple[Annotation, ...] = (),
    shares: bool = False,
    quiet: Quiet | None = None,
) -> go.Figure:
    """Return decisions over time as stacked bars, one a step and word of ``colour``; a click gives the step and the word.

    Parameters
    ----------
    cells
        From :func:`~horde_policy.review.decompose.decompose` by ``time`` and ``colour`` (``colour`` empty: by ``time``).
    colour
        The dimension that divides the bars, or empty for none.
    notes
        What happened when, each a labelled line (hostile text).
    shares
        Whether each step is drawn as shares of its own total.
    quiet
        The steps without any: a ring on the axis for each zero, a grey ground where the exports do not cover it.

    Notes
    -----
    What is drawn spreads a count evenly over its interval; the hover tells between which bounds a step's count lies.
    """
    figure = base_figure(height_px=340)
    figure.update_layout(
        barmode="stack",
        barnorm="percent" if shares else None,
        bargap=0,
        clickmode="event+select",
    )
    if colour:
        legend_below(figure)
    cells = cells.filter(pl.col("time").is_not_null())
    times = cells["time"].unique().sort()
    step = times.diff().min()
    for word in _words_of(cells, colour) if colour else [None]:
        own = cells.filter(pl.col(colour).eq_missing(pl.lit(word))) if colour else cells
        own = pl.DataFrame({"time": times}).join(own, on="time", how="left")
        fill, pattern = colour_of(colour, word, mode) if colour else (ACCENT[mode], "")
        name = word_text(colour, word) if colour else "decisions"
        figure.add_bar(
            x=own["time"].to_list(),
            y=own["count_even"].fill_null(0.0).to_list(),
            name=escape_plotly(name),
            offset=0,
            width=step / timedelta(milliseconds=1) if isinstance(step, timedelta) else None,
            marker={"color": fill, "pattern": fill_pattern(pattern, mode), "line": {"width": 0}},
            customdata=[(row["time"].isoformat(), word, _hover(row)) for row in own.iter_rows(named=True)],
            hovertemplate=f"%{{x}}<br>{escape_plotly(name)}: %{{customdata[2]}}<extra></extra>",
        )
    utc_axis(figure)
    every = f" in each {step_text(step)}" if isinstance(step, timedelta) else ""
    figure.update_yaxes(title={"text": "share (%)" if shares else f"decisions{every}"}, rangemode="tozero")
    if quiet is not None:
        _draw_quiet(figure, quiet, mode)
    draw_notes(figure, notes, mode)
    return figure


def _draw_quiet(figure: go.Figure, quiet: Quiet, mode: Mode) -> None:
    """Mark the steps in which nothing was counted: rings for zeros, which have a legend, a ground for what is not covered."""
    if quiet.zero:
        figure.add_scatter(
            x=[at + quiet.step / 2 for at in quiet.zero],
            y=[0] * len(quiet.zero),
            mode="markers",
            name="0 decisions",
            marker={"size": 7, "symbol": "circle-open", "color": FAINT[mode], "line": {"width": 1.5}},
            cliponaxis=False,
            hovertemplate="0 decisions<extra></extra>",
        )
    across = {"xref": "x", "yref": "y domain", "y0": 0, "y1": 1}
    for at in quiet.uncovered:
        look = {"fillcolor": FAINT[mode], "opacity": 0.18, "line": {"width": 0}}
        figure.add_shape(type="rect", x0=at, x1=at + quiet.step, **across, **look)


def draw_notes(figure: go.Figure, notes: tuple[Annotation, ...], mode: Mode) -> None:
    """Draw what happened as labelled vertical lines."""
    for note in notes:
        line = {"width": 1, "dash": "dash", "color": FAINT[mode]}
        figure.add_shape(type="line", xref="x", yref="paper", x0=note.at, x1=note.at, y0=0, y1=1, line=line)
        figure.add_annotation(
            x=note.at,
            y=1,
            yref="paper",
            text=escape_plotly(note.text),
            showarrow=False,
            textangle=-90,
            xanchor="left",
            yanchor="top",
            font={"size": 11, "color": FAINT[mode]},
        )


def longest_bar(cells: pl.DataFrame, by: list[str]) -> float:
    """Return the length of the longest bar of counts, for panels that are drawn to one scale; 0 without any.

    >>> cells = pl.DataFrame({"requester": ["a", "a", "b"], "count_low": [1.0, 2.0, 9.0], "count_high": [3.0, 2.0, 9.0]})
    >>> longest_bar(cells, ["requester"]), longest_bar(cells.clear(), ["requester"])
    (9.0, 0.0)
    """
    bars = cells.group_by(by).agg(length=((pl.col("count_low") + pl.col("count_high")) / 2).sum())
    return max(bars["length"].to_list(), default=0.0)


def fig_bars(cells: pl.DataFrame, rows: str, colour: str, mode: Mode, *, shares: bool = True, most: float = 0.0) -> go.Figure:
    """Return decisions as one bar a word of ``rows``, divided by the words of ``colour``; a click gives both words.

    Parameters
    ----------
    cells
        From :func:`~horde_policy.review.decompose.decompose` by ``rows`` and ``colour``, so that the shares are those within a
        row; by ``rows`` alone where ``colour`` is empty. Rows of outcomes then have the outcomes' own colours and patterns.
    shares
        Whether bars are shares (all equally long, n at their head) or counts.
    most
        The longest bar of counts of all panels (:func:`longest_bar`), so that equal lengths are equal counts; 0: of this one.

    Notes
    -----
    Bars of counts that are not divided have their count at their end.
    """
    words = _words_of(cells, rows)
    figure = base_figure(height_px=90 + 44 * max(1, len(words)) + (60 if colour else 0))
    figure.update_layout(barmode="stack", bargap=0.25)
    if colour:
        legend_below(figure)
    divisions = _words_of(cells, colour) if colour else [None]
    told = len(divisions) == 1 and not (shares and colour)
    for word in divisions:
        own = cells.filter(pl.col(colour).eq_missing(pl.lit(word))) if colour else cells
        fill, pattern = colour_of(colour, word, mode) if colour else (ACCENT[mode], "")
        middle = [
            (row["share_low"] + row["share_high"]) * 50 if shares and colour else (row["count_low"] + row["count_high"]) / 2
            for row in own.iter_rows(named=True)
        ]
        if not colour and rows == "outcome":
            marks = [colour_of("outcome", outcome, mode) for outcome in own[rows].to_list()]
            marker = {"color": [mark[0] for mark in marks], "pattern": fill_pattern("", mode) | {"shape": [m[1] for m in marks]}}
        else:
            marker = {"color": fill, "pattern": fill_pattern(pattern, mode)}
        figure.add_bar(
            y=[_label(rows, row) for row in own[rows].to_list()],
            x=middle,
            orientation="h",
            name=escape_plotly(word_text(colour, word)) if colour else "decisions",
            marker=marker,
            text=[one_or_range(count(low), count(high)) for low, high in own.select("count_low", "count_high").rows()]
            if told
            else None,
            textposition="outside",
            outsidetextfont={"color": TEXT[mode], "size": 12},
            cliponaxis=False,
            customdata=[(row[rows], word, _hover(row)) for row in own.iter_rows(named=True)],
            hovertemplate="%{customdata[2]}<extra></extra>",
        )
    figure.update_yaxes(categoryorder="array", categoryarray=[_label(rows, word) for word in reversed(words)], type="category")
    figure.layout.yaxis.showgrid = False
    figure.update_xaxes(title={"text": "share (%)" if shares and colour else "decisions"}, rangemode="tozero")
    if most > 0 and not (shares and colour):
        figure.update_xaxes(range=[0, most * (1.2 if told else 1.05)])
    figure.update_layout(dragmode=False, clickmode="event+select")
    return figure


def _label(dimension: str, word: object) -> str:
    return escape_plotly(word_text(dimension, word))


def _hover(row: Mapping[str, Any]) -> str:
    if row["count_low"] is None:
        return count(0)
    counted = one_or_range(count(row["count_low"]), count(row["count_high"]))
    if row["share_low"] is None:
        return counted
    sampling = share_range_text(row["sampling_low"], row["sampling_high"])
    return f"{counted} of {count(row['n_high'])}: {share_range_text(row['share_low'], row['share_high'])} (95 %: {sampling})"


# --- requested size against allowance -------------------------------------------------------------------------------------

_LEVEL_TEXTS: Final = {"impossible": "cannot be", "special": "only a special case", "undecided": "not decided"}


def grid_alt(grid: pl.DataFrame) -> str:
    """Return what the grid of sizes shows, in one sentence.

    >>> grid = pl.DataFrame({"level": ["impossible"], "count_high": [3.0]})
    >>> grid_alt(grid)
    'Requested size against allowance: 3 decisions; 3 lie in cells that the rule does not allow.'
    """
    impossible = float(grid.filter(pl.col("level") == "impossible")["count_high"].sum())
    total = count(float(grid["count_high"].sum()))
    return f"Requested size against allowance: {total} decisions; {count(impossible)} lie in cells that the rule does not allow."


def fig_size_grid(grid: pl.DataFrame, mode: Mode) -> go.Figure:
    """Return requested size × allowance as squares, darker for more; a click gives both sizes (T9: no heatmap could).

    Parameters
    ----------
    grid
        Schema :data:`~horde_policy.review.cells.SIZE_GRID`.
    mode
        The viewer's theme.

    Notes
    -----
    A cross marks what the rule does not allow, a question mark what the buckets do not decide of a count, 0 what was not counted;
    a red frame what was counted though the rule does not allow it. The hover says why.
    """
    figure = base_figure(height_px=120 + CELL_PX * len(SIZES))
    figure.layout.margin.l = 108
    most = float(grid["count_high"].to_numpy().max()) if grid.height else 0.0
    rows = list(grid.iter_rows(named=True))
    broken = [row["impossible_high"] > 0 for row in rows]
    figure.add_scatter(
        x=[_label("allowance_size", row["allowance_size"]) for row in rows],
        y=[_label("requested_size", row["requested_size"]) for row in rows],
        mode="markers+text",
        name="decisions",
        marker={
            "symbol": "square",
            "size": CELL_PX - 6,
            "color": [_shade(row["count_high"], most, mode) for row in rows],
            "line": {
                "width": [3 if is_broken else 1 for is_broken in broken],
                "color": [STATE_COLOURS[mode]["floor"] if is_broken else FAINT[mode] for is_broken in broken],
            },
        },
        text=[_cell_text(row) for row in rows],
        textfont={"size": 12, "color": TEXT[mode]},
        customdata=[(row["requested_size"], row["allowance_size"], _cell_hover(row)) for row in rows],
        hovertemplate="%{customdata[2]}<extra></extra>",
    )
    labels = [_label("requested_size", size) for size in SIZES]
    name_squares(figure.layout.xaxis, "allowance (tokens)", labels)
    name_squares(figure.layout.yaxis, "requested size (tokens)", labels)
    figure.update_layout(clickmode="event+select")
    return figure


def _shade(counted: float, most: float, mode: Mode) -> str:
    return tint(ACCENT[mode], 0.0 if most <= 0 or counted <= 0 else 0.12 + 0.88 * (counted / most) ** 0.5, mode)


def _cell_text(row: Mapping[str, Any]) -> str:
    if row["count_high"] > 0:
        shown = share_range_text(row["share_low"], row["share_high"]) if row["count_low"] == row["count_high"] else "±"
        # in two lines, which have the room in a square: in one the least share would run out of it
        return f"{shown}<br>?" if row["level"] == "undecided" else shown
    return "×" if row["level"] == "impossible" else "0"


def _cell_hover(row: Mapping[str, Any]) -> str:
    counted = one_or_range(count(row["count_low"]), count(row["count_high"]))
    head = f"asked {size_text(row['requested_size'])}, allowance {size_text(row['allowance_size'])}: {counted} decisions"
    if row["share_low"] is not None and row["count_high"] > 0:
        head += f", {share_range_text(row['share_low'], row['share_high'])}"
    lines = [head]
    if row["level"] is not None:
        lines.append(f"<b>{_LEVEL_TEXTS[row['level']]}</b>")
    lines += [escape_plotly(text) for text in row["texts"]]
    return "<br>".join(lines)


# --- two ranges or exports compared -----------------------------------------------------------------------------------------


def fig_comparison(cells: pl.DataFrame, by: list[str], mode: Mode, *, names: tuple[str, str]) -> go.Figure:
    """Return how much each share differs, with its interval around it; what crosses zero may be no difference.

    A click gives the words of a row.

    Parameters
    ----------
    cells
        From :func:`~horde_policy.review.decompose.compare`.
    by
        Its dimensions, which name the rows.
    names
        What the first and the second side are called (hostile text).
    """
    cells = cells.filter(pl.col("difference_low").is_not_null())
    labels = [", ".join(_label(name, row[name]) for name in by) for row in cells.iter_rows(named=True)]
    figure = base_figure(height_px=90 + 26 * max(1, len(labels)))
    points = list(cells.iter_rows(named=True))
    middle = [(row["difference_low"] + row["difference_high"]) * 50 for row in points]
    figure.add_scatter(
        x=middle,
        y=labels,
        mode="markers",
        name="difference",
        marker={"size": 9, "color": ACCENT[mode]},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [row["sampling_difference_high"] * 100 - at for row, at in zip(points, middle, strict=True)],
            "arrayminus": [at - row["sampling_difference_low"] * 100 for row, at in zip(points, middle, strict=True)],
            "color": FAINT[mode],
            "thickness": 1.5,
        },
        customdata=[(*(row[name] for name in by), _difference_hover(row, names)) for row in points],
        hovertemplate=f"%{{customdata[{len(by)}]}}<extra></extra>",
    )
    figure.add_vline(x=0, line={"width": 1, "color": FAINT[mode]})
    figure.update_xaxes(title={"text": "difference (percentage points)"})
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=list(reversed(labels)))
    figure.update_layout(clickmode="event+select")
    return figure


def _difference_hover(row: Mapping[str, Any], names: tuple[str, str]) -> str:
    lines = []
    for name, side in zip(names, ("first", "second"), strict=True):
        share = share_range_text(row[f"{side}_share_low"], row[f"{side}_share_high"])
        lines.append(f"{escape_plotly(name)}: {share} of {count(row[f'{side}_n_high'])}")
    return "<br>".join(lines)
