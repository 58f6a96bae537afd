"""What a review is made of: the counted frames of an import, with what is known of where they come from.

The frames of two imports, or of an import and the history, look alike; a range of time is cut out of them here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

import polars as pl

from horde_policy.errors import Problem
from horde_policy.frames.decisions import DECISIONS
from horde_policy.frames.waits import WAIT_SUMS, WAITS
from horde_policy.imports.read import Imported
from horde_policy.imports.report import ImportReport
from horde_policy.review.decompose import total
from horde_policy.review.ranges import TimeRange, span_of, within
from horde_policy.review.sampling import Bounds

__all__ = ["ExportFile", "Exported", "exported_from"]

MOST_NAMED = 3
"""So many files are named where data have no title of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFile:
    """One file that was read: its name (hostile text), its form, how many samples of the three series, and of when they are."""

    name: str
    form: str
    samples: int
    skipped: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Counted exports, ready to be reviewed.

    Attributes
    ----------
    decisions, waits, wait_sums
        Schemas :data:`~horde_policy.frames.decisions.DECISIONS`, :data:`~horde_policy.frames.waits.WAITS` and
        :data:`~horde_policy.frames.waits.WAIT_SUMS`.
    files
        What was read.
    problems
        What is wrong in the data.
    before
        How many decisions were counted before the first look: they belong to no hour and are in no figure.
    uncovered_s
        How many seconds no delta export covers: what was counted in them is lost. Added up over ``uncovered_processes``.
    one_scrape
        Whether all there is are totals since the processes' start, over a time that is not known.
    title
        What the data are called where they are shown.
    synthetic
        Whether they are made up, which then stands wherever they are shown.
    span
        The range that was cut out; both ends null for everything.
    report
        What the readers understood of which file, and what not; null where no file was read.
    """

    decisions: pl.DataFrame
    waits: pl.DataFrame
    wait_sums: pl.DataFrame
    files: tuple[ExportFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    before: Bounds = field(default_factory=lambda: Bounds(0.0, 0.0))
    uncovered_s: float = 0.0
    uncovered_processes: int = 1
    one_scrape: bool = False
    title: str = ""
    synthetic: bool = False
    span: TimeRange = field(default_factory=TimeRange)
    report: ImportReport | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "decisions", DECISIONS.checked(self.decisions))
        object.__setattr__(self, "waits", WAITS.checked(self.waits))
        object.__setattr__(self, "wait_sums", WAIT_SUMS.checked(self.wait_sums))

    def within(self, span: TimeRange) -> "Exported":
        """Return what may lie inside a range; see :func:`~horde_policy.review.ranges.within`.

        >>> empty = Exported(decisions=DECISIONS.empty(), waits=WAITS.empty(), wait_sums=WAIT_SUMS.empty())
        >>> empty.within(TimeRange()).covered
        TimeRange(start=None, end=None)
        """
        return replace(
            self,
            decisions=within(self.decisions, span),
            waits=within(self.waits, span),
            wait_sums=within(self.wait_sums, span),
            span=span,
        )

    @property
    def covered(self) -> TimeRange:
        """Return the time that the counts cover: that of the rows, cut to the range asked about."""
        rows = span_of(self.decisions, self.waits)
        starts: Iterable[datetime] = [at for at in (rows.start, self.span.start) if at is not None]
        ends: Iterable[datetime] = [at for at in (rows.end, self.span.end) if at is not None]
        start, end = max(starts, default=None), min(ends, default=None)
        return TimeRange(None, end) if start is not None and end is not None and start >= end else TimeRange(start, end)

    @property
    def instances(self) -> tuple[str, ...]:
        """Return the processes that counted, by their identifying labels (hostile text)."""
        return tuple(pl.concat([self.decisions["instance"], self.waits["instance"]]).unique().sort().to_list())

    @property
    def counted(self) -> Bounds:
        """Return how many decisions were counted."""
        return total(self.decisions)


def exported_from(imported: Imported, *, title: str = "", synthetic: bool = False) -> Exported:
    """Return what an import counted, ready to be reviewed.

    Parameters
    ----------
    imported
        What the readers understood.
    title
        What the data are called where they are shown; by default the names of the files.
    synthetic
        Whether they are made up.

    Examples
    --------
    >>> from horde_policy.imports.read import read_exports
    >>> text = b'''horde_text_free_allowance_decisions{horde_outcome="free"} 5 1790000000000
    ... horde_text_free_allowance_decisions{horde_outcome="free"} 8 1790000060000
    ... '''
    >>> exported = exported_from(read_exports(text))
    >>> exported.counted, exported.before, exported.title, exported.files[0].form
    (Bounds(low=3.0, high=3.0), Bounds(low=5.0, high=5.0), 'export', 'exposition')
    """
    report = imported.report
    files = tuple(
        ExportFile(
            name=file.name,
            form=file.format,
            samples=file.samples,
            skipped=sum(skipped.count for skipped in file.skipped),
            first=file.first,
            last=file.last,
        )
        for file in report.files
    )
    names = [file.name for file in files]
    beyond = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return Exported(
        decisions=imported.decisions,
        waits=imported.waits,
        wait_sums=imported.wait_sums,
        files=files,
        problems=imported.problems,
        before=total(imported.before.decisions),
        uncovered_s=report.uncovered_s,
        uncovered_processes=max(1, sum(one.lost_s > 0 for one in report.instances)),
        one_scrape=report.one_scrape,
        title=title or ", ".join(names[:MOST_NAMED]) + beyond,
        synthetic=synthetic,
        report=report,
    )
