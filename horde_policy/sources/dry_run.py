"""A dry run of a text request as the anonymous account: asks a horde what it would say, and queues nothing (A21, A24).

What leaves this module can only be a dry run: the transport looks at each request and refuses any other. One try, no
redirect, no retry. Answers are read by ``rc`` where there is one (horde.md §2), never by the words of a sentence alone.
"""

import json
import math
import random
import re
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from horde_policy.clock import Clock
from horde_policy.errors import InputError, SourceUnavailable
from horde_policy.sources.horde import api_address, client_agent
from horde_policy.sources.http import Answer, is_loopback, retry_after_s, tls_context
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = ["ANONYMOUS_KEY", "DryRunAnswer", "DryRunClient", "DryRunOutcome", "OnlyDryRuns", "SentRule"]

ANONYMOUS_KEY = "0000000000"
PATH = "/v2/generate/text/async"
PROMPT = "Once upon a time"
ANSWER_S = 20.0
LARGEST_BYTES = 1_000_000
LONGEST_MESSAGE = 1_000
LONGEST_BODY = 60
"""So much is shown of a body that is no sentence."""
OK, UNAUTHORISED, THROTTLED, SERVER_ERRORS = 200, 401, 429, 500

DryRunOutcome = Literal[
    "free",
    "refused",
    "no_eligible_worker",
    "invalid",
    "maintenance",
    "bad_key",
    "throttled",
    "too_many_prompts",
    "server_error",
    "queued",
    "not_understood",
]
"""What an answer means; see :class:`DryRunAnswer`."""

SentRule = Literal["old", "not_told"]
"""By which rule a refusal was made, as far as its words tell."""

_FIGURE = r"(?P<before>[^\s\d(\[:=\"'“]?)(?P<figure>\d++(?:(?:[^\w\s]|\s++)?\d++)*+)(?P<after>\w?)"
_OLD_RULE = re.compile(rf"\s*Due to heavy demand, for requests over\s{_FIGURE} tokens")
# Neither across the end of a sentence nor from the allowance to what is asked for.
_STATED = re.compile(rf"\b(?:over|allowance|up to|limit)(?:(?!\bask)[^\d.;!?]){{0,40}}?{_FIGURE}", re.IGNORECASE)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:([,.'’ \u00a0\u2009\u202f])\d{3})(?:\1\d{3})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunAnswer:
    """What the server answered to a dry run.

    Attributes
    ----------
    outcome
        ``free``: a price, no refusal; ``refused``: kudos are needed in advance; ``no_eligible_worker``; ``invalid``: the input is
        refused; ``maintenance``; ``bad_key``; ``throttled``: asked too often (see ``retry_after_s``); ``too_many_prompts``: the
        anonymous account has too much waiting on this model; ``server_error``; ``queued``: it queued a dry run, which no server
        should; ``not_understood``: anything else, such as a success without a price.
    status, rc, message
        As sent; the message is cut, and hostile text. Where there is no sentence it says how the body begins.
    kudos
        The price; null if none was told.
    stated_tokens
        The allowance that the refusal states; null if none can be read.
    rule
        By which rule it refused: ``old`` is known by its words (A29).
    retry_after_s
        What a ``throttled`` answer asks for; null if it does not say.
    at
        When it was all there.
    """

    outcome: DryRunOutcome
    status: int
    rc: str | None
    message: str
    kudos: float | None
    stated_tokens: int | None
    rule: SentRule | None
    retry_after_s: float | None
    at: datetime


class OnlyDryRuns(httpx.BaseTransport):
    """Lets only dry runs of the anonymous account through, whatever asks it to send something else.

    >>> guard = OnlyDryRuns(httpx.MockTransport(lambda request: httpx.Response(200)))
    >>> guard.handle_request(httpx.Request("POST", "https://horde.example/api/v2/generate/text/async", json={"prompt": "x"}))
    Traceback (most recent call last):
    AssertionError: only a dry run of the anonymous account may be sent
    """

    def __init__(self, inner: httpx.BaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a dry run; raise AssertionError for anything else, before a byte of it is sent."""
        try:
            body = json.loads(request.read())
        except ValueError:
            body = None
        dry = isinstance(body, dict) and body.get("dry_run") is True
        anonymous = request.headers.get_list("apikey") == [ANONYMOUS_KEY]
        if not (dry and anonymous and request.method == "POST" and request.url.path.endswith(f"/api{PATH}")):
            raise AssertionError("only a dry run of the anonymous account may be sent")
        return self._inner.handle_request(request)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


def _transport(api: str) -> httpx.HTTPTransport:
    """Return the way to a server, through the environment's proxy unless it is on this machine."""
    url = httpx.URL(api)
    if is_loopback(url.host):
        return httpx.HTTPTransport(verify=tls_context(trust_env=False), trust_env=False)
    proxies = {} if proxy_bypass(url.host) else getproxies()
    return httpx.HTTPTransport(verify=tls_context(trust_env=True), proxy=proxies.get(url.scheme) or proxies.get("all"))


class DryRunClient:
    """Sends dry runs to one horde.

    Parameters
    ----------
    address, name, agent, setting
        As for :class:`horde_policy.sources.horde.HordeClient`.
    clock
        Tells when an answer came.
    draw
        Chance, for a sampler setting that makes each question a new one: servers before the allowance's answer a payload that
        they have priced within two days from memory, whatever they would decide now (horde.md §2).
    transport
        Another way to the server, for tests; dry runs only, all the same.
    """

    def __init__(
        self,
        address: str,
        *,
        clock: Clock,
        name: str | None = None,
        agent: str | None = None,
        setting: str = "HORDE_URL",
        draw: random.Random | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        api = api_address(setting, address)
        self.name = name or urlsplit(api).netloc
        self._address = api + PATH
        self._clock = clock
        self._draw = draw or random.Random()
        inner = transport or _transport(api)
        headers = {"apikey": ANONYMOUS_KEY, "Client-Agent": agent or client_agent(), "Accept": "application/json"}
        # One transport for every address: without the environment's own ones, no proxy goes around the guard.
        self._client = httpx.Client(
            headers=headers, timeout=ANSWER_S, follow_redirects=False, trust_env=False, transport=OnlyDryRuns(inner)
        )

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, model: str, max_length: int, max_context_length: int) -> DryRunAnswer:
        """Return what the horde says to a dry run of one model, size and context.

        Raises
        ------
        InputError
            The model has no name.
        SourceUnavailable
            There is no answer.
        """
        if not model:
            raise InputError("model", "", model, "must be named for a dry run")
        params = {
            "max_length": max_length,
            "max_context_length": max_context_length,
            "temperature": 0.5 + self._draw.randrange(500_000) / 1e6,
        }
        body = {"prompt": PROMPT, "models": [model], "params": params, "dry_run": True}
        try:
            with self._client.stream("POST", self._address, json=body) as response:
                answer = Answer(response.status_code, response.headers, self._content(response), self._clock.now())
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise SourceUnavailable(self.name, f"cannot be reached ({type(error).__name__})") from error
        return read_answer(answer)

    def _content(self, response: httpx.Response) -> bytes:
        content = b""
        for piece in response.iter_bytes():
            content += piece
            if len(content) > LARGEST_BYTES:
                raise SourceUnavailable(self.name, f"answers with more than {LARGEST_BYTES} bytes")
        return content


def read_answer(answer: Answer) -> DryRunAnswer:
    """Return what an answer to a dry run means.

    >>> from datetime import UTC
    >>> body = b'{"message": "Due to heavy demand, for requests over 508 tokens, ...", "rc": "KudosUpfront"}'
    >>> read = read_answer(Answer(403, {}, body, datetime(2026, 11, 29, tzinfo=UTC)))
    >>> read.outcome, read.stated_tokens, read.rule
    ('refused', 508, 'old')
    """
    body = _object(answer.content)
    rc = body.get("rc") if isinstance(body.get("rc"), str) else None
    outcome = _outcome(answer.status, rc, body)
    message = _message(body, answer, outcome)
    stated, rule = _stated(message) if outcome == "refused" else (None, None)
    return DryRunAnswer(
        outcome=outcome,
        status=answer.status,
        rc=rc,
        message=message,
        kudos=_price(body),
        stated_tokens=stated,
        rule=rule,
        retry_after_s=retry_after_s(answer) if outcome == "throttled" else None,
        at=answer.at,
    )


_BY_RC: dict[str, DryRunOutcome] = {
    "KudosUpfront": "refused",
    "NoEligibleWorker": "no_eligible_worker",
    "NoValidWorkers": "no_eligible_worker",
    "MaintenanceMode": "maintenance",
    "InvalidAPIKey": "bad_key",
    "TooManyPrompts": "too_many_prompts",
}


def _outcome(status: int, rc: str | None, body: dict[str, Any]) -> DryRunOutcome:
    if status < 300 and isinstance(body.get("id"), str) and body["id"]:
        return "queued"
    if rc in _BY_RC:
        return _BY_RC[rc]
    if status == OK and rc is None and _price(body) is not None:
        return "free"
    if status == THROTTLED:
        return "throttled" if rc is None else "too_many_prompts"
    if status == UNAUTHORISED:
        return "bad_key"
    if status >= SERVER_ERRORS:
        return "server_error"
    return "invalid" if status == 400 else "not_understood"


def _price(body: dict[str, Any]) -> float | None:
    """Return the price in kudos; null where the answer has none that is a number of at least 0."""
    kudos = body.get("kudos")
    if not isinstance(kudos, int | float) or isinstance(kudos, bool):
        return None
    try:
        price = float(kudos)
    except OverflowError:
        return None
    return price if math.isfinite(price) and price >= 0 else None


def _object(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _message(body: dict[str, Any], answer: Answer, outcome: DryRunOutcome) -> str:
    """Return the answer's sentence, with the fields that an input check names, or how a body without one begins."""
    if outcome == "not_understood" and answer.status < 300:
        return f"no price, but {_begins(answer.content)}"
    message = body.get("message")
    text = message if isinstance(message, str) else ""
    errors = body.get("errors")
    if isinstance(errors, dict):
        text += "".join(f"; {field}: {said}" for field, said in errors.items())
    if not text and answer.status != OK:
        text = f"no sentence, but {_begins(answer.content)}"
    return text[:LONGEST_MESSAGE]


def _begins(content: bytes) -> str:
    r"""Return how a body begins, on one line.

    >>> _begins(b"<!doctype html>\n<html lang=en>"), _begins(b" ")
    ('<!doctype html> <html lang=en>', 'an empty body')
    """
    text = " ".join(content[: 4 * LONGEST_BODY].decode(errors="replace").split())
    return text[: LONGEST_BODY - 1] + "…" if len(text) > LONGEST_BODY else text or "an empty body"


def _stated(message: str) -> tuple[int | None, SentRule]:
    old = _OLD_RULE.match(message)
    if old is not None:
        return _tokens(old), "old"
    found = _STATED.search(message)
    return (None if found is None or found["before"] else _tokens(found)), "not_told"


def _tokens(found: re.Match[str]) -> int | None:
    """Return a figure of tokens, its thousands separated or not; null where it may be read in two ways."""
    figure = found["figure"]
    thousands = _THOUSANDS.fullmatch(figure)
    if found["after"] or found["before"] not in ("", "-") or not (thousands or figure.isdecimal()) or len(figure) > 9:
        return None
    number = int(re.sub(r"\D", "", figure))
    if thousands and thousands[1].isspace() and number > MAX_LENGTH_LIMIT_TOKENS:
        return None  # two figures side by side
    return -number if found["before"] else number
