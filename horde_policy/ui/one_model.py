"""The open model asked for alone: a line of its own on the model page, at its own pace, one question for all viewers."""

import streamlit as st

from horde_policy.errors import InputError
from horde_policy.frames.model_look import ModelLook
from horde_policy.sources.one_model import LOOK_WAIT_S, look_at_model
from horde_policy.sources.source import Source
from horde_policy.ui.address import run_again
from horde_policy.ui.live import WAITING_EVERY_S, source_of
from horde_policy.ui.page import Opened
from horde_policy.views.one_model import ALONE_COUNTS, alone_sentence
from horde_policy.views.text import escape_markdown

__all__ = ["show_alone"]


def show_alone(opened: Opened) -> None:
    """Show what the source says of the one model that the request names; nothing for several, for any, or where none says so.

    The page does not wait for the answer: where none is held yet, the line looks again each second, else on the page's timer.
    """
    state = opened.state
    if len(state.models) != 1:
        return
    source = source_of(state.source)
    found = _look(source, state.models[0], 0.0)
    if found is None:
        return
    waiting = found.at is None and found.error is None
    first = [found]

    def look_again() -> None:
        # The first call is part of the page's own run, which has just looked; the later ones are the timer's.
        now = first.pop() if first else _look(source, state.models[0], LOOK_WAIT_S)
        if now is not None:
            st.caption(f"{escape_markdown(alone_sentence(now))} {ALONE_COUNTS if now.known else ''}")
        if waiting and now is not None and (now.at is not None or now.error is not None):
            run_again()  # the page's own timer is enough from here on

    recorded = opened.snapshot.source_kind == "recorded"
    every = WAITING_EVERY_S if waiting else None if recorded else state.refresh_s or None
    st.fragment(look_again, run_every=every)()


def _look(source: Source, model: str, wait_s: float) -> ModelLook | None:
    try:
        return look_at_model(source, model, wait_s=wait_s)
    except InputError:  # a name that no address can hold: nothing can be asked
        return None
