"""A replay as files: every request with what became of it, and every figure as a row with its unit."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from horde_policy.frames.schemas import Column, Schema
from horde_policy.views.exports import to_csv
from horde_policy.views.replay_results import Compared, Scored
from horde_policy.views.replay_runs import LETTERS, Run

__all__ = ["FIGURES", "ReplayStamp", "figures_csv", "figures_frame", "requests_parquet"]

FIGURES: Final = Schema(
    "replay_figures",
    {
        "run": Column(pl.String, text="baseline, or the run's letter"),
        "settings": Column(pl.String, text="digest of the run's settings"),
        "differs": Column(pl.String, text="what differs from the baseline, in words"),
        "figure": Column(pl.String),
        "requester": Column(pl.String, null="all"),
        "requested_size": Column(pl.String, null="all"),
        "outcome": Column(pl.String, null="all"),
        "unit": Column(pl.String),
        "value": Column(pl.Float64, null="not known: no such request"),
    },
)
"""One row a figure of a run."""

PARQUET_KEY = "horde_policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayStamp:
    """Where a replay comes from: the stamps of its traffic and fleet, and the runs."""

    traffic: Mapping[str, Any]
    fleet: Mapping[str, Any]
    runs: tuple[Run, ...]

    def columns(self) -> dict[str, str | int]:
        """Return the stamp's columns, by heading."""
        synthetic = self.traffic["synthetic"] or self.traffic["superpose"] > 1
        return {
            "traffic": str(self.traffic["trace"]) + (" (synthetic load)" if synthetic else ""),
            "copies superposed": int(self.traffic["superpose"]),
            "fill rule": str(self.traffic["fill"]),
            "fleet": str(self.fleet.get("source", "parameters")) + (" (synthetic)" if self.fleet["synthetic"] else ""),
        }

    @property
    def name(self) -> str:
        """A name for files: the trace and the digests of the settings."""
        trace = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(self.traffic["trace"]))[:40].strip("-")
        return f"replay_{trace}_{'_'.join(run.digest for run in self.runs)}"

    def text(self) -> str:
        """Return everything as JSON, for a file's metadata."""
        runs = [{"run": run.letter, "settings": run.digest, "differences": run.settings.differences()} for run in self.runs]
        return json.dumps({"kind": "replay", "traffic": dict(self.traffic), "fleet": dict(self.fleet), "runs": runs}, default=str)


def _figures(
    scored: Scored, change: Compared | None
) -> Iterator[tuple[str, str | None, str | None, str | None, str, float | None]]:
    """Yield figure, requester, requested size, outcome, unit, value."""
    summary = scored.summary
    yield "requests", None, None, None, "requests", summary["requests"]
    for row in summary["mix"]:
        yield "requests", row["requester"], row["requested_size"], row["outcome"], "requests", row["requests"]
    for status, n in summary["statuses"].items():
        yield f"ended as {status}", None, None, None, "requests", n
    for name, n in summary["tokens"].items():
        yield f"tokens {name.replace('_', ' ')}", None, None, None, "tokens", n
    for word, table in (("queue wait", "queue_waits"), ("estimated wait", "estimated_waits")):
        for row in summary[table]:
            for name, value in row.items():
                if name in ("requester", "outcome"):
                    continue
                unit = "requests" if name == "requests" else "share" if name.startswith("share") else "s"
                yield f"{word} {name.removesuffix('_s')}", row["requester"], None, row["outcome"], unit, value
    for row in summary["unfinished"]:
        for name in ("admitted", "started", "expired", "timed_out", "over_limit", "full_size_over_limit"):
            yield name.replace("_", " "), None, None, row["outcome"], "requests", row[name]
    for word, n in (change.figures["changes"] if change is not None else {}).items():
        yield f"against the baseline: {word}", None, None, None, "requests", n


def figures_frame(runs: Sequence[tuple[Run, Scored]], changes: Mapping[str, Compared]) -> pl.DataFrame:
    """Return every figure of every run as frame :data:`FIGURES`."""
    rows = [
        (run.letter, run.digest, run.words, *figure)
        for run, scored in runs
        for figure in _figures(scored, changes.get(run.letter))
    ]
    frame = pl.DataFrame(
        [(*row[:-1], None if row[-1] is None else float(row[-1])) for row in rows], schema=FIGURES.polars_schema(), orient="row"
    )
    return FIGURES.checked(frame)


def figures_csv(runs: Sequence[tuple[Run, Scored]], changes: Mapping[str, Compared], stamp: ReplayStamp) -> bytes:
    """Return every figure as CSV, each row with where it is from."""
    return to_csv(figures_frame(runs, changes), {name: name.replace("_", " ") for name in FIGURES.columns}, stamp)


def requests_parquet(sent: Mapping[str, pl.DataFrame], stamp: ReplayStamp) -> bytes:
    """Return every request of every run with what became of it, as Parquet; the stamp stands in the metadata as JSON.

    Parameters
    ----------
    sent
        Letter of a run → its requests (:func:`horde_policy.replay.sent.sent_requests`).
    stamp
        Where they are from.
    """
    kind = pl.Enum(LETTERS)
    parts = [
        frame.with_columns(pl.Series("run", [letter], dtype=kind).new_from_index(0, frame.height))
        for letter, frame in sent.items()
    ]
    out = io.BytesIO()
    pl.concat(parts).write_parquet(out, compression="zstd", metadata={PARQUET_KEY: stamp.text()})
    return out.getvalue()
