"""The parts of a snapshot: which endpoint and file each comes from, how its answer becomes a frame, how they become one.

Live, recorded and demo sources all end in :func:`assemble`: one code path from an answer's JSON to a snapshot.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

import polars as pl

from horde_policy.errors import Problem, SourceFormatError, shown
from horde_policy.frames.models import MODEL_DEMAND, MODELS
from horde_policy.frames.snapshot import Heartbeat, Modes, Performance, Snapshot, SourceKind, Totals
from horde_policy.frames.workers import WORKERS
from horde_policy.sources.payloads import (
    Findings,
    HeartbeatPayload,
    ModelPayload,
    ModesPayload,
    PerformancePayload,
    TotalPayload,
    WorkerPayload,
)

__all__ = ["PARTS", "Part", "PartName", "PartSpec", "assemble", "missing", "read_models", "read_part", "read_workers"]

PartName = Literal["workers", "models", "performance", "modes", "heartbeat", "totals", "demand"]


@dataclass(frozen=True, slots=True)
class PartSpec:
    """One part of a snapshot.

    Attributes
    ----------
    path, query
        Where the API has it, below ``/api``.
    file
        Its file in a recorded folder.
    refresh_s
        The server's cache brings nothing new before this (horde.md §1.2).
    without
        What its absence means, as the text and level of a problem.
    """

    path: str
    query: tuple[tuple[str, str], ...]
    file: str
    refresh_s: float
    without: str
    level: Literal["problem", "note"] = "note"


_TEXT = (("type", "text"),)

PARTS: Mapping[PartName, PartSpec] = {
    "workers": PartSpec("/v2/workers", _TEXT, "workers_text.json", 30.0, "there is no snapshot without the workers", "problem"),
    "models": PartSpec(
        "/v2/status/models", _TEXT, "models_text.json", 10.0, "no model's queue is known, so no wait and no allowance", "problem"
    ),
    "performance": PartSpec(
        "/v2/status/performance", (), "performance.json", 60.0, "the horde-wide queue is not known, so no wait at worst"
    ),
    "modes": PartSpec("/v2/status/modes", (), "modes.json", 60.0, "whether the horde is in maintenance is not known"),
    "heartbeat": PartSpec("/v2/status/heartbeat", (), "heartbeat.json", 60.0, "the server's version is not known"),
    "totals": PartSpec("/v2/stats/text/totals", (), "stats_text_totals.json", 60.0, "the horde's demand is not known"),
    "demand": PartSpec("/v2/stats/text/models", (), "stats_text_models.json", 3600.0, "the models' demand is not known"),
}
"""Every part by name, in the order in which a live source asks for them."""

COMPILED_DAILY: frozenset[PartName] = frozenset({"demand"})
"""Parts whose age says nothing about the snapshot's: the server compiles them once a day (horde.md §1.2)."""

PartValue = pl.DataFrame | Performance | Modes | Heartbeat | Totals


@dataclass(frozen=True, slots=True)
class Part:
    """One answer, read: its value, when it was fetched (UTC), and what was wrong in it."""

    name: PartName
    value: PartValue
    at: datetime
    problems: tuple[Problem, ...] = ()


def _subject(kind: str, name: object, number: int) -> str:
    return f"{kind} {shown(name)}" if isinstance(name, str) and name else f"item {number}"


def _items(body: object, source: str, part: str) -> list[Any]:
    if not isinstance(body, list):
        raise SourceFormatError(source, f"{part} must be a list, not {shown(body)}", field=part)
    return body


def _object(body: object, source: str, part: str) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise SourceFormatError(source, f"{part} must be an object, not {shown(body)}", field=part)
    return body


def _texts_only(items: list[Any] | None, subject: str, findings: Findings) -> list[str]:
    """Return a worker's model names, each once, in its order."""
    names: dict[str, None] = {}
    for item in items or ():
        if isinstance(item, str) and item:
            names[item] = None
        else:
            findings.add("unreadable_field", subject, f"field models: {shown(item)} must be a name; it was left out")
    return list(names)


_MUST_BE_REPORTED = ("models", "max_length", "max_context_length", "maintenance_mode", "requests_fulfilled")
"""Without these of a worker, figures cannot be told; the server always sends them."""


def _check_reported(payload: WorkerPayload, item: dict[str, Any], subject: str, findings: Findings) -> None:
    absent = [name for name in _MUST_BE_REPORTED if item.get(name) is None]
    if payload.performance is None and payload.requests_fulfilled and item.get("performance") is None:
        absent.append("performance")
    if absent:
        findings.add("not_reported", subject, f"{', '.join(absent)}: not reported, though figures rest on it")


def _worker_row(payload: WorkerPayload, worker_id: str, models: list[str]) -> tuple[Any, ...]:
    """Return a worker's values in the order of the workers frame."""
    return (
        worker_id,
        payload.name,
        models,
        payload.max_length,
        payload.max_context_length,
        payload.performance,
        None if payload.requests_fulfilled is None else payload.requests_fulfilled > 0,
        payload.threads,
        payload.online,
        payload.maintenance_mode,
        payload.flagged,
        payload.trusted,
        payload.bridge_agent,
        payload.owner,
        payload.requests_fulfilled,
        payload.uncompleted_jobs,
        payload.uptime,
    )


def read_workers(body: object, source: str = "workers") -> tuple[pl.DataFrame, tuple[Problem, ...]]:
    """Return the workers frame of an answer of ``/v2/workers?type=text``, and what was wrong in it.

    A worker of another kind than text is left out with a note; of two with one id the first counts; a worker without an id
    gets one that says so. Unreadable models are an empty list, other unreadable fields null, each with a problem.

    Returns
    -------
    Frame :data:`horde_policy.frames.workers.WORKERS`.

    Raises
    ------
    SourceFormatError
        The answer is not a list.

    Examples
    --------
    >>> frame, problems = read_workers([{"id": "w", "type": "text", "models": ["m"], "performance": "7.4 tokens per second",
    ...     "requests_fulfilled": 3.0, "max_length": "long", "max_context_length": 2048, "maintenance_mode": False}])
    >>> frame.select("worker_id", "speed_tok_per_s", "measured", "max_length").rows()
    [('w', 7.4, True, None)]
    >>> print(problems[0].text)
    workers, worker 'w', field max_length: 'long' must be a number; counted as not reported
    """
    findings = Findings("workers")
    rows: dict[str, tuple[Any, ...]] = {}
    other_kinds = 0
    for number, item in enumerate(_items(body, source, "workers"), start=1):
        named = item if isinstance(item, dict) else {}
        subject = _subject("worker", named.get("name") or named.get("id"), number)
        if named.get("type") not in (None, "text"):
            other_kinds += 1
            continue
        payload = WorkerPayload.read(item, subject, findings)
        if payload is None:
            continue
        _check_reported(payload, item, subject, findings)
        worker_id = payload.id
        if not worker_id:
            worker_id = f"(no id, item {number})"
            findings.add("not_reported", subject, f"field id: not reported; called {worker_id!r} here")
        if worker_id in rows:
            findings.add("duplicate_worker", subject, f"field id: {shown(worker_id)} is listed twice; the first counts")
            continue
        rows[worker_id] = _worker_row(payload, worker_id, _texts_only(payload.models, subject, findings))
    if other_kinds:
        findings.add("other_kind", f"{other_kinds} items", "are not text workers; they were left out", "note")
    frame = pl.DataFrame(list(rows.values()), schema=WORKERS.polars_schema(), orient="row")
    return WORKERS.checked(frame.sort(WORKERS.sort)), findings.problems()


def read_models(body: object, source: str = "models") -> tuple[pl.DataFrame, tuple[Problem, ...]]:
    """Return the models frame of an answer of ``/v2/status/models``, and what was wrong in it.

    A model of another kind than text is left out with a note, one without a name with a problem; of two rows with one name
    the first counts. The server's eta of 10000 is a marker and becomes null.

    Returns
    -------
    Frame :data:`horde_policy.frames.models.MODELS`.

    Raises
    ------
    SourceFormatError
        The answer is not a list.

    Examples
    --------
    >>> frame, problems = read_models([{"name": "m", "count": 3, "performance": 28.9, "queued": 1132.0, "jobs": 5, "eta": 13}])
    >>> frame.rows()
    [('m', 3, 28.9, 1132.0, 5.0, 13.0)]
    """
    findings = Findings("models")
    rows: dict[str, tuple[Any, ...]] = {}
    other_kinds = 0
    for number, item in enumerate(_items(body, source, "models"), start=1):
        named = item if isinstance(item, dict) else {}
        subject = _subject("model", named.get("name"), number)
        if named.get("type") not in (None, "text"):
            other_kinds += 1
            continue
        payload = ModelPayload.read(item, subject, findings)
        if payload is None:
            continue
        if not payload.name:
            findings.add("not_reported", subject, "field name: not reported; the model was left out")
            continue
        if payload.name in rows:
            findings.add("duplicate_model", subject, "is listed twice; the first counts")
            continue
        if payload.queued is None and item.get("queued") is None:
            findings.add("not_reported", subject, "field queued: not reported, so its wait is not known")
        rows[payload.name] = (payload.name, payload.count, payload.performance, payload.queued, payload.jobs, payload.eta)
    if other_kinds:
        findings.add("other_kind", f"{other_kinds} items", "are not text models; they were left out", "note")
    frame = pl.DataFrame(list(rows.values()), schema=MODELS.polars_schema(), orient="row")
    return MODELS.checked(frame.sort(MODELS.sort)), findings.problems()


def _read_demand(body: object, source: str) -> tuple[pl.DataFrame, tuple[Problem, ...]]:
    """Return the demand frame of ``/v2/stats/text/models``; a model that a period does not name is null there, not zero."""
    findings = Findings("demand")
    given = _object(body, source, "demand")
    periods = ("day", "month", "total")
    counts: dict[str, dict[str, int | None]] = {}
    for period in periods:
        models = given.get(period)
        if not isinstance(models, dict):
            findings.add("not_reported", f"period {period}", f"{shown(models)} must be an object of models")
            continue
        for model, requests in models.items():
            subject = f"model {shown(model)}"
            read = TotalPayload.read({"requests": requests}, f"{subject}, period {period}", findings)
            if model and read is not None:
                counts.setdefault(model, {})[period] = read.requests
    rows = [(model, *(by_period.get(period) for period in periods)) for model, by_period in counts.items()]
    frame = pl.DataFrame(rows, schema=MODEL_DEMAND.polars_schema(), orient="row")
    return MODEL_DEMAND.checked(frame.sort(MODEL_DEMAND.sort)), findings.problems()


def _read_totals(body: object, source: str) -> tuple[Totals, tuple[Problem, ...]]:
    findings = Findings("totals")
    given = _object(body, source, "totals")
    requests: dict[str, int] = {}
    tokens: dict[str, int] = {}
    for period in ("minute", "hour", "day", "month", "total"):
        read = TotalPayload.read(given.get(period), f"period {period}", findings)
        if read is not None and read.requests is not None:
            requests[period] = read.requests
        if read is not None and read.tokens is not None:
            tokens[period] = read.tokens
    return Totals(requests=requests, tokens=tokens), findings.problems()


def _read_performance(body: object, source: str) -> tuple[Performance, tuple[Problem, ...]]:
    findings = Findings("performance")
    read = PerformancePayload.read_object(_object(body, source, "performance"), "its answer", findings)
    return (
        Performance(
            queued_text_requests=read.queued_text_requests,
            queued_tokens=read.queued_tokens,
            past_minute_tokens=read.past_minute_tokens,
            text_worker_count=read.text_worker_count,
            text_thread_count=read.text_thread_count,
        ),
        findings.problems(),
    )


def _read_modes(body: object, source: str) -> tuple[Modes, tuple[Problem, ...]]:
    findings = Findings("modes")
    read = ModesPayload.read_object(_object(body, source, "modes"), "its answer", findings)
    return Modes(maintenance_mode=read.maintenance_mode, invite_only_mode=read.invite_only_mode), findings.problems()


def _read_heartbeat(body: object, source: str) -> tuple[Heartbeat, tuple[Problem, ...]]:
    findings = Findings("heartbeat")
    read = HeartbeatPayload.read_object(_object(body, source, "heartbeat"), "its answer", findings)
    return Heartbeat(message=read.message, version=read.version), findings.problems()


_READERS: Mapping[PartName, Callable[[object, str], tuple[PartValue, tuple[Problem, ...]]]] = {
    "workers": read_workers,
    "models": read_models,
    "performance": _read_performance,
    "modes": _read_modes,
    "heartbeat": _read_heartbeat,
    "totals": _read_totals,
    "demand": _read_demand,
}


def read_part(name: PartName, body: object, at: datetime, source: str, problems: Iterable[Problem] = ()) -> Part:
    """Return the part that an answer's JSON value gives; ``problems`` are what was mended in its text before.

    Raises
    ------
    SourceFormatError
        The answer as a whole has another shape.
    """
    value, found = _READERS[name](body, source)
    return Part(name, value, at, (*problems, *found))


T = TypeVar("T", pl.DataFrame, Performance, Modes, Heartbeat, Totals)


def _value(parts: Mapping[PartName, Part], name: PartName, kind: type[T]) -> T | None:
    part = parts.get(name)
    return part.value if part is not None and isinstance(part.value, kind) else None


def missing(name: PartName, why: str) -> Problem:
    """Return the problem that a part is not there: ``why`` is a clause such as "is not in the folder"."""
    spec = PARTS[name]
    return Problem("missing_part", name, f"{name} {why}: {spec.without}", spec.level)


def assemble(
    parts: Mapping[PartName, Part],
    *,
    source: str,
    kind: SourceKind,
    problems: Iterable[Problem] = (),
    synthetic: bool = False,
) -> Snapshot:
    """Return the snapshot that the parts make; ``problems`` say what became of those that are absent.

    ``fetched_at`` is the time of the oldest part; of a live horde without what the server compiles once a day, and is asked
    for once an hour. Each part keeps its own time in ``part_times``. The workers must be there.

    Examples
    --------
    >>> from datetime import UTC
    >>> at = datetime(2026, 11, 29, tzinfo=UTC)
    >>> workers = read_part("workers", [], at, "a horde")
    >>> snapshot = assemble({"workers": workers}, source="a horde", kind="recorded", problems=[missing("models", "is not there")])
    >>> print(snapshot.problems[0].text)
    models is not there: no model's queue is known, so no wait and no allowance
    """
    workers = _value(parts, "workers", pl.DataFrame)
    if workers is None:
        raise SourceFormatError(source, PARTS["workers"].without, field="workers")
    return Snapshot(
        fetched_at=min(part.at for name, part in parts.items() if kind != "live" or name not in COMPILED_DAILY),
        source=source,
        source_kind=kind,
        synthetic=synthetic,
        workers=workers,
        models=_value(parts, "models", pl.DataFrame),
        performance=_value(parts, "performance", Performance),
        modes=_value(parts, "modes", Modes),
        heartbeat=_value(parts, "heartbeat", Heartbeat),
        totals=_value(parts, "totals", Totals),
        demand=_value(parts, "demand", pl.DataFrame),
        problems=(*problems, *(found for name in PARTS if name in parts for found in parts[name].problems)),
        part_times={name: parts[name].at for name in PARTS if name in parts},
    )
