"""The front door: exports of any form in, counts out, with a report of what was understood and what was not."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from horde_policy.errors import InputError, Problem, shown
from horde_policy.imports.counts import Counts, Tally, counted
from horde_policy.imports.detect import Form, detect
from horde_policy.imports.exposition import read_exposition
from horde_policy.imports.grafana_csv import read_grafana_csv
from horde_policy.imports.mapping import Mapping
from horde_policy.imports.otlp_json import read_otlp_json
from horde_policy.imports.otlp_proto import read_otlp_proto
from horde_policy.imports.overview import doubts, overview
from horde_policy.imports.parquet import read_parquet
from horde_policy.imports.prometheus_json import read_prometheus_json
from horde_policy.imports.report import FileReport, ImportReport, ReadLog
from horde_policy.imports.samples import UNTIMED, RunBuilder, Samples, merged
from horde_policy.imports.series import Window, increments
from horde_policy.imports.unpack import MAX_UNPACKED_BYTES, ExportFile, Unpacked

__all__ = ["Imported", "Source", "count_samples", "read_exports", "read_samples"]

Source = Path | str | bytes | memoryview | ExportFile | dict[str, Any]
"""An export: a file, a folder of files, its bytes, or a parsed answer of the Prometheus API; :class:`ExportFile` names bytes."""

_ONE = (Path, str, bytes, memoryview, ExportFile, dict)

_READERS: dict[Form, Callable[[Unpacked, ReadLog], RunBuilder]] = {
    "exposition": read_exposition,
    "prometheus_json": read_prometheus_json,
    "otlp_json": read_otlp_json,
    "otlp_proto": read_otlp_proto,
    "grafana_csv": read_grafana_csv,
}


@dataclass(frozen=True, slots=True)
class Imported:
    """Everything that an import gives.

    Attributes
    ----------
    decisions, waits, wait_sums
        What was counted inside the window: :data:`~horde_policy.frames.decisions.DECISIONS`,
        :data:`~horde_policy.frames.waits.WAITS`, :data:`~horde_policy.frames.waits.WAIT_SUMS`.
    before
        What was counted before the window: it belongs to no hour of it (exports.md 3, 6).
    samples
        What the counts were told from, merged over all files; to be kept, and merged with later imports.
    report
        What was understood of which file, and what was not.
    problems
        What is wrong in the data, which stays usable.
    """

    decisions: pl.DataFrame
    waits: pl.DataFrame
    wait_sums: pl.DataFrame
    before: Counts
    samples: Samples
    report: ImportReport
    problems: tuple[Problem, ...]


def read_exports(
    sources: Source | Sequence[Source],
    *,
    mapping: Mapping | None = None,
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
    window: tuple[datetime | None, datetime | None] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Imported:
    """Read exported metrics of any supported form, told by content, and count what they say.

    Files may overlap and repeat each other: the same sample twice is one sample, and neither order nor repetition changes the
    counts. Of several files one that cannot be read is left out whole, and is a problem ``unreadable_file`` that says why.

    Parameters
    ----------
    sources
        One export or many: files, folders, bytes, or parsed answers of the Prometheus API.
    mapping
        What a person says about exports that do not speak for themselves; it overrides the built-in spellings.
    max_unpacked_bytes
        What one file may unpack to.
    window
        The time asked about, from (exclusive) to (inclusive), aware; null bounds are the data's own.
    progress
        Is told which share of the files' bytes was read; what it raises ends the reading.

    Raises
    ------
    InputError
        No file can be read: it cannot be opened, is of no supported form, unpacks to too much, or needs a mapping to be placed
        in time.

    Examples
    --------
    >>> text = b'''horde_text_free_allowance_decisions{horde_outcome="free"} 5 1790000000000
    ... horde_text_free_allowance_decisions{horde_outcome="free"} 8 1790000060000
    ... '''
    >>> read_exports(text).decisions.select("interval_end", "outcome", "count_low", "count_high").rows()
    [(datetime.datetime(2026, 9, 21, 14, 14, 20, tzinfo=zoneinfo.ZoneInfo(key='UTC')), 'free', 3.0, 3.0)]
    """
    mapping = mapping or Mapping()
    samples, files, problems = read_samples(sources, mapping=mapping, max_unpacked_bytes=max_unpacked_bytes, progress=progress)
    return count_samples(samples, files=files, problems=problems, mapping=mapping, window=window)


def read_samples(
    sources: Source | Sequence[Source],
    *,
    mapping: Mapping | None = None,
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
    progress: Callable[[float], None] | None = None,
) -> tuple[Samples, tuple[FileReport, ...], tuple[Problem, ...]]:
    """Return the merged samples of exports, a report of each file, and their problems; see :func:`read_exports`."""
    mapping = mapping or Mapping()
    given = list(_files(sources))
    told = _Told(progress, sum(file.size_bytes for file in given))
    parts: list[Samples] = []
    files: list[FileReport] = []
    refused: list[tuple[str, InputError]] = []
    found: list[tuple[Problem, ...]] = []
    for file in given:
        try:
            samples, report, problems = _read(file, mapping, max_unpacked_bytes, told.of_file)
        except InputError as error:
            refused.append((file.name, error))
        else:
            parts.append(samples)
            files.append(report)
            found.append(tuple(problems))
        told.next(file.size_bytes)
    if not parts:
        raise _none_left(refused)
    placed, unplaced = _placed(files, parts)
    refused += unplaced
    parts, files, found = ([kept[place] for place in placed] for kept in (parts, files, found))  # type: ignore[assignment]
    everything = merged(parts)
    problems = [Problem("unreadable_file", name, f"left out: {error}") for name, error in refused]
    problems += [problem for one in found for problem in one]
    if everything.conflicts:
        named = "1 sample gives" if everything.conflicts == 1 else f"{everything.conflicts:,} samples give"
        text = f"{named} a series two values at one time; the larger was kept"
        problems.append(Problem("conflict", "all files", text))
    return everything, tuple(files), tuple(problems)


@dataclass(slots=True)
class _Told:
    """Turns bytes of the file that is read into the share of all files."""

    progress: Callable[[float], None] | None
    bytes_: int
    before: int = 0

    def of_file(self, read: int) -> None:
        if self.progress is not None:
            self.progress(min(1.0, (self.before + read) / max(1, self.bytes_)))

    def next(self, size: int) -> None:
        self.before += size
        self.of_file(0)


def _none_left(refused: Sequence[tuple[str, InputError]]) -> InputError:
    """Return why nothing can be read: the one file's own reason, or the names of all of them and the first's reason."""
    if len(refused) == 1:
        return refused[0][1]
    hint = f"the first: {refused[0][1]}"
    return InputError("export", "", [name for name, _ in refused], "are all the files there are, and none can be read", hint=hint)


def count_samples(
    samples: Samples,
    *,
    files: tuple[FileReport, ...] = (),
    problems: tuple[Problem, ...] = (),
    mapping: Mapping | None = None,
    window: tuple[datetime | None, datetime | None] | None = None,
) -> Imported:
    """Return what samples count, such as those of many imports that were kept and merged; see :func:`read_exports`."""
    mapping = mapping or Mapping()
    start, end = window or (None, None)
    span = Window(_micros(start), _micros(end))
    grown = increments(samples, span, round(mapping.lookback_s * 1e6))
    tally = counted(samples, grown)
    one_scrape = _is_one_scrape(samples, tally)
    inside, before = (tally.before, tally.inside) if one_scrape else (tally.inside, tally.before)
    report = overview(samples, grown, files, one_scrape=one_scrape)
    return Imported(
        decisions=inside.decisions,
        waits=inside.waits,
        wait_sums=inside.wait_sums,
        before=before,
        samples=samples,
        report=report,
        problems=(*problems, *doubts(samples, grown, tally, report)),
    )


def _files(sources: Source | Sequence[Source]) -> Iterable[ExportFile]:
    """Give the files, those of folders by name."""
    listed = [sources] if isinstance(sources, _ONE) else list(sources)
    if not listed:
        raise InputError("export", "", "no file", "was given: name at least one")
    for number, source in enumerate(listed, start=1):
        if isinstance(source, ExportFile):
            yield source
        elif isinstance(source, bytes | memoryview | dict):
            data = msgspec.json.encode(source) if isinstance(source, dict) else source
            yield ExportFile("export" if len(listed) == 1 else f"export {number}", data)
        else:
            path = Path(source)
            if not path.is_dir():
                yield ExportFile(path.name, path)
                continue
            inside = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
            if not inside:
                raise InputError("export", "", str(path), "is a folder without files")
            yield from (ExportFile(one.name, one) for one in inside)


def _read(
    file: ExportFile, mapping: Mapping, limit_bytes: int, told: Callable[[int], None]
) -> tuple[Samples, FileReport, list[Problem]]:
    log = ReadLog(file, mapping)
    content = Unpacked(file, limit_bytes, told)
    if content.damage is not None and not content.head:
        raise InputError("export", file.name, content.damage, "and nothing of it can be read")
    try:
        form = detect(content.head, file.name)
    except InputError as error:
        if content.damage is None:
            raise
        rule = "and too little of it can be read to tell its form"
        raise InputError("export", file.name, content.damage, rule) from error
    if form == "parquet":
        builder = RunBuilder()
        samples = read_parquet(content)
        for number, count in zip(*np.unique(samples.runs["sid"].to_numpy(), return_counts=True), strict=True):
            builder.points[int(number)] = int(count)
    else:
        builder = _READERS[form](content, log)
        samples = builder.finish()
    if content.damage is not None:
        log.problem("damaged", f"{content.damage}; what was read before that is used")
    report = log.report(form, tuple(content.packing), content.unpacked_bytes, builder, _span(samples))
    return samples, report, log.problems


def _span(samples: Samples) -> tuple[datetime | None, datetime | None]:
    timed = samples.runs.filter(pl.col("t_from") != UNTIMED)
    if not timed.height:
        return None, None
    first, last = timed.select(pl.col("t_from").min(), pl.col("t_to").max()).row(0)
    return datetime.fromtimestamp(first / 1e6, UTC), datetime.fromtimestamp(last / 1e6, UTC)


def _placed(files: Sequence[FileReport], parts: Sequence[Samples]) -> tuple[list[int], list[tuple[str, InputError]]]:
    """Return the places of the files that can be placed in time, and of scrapes without a time beside such files why they cannot.

    Raises
    ------
    InputError
        No file has a time, and they differ: which came first is not known.
    """
    untimed = [place for place, part in enumerate(parts) if (part.runs["t_from"] == UNTIMED).any()]
    timed = [place for place in range(len(parts)) if place not in untimed]
    if not untimed:
        return timed, []
    say = "say scraped_at in a mapping, or give one such file alone"
    if timed:
        rule = f"of {len(parts)} files have no timestamps: {say}"
        return timed, [(files[place].name, InputError("export", files[place].name, len(untimed), rule)) for place in untimed]
    first = parts[untimed[0]]
    if any((part.runs["t_from"] != UNTIMED).any() for part in parts) or any(
        not parts[place].runs.equals(first.runs) or parts[place].keys != first.keys for place in untimed
    ):
        names = [files[place].name for place in untimed]
        named = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise InputError("export", named, len(names), f"of {len(parts)} files have no timestamps: {say}")
    return untimed, []


def _is_one_scrape(samples: Samples, tally: Tally) -> bool:
    """Return whether nothing was looked at twice: then all there is are totals since the processes' start."""
    if not tally.inside.empty or not samples.runs.height or not samples.cumulative.any():
        return False
    looks = samples.runs.select("t_from", "t_to")
    instances = np.array([hash(key.instance) for key in samples.keys])[samples.runs["sid"].to_numpy()]
    frame = looks.with_columns(pl.Series("instance", instances))
    spans = frame.group_by("instance").agg(pl.col("t_from").min(), pl.col("t_to").max())
    return bool((spans["t_from"] == spans["t_to"]).all())


def _micros(instant: datetime | None) -> int | None:
    if instant is None:
        return None
    if instant.tzinfo is None:
        raise InputError("window", "", shown(instant), "must be an instant with its zone")
    return round(instant.timestamp() * 1e6)
