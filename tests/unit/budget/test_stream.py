"""Usage out of streams, whole and cut, in pieces of any size (budgets.md §3)."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.budget.stream import StreamReader, is_usage_only, read_stream
from horde_policy.budget.usage import TokenUsage

Chunk = dict[str, Any]


def chat_delta(text: str, *, finish: str | None = None, usage: Chunk | None = None, index: int = 0) -> Chunk:
    return {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}], "usage": usage}


USAGE: Chunk = {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}

CHAT: list[Chunk] = [
    chat_delta("Hello"),
    chat_delta(" world"),
    chat_delta("", finish="stop"),
    {"choices": [], "usage": USAGE},
]
USAGE_ON_LAST_CHOICE: list[Chunk] = [chat_delta("Hello"), chat_delta("", finish="stop", usage=USAGE)]
USAGE_ON_EVERY_CHUNK: list[Chunk] = [
    chat_delta("Hello", usage=USAGE | {"completion_tokens": 1, "total_tokens": 10}),
    chat_delta(" world", usage=USAGE | {"completion_tokens": 2, "total_tokens": 11}),
    chat_delta("", finish="stop", usage=USAGE),
]
MESSAGES: list[Chunk] = [
    {
        "type": "message_start",
        "message": {
            "content": [],
            "usage": {
                "input_tokens": 25,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 40,
                "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 10},
                "output_tokens": 1,
            },
        },
    },
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello there"}},
    {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 8}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 15}},
    {"type": "message_stop"},
]
RESPONSES: list[Chunk] = [
    {"type": "response.created", "response": {"usage": None}},
    {"type": "response.output_text.delta", "delta": "Hello"},
    {"type": "response.completed", "response": {"usage": {"input_tokens": 37, "output_tokens": 11, "total_tokens": 48}}},
]
GEMINI: list[Chunk] = [
    {
        "candidates": [{"content": {"parts": [{"text": "Hel"}]}}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 1, "totalTokenCount": 6},
    },
    {
        "candidates": [{"content": {"parts": [{"text": "lo"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8},
    },
]
BEDROCK: list[Chunk] = [
    {"contentBlockDelta": {"delta": {"text": "Hello"}}},
    {"messageStop": {"stopReason": "end_turn"}},
    {"metadata": {"usage": {"inputTokens": 4, "outputTokens": 6, "totalTokens": 10}}},
]
WHOLE: dict[str, tuple[list[Chunk], TokenUsage]] = {
    "chat": (CHAT, TokenUsage(fresh=9, output=12)),
    "chat, usage on the last choice": (USAGE_ON_LAST_CHOICE, TokenUsage(fresh=9, output=12)),
    "chat, usage on every chunk": (USAGE_ON_EVERY_CHUNK, TokenUsage(fresh=9, output=12)),
    "messages": (MESSAGES, TokenUsage(fresh=25, cache_read=100, write_5m=30, write_1h=10, output=15)),
    "responses": (RESPONSES, TokenUsage(fresh=37, output=11)),
    "gemini": (GEMINI, TokenUsage(fresh=5, output=3)),
    "bedrock": (BEDROCK, TokenUsage(fresh=4, output=6)),
}


def as_events(chunks: list[Chunk], *, ending: str = "\n", done: bool = True) -> bytes:
    lines = [f": keep-alive{ending}{ending}"]
    for number, chunk in enumerate(chunks):
        name = f"event: {chunk['type']}{ending}" if "type" in chunk else ""
        lines.append(f"{name}id: {number}{ending}data: {json.dumps(chunk, ensure_ascii=False)}{ending}{ending}")
    if done:
        lines.append(f"data: [DONE]{ending}{ending}")
    return "".join(lines).encode()


@pytest.mark.parametrize("name", WHOLE)
def test_a_list_of_chunks_gives_the_usage(name: str) -> None:
    chunks, usage = WHOLE[name]
    assert read_stream(chunks) == usage


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_events_give_the_usage_in_pieces_of_any_size(name: str, ending: str, size: int) -> None:
    chunks, usage = WHOLE[name]
    body = as_events(chunks, ending=ending)
    assert read_stream(body[i : i + size] for i in range(0, len(body), size)) == usage


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("layout", ["array", "indented array", "lines"])
@pytest.mark.parametrize("size", [1, 13, 10_000])
def test_json_without_events_gives_the_usage(name: str, layout: str, size: int) -> None:
    chunks, usage = WHOLE[name]
    text = {
        "array": json.dumps(chunks),
        "indented array": json.dumps(chunks, indent=2),
        "lines": "\n".join(json.dumps(chunk) for chunk in chunks),
    }[layout]
    body = b"\xef\xbb\xbf" + text.encode()
    assert read_stream(body[i : i + size] for i in range(0, len(body), size)) == usage


def test_an_answer_that_is_not_streamed_is_read_as_it_is() -> None:
    answer = {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": USAGE}
    assert read_stream([json.dumps(answer)]) == TokenUsage(fresh=9, output=12)
    message = {"type": "message", "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 4}}
    assert read_stream([json.dumps(message)]) == TokenUsage(fresh=3, output=4)
    response = {"object": "response", "status": "completed", "usage": {"input_tokens": 3, "output_tokens": 4}}
    assert read_stream([json.dumps(response)]) == TokenUsage(fresh=3, output=4)


def test_running_totals_are_kept_and_never_added() -> None:
    usage = read_stream([*MESSAGES[:3], MESSAGES[3], MESSAGES[3], MESSAGES[4]])
    assert usage is not None
    assert usage.output == 15


def test_a_stream_cut_after_its_start_knows_its_input_and_its_text_so_far() -> None:
    usage = read_stream(MESSAGES[:2])
    assert usage is not None
    assert (usage.fresh, usage.cache_read, usage.input_known) == (25, 100, True)
    assert not usage.output_known
    assert usage.output == 3  # eleven bytes of text
    assert usage.flags == ("cut",)


def test_a_stream_cut_between_totals_keeps_the_larger_of_total_and_text() -> None:
    usage = read_stream(MESSAGES[:3])
    assert usage is not None
    assert (usage.output, usage.complete) == (8, False)


def test_a_stream_cut_before_any_usage_has_none() -> None:
    reader = StreamReader()
    reader.feed(as_events(CHAT[:2], done=False))
    reader.close()
    assert reader.usage() is None
    assert reader.text_tokens == 3
    assert not reader.ended


def test_usage_on_every_chunk_does_not_hide_a_cut() -> None:
    usage = read_stream(USAGE_ON_EVERY_CHUNK[:2])
    assert usage is not None
    assert (usage.output, usage.complete) == (3, False)


def test_a_stream_of_two_choices_ends_with_the_second() -> None:
    first = chat_delta("", finish="stop", usage=USAGE)
    reader = StreamReader()
    reader.chunk(chat_delta("b", index=1))
    reader.chunk(first)
    assert not reader.ended
    reader.chunk(chat_delta("", finish="stop", index=1))
    assert reader.ended


def test_a_blocked_prompt_is_complete() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}}
    assert read_stream([blocked]) == TokenUsage(fresh=5, output=0)


def test_a_last_event_without_its_blank_line_counts() -> None:
    body = as_events(CHAT, done=False).rstrip()
    assert read_stream([body]) == TokenUsage(fresh=9, output=12)


def test_data_over_several_lines_is_one_event() -> None:
    assert read_stream(
        ['data: {"choices": [],\ndata: "usage": {"prompt_tokens": 9, "completion_tokens": 12}}\n\n']
    ) == TokenUsage(fresh=9, output=12)


def test_what_is_no_event_is_counted_and_passed_over() -> None:
    reader = StreamReader()
    reader.feed("data: {broken\n\ndata: 5\n\n" + as_events(CHAT).decode())
    reader.close()
    assert reader.unreadable_events == 2
    assert reader.usage() == TokenUsage(fresh=9, output=12)


@pytest.mark.parametrize("chunk", [{"choices": [], "usage": USAGE}, *USAGE_ON_EVERY_CHUNK])
def test_only_a_chunk_without_choices_is_there_for_its_usage_alone(chunk: Chunk) -> None:
    assert is_usage_only(chunk) == (chunk["choices"] == [])
    assert not is_usage_only({"choices": [], "usage": None})


@given(st.sampled_from(sorted(WHOLE)), st.integers(0, 2**32), st.integers(0, 4))
def test_no_cut_anywhere_breaks_the_reader_or_invents_a_complete_answer(name: str, seed: int, layout: int) -> None:
    chunks, whole = WHOLE[name]
    body = as_events(chunks, done=layout > 0) if layout < 3 else json.dumps(chunks, ensure_ascii=False).encode()
    cut = random.Random(seed).randrange(len(body) + 1)
    reader = StreamReader()
    reader.feed(body[:cut])
    reader.close()
    usage = reader.usage()
    if usage is not None and usage.complete:
        assert usage == whole


hostile = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "delta", "choices", "usage", "index", "finish_reason", "message", "status", "candidates", "content"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(hostile, max_size=5))
def test_any_json_from_a_stream_is_read_without_an_error(events: list[Any]) -> None:
    reader = StreamReader()
    for event in events:
        reader.chunk(event)
    reader.feed("\n".join("data: " + json.dumps(event) + "\n" for event in events))
    reader.close()
    assert reader.text_tokens >= 0
