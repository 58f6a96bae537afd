"""``fleet from-snapshot``, ``fleet from-history`` and ``fleet parametric``: fleets for a replay (issues 3 and 5)."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from horde_policy.cli.history import FromOption, SourceOption, StoreArgument, ToOption
from horde_policy.cli.parquet_output import check_parquet_path, print_notes, print_stamp, write_parquet
from horde_policy.cli.sources_option import instant_named
from horde_policy.clock import SystemClock
from horde_policy.errors import InputError
from horde_policy.history.fleets import fleet_from_history
from horde_policy.history.store import HistoryStore
from horde_policy.imports.cells import RULES, parsed
from horde_policy.replay.fleets import EVER, Fleet, demand_weights, fleet_figures, fleet_from_snapshot
from horde_policy.replay.parametric import CONTEXT_SIZES, OUTPUT_SIZES, Churn, ParametricFleet, parametric_fleet
from horde_policy.sources.recorded import load_recorded
from horde_policy.views.text import age, count_of

__all__ = ["register"]

OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="The Parquet file to write.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")]
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A folder of recorded answers, with workers_text.json.")]
SeedOption = Annotated[int, typer.Option("--seed", metavar="S", help="Of all draws.")]
WorkersOption = Annotated[int, typer.Option("--workers", help="How many workers.")]
ModelsOption = Annotated[int, typer.Option("--models", help="How many models; each has a worker while there are enough.")]
ModelsFromOption = Annotated[
    Path | None, typer.Option("--models-from", metavar="DIR", help="Recorded folder whose requested models are served instead.")
]
MedianOption = Annotated[float, typer.Option("--speed-median", help="Median speed of a job, tok/s.")]
P95Option = Annotated[float, typer.Option("--speed-p95", help="95th percentile of the speeds, tok/s.")]
SingleOption = Annotated[float, typer.Option("--single-thread", help="Share of workers that run one job at a time.")]
UnmeasuredOption = Annotated[float, typer.Option("--unmeasured", help="Share of workers that have completed no job yet.")]
LengthsOption = Annotated[
    str, typer.Option("--max-length", metavar="SIZE:WEIGHT,…", help="Output sizes that workers declare, with weights.")
]
ContextsOption = Annotated[
    str, typer.Option("--max-context-length", metavar="SIZE:WEIGHT,…", help="Contexts that workers declare, with weights.")
]
ChurnOption = Annotated[float | None, typer.Option("--churn-hours", help="Workers come and go for so many hours from --start.")]
StartOption = Annotated[str | None, typer.Option("--start", metavar="INSTANT", help="Where the coming and going starts.")]
OnlineOption = Annotated[float, typer.Option("--mean-online-h", help="Mean hours a worker stays online.")]
AwayOption = Annotated[float, typer.Option("--mean-away-h", help="Mean hours a worker stays away.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Make a fleet for a replay.")
    group.command("from-snapshot")(from_snapshot)
    group.command("from-history")(from_history)
    group.command("parametric")(parametric)
    app.add_typer(group, name="fleet")


def from_snapshot(folder: FolderArgument, out: OutOption, as_json: JsonOption = False) -> None:
    """Take the workers of a recorded folder as they stood: online from 1970 without end, maintenance and flagged left out."""
    check_parquet_path(out, folder)
    snapshot = load_recorded(folder)
    _finish(fleet_from_snapshot(snapshot), out, as_json, [f"{p.level}: {p.subject}: {p.text}" for p in snapshot.problems])


def from_history(
    store: StoreArgument,
    out: OutOption,
    from_: FromOption = None,
    to: ToOption = None,
    source: SourceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take the workers of recorded days: when they were online, as what, how fast in the mean, measured or not."""
    check_parquet_path(out, store)
    start, end = (None if text is None else instant_named(text, option) for option, text in (("--from", from_), ("--to", to)))
    history = HistoryStore(store, read_only=True)
    try:
        found = fleet_from_history(history, start or EVER, end or SystemClock().now(), source=source)
    finally:
        history.close()
    stamp = found.stamp
    gaps = f"{count_of(stamp['gaps'], 'gap')}, {age(stamp['gap_s'])} in all"
    notes = [f"note: nothing was recorded in {gaps}"] if stamp["gaps"] else []
    _finish(Fleet(frame=found.frame, stamp={**stamp, **fleet_figures(found.frame)}), out, as_json, notes)


def parametric(
    out: OutOption,
    seed: SeedOption,
    workers: WorkersOption = 35,
    models: ModelsOption = 25,
    models_from: ModelsFromOption = None,
    speed_median: MedianOption = 10.0,
    speed_p95: P95Option = 50.0,
    single_thread: SingleOption = 0.8,
    unmeasured: UnmeasuredOption = 0.05,
    max_length: LengthsOption = "",
    max_context_length: ContextsOption = "",
    churn_hours: ChurnOption = None,
    start: StartOption = None,
    mean_online_h: OnlineOption = 8.0,
    mean_away_h: AwayOption = 4.0,
    as_json: JsonOption = False,
) -> None:
    """Draw a synthetic fleet: lognormal speeds, declared sizes and models; workers may come and go."""
    check_parquet_path(out, models_from)
    wanted = ParametricFleet(
        seed=seed,
        workers=workers,
        models=models if models_from is None else _models(models_from),
        speed_median_tok_per_s=speed_median,
        speed_p95_tok_per_s=speed_p95,
        single_thread_share=single_thread,
        unmeasured_share=unmeasured,
        output_sizes=_sizes("--max-length", max_length) or dict(OUTPUT_SIZES),
        context_sizes=_sizes("--max-context-length", max_context_length) or dict(CONTEXT_SIZES),
        churn=_churn(churn_hours, start, mean_online_h, mean_away_h),
    )
    _finish(parametric_fleet(wanted), out, as_json, [])


def _finish(fleet: Fleet, out: Path, as_json: bool, notes: list[str]) -> None:
    write_parquet(out, fleet.frame, fleet.stamp)
    if not fleet.frame.height:
        notes = [*notes, "problem: fleet: it has no worker: a replay on it serves no request"]
    print_notes([*notes, f"{fleet.stamp['workers']} workers in {fleet.stamp['periods']} periods written to {out}"])
    print_stamp(fleet.stamp, as_json=as_json)


def _models(folder: Path) -> list[str]:
    weights = demand_weights(load_recorded(folder))
    if weights is None:
        raise InputError("--models-from", "", str(folder), "has no request counts (stats_text_models.json) to take models from")
    return sorted(weights.counts)


def _sizes(option: str, text: str) -> dict[int, float]:
    sizes: dict[int, float] = {}
    for part in filter(None, text.split(",")):
        size, _, weight = part.partition(":")
        try:
            sizes[int(size)] = float(weight or 1)
        except ValueError:
            raise InputError(option, "", part, "must be a size and its weight, as 512:0.4") from None
    return sizes


def _churn(hours: float | None, start: str | None, online_h: float, away_h: float) -> Churn | None:
    if hours is None:
        if start is not None:
            raise InputError("--start", "", start, "needs --churn-hours: without it workers are online for ever")
        return None
    try:
        at = parsed(start, "instant")
    except ValueError:
        at = None
    if not isinstance(at, datetime):
        raise InputError("--start", "", start, "is missing: --churn-hours needs it" if start is None else RULES["instant"])
    return Churn(start=at, hours=hours, mean_online_h=online_h, mean_away_h=away_h)
