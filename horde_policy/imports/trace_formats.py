"""How each published trace format writes a request: its columns, its clock, its clients, its chat flag (traces.md §4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import polars as pl

from horde_policy.frames.schemas import UTC_INSTANT
from horde_policy.imports.cells import Kind

__all__ = ["FORMATS", "Format", "chat_of", "client_of", "clock_us", "format_of_columns", "trace_name"]

Clock = Literal["instant", "ms", "s"]

UNDATED = datetime(2000, 1, 1, tzinfo=UTC)
"""Where a trace without a date is put; it is shown as time since its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One published format: what its columns are called and what they mean.

    ``told_by`` are the columns that tell it; ``origin`` is where a relative clock starts; ``dated`` says whether that (or
    the clock itself) is a real date.
    """

    kinds: Mapping[str, Kind]
    told_by: frozenset[str]
    created: str
    clock: Clock
    input_tokens: str
    output_tokens: str
    model: str | None = None
    client: str | None = None
    origin: datetime = UNDATED
    dated: bool = False


FORMATS: Mapping[str, Format] = {
    "azure": Format(
        kinds={"TIMESTAMP": "any_instant", "ContextTokens": "whole", "GeneratedTokens": "whole"},
        told_by=frozenset({"TIMESTAMP", "ContextTokens", "GeneratedTokens"}),
        created="TIMESTAMP",
        clock="instant",
        input_tokens="ContextTokens",
        output_tokens="GeneratedTokens",
        dated=True,
    ),
    "burstgpt": Format(
        kinds={
            "Timestamp": "real",
            "Session ID": "text",
            "Model": "text",
            "Request tokens": "whole",
            "Response tokens": "whole",
            "Log Type": "text",
        },
        told_by=frozenset({"Timestamp", "Model", "Request tokens", "Response tokens", "Log Type"}),
        created="Timestamp",
        clock="s",
        input_tokens="Request tokens",
        output_tokens="Response tokens",
        model="Model",
        client="Session ID",
        origin=datetime(2023, 1, 1, tzinfo=UTC),
    ),
    "vidur": Format(
        kinds={"arrived_at": "real", "num_prefill_tokens": "whole", "num_decode_tokens": "whole"},
        told_by=frozenset({"arrived_at", "num_prefill_tokens", "num_decode_tokens"}),
        created="arrived_at",
        clock="s",
        input_tokens="num_prefill_tokens",
        output_tokens="num_decode_tokens",
    ),
    "qwen": Format(
        kinds={
            "chat_id": "whole",
            "parent_chat_id": "whole",
            "timestamp": "real",
            "input_length": "whole",
            "output_length": "whole",
        },
        told_by=frozenset({"chat_id", "parent_chat_id", "timestamp", "input_length", "output_length"}),
        created="timestamp",
        clock="s",
        input_tokens="input_length",
        output_tokens="output_length",
    ),
    "ragpulse": Format(
        kinds={"timestamp": "whole", "input_length": "whole", "output_length": "whole", "session_id": "text"},
        told_by=frozenset({"timestamp", "input_length", "output_length", "session_id"}),
        created="timestamp",
        clock="s",
        input_tokens="input_length",
        output_tokens="output_length",
        client="session_id",
        origin=datetime(2025, 9, 10, 4, tzinfo=UTC),
        dated=True,
    ),
    "mooncake": Format(
        kinds={"timestamp": "whole", "input_length": "whole", "output_length": "whole"},
        told_by=frozenset({"timestamp", "input_length", "output_length", "hash_ids"}),
        created="timestamp",
        clock="ms",
        input_tokens="input_length",
        output_tokens="output_length",
    ),
}
"""Format name → format, the more special before the more general: the first whose columns are all there is it."""

PUBLISHED_NAMES = {
    "AzureLLMInferenceTrace_conv": "azure2023_conv",
    "AzureLLMInferenceTrace_code": "azure2023_code",
    "AzureLLMInferenceTrace_conv_1week": "azure2024_conv",
    "AzureLLMInferenceTrace_code_1week": "azure2024_code",
    "BurstGPT_1": "burstgpt1",
    "BurstGPT_2": "burstgpt2",
    "BurstGPT_3": "burstgpt3",
    "conversation_trace": "mooncake_conversation",
    "toolagent_trace": "mooncake_toolagent",
    "0_trace": "ragpulse_week1",
    "splitwise_conv": "vidur_splitwise_conv",
    "splitwise_code": "vidur_splitwise_code",
}
"""Published file name → the trace's name in the keys of its draws, so that a head and the whole file draw alike."""


def format_of_columns(columns: tuple[str, ...]) -> str | None:
    """Return the name of the format that these columns tell, or null.

    >>> format_of_columns(("TIMESTAMP", "ContextTokens", "GeneratedTokens"))
    'azure'
    """
    return next((name for name, known in FORMATS.items() if known.told_by <= set(columns)), None)


def trace_name(file_name: str) -> str:
    """Return a trace's name from its file's: up to the first dot, published names by the names used here.

    >>> trace_name("azure2023_conv.head300.csv"), trace_name("AzureLLMInferenceTrace_conv.csv")
    ('azure2023_conv', 'azure2023_conv')
    """
    stem = file_name.split(".", 1)[0]
    return PUBLISHED_NAMES.get(stem, stem)


def clock_us(frame: pl.DataFrame, known: Format) -> pl.Series:
    """Return each row's clock in whole µs: since 1970 for instants, else since the trace's origin; null beyond ±100,000 years."""
    column = frame[known.created]
    if known.clock == "instant":
        return column.to_physical()
    per_unit = 1e6 if known.clock == "s" else 1e3
    ticks = (column.cast(pl.Float64) * per_unit).round()
    return ticks.set(ticks.abs() > 3e18, None).cast(pl.Int64)


def chat_of(frame: pl.DataFrame, format_name: str, trace: str) -> pl.Series | bool | None:
    """Return whether the rows are chat: from the rows, from what the format is, from the trace's name, or null."""
    if format_name == "burstgpt":
        return frame["Log Type"] == "Conversation log"
    if format_name == "ragpulse":
        return True
    if format_name == "azure":
        return True if "conv" in trace else False if "code" in trace else None
    if format_name == "mooncake":
        return True if "conversation" in trace else None
    if format_name == "qwen":
        return True if "tracea" in trace.lower() else None
    return None


def client_of(frame: pl.DataFrame, format_name: str, known: Format) -> pl.Series | None:
    """Return who asked, row by row: the published session, the root of a chain of chats, or null."""
    if format_name == "qwen":
        return _chat_roots(frame)
    if known.client is None or known.client not in frame.columns:
        return None
    return frame[known.client]


def _chat_roots(frame: pl.DataFrame) -> pl.Series:
    """Return the first chat of each row's chain of parents; a parent that the file lacks counts as the first."""
    parents = dict(zip(frame["chat_id"], frame["parent_chat_id"], strict=True))
    roots: dict[int, int] = {}
    for chat in parents:
        chain = [chat]
        seen = {chat}
        while chain[-1] not in roots:
            parent = parents.get(chain[-1])
            if parent is None or parent == -1 or parent in seen:
                break
            chain.append(parent)
            seen.add(parent)
        root = roots.get(chain[-1], chain[-1])
        roots.update(dict.fromkeys(chain, root))
    return pl.Series("client", [str(roots[chat]) for chat in frame["chat_id"]], dtype=pl.String)


def instants(ticks: pl.Series, origin_us: int) -> pl.Series:
    """Return a clock in µs as instants from an origin in µs since 1970; null beyond the years 1 to 9999."""
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    placed = pl.DataFrame({"t": ticks}).select(
        pl.when(pl.col("t").is_between(first - origin_us, last - origin_us)).then(pl.col("t") + origin_us)
    )
    return placed.to_series().cast(UTC_INSTANT).alias("created")
