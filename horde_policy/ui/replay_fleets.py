"""The fleet that an address names for a replay: a source's workers now, those of its last days, or drawn from parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from horde_policy.errors import HordePolicyError, InputError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.fleets import fleet_from_history
from horde_policy.history.reading import sources_in
from horde_policy.imports.trace_frame import Trace
from horde_policy.replay.fill import ModelWeights
from horde_policy.replay.fleets import Fleet, fleet_figures, moved_to
from horde_policy.settings import AllowanceSettings
from horde_policy.ui import history, live
from horde_policy.ui.replay_inputs import drawn_of, fleet_of
from horde_policy.views.state import ViewState

__all__ = ["HISTORY_DAYS", "ChosenFleet", "chosen_fleet", "history_choices"]

HISTORY_PREFIX = "history/"
HISTORY_DAYS = {"history/1": 1, "history/7": 7}
"""The keys of a source's last days in the history, and how many they are."""


@dataclass(frozen=True, slots=True)
class ChosenFleet:
    """What the address names: a key that changes with its workers, the snapshot beside it, and what makes it.

    Attributes
    ----------
    key
        Equal keys give equal fleets.
    seen
        The look at the source, whose counts tell how often a model is asked for; null if it is not configured here.
    make
        Gives the fleet for a trace, in any thread; raises ``InputError`` or ``StoreError``.
    """

    key: str
    seen: live.Seen | None
    make: Callable[[ModelWeights, Trace], Fleet]

    @property
    def snapshot(self) -> Snapshot | None:
        """What the source says now; null if it has not answered."""
        return None if self.seen is None else self.seen.snapshot


def history_choices(snapshot: Snapshot | None) -> dict[str, str]:
    """Return key → title of the source's last days, as far as the configured history has any of it."""
    if snapshot is None or _recorded_until(snapshot.source) is None:
        return {}
    return {key: f"as recorded, the last {'day' if days == 1 else f'{days} days'}" for key, days in HISTORY_DAYS.items()}


def chosen_fleet(state: ViewState) -> ChosenFleet:
    """Return the fleet that an address names; a source is asked only when that is due."""
    named = state.fleet
    own = named == "source" or named.startswith(("drawn/", HISTORY_PREFIX))
    seen = live.look_at(state.source if own else named)
    snapshot = None if seen is None else seen.snapshot
    speed = state.settings.assumed_speed_tok_per_s
    key = f"{named}|{'' if seen is None or snapshot is None else seen.snapshot_id}|{speed}"
    if named.startswith(HISTORY_PREFIX):
        return _recorded(named, seen, state.settings)

    def make(weights: ModelWeights, _trace: Trace) -> Fleet:
        drawn = drawn_of(named)
        if drawn is None and snapshot is None:
            raise InputError("fleet", "", named, "is no source that is configured here, or it has not answered yet")
        return fleet_of(drawn, snapshot, weights, speed)

    return ChosenFleet(key, seen, make)


def _recorded_until(source: str) -> datetime | None:
    """Return the last whole hour of a source's history; null where there is no history of it, or it cannot be read.

    To the hour, so that a recorder at work does not make another fleet at each poll.
    """
    try:
        store = history.open_store()
        found = None if store is None else next((span for span in sources_in(store) if span.name == source), None)
    except HordePolicyError:  # the pages of the history say so
        return None
    if found is None or found.first is None or found.last is None:
        return None
    hour = found.last.replace(minute=0, second=0, microsecond=0)
    return hour if hour > found.first else found.last


def _recorded(named: str, seen: live.Seen | None, settings: AllowanceSettings) -> ChosenFleet:
    snapshot = None if seen is None else seen.snapshot
    end = None if snapshot is None else _recorded_until(snapshot.source)
    source = "" if snapshot is None else snapshot.source
    store = None if end is None else history.open_store()

    def make(_weights: ModelWeights, trace: Trace) -> Fleet:
        days = HISTORY_DAYS.get(named)
        if days is None:
            raise InputError("fleet", "", named, "must be one of " + ", ".join(HISTORY_DAYS))
        if store is None or end is None:
            raise InputError("fleet", "", named, "needs a history of the source, and there is none here")
        found = fleet_from_history(store, end - timedelta(days=days), end, settings=settings, source=source)
        fleet = Fleet(frame=found.frame, stamp={**found.stamp, **fleet_figures(found.frame)})
        first = trace.frame["created"].min()
        assert isinstance(first, datetime), "a trace that is replayed has a request"
        return moved_to(fleet, first, whole_days=trace.dated)

    return ChosenFleet(f"{named}|{source}|{end}|{settings.digest()}", seen, make)
