"""Requests out of AI Horde's own server log, whose aliases are hashed while they are read (traces.md §4).

One line a request: level, UTC time to the second, logger, function and line, then the id, the alias with its number and
perhaps a proxied account, ``max_length`` and n. The log tells neither model, context, flags nor outcome.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path

import polars as pl

from horde_policy.errors import InputError, Problem, shown
from horde_policy.frames.schemas import UTC_INSTANT
from horde_policy.frames.traffic import REQUESTER
from horde_policy.imports.containers import opened
from horde_policy.imports.tables import Refused
from horde_policy.imports.trace_formats import trace_name
from horde_policy.imports.trace_frame import TRACE, Trace, TraceOptions, in_range

__all__ = ["is_server_log", "load_server_log"]

PROMPT = "New text2text prompt with ID "
LOG_LINE = re.compile(r"[A-Z_]+ *\| [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} \| ")
PROMPT_LINE = re.compile(
    r"[A-Z_]+ *\| (?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}) \| \S+:\S+:[0-9]+ - "
    r"New text2text prompt with ID (?P<id>\S+) by (?P<alias>.*): "
    # older servers write token for max_length
    r"(?:max_length|token):(?P<max_length>[0-9]{1,9}) \* n:(?P<n>[0-9]{1,9}) == [0-9.eE+]+ Total Tokens\s*"
)
ANONYMOUS = re.compile(r"Anonymous#0(?::.*)?")
MOST_ANSWERS = 20
"""The API takes n from 1 to 20 (horde.md §2)."""
CLIENT_BYTES = 8


@dataclass(frozen=True, slots=True)
class _Request:
    """One line's request: when, whose (null: the anonymous account), how long, and how many answers."""

    at: datetime
    client: str | None
    max_length: int
    n: int


def is_server_log(head: str) -> bool:
    """Tell a server log by its first lines.

    >>> is_server_log("INFO       | 2026-11-29 18:00:00 | horde.app:run:12 - Started")
    True
    """
    return any(LOG_LINE.match(line) for line in head.splitlines()[:20])


def load_server_log(path: Path, options: TraceOptions, *, alias_key: bytes | None = None) -> Trace:
    """Return the text requests of a server log, packed or not; a request for n answers is n rows.

    Parameters
    ----------
    path
        The log.
    options
        ``name`` and the range; the rest does not apply.
    alias_key
        Key of the hash (1 to 64 bytes) that replaces each alias. By default it is made of the log's own content, which
        unguessable ids fill: the same log gives the same clients, another log others, and no one without the log can
        try names. Give a key to have the same clients in several logs.

    Raises
    ------
    InputError
        The key is of another length.

    Notes
    -----
    The anonymous account, ``Anonymous#0``, is no client: its rows have requester ``anonymous`` and no client. Who else
    asked is known not to be anonymous; registered and shared keys look alike here.
    """
    key = _content_key(path) if alias_key is None else alias_key
    if not 1 <= len(key) <= blake2b.MAX_KEY_SIZE:
        raise InputError("server log", "alias key", len(key), f"must be 1 to {blake2b.MAX_KEY_SIZE} bytes")
    refused = Refused()
    requests: list[_Request] = []
    other_lines = 0
    with opened(path) as stream:
        for number, raw in enumerate(stream, 1):
            if PROMPT.encode() in raw:
                found = _request(raw.decode("utf-8", errors="replace"), number, key, refused)
                requests += [] if found is None else [found]
            else:
                other_lines += bool(raw.strip())
    problems = [
        Problem("refused", "requests", f"{n} lines refused: {reason}; the first: {refused.first[reason]}")
        for reason, n in refused.counts.items()
    ]
    lost = sum(refused.counts.values())
    frame = _framed(requests)
    rows_read = frame.height + lost
    kept = in_range(frame, options, refused)
    return Trace(
        name=options.name or trace_name(path.name),
        format="server_log",
        frame=kept,
        rows_read=rows_read,
        refused=dict(refused.counts),
        thin_by_row=True,
        anonymous_known=True,
        problems=(*_notes(requests, other_lines, kept.height), *problems),
    )


def _notes(requests: list[_Request], other_lines: int, kept: int) -> Iterator[Problem]:
    yield Problem("aliases_hashed", "client", "aliases are replaced by a keyed hash; none is kept", "note")
    yield Problem("one_second", "created", "the log's times are whole seconds", "note")
    yield Problem("not_in_the_log", "models", "the log tells no model, context, chat, slow-worker flag or outcome", "note")
    if other_lines:
        yield Problem("other_lines", "lines", f"{other_lines} lines are about something else", "note")
    several = sum(request.n > 1 for request in requests)
    if several:
        yield Problem("several_answers", "n", f"{several} requests for n answers became n rows each", "note")
    if not kept:
        yield Problem("no_rows", "requests", "there is no text request")


def _content_key(path: Path) -> bytes:
    digest = sha256()
    with opened(path) as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.digest()


def _request(line: str, number: int, key: bytes, refused: Refused) -> _Request | None:
    """Return a request's line read, its alias hashed, or null; why not is counted, without the alias."""
    found = PROMPT_LINE.fullmatch(line)
    if found is None:
        refused.add("unreadable request line", f"line {number}")
        return None
    try:
        at = datetime.strptime(found["time"], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        refused.add("no such time", f"line {number}, time {shown(found['time'])}")
        return None
    max_length, n = int(found["max_length"]), int(found["n"])
    if max_length < 1:
        refused.add("max_length below 1", f"line {number}, max_length {max_length}")
        return None
    if not 1 <= n <= MOST_ANSWERS:
        refused.add("n outside 1 to 20", f"line {number}, n {n}")
        return None
    alias = found["alias"]
    client = None if ANONYMOUS.fullmatch(alias) else blake2b(alias.encode(), key=key, digest_size=CLIENT_BYTES).hexdigest()
    return _Request(at, client, max_length, n)


def _framed(requests: list[_Request]) -> pl.DataFrame:
    """Return a row an answer, in time order, with what the log knows of the traffic frame."""
    answers = [request for request in requests for _ in range(request.n)]
    frame = pl.DataFrame(
        {
            "row": pl.int_range(len(answers), dtype=pl.Int64, eager=True),
            "created": pl.Series([one.at for one in answers], dtype=UTC_INSTANT),
            "client": pl.Series([one.client for one in answers], dtype=pl.String),
            "max_length": pl.Series([one.max_length for one in answers], dtype=pl.Int64),
        }
    )
    unknown = [pl.lit(None, column.dtype).alias(name) for name, column in TRACE.columns.items() if name not in frame.columns]
    requester = pl.when(pl.col("client").is_null()).then(pl.lit("anonymous")).cast(REQUESTER).alias("requester")
    whole = frame.with_columns(*unknown, requester).with_columns(pl.lit(value=False).alias("failed"))
    return whole.select(*TRACE.columns, "requester", "max_length").sort("created", "row")
