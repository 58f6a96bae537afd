"""Options that the commands replaying traffic on a fleet share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["FleetOption", "MoveOption"]

FleetOption = Annotated[Path, typer.Option("--fleet", metavar="F", help="Fleet: Parquet, CSV or JSON lines.")]
MoveOption = Annotated[
    bool, typer.Option("--move-fleet", help="Move a fleet of other days, by whole days, so that it begins with the traffic.")
]
