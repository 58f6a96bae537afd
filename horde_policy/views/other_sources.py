"""What figures come from besides hordes, as the Sources page shows it: exports, a Prometheus, the history, ledger, sweeps."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from horde_policy.views import grid
from horde_policy.views.text import instant, visible

__all__ = ["OTHER_COLUMNS", "OtherSource", "other_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSource:
    """A source that is no horde.

    Attributes
    ----------
    name, kind
        How it is called (hostile text), and what it is.
    page
        The pages whose figures come from it.
    state
        How it stands, in words.
    at
        Of when the latest of it is; null where that is not known without reading it.
    trouble
        What is wrong with it, or what it would need; empty for nothing.
    wrong
        Whether somebody should do something about it.
    """

    name: str
    kind: str
    page: str
    state: str
    at: datetime | None = None
    trouble: str = ""
    wrong: bool = False


OTHER_COLUMNS: Final = [
    grid.Column(key="source", label="Source", kind="name"),
    grid.Column(key="kind", label="Kind"),
    grid.Column(key="page", label="For"),
    grid.Column(key="state", label="State", wrap=True),
    grid.Column(key="age", label="Data of", right=True, help="When the latest of it was counted, collected or written."),
    grid.Column(key="trouble", label="What is wrong or missing", wrap=True, wide=True),
]


def other_rows(sources: Sequence[OtherSource]) -> list[grid.Row]:
    """Return a row a source, in the order given.

    >>> [row] = other_rows([OtherSource(name="ledger", kind="ledger", page="Budget", state="not there", wrong=True)])
    >>> row.cells["age"], row.out
    ('', True)
    """
    return [
        grid.Row(
            id=f"other {number}",
            cells={
                "source": grid.name_cell(source.name),
                "kind": source.kind,
                "page": source.page,
                "state": {"text": visible(source.state)},
                "age": "" if source.at is None else instant(source.at),
                "trouble": {"text": visible(source.trouble)} if source.trouble else None,
            },
            out=source.wrong,
        )
        for number, source in enumerate(sources)
    ]
