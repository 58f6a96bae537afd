"""The Overview's figures and rows: the row of tiles, the board's rows as they are shown and exported."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from horde_policy.board.rows import Board, Pulse, Row
from horde_policy.settings import AllowanceSettings
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS
from horde_policy.views import grid
from horde_policy.views.state import ViewState
from horde_policy.views.status import Status
from horde_policy.views.text import (
    NONE_FREE,
    NOT_REPORTED,
    as_listed,
    count,
    largest_free,
    names_text,
    seconds,
    speed,
    tokens_short,
    visible,
)
from horde_policy.views.tiles import age_tile, tile
from horde_policy.views.words import STANDINGS, STATES, gloss

__all__ = [
    "SPEED_OF_ALL",
    "WORST_FIRST",
    "Shown",
    "board_columns",
    "board_rows",
    "closed_text",
    "export_frame",
    "pulse_tiles",
    "queues_apart",
    "shown_rows",
    "wall_tiles",
]

ANY_MODEL_ID: Final = "any model"
ANY_MODEL_IS: Final = "the listed queues over all speeds"
SPEED_OF_ALL: Final = (
    "The measured speeds of all these workers added up, whatever size they take; at a size only those count that take it. "
    + gloss("assumed_speed")
)
DESCENDING_FIRST: Final = frozenset({"wait", "speed", "queued", "demand"})
"""Sorts whose first click puts the largest on top; the others put the smallest, or the worst state, there."""

CLOSED: Final = {
    "maintenance": STANDINGS["maintenance"],
    "offline": STANDINGS["offline"],
    "flagged": "flagged",
    "not known": "with models not reported",
}
"""How a worker stands that takes no requests → its words behind a number."""

WORST_FIRST: Final = ("no_worker", "floor", "falling", "unknown", "too_large", "full")


# --- the row of figures ------------------------------------------------------------------------------------------------


def pulse_tiles(pulse: Pulse, status: Status, *, ticking: bool = True) -> list[dict[str, object]]:
    """Return the row of figures; the last tile's age ticks in the browser, unless the page has no timer."""
    parts: list[dict[str, object]] = [{"state": s, "number": n} for s in STATES if (n := pulse.states[s])]  # type: ignore[index]
    states = ", ".join(f"{count(pulse.states[s])} {words.label}" for s, words in STATES.items() if pulse.states[s])  # type: ignore[index]
    counted = "Online, outside maintenance, owner not flagged"
    counted += f"; {count(pulse.unmeasured_workers)} of them count at the assumed speed." if pulse.unmeasured_workers else "."
    closed = closed_text(pulse)
    idle = f"of {count(pulse.listed_workers)} listed" + (f"; {closed}" if closed else "")
    queued = pulse.horde_wide_tokens if pulse.horde_wide_tokens is not None else pulse.listed_tokens
    requests = "" if pulse.queued_text_requests is None else f"{count(pulse.queued_text_requests)} requests"
    drain = "" if not pulse.drain_s else f"clears the queue in {seconds(pulse.drain_s)}"
    return [
        tile(
            "Models",
            count(pulse.models),
            sub=states,
            help="Listed by the server, or served by a worker of its list, each in one state at this size.",
            parts=parts,
        ),
        tile("Workers", count(pulse.open_workers), sub=idle, help=counted),
        tile(
            "Speed of all",
            speed(pulse.speed_tok_per_s),
            unit="tok/s",
            sub=f"{count(pulse.open_workers)} workers, {count(pulse.threads)} threads",
            help=SPEED_OF_ALL,
        ),
        tile(
            "Queued",
            tokens_short(queued),
            unit="tokens",
            sub=requests,
            help=" ".join(part for part in (gloss("queued_tokens"), queues_apart(pulse)) if part),
        ),
        tile(
            "Past minute",
            tokens_short(pulse.past_minute_tokens),
            unit="tokens",
            sub=drain,
            help="Output tokens that all workers handed in within the last minute. At that pace the queue is cleared in the time "
            "below; the wait of any model, in the table, divides the queue by the measured speeds instead.",
        ),
        age_tile(status, ticking=ticking),
    ]


def closed_text(pulse: Pulse, *, besides: Sequence[str] = ()) -> str:
    """Return how the listed workers stand that take no requests, leaving out some standings; empty where none is left."""
    found = pulse.closed_workers
    return ", ".join(f"{count(found[name])} {word}" for name, word in CLOSED.items() if found.get(name) and name not in besides)


def queues_apart(pulse: Pulse) -> str:
    """Return by how much the server's own total of the queue is not the sum of its list; empty where it is, or is not told."""
    total, listed = pulse.horde_wide_tokens, pulse.listed_tokens
    if total is None or listed is None or count(total) == count(listed):
        return ""
    more = f"{count(abs(total - listed))} {'more' if total > listed else 'less'}"
    return (
        f"The tile's queue is the server's own total, {count(total)} tokens: {more} than the queues in its list, "
        f"{count(listed)}, which any model's row has."
    )


def wall_tiles(pulse: Pulse, status: Status) -> list[dict[str, object]]:
    """Return the figures that a wall's screen shows in one line: those that neither its headline nor its status has."""
    return [{**one, "kind": "brief"} for one in pulse_tiles(pulse, status)[1:-1]]


# --- which rows, in which order -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """The rows that a view shows, in order, and how many its filters hide."""

    rows: tuple[Row, ...]
    hidden: int


def _value(row: Row, sort: str) -> float | None:
    measure = row.measure
    match sort:
        case "state":
            return WORST_FIRST.index(measure.state)
        case "allowance":
            return measure.allowance_tokens
        case "wait":
            return None if measure.waits is None else measure.waits.named_s
        case "speed":
            return measure.speed_tok_per_s
        case "queued":
            return measure.queued_tokens
        case "workers":
            return measure.eligible_workers
        case "largest":
            return measure.largest_free_request_tokens
        case _:
            return row.requests_day


def _order(state: ViewState) -> Callable[[Row], tuple[bool, float]]:
    sign = -1.0 if state.descending else 1.0

    def key(row: Row) -> tuple[bool, float]:
        value = _value(row, state.sort)
        return value is None, 0.0 if value is None else sign * value

    return key


def shown_rows(rows: Sequence[Row], state: ViewState) -> Shown:
    """Return the rows that the filters leave, sorted: what is not known last, ties by name, in the order of the alphabet.

    Parameters
    ----------
    rows
        As the board gives them.
    state
        Its ``find`` (every word must stand in the name, in any case), ``states``, ``sort`` and ``descending``.
    """
    words = state.find.casefold().split()
    kept = [row for row in rows if (not state.states or row.measure.state in state.states) and _named(row, words)]
    kept.sort(key=lambda row: as_listed(row.model or ""))
    if state.sort != "model":
        kept.sort(key=_order(state))
    elif state.descending:
        kept.reverse()
    return Shown(tuple(kept), len(rows) - len(kept))


def _named(row: Row, words: Sequence[str]) -> bool:
    names = " ".join(row.measure.models).casefold()
    return all(word in names for word in words)


def export_frame(board: Board, shown: Shown) -> pl.DataFrame:
    """Return what is shown as a frame of ``BOARD_ROWS``: the row of any model, named so, and the rows in their order."""
    return board.frame([board.any_model, *shown.rows]).with_columns(pl.col("model").fill_null(ANY_MODEL_ID))


# --- cells ----------------------------------------------------------------------------------------------------------------


def board_columns(
    state: ViewState, strip_sizes: Sequence[int], link: Callable[..., str], *, with_trend: bool = False
) -> list[grid.Column]:
    """Return the board's columns; ``link`` makes the query of this page with some fields of the state changed."""

    def column(key: str, label: str, kind: grid.ColumnKind = "text", **rest: object) -> grid.Column:
        sorted_by = state.sort == key
        flipped = not state.descending if sorted_by else key in DESCENDING_FIRST
        order: Literal["ascending", "descending"] = "descending" if state.descending else "ascending"
        return grid.Column(
            key=key,
            label=label,
            kind=kind,
            query=link(sort=key, descending=flipped),
            sorted=order if sorted_by else None,
            right=kind == "text",
            **rest,  # type: ignore[arg-type]
        )

    size = f"at {count(state.max_length_tokens)} tokens"
    return [
        column("model", "Model", "name", ends=True, brief=""),
        column("state", "State", "state", brief="", unit=size, help="\n".join(f"{w.label}: {w.text}" for w in STATES.values())),
        column("allowance", "Free allowance", "allowance", unit="tokens", help=gloss("allowance"), wide=True, brief="free"),
        *([_trend_column(state)] if with_trend else []),
        column("wait", "Wait", brief="wait", unit="named, at worst", help=gloss("estimated_wait", "named", "at_worst")),
        column("speed", "Speed", unit="tok/s", fold=2, help=gloss("combined_speed", "assumed_speed")),
        column("queued", "Queued", unit="tokens", fold=2, help=gloss("queued_tokens")),
        column("workers", "Workers", unit="eligible", fold=2, help=gloss("eligible_worker")),
        column("largest", "Largest free", unit="tokens", help=gloss("largest_free_request")),
        column("demand", "Demand", unit="a day", fold=1, help=gloss("demand")),
        grid.Column(
            key="strip",
            label="By size",
            kind="strip",
            fold=1,
            sizes=tuple(strip_sizes),
            help="State and allowance at other sizes: " + gloss("size"),
        ),
    ]


def _trend_column(state: ViewState) -> grid.Column:
    unit = state.range_name if state.from_at is None else "the range"
    return grid.Column(
        key="trend",
        label="Trend",
        kind="spark",
        fold=1,
        unit=unit,
        help="The free output allowance over the range of the history: each part at its least.",
    )


def board_rows(
    shown: Shown, board: Board, link: Callable[..., str], sparks: Mapping[str | None, grid.Cell] | None = None
) -> list[grid.Row]:
    """Return the row of any model, then the rows shown.

    ``link`` makes the query of a model page from its names; ``sparks`` has small lines by model, of any model by null.
    """
    settings, lines = board.settings, sparks or {}
    pinned = grid.Row(
        id=ANY_MODEL_ID,
        cells=_cells(board.any_model, settings)
        | {"model": {"text": ANY_MODEL_ID, "title": gloss("any_model"), "sub": ANY_MODEL_IS}}
        | ({"trend": lines[None]} if lines.get(None) is not None else {}),
        query=link(models=()),
        pinned=True,
    )
    return [pinned, *(_row(row, settings, link, lines) for row in shown.rows)]


def _row(row: Row, settings: AllowanceSettings, link: Callable[..., str], lines: Mapping[str | None, grid.Cell]) -> grid.Row:
    names = row.measure.models
    line = lines.get(names[0]) if len(names) == 1 else None
    query = link(models=names)
    return grid.Row(
        id=f"model {query}",
        cells=_cells(row, settings) | ({"trend": line} if line is not None else {}),
        query=query,
        out=row.measure.state == "no_worker",
    )


def _cells(row: Row, settings: AllowanceSettings) -> dict[str, grid.Cell]:
    measure = row.measure
    return {
        "model": _name(row),
        "state": grid.state_cell(measure.state, text=_why(row), sub=_context(row)),
        "allowance": grid.allowance_cell(
            measure.state,
            allowance=measure.allowance_tokens,
            at_high=measure.allowance_at_high_tokens,
            ceiling=settings.ceiling_tokens,
        ),
        "wait": _wait(row),
        "speed": _with_sub(
            speed(measure.speed_tok_per_s), f"{count(measure.unmeasured_workers)} assumed" if measure.unmeasured_workers else ""
        ),
        "queued": count(measure.queued_tokens),
        "workers": _with_sub(
            count(measure.eligible_workers),
            f"of {count(row.serving_workers)}" if row.serving_workers != measure.eligible_workers else "",
        ),
        "largest": _largest(row),
        "demand": count(row.requests_day),
        "strip": grid.strip_cell([(cell.state, cell.allowance_tokens) for cell in row.strip]),
    }


def _why(row: Row) -> str:
    """Return the first note where the state needs one; the model's page has them all."""
    measure = row.measure
    return visible(measure.notes[0].text) if measure.notes and measure.state in ("no_worker", "too_large", "unknown") else ""


def _context(row: Row) -> str:
    measure = row.measure
    return f"context {count(measure.max_context_length)}" if measure.short_of_context else ""


def _name(row: Row) -> grid.Cell:
    several = len(row.measure.models)
    sub, whole = "", ""
    if several > 1:
        whole = visible(", ".join(row.measure.models))
        sub = f"{several} names: {names_text(row.measure.models, 200)}"
    elif row.maintenance_workers:
        only = row.serving_workers == 1
        who = "its only worker is" if only else f"{count(row.maintenance_workers)} of {count(row.serving_workers)} workers"
        sub = f"{who} in maintenance"
    return grid.name_cell(row.model or ANY_MODEL_ID, sub=sub, whole=whole)


def _with_sub(text: str, sub: str) -> grid.Cell:
    return {"text": text, "sub": sub} if sub else text


def _wait(row: Row) -> grid.Cell:
    waits = row.measure.waits
    if waits is None:
        nobody = row.measure.state in ("no_worker", "too_large")
        why = "No worker is eligible, so there is no wait to estimate." if nobody else "The queue is not reported."
        return {"text": NOT_REPORTED, "title": why}
    return {"text": seconds(waits.named_s), "sub": f"at worst {seconds(waits.worst_s)}"}


def _largest(row: Row) -> grid.Cell:
    measure = row.measure
    known = measure.queued_tokens is not None or not measure.open_workers
    text = largest_free(measure.largest_free_request_tokens, known=known)
    if text == NOT_REPORTED:
        return {"text": text, "title": "The queue is not reported."}
    if text == NONE_FREE:
        return {"text": text, "title": f"No worker takes a request of any size up to {count(MAX_LENGTH_LIMIT_TOKENS)} tokens."}
    return text
