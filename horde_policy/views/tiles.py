"""One tile of a row of figures, as the page's own part takes it."""

from horde_policy.views.status import Status
from horde_policy.views.text import NOT_REPORTED, unbroken

__all__ = ["age_tile", "tile"]


def tile(
    label: str,
    value: str,
    *,
    unit: str = "",
    sub: str = "",
    help: str = "",
    kind: str = "figure",
    parts: list[dict[str, object]] | None = None,
) -> dict[str, object]:
    """Return one tile; a figure that is not reported has no unit, and says that it is not; no line ends within a figure.

    >>> tile("Queued", "—", unit="tokens")["unit"], tile("Queued", "0", unit="tokens")["unit"]
    ('', 'tokens')
    >>> tile("Queued", "—")["sub"]
    'not reported'
    """
    sub = sub or ("not reported" if value == NOT_REPORTED else "")
    shown_unit = "" if value == NOT_REPORTED else unit
    return {"label": label, "value": value, "unit": shown_unit, "sub": unbroken(sub), "help": help, "kind": kind, "parts": parts}


def age_tile(status: Status, *, ticking: bool) -> dict[str, object]:
    """Return the tile of the age, which ticks; where it cannot, of the time that stands, and why it does."""
    if status.ticks and ticking:
        return tile(
            "Age of the data",
            status.age_text,
            sub=status.at,
            kind="age",
            help="Since the oldest part of these figures was fetched.",
        )
    day, clock, zone = status.at.rsplit(" ", 2)
    why = "refresh is off" if status.ticks else "a recording"
    return tile("Data of", day, sub=f"{clock} {zone}; {why}", help="When the oldest part of these figures was fetched.")
