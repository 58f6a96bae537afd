"""The shapes of AI Horde's answers, read field by field: what cannot be read is null and named, never guessed (horde.md §1).

A payload keeps the fields that it does not know. A field of a wrong form becomes null with a :class:`Problem`, so that one
bad worker never costs the others. Names stay as they come, HTML escapes included: they are escaped where they are shown.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, ValidationInfo, field_validator

from horde_policy.errors import Problem, SourceFormatError, shown

__all__ = [
    "LARGEST_FIGURE",
    "Findings",
    "HeartbeatPayload",
    "ModelPayload",
    "ModesPayload",
    "Payload",
    "PerformancePayload",
    "TotalPayload",
    "WorkerPayload",
    "parse_json",
]

LARGEST_FIGURE = 2**53
"""No figure of the API may be larger: up to here a double counts exactly, and sums of figures stay finite."""

MOST_PROBLEMS = 500
"""So many problems of one answer are named; the rest is counted in one more."""

NO_CAPACITY_ETA_S = 10_000.0
"""The server's marker for a queue that nothing serves; not a number of seconds (horde.md §1.4)."""

NOT_MEASURED_TEXT = "No requests fulfilled yet"

_SPEED = re.compile(r"(\d{1,20}(?:\.\d{1,20})?) tokens per second", re.ASCII)
_LONGEST_WHOLE_NUMBER = 30


@dataclass(slots=True)
class Findings:
    """Collects what was wrong in one answer, up to a bound.

    >>> findings = Findings("workers")
    >>> findings.add("unreadable_field", "worker 'a'", "field max_length: -1 must be at least 0")
    >>> findings.problems()[0].text
    "workers, worker 'a', field max_length: -1 must be at least 0"
    """

    part: str
    _found: list[Problem] = field(default_factory=list)
    _more: int = 0

    def add(self, code: str, subject: str, text: str, level: Literal["problem", "note"] = "problem") -> None:
        """Keep one finding; the item's name and the part go before ``text``."""
        if len(self._found) < MOST_PROBLEMS:
            self._found.append(Problem(code, subject, f"{self.part}, {subject}, {text}", level))
        else:
            self._more += 1

    def problems(self) -> tuple[Problem, ...]:
        """Return what was found, in the order of the answer."""
        if not self._more:
            return tuple(self._found)
        rest = f"{self.part}: {self._more} more problems are not listed; the first {MOST_PROBLEMS} are"
        return (*self._found, Problem("more_problems", self.part, rest))


# --- the forms a field may have -------------------------------------------------------------------------------------


def _real(value: object) -> float | None:
    """Return a figure as a float: finite, not negative, small enough to count exactly."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must be a finite number")
    if value < 0:
        raise ValueError("must be at least 0")
    if value > LARGEST_FIGURE:
        raise ValueError(f"must be at most {LARGEST_FIGURE}")
    return float(value)


def _whole(value: object) -> int | None:
    """Return a figure as a whole number; ``248.0`` is one, as the server often writes it."""
    figure = _real(value)
    if figure is None:
        return None
    if not figure.is_integer():
        raise ValueError("must be a whole number")
    return int(figure)


def _flag(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError("must be true or false")


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError("must be text")


def _listed(value: object) -> list[Any] | None:
    if value is None or isinstance(value, list):
        return value
    raise ValueError("must be a list")


def _speed(value: object) -> float | None:
    """Return the tokens per second of ``"53.8 tokens per second"``; null for the documented word of an unmeasured worker."""
    if value is None or value == NOT_MEASURED_TEXT:
        return None
    match = _SPEED.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"must read like '53.8 tokens per second' or {NOT_MEASURED_TEXT!r}")
    return _real(float(match[1]))


def _eta(value: object) -> float | None:
    seconds = _real(value)
    return None if seconds == NO_CAPACITY_ETA_S else seconds


Real = Annotated[float | None, PlainValidator(_real)]
Whole = Annotated[int | None, PlainValidator(_whole)]
Flag = Annotated[bool | None, PlainValidator(_flag)]
Text = Annotated[str | None, PlainValidator(_text)]
Speed = Annotated[float | None, PlainValidator(_speed)]
Eta = Annotated[float | None, PlainValidator(_eta)]
Listed = Annotated[list[Any] | None, PlainValidator(_listed)]


@dataclass(frozen=True, slots=True)
class _Item:
    """Which item is being read, and where its problems go."""

    subject: str
    findings: Findings


class Payload(BaseModel):
    """An object of an answer: known fields checked one by one, unknown fields kept."""

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())

    @field_validator("*", mode="wrap")
    @classmethod
    def _null_what_is_unreadable(cls, value: object, read: Callable[[object], Any], info: ValidationInfo) -> Any:
        try:
            return read(value)
        except ValidationError as error:
            rule = error.errors(include_url=False, include_input=False)[0]["msg"].removeprefix("Value error, ")
            if isinstance(info.context, _Item):
                text = f"field {info.field_name}: {shown(value)} {rule}; counted as not reported"
                info.context.findings.add("unreadable_field", info.context.subject, text)
            return None

    @classmethod
    def read(cls, item: object, subject: str, findings: Findings) -> Self | None:
        """Return the object, with null for each field that cannot be read; null itself if it is not an object at all.

        >>> findings = Findings("models")
        >>> ModelPayload.read({"name": "m", "queued": 512.0, "jobs": -1}, "item 1", findings)
        ModelPayload(name='m', count=None, performance=None, queued=512.0, jobs=None, eta=None, type=None)
        >>> print(findings.problems()[0].text)
        models, item 1, field jobs: -1 must be at least 0; counted as not reported
        """
        if not isinstance(item, dict):
            findings.add("not_an_object", subject, f"{shown(item)} must be an object; it was left out")
            return None
        return cls.read_object(item, subject, findings)

    @classmethod
    def read_object(cls, item: dict[str, Any], subject: str, findings: Findings) -> Self:
        """Return the object, with null for each field that cannot be read."""
        return cls.model_validate(item, context=_Item(subject, findings))


class WorkerPayload(Payload):
    """One worker of ``/v2/workers`` (horde.md §1.3)."""

    id: Text = None
    name: Text = None
    type: Text = None
    online: Flag = None
    performance: Speed = None
    threads: Whole = None
    max_length: Whole = None
    max_context_length: Whole = None
    models: Listed = None
    maintenance_mode: Flag = None
    requests_fulfilled: Whole = None
    uncompleted_jobs: Whole = None
    uptime: Whole = None
    trusted: Flag = None
    flagged: Flag = None
    bridge_agent: Text = None
    owner: Text = None


class ModelPayload(Payload):
    """One model of ``/v2/status/models`` (horde.md §1.4)."""

    name: Text = None
    count: Whole = None
    performance: Real = None
    queued: Real = None
    jobs: Real = None
    eta: Eta = None
    type: Text = None


class PerformancePayload(Payload):
    """``/v2/status/performance`` (horde.md §1.5)."""

    queued_text_requests: Real = None
    queued_tokens: Real = None
    past_minute_tokens: Real = None
    text_worker_count: Whole = None
    text_thread_count: Whole = None


class ModesPayload(Payload):
    """``/v2/status/modes``."""

    maintenance_mode: Flag = None
    invite_only_mode: Flag = None


class HeartbeatPayload(Payload):
    """``/v2/status/heartbeat``."""

    message: Text = None
    version: Text = None


class TotalPayload(Payload):
    """One period of ``/v2/stats/text/totals`` (horde.md §1.6)."""

    requests: Whole = None
    tokens: Whole = None


# --- from bytes -----------------------------------------------------------------------------------------------------


def _whole_number(digits: str) -> int | float:
    """Keep a number of thousands of digits from costing the whole answer: it is read as infinite, and refused at its field."""
    return int(digits) if len(digits) <= _LONGEST_WHOLE_NUMBER else math.inf


def _without_half_pairs(value: Any, changed: list[str]) -> Any:
    """Return the value with each lone half of a surrogate pair, which no text may hold, replaced."""
    if isinstance(value, str):
        whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if whole != value:
            changed.append(whole)
        return whole
    if isinstance(value, list):
        return [_without_half_pairs(item, changed) for item in value]
    if isinstance(value, dict):
        return {_without_half_pairs(k, changed): _without_half_pairs(v, changed) for k, v in value.items()}
    return value


def parse_json(content: bytes, source: str, part: str) -> tuple[Any, tuple[Problem, ...]]:
    """Return the value of a JSON text, and what had to be mended in it: bytes that are not UTF-8, halves of characters.

    Raises
    ------
    SourceFormatError
        The text is not JSON, or nested deeper than can be read.

    Examples
    --------
    >>> parse_json(b'[{"queued": 1}]', "a horde", "models")
    ([{'queued': 1}], ())
    >>> parse_json(b"<html>", "a horde", "models")
    Traceback (most recent call last):
    horde_policy.errors.SourceFormatError: a horde: models is not JSON: Expecting value, line 1 column 1
    """
    findings = Findings(part)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = content.decode("utf-8-sig", "replace")
        findings.add("broken_text", "text", f"byte {error.start} is not UTF-8; such bytes are shown as \ufffd")
    try:
        value = json.loads(text, parse_int=_whole_number)
        if "\\ud" in text or "\\uD" in text:
            changed: list[str] = []
            value = _without_half_pairs(value, changed)
            if changed:
                more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
                note = f"{shown(changed[0])}{more} held half a character, shown as \ufffd"
                findings.add("broken_text", "text", note)
    except json.JSONDecodeError as error:
        raise SourceFormatError(source, f"{part} is not JSON: {error.msg}, line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise SourceFormatError(source, f"{part} is nested too deep to be read") from None
    return value, findings.problems()
