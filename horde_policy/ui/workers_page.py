"""The Workers page's parts: who carries what, what hangs on one worker, who was there over the range and is gone."""

from collections.abc import Sequence

import polars as pl
import streamlit as st

from horde_policy.board.moves import SinglePoint
from horde_policy.history.presence import WORKER_ROWS
from horde_policy.ui import address, components, history
from horde_policy.ui.charts import show_figure, theme_mode
from horde_policy.ui.headings import show_heading
from horde_policy.ui.page import Opened
from horde_policy.ui.past_page import offer_csv
from horde_policy.ui.tables import show_grid
from horde_policy.views import workers
from horde_policy.views.figures.history import MOST_WORKERS_DRAWN, fig_presence, presence_alt
from horde_policy.views.parameters import MOST_FIND_CHARACTERS
from horde_policy.views.text import count
from horde_policy.views.words import filtered_note

__all__ = ["show_past", "show_points", "show_tiles", "show_workers"]


def show_tiles(opened: Opened, points: Sequence[SinglePoint]) -> None:
    """Show the row of figures."""
    components.pulse(key="workers.pulse", data={"tiles": workers.fleet_tiles(opened.board, points)})


def show_workers(opened: Opened, points: Sequence[SinglePoint], past: history.Past | history.Missing) -> None:
    """Show one row a worker that the words typed leave, each a link to the models that it serves."""
    state, board = opened.state, opened.board
    key = "workers.find"
    address.seed(key, state.find)
    st.text_input(
        "Find a worker or a model",
        key=key,
        type="search",
        live="400ms",
        max_chars=MOST_FIND_CHARACTERS,
        placeholder="Find a worker or a model",
        label_visibility="collapsed",
        icon=":material/search:",
        on_change=lambda: address.write_state(find=str(st.session_state[key] or "")[:MOST_FIND_CHARACTERS]),
        width=280,
    )
    listed = board.fleet.workers
    shown = workers.shown_workers(listed, state.find, board.settings)
    over_range = None if isinstance(past, history.Missing) else workers.with_sizes(past.workers(), past.periods())
    known = {} if over_range is None else {row["worker_id"]: row for row in over_range.iter_rows(named=True)}
    show_grid(
        workers.worker_columns(with_history=not isinstance(past, history.Missing)),
        workers.worker_rows(shown, board, points, known, address.links(state).elsewhere),
        key="workers.list",
        alt="Workers of the list with their speeds, sizes, models and state",
        empty="The list has no worker." if not listed else filtered_note(len(listed), "workers"),
        here="workers",
        target="model",
    )
    if shown and len(shown) < len(listed):
        st.caption(f"{count(len(shown))} workers; {count(len(listed) - len(shown))} hidden by the words typed.")


def show_points(opened: Opened, points: Sequence[SinglePoint]) -> None:
    """Show the models that one eligible worker carries, and what their allowance becomes without it."""
    show_heading("Single points of failure")
    show_grid(
        workers.POINT_COLUMNS,
        workers.point_rows(points, opened.state.settings.ceiling_tokens, address.links(opened.state).elsewhere),
        key="workers.points",
        alt=f"Models that exactly one eligible worker carries at {count(opened.board.max_length)} tokens",
        empty=f"No model hangs on a single worker at {count(opened.board.max_length)} tokens.",
        here="workers",
        target="model",
    )


def show_past(opened: Opened, past: history.Past | history.Missing) -> None:
    """Show when each worker was there over the range, and since when the others are gone."""
    show_heading("There over the range, and gone since")
    history.choose_range(opened.state, past)
    if isinstance(past, history.Missing):
        history.say_missing(past.sentence)
        return
    if opened.state.to_at is not None:
        history.say_unrecorded(past)
    over_range = past.workers()
    called = pl.col("name").str.to_lowercase()
    longest = over_range.sort("present_ratio", called, "worker_id", descending=[True, False, False]).head(MOST_WORKERS_DRAWN)
    order = longest["worker_id"].to_list()
    names = [name or worker_id for name, worker_id in longest.select("name", "worker_id").iter_rows()]
    figure = fig_presence(past.periods(), order, names, past.told_until, past.gaps(), theme_mode(), span=past.shown.ends)
    show_figure(figure, alt=presence_alt(over_range.height, len(order)), key="workers.presence")
    show_grid(
        workers.GONE_COLUMNS,
        workers.gone_rows(workers.with_sizes(over_range, past.periods())),
        key="workers.gone",
        alt="Workers that were there over the range and are gone at its end",
        empty="Nobody who was there over the range is gone at its end.",
    )
    note = "Every worker that was there over the range, with units, source, time and settings."
    offer_csv(opened, "workers.past", past.workers, WORKER_ROWS, note)
