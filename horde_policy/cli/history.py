"""``history info|prune|export|import|collect``: what a history holds, moving or cutting it, keeping exports (issues 3, 4)."""

import json
import sys
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from horde_policy.cli.left_out import leave_if_any
from horde_policy.cli.measure_table import console, safe
from horde_policy.cli.sources_option import instant_named
from horde_policy.clock import SystemClock
from horde_policy.errors import InputError
from horde_policy.history.export import export_history
from horde_policy.history.kept import DEFAULT_NAME, KeptExport, check_timed, keep_samples, kept_exports, prune_kept
from horde_policy.history.status import RecorderStatus, recorder_statuses
from horde_policy.history.store import HistoryStore
from horde_policy.history.transfer import import_history
from horde_policy.history.upkeep import Gap, Pruned, StoreInfo, compact, prune, store_info
from horde_policy.views.text import age, count_of, visible

__all__ = ["register"]

GAPS_SHOWN = 20
"""So many gaps ``info`` lists in words."""

StoreArgument = Annotated[str, typer.Argument(metavar="STORE", help="A history: an SQLite file or a database URL.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
SourceOption = Annotated[str | None, typer.Option("--source", metavar="NAME", help="Only this horde; else all.")]
KeepOption = Annotated[float | None, typer.Option("--keep-days", metavar="D", help="Prune what is older than so many days.")]
BeforeOption = Annotated[str | None, typer.Option("--before", metavar="T", help="Prune what is older than this instant.")]
FromOption = Annotated[str | None, typer.Option("--from", metavar="T", help="From this instant on; else from the first poll.")]
ToOption = Annotated[str | None, typer.Option("--to", metavar="T", help="Up to this instant; else to the last poll.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    group = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        help="Look at a history, prune, export or import it; keep metrics exports in it.",
    )
    group.command("info")(info)
    group.command("prune")(prune_history)
    group.command("export")(export)
    group.command("import")(import_)
    group.command("collect")(collect)
    app.add_typer(group, name="history")


def info(
    store: StoreArgument,
    check: Annotated[bool, typer.Option("--check", help="Read all of it and say what is damaged.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell what a history holds: its hordes from when to when, its gaps, its size, and how its recorders stand."""
    opened = HistoryStore(store, read_only=True)
    try:
        found = store_info(opened, check=check)
        kept = kept_exports(opened)
        standing = recorder_statuses(opened, SystemClock().now())
    finally:
        opened.close()
    if as_json:
        print(json.dumps(_document(found, standing, kept), indent=2))
    else:
        _print_info(found, standing)
        for one in kept:
            console().print(safe(_kept_sentence(one)), soft_wrap=True)
    if found.damages:
        raise typer.Exit(2)


def _document(found: StoreInfo, standing: tuple[RecorderStatus, ...], kept: tuple[KeptExport, ...]) -> dict[str, Any]:
    by_source = {one.source: one for one in standing}
    sources = []
    for one in found.sources:
        span, recorder = one.span, by_source.get(one.span.name)
        told = None if recorder is None else asdict(recorder) | {"sentence": recorder.sentence()}
        gaps = [{"from": gap.from_, "to": gap.to, "reason": gap.reason} for gap in one.gap_list]
        counted = {"gaps": one.gaps, "gap_s": one.gap_s, "gap_list": gaps, "events": one.events}
        sources.append({**asdict(span), **counted, "recorder": told})
    damages = None if found.damages is None else list(found.damages)
    exports = [asdict(one) for one in kept]
    document = {
        "store": found.name,
        "bytes": found.bytes_,
        "rows": found.rows,
        "sources": sources,
        "exports": exports,
        "damages": damages,
    }
    return dict(json.loads(json.dumps(document, default=lambda at: at.isoformat())))


def _print_info(found: StoreInfo, standing: tuple[RecorderStatus, ...]) -> None:
    out = console()
    out.print(safe(f"{found.name}: {found.bytes_ / 1e6:,.1f} MB"))
    by_source = {one.source: one for one in standing}
    for one in found.sources:
        span = one.span
        made_up = ", synthetic" if span.synthetic else ""
        polls = count_of(span.polls, "poll")
        if span.first is not None and span.last is not None:
            polls += f" from {span.first:%Y-%m-%d %H:%M:%S} to {span.last:%Y-%m-%d %H:%M:%S} UTC"
        gaps = f"{count_of(one.gaps, 'gap')}, {age(one.gap_s)} in all" if one.gaps else "no gap"
        out.print(safe(f"{span.name}{made_up}: {polls}; {gaps}"), soft_wrap=True)
        for line in _gap_lines(one.gap_list):
            out.print(safe(f"  {line}"), soft_wrap=True)
        recorder = by_source.get(span.name)
        if recorder is not None:
            out.print(safe(f"  {recorder.sentence()}"), soft_wrap=True)
            if recorder.webhook:
                out.print(safe(f"  {recorder.webhook}"), soft_wrap=True)
    if found.damages is not None:
        for damage in found.damages or ("whole: nothing is damaged",):
            out.print(safe(damage), soft_wrap=True)


def _gap_lines(gaps: tuple[Gap, ...]) -> list[str]:
    """Return a line each of the last gaps, and one for those before them."""
    earlier = len(gaps) - GAPS_SHOWN
    lines = [f"{count_of(earlier, 'earlier gap')}: --json lists all"] if earlier > 0 else []
    for gap in gaps[-GAPS_SHOWN:]:
        length = age((gap.to - gap.from_).total_seconds())
        span = f"{gap.from_:%Y-%m-%d %H:%M:%S} to {gap.to:%Y-%m-%d %H:%M:%S} UTC"
        lines.append(f"gap of {length} from {span}: {gap.reason}")
    return lines


def prune_history(
    store: StoreArgument,
    keep_days: KeepOption = None,
    before: BeforeOption = None,
    source: SourceOption = None,
    give_back: Annotated[bool, typer.Option("--compact", help="Also give the space back to the file system.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Throw away what is older; the state at the cut stays readable, so up to an hour more is kept."""
    if (keep_days is None) == (before is None):
        given = "neither is given" if before is None else "both are given"
        raise InputError("history prune", "", None, f"must say what is old by --keep-days or by --before; {given}")
    if keep_days is not None and not 0 < keep_days <= 36_500:
        raise InputError("--keep-days", "", keep_days, "must be above 0 and at most 36500 days")
    now = SystemClock().now()
    cut = instant_named(before, "--before") if before is not None else now - timedelta(days=keep_days or 0.0)
    opened = _existing(store)
    try:
        told = prune(opened, cut, source)
        if source is not None and not told:
            raise InputError("history", "source", source, "is not in the store")
        days = 0 if source is not None else prune_kept(opened, cut)
        if give_back:
            compact(opened)
    finally:
        opened.close()
    document = [
        {"source": one.source, "polls": one.polls, "kept_from": one.kept_from and one.kept_from.isoformat()} for one in told
    ]
    lines = [_pruned_sentence(one, cut) for one in told]
    _tell(document, as_json, [*lines, *([f"{count_of(days, 'day')} of kept metrics pruned"] if days else [])])


def _pruned_sentence(pruned: Pruned, cut: datetime) -> str:
    """Return how many polls went, and from when on everything is kept, with the reason where that is before the cut."""
    told = f"{pruned.source}: {count_of(pruned.polls, 'poll')} pruned"
    if pruned.kept_from is None:
        return f"{told}: there is none before {cut:%Y-%m-%d %H:%M:%S} UTC"
    kept = f"{told}; all from {pruned.kept_from:%Y-%m-%d %H:%M:%S} UTC on is kept"
    return f"{kept}, as the state at {cut:%Y-%m-%d %H:%M:%S} UTC is read from there" if pruned.kept_from < cut else kept


def export(
    store: StoreArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to make; it must not be there yet.")],
    from_: FromOption = None,
    to: ToOption = None,
    source: SourceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a history, or a part of it, to a folder of Parquet files, whole or not at all."""
    start, end = (None if text is None else instant_named(text, option) for option, text in (("--from", from_), ("--to", to)))
    if start is not None and end is not None and end < start:
        raise InputError("--to", "", to, f"must not lie before --from, {start.isoformat()}")
    opened = HistoryStore(store, read_only=True)
    try:
        done = export_history(opened, out, now=SystemClock().now(), start=start, end=end, source=source)
    finally:
        opened.close()
    document = {"folder": str(done.folder), "bytes": done.bytes_, "rows": done.rows}
    _tell(document, as_json, [f"{count_of(done.rows['polls'], 'poll')} written to {done.folder}, {done.bytes_ / 1e6:,.1f} MB"])


def import_(
    store: StoreArgument,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that history export made.")],
    as_json: JsonOption = False,
) -> None:
    """Take an export into a history, which is made if it is not there: what it lacks is added, nothing is there twice."""
    told = import_history(store, folder)
    lines = [
        f"{one.source}: {one.polls:,} of {count_of(one.of_polls, 'poll')} {'was' if one.polls == 1 else 'were'} new, "
        f"and {count_of(one.events, 'event')}"
        for one in told
    ]
    _tell([asdict(one) for one in told], as_json, lines)


def collect(
    store: StoreArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Exported metrics, or folders of them.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What they are kept under.")] = DEFAULT_NAME,
    mapping: Annotated[
        Path | None, typer.Option("--mapping", metavar="FILE", help="What exports do not say of themselves (TOML).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Keep exported metrics in a history, made if it is not there: merged with what is kept, nothing is counted twice.

    Daily exports so become a week, which decisions, waits and week read with --history.
    """
    # read here and not above: only this command needs the readers
    from horde_policy.imports import load_mapping, read_samples
    from horde_policy.review.loading import about_exports, export_files

    title, synthetic = about_exports(files)
    samples, _, problems = read_samples(export_files(files), mapping=None if mapping is None else load_mapping(mapping))
    check_timed(samples)  # before a store is made for them
    opened = HistoryStore(store)
    try:
        kept = keep_samples(opened, samples, name=name, title=title, synthetic=synthetic)
        whole = next(one for one in kept_exports(opened) if one.name == name)
    finally:
        opened.close()
    for problem in problems:
        print(visible(f"{problem.level}: {problem.subject}: {problem.text}"), file=sys.stderr)
    document = {"changed_days": kept.days, "of_days": kept.of_days, "kept": _kept_document(whole)}
    _tell(document, as_json, [f"{kept.days:,} of {count_of(kept.of_days, 'day')} changed", _kept_sentence(whole)])
    leave_if_any(problems)


def _kept_document(kept: KeptExport) -> dict[str, Any]:
    return dict(json.loads(json.dumps(asdict(kept), default=lambda at: at.isoformat())))


def _kept_sentence(kept: KeptExport) -> str:
    span = "" if kept.first is None else f" from {kept.first:%Y-%m-%d %H:%M} to {kept.last:%Y-%m-%d %H:%M} UTC"
    asked = "" if kept.collected_to is None else f", collected up to {kept.collected_to:%Y-%m-%d %H:%M} UTC"
    made_up = " (made up)" if kept.synthetic else ""
    return f"metrics of {kept.name}{made_up}: {count_of(kept.days, 'day')}{span}, {kept.bytes_ / 1e6:,.1f} MB{asked}"


def _existing(store: str) -> HistoryStore:
    """Open a store to write to, which must be there."""
    HistoryStore(store, read_only=True).close()
    return HistoryStore(store)


def _tell(document: object, as_json: bool, lines: list[str]) -> None:
    if as_json:
        print(json.dumps(document, indent=2))
        return
    out = console()
    for line in lines:
        out.print(safe(line), soft_wrap=True)
