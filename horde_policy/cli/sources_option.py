"""The options that name a source, shared by the commands that take one look, and the snapshot they give."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from horde_policy.clock import Clock
from horde_policy.errors import InputError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.sources.catalogue import CONTACT_SETTING
from horde_policy.sources.demo import DemoSource
from horde_policy.sources.horde import client_agent, fetch_snapshot
from horde_policy.sources.recorded import load_recorded
from horde_policy.views.text import visible

__all__ = [
    "URL_VARIABLE",
    "AtOption",
    "DemoOption",
    "RecordedOption",
    "SourceChoice",
    "StoreOption",
    "UrlOption",
    "instant_named",
    "load_snapshot",
    "named_address",
    "say_unrecorded",
]

URL_VARIABLE = "HORDE_URL"
"""Names the horde in the environment; used when no option names a source."""

UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help=f"A horde's address; else {URL_VARIABLE} in the environment."),
]
RecordedOption = Annotated[
    Path | None, typer.Option("--recorded", metavar="DIR", help="A folder of recorded answers, with workers_text.json.")
]
StoreOption = Annotated[
    str | None, typer.Option("--store", metavar="DB", help="A history: an SQLite file or a database URL; see --at.")
]
AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="T", help="With --store: the instant, ISO 8601, UTC unless it says otherwise; else the newest."),
]
DemoOption = Annotated[bool, typer.Option("--demo", help="The bundled demo horde, which is made up; no network.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChoice:
    """What the options name; at most one source, and an instant only with a store."""

    url: str | None = None
    recorded: Path | None = None
    store: str | None = None
    at: str | None = None
    demo: bool = False

    def __post_init__(self) -> None:
        options = {
            "--url": self.url is not None,
            "--recorded": self.recorded is not None,
            "--store": self.store is not None,
            "--demo": self.demo,
        }
        given = [option for option, named in options.items() if named]
        if len(given) > 1:
            raise InputError("source", "", " ".join(given), "must be one source")
        if self.at is not None and self.store is None:
            raise InputError("--at", "", self.at, "needs --store")


def load_snapshot(choice: SourceChoice, environment: Mapping[str, str], clock: Clock) -> Snapshot:
    """Return the snapshot of the source that the options name, else of the horde that the environment names.

    Raises
    ------
    InputError
        No source is named, the folder cannot be used, or the instant is none.
    ConfigError
        The address is none.
    SourceError
        The horde gives no usable answer.
    StoreError
        The history cannot be read.
    """
    if choice.recorded is not None:
        return load_recorded(choice.recorded)
    if choice.store is not None:
        return _from_store(choice.store, clock.now(), None if choice.at is None else instant_named(choice.at))
    if choice.demo:
        return DemoSource(clock).load()
    setting, address = named_address(choice.url, environment)
    if not address and choice.url is None:
        rule = f"is given: name one by --url, --recorded, --store or --demo, or by {URL_VARIABLE} in the environment"
        raise InputError("source", "", None, rule)
    return fetch_snapshot(address, clock=clock, agent=client_agent(environment.get(CONTACT_SETTING)), setting=setting)


def named_address(url: str | None, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the setting that names a horde, and its address: the option, else the environment's; empty for neither.

    Examples
    --------
    >>> named_address(None, {"HORDE_URL": "https://horde.example"}), named_address("https://a.example", {})
    (('HORDE_URL', 'https://horde.example'), ('--url', 'https://a.example'))
    """
    if url is not None:
        return "--url", url
    return URL_VARIABLE, environment.get(URL_VARIABLE, "").strip()


def instant_named(text: str, option: str = "--at") -> datetime:
    """Return the instant that an option's text names, in UTC.

    Raises
    ------
    InputError
        It names none.

    Examples
    --------
    >>> instant_named("2026-11-29T20:00:00+01:00").isoformat(), instant_named("2026-11-29").isoformat()
    ('2026-11-29T19:00:00+00:00', '2026-11-29T00:00:00+00:00')
    """
    try:
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InputError(option, "", text, "must be an instant as 2026-11-29T12:00:00Z") from error


def say_unrecorded(look: Snapshot) -> None:
    """Say on stderr that the figures are of an earlier poll than the instant asked for: in JSON alone it is overlooked."""
    for problem in look.problems:
        if problem.code == "not_recorded":
            print(f"{problem.level}: {visible(problem.subject)}: {visible(problem.text)}", file=sys.stderr)


def _from_store(store: str, now: datetime, at: datetime | None) -> Snapshot:
    # read here and not above: the other sources need no database, and a command should start fast
    from horde_policy.history.reading import snapshot_at
    from horde_policy.history.store import HistoryStore
    from horde_policy.history.unrecorded import unrecorded_at

    history = HistoryStore(store, read_only=True)
    try:
        look = snapshot_at(history, at or now)
        # Without an instant the newest is asked for, and its age is said.
        unrecorded = None if at is None else unrecorded_at(history, at, look.source)
    finally:
        history.close()
    return look if unrecorded is None else replace(look, problems=(*look.problems, unrecorded))
