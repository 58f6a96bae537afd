"""A mapping file: what a person says about exports that do not speak for themselves. It overrides what is read from names.

The file is TOML::

    time_zone = "Europe/Berlin"            # of local times that carry no zone
    lookback_s = 300                       # the look-back of the Prometheus that was asked
    scraped_at = 2026-11-23T00:00:00Z      # of text without timestamps; or "modified": the file's own time
    instance_labels = ["pod"]              # the labels that tell processes apart

    [labels]                               # the label of each dimension
    requester = "who"

    [values.outcome]                       # words that the rule does not use
    gratis = "free"

    [files."monday.prom"]
    scraped_at = 2026-11-23T00:00:00Z

    [[series]]                             # which series are meant, the first that fits decides
    file = "*.csv"                         # patterns; what is not given fits anything
    name = "horde:decisions:increase1h"    # the metric's name; "" for a series without one
    title = "free"                         # the title of a column
    labels = { horde_outcome = "*" }
    family = "decisions"                   # decisions, estimated, queue or ignore
    part = "value"                         # value, bucket, sum, count; mostly told by suffix and le
    values = "increase"                    # cumulative, increase or rate
    range_s = 3600                         # of increase and rate: what one value covers
    set = { outcome = "free" }             # dimensions that the series does not say
"""

import math
import tomllib
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast, get_args
from zoneinfo import ZoneInfo

from horde_policy.errors import InputError

__all__ = ["DIMENSIONS", "Dimension", "Mapping", "SeriesRule", "load_mapping", "mapping_of"]

Dimension = Literal["requester", "outcome", "requested_size", "allowance_size", "chat"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

DEFAULT_LOOKBACK_S = 300.0
"""Prometheus repeats a series' last value for so long after it went away (exports.md 2)."""

FAMILY_WORDS = ("decisions", "estimated", "queue", "ignore")
PART_WORDS = ("value", "bucket", "sum", "count")
VALUE_WORDS = ("cumulative", "increase", "rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRule:
    """One ``[[series]]`` entry: which series it fits, and what they are."""

    family: str
    file: str | None = None
    name: str | None = None
    title: str | None = None
    labels: MappingOf[str, str] = field(default_factory=dict)
    part: str | None = None
    values: str = "cumulative"
    range_s: float | None = None
    set: MappingOf[str, str] = field(default_factory=dict)

    def may_fit(self, file: str, name: str) -> bool:
        """Return whether a metric could be meant, before its labels are known."""
        return (self.file is None or fnmatchcase(file, self.file)) and (
            self.name is None or (fnmatchcase(name, self.name) if self.name else not name)
        )

    def fits(self, file: str, name: str, title: str | None, labels: MappingOf[str, str]) -> bool:
        """Return whether every pattern given fits.

        >>> SeriesRule(family="decisions", name="my_*").fits("a.csv", "my_total", None, {})
        True
        """
        return (
            self.may_fit(file, name)
            and (self.title is None or (title is not None and fnmatchcase(title, self.title)))
            and all(label in labels and fnmatchcase(labels[label], pattern) for label, pattern in self.labels.items())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """What a mapping file says; the default says nothing. See the module for the file's form."""

    labels: MappingOf[str, tuple[str, ...]] = field(default_factory=dict)
    values: MappingOf[str, MappingOf[str, str]] = field(default_factory=dict)
    instance_labels: tuple[str, ...] | None = None
    time_zone: ZoneInfo | None = None
    lookback_s: float = DEFAULT_LOOKBACK_S
    scraped_at: datetime | Literal["modified"] | None = None
    files: MappingOf[str, datetime | Literal["modified"]] = field(default_factory=dict)
    series: tuple[SeriesRule, ...] = ()

    def scrape_time(self, file: str, modified: datetime | None) -> datetime | None:
        """Return when a file's values without timestamps were read, if the mapping or, when it says so, the file tells."""
        said = self.files.get(file, self.scraped_at)
        return modified if said == "modified" else said


def load_mapping(path: Path) -> Mapping:
    """Return the mapping of a TOML file.

    Raises
    ------
    InputError
        The file cannot be read, is not TOML, or an entry is not one that a mapping has.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("mapping file", "", str(path), f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("mapping file", "", str(path), f"is not TOML: {error}") from error
    return mapping_of(content)


def mapping_of(content: MappingOf[str, Any]) -> Mapping:
    """Return the mapping that parsed TOML describes.

    >>> mapping_of({"labels": {"requester": "who"}}).labels
    {'requester': ('who',)}
    >>> mapping_of({"series": [{"family": "waits"}]})
    Traceback (most recent call last):
    horde_policy.errors.InputError: mapping file, series 1, family: 'waits' must be one of decisions, estimated, queue, ignore
    """
    known = ("labels", "values", "instance_labels", "time_zone", "lookback_s", "scraped_at", "files", "series")
    for entry in content:
        _one_of("", entry, known)
    labels = {
        _one_of("labels", name, DIMENSIONS): _texts(f"labels.{name}", said) for name, said in _table("labels", content).items()
    }
    values = {
        _one_of("values", name, DIMENSIONS): {
            raw: _text(f"values.{name}.{raw}", word) for raw, word in _table(name, {name: words}).items()
        }
        for name, words in _table("values", content).items()
    }
    files = {name: _scrape_time(f"files.{name}", entry) for name, entry in _table("files", content).items()}
    rules = content.get("series", [])
    if not isinstance(rules, list):
        raise InputError("mapping file", "series", rules, "must be a list of tables: [[series]]")
    instance = content.get("instance_labels")
    lookback_s = content.get("lookback_s", DEFAULT_LOOKBACK_S)
    return Mapping(
        labels=labels,
        values=values,
        instance_labels=None if instance is None else _texts("instance_labels", instance),
        time_zone=_zone(content.get("time_zone")),
        lookback_s=_seconds("lookback_s", lookback_s),
        scraped_at=_scrape_time("", content) if "scraped_at" in content else None,
        files=files,
        series=tuple(_rule(number, entry) for number, entry in enumerate(rules, start=1)),
    )


def _one_of(where: str, value: object, words: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in words:
        raise InputError("mapping file", where, value, "must be one of " + ", ".join(words))
    return value


def _table(where: str, content: MappingOf[str, Any]) -> dict[str, Any]:
    table = content.get(where, {})
    if not isinstance(table, dict):
        raise InputError("mapping file", where, table, "must be a table")
    return table


def _text(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise InputError("mapping file", where, value, "must be a text")
    return value


def _texts(where: str, value: object) -> tuple[str, ...]:
    return tuple(_text(where, item) for item in value) if isinstance(value, list) else (_text(where, value),)


def _seconds(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise InputError("mapping file", where, value, "must be a number of seconds above 0")
    return float(value)


def _zone(value: object) -> ZoneInfo | None:
    if value is None:
        return None
    try:
        return ZoneInfo(_text("time_zone", value))
    except (KeyError, ValueError, OSError) as error:
        raise InputError("mapping file", "time_zone", value, "is not the name of a time zone, such as Europe/Berlin") from error


def _scrape_time(where: str, entry: object) -> datetime | Literal["modified"]:
    place = f"{where}.scraped_at".lstrip(".")
    said = entry.get("scraped_at") if isinstance(entry, dict) else None
    if said == "modified":
        return "modified"
    if isinstance(said, datetime) and said.tzinfo is not None and isinstance(said, date):
        return said.astimezone(UTC)
    raise InputError("mapping file", place, said, 'must be an instant with its zone, such as 2026-11-23T00:00:00Z, or "modified"')


def _rule(number: int, entry: object) -> SeriesRule:
    where = f"series {number}"
    if not isinstance(entry, dict):
        raise InputError("mapping file", where, entry, "must be a table")
    known = ("family", "file", "name", "title", "labels", "part", "values", "range_s", "set")
    for name in entry:
        _one_of(where, name, known)
    values = _one_of(f"{where}, values", entry.get("values", "cumulative"), VALUE_WORDS)
    if values != "cumulative" and "range_s" not in entry:
        raise InputError("mapping file", where, values, "needs range_s: the seconds that one value covers")
    said = {name: _text(f"{where}, {name}", entry[name]) for name in ("file", "name", "title") if name in entry}
    tables = {
        name: {key: _text(f"{where}, {name}", text) for key, text in _table(name, entry).items()} for name in ("labels", "set")
    }
    for dimension in tables["set"]:
        _one_of(f"{where}, set", dimension, cast(tuple[str, ...], DIMENSIONS))
    return SeriesRule(
        family=_one_of(f"{where}, family", entry.get("family"), FAMILY_WORDS),
        part=_one_of(f"{where}, part", entry["part"], PART_WORDS) if "part" in entry else None,
        values=values,
        range_s=_seconds(f"{where}, range_s", entry["range_s"]) if "range_s" in entry else None,
        labels=tables["labels"],
        set=tables["set"],
        **said,
    )
