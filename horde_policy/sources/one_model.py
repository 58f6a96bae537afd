"""One model asked for alone, for its open page: ``/v2/status/models/{name}`` (horde.md §1.2), live or as it was recorded.

This endpoint counts otherwise than the list: tokens times generations, those in flight too (horde_observed.md). So its figures
stand beside the list's, and no estimate is made of them.
"""

import functools
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable
from urllib.parse import quote, unquote

import polars as pl

from horde_policy.clock import Clock
from horde_policy.errors import InputError, SourceError, SourceThrottled, SourceUnavailable
from horde_policy.frames.model_look import ModelLook
from horde_policy.sources.asking import FAULT, LONGEST_REST_S, aside, json_of, rest_until
from horde_policy.sources.http import Answer, HttpReader
from horde_policy.sources.parts import PARTS, Part, read_models
from horde_policy.sources.source import Source

__all__ = [
    "LOOK_WAIT_S",
    "ONE_MODEL_REFRESH_S",
    "ModelQuestions",
    "OneModelSource",
    "look_at_model",
    "model_look",
    "named_in",
]

OK = 200
NOT_FOUND = 404
ONE_MODEL_REFRESH_S = 10.0
"""The queue behind the answer is built anew this often (horde.md §1.2): asking sooner brings nothing new."""
LOOK_WAIT_S = 2.0
"""So long a page waits for an answer that is on its way."""
AGE_LIMIT_S = 120.0
LONGEST_BACK_OFF_S = 900.0
MOST_MODELS_KEPT = 256


@runtime_checkable
class OneModelSource(Protocol):
    """A source that can be asked for one model alone."""

    def model(self, name: str, *, wait_s: float = LOOK_WAIT_S) -> ModelLook | None:
        """Return what it says of the model, waiting so long for an answer on its way; null where it has none of that kind."""
        ...


def look_at_model(source: Source, name: str, *, wait_s: float = LOOK_WAIT_S) -> ModelLook | None:
    """Return what a source says of one model alone, waiting at most so long; null from one of which that cannot be asked.

    Raises
    ------
    InputError
        No address can hold the name.

    Examples
    --------
    >>> from horde_policy.sources.demo import DemoSource
    >>> from horde_policy.clock import SystemClock
    >>> look_at_model(DemoSource(SystemClock()), "koboldcpp/any") is None
    True
    """
    return source.model(name, wait_s=wait_s) if isinstance(source, OneModelSource) else None


def model_look(model: str, part: Part | None, error: SourceError | None = None) -> ModelLook:
    """Return the look that an answer gives: the model's row of its models frame, if it has one; null for no answer.

    >>> model_look("m", None).known is None
    True
    """
    told = None if error is None else str(error)
    if part is None or not isinstance(part.value, pl.DataFrame):
        return ModelLook(model=model, at=None, known=None, queued_tokens=None, jobs=None, eta_s=None, error=told)
    row = next(part.value.filter(pl.col("model") == model).iter_rows(named=True), {})
    return ModelLook(
        model=model,
        at=part.at,
        known=bool(row),
        queued_tokens=row.get("queued_tokens"),
        jobs=row.get("jobs"),
        eta_s=row.get("eta_s"),
        error=told,
    )


def named_in(path: str, model: str) -> bool:
    """Say whether a path of the one-model endpoint names the model, encoded once or twice.

    >>> named_in("/api/v2/status/models/a%252Fb", "a/b"), named_in("/api/v2/status/models/b", "a/b")
    (True, False)
    """
    encoded = path.rpartition("/")[2]
    return model in (unquote(encoded), unquote(unquote(encoded)))


@dataclass(slots=True)
class _Memory:
    """What was last said of one model; guarded by the questions' lock."""

    asked_at: datetime | None = None
    running: threading.Event = field(default_factory=threading.Event)
    part: Part | None = None
    error: SourceError | None = None
    rest_s: float = ONE_MODEL_REFRESH_S
    failures: int = 0


class ModelQuestions:
    """Asks one horde for single models: each at most once in ten seconds, whoever looks; safe for several threads.

    Parameters
    ----------
    reader
        Asks the host.
    clock
        Gives the present.
    """

    def __init__(self, reader: HttpReader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._models: OrderedDict[str, _Memory] = OrderedDict()
        self._encodings = 1
        self._rests_until: datetime | None = None
        self._lock = threading.Lock()

    def part(self, model: str) -> Part:
        """Return the answer for one model, waiting for it: see :meth:`horde_policy.sources.horde.HordeClient.model`."""
        memory = self._asked(model)
        memory.running.wait()
        with self._lock:
            if memory.error is not None:
                raise memory.error.with_traceback(None)
            if memory.part is None:
                raise SourceUnavailable(self._reader.source, "rests, since its limit is nearly used up")
            return memory.part

    def look(self, model: str, *, wait_s: float = LOOK_WAIT_S) -> ModelLook:
        """Return the last answer for one model, waiting for a newer one at most so long; it is there at the next look then.

        An answer older than two minutes is not shown.

        Raises
        ------
        InputError
            No address can hold the name.
        """
        memory = self._asked(model)
        memory.running.wait(wait_s)
        with self._lock:
            part = memory.part
            if part is not None and (self._clock.now() - part.at).total_seconds() > AGE_LIMIT_S:
                part = None
            return model_look(model, part, memory.error)

    def _asked(self, model: str) -> _Memory:
        """Return what is remembered of a model, with a question on its way if one is due."""
        urls = self._urls(model)
        with self._lock:
            now = self._clock.now()
            memory = self._models.get(model)
            if memory is None:
                memory = self._models[model] = _Memory()
                memory.running.set()
            if memory.running.is_set() and self._is_due(memory, now):
                memory.asked_at = now
                memory.running = aside(functools.partial(self._ask, model, urls, memory))
            self._models.move_to_end(model)
            while len(self._models) > MOST_MODELS_KEPT:
                self._models.popitem(last=False)
            return memory

    def _rests(self, now: datetime) -> bool:
        until = self._rests_until
        return until is not None and 0 < (until - now).total_seconds() <= LONGEST_REST_S

    def _is_due(self, memory: _Memory, now: datetime) -> bool:
        asked_at = memory.asked_at
        recent = asked_at is not None and 0 <= (now - asked_at).total_seconds() < memory.rest_s
        return not recent and not self._rests(now)

    def _urls(self, model: str) -> dict[int, str]:
        """Return the path of a model, its name percent-encoded once and twice; InputError if no address can hold it."""
        if not model.strip("."):
            raise InputError("model", "", model, "cannot be asked for by name")
        once = quote(model, safe="", errors="replace")
        paths = {times: f"{PARTS['models'].path}/{name}" for times, name in ((1, once), (2, quote(once, safe="")))}
        for path in paths.values():
            self._reader.check(path)
        return paths

    def _ask(self, model: str, urls: dict[int, str], memory: _Memory) -> None:
        part: Part | None = None
        error: SourceError | None = SourceUnavailable(self._reader.source, FAULT)
        try:
            part = self._answered(model, urls)
            error = None
        except SourceError as caught:
            error = caught
        finally:
            with self._lock:
                memory.part = part or memory.part
                memory.error = error
                memory.failures = 0 if error is None else memory.failures + 1
                rest_s = ONE_MODEL_REFRESH_S * 2.0 ** min(max(memory.failures - 1, 0), 10)
                if isinstance(error, SourceThrottled):
                    rest_s = max(rest_s, error.retry_after_s or 0.0)
                memory.rest_s = min(rest_s, LONGEST_BACK_OFF_S)

    def _answered(self, model: str, urls: dict[int, str]) -> Part:
        first = self._encodings
        answer = self._get(urls[first])
        if answer.status == NOT_FOUND and not answer.is_json and urls[1] != urls[2]:
            answer = self._get(urls[3 - first])
            if answer.status == OK:
                self._encodings = 3 - first
        value, mended = json_of(answer, self._reader.source, "model", PARTS["models"].path)
        frame, found = read_models(value, self._reader.source)
        return Part("models", frame.filter(pl.col("model") == model), answer.at, (*mended, *found))

    def _get(self, path: str) -> Answer:
        answer = self._reader.get(path)
        with self._lock:
            self._rests_until = rest_until(answer)
        return answer
