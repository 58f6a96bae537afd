"""Text on marks that can be read: which colour a text has on a fill, what a pattern over it may be, how strong a tint may get.

The figure is WCAG's contrast ratio; text needs at least 4.5 to 1 (AA). Of black and white one always has it.
"""

from typing import Any, Final

from horde_policy.views.figures.style import SURFACES, TEXT, Mode

__all__ = ["AA_TEXT", "between", "contrast", "patterned", "text_on", "tint"]

AA_TEXT: Final = 4.5
"""The least contrast of text with what it lies on."""
BLACK, WHITE = "#000000", "#ffffff"
STRIPE = 0.3
"""How far a pattern goes from its fill, away from the text: seen, and no more restless beneath the text than need be."""
STEPS = 40


def _parts(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return red, green, blue


def _luminance(colour: str) -> float:
    shares = (part / 255 for part in _parts(colour))
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def between(start: str, end: str, share: float) -> str:
    """Return the colour that lies so far on the way from one to another, as Plotly mixes them.

    >>> between("#000000", "#ffffff", 0.5)
    '#808080'
    """
    mixed = (round(a + (b - a) * share) for a, b in zip(_parts(start), _parts(end), strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def text_on(fill: str) -> str:
    """Return black or white, whichever reads better on a fill.

    >>> text_on("#159c85"), text_on("#6e120a")
    ('#000000', '#ffffff')
    """
    return max((BLACK, WHITE), key=lambda text: contrast(text, fill))


def patterned(fill: str, shape: str) -> dict[str, Any]:
    """Return a pattern over a fill that text may lie on: its stripes are further from the text than the fill is.

    >>> patterned("#6e120a", "x")["fgcolor"]
    '#4d0d07'
    """
    away = WHITE if text_on(fill) == BLACK else BLACK
    return {"shape": shape, "fillmode": "overlay", "fgcolor": between(fill, away, STRIPE), "size": 6, "solidity": 0.2}


def tint(colour: str, share: float, mode: Mode) -> str:
    """Return the page's background tinted with a colour, at most so far that the page's text can be read on it.

    Parameters
    ----------
    colour
        The tint at its strongest.
    share
        From 0, the page's background, to 1, as strong as the text allows.
    mode
        The viewer's theme.

    Examples
    --------
    >>> tint("#a8261b", 0.0, "light"), contrast(tint("#a8261b", 1.0, "light"), TEXT["light"]) >= AA_TEXT
    ('#ffffff', True)
    """
    page = SURFACES[mode][0]
    fits = (k / STEPS for k in range(STEPS, 0, -1) if contrast(between(page, colour, k / STEPS), TEXT[mode]) >= AA_TEXT)
    return between(page, colour, next(fits, 0.0) * share)
