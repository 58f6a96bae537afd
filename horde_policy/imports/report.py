"""What an import understood and what it did not: by file, with counts; nothing is dropped without a line here."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from horde_policy.errors import InputError, Problem, shown
from horde_policy.imports.mapping import Mapping
from horde_policy.imports.names import Named, Namer, Unread
from horde_policy.imports.samples import RunBuilder
from horde_policy.imports.unpack import ExportFile

__all__ = ["OTHER_SERIES", "FileReport", "Gap", "ImportReport", "InstanceReport", "ReadLog", "Skipped"]

MOST_NAMES = 500
"""So many different names are listed a file and reason; what is beyond is counted under ``…``."""

OTHER_SERIES = frozenset({"another metric", "a request of another signal", "left out by the mapping"})
"""Reasons that mean no loss: what was left out is none of the three series, or was left out on purpose."""

_WENT_AWAY = frozenset({"no value (NaN: the series went away)", "a point without a recorded value"})
"""Reasons by which exporters say that a series ends: nothing that was counted is lost."""

_TOLD = frozenset(
    {
        "a last line that is cut off",
        "a last record that is cut off",
        "a line that is no OTLP request",
        "a line that is no sample",
        "a metric whose points cannot be read",
        "a series without a name: only a mapping can say what it counts",
        "a row that is too short",
        "a row whose local time occurs twice",
        "a row without a readable time",
        "a cell that is no number",
    }
)
"""Reasons that have a problem of their own already, which names the place or what helps."""

MAX_SERIES, MAX_TEXT_CHARACTERS = 1_000_000, 128 << 20
"""So many series of one file are told apart at most, and so much text do their names and labels have together."""

MAX_SUBJECT_CHARACTERS = 200
"""What was left out is named by at most so much of its name."""

MOST_PROBLEMS = 20
"""So many problems of one code are listed a file; a last one counts the rest."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Samples, lines or records that were not used: why, of what (hostile text), and how many."""

    reason: str
    subject: str
    count: int


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file: what it is, how much of it was understood. ``samples`` are those of the three series families.

    ``labels`` are labels beyond those known, with how many values each has; ``words`` are label texts that are no word of the
    rule, with how many samples carry them; ``spellings`` are the labels found for each dimension.
    """

    name: str
    format: str
    packing: tuple[str, ...]
    unpacked_bytes: int
    samples: int
    series: int
    skipped: tuple[Skipped, ...]
    spellings: dict[str, tuple[str, ...]]
    labels: dict[str, int]
    words: tuple[Skipped, ...]
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class Gap:
    """A time that no look or export covers. ``lost``: what was counted in it is not in the data (deltas, exports.md 6)."""

    start: datetime
    end: datetime
    lost: bool


@dataclass(frozen=True, slots=True)
class InstanceReport:
    """One process (hostile text): when it was seen, its restarts, the series that restarted alone, and its gaps.

    ``restarts`` are those told from counters that fall. Series that carry start times tell theirs themselves, and are not among
    them: each start is counted as a life of its own.
    ``gaps`` are the longest ones; ``gap_count`` and ``gap_s`` are of all, ``lost_s`` of those in which counts were lost.
    """

    instance: str
    first: datetime | None
    last: datetime | None
    step_s: float | None
    temporality: tuple[str, ...]
    restarts: tuple[datetime, ...]
    own_restarts: int
    gaps: tuple[Gap, ...]
    gap_count: int
    gap_s: float
    lost_s: float


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The whole import: files, processes, bucket layouts of the waits, window and uncovered time.

    ``uncovered_s`` is added up over the processes; see each one's ``lost_s``.
    """

    files: tuple[FileReport, ...]
    instances: tuple[InstanceReport, ...]
    layouts: dict[str, tuple[tuple[float, ...], ...]]
    first: datetime | None
    last: datetime | None
    one_scrape: bool
    uncovered_s: float

    @property
    def understood(self) -> int:
        """Return how many samples of the three families were read."""
        return sum(file.samples for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values; instants as ISO 8601, infinite bounds as ``+Inf``."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return "+Inf" if value == float("inf") else value


@dataclass(slots=True)
class ReadLog:
    """What a reader notes while it reads one file."""

    file: ExportFile
    mapping: Mapping
    namer: Namer = field(init=False)
    problems: list[Problem] = field(default_factory=list)
    _skipped: dict[str, Counter[str]] = field(default_factory=dict)
    _notes: dict[int, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    _problem_counts: Counter[str] = field(default_factory=Counter)
    _series: int = 0
    _characters: int = 0

    def __post_init__(self) -> None:
        self.namer = Namer(self.mapping, self.file.name)

    def skip(self, reason: str, subject: str, count: int = 1) -> None:
        """Count something that was not used."""
        of_reason = self._skipped.setdefault(reason, Counter())
        if len(subject) > MAX_SUBJECT_CHARACTERS:
            subject = subject[:MAX_SUBJECT_CHARACTERS] + "…"
        of_reason[subject if subject in of_reason or len(of_reason) < MOST_NAMES else "…"] += count

    def problem(self, code: str, text: str, level: Literal["problem", "note"] = "problem") -> None:
        """Note that something is wrong in the file, which stays usable without it."""
        self._problem_counts[code] += 1
        if self._problem_counts[code] <= MOST_PROBLEMS:
            self.problems.append(Problem(code, self.file.name, text, level))

    def number(self, builder: RunBuilder, named: Named) -> int:
        """Return the number of a series that was understood, and remember its spellings."""
        known = len(builder.keys)
        number = builder.number(named.key)
        if number >= known:
            self.remember(len(named.key.instance) + len(named.key.extra))
        if named.notes and number not in self._notes:
            self._notes[number] = named.notes
        return number

    def remember(self, characters: int) -> None:
        """Count a series that a reader keeps in memory, with its text.

        Raises
        ------
        InputError
            The file has more of them than any export: its labels change with every sample, or it is made to fill the memory.
        """
        self._series += 1
        self._characters += characters
        if self._series > MAX_SERIES or self._characters > MAX_TEXT_CHARACTERS:
            rule = (
                f"series have more than {MAX_TEXT_CHARACTERS:,} characters of names and labels, the most that one file may have"
            )
            if self._series > MAX_SERIES:
                rule = "series are more than are told apart in one file: some label of it changes all the time"
            raise InputError("export", self.file.name, self._series, rule)

    def refuse(self, unread: Unread, name: str, count: int) -> None:
        """Count samples of a series that was not understood."""
        self.skip(unread.reason, name or "(no name)", count)

    def _tell_what_is_left_out(self) -> None:
        """Make a problem of each reason for which samples of the three series were left out; none is dropped without a word."""
        for reason, of in self._skipped.items():
            if reason in OTHER_SERIES or reason in _TOLD:
                continue
            named = [shown(subject) for subject in sorted(of) if not subject.startswith("(")][:3]
            subjects = f" ({', '.join(named)}{', …' if len(of) > len(named) else ''})" if named else ""
            many = sum(of.values())
            samples = "1 sample was" if many == 1 else f"{many:,} samples were"
            self.problem("left_out", f"{samples} left out{subjects}: {reason}", "note" if reason in _WENT_AWAY else "problem")

    def report(
        self,
        kind: str,
        packing: tuple[str, ...],
        unpacked_bytes: int,
        builder: RunBuilder,
        span: tuple[datetime | None, datetime | None],
    ) -> FileReport:
        """Return the file's report, and add what the counts say to the problems."""
        for reason, count in builder.unusable.items():
            self.skip(reason, "(samples)", count)
        self._tell_what_is_left_out()
        for code, count in self._problem_counts.items():
            if count > MOST_PROBLEMS:
                self.problems.append(Problem(code, self.file.name, f"{count - MOST_PROBLEMS} more of this kind", "note"))
        spellings: dict[str, set[str]] = {}
        labels: dict[str, set[str]] = {}
        words: Counter[tuple[str, str]] = Counter()
        for number, notes in self._notes.items():
            for sort, subject, text in notes:
                if sort == "spelling":
                    spellings.setdefault(subject, set()).add(text)
                elif sort == "label":
                    labels.setdefault(subject, set()).add(text)
                else:
                    words[subject, text] += builder.points.get(number, 0)
        for (dimension, text), count in words.items():
            samples = "1 sample counts" if count == 1 else f"{count:,} samples count"
            rule = f"{shown(text)} is no word of the rule for {dimension}; {samples} without it"
            self.problem("unknown_word", rule)
        return FileReport(
            name=self.file.name,
            format=kind,
            packing=packing,
            unpacked_bytes=unpacked_bytes,
            samples=sum(builder.points.values()),
            series=len(builder.points),
            skipped=tuple(
                Skipped(reason, subject, count) for reason, of in self._skipped.items() for subject, count in sorted(of.items())
            ),
            spellings={name: tuple(sorted(found)) for name, found in sorted(spellings.items())},
            labels={name: len(found) for name, found in sorted(labels.items())},
            words=tuple(Skipped(name, text, count) for (name, text), count in sorted(words.items())),
            first=span[0],
            last=span[1],
        )
