"""What a sweep of the page replays: the Replay page's traffic and fleets, under a load, checked before anything runs."""

import math
from dataclasses import dataclass

from horde_policy.errors import InputError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.replay.fill_rule import FillRule
from horde_policy.settings import AllowanceSettings, ReplaySettings
from horde_policy.sweep.axes import Listed
from horde_policy.sweep.grid import Plan, parse_grid, plan
from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.stage import check_plan
from horde_policy.ui.replay_inputs import Library, drawn_of, fleet_of

__all__ = ["MOST_REQUESTS_REPLAYED", "Wanted", "inputs_and_plan", "requests_of"]

MOST_REQUESTS_REPLAYED = 400_000_000
"""More than this, over all replays, is for the command, which has no limit and can use a cluster."""

MOST_POINTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A sweep as the page asks for it.

    Attributes
    ----------
    traffic, fleet
        As the Replay page names them; a fleet is a source's key or ``drawn/…``.
    copies
        How many copies of the traffic are a load of 1.
    grid
        The grid as TOML.
    settings
        Those in force.
    """

    traffic: str
    fleet: str
    copies: int
    grid: str
    settings: AllowanceSettings


def inputs_and_plan(library: Library, wanted: Wanted, snapshot: Snapshot | None) -> tuple[SweepInputs, Plan]:
    """Return what is replayed, and under what.

    Raises
    ------
    InputError
        The traffic or the fleet is not there, or the whole is more than a page should start.
    ConfigError
        The grid makes no sense, by itself or for this traffic.
    """
    baseline = ReplaySettings.lifted(wanted.settings)
    grid = parse_grid(wanted.grid)
    points = grid.points or math.prod(len(axis.values) for axis in grid.axes.values() if isinstance(axis, Listed))
    if points > MOST_POINTS:
        hint = "try fewer values or a random or Sobol search, or use the sweep command"
        raise InputError("sweep", "", points, f"combinations are more than the page's {MOST_POINTS:,}", hint=hint)
    planned = plan(grid, baseline)
    weighted = any(s.fill is not None and FillRule.parsed(s.fill).models == "weighted" for s in planned.scenarios)
    drawn = drawn_of(wanted.fleet)
    if drawn is None and snapshot is None:
        raise InputError("fleet", "", wanted.fleet, "has no snapshot yet: the source has not answered, or is not configured")
    weights = library.demand(snapshot)
    fleet = fleet_of(drawn, snapshot, weights, baseline.assumed_speed_tok_per_s)
    inputs = SweepInputs(
        trace=library.trace(wanted.traffic),
        fleet=fleet.frame,
        weights=weights if weighted else None,
        traffic_stamp={},
        fleet_stamp=fleet.stamp,
        base_load=float(wanted.copies),
    )
    checked = check_plan(planned, inputs)
    asked = requests_of(inputs, checked)
    if asked > MOST_REQUESTS_REPLAYED:
        hint = "try fewer values, copies or seeds, or use the sweep command, which has no limit"
        raise InputError("sweep", "", asked, f"requests to replay are more than the page's {MOST_REQUESTS_REPLAYED:,}", hint=hint)
    return inputs, checked


def requests_of(inputs: SweepInputs, planned: Plan) -> int:
    """Return about how many requests a plan replays in all."""
    under = sum(scenario.load for scenario in planned.scenarios) * inputs.base_load
    return round(inputs.trace.frame.height * under * len(planned.points))
