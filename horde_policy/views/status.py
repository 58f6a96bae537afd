"""The status line: where the figures are from, how old they are, and what is wrong with the source, if anything is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from horde_policy.errors import Problem
from horde_policy.frames.snapshot import Snapshot
from horde_policy.settings import AllowanceSettings
from horde_policy.views.text import age, count, instant, seconds, visible

__all__ = ["Status", "made_of", "problems_title", "refresh_text", "settings_text", "status_line"]

SourceState = Literal["waiting", "ok", "stale", "throttled", "failing"]

LABELS: Final = {"live": "live", "recorded": "recorded", "demo": "demo", "history": "history"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the status line shows.

    Attributes
    ----------
    kind, label
        The kind of source as a colour's name and as a word; ``waiting`` before the first answer.
    source
        Its name, made visible.
    at, at_ms
        When the data are from: in words, and in milliseconds since 1970 for the viewer's own zone; null without data.
    age_s, age_limit_s
        How old they are, and from when on they count as stale; the limit is null where they never do, as the demo's.
    ticks
        Whether an age says anything: data of a recorded folder have a date and no age.
    failing, trouble
        Whether the last try failed, and the sentence for it (null: all is well).
    renewed_s
        How old the source's figures may be when they are looked at: it asks, or the server keeps them, no oftener. Null where
        that is not known.
    """

    kind: str
    label: str
    source: str
    at: str
    at_ms: int | None
    age_s: float | None
    age_limit_s: float | None
    ticks: bool
    failing: bool
    trouble: str | None
    renewed_s: float | None = None

    def data(self, *, ticking: bool, refresh_s: int) -> dict[str, object]:
        """Return what the page's status part is given; with ``ticking`` false the absolute time stands."""
        return {
            "kind": self.kind,
            "label": self.label,
            "source": self.source,
            "at": self.at,
            "at_ms": self.at_ms,
            "age_s": self.age_s,
            "age_limit_s": self.age_limit_s,
            "ticking": ticking and self.ticks,
            "failing": self.failing,
            "trouble": self.trouble,
            "note": refresh_text(refresh_s, None if self.trouble else self.renewed_s) if self.ticks else None,
        }

    @property
    def age_text(self) -> str:
        """The age in words, as it stands before the browser lets it tick; a dash where it says nothing."""
        return age(self.age_s) if self.ticks and self.age_s is not None else "—"


def status_line(
    snapshot: Snapshot | None, *, name: str, state: SourceState, sentence: str, now: datetime, renewed_s: float | None = None
) -> Status:
    """Return the status of a look at a source.

    Parameters
    ----------
    snapshot
        The last good one; null before the first.
    name
        The source's name, used before there is a snapshot.
    state, sentence
        What the poller says, as a state and in words.
    now
        The present, from which the age is measured.
    renewed_s
        How old the figures may be that a look at the source finds; null: not known.
    """
    failing = state in ("throttled", "failing")
    trouble = visible(sentence) if failing or state == "stale" else None
    if snapshot is None:
        return Status(
            kind="waiting",
            label="failing" if failing else "opening",
            source=visible(name),
            at="no data yet",
            at_ms=None,
            age_s=None,
            age_limit_s=None,
            ticks=False,
            failing=failing,
            trouble=trouble,
        )
    if trouble is None:
        # A part that failed alone leaves the rest good; its problem says since when and what stands for it.
        trouble = next((visible(p.text) for p in snapshot.problems if p.code == "part_failed" and p.level == "problem"), None)
    kind = snapshot.source_kind
    return Status(
        kind=kind,
        label=LABELS[kind] + (", synthetic data" if snapshot.synthetic else ""),
        source=visible(snapshot.source),
        at=instant(snapshot.figures_at),
        at_ms=round(snapshot.figures_at.timestamp() * 1000),
        age_s=max(0.0, (now - snapshot.figures_at.astimezone(UTC)).total_seconds()),
        age_limit_s=snapshot.age_limit_s if kind == "live" else None,
        ticks=kind in ("live", "demo"),
        failing=failing,
        trouble=trouble,
        renewed_s=renewed_s,
    )


def made_of(
    source: str, *, label: str, synthetic: bool, at: datetime | None = None, note: str | None = None
) -> dict[str, object]:
    """Return the status line of a page whose figures are of files and not of a horde's source.

    Parameters
    ----------
    source
        What the figures are made of; hostile text. Empty where nothing could be read.
    label
        What kind of thing that is.
    synthetic
        Whether it is made up.
    at
        Of when the latest of it is; null where it has no date.
    note
        What else stands behind the figures, as the settings.

    Examples
    --------
    >>> made_of("week 1", label="exports", synthetic=True)["label"]
    'exports, synthetic data'
    """
    return {
        "kind": "demo" if synthetic else "recorded",
        "label": label + (", synthetic data" if synthetic else ""),
        "source": visible(source),
        "at": "" if at is None else f"up to {instant(at)}",
        "at_ms": None if at is None else round(at.timestamp() * 1000),
        "age_s": None,
        "age_limit_s": None,
        "ticking": False,
        "failing": False,
        "trouble": None,
        "note": note,
    }


def settings_text(settings: AllowanceSettings, base: AllowanceSettings) -> str:
    """Return which settings of the address differ from those of the deployment; empty where none does.

    >>> settings_text(AllowanceSettings(floor_tokens=256), AllowanceSettings())
    'settings changed in this link: floor_tokens 256'
    >>> settings_text(AllowanceSettings(), AllowanceSettings())
    ''
    """
    names = [name for name in type(settings).__dataclass_fields__ if getattr(settings, name) != getattr(base, name)]
    if not names:
        return ""
    return "settings changed in this link: " + ", ".join(f"{name} {getattr(settings, name):g}" for name in names)


def refresh_text(refresh_s: int, renewed_s: float | None = None) -> str:
    """Return how often a page looks, and what age its figures reach by that: the interval, and how old a look may find them.

    >>> refresh_text(0, 30), refresh_text(300), refresh_text(30, 30)
    ('refresh off', 'looks every 300 s', 'looks every 30 s: figures up to 60 s old')
    """
    if refresh_s == 0:
        return "refresh off"
    reached = "" if renewed_s is None else f": figures up to {seconds(refresh_s + renewed_s)} old"
    return f"looks every {seconds(refresh_s)}{reached}"


def problems_title(problems: Sequence[Problem]) -> str:
    """Return how many problems and notes there are in the data, as a heading.

    >>> problems_title([Problem("a", "b", "c"), Problem("a", "b", "c", "note"), Problem("a", "b", "c", "note")])
    '1 problem and 2 notes in the data'
    """
    found = {level: sum(problem.level == level for problem in problems) for level in ("problem", "note")}
    parts = [f"{count(n)} {level}{'s' if n != 1 else ''}" for level, n in found.items() if n]
    return " and ".join(parts) + " in the data"
