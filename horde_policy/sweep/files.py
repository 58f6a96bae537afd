"""A sweep in a file, read again: checked as what comes from outside is checked, since anybody can hand one in."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from horde_policy.errors import InputError
from horde_policy.frames.decisions import REQUESTERS, SIZES
from horde_policy.frames.input_columns import refuse_first
from horde_policy.imports.replay_inputs import STAMP_KEY
from horde_policy.sweep.axes import SETTINGS
from horde_policy.sweep.counting import BINS, COUNTERS, WAITERS
from horde_policy.sweep.days import DAY_H
from horde_policy.sweep.results import SWEEP, settings_of_row
from horde_policy.sweep.run import Sweep
from horde_policy.sweep.unserved import UNSERVED

__all__ = ["read_sweep", "sweep_content"]

COMPRESSION = 15


def read_sweep(given: Path | bytes, name: str = "") -> Sweep:
    """Return the sweep of a Parquet file that the command wrote, or of its content.

    Parameters
    ----------
    given
        The file, or what stands in it.
    name
        How the file is called in messages, where its content is given.

    Raises
    ------
    InputError
        It is no such file, or a row breaks a rule: names row, column, value and rule.
    FrameError
        A column is missing or of another type.
    ConfigError
        A row's settings make no sense.
    """
    named = name or str(given if isinstance(given, Path) else "content")
    try:
        content = given.read_bytes() if isinstance(given, Path) else given
        frame = pl.read_parquet(io.BytesIO(content))
        stamp = json.loads(pl.read_parquet_metadata(io.BytesIO(content)).get(STAMP_KEY, "{}"))
    except (OSError, pl.exceptions.PolarsError, ValueError) as error:
        raise InputError("sweep file", "", named, "must be a Parquet file that the sweep command wrote") from error
    if not isinstance(stamp, Mapping) or stamp.get("kind") != "sweep":
        raise InputError("sweep file", "", named, "must be a Parquet file that the sweep command wrote")
    checked = SWEEP.checked(frame)
    _check_counts(checked)
    _check_points(checked)
    return Sweep(frame=checked, stamp=_plain_stamp(stamp), missing=int(stamp.get("missing") or 0))


def sweep_content(sweep: Sweep) -> bytes:
    """Return a sweep as the Parquet file that :func:`read_sweep` reads again: the rows, and the stamp in its metadata."""
    out = io.BytesIO()
    metadata = {STAMP_KEY: json.dumps(dict(sweep.stamp), allow_nan=False)}
    sweep.frame.write_parquet(out, compression="zstd", compression_level=COMPRESSION, metadata=metadata)
    return out.getvalue()


def _plain_stamp(stamp: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stamp with its parts of the kinds that views expect; a part of another kind is left out."""
    kinds = {
        "traffic": dict,
        "fleet": dict,
        "dropped": dict,
        UNSERVED: dict,
        "varied": list,
        "models": list,
        "trace": str,
        "base_load": float,
    }
    kinds |= dict.fromkeys(("points", "scenarios", "seeds"), int)
    return {name: value for name, value in stamp.items() if not (name in kinds and not isinstance(value, kinds[name]))}


def _check_counts(frame: pl.DataFrame) -> None:
    for counter in COUNTERS:
        refuse_first("sweep file", frame[counter], frame[counter] < 0, "must be at least 0")
    refuse_first("sweep file", frame["load"], ~((frame["load"] > 0) & frame["load"].is_finite()), "must be above 0")
    refuse_first("sweep file", frame["day"], frame["day"] < 1, "must be at least 1")
    hours = frame["day_hours"]
    refuse_first("sweep file", hours, ~hours.is_between(0, DAY_H), "must be 0 to 24")
    differs = frame.select(pl.col("day_hours") != pl.col("day_hours").first().over("day")).to_series()
    refuse_first("sweep file", hours, differs, "must be the same in all rows of its day")
    for who in WAITERS:
        places, held = frame[f"waits_{who}_bin"], frame[f"waits_{who}_count"]
        refuse_first("sweep file", held, places.list.len() != held.list.len(), "must have as many counts as bins")
        refuse_first("sweep file", places, places.list.max() >= BINS, f"must hold bins below {BINS}")
    groups = frame["model_unfunded"].list.len()
    refuse_first(
        "sweep file", frame["model_unfunded"], groups != groups[0] if len(groups) else groups > 0, "must be as long as in row 0"
    )
    refuse_first(
        "sweep file", frame["model_refused"], frame["model_refused"].list.len() != groups, "must be as long as model_unfunded"
    )
    refuse_first("sweep file", frame["model_unfunded"], groups < 1, "must hold at least one group")
    asked = len(REQUESTERS) * len(SIZES)
    refuse_first("sweep file", frame["asked_by"], frame["asked_by"].list.len() != asked, f"must hold {asked} counts")


def _check_points(frame: pl.DataFrame) -> None:
    places = ["point", "load", "seed", "fill", "day"]
    refuse_first("sweep file", frame["day"], frame.select(places).is_duplicated(), "stands twice for its point and scenario")
    distinct = frame.select("point", "baseline", *SETTINGS).unique(maintain_order=True)
    for row in distinct.iter_rows(named=True):
        settings = settings_of_row(row)
        if settings.digest(16) != row["point"]:
            raise InputError("sweep file", "column point", row["point"], f"must name its settings, {settings.digest(16)}")
    value = distinct["baseline"].sum()
    if distinct["point"].n_unique() != distinct.height or value > 1:
        raise InputError("sweep file", "column baseline", value, "must stand for one point, and the same in all of its rows")
