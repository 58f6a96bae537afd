"""The sources that are configured: the demo, the public AI Horde, ``HORDE_URL``, recorded folders. None comes from a page.

Configuration is the environment and the secrets file, both as arguments. Listing sources asks nothing, and opens of a recorded
folder no more than what it is called.
"""

import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from horde_policy.clock import Clock
from horde_policy.errors import ConfigError, InputError, Problem
from horde_policy.frames.snapshot import SourceKind
from horde_policy.sources.demo import BUNDLED_FOLDER, DemoSource
from horde_policy.sources.horde import HordeClient, LiveSource, api_address, client_agent
from horde_policy.sources.recorded import RecordedSource, recorded_folders, recorded_title
from horde_policy.sources.source import Source

__all__ = ["DEMO_KEY", "PUBLIC_HORDE", "PUBLIC_KEY", "RECORDED_SETTING", "URL_KEY", "Catalogue", "Entry", "configured_sources"]

_log = logging.getLogger(__name__)

DEMO_KEY = "demo"
PUBLIC_KEY = "aihorde"
URL_KEY = "horde"
PUBLIC_HORDE = "https://aihorde.net/api"
URL_SETTING = "HORDE_URL"
RECORDED_SETTING = "HORDE_POLICY_RECORDED"
CONTACT_SETTING = "HORDE_POLICY_CONTACT"


@dataclass(frozen=True, slots=True)
class Entry:
    """One source that can be chosen.

    Attributes
    ----------
    key
        Names it in the page's address: letters, digits and hyphens.
    title
        As shown to people; a folder's name is not ours, so it is escaped where it is shown.
    where
        The host or folder behind it, never with a secret.
    build
        Makes the source; still asks nothing.
    api
        The address of a live horde's API; null for another kind.
    """

    key: str
    title: str
    kind: SourceKind
    where: str
    build: Callable[[], Source]
    api: str | None = None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What is configured, the demo first, and what of the configuration cannot be used."""

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...] = ()

    def keys(self) -> tuple[str, ...]:
        """Return the keys in order."""
        return tuple(entry.key for entry in self.entries)

    def entry(self, key: str) -> Entry:
        """Return the entry of a key.

        Raises
        ------
        InputError
            No such source is configured.
        """
        for entry in self.entries:
            if entry.key == key:
                return entry
        raise InputError("source", "", key, "must be one of " + ", ".join(self.keys()))

    def build(self, key: str) -> Source:
        """Return the source of a key, new; see :class:`horde_policy.sources.poller.Pollers` for sharing it."""
        return self.entry(key).build()


def _configured_url(environment: Mapping[str, str], secrets: Mapping[str, object]) -> tuple[str, str] | None:
    """Return the setting and the address: the environment first, then the secrets' HORDE_URL, then their [horde] url.

    Streamlit copies what stands at the top of the secrets file into the environment: an address that both hold is the file's.

    Raises
    ------
    ConfigError
        The file has a ``horde`` that is no section with ``url``.
    """
    at_the_top = str(secrets[URL_SETTING]) if URL_SETTING in secrets else None
    address = environment.get(URL_SETTING, "")
    if address.strip() and address != at_the_top:
        return URL_SETTING, address
    if at_the_top is not None:
        return f"{URL_SETTING} in the secrets file", at_the_top
    section = secrets.get("horde")
    if section is None:
        return None
    if not isinstance(section, Mapping) or "url" not in section:
        raise ConfigError("horde in the secrets file", "(hidden)", 'must be a section with url: [horde], then url = "https://…"')
    return "horde.url in the secrets file", str(section["url"])


def _slug(text: str, taken: set[str]) -> str:
    base = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "folder"
    key, number = base, 2
    while key in taken:
        key, number = f"{base}-{number}", number + 1
    taken.add(key)
    return key


def _live(key: str, title: str, address: str, setting: str, *, clock: Clock, agent: str) -> Entry:
    api = api_address(setting, address)

    def build() -> Source:
        return LiveSource(HordeClient(api, name=title, setting=setting, clock=clock, agent=agent))

    return Entry(key, title, "live", urlsplit(api).netloc, build, api)


def _recorded(folder: Path, taken: set[str]) -> Entry:
    name = folder.resolve().name
    key = _slug(f"recorded-{name}", taken)
    return Entry(key, recorded_title(folder), "recorded", str(folder), lambda: RecordedSource(folder))


def configured_sources(
    environment: Mapping[str, str],
    secrets: Mapping[str, object],
    *,
    clock: Clock,
    bundled: Path = BUNDLED_FOLDER / "recorded",
) -> Catalogue:
    """Return the catalogue of an environment and a secrets file.

    Parameters
    ----------
    environment
        ``HORDE_URL``; ``HORDE_POLICY_RECORDED``, folders separated as in ``PATH``, each a recorded folder or one of such;
        ``HORDE_POLICY_CONTACT``, which the ``Client-Agent`` header gives the horde's operators.
    secrets
        May hold ``HORDE_URL``, or a section ``horde`` with ``url``.
    bundled
        The recorded folders that come with the program, listed last.

    Examples
    --------
    >>> from horde_policy.clock import SystemClock
    >>> configured_sources({"HORDE_URL": "https://horde.example"}, {}, clock=SystemClock()).keys()[:3]
    ('demo', 'aihorde', 'horde')
    """
    agent = client_agent(environment.get(CONTACT_SETTING))
    problems: list[Problem] = []
    entries = [
        Entry(DEMO_KEY, "Demo horde", "demo", "bundled, synthetic", lambda: DemoSource(clock)),
        _live(PUBLIC_KEY, "AI Horde (public)", PUBLIC_HORDE, "the public AI Horde", clock=clock, agent=agent),
    ]
    try:
        configured = _configured_url(environment, secrets)
        if configured is not None:
            setting, address = configured
            title = urlsplit(api_address(setting, address)).netloc
            entries.append(_live(URL_KEY, title, address, setting, clock=clock, agent=agent))
    except ConfigError as error:
        problems.append(Problem("bad_setting", error.setting, f"{error}; this source is left out"))
    taken = {entry.key for entry in entries}
    given = [Path(text.strip()) for text in environment.get(RECORDED_SETTING, "").split(os.pathsep) if text.strip()]
    for folder in given:
        found = recorded_folders(folder)
        if not found:
            # Where it lies on the server is nobody's business but the log's.
            _log.warning("setting %s: %r holds no recorded folder; it is left out", RECORDED_SETTING, str(folder))
            named = folder.name or folder.resolve().name
            text = f"setting {RECORDED_SETTING}: {named!r} holds no recorded folder; it is left out"
            problems.append(Problem("bad_setting", RECORDED_SETTING, text))
        entries.extend(_recorded(inner, taken) for inner in found)
    entries.extend(_recorded(inner, taken) for inner in recorded_folders(bundled))
    return Catalogue(tuple(entries), tuple(problems))
