"""What the history adds to the Overview and the Model page: the range, lines, alerts, changes, annotations."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import plotly.graph_objects as go
import polars as pl
import streamlit as st

from horde_policy.board.detail import ModelDetail, model_detail
from horde_policy.board.pool import Fleet
from horde_policy.frames.schemas import Schema
from horde_policy.history.reading import GAP_ROWS, snapshot_at
from horde_policy.history.trend import TREND_ROWS
from horde_policy.settings import AllowanceSettings
from horde_policy.ui import address, components, history
from horde_policy.ui.charts import Itself, show_figure, theme_mode
from horde_policy.ui.headings import show_heading
from horde_policy.ui.page import Opened
from horde_policy.ui.tables import show_grid
from horde_policy.views import grid, model, past
from horde_policy.views.exports import file_name, headings, to_csv
from horde_policy.views.figures.history import Mark, fig_states, fig_trend, states_alt, trend_alt
from horde_policy.views.figures.style import Mode
from horde_policy.views.history import thinned
from horde_policy.views.text import escape_markdown, instant, unbroken

__all__ = ["offer_csv", "show_changes", "show_firing", "show_states", "show_trend", "sparks", "trail_waits"]

TRAIL_POINTS = 60

ZOOM = "Draw over the figure from left to right to look at a shorter range."


def sparks(opened: Opened, found: history.Past | history.Missing) -> dict[str | None, grid.Cell]:
    """Return the small line of each model by its name, and of any model by null; nothing without a history."""
    return {} if isinstance(found, history.Missing) else found.sparks(tuple(opened.board.by_model))


def show_firing(opened: Opened, found: history.Past | history.Missing) -> None:
    """Show what fires, with since when: a line, so that the board stays on the first screen, and the list under it.

    A wall's screen has the line alone.
    """
    alerts = () if isinstance(found, history.Missing) else found.firing()
    if isinstance(found, history.Missing) or not alerts:
        return
    line = unbroken(past.firing_line(alerts, found.first, found.last))
    if opened.state.wall:
        st.markdown(f":material/notifications_active: {line}")
        return
    rows = past.alert_rows(alerts, found.first, found.last, address.links(opened.state).elsewhere)
    with st.expander(line, icon=":material/notifications_active:"):
        alt = "Alerts that fire, with since when"
        show_grid(past.ALERT_COLUMNS, rows, key="overview.firing", alt=alt, here="overview", target="model")


def show_states(opened: Opened, found: history.Past | history.Missing) -> None:
    """Show how many of the board's models were in which state over the range; a span drawn over it becomes the range."""
    if isinstance(found, history.Missing):
        return
    show_heading("Models by state over the range")
    if opened.state.to_at is not None:
        history.say_unrecorded(found)
    trends = found.trends(tuple(opened.board.by_model))
    frame = past.states_over(trends)
    figure = fig_states(
        frame, theme_mode(), gaps=found.gaps(), marks=_marks(found), span=found.shown.ends, held_until=found.told_until
    )
    show_figure(figure, alt=states_alt(frame), key="overview.trend", on_box=_zoomed)
    st.caption(" ".join(part for part in ("Of the models on the board now.", past.steps_sentence(trends, frame), ZOOM) if part))


def _marks(found: history.Past) -> list[Mark]:
    """Return the annotations within the range as marks of a figure; what is wrong with their file is said once, elsewhere."""
    return past.marks_within(history.annotations()[0], found.shown)


def offer_csv(opened: Opened, key: str, frame: Callable[[], pl.DataFrame], schema: Schema, note: str) -> None:
    """Offer a frame of the history as CSV, which is made only when it is asked for.

    Parameters
    ----------
    opened
        Of the page, whose stamp the file bears.
    key
        ``<page>.<thing>``; the file is called so.
    frame
        Gives the frame; columns in front of the schema's are written, too.
    schema
        Has the units.
    note
        What is in the file.
    """

    def made() -> bytes:
        rows = frame()
        named = {column: column for column in rows.columns if column not in schema.columns}
        return to_csv(rows, named | headings(schema), opened.stamp)

    st.download_button(
        "CSV",
        made,
        file_name(key.replace(".", "-"), opened.stamp, "csv"),
        "text/csv",
        key=f"{key}.csv",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
        help=note,
    )


def show_changes(opened: Opened, found: history.Past | history.Missing) -> None:
    """Show what changed over the range, the gravest first, and what was noted; or what it would need."""
    if isinstance(found, history.Missing):
        show_heading("What changed")
        history.say_missing(found.sentence)
        return
    changes = found.changes()
    show_heading(past.changes_title(changes))
    show_grid(
        past.CHANGE_COLUMNS,
        past.change_rows(changes, address.links(opened.state).elsewhere),
        key="overview.changes",
        alt="Models that changed over the range, the gravest first, with what accounts for it",
        empty="At the end of the range every model's state, allowance and largest free request are what they were at its start.",
        here="overview",
        target="model",
    )
    dips = past.dips_sentence(found.trends(tuple(opened.board.by_model)))
    if dips is not None:
        st.caption(dips)
    noted, trouble = history.annotations()
    if trouble is not None:
        st.warning(escape_markdown(f"The annotations cannot be shown: {trouble}"), icon=":material/sticky_note_2:")
    rows = past.noted_rows(noted, found.shown)
    if rows:
        show_grid(past.NOTED_COLUMNS, rows, key="overview.noted", alt="What was noted within the range")


def trail_waits(opened: Opened, found: history.Past | history.Missing) -> list[float | None]:
    """Return where a request of the page's models stood over the range: some of its named waits, in order."""
    if isinstance(found, history.Missing):
        return []
    waits: list[float | None] = found.trend(opened.state.models)["wait_named_s"].to_list()
    return waits[:: max(1, len(waits) // TRAIL_POINTS)]


def show_trend(opened: Opened, detail: ModelDetail, found: history.Past | history.Missing) -> None:
    """Show how the allowance went, the day and the week before behind it; a span drawn over it becomes the range."""
    show_heading("Over time")
    history.choose_range(opened.state, found)
    if isinstance(found, history.Missing):
        history.say_missing(found.sentence)
        return
    models, settings = detail.measure.models, opened.state.settings
    frame = found.trend(models)
    earlier = {
        word: found.trend(models, found.shown.shifted(by))
        for word, by, _ in past.EARLIER
        if found.shown.end - found.shown.start <= by and found.shown.start - by >= found.first
    }
    gaps = found.gaps()
    trouble = history.annotations()[1]
    if trouble is not None:
        st.warning(escape_markdown(f"The annotations cannot be shown: {trouble}"), icon=":material/sticky_note_2:")
    show_figure(
        _trend,
        of=(
            settings,
            Itself(frame),
            tuple((word, Itself(line)) for word, line in earlier.items()),
            tuple(gaps.iter_rows()),
            tuple(_marks(found)),
            found.shown.ends,
            found.told_until,
        ),
        alt=trend_alt(frame, gaps.height),
        key="model.trend",
        on_box=_zoomed,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(ZOOM, width="content")
        note = "Each poll of the range, with units, source, time and settings."
        offer_csv(opened, "model.trend", lambda: past.trend_export(frame, models), TREND_ROWS, note)
    missing = past.earlier_missing(found.shown, found.first)
    if missing is not None:
        st.caption(missing)
    if opened.state.to_at is not None:
        _show_past_tiles(opened, detail, found)


def _trend(
    settings: AllowanceSettings,
    line: Itself,
    earlier: Sequence[tuple[str, Itself]],
    gaps: Sequence[tuple[Any, ...]],
    marks: Sequence[Mark],
    span: tuple[datetime, datetime],
    held_until: datetime,
    mode: Mode,
) -> go.Figure:
    return fig_trend(
        thinned(line.frame, "allowance_tokens"),
        settings,
        mode,
        behind=past.behind({word: each.frame for word, each in earlier}),
        gaps=pl.DataFrame(gaps, GAP_ROWS.polars_schema(), orient="row"),
        marks=marks,
        span=span,
        held_until=held_until,
    )


def _show_past_tiles(opened: Opened, detail: ModelDetail, found: history.Past) -> None:
    """Show the page's row of figures as they were at the end of the range that the address names."""
    then = snapshot_at(found.store, found.shown.end, found.source)
    size, context = opened.state.max_length_tokens, opened.state.max_context_tokens
    fleet = Fleet.of(then, opened.state.settings)
    show_heading(f"As of {instant(found.shown.end)}, the end of the range", level=3)
    history.say_unrecorded(found)
    tiles = model.detail_tiles(model_detail(fleet, detail.measure.models, size, context))
    components.pulse(key="model.then", data={"tiles": tiles})


def _zoomed(box: Any) -> None:
    """Write the span that was drawn to the address; one that is no range is left alone."""
    span = history.drawn_range(box)
    if span is not None:
        address.write_state(from_at=span[0], to_at=span[1])
