"""What a page shows as one frozen value, read from the URL with our own checks and written back to it (T6).

The URL is the only place where the state of a view lives: a link opened elsewhere shows the same, and back and forward
work. A value that cannot be read never stops a page: it falls back to its default, and a note says so. What equals the
default is not written, so that a link holds what its sender changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Self

from horde_policy.errors import shown
from horde_policy.replay.fill_rule import FillRule
from horde_policy.settings import AllowanceSettings
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_LENGTH_TOKENS
from horde_policy.views.address_values import Parameter, Query, read_values
from horde_policy.views.budget_state import BUDGET_NAMES, BudgetState, parse_budget_state
from horde_policy.views.parameters import (
    MOST_RUNS,
    PARAMETERS,
    SETTING_PARAMETERS,
    TRIED_PARAMETERS,
    as_written,
    changed_settings,
    distinct_runs,
    read_settings,
)
from horde_policy.views.replay_state import REPLAY_NAMES, ReplayAsked, parse_replay_asked
from horde_policy.views.sweep_state import SWEEP_NAMES, SweepAsked, parse_sweep_asked

__all__ = ["DEMO", "ViewState", "parse_view_state"]

DEFAULT_FILL = str(FillRule(models="weighted"))

DEMO = "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """What a page shows.

    Attributes
    ----------
    source
        Key of the source in the catalogue of sources.
    first_source
        The source that an address without one stands for: the deployment's first, which links need not name. It is no part of
        what is shown.
    refresh_s
        Seconds between two looks, 0 for off.
    max_length_tokens, max_context_tokens
        The size and the context of the request that the figures are for.
    grouped
        Whether models that differ only in their backend's prefix are one row.
    settings
        The allowance's settings, by default those of the deployment.
    models
        The models that a request names (the model page).
    find, states, sort, descending
        What the board shows and in which order.
    wall
        Whether the page is meant for a screen on a wall: large, without controls.
    step
        The step of the workshop that is being held, 0 for none, 9 for its finish; it goes along to every page.
    answers
        Whether the guide shows the step's figures, and not the question alone.
    traffic, hours, copies, keep_percent, fill
        The traffic of a replay: its key, hours from and to after its first request (empty: all of it), how often it is
        superposed, which share of it is kept, the fill rule in words.
    fleet
        The fleet of a replay: ``source`` for the source's, the key of a source, or ``drawn/…`` for a parametric one.
    runs
        The settings that a replay compares with the baseline, each as ``name=value`` pairs.
    range_name, from_at, to_at
        The range of the history: one of :data:`~horde_policy.views.parameters.RANGES_S` up to the last poll, or between two
        instants where both are given.
    queue_change_tokens, lost, added_tok_per_s, added_max_length, tried
        What the model page tries: a longer or shorter queue, workers lost by id, a worker added (0 tok/s: none) and its size,
        other settings (null: those in force).
    budget
        What the Budget page shows.
    sweep
        What the Sweep page shows.
    replay
        How the Replay page's figures are looked at, and the map of its fill rule.

    Examples
    --------
    >>> state, notes = parse_view_state({"size": ["512"], "m": ["a", "b"]}, AllowanceSettings())
    >>> state.max_length_tokens, state.models, notes
    (512, ('a', 'b'), ())
    >>> state.query(AllowanceSettings())
    {'size': ['512'], 'm': ['a', 'b']}
    """

    source: str = DEMO
    first_source: str = DEMO
    refresh_s: int = 30
    max_length_tokens: int = DEFAULT_MAX_LENGTH_TOKENS
    max_context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS
    grouped: bool = False
    settings: AllowanceSettings = field(default_factory=AllowanceSettings)
    models: tuple[str, ...] = ()
    find: str = ""
    states: tuple[str, ...] = ()
    sort: str = "model"
    descending: bool = False
    wall: bool = False
    step: int = 0
    answers: bool = False
    traffic: str = "ragpulse_week1"
    hours: tuple[float, ...] = (24.0, 48.0)
    copies: int = 60
    keep_percent: int = 100
    fill: str = DEFAULT_FILL
    fleet: str = "source"
    runs: tuple[str, ...] = ("ceiling_tokens=2048,floor_tokens=256", "rule=old")
    range_name: str = "24h"
    from_at: datetime | None = None
    to_at: datetime | None = None
    queue_change_tokens: int = 0
    lost: tuple[str, ...] = ()
    added_tok_per_s: int = 0
    added_max_length: int = 4096
    tried: AllowanceSettings | None = None
    budget: BudgetState = field(default_factory=BudgetState)
    sweep: SweepAsked = field(default_factory=SweepAsked)
    replay: ReplayAsked = field(default_factory=ReplayAsked)

    def changed(self, **changes: object) -> Self:
        """Return the state with some fields replaced.

        >>> ViewState().changed(find="8b").find
        '8b'
        """
        return replace(self, **changes)  # type: ignore[arg-type]

    def query(self, base: AllowanceSettings) -> dict[str, list[str]]:
        """Return the state as a query string: what differs from the defaults, settings from ``base``, in a fixed order."""
        return self._written(base, PARAMETERS, only_shared=False)

    def shared_query(self, base: AllowanceSettings, **changes: object) -> dict[str, list[str]]:
        """Return what a link to another page carries: what all pages share, and the fields named in ``changes``.

        >>> ViewState(find="8b", refresh_s=60).shared_query(AllowanceSettings(), models=("a",))
        {'refresh': ['60'], 'm': ['a']}
        """
        kept = [p for p in PARAMETERS if p.shared or p.field in changes]
        return self.changed(**changes)._written(base, kept)

    def _written(
        self, base: AllowanceSettings, parameters: Iterable[Parameter], *, only_shared: bool = True
    ) -> dict[str, list[str]]:
        default = _default_of(self.traffic, self.first_source)
        query = {
            p.name: list(p.write(getattr(self, p.field)))
            for p in parameters
            if getattr(self, p.field) != getattr(default, p.field)
        }
        query |= changed_settings(SETTING_PARAMETERS, self.settings, base)
        if self.tried is not None and not only_shared:
            query |= changed_settings(TRIED_PARAMETERS, self.tried, self.settings)
        return query if only_shared else query | self.replay.query() | self.sweep.query() | self.budget.query()


@lru_cache(maxsize=64)
def _default_of(traffic: str, source: str) -> ViewState:
    """Return what an address says that names a traffic and nothing else; a board asks for a link of every row."""
    return ViewState(source=source).changed(**_load_of(traffic))


def _load_of(traffic: str) -> dict[str, object]:
    """Return the range and the load that a traffic has where an address names none: the demo's own, else all of it once."""
    return {} if traffic == ViewState().traffic else {"hours": (), "copies": 1}


def _repeated(query: Query, names: Iterable[str]) -> list[str]:
    """Return a note on each parameter that may be given once and is given with different values."""
    several = {parameter.name for parameter in PARAMETERS if parameter.several}
    return [
        f"The link's {name} is given {len(given)} times; the last, {shown(given[-1])}, counts."
        for name, given in query.items()
        if name in names and name not in several and len(set(given)) > 1
    ]


def _backwards(values: dict[str, object]) -> bool:
    start, end = values.get("from_at"), values.get("to_at")
    return isinstance(start, datetime) and isinstance(end, datetime) and end <= start


def parse_view_state(query: Query, base: AllowanceSettings, first_source: str = DEMO) -> tuple[ViewState, tuple[str, ...]]:
    """Return the state that a query string stands for, and a note for every value that was left out.

    Parameters
    ----------
    query
        Name → values, as the browser sent them; anything may stand in it.
    base
        The deployment's settings, from which the link's settings differ.
    first_source
        The deployment's first source, which an address stands for that names none.

    Notes
    -----
    Of a value that is given several times the last counts, and a note says so, but for ``m``, ``state``, ``run`` and ``lost``.
    A setting may be spelled as in commands (:data:`~horde_policy.views.parameters.AS_IN_COMMANDS`). Nothing raises.

    Examples
    --------
    >>> state, notes = parse_view_state({"ceiling": ["1e309"], "size": ["-3"], "colour": ["red"]}, AllowanceSettings())
    >>> state == ViewState()
    True
    >>> for note in notes:
    ...     print(note)
    The link's size='-3' is left out: it must be a whole number from 16 to 16384.
    The link's ceiling='1e309' is left out: it must be a whole number from 1 to 16384.
    The link's colour is left out: no page knows it.
    """
    query = as_written(query)
    values, notes = read_values(PARAMETERS, query)
    values = _load_of(str(values.get("traffic", ViewState().traffic))) | values
    more_runs = len(distinct_runs(query.get("run", ()))) - MOST_RUNS
    if more_runs > 0 and "runs" in values:
        notes.append(f"The link's run is given for {MOST_RUNS + more_runs} settings; the first {MOST_RUNS} are compared.")
    if (values.get("from_at") is None) != (values.get("to_at") is None) or _backwards(values):
        notes.append("The link's range is left out: it must have a from, and a to that is later.")
        values |= {"from_at": None, "to_at": None}
    settings, setting_notes = read_settings(query, base, SETTING_PARAMETERS)
    tried, tried_notes = read_settings(query, settings, TRIED_PARAMETERS)
    if tried != settings:
        values["tried"] = tried
    values["budget"], budget_notes = parse_budget_state(query)
    notes += budget_notes
    values["sweep"], sweep_notes = parse_sweep_asked(query)
    values["replay"], replay_notes = parse_replay_asked(query)
    setting_notes += [*tried_notes, *sweep_notes, *replay_notes]
    known = {p.name for p in PARAMETERS} | {*SETTING_PARAMETERS, *TRIED_PARAMETERS, *BUDGET_NAMES, *SWEEP_NAMES, *REPLAY_NAMES}
    strange = [f"The link's {shown(name)[1:-1]} is left out: no page knows it." for name in query if name not in known]
    notes += _repeated(query, known - {*BUDGET_NAMES, *SWEEP_NAMES, *REPLAY_NAMES})
    state = ViewState(settings=settings, source=first_source, first_source=first_source).changed(**values)
    return state, (*notes, *setting_notes, *strange)
