"""The client of AI Horde's public API, and the live source: asks no oftener than the server's caches turn over (horde.md §1).

Each endpoint has its own interval, its own memory of the last good answer, of a failure and of the rate limit. Answers carry
no age of their own, so the time of the fetch is kept with each.
"""

import functools
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx

from horde_policy import __version__
from horde_policy.clock import Clock, SystemClock
from horde_policy.errors import Problem, SourceError, SourceThrottled, SourceUnavailable
from horde_policy.frames.model_look import ModelLook
from horde_policy.frames.snapshot import Snapshot, SourceKind
from horde_policy.sources.asking import FAULT, LONGEST_REST_S, RateLimit, aside, json_of, rate_limit, rest_until
from horde_policy.sources.http import HttpReader, Patience, checked_address
from horde_policy.sources.one_model import LOOK_WAIT_S, ModelQuestions
from horde_policy.sources.parts import COMPILED_DAILY, PARTS, Part, PartName, assemble, missing, read_part

__all__ = ["HordeClient", "LiveSource", "RateLimit", "api_address", "client_agent", "fetch_snapshot"]

AGE_LIMIT_S = 120.0
"""So long a part that failed is replaced by its last good answer; the list of models is without end, its age says so."""
DAILY_AGE_LIMIT_S = 90_000.0
LONGEST_BACK_OFF_S = 900.0
SHORTEST_REFRESH_S = min(spec.refresh_s for spec in PARTS.values())
MODELS_WAIT_S = 10.0
"""So long a snapshot waits for the list of models, without which there are no figures."""
GRACE_S = 1.0
"""So long it waits for the parts that it can do without, once those that it needs are there."""
COMMAND_GRACE_S = 5.0
"""The same for a command, which takes no second look."""


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
    running: threading.Event | None = None

    def is_due(self, now: datetime, refresh_s: float) -> bool:
        """Whether it may and should be asked now."""
        if self.error is not None:
            return not self.rests(now, LONGEST_BACK_OFF_S)
        since_s = None if self.asked_at is None else (now - self.asked_at).total_seconds()
        fresh = since_s is not None and 0 <= since_s < refresh_s
        return self.part is None or not (fresh or self.rests(now, LONGEST_REST_S))

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
    models_wait_s, grace_s
        How long a snapshot waits for the list of models, and then for the parts that it can do without.

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
        models_wait_s: float = MODELS_WAIT_S,
        grace_s: float = GRACE_S,
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
        self._monotonic = monotonic
        self._models_wait_s = models_wait_s
        self._grace_s = grace_s
        self._endpoints: dict[PartName, _Endpoint] = {name: _Endpoint() for name in PARTS}
        self._lock = threading.Lock()
        self._models = ModelQuestions(self._reader, self._clock)

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
        known = [(name, endpoint.rate_limit) for name, endpoint in self._endpoints.items()]
        return {name: limit for name, limit in known if limit is not None}

    def part(self, name: PartName) -> Part:
        """Return one part: the last good answer while the server's cache can hold nothing newer, else a new one.

        Raises
        ------
        SourceUnavailable, SourceThrottled, SourceFormatError
            There is no answer, it is a 429, or it cannot be read. The same error is raised again, unasked, until the
            endpoint may be asked again.
        """
        running = self._asked(name, self._clock.now())
        if running is not None:
            running.wait()
        with self._lock:
            endpoint = self._endpoints[name]
            if endpoint.error is not None:
                raise endpoint.error.with_traceback(None)
            assert endpoint.part is not None
            return endpoint.part

    def _asked(self, name: PartName, now: datetime) -> threading.Event | None:
        """Ask for a part if that is due and nobody is asking; return what is set when its answer is there, null for none."""
        with self._lock:
            endpoint = self._endpoints[name]
            if endpoint.running is None and endpoint.is_due(now, PARTS[name].refresh_s):
                # The thread's end waits for the lock, so it finds what is noted here.
                endpoint.running = aside(functools.partial(self._ask, name, now))
                endpoint.asked_at = now
            return endpoint.running

    def _ask(self, name: PartName, now: datetime) -> None:
        """Ask for a part, and note what came of it."""
        spec = PARTS[name]
        part: Part | None = None
        error: SourceError = SourceUnavailable(self.name, FAULT)
        try:
            answer = self._reader.get(spec.path, dict(spec.query))
            with self._lock:
                endpoint = self._endpoints[name]
                endpoint.rate_limit, endpoint.not_before = rate_limit(answer), rest_until(answer)
            value, mended = json_of(answer, self.name, name, spec.path)
            part = read_part(name, value, answer.at, self.name, mended)
        except SourceError as caught:
            error = caught
        finally:
            with self._lock:
                endpoint = self._endpoints[name]
                endpoint.running = None
                if part is None:
                    self._remember_failure(name, error, now)
                else:
                    endpoint.part, endpoint.error, endpoint.failures, endpoint.failing_since = part, None, 0, None

    def _remember_failure(self, name: PartName, error: SourceError, now: datetime) -> None:
        """Keep the error, and how long the endpoint rests: what a 429 asks, else twice as long after each failure.

        The workers rest no longer than the shortest interval, unless a 429 asks it: the caller paces that, who has nothing
        without them.
        """
        endpoint = self._endpoints[name]
        endpoint.failures += 1
        endpoint.failing_since = endpoint.failing_since or now
        endpoint.error = error
        rest_s = SHORTEST_REFRESH_S if name == "workers" else PARTS[name].refresh_s * 2.0 ** min(endpoint.failures - 1, 10)
        if isinstance(error, SourceThrottled):
            rest_s = max(rest_s, error.retry_after_s or 0.0)
        endpoint.not_before = now + timedelta(seconds=min(rest_s, LONGEST_BACK_OFF_S))

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
        return self._models.part(model)

    def look_at_model(self, model: str, *, wait_s: float = LOOK_WAIT_S) -> ModelLook:
        """Return the last answer for one model, waiting a little for a newer one: see :meth:`ModelQuestions.look`."""
        return self._models.look(model, wait_s=wait_s)

    def fetch_snapshot(self) -> Snapshot:
        """Return the present snapshot: parts that are due are asked for, the others are as they last were.

        The workers are asked first: without an answer for them there is no snapshot, and nothing else is asked. The rest are
        asked at once. The list of models is waited for, at most ``models_wait_s``; then the others, at most ``grace_s``. One
        that is not there by then stays on its way, and is there at a later look. What is late or fails is replaced by its last
        good answer with its own time, the list of models without end, others for two minutes, and then counts as not
        reported. A problem or note says what failed and what is not there; not that a last good answer stands for one that
        is only late.

        Raises
        ------
        SourceUnavailable, SourceThrottled, SourceFormatError
            The workers could not be had.
        """
        now = self._clock.now()
        parts: dict[PartName, Part] = {"workers": self.part("workers")}
        asked = {name: self._asked(name, now) for name in PARTS if name != "workers"}
        if asked["models"] is not None:
            asked["models"].wait(self._models_wait_s)
        until = self._monotonic() + self._grace_s
        for name, running in asked.items():
            if running is not None and name != "models":
                running.wait(max(0.0, until - self._monotonic()))
        with self._lock:
            problems = [problem for name in asked for problem in self._taken(name, parts, now)]
            throttled = frozenset(name for name in asked if isinstance(self._endpoints[name].error, SourceThrottled))
        return replace(assemble(parts, source=self.name, kind="live", problems=problems), throttled_parts=throttled)

    def _taken(self, name: PartName, parts: dict[PartName, Part], now: datetime) -> tuple[Problem, ...]:
        """Put the part, or its last good answer, with the parts; return what is to be said of it."""
        endpoint = self._endpoints[name]
        late = endpoint.running is not None
        if not late and endpoint.error is None and endpoint.part is not None:
            parts[name] = endpoint.part
            return ()
        kept = self._kept(name, now)
        if kept is not None:
            parts[name] = kept
        if endpoint.error is not None:
            return (self._failed(name, endpoint.error, kept),)
        asked = "" if endpoint.asked_at is None else f", asked for at {endpoint.asked_at.astimezone(UTC):%H:%M:%S} UTC"
        if kept is None:
            return (missing(name, f"has not come yet{asked}"),)
        if name == "models":
            text = f"{name} has not come yet{asked}; its answer of {kept.at.astimezone(UTC):%H:%M:%S} UTC stands"
            return (Problem("part_failed", name, text, PARTS[name].level),)
        return ()

    def _kept(self, name: PartName, now: datetime) -> Part | None:
        part = self._endpoints[name].part
        limit_s = DAILY_AGE_LIMIT_S if name in COMPILED_DAILY else AGE_LIMIT_S
        if part is None or (name != "models" and (now - part.at).total_seconds() > limit_s):
            return None
        return part

    def _failed(self, name: PartName, error: SourceError, kept: Part | None) -> Problem:
        since = self._endpoints[name].failing_since
        told = "" if since is None else f" since {since.astimezone(UTC):%H:%M:%S} UTC"
        if kept is None:
            return missing(name, f"could not be had{told} ({error})")
        text = f"{name} could not be had{told} ({error}); its answer of {kept.at.astimezone(UTC):%H:%M:%S} UTC stands"
        return Problem("part_failed", name, text, PARTS[name].level)


def fetch_snapshot(address: str, *, clock: Clock, agent: str | None = None, setting: str = "--url") -> Snapshot:
    """Return the present snapshot of the horde at an address: one look, for a command; ``setting`` is where it was named.

    Raises
    ------
    ConfigError
        The address is none.
    SourceUnavailable, SourceThrottled, SourceFormatError
        The workers could not be had.
    """
    with HordeClient(address, setting=setting, clock=clock, agent=agent, grace_s=COMMAND_GRACE_S) as client:
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

    def model(self, name: str, *, wait_s: float = LOOK_WAIT_S) -> ModelLook:
        """Return what the server says of one model alone, asked for at most once in ten seconds, whoever looks.

        An answer that is on its way is waited for at most ``wait_s``; it is there at a later look.

        Raises
        ------
        InputError
            No address can hold the name.
        """
        return self.client.look_at_model(name, wait_s=wait_s)
