"""Request bodies of the five shapes: limits, outputs, caching, and what bytes do not show (budgets.md §2)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.budget.body import api_of_route, bytes_to_tokens, read_request
from horde_policy.errors import InputError


def read(**fields: Any) -> Any:
    return read_request(json.dumps(fields).encode())


CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("fields", "api", "limit", "choices"),
    [
        (CHAT, "chat", None, 1),
        (CHAT | {"max_tokens": 5}, "chat", 5, 1),
        (CHAT | {"max_completion_tokens": 6, "n": 3}, "chat", 6, 3),
        (CHAT | {"max_tokens": 1, "max_completion_tokens": 32_000}, "chat", 32_000, 1),
        (CHAT | {"max_tokens": 32_000, "max_completion_tokens": 1}, "chat", 32_000, 1),
        (CHAT | {"max_tokens": None, "n": None}, "chat", None, 1),
        ({"model": "m", "prompt": "a", "max_tokens": 16, "n": 2, "best_of": 5}, "completions", 16, 5),
        ({"model": "m", "prompt": ["a", "b", "c"], "n": 2}, "completions", None, 6),
        ({"model": "m", "prompt": [1, 2, 3]}, "completions", None, 1),
        ({"model": "m", "prompt": [[1, 2], [3]]}, "completions", None, 2),
        ({"model": "m", "prompt": []}, "completions", None, 1),
        ({"model": "m", "input": "a", "max_output_tokens": 9}, "responses", 9, 1),
        ({"model": "m", "system": "s", "messages": [], "max_tokens": 8}, "messages", 8, 1),
        ({"contents": [], "generationConfig": {"maxOutputTokens": 7, "candidateCount": 4}}, "gemini", 7, 4),
        ({"contents": [], "generation_config": {"max_output_tokens": 7, "candidate_count": 4}}, "gemini", 7, 4),
        (CHAT | {"max_output_tokens": 700, "max_tokens": 5}, "chat", 700, 1),
        (CHAT | {"Max_Tokens": 900, "max_tokens": 5}, "chat", 900, 1),
        (CHAT | {"generationConfig": {"maxOutputTokens": 800}, "max_tokens": 5}, "chat", 800, 1),
    ],
)
def test_the_largest_limit_and_every_multiplier_count(fields: dict[str, Any], api: str, limit: int | None, choices: int) -> None:
    ask = read(**fields)
    assert (ask.api, ask.limit_tokens, ask.choices) == (api, limit, choices)


@pytest.mark.parametrize("value", [0, -1, 1.5, 4096.0, "4096", True, [], {}, 10**9 + 1, 10**30])
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_an_invalid_limit_is_refused_and_never_a_negative_hold(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"request body, {name}: .* must be a whole number from 1 to 1000000000, or null"):
        read(**CHAT, **{name: value})


@pytest.mark.parametrize("value", [0, -3, "2", False, 2.0])
def test_an_invalid_number_of_outputs_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="request body, n:"):
        read(**CHAT, n=value)
    with pytest.raises(InputError, match=r"generationConfig|candidateCount"):
        read(contents=[], generationConfig={"candidateCount": value})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "is not JSON"),
        (b"[]", "must be a JSON object"),
        (b"{", "is not JSON"),
        (b'{"max_tokens": NaN, "messages": []}', "is not JSON"),
        (b'{"max_tokens": 1, "max_tokens": 32000, "messages": []}', "is there twice"),
        (b'{"messages": [{"a": 1, "a": 2}]}', "is there twice"),
        (b"\xff\xfe{\x00}\x00", "is not UTF-8"),
        (b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"max_tokens": ' + b"9" * 5000 + b', "messages": []}', "a number that is too long"),
        (b'{"params": {"max_length": 80}, "models": ["m"]}', "are the fields of none of"),
        (b'{"messages": [], "model": 5}', "model"),
        (b'{"messages": [], "model": "a\\nb"}', "model"),
        (b'{"messages": [], "model": "\\ud800"}', "model"),
    ],
)
def test_a_body_that_cannot_be_understood_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_request(body)


@pytest.mark.parametrize(
    ("route", "api"),
    [
        ("/v1/chat/completions", "chat"),
        ("/openai/v1/chat/completions/", "chat"),
        ("/v1/completions", "completions"),
        ("/v1/responses?stream=true", "responses"),
        ("/v1/messages", "messages"),
        ("/v1beta/models/gemini-x:generateContent", "gemini"),
        ("/v1beta/models/gemini-x:streamGenerateContent?alt=sse", "gemini"),
    ],
)
def test_a_route_names_its_api(route: str, api: str) -> None:
    assert api_of_route(route) == api


@pytest.mark.parametrize(
    "route", ["/v1/embeddings", "/v1/images/generations", "/v1/batches", "/v1/messages/count_tokens", "/", "/v1/audio/speech"]
)
def test_a_route_without_a_size_is_refused(route: str) -> None:
    with pytest.raises(InputError, match="is not covered"):
        api_of_route(route)


@pytest.mark.parametrize(
    ("fields", "cache"),
    [
        ({}, "none"),
        ({"system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}, "5m"),
        ({"system": [{"cache_control": {"type": "ephemeral", "ttl": "5m"}}]}, "5m"),
        ({"tools": [{"cache_control": {"ttl": "1h"}}], "system": [{"cache_control": {"type": "ephemeral"}}]}, "1h"),
        ({"system": [{"cache_control": {"ttl": "30m"}}]}, "1h"),
        ({"system": [{"cache_control": None}]}, "none"),
        ({"prompt_cache_retention": "24h"}, "1h"),
        ({"prompt_cache_retention": "in_memory"}, "none"),
        ({"prompt_cache_retention": None}, "none"),
        ({"messages": [{"content": [{"cachePoint": {"type": "default"}}]}]}, "5m"),
        ({"system": [{"text": '"cache_control": {"ttl": "1h"}'}]}, "none"),
    ],
)
def test_the_dearest_cache_lifetime_asked_for_anywhere_counts(fields: dict[str, Any], cache: str) -> None:
    assert read(**(CHAT | fields)).cache == cache


@pytest.mark.parametrize(
    ("fields", "unseen"),
    [
        (CHAT | {"messages": [{"content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}]}, "an image URL"),
        ({"model": "m", "input": [{"content": [{"type": "input_image", "image_url": "https://x"}]}]}, "an image URL"),
        ({"model": "m", "input": "x", "previous_response_id": "r"}, "a stored conversation"),
        ({"model": "m", "input": "x", "conversation": "c"}, "a stored conversation"),
        ({"model": "m", "prompt": {"id": "p"}}, "a stored prompt"),
        ({"model": "m", "input": [{"content": [{"type": "input_file", "file_id": "f"}]}]}, "a file id"),
        ({"model": "m", "input": "x", "tools": [{"type": "web_search"}]}, "the provider's own tools: more turns, and fees"),
        (
            CHAT | {"messages": [{"content": [{"type": "document", "source": {"type": "url", "url": "u"}}]}]},
            "a document or image",
        ),
        ({"contents": [{"parts": [{"fileData": {"fileUri": "u"}}]}]}, "a file URI"),
        ({"contents": [], "cachedContent": "c/1"}, "cached content"),
        (CHAT | {"web_search_options": {}}, "the provider's own tools"),
        (CHAT | {"plugins": [{"id": "web"}]}, "the provider's own tools"),
        (CHAT | {"mcp_servers": [{"type": "url", "url": "u"}]}, "the provider's own tools"),
        (CHAT | {"container": "c"}, "the provider's own tools"),
        ({"contents": [], "tools": [{"googleSearch": {}}]}, "the provider's own tools"),
        (CHAT | {"modalities": ["text", "audio"]}, "output that is not text"),
        ({"contents": [], "generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}, "output that is not text"),
        (CHAT | {"service_tier": "priority"}, "another service tier"),
    ],
)
def test_input_that_the_body_only_refers_to_is_named(fields: dict[str, Any], unseen: str) -> None:
    assert any(note.startswith(unseen) for note in read(**fields).unseen)


def test_what_the_body_contains_is_not_named() -> None:
    inline = CHAT | {
        "messages": [{"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "previous_response_id": None,
        "web_search_options": None,
        "mcp_servers": [],
        "modalities": ["text"],
        "service_tier": "auto",
    }
    schema = {"type": "object", "properties": {"container": {"type": "string"}, "modalities": {"enum": ["audio"]}}}
    assert read(**(CHAT | {"tools": [{"name": "f", "input_schema": schema}]})).unseen == ()
    assert read(contents=[], tools=[{"functionDeclarations": [{"name": "f"}]}]).unseen == ()
    assert read(**inline).unseen == ()


@pytest.mark.parametrize(
    "route",
    [
        "/v1/threads/x/messages",
        "/v1/chat/completions/x/messages",
        "/v1/conversations/x/messages",
        "/v1/threads/x/runs/y/messages",
        "/v1/messages/batches",
        "/v1/messages/count_tokens",
        "/v1/responses/x",
        "/v1/evals/x/responses",
        "/v1/embeddings",
        "/v1/moderations",
    ],
)
def test_a_route_that_only_ends_like_one_of_the_five_is_refused(route: str) -> None:
    with pytest.raises(InputError, match="is not covered"):
        api_of_route(route)


@pytest.mark.parametrize(
    ("route", "api"),
    [
        ("/messages", "messages"),
        ("/anthropic/v1/messages", "messages"),
        ("https://api.anthropic.com/v1/messages", "messages"),
        ("/proxy/messages", "messages"),
        ("/openai/responses", "responses"),
        ("/openai/deployments/d/completions", "completions"),
        ("/openai/deployments/d/chat/completions", "chat"),
        ("/v1/engines/e/completions", "completions"),
        ("/api/v1/completions", "completions"),
        ("/chat/completions", "chat"),
    ],
)
def test_a_route_under_a_prefix_is_still_covered(route: str, api: str) -> None:
    assert api_of_route(route) == api


@pytest.mark.parametrize(
    "fields",
    [
        {"input": "x", "encoding_format": "float"},
        {"input": "x", "dimensions": 256},
        {"input": "x", "voice": "alloy"},
        {"prompt": "x", "size": "1024x1024"},
        {"prompt": "x", "quality": "hd"},
        {"input_file_id": "f", "endpoint": "/v1/chat/completions", "completion_window": "24h"},
    ],
)
def test_a_body_that_only_a_route_without_a_size_has_is_refused_without_its_route(fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="is not covered"):
        read_request(json.dumps({"model": "m", **fields}).encode())


def test_bytes_are_those_forwarded_and_a_quarter_of_them_rounds_up() -> None:
    escaped = json.dumps(CHAT | {"messages": [{"content": "你"}]}).encode()
    plain = json.dumps(CHAT | {"messages": [{"content": "你"}]}, ensure_ascii=False).encode()
    assert read_request(escaped).body_bytes - read_request(plain).body_bytes == 3
    assert [bytes_to_tokens(b) for b in (0, 1, 3, 4, 5, 8)] == [0, 1, 1, 1, 2, 2]
    for wrong in (-1, 1.0, True, "4"):
        with pytest.raises(InputError):
            bytes_to_tokens(wrong)  # type: ignore[arg-type]


def test_streaming_and_the_route_s_own_names() -> None:
    ask = read(**CHAT, stream=True, stream_options={"include_usage": True})
    assert ask.stream
    assert ask.usage_in_stream
    assert not read(**CHAT, stream=True).usage_in_stream
    assert read_request(b'{"contents": []}', api="gemini", model="gemini-x").model == "gemini-x"
    with pytest.raises(InputError, match="must be one of chat"):
        read_request(b"{}", api="kobold")  # type: ignore[arg-type]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
limit_names = ["max_tokens", "max_completion_tokens", "n", "best_of", "generationConfig", "stream_options", "cache_control"]
names = st.sampled_from(
    [*limit_names, "messages", "input", "prompt", "contents", "tools", "model", "system", "image_url", "source"]
)


@given(st.dictionaries(names, json_values, max_size=8))
def test_any_json_is_read_or_refused_with_a_message(fields: dict[str, Any]) -> None:
    body = json.dumps(fields).encode()
    try:
        ask = read_request(body)
    except InputError as error:
        refused: str | None = str(error)
    else:
        refused = None
        assert ask.body_bytes == len(body)
        assert ask.limit_tokens is None or ask.limit_tokens >= 1
        assert ask.choices >= 1
    assert refused is None or refused.startswith("request body")
