"""What of a sweep the Replay page can show: the traffic, load, fill rule and fleet of a sweep that a page made, as an address."""

import math
from collections.abc import Mapping
from typing import Any, Final

from horde_policy.replay.fill_rule import FillRule
from horde_policy.settings import AllowanceSettings, ReplaySettings
from horde_policy.views.parameters import SETTING_PARAMETERS
from horde_policy.views.replay_runs import LETTERS, run_text
from horde_policy.views.replay_state import ReplayAsked
from horde_policy.views.state import ViewState

__all__ = ["ORIGIN", "base_load_of", "replay_query", "why_not"]

ORIGIN: Final = "page"
"""The part of a sweep's stamp that holds the page's own keys of traffic and fleet."""


def why_not(stamp: Mapping[str, Any]) -> str:
    """Return why the Replay page cannot show a sweep's settings; empty if it can.

    >>> why_not({"page": {"traffic": "ragpulse_week1", "fleet": "drawn/8/3/20/50/1"}}), why_not({})[:24]
    ('', 'The sweep was not made o')
    """
    origin = stamp.get(ORIGIN)
    if isinstance(origin, Mapping) and all(isinstance(origin.get(part), str) for part in ("traffic", "fleet")):
        return ""
    return "The sweep was not made on this page: upload its traffic on the Replay page to see these settings there."


def replay_query(
    stamp: Mapping[str, Any],
    settings: ReplaySettings,
    baseline: ReplaySettings,
    *,
    load: float,
    fill: str | None,
    base: AllowanceSettings,
) -> dict[str, list[str]]:
    """Return the query of the Replay page that compares settings with the baseline on a sweep's traffic and fleet.

    Parameters
    ----------
    stamp
        The sweep's, of which :func:`why_not` has nothing to say.
    settings, baseline
        The point's, and those in force.
    load, fill
        The scenario. Seed 0 draws what the Replay page draws; a load in odd parts is rounded to a whole per cent.
    base
        The deployment's settings, from which a link's settings differ.

    Notes
    -----
    The page's own baseline has the five figures of the allowance; what else differs stands in the runs. The settings' own
    sliders are open, and so their marks are drawn.
    """
    origin = stamp[ORIGIN]
    times = load * base_load_of(stamp)
    copies = max(1, math.ceil(times))
    page = base.changed(**{name: getattr(baseline, name) for name in SETTING_PARAMETERS.values()})
    lifted = ReplaySettings.lifted(page)
    compared = [each for each in dict.fromkeys((baseline, settings)) if each != lifted]
    place = compared.index(settings) if settings in compared else 0
    state = ViewState(
        settings=page,
        traffic=str(origin["traffic"]),
        hours=(),
        copies=copies,
        keep_percent=max(1, round(100 * times / copies)),
        fill=fill or str(FillRule()),
        fleet=str(origin["fleet"]),
        runs=tuple(run_text(each, lifted) for each in compared),
        replay=ReplayAsked(edited=LETTERS[1 + place] if place else ""),
    )
    return state.query(base)


def base_load_of(stamp: Mapping[str, Any]) -> float:
    """Return how many times the trace is a load of 1, whatever a file says.

    >>> base_load_of({"base_load": 30.0}), base_load_of({"base_load": float("nan")})
    (30.0, 1.0)
    """
    given = stamp.get("base_load", 1.0)
    return float(given) if isinstance(given, int | float) and math.isfinite(given) and given > 0 else 1.0
