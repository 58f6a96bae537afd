"""The probe on the model page: a dry run as the anonymous account behind a button, once a model and minute at most."""

import os
from dataclasses import dataclass

import streamlit as st

from horde_policy.board.probe import ProbePace, Prober, ProbeResult, probe_folder
from horde_policy.clock import SystemClock
from horde_policy.errors import HordePolicyError
from horde_policy.sources.catalogue import CONTACT_SETTING, Entry
from horde_policy.sources.dry_run import DryRunClient
from horde_policy.sources.horde import client_agent
from horde_policy.ui import live
from horde_policy.ui.headings import show_heading
from horde_policy.ui.page import Opened
from horde_policy.views.probe import probe_lines
from horde_policy.views.text import count, visible

__all__ = ["show_probe"]

_HOLDER = "model.probed"


@dataclass(frozen=True, slots=True)
class _Told:
    """What the last probe of this session said: of which source and request, and its lines."""

    about: tuple[str, str, int, int]
    lines: tuple[str, ...]


@st.cache_resource(show_spinner=False)
def _pace() -> ProbePace:
    return ProbePace(probe_folder(os.environ))


def _ask(entry: Entry, opened: Opened, model: str) -> ProbeResult:
    state, clock = opened.state, SystemClock()
    agent = client_agent(os.environ.get(CONTACT_SETTING))
    with DryRunClient(entry.api or "", name=entry.where, setting=entry.title, clock=clock, agent=agent) as client:
        return Prober(client, _pace(), clock=clock).probe(
            model,
            state.max_length_tokens,
            opened.snapshot,
            state.settings,
            context_tokens=state.max_context_tokens,
        )


def show_probe(opened: Opened) -> None:
    """Show the button of a probe where the source is live and one model is named, and what the last probe said."""
    state = opened.state
    entry = live.live_entry(state.source)
    if entry is None:
        return
    show_heading("Ask the server itself")
    if len(state.models) != 1:
        st.caption("A probe asks about one model: name one above.")
        return
    about = (state.source, state.models[0], state.max_length_tokens, state.max_context_tokens)
    asked = st.button(
        f"Probe {count(state.max_length_tokens)} tokens",
        key="model.probe",
        icon=":material/quiz:",
        help="A dry run as the anonymous account: nothing is queued. At most one a model and minute.",
    )
    if asked:
        try:
            lines = probe_lines(_ask(entry, opened, state.models[0]))
        except HordePolicyError as error:
            lines = (f"There is no answer: {visible(str(error))}.",)
        st.session_state[_HOLDER] = _Told(about, lines)
    told = st.session_state.get(_HOLDER)
    if isinstance(told, _Told) and told.about == about:
        for line in told.lines:
            st.text(line)
