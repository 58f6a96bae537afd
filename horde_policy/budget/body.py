"""What a request body says about its size: output limit, number of outputs, caching, and input that it does not contain.

Read are OpenAI chat completions, completions and responses, Anthropic messages and Gemini generateContent (B2, B3;
budgets.md §2; decision 0042). Every spelling of a limit is read whatever the API, and the largest counts: a gateway that
reads one field while the provider reads another would hold next to nothing.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, get_args

from horde_policy.budget.prices import CacheAsked
from horde_policy.errors import InputError

__all__ = ["Api", "Ask", "api_of_route", "bytes_to_tokens", "read_request"]

Api = Literal["chat", "completions", "responses", "messages", "gemini"]

WHAT = "request body"
MAX_TOKENS = 10**9
MAX_CHOICES = 1_000_000
MAX_NAME_CHARACTERS = 200

LIMIT_NAMES = frozenset({"maxtokens", "maxcompletiontokens", "maxoutputtokens", "maxtokenstosample"})
CHOICE_NAMES = frozenset({"n", "bestof", "candidatecount"})
"""Field names without case and underscores: some servers read JSON names that way."""

_BEFORE = r"(?:^|(?:^|.*/)(?:v\d[^/]*|api|openai|anthropic)|(?:^|.*/)(?:deployments|engines|models)/[^/]+|^/?[^/]+)"
ROUTES: tuple[tuple[re.Pattern[str], Api], ...] = (
    (re.compile(r".*/chat/completions"), "chat"),
    (re.compile(_BEFORE + "/completions"), "completions"),
    (re.compile(_BEFORE + "/responses"), "responses"),
    (re.compile(_BEFORE + "/messages"), "messages"),
    (re.compile(r".*:(?:stream)?generatecontent"), "gemini"),
)
"""What a whole path must match: after an id of something else, as in threads/x/messages, the last word is another API's."""

ELSEWHERE = {
    "embeddings": frozenset({"encoding_format", "dimensions"}),
    "speech": frozenset({"voice"}),
    "an image": frozenset({"size", "quality", "style", "aspect_ratio", "output_compression", "mask"}),
    "a batch": frozenset({"input_file_id", "completion_window"}),
}
"""Fields that only bodies of routes without a size in this rule have, beside an ``input`` or a ``prompt``."""

MESSAGES_ONLY = frozenset({"system", "anthropic_version", "stop_sequences", "thinking", "top_k"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a request asks for, as far as money is concerned.

    Attributes
    ----------
    api
        The API whose shape the body has.
    model
        The model it names; null where the route names it (Gemini).
    body_bytes
        Length of the body as it is forwarded, after any decompression.
    limit_tokens
        m: the largest output limit it states, for each choice; null is none (B8).
    choices
        n: outputs that it asks for, over all its prompts.
    cache
        The dearest cache lifetime it asks for.
    stream, usage_in_stream
        Whether the answer is streamed, and whether the client asked for usage in the stream.
    limits
        Each limit field found, with its value, in the order of the body.
    unseen
        Input or fees that the body only refers to, which bytes ÷ 4 knows nothing of.
    """

    api: Api
    model: str | None
    body_bytes: int
    limit_tokens: int | None = None
    choices: int = 1
    cache: CacheAsked = "none"
    stream: bool = False
    usage_in_stream: bool = False
    limits: tuple[tuple[str, int], ...] = ()
    unseen: tuple[str, ...] = ()


def bytes_to_tokens(body_bytes: int) -> int:
    """Return the input estimate of B2: bytes ÷ 4, rounded up to a whole token.

    >>> [bytes_to_tokens(b) for b in (0, 1, 4, 5, 40_000)]
    [0, 1, 1, 2, 10000]
    """
    if isinstance(body_bytes, bool) or not isinstance(body_bytes, int) or not 0 <= body_bytes <= 4 * MAX_TOKENS:
        raise InputError(WHAT, "length", body_bytes, f"must be a whole number of bytes from 0 to {4 * MAX_TOKENS}")
    return -(-body_bytes // 4)


def api_of_route(route: str) -> Api:
    """Return the API that a route belongs to.

    Raises
    ------
    InputError
        The route is none of the five: embeddings, images, audio, batches and stored threads have no size in this rule and
        are not admitted silently with a hold of zero.

    Examples
    --------
    >>> api_of_route("/v1/chat/completions"), api_of_route("/v1beta/models/m:streamGenerateContent?alt=sse")
    ('chat', 'gemini')
    >>> api_of_route("/v1/embeddings")
    Traceback (most recent call last):
    horde_policy.errors.InputError: route: '/v1/embeddings' is not covered: its cost has no size in this rule
    """
    path = route.split("?", 1)[0].split("#", 1)[0].rstrip("/").lower()
    for whole, api in ROUTES:
        if whole.fullmatch(path):
            return api
    raise InputError("route", "", route, "is not covered: its cost has no size in this rule")


def read_request(body: bytes, *, api: Api | None = None, model: str | None = None) -> Ask:
    """Return what a request body asks for.

    Parameters
    ----------
    body
        The bytes as forwarded to the provider, after any decompression.
    api
        The API of the route it came by (:func:`api_of_route`); without it the shape decides. A short body of embeddings or
        speech has the shape of responses, one of an image that of completions: only the route tells them apart.
    model
        The model that the route names; without it the body's.

    Raises
    ------
    InputError
        Not UTF-8 JSON, a field twice, a limit or a number of outputs that is no whole number of at least 1, or no shape
        of the five. Null is absent.

    Examples
    --------
    >>> ask = read_request(b'{"model": "m", "messages": [], "max_tokens": 1, "max_completion_tokens": 32000, "n": 2}')
    >>> ask.api, ask.limit_tokens, ask.choices
    ('chat', 32000, 2)
    >>> read_request(b'{"model": "m", "messages": [], "max_tokens": -5}')
    Traceback (most recent call last):
    horde_policy.errors.InputError: request body, max_tokens: -5 must be a whole number from 1 to 1000000000, or null
    """
    fields = _parse(body)
    if api is not None and api not in get_args(Api):
        raise InputError(WHAT, "api", api, "must be one of " + ", ".join(get_args(Api)))
    found = api if api is not None else _shape(fields)
    limits = tuple(_numbers(fields, LIMIT_NAMES, MAX_TOKENS))
    choices = max([count for _, count in _numbers(fields, CHOICE_NAMES, MAX_CHOICES)], default=1)
    cache, unseen = _walk(fields)
    options = fields.get("stream_options")
    return Ask(
        api=found,
        model=_model(model if model is not None else fields.get("model")),
        body_bytes=len(body),
        limit_tokens=max((tokens for _, tokens in limits), default=None),
        choices=choices * _prompts(fields.get("prompt")),
        cache=cache,
        stream=fields.get("stream") is True,
        usage_in_stream=isinstance(options, dict) and options.get("include_usage") is True,
        limits=limits,
        unseen=unseen,
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(WHAT, "", twice, "is there twice: which one the provider reads is not known")
    return fields


def _no_constant(text: str) -> NoReturn:
    raise InputError(WHAT, "", text, "is not JSON")


def _parse(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise InputError(WHAT, f"byte {error.start}", body[error.start : error.start + 4], "is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise InputError(WHAT, f"character {error.pos}", error.doc[error.pos : error.pos + 20], "is not JSON") from error
    except RecursionError as error:
        raise InputError(WHAT, "", len(body), "bytes are nested too deeply") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise InputError(WHAT, "", len(body), "bytes hold a number that is too long") from error
    if not isinstance(fields, dict):
        raise InputError(WHAT, "", type(fields).__name__, "must be a JSON object")
    return fields


def _shape(fields: dict[str, Any]) -> Api:
    if "contents" in fields:
        return "gemini"
    if "messages" in fields:
        return "messages" if MESSAGES_ONLY & fields.keys() else "chat"
    for what, names in ELSEWHERE.items():
        if names & fields.keys():
            rule = f"is a field of a request for {what}, which is not covered: its cost has no size in this rule"
            raise InputError(WHAT, "", min(names & fields.keys()), rule)
    if isinstance(fields.get("prompt"), str | list):
        return "completions"
    if fields.keys() & {"input", "previous_response_id", "conversation", "prompt"}:
        return "responses"
    known = ", ".join(get_args(Api))
    raise InputError(WHAT, "", sorted(fields)[:8], f"are the fields of none of {known}")


def _numbers(fields: dict[str, Any], names: frozenset[str], most: int) -> Iterator[tuple[str, int]]:
    """Yield each field of those names, at the top and in Gemini's generation config; null is absent."""
    for name, value in fields.items():
        plain = name.lower().replace("_", "")
        if plain in names and value is not None:
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise InputError(WHAT, name, value, f"must be a whole number from 1 to {most}, or null")
            yield name, value
        elif plain == "generationconfig" and isinstance(value, dict):
            for inner, number in _numbers(value, names, most):
                yield f"{name}.{inner}", number


def _prompts(prompt: object) -> int:
    """Return how many prompts an old completions body carries: a list of token numbers is one."""
    if not isinstance(prompt, list) or all(isinstance(part, int) for part in prompt):
        return 1
    return len(prompt)


def _model(name: object) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
        raise InputError(WHAT, "model", name, f"must be a printable text of 1 to {MAX_NAME_CHARACTERS} characters")
    return name


OWN_TOOLS = "the provider's own tools: more turns, and fees for each call"
REFERENCES = {
    "file_id": "a file id",
    "file_url": "a file URL",
    "fileuri": "a file URI",
    "file_uri": "a file URI",
    "cachedcontent": "cached content",
    "cached_content": "cached content",
    "previous_response_id": "a stored conversation",
    "conversation": "a stored conversation",
    "input_audio": "audio",
}
OWN_TOOL_FIELDS = frozenset({"web_search_options", "mcp_servers", "container", "plugins"})
TEXT_ONLY = frozenset({"text"})
ONE_PRICE = frozenset({"auto", "default", "standard", "standard_only"})
CLIENT_TOOL_FIELDS = frozenset({"name", "function", "functiondeclarations", "function_declarations", "toolspec"})
SHORT_RETENTION = (None, "", "in_memory", "in-memory")
CACHE_MARKERS = frozenset({"cache_control", "cachecontrol", "cachepoint", "cache_point"})
CLIENT_TOOLS = frozenset({"function", "custom"})


def _walk(fields: dict[str, Any]) -> tuple[CacheAsked, tuple[str, ...]]:
    """Return the dearest cache lifetime asked for anywhere, and what the body only refers to."""
    cache: CacheAsked = "none"
    unseen: dict[str, None] = dict.fromkeys(_asked_beside(fields))
    if fields.get("prompt_cache_retention") not in SHORT_RETENTION:
        cache = "1h"
    if isinstance(fields.get("prompt"), dict):
        unseen["a stored prompt"] = None
    stack: list[Any] = [fields]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(part for part in node if isinstance(part, dict | list))
            continue
        for name, value in node.items():
            plain = name.lower()
            if plain in CACHE_MARKERS and value is not None:
                # Only the short lifetime is known to be cheap: any other is taken at the dearer price.
                ttl = value.get("ttl") if isinstance(value, dict) else None
                cache = "1h" if cache == "1h" or ttl not in (None, "5m") else "5m"
            note = REFERENCES.get(plain) if value not in (None, "") else None
            note = note or _linked(plain, value)
            if note is not None:
                unseen[note] = None
            if isinstance(value, dict | list):
                stack.append(value)
    return cache, tuple(sorted(unseen))


def _linked(name: str, value: Any) -> str | None:
    """Return what a field with a link, a source or a provider's own tool refers to."""
    if name == "image_url":
        link = value.get("url") if isinstance(value, dict) else value
        return "an image URL" if isinstance(link, str) and not link.startswith("data:") else None
    if name == "source" and isinstance(value, dict) and value.get("type") in ("url", "file"):
        return "a document or image URL" if value["type"] == "url" else "a file id"
    if name == "tools" and isinstance(value, list):
        return OWN_TOOLS if any(isinstance(tool, dict) and not _is_clients(tool) for tool in value) else None
    return None


def _asked_beside(fields: dict[str, Any]) -> Iterator[str]:
    """Yield what the body's own fields, and those of Gemini's generation config, ask for beside text at the table's prices."""
    for name, value in fields.items():
        plain = name.lower().replace("_", "")
        if name in OWN_TOOL_FIELDS and value is not None and value != []:  # an empty object asks for a search
            yield OWN_TOOLS
        elif plain in ("modalities", "responsemodalities") and isinstance(value, list):
            if {word.lower() for word in value if isinstance(word, str)} - TEXT_ONLY:
                yield "output that is not text, at other prices"
        elif plain == "servicetier" and isinstance(value, str) and value not in ONE_PRICE:
            yield "another service tier, at other prices"
        elif plain == "generationconfig" and isinstance(value, dict):
            yield from _asked_beside(value)


def _is_clients(tool: dict[str, Any]) -> bool:
    """Return whether a tool is the client's own: Anthropic and Gemini name its type only where it is the provider's."""
    kind = tool.get("type")
    if kind is None:
        return not tool or bool(CLIENT_TOOL_FIELDS & {name.lower() for name in tool})
    return not isinstance(kind, str) or kind in CLIENT_TOOLS
