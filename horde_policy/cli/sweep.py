"""``sweep``: try settings on traffic and a fleet, write every point tried, say what to choose and how sure that is (issue 6)."""

import json
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from horde_policy.cli.main import EXIT_INTERRUPTED
from horde_policy.cli.parquet_output import check_not_input, check_parquet_path, print_notes, write_parquet
from horde_policy.cli.replay_options import FleetOption, MoveOption
from horde_policy.cli.settings_option import SetOption, SettingsOption
from horde_policy.cli.traffic_options import ModelsFromOption, weights_for
from horde_policy.cli.warming import compiled
from horde_policy.clock import SystemClock
from horde_policy.errors import InputError, Problem
from horde_policy.imports.replay_inputs import absence_notes
from horde_policy.replay.fill import ModelWeights
from horde_policy.replay.fill_rule import FillRule
from horde_policy.replay.unserved import unserved, unserved_notes
from horde_policy.settings import ReplaySettings, load_settings
from horde_policy.sweep.cluster import Cluster
from horde_policy.sweep.days import counted_days, day_hours
from horde_policy.sweep.grid import Plan, load_grid, plan
from horde_policy.sweep.inputs import SweepInputs, load_inputs
from horde_policy.sweep.judge import DEFAULT_CONSTRAINTS, DEFAULT_OBJECTIVES, Judgement, Question, judge
from horde_policy.sweep.parts import Parts
from horde_policy.sweep.proposal import Proposal, propose
from horde_policy.sweep.run import Pool, Sweep, SweepProgress, Threads, run_sweep
from horde_policy.sweep.sentences import parse_constraint, parse_objective
from horde_policy.sweep.sole_writer import sole_writer
from horde_policy.sweep.stage import check_plan
from horde_policy.sweep.unserved import UNSERVED, unserved_of_stamp
from horde_policy.sweep.warm import warm_up_sweep
from horde_policy.views.proposal import proposal_html, proposal_markdown
from horde_policy.views.proposal_words import caveat_sentence, headline, summary_sentences
from horde_policy.views.sweep_words import constraint_words, days_words, objective_words
from horde_policy.views.text import count, count_of, seconds

__all__ = ["register"]

LINE_EVERY_S = 10.0

TrafficOption = Annotated[
    Path, typer.Option("--traffic", metavar="T", help="Traffic for replays, or any trace that traffic convert reads.")
]
GridOption = Annotated[
    Path,
    typer.Option(
        "--grid",
        metavar="G.toml",
        help="Settings with a value, a list or a range ({from, to, step} or {from, to, count, scale}) each; load, seed, fill, "
        "days; search (grid, random, sobol), points, draw_seed.",
    ),
]
OutOption = Annotated[
    Path, typer.Option("--out", metavar="S.parquet", help="The file to write: one row per settings, load, seed, fill and day.")
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", metavar="N", min=1, help="Replays at once; all cores if not said.")
]
DaskOption = Annotated[
    str | None, typer.Option("--dask", metavar="ADDRESS", help="Replay on a Dask cluster, as tcp://10.0.0.1:8786.")
]
WantOption = Annotated[
    list[str] | None,
    typer.Option("--want", metavar="OBJECTIVE", help=f"As '{DEFAULT_OBJECTIVES[0]}'; repeat it: the first decides."),
]
MustOption = Annotated[
    list[str] | None, typer.Option("--must", metavar="CONSTRAINT", help="As 'p90 wait of registered ≤ 120 s' (or <=); repeat it.")
]
HoldOutOption = Annotated[
    str | None,
    typer.Option("--hold-out", metavar="DAYS", help="Days that have no say, as 6,7 or none; the last third if not said."),
]
ProposalOption = Annotated[
    Path | None, typer.Option("--proposal", metavar="FILE", help="Write a change proposal too: FILE.md or FILE.html.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the judgement as JSON.")]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("sweep")(sweep)


def sweep(
    traffic: TrafficOption,
    fleet: FleetOption,
    grid: GridOption,
    out: OutOption,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    models_from: ModelsFromOption = None,
    want: WantOption = None,
    must: MustOption = None,
    hold_out: HoldOutOption = None,
    proposal: ProposalOption = None,
    move_fleet: MoveOption = False,
    as_json: JsonOption = False,
) -> None:
    """Try settings on traffic and a fleet; the settings in force (environment, --settings, --set) are the baseline.

    What is done is kept beside the file to write: the same command goes on after a stop, at any moment.
    """
    check_parquet_path(out, traffic, fleet, grid, settings, models_from)
    _check_document_path(proposal)
    if proposal is not None:
        check_not_input(proposal, traffic, fleet, grid, settings, models_from)
    pool = _pool(workers, dask)
    question = _question(want, must, hold_out)
    typed = load_grid(grid)
    baseline = load_settings(ReplaySettings(), environment=os.environ, file=settings, pairs=set_ or [])
    inputs = load_inputs(traffic, fleet, _weights(typed.fills, models_from), move_fleet=move_fleet)
    wanted = check_plan(plan(typed, baseline), inputs)
    _check_held_out(question, wanted, inputs)
    problems = (*inputs.trace.problems, *absence_notes(inputs.trace.frame, inputs.fleet), *_unserved(inputs))
    print_notes([*(f"{p.level}: {p.subject}: {p.text}" for p in problems), *_plan_notes(wanted), *_day_notes(wanted, inputs)])
    with sole_writer(out, f"process {os.getpid()} on {platform.node()} since {SystemClock().now():%Y-%m-%d %H:%M:%S} UTC"):
        found = _run(inputs, wanted, pool, out)
    if found.frame["baseline"].any():
        _tell(found, question, proposal, as_json=as_json)
    if found.missing:
        raise typer.Exit(EXIT_INTERRUPTED)


def _run(inputs: SweepInputs, wanted: Plan, pool: Pool, out: Path) -> Sweep:
    """Replay what is not done yet and write all of it; what is done is kept until nothing is missing."""
    parts = Parts(out.with_name(f"{out.name}.parts"))
    if isinstance(pool, Threads):  # a cluster's workers compile for themselves
        compiled(warm_up_sweep)
    with _cancelling() as cancel, _progress() as told:
        found = run_sweep(inputs, wanted, pool=pool, parts=parts, progress=_resuming(told, parts), cancel=cancel)
    if found.frame.is_empty():
        with suppress(OSError):  # what an earlier sweep left there stays
            parts.folder.rmdir()
        state = "is as it was" if out.exists() else "is not written"
        print_notes([f"stopped before any replay was done: there is nothing to judge, and {out} {state}"])
        raise typer.Exit(EXIT_INTERRUPTED)
    write_parquet(out, found.frame, dict(found.stamp))
    if found.missing:
        not_done = f"stopped: {count(found.missing)} of {count(wanted.replays)} replays are not done"
        comparable = bool(found.frame["baseline"].any())
        judged = "and judged" if comparable else "and not judged, since the settings in force are not replayed yet"
        print_notes([f"{not_done}; what is done is in {out} {judged}; the same command goes on"])
    else:
        parts.clear()
        print_notes([f"{count_of(found.frame.height, 'row')} of {count_of(len(wanted.points), 'point')} written to {out}"])
    return found


def _unserved(inputs: SweepInputs) -> tuple[Problem, ...]:
    """Return a word on requests of models that no worker serves, where the traffic itself names its models."""
    frame = inputs.trace.frame
    if "models" not in frame.columns or frame["models"].null_count() or inputs.fleet.is_empty():
        return ()
    return unserved_notes(frame.height, unserved(frame, inputs.fleet))


def _check_document_path(path: Path | None) -> None:
    if path is not None and path.suffix.lower() not in (".md", ".html"):
        raise InputError("--proposal", "", str(path), "must end in .md or .html")
    if path is not None and not path.parent.is_dir():
        raise InputError("--proposal", "", str(path), "must lie in a folder that is there")


def _pool(workers: int | None, dask: str | None) -> Pool:
    if dask is None:
        return Threads(workers)
    if workers is not None:
        raise InputError("--workers", "", workers, "belongs to this machine; a Dask cluster has its own workers")
    return Cluster(dask)


def _question(want: list[str] | None, must: list[str] | None, hold_out: str | None) -> Question:
    sentences = (want or DEFAULT_OBJECTIVES, (must or ()) if want or must else DEFAULT_CONSTRAINTS)
    return Question(
        objectives=tuple(parse_objective(sentence) for sentence in sentences[0]),
        constraints=tuple(parse_constraint(sentence) for sentence in sentences[1]),
        holdout_days=_days(hold_out),
    )


def _days(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip() and part.strip() != "none"]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError("--hold-out", "", text, "must be days as 6,7, or none")
    return tuple(sorted({int(part) for part in parts}))


def _check_held_out(question: Question, wanted: Plan, inputs: SweepInputs) -> None:
    """Refuse a day held out that the sweep does not have or that is not whole, and one day too many, before any work."""
    days = counted_days(_hours(wanted, inputs))
    held = question.holdout_days or ()
    if not set(held) <= set(days):
        raise InputError(
            "--hold-out", "", ",".join(map(str, held)), f"must be among the whole days of this sweep: {days_words(days)}"
        )
    if set(held) == set(days):
        raise InputError("--hold-out", "", ",".join(map(str, held)), "must leave a day to choose on")


def _hours(wanted: Plan, inputs: SweepInputs) -> dict[int, float]:
    """Return the hours of each day that is kept."""
    hours = dict(enumerate(day_hours(inputs), 1))
    return {day: hours[day] for day in wanted.days or hours}


def _day_notes(wanted: Plan, inputs: SweepInputs) -> list[str]:
    """Return a word on each day that is kept and is not whole."""
    hours = _hours(wanted, inputs)
    short = [{"day": day, "hours": hours[day]} for day in hours if day not in counted_days(hours)]
    return [caveat_sentence("short_day", facts)[0] for facts in short]


def _weights(fills: tuple[str | None, ...], folder: Path | None) -> ModelWeights | None:
    """Return how often each model is asked for, if any fill rule of the grid weighs models."""
    rules = [FillRule.parsed(fill) for fill in fills if fill is not None]
    return next((weights_for(rule, folder) for rule in rules if rule.models == "weighted"), None)


def _plan_notes(wanted: Plan) -> list[str]:
    replays = f"{count_of(len(wanted.points), 'point')} under {count_of(len(wanted.scenarios), 'scenario')}"
    return [replays, *(f"left out: {reason} ({count(n)})" for reason, n in wanted.dropped.items())]


@contextmanager
def _cancelling() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C stop the sweep with what is done kept, and a second one end the program."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop.is_set
        return
    before = signal.getsignal(signal.SIGINT)

    def stopped(_signal: int, _frame: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stopped)
    try:
        yield stop.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _progress_words(progress: SweepProgress) -> str:
    left = "" if progress.left_s is None else f", {seconds(progress.left_s)} left"
    return f"{count(progress.done)} of {count_of(progress.total, 'replay')}{left}"


def _resuming(told: Callable[[SweepProgress], None], parts: Parts) -> Callable[[SweepProgress], None]:
    """Tell first, and once, that a sweep goes on from what was done before, if it does."""
    begun = False

    def each(progress: SweepProgress) -> None:
        nonlocal begun
        if not begun and progress.done:
            done = f"{count(progress.done)} of {count(progress.total)} replays are done already, in {parts.folder}"
            print_notes([f"going on with a sweep that was stopped: {done}"])
        begun = True
        told(progress)

    return each


@contextmanager
def _progress() -> Iterator[Callable[[SweepProgress], None]]:
    """Show a bar with the time left on a terminal's stderr; elsewhere a line now and then."""
    if not sys.stderr.isatty():
        last = [time.monotonic()]

        def line(progress: SweepProgress) -> None:
            if time.monotonic() - last[0] >= LINE_EVERY_S:
                last[0] = time.monotonic()
                print_notes([_progress_words(progress)])

        yield line
        return
    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("sweeping", total=1.0)
        yield lambda progress: bar.update(task, completed=progress.share, description=_progress_words(progress))


def _tell(found: Sweep, question: Question, path: Path | None, *, as_json: bool) -> None:
    answer = judge(found.frame, question)
    try:
        proposed = propose(answer, found.stamp)
    except InputError:  # nothing meets the constraints
        proposed = None
    if proposed is not None and path is not None:
        _write_document(path, proposed)
    if proposed is None and path is not None:
        print_notes([f"{path} is not written: no settings meet the constraints"])
    if as_json:
        print(json.dumps(_as_data(found, answer, proposed), indent=2, allow_nan=False))
        return
    for objective in question.objectives:
        print(f"want: {objective_words(objective)}")
    for constraint in question.constraints:
        print(f"must: {constraint_words(constraint)}")
    if proposed is None:
        print("No settings that were tried meet the constraints.")
        return
    print(headline(proposed))
    for sentence in summary_sentences(proposed):
        print(sentence)
    for caveat in proposed.caveats:
        if caveat.code in ("partial", "short_day", "no_whole_day", "unserved_models"):
            print(caveat_sentence(caveat.code, caveat.facts)[0])
    for line in proposed.environment:
        print(line.line)


def _write_document(path: Path, proposed: Proposal) -> None:
    made_at = SystemClock().now()
    write = proposal_markdown if path.suffix.lower() == ".md" else proposal_html
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(write(proposed, made_at=made_at), encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise InputError("--proposal", "", str(path), f"cannot be written: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)
    print_notes([f"proposal written to {path}"])


def _as_data(found: Sweep, answer: Judgement, proposed: Proposal | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "points": answer.points.height,
        "dropped": dict(found.stamp["dropped"]),
        UNSERVED: unserved_of_stamp(found.stamp),
        "objectives": [str(objective) for objective in answer.question.objectives],
        "constraints": [str(constraint) for constraint in answer.question.constraints],
        "chosen_days": list(answer.chosen_days),
        "holdout_days": list(answer.holdout_days),
        "short_days": [{"day": day, "hours": hours} for day, hours in answer.short_days.items()],
        "seeds": answer.seeds,
        "decision": answer.decision,
        "best": answer.best,
        "recommended": answer.recommended,
        "certainty": answer.certainty,
        "sensitivities": [asdict(each) for each in answer.sensitivities],
    }
    if proposed is None:
        return data | {"proposal": None}
    checks = [
        {
            "constraint": str(c.constraint),
            "value": c.value,
            "limit": c.limit,
            "met_share": c.met_share,
            "on_holdout": c.met_on_holdout,
        }
        for c in proposed.checks
    ]
    return data | {
        "proposal": {
            "headline": headline(proposed),
            "settings": asdict(proposed.settings),
            "digest": proposed.settings.digest(),
            "environment": [line.line for line in proposed.environment],
            "comparisons": [asdict(each) for each in proposed.comparisons],
            "checks": checks,
            "expected": [asdict(each) for each in proposed.expected],
            "caveats": [{"code": c.code, **c.facts} for c in proposed.caveats],
        }
    }
