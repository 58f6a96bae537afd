"""Replay traffic on a fleet under some settings (``replay.md``): the compiled engine's front.

A run stops after every so many events, to tell how far it is and to hear whether it is cancelled; in between it does not
hold the interpreter's lock, so several runs go side by side in plain threads.
"""

from collections.abc import Callable
from datetime import UTC, datetime

import polars as pl

from horde_policy.errors import ReplayCancelled
from horde_policy.replay.classes import World, prepare
from horde_policy.replay.kernel import run_events
from horde_policy.replay.kernel_run import table_of
from horde_policy.replay.kernel_types import DONE, PAUSED, R_ARRIVED, State
from horde_policy.replay.room import more_room, new_state
from horde_policy.replay.run_frame import run_frame
from horde_policy.settings import AllowanceSettings, ReplaySettings

__all__ = ["Cancel", "Progress", "replay", "run", "warm_up"]

Progress = Callable[[float], None]
"""Is told what share of the traffic's requests has arrived, from 0 to 1."""

Cancel = Callable[[], bool]
"""Is asked whether to stop; ``threading.Event().is_set`` will do."""

EVENTS_AT_A_TIME = 50_000


def replay(
    traffic: pl.DataFrame,
    fleet: pl.DataFrame,
    settings: AllowanceSettings,
    *,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> pl.DataFrame:
    """Return what these settings would have done with the traffic on the fleet, one row a request.

    Parameters
    ----------
    traffic, fleet
        Frames of ``replay.md``, "Inputs"; absent columns and nulls get its defaults.
    settings
        Allowance settings are lifted: what only a replay needs gets its default.
    progress
        Is told the share of requests that have arrived.
    cancel
        Is asked every 50,000 events whether to stop.

    Returns
    -------
    polars.DataFrame
        Frame :data:`~horde_policy.frames.runs.RUNS` in traffic-row order, repeated requests behind.

    Raises
    ------
    InputError
        The traffic or the fleet breaks a rule; nothing has run.
    ReplayCancelled
        ``cancel`` said so.

    Examples
    --------
    >>> from datetime import timedelta
    >>> t = datetime(2026, 11, 29, tzinfo=UTC)
    >>> traffic = pl.DataFrame({"created": [t, t], "models": [["m"], ["m"]], "requester": ["anonymous"] * 2,
    ...                         "max_length": [4096, 80]})
    >>> fleet = pl.DataFrame({"worker_id": ["w"], "online_from": [t], "models": [["m"]], "max_length": [4096],
    ...                       "max_context_length": [4096], "speed": [10.0]})
    >>> replay(traffic, fleet, AllowanceSettings()).select("outcome", "allowance", "queue_wait_s", "status").rows()
    [('free', 4096, 0.0, 'completed'), ('free', 4096, 409.6, 'completed')]
    """
    return run(prepare(traffic, fleet), settings, progress=progress, cancel=cancel)


def run(
    world: World, settings: AllowanceSettings, *, progress: Progress | None = None, cancel: Cancel | None = None
) -> pl.DataFrame:
    """Return what :func:`replay` returns, for traffic and fleet that are prepared; a world serves any number of runs."""
    return run_frame(world, final_state(world, ReplaySettings.lifted(settings), progress=progress, cancel=cancel))


def final_state(
    world: World, settings: ReplaySettings, *, progress: Progress | None = None, cancel: Cancel | None = None
) -> State:
    """Return the engine's state when nothing more can happen."""
    table, state = table_of(new_state(world, settings))
    stop = PAUSED
    while stop != DONE:
        if cancel is not None and cancel():
            raise ReplayCancelled("the replay was cancelled; nothing of it is kept")
        stop = run_events(table, EVENTS_AT_A_TIME)
        if stop == PAUSED and progress is not None:
            progress(float(state.registers[R_ARRIVED]) / max(world.requests, 1))
        elif stop not in {PAUSED, DONE}:
            table, state = table_of(more_room(state, stop))
    if progress is not None:
        progress(1.0)
    return state


def warm_up() -> None:
    """Compile the engine, or read it from the disk, by replaying a tiny world; for a background thread.

    The first time after an installation takes tens of seconds, later about one.

    >>> warm_up()
    """
    at = datetime(2026, 1, 1, tzinfo=UTC)
    traffic = pl.DataFrame(
        {"created": [at], "models": [["m"]], "requester": ["anonymous"], "max_length": [16]},
        schema_overrides={"created": pl.Datetime("us", "UTC")},
    )
    fleet = pl.DataFrame(
        {"worker_id": ["w"], "online_from": [at], "models": [["m"]], "max_length": [16], "max_context_length": [2048]},
        schema_overrides={"online_from": pl.Datetime("us", "UTC")},
    ).with_columns(speed=pl.lit(1.0))
    replay(traffic, fleet, ReplaySettings())
