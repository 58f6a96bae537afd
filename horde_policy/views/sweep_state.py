"""What the Sweep page shows, as it stands in the address: which sweep, what is asked of it, which settings are looked at.

What cannot be read falls back to its default with a note, what equals the default is not written. Sentences are kept as they
were typed: the page reads them, and says what of them it cannot read.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from horde_policy.errors import shown

__all__ = [
    "DEFAULT_GRID",
    "DEMO_FLEET",
    "MOST_COPIES",
    "MOST_GRID_CHARACTERS",
    "OTHERS_RULES",
    "SWEEP_NAMES",
    "SweepAsked",
    "parse_sweep_asked",
]

DEFAULT_GRID: Final = """\
ceiling_tokens = [1024, 2048, 4096, 8192]
floor_tokens = [256, 512, 768]
wait_full_s = [30, 60]
wait_floor_s = [150, 300, 600]
seed = [0, 1]
fill = ["max_length=client_setting:1/2/3/3/2,requester=0.6/0.1"]
"""
"""The grid of the bundled sweep, with which a new one starts."""

DEMO_FLEET: Final = "drawn/8/3/20/50/1"
"""The fleet of the bundled sweep: eight workers and three models, drawn."""

OTHERS_RULES: Final[dict[str, str]] = {
    "best": "the best that meets the constraints",
    "mean": "their mean",
    "worst": "the worst of them",
}
"""What a square shows where several settings share it: rule → in words."""

MOST_GRID_CHARACTERS = 4_000
MOST_COPIES = 200
MOST_SENTENCES = 12
MOST_SENTENCE_CHARACTERS = 200
MOST_DAYS = 400
NOTHING = "none"

_KEY = re.compile(r"[A-Za-z0-9_-]{1,80}")
_POINT = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(r"[a-z0-9_]{1,40}")
_DAYS = re.compile(r"[0-9]{1,6}(,[0-9]{1,6})*")
_UNDER = re.compile(r"mean|worst|[0-9]{1,4}")
_CHOSEN = re.compile(r"[\w .:+/-]{1,120}")
_COPIES = re.compile(r"[0-9]{1,4}")
_FIXED = re.compile(r"[a-z_]{1,40}=[\w.+-]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepAsked:
    """What the Sweep page shows.

    Attributes
    ----------
    sweep
        Key of the sweep: ``demo``, ``run-…`` for one started on the page, ``upload-…``.
    want, must
        Objectives and constraints as sentences; the first objective decides.
    held
        Days held out; null for the last third.
    under
        ``mean`` or ``worst`` over all loads and fill rules, or the number of the one that counts, from 1.
    point
        The settings looked at, by their sixteen digits; empty for those that are proposed.
    x, y, metric
        The heatmap's settings and figure; empty for the ones that matter most.
    others, fixed
        What a square shows of the settings that share it, and the settings that are held, as ``name=value``.
    grid, traffic, copies, fleet
        What a new sweep tries and on what: the grid as TOML, the traffic, how many copies of it are a load of 1, and the
        fleet, the last as the Replay page names them.

    Examples
    --------
    >>> asked, notes = parse_sweep_asked({"want": ["most tokens given free"], "held": ["6,7"]})
    >>> asked.want, asked.held, asked.query()
    (('most tokens given free',), (6, 7), {'want': ['most tokens given free'], 'held': ['6,7']})
    """

    sweep: str = "demo"
    want: tuple[str, ...] = ("least refused share of unfunded", "least p90 wait of registered")
    must: tuple[str, ...] = ("p90 wait of registered ≤ 110 % of baseline",)
    held: tuple[int, ...] | None = None
    under: str = "mean"
    point: str = ""
    x: str = ""
    y: str = ""
    metric: str = ""
    others: str = "best"
    fixed: tuple[str, ...] = ()
    grid: str = DEFAULT_GRID
    traffic: str = "ragpulse_week1"
    copies: int = 30
    fleet: str = DEMO_FLEET

    def changed(self, **changes: object) -> Self:
        """Return the same with some fields replaced.

        >>> SweepAsked().changed(point="0" * 16).point
        '0000000000000000'
        """
        return replace(self, **changes)  # type: ignore[arg-type]

    def query(self) -> dict[str, list[str]]:
        """Return it as a query string: what differs from the defaults."""
        default = type(self)()
        changed = {name: getattr(self, name) for name in _FIELDS if getattr(self, name) != getattr(default, name)}
        return {_FIELDS[name]: _written(name, value) for name, value in changed.items()}


_FIELDS: Final[dict[str, str]] = {
    "sweep": "sweep", "want": "want", "must": "must", "held": "held", "under": "under", "point": "point", "x": "x", "y": "y",
    "metric": "show", "others": "others", "fixed": "fix", "grid": "grid",
    "traffic": "trace", "copies": "times", "fleet": "workers",
}  # fmt: skip
SWEEP_NAMES: Final = frozenset(_FIELDS.values())
"""Every parameter of the page's own."""

_PATTERNS: Final = {
    "sweep": _KEY,
    "under": _UNDER,
    "point": _POINT,
    "x": _NAME,
    "y": _NAME,
    "metric": _NAME,
    "traffic": _CHOSEN,
    "fleet": _CHOSEN,
}
_RULES: Final = {
    "sweep": "must be the key of a sweep",
    "under": "must be mean, worst or the number of a scenario",
    "point": "must be sixteen hexadecimal digits",
    "x": "must be the name of a setting",
    "y": "must be the name of a setting",
    "metric": "must be the name of a figure",
    "traffic": "must be the name of a traffic",
    "fleet": "must be the name of a fleet",
}


def _written(name: str, value: object) -> list[str]:
    if name == "held":
        assert isinstance(value, tuple)
        return [",".join(str(day) for day in value) or NOTHING]
    if isinstance(value, tuple):
        return [str(each) for each in value] or [NOTHING]
    return [str(value)]


def _read(name: str, values: Sequence[str]) -> object:
    """Return a field's value; raise ValueError with the rule that is broken."""
    text = values[-1]
    if name in _PATTERNS:
        if not _PATTERNS[name].fullmatch(text):
            raise ValueError(_RULES[name])
        return text
    if name == "others":
        if text not in OTHERS_RULES:
            raise ValueError("must be one of " + ", ".join(OTHERS_RULES))
        return text
    if name == "held":
        return _days(text)
    if name == "copies":
        if not _COPIES.fullmatch(text) or not 1 <= int(text) <= MOST_COPIES:
            raise ValueError(f"must be a whole number from 1 to {MOST_COPIES}")
        return int(text)
    if name == "grid":
        if len(text) > MOST_GRID_CHARACTERS:
            raise ValueError(f"must have at most {MOST_GRID_CHARACTERS} characters")
        return text
    return _several(name, values)


def _days(text: str) -> tuple[int, ...]:
    if text == NOTHING:
        return ()
    if not _DAYS.fullmatch(text) or text.count(",") >= MOST_DAYS:
        raise ValueError("must be days as 6,7, or none")
    return tuple(sorted({int(day) for day in text.split(",")}))


def _several(name: str, values: Sequence[str]) -> tuple[str, ...]:
    given = tuple(dict.fromkeys(value.strip() for value in values if value.strip() and value != NOTHING))
    if len(given) > MOST_SENTENCES or any(len(each) > MOST_SENTENCE_CHARACTERS for each in given):
        raise ValueError(f"must be at most {MOST_SENTENCES} of at most {MOST_SENTENCE_CHARACTERS} characters")
    if name == "fixed" and not all(_FIXED.fullmatch(each) for each in given):
        raise ValueError("must be settings as name=value")
    if name == "want" and not given:
        raise ValueError("must name at least one figure")
    return given


def parse_sweep_asked(query: Mapping[str, Sequence[str]]) -> tuple[SweepAsked, tuple[str, ...]]:
    """Return what a query string asks of the Sweep page, and a note for every value that was left out. Nothing raises.

    >>> _, notes = parse_sweep_asked({"point": ["x"]})
    >>> notes
    ("The link's point='x' is left out: it must be sixteen hexadecimal digits.",)
    """
    values: dict[str, object] = {}
    notes: list[str] = []
    for name, parameter in _FIELDS.items():
        given = query.get(parameter)
        if not given:
            continue
        try:
            values[name] = _read(name, given)
        except ValueError as why:
            notes.append(f"The link's {parameter}={shown(given[-1])} is left out: it {why}.")
    return SweepAsked(**values), tuple(notes)  # type: ignore[arg-type]
