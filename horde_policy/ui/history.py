"""The history of a page's source: the one that is configured, or the demo's own; opened once for all viewers, never written."""

import os
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import streamlit as st

from horde_policy.board.alerts import Alert
from horde_policy.board.changes import Changes
from horde_policy.errors import HordePolicyError, InputError
from horde_policy.history.alerting import firing_alerts
from horde_policy.history.annotations import Annotation, read_annotations
from horde_policy.history.demo import demo_history
from horde_policy.history.fleet_span import FleetSpan, load_span
from horde_policy.history.kept import KeptExport, kept_exports
from horde_policy.history.presence import worker_periods, workers_over
from horde_policy.history.reading import SourceSpan, gaps_between, sources_in
from horde_policy.history.since import changes_over
from horde_policy.history.status import RecorderStatus, recorder_statuses
from horde_policy.history.store import HistoryStore
from horde_policy.history.trend import size_class, trend, trends
from horde_policy.history.unrecorded import unrecorded_at
from horde_policy.history.upkeep import StoreInfo, store_info
from horde_policy.settings import AllowanceSettings
from horde_policy.ui import address
from horde_policy.ui.page import Opened
from horde_policy.views.address_values import EARLIEST, LATEST
from horde_policy.views.grid import Cell
from horde_policy.views.history import HISTORY_NEEDS, Range, outside_sentence, range_of, range_text_utc
from horde_policy.views.parameters import RANGES_S
from horde_policy.views.past import spark
from horde_policy.views.state import ViewState
from horde_policy.views.text import escape_markdown, visible

__all__ = [
    "Missing",
    "Past",
    "annotations",
    "choose_range",
    "drawn_range",
    "find_past",
    "kept_metrics",
    "open_store",
    "say_missing",
    "say_unrecorded",
    "store_standing",
]

HISTORY_SETTING = "HORDE_POLICY_HISTORY"
ANNOTATIONS_SETTING = "HORDE_POLICY_ANNOTATIONS"

_FIRST, _LAST = (at.replace(tzinfo=None, second=0, microsecond=0) for at in (EARLIEST, LATEST))
"""What an address may name; without bounds of its own a field takes no instant far from the one it has."""

SPANS_KEPT = 6
TRENDS_KEPT = 24
KEPT_FOR_S = 900


@st.cache_resource(max_entries=2, show_spinner=False, on_release=HistoryStore.close)
def _opened(store: str) -> HistoryStore:
    return HistoryStore(store, read_only=True)


def open_store() -> HistoryStore | None:
    """Return the store of the environment's ``HORDE_POLICY_HISTORY``; null if none is set.

    Raises
    ------
    StoreError
        It cannot be opened.
    """
    configured = os.environ.get(HISTORY_SETTING, "").strip()
    return _opened(configured) if configured else None


@dataclass(frozen=True)
class Past:
    """What the history holds of a page's source over the range that its address asks for.

    ``moves``: it goes on with the clock, as the demo's does, so that an instant is another one later.
    """

    store: HistoryStore
    source: str
    shown: Range
    first: datetime
    last: datetime
    settings: AllowanceSettings
    max_length: int
    context_tokens: int
    synthetic: bool = False
    moves: bool = False
    _spans: dict[Hashable, FleetSpan] = field(default_factory=dict, init=False, repr=False, compare=False)
    _trends: dict[Hashable, pl.DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)
    # What this run of a page was given: its parts ask for the same, and what all viewers share takes longer to find.

    @property
    def told_until(self) -> datetime:
        """The end of the range, or the last poll before it: up to there the history tells what held."""
        return min(self.shown.end, self.last)

    def _key(self, shown: Range) -> tuple[str, str, datetime, datetime]:
        # What was read of a history that moves holds until it moves.
        name = f"{self.store.name} {self.last.isoformat()}" if self.moves else self.store.name
        return name, self.source, shown.start, min(shown.end, self.last)

    def span(self, models: tuple[str, ...] | None = None, shown: Range | None = None) -> FleetSpan:
        """Return the range, or another one, with the list for these models (null: all)."""
        asked = models, shown or self.shown
        if asked not in self._spans:
            self._spans[asked] = _span(*self._key(asked[1]), models, self.store)
        return self._spans[asked]

    def trend(self, models: tuple[str, ...], shown: Range | None = None) -> pl.DataFrame:
        """Return how a request of these models went over the range, or over another one."""
        asked = models, shown or self.shown
        if asked not in self._trends:
            span = self.span(models or None, shown)
            key = self._key(asked[1])
            self._trends[asked] = _trend(*key, models, self.settings, self._size(span), self.context_tokens, span)
        return self._trends[asked]

    def trends(self, models: tuple[str, ...]) -> dict[str, pl.DataFrame]:
        """Return each model's own."""
        span = self.span()
        return _trends(*self._key(self.shown), models, self.settings, self._size(span), self.context_tokens, span)

    def sparks(self, models: tuple[str, ...]) -> dict[str | None, Cell]:
        """Return the small line of any model, by null, and of each of these by its name."""
        span = self.span()
        return _sparks(*self._key(self.shown), models, self.settings, self._size(span), self.context_tokens, self)

    def _size(self, span: FleetSpan) -> int:
        """Return the size that stands for all that meet the same, so that what they met is worked out once for them."""
        return size_class(span, self.max_length, self.context_tokens)

    def workers(self) -> pl.DataFrame:
        """Return the workers that were there over the range."""
        return workers_over(self.span())

    def periods(self) -> pl.DataFrame:
        """Return their stretches."""
        return worker_periods(self.span())

    def gaps(self) -> pl.DataFrame:
        """Return the gaps that touch the range."""
        return gaps_between(self.store, self.shown.start, self.shown.end, self.source)

    def changes(self) -> Changes:
        """Return what changed from the start of the range to its end."""
        size = self._size(self.span())
        return _changes(*self._key(self.shown), self.settings, size, self.context_tokens, self.store)

    def firing(self) -> tuple[Alert, ...]:
        """Return the alerts that fire as of the last poll."""
        return firing_alerts(self.store, self.source)

    def recorder(self, now: datetime) -> RecorderStatus | None:
        """Return how the recorder of the source stands."""
        found = (status for status in recorder_statuses(self.store, now) if status.source == self.source)
        return next(found, None)


@dataclass(frozen=True)
class Missing:
    """Why a page has nothing of the history; ``shown`` is the range that it has nothing of, null where no other would help."""

    sentence: str
    shown: Range | None = None
    synthetic: bool = False


@st.cache_resource(max_entries=SPANS_KEPT, ttl=KEPT_FOR_S, show_spinner=False)
def _span(
    store: str, source: str, start: datetime, end: datetime, models: tuple[str, ...] | None, _store: HistoryStore
) -> FleetSpan:
    return load_span(_store, start, end, models=models, with_horde_wide=models is None, source=source)


@st.cache_resource(max_entries=TRENDS_KEPT, ttl=KEPT_FOR_S, show_spinner=False)
def _trend(
    store: str,
    source: str,
    start: datetime,
    end: datetime,
    models: tuple[str, ...],
    settings: AllowanceSettings,
    max_length: int,
    context_tokens: int,
    _span: FleetSpan,
) -> pl.DataFrame:
    return trend(_span, models, settings, max_length=max_length, context_tokens=context_tokens)


@st.cache_resource(max_entries=SPANS_KEPT, ttl=KEPT_FOR_S, show_spinner=False)
def _trends(
    store: str,
    source: str,
    start: datetime,
    end: datetime,
    models: tuple[str, ...],
    settings: AllowanceSettings,
    max_length: int,
    context_tokens: int,
    _span: FleetSpan,
) -> dict[str, pl.DataFrame]:
    return trends(_span, models, settings, max_length=max_length, context_tokens=context_tokens)


@st.cache_resource(max_entries=SPANS_KEPT, ttl=KEPT_FOR_S, show_spinner=False)
def _sparks(
    store: str,
    source: str,
    start: datetime,
    end: datetime,
    models: tuple[str, ...],
    settings: AllowanceSettings,
    max_length: int,
    context_tokens: int,
    _past: Past,
) -> dict[str | None, Cell]:
    lines: dict[str | None, Cell] = {None: spark(_past.trend(()), settings)}
    return lines | {name: spark(frame, settings) for name, frame in _past.trends(models).items()}


@st.cache_resource(max_entries=SPANS_KEPT, ttl=KEPT_FOR_S, show_spinner=False)
def _changes(
    store: str,
    source: str,
    start: datetime,
    end: datetime,
    settings: AllowanceSettings,
    max_length: int,
    context_tokens: int,
    _store: HistoryStore,
) -> Changes:
    return changes_over(_store, start, end, settings, max_length=max_length, context_tokens=context_tokens, source=source)


def _nothing_of(source: str) -> str:
    return f"The history holds nothing of {visible(source)}. Record it (python -m horde_policy record) into the same store."


def _found(opened: Opened) -> tuple[HistoryStore, SourceSpan, bool] | str:
    """Return the store of the page's source, what it has of it, and whether that moves; else why there is none.

    The demo has a history of its own, unless the configured one holds a source of its name.
    """
    source = opened.snapshot.source
    store = open_store()
    if store is not None:
        found = next((span for span in sources_in(store) if span.name == source), None)
        if found is not None:
            return store, found, False
    if opened.snapshot.source_kind == "demo":
        demo = demo_history()
        demo.move_to(opened.snapshot.fetched_at)
        found = next((span for span in sources_in(demo.store) if span.name == source), None)
        if found is not None:
            return demo.store, found, True
    return HISTORY_NEEDS if store is None else _nothing_of(source)


def find_past(opened: Opened, *, whole: bool = False) -> Past | Missing:
    """Return the history of the page's source; where there is none, why, and what it would need.

    With ``whole`` the page reads all models of the range, else those that the address names.
    """
    state, source = opened.state, opened.snapshot.source
    try:
        found = _found(opened)
        if isinstance(found, str):
            return Missing(found)
        store, span, moves = found
        if span.first is None or span.last is None:
            return Missing(_nothing_of(source))
        shown = range_of(state, span.first, span.last)
        outside = outside_sentence(state, shown, span.first, span.last)
        if outside is not None:
            # Shown as it was asked for: one too long was cut for reading, to a start that nobody gave.
            return Missing(outside, Range(state.from_at or shown.start, state.to_at or shown.end), span.synthetic)
        past = Past(
            store,
            source,
            shown,
            span.first,
            span.last,
            opened.state.settings,
            state.max_length_tokens,
            state.max_context_tokens,
            span.synthetic,
            moves,
        )
        if not past.span(None if whole else state.models or None).height:
            last = f"{span.last:%d %b %Y %H:%M} UTC"
            said = f"The history has no poll from {range_text_utc(past.shown)}; its last one is of {last}."
            return Missing(said, past.shown, span.synthetic)
    except HordePolicyError as error:
        return Missing(f"The history cannot be read: {visible(str(error))}.")
    return past


def say_missing(sentence: str) -> None:
    """Show in place of what rests on the history why it is not there."""
    st.info(escape_markdown(sentence), icon=":material/history:")


def say_unrecorded(past: Past) -> None:
    """Say, where no poll was stored near the end of the range, of when what is shown of that end is."""
    unrecorded = unrecorded_at(past.store, past.shown.end, past.source)
    if unrecorded is not None:
        st.warning(escape_markdown(visible(f"{unrecorded.text[:1].upper()}{unrecorded.text[1:]}.")), icon=":material/history:")


def choose_range(state: ViewState, past: Past | Missing) -> None:
    """Show which range is looked at: by a name, or between two instants in UTC; nothing where no range would help.

    Also where the history has nothing of it: that range is left here.
    """
    if past.shown is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        key = "shared.range"
        absolute = state.from_at is not None
        address.seed(key, None if absolute else state.range_name)
        st.segmented_control(
            "Range of the history",
            list(RANGES_S),
            key=key,
            on_change=_write_named,
            label_visibility="collapsed",
        )
        with st.popover("From, to", icon=":material/date_range:"), st.form("shared.range-form", border=False):
            for name, at in (("from", past.shown.start), ("to", past.shown.end)):
                address.seed(f"shared.{name}", at.astimezone(UTC).replace(tzinfo=None, second=0, microsecond=0), in_popover=True)
                st.datetime_input(f"{name.capitalize()} (UTC)", key=f"shared.{name}", step=60, min_value=_FIRST, max_value=_LAST)
            st.form_submit_button("Show", type="primary", on_click=_write_instants)
        st.caption(range_text_utc(past.shown) + (", synthetic" if past.synthetic else ""), width="content")


def _write_named() -> None:
    name = st.session_state["shared.range"]
    address.write_state(range_name=name or ViewState().range_name, from_at=None, to_at=None)


def _write_instants() -> None:
    start, end = (st.session_state[f"shared.{name}"] for name in ("from", "to"))
    if start is None or end is None or end - start < timedelta(minutes=1):
        address.say("The range stays as it is: its end must be a minute after its start, or later.")
        return
    address.write_state(from_at=start.replace(tzinfo=UTC), to_at=end.replace(tzinfo=UTC))


def drawn_range(ends: object) -> tuple[datetime, datetime] | None:
    """Return the span of a box drawn over an axis of time, to the minute; null where it is none, or under a minute.

    >>> drawn_range(["2026-11-29 12:00:30.1", "2026-11-29 11:00"])[1].isoformat()
    '2026-11-29T12:01:00+00:00'
    >>> drawn_range(["x", None]) is None
    True
    """
    if not isinstance(ends, list | tuple) or len(ends) != 2 or not all(isinstance(end, str) for end in ends):
        return None
    try:
        start, end = sorted(datetime.fromisoformat(text).replace(tzinfo=UTC) for text in ends)
    except ValueError:
        return None
    start = start.replace(second=0, microsecond=0)
    whole = end.replace(second=0, microsecond=0)
    end = whole if whole == end else whole + timedelta(minutes=1)
    return (start, end) if end - start >= timedelta(minutes=1) else None


def annotations() -> tuple[tuple[Annotation, ...], str | None]:
    """Return what the file of ``HORDE_POLICY_ANNOTATIONS`` holds, and what is wrong with it; nothing if none is set."""
    configured = os.environ.get(ANNOTATIONS_SETTING, "").strip()
    if not configured:
        return (), None
    try:
        return read_annotations(Path(configured)), None
    except InputError as error:
        return (), visible(str(error))


def kept_metrics() -> tuple[KeptExport, ...]:
    """Return what the configured history keeps of metrics exports; nothing where it cannot be read, which is said elsewhere."""
    try:
        store = open_store()
        return () if store is None else kept_exports(store)
    except HordePolicyError:
        return ()


def store_standing(now: datetime) -> tuple[StoreInfo, tuple[RecorderStatus, ...]] | str:
    """Return what the configured history holds and how its recorders stand; or the sentence that says why not."""
    try:
        store = open_store()
        return HISTORY_NEEDS if store is None else (store_info(store), recorder_statuses(store, now))
    except HordePolicyError as error:
        return f"The history cannot be read: {visible(str(error))}."
