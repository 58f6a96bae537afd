"""The HTTP API of Prometheus or Mimir, read as it answers: ``query`` and ``query_range``, the latter in windows.

What comes out is the API's own JSON, for ``imports`` to read: this module knows nothing of metrics. A range longer than the
server allows for one answer is asked in windows that share no point, and joined. The token is sent and never shown.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from horde_policy.clock import Clock
from horde_policy.errors import ConfigError, InputError, SourceFormatError, SourceThrottled, SourceUnavailable, shown
from horde_policy.sources.http import Answer, HttpReader, Patience, checked_address
from horde_policy.sources.payloads import parse_json

__all__ = ["TENANT_SETTING", "TOKEN_SETTING", "PrometheusClient", "configured_prometheus", "windows"]

OK = 200
MOST_POINTS = 10_000
"""A server answers at most 11,000 points a series; a window asks for this many."""
MOST_WINDOWS = 500
MILLISECOND = timedelta(milliseconds=1)
LONGEST_WAIT_S = 120.0
PATIENCE = Patience(read_s=60.0, whole_s=180.0, largest_bytes=256 * 1024 * 1024)

URL_SETTING = "HORDE_POLICY_PROMETHEUS_URL"
TENANT_SETTING = "HORDE_POLICY_PROMETHEUS_TENANT"
TOKEN_SETTING = "HORDE_POLICY_PROMETHEUS_TOKEN"


def _instant_text(at: datetime) -> str:
    """Return an instant as the API takes it: seconds since 1970 with milliseconds, which is all that it keeps.

    >>> from datetime import UTC
    >>> _instant_text(datetime(2026, 11, 29, 12, 0, 0, 250_900, tzinfo=UTC))
    '1795953600.250'
    """
    if at.tzinfo is None:
        raise InputError("instant", "", at.isoformat(), "must carry a time zone")
    thousandths = (at - datetime.fromtimestamp(0, at.tzinfo)) // MILLISECOND
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"


def windows(start: datetime, end: datetime, step: timedelta) -> Iterator[tuple[datetime, datetime]]:
    """Yield the windows of a range: first and last point of each, none in two windows, at most 10,000 points each.

    Raises
    ------
    InputError
        The step is no whole number of milliseconds above 0, the end lies before the start, or the points are too many.

    Examples
    --------
    >>> from datetime import UTC
    >>> day = datetime(2026, 11, 29, tzinfo=UTC)
    >>> [(a.time().isoformat(), b.time().isoformat()) for a, b in windows(day, day + timedelta(hours=4), timedelta(seconds=1))]
    [('00:00:00', '02:46:39'), ('02:46:40', '04:00:00')]
    """
    if step <= timedelta(0) or step % MILLISECOND:
        raise InputError("range query", "step", str(step), "must be a whole number of milliseconds above 0")
    if end < start:
        raise InputError("range query", "end", end.isoformat(), f"must not lie before the start, {start.isoformat()}")
    points = (end - start) // step + 1
    if points > MOST_POINTS * MOST_WINDOWS:
        raise InputError(
            "range query", "step", str(step), f"gives {points} points; at most {MOST_POINTS * MOST_WINDOWS} are asked"
        )
    for first in range(0, points, MOST_POINTS):
        last = min(first + MOST_POINTS, points) - 1
        yield start + first * step, start + last * step


class _Joined:
    """The answers of a range's windows as one."""

    def __init__(self) -> None:
        self._series: dict[frozenset[tuple[str, str]], dict[str, Any]] = {}
        self._said: dict[str, dict[str, None]] = {"warnings": {}, "infos": {}}

    def add(self, answer: Mapping[str, Any], source: str) -> None:
        if answer["data"]["resultType"] != "matrix":
            raise SourceFormatError(source, f"answers a range with {shown(answer['data']['resultType'])}", field="resultType")
        for row, series in enumerate(answer["data"]["result"]):
            metric = series.get("metric") if isinstance(series, dict) else None
            if not isinstance(metric, dict) or not all(isinstance(text, str) for text in metric.values()):
                raise SourceFormatError(source, f"series {row} carries no labels: {shown(series)}", field="metric", row=row)
            joined = self._series.setdefault(frozenset(metric.items()), {"metric": metric})
            for kind in ("values", "histograms"):
                if kind in series:
                    self._append(joined.setdefault(kind, []), series[kind], source, row)
        for word, said in self._said.items():
            texts = answer.get(word)
            said.update(dict.fromkeys(str(text) for text in texts) if isinstance(texts, list) else {})

    def _append(self, points: list[Any], more: object, source: str, row: int) -> None:
        """Add a window's points; a point that is there already (a server that rounds its ends) is not added twice."""
        if not isinstance(more, list) or not all(
            isinstance(point, list) and len(point) == 2 and isinstance(point[0], int | float) for point in more
        ):
            raise SourceFormatError(source, f"series {row} holds what are no points", field="values", row=row)
        last = points[-1][0] if points else None
        points.extend(point for point in more if last is None or point[0] > last)

    def answer(self) -> dict[str, Any]:
        said = {word: list(texts) for word, texts in self._said.items() if texts}
        return {"status": "success", "data": {"resultType": "matrix", "result": list(self._series.values())}, **said}


def _header_safe(setting: str, text: str) -> str:
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(setting, "(hidden)", "must be printable ASCII without spaces")
    return text


class PrometheusClient:
    """Asks a Prometheus or Mimir.

    Parameters
    ----------
    address
        Where it is, a path prefix included, with or without ``/api/v1``.
    tenant
        Sent as ``X-Scope-OrgID``, for Mimir.
    token
        Sent as a bearer token, to this host only, and in no error.
    clock, sleep, draw, monotonic, patience, transport
        See :class:`horde_policy.sources.http.HttpReader`.

    Raises
    ------
    ConfigError
        The address, tenant or token cannot be used.
    """

    def __init__(
        self,
        address: str,
        *,
        clock: Clock,
        tenant: str | None = None,
        token: str | None = None,
        name: str | None = None,
        setting: str = URL_SETTING,
        sleep: Callable[[float], None] = time.sleep,
        draw: random.Random | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        patience: Patience = PATIENCE,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        base = checked_address(setting, address).removesuffix("/api/v1")
        self.name = name or urlsplit(base).netloc
        headers = {"Accept": "application/json"}
        if tenant:
            headers["X-Scope-OrgID"] = _header_safe(TENANT_SETTING, tenant)
        if token:
            headers["Authorization"] = f"Bearer {_header_safe(TOKEN_SETTING, token)}"
        self._sleep = sleep
        self._tries = patience.tries
        self._first_pause_s = patience.first_pause_s
        self._reader = HttpReader(
            self.name,
            f"{base}/api/v1",
            headers=headers,
            clock=clock,
            sleep=sleep,
            draw=draw,
            monotonic=monotonic,
            patience=patience,
            transport=transport,
        )

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()

    def query(self, expression: str, *, at: datetime | None = None) -> dict[str, Any]:
        """Return the API's answer to an instant query, at an instant or now.

        Raises
        ------
        SourceUnavailable, SourceThrottled, SourceFormatError
            There is no answer, it refuses the query, it stays a 429, or it has another form than the API's.
        """
        return self._ask("/query", {"query": expression, **({} if at is None else {"time": _instant_text(at)})})

    def query_range(self, expression: str, *, start: datetime, end: datetime, step: timedelta) -> dict[str, Any]:
        """Return the API's answer to a range query, both ends included, as if it had come in one piece.

        Raises
        ------
        InputError
            See :func:`windows`.
        SourceUnavailable, SourceThrottled, SourceFormatError
            As for :meth:`query`; nothing is returned then, not even the windows that came.
        """
        joined = _Joined()
        seconds = f"{step / timedelta(seconds=1):.3f}"
        for first, last in windows(start, end, step):
            query = {"query": expression, "start": _instant_text(first), "end": _instant_text(last), "step": seconds}
            joined.add(self._ask("/query_range", query), self.name)
        return joined.answer()

    def _ask(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        return self._success(self._unthrottled(path, query), path)

    def _unthrottled(self, path: str, query: Mapping[str, str]) -> Answer:
        """Ask, and on a 429 ask again after what it says, or after pauses that double; at last let it through."""
        for attempt in range(self._tries):
            try:
                return self._reader.get(path, query)
            except SourceThrottled as error:
                pause_s = self._first_pause_s * 2.0 ** (attempt + 1) if error.retry_after_s is None else error.retry_after_s
                if attempt + 1 == self._tries or pause_s > LONGEST_WAIT_S:
                    raise
                self._sleep(pause_s)
        raise SourceUnavailable(self.name, f"was not asked: tries is {self._tries}")

    def _success(self, answer: Answer, path: str) -> dict[str, Any]:
        body: Any = None
        if answer.is_json or answer.status == OK:
            body, _ = parse_json(answer.content, self.name, path)
        if isinstance(body, dict) and body.get("status") == "error":
            raise SourceUnavailable(self.name, f"refuses {path}: {shown(body.get('errorType'))}, {shown(body.get('error'))}")
        if answer.status != OK:
            raise SourceUnavailable(self.name, f"answers {answer.status} to {path}")
        data = body.get("data") if isinstance(body, dict) and body.get("status") == "success" else None
        if not isinstance(data, dict) or not isinstance(data.get("resultType"), str) or not isinstance(data.get("result"), list):
            raise SourceFormatError(self.name, f"answers {path} with what is no answer of the query API", field="data")
        return {str(name): value for name, value in body.items()}


def configured_prometheus(
    environment: Mapping[str, str], secrets: Mapping[str, object], *, clock: Clock
) -> PrometheusClient | None:
    """Return the client that is configured; null if none is.

    The environment gives ``HORDE_POLICY_PROMETHEUS_URL``, ``…_TENANT`` and ``…_TOKEN``; what it does not give, a section
    ``prometheus`` of the secrets file does, with ``url``, ``tenant`` and ``token``.

    Raises
    ------
    ConfigError
        What is configured cannot be used.

    Examples
    --------
    >>> from horde_policy.clock import SystemClock
    >>> configured_prometheus({}, {"prometheus": {"url": "https://mimir.example/prometheus"}}, clock=SystemClock()).name
    'mimir.example'
    """
    section = secrets.get("prometheus")
    given = section if isinstance(section, Mapping) else {}

    def setting(name: str, word: str) -> str | None:
        return environment.get(name, "").strip() or (str(given[word]) if given.get(word) else None)

    url = setting(URL_SETTING, "url")
    if url is None:
        return None
    return PrometheusClient(url, clock=clock, tenant=setting(TENANT_SETTING, "tenant"), token=setting(TOKEN_SETTING, "token"))
