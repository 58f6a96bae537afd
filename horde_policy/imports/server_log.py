"""Requests out of AI Horde's own server log, whose aliases are hashed while they are read (traces.md §4).

One line a request: level, UTC time to the second, logger, function and line, then the id, the alias with its number and
perhaps a proxied account, ``max_length`` and n. The log tells neither model, context, flags nor outcome.
"""

import re
from collections import Counter
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
    name = options.name or trace_name(path.name)
    key = _content_key(path) if alias_key is None else alias_key
    if not 1 <= len(key) <= blake2b.MAX_KEY_SIZE:
        raise InputError("server log", "alias key", len(key), f"must be 1 to {blake2b.MAX_KEY_SIZE} bytes")
    refused = Refused()
    seen: Counter[str] = Counter()
    times: list[datetime] = []
    clients: list[str | None] = []
    sizes: list[int] = []
    with opened(path) as stream:
        for number, raw in enumerate(stream):
            if PROMPT.encode() not in raw:
                seen["other"] += bool(raw.strip())
                continue
            line = raw.decode("utf-8", errors="replace")
            request = _request(line, number, refused)
            if request is None:
                seen["lost"] += 1
                continue
            at, alias, max_length, n = request
            client = (
                None if ANONYMOUS.fullmatch(alias) else blake2b(alias.encode(), key=key, digest_size=CLIENT_BYTES).hexdigest()
            )
            times += [at] * n
            clients += [client] * n
            sizes += [max_length] * n
            seen["several"] += n > 1
    rows_read = len(times) + seen["lost"]
    frame = in_range(_framed(times, clients, sizes), options, refused)
    notes = [
        Problem("aliases_hashed", "client", "aliases are replaced by a keyed hash; none is kept", "note"),
        Problem("one_second", "created", "the log's times are whole seconds", "note"),
        Problem("not_in_the_log", "models", "the log tells no model, context, chat, slow-worker flag or outcome", "note"),
    ]
    if seen["other"]:
        notes.append(Problem("other_lines", name, f"{seen['other']} lines are about something else", "note"))
    if seen["several"]:
        notes.append(Problem("several_answers", "n", f"{seen['several']} requests for n answers became n rows each", "note"))
    if not frame.height:
        notes.append(Problem("no_rows", name, "the log has no text request"))
    notes += [
        Problem("refused", name, f"{n} lines refused: {reason}; the first: {refused.first[reason]}")
        for reason, n in refused.counts.items()
        if reason in refused.first and reason != refused.first[reason]
    ]
    return Trace(
        name=name,
        format="server_log",
        frame=frame,
        rows_read=rows_read,
        refused={reason: n for reason, n in refused.counts.items() if n},
        thin_by_row=True,
        anonymous_known=True,
        problems=tuple(notes),
    )


def _content_key(path: Path) -> bytes:
    digest = sha256()
    with opened(path) as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.digest()


def _request(line: str, number: int, refused: Refused) -> tuple[datetime, str, int, int] | None:
    """Return time, alias, max_length and n of a request's line, or null; why is counted, without the alias."""
    found = PROMPT_LINE.fullmatch(line)
    if found is None:
        refused.add("unreadable request line", f"line {number + 1}")
        return None
    try:
        at = datetime.strptime(found["time"], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        refused.add("no such time", f"line {number + 1}, time {shown(found['time'])}")
        return None
    max_length, n = int(found["max_length"]), int(found["n"])
    if max_length < 1:
        refused.add("max_length below 1", f"line {number + 1}, max_length {max_length}")
        return None
    if not 1 <= n <= MOST_ANSWERS:
        refused.add("n outside 1 to 20", f"line {number + 1}, n {n}")
        return None
    return at, found["alias"], max_length, n


def _framed(times: list[datetime], clients: list[str | None], sizes: list[int]) -> pl.DataFrame:
    rows = len(times)
    blank = {
        name: pl.Series(name, [None], dtype=column.dtype).new_from_index(0, rows)
        for name, column in TRACE.columns.items()
        if column.null
    }
    frame = pl.DataFrame(
        blank
        | {
            "row": pl.int_range(rows, dtype=pl.Int64, eager=True),
            "created": pl.Series(times, dtype=UTC_INSTANT),
            "client": pl.Series(clients, dtype=pl.String),
            "failed": pl.repeat(value=False, n=rows, eager=True, dtype=pl.Boolean),
        }
    )
    requester = pl.when(pl.col("client").is_null()).then(pl.lit("anonymous")).cast(REQUESTER)
    known = TRACE.checked(frame).with_columns(requester.alias("requester"), pl.Series("max_length", sizes, dtype=pl.Int64))
    return known.sort("created", "row")
