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
    "state_cell",
    "strip_cell",
]

ColumnKind = Literal["name", "state", "allowance", "strip", "badges", "text"]
Cell = str | Mapping[str, object] | Sequence[str] | None
"""What one cell holds; its form follows the kind of its column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its heading and unit, its kind, its tooltip, and the query that sorts by it (null: not sortable)."""

    key: str
    label: str
    kind: ColumnKind = "text"
    unit: str = ""
    help: str = ""
    right: bool = False
    wide: bool = False
    wrap: bool = False
    query: str | None = None
    sorted: Literal["ascending", "descending"] | None = None
    sizes: tuple[str, ...] = ()


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
    columns: Sequence[Column], rows: Sequence[Row], *, alt: str, empty: str = "", here: str = "", target: str = ""
) -> dict[str, object]:
    """Return what the table part is given.

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

    Raises
    ------
    ValueError
        ``alt`` is blank, or two rows have one id.

    Examples
    --------
    >>> data = grid_data([Column(key="n", label="n")], [Row(id="a", cells={"n": "1"})], alt="Numbers")
    >>> data["rows"]
    [{'id': 'a', 'cells': {'n': '1'}, 'query': None, 'pinned': False, 'out': False}]
    """
    if not alt.strip():
        raise ValueError("a table needs its alt text")
    if len({row.id for row in rows}) != len(rows):
        raise ValueError("two rows have one id")
    return {
        "columns": [_column(column) for column in columns],
        "rows": [{"id": r.id, "cells": dict(r.cells), "query": r.query, "pinned": r.pinned, "out": r.out} for r in rows],
        "alt": alt,
        "empty": empty,
        "here": here,
        "target": target,
    }


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
        "query": column.query,
        "sorted": column.sorted,
        "sizes": list(column.sizes),
    }


def name_cell(name: str, *, sub: str = "") -> dict[str, object]:
    r"""Return the cell of a name from the network, what is unseen in it made visible.

    >>> name_cell("a\u202eb")["text"]
    'a⟨U+202E⟩b'
    """
    return {"text": visible(name) or "(empty name)", "sub": sub, "title": visible(name)}


def state_cell(state: str, *, text: str = "") -> dict[str, object]:
    """Return the cell of a state: its word, whether it is bad news, and its sentence as the tooltip.

    >>> state_cell("no_worker")["label"], state_cell("no_worker")["bad"]
    ('no worker', True)
    """
    words = STATES[state]
    return {"state": state, "label": words.label, "bad": words.bad, "title": text or words.text}


def allowance_cell(
    state: str, *, allowance: int | None, at_high: int | None, at_low: int | None, ceiling: int
) -> dict[str, object]:
    """Return the cell of an allowance: the figure, its bar on the scale up to the ceiling, and its range.

    The bar is solid as far as the allowance holds at worst, and hatched from there to the named allowance.

    >>> cell = allowance_cell("falling", allowance=2304, at_high=512, at_low=4096, ceiling=4096)
    >>> cell["text"], cell["fill"], cell["worst"], cell["sub"]
    ('2,304', 0.5625, 0.125, 'at worst 512')
    >>> allowance_cell("unknown", allowance=None, at_high=None, at_low=None, ceiling=4096)["fill"] is None
    True
    """

    def share(tokens: int | None) -> float | None:
        return None if tokens is None else min(1.0, tokens / ceiling)

    if allowance is None:
        return {"state": state, "text": count(None), "fill": None, "worst": None, "sub": "", "title": "not known"}
    worst = None if at_high is None else min(at_high, allowance)
    title = f"{count(allowance)} tokens by the named queue; at worst {count(worst) if worst is not None else 'not known'}"
    if at_low is not None:
        title += f"; {count(at_low)} if nothing that is queued goes to these workers"
    return {
        "state": state,
        "text": count(allowance),
        "fill": share(allowance),
        "worst": share(worst),
        "sub": "" if worst == allowance else f"at worst {count(worst)}",
        "title": title,
    }


def strip_cell(sizes: Sequence[tuple[int, str, int | None, str]], *, ceiling: int) -> dict[str, object]:
    """Return the cell of the sizes side by side, from (size, state, allowance, sentence) each.

    >>> strip_cell([(80, "full", 4096, "all"), (512, "too_large", 512, "no one")], ceiling=4096)["label"]
    '80 tokens: full; 512 tokens: too large'
    """
    return {
        "label": "; ".join(f"{count(size)} tokens: {STATES[state].label}" for size, state, _, _ in sizes),
        "sizes": [
            {
                "state": state,
                "fill": None if allowance is None or state in ("no_worker", "too_large") else min(1.0, allowance / ceiling),
                "title": f"{count(size)} tokens: {STATES[state].label}. {text}",
            }
            for size, state, allowance, text in sizes
        ],
    }
