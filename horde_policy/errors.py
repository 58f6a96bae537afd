"""The errors of the package: one small tree, each naming what, where, the value and the rule.

HordePolicyError
├── ConfigError        a setting that makes no sense (A4, B-rules): setting, value, rule
├── InputError         bad input from a person or a file: what, where, value, rule
│   ├── FrameError     a frame that does not match its schema: frame, column
│   ├── MissingPriceError    a model that no price table prices: a missing price is not zero
│   └── ConflictError  a ledger entry that exists with other figures: the first is kept
├── SourceError        a source that gives no answer: source
│   ├── SourceUnavailable
│   ├── SourceThrottled      carries retry_after_s
│   └── SourceFormatError    carries field and row
├── ReplayError        a replay that cannot go on
│   └── ReplayCancelled
├── ReadingCancelled   the caller cancelled the reading of a file
└── StoreError         a history or ledger database that cannot do its work: store

What is wrong *in the data* is not an exception but a :class:`Problem`, which travels with the snapshot or the import.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

__all__ = [
    "ConfigError",
    "ConflictError",
    "FrameError",
    "HordePolicyError",
    "InputError",
    "MissingPriceError",
    "Problem",
    "ReadingCancelled",
    "ReplayCancelled",
    "ReplayError",
    "SourceError",
    "SourceFormatError",
    "SourceThrottled",
    "SourceUnavailable",
    "StoreError",
]

SHOWN_VALUE_CHARACTERS = 80
WITHOUT_VALUE = ("is missing", "is not named", "must say", "must be given,", "needs", "has no", "is not CSV")
"""How rules begin that nothing, and not a value, breaks."""


def shown(value: object) -> str:
    """Return the value as it stands in a message: its repr, cut so that a hostile value cannot fill a page.

    >>> shown("x" * 200)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"
    >>> from datetime import UTC
    >>> shown(datetime(2026, 11, 29, tzinfo=UTC)), shown({"from": 4096, "to": 512})
    ('2026-11-29T00:00:00Z', '{from = 4096, to = 512}')
    """
    text = _written(value)
    return text if len(text) <= SHOWN_VALUE_CHARACTERS else text[:SHOWN_VALUE_CHARACTERS] + "…"


def _written(value: object) -> str:
    """Return a value as it is typed: an instant as ISO 8601, a table as in TOML, anything else by its repr."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, dict):
        keys = (key if isinstance(key, str) and key.isidentifier() else repr(key) for key in value)
        return "{" + ", ".join(f"{key} = {_written(cell)}" for key, cell in zip(keys, value.values(), strict=True)) + "}"
    return repr(value)


def _broken(value: object, rule: str) -> str:
    """Return a value and its rule as a sentence's end; what is not there has no value to show."""
    return rule if value is None and rule.startswith(WITHOUT_VALUE) else f"{shown(value)} {rule}"


class HordePolicyError(Exception):
    """Base of all errors of the package; ``hint`` says what helps, if anything is known to."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message} ({hint})")
        self.hint = hint


class ConfigError(HordePolicyError):
    """A setting is refused where it is typed.

    >>> print(ConfigError("floor_tokens", 0, "must be a whole number of at least 1"))
    setting floor_tokens: 0 must be a whole number of at least 1
    """

    def __init__(self, setting: str, value: object, rule: str, *, hint: str | None = None) -> None:
        super().__init__(f"setting {setting}: {_broken(value, rule)}", hint=hint)
        self.setting = setting
        self.value = value
        self.rule = rule


class InputError(HordePolicyError):
    """Input that breaks a rule; nothing of it was used.

    >>> print(InputError("traffic", "row 3, column max_length", -1, "must be at least 1"))
    traffic, row 3, column max_length: -1 must be at least 1
    """

    def __init__(self, what: str, where: str, value: object, rule: str, *, hint: str | None = None) -> None:
        place = f"{what}, {where}" if where else what
        super().__init__(f"{place}: {_broken(value, rule)}", hint=hint)
        self.what = what
        self.where = where
        self.value = value
        self.rule = rule

    @property
    def told(self) -> str:
        """What is wrong and where, for a place that has said already what it is about.

        >>> InputError("size", "", "80.5", "must be a whole number").told
        "'80.5' must be a whole number"
        >>> InputError("constraint", "cost < 3", "cost", "is no metric").told, InputError("objective", "x", "x", "is none").told
        ("cost < 3: 'cost' is no metric", "'x' is none")
        """
        told = _broken(self.value, self.rule)
        told = told if self.where in ("", self.value) else f"{self.where}: {told}"
        return told if self.hint is None else f"{told} ({self.hint})"


class FrameError(InputError):
    """A frame does not match its schema: a column is missing, or has another type."""


class MissingPriceError(InputError):
    """A model has no price at that time: it is refused under a hard budget, never taken as free."""


class ConflictError(InputError):
    """A request and attempt is in the ledger with other figures, or ended otherwise: the first entry is kept."""


class SourceError(HordePolicyError):
    """A source gave no usable answer; ``source`` is its name as shown to people, never with a secret."""

    def __init__(self, source: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{source}: {message}", hint=hint)
        self.source = source


class SourceUnavailable(SourceError):  # noqa: N818 (the house's name for it)
    """The source cannot be reached, or answers with a server error."""


class SourceThrottled(SourceError):  # noqa: N818
    """The source answers 429 without ``rc``; ``retry_after_s`` is what it asks for (null if it does not say)."""

    def __init__(self, source: str, message: str, *, retry_after_s: float | None) -> None:
        super().__init__(source, message)
        self.retry_after_s = retry_after_s


class SourceFormatError(SourceError):
    """The source's answer as a whole cannot be read; ``field`` and ``row`` say where, when known."""

    def __init__(self, source: str, message: str, *, field: str | None = None, row: int | None = None) -> None:
        super().__init__(source, message)
        self.field = field
        self.row = row


class ReplayError(HordePolicyError):
    """A replay that cannot go on."""


class ReplayCancelled(ReplayError):  # noqa: N818
    """The caller cancelled the replay; nothing of it is kept."""


class ReadingCancelled(HordePolicyError):  # noqa: N818
    """The caller cancelled the reading of a file; nothing of it is kept."""


class StoreError(HordePolicyError):
    """A history or ledger database cannot do its work; ``store`` names it without its password."""

    def __init__(self, store: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{store}: {message}", hint=hint)
        self.store = store


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in the data, which stays usable without it.

    ``code`` is one word for machines, ``subject`` names the item (worker, model, file, line), ``text`` is a sentence with
    field, value and rule. Level ``problem`` means that figures are affected, ``note`` that they are not.
    """

    code: str
    subject: str
    text: str
    level: Literal["problem", "note"] = "problem"
