"""The Sources page's parts: every source and how it stands, what is wrong in the data, the recorder and its store."""

from datetime import datetime

import streamlit as st

from horde_policy.ui import address, history, live, uploads
from horde_policy.ui.headings import show_heading
from horde_policy.ui.headline import show_headline
from horde_policy.ui.other_sources import other_sources
from horde_policy.ui.tables import show_grid
from horde_policy.views import sources
from horde_policy.views.other_sources import OTHER_COLUMNS, other_rows
from horde_policy.views.state import ViewState
from horde_policy.views.text import escape_markdown, instant, shortened_name

__all__ = ["figures", "show_history", "show_others", "show_problems", "show_sources", "show_uploads"]

TABLE_EVERY_S = 5
"""So often the table is drawn anew while the page has a timer: it asks nothing, and the status line has just asked."""


def figures() -> tuple[tuple[sources.SourceFigures, ...], datetime]:
    """Return every configured source as it stands, and the present; nothing is asked."""
    standings, now = live.standings()
    return tuple(
        sources.SourceFigures(
            standing.entry.key,
            standing.entry.title,
            standing.entry.kind,
            standing.entry.where,
            standing.look,
            {name: (limit.limit, limit.remaining) for name, limit in standing.limits.items()},
        )
        for standing in standings
    ), now


def show_sources(state: ViewState) -> None:
    """Show how the sources stand and a row each, drawn anew on a timer of its own unless refresh is off."""
    st.fragment(_draw_sources, run_every=TABLE_EVERY_S if state.refresh_s else None)(state)


def _draw_sources(state: ViewState) -> None:
    """Show every configured source; opening a row chooses it. One that was never chosen was never asked."""
    found, now = figures()
    show_headline(sources.headline(found))
    show_grid(
        sources.SOURCE_COLUMNS,
        sources.source_rows(found, now, address.links(state).within),
        key="sources.list",
        alt="Configured sources with their state, age, rate limit and problems",
        here="sources",
        target="sources",
    )
    st.caption(f"As of {instant(now)}. A source is asked only when somebody has chosen it; open a row to choose it.")


def show_others(now: datetime) -> None:
    """Show what other figures come from: exports, a Prometheus, the history, the ledger, the sweeps that are kept."""
    show_heading("What other pages' figures come from")
    show_grid(
        OTHER_COLUMNS,
        other_rows(other_sources(now)),
        key="sources.others",
        alt="Sources that are no horde with their kind, the pages they are for, their state and what is wrong",
    )


def show_problems(found: tuple[sources.SourceFigures, ...]) -> None:
    """Show what is wrong in the configuration and in the data of the sources in use."""
    show_heading("Problems and notes in the data")
    show_grid(
        sources.PROBLEM_COLUMNS,
        sources.problem_rows(found, live.source_problems()),
        key="sources.problems",
        alt="Problems and notes in the configuration and the data of the sources in use",
        empty="No source in use has a problem or a note.",
    )


def show_history(now: datetime) -> None:
    """Show the configured history: what its store holds, and how its recorders stand; what it would need without one."""
    show_heading("History")
    standing = history.store_standing(now)
    if isinstance(standing, str):
        history.say_missing(standing)
        st.caption("The demo comes with a history of its own: seven synthetic days, moved so that they end now.")
        return
    info, recorders = standing
    st.caption(escape_markdown(sources.store_sentence(info)))
    show_grid(
        sources.RECORDED_COLUMNS,
        sources.recorded_rows(info, recorders),
        key="sources.recorded",
        alt="Sources in the history with their recorder, span and gaps",
        empty="The store holds no source yet: the recorder has not stored its first poll.",
    )
    for kept in history.kept_metrics():
        st.caption(escape_markdown(sources.kept_sentence(kept)))


def show_uploads() -> None:
    """Show what this session has uploaded, what each was understood as, and a way to forget it."""
    show_heading("Uploads of this session")
    held = uploads.listed()
    show_grid(
        sources.UPLOAD_COLUMNS,
        [
            sources.upload_row(f"{one.kind} {one.key}", one.name, uploads.KINDS[one.kind], one.understood, one.left)
            for one in held
        ],
        key="sources.uploads",
        alt="Files that this session has uploaded, and what they were understood as",
        empty="Nothing was uploaded in this session. Week, Decisions and Waits take exported metrics, Replay request logs, Sweep "
        "a sweep's file, Budget requests and prices.",
    )
    if not held:
        return
    with st.container(horizontal=True):
        for one in held:
            st.button(
                f"Forget {escape_markdown(shortened_name(one.name, 40))}",
                key=f"sources.forget-{one.kind}-{one.key}",
                icon=":material/delete:",
                on_click=uploads.forget_here,
                args=(one,),
                help="Drops what was read of it from this server, unless another viewer has uploaded the same. "
                "Links to it then show the demo.",
            )
    st.caption(f"At most {uploads.MOST_KEPT} of a kind are kept a session, in memory, as long as this server runs.")
