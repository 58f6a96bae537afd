"""The page on traffic and fleets names every format, field, rule and option that there is."""

import re
from pathlib import Path

from typer.main import get_command

from horde_policy.cli.main import build_app
from horde_policy.imports.traces import FORMAT_NAMES
from horde_policy.replay.fill_rule import CLIENT_SIZES, LADDER, MAX_LENGTH_RULES, MODELS_RULES, FillRule

PAGE = (Path(__file__).parents[3] / "docs" / "traffic-and-fleets.md").read_text(encoding="utf-8")


def test_every_format_and_field_is_documented() -> None:
    for name in FORMAT_NAMES:
        assert f"| `{name}` |" in PAGE
    defaults = dict(part.split("=") for part in str(FillRule()).split(","))
    for field, default in defaults.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{field}` |"))
        assert f"`{default}`" in row
    for word in (*MAX_LENGTH_RULES, *MODELS_RULES):
        assert re.search(rf"`{word}[:`]", PAGE)
    assert ", ".join(str(size) for size in LADDER) in PAGE
    assert ", ".join(str(size) for size in CLIENT_SIZES) in PAGE


def test_every_option_that_the_page_names_is_there() -> None:
    app = get_command(build_app())
    groups = [app.commands[name] for name in ("traffic", "fleet")]  # type: ignore[attr-defined]
    commands = [command for group in groups for command in group.commands.values()]
    commands += [app.commands[name] for name in ("replay", "sweep")]  # type: ignore[attr-defined]
    there = {option for command in commands for one in command.params for option in one.opts}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) <= there
