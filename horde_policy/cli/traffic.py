"""``traffic``: ``convert`` makes any supported file of requests into traffic for a replay, under a named fill rule (issue 5)."""

import tomllib
from pathlib import Path
from typing import Annotated

import typer

from horde_policy.cli.parquet_output import check_parquet_path, print_notes, print_stamp, write_parquet
from horde_policy.cli.traffic_from_metrics import from_metrics
from horde_policy.cli.traffic_options import (
    FillOption,
    JsonOption,
    ModelsFromOption,
    OutOption,
    emptiness_notes,
    instant_of,
    weights_for,
)
from horde_policy.errors import InputError
from horde_policy.imports.trace_frame import TraceOptions
from horde_policy.imports.traces import FORMAT_NAMES, load_trace
from horde_policy.replay.fill import filled
from horde_policy.replay.fill_rule import FillRule

__all__ = ["register"]

InArgument = Annotated[Path, typer.Argument(metavar="IN", help="The file: its format is told by content.")]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="The format, if content does not tell: " + ", ".join(FORMAT_NAMES))
]
ThinOption = Annotated[
    float, typer.Option("--thin", metavar="F", help="Keep this share of rows (of clients, where a trace has any).")
]
SuperposeOption = Annotated[
    int, typer.Option("--superpose", metavar="K", help="Lay K copies over each other, moved by up to 45 min.")
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", metavar="S", help="Of the moves, and of what must be drawn (ServeGen).")
]
FromOption = Annotated[
    float | None, typer.Option("--from-s", help="Leave out requests earlier after the first than so many seconds.")
]
ToOption = Annotated[float | None, typer.Option("--to-s", help="Leave out requests from so many seconds after the first on.")]
SegmentOption = Annotated[int | None, typer.Option("--segment", help="Which stretch to take, from 1, where the clock restarts.")]
OriginOption = Annotated[str | None, typer.Option("--origin", metavar="INSTANT", help="Where a clock without a date starts.")]
ChatOption = Annotated[
    bool | None, typer.Option("--chat/--no-chat", help="Whether these are chats, where the trace does not say.")
]
NameOption = Annotated[str | None, typer.Option("--name", help="The trace's name in the keys of its draws; else the file's.")]
SizesOption = Annotated[
    Path | None, typer.Option("--sizes", metavar="FILE", help="ServeGen's size distributions for these rates.")
]
ModelMapOption = Annotated[
    Path | None,
    typer.Option("--model-map", metavar="FILE", help="TOML for models=mapped: a trace's model = one or several of the fleet's."),
]
AliasKeyOption = Annotated[
    Path | None,
    typer.Option("--alias-key-file", metavar="FILE", help="Key of the aliases' hash, to have the same clients in several logs."),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Make traffic for a replay.")
    group.command("convert")(convert)
    group.command("from-metrics")(from_metrics)
    app.add_typer(group, name="traffic")


def convert(
    in_: InArgument,
    out: OutOption,
    format_name: FormatOption = None,
    fill: FillOption = "",
    thin: ThinOption = 1.0,
    superpose: SuperposeOption = 1,
    seed: SeedOption = None,
    from_s: FromOption = None,
    to_s: ToOption = None,
    segment: SegmentOption = None,
    origin: OriginOption = None,
    chat: ChatOption = None,
    name: NameOption = None,
    sizes: SizesOption = None,
    models_from: ModelsFromOption = None,
    model_map: ModelMapOption = None,
    alias_key_file: AliasKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Turn a public trace, a server log or a file of our own schema into traffic; say what was kept, refused and assigned."""
    check_parquet_path(out, in_, models_from, model_map, alias_key_file)
    rule = FillRule.parsed(fill)
    options = TraceOptions(
        name=name,
        origin=instant_of("--origin", origin),
        segment=segment,
        chat=chat,
        from_s=from_s,
        to_s=to_s,
        seed=seed,
    )
    weights = weights_for(rule, models_from)
    mapped = None if model_map is None else _model_map(model_map)
    key = None if alias_key_file is None else _bytes(alias_key_file)
    trace = load_trace(in_, options, format_name=format_name, sizes=sizes, alias_key=key)
    traffic = filled(trace, rule, weights=weights, model_map=mapped, thin=thin, superpose=superpose, seed=seed or 0)
    write_parquet(out, traffic.frame, traffic.stamp)
    print_notes([f"{p.level}: {p.subject}: {p.text}" for p in trace.problems] + emptiness_notes(traffic))
    print_notes([f"{traffic.frame.height} requests written to {out}"])
    print_stamp(traffic.stamp, as_json=as_json)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError("file", "", str(path), f"cannot be read: {error.strerror}") from error


def _model_map(path: Path) -> dict[str, list[str]]:
    """Return a map out of TOML lines like ``"GPT-4" = ["koboldcpp/a", "koboldcpp/b"]``."""
    try:
        content = tomllib.loads(_bytes(path).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("--model-map", "", str(path), f"is not TOML: {error}") from error
    found: dict[str, list[str]] = {}
    for model, served in content.items():
        names = [served] if isinstance(served, str) else served
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise InputError("--model-map", model, served, "must be a model's name, or a list of names")
        found[model] = names
    return found
