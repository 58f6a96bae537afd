"""What a provider says was used, as five disjoint token classes (B5; budgets.md §3; decision 0044).

Fresh input, cache read, cache write for 5 minutes, cache write for 1 hour, and output with the reasoning in it once.
Read are the shapes of OpenAI chat and responses (and what imitates them), Anthropic, Gemini and Bedrock Converse. Zero is a
value; only absent or null is missing. A count that is no whole number of at least 0 is missing too, and flagged; where it
could have cost more than the reading without it, its side is not known: it is never settled as 0 by silence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from horde_policy.budget.prices import CacheAsked, Price
from horde_policy.errors import InputError

__all__ = ["FLAGS", "TokenUsage", "UsageShape", "find_usage", "read_usage"]

UsageShape = Literal["chat", "responses", "anthropic", "gemini", "bedrock"]
Side = Literal["input", "output"]

MAX_TOKENS = 10**9

FLAGS: Mapping[str, str] = {
    "reasoning_added": "reasoning is not inside the output count and was added to it",
    "total_mismatch": "the counts and their total do not add up: the larger was taken, what no count names as output",
    "cache_added": "cached tokens are not inside the input count and were added to it",
    "cached_above_input": "more cached than input tokens: fresh input was taken as 0",
    "cache_split_disagrees": "the total of cache writes and its split disagree: the larger was taken",
    "cache_ttl_assumed": "the lifetime of cache writes is not stated: 1 hour if it was asked for anywhere, else 5 minutes",
    "unreadable": "a count is no whole number of at least 0 and was taken as missing",
    "input_unreadable": "a count of the input cannot be read: what it cost is not known",
    "output_unreadable": "a count of the output cannot be read: what it cost is not known",
    "input_missing": "no input count: the estimate stands in for it",
    "output_missing": "no output count",
    "cut": "the stream ended before its last count",
    "above_own_limit": "more output than the request's own limit allows",
    "unpriced": "the model that answered has no price",
    "repriced": "settled at another price row than the hold was at",
    "free_target": "every target is priced at an explicit 0",
    "by_hand": "released by hand",
}
"""Word in a ledger row → what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Used tokens by class; ``reasoning`` is the part of ``output`` that reasoning was.

    ``input_known`` and ``output_known`` say whether the provider reported them; a part that is not known counts as 0 here.

    Examples
    --------
    >>> TokenUsage(fresh=10_000, output=32_000).input_tokens
    10000
    >>> TokenUsage(fresh=-1, output=0)
    Traceback (most recent call last):
    horde_policy.errors.InputError: usage, fresh: -1 must be a whole number of tokens from 0 to 1000000000
    """

    fresh: int
    output: int
    cache_read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    reasoning: int = 0
    input_known: bool = True
    output_known: bool = True
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("fresh", "output", "cache_read", "write_5m", "write_1h", "reasoning"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_TOKENS:
                raise InputError("usage", name, value, f"must be a whole number of tokens from 0 to {MAX_TOKENS}")
        if self.reasoning > self.output:
            raise InputError("usage", "reasoning", self.reasoning, f"must be at most the output, which is {self.output}")
        unknown = [flag for flag in self.flags if flag not in FLAGS]
        if unknown:
            raise InputError("usage", "flags", unknown[0], "must be one of " + ", ".join(FLAGS))

    @property
    def input_tokens(self) -> int:
        """Return all input tokens, of whatever class."""
        return self.fresh + self.cache_read + self.write_5m + self.write_1h

    @property
    def complete(self) -> bool:
        """Return whether input and output are both known."""
        return self.input_known and self.output_known

    def cost_atto(self, price: Price) -> int:
        """Return the exact cost at a price row, in atto-dollars, fee included."""
        return price.cost_atto(
            fresh=self.fresh,
            cache_read=self.cache_read,
            write_5m=self.write_5m,
            write_1h=self.write_1h,
            output=self.output,
            reasoning=self.reasoning,
        )

    def flagged(self, *flags: str) -> "TokenUsage":
        """Return the usage with more flags."""
        return replace(self, flags=tuple(dict.fromkeys((*self.flags, *flags))))


def read_usage(response: object, *, cache: CacheAsked = "none") -> TokenUsage | None:
    """Return the usage in a response, an event or a bare usage object; null if it reports no tokens (B6).

    Parameters
    ----------
    response
        Parsed JSON.
    cache
        The dearest cache lifetime that the request asked for: the price of writes whose lifetime is not stated.

    Examples
    --------
    >>> read_usage({"usage": {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}})
    TokenUsage(fresh=40, output=7, cache_read=60, ...)
    >>> read_usage({"usage": {"kudos": 12}}) is None
    True
    """
    found = find_usage(response)
    return None if found is None else _READERS[found[0]](_Counts(found[1]), cache)


def find_usage(node: object) -> tuple[UsageShape, Mapping[str, Any]] | None:
    """Return the shape and the fields of the usage object in a response, an event, or given bare; null if there is none."""
    if not isinstance(node, Mapping):
        return None
    shape = _shape(node)
    if shape is not None:
        return shape, node
    for name in ("usage", "usageMetadata", "usage_metadata", "response", "message", "metadata"):
        found = find_usage(node.get(name))
        if found is not None:
            return found
    return None


def _shape(fields: Mapping[str, Any]) -> UsageShape | None:
    if any(fields.get(name) is not None for name in ("prompt_tokens", "completion_tokens")):
        return "chat"
    if any(fields.get(name) is not None for name in ("input_tokens", "output_tokens")):
        cached = ("cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation")
        return "anthropic" if any(name in fields for name in cached) else "responses"
    if any(fields.get(name) is not None for name in ("promptTokenCount", "candidatesTokenCount", "totalTokenCount")):
        return "gemini"
    if any(fields.get(name) is not None for name in ("inputTokens", "outputTokens")):
        return "bedrock"
    return None


class _Counts:
    """Token counts of one usage object, read one by one; remembers what could not be read."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields
        self.flags: list[str] = []
        self.unread: set[Side] = set()

    def get(self, *path: str, part: Side | None = None) -> int | None:
        """Return the count at a path of names; null if absent, null or unreadable.

        ``part`` is the side that is not known where the count is unreadable: null where the reading without it is no smaller.
        """
        node: Any = self.fields
        for name in path:
            if node is None or (isinstance(node, list) and not node):  # some servers write an empty object so
                return None
            if not isinstance(node, Mapping):
                self.not_read(part)
                return None
            node = node.get(name)
        if node is None:
            return None
        if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node <= MAX_TOKENS:
            self.not_read(part)
            return None
        return node

    def not_read(self, part: Side | None) -> None:
        """Note that a count cannot be read."""
        self.flags.append("unreadable")
        if part is not None:
            self.unread.add(part)

    def most(self, *paths: tuple[str, ...], part: Side | None) -> int:
        """Return the largest count at these paths: names of one and the same thing; 0 where none is there."""
        return max(self.get(*path, part=part) or 0 for path in paths)

    def usage(
        self,
        *,
        fresh: int | None,
        output: int | None,
        read: int = 0,
        write_5m: int = 0,
        write_1h: int = 0,
        reasoning: int = 0,
    ) -> TokenUsage:
        """Return the usage of counts that may be missing."""
        if fresh is None:
            self.flags.append("input_missing")
        if output is None:
            self.flags.append("output_missing")
        if "input" in self.unread:
            self.flags.append("input_unreadable")
        if "output" in self.unread:
            self.flags.append("output_unreadable")
        return TokenUsage(
            fresh=fresh or 0,
            output=min(output or 0, MAX_TOKENS),
            cache_read=read,
            write_5m=write_5m,
            write_1h=write_1h,
            reasoning=min(reasoning, output or 0),
            input_known=fresh is not None and "input" not in self.unread,
            output_known=output is not None and "output" not in self.unread,
            flags=tuple(dict.fromkeys(self.flags)),
        )

    def fresh_of(self, parent: int | None, *inside: int) -> int | None:
        """Return the input that is neither read from nor written to a cache, where the counts lie inside their parent."""
        if parent is None:
            return None
        if sum(inside) > parent:
            self.flags.append("cached_above_input")
        return max(0, parent - sum(inside))

    def output_of(
        self, *, base: int | None, reasoning: int, inputs: int | None, total: int | None, inside: bool
    ) -> tuple[int | None, int]:
        """Return output with the reasoning in it once, and the reasoning; ``inside`` is what the API documents.

        Where a total is there, it decides: input + output, or input + output + reasoning. Where neither adds up the larger
        counts: what a total has beyond every count is taken as output.
        """
        if base is None:
            return None, 0
        added = not inside or reasoning > base
        if total is not None and inputs is not None:
            if inputs + base == total and reasoning <= base:
                added = False
            elif inputs + base + reasoning == total:
                added = True
            else:
                self.flags.append("total_mismatch")
                if reasoning:
                    self.flags.append("reasoning_added")
                return max(base + reasoning, total - inputs), reasoning
        if added and reasoning:
            self.flags.append("reasoning_added")
            return base + reasoning, reasoning
        return base, reasoning

    def writes(self, total: int | None, short: int | None, long: int | None, cache: CacheAsked) -> tuple[int, int]:
        """Return cache writes for 5 minutes and 1 hour, from a total and a split of which either may be missing."""
        split = (short or 0) + (long or 0)
        rest = max(0, (total or 0) - split)
        if short is not None or long is not None:
            if total is not None and total != split:
                self.flags.append("cache_split_disagrees")
        elif rest:
            self.flags.append("cache_ttl_assumed")
        if cache == "1h":
            return short or 0, (long or 0) + rest
        return (short or 0) + rest, long or 0


def _chat(counts: _Counts, cache: CacheAsked) -> TokenUsage:
    return _openai(counts, cache, ("prompt_tokens", "completion_tokens"))


def _responses(counts: _Counts, cache: CacheAsked) -> TokenUsage:
    return _openai(counts, cache, ("input_tokens", "output_tokens"))


def _openai(counts: _Counts, cache: CacheAsked, names: tuple[str, str]) -> TokenUsage:
    """Read a shape whose cached and written tokens lie inside the input, and reasoning inside the output if the total agrees.

    Compatible servers report Anthropic's cache counts beside these names, inside the input or not: the total decides, and
    without one they are added, which is the larger cost.
    """
    parent, base = counts.get(names[0]), counts.get(names[1])
    details, top = f"{names[0]}_details", ("cache_read_input_tokens", "cache_creation_input_tokens")
    # Inside the input an unreadable read is billed as fresh input, which is never cheaper; one beside it would be lost.
    read = max(counts.most((details, "cached_tokens"), part=None), counts.most(top[:1], part="input"))
    written = counts.most((details, "cache_write_tokens"), (details, "cache_creation_tokens"), top[1:], part="input")
    short, long = counts.writes(written, *_split(counts), cache)
    reasoning = counts.most((f"{names[1]}_details", "reasoning_tokens"), part="output")
    total, cached = counts.get("total_tokens"), read + short + long
    inputs, inside = parent, not any(counts.get(name) for name in top)
    if parent is not None and not inside:
        inside = total is not None and total in (parent + (base or 0), parent + (base or 0) + reasoning)
        if not inside:
            counts.flags.append("cache_added")
            inputs = parent + cached
    output, reasoning = counts.output_of(base=base, reasoning=reasoning, inputs=inputs, total=total, inside=True)
    fresh = counts.fresh_of(inputs, read, short, long)
    return counts.usage(fresh=fresh, output=output, read=read, write_5m=short, write_1h=long, reasoning=reasoning)


def _split(counts: _Counts) -> tuple[int | None, int | None]:
    """Return Anthropic's cache writes for 5 minutes and for 1 hour."""
    short = counts.get("cache_creation", "ephemeral_5m_input_tokens", part="input")
    return short, counts.get("cache_creation", "ephemeral_1h_input_tokens", part="input")


def _anthropic(counts: _Counts, cache: CacheAsked) -> TokenUsage:
    """Read a shape whose three input classes are disjoint, and whose writes are split by lifetime."""
    written = counts.get("cache_creation_input_tokens", part="input")
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "total_tokens")
    return _disjoint(counts, counts.writes(written, *_split(counts), cache), names)


def _disjoint(counts: _Counts, written: tuple[int, int], names: tuple[str, str, str, str]) -> TokenUsage:
    """Read input, output, cache reads and total of a shape whose input classes are disjoint; the total may leave caches out."""
    fresh, output, total = counts.get(names[0]), counts.get(names[1]), counts.get(names[3])
    read = counts.most(names[2:3], part="input")
    if fresh is not None and output is not None and total is not None:
        together = fresh + read + sum(written) + output
        if total not in (fresh + output, together):
            counts.flags.append("total_mismatch")
            output += max(0, total - together)
    return counts.usage(fresh=fresh, output=output, read=read, write_5m=written[0], write_1h=written[1])


def _gemini(counts: _Counts, cache: CacheAsked) -> TokenUsage:
    """Read a shape with cached inside the prompt, tool prompts beside it, and thoughts added unless the total differs."""
    prompt, tools = counts.get("promptTokenCount"), counts.most(("toolUsePromptTokenCount",), part="input")
    inputs = None if prompt is None else prompt + tools
    thoughts, total = counts.most(("thoughtsTokenCount",), part="output"), counts.get("totalTokenCount")
    base = counts.get("candidatesTokenCount")
    if base is None and total is not None and inputs is not None and "unreadable" not in counts.flags:
        base = max(0, total - inputs - thoughts)  # this API leaves zeros out
    read = counts.most(("cachedContentTokenCount",), part=None)
    output, thoughts = counts.output_of(base=base, reasoning=thoughts, inputs=inputs, total=total, inside=False)
    return counts.usage(fresh=counts.fresh_of(inputs, read), output=output, read=read, reasoning=thoughts)


def _bedrock(counts: _Counts, cache: CacheAsked) -> TokenUsage:
    """Read a shape whose three input classes are disjoint, and whose details give the writes by lifetime."""
    split: dict[str, int] = {}
    other = 0
    details = counts.fields.get("cacheDetails")
    if details is not None and not isinstance(details, list):
        counts.not_read("input")
    for detail in details if isinstance(details, list) else []:
        inner = _Counts(detail if isinstance(detail, Mapping) else {"inputTokens": detail})
        count, ttl = inner.get("inputTokens", part="input") or 0, inner.fields.get("ttl")
        counts.flags += inner.flags
        counts.unread |= inner.unread
        if ttl in ("5m", "1h"):
            split[ttl] = split.get(ttl, 0) + count
        else:
            other += count
    written = counts.get("cacheWriteInputTokens", part="input")
    if other:  # a lifetime that is not known: at least so many were written
        written = max(written or 0, sum(split.values()) + other)
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "totalTokens")
    return _disjoint(counts, counts.writes(written, split.get("5m"), split.get("1h"), cache), names)


_READERS = {"chat": _chat, "responses": _responses, "anthropic": _anthropic, "gemini": _gemini, "bedrock": _bedrock}
