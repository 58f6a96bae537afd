"""The options that name a source, shared by the commands that take one look, and the snapshot they give."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from horde_policy.clock import Clock
from horde_policy.errors import InputError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.sources.demo import DemoSource
from horde_policy.sources.horde import fetch_snapshot
from horde_policy.sources.recorded import load_recorded

__all__ = ["URL_VARIABLE", "DemoOption", "RecordedOption", "SourceChoice", "UrlOption", "load_snapshot"]

URL_VARIABLE = "HORDE_URL"
"""Names the horde in the environment; used when no option names a source."""

UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help=f"A horde's address; else {URL_VARIABLE} in the environment."),
]
RecordedOption = Annotated[
    Path | None, typer.Option("--recorded", metavar="DIR", help="A folder of recorded answers, with workers_text.json.")
]
DemoOption = Annotated[bool, typer.Option("--demo", help="The bundled demo horde, which is made up; no network.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChoice:
    """What the options name; at most one of the three."""

    url: str | None = None
    recorded: Path | None = None
    demo: bool = False

    def __post_init__(self) -> None:
        options = {"--url": self.url is not None, "--recorded": self.recorded is not None, "--demo": self.demo}
        given = [option for option, named in options.items() if named]
        if len(given) > 1:
            raise InputError("source", "", " ".join(given), "must be one source")


def load_snapshot(choice: SourceChoice, environment: Mapping[str, str], clock: Clock) -> Snapshot:
    """Return the snapshot of the source that the options name, else of the horde that the environment names.

    Raises
    ------
    InputError
        No source is named, or the folder cannot be used.
    ConfigError
        The address is none.
    SourceError
        The horde gives no usable answer.
    """
    if choice.recorded is not None:
        return load_recorded(choice.recorded)
    if choice.demo:
        return DemoSource(clock).load()
    address = choice.url if choice.url is not None else environment.get(URL_VARIABLE, "").strip()
    if not address and choice.url is None:
        rule = f"is given: name one by --url, --recorded or --demo, or by {URL_VARIABLE} in the environment"
        raise InputError("source", "", None, rule)
    return fetch_snapshot(address, clock=clock)
