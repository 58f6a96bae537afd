"""The client of AI Horde's public API, and the live source: asks no oftener than the server's caches turn over (horde.md §1).

Each endpoint has its own interval, its own memory of the last good answer, of a failure and of the rate limit. Answers carry
no age of their own, so the time of the fetch is kept with each.
"""

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx
import polars as pl

from horde_policy import __version__
from horde_policy.clock import Clock, SystemClock
from horde_policy.errors import (
    InputError,
    Problem,
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    shown,
)
from horde_policy.frames.models import MODELS
from horde_policy.frames.snapshot import Snapshot, SourceKind
from horde_policy.sources.http import Answer, HttpReader, Patience, checked_address
from horde_policy.sources.parts import COMPILED_DAILY, PARTS, Part, PartName, assemble, missing, read_models, read_part
from horde_policy.sources.payloads import parse_json

__all__ = ["HordeClient", "LiveSource", "RateLimit", "api_address", "client_agent", "fetch_snapshot"]

OK = 200
NOT_FOUND = 404
AGE_LIMIT_S = 120.0
"""So long a part that failed is replaced by its last good answer; the list of models is without end, its age says so."""
DAILY_AGE_LIMIT_S = 90_000.0
LEAST_REMAINING = 5
"""With no more questions left in the server's minute, an endpoint rests until the limit is renewed."""
LONGEST_REST_S = 120.0
LONGEST_BACK_OFF_S = 900.0
SHORTEST_REFRESH_S = min(spec.refresh_s for spec in PARTS.values())
ONE_MODEL_REFRESH_S = 10.0
MOST_MODELS_KEPT = 256


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What the server says of its limit for one endpoint (horde.md §1.1), and when it said so."""

    limit: int | None
    remaining: int | None
    at: datetime


@dataclass(slots=True)
class _Endpoint:
    """The memory of one endpoint."""

    part: Part | None = None
    asked_at: datetime | None = None
    not_before: datetime | None = None
    failures: int = 0
    failing_since: datetime | None = None
    error: SourceError | None = None
    rate_limit: RateLimit | None = None

    def rests(self, now: datetime, longest_s: float) -> bool:
        """Whether it may not be asked now; a rest longer than any can be means that the clock was set back."""
        return self.not_before is not None and now < self.not_before <= now + timedelta(seconds=longest_s)


def client_agent(contact: str | None = None) -> str:
    """Return the ``Client-Agent`` header, ``name:version:contact`` (horde.md §1.1).

    >>> client_agent("https://example.org/board").split(":", 2)[2]
    'https://example.org/board'
    """
    kept = "".join(character for character in (contact or "") if " " <= character <= "~").strip()
    return f"horde_policy:{__version__}:{kept or 'unknown'}"


def api_address(setting: str, address: str) -> str:
    """Return where a horde's API is, for an address with or without ``/api`` or ``/api/v2`` at its end.

    Raises
    ------
    ConfigError
        It is no plain http(s) address.

    Examples
    --------
    >>> {api_address("HORDE_URL", f"https://horde.example{end}") for end in ("", "/", "/api", "/api/", "/api/v2/")}
    {'https://horde.example/api'}
    """
    return checked_address(setting, address).removesuffix("/v2").removesuffix("/api") + "/api"


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


@dataclass(slots=True)
class _OneModel:
    """What was last said of one model: its part, or (then of no rows) the error."""

    asked_at: datetime
    part: Part
    error: SourceError | None = None


@dataclass(slots=True)
class _Memory:
    """What a client remembers; guarded by its lock."""

    endpoints: dict[PartName, _Endpoint] = field(default_factory=lambda: {name: _Endpoint() for name in PARTS})
    models: OrderedDict[str, _OneModel] = field(default_factory=OrderedDict)
    encodings: int = 1


class HordeClient:
    """Asks one horde's public API; safe for several threads.

    Parameters
    ----------
    address
        ``https://host``, with or without ``/api``.
    name
        As shown to people; the host where not given.
    agent
        The ``Client-Agent`` header (:func:`client_agent`).
    clock, sleep, draw, monotonic, patience, transport
        See :class:`horde_policy.sources.http.HttpReader`.

    Examples
    --------
    >>> HordeClient("https://horde.example").name
    'horde.example'
    """

    def __init__(
        self,
        address: str,
        *,
        name: str | None = None,
        setting: str = "HORDE_URL",
        agent: str | None = None,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
        draw: random.Random | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        api = api_address(setting, address)
        self.name = name or urlsplit(api).netloc
        self._clock = clock or SystemClock()
        self._reader = HttpReader(
            self.name,
            api,
            headers={"Client-Agent": agent or client_agent(), "Accept": "application/json"},
            clock=self._clock,
            sleep=sleep,
            draw=draw,
            monotonic=monotonic,
            patience=patience,
            transport=transport,
        )
        self._memory = _Memory()
        self._lock = threading.Lock()
        self._model_lock = threading.Lock()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()

    def rate_limits(self) -> Mapping[PartName, RateLimit]:
        """Return what the server last said of its limit, for each endpoint that was asked and has one."""
        known = [(name, endpoint.rate_limit) for name, endpoint in self._memory.endpoints.items()]
        return {name: limit for name, limit in known if limit is not None}

    def part(self, name: PartName) -> Part:
        """Return one part: the last good answer while the server's cache can hold nothing newer, else a new one.

        Raises
        ------
        SourceUnavailable, SourceThrottled, SourceFormatError
            There is no answer, it is a 429, or it cannot be read. The same error is raised again, unasked, until the
            endpoint may be asked again.
        """
        with self._lock:
            return self._part(name, self._clock.now())

    def _part(self, name: PartName, now: datetime) -> Part:
        endpoint = self._memory.endpoints[name]
        refresh_s = PARTS[name].refresh_s
        since_s = None if endpoint.asked_at is None else (now - endpoint.asked_at).total_seconds()
        fresh = endpoint.part is not None and since_s is not None and 0 <= since_s < refresh_s
        if endpoint.part is not None and endpoint.error is None and (fresh or endpoint.rests(now, LONGEST_REST_S)):
            return endpoint.part
        if endpoint.error is not None and endpoint.rests(now, LONGEST_BACK_OFF_S):
            raise endpoint.error.with_traceback(None)
        endpoint.asked_at = now
        try:
            part = self._ask(name)
        except SourceError as error:
            self._remember_failure(name, error, now)
            raise
        endpoint.part, endpoint.error, endpoint.failures, endpoint.failing_since = part, None, 0, None
        return part

    def _ask(self, name: PartName) -> Part:
        spec = PARTS[name]
        answer = self._reader.get(spec.path, dict(spec.query))
        self._note_rate_limit(name, answer)
        value, mended = self._json_of(answer, name, spec.path)
        return read_part(name, value, answer.at, self.name, mended)

    def _json_of(self, answer: Answer, part: str, path: str) -> tuple[Any, tuple[Problem, ...]]:
        if answer.status != OK:
            raise SourceUnavailable(self.name, f"answers {answer.status} to {shown(path)}")
        return parse_json(answer.content, self.name, part)

    def _remember_failure(self, name: PartName, error: SourceError, now: datetime) -> None:
        """Keep the error, and how long the endpoint rests: what a 429 asks, else twice as long after each failure.

        The workers rest no longer than the shortest interval, unless a 429 asks it: the caller paces that, who has nothing
        without them.
        """
        endpoint = self._memory.endpoints[name]
        endpoint.failures += 1
        endpoint.failing_since = endpoint.failing_since or now
        endpoint.error = error
        rest_s = SHORTEST_REFRESH_S if name == "workers" else PARTS[name].refresh_s * 2.0 ** min(endpoint.failures - 1, 10)
        if isinstance(error, SourceThrottled):
            rest_s = max(rest_s, error.retry_after_s or 0.0)
        endpoint.not_before = now + timedelta(seconds=min(rest_s, LONGEST_BACK_OFF_S))

    def _note_rate_limit(self, name: PartName, answer: Answer) -> None:
        """Let an endpoint rest until its limit is renewed, when others on this address have nearly used it up."""
        endpoint = self._memory.endpoints[name]
        limit, remaining, reset = (_number(answer.headers.get(f"x-ratelimit-{word}")) for word in ("limit", "remaining", "reset"))
        endpoint.rate_limit = None if limit is None and remaining is None else RateLimit(limit, remaining, answer.at)
        endpoint.not_before = None
        if remaining is not None and remaining <= LEAST_REMAINING:
            until_s = LONGEST_REST_S if reset is None else reset - answer.server_time.timestamp()
            endpoint.not_before = answer.at + timedelta(seconds=min(max(until_s, 0.0), LONGEST_REST_S))

    def model(self, model: str) -> Part:
        """Return what the server says of one model: a models frame of one row, or of none where it knows nothing of it.

        Here ``queued`` counts every generation, in flight ones too, unlike the list (horde_observed.md). The name is
        percent-encoded once, and twice where that gives a 404 that is not JSON; which of both works is remembered.

        Raises
        ------
        InputError
            The name is empty, of dots alone, or too long: no address can hold it.
        SourceUnavailable, SourceThrottled, SourceFormatError
            As for :meth:`part`.
        """
        if not model.strip("."):
            raise InputError("model", "", model, "cannot be asked for by name")
        with self._model_lock:
            now = self._clock.now()
            kept = self._memory.models.get(model)
            if kept is None or not 0 <= (now - kept.asked_at).total_seconds() < ONE_MODEL_REFRESH_S:
                kept = self._memory.models[model] = self._ask_model(model, now)
                self._memory.models.move_to_end(model)
                while len(self._memory.models) > MOST_MODELS_KEPT:
                    self._memory.models.popitem(last=False)
            if kept.error is not None:
                raise kept.error.with_traceback(None)
            return kept.part

    def _ask_model(self, model: str, now: datetime) -> _OneModel:
        try:
            return _OneModel(now, self._one_model(model))
        except SourceError as error:
            return _OneModel(now, Part("models", MODELS.empty(), now), error)

    def _one_model(self, model: str) -> Part:
        once = quote(model, safe="", errors="replace")
        encoded = {1: once, 2: quote(once, safe="")}
        path = PARTS["models"].path
        first = self._memory.encodings
        answer = self._reader.get(f"{path}/{encoded[first]}")
        if answer.status == NOT_FOUND and not answer.is_json and encoded[1] != encoded[2]:
            answer = self._reader.get(f"{path}/{encoded[3 - first]}")
            if answer.status == OK:
                self._memory.encodings = 3 - first
        value, mended = self._json_of(answer, "model", path)
        frame, found = read_models(value, self.name)
        return Part("models", frame.filter(pl.col("model") == model), answer.at, (*mended, *found))

    def fetch_snapshot(self) -> Snapshot:
        """Return the present snapshot: parts that are due are asked for, the others are as they last were.

        Without an answer for the workers there is none. Any other part that fails is replaced by its last good answer with
        its own time, the list of models without end, others for two minutes, and then counts as not reported; either way
        a problem or note says so.

        Raises
        ------
        SourceUnavailable, SourceThrottled, SourceFormatError
            The workers could not be had.
        """
        parts: dict[PartName, Part] = {}
        problems: list[Problem] = []
        with self._lock:
            now = self._clock.now()
            for name in PARTS:
                try:
                    parts[name] = self._part(name, now)
                except SourceError as error:
                    if name == "workers":
                        raise
                    kept = self._kept(name, now)
                    if kept is not None:
                        parts[name] = kept
                    problems.append(self._failed(name, error, kept))
        return assemble(parts, source=self.name, kind="live", problems=problems)

    def _kept(self, name: PartName, now: datetime) -> Part | None:
        part = self._memory.endpoints[name].part
        limit_s = DAILY_AGE_LIMIT_S if name in COMPILED_DAILY else AGE_LIMIT_S
        if part is None or (name != "models" and (now - part.at).total_seconds() > limit_s):
            return None
        return part

    def _failed(self, name: PartName, error: SourceError, kept: Part | None) -> Problem:
        since = self._memory.endpoints[name].failing_since
        told = "" if since is None else f" since {since.astimezone(UTC):%H:%M:%S} UTC"
        if kept is None:
            return missing(name, f"could not be had{told} ({error})")
        text = f"{name} could not be had{told} ({error}); its answer of {kept.at.astimezone(UTC):%H:%M:%S} UTC stands"
        return Problem("part_failed", name, text, PARTS[name].level)


def fetch_snapshot(address: str, *, clock: Clock, agent: str | None = None) -> Snapshot:
    """Return the present snapshot of the horde at an address: one look, for a command.

    Raises
    ------
    ConfigError
        The address is none.
    SourceUnavailable, SourceThrottled, SourceFormatError
        The workers could not be had.
    """
    with HordeClient(address, setting="--url", clock=clock, agent=agent) as client:
        return client.fetch_snapshot()


class LiveSource:
    """A horde's API as a source: see :meth:`HordeClient.fetch_snapshot`."""

    kind: SourceKind = "live"
    refresh_s = SHORTEST_REFRESH_S

    def __init__(self, client: HordeClient) -> None:
        self.client = client

    @property
    def name(self) -> str:
        """The horde's name as shown to people."""
        return self.client.name

    def load(self) -> Snapshot:
        """Return the present snapshot."""
        return self.client.fetch_snapshot()
