"""One GET of an HTTP source: bounded in time, size and tries, kept on its host, silent about secrets.

Clock, pauses and chance are arguments. ``Retry-After`` counts on a 429 without ``rc`` only: an AI Horde server sends it with
good answers too, and with ``rc`` it means nothing (horde.md §1.1, horde_observed.md "Error shapes").
"""

import email.utils
import functools
import ipaddress
import json
import math
import random
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import httpx

from horde_policy.clock import Clock
from horde_policy.errors import ConfigError, InputError, SourceFormatError, SourceThrottled, SourceUnavailable, shown

__all__ = ["Answer", "HttpReader", "Patience", "checked_address", "is_loopback", "retry_after_s", "tls_context"]

TOO_MANY_REQUESTS = 429
SERVER_ERRORS = 500
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MOST_REDIRECTS = 3
LONGEST_RETRY_AFTER_S = 900.0
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long, how large and how often one question may be.

    Attributes
    ----------
    connect_s, read_s, whole_s
        For the connection, between two pieces of the answer, and for one try as a whole.
    tries, first_pause_s, longest_pause_s
        A server error or a broken connection is tried again so often, after pauses that double, each cut by chance to
        between half and all of itself.
    largest_bytes
        An answer is given up at this size, unpacked.
    """

    connect_s: float = 5.0
    read_s: float = 10.0
    whole_s: float = 30.0
    tries: int = 3
    first_pause_s: float = 0.5
    longest_pause_s: float = 8.0
    largest_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered, and when it was all there (UTC)."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    at: datetime

    @property
    def is_json(self) -> bool:
        """Whether the server calls it JSON."""
        return "json" in self.headers.get("content-type", "").lower()

    @property
    def server_time(self) -> datetime:
        """The server's own clock, ours if it does not send it."""
        return _instant(self.headers.get("date", "")) or self.at


def checked_address(setting: str, address: str) -> str:
    """Return an http(s) address without its trailing slash.

    Raises
    ------
    ConfigError
        Another scheme, no host, a port that is none, or a name, password, query or fragment, of which none is repeated.

    Examples
    --------
    >>> checked_address("HORDE_URL", " https://horde.example/api/ ")
    'https://horde.example/api'
    >>> checked_address("HORDE_URL", "https://me:secret@horde.example")
    Traceback (most recent call last):
    horde_policy.errors.ConfigError: setting HORDE_URL: '…@horde.example' must carry no user name or password
    """
    text = address.strip()
    safe = text.rpartition("@")[2].partition("?")[0].partition("#")[0]
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
        httpx.URL(text)
    except (ValueError, httpx.InvalidURL):
        raise ConfigError(setting, safe, "must be an address like https://host") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigError(setting, f"…@{safe}", "must carry no user name or password")
    if parts.scheme not in DEFAULT_PORTS or not host or port == 0:
        raise ConfigError(setting, safe, "must be an address like https://host")
    if parts.query or parts.fragment:
        raise ConfigError(setting, safe, "must carry no query and no fragment")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def retry_after_s(answer: Answer) -> float | None:
    """Return the seconds that ``Retry-After`` asks to wait, as a number or a date; null where it says nothing readable.

    A date counts from the server's own clock. Absurd figures are cut to a quarter of an hour.

    >>> at = datetime(2026, 11, 29, tzinfo=UTC)
    >>> retry_after_s(Answer(429, {"retry-after": "59"}, b"", at))
    59.0
    >>> retry_after_s(Answer(429, {"retry-after": "Sun, 29 Nov 2026 00:01:00 GMT"}, b"", at))
    60.0
    """
    text = answer.headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        until = _instant(text)
        if until is None:
            return None
        seconds = max(0.0, (until - answer.server_time).total_seconds())
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return min(seconds, LONGEST_RETRY_AFTER_S)


def _instant(text: str) -> datetime | None:
    try:
        at = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


@functools.cache
def tls_context(*, trust_env: bool) -> ssl.SSLContext:
    """Return the process's TLS set-up: reading the certificates takes longer than most answers."""
    return httpx.create_ssl_context(trust_env=trust_env)


def _place(url: httpx.URL) -> str:
    """Return scheme, host and port of an address, and nothing that could be a secret."""
    return f"{url.scheme}://{url.host}" + ("" if url.port is None else f":{url.port}")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, which no proxy stands before.

    >>> is_loopback("127.0.0.1"), is_loopback("[::1]"), is_loopback("horde.example")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _has_rc(content: bytes) -> bool:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(body, dict) and bool(body.get("rc"))


class _Broken(SourceUnavailable):
    """A failure that may have passed when asked again."""


class HttpReader:
    """Asks one host.

    Parameters
    ----------
    source
        Its name in errors.
    address
        As :func:`checked_address` gives it; paths are added to it.
    headers
        Sent with every question; they may hold a secret and never show in an error.
    clock, sleep, draw, monotonic
        Time and chance.
    transport
        Another way to the server, for tests.

    Notes
    -----
    A redirect is followed on the same host and port only, or from http to https of it. A loopback address is never asked
    through a proxy. Safe for several threads.
    """

    def __init__(
        self,
        source: str,
        address: str,
        *,
        headers: Mapping[str, str],
        clock: Clock,
        sleep: Callable[[float], None] = time.sleep,
        draw: random.Random | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.source = source
        self.address = address
        self.clock = clock
        self._sleep = sleep
        self._draw = draw or random.Random()
        self._monotonic = monotonic
        self._patience = patience or Patience()
        self._closed = False
        trust_env = not is_loopback(httpx.URL(address).host)
        self._client = httpx.Client(
            headers=dict(headers),
            timeout=httpx.Timeout(self._patience.read_s, connect=self._patience.connect_s),
            follow_redirects=False,
            trust_env=trust_env,
            verify=tls_context(trust_env=trust_env),
            transport=transport,
        )

    def __enter__(self) -> Self:
        """Return the reader."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections; a question on its way in another thread ends as one that could not be had."""
        self._closed = True
        self._client.close()

    def check(self, path: str) -> None:
        """Raise InputError if a path is longer than an address may be."""
        self._url(path, None)

    def _url(self, path: str, query: Mapping[str, str] | None) -> httpx.URL:
        try:
            return httpx.URL(self.address + path, params=dict(query)) if query else httpx.URL(self.address + path)
        except httpx.InvalidURL:
            raise InputError("question", f"to {self.source}", path, "is longer than an address may be") from None

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """Return the answer of a GET; ``path`` is sent as it stands, percent escapes included.

        Raises
        ------
        InputError
            Path and query are longer than an address may be.
        SourceUnavailable
            No answer, or a server error, after all tries; a redirect to another host.
        SourceThrottled
            The answer is a 429; with ``retry_after_s`` if it carries no ``rc`` and a readable ``Retry-After``.
        SourceFormatError
            The answer is larger than allowed.
        """
        url = self._url(path, query)
        for attempt in range(1, self._patience.tries + 1):
            try:
                answer = self._one_try(url)
            except _Broken:
                if attempt == self._patience.tries or self._closed:
                    raise
            else:
                if answer.status < SERVER_ERRORS:
                    return self._unless_throttled(answer, path)
                if attempt == self._patience.tries:
                    raise SourceUnavailable(self.source, f"answers {answer.status} to {shown(path)}, {attempt} times")
            pause_s = min(self._patience.longest_pause_s, self._patience.first_pause_s * 2 ** (attempt - 1))
            self._sleep(pause_s * self._draw.uniform(0.5, 1.0))
        raise SourceUnavailable(self.source, f"was not asked: tries is {self._patience.tries}")

    def _unless_throttled(self, answer: Answer, path: str) -> Answer:
        if answer.status != TOO_MANY_REQUESTS:
            return answer
        wait_s = None if _has_rc(answer.content) else retry_after_s(answer)
        told = "" if wait_s is None else f", asks to wait {wait_s:g} s"
        raise SourceThrottled(self.source, f"answers 429 to {shown(path)}{told}", retry_after_s=wait_s)

    def _one_try(self, url: httpx.URL) -> Answer:
        deadline = self._monotonic() + self._patience.whole_s
        for _ in range(MOST_REDIRECTS + 1):
            try:
                with self._client.stream("GET", url) as response:
                    if response.status_code not in REDIRECTS:
                        content = self._content(response, deadline)
                        return Answer(response.status_code, response.headers, content, self.clock.now())
                    url = self._redirected(url, response.headers.get("location", ""))
            except httpx.TimeoutException as error:
                raise _Broken(self.source, self._timeout_text(error)) from error
            except (httpx.HTTPError, httpx.StreamError) as error:
                # Its text may repeat a header that is a secret: only what kind of failure it is goes on.
                raise _Broken(self.source, f"cannot be reached ({type(error).__name__})") from error
            except RuntimeError as error:
                if not self._closed:  # httpx says so of a client that is closed
                    raise
                raise SourceUnavailable(self.source, "is no longer asked: its connections are closed") from error
        raise SourceUnavailable(self.source, f"redirects more than {MOST_REDIRECTS} times")

    def _content(self, response: httpx.Response, deadline: float) -> bytes:
        largest = self._patience.largest_bytes
        pieces: list[bytes] = []
        size = 0
        for piece in response.iter_bytes():
            size += len(piece)
            if size > largest:
                raise SourceFormatError(self.source, f"answers with more than {largest} bytes")
            if self._monotonic() > deadline:
                raise _Broken(self.source, f"takes longer than {self._patience.whole_s:g} s for one answer")
            pieces.append(piece)
        return b"".join(pieces)

    def _redirected(self, url: httpx.URL, location: str) -> httpx.URL:
        try:
            to = url.join(location)
        except (httpx.InvalidURL, ValueError):
            raise SourceUnavailable(self.source, "redirects to what is no address") from None
        ports = [each.port or DEFAULT_PORTS.get(each.scheme) for each in (url, to)]
        same = to.host == url.host and (to.scheme == url.scheme and ports[0] == ports[1])
        safer = to.host == url.host and (url.scheme, to.scheme) == ("http", "https") and ports == [80, 443]
        if not (same or safer):
            another = "host" if to.host != url.host else "scheme" if ports[0] == ports[1] else "port"
            raise SourceUnavailable(self.source, f"redirects to another {another}, {shown(_place(to))}, which is not followed")
        return to

    def _timeout_text(self, error: httpx.TimeoutException) -> str:
        if isinstance(error, httpx.ConnectTimeout):
            return f"does not accept a connection within {self._patience.connect_s:g} s"
        return f"sends nothing for {self._patience.read_s:g} s"
