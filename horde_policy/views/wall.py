"""The board as a screen on a wall shows it: the worst first, four figures a model, in one line each."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from horde_policy.board.rows import Board, Row
from horde_policy.views import overview
from horde_policy.views.grid import allowance_cell
from horde_policy.views.state import ViewState
from horde_policy.views.status import problems_title
from horde_policy.views.text import NOT_REPORTED, count, seconds, shortened_name, unbroken, visible
from horde_policy.views.words import STATES

__all__ = ["wall_data", "wall_rows"]


HATCHED: Final = "hatched: gone at worst"
"""What the hatched part of a bar is; where any bar has one, it stands below the board."""


def wall_rows(rows: Sequence[Row], state: ViewState) -> overview.Shown:
    """Return the rows that the filters leave, the worst first; in the order of the address where it names one.

    Worst is first by state, bad news on top, then by the least allowance, the longest wait, and by name.
    """
    if (state.sort, state.descending) != (ViewState().sort, ViewState().descending):
        return overview.shown_rows(rows, state)
    shown = overview.shown_rows(rows, replace(state, sort="state"))

    def badness(row: Row) -> tuple[int, float, float]:
        measure = row.measure
        wait_s = 0.0 if measure.waits is None else measure.waits.named_s or 0.0
        return overview.WORST_FIRST.index(measure.state), float(measure.allowance_tokens or 0), -wait_s

    return replace(shown, rows=tuple(sorted(shown.rows, key=badness)))


def wall_data(board: Board, state: ViewState, link: Callable[..., str], *, source: str) -> dict[str, object]:
    """Return what the wall's part is given: any model, then the rows in their order; it shows as many as fit.

    ``link`` makes the query of a model page from its names; ``source`` is the name of the source, already made visible.
    """
    shown = wall_rows(board.groups if state.grouped else board.rows, state)
    notes = [f"{count(shown.hidden)} hidden by filters"] if shown.hidden else []
    notes += _short_of_context(shown.rows)
    if board.snapshot.problems:
        notes.append(problems_title(board.snapshot.problems))
    rows = [
        _row(board.any_model, board, link(models=())) | {"pinned": True},
        *(_row(row, board, link(models=row.measure.models)) for row in shown.rows),
    ]
    return {
        "rows": rows,
        "legend": HATCHED if any(row["fill"] != row["worst"] for row in rows) else "",
        "alt": f"Models of {source}, the worst first, with their free output allowance at {count(board.max_length)} tokens",
        "free": f"Free, at {count(board.max_length)} tokens",
        "notes": notes,
        "here": "overview",
        "target": "model",
        "words": {name: [words.label, words.bad] for name, words in STATES.items()},
    }


def _short_of_context(rows: Sequence[Row]) -> list[str]:
    """Return for which models it is the context that is too large, and not the size; nothing for none."""
    names = [visible(row.model or ", ".join(row.measure.models)) for row in rows if row.measure.short_of_context]
    if not names:
        return []
    context = count(max(row.measure.max_context_length for row in rows if row.measure.short_of_context))
    who = shortened_name(names[0], 60) if len(names) == 1 else f"{count(len(names))} models"
    return [f"context {context} too large, not the size: {who}"]


def _row(row: Row, board: Board, query: str) -> dict[str, object]:
    measure = row.measure
    cell = allowance_cell(
        measure.state,
        allowance=measure.allowance_tokens,
        at_high=measure.allowance_at_high_tokens,
        ceiling=board.settings.ceiling_tokens,
    )
    assert isinstance(cell, dict)
    return {
        "name": visible(row.model or overview.ANY_MODEL_ID) or "(empty name)",
        "state": measure.state,
        "why": visible(measure.notes[0].text) if measure.notes else "",
        "free": cell["text"],
        "fill": cell["fill"],
        "worst": cell["worst"],
        "worst_text": cell["sub"],
        "wait": NOT_REPORTED if measure.waits is None else unbroken(seconds(measure.waits.named_s)),
        "out": measure.state == "no_worker",
        "query": query,
    }
