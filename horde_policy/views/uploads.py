"""What is said of an upload everywhere: what it was understood as, and that it is no longer kept."""

from typing import TYPE_CHECKING

from horde_policy.errors import InputError, shown
from horde_policy.views.text import count, count_of

if TYPE_CHECKING:  # a page that says an upload is gone need not load what reads it
    from horde_policy.budget.price_table import PriceTable
    from horde_policy.imports.trace_frame import Trace
    from horde_policy.sweep.run import Sweep

__all__ = [
    "NOT_KEPT",
    "WHOLE",
    "not_kept",
    "not_kept_note",
    "prices_understood",
    "requests_understood",
    "sweep_understood",
    "trace_understood",
]

NOT_KEPT = "is an upload that this server does not keep, or no longer; upload it again"
"""What every page and every message says of a key whose file is gone."""
WHOLE = "everything was understood"


def not_kept(parameter: str, key: str) -> InputError:
    """Return the error that a link's parameter names an upload that is gone.

    >>> print(not_kept("traffic", "upload-0123"))
    traffic: 'upload-0123' is an upload that this server does not keep, or no longer; upload it again
    """
    return InputError(parameter, "", key, NOT_KEPT)


def not_kept_note(parameter: str, key: str, instead: str) -> str:
    """Return the note that a link's parameter names an upload that is gone, and what is shown instead.

    >>> not_kept_note("data", "upload-0123", "The demo week is shown.").removeprefix(f"The link's data='upload-0123' {NOT_KEPT}")
    '. The demo week is shown.'
    """
    return f"The link's {parameter}={shown(key)} {NOT_KEPT}. {instead}"


def trace_understood(trace: "Trace") -> tuple[str, str]:
    """Return what an uploaded trace was understood as, and what of it was left out, each in one line."""
    refused = ", ".join(f"{count(rows)} rows: {reason}" for reason, rows in trace.refused.items() if rows)
    read = f"{trace.format.replace('_', ' ')}: {count(trace.frame.height)} requests of {count(trace.rows_read)} rows"
    return read, refused or WHOLE


def requests_understood(rows: int) -> tuple[str, str]:
    """Return what uploaded requests of our own layout were understood as.

    >>> requests_understood(300)
    ('requests with their sizes: 300 requests', 'everything was understood')
    """
    return f"requests with their sizes: {count_of(rows, 'request')}", WHOLE


def prices_understood(table: "PriceTable") -> tuple[str, str]:
    """Return what an uploaded price table was understood as."""
    models = len({price.model for price in table.prices})
    return f"price table {table.name}: {count_of(len(table.prices), 'price')} of {count_of(models, 'model')}", WHOLE


def sweep_understood(sweep: "Sweep") -> tuple[str, str]:
    """Return what an uploaded sweep was understood as, and what it lacks."""
    points = sweep.frame["point"].n_unique()
    missing = f"{count_of(sweep.missing, 'replay')} not done" if sweep.missing else WHOLE
    return f"sweep: {count_of(points, 'point')}, {count_of(sweep.frame.height, 'row')}", missing
