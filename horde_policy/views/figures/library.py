"""Plotly's own library as pages and reports have it: its bundle of what is drawn on two axes, a third of the whole.

Every figure here is of lines, bars or squares. A test compares its version with that of the ``plotly`` that is installed.
"""

from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["LIBRARY", "LIBRARY_VERSION", "library_script"]

LIBRARY_VERSION: Final = "4.1.1"
LIBRARY: Final = Path(__file__).parents[3] / "static" / f"plotly-cartesian-{LIBRARY_VERSION}.min.js"
"""Its origin and licence stand in ``static/README.md``."""


@cache
def library_script() -> str:
    """Return the library as the text of a script in an HTML document.

    >>> "</script" in library_script().lower()
    False
    """
    return LIBRARY.read_text(encoding="utf-8").replace("</script", "<\\/script")
