"""The Sources page's words and rows: how each source stands, what is wrong with its data, what the history holds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, Protocol

from horde_policy.errors import Problem
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.kept import KeptExport
from horde_policy.history.status import RecorderStatus
from horde_policy.history.upkeep import StoreInfo
from horde_policy.views import grid
from horde_policy.views.text import NOT_REPORTED, count, instant, seconds, shortened, shortened_name, visible

__all__ = [
    "PROBLEM_COLUMNS",
    "RECORDED_COLUMNS",
    "SOURCE_COLUMNS",
    "UPLOAD_COLUMNS",
    "LastLook",
    "SourceFigures",
    "headline",
    "kept_sentence",
    "limit_text",
    "problem_rows",
    "recorded_rows",
    "source_rows",
    "store_sentence",
    "upload_row",
]

LookState = Literal["waiting", "ok", "stale", "throttled", "failing"]
State = LookState | Literal["not asked"]


class LastLook(Protocol):
    """What is known of a source since it was last asked; a poller's look is one."""

    @property
    def snapshot(self) -> Snapshot | None:
        """The last good snapshot."""

    @property
    def state(self) -> LookState:
        """How the source stands."""

    @property
    def next_due(self) -> datetime | None:
        """When it may be asked again."""

    def sentence(self) -> str:
        """Return what is wrong, since when, and what stands meanwhile."""


STATES: Final[dict[State, str]] = {
    "not asked": "not asked",
    "waiting": "opening",
    "ok": "up to date",
    "stale": "stale",
    "throttled": "asked to wait",
    "failing": "failing",
}
KINDS: Final = {"live": "live", "recorded": "recorded", "demo": "demo, synthetic", "history": "history"}


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """One configured source as the page shows it: what it is, the last look (null: never asked), limits by endpoint."""

    key: str
    title: str
    kind: str
    where: str
    look: LastLook | None
    limits: Mapping[str, tuple[int | None, int | None]]

    @property
    def state(self) -> State:
        """How it stands."""
        return "not asked" if self.look is None else self.look.state

    @property
    def snapshot(self) -> Snapshot | None:
        """Its last good snapshot."""
        return None if self.look is None else self.look.snapshot


def headline(sources: Sequence[SourceFigures]) -> str:
    """Return in one sentence how the sources stand."""
    asked = [source for source in sources if source.look is not None]
    wrong = [source for source in asked if source.state in ("stale", "throttled", "failing")]
    # the demo, the recordings that come with it and the public horde are there without anybody's doing
    configured = f"{count(len(sources))} sources of a horde can be chosen, {count(len(asked))} in use"
    if not wrong:
        return configured
    return f"{configured}; {count(len(wrong))} {'does' if len(wrong) == 1 else 'do'} not give new figures"


SOURCE_COLUMNS: Final = [
    grid.Column(key="source", label="Source", kind="name"),
    grid.Column(key="kind", label="Kind"),
    grid.Column(key="state", label="State"),
    grid.Column(key="age", label="Data of", right=True, help="When the oldest part of the last good figures was fetched."),
    grid.Column(key="due", label="Next due", right=True, help="A source is asked when somebody looks and this time has come."),
    grid.Column(
        key="limit", label="Rate limit", unit="questions left", right=True, help="As the server last said, for the scarcest part."
    ),
    grid.Column(key="problems", label="Problems", unit="in the data", right=True),
    grid.Column(key="trouble", label="What is wrong", wrap=True, wide=True),
]


def source_rows(sources: Sequence[SourceFigures], now: datetime, link: Callable[..., str]) -> list[grid.Row]:
    """Return a row a configured source; opening one chooses it."""
    return [
        grid.Row(
            id=f"source {source.key}",
            cells=_cells(source, now),
            query=link(source=source.key),
            out=source.look is None,
        )
        for source in sources
    ]


def _cells(source: SourceFigures, now: datetime) -> dict[str, grid.Cell]:
    """Return the cells; one that nobody has chosen has no figure to report, so it has none that is missing."""
    look, snapshot = source.look, source.snapshot
    wrong = look is not None and look.state in ("stale", "throttled", "failing")
    found = [] if snapshot is None else [problem for problem in snapshot.problems if problem.level == "problem"]
    synthetic = ", synthetic" if snapshot is not None and snapshot.synthetic and source.kind != "demo" else ""
    where = visible(_where(source))
    named: dict[str, grid.Cell] = {
        "source": grid.name_cell(source.title, sub="" if where == source.title else shortened(where, 40), whole=where),
        "kind": KINDS.get(source.kind, source.kind) + synthetic,
        "state": STATES[source.state],
    }
    if look is None:
        return named
    return named | {
        "age": _age_cell(source),
        "due": _due(look, now) if source.kind in ("live", "demo") else NOT_REPORTED,
        "limit": limit_text(source.limits) if source.kind == "live" else "",
        "problems": NOT_REPORTED if snapshot is None else count(len(found)),
        "trouble": {"text": visible(look.sentence())} if wrong else "",
    }


def _where(source: SourceFigures) -> str:
    """Return where a source is; of a folder its last two names, since where it lies on the server is nobody's business."""
    parts = source.where.rstrip("/").split("/")
    return source.where if source.kind != "recorded" else "/".join(parts[-2:])


def _age_cell(source: SourceFigures) -> grid.Cell:
    snapshot = source.snapshot
    if snapshot is None:
        return NOT_REPORTED
    # an instant, since an age would stand still while the status line's ticks
    return instant(snapshot.figures_at)


def _due(look: LastLook, now: datetime) -> str:
    if look.next_due is None or look.next_due <= now:
        return "at the next look"
    # an instant too: what is left of it would stand still
    return f"{look.next_due.astimezone(UTC):%H:%M:%S} UTC"


def limit_text(limits: Mapping[str, tuple[int | None, int | None]]) -> str:
    """Return what is left of the scarcest limit, as "left of limit"; a dash where no server said.

    >>> limit_text({"workers": (30, 28), "models": (90, 3), "modes": (None, None)}), limit_text({})
    ('3 of 90', '—')
    """
    known = [(left, limit) for limit, left in limits.values() if left is not None]
    if not known:
        return NOT_REPORTED
    left, limit = min(known, key=lambda pair: pair[0])
    return f"{count(left)} of {count(limit)}"


# --- problems -------------------------------------------------------------------------------------------------------------

PROBLEM_COLUMNS: Final = [
    grid.Column(key="subject", label="Item", kind="name"),
    grid.Column(key="source", label="Source"),
    grid.Column(key="level", label="Level"),
    grid.Column(key="text", label="What was found", wrap=True, wide=True),
]


def problem_rows(sources: Sequence[SourceFigures], configuration: Sequence[Problem]) -> list[grid.Row]:
    """Return a row for each problem of the configuration and each problem and note in the data of the sources in use."""
    found = [("configuration", problem) for problem in configuration]
    for source in sources:
        if source.snapshot is not None:
            found += [(source.title, problem) for problem in source.snapshot.problems]
    found.sort(key=lambda pair: pair[1].level != "problem")
    return [
        grid.Row(
            id=str(number),
            cells={
                "subject": grid.name_cell(problem.subject),
                "source": {"text": visible(title)},
                "level": problem.level,
                "text": {"text": visible(problem.text)},
            },
        )
        for number, (title, problem) in enumerate(found)
    ]


# --- the history ----------------------------------------------------------------------------------------------------------

RECORDED_COLUMNS: Final = [
    grid.Column(key="source", label="Recorded source", kind="name"),
    grid.Column(key="state", label="Its recorder", wrap=True, wide=True),
    grid.Column(key="last", label="Last poll", right=True),
    grid.Column(key="polls", label="Polls", right=True),
    grid.Column(key="first", label="First poll", right=True),
    grid.Column(key="gaps", label="Gaps", right=True),
]


def store_sentence(info: StoreInfo) -> str:
    """Return what the store holds, in one sentence; of where it lies only the last name is told."""
    number = len(info.sources)
    sources = "1 source" if number == 1 else f"{count(number)} sources"
    name = visible(info.name.rpartition("/")[2])
    return f"The history {name} holds {sources} in {info.bytes_ / 1e6:,.1f} MB."


def kept_sentence(kept: KeptExport) -> str:
    """Return what the store keeps of metrics exports under a name, in one sentence.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 11, 29, 12, tzinfo=UTC)
    >>> kept = KeptExport(name="mimir", title="", synthetic=True, days=2, runs=9, bytes_=9, first=None,
    ...                   last=None, collected_to=at)
    >>> kept_sentence(kept)
    'It keeps 2 days of metrics of mimir (made up), asked for up to 29 Nov 2026 12:00:00 UTC.'
    """
    days = "1 day" if kept.days == 1 else f"{count(kept.days)} days"
    made_up = " (made up)" if kept.synthetic else ""
    span = "" if kept.first is None or kept.last is None else f", {instant(kept.first)} to {instant(kept.last)}"
    asked = "" if kept.collected_to is None else f", asked for up to {instant(kept.collected_to)}"
    return f"It keeps {days} of metrics of {visible(kept.name)}{made_up}{span}{asked}."


def recorded_rows(info: StoreInfo, recorders: Sequence[RecorderStatus]) -> list[grid.Row]:
    """Return a row a recorded source: how its recorder stands, its span and its gaps."""
    standing = {recorder.source: recorder for recorder in recorders}
    return [
        grid.Row(
            id=f"recorded {one.span.name}",
            cells={
                "source": grid.name_cell(one.span.name, sub="synthetic" if one.span.synthetic else ""),
                "state": _recorder_cell(standing.get(one.span.name)),
                "last": NOT_REPORTED if one.span.last is None else instant(one.span.last),
                "polls": count(one.span.polls),
                "first": NOT_REPORTED if one.span.first is None else instant(one.span.first),
                "gaps": {"text": count(one.gaps), "sub": seconds(one.gap_s) if one.gaps else ""},
            },
            out=one.span.name in standing and not standing[one.span.name].is_well,
        )
        for one in info.sources
    ]


def _recorder_cell(recorder: RecorderStatus | None) -> dict[str, str]:
    """Return how a recorder stands, and below it when its webhook last failed."""
    if recorder is None:
        return {"text": NOT_REPORTED}
    return {"text": visible(recorder.sentence()), "sub": visible(recorder.webhook)}


UPLOAD_COLUMNS: Final = (
    grid.Column(key="name", label="Upload", kind="name"),
    grid.Column(key="kind", label="For"),
    grid.Column(key="understood", label="Understood as", wrap=True, wide=True),
    grid.Column(key="left", label="Not understood", wrap=True),
)


def upload_row(key: str, name: str, kind: str, understood: str, left: str) -> grid.Row:
    """Return the row of an upload; its name and what was left of it are hostile text."""
    cells: dict[str, grid.Cell] = {
        "name": grid.name_cell(shortened_name(name, 120)),
        "kind": kind,
        "understood": {"text": visible(understood)},
        "left": {"text": visible(left)},
    }
    return grid.Row(id=key, cells=cells)
