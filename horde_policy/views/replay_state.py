"""What the address holds of a replay besides its inputs and settings: how its figures are looked at, and the map of models.

The map of the fill rule ``models=mapped`` stands in the address, since a
link without it would show another replay, or none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from horde_policy.errors import InputError, shown
from horde_policy.frames.runs import OUTCOME
from horde_policy.frames.traffic import REQUESTER
from horde_policy.views.replay_runs import LETTERS

__all__ = [
    "MIX_WORDS",
    "MOST_MAPPED",
    "REPLAY_NAMES",
    "ModelMap",
    "ReplayAsked",
    "map_from_text",
    "map_text",
    "parse_replay_asked",
]

MIX_WORDS: Final[dict[str, str]] = {"requester": "by requester", "requested_size": "by size asked for"}
"""What the outcomes are told apart by → in words."""

MOST_CHARACTERS = 1_000
MOST_MAPPED = 50
"""So many published models a map in an address names."""

ModelMap = tuple[tuple[str, tuple[str, ...]], ...]
"""A trace's model → the fleet's models that are asked for in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAsked:
    """How a replay's figures are looked at.

    Attributes
    ----------
    by
        What the outcomes are told apart by, of :data:`MIX_WORDS`.
    requester, outcome
        Whose waits are drawn; empty for all.
    model
        Whose allowance is drawn over time; empty for all models. Hostile text.
    letter
        The run whose largest differences are listed; empty for the one that differs most.
    edited
        The run whose sliders are open; empty for the first.
    model_map
        The map of the fill rule ``models=mapped``; hostile text.

    Examples
    --------
    >>> asked, notes = parse_replay_asked({"see_by": ["requested_size"], "map": ["GPT-4=a|b"]})
    >>> asked.by, asked.model_map, asked.query(), notes
    ('requested_size', (('GPT-4', ('a', 'b')),), {'see_by': ['requested_size'], 'map': ['GPT-4=a|b']}, ())
    """

    by: str = "requester"
    requester: str = ""
    outcome: str = ""
    model: str = ""
    letter: str = ""
    edited: str = ""
    model_map: ModelMap = ()

    def changed(self, **changes: object) -> Self:
        """Return the same with some fields replaced.

        >>> ReplayAsked().changed(letter="B").letter
        'B'
        """
        return replace(self, **changes)  # type: ignore[arg-type]

    def query(self) -> dict[str, list[str]]:
        """Return it as a query string: what differs from the defaults."""
        default = type(self)()
        changed = {name: getattr(self, name) for name in _PARAMETERS if getattr(self, name) != getattr(default, name)}
        return {
            _PARAMETERS[name][0]: map_text(value).split("\n") if name == "model_map" else [value]
            for name, value in changed.items()
        }


def map_text(model_map: ModelMap) -> str:
    """Return a map as it is typed, a line each.

    >>> map_text((("GPT-4", ("a", "b")),))
    'GPT-4=a|b'
    """
    return "\n".join(f"{published}={'|'.join(served)}" for published, served in model_map)


def map_from_text(text: str) -> ModelMap:
    r"""Return the map of lines such as ``GPT-4 = koboldcpp/a | koboldcpp/b``; empty lines count nothing.

    Raises
    ------
    InputError
        A line has no model on one of its sides, names a model again, or there are too many.

    Examples
    --------
    >>> map_from_text("GPT-4 = a | b\n\nChatGPT=c")
    (('GPT-4', ('a', 'b')), ('ChatGPT', ('c',)))
    """
    found: dict[str, tuple[str, ...]] = {}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        published, _, served = line.partition("=")
        names = tuple(dict.fromkeys(name for name in (part.strip() for part in served.split("|")) if name))
        if not published.strip() or not names or len(line) > MOST_CHARACTERS:
            raise InputError("map of models", "", line, "must have the form published = model, or = model | model")
        if published.strip() in found:
            raise InputError("map of models", "", published.strip(), "is named twice")
        found[published.strip()] = names
    if len(found) > MOST_MAPPED:
        raise InputError("map of models", "", len(found), f"models are named; they must be at most {MOST_MAPPED}")
    return tuple(found.items())


def _one_of(words: Sequence[str]) -> Callable[[Sequence[str]], str]:
    def read(given: Sequence[str]) -> str:
        if given[-1] not in words:
            raise InputError("link", "", given[-1], "must be one of " + ", ".join(words))
        return given[-1]

    return read


def _name(given: Sequence[str]) -> str:
    if len(given[-1]) > MOST_CHARACTERS:
        raise InputError("link", "", given[-1], f"must have at most {MOST_CHARACTERS} characters")
    return given[-1]


_PARAMETERS: Final[dict[str, tuple[str, Callable[[Sequence[str]], Any]]]] = {
    "by": ("see_by", _one_of(tuple(MIX_WORDS))),
    "requester": ("see_requester", _one_of(tuple(REQUESTER.categories))),
    "outcome": ("see_outcome", _one_of(tuple(OUTCOME.categories)[:3])),
    "model": ("see_model", _name),
    "letter": ("see_run", _one_of(LETTERS[1:])),
    "edited": ("open_run", _one_of(LETTERS[1:])),
    "model_map": ("map", lambda given: map_from_text("\n".join(given))),
}
"""Field → its parameter of the address, and how it is read."""

REPLAY_NAMES: Final = frozenset(name for name, _ in _PARAMETERS.values())
"""Every parameter of this kind."""


def parse_replay_asked(query: Mapping[str, Sequence[str]]) -> tuple[ReplayAsked, tuple[str, ...]]:
    """Return what a query string asks of a replay's figures, and a note for every value that was left out. Nothing raises.

    >>> parse_replay_asked({"see_outcome": ["lost"]})[1]
    ("The link's see_outcome='lost' is left out: it must be one of free, funded, downgraded.",)
    """
    values: dict[str, Any] = {}
    notes: list[str] = []
    for field, (name, read) in _PARAMETERS.items():
        given = [value for value in query.get(name, ()) if value]
        if given:
            try:
                values[field] = read(given)
            except InputError as error:
                notes.append(f"The link's {name}={shown(error.value)} is left out: it {error.rule}.")
    return ReplayAsked(**values), tuple(notes)
