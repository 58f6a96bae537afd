"""What a sweep replays: requests as their source tells them, a fleet, and where both come from, named by a digest."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import polars as pl

from horde_policy.errors import InputError
from horde_policy.frames.fleet import normalised_fleet
from horde_policy.imports.replay_inputs import load_fleet, stamp_of
from horde_policy.imports.trace_frame import Trace
from horde_policy.imports.traces import load_trace
from horde_policy.replay.fill import ModelWeights
from horde_policy.replay.fleets import Fleet, moved_to

__all__ = ["MadeUp", "SweepInputs", "content_digest", "load_inputs", "made_up"]

MadeUp = Literal["traffic", "fleet", "both", "either"]
"""Which of a sweep's inputs are synthetic; ``either`` where a file says that one is, and not which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepInputs:
    """Requests and a fleet, loaded once for all points of a sweep.

    Attributes
    ----------
    trace
        The requests as their source tells them; a file of our own schema is one too.
    fleet
        Frame ``FLEET``.
    weights
        For fill rules that draw models.
    traffic_stamp, fleet_stamp
        What the files say of their making; empty if nothing.
    base_load
        How many times the trace is what the sweep calls a load of 1.
    """

    trace: Trace
    fleet: pl.DataFrame
    weights: ModelWeights | None = None
    traffic_stamp: Mapping[str, Any]
    fleet_stamp: Mapping[str, Any]
    base_load: float = 1.0

    @property
    def names_everything(self) -> bool:
        """Whether the requests say themselves who asks for what, so that no fill rule decides anything that matters."""
        frame = self.trace.frame
        return all(name in frame.columns and not frame[name].null_count() for name in ("models", "requester", "max_length"))

    @property
    def synthetic(self) -> bool:
        """Whether requests or workers are made up, which is then said wherever results show."""
        return self.synthetic_traffic or bool(self.fleet_stamp.get("synthetic"))

    @property
    def synthetic_traffic(self) -> bool:
        """Whether the requests are made up."""
        return bool(self.trace.synthetic or self.traffic_stamp.get("synthetic"))

    @property
    def reconstruction(self) -> bool:
        """Whether the requests were rebuilt from counts."""
        return bool(self.trace.reconstruction or self.traffic_stamp.get("reconstruction"))

    def digest(self) -> str:
        """Return sixteen hexadecimal digits that name the content: the same requests and workers, the same digits."""
        weights = {} if self.weights is None else dict(sorted(self.weights.counts.items()))
        facts = (self.trace.thin_by_row, self.trace.anonymous_known, weights, self.base_load)
        parts = (self.trace.name, self.trace.format, repr(facts))
        frames = content_digest(self.trace.frame) + content_digest(self.fleet)
        return hashlib.sha256("\n".join((*parts, frames)).encode()).hexdigest()[:16]


def load_inputs(traffic: Path, fleet: Path, weights: ModelWeights | None = None, *, move_fleet: bool = False) -> SweepInputs:
    """Return a traffic file (of our own schema, or any trace that can be read) and a fleet file as a sweep's inputs.

    With ``move_fleet`` a fleet of other days is moved so that it begins with the traffic.

    Raises
    ------
    InputError
        A file cannot be read, breaks a rule, or holds no request.
    """
    trace = load_trace(traffic)
    if not trace.frame.height:
        raise InputError("traffic", "", str(traffic), "must hold at least one request")
    read = load_fleet(fleet)
    used = Fleet(frame=normalised_fleet(read.frame), stamp=read.stamp or {})
    first = trace.frame["created"].min()
    if move_fleet and isinstance(first, datetime):
        dated = trace.dated and (stamp_of(traffic) or {}).get("dated") is not False
        used = moved_to(used, first, whole_days=dated)
    return SweepInputs(
        trace=trace,
        fleet=used.frame,
        weights=weights,
        traffic_stamp=stamp_of(traffic) or {},
        fleet_stamp=used.stamp,
    )


def content_digest(frame: pl.DataFrame) -> str:
    """Return the SHA-256 of a frame's columns, types, values and nulls, whatever their layout in memory.

    >>> a, b = pl.DataFrame({"x": [1, None]}), pl.concat([pl.DataFrame({"x": [1]}), pl.DataFrame({"x": [None]}, {"x": pl.Int64})])
    >>> content_digest(a) == content_digest(b), content_digest(a) == content_digest(pl.DataFrame({"x": [1, 0]}))
    (True, False)
    """
    digest = hashlib.sha256()
    for series in frame.get_columns():
        digest.update(f"{series.name}|{series.dtype}|{len(series)}\n".encode())
        _add_values(digest, series)
    return digest.hexdigest()


def _add_values(digest: Any, series: pl.Series) -> None:
    digest.update(series.is_null().cast(pl.UInt8).to_numpy().tobytes())
    if isinstance(series.dtype, pl.List):
        digest.update(series.list.len().fill_null(0).cast(pl.Int64).to_numpy().tobytes())
        _add_values(digest, series.explode(empty_as_null=False).drop_nulls())
        return
    if isinstance(series.dtype, pl.Enum | pl.Categorical):
        series = series.cast(pl.String)
    if series.dtype == pl.String:
        texts = series.fill_null("")
        digest.update(texts.str.len_bytes().cast(pl.Int64).to_numpy().tobytes())
        digest.update(("".join(texts.to_list())).encode("utf-8", errors="surrogatepass"))
        return
    values = series.cast(pl.UInt8) if series.dtype == pl.Boolean else series.to_physical()
    digest.update(values.fill_null(0).to_numpy().tobytes())


def made_up(stamp: Mapping[str, Any]) -> MadeUp | None:
    """Return which of the inputs of a sweep are synthetic, by the stamp of its results; null where none is.

    >>> made_up({"synthetic": True, "synthetic_traffic": False, "fleet": {"synthetic": True}})
    'fleet'
    >>> made_up({"synthetic": True}), made_up({"synthetic": False})
    ('either', None)
    """
    if not stamp.get("synthetic"):
        return None
    fleet = stamp.get("fleet") or {}
    traffic = stamp.get("traffic") or {}
    if traffic.get("synthetic") or stamp.get("synthetic_traffic"):
        return "both" if fleet.get("synthetic") else "traffic"
    if "synthetic_traffic" in stamp and fleet.get("synthetic"):
        return "fleet"
    return "traffic" if fleet.get("synthetic") is False else "either"
