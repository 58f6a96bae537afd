"""How a question to a horde runs beside others: in a thread of its own, with what its answer says of the server's limit."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from horde_policy.errors import Problem, SourceUnavailable, shown
from horde_policy.sources.http import Answer
from horde_policy.sources.payloads import parse_json

__all__ = ["FAULT", "LONGEST_REST_S", "RateLimit", "aside", "json_of", "rate_limit", "rest_until"]

OK = 200
LEAST_REMAINING = 5
"""With no more questions left in the server's minute, an endpoint rests until the limit is renewed."""
LONGEST_REST_S = 120.0
FAULT = "was not asked to the end, by a fault in this program; its log has the details"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What the server says of its limit for one endpoint (horde.md §1.1), and when it said so."""

    limit: int | None
    remaining: int | None
    at: datetime


def _number(answer: Answer, word: str) -> int | None:
    text = answer.headers.get(f"x-ratelimit-{word}")
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def rate_limit(answer: Answer) -> RateLimit | None:
    """Return what an answer says of the limit; null if nothing."""
    limit, remaining = _number(answer, "limit"), _number(answer, "remaining")
    return None if limit is None and remaining is None else RateLimit(limit, remaining, answer.at)


def rest_until(answer: Answer) -> datetime | None:
    """Return until when to leave an endpoint alone, when others on this address have nearly used up its limit; else null."""
    remaining, reset = _number(answer, "remaining"), _number(answer, "reset")
    if remaining is None or remaining > LEAST_REMAINING:
        return None
    until_s = LONGEST_REST_S if reset is None else reset - answer.server_time.timestamp()
    return answer.at + timedelta(seconds=min(max(until_s, 0.0), LONGEST_REST_S))


def json_of(answer: Answer, source: str, part: str, path: str) -> tuple[Any, tuple[Problem, ...]]:
    """Return the JSON value of a good answer, and what was mended in it.

    Raises
    ------
    SourceUnavailable, SourceFormatError
        Its status is not 200; it is not JSON.
    """
    if answer.status != OK:
        raise SourceUnavailable(source, f"answers {answer.status} to {shown(path)}")
    return parse_json(answer.content, source, part)


def aside(run: Callable[[], None]) -> threading.Event:
    """Run in a thread of its own, which does not keep the program alive; the event is set at its end, whatever the end."""
    done = threading.Event()

    def to_the_end() -> None:
        try:
            run()
        finally:
            done.set()

    threading.Thread(target=to_the_end, name="horde_policy question", daemon=True).start()
    return done
