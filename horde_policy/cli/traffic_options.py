"""Options that the commands making traffic share, and what their texts stand for."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from horde_policy.errors import InputError
from horde_policy.imports.cells import RULES, parsed
from horde_policy.replay.fill import ModelWeights, Traffic
from horde_policy.replay.fill_rule import FillRule
from horde_policy.replay.fleets import demand_weights
from horde_policy.sources.demo import BUNDLED_FOLDER
from horde_policy.sources.recorded import load_recorded

__all__ = ["FillOption", "JsonOption", "ModelsFromOption", "OutOption", "emptiness_notes", "instant_of", "weights_for"]

DEMAND_FOLDER = BUNDLED_FOLDER / "recorded" / "snapshot"
"""Whose request counts weigh the models where no other folder is named."""

FILL_HELP = (
    f"How what no trace records is assigned: {FillRule()} (the default). max_length: tight, ladder, service_cap[:TOKENS], "
    "client_setting[:WEIGHTS of 256/512/1024/2048/4096]; models: any, weighted, mapped; "
    "requester: share anonymous/share shared keys."
)
OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="The Parquet file to write.")]
FillOption = Annotated[str, typer.Option("--fill", metavar="RULE", help=FILL_HELP)]
ModelsFromOption = Annotated[
    Path | None,
    typer.Option(
        "--models-from", metavar="DIR", help="Recorded folder whose request counts weigh the models; else the bundled one."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")]


def instant_of(option: str, text: str | None) -> datetime | None:
    """Return an option's instant, null if it is not given; without a time zone it is refused."""
    try:
        at = parsed(text, "instant")
    except ValueError:
        at = ""
    if at is None or isinstance(at, datetime):
        return at
    raise InputError(option, "", text, RULES["instant"])


def emptiness_notes(traffic: Traffic) -> list[str]:
    """Return a line that says that traffic has no request, where it has none."""
    if traffic.frame.height:
        return []
    return ["problem: traffic: no request is left: look at the range and the share kept"]


def weights_for(rule: FillRule, folder: Path | None) -> ModelWeights | None:
    """Return how often each model is asked for, out of a recorded folder, if the rule weighs models; else null."""
    if rule.models != "weighted":
        return None
    snapshot = load_recorded(DEMAND_FOLDER if folder is None else folder)
    weights = demand_weights(snapshot)
    if weights is None:
        missing = "has no request counts (stats_text_models.json) to weigh models by"
        raise InputError("--models-from", "", str(folder), missing, hint="use models=any, or another folder")
    return weights
