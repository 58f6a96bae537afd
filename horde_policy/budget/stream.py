"""Usage out of a stream: server-sent events, JSON lines or chunks already parsed, whole or cut (budgets.md §3).

OpenAI-style streams: the last usage that is not null, whatever ``choices`` holds. Anthropic: the start event has the
input, each delta a running total of the output; the last is kept, nothing is added. Gemini: the last chunk's counts.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from horde_policy.budget.prices import CacheAsked
from horde_policy.budget.usage import TokenUsage, find_usage, read_usage

__all__ = ["StreamReader", "is_usage_only", "read_stream"]

MAX_PENDING_BYTES = 64 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BETWEEN_VALUES = " \t\r\n,[]"
_DECODER = json.JSONDecoder()


class StreamReader:
    r"""Reads one answer's stream as it comes, in pieces of any size, and knows what was used so far.

    A body that begins with a bracket or a brace is read as JSON, one value after the other (Gemini without events, JSON
    lines, or an answer that is not streamed at all); any other as server-sent events.

    Parameters
    ----------
    cache
        The dearest cache lifetime that the request asked for.

    Attributes
    ----------
    unreadable_events
        How many events were no JSON objects; they are passed over.

    Examples
    --------
    >>> reader = StreamReader()
    >>> reader.feed(b'data: {"choices": [{"delta": {"content": "Good"}}], "usage": nu')
    >>> reader.feed(b'll}\n\ndata: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}\n\n')
    >>> reader.usage()
    TokenUsage(fresh=9, output=1, ...)
    >>> reader.text_tokens
    1
    """

    def __init__(self, *, cache: CacheAsked = "none") -> None:
        self._cache = cache
        self._rest = b""
        self._as_json: bool | None = None
        self._data: list[bytes] = []
        self._fields: dict[str, Any] = {}
        self._choices: set[int] = set()
        self._finished: set[int] = set()
        self._ended = False
        self._text_bytes = 0
        self.unreadable_events = 0

    @property
    def text_tokens(self) -> int:
        """Return an estimate of the output so far: bytes of text ÷ 4, rounded up."""
        return -(-self._text_bytes // 4)

    @property
    def ended(self) -> bool:
        """Return whether the stream said that it is complete."""
        return self._ended or (bool(self._choices) and self._choices <= self._finished)

    def feed(self, piece: bytes | str) -> None:
        """Take the next bytes of the response body, as they arrived."""
        self._rest += piece.encode(errors="replace") if isinstance(piece, str) else piece
        if self._as_json is None:
            start = self._rest.removeprefix(BYTE_ORDER_MARK).lstrip()
            if not start or BYTE_ORDER_MARK.startswith(self._rest):
                return
            self._as_json, self._rest = start[:1] in (b"{", b"["), start
        if not self._as_json:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._line(line.rstrip(b"\r"))
        elif b"}" in self._rest[-len(piece) :] or b"]" in self._rest[-len(piece) :]:
            self._values()
        if len(self._rest) > MAX_PENDING_BYTES:  # no event is that long: what follows cannot be told apart any more
            self.unreadable_events += 1
            self._rest = b""

    def close(self) -> None:
        """Take what is left of a body that ended without a line end."""
        rest, self._rest = self._rest, b""
        if self._as_json:
            self.unreadable_events += bool(rest.strip(b" \t\r\n,[]"))
            return
        self._line(rest.rstrip(b"\r"))
        self._event()

    def chunk(self, event: object) -> None:
        """Take one event that is already parsed."""
        if not isinstance(event, Mapping):
            self.unreadable_events += 1
            return
        self._text_bytes += _text_bytes(event)
        self._progress(event)
        found = find_usage(event)
        if found is not None:
            shape, fields = found
            kept = {name: value for name, value in fields.items() if value is not None}
            # Anthropic spreads its counts over events; every other API repeats all of them in each.
            self._fields = self._fields | kept if shape in ("anthropic", "responses") else kept

    def usage(self) -> TokenUsage | None:
        """Return the usage as known now; null if no count came. A stream that was cut has its output as not known."""
        usage = read_usage(self._fields, cache=self._cache)
        if usage is None or self.ended:
            return usage
        return replace(usage.flagged("cut"), output=max(usage.output, self.text_tokens), output_known=False)

    def _line(self, line: bytes) -> None:
        if not line:
            self._event()
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))

    def _event(self) -> None:
        data, self._data = b"\n".join(self._data).strip(), []
        if data == b"[DONE]":
            self._ended = True
        elif data:
            try:
                self.chunk(json.loads(data))
            except (ValueError, RecursionError):
                self.unreadable_events += 1

    def _values(self) -> None:
        """Take every whole JSON value at the start of what is pending; an array counts value by value."""
        # Only up to a bracket: a character that is not here whole must not be decoded yet.
        end = max(self._rest.rfind(b"}"), self._rest.rfind(b"]")) + 1
        text, tail = self._rest[:end].decode("utf-8", errors="replace"), self._rest[end:]
        start = 0
        while True:
            while start < len(text) and text[start] in BETWEEN_VALUES:
                start += 1
            try:
                value, start = _DECODER.raw_decode(text, start)
            except (ValueError, RecursionError):
                break
            self.chunk(value)
        self._rest = text[start:].encode() + tail

    def _progress(self, event: Mapping[str, Any]) -> None:
        """Note what the event says about the end of the stream."""
        self._ended = self._ended or _says_end(event)
        for name, reason in (("choices", "finish_reason"), ("candidates", "finishReason")):
            listed = event.get(name)
            for position, choice in enumerate(listed if isinstance(listed, list) else []):
                if isinstance(choice, Mapping):
                    index = choice.get("index", position)
                    key = index if isinstance(index, int) else position
                    self._choices.add(key)
                    if choice.get(reason) is not None:
                        self._finished.add(key)


def read_stream(parts: Iterable[bytes | str | Mapping[str, Any]], *, cache: CacheAsked = "none") -> TokenUsage | None:
    """Return the usage of a recorded stream: pieces of the body, or parsed chunks; null if it reports none.

    >>> start = {"type": "message_start", "message": {"usage": {"input_tokens": 25, "output_tokens": 1,
    ...                                                         "cache_read_input_tokens": 100}}}
    >>> read_stream([start, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 15}}])
    TokenUsage(fresh=25, output=15, cache_read=100, ...)
    >>> read_stream([start]).complete
    False
    """
    reader = StreamReader(cache=cache)
    for part in parts:
        if isinstance(part, bytes | str):
            reader.feed(part)
        else:
            reader.chunk(part)
    reader.close()
    return reader.usage()


def is_usage_only(chunk: Mapping[str, Any]) -> bool:
    """Return whether a chunk is there for its usage alone: strip it when the client did not ask for usage.

    >>> is_usage_only({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
    True
    """
    return chunk.get("choices") == [] and find_usage(chunk) is not None


END_TYPES = ("message_stop", "response.completed", "response.incomplete", "response.failed")
END_STATUS = ("completed", "incomplete", "failed", "cancelled")


def _says_end(event: Mapping[str, Any]) -> bool:
    """Return whether an event says that the answer is complete; the choices' own reasons are looked at elsewhere."""
    delta, metadata, feedback = event.get("delta"), event.get("metadata"), event.get("promptFeedback")
    stopped = event.get("stop_reason") is not None or event.get("stopReason") is not None  # not streamed
    stopped = stopped or (event.get("object") == "response" and event.get("status") in END_STATUS)
    stopped = stopped or (isinstance(delta, Mapping) and delta.get("stop_reason") is not None)  # Anthropic
    stopped = stopped or (isinstance(metadata, Mapping) and "usage" in metadata)  # Bedrock's last event
    stopped = stopped or (isinstance(feedback, Mapping) and feedback.get("blockReason") is not None)  # Gemini
    return stopped or event.get("type") in END_TYPES or is_usage_only(event)


TEXT_FIELDS = frozenset({"content", "reasoning_content", "reasoning", "text", "thinking", "partial_json", "arguments", "refusal"})
CARRIERS = ("choices", "delta", "candidates", "content", "parts", "content_block", "tool_calls", "function", "contentBlockDelta")
MAX_DEPTH = 8


def _text_bytes(event: Mapping[str, Any]) -> int:
    """Return the bytes of output text in one event, of any of the APIs."""
    if str(event.get("type", "")).endswith(".delta") and isinstance(event.get("delta"), str):  # OpenAI responses
        return len(event["delta"].encode(errors="replace"))
    if event.get("type") == "message_start":
        return 0
    total, stack = 0, [(event, 0)]
    while stack:
        node, depth = stack.pop()
        for name, value in node.items():
            if isinstance(value, str):
                total += len(value.encode(errors="replace")) if depth and name in TEXT_FIELDS else 0
            elif name in CARRIERS and depth < MAX_DEPTH:
                inner = value if isinstance(value, list) else [value]
                stack.extend((part, depth + 1) for part in inner if isinstance(part, Mapping))
    return total
