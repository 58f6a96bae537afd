"""One scenario ready to be replayed under any settings: its world, and what each request counts under (day, kind, model)."""

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from horde_policy.errors import ConfigError
from horde_policy.frames.decisions import SIZE_EDGES_TOKENS
from horde_policy.frames.traffic import REQUESTER
from horde_policy.replay import World, prepare
from horde_policy.replay.fill import Traffic, filled
from horde_policy.replay.fill_rule import FillRule
from horde_policy.sweep.grid import Plan, Scenario
from horde_policy.sweep.inputs import SweepInputs

__all__ = ["AS_IT_IS", "Stage", "check_plan", "day_starts", "days_of", "model_groups", "scenario_traffic", "stage_of"]

DAY = timedelta(days=1)
DAY_US = 86_400_000_000

MOST_ROWS = 250_000
"""A sweep's rows are held in memory with their waits: some kilobytes each."""

AS_IT_IS = FillRule(can_pay=0.0, allow_downgrade=0.0)
"""For traffic that names everything: what it leaves out gets the replay contract's defaults."""

OUTSIDE_GROUPS = ("any model", "several models", "no worker serves it")

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A scenario's traffic and fleet, prepared, and its requests' marks in order of arrival.

    Attributes
    ----------
    world
        For the engine.
    day, requester, group, size
        Of each request: the day's place from 0, the place in ``REQUESTER``, in :func:`model_groups`, and in ``SIZES`` (A25).
    output
        Tokens that its answer takes, no more than it asked for.
    days, groups
        How many days the requests' source spans, and how many model groups there are.
    utilisation
        Tokens asked for and used ÷ tokens that the fleet could make in the same time; null without a span or a fleet.
    """

    world: World
    day: Array
    requester: Array
    group: Array
    size: Array
    output: Array
    days: int
    groups: int
    utilisation: float | None


def days_of(inputs: SweepInputs) -> int:
    """Return how many days the requests span: day 1 is the first 24 hours from the first request on, and so on."""
    created = inputs.trace.frame["created"].to_physical()
    first, last = created.min(), created.max()
    assert isinstance(first, int)
    assert isinstance(last, int)
    return (last - first) // DAY_US + 1


def day_starts(inputs: SweepInputs) -> pl.Series:
    """Return the instant at which each day begins."""
    first = inputs.trace.frame["created"].min()
    return pl.Series("day_from", [first + DAY * day for day in range(days_of(inputs))], dtype=pl.Datetime("us", "UTC"))  # type: ignore[operator]


def model_groups(fleet: pl.DataFrame) -> tuple[str, ...]:
    """Return what requests are told apart by for fairness: the fleet's models in order, then those without one model of it."""
    return (*fleet["models"].explode(empty_as_null=False).unique().sort().to_list(), *OUTSIDE_GROUPS)


def check_plan(wanted: Plan, inputs: SweepInputs) -> Plan:
    """Return the plan without scenarios that cannot differ; raise for what the inputs do not allow.

    Where the traffic names everything itself, a seed changes nothing at a load of 1: only the first is kept, the others
    are counted as dropped.

    Raises
    ------
    ConfigError
        A fill rule for traffic that names everything, or a day that the traffic does not have.
    """
    if inputs.names_everything and any(s.fill is not None for s in wanted.scenarios):
        fill = next(s.fill for s in wanted.scenarios if s.fill is not None)
        already = inputs.traffic_stamp.get("fill")
        by = f" by {already}" if isinstance(already, str) else ""
        raise ConfigError("fill", fill, f"makes no sense here: this traffic names everything already{by}; give the trace itself")
    days = days_of(inputs)
    if wanted.days is not None and wanted.days[-1] > days:
        raise ConfigError("days", wanted.days[-1], f"is not a day of this traffic, which has days 1 to {days}")
    first_seed = wanted.scenarios[0].seed
    kept = tuple(
        s for s in wanted.scenarios if s.load * inputs.base_load != 1 or s.seed == first_seed or not inputs.names_everything
    )
    dropped = dict(wanted.dropped)
    if len(kept) < len(wanted.scenarios):
        reason = "a further seed at load 1: this traffic names everything, so the seed draws nothing"
        dropped[reason] = (len(wanted.scenarios) - len(kept)) * len(wanted.points)
    rows = len(kept) * len(wanted.points) * (days if wanted.days is None else len(wanted.days))
    if rows > MOST_ROWS:
        raise ConfigError("grid", rows, f"rows (points × scenarios × days) are more than {MOST_ROWS:,}")
    return replace(wanted, scenarios=kept, dropped=dropped)


def scenario_traffic(inputs: SweepInputs, scenario: Scenario) -> Traffic:
    """Return the scenario's traffic: so many copies as the load has parts, thinned to it, all draws moved by the seed.

    A load of 1.5 lays two copies over each other and keeps three quarters of each (traces.md §4: never stretched). Seed 0
    keeps the trace's own draws; any other draws everything anew, the moves of the copies too.
    """
    trace = inputs.trace
    if scenario.seed:
        trace = replace(trace, name=f"{trace.name}#{scenario.seed}")
    times = scenario.load * inputs.base_load
    copies = math.ceil(times)
    without = AS_IT_IS if inputs.names_everything else FillRule()
    rule = without if scenario.fill is None else FillRule.parsed(scenario.fill)
    return filled(trace, rule, weights=inputs.weights, thin=times / copies, superpose=copies, seed=scenario.seed)


def stage_of(inputs: SweepInputs, scenario: Scenario) -> Stage:
    """Return the scenario prepared; many replays, at the same time too, can share it.

    Raises
    ------
    InputError
        The fill rule needs what is not there.
    """
    traffic = scenario_traffic(inputs, scenario).frame
    world = prepare(traffic, inputs.fleet)
    order = slice(None) if world.order is None else world.order
    created = traffic["created"].to_physical().to_numpy()
    first = inputs.trace.frame["created"].to_physical().min()
    days = days_of(inputs)
    # What a copy's move carries past the end still belongs to the last day.
    day = np.clip((created - first) // DAY_US, 0, days - 1).astype(np.int16)
    return Stage(
        world=world,
        day=day[order],
        requester=traffic["requester"].cast(REQUESTER).to_physical().to_numpy().astype(np.uint8)[order],
        group=_groups(traffic["models"], inputs.fleet)[order],
        size=np.searchsorted(SIZE_EDGES_TOKENS, traffic["max_length"].to_numpy(), side="left").astype(np.uint8)[order],
        output=np.minimum(traffic["output_tokens"].to_numpy(), traffic["max_length"].to_numpy()).astype(np.int32)[order],
        days=days,
        groups=len(model_groups(inputs.fleet)),
        utilisation=_utilisation(traffic, inputs.fleet),
    )


def _groups(models: pl.Series, fleet: pl.DataFrame) -> Array:
    """Return each request's place in the model groups: its model, if it names one alone."""
    names = model_groups(fleet)
    served = len(names) - len(OUTSIDE_GROUPS)
    sizes = models.list.len().to_numpy()
    first = models.list.first().cast(pl.Enum(list(names[:served])), strict=False).to_physical()
    codes = first.cast(pl.Int16).fill_null(served + 2).to_numpy()
    return np.where(sizes == 0, served, np.where(sizes > 1, served + 1, codes)).astype(np.int16)


def _utilisation(traffic: pl.DataFrame, fleet: pl.DataFrame) -> float | None:
    created = traffic["created"]
    if not traffic.height or created.min() == created.max():
        return None
    begin, end = (int(created.to_physical().min()), int(created.to_physical().max()))  # type: ignore[arg-type]
    since = fleet["online_from"].to_physical().to_numpy()
    until = fleet["online_to"].to_physical().fill_null(end).to_numpy()
    there_us = np.clip(np.minimum(until, end) - np.maximum(since, begin), 0, None)
    could = float((there_us * (fleet["speed"] * fleet["threads"]).to_numpy()).sum()) / 1e6
    used = int(np.minimum(traffic["output_tokens"].to_numpy(), traffic["max_length"].to_numpy()).sum())
    return used / could if could > 0 else None
