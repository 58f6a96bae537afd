"""The one way to show rows: the page's own table of real HTML, whose rows are named by ids and never by places (T4)."""

from collections.abc import Sequence

from horde_policy.ui import components
from horde_policy.views.grid import Column, Row, grid_data

__all__ = ["show_grid"]


def show_grid(
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    key: str,
    alt: str,
    empty: str = "",
    here: str = "",
    target: str = "",
    ceiling: int = 0,
) -> None:
    """Show a table whose rows can be read, reached by keyboard and opened as links; up to some thousand rows.

    Raises
    ------
    ValueError
        ``alt`` is blank, or two rows have one id.
    """
    components.grid(key=key, data=grid_data(columns, rows, alt=alt, empty=empty, here=here, target=target, ceiling=ceiling))
