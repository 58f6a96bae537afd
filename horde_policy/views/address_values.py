"""How a value of an address is read and written: the rules that every page's parameters are made of (T6).

A reader takes the values that an address gives a parameter, of which the last counts, and returns what they stand for or raises
:class:`UnreadableValue` with the rule that they break. Each page's own list of parameters joins readers and writers to fields.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from horde_policy.errors import InputError, shown

__all__ = [
    "EARLIEST",
    "LATEST",
    "Parameter",
    "Query",
    "UnreadableValue",
    "bit",
    "checked",
    "flag",
    "in_calendar",
    "left_out",
    "matching",
    "number",
    "number_text",
    "one",
    "one_of",
    "read_values",
    "signed",
    "text_of_at_most",
    "whole",
]

Query = Mapping[str, Sequence[str]]
"""A query string: name → its values in order."""

_WHOLE = re.compile(r"[0-9]{1,9}")
_SIGNED = re.compile(r"-?[0-9]{1,9}")
_REAL: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2199, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
"""The instants that a page takes: far from the ends of the calendar, past which a range moved by a week has no date."""


class UnreadableValue(Exception):  # noqa: N818 (a reader's answer, caught where an address is read)
    """A value of an address breaks the rule that the message names."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an address: the field it stands for, how it is read and how it is written.

    ``shared`` says whether all pages share it, ``several`` whether each of its values counts and not only the last.
    """

    name: str
    field: str
    read: Callable[[Sequence[str]], Any]
    write: Callable[[Any], Sequence[str]]
    shared: bool = True
    several: bool = False


def read_values(parameters: Iterable[Parameter], query: Query) -> tuple[dict[str, Any], list[str]]:
    """Return field → value of what an address gives, and a note for every parameter that is left out. Nothing raises.

    >>> size = Parameter("size", "size_tokens", whole(1, 9), one)
    >>> read_values([size], {"size": ["4"]}), read_values([size], {"size": ["four"]})[1]
    (({'size_tokens': 4}, []), ["The link's size='four' is left out: it must be a whole number from 1 to 9."])
    """
    values: dict[str, Any] = {}
    notes: list[str] = []
    for parameter in parameters:
        given = query.get(parameter.name)
        if given:
            try:
                values[parameter.field] = parameter.read(given)
            except UnreadableValue as rule:
                notes.append(left_out(parameter.name, given, str(rule), several=parameter.several))
    return values, notes


def left_out(name: str, given: Sequence[str], rule: str, *, several: bool = False) -> str:
    """Return what is left out and why: of a parameter of several values all of them, of another the one that would count.

    >>> left_out("m", ["a", "b"], "must be short", several=True)
    "The link's m='b' and 1 more of m are left out: they must be short."
    """
    others = len(given) - 1 if several else 0
    if others:
        return f"The link's {name}={shown(given[-1])} and {others} more of {name} are left out: they {rule}."
    return f"The link's {name}={shown(given[-1])} is left out: it {rule}."


# --- readers ------------------------------------------------------------------------------------------------------------


def whole(least: int, most: int) -> Callable[[Sequence[str]], int]:
    """Read a whole number of at least 0.

    >>> whole(16, 512)(["80"])
    80
    """

    def read(values: Sequence[str]) -> int:
        text = values[-1]
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
            raise UnreadableValue(f"must be a whole number from {least} to {most}")
        return int(text)

    return read


def signed(most: int) -> Callable[[Sequence[str]], int]:
    """Read a whole number from ``-most`` to ``most``.

    >>> signed(10)(["-3"])
    -3
    """

    def read(values: Sequence[str]) -> int:
        text = values[-1]
        if not _SIGNED.fullmatch(text) or abs(int(text)) > most:
            raise UnreadableValue(f"must be a whole number from {-most} to {most}")
        return int(text)

    return read


def number(least: float, most: float) -> Callable[[Sequence[str]], float]:
    """Read a number of at least 0, with at most nine digits before and after the point.

    >>> number(0.5, 2)(["1.25"])
    1.25
    """

    def read(values: Sequence[str]) -> float:
        text = values[-1]
        if not _REAL.fullmatch(text) or not least <= float(text) <= most:
            raise UnreadableValue(f"must be a number from {least:g} to {most:g}")
        return float(text)

    return read


def flag(values: Sequence[str]) -> bool:
    """Read 0 or 1.

    >>> flag(["1"])
    True
    """
    if values[-1] not in ("0", "1"):
        raise UnreadableValue("must be 0 or 1")
    return values[-1] == "1"


def one_of(choices: Iterable[object], written: Callable[[Any], str] = str) -> Callable[[Sequence[str]], Any]:
    """Read one of the choices by the text it is written as.

    >>> one_of([0, 10])(["10"])
    10
    """
    by_text = {written(choice): choice for choice in choices}

    def read(values: Sequence[str]) -> Any:
        if values[-1] not in by_text:
            raise UnreadableValue("must be one of " + ", ".join(by_text))
        return by_text[values[-1]]

    return read


def matching(pattern: str, rule: str) -> Callable[[Sequence[str]], str]:
    """Read a text that matches the pattern as a whole; ``rule`` says what it must be.

    >>> matching("[a-z]{1,9}", "must be a word")(["speed"])
    'speed'
    """
    compiled = re.compile(pattern)

    def read(values: Sequence[str]) -> str:
        if not compiled.fullmatch(values[-1]):
            raise UnreadableValue(rule)
        return values[-1]

    return read


def text_of_at_most(characters: int) -> Callable[[Sequence[str]], str]:
    """Read any text that is not longer.

    >>> text_of_at_most(3)(["8b"])
    '8b'
    """

    def read(values: Sequence[str]) -> str:
        if len(values[-1]) > characters:
            raise UnreadableValue(f"must have at most {characters} characters")
        return values[-1]

    return read


def checked(check: Callable[[str], Any]) -> Callable[[Sequence[str]], Any]:
    """Read what a field of a form takes: the check raises an input error with its rule.

    >>> checked(str.strip)([" all "])
    'all'
    """

    def read(values: Sequence[str]) -> Any:
        try:
            return check(values[-1])
        except InputError as error:
            raise UnreadableValue(error.rule) from None

    return read


def in_calendar(at: datetime, rule: str) -> datetime:
    """Return an instant in UTC; ``rule`` says how one is written.

    Raises
    ------
    UnreadableValue
        It is not of the years 1970 to 2199.

    Examples
    --------
    >>> in_calendar(datetime.fromisoformat("2026-11-29T13:00+01:00"), "must be an instant").hour
    12
    >>> in_calendar(datetime.fromisoformat("0001-01-01T00:00+01:00"), "must be an instant")
    Traceback (most recent call last):
    horde_policy.views.address_values.UnreadableValue: must be an instant, of the years 1970 to 2199
    """
    if not EARLIEST <= at <= LATEST:
        raise UnreadableValue(f"{rule}, of the years {EARLIEST.year} to {LATEST.year}")
    return at.astimezone(UTC)


# --- writers ------------------------------------------------------------------------------------------------------------


def one(value: object) -> tuple[str]:
    """Write a value as its text.

    >>> one(512)
    ('512',)
    """
    return (str(value),)


def bit(value: object) -> tuple[str]:
    """Write a truth as 0 or 1.

    >>> bit(True)
    ('1',)
    """
    return ("1" if value else "0",)


def number_text(value: float) -> tuple[str]:
    """Write a number as :func:`number` reads it.

    >>> number_text(30.0), number_text(0.125)
    (('30',), ('0.125',))
    """
    return (f"{value:.9f}".rstrip("0").rstrip("."),)
