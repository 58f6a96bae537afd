"""The Replay page's choices: traffic, range, load, fill rule, fleet and upload; each writes the address."""

from collections.abc import Mapping
from datetime import timedelta

import streamlit as st

from horde_policy.errors import InputError
from horde_policy.replay.fill import MOST_COPIES
from horde_policy.ui.address import say_stays, seed, settle, write_state
from horde_policy.ui.fields import left_empty, number_field
from horde_policy.ui.notices import say_here
from horde_policy.ui.replay_fill import show_fill
from horde_policy.ui.replay_inputs import BUNDLED, Drawn, drawn_of
from horde_policy.ui.replay_page import Opened
from horde_policy.ui.replay_upload import show_upload, show_upload_read, start_of, upload_names
from horde_policy.ui.widths import MOST_NAME_CHARACTERS, chooser_px, whole_name
from horde_policy.views.parameters import hours_from_text, hours_text
from horde_policy.views.state import ViewState
from horde_policy.views.text import shortened_name, visible

__all__ = ["show_choices"]

MOST_DAYS_LISTED = 14
CHOICES, LOAD, DRAWN = "replay.choices", "replay.load", "replay.drawn"
"""The parts that say themselves what they did not take."""


def show_choices(opened: Opened) -> None:
    """Show what is replayed on what."""
    state = opened.state
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _traffic(state)
        _range(state, opened.length)
        _load(state)
        show_fill(opened)
        _fleet(state, opened.sources)
        show_upload(opened.desk)
    say_here(CHOICES)
    show_upload_read()


def _traffic(state: ViewState) -> None:
    key = "replay.traffic"
    titles = {name: bundled.title for name, bundled in BUNDLED.items()}
    titles |= {name: visible(title) for name, title in upload_names().items()}
    titles.setdefault(state.traffic, state.traffic)
    seed(key, state.traffic)
    chosen = titles[state.traffic]
    st.selectbox(
        "Traffic",
        list(titles),
        format_func=lambda name: shortened_name(str(titles.get(name, name)), MOST_NAME_CHARACTERS),
        key=key,
        on_change=lambda: write_state(**start_of(st.session_state[key])),
        help="The requests that are sent once more. "
        + " ".join(f"{bundled.title}: {bundled.text}." for bundled in BUNDLED.values())
        + whole_name(chosen),
        width=chooser_px(shortened_name(chosen, MOST_NAME_CHARACTERS), 200),
    )


def _range(state: ViewState, length: timedelta | None) -> None:
    key = "replay.hours"
    hours = 0 if length is None else length.total_seconds() / 3600
    days = [f"{24 * day}-{24 * day + 24}" for day in range(min(MOST_DAYS_LISTED, int(hours // 24) + 1))] if hours > 24 else []
    current = hours_text(state.hours)
    words = {"all": "all of it"} | {text: f"day {number}" for number, text in enumerate(days, 1)}

    def chosen() -> None:
        try:
            hours = hours_from_text(str(st.session_state[key]))
        except InputError as error:
            say_stays("The range stays", error, again=key, at=CHOICES)
            return
        settle(key, hours_text(hours))
        write_state(hours=hours)

    seed(key, current)
    st.selectbox(
        "Range (hours)",
        [*dict.fromkeys(["all", *days, current])],
        format_func=lambda text: f"{words[text]} ({text} h)" if text in days else words.get(text, f"{text} h"),
        key=key,
        on_change=chosen,
        accept_new_options=True,
        help="Hours after the first request, from and to; choose a day or type as 24-48.",
        width=145,
    )


def _load(state: ViewState) -> None:
    label = f"Load × {state.copies}" + (f" · {state.keep_percent} %" if state.keep_percent < 100 else "")

    def chosen() -> None:
        write_state(
            copies=min(MOST_COPIES, max(1, int(st.session_state["replay.copies"]))),
            keep_percent=min(100, max(1, int(st.session_state["replay.keep"]))),
        )

    with st.popover(label, icon=":material/speed:", key=LOAD):
        seed("replay.copies", state.copies, in_popover=True)
        number_field(
            "Copies superposed",
            1,
            MOST_COPIES,
            step=1,
            key="replay.copies",
            on_change=chosen,
            told_at=LOAD,
            help="More load is made of copies laid over each other, moved by up to 45 minutes: a synthetic load. Time is never "
            "stretched, since 60 s and 300 s would mean something else.",
        )
        say_here(LOAD)
        seed("replay.keep", state.keep_percent, in_popover=True)
        st.slider(
            "Kept of each copy (%)", 1, 100, key="replay.keep", on_change=chosen, help="Less load: whole clients are left out."
        )


def _fleet(state: ViewState, sources: Mapping[str, str]) -> None:
    key = "replay.fleet"
    drawn = Drawn()
    try:
        drawn = drawn_of(state.fleet) or drawn
        current = state.fleet
    except InputError:
        current = "source"
    words = {"source": "the source's workers now", **sources}
    words[drawn.text] = f"drawn: {drawn.workers} workers, {drawn.models} models (synthetic)"
    words.setdefault(current, current)
    seed(key, current)
    st.selectbox(
        "Fleet",
        list(words),
        format_func=lambda name: shortened_name(str(words.get(name, name)), MOST_NAME_CHARACTERS),
        key=key,
        on_change=lambda: write_state(fleet=st.session_state[key]),
        help="The workers as they stand in a snapshot, online throughout; as the history recorded them, coming and going, moved "
        "to the traffic's first day; or drawn from a few numbers and a seed." + whole_name(words[current]),
        width=chooser_px(shortened_name(words[current], MOST_NAME_CHARACTERS), 215),
    )
    if current.startswith("drawn/"):
        _drawn(drawn)


def _drawn(drawn: Drawn) -> None:
    with st.popover("Drawn fleet", icon=":material/casino:", key=DRAWN), st.form("replay.drawn.form", border=False):
        fields = (
            ("workers", "Workers", 0, 5_000, drawn.workers),
            ("models", "Models", 1, 500, drawn.models),
            ("median", "Median speed (tok/s)", 0.5, 10_000.0, drawn.speed_median_tok_per_s),
            ("p95", "95th percentile of the speed (tok/s)", 0.5, 10_000.0, drawn.speed_p95_tok_per_s),
            ("seed", "Seed", 0, 1_000_000, drawn.seed),
        )
        for name, label, least, most, value in fields:
            seed(f"replay.drawn.{name}", value, in_popover=True)
            # an address may say more than the control would
            number_field(label, min(least, value), max(most, value), key=f"replay.drawn.{name}")
        say_here(DRAWN)
        st.form_submit_button("Apply", type="primary", on_click=_apply_drawn)


def _apply_drawn() -> None:
    keys = [f"replay.drawn.{name}" for name in ("workers", "models", "median", "p95", "seed")]
    if left_empty(keys, told_at=DRAWN):
        return
    workers, models, median, p95, chosen_seed = (st.session_state[key] for key in keys)
    wanted = Drawn(
        workers=int(workers), models=int(models), speed_median_tok_per_s=median, speed_p95_tok_per_s=p95, seed=int(chosen_seed)
    )
    write_state(fleet=wanted.text)
