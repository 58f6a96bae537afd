"""``traffic from-metrics``: traffic rebuilt from exported decision counts, which says that it is a reconstruction (issue 5)."""

from pathlib import Path
from typing import Annotated, cast

import typer

from horde_policy.cli.left_out import leave_if_any
from horde_policy.cli.parquet_output import check_parquet_path, print_notes, print_stamp, write_parquet
from horde_policy.cli.traffic_options import (
    FillOption,
    JsonOption,
    ModelsFromOption,
    OutOption,
    emptiness_notes,
    instant_of,
    weights_for,
)
from horde_policy.imports import load_mapping, read_exports
from horde_policy.replay.fill import filled
from horde_policy.replay.fill_rule import FillRule
from horde_policy.replay.reconstruct import SizesWithin, reconstructed

__all__ = ["from_metrics"]

FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE…", help="Exported metrics of any supported form, or folders of them.")
]
SeedOption = Annotated[
    int, typer.Option("--seed", metavar="S", help="Of all draws; take several to see what the drawing decides.")
]
WithinOption = Annotated[
    str,
    typer.Option(
        "--sizes-within", help="How a size is drawn in its bucket: loguniform, or ladder (sizes that front-ends offer)."
    ),
]
MappingOption = Annotated[
    Path | None,
    typer.Option("--mapping", metavar="FILE", help="What exports do not say of themselves (TOML; see the imports' guide)."),
]
FromOption = Annotated[str | None, typer.Option("--from", metavar="INSTANT", help="Count what came after this instant.")]
ToOption = Annotated[str | None, typer.Option("--to", metavar="INSTANT", help="Count what came up to this instant.")]


def from_metrics(
    files: FilesArgument,
    out: OutOption,
    seed: SeedOption = 0,
    fill: FillOption = "",
    sizes_within: WithinOption = "loguniform",
    models_from: ModelsFromOption = None,
    mapping: MappingOption = None,
    from_: FromOption = None,
    to: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild requests from the decision counts of exported metrics: times, sizes and models are drawn; a reconstruction."""
    check_parquet_path(out, *files, models_from, mapping)
    rule = FillRule.parsed(fill)
    window = (instant_of("--from", from_), instant_of("--to", to))
    weights = weights_for(rule, models_from)
    imported = read_exports(files, mapping=None if mapping is None else load_mapping(mapping), window=window)
    trace = reconstructed(imported.decisions, seed=seed, sizes_within=cast(SizesWithin, sizes_within))
    traffic = filled(trace, rule, weights=weights)
    write_parquet(out, traffic.frame, traffic.stamp)
    problems = [*imported.problems, *trace.problems]
    print_notes([f"{p.level}: {p.subject}: {p.text}" for p in problems] + emptiness_notes(traffic))
    print_notes([f"a reconstruction of {traffic.frame.height} requests written to {out}"])
    print_stamp(traffic.stamp, as_json=as_json)
    leave_if_any(imported.problems)
