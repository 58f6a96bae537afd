"""What a page shows as one frozen value, read from the URL with our own checks and written back to it (T6).

The URL is the only place where the state of a view lives: a link opened elsewhere shows the same, and back and forward
work. A value that cannot be read never stops a page: it falls back to its default, and a note says so. What equals the
default is not written, so that a link holds what its sender changed.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, Self

from horde_policy.errors import ConfigError, InputError, shown
from horde_policy.replay.fill import MOST_COPIES
from horde_policy.replay.fill_rule import FillRule
from horde_policy.settings import AllowanceSettings
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_LENGTH_TOKENS, MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views.budget_state import BUDGET_NAMES, BudgetState, parse_budget_state
from horde_policy.views.sweep_state import SWEEP_NAMES, SweepAsked, parse_sweep_asked
from horde_policy.views.words import STATES

__all__ = [
    "MOST_QUEUE_CHANGE_TOKENS",
    "MOST_RUNS",
    "PARAMETERS",
    "RANGES_S",
    "REFRESH_CHOICES_S",
    "SETTING_PARAMETERS",
    "SORTS",
    "TRIED_PARAMETERS",
    "WORKSHOP_STEPS",
    "Parameter",
    "Query",
    "ViewState",
    "hours_from_text",
    "hours_text",
    "parse_view_state",
    "size_from_text",
]

Query = Mapping[str, Sequence[str]]
"""A query string: name → its values in order."""

REFRESH_CHOICES_S: Final = (0, 10, 30, 60, 300)
"""Off, 10 s, 30 s, 1 min, 5 min."""

SORTS: Final = ("model", "state", "allowance", "wait", "speed", "queued", "workers", "largest", "demand")
"""What the board can be sorted by; ties fall back to the name, so that the order is total and stable."""

RANGES_S: Final[dict[str, int]] = {"1h": 3_600, "6h": 21_600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000}
"""Ranges of the history by their name in the address; each ends with the last poll."""

MOST_QUEUE_CHANGE_TOKENS = 1_000_000
MOST_ADDED_TOK_PER_S = 10_000
LEAST_MAX_LENGTH_TOKENS = 16
LEAST_CONTEXT_TOKENS = 80
MOST_CONTEXT_TOKENS = 1_048_576
MOST_NAME_CHARACTERS = 1_000
MOST_NAMES = 20
MOST_FIND_CHARACTERS = 200
MOST_RUNS = 4
"""Settings that a replay compares with the baseline."""
MOST_RUN_CHARACTERS = 500
MOST_HOURS = 1_000_000
WORKSHOP_STEPS = 8
NO_RUN = "none"
"""Stands in an address for a replay of the baseline alone."""
DEFAULT_FILL = str(FillRule(models="weighted"))

_WHOLE = re.compile(r"[0-9]{1,9}")
_REAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_SIGNED = re.compile(r"-?[0-9]{1,9}")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}Z")
_SOURCE = re.compile(r"[\w .:+-]{1,100}")
_HOURS = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,3})?)-([0-9]{1,7}(?:\.[0-9]{1,3})?)")
_CHOSEN = re.compile(r"[A-Za-z0-9_./-]{1,120}")


class _Unreadable(Exception):  # noqa: N818 (never leaves this module)
    """A value of the URL breaks the rule that the message names."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the URL: the field it stands for, how it is read and written, and whether all pages share it."""

    name: str
    field: str
    read: Callable[[Sequence[str]], Any]
    write: Callable[[Any], Sequence[str]]
    shared: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """What a page shows.

    Attributes
    ----------
    source
        Key of the source in the catalogue of sources.
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
        The step of the workshop that is being held, 0 for none; it goes along to every page.
    traffic, hours, copies, keep_percent, fill
        The traffic of a replay: its key, hours from and to after its first request (empty: all of it), how often it is
        superposed, which share of it is kept, the fill rule in words.
    fleet
        The fleet of a replay: ``source`` for the source's, the key of a source, or ``drawn/…`` for a parametric one.
    runs
        The settings that a replay compares with the baseline, each as ``name=value`` pairs.
    range_name, from_at, to_at
        The range of the history: one of :data:`RANGES_S` up to the last poll, or between two instants where both are given.
    queue_change_tokens, lost, added_tok_per_s, added_max_length, tried
        What the model page tries: a longer or shorter queue, workers lost by id, a worker added (0 tok/s: none) and its size,
        other settings (null: those in force).
    budget
        What the Budget page shows.
    sweep
        What the Sweep page shows.

    Examples
    --------
    >>> state, notes = parse_view_state({"size": ["512"], "m": ["a", "b"]}, AllowanceSettings())
    >>> state.max_length_tokens, state.models, notes
    (512, ('a', 'b'), ())
    >>> state.query(AllowanceSettings())
    {'size': ['512'], 'm': ['a', 'b']}
    """

    source: str = "demo"
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
        default = _default_of(self.traffic)
        query = {
            p.name: list(p.write(getattr(self, p.field)))
            for p in parameters
            if getattr(self, p.field) != getattr(default, p.field)
        }
        query |= _changed_settings(SETTING_PARAMETERS, self.settings, base)
        if self.tried is not None and not only_shared:
            query |= _changed_settings(TRIED_PARAMETERS, self.tried, self.settings)
        return query if only_shared else query | self.sweep.query() | self.budget.query()


@lru_cache(maxsize=64)
def _default_of(traffic: str) -> ViewState:
    """Return what an address says that names a traffic and nothing else; a board asks for a link of every row."""
    return ViewState().changed(**_load_of(traffic))


def _load_of(traffic: str) -> dict[str, object]:
    """Return the range and the load that a traffic has where an address names none: the demo's own, else all of it once."""
    return {} if traffic == ViewState().traffic else {"hours": (), "copies": 1}


def _changed_settings(names: Mapping[str, str], settings: AllowanceSettings, base: AllowanceSettings) -> dict[str, list[str]]:
    """Return parameter → text of the settings that differ from ``base``."""
    changed = {name: getattr(settings, setting) for name, setting in names.items()}
    return {name: [_setting_text(value)] for name, value in changed.items() if value != getattr(base, names[name])}


# --- reading one parameter --------------------------------------------------------------------------------------------


def _whole(least: int, most: int) -> Callable[[Sequence[str]], int]:
    def read(values: Sequence[str]) -> int:
        text = values[-1]
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
            raise _Unreadable(f"must be a whole number from {least} to {most}")
        return int(text)

    return read


def _signed(most: int) -> Callable[[Sequence[str]], int]:
    def read(values: Sequence[str]) -> int:
        text = values[-1]
        if not _SIGNED.fullmatch(text) or abs(int(text)) > most:
            raise _Unreadable(f"must be a whole number from {-most} to {most}")
        return int(text)

    return read


def _instant(values: Sequence[str]) -> datetime:
    rule = "must be an instant in UTC as 2026-11-29T12:00Z"
    if not _INSTANT.fullmatch(values[-1]):
        raise _Unreadable(rule)
    try:
        return datetime.fromisoformat(values[-1])
    except ValueError:
        raise _Unreadable(rule) from None


def _instant_text(at: datetime | None) -> tuple[str, ...]:
    return () if at is None else (f"{at.astimezone(UTC):%Y-%m-%dT%H:%MZ}",)


def _one_of(choices: Sequence[object], written: Callable[[Any], str] = str) -> Callable[[Sequence[str]], Any]:
    by_text = {written(choice): choice for choice in choices}

    def read(values: Sequence[str]) -> Any:
        if values[-1] not in by_text:
            raise _Unreadable("must be one of " + ", ".join(by_text))
        return by_text[values[-1]]

    return read


def _flag(values: Sequence[str]) -> bool:
    if values[-1] not in ("0", "1"):
        raise _Unreadable("must be 0 or 1")
    return values[-1] == "1"


def _source(values: Sequence[str]) -> str:
    if not _SOURCE.fullmatch(values[-1]):
        raise _Unreadable("must be the name of a source")
    return values[-1]


def _names(values: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(v for v in values if v))
    if len(names) > MOST_NAMES or any(len(name) > MOST_NAME_CHARACTERS for name in names):
        raise _Unreadable(f"must be at most {MOST_NAMES} names of at most {MOST_NAME_CHARACTERS} characters")
    return names


def _find(values: Sequence[str]) -> str:
    if len(values[-1]) > MOST_FIND_CHARACTERS:
        raise _Unreadable(f"must have at most {MOST_FIND_CHARACTERS} characters")
    return values[-1]


def _states(values: Sequence[str]) -> tuple[str, ...]:
    if any(value not in STATES for value in values):
        raise _Unreadable("must be one of " + ", ".join(STATES))
    return tuple(state for state in STATES if state in values)


def hours_from_text(text: str) -> tuple[float, ...]:
    """Return hours from and to; ``all`` is the empty range.

    Raises
    ------
    InputError
        It is no range.

    Examples
    --------
    >>> hours_from_text("24-48"), hours_from_text("all")
    ((24.0, 48.0), ())
    """
    word = text.strip().replace(" ", "")
    found = _HOURS.fullmatch(word)
    if word == "all":
        return ()
    if not found or not float(found[1]) < float(found[2]) <= MOST_HOURS:
        raise InputError("range", "", text, "must be hours from and to, as 24-48, or all")
    return float(found[1]), float(found[2])


def hours_text(hours: Sequence[float]) -> str:
    """Return a range as it is typed.

    >>> hours_text((0.0, 1.5)), hours_text(())
    ('0-1.5', 'all')
    """
    return "-".join(f"{hour:.10g}" for hour in hours) or "all"


def _hours(values: Sequence[str]) -> tuple[float, ...]:
    try:
        return hours_from_text(values[-1])
    except InputError as error:
        raise _Unreadable(error.rule) from None


def _chosen(values: Sequence[str]) -> str:
    if not _CHOSEN.fullmatch(values[-1]):
        raise _Unreadable("must be a name of letters, digits, hyphens, dots and slashes")
    return values[-1]


def _fill(values: Sequence[str]) -> str:
    try:
        return str(FillRule.parsed(values[-1]))
    except InputError as error:
        raise _Unreadable(f"is no fill rule: {error}") from None


def _runs(values: Sequence[str]) -> tuple[str, ...]:
    runs = _distinct_runs(values)
    if any(len(run) > MOST_RUN_CHARACTERS for run in runs):
        raise _Unreadable(f"must be settings of at most {MOST_RUN_CHARACTERS} characters")
    return runs[:MOST_RUNS]


def _distinct_runs(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value and value != NO_RUN))


def _one(value: object) -> tuple[str]:
    return (str(value),)


def _bit(value: object) -> tuple[str]:
    return ("1" if value else "0",)


def _refresh_text(seconds: int) -> str:
    return "off" if seconds == 0 else str(seconds)


PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("source", "source", _source, _one),
    Parameter("refresh", "refresh_s", _one_of(REFRESH_CHOICES_S, _refresh_text), lambda s: (_refresh_text(s),)),
    Parameter("size", "max_length_tokens", _whole(LEAST_MAX_LENGTH_TOKENS, MAX_LENGTH_LIMIT_TOKENS), _one),
    Parameter("context", "max_context_tokens", _whole(LEAST_CONTEXT_TOKENS, MOST_CONTEXT_TOKENS), _one),
    Parameter("grouped", "grouped", _flag, _bit),
    Parameter("m", "models", _names, tuple, shared=False),
    Parameter("find", "find", _find, _one, shared=False),
    Parameter("state", "states", _states, tuple, shared=False),
    Parameter("sort", "sort", _one_of(SORTS), _one, shared=False),
    Parameter("descending", "descending", _flag, _bit, shared=False),
    Parameter("wall", "wall", _flag, _bit, shared=False),
    Parameter("step", "step", _whole(0, WORKSHOP_STEPS), _one),
    Parameter("traffic", "traffic", _chosen, _one, shared=False),
    Parameter("hours", "hours", _hours, lambda hours: (hours_text(hours),), shared=False),
    Parameter("copies", "copies", _whole(1, MOST_COPIES), _one, shared=False),
    Parameter("keep", "keep_percent", _whole(1, 100), _one, shared=False),
    Parameter("fill", "fill", _fill, _one, shared=False),
    Parameter("fleet", "fleet", _chosen, _one, shared=False),
    Parameter("run", "runs", _runs, lambda runs: tuple(runs) or (NO_RUN,), shared=False),
    Parameter("range", "range_name", _one_of(tuple(RANGES_S)), _one),
    Parameter("from", "from_at", _instant, _instant_text),
    Parameter("to", "to_at", _instant, _instant_text),
    Parameter("queue_by", "queue_change_tokens", _signed(MOST_QUEUE_CHANGE_TOKENS), _one, shared=False),
    Parameter("lost", "lost", _names, tuple, shared=False),
    Parameter("add", "added_tok_per_s", _whole(0, MOST_ADDED_TOK_PER_S), _one, shared=False),
    Parameter("add_size", "added_max_length", _whole(LEAST_MAX_LENGTH_TOKENS, MAX_LENGTH_LIMIT_TOKENS), _one, shared=False),
)
"""Every parameter but the settings', in the order in which they are written."""

SETTING_PARAMETERS: Final[dict[str, str]] = {
    "ceiling": "ceiling_tokens",
    "floor": "floor_tokens",
    "full_wait": "wait_full_s",
    "floor_wait": "wait_floor_s",
    "assumed_speed": "assumed_speed_tok_per_s",
}
"""Parameter → setting of the allowance. Their rules (A4) are those of :class:`AllowanceSettings`."""

TRIED_PARAMETERS: Final[dict[str, str]] = {f"try_{name}": SETTING_PARAMETERS[name] for name in list(SETTING_PARAMETERS)[:4]}
"""Parameter → one of the four figures of the curve, as the model page tries it."""

_WHOLE_SETTINGS: Final = frozenset({"ceiling_tokens", "floor_tokens"})


def _setting_text(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))


def _setting(setting: str, text: str) -> float:
    pattern, kind = (_WHOLE, "a whole number") if setting in _WHOLE_SETTINGS else (_REAL, "a number of at least 0")
    if not pattern.fullmatch(text):
        raise _Unreadable(f"must be {kind}")
    return int(text) if setting in _WHOLE_SETTINGS else float(text)


# --- reading all of them ------------------------------------------------------------------------------------------------


def size_from_text(text: str) -> int:
    """Return the size that somebody typed; thousands may be separated by commas.

    Raises
    ------
    InputError
        It is no whole number from 16 to 16384, the sizes that the API takes.

    Examples
    --------
    >>> size_from_text(" 1,500 ")
    1500
    >>> size_from_text("1e3")
    Traceback (most recent call last):
    horde_policy.errors.InputError: size: '1e3' must be a whole number from 16 to 16384
    """
    try:
        return _whole(LEAST_MAX_LENGTH_TOKENS, MAX_LENGTH_LIMIT_TOKENS)([text.strip().replace(",", "")])
    except _Unreadable as why:
        raise InputError("size", "", text, str(why)) from None


_SEVERAL: Final = frozenset({"m", "state", "run", "lost"})
"""Parameters that may be given several times, each value counting."""


def _note(name: str, given: Sequence[str], rule: str) -> str:
    """Return what is left out and why: of a parameter of several values all of them, of another the one that would count."""
    others = len(given) - 1 if name in _SEVERAL else 0
    if others:
        return f"The link's {name}={shown(given[-1])} and {others} more of {name} are left out: they {rule}."
    return f"The link's {name}={shown(given[-1])} is left out: it {rule}."


def _repeated(query: Query, names: Iterable[str]) -> list[str]:
    """Return a note on each parameter that may be given once and is given with different values."""
    return [
        f"The link's {name} is given {len(given)} times; the last, {shown(given[-1])}, counts."
        for name, given in query.items()
        if name in names and name not in _SEVERAL and len(set(given)) > 1
    ]


def _read_settings(query: Query, base: AllowanceSettings, names: Mapping[str, str]) -> tuple[AllowanceSettings, list[str]]:
    changes: dict[str, float] = {}
    notes: list[str] = []
    for name, setting in names.items():
        if query.get(name):
            try:
                changes[setting] = _setting(setting, query[name][-1])
            except _Unreadable as why:
                notes.append(_note(name, query[name], str(why)))
    try:
        return base.changed(**changes), notes
    except ConfigError as error:
        notes.append(f"The link's settings are left out: {error}.")
        return base, notes


def _backwards(values: Mapping[str, object]) -> bool:
    start, end = values.get("from_at"), values.get("to_at")
    return isinstance(start, datetime) and isinstance(end, datetime) and end <= start


def parse_view_state(query: Query, base: AllowanceSettings) -> tuple[ViewState, tuple[str, ...]]:
    """Return the state that a query string stands for, and a note for every value that was left out.

    Parameters
    ----------
    query
        Name → values, as the browser sent them; anything may stand in it.
    base
        The deployment's settings, from which the link's settings differ.

    Notes
    -----
    Of a value that is given several times the last counts, and a note says so, but for ``m``, ``state``, ``run`` and ``lost``.
    Nothing raises.

    Examples
    --------
    >>> state, notes = parse_view_state({"ceiling": ["1e309"], "size": ["-3"], "colour": ["red"]}, AllowanceSettings())
    >>> state == ViewState()
    True
    >>> for note in notes:
    ...     print(note)
    The link's size='-3' is left out: it must be a whole number from 16 to 16384.
    The link's ceiling='1e309' is left out: it must be a whole number.
    The link's colour is left out: no page knows it.
    """
    values: dict[str, object] = {}
    notes: list[str] = []
    for parameter in PARAMETERS:
        given = query.get(parameter.name)
        if given:
            try:
                values[parameter.field] = parameter.read(given)
            except _Unreadable as why:
                notes.append(_note(parameter.name, given, str(why)))
    values = _load_of(str(values.get("traffic", ViewState().traffic))) | values
    more_runs = len(_distinct_runs(query.get("run", ()))) - MOST_RUNS
    if more_runs > 0 and "runs" in values:
        notes.append(f"The link's run is given for {MOST_RUNS + more_runs} settings; the first {MOST_RUNS} are compared.")
    if (values.get("from_at") is None) != (values.get("to_at") is None) or _backwards(values):
        notes.append("The link's range is left out: it must have a from, and a to that is later.")
        values |= {"from_at": None, "to_at": None}
    settings, setting_notes = _read_settings(query, base, SETTING_PARAMETERS)
    tried, tried_notes = _read_settings(query, settings, TRIED_PARAMETERS)
    if tried != settings:
        values["tried"] = tried
    values["budget"], budget_notes = parse_budget_state(query)
    notes += budget_notes
    values["sweep"], sweep_notes = parse_sweep_asked(query)
    setting_notes += [*tried_notes, *sweep_notes]
    known = {p.name for p in PARAMETERS} | {*SETTING_PARAMETERS, *TRIED_PARAMETERS, *BUDGET_NAMES, *SWEEP_NAMES}
    strange = [f"The link's {shown(name)[1:-1]} is left out: no page knows it." for name in query if name not in known]
    notes += _repeated(query, known - {*BUDGET_NAMES, *SWEEP_NAMES})
    state = ViewState(settings=settings).changed(**values)
    return state, (*notes, *setting_notes, *strange)
