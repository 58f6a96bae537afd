"""One tile of a row of figures, as the page's own part takes it."""

from horde_policy.views.text import NOT_REPORTED

__all__ = ["tile"]


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
    """Return one tile; a figure that is not reported has no unit.

    >>> tile("Queued", "—", unit="tokens")["unit"], tile("Queued", "0", unit="tokens")["unit"]
    ('', 'tokens')
    """
    shown_unit = "" if value == NOT_REPORTED else unit
    return {"label": label, "value": value, "unit": shown_unit, "sub": sub, "help": help, "kind": kind, "parts": parts}
