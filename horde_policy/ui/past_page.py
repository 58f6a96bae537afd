"""What the history adds to the Overview and the Model page: the range, lines, alerts, changes, annotations."""

from typing import Any

import streamlit as st

from horde_policy.board.detail import ModelDetail
from horde_policy.ui import address, history
from horde_policy.ui.charts import show_figure, theme_mode
from horde_policy.ui.page import Opened
from horde_policy.ui.tables import show_grid
from horde_policy.views import grid, past
from horde_policy.views.figures.history import fig_trend, trend_alt
from horde_policy.views.history import thinned
from horde_policy.views.text import escape_markdown

__all__ = ["show_changes", "show_firing", "show_trend", "sparks", "trail_waits"]

TRAIL_POINTS = 60


def sparks(opened: Opened, found: history.Past | str) -> dict[str | None, grid.Cell]:
    """Return the small line of each model by its name, and of any model by null; nothing without a history."""
    if isinstance(found, str):
        return {}
    settings = opened.board.settings
    lines: dict[str | None, grid.Cell] = {None: past.spark(found.trend(()), settings)}
    for model, frame in found.trends(tuple(opened.board.by_model)).items():
        lines[model] = past.spark(frame, settings)
    return lines


def show_firing(opened: Opened, found: history.Past | str) -> None:
    """Show what fires, with since when; nothing where nothing does."""
    if isinstance(found, str):
        return
    alerts = found.firing()
    if alerts:
        show_grid(
            past.ALERT_COLUMNS,
            past.alert_rows(alerts, found.last, address.links(opened.state).elsewhere),
            key="overview.firing",
            alt="Alerts that fire, with since when",
            here="overview",
            target="model",
        )


def show_changes(opened: Opened, found: history.Past | str) -> None:
    """Show what changed over the range, the gravest first, and what was noted; or what it would need."""
    if isinstance(found, str):
        st.header("What changed", anchor=False)
        history.say_missing(found)
        return
    changes = found.changes()
    st.header(past.changes_title(changes), anchor=False)
    show_grid(
        past.CHANGE_COLUMNS,
        past.change_rows(changes, address.links(opened.state).elsewhere),
        key="overview.changes",
        alt="Models that changed over the range, the gravest first, with what accounts for it",
        empty="No model's state, allowance or largest free request changed.",
        here="overview",
        target="model",
    )
    noted, trouble = history.annotations()
    if trouble is not None:
        st.warning(escape_markdown(f"The annotations cannot be shown: {trouble}"), icon=":material/sticky_note_2:")
    rows = past.noted_rows(noted, found.shown)
    if rows:
        show_grid(past.NOTED_COLUMNS, rows, key="overview.noted", alt="What was noted within the range")


def trail_waits(opened: Opened, found: history.Past | str) -> list[float | None]:
    """Return where a request of the page's models stood over the range: some of its named waits, in order."""
    if isinstance(found, str):
        return []
    waits: list[float | None] = found.trend(opened.state.models)["wait_named_s"].to_list()
    return waits[:: max(1, len(waits) // TRAIL_POINTS)]


def show_trend(opened: Opened, detail: ModelDetail, found: history.Past | str) -> None:
    """Show how the allowance went, the day and the week before behind it; a span drawn over it becomes the range."""
    st.header("Over time", anchor=False)
    if isinstance(found, str):
        history.say_missing(found)
        return
    history.choose_range(opened.state, found)
    models, settings = detail.measure.models, opened.board.settings
    frame = found.trend(models)
    earlier = {
        word: found.trend(models, found.shown.shifted(by))
        for word, by, _ in past.EARLIER
        if found.shown.end - found.shown.start <= by and found.shown.start - by >= found.first
    }
    gaps = found.gaps()
    noted, trouble = history.annotations()
    if trouble is not None:
        st.warning(escape_markdown(f"The annotations cannot be shown: {trouble}"), icon=":material/sticky_note_2:")
    figure = fig_trend(
        thinned(frame, "allowance_tokens"),
        settings,
        theme_mode(),
        behind=past.behind(earlier),
        gaps=gaps,
        marks=past.marks_within(noted, found.shown),
    )
    show_figure(figure, alt=trend_alt(frame, gaps.height), key="model.trend", on_box=_zoomed)
    st.caption("Draw over the figure from left to right to look at a shorter range.")


def _zoomed(box: Any) -> None:
    """Write the span that was drawn to the address; one that is no range is left alone."""
    span = history.drawn_range(box)
    if span is not None:
        address.write_state(from_at=span[0], to_at=span[1])
