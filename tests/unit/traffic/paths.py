"""Where the bundled traces are."""

from pathlib import Path

TRACES = Path(__file__).parents[3] / "data" / "traces"
RECORDED = Path(__file__).parents[3] / "data" / "recorded"
