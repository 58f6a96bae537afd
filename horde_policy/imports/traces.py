"""The front door for request traffic: any supported file as a trace, its format told by content."""

from pathlib import Path

import polars as pl

from horde_policy.errors import FrameError, InputError, Problem
from horde_policy.frames.input_columns import flags, instants, real_numbers, refuse_first, whole_numbers, words
from horde_policy.frames.traffic import REQUESTER
from horde_policy.imports.cells import Kind
from horde_policy.imports.containers import Sniffed, sniffed
from horde_policy.imports.published import load_published
from horde_policy.imports.quirks import doubled
from horde_policy.imports.servegen import RATE_COLUMNS, is_rates_csv, sample_servegen
from horde_policy.imports.server_log import is_server_log, load_server_log
from horde_policy.imports.tables import ROW, Refused, read_table
from horde_policy.imports.trace_formats import FORMATS, format_of_columns, trace_name
from horde_policy.imports.trace_frame import TRACE, Trace, TraceOptions, in_range
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = ["FORMAT_NAMES", "OWN_KINDS", "detect_format", "load_trace"]

FORMAT_NAMES = ("traffic", *FORMATS, "servegen", "server_log")

OWN_KINDS: dict[str, Kind] = {
    "created": "instant",
    "models": "names",
    "requester": "text",
    "max_length": "whole",
    "request_id": "text",
    "can_pay": "flag",
    "output_tokens": "whole",
    "max_context_length": "whole",
    "chat": "flag",
    "slow_workers": "flag",
    "allow_downgrade": "flag",
    "priority": "real",
}
"""The traffic schema's columns (``replay.md``, "Inputs") and the kinds of their cells."""

ALSO_READ: dict[str, Kind] = {
    "client": "text",
    "input_tokens": "whole",
    "failed": "flag",
    "recorded_outcome": "text",
    "recorded_allowance_size": "text",
}
"""What the fill rules can use besides, and what really happened."""


def detect_format(path: Path) -> str:
    """Return the format's name, told by content.

    Raises
    ------
    InputError
        The file cannot be read, or is of no supported format: names what it is and what it has.
    """
    found = sniffed(path, "trace")
    named = _told(found)
    if named is None:
        has = list(found.columns)[:20] if found.columns else found.head[:40]
        rule = f"are no columns of a supported format; supported are {', '.join(FORMAT_NAMES)}"
        hint = "our own schema has at least created, and max_length or output_tokens, separated by commas"
        other = next((mark for mark in ";\t|" if len(found.columns) == 1 and mark in found.columns[0]), None)
        if other is not None:
            hint = f"the columns are separated by {other!r}, and must be by commas"
        raise InputError("trace", path.name, has, rule, hint=hint)
    return named


def _told(found: Sniffed) -> str | None:
    if found.container in ("csv", "text") and is_server_log(found.head.decode("utf-8", errors="replace")):
        return "server_log"
    if found.container in ("csv", "text") and is_rates_csv(found.columns):
        return "servegen"
    if set(found.columns) >= RATE_COLUMNS:
        return "servegen"
    return format_of_columns(found.columns) or ("traffic" if "created" in found.columns else None)


def load_trace(
    path: Path,
    options: TraceOptions | None = None,
    *,
    format_name: str | None = None,
    sizes: Path | None = None,
    alias_key: bytes | None = None,
) -> Trace:
    """Return a file's requests as a trace.

    Parameters
    ----------
    path
        The file.
    options
        How to read it.
    format_name
        One of :data:`FORMAT_NAMES`; told by content if null.
    sizes
        For ServeGen, the file of size distributions.
    alias_key
        For a server log, the key of the aliases' hash.

    Raises
    ------
    InputError
        The file is of no supported format, or breaks a rule of its own.
    """
    chosen = options or TraceOptions()
    named = format_name or detect_format(path)
    if named not in FORMAT_NAMES:
        raise InputError("trace", "format", named, "must be one of " + ", ".join(FORMAT_NAMES))
    if named == "servegen":
        return sample_servegen(path, sizes, chosen)
    if named == "server_log":
        return load_server_log(path, chosen, alias_key=alias_key)
    if named == "traffic":
        return _own(path, chosen)
    return load_published(path, named, chosen)


def _own(path: Path, options: TraceOptions) -> Trace:
    """Return a file of our own schema, columns absent or not; a row that breaks a rule refuses the file, by name."""
    table = read_table(path, {**OWN_KINDS, **ALSO_READ}, "traffic")
    frame = _checked(table.frame)
    refused = Refused()
    problems = [*doubled(frame.drop(ROW))]
    if not frame.height:
        problems.append(Problem("no_rows", path.name, "the file has no rows"))
    elif not frame["created"].is_sorted():
        problems.append(Problem("out_of_order", "created", "rows stand out of time order: kept so, the row decides ties", "note"))
    kept = in_range(frame, options, refused)
    return Trace(
        name=options.name or trace_name(path.name),
        format="traffic",
        frame=kept,
        rows_read=table.rows_read,
        refused=dict(refused.counts),
        problems=tuple(problems),
    )


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the given columns checked by the traffic rules, absent trace columns as nulls; rows keep their order."""
    what = "traffic"
    has = set(frame.columns)
    if not has & {"max_length", "output_tokens"}:
        raise FrameError(what, "columns", sorted(has - {ROW}), "must have max_length, or output_tokens to fill it from")
    columns: list[pl.Series] = [frame[ROW], instants(frame, what, "created")]
    bounds = {
        "max_length": (1, MAX_LENGTH_LIMIT_TOKENS),
        "output_tokens": (0, None),
        "input_tokens": (0, None),
        "max_context_length": (None, None),
    }
    columns += [_whole(frame, name, least, most) for name, (least, most) in bounds.items() if name in has]
    if "requester" in has:
        columns.append(_requester(frame))
    columns += [_flag(frame, name) for name, kind in {**OWN_KINDS, **ALSO_READ}.items() if kind == "flag" and name in has]
    if "priority" in has:
        real_numbers(frame, what, "priority", absent=0.0)
        columns.append(frame["priority"])
    columns += [
        frame[name] for name in ("request_id", "client", "models", "recorded_outcome", "recorded_allowance_size") if name in has
    ]
    if "request_id" in has:
        given = frame["request_id"]
        refuse_first(what, given, given.is_not_null() & ~given.is_first_distinct(), "must be unique, and stands twice")
    checked = pl.DataFrame(columns)
    missing = {name: column for name, column in TRACE.columns.items() if name not in checked.columns}
    filled = checked.with_columns(pl.lit(None, column.dtype).alias(name) for name, column in missing.items())
    return filled.with_columns(pl.col("failed").fill_null(value=False))


def _whole(frame: pl.DataFrame, name: str, least: int | None, most: int | None) -> pl.Series:
    """Return whole numbers within their bounds, nulls kept: what is absent is filled later."""
    typed = whole_numbers(frame, "traffic", name, absent=0 if least is None else least, least=least, most=most)
    return typed.set(frame[name].is_null(), None)


def _requester(frame: pl.DataFrame) -> pl.Series:
    known = frame.filter(pl.col("requester").is_not_null())
    if known.height:
        words(frame.with_columns(pl.col("requester").fill_null("anonymous")), "traffic", "requester", REQUESTER)
    return frame["requester"].cast(REQUESTER)


def _flag(frame: pl.DataFrame, name: str) -> pl.Series:
    flags(frame, "traffic", name, absent=False)
    return frame[name].cast(pl.Boolean)
