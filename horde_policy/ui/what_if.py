"""What moves it: the queue, workers lost and added, the four settings; what comes of it, and the way back to the ceiling."""

from dataclasses import dataclass

import streamlit as st

from horde_policy.board.detail import ModelDetail
from horde_policy.board.measure import Measure
from horde_policy.board.moves import Move, moved, way_back
from horde_policy.board.rows import STRIP_SIZES_TOKENS
from horde_policy.errors import ConfigError
from horde_policy.settings import AllowanceSettings
from horde_policy.ui import address
from horde_policy.ui.controls import SETTING_LABELS
from horde_policy.ui.fields import number_field
from horde_policy.ui.headings import show_heading
from horde_policy.ui.notices import say_here
from horde_policy.ui.page import Opened
from horde_policy.ui.tables import show_grid
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views import what_if
from horde_policy.views.parameters import MOST_NAMES, TRIED_PARAMETERS
from horde_policy.views.state import ViewState
from horde_policy.views.sweep_words import setting_told
from horde_policy.views.text import count, escape_markdown, shortened_name, visible
from horde_policy.views.words import GLOSSARY

__all__ = ["FOLD", "Outcome", "outcome", "show_left_out", "show_what_if"]

FOLD = "model.what_if"
"""The fold of the controls; what is open is no part of the address, as a link that tries something opens it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A move, the figures after it, the settings it leaves in force, and the sentence for it."""

    move: Move
    then: Measure
    settings: AllowanceSettings
    sentence: str


def outcome(opened: Opened, detail: ModelDetail) -> Outcome | None:
    """Return what comes of the move that the address holds; null if it holds none."""
    state, fleet = opened.state, opened.fleet
    found = what_if.move_of(state, fleet)
    if not found.changes:
        return None
    move = found.move
    then = moved(fleet, state.models, state.max_length_tokens, move, context_tokens=state.max_context_tokens)
    sentence = f"{what_if.move_sentence(move, fleet)}, {what_if.moved_sentence(detail.measure, then)}."
    return Outcome(move, then, move.settings or opened.state.settings, sentence)


def show_what_if(opened: Opened, detail: ModelDetail, found: Outcome | None) -> None:
    """Show the way back to the ceiling, and behind a fold the controls of a move with the figures before and after it.

    The fold is open where the address tries something; closed, its widgets cost the page nothing.
    """
    show_heading("What moves it")
    now, settings = detail.measure, opened.state.settings
    then, tried = (None, settings) if found is None else (found.then, found.settings)
    at = then or now
    st.text(what_if.way_back_sentence(way_back(at, tried), at, tried, tried=then is not None))
    if what_if.tries(opened.state):
        address.seed(FOLD, value=True)
    fold = st.expander("Try a longer queue, workers or settings", key=FOLD, icon=":material/tune:", on_change="rerun")
    if not fold.open:
        return
    with fold:
        _show_controls(opened.state, detail)
        refused = say_here(FOLD)
        if found is None and not refused:
            st.caption("Nothing is tried: move a control. Only what you say changes; nobody's reaction is guessed.")
        rows = what_if.compared_rows(now, then, settings, tried)
        show_grid(what_if.COMPARED_COLUMNS, rows, key="model.compared", alt="The figures now, and after what is tried")


def show_left_out(opened: Opened) -> None:
    """Say which workers and models the address names that the list does not have."""
    for note in what_if.left_out_notes(opened.state, opened.fleet):
        st.warning(escape_markdown(note), icon=":material/info:")


def _show_controls(state: ViewState, detail: ModelDetail) -> None:
    first, second, third = st.columns(3, gap="medium")
    with first:
        key = "model.queue_by"
        address.seed(key, state.queue_change_tokens)
        st.select_slider(
            "Queue",
            sorted({*what_if.QUEUE_STEPS_TOKENS, state.queue_change_tokens}),
            format_func=what_if.queue_step_text,
            key=key,
            on_change=_write(key, "queue_change_tokens"),
            help="Tokens that more or fewer requests for these models wait for.",
        )
        _show_lost(state, detail)
    with second:
        _show_added(state)
    with third:
        _show_settings(state)
    st.button("Back to now", key="model.nothing_tried", on_click=_forget, disabled=not what_if.tries(state), type="tertiary")


def _show_added(state: ViewState) -> None:
    key = "model.add"
    address.seed(key, state.added_tok_per_s)
    st.select_slider(
        "Worker added",
        sorted({*what_if.ADDED_SPEEDS_TOK_PER_S, state.added_tok_per_s}),
        format_func=lambda tok_per_s: f"{tok_per_s} tok/s" if tok_per_s else "none",
        key=key,
        on_change=_write(key, "added_tok_per_s"),
        help="One more worker that serves these models, measured at this speed.",
    )
    key = "model.add_size"
    address.seed(key, state.added_max_length)
    st.selectbox(
        "It takes up to",
        sorted({*STRIP_SIZES_TOKENS, MAX_LENGTH_LIMIT_TOKENS, state.added_max_length}),
        format_func=lambda size: f"{count(size)} tokens",
        key=key,
        on_change=_write(key, "added_max_length"),
    )


def _write(key: str, field: str) -> "_Writer":
    return _Writer(key, field)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes a widget's value to the address."""

    key: str
    field: str

    def __call__(self) -> None:
        value = st.session_state[self.key]
        address.write_state(**{self.field: tuple(value) if isinstance(value, list) else value})


def _show_lost(state: ViewState, detail: ModelDetail) -> None:
    key = "model.lost"
    names = {part.worker.worker_id: part.worker.name or part.worker.worker_id for part in detail.workers if part.eligible}
    address.seed(key, list(state.lost))
    st.multiselect(
        "Workers lost",
        [*names, *(worker_id for worker_id in state.lost if worker_id not in names)],
        format_func=lambda worker_id: shortened_name(visible(names.get(worker_id, f"{worker_id} (does not count)"))),
        key=key,
        max_selections=MOST_NAMES,
        placeholder="none",
        on_change=_write(key, "lost"),
        help="Workers that count at the size asked, and would leave.",
    )


def _show_settings(state: ViewState) -> None:
    tried = state.tried or state.settings
    for row in (list(TRIED_PARAMETERS.items())[:2], list(TRIED_PARAMETERS.items())[2:]):
        for column, (name, setting) in zip(st.columns(2), row, strict=True):
            whole = setting.endswith("_tokens")
            key, value = f"model.{name}", getattr(tried, setting)
            address.seed(key, int(value) if whole else float(value))
            label, term = SETTING_LABELS[setting]
            with column:
                number_field(
                    label,
                    1 if whole else 0.0,
                    MAX_LENGTH_LIMIT_TOKENS if whole else 1_000_000.0,
                    step=128 if whole else 10.0,
                    format="%d" if whole else "%g",
                    key=key,
                    on_change=_try_setting,
                    args=(key, setting),
                    told_at=FOLD,
                    help=GLOSSARY[term].text,
                )


def _try_setting(key: str, setting: str) -> None:
    state, _ = address.read_state()
    try:
        tried = (state.tried or state.settings).changed(**{setting: st.session_state[key]})
    except ConfigError as error:
        address.say(f"Nothing is tried of this: {setting_told(error)}.", again=key, at=FOLD)
        return
    address.write_state(tried=None if tried == state.settings else tried)


def _forget() -> None:
    plain = ViewState()
    address.write_state(
        queue_change_tokens=plain.queue_change_tokens,
        lost=plain.lost,
        added_tok_per_s=plain.added_tok_per_s,
        added_max_length=plain.added_max_length,
        tried=plain.tried,
    )
