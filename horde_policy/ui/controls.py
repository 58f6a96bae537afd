"""The controls that all pages share: source, refresh, the request asked about, the allowance's settings; and the board's filters.

Each shows what the URL says and writes what is chosen to it (:mod:`horde_policy.ui.address`). Limits are checked again here,
since a browser can send anything.
"""

from collections.abc import Mapping

import streamlit as st

from horde_policy.board.rows import STRIP_SIZES_TOKENS
from horde_policy.errors import ConfigError, InputError
from horde_policy.ui.address import deployment_settings, say, say_stays, seed, settle, write_state
from horde_policy.ui.fields import left_empty, number_field
from horde_policy.ui.notices import say_here
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views.parameters import (
    LEAST_CONTEXT_TOKENS,
    MOST_CONTEXT_TOKENS,
    MOST_FIND_CHARACTERS,
    REFRESH_CHOICES_S,
    SETTING_PARAMETERS,
    size_from_text,
)
from horde_policy.views.state import ViewState
from horde_policy.views.sweep_words import setting_told
from horde_policy.views.text import count
from horde_policy.views.words import GLOSSARY, STATES, gloss

__all__ = ["board_filters", "refresh_chooser", "request_and_settings", "size_chooser", "source_chooser"]

SETTINGS = "shared.settings"
"""The form, which says itself what it did not take."""

SETTING_LABELS = {
    "ceiling_tokens": ("Ceiling (tokens)", "ceiling"),
    "floor_tokens": ("Floor (tokens)", "floor"),
    "wait_full_s": ("Full wait (s)", "full_wait"),
    "wait_floor_s": ("Floor wait (s)", "floor_wait"),
    "assumed_speed_tok_per_s": ("Assumed speed (tok/s)", "assumed_speed"),
}


def source_chooser(labels: Mapping[str, str], state: ViewState) -> None:
    """Show the configured sources; a source that is not among them stays in the list, marked as not configured (T7)."""
    key = "shared.source"
    names = dict(labels)
    names.setdefault(state.source, f"{state.source} (not configured here)")
    seed(key, state.source)
    st.selectbox(
        "Source",
        list(names),
        format_func=lambda source: names.get(source, source),
        key=key,
        on_change=lambda: write_state(source=st.session_state[key]),
        label_visibility="collapsed",
        icon=":material/database:",
        help="Where the figures come from. Only sources that are configured can be chosen; nothing is asked before.",
        width=250,
    )


def refresh_chooser(state: ViewState) -> None:
    """Show how often the page looks for new figures; off means that there is no timer."""
    key = "shared.refresh"
    seed(key, state.refresh_s)
    st.selectbox(
        "Refresh",
        REFRESH_CHOICES_S,
        format_func=lambda s: "Refresh off" if s == 0 else f"Refresh {s} s" if s < 60 else f"Refresh {s // 60} min",
        key=key,
        on_change=lambda: write_state(refresh_s=st.session_state[key]),
        label_visibility="collapsed",
        icon=":material/autorenew:",
        help="How often this page looks for new figures. The source is asked once for all viewers, never faster than it changes.",
        width=170,
    )


def size_chooser(state: ViewState) -> None:
    """Show the size asked for; any whole number can be typed."""
    key = "shared.size"
    current = state.max_length_tokens
    sizes = sorted({*STRIP_SIZES_TOKENS, MAX_LENGTH_LIMIT_TOKENS, current})

    def chosen() -> None:
        try:
            size = size_from_text(str(st.session_state[key]))
        except InputError as error:
            say_stays(f"The size stays at {count(current)}", error, again=key)
            return
        settle(key, size)
        write_state(max_length_tokens=size)

    seed(key, current)
    st.selectbox(
        "Size asked for",
        sizes,
        format_func=lambda size: f"{count(size)} tokens" if isinstance(size, int) else str(size),
        key=key,
        on_change=chosen,
        accept_new_options=True,
        label_visibility="collapsed",
        icon=":material/straighten:",
        help=gloss("size") + " Choose a size or type one.",
        width=170,
    )


def request_and_settings(state: ViewState) -> None:
    """Show the rest of the request and the settings behind a button; changes are taken together, or refused together."""
    base = deployment_settings()
    changed = len([s for s in SETTING_PARAMETERS.values() if getattr(state.settings, s) != getattr(base, s)])
    label = f"{changed} changed setting{'s' if changed != 1 else ''}" if changed else "Settings"
    with st.popover(label, icon=":material/tune:", key="shared.tune"), st.form(SETTINGS, border=False):
        st.markdown("**What a request asks for**")
        seed("shared.context", state.max_context_tokens, in_popover=True)
        number_field(
            "Context (tokens)",
            LEAST_CONTEXT_TOKENS,
            MOST_CONTEXT_TOKENS,
            step=1,
            key="shared.context",
            help=gloss("context") + " Never below the size.",
        )
        st.markdown("**Settings of the allowance**")
        for setting, (text, term) in SETTING_LABELS.items():
            whole = setting.endswith("_tokens")
            value = getattr(state.settings, setting)
            seed(f"shared.{setting}", int(value) if whole else float(value), in_popover=True)
            least = 1 if setting != "wait_full_s" else 0
            number_field(
                text,
                least if whole else float(least) if setting == "wait_full_s" else 0.1,
                MAX_LENGTH_LIMIT_TOKENS if whole else 1_000_000.0,
                step=1 if whole else 1.0,
                format="%d" if whole else "%g",
                key=f"shared.{setting}",
                help=GLOSSARY[term].text,
            )
        say_here(SETTINGS)
        with st.container(horizontal=True):
            st.form_submit_button("Apply", type="primary", on_click=_apply_settings)
            st.form_submit_button("As deployed", on_click=_reset_settings)
        st.caption("Settings that differ from those of this deployment stand in the link.")


def _apply_settings() -> None:
    base = deployment_settings()
    if left_empty(["shared.context", *(f"shared.{setting}" for setting in SETTING_LABELS)], told_at=SETTINGS):
        return
    given = {setting: st.session_state[f"shared.{setting}"] for setting in SETTING_LABELS}
    try:
        settings = base.changed(**given)
    except ConfigError as error:
        say(f"Nothing was changed: {setting_told(error)}.", at=SETTINGS)
        return
    write_state(settings=settings, max_context_tokens=int(st.session_state["shared.context"]))


def _reset_settings() -> None:
    write_state(settings=deployment_settings(), max_context_tokens=ViewState().max_context_tokens)


def board_filters(state: ViewState) -> None:
    """Show what narrows the board: words of a name, states, and whether a model's names are one row."""
    with st.container(horizontal=True, vertical_alignment="center"):
        seed("overview.find", state.find)
        st.text_input(
            "Find a model",
            key="overview.find",
            type="search",
            live="400ms",
            max_chars=MOST_FIND_CHARACTERS,
            placeholder="Find a model",
            label_visibility="collapsed",
            icon=":material/search:",
            on_change=lambda: write_state(find=str(st.session_state["overview.find"] or "")[:MOST_FIND_CHARACTERS]),
            width=240,
        )
        seed("overview.states", list(state.states))
        st.pills(
            "States shown",
            list(STATES),
            selection_mode="multi",
            format_func=lambda name: STATES[name].label,
            key="overview.states",
            on_change=lambda: write_state(states=tuple(s for s in STATES if s in st.session_state["overview.states"])),
            label_visibility="collapsed",
        )
        seed("overview.grouped", state.grouped)
        st.toggle(
            "Group a model's names",
            key="overview.grouped",
            on_change=lambda: write_state(grouped=bool(st.session_state["overview.grouped"])),
            help="One row for the names that are the same model behind their backend's prefix, read as one request for all.",
        )
