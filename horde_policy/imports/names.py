"""What a series is, told by its metric's name and labels: the three families under all spellings of horde.md §7.3 and §7.4.

Names come with dots or underscores, with and without ``_total`` and unit suffix; labels with and without ``horde_``; booleans
and ``le`` in several spellings (exports.md 11). Whatever is not understood is named, so that it can be counted.
"""

import json
import math
import re
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from horde_policy.frames.decisions import OUTCOMES, REQUESTERS, SIZE_EDGES_TOKENS, SIZES
from horde_policy.imports.mapping import DIMENSIONS, Mapping, SeriesRule

__all__ = [
    "LONG_SERIES",
    "MAX_SERIES_CHARACTERS",
    "SERIES_SELECTOR",
    "Family",
    "Named",
    "Namer",
    "Part",
    "SeriesKey",
    "Temporality",
    "Unread",
    "metric_of",
    "size_word",
]

Family = Literal["decisions", "estimated", "queue"]
Part = Literal["value", "le", "bin", "native", "sum", "count", "created"]
Temporality = Literal["cumulative", "delta", "increase", "counted"]
"""How values count: up from a start; since the export before; over a range, extrapolated; or over an interval, by us."""

_UNIT = r"(?:_(?P<unit>seconds|s|milliseconds|ms|ratio|1|requests?))*"
_FAMILIES: tuple[tuple[Family, re.Pattern[str]], ...] = (
    ("decisions", re.compile(rf"horde_text_free_allowance_decisions{_UNIT}(?:_total)?(?P<suffix>_created)?")),
    ("estimated", re.compile(rf"horde_text_free_allowance_estimated_wait{_UNIT}(?P<suffix>_bucket|_sum|_count|_created)?")),
    ("queue", re.compile(rf"horde_text_queue_wait{_UNIT}(?P<suffix>_bucket|_sum|_count|_created)?")),
)
SERIES_SELECTOR = '{__name__=~"horde_text_(free_allowance_decisions|free_allowance_estimated_wait|queue_wait).*"}'
"""What to ask a Prometheus or Mimir for: the three families under every name."""

_STEMS = ("text_free_allowance", "text_queue_wait")

_SPELLINGS: MappingOf[str, tuple[str, ...]] = {
    "requester": ("horde_requester", "requester", "horde_requester_kind", "requester_kind"),
    "outcome": ("horde_outcome", "outcome"),
    "requested_size": (
        "horde_requested_size",
        "horde_requested_size_bucket",
        "horde_requested",
        "requested_size",
        "requested_size_bucket",
        "requested",
    ),
    "allowance_size": (
        "horde_allowance_size",
        "horde_allowance_size_bucket",
        "horde_allowance",
        "allowance_size",
        "allowance_size_bucket",
        "allowance",
    ),
    "chat": ("horde_chat", "horde_is_chat", "chat", "is_chat"),
}
"""The labels of each dimension, tried in this order (horde.md §7.4)."""

_ENVIRONMENT = frozenset({"deployment_environment_name", "deployment_environment", "environment", "env"})
_INSTANCE_LABELS = (
    *("job", "instance", "exported_job", "exported_instance", "service_namespace", "service_name", "service_instance_id"),
    *("cluster", "namespace", "region", "zone", "node", "host", "host_name", "hostname", "horde_host", "pod", "k8s_pod_name"),
    *("container", "container_id", "process_pid", "replica", "prometheus", "prometheus_replica", *sorted(_ENVIRONMENT)),
)
"""Labels that tell processes apart; any other label tells series of one process apart."""

_RESOURCE = frozenset({"service_instance_id", "service_name", "service_namespace", "exported_job", "exported_instance"})
_SILENT = re.compile(r"__name__|le|quantile|otel_scope_\w+|telemetry_sdk_\w+|__\w+__")
MOST_WANTED = 10_000
"""So many names are remembered a file; hostile files may bring more."""

MAX_SERIES_CHARACTERS = 64 << 10
"""The longest name with its labels. Prometheus and Mimir write some hundred; a longer one would multiply in memory."""

LONG_SERIES = f"a series whose name and labels have more than {MAX_SERIES_CHARACTERS:,} characters"
"""Why a series, line or point was left out that is longer."""

_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


class SeriesKey(NamedTuple):
    """What tells one series from all others. ``lower_s`` is set for bins, ``upper_s`` for bins and ``le``; null if not said."""

    instance: str
    family: Family
    part: Part
    lower_s: float | None
    upper_s: float | None
    requester: str | None
    outcome: str | None
    requested_size: str | None
    allowance_size: str | None
    chat: bool | None
    extra: str
    temporality: Temporality


@dataclass(frozen=True, slots=True)
class Named:
    """A series that was understood: its key, what its values are to be multiplied by, and what each of them covers.

    ``unit_s`` is the unit of waits in seconds; ``notes`` are the spellings used, unknown labels and unknown words as (kind,
    subject, text).
    """

    key: SeriesKey
    scale: float = 1.0
    range_s: float | None = None
    unit_s: float = 1.0
    notes: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Unread:
    """A series that was not understood, and why, in a few words."""

    reason: str


def metric_of(name: str) -> tuple[Family, str, float] | None:
    """Return family, suffix and seconds per unit of a metric's name; null if it is none of the three.

    >>> metric_of("horde.text.free_allowance.decisions"), metric_of("horde_text_free_allowance_decisions_total")
    (('decisions', '', 1.0), ('decisions', '', 1.0))
    >>> metric_of("horde_text_queue_wait_seconds_bucket"), metric_of("horde_text_queue_wait_max")
    (('queue', '_bucket', 1.0), None)
    """
    plain = name.replace(".", "_")
    for family, pattern in _FAMILIES:
        if found := pattern.fullmatch(plain):
            scale = 0.001 if family != "decisions" and found["unit"] in {"milliseconds", "ms"} else 1.0
            return family, found["suffix"] or "", scale
    return None


def size_word(raw: str) -> str | None:
    """Return the size bucket that a label's text means; null if it is none of A25's.

    >>> [size_word(text) for text in ("<=512", "le_512", "513–1024", "4097+", "gt_4096", "700")]
    ['<=512', '<=512', '513-1024', '>4096', '>4096', None]
    """
    text = raw.strip().lower().replace("–", "-").replace("≤", "<=")
    if text in SIZES:
        return text
    numbers = [int(number) for number in re.findall(r"\d{1,9}", text)]
    if len(numbers) == 1:
        if numbers == [SIZE_EDGES_TOKENS[0]] and re.match(r"<|le|lte|up|0|max", text):
            return SIZES[0]
        above = re.match(r">|gt|over|above|more", text) is not None
        if (above and numbers == [SIZE_EDGES_TOKENS[-1]]) or (text.endswith("+") and numbers[0] in {4096, 4097}):
            return SIZES[-1]
    if len(numbers) == 2:
        low, high = numbers
        if high == SIZE_EDGES_TOKENS[0] and low in {0, 1}:
            return SIZES[0]
        if low == SIZE_EDGES_TOKENS[-1] + 1:
            return SIZES[-1]
        word = f"{low}-{high}"
        return word if word in SIZES else None
    return None


def _word_of(dimension: str, raw: str) -> str | bool | None:
    """Return the rule's word for a label's text; null if it has none."""
    if dimension in {"requested_size", "allowance_size"}:
        return size_word(raw)
    text = raw.strip().strip('"').lower()
    if dimension == "chat":
        return True if text in _TRUE else False if text in _FALSE else None
    text = text.replace("-", "_").replace(" ", "_")
    return text if text in (REQUESTERS if dimension == "requester" else OUTCOMES) else None


def bound_of(text: str) -> float | None:
    """Return the number that a ``le`` label spells; null if it spells none.

    >>> bound_of("60"), bound_of("60.0"), bound_of("+Inf"), bound_of("NaN")
    (60.0, 60.0, inf, None)
    """
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) or bound == -math.inf else bound


@dataclass(slots=True)
class Namer:
    """Tells what series are, by the built-in spellings and a mapping that overrides them, for one file."""

    mapping: Mapping
    file: str
    _spellings: dict[str, tuple[str, ...]] = field(init=False)
    _wanted: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._spellings = {name: (*self.mapping.labels.get(name, ()), *_SPELLINGS[name]) for name in DIMENSIONS}

    def wants(self, name: str) -> bool:
        """Return whether any series of this metric could be one of the three families; cheap, before labels are parsed."""
        if len(name) > MAX_SERIES_CHARACTERS:
            return False
        if name not in self._wanted:
            fits = metric_of(name) is not None or any(rule.may_fit(self.file, name) for rule in self.mapping.series)
            if len(self._wanted) >= MOST_WANTED:
                return fits
            self._wanted[name] = fits
        return self._wanted[name]

    def named(
        self,
        name: str,
        labels: MappingOf[str, str],
        *,
        title: str | None = None,
        temporality: Temporality = "cumulative",
        native: bool = False,
    ) -> Named | Unread:
        """Return what the series is. One without a name, which no rule of the mapping fits, is not guessed at (exports.md 7).

        ``native`` says that the form can carry whole histograms; else a histogram's bare name is not understood.
        """
        if len(name) + sum(len(label) + len(text) for label, text in labels.items()) > MAX_SERIES_CHARACTERS:
            return Unread(LONG_SERIES)
        rule = next((rule for rule in self.mapping.series if rule.fits(self.file, name, title, labels)), None)
        if rule is not None and rule.family == "ignore":
            return Unread("left out by the mapping")
        found = metric_of(name)
        if rule is None and found is None:
            if not name:
                return Unread("a series without a name: only a mapping can say what it counts")
            near = any(stem in name.replace(".", "_") for stem in _STEMS)
            return Unread("a name that looks like one of the three but is not: a mapping can say" if near else "another metric")
        family, suffix, scale = found or (rule.family if rule else "", _suffix_of(name, rule), 1.0)
        if rule is not None:
            family = rule.family
        part = self._part(family, suffix, rule, labels)
        if isinstance(part, Unread):
            return part
        if part == "native" and not native:
            return Unread("a value where a histogram is meant")
        return self._keyed(family, part, labels, rule, scale, temporality)  # type: ignore[arg-type]

    def _part(self, family: str, suffix: str, rule: SeriesRule | None, labels: MappingOf[str, str]) -> Part | Unread:
        if suffix == "_created":
            return "created"
        if family == "decisions":
            return "value"
        said = rule.part if rule and rule.part else {"_bucket": "bucket", "_sum": "sum", "_count": "count"}.get(suffix)
        if said is None:
            said = "bucket" if "le" in labels else "native"
        if said == "bucket":
            if "le" not in labels:
                return Unread("a bucket series without le")
            return "le" if bound_of(labels["le"]) is not None else Unread("a bucket series whose le is no number")
        return said if said in {"sum", "count", "native"} else Unread("a value where a histogram is meant")  # type: ignore[return-value]

    def _keyed(
        self,
        family: Family,
        part: Part,
        labels: MappingOf[str, str],
        rule: SeriesRule | None,
        scale: float,
        temporality: Temporality,
    ) -> Named:
        notes: list[tuple[str, str, str]] = []
        left = {label.replace(".", "_"): text for label, text in labels.items()}
        words: dict[str, str | bool | None] = {}
        for dimension in DIMENSIONS:
            label = next((label for label in self._spellings[dimension] if label in left), None)
            raw = left.pop(label) if label is not None else rule.set.get(dimension) if rule else None
            if raw is None:
                words[dimension] = None
                continue
            mapped = self.mapping.values.get(dimension, {}).get(raw, raw)
            words[dimension] = _word_of(dimension, mapped)
            notes.append(("spelling", dimension, label or "mapping"))
            if words[dimension] is None:
                notes.append(("word", dimension, raw))
        upper_s = None
        if part == "le":
            bound = bound_of(labels["le"])
            upper_s = None if bound is None else bound * scale
        instance, extra = self._instance(left)
        notes.extend(("label", label, text) for label, text in extra.items())
        values = rule.values if rule else "cumulative"
        key = SeriesKey(
            instance=instance,
            family=family,
            part=part,
            lower_s=None,
            upper_s=upper_s,
            extra=_spelled(extra),
            temporality=temporality if values == "cumulative" else "increase",
            **words,  # type: ignore[arg-type]
        )
        range_s = rule.range_s if rule else None
        factor = range_s if values == "rate" and range_s is not None else 1.0
        return Named(key, factor * (scale if part == "sum" else 1.0), range_s, scale, tuple(notes))

    def _instance(self, labels: MappingOf[str, str]) -> tuple[str, dict[str, str]]:
        """Return the process as text, and the labels that tell series of one process apart."""
        labels = _of_resource(labels)
        told = self.mapping.instance_labels
        by = told if told is not None else _INSTANCE_LABELS
        own = {label: labels[label] for label in by if labels.get(label)}
        if told is None and ("instance" in own or "exported_instance" in own):
            own = {label: text for label, text in own.items() if label not in _ENVIRONMENT}
        known = frozenset(by) | frozenset(_INSTANCE_LABELS)
        extra = {label: labels[label] for label in sorted(labels) if label not in known and not _SILENT.fullmatch(label)}
        return _spelled(own), {label: text for label, text in extra.items() if text}


def _of_resource(labels: MappingOf[str, str]) -> MappingOf[str, str]:
    """Return labels with those of an OTLP resource as Prometheus names them, so that both records of a process agree."""
    if not labels.get("service_instance_id"):
        return labels
    left = {label: text for label, text in labels.items() if label not in _RESOURCE}
    space, name = labels.get("service_namespace"), labels.get("service_name")
    job = {"job": f"{space}/{name}" if space else name} if name else {}
    return {**left, **job, "instance": labels["service_instance_id"]}


def _suffix_of(name: str, rule: SeriesRule | None) -> str:
    """Return the suffix of a name that only the mapping knows."""
    if rule is None or rule.family == "decisions":
        return "_created" if name.endswith("_created") else ""
    return next((suffix for suffix in ("_bucket", "_sum", "_count", "_created") if name.endswith(suffix)), "")


def _spelled(labels: MappingOf[str, str]) -> str:
    """Return labels as Prometheus writes them, without the braces.

    >>> _spelled({"job": "ai-horde", "instance": "a"})
    'job="ai-horde",instance="a"'
    """
    return ",".join(f"{label}={json.dumps(text, ensure_ascii=False)}" for label, text in labels.items())
