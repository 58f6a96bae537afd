"""What the history tells on the Overview: what fires since when, what changed over the range and by what, what was noted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import polars as pl

from horde_policy.board.alerts import DEFAULT_RULES, Alert
from horde_policy.board.changes import Changes, ModelChange, WorkerChange
from horde_policy.history.annotations import Annotation
from horde_policy.settings import AllowanceSettings
from horde_policy.views import grid
from horde_policy.views.figures.history import Behind, Mark
from horde_policy.views.history import Range, spark_points, thinned
from horde_policy.views.text import age, count, count_of, escape_markdown, instant, shortened_name, speed, visible
from horde_policy.views.words import STATES

__all__ = [
    "ALERT_COLUMNS",
    "CHANGE_COLUMNS",
    "EARLIER",
    "NOTED_COLUMNS",
    "alert_rows",
    "behind",
    "change_rows",
    "changes_title",
    "dips_sentence",
    "earlier_missing",
    "firing_line",
    "marks_within",
    "noted_rows",
    "spark",
    "states_over",
    "steps_sentence",
    "trend_export",
]

EARLIER: Final = (("the day before", timedelta(days=1), "dash"), ("the week before", timedelta(days=7), "dot"))
"""What stands behind a trend: its word, how long before, and its dash."""

MOST_STATES: Final = 400
"""Points of each trace of the figure of states: one for each two or three pixels."""

ALERTS: Final = {
    "at_floor": "at the floor",
    "no_worker": STATES["no_worker"].label,
    "small_free_request": f"largest free request under {DEFAULT_RULES.small_free_tokens} tokens",
    "stale": "the data are stale",
}

ALERTS_NAMED: Final = 3
"""So many alerts stand in the line above the board; the list under it has all."""

ALERT_COLUMNS: Final = [
    grid.Column(key="model", label="Firing", kind="name"),
    grid.Column(key="rule", label="Why"),
    grid.Column(key="since", label="Since", right=True),
]


def alert_rows(alerts: Sequence[Alert], first: datetime, now: datetime, link: Callable[..., str]) -> list[grid.Row]:
    """Return a row an alert that fires, with since when; ``first`` and ``now`` are the history's first and last poll."""
    return [
        grid.Row(
            id=f"{alert.rule} {alert.model}",
            cells={
                "model": grid.name_cell(alert.model) if alert.model is not None else {"text": "the source as a whole"},
                "rule": ALERTS[alert.rule],
                "since": {"text": instant(alert.since), "sub": _lasting(alert, first, now)},
            },
            query=None if alert.model is None else link(models=(alert.model,)),
        )
        for alert in alerts
    ]


def _lasting(alert: Alert, first: datetime, now: datetime) -> str:
    """Return how long it has fired: what held at the history's first poll may have held before."""
    least = "at least " if alert.since <= first else ""
    return f"for {least}{age((now - alert.since).total_seconds())}"


def firing_line(alerts: Sequence[Alert], first: datetime, now: datetime) -> str:
    """Return what fires in one line, the gravest with since when, for the title of what folds the list (Markdown).

    >>> from datetime import UTC
    >>> at = datetime(2026, 11, 29, tzinfo=UTC)
    >>> firing = [Alert(rule="at_floor", model=name, since=at) for name in "abcd"]
    >>> print(firing_line(firing[:1], at, at + timedelta(hours=2)))
    **1 alert fires**: a at the floor for at least 2 h 0 min
    >>> print(firing_line(firing, at - timedelta(hours=1), at + timedelta(hours=2)))
    **4 alerts fire**: a at the floor for 2 h 0 min · b at the floor for 2 h 0 min · c at the floor for 2 h 0 min · 1 more
    """
    told = [
        f"{'the source' if alert.model is None else shortened_name(visible(alert.model), 40)} {ALERTS[alert.rule]} "
        f"{_lasting(alert, first, now)}"
        for alert in alerts[:ALERTS_NAMED]
    ]
    if len(alerts) > ALERTS_NAMED:
        told.append(f"{count(len(alerts) - ALERTS_NAMED)} more")
    head = "1 alert fires" if len(alerts) == 1 else f"{count(len(alerts))} alerts fire"
    return f"**{head}**: {escape_markdown(' · '.join(told))}"


# --- what changed -----------------------------------------------------------------------------------------------------------

CHANGE_COLUMNS: Final = [
    grid.Column(key="model", label="Model", kind="name"),
    grid.Column(key="state", label="State", kind="state", unit="at the end"),
    grid.Column(key="allowance", label="Allowance", unit="tokens", right=True),
    grid.Column(
        key="queue", label="By the queue", unit="tokens", right=True, help="The part of the change that the queue accounts for."
    ),
    grid.Column(
        key="pool", label="By the workers", unit="tokens", right=True, help="The part of the change that the pool accounts for."
    ),
    grid.Column(key="why", label="What happened", wrap=True, wide=True),
]

MOST_WORKERS_TOLD = 3

KINDS: Final = {
    "left": "left",
    "joined": "joined",
    "into_maintenance": "went into maintenance",
    "out_of_maintenance": "came out of maintenance",
    "offline": "went offline",
    "online": "came online",
    "flagged": "was flagged",
    "unflagged": "is flagged no more",
    "dropped_model": "dropped the model",
    "took_model": "took the model up",
    "smaller_sizes": "takes smaller sizes",
    "larger_sizes": "takes larger sizes",
    "measured": "is measured now",
    "speed": "changed its speed",
}


def changes_title(changes: Changes) -> str:
    """Return since when, and how many models changed."""
    models = len(changes.models)
    told = "no model" if not models else "1 model" if models == 1 else f"{count(models)} models"
    return f"What changed since {instant(changes.from_at)}: {told}"


def change_rows(changes: Changes, link: Callable[..., str]) -> list[grid.Row]:
    """Return a row a model that changed, the gravest first, with what accounts for it."""
    return [
        grid.Row(
            id=f"change {change.model}",
            cells={
                "model": grid.name_cell(change.model),
                "state": grid.state_cell(change.after.state, text=f"Before: {STATES[change.before.state].label}."),
                "allowance": {
                    "text": f"{count(change.before.allowance_tokens)} → {count(change.after.allowance_tokens)}",
                    "sub": _signed(change.allowance_change_tokens),
                },
                "queue": _signed(change.by_queue_tokens),
                "pool": _signed(change.by_pool_tokens),
                "why": {"text": _why(change)},
            },
            query=link(models=(change.model,)),
        )
        for change in changes.models
    ]


def _signed(tokens: float | None) -> str:
    """Return a change with its sign.

    >>> _signed(-1792.4), _signed(10), _signed(0), _signed(None)
    ('−1,792', '+10', '0', '—')
    """
    if not tokens:
        return count(tokens)
    return f"{'+' if tokens > 0 else '−'}{count(abs(tokens))}"


def _why(change: ModelChange) -> str:
    parts = []
    queue = change.queue_change_tokens
    if queue:
        parts.append(f"the queue {'grew' if queue > 0 else 'fell'} by {count(abs(queue))} tokens")
    parts += [_worker_text(worker) for worker in change.workers[:MOST_WORKERS_TOLD]]
    if len(change.workers) > MOST_WORKERS_TOLD:
        parts.append(f"{count_of(len(change.workers) - MOST_WORKERS_TOLD, 'more worker')} changed")
    return "; ".join(parts) or "its sizes changed"


def _worker_text(worker: WorkerChange) -> str:
    moved = worker.speed_change_tok_per_s
    sign = "+" if moved > 0 else "−"
    name = shortened_name(visible(worker.name or worker.worker_id), 40)
    return f"{name} {KINDS[worker.kind]} ({sign}{speed(abs(moved))} tok/s)"


DIPS_NAMED: Final = 3
"""So many models that fell and came back are named; the Model page has each one's line."""


def dips_sentence(trends: Mapping[str, pl.DataFrame]) -> str | None:
    """Return which models stood lower within the range than at both its ends, the deepest first (Markdown); null if none did.

    What is told beside it compares the ends, and so has nothing of a fall that is over.

    Parameters
    ----------
    trends
        Model → frame :data:`horde_policy.history.trend.TREND_ROWS`.

    >>> from datetime import UTC
    >>> polls = [datetime(2026, 11, 29, hour, tzinfo=UTC) for hour in (8, 9, 10)]
    >>> fell = pl.DataFrame({"at": polls, "allowance_tokens": [4096, 512, 4000]})
    >>> rose = pl.DataFrame({"at": polls, "allowance_tokens": [512, 4096, 512]})
    >>> print(dips_sentence({"a": fell, "b": rose}))
    In between, 1 model stood lower than at either end: **a** at 512 from 29 Nov 2026 09:00:00 UTC.
    >>> dips_sentence({"b": rose}) is None
    True
    """
    found = []
    for model, frame in trends.items():
        known = frame.drop_nulls("allowance_tokens")
        if known.height < 3:
            continue
        values = known["allowance_tokens"]
        lowest = int(values.min())  # type: ignore[arg-type]
        depth = min(int(values[0]), int(values[-1])) - lowest
        if depth > 0:
            found.append((-depth, model, lowest, known["at"][int(values.arg_min() or 0)]))
    if not found:
        return None
    named = [
        f"**{escape_markdown(shortened_name(visible(model), 40))}** at {count(lowest)} from {instant(at)}"
        for _, model, lowest, at in sorted(found)[:DIPS_NAMED]
    ]
    more = f"; {count(len(found) - DIPS_NAMED)} more" if len(found) > DIPS_NAMED else ""
    return f"In between, {count_of(len(found), 'model')} stood lower than at either end: {', '.join(named)}{more}."


# --- annotations ------------------------------------------------------------------------------------------------------------

NOTED_COLUMNS: Final = [
    grid.Column(key="text", label="Noted", kind="name"),
    grid.Column(key="kind", label="Kind"),
    grid.Column(key="at", label="From", right=True),
    grid.Column(key="to", label="To", right=True),
]


def _within(noted: Iterable[Annotation], shown: Range) -> list[Annotation]:
    return [one for one in noted if one.at <= shown.end and (one.to or one.at) >= shown.start]


def noted_rows(noted: Sequence[Annotation], shown: Range) -> list[grid.Row]:
    """Return a row an annotation that touches the range, the latest first."""
    return [
        grid.Row(
            id=f"noted {number}",
            cells={
                "text": grid.name_cell(one.text),
                "kind": one.kind,
                "at": instant(one.at),
                "to": "" if one.to is None else instant(one.to),
            },
        )
        for number, one in reversed(list(enumerate(_within(noted, shown))))
    ]


def marks_within(noted: Sequence[Annotation], shown: Range) -> list[Mark]:
    """Return the annotations that touch the range as a figure's marks, cut to it."""
    return [
        Mark(max(one.at, shown.start), None if one.to is None else min(one.to, shown.end), visible(one.text))
        for one in _within(noted, shown)
    ]


# --- lines ------------------------------------------------------------------------------------------------------------------


def spark(frame: pl.DataFrame, settings: AllowanceSettings) -> grid.Cell:
    """Return a trend as the cell of a small line."""
    values = frame["allowance_tokens"]
    known = values.drop_nulls()
    if known.is_empty():
        return None
    text = f"Between {count(known.min())} and {count(known.max())} tokens over the range"  # type: ignore[arg-type]
    text += ", not known at its end." if values[-1] is None else "."
    return grid.spark_cell(spark_points(frame, settings.ceiling_tokens), text)


def behind(frames: Mapping[str, pl.DataFrame]) -> list[Behind]:
    """Return earlier lines moved onto the range; those without a poll are left out."""
    return [
        Behind(word, thinned(frames[word].with_columns(at=pl.col("at") + by), "allowance_tokens"), dash)
        for word, by, dash in EARLIER
        if word in frames and frames[word].height
    ]


def earlier_missing(shown: Range, first: datetime) -> str | None:
    """Return which earlier lines a trend lacks because the history begins too late; null if none.

    >>> from datetime import UTC
    >>> end = datetime(2026, 11, 29, tzinfo=UTC)
    >>> earlier_missing(Range(end - timedelta(hours=1), end), end - timedelta(days=3))
    'The week before is not drawn: the history begins 26 Nov 2026 00:00:00 UTC.'
    >>> earlier_missing(Range(end - timedelta(hours=1), end), end - timedelta(days=8)) is None
    True
    """
    lacking = [word for word, by, _ in EARLIER if shown.end - shown.start <= by and shown.start - by < first]
    if not lacking:
        return None
    told = " and ".join(lacking)
    return f"{told[:1].upper()}{told[1:]} {'is' if len(lacking) == 1 else 'are'} not drawn: the history begins {instant(first)}."


def states_over(trends: Mapping[str, pl.DataFrame], most: int = MOST_STATES) -> pl.DataFrame:
    """Return how many models were in which state at each poll: ``at`` and a column a state.

    Of more than ``most`` polls, the worst of each equal number of polls stands for them: the one with the most models at the
    floor or without a worker. The last poll stands for itself, since it is what the board shows.

    Parameters
    ----------
    trends
        Model → frame :data:`horde_policy.history.trend.TREND_ROWS`, all of the same polls.
    most
        Rows; at least 2.

    Examples
    --------
    >>> from datetime import UTC
    >>> at = [datetime(2026, 11, 29, hour, tzinfo=UTC) for hour in (0, 1)]
    >>> lines = {name: pl.DataFrame({"at": at, "state": ["full", last]}) for name, last in (("a", "floor"), ("b", "full"))}
    >>> states_over(lines).select("full", "floor").rows()
    [(2, 0), (1, 1)]
    """
    empty = pl.DataFrame(schema={"at": pl.Datetime("us", "UTC"), **dict.fromkeys(STATES, pl.Int64)})
    told = [frame.select("at", "state") for frame in trends.values() if frame.height]
    if not told:
        return empty
    counts = [pl.col("state").eq(state).sum().cast(pl.Int64).alias(state) for state in STATES]
    counted = pl.concat(told).group_by("at").agg(counts).sort("at").select(empty.columns)
    if counted.height <= most:
        return counted
    part = (pl.int_range(pl.len()) * (most - 1) // (counted.height - 1)).alias("part")  # the last poll is a part of its own
    worst = (pl.col("floor") + pl.col("no_worker")).alias("worst")
    kept = (
        counted.with_columns(part, worst).sort("part", "worst", maintain_order=True).group_by("part", maintain_order=True).last()
    )
    return kept.sort("at").select(empty.columns)


def steps_sentence(trends: Mapping[str, pl.DataFrame], shown: pl.DataFrame) -> str:
    """Return which poll a step of :func:`states_over` shows where it stands for several; empty where each poll is a step.

    >>> polls = pl.DataFrame({"at": range(3)})
    >>> steps_sentence({"a": polls}, polls.head(2))
    'Each step shows the worst of its polls, the last one the last poll.'
    >>> steps_sentence({"a": polls}, polls)
    ''
    """
    polls = max((frame.height for frame in trends.values()), default=0)
    return "Each step shows the worst of its polls, the last one the last poll." if shown.height < polls else ""


def trend_export(frame: pl.DataFrame, models: Sequence[str]) -> pl.DataFrame:
    """Return a trend with the models that it is for in front, as it is written to a file.

    >>> trend_export(pl.DataFrame({"allowance_tokens": [512]}), ()).row(0)
    ('any model', 512)
    """
    return frame.select(pl.lit("; ".join(models) or "any model").alias("models"), pl.all())
