"""Uploads that are read in threads: a page says how far that is, can cancel it, and stays in use meanwhile.

A session reads one upload of a kind at a time. :func:`begin` starts it, :func:`show` draws where it stands, and
:func:`follow`, at the very end of a page's run, moves the bar until the reading is done. Whatever the viewer does ends that run
and draws the page anew, while the reading goes on: a fragment on a timer would race the run that follows it.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from horde_policy.errors import HordePolicyError, ReadingCancelled
from horde_policy.ui.address import run_again
from horde_policy.views.text import escape_markdown, shortened_name, visible

__all__ = ["LOOK_EVERY_S", "Reading", "begin", "follow", "show"]

_log = logging.getLogger(__name__)

AT_ONCE = 2
LOOK_EVERY_S = 0.3
_HELD = "reading.held"
_BAR = "reading.bar"

NO_MEMORY = "This upload needs more memory than the server has; read it by the command."
FAULT = "The reading ended by a fault of the program, which the server's log names."


@dataclass(slots=True)
class Reading:
    """An upload that is being read: its name (hostile text), how far it is (null: not known), and what came of it."""

    name: str
    stage: str = "waiting for another upload to be read"
    share: float | None = None
    result: Any = None
    error: str | None = None
    done: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)

    def told(self, stage: str, share: float | None = None) -> None:
        """Note how far it is.

        Raises
        ------
        ReadingCancelled
            The viewer has cancelled it.
        """
        if self.cancelled.is_set():
            raise ReadingCancelled("the reading was cancelled; nothing of it is kept")
        self.stage, self.share = stage, share

    def work(self, read: "Callable[[Reading], Any]") -> None:
        """Read, in a thread; what comes of it is kept here."""
        try:
            self.told("reading")
            found = read(self)
            self.told("reading")  # a cancel that came while nothing was told counts as well
            self.result = found
        except ReadingCancelled:
            self.cancelled.set()
        except HordePolicyError as error:
            self.error = str(error)
        except MemoryError:
            self.error = NO_MEMORY
        finally:
            if self.result is None and self.error is None and not self.cancelled.is_set():
                self.error = FAULT
            self.done.set()


@st.cache_resource(show_spinner=False, on_release=lambda pool: pool.shutdown(wait=False, cancel_futures=True))
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, "reading")


def _held() -> dict[str, Reading]:
    held: dict[str, Reading] = st.session_state.setdefault(_HELD, {})
    return held


def begin(kind: str, name: str, read: Callable[[Reading], Any]) -> Reading:
    """Start to read an upload in a thread; one of the same kind that is still read is cancelled.

    Parameters
    ----------
    kind
        What it is for, as ``exports``.
    name
        What it is called (hostile text).
    read
        Reads it, tells how far it is by :meth:`Reading.told`, and returns what came of it.
    """
    before = _held().get(kind)
    if before is not None:
        before.cancelled.set()
    reading = Reading(name)
    _held()[kind] = reading
    _threads().submit(reading.work, read).add_done_callback(
        lambda ended: None if ended.exception() is None else _log.error("an upload's reading failed", exc_info=ended.exception())
    )
    return reading


def show(kind: str) -> Reading | None:
    """Show how far an upload's reading is; return it once it has ended, and forget it."""
    st.session_state.pop(_BAR, None)
    place = st.empty()  # always there: what follows keeps its own place while the bar comes and goes
    reading = _held().get(kind)
    if reading is None:
        return None
    if reading.done.is_set() or reading.cancelled.is_set():
        return _held().pop(kind)
    with place.container(horizontal=True, vertical_alignment="center", key=f"reading.{kind}"):
        st.session_state[_BAR] = (kind, st.empty())
        _draw(reading)
        st.button("Cancel", key=f"reading.{kind}.cancel", icon=":material/cancel:", on_click=reading.cancelled.set)
    return None


def _draw(reading: Reading) -> None:
    share = "" if reading.share is None else f", {reading.share * 100:.0f} %"
    text = f"{reading.stage.capitalize()} {escape_markdown(shortened_name(visible(reading.name), 60))}{share} …"
    st.session_state[_BAR][1].progress(min(1.0, reading.share or 0.0), text=text)


def follow() -> None:
    """Move the bar of a shown reading until it has ended, then run the page again; call when all else of a page is drawn."""
    bar = st.session_state.get(_BAR)
    if bar is None:
        return
    reading = _held().get(bar[0])
    if reading is None:
        return
    while not reading.done.wait(LOOK_EVERY_S) and not reading.cancelled.is_set():
        _draw(reading)
    run_again()
