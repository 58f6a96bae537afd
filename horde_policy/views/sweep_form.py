"""A sweep's grid as people type it, field by field, and as the TOML text that the command reads: each from the other.

A field holds values with a comma and a blank between, or a range: ``256 to 1024 step 256``, ``10 to 1000 count 5 log``, or,
for random and Sobol search, ``10 to 1000``.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from horde_policy.errors import ConfigError, HordePolicyError, InputError
from horde_policy.sweep.axes import SETTINGS, Axis, Listed, Span
from horde_policy.sweep.grid import Grid, parse_grid

__all__ = ["FIELDS", "SCENARIO_FIELDS", "field_texts", "grid_of", "grid_toml", "problem_field"]

SCENARIO_FIELDS: Final = ("load", "seed", "fill", "days", "search", "points", "draw_seed")
FIELDS: Final = (*SETTINGS, *SCENARIO_FIELDS)
"""Every field of the form, in its order; an empty one keeps what is in force."""

_NUMBER = r"-?[0-9]{1,12}(?:\.[0-9]{1,9})?"
_RANGE = re.compile(
    rf"(?P<low>{_NUMBER})\s*(?:to|–|\.\.)\s*(?P<high>{_NUMBER})"
    rf"(?:\s+step\s+(?P<step>{_NUMBER}))?(?:\s+count\s+(?P<count>[0-9]{{1,5}}))?(?P<log>\s+log)?"
)
_GROUPED = re.compile(r"(?<![0-9.])[0-9]{1,3},[0-9]{3}(?![0-9])")
_ZERO_GROUP = re.compile(r"(?<![0-9.])[1-9][0-9]{0,2},0[0-9]{2}(?![0-9])")
_TOKENS = re.compile(r"(?<![0-9.])(?:[1-9]|1[0-6]),[0-9]{3}(?![0-9])")
_OTHERS = re.compile(r"(?<![0-9.])[1-9],[0-9]{3}(?![0-9])")
"""A number with a separator, as somebody may type it: of tokens up to 16 thousands, of other settings up to nine."""


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _value(text: str) -> object:
    """Return what one value of a list stands for; what is no number, truth value or null stays text."""
    if re.fullmatch(_NUMBER, text):
        return _number(text)
    return {"true": True, "yes": True, "false": False, "no": False}.get(text.lower(), text)


def _values(name: str, text: str) -> object:
    """Return a field's text as TOML would give it."""
    if name == "fill":
        return [line.strip() for line in text.splitlines() if line.strip()]
    found = _RANGE.fullmatch(text.strip().lower())
    if found:
        given: dict[str, object] = {"from": _number(found["low"]), "to": _number(found["high"])}
        given |= {key: _number(found[key]) for key in ("step", "count") if found[key]}
        return given | ({"scale": "log"} if found["log"] else {})
    if _may_be_grouped(name, text):
        raise ConfigError(name, text, "must be written without thousands separators; between values with a blank after the comma")
    values = [_value(part.strip()) for part in text.split(",") if part.strip()]
    return values[0] if name in ("search", "points", "draw_seed") and len(values) == 1 else values


def _may_be_grouped(name: str, text: str) -> bool:
    """Return whether a comma may separate thousands: ``8,192`` does or does not, ``1,024`` does, ``64,128,256`` cannot.

    >>> [_may_be_grouped("ceiling_tokens", text) for text in ("8,192", "1,024", "64,128,256", "8, 192")]
    [True, True, False, False]
    """
    if name in ("points", "draw_seed"):  # one number alone
        return bool(_GROUPED.search(text))
    if name in ("load", "seed", "days"):  # nobody tries thousands of them
        return bool(_ZERO_GROUP.search(text))
    form = _TOKENS if name.endswith("_tokens") else _OTHERS
    return bool(form.search(text) or _ZERO_GROUP.search(text))


def grid_toml(texts: Mapping[str, str]) -> str:
    r"""Return the fields as the TOML text of a grid; empty fields are left out.

    Raises
    ------
    ConfigError
        A field cannot be read: names it.

    Examples
    --------
    >>> print(grid_toml({"ceiling_tokens": "2048, 4096", "wait_full_s": "10 to 90 step 40", "rule": "old"}), end="")
    ceiling_tokens = [2048, 4096]
    wait_full_s = {from = 10, to = 90, step = 40}
    rule = ["old"]
    """
    lines = [f"{name} = {_toml(_values(name, texts[name]))}" for name in FIELDS if texts.get(name, "").strip()]
    return "".join(line + "\n" for line in lines)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def field_texts(grid: Grid) -> dict[str, str]:
    r"""Return the form's fields for a grid.

    >>> grid = 'ceiling_tokens = [2048, 4096]\nwait_full_s = {from = 1, to = 5}\nsearch = "sobol"\npoints = 8'
    >>> texts = field_texts(parse_grid(grid))
    >>> texts["ceiling_tokens"], texts["wait_full_s"], texts["points"], texts["load"]
    ('2048, 4096', '1 to 5', '8', '1')
    """
    texts = {name: _axis_text(axis) for name, axis in grid.axes.items()}
    return {
        **dict.fromkeys(FIELDS, ""),
        **texts,
        "load": _listed(grid.loads),
        "seed": _listed(grid.seeds),
        "fill": "\n".join(fill for fill in grid.fills if fill is not None),
        "days": "" if grid.days is None else _listed(grid.days),
        "search": grid.search,
        "points": "" if grid.points is None else str(grid.points),
        "draw_seed": "" if grid.search == "grid" else str(grid.draw_seed),
    }


def _axis_text(axis: Axis) -> str:
    if isinstance(axis, Span):
        return f"{_plain(axis.low)} to {_plain(axis.high)}" + (" log" if axis.log else "")
    assert isinstance(axis, Listed)
    return _listed(axis.values)


def _listed(values: tuple[object, ...]) -> str:
    return ", ".join(_plain(value) for value in values)


def _plain(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def problem_field(error: HordePolicyError) -> str:
    """Return the field that an error of a grid belongs under; empty for the grid as a whole.

    >>> problem_field(ConfigError("floor_tokens", 0, "must be at least 1"))
    'floor_tokens'
    """
    if isinstance(error, ConfigError) and error.setting in FIELDS:
        return error.setting
    if isinstance(error, InputError) and error.what == "fill rule":
        return "fill"
    return ""


def grid_of(texts: Mapping[str, str]) -> tuple[str, Grid]:
    """Return the TOML text of the fields and the grid that it is.

    Raises
    ------
    ConfigError, InputError
        A field breaks its rule; :func:`problem_field` says which.
    """
    text = grid_toml(texts)
    return text, parse_grid(text)
