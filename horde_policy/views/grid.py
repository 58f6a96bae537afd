"""A table as data for the page's own table part: columns, rows and cells of plain text, numbers and state words.

The part in the browser sets every text as text, so names need no escape here; they are only made visible
(:func:`horde_policy.views.text.visible`). A row is named by an id, never by its place (T4), and opens a page by a link.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from horde_policy.views.text import count, visible
from horde_policy.views.words import STATES

__all__ = [
    "Cell",
    "Column",
    "ColumnKind",
    "Row",
    "allowance_cell",
    "grid_data",
    "name_cell",
    "query_text",
    "spark_cell",
    "state_cell",
    "strip_cell",
]

ColumnKind = Literal["name", "state", "allowance", "strip", "spark", "text"]
Cell = str | Mapping[str, object] | Sequence[str] | None
"""What one cell holds; its form follows the kind of its column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its heading and unit, its kind, its tooltip, and the query that sorts by it (null: not sortable).

    Where a screen is narrow each row is a card. In a table with ``brief`` columns a card shows these alone, each after its word
    (empty: none), and the rest on demand. Between a card and the whole table the columns of ``fold`` 1, and where it is narrower
    yet those of 2, stand below their row, on demand; one that is sorted by never folds. ``ends`` cuts a long name at its path, so
    that what stands behind the last slash stays.
    """

    key: str
    label: str
    kind: ColumnKind = "text"
    unit: str = ""
    help: str = ""
    right: bool = False
    wide: bool = False
    wrap: bool = False
    ends: bool = False
    brief: str | None = None
    fold: Literal[0, 1, 2] = 0
    query: str | None = None
    sorted: Literal["ascending", "descending"] | None = None
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: its id, its cells by column, the query of the page that it opens (null: none), and how it is set off."""

    id: str
    cells: Mapping[str, Cell]
    query: str | None = None
    pinned: bool = False
    out: bool = False


def query_text(query: Mapping[str, Sequence[str]]) -> str:
    """Return a query string, every name and value percent-encoded.

    >>> query_text({"m": ["a/b", "&x"]})
    'm=a%2Fb&m=%26x'
    """
    pairs = ((name, value) for name, values in query.items() for value in values)
    return "&".join(f"{quote(n, safe='')}={quote(v, safe='', errors='replace')}" for n, v in pairs)


def grid_data(
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    alt: str,
    empty: str = "",
    here: str = "",
    target: str = "",
    ceiling: int = 0,
) -> dict[str, object]:
    """Return what the table part is given: of the columns those in which a row says something.

    Parameters
    ----------
    columns, rows
        In the order shown; the ids of the rows are unique.
    alt
        What the table is, in one sentence; required, and not blank.
    empty
        What stands there when there is no row.
    here, target
        The name of this page, and of the page that a row opens, as they stand in the address.

    ceiling
        The largest allowance, which a strip's boxes are filled to; only for tables with a strip.

    Raises
    ------
    ValueError
        ``alt`` is blank, or two rows have one id.

    Examples
    --------
    >>> data = grid_data([Column(key="n", label="n")], [Row(id="a", cells={"n": "1"})], alt="Numbers")
    >>> data["rows"]
    [{'id': 'a', 'cells': {'n': '1'}}]
    >>> columns = [Column(key="n", label="n"), Column(key="why", label="Why not")]
    >>> [column["key"] for column in grid_data(columns, [Row(id="a", cells={"n": "1", "why": ""})], alt="Numbers")["columns"]]
    ['n']
    """
    if not alt.strip():
        raise ValueError("a table needs its alt text")
    if len({row.id for row in rows}) != len(rows):
        raise ValueError("two rows have one id")
    return {
        "columns": [_column(column) for column in columns if column.query is not None or not rows or _says(column.key, rows)],
        "rows": [_row(row) for row in rows],
        "alt": alt,
        "empty": empty,
        "here": here,
        "target": target,
        "ceiling": ceiling,
        "words": {state: [words.label, words.bad, words.text] for state, words in STATES.items()},
    }


def _says(key: str, rows: Sequence[Row]) -> bool:
    """Return whether a row has anything in a column: a heading over nothing asks what is missing there."""
    cells = (row.cells.get(key) for row in rows)
    return any(cell.get("text") != "" or cell.get("sub") if isinstance(cell, Mapping) else bool(cell) for cell in cells)


def _row(row: Row) -> dict[str, object]:
    # What says nothing is left out: a board of hundreds of models goes over the wire each time it changes.
    said = {"query": row.query, "pinned": row.pinned, "out": row.out}
    return {"id": row.id, "cells": dict(row.cells)} | {name: value for name, value in said.items() if value not in (None, False)}


def _column(column: Column) -> dict[str, object]:
    return {
        "key": column.key,
        "label": column.label,
        "kind": column.kind,
        "unit": column.unit,
        "help": column.help,
        "right": column.right,
        "wide": column.wide,
        "wrap": column.wrap,
        "ends": column.ends,
        "brief": column.brief,
        "fold": 0 if column.sorted else column.fold,
        "query": column.query,
        "sorted": column.sorted,
        "sizes": list(column.sizes),
    }


def name_cell(name: str, *, sub: str = "", whole: str = "") -> Cell:
    r"""Return the cell of a name from the network, what is unseen in it made visible.

    ``sub`` stands under it; where that is only a part, ``whole`` is all of it, for the tooltip.

    >>> name_cell("a\u202eb")
    'a⟨U+202E⟩b'
    >>> name_cell("a", sub="b…", whole="bcd")
    {'text': 'a', 'sub': 'b…', 'title': 'a\nbcd'}
    """
    text = visible(name) or "(empty name)"
    cell = {"text": text, "sub": sub} if sub else text
    return cell if isinstance(cell, str) or not whole or whole == sub else cell | {"title": f"{text}\n{whole}"}


def state_cell(state: str, *, text: str = "", sub: str = "") -> Cell:
    """Return the cell of a state; the part knows its word. The tooltip is what is given, else the state's own sentence.

    ``sub`` stands under the word.

    >>> state_cell("no_worker")
    'no_worker'
    """
    if not text and not sub:
        return state
    return {"state": state} | ({"title": text} if text else {}) | ({"sub": sub} if sub else {})


def allowance_cell(state: str, *, allowance: int | None, at_high: int | None, ceiling: int) -> Cell:
    """Return the cell of an allowance: the figure, its bar on the scale up to the ceiling, and what is left at worst.

    The bar is solid as far as the allowance holds at worst, and hatched from there to the named allowance.

    >>> allowance_cell("falling", allowance=2304, at_high=512, ceiling=4096)
    {'state': 'falling', 'text': '2,304', 'fill': 0.5625, 'worst': 0.125, 'sub': 'at worst 512'}
    >>> allowance_cell("unknown", allowance=None, at_high=None, ceiling=4096)
    {'state': 'unknown', 'text': '—', 'fill': None, 'worst': None, 'sub': 'queue not reported'}
    """
    if allowance is None:
        return {"state": state, "text": count(None), "fill": None, "worst": None, "sub": "queue not reported"}

    def share(tokens: int | None) -> float | None:
        return None if tokens is None else round(min(1.0, tokens / ceiling), 4)

    worst = None if at_high is None else min(at_high, allowance)
    return {
        "state": state,
        "text": count(allowance),
        "fill": share(allowance),
        "worst": share(worst),
        "sub": "" if worst == allowance else f"at worst {count(worst)}",
    }


def strip_cell(sizes: Sequence[tuple[str, int | None]]) -> Cell:
    """Return the cell of the sizes side by side, from the state and the allowance at each size of the column.

    >>> strip_cell([("full", 4096), ("too_large", 512), ("unknown", None)])
    ['full 4096', 'too_large 512', 'unknown']
    """
    return [state if allowance is None else f"{state} {allowance}" for state, allowance in sizes]


def spark_cell(points: Sequence[float | None], text: str) -> Cell:
    """Return the cell of a small line: shares of the ceiling in the order of time, null where not known, and its sentence.

    >>> spark_cell([1.0, None, 0.125], "from 4,096 to 512")
    {'points': [1.0, None, 0.125], 'text': 'from 4,096 to 512'}
    """
    return {"points": list(points), "text": text}
