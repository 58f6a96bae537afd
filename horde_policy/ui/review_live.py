"""A Prometheus or Mimir as data of a review: configured, never typed into a page; asked when chosen, and again on request."""

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
import streamlit as st

from horde_policy.clock import SystemClock
from horde_policy.errors import ConfigError, InputError
from horde_policy.imports import SERIES_SELECTOR, read_exports
from horde_policy.imports.unpack import ExportFile
from horde_policy.review.exported import Exported, exported_from
from horde_policy.review.ranges import TimeRange
from horde_policy.sources.prometheus import PrometheusClient, configured_prometheus
from horde_policy.views.text import instant

__all__ = ["ask_again", "asked", "asked_at", "last_asked", "server_name", "server_problem"]

DAYS = 3
"""How far back a server is asked if no range is chosen: the operators of AI Horde keep raw series so long (horde.md §7.1)."""

MOST_DAYS = 31
STEP = timedelta(minutes=5)
KEPT = 4


@dataclass(slots=True)
class _Answers:
    """What the server answered, by the range asked for, shared by all viewers; guarded by its lock."""

    found: OrderedDict[TimeRange, tuple[datetime, Exported]] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@st.cache_resource(show_spinner=False)
def _answers() -> _Answers:
    return _Answers()


def _client() -> PrometheusClient | None:
    secrets = st.secrets.to_dict() if st.secrets.load_if_toml_exists() else {}
    return configured_prometheus(os.environ, secrets, clock=SystemClock())


def server_name() -> str | None:
    """Return the configured server's host; null if none is configured, or its configuration cannot be used."""
    try:
        client = _client()
    except ConfigError:
        return None
    if client is None:
        return None
    with client:
        return client.name


def server_problem() -> str | None:
    """Return what of the configuration cannot be used."""
    try:
        client = _client()
    except ConfigError as error:
        return str(error)
    if client is not None:
        client.close()
    return None


def asked(span: TimeRange) -> Exported:
    """Return what the configured server has counted in a range, three days back without one; asked once for each range.

    Raises
    ------
    InputError
        The range is too long, or no server is configured.
    SourceUnavailable, SourceThrottled, SourceFormatError
        The server gives no answer that can be used. What it answered before stays.
    """
    answers = _answers()
    # one viewer asks at a time, the others then find the answer: an operator's server is not asked once for each of them
    with answers.lock:
        if span not in answers.found:
            now = SystemClock().now().astimezone(UTC)
            answers.found[span] = (now, _asked(span, now))
        answers.found.move_to_end(span)
        while len(answers.found) > KEPT:
            answers.found.popitem(last=False)
        return answers.found[span][1]


def asked_at(span: TimeRange) -> datetime | None:
    """Return when the server was asked for a range; null if it was not."""
    found = _answers().found.get(span)
    return None if found is None else found[0]


def last_asked() -> datetime | None:
    """Return when the server last answered, for whatever range; null if it never did."""
    answers = _answers()
    with answers.lock:
        return max((at for at, _ in answers.found.values()), default=None)


def ask_again(span: TimeRange) -> None:
    """Drop the answer for a range, so that the server is asked anew."""
    answers = _answers()
    with answers.lock:
        answers.found.pop(span, None)


def _asked(span: TimeRange, now: datetime) -> Exported:
    end = now if span.end is None else min(span.end, now)
    start = end - timedelta(days=DAYS) if span.start is None else span.start
    if not timedelta(0) < end - start <= timedelta(days=MOST_DAYS):
        rule = f"must lie before now and be at most {MOST_DAYS} days long; longer ones are read by the command, from files"
        raise InputError("range", "", f"{instant(start)} to {instant(end)}", rule)
    client = _client()
    if client is None:
        raise InputError("data", "", "prometheus", "are not configured on this server")
    with client:
        # one step more at the front: what was counted before the range is told from it
        answer = client.query_range(SERIES_SELECTOR, start=start - STEP, end=end, step=STEP)
        name = client.name
    imported = read_exports(ExportFile(name, msgspec.json.encode(answer)), window=(start, end))
    return exported_from(imported, title=f"{name}, {instant(start)} to {instant(end)}")
