"""How a page of live figures begins and ends: the state, the source's status, what is wrong with the data."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import streamlit as st

from horde_policy.board.pool import Fleet
from horde_policy.board.rows import Board
from horde_policy.frames.snapshot import Snapshot
from horde_policy.ui import address, cache, live
from horde_policy.ui.shell import here, link_to
from horde_policy.ui.tables import show_grid
from horde_policy.views.exports import Stamp
from horde_policy.views.grid import Column, Row, name_cell
from horde_policy.views.no_data import SET_ANOTHER, no_data_sentences, no_data_title
from horde_policy.views.state import DEMO, ViewState
from horde_policy.views.status import Status, problems_title
from horde_policy.views.text import code_span

__all__ = ["Opened", "folded", "open_source", "see_source", "show_no_data", "show_problems"]

NO_SUCH_SOURCE = "There is no such source here"


@dataclass(frozen=True)
class Opened:
    """What a page works with: the state, the snapshot with its id, and the source's status; what is read of it on demand."""

    state: ViewState
    snapshot: Snapshot
    snapshot_id: str
    status: Status

    @cached_property
    def fleet(self) -> Fleet:
        """The workers and what they serve, under the state's settings."""
        return cache.fleet_of(self.snapshot, self.snapshot_id, self.state.settings)

    @cached_property
    def board(self) -> Board:
        """The snapshot read at the state's size and context: a row for every model."""
        state = self.state
        return cache.board_of(
            self.snapshot,
            self.snapshot_id,
            state.settings,
            max_length_tokens=state.max_length_tokens,
            max_context_tokens=state.max_context_tokens,
        )

    @property
    def stamp(self) -> Stamp:
        """The stamp of this page's exports."""
        return Stamp(
            source=self.snapshot.source,
            synthetic=self.snapshot.synthetic,
            fetched_at=self.snapshot.fetched_at,
            settings_digest=self.state.settings.digest(),
            max_length_tokens=self.state.max_length_tokens,
            max_context_tokens=self.state.max_context_tokens,
        )


def see_source() -> tuple[ViewState, live.Seen | None]:
    """Look at the source that the URL names and draw its status; null, and said so, if no such source is configured."""
    state, _ = address.read_state()
    seen = live.look_at(state.source, patient=state.refresh_s == 0)
    if seen is None:
        choose = "Leave the wall screen to choose another." if state.wall else "Choose one above."
        st.warning(f"The source {code_span(state.source)} is not configured on this server. {choose}", title=NO_SUCH_SOURCE)
    else:
        live.show_status(state, seen)
    return state, seen


def open_source() -> Opened:
    """Look at the source that the URL names, draw its status, and return what the page works with.

    Without a snapshot the page ends here, with what is known of the source in its place.
    """
    state, seen = see_source()
    if seen is None:
        _show_ways_on(state)
        st.stop()
    if seen.snapshot is None:
        show_no_data(state, seen)
        st.stop()
    return Opened(state, seen.snapshot, seen.snapshot_id, seen.status)


def show_no_data(state: ViewState, seen: live.Seen) -> None:
    """Show what stands in place of figures that were never there: the page is opening, or the source fails.

    A source that fails is no dead end: what was asked, what went wrong, when it is asked again, what works without it, and
    where an operator goes on. A wall's screen has no links but the way out of it, which stands there already.
    """
    if seen.look.state == "waiting":
        st.skeleton(height=90)
        st.skeleton(height=320)
        return
    st.error(
        no_data_sentences(seen.look, seen.at, refresh_s=state.refresh_s),
        title=no_data_title(seen.status.source, live.place_of(state.source)),
        icon=":material/cloud_off:",
    )
    _show_ways_on(state, again=True)
    if not state.wall:
        st.caption(SET_ANOTHER)


def _show_ways_on(state: ViewState, *, again: bool = False) -> None:
    """Show what works without the source, none on a wall's screen; ``again`` offers another look at it."""
    if state.wall:
        return
    base = address.deployment_settings()
    query = state.changed(source=DEMO, models=()).shared_query(base)
    ways = (
        [] if state.source == DEMO else [(here(), "Back to the demo", ":material/undo:", state.changed(source=DEMO).query(base))]
    )
    ways += [
        ("week", "Read the week", ":material/calendar_month:", query),
        ("guide", "Take the workshop", ":material/school:", query),
    ]
    with st.container(horizontal=True, vertical_alignment="center", key="shared.no-data"):
        if again:
            st.button("Look again", key="shared.look-again", icon=":material/refresh:", help="Asks again as soon as that is due.")
        st.markdown("**Without network:**" if again else "**Without it:**", width="content")
        for page, label, icon, where in ways:
            link_to(page, label, where, icon=icon)


def folded(label: str, draw: Callable[[], None], *, key: str, icon: str) -> None:
    """Fold a part of the page away; it is drawn, and costs a run of the page anything, only while it is open.

    Opening it runs this part alone.
    """

    def part() -> None:
        box = st.expander(label, key=key, icon=f":material/{icon}:", on_change="rerun")
        if box.open:
            with box:
                draw()

    st.fragment(part)()


def show_problems(snapshot: Snapshot) -> None:
    """List what was wrong in the data, folded away; nothing where nothing was."""
    if not snapshot.problems:
        return
    with st.expander(problems_title(snapshot.problems), icon=":material/data_alert:"):
        columns = [
            Column(key="subject", label="Item", kind="name"),
            Column(key="level", label="Level"),
            Column(key="text", label="What was found", wrap=True, wide=True),
        ]
        rows = [
            Row(
                id=str(number),
                cells={"subject": name_cell(problem.subject), "level": problem.level, "text": {"text": problem.text}},
            )
            for number, problem in enumerate(snapshot.problems)
        ]
        show_grid(columns, rows, key="shared.problems", alt="Problems and notes in the data")
