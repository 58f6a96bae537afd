"""Compile what a sweep runs, or read it from the disk, before any replay is counted as under way."""

from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import polars as pl

from horde_policy.frames.fleet import normalised_fleet
from horde_policy.imports.trace_frame import TRACE, Trace
from horde_policy.replay.draws import COMPILED_FROM_ROWS, u_of_rows
from horde_policy.replay.engine import final_state
from horde_policy.replay.fill_rule import FillRule
from horde_policy.settings import ReplaySettings
from horde_policy.sweep.counting import outcome_of
from horde_policy.sweep.grid import Scenario
from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.stage import stage_of

__all__ = ["warm_up_sweep"]

AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


def warm_up_sweep() -> None:
    """Replay and count two made-up requests, so that draws, engine and counting are compiled; for a background thread.

    The first time after an installation takes tens of seconds, later about one.

    >>> warm_up_sweep()
    """
    u_of_rows("warm-up", "warm-up", np.arange(COMPILED_FROM_ROWS))
    rows = [{"row": row, "created": AT + timedelta(seconds=row), "output_tokens": 512, "failed": False} for row in range(2)]
    frame = pl.DataFrame([{name: row.get(name) for name in TRACE.columns} for row in rows], schema=TRACE.polars_schema())
    trace = Trace(name="warm-up", format="warm-up", frame=frame, rows_read=2, refused={}, synthetic=True)
    worker = {"worker_id": ["w"], "online_from": [AT], "models": [["m"]], "max_length": [16], "max_context_length": [16]}
    fleet = normalised_fleet(
        pl.DataFrame(worker, schema_overrides={"online_from": pl.Datetime("us", "UTC")}).with_columns(speed=1.0)
    )
    inputs = SweepInputs(trace=trace, fleet=fleet, traffic_stamp={}, fleet_stamp={})
    # Refused clients return, so that repeated requests are counted too.
    settings = ReplaySettings(ceiling_tokens=1, floor_tokens=1, client="return", return_times=1)
    stage = stage_of(inputs, Scenario(load=1.5, seed=0, fill=str(FillRule(anonymous=0.5, can_pay=0.0))))
    outcome_of(stage, final_state(stage.world, settings))
