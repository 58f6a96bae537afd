"""Hostile text on a terminal: names from the network can neither move the cursor, nor turn the line, nor be read as markup."""

import unicodedata

from rich.text import Text

__all__ = ["plain", "safe_text"]

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that are not drawn, or that command: control, format (bidirectional marks), surrogates, line ends."""


def plain(text: str, most_characters: int | None = None) -> str:
    r"""Return the text with every control, format and line-end character written out, cut to a length.

    >>> plain("evil\x1b[2Jname"), plain("abc\u202egnp"), plain("a\nb"), plain("x" * 9, 5)
    ('evil\\x1b[2Jname', 'abc\\u202egnp', 'a\\nb', 'xxxx…')
    """
    shown = "".join(
        char.encode("unicode_escape").decode("ascii") if unicodedata.category(char) in _UNSEEN else char for char in text
    )
    return shown if most_characters is None or len(shown) <= most_characters else shown[: most_characters - 1] + "…"


def safe_text(text: str, most_characters: int | None = None, *, style: str = "") -> Text:
    """Return the text for rich, never read as markup.

    >>> safe_text("[red]name[/red]").plain
    '[red]name[/red]'
    """
    return Text(plain(text, most_characters), style=style)
