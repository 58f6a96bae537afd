"""A sweep's grid: which settings are tried under which load, seed and fill rule, and which combinations make no sense.

A grid file is TOML: settings by their names, each with a value, a list or a range, then ``load``, ``seed``, ``fill`` and
``days``, and how to search. Every setting is tried under every scenario (load × seed × fill), so that settings are compared
on the same requests; the settings in force are always tried too, as the baseline.
"""

import itertools
import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
import scipy

from horde_policy.errors import ConfigError, InputError
from horde_policy.replay.fill_rule import FillRule
from horde_policy.settings import ReplaySettings
from horde_policy.sweep.axes import SETTINGS, Axis, Listed, Span, read_axis, spread

__all__ = ["Grid", "Plan", "Point", "Scenario", "Search", "load_grid", "parse_grid", "plan"]

Search = Literal["grid", "random", "sobol"]

MOST_REPLAYS: Final = 100_000
MOST_LOAD: Final = 1_000.0
MOST_SEED: Final = 2**31 - 1
DRAWS_A_POINT: Final = 64
"""Random and Sobol search stop after so many draws for each point wanted: most of the space makes no sense then."""

_SCENARIO_KEYS = ("load", "seed", "fill", "days")
_SEARCH_KEYS = ("search", "points", "draw_seed")
_CURVE = ("wait_full_s", "wait_floor_s", "assumed_speed_tok_per_s", "ahead", "count_threads")
_ALL_RULES = ("ceiling_tokens", "floor_tokens", *_CURVE, "jobs_rule_floor_per_thread")
_IGNORED_BY_RULE: Final[Mapping[str, tuple[str, ...]]] = {
    "allowance": ("jobs_rule_floor_per_thread",),
    "jobs": ("wait_full_s", "wait_floor_s", "assumed_speed_tok_per_s", "count_threads"),
    "old": _ALL_RULES,
    "everyone_free": (*_ALL_RULES, "client", "return_after_s", "return_times"),
    "no_one_free": _ALL_RULES,
}
"""Rule → settings that decide nothing under it (A29, A30; ``replay.md``, "Other rules")."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What settings are tried under: so much of the traffic, drawn by this seed, filled by this rule (null: as it is)."""

    load: float
    seed: int
    fill: str | None


@dataclass(frozen=True, slots=True)
class Point:
    """Settings that are tried; the baseline is what is in force."""

    settings: ReplaySettings
    baseline: bool = False

    @property
    def name(self) -> str:
        """Sixteen hexadecimal digits that name the settings; the first eight are the digest that other pages show."""
        return self.settings.digest(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A grid as it was typed, every value checked.

    Attributes
    ----------
    axes
        Setting → its axis, in the file's order.
    loads, seeds, fills
        The scenarios' axes; a fill of null leaves the traffic as it is.
    days
        Days whose requests are scored, from 1; null for all.
    search, points, draw_seed
        How points are chosen; ``points`` is null for a full grid.
    """

    axes: Mapping[str, Axis]
    loads: tuple[float, ...] = (1.0,)
    seeds: tuple[int, ...] = (0,)
    fills: tuple[str | None, ...] = (None,)
    days: tuple[int, ...] | None = None
    search: Search = "grid"
    points: int | None = None
    draw_seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a sweep will replay: the baseline and the points, each under every scenario; ``dropped`` counts by reason."""

    points: tuple[Point, ...]
    scenarios: tuple[Scenario, ...]
    days: tuple[int, ...] | None
    varied: tuple[str, ...]
    dropped: Mapping[str, int]

    @property
    def replays(self) -> int:
        """How many replays this makes."""
        return len(self.points) * len(self.scenarios)


def load_grid(path: Path) -> Grid:
    """Return the grid of a TOML file.

    Raises
    ------
    InputError
        The file cannot be read, or is not TOML.
    ConfigError
        A name or a value breaks its rule.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("grid file", "", str(path), f"cannot be read: {error}") from error
    return parse_grid(text)


def parse_grid(text: str) -> Grid:
    r"""Return the grid of a TOML text; see :func:`load_grid`.

    Examples
    --------
    >>> grid = parse_grid('ceiling_tokens = [2048, 4096]\nfloor_tokens = {from = 256, to = 512, step = 256}\nload = 2')
    >>> grid.axes["floor_tokens"], grid.loads
    (Listed(values=(256, 512)), (2.0,))
    >>> parse_grid("ceiling = 512")
    Traceback (most recent call last):
    horde_policy.errors.ConfigError: setting ceiling: 512 is not part of a grid; its parts are ceiling_tokens, ...
    """
    try:
        content: dict[str, Any] = tomllib.loads(text)
    except ValueError as error:  # not TOML, or a number of more digits than Python reads
        raise InputError("grid file", "", text.strip()[:40], f"is not TOML: {error}") from error
    known = (*SETTINGS, *_SCENARIO_KEYS, *_SEARCH_KEYS)
    for name, value in content.items():
        if name not in known:
            raise ConfigError(name, value, "is not part of a grid; its parts are " + ", ".join(known))
    search, points = _search(content)
    axes = {name: read_axis(name, content[name]) for name in content if name in SETTINGS}
    for name, axis in axes.items():
        if isinstance(axis, Span) and search == "grid":
            rule = "must have a step or a count in a grid search; random and sobol search draw from a range without"
            raise ConfigError(name, content[name], rule)
    return Grid(
        axes=axes,
        loads=tuple(_load(value) for value in _many("load", content.get("load", 1.0), whole=False)),
        seeds=tuple(_whole("seed", value, 0, MOST_SEED) for value in _many("seed", content.get("seed", 0), whole=True)),
        fills=_fills(content.get("fill")),
        days=_days(content.get("days")),
        search=search,
        points=points,
        draw_seed=_whole("draw_seed", content.get("draw_seed", 0), 0, MOST_SEED),
    )


def _search(content: Mapping[str, object]) -> tuple[Search, int | None]:
    search = content.get("search", "grid")
    if search not in get_args(Search):
        raise ConfigError("search", search, "must be one of " + ", ".join(get_args(Search)))
    points = content.get("points")
    if search == "grid":
        if points is not None:
            raise ConfigError("points", points, "belongs to random and sobol search; a grid search tries every combination")
        return "grid", None
    if points is None:
        raise ConfigError("points", None, f"must say how many points {search} search tries")
    return ("random" if search == "random" else "sobol"), _whole("points", points, 1, MOST_REPLAYS)


def _many(name: str, given: object, *, whole: bool) -> tuple[object, ...]:
    """Return the values of a scenario's axis, none twice."""
    if isinstance(given, Mapping):
        stand_in = "return_times" if whole else "return_after_s"  # settings of the same kind, with the fewest rules
        try:
            axis = read_axis(stand_in, given)
        except ConfigError as error:
            raise ConfigError(name, error.value, error.rule) from None
        if isinstance(axis, Span):
            axis = Listed(tuple(range(int(axis.low), int(axis.high) + 1))) if whole else axis
        if isinstance(axis, Span):
            raise ConfigError(name, dict(given), "must have a step or a count")
        return axis.values
    values = tuple(given) if isinstance(given, list) else (given,)
    if not values:
        raise ConfigError(name, given, "must hold at least one value")
    for place, value in enumerate(values):
        if value in values[:place]:
            raise ConfigError(name, value, "stands twice")
    return values


def _whole(name: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigError(name, value, f"must be a whole number from {least} to {most}")
    return value


def _load(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and 0 < value <= MOST_LOAD):
        raise ConfigError("load", value, f"must be a number above 0 and at most {MOST_LOAD:g}: 1 is the traffic as it is")
    return float(value)


def _fills(given: object) -> tuple[str | None, ...]:
    if given is None:
        return (None,)
    rules = []
    for value in _many("fill", given, whole=False):
        if not isinstance(value, str):
            raise ConfigError("fill", value, "must be a fill rule as text, as max_length=ladder,models=weighted")
        rule = str(FillRule.parsed(value))
        if rule in rules:
            raise ConfigError("fill", value, "stands twice: it is the same rule as another")
        rules.append(rule)
    return tuple(rules)


def _days(given: object) -> tuple[int, ...] | None:
    if given is None:
        return None
    return tuple(sorted(_whole("days", value, 1, 100_000) for value in _many("days", given, whole=True)))


# --- from a grid to points --------------------------------------------------------------------------------------------


def plan(grid: Grid, baseline: ReplaySettings) -> Plan:
    r"""Return what to replay: the baseline first, then every combination that makes sense and differs from those before it.

    A value that breaks its rule was refused when it was read. A combination of the grid's values that breaks a rule
    together (a floor above the ceiling) is dropped and counted by reason, and so is one that cannot differ from another
    because the rule or the client in force ignores what differs.

    Parameters
    ----------
    grid
        As it was typed.
    baseline
        The settings in force; settings that the grid does not name keep its values.

    Raises
    ------
    ConfigError
        No combination makes sense, or there are more than can be replayed.

    Examples
    --------
    >>> made = plan(parse_grid("ceiling_tokens = [512, 4096]\nfloor_tokens = [512, 1024]"), ReplaySettings())
    >>> [(p.settings.ceiling_tokens, p.settings.floor_tokens, p.baseline) for p in made.points]
    [(4096, 512, True), (512, 512, False), (4096, 1024, False)]
    >>> dict(made.dropped)
    {'floor_tokens must not be above ceiling_tokens': 1}
    """
    scenarios = tuple(Scenario(*each) for each in itertools.product(grid.loads, grid.seeds, grid.fills))
    combinations = math.prod(len(axis.values) for axis in grid.axes.values() if isinstance(axis, Listed))
    wanted = combinations if grid.points is None else grid.points
    if wanted * len(scenarios) > MOST_REPLAYS:
        raise ConfigError("grid", wanted, f"points under {len(scenarios)} scenarios are more than {MOST_REPLAYS:,} replays")
    points = {effective(baseline, baseline): Point(baseline, baseline=True)}
    dropped: Counter[str] = Counter()
    first_error: ConfigError | None = None
    tried: set[ReplaySettings] = set()
    typed_as: dict[ReplaySettings, ReplaySettings] = {}
    for values in _combinations(grid):
        try:
            settings = baseline.changed(**values)
        except ConfigError as error:
            first_error = first_error or error
            dropped[_reason(error)] += 1
            continue
        if settings in tried:  # drawn before
            continue
        tried.add(settings)
        meant = effective(settings, baseline)
        if meant not in points:
            points[meant] = Point(meant)
            typed_as[meant] = settings
        elif settings != baseline:
            dropped[_same_because(settings if settings != meant else typed_as[meant], meant)] += 1
        if grid.points is not None and len(points) > grid.points:
            break
    if first_error is not None and not tried:
        many = "combination, which cannot be tried" if dropped.total() == 1 else "combinations, of which none is left to try"
        broken = f"{first_error.setting} {first_error.value} {first_error.rule}"
        raise ConfigError("grid", dropped.total(), f"{many}: {broken}")
    return Plan(
        points=tuple(points.values()),
        scenarios=scenarios,
        days=grid.days,
        varied=tuple(name for name in SETTINGS if len({getattr(p.settings, name) for p in points.values()}) > 1),
        dropped=dict(dropped),
    )


def _same_because(settings: ReplaySettings, meant: ReplaySettings) -> str:
    """Return why settings are the same as another point: what ignores that in which they differ from what they mean."""
    differs = {name for name in SETTINGS if getattr(settings, name) != getattr(meant, name)}
    client = {"return_after_s", "return_times"}
    reasons = []
    by_rule = {name for name in _IGNORED_BY_RULE[settings.rule] if name in differs}
    if by_rule:
        reasons.append(f"the rule {settings.rule} ignores {_named(by_rule)}")
    if (by_client := (differs & client) - by_rule) and settings.client != "return":
        reasons.append(f"the client {settings.client} ignores {_named(by_client)}")
    if by_ageing := differs & {"ageing_every_s"}:
        reasons.append(f"without ageing nothing follows from {_named(by_ageing)}")
    if by_curve := differs - by_rule - by_client - by_ageing:
        reasons.append(f"with the floor at the ceiling nothing follows from {_named(by_curve)}")
    return "the same as another point: " + ", ".join(reasons)


def _named(names: set[str]) -> str:
    return ", ".join(name for name in SETTINGS if name in names)


def effective(settings: ReplaySettings, baseline: ReplaySettings) -> ReplaySettings:
    """Return the settings with the baseline's value wherever they are ignored, so that what cannot differ is equal.

    >>> effective(ReplaySettings(rule="old", wait_full_s=5.0), ReplaySettings()).wait_full_s
    60.0
    """
    ignored = set(_IGNORED_BY_RULE[settings.rule])
    if settings.client != "return":
        ignored |= {"return_after_s", "return_times"}
    if settings.ceiling_tokens == settings.floor_tokens and settings.rule in ("allowance", "jobs"):
        ignored |= {*_CURVE, "jobs_rule_floor_per_thread"}  # a level curve needs no wait
    if settings.ageing_kudos == 0:
        ignored.add("ageing_every_s")
    # Floor and ceiling, and the two waits, are ignored together or not at all, so no pair is torn.
    return settings.changed(**{name: getattr(baseline, name) for name in ignored})


def _reason(error: ConfigError) -> str:
    return f"{error.setting} {error.rule.partition(', which is')[0]}"


def _combinations(grid: Grid) -> Iterator[dict[str, object]]:
    names = list(grid.axes)
    if grid.points is None:
        listed = [axis.values for axis in grid.axes.values() if isinstance(axis, Listed)]
        for values in itertools.product(*listed):
            yield dict(zip(names, values, strict=True))
        return
    for shares in _draws(grid, len(names)):
        yield {name: spread(grid.axes[name], float(share)) for name, share in zip(names, shares, strict=True)}


def _draws(grid: Grid, dimensions: int) -> Iterator[np.ndarray[Any, Any]]:
    """Return points of the unit cube: at most so many as make a sensible search, the first of a longer one the same."""
    most = (grid.points or 0) * DRAWS_A_POINT
    if not dimensions:
        return
    dice = np.random.default_rng(grid.draw_seed)
    sobol = scipy.stats.qmc.Sobol(dimensions, scramble=True, rng=dice) if grid.search == "sobol" else None
    drawn = 0
    while drawn < most:
        # Sobol points are balanced in blocks of a power of two, and asking for others warns.
        block = dice.random((256, dimensions)) if sobol is None else sobol.random(256)
        yield from block
        drawn += len(block)
