"""The parameters of the live pages, the history and the Replay page: name, field, how each is read and written.

The Budget, Sweep and review pages have lists of their own. The bounds are what a page takes of an address.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from horde_policy.errors import ConfigError, InputError
from horde_policy.replay.fill import MOST_COPIES
from horde_policy.replay.fill_rule import FillRule
from horde_policy.settings import AllowanceSettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views.address_values import (
    Parameter,
    Query,
    UnreadableValue,
    bit,
    checked,
    flag,
    in_calendar,
    left_out,
    matching,
    one,
    one_of,
    signed,
    text_of_at_most,
    whole,
)
from horde_policy.views.text import comma_hint, ungrouped
from horde_policy.views.words import STATES

__all__ = [
    "AS_IN_COMMANDS",
    "LEAST_CONTEXT_TOKENS",
    "LEAST_MAX_LENGTH_TOKENS",
    "MOST_CONTEXT_TOKENS",
    "MOST_FIND_CHARACTERS",
    "MOST_NAMES",
    "MOST_QUEUE_CHANGE_TOKENS",
    "MOST_RUNS",
    "PARAMETERS",
    "RANGES_S",
    "REFRESH_CHOICES_S",
    "SETTING_PARAMETERS",
    "SORTS",
    "TRIED_PARAMETERS",
    "WORKSHOP_FINISH",
    "WORKSHOP_STEPS",
    "as_written",
    "changed_settings",
    "distinct_runs",
    "hours_from_text",
    "hours_text",
    "read_settings",
    "size_from_text",
]

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
WORKSHOP_FINISH = WORKSHOP_STEPS + 1
NO_RUN = "none"
"""Stands in an address for a replay of the baseline alone."""

_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}Z")
_HOURS = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,3})?)-([0-9]{1,7}(?:\.[0-9]{1,3})?)")


def _instant(values: Sequence[str]) -> datetime:
    rule = "must be an instant in UTC as 2026-11-29T12:00Z"
    if not _INSTANT.fullmatch(values[-1]):
        raise UnreadableValue(rule)
    try:
        return in_calendar(datetime.fromisoformat(values[-1]), rule)
    except ValueError:
        raise UnreadableValue(rule) from None


def _instant_text(at: datetime | None) -> tuple[str, ...]:
    return () if at is None else (f"{at.astimezone(UTC):%Y-%m-%dT%H:%MZ}",)


def _names(values: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(v for v in values if v))
    if len(names) > MOST_NAMES or any(len(name) > MOST_NAME_CHARACTERS for name in names):
        raise UnreadableValue(f"must be at most {MOST_NAMES} names of at most {MOST_NAME_CHARACTERS} characters")
    return names


def _states(values: Sequence[str]) -> tuple[str, ...]:
    if any(value not in STATES for value in values):
        raise UnreadableValue("must be one of " + ", ".join(STATES))
    return tuple(state for state in STATES if state in values)


def _step(values: Sequence[str]) -> int:
    try:
        return whole(0, WORKSHOP_FINISH)(values)
    except UnreadableValue:
        steps = f"must be a step of the workshop, 1 to {WORKSHOP_STEPS}"
        raise UnreadableValue(f"{steps}, or {WORKSHOP_FINISH} for its finish, or 0 for none") from None


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


def _fill(values: Sequence[str]) -> str:
    try:
        return str(FillRule.parsed(values[-1]))
    except InputError as error:
        raise UnreadableValue(f"is no fill rule: {error}") from None


def _runs(values: Sequence[str]) -> tuple[str, ...]:
    runs = distinct_runs(values)
    if any(len(run) > MOST_RUN_CHARACTERS for run in runs):
        raise UnreadableValue(f"must be settings of at most {MOST_RUN_CHARACTERS} characters")
    return runs[:MOST_RUNS]


def distinct_runs(values: Sequence[str]) -> tuple[str, ...]:
    """Return the settings that an address gives for a replay, each once, however many; none for the baseline alone.

    >>> distinct_runs(["rule=old", "", "rule=old"]), distinct_runs(["none"])
    (('rule=old',), ())
    """
    return tuple(dict.fromkeys(value for value in values if value and value != NO_RUN))


def _refresh_text(seconds: int) -> str:
    return "off" if seconds == 0 else str(seconds)


_CHOSEN = matching(r"[A-Za-z0-9_./-]{1,120}", "must be a name of letters, digits, hyphens, dots and slashes")


PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("source", "source", matching(r"[\w .:+-]{1,100}", "must be the name of a source"), one),
    Parameter("refresh", "refresh_s", one_of(REFRESH_CHOICES_S, _refresh_text), lambda s: (_refresh_text(s),)),
    Parameter("size", "max_length_tokens", whole(LEAST_MAX_LENGTH_TOKENS, MAX_LENGTH_LIMIT_TOKENS), one),
    Parameter("context", "max_context_tokens", whole(LEAST_CONTEXT_TOKENS, MOST_CONTEXT_TOKENS), one),
    Parameter("grouped", "grouped", flag, bit),
    Parameter("m", "models", _names, tuple, shared=False, several=True),
    Parameter("find", "find", text_of_at_most(MOST_FIND_CHARACTERS), one, shared=False),
    Parameter("state", "states", _states, tuple, shared=False, several=True),
    Parameter("sort", "sort", one_of(SORTS), one, shared=False),
    Parameter("descending", "descending", flag, bit, shared=False),
    Parameter("wall", "wall", flag, bit, shared=False),
    Parameter("step", "step", _step, one),
    Parameter("answers", "answers", flag, bit, shared=False),
    Parameter("traffic", "traffic", _CHOSEN, one, shared=False),
    Parameter("hours", "hours", checked(hours_from_text), lambda hours: (hours_text(hours),), shared=False),
    Parameter("copies", "copies", whole(1, MOST_COPIES), one, shared=False),
    Parameter("keep", "keep_percent", whole(1, 100), one, shared=False),
    Parameter("fill", "fill", _fill, one, shared=False),
    Parameter("fleet", "fleet", _CHOSEN, one, shared=False),
    Parameter("run", "runs", _runs, lambda runs: tuple(runs) or (NO_RUN,), shared=False, several=True),
    Parameter("range", "range_name", one_of(tuple(RANGES_S)), one),
    Parameter("from", "from_at", _instant, _instant_text),
    Parameter("to", "to_at", _instant, _instant_text),
    Parameter("queue_by", "queue_change_tokens", signed(MOST_QUEUE_CHANGE_TOKENS), one, shared=False),
    Parameter("lost", "lost", _names, tuple, shared=False, several=True),
    Parameter("add", "added_tok_per_s", whole(0, MOST_ADDED_TOK_PER_S), one, shared=False),
    Parameter("add_size", "added_max_length", whole(LEAST_MAX_LENGTH_TOKENS, MAX_LENGTH_LIMIT_TOKENS), one, shared=False),
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

AS_IN_COMMANDS: Final[dict[str, str]] = (
    {setting: name for name, setting in SETTING_PARAMETERS.items()}
    | {f"try_{setting}": name for name, setting in TRIED_PARAMETERS.items()}
    | {f"what_if_{SETTING_PARAMETERS[name]}": f"what_if_{name}" for name in ("ceiling", "floor")}
)
"""The spelling of files and of ``--set`` → the parameter that an address is written with: a link may have either."""


def as_written(query: Query) -> Query:
    """Return a query in the spelling that addresses are written with; of what stands there in both, the last counts.

    >>> as_written({"floor_tokens": ["256"], "what_if_floor_tokens": ["1024"], "size": ["80"]})
    {'floor': ['256'], 'what_if_floor': ['1024'], 'size': ['80']}
    """
    written: dict[str, list[str]] = {}
    for name, values in query.items():
        written.setdefault(AS_IN_COMMANDS.get(name, name), []).extend(values)
    return written


_WHOLE = matching(r"[0-9]{1,9}", f"must be a whole number from 1 to {MAX_LENGTH_LIMIT_TOKENS}")
DECIMALS: Final = 9
_REAL = matching(rf"[0-9]{{1,9}}(\.[0-9]{{1,{DECIMALS}}})?", "must be a number of at least 0")
_WHOLE_SETTINGS: Final = frozenset({"ceiling_tokens", "floor_tokens"})


def _setting_text(value: float) -> str:
    """Return a setting as an address takes it: never with an exponent, to nine decimals."""
    return f"{value:.{DECIMALS}f}".rstrip("0").rstrip(".")


def _setting(setting: str, values: Sequence[str]) -> float:
    return int(_WHOLE(values)) if setting in _WHOLE_SETTINGS else float(_REAL(values))


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
        return whole(LEAST_MAX_LENGTH_TOKENS, MAX_LENGTH_LIMIT_TOKENS)([ungrouped(text)])
    except UnreadableValue as why:
        raise InputError("size", "", text, str(why), hint=comma_hint(text)) from None


def changed_settings(names: Mapping[str, str], settings: AllowanceSettings, base: AllowanceSettings) -> dict[str, list[str]]:
    """Return parameter → text of the settings that differ from ``base``.

    >>> changed_settings(SETTING_PARAMETERS, AllowanceSettings(floor_tokens=256), AllowanceSettings())
    {'floor': ['256']}
    """
    changed = {name: getattr(settings, setting) for name, setting in names.items()}
    return {name: [_setting_text(value)] for name, value in changed.items() if value != getattr(base, names[name])}


def read_settings(query: Query, base: AllowanceSettings, names: Mapping[str, str]) -> tuple[AllowanceSettings, list[str]]:
    """Return the settings that an address asks for, those of ``base`` where it asks for none that make sense, and notes.

    >>> read_settings({"floor": ["many"]}, AllowanceSettings(), SETTING_PARAMETERS)[1]
    ["The link's floor='many' is left out: it must be a whole number from 1 to 16384."]
    """
    changes: dict[str, float] = {}
    notes: list[str] = []
    for name, setting in names.items():
        if query.get(name):
            try:
                changes[setting] = _setting(setting, query[name])
            except UnreadableValue as why:
                notes.append(left_out(name, query[name], str(why)))
    try:
        return base.changed(**changes), notes
    except ConfigError as error:
        notes.append(f"The link's settings are left out: {error}.")
        return base, notes
