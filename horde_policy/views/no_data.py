"""What stands in place of figures that a source has never given: what was asked, what went wrong, what works meanwhile."""

import re
from datetime import UTC, datetime
from typing import Final, Protocol

from horde_policy.views.text import escape_markdown, seconds, unbroken

__all__ = ["SET_ANOTHER", "no_data_sentences", "no_data_title", "plain_trouble"]


class Failed(Protocol):
    """What is known of a source that has given nothing; a poller's look is one."""

    @property
    def error(self) -> str | None:
        """The last try's error."""

    @property
    def failing_since(self) -> datetime | None:
        """When its row of failures began."""

    @property
    def next_due(self) -> datetime | None:
        """Before this it is not asked."""

    @property
    def polls(self) -> int:
        """How often it was asked."""


SET_ANOTHER: Final = (
    "Who runs this server sets another source: `HORDE_URL` names a horde, `HORDE_POLICY_RECORDED` a folder of recorded answers. "
    "The file `docs/how-to/watch-a-horde.md` beside the program says how, `docs/reference/settings.md` lists every setting."
)
"""Where an operator goes on; files, since the page may stand where no network is."""

_PLAIN: Final = (
    (r"ConnectError|ConnectTimeout", "no connection came about: there is no network here, or nobody listens at that address"),
    (r"cannot be reached", "the connection broke before there was an answer"),
    (r"takes longer|no answer within|timed? ?out|Timeout", "no answer came in time"),
    (r"answers 429", "it has been asked too often and wants to be left alone for a while"),
    (r"answers 5\d\d", "it has a fault of its own"),
    (r"answers 4\d\d", "it does not know what is asked of it there: the address may be another program's"),
    (r"redirects", "it sends the question on to another place, which is not followed"),
    (r"fault in this program", "this program has a fault, which its log names"),
)
"""What an error says (:mod:`horde_policy.sources`) → what that means in plain words; the first that matches."""


def plain_trouble(error: str) -> str:
    """Return in plain words what went wrong; what the source's own sentence leaves open is said so.

    >>> plain_trouble("aihorde.net: cannot be reached (ConnectError)")
    'no connection came about: there is no network here, or nobody listens at that address'
    >>> plain_trouble("aihorde.net: answers 503 to /v2/workers, 2 times")
    'it has a fault of its own'
    """
    return next((text for pattern, text in _PLAIN if re.search(pattern, error)), "its answer cannot be used")


def no_data_title(source: str, place: str) -> str:
    """Return what the notice is called: whose figures are missing; ``place`` is its host or folder, without a secret."""
    where = "" if not place or place == source else f", {place}"
    return escape_markdown(f"No figures from {source}{where} yet")


def no_data_sentences(look: Failed, now: datetime, *, refresh_s: int) -> str:
    """Return, as Markdown, how often the source was asked, what went wrong, and when it is asked again.

    Parameters
    ----------
    look
        What the poller says of a source without a snapshot.
    now
        The present.
    refresh_s
        How often the page looks; 0 for never by itself.
    """
    error = look.error or "no answer"
    times = "once" if look.polls == 1 else f"{look.polls:,} times"
    since = "" if look.failing_since is None else f" since {look.failing_since.astimezone(UTC):%H:%M:%S} UTC"
    asked = f"It was asked {times}{since}; {plain_trouble(error)}."
    said = f"In the program's own words: {error}."
    return unbroken(f"{escape_markdown(asked)} {escape_markdown(said)}\n\n{escape_markdown(_again(look, now, refresh_s))}")


def _again(look: Failed, now: datetime, refresh_s: int) -> str:
    due = look.next_due
    when = "at the next look"
    if due is not None and due > now:
        when = f"not before {due.astimezone(UTC):%H:%M:%S} UTC, in {seconds((due - now).total_seconds())}"
    how = "this page looks by itself" if refresh_s else "Refresh is off, so press Look again"
    return f"It is asked again {when}: {how}."
