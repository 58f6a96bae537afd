"""Public request traces in their published forms, with their quirks handled and reported (traces.md §4, §5)."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from horde_policy.errors import InputError, Problem
from horde_policy.imports.quirks import file_notes, row_notes, segments
from horde_policy.imports.tables import ROW, Refused, read_table
from horde_policy.imports.trace_formats import FORMATS, Format, chat_of, client_of, clock_us, instants, trace_name
from horde_policy.imports.trace_frame import OTHER_SEGMENT, OUTSIDE_RANGE, TRACE, Trace, TraceOptions, in_range

__all__ = ["load_published"]


def load_published(path: Path, format_name: str, options: TraceOptions) -> Trace:
    """Return a published trace of one of :data:`horde_policy.imports.trace_formats.FORMATS`.

    Raises
    ------
    InputError
        The file is not of the format, its clock restarts and no segment is chosen, or no row is usable.
    """
    known = FORMATS[format_name]
    name = options.name or trace_name(path.name)
    table = read_table(path, known.kinds, "trace", by_row=True)
    missing = sorted(column for column in known.told_by & set(known.kinds) if column not in table.frame.columns)
    if missing:
        raise InputError("trace", f"column {missing[0]}", None, f"is missing; {format_name} has it")
    refused = table.refused
    frame, ticks = _usable(table.frame, known, refused)
    problems = list(file_notes(path, table.frame, known))
    chosen = 1
    if known.clock != "instant":
        spans = segments(ticks)
        chosen = _chosen_segment(spans, ticks, frame, options.segment)
        start, stop = spans[chosen - 1]
        refused.note(OTHER_SEGMENT, frame.height - (stop - start))
        frame, ticks = frame.slice(start, stop - start), ticks.slice(start, stop - start)
    if chosen > 1:
        name = name.replace("week1", f"week{chosen}") if "week1" in name else f"{name}_segment{chosen}"
    trace = _mapped(frame, ticks, format_name, name, options)
    unplaced = trace["created"].is_null()
    refused.note("time out of range", int(unplaced.sum()))
    trace = in_range(trace.filter(~unplaced).sort("created", "row"), options, refused)
    problems += row_notes(trace, frame, format_name, known)
    problems += [
        Problem(code.replace(" ", "_"), name, f"{n} rows refused: {code}; the first: {refused.first.get(code, code)}")
        for code, n in refused.counts.items()
        if n and code not in (OUTSIDE_RANGE, OTHER_SEGMENT)
    ]
    if table.rows_read and not trace.height and not refused.counts[OUTSIDE_RANGE]:
        raise InputError("trace", path.name, dict(refused.counts), "are the reasons for which every row was refused")
    return Trace(
        name=name,
        format=format_name,
        frame=TRACE.checked(trace),
        rows_read=table.rows_read,
        refused={reason: n for reason, n in refused.counts.items() if n},
        dated=known.dated and chosen == 1 and options.origin is None,
        problems=tuple(problems),
    )


def _usable(frame: pl.DataFrame, known: Format, refused: Refused) -> tuple[pl.DataFrame, pl.Series]:
    """Return the rows that have a time and sizes of at least 0, and their clock in µs; count the others by reason."""
    frame = frame.with_columns(clock_us(frame, known).alias("clock_us"))
    for column in (known.created, known.input_tokens, known.output_tokens):
        for reason, broken in (
            (f"no {column}", pl.col(column).is_null()),
            (f"negative {column}", pl.col(column).cast(pl.Float64) < 0 if column != known.created else pl.lit(value=False)),
        ):
            lost = frame.filter(broken)
            if lost.height:
                refused.add(reason, f"row {lost[ROW][0]}, {column} {lost[column][0]}", lost.height)
                frame = frame.filter(~broken)
    lost = frame.filter(pl.col("clock_us").is_null())
    if lost.height:
        refused.add("time out of range", f"row {lost[ROW][0]}, {known.created} {lost[known.created][0]}", lost.height)
        frame = frame.filter(pl.col("clock_us").is_not_null())
    return frame.drop("clock_us"), frame["clock_us"]


def _chosen_segment(spans: list[tuple[int, int]], ticks: pl.Series, frame: pl.DataFrame, asked: int | None) -> int:
    if asked is not None and not 1 <= asked <= len(spans):
        raise InputError("trace", "segment", asked, f"must be 1 to {len(spans)}: so many stretches has the clock")
    if len(spans) == 1 or asked is not None:
        return asked or 1
    parts = [
        f"{n}: rows {frame[ROW][start]} to {frame[ROW][stop - 1]}, {(ticks[stop - 1] - ticks[start]) / 1e6:.0f} s"
        for n, (start, stop) in enumerate(spans, 1)
    ]
    (start, stop), (again, last) = spans[0], spans[1]
    first, second = frame.slice(start, stop - start).drop(ROW), frame.slice(again, last - again).drop(ROW)
    hint = "the second repeats the first: the file was doubled" if first.equals(second) else "choose one with segment"
    where = f"row {frame[ROW][again]}, time"
    raise InputError(
        "trace", where, ticks[again] / 1e6, f"falls back: the clock restarts; segments {'; '.join(parts)}", hint=hint
    )


def _mapped(frame: pl.DataFrame, ticks: pl.Series, format_name: str, name: str, options: TraceOptions) -> pl.DataFrame:
    known = FORMATS[format_name]
    if known.clock == "instant" and options.origin is not None:
        raise InputError("trace", "origin", str(options.origin), f"cannot be set: {format_name} has dates of its own")
    origin = options.origin or known.origin
    origin_us = 0 if known.clock == "instant" else int((origin - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000
    chat = options.chat if options.chat is not None else chat_of(frame, format_name, name)
    client = client_of(frame, format_name, known)
    return frame.select(
        pl.col(ROW),
        instants(ticks, origin_us),
        (pl.lit(None, pl.String) if client is None else client).alias("client"),
        (pl.lit(None, pl.String) if known.model is None else pl.col(known.model)).alias("model"),
        pl.col(known.input_tokens).alias("input_tokens"),
        pl.col(known.output_tokens).alias("output_tokens"),
        (chat if isinstance(chat, pl.Series) else pl.lit(chat, pl.Boolean)).alias("chat"),
        (pl.col(known.output_tokens) == 0).alias("failed"),
    )
