"""The options ``--settings`` and ``--set``, shared by the commands that need the allowance's settings."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from horde_policy.settings import AllowanceSettings, ReplaySettings, load_settings, settings_from_pairs

__all__ = ["SetOption", "SettingsOption", "allowance_settings"]

SettingsOption = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="A TOML file of settings; it wins over the environment."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="One setting; repeat it for several. It wins over the file."),
]


def allowance_settings(environment: Mapping[str, str], file: Path | None, pairs: list[str] | None) -> AllowanceSettings:
    """Return the settings in force for a look: the environment, then the file, then the pairs; the later wins.

    A file may hold a replay's settings too, which a look does not use; a pair that a look does not use is refused.

    >>> allowance_settings({"HORDE_TEXT_FREE_OUTPUT_FLOOR": "256"}, None, ["wait_full_s=30"]).differences()
    {'floor_tokens': 256, 'wait_full_s': 30.0}
    """
    loaded = load_settings(ReplaySettings(), environment=environment, file=file)
    own = AllowanceSettings(**{f.name: getattr(loaded, f.name) for f in fields(AllowanceSettings)})
    return settings_from_pairs(pairs or [], own, option="--set")
