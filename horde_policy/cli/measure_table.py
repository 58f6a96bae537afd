"""Measures and problems as text on a terminal; names from the network can neither move the cursor nor be read as markup."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from horde_policy.board.measure import Measure
from horde_policy.board.states import BAD_STATES, State
from horde_policy.errors import Problem
from horde_policy.frames.snapshot import Snapshot
from horde_policy.views.text import (
    NONE_FREE,
    NOT_REPORTED,
    count,
    instant,
    largest_free,
    range_text,
    seconds,
    shortened,
    speed,
    tokens,
    visible,
)
from horde_policy.views.words import STATES

__all__ = ["console", "print_head", "print_measures", "print_problems"]

LEAST_WIDTH = 160
"""Columns that the table takes also on a narrow terminal or in a pipe: a figure is never cut short."""

NAME_CHARACTERS = 60

_STYLES: dict[State, str] = {"full": "green", "falling": "yellow", "floor": "bold red", "no_worker": "bold red"}


def console() -> Console:
    """Return a console on the present standard output that reads nothing as markup, emoji code or number to colour."""
    width = max(LEAST_WIDTH, Console().width)
    return Console(highlight=False, markup=False, emoji=False, width=width)


def safe(text: str, characters: int | None = None) -> Text:
    """Return text from the network for rich: unseen characters shown by their number, never read as markup.

    >>> safe("[red]a[/red]" + chr(27) + "[2J").plain
    '[red]a[/red]⟨U+001B⟩[2J'
    """
    shown = visible(text)
    return Text(shown if characters is None else shortened(shown, characters))


def print_head(out: Console, snapshot: Snapshot, asked: str) -> None:
    """Print where the figures come from, of when they are, and what was asked."""
    made_up = " (made up)" if snapshot.synthetic else ""
    out.print(safe(f"{snapshot.source}{made_up}, {instant(snapshot.fetched_at)}; {asked}"), soft_wrap=True)


def print_measures(out: Console, measures: Sequence[Measure], first: str, labels: Sequence[str]) -> None:
    """Print a row a measure, its label in the first column, and under the table what its marks mean."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, overflow="fold")
    table.add_column("state")
    for heading in ("free up to", "at worst to low", "wait", "at worst", "tok/s", "queued", "eligible", "largest free"):
        table.add_column(heading, justify="right", no_wrap=True)
    for label, measure in zip(labels, measures, strict=True):
        table.add_row(safe(label, NAME_CHARACTERS), _state(measure.state), *(Text(cell) for cell in _cells(measure)))
    out.print(table)
    legend = _legend(measures)
    if legend:
        out.print(Text("; ".join(legend), style="dim"), soft_wrap=True)


def _state(state: State) -> Text:
    return Text(STATES[state].label + (" !" if state in BAD_STATES else ""), style=_STYLES.get(state, ""))


def _cells(measure: Measure) -> tuple[str, ...]:
    waits = measure.waits
    unmeasured = f" ({measure.unmeasured_workers:,} unmeasured)" if measure.unmeasured_workers else ""
    return (
        tokens(measure.allowance_tokens),
        range_text(measure.allowance_at_high_tokens, measure.allowance_at_low_tokens),
        NOT_REPORTED if waits is None else seconds(waits.named_s),
        NOT_REPORTED if waits is None else seconds(waits.worst_s),
        speed(measure.speed_tok_per_s),
        tokens(measure.queued_tokens),
        count(measure.eligible_workers) + unmeasured,
        largest_free(measure.largest_free_request_tokens, known=measure.queued_tokens is not None or not measure.open_workers),
    )


def _legend(measures: Sequence[Measure]) -> list[str]:
    """Return what the marks of a table mean, each only where the table has it."""
    told = [cell for measure in measures for cell in _cells(measure)]
    return [
        text
        for text, has in (
            ("!: at the floor, or without a worker", any(m.state in BAD_STATES for m in measures)),
            (f"{NOT_REPORTED}: not reported, or nobody eligible to wait for", NOT_REPORTED in told),
            (f"{NONE_FREE}: no online worker takes a request of any size", NONE_FREE in told),
        )
        if has
    ]


def print_problems(out: Console, problems: Iterable[Problem]) -> None:
    """Print what was wrong in the data, a line each."""
    for problem in problems:
        subject = "" if problem.text.startswith(problem.subject) else f"{problem.subject}: "
        out.print(safe(f"{problem.level}: {subject}{problem.text}"), soft_wrap=True)
