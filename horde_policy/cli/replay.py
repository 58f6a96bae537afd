"""``replay``: what would these settings have done with the traffic on the fleet (issue 5)."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from horde_policy.cli.parquet_output import check_parquet_path, print_notes, write_parquet
from horde_policy.cli.replay_options import FleetOption, MoveOption
from horde_policy.cli.settings_option import SetOption, SettingsOption
from horde_policy.cli.warming import compiled
from horde_policy.imports.replay_inputs import ReplayInput, absence_notes, load_fleet, load_traffic
from horde_policy.replay.engine import replay as replayed
from horde_policy.replay.engine import warm_up
from horde_policy.replay.fleets import Fleet, moved_to
from horde_policy.replay.score import summary
from horde_policy.replay.sent import sent_requests
from horde_policy.replay.unserved import unserved, unserved_notes
from horde_policy.settings import ReplaySettings, load_settings

__all__ = ["register"]

TrafficOption = Annotated[Path, typer.Option("--traffic", metavar="T", help="Traffic: Parquet, CSV or JSON lines.")]
OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="The Parquet file to write: one row a request.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the summary on one line.")]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("replay")(replay)


def replay(
    traffic: TrafficOption,
    fleet: FleetOption,
    out: OutOption,
    settings: SettingsOption = None,
    set_: SetOption = None,
    move_fleet: MoveOption = False,
    as_json: JsonOption = False,
) -> None:
    """Replay traffic on a fleet under some settings: write one row a request, print the summary as JSON."""
    check_parquet_path(out, traffic, fleet, settings)
    in_force = load_settings(ReplaySettings(), environment=os.environ, file=settings, pairs=set_ or [])
    sent, workers = load_traffic(traffic), load_fleet(fleet)
    if move_fleet:
        workers = moved_with(workers, sent)
    absent = absence_notes(sent.frame, workers.frame)
    lost = unserved(sent.frame, workers.frame)
    unasked = unserved_notes(sent.frame.height, lost) if workers.frame.height else ()
    compiled(warm_up)
    with _progress() as told:
        run = replayed(sent.frame, workers.frame, in_force, progress=told)
    figures = summary(sent_requests(run, sent.frame, workers.frame, in_force), sent.frame, in_force)
    inputs = {"traffic": _origin(traffic, sent), "fleet": _origin(fleet, workers)}
    write_parquet(out, run, {"kind": "run", **inputs, "settings": figures["settings"]})
    print_notes([f"{p.level}: {p.subject}: {p.text}" for p in (*sent.problems, *workers.problems, *absent, *unasked)])
    if any(p.level == "problem" for p in absent) and workers.frame.height and not move_fleet:
        print_notes(["note: --move-fleet moves the fleet to the traffic's first day"])
    print_notes([f"{run.height} requests written to {out}"])
    print(json.dumps(inputs | figures | {"of_unserved_models": lost}, indent=None if as_json else 2, allow_nan=False))


def moved_with(workers: ReplayInput, sent: ReplayInput) -> ReplayInput:
    """Return a fleet that begins with the traffic: by whole days, so that hours of the day meet, where the traffic has dates."""
    first = sent.frame["created"].min()
    if not isinstance(first, datetime):
        return workers
    dated = sent.stamp is None or sent.stamp.get("dated") is not False
    moved = moved_to(Fleet(frame=workers.frame, stamp=workers.stamp or {}), first, whole_days=dated)
    return ReplayInput(frame=moved.frame, stamp=moved.stamp, problems=workers.problems)


def _origin(path: Path, given: ReplayInput) -> dict[str, Any]:
    """Return what goes with every result: the file, its rows, and what its stamp says (fill rule, seed, synthetic)."""
    return {"file": path.name, "rows": given.frame.height, "stamp": None if given.stamp is None else dict(given.stamp)}


@contextmanager
def _progress() -> Iterator[Callable[[float], None] | None]:
    """Show a bar with the time left on a terminal's stderr; elsewhere nothing."""
    console = Console(stderr=True)
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("replaying"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("replaying", total=1.0)
        yield lambda share: bar.update(task, completed=share)
