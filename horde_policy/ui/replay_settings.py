"""The editor of the settings that a replay compares with the baseline: sliders that write the address."""

from collections.abc import Sequence

import streamlit as st

from horde_policy.errors import ConfigError
from horde_policy.settings import ReplaySettings
from horde_policy.ui.address import read_state, say, seed, write_state
from horde_policy.ui.fields import left_empty, number_field
from horde_policy.ui.notices import say_here
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views.parameters import MOST_RUNS
from horde_policy.views.replay_runs import CLIENTS, LETTERS, RULES, Run, opened_run, run_text, runs_of, settings_words
from horde_policy.views.replay_state import ReplayAsked
from horde_policy.views.sweep_words import setting_told

__all__ = ["show_settings"]

EDITED = "replay.edited"
USES_CURVE = ("allowance", "jobs")
SLIDERS, FURTHER = "replay.sliders", "replay.further"
"""The parts that say themselves what they did not take."""

SUGGESTED = (
    {"ceiling_tokens": 2048, "floor_tokens": 256},
    {"rule": "old"},
    {"wait_full_s": 30.0, "wait_floor_s": 150.0},
    {"rule": "jobs"},
    {"rule": "everyone_free"},
    {"client": "resend"},
)
"""What a run that is added starts with, the first that is not there yet."""


def show_settings(runs: Sequence[Run], asked: str) -> None:
    """Show the runs compared, and the settings of the one that the address opens (``asked``; the first where it says none)."""
    others = {run.letter: run for run in runs[1:]}
    letter = opened_run(runs, asked)
    with st.container(horizontal=True, vertical_alignment="center"):
        if others:
            seed(EDITED, letter)
            st.segmented_control(
                "Settings compared",
                list(others),
                format_func=lambda letter: others[letter].title if letter in others else letter,
                key=EDITED,
                required=True,
                label_visibility="collapsed",
                on_change=lambda: _open(str(st.session_state[EDITED] or "")),
            )
        st.button(
            "Add settings",
            icon=":material/add:",
            key="replay.add",
            type="tertiary",
            disabled=len(others) >= MOST_RUNS,
            on_click=_add,
            help=f"Up to {MOST_RUNS} settings stand beside the baseline.",
        )
        if others:
            st.button("Remove", key="replay.remove", icon=":material/close:", type="tertiary", on_click=_remove, args=(letter,))
    if letter:
        _sliders(others[letter])
    say_here(SLIDERS)


def _opening(letter: str) -> ReplayAsked:
    """Return how the replay is looked at with a run's sliders open; the first run's is not written."""
    return read_state()[0].replay.changed(edited="" if letter == LETTERS[1] else letter)


def _open(letter: str) -> None:
    write_state(replay=_opening(letter))


def _current() -> tuple[Run, ...]:
    state, _ = read_state()
    return runs_of(state.runs, state.settings)[0]


def _write(runs: Sequence[ReplaySettings], baseline: ReplaySettings, **changes: object) -> None:
    write_state(runs=tuple(run_text(settings, baseline) for settings in runs), **changes)


def _add() -> None:
    baseline, *others = (run.settings for run in _current())
    taken = {settings.digest() for settings in (baseline, *others)}
    for changes in SUGGESTED:
        try:
            suggested = baseline.changed(**changes)
        except ConfigError:  # senseless beside the page's own settings
            continue
        if suggested.digest() not in taken and len(others) < MOST_RUNS:
            _write([*others, suggested], baseline, replay=_opening(LETTERS[1 + len(others)]))
            return


def _remove(letter: str) -> None:
    runs = _current()
    looked_at = _opening(LETTERS[1]).changed(letter="")  # the letters behind the one that goes are those of others then
    _write([run.settings for run in runs[1:] if run.letter != letter], runs[0].settings, replay=looked_at)


def _change(letter: str, key: str, **changes: object) -> None:
    """Change a run's settings; what makes no sense, or is there already, is said and the control set back.

    Without a ``key`` they are those of the form, which stay typed.
    """
    runs = _current()
    run = next((run for run in runs if run.letter == letter), None)
    if run is None:
        return
    at = SLIDERS if key else FURTHER
    try:
        wanted = run.settings.changed(**changes)
    except ConfigError as error:
        say(f"The settings of {letter} stay: {setting_told(error)}.", again=key, at=at)
        return
    same = next((other for other in runs if other.digest == wanted.digest()), None)
    if same is not None and same is not run:
        say(
            f"The settings of {letter} stay: {settings_words(wanted, runs[0].settings)} is already there as {same.letter}.",
            again=key,
            at=at,
        )
        return
    _write([wanted if other is run else other.settings for other in runs[1:]], runs[0].settings)


def _sliders(run: Run) -> None:
    settings, letter = run.settings, run.letter
    prefix = f"replay.{letter}"
    first, second, third, fourth, fifth = st.columns([1.1, 1.3, 1.3, 1.5, 1.1], gap="medium", vertical_alignment="bottom")
    with first:
        key = f"{prefix}.rule"
        seed(key, settings.rule)
        st.selectbox(
            f"Rule of {letter}",
            list(RULES),
            format_func=RULES.__getitem__,
            key=key,
            on_change=lambda key=key: _change(letter, key, rule=st.session_state[key]),
            help="The allowance; the previous rule; the allowance by competing jobs in place of a wait; or none at all.",
        )
    for place, name, label in ((second, "ceiling_tokens", "Ceiling (tokens)"), (third, "floor_tokens", "Floor (tokens)")):
        key = f"{prefix}.{name}"
        most = 8192 if getattr(settings, name) <= 8192 else MAX_LENGTH_LIMIT_TOKENS
        key += f".{most}"
        seed(key, getattr(settings, name))
        place.slider(
            label,
            1,
            most,
            key=key,
            disabled=settings.rule not in USES_CURVE,
            on_change=lambda key=key, name=name: _change(letter, key, **{name: int(st.session_state[key])}),
        )
    with fourth:
        most_s = max(600.0, settings.wait_floor_s)
        key = f"{prefix}.marks.{most_s:g}"
        seed(key, (float(settings.wait_full_s), float(settings.wait_floor_s)))
        st.slider(
            "Full wait and floor wait (s)",
            0.0,
            float(most_s),
            step=1.0,
            format="%g",
            key=key,
            disabled=settings.rule != "allowance",
            on_change=lambda key=key: _change(
                letter, key, wait_full_s=float(st.session_state[key][0]), wait_floor_s=float(st.session_state[key][1])
            ),
        )
    with fifth:
        _further(run)


def _further(run: Run) -> None:
    settings, letter = run.settings, run.letter
    prefix = f"replay.{letter}"
    with st.popover("More", icon=":material/tune:", key=f"{prefix}.more"), st.form(f"{prefix}.form", border=False):
        values: dict[str, object] = {
            "client": settings.client,
            "return_after_s": float(settings.return_after_s),
            "return_times": settings.return_times,
            "assumed_speed_tok_per_s": float(settings.assumed_speed_tok_per_s),
            "ahead": settings.ahead,
            "count_threads": settings.count_threads,
            "jobs_rule_floor_per_thread": float(settings.jobs_rule_floor_per_thread),
            "request_ttl_s": float(settings.request_ttl_s),
            "job_timeout_s": None if settings.job_timeout_s is None else float(settings.job_timeout_s),
        }
        for name, value in values.items():
            seed(f"{prefix}.{name}", value, in_popover=True)
        st.selectbox("A refused client", list(CLIENTS), format_func=CLIENTS.__getitem__, key=f"{prefix}.client")
        with st.container(horizontal=True):
            number_field(
                "comes back after (s)",
                *_bounds(0.0, 1e6, settings.return_after_s),
                format="%g",
                key=f"{prefix}.return_after_s",
                width=160,
            )
            number_field("so many times", 0, 1000, key=f"{prefix}.return_times", width=160)
        number_field(
            "Assumed speed (tok/s)",
            *_bounds(0.1, 1e6, settings.assumed_speed_tok_per_s),
            format="%g",
            key=f"{prefix}.assumed_speed_tok_per_s",
        )
        st.selectbox(
            "What counts as ahead",
            ("queue_order", "all"),
            format_func={"queue_order": "what stands before in the queue", "all": "all that waits"}.__getitem__,
            key=f"{prefix}.ahead",
        )
        st.toggle("A worker's speed counts once a thread", key=f"{prefix}.count_threads")
        number_field(
            "Jobs rule: floor at jobs a thread",
            *_bounds(0.1, 1e6, settings.jobs_rule_floor_per_thread),
            format="%g",
            key=f"{prefix}.jobs_rule_floor_per_thread",
        )
        number_field(
            "A waiting request lives (s)", *_bounds(1.0, 1e7, settings.request_ttl_s), format="%g", key=f"{prefix}.request_ttl_s"
        )
        st.number_input(
            "A job ends after (s)",
            *_bounds(0.0, 1e7, settings.job_timeout_s),
            format="%g",
            key=f"{prefix}.job_timeout_s",
            placeholder="no limit",
            help="The server's limit is 150 s; empty for none.",
        )
        say_here(FURTHER)
        st.form_submit_button("Apply", type="primary", on_click=_apply, args=(letter, tuple(values)))


def _bounds(least: float, most: float, value: float | None) -> tuple[float, float]:
    """Return a control's limits, widened to hold what an address says."""
    return (least, most) if value is None else (min(least, float(value)), max(most, float(value)))


def _apply(letter: str, names: tuple[str, ...]) -> None:
    if left_empty((f"replay.{letter}.{name}" for name in names), told_at=FURTHER):
        return
    _change(letter, "", **{name: st.session_state[f"replay.{letter}.{name}"] for name in names})
