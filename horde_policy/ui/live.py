"""The source a page looks at: one poller a process for all viewers, one small fragment a page that looks again on its timer.

The fragment draws the status line alone. When the content of the snapshot has changed it runs the page again; when it has not,
nothing else is drawn or sent. With refresh off there is no timer.
"""

import hashlib
import io
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Final

import streamlit as st

from horde_policy.clock import Clock, SystemClock
from horde_policy.errors import Problem
from horde_policy.frames.snapshot import Snapshot, SourceKind
from horde_policy.sources.catalogue import Catalogue, Entry, configured_sources
from horde_policy.sources.demo import DemoSource
from horde_policy.sources.horde import LiveSource, RateLimit
from horde_policy.sources.parts import PARTS
from horde_policy.sources.poller import Look, Pollers
from horde_policy.sources.source import Source
from horde_policy.ui import address, components
from horde_policy.views.state import ViewState
from horde_policy.views.status import Status, status_line

__all__ = [
    "Seen",
    "Standing",
    "content_id",
    "live_entry",
    "look_at",
    "place_of",
    "pollers",
    "show_source",
    "show_status",
    "source_labels",
    "source_of",
    "source_problems",
    "standings",
]

RENEWED_S: Final[Mapping[SourceKind, float]] = {
    "live": max(PARTS["workers"].refresh_s, PARTS["models"].refresh_s),
    "demo": DemoSource.refresh_s,
}
"""Kind of source → how old its figures may be when a page looks at it, as long as all is well."""

WAITING_EVERY_S = 1
"""While a source has not answered yet, the page looks again this often, also with refresh off: it is still opening."""

KEPT_UP_S = 75.0
"""A viewer who looked at a source so lately has figures that the timer keeps up, so a click of theirs waits for none."""

_SHOWN = "live.shown"
_LOOKED = "live.looked"


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a source: what the poller says, when, and the id of the content, which stays while the content does."""

    name: str
    look: Look
    at: datetime
    snapshot_id: str

    @property
    def snapshot(self) -> Snapshot | None:
        """The last good snapshot; null before the first."""
        return self.look.snapshot

    @property
    def shows(self) -> str:
        """What a page shows of it: the content, or without any what is known of the source, new with each try."""
        waiting = self.look.state == "waiting"
        return self.snapshot_id or (self.look.state if waiting else f"{self.look.state} {self.look.polls}")

    @property
    def status(self) -> Status:
        """The status line's words and figures."""
        look = self.look
        renewed_s = None if look.snapshot is None else RENEWED_S.get(look.snapshot.source_kind)
        return status_line(
            look.snapshot, name=self.name, state=look.state, sentence=look.sentence(), now=self.at, renewed_s=renewed_s
        )


@dataclass(slots=True)
class _Desk:
    """What all viewers share: the catalogue, the pollers, and the id of each poller's last snapshot; guarded by its lock."""

    clock: Clock
    catalogue: Catalogue
    pollers: Pollers
    ids: dict[str, tuple[int, str]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def content_id(self, source: str, look: Look) -> str:
        """Return the id of a look's content, computed once a snapshot."""
        if look.snapshot is None:
            return ""
        with self.lock:
            known = self.ids.get(source)
            if known is None or known[0] != look.serial:
                known = (look.serial, content_id(look.snapshot))
                self.ids[source] = known
            return known[1]


def content_id(snapshot: Snapshot) -> str:
    """Return an id of what a snapshot says, whenever it was fetched: equal ids are equal rows, totals, modes and problems."""
    digest = hashlib.blake2b(digest_size=16)
    for frame in (snapshot.workers, snapshot.models, snapshot.demand):
        if frame is not None:
            out = io.BytesIO()
            frame.rechunk().write_ipc(out)
            digest.update(out.getvalue())
        digest.update(b"|")
    parts = [None if part is None else asdict(part) for part in (snapshot.performance, snapshot.modes, snapshot.heartbeat)]
    totals = None if snapshot.totals is None else [dict(snapshot.totals.requests), dict(snapshot.totals.tokens)]
    rest = [snapshot.source, snapshot.source_kind, snapshot.synthetic, parts, totals, [asdict(p) for p in snapshot.problems]]
    digest.update(json.dumps(rest, sort_keys=True).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _secrets() -> Mapping[str, object]:
    return st.secrets.to_dict() if st.secrets.load_if_toml_exists() else {}


def _close(desk: _Desk) -> None:
    for poller in desk.pollers.started().values():
        if isinstance(poller.source, LiveSource):
            poller.source.client.close()


@st.cache_resource(show_spinner=False, on_release=_close)
def _desk() -> _Desk:
    clock = SystemClock()
    catalogue = configured_sources(os.environ, _secrets(), clock=clock)
    return _Desk(clock, catalogue, Pollers(catalogue.build, clock=clock))


def pollers() -> Pollers:
    """Return the pollers of the sources that somebody has chosen, shared by all viewers."""
    return _desk().pollers


def source_of(key: str) -> Source:
    """Return a configured source itself, for what can be asked of it beside its snapshot."""
    return pollers().poller(key).source


def live_entry(source: str) -> Entry | None:
    """Return the entry of a source if it is a live horde, whose API can be asked more; null for another."""
    return next((entry for entry in _desk().catalogue.entries if entry.key == source and entry.api is not None), None)


def place_of(source: str) -> str:
    """Return the host or folder behind a configured source, never with a secret; empty for one that is not configured."""
    return next((entry.where for entry in _desk().catalogue.entries if entry.key == source), "")


def source_labels() -> dict[str, str]:
    """Return key → title of the sources that can be chosen, what kind each is said where its title does not."""
    said = {"recorded": "Recorded: ", "demo": "", "live": "Live: ", "history": "History: "}
    return {e.key: said[e.kind] + e.title + (" (synthetic)" if e.kind == "demo" else "") for e in _desk().catalogue.entries}


def source_problems() -> tuple[Problem, ...]:
    """Return what of the configuration of sources cannot be used."""
    return _desk().catalogue.problems


@dataclass(frozen=True, slots=True)
class Standing:
    """How a configured source stands: its entry, the last look (null: never chosen, so never asked), and its limits."""

    entry: Entry
    look: Look | None
    limits: Mapping[str, RateLimit]


def standings() -> tuple[tuple[Standing, ...], datetime]:
    """Return how every configured source stands, and the present; nothing is asked."""
    desk = _desk()
    started = desk.pollers.started()

    def standing(entry: Entry) -> Standing:
        poller = started.get(entry.key)
        if poller is None:
            return Standing(entry, None, {})
        limits = poller.source.client.rate_limits().items() if isinstance(poller.source, LiveSource) else ()
        return Standing(entry, poller.peek(), {str(name): limit for name, limit in limits})

    return tuple(standing(entry) for entry in desk.catalogue.entries), desk.clock.now().astimezone(UTC)


def look_at(source: str, *, patient: bool = False) -> Seen | None:
    """Return a look at a source, which is asked only if that is due; null if no such source is configured.

    A look that is due waits for its answer, for the short while that the poller allows, so that a viewer who comes sees what
    is one question away and not what the last viewer left. Only the viewer whose own timer keeps the figures up does not
    wait, so that no click does; the timer's look, and a click where there is no timer (``patient``), do, and so does a look
    that finds nothing or what is stale.
    """
    desk = _desk()
    if source not in desk.catalogue.keys():  # noqa: SIM118 (a catalogue's keys are its own)
        return None
    poller = desk.pollers.poller(source)
    held = poller.peek()
    waits = patient or held.snapshot is None or held.state == "stale" or not _kept_up(source, desk.clock.now())
    look = poller.latest(wait_s=None if waits else 0.0)
    now = desk.clock.now().astimezone(UTC)
    _looked()[source] = now
    return Seen(poller.source.name, look, now, desk.content_id(source, look))


def _looked() -> dict[str, datetime]:
    """Return source → when this viewer last looked at it."""
    looked: dict[str, datetime] = st.session_state.setdefault(_LOOKED, {})
    return looked


def _kept_up(source: str, now: datetime) -> bool:
    last = _looked().get(source)
    return last is not None and 0 <= (now - last).total_seconds() <= KEPT_UP_S


def show_source(seen: Seen) -> None:
    """Draw the status line of a page that looks once: what its figures are from, the absolute time, and no timer."""
    components.status(key="shared.status", data=seen.status.data(ticking=False, refresh_s=0) | {"note": None})


def show_status(state: ViewState, seen: Seen) -> None:
    """Draw the status line, and look again on the page's timer; a look with new content runs the page again."""
    st.session_state[_SHOWN] = seen.shows
    recorded = seen.snapshot is not None and seen.snapshot.source_kind == "recorded"
    every = WAITING_EVERY_S if seen.look.state == "waiting" else None if recorded else state.refresh_s or None
    first = [seen]

    def look_again() -> None:
        # The first call is part of the page's own run, which has just looked; the later ones are the timer's.
        now = first.pop() if first else look_at(state.source, patient=True)
        if now is None or now.shows != st.session_state[_SHOWN]:
            address.run_again(settled=seen.look.state != "waiting")
        components.status(key="shared.status", data=now.status.data(ticking=every is not None, refresh_s=state.refresh_s))

    st.fragment(look_again, run_every=every)()
