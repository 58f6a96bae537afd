"""The Decisions page's parts: what it is told apart by, the figures with their clicks, the grid of sizes, what-if, comparison."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import polars as pl
import streamlit as st

from horde_policy.errors import ConfigError
from horde_policy.review.cells import rule_counts, size_grid, with_rules
from horde_policy.review.decompose import DIMENSIONS, WORDS, compare, decompose, shared
from horde_policy.review.exported import Exported
from horde_policy.review.quiet import quiet_hours
from horde_policy.review.whatif import what_if
from horde_policy.ui import address
from horde_policy.ui.charts import show_figure, theme_mode
from horde_policy.ui.fields import number_field
from horde_policy.ui.headings import show_heading
from horde_policy.ui.notices import say_here
from horde_policy.ui.review_choices import drawn_span
from horde_policy.ui.review_page import Opened, offer, show_nothing
from horde_policy.ui.tables import show_grid
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS, one_or_range
from horde_policy.views import review_tables as tables
from horde_policy.views.exports import to_csv
from horde_policy.views.figures import review_decisions as figures
from horde_policy.views.figures.review_whatif import fig_what_if, what_if_alt
from horde_policy.views.review_exports import decision_headings, file_name, stamp_of
from horde_policy.views.review_state import ReviewState
from horde_policy.views.review_words import DIMENSION_WORDS, bounds_text, word_text
from horde_policy.views.sweep_words import setting_told
from horde_policy.views.text import count, escape_markdown, ratio

__all__ = ["show_comparison", "show_figures", "show_split", "show_what_if"]

WHAT_IF = "decisions.what-if"
"""The part that says itself what it does not try."""

SHARES = "decisions.shares"
SHARES_KEPT = "decisions.shares-kept"
SHARES_HELP = "Shares within a row or step; else counts."
NO_SHARES_HELP = "Counts are drawn: shares need a colour with more than one word among what is looked at."
BOX_OR_STEP = (
    "Click a step to look at that time alone, or draw a box around a longer one with the dashed square of the figure's tool bar. "
    "Times are UTC."
)
MOST_OPEN_ROWS = 24
"""A table of no more rows than this is open from the start."""


def show_split(opened: Opened) -> None:
    """Show the choosers of rows, columns and colour, the figure of them, the table behind it, and its export."""
    state = opened.state
    chosen = st.container()
    rows, columns, colour = state.dimensions
    looked_at = opened.looked_at(opened.exported)
    by = [name for name in (columns, rows, colour) if name]
    cells = decompose(looked_at.decisions, by, span=looked_at.span)
    only = cells[colour].unique() if colour else None
    # one word of a dimension is all of it: shares of it would say nothing, so its counts are drawn, in its own colour
    one_word = only is not None and len(only) == 1
    with chosen:
        _choose_dimensions(state, can_share=bool(colour) and not one_word)
    if looked_at.counted.high <= 0:
        show_nothing(opened, opened.exported.counted.high, "decisions")
        return
    if only is not None and one_word:
        by = by[:-1]
        cells = decompose(looked_at.decisions, by, span=looked_at.span)
        cells = cells.with_columns(pl.lit(only[0], dtype=only.dtype).alias(colour))
    if rows == "time" and cells["time"].null_count() == cells.height:
        st.info(
            "The exports are one look at each process: they tell nothing over time. Choose other rows.",
            icon=":material/timer_off:",
        )
        return
    shares = bool(colour) and not one_word and bool(st.session_state[SHARES])
    parts = [(None, cells)] if not columns else [(word, part) for (word,), part in cells.group_by(columns, maintain_order=True)]
    most = figures.longest_bar(cells, [name for name in (columns, rows) if name])
    for place, (word, part) in zip(st.columns(len(parts), gap="small"), parts, strict=True):
        with place:
            if columns:
                st.markdown(f"**{DIMENSION_WORDS[columns]}: {escape_markdown(word_text(columns, word))}**, n = {_n(part)}")
            _show_part(opened, part, colour, (columns, word), shares=shares, most=most)
    title = "The figures as a table: counts, shares, sample sizes, intervals"
    with st.expander(title, icon=":material/table:", expanded=cells.height <= MOST_OPEN_ROWS):
        shown = cells.head(tables.MOST_ROWS)
        show_grid(
            tables.decision_columns(by),
            tables.decision_rows(shown, by),
            key="decisions.table",
            alt="Decisions by " + ", ".join(DIMENSION_WORDS[name] for name in by),
        )
        first = f"The first {count(shown.height)} of {count(cells.height)} rows; the export has all. "
        st.caption(f"{first if shown.height < cells.height else ''}What is not listed was counted 0 times.")
    stamp = stamp_of(opened.exported, opened.settings, state.keep)
    offer(
        "Table (CSV)",
        lambda: to_csv(with_rules(cells, looked_at.decisions, by, opened.settings), decision_headings(by), stamp),
        file_name("decisions", stamp, "csv"),
        "text/csv",
        key="decisions.csv",
        text="Every count and share with sample size and interval; data, range, settings and filters stand in each row.",
    )


def _n(part: pl.DataFrame) -> str:
    low, high = part.select(pl.col("count_low").sum(), pl.col("count_high").sum()).row(0)
    return one_or_range(count(low), count(high))


def _choose_dimensions(state: ReviewState, *, can_share: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for field, label, options in (
            ("rows", "Rows", list(DIMENSIONS)),
            ("columns", "Columns", ["", *WORDS]),
            ("colour", "Colour", ["", *WORDS]),
        ):
            key = f"decisions.{field}"
            address.seed(key, getattr(state, field))
            st.selectbox(
                label,
                options,
                format_func=lambda name: DIMENSION_WORDS.get(name, "none"),
                key=key,
                on_change=_write_dimension,
                args=(field, key),
                width=170,
            )
        if can_share:
            st.toggle("Shares", value=st.session_state.get(SHARES_KEPT, True), key=SHARES, help=SHARES_HELP)
            st.session_state[SHARES_KEPT] = st.session_state[SHARES]
        else:
            st.toggle("Shares", value=False, key="decisions.no-shares", disabled=True, help=NO_SHARES_HELP)


def _write_dimension(field: str, key: str) -> None:
    address.write_review(address.read_review().changed(**{field: st.session_state[key]}))


def _show_part(opened: Opened, part: pl.DataFrame, colour: str, column: tuple[str, object], *, shares: bool, most: float) -> None:
    rows = opened.state.rows
    if not colour and column[0] == "outcome":
        colour = "outcome"  # a column of one outcome has its colour, as everywhere
    place = word_text(*column) if column[0] else "all"
    mode = theme_mode()
    key = f"decisions.split-{place}-{opened.key}"
    by = [name for name in (rows, colour) if name]
    alt = figures.split_alt(part, by)
    if rows == "time":
        quiet = None if column[0] else quiet_hours(opened.looked_at(opened.exported))
        figure = figures.fig_over_time(part, colour, mode, notes=opened.notes, shares=shares, quiet=quiet)
        show_figure(figure, alt=alt, key=key, on_box=_choose_span, on_mark=lambda mark: _choose_step(part, colour, column, mark))
        for note in tables.quiet_notes(quiet):
            st.caption(note)
        return
    figure = figures.fig_bars(part, rows, colour, mode, shares=shares, most=most)
    show_figure(figure, alt=alt, key=key, on_mark=lambda mark: _choose_words((rows, colour, column[0]), (*mark[:2], column[1])))


def _choose_words(dimensions: Sequence[str], words: Sequence[object]) -> None:
    """Look at the words of a mark alone; at all again, if they were all that was looked at."""
    state = address.read_review()
    named = {name: word for name, word in zip(dimensions, words, strict=True) if name}
    narrowed = state
    for name, word in named.items():
        narrowed = narrowed.changed(**{name: ()}).toggled(name, word)
    if narrowed == state:
        narrowed = state.changed(**dict.fromkeys(named, ()))
    address.write_review(narrowed)


def _choose_step(part: pl.DataFrame, colour: str, column: tuple[str, object], mark: Sequence[object]) -> None:
    at = datetime.fromisoformat(str(mark[0])).astimezone(UTC)
    step = part["time"].unique().sort().diff().min()
    state = address.read_review()
    if isinstance(step, timedelta):
        state = state.changed(start=at, end=at + step)
    for name, word in ((colour, mark[1]), column):
        state = state.changed(**{name: ()}).toggled(name, word) if name else state
    address.write_review(state)  # once, so that one step back undoes it


def _choose_span(ends: object) -> None:
    span = drawn_span(ends)
    if span is not None:
        address.write_review(address.read_review().changed(start=span.start, end=span.end))


def show_figures(opened: Opened) -> None:
    """Show requested size against allowance with the cells that the rule does not allow, and decisions over time."""
    looked_at = opened.looked_at(opened.exported)
    if looked_at.counted.high <= 0:
        return
    show_heading("Requested size against allowance")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        grid = size_grid(opened.exported.decisions, opened.settings, opened.state.keep)
        show_figure(
            figures.fig_size_grid(grid, theme_mode()),
            alt=figures.grid_alt(grid),
            key=f"decisions.grid-{opened.key}",
            on_mark=lambda mark: _choose_words(("requested_size", "allowance_size"), mark[:2]),
        )
    with right:
        st.caption(
            "Shares of all decisions that are looked at; the stronger the colour, the more. **0** none was counted · **×** the "
            "rule does not allow it (a red frame: counted all the same) · **?** both sizes lie in one bucket, which does not say "
            "which is larger · **±** known between bounds only. Click a cell to look at it alone."
        )
        rules = rule_counts(looked_at.decisions, opened.settings)
        show_grid(
            tables.RULE_COLUMNS,
            tables.rule_rows(rules),
            key="decisions.rules",
            alt="What the rule says of the cells in which decisions were counted",
            empty="Every decision looked at lies in a cell that the rule allows and decides.",
        )
    if opened.state.rows != "time":
        _show_over_time(opened, looked_at)


def _show_over_time(opened: Opened, looked_at: Exported) -> None:
    _, _, colour = opened.state.dimensions
    cells = decompose(looked_at.decisions, ["time", *([colour] if colour else [])], span=looked_at.span)
    if cells["time"].null_count() == cells.height:
        return
    show_heading("Over time")
    quiet = quiet_hours(looked_at)
    show_figure(
        figures.fig_over_time(cells, colour, theme_mode(), notes=opened.notes, quiet=quiet),
        alt=figures.split_alt(cells, ["time", *([colour] if colour else [])]),
        key=f"decisions.time-{opened.key}",
        on_box=_choose_span,
        on_mark=lambda mark: _choose_step(cells, colour, ("", None), mark),
    )
    st.caption(" ".join([BOX_OR_STEP, *tables.quiet_notes(quiet)]))


# --- two sides --------------------------------------------------------------------------------------------------------------


def show_comparison(opened: Opened) -> None:
    """Show how the shares differ from those compared with; nothing where nothing is compared."""
    other = opened.other
    if other is None:
        return
    show_heading("Compared")
    by = [name for name in opened.state.dimensions if name and name != "time"] or ["outcome"]
    first, second = opened.looked_at(opened.exported), opened.looked_at(other)
    if first.counted.high <= 0 or second.counted.high <= 0:
        side = "The first side" if first.counted.high <= 0 else "The second side"
        st.info(f"{side} has 0 decisions of what is looked at, so there is nothing to compare.", icon=":material/compare_arrows:")
        return
    cells = compare(first.decisions, second.decisions, by)
    names = ("first side", "second side")
    st.caption(
        "  \n".join(
            f"**{name.capitalize()}** {escape_markdown(tables.side_text(side))}"
            for name, side in zip(names, (opened.exported, other), strict=True)
        )
    )
    if (shares := tables.shared_text(shared(first.decisions, second.decisions))) is not None:
        st.warning(f"{shares}.", icon=":material/join_inner:")
    show_figure(
        figures.fig_comparison(cells, by, theme_mode(), names=names),
        alt="Differences of the shares between the two sides, each with its 95 % interval",
        key=f"decisions.comparison-{opened.key}",
        on_mark=lambda mark: _choose_words(by, mark[: len(by)]),
    )
    show_grid(
        tables.comparison_columns(by, names),
        tables.comparison_rows(cells, by),
        key="decisions.comparison-table",
        alt="Shares of both sides with sample sizes, and their differences",
    )
    stamp = stamp_of(opened.exported, opened.settings, opened.state.keep)
    offer(
        "Comparison (CSV)",
        lambda: to_csv(
            cells.with_columns(pl.lit(other.title).alias("against"), pl.lit(tables.side_text(other)).alias("against_of")),
            {name: name for name in cells.columns} | {"against": "against", "against_of": "against, range"},
            stamp,
        ),
        file_name("comparison", stamp, "csv"),
        "text/csv",
        key="decisions.comparison-csv",
        text="Both sides and their differences with intervals.",
    )


# --- what-if ----------------------------------------------------------------------------------------------------------------


def show_what_if(opened: Opened) -> None:
    """Show what another ceiling or floor would have given the same requests, as far as the counts tell."""
    looked_at = opened.looked_at(opened.exported)
    if looked_at.counted.high <= 0:
        return
    settings, state = opened.settings, opened.state
    show_heading("What if the ceiling or the floor were another?")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for field, label, value in (
            ("ceiling", "Ceiling (tokens)", state.ceiling or settings.ceiling_tokens),
            ("floor", "Floor (tokens)", state.floor or settings.floor_tokens),
        ):
            key = f"decisions.what-if-{field}"
            address.seed(key, value)
            number_field(
                label,
                1,
                MAX_LENGTH_LIMIT_TOKENS,
                step=1,
                key=key,
                on_change=_try,
                args=(field, key, opened),
                told_at=WHAT_IF,
                width=170,
            )
        st.button(
            "As it was",
            key="decisions.what-if-nothing",
            type="tertiary",
            on_click=lambda: address.write_review(address.read_review().changed(ceiling=None, floor=None)),
            disabled=state.ceiling is None and state.floor is None,
        )
    refused = say_here(WHAT_IF)
    changed = state.what_if(settings)
    if changed is None:
        first = "" if refused else "Nothing is tried: change one of the two. "
        st.caption(f"{first}Only the counts are used; waits and clients stay as they were.")
        return
    answer = what_if(looked_at.decisions, settings, changed)
    undecided = answer.undecided_share
    st.markdown(
        f"With a ceiling of **{count(changed.ceiling_tokens)}** and a floor of **{count(changed.floor_tokens)}** tokens, "
        f"**{bounds_text(answer.after['free'])}** requests would have been free ({bounds_text(answer.before['free'])} were). "
        + ("" if undecided is None else f"The buckets leave **{ratio(undecided)}** of the requests undecided.")
    )
    show_figure(fig_what_if(answer, theme_mode()), alt=what_if_alt(answer), key=f"decisions.what-if-{opened.key}")
    show_grid(
        tables.WHAT_IF_COLUMNS, tables.what_if_rows(answer), key="decisions.what-if-table", alt="Outcomes as counted and then"
    )


def _try(field: str, key: str, opened: Opened) -> None:
    value, now = int(st.session_state[key]), getattr(opened.settings, f"{field}_tokens")
    state = address.read_review().changed(**{field: None if value == now else value})
    try:
        opened.settings.changed(
            ceiling_tokens=state.ceiling or opened.settings.ceiling_tokens,
            floor_tokens=state.floor or opened.settings.floor_tokens,
        )
    except ConfigError as error:
        address.say(f"Nothing is tried of this: {setting_told(error)}.", again=key, at=WHAT_IF)
        return
    address.write_review(state)
