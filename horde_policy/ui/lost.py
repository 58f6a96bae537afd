"""An address that names no page of the app leads to the first page, with a sentence, in place of Streamlit's own dialog.

Streamlit finds a page by the last part of the address and, where there is none, shows a dialog over its default page and leaves
the address as it was, from which the page's own links then lead astray. So the unknown name is registered as a hidden page for
this run, which does nothing but lead on. Only a plain name of one part: what has more parts never reaches a script, since the
browser looks for the app's own files under it (``docs/reference/addresses.md``).
"""

import re
from collections.abc import Collection
from typing import Final, NoReturn
from urllib.parse import urlsplit

import streamlit as st

from horde_policy.ui import address

__all__ = ["lead_on", "unknown_name"]

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")

_TAKE_ITS_PLACE: Final = """<script>
history.replaceState({}, "", location.pathname.replace(/[^/]+\\/*$/, "") + location.search)
dispatchEvent(new PopStateEvent("popstate", { state: {} }))
</script>"""
"""Streamlit's own switch of the page adds an entry to the browser's history; it follows an address that changed by itself."""


def unknown_name(url: str | None, known: Collection[str]) -> str:
    """Return the name that an address ends with if no page is called so; empty for a page's, none, or one that is not plain.

    >>> unknown_name("http://host/horde/nonsense", {"overview"}), unknown_name("http://host/overview/", {"overview"})
    ('nonsense', '')
    >>> unknown_name("http://host/", {"overview"}), unknown_name("http://host/a%20b", {"overview"}), unknown_name(None, set())
    ('', '', '')
    """
    name = urlsplit(url or "").path.rstrip("/").rpartition("/")[2]
    return name if _PLAIN.fullmatch(name) and name not in known else ""


def lead_on(name: str, first: str) -> NoReturn:
    """Have the browser open the first page, titled so, with what the address chose, and leave a notice for it; ends this run.

    The first page's address takes the place of the one that names no page: an entry of its own would catch whoever goes back.
    """
    address.say(f"There is no page {name}; this is the page {first}.")
    st.html(_TAKE_ITS_PLACE, unsafe_allow_javascript=True)
    st.stop()
