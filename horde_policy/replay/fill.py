"""A trace made into traffic: what it does not record assigned by a named rule, its load scaled, nothing drawn at random.

Every assigned value is a function of :func:`horde_policy.replay.draws.u` of the row's key (traces.md §4), so the same file
and rule give the same traffic, whatever was filtered, sorted or thinned before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.errors import InputError
from horde_policy.frames.traffic import REQUESTER, normalised_traffic
from horde_policy.imports.trace_frame import Trace
from horde_policy.replay.draws import Draws, u, u_of_keys, u_of_rows
from horde_policy.replay.fill_rule import CLIENT_SIZES, LADDER, FillRule
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, MAX_LENGTH_LIMIT_TOKENS

__all__ = ["ModelWeights", "Traffic", "filled", "shift_s"]

LEAST_ASKED_TOKENS = 16
"""The API takes no smaller ``max_length`` (horde.md §2)."""
MOST_SHIFT_S = 45 * 60
MOST_COPIES = 1000
SERVICE_CAPS = {"azure": 1000, "vidur": 1000, "mooncake": 2000}
"""Format → the output limit of the recorded service, seen as a pile-up at the maximum (traces.md §2)."""

RECORDED = ("recorded_outcome", "recorded_allowance_size")
"""What really happened, where a source knows it: carried along, to compare a replay with."""

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWeights:
    """Models and how often each is asked for; ``source`` says where that is from."""

    counts: Mapping[str, float]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Traffic ready for a replay: frame ``TRAFFIC`` and columns of its making, and the stamp that goes with every result."""

    frame: pl.DataFrame
    stamp: Mapping[str, Any]


def shift_s(seed: int, copy: int) -> float:
    """Return by how many seconds a superposed copy is moved: 0 for the first, else its own draw of 0 to 45 minutes.

    >>> shift_s(7, 0), 0 <= shift_s(7, 1) < 2700
    (0.0, True)
    """
    return u("shift", f"{seed}|{copy}") * MOST_SHIFT_S if copy else 0.0


def filled(
    trace: Trace,
    rule: FillRule,
    *,
    weights: ModelWeights | None = None,
    model_map: Mapping[str, Sequence[str]] | None = None,
    thin: float = 1.0,
    superpose: int = 1,
    seed: int = 0,
) -> Traffic:
    """Return the traffic of a trace under a fill rule and a scaling of its load.

    Parameters
    ----------
    trace
        What the source tells; what it knows is kept, only what is absent is filled.
    rule
        The fill rule.
    weights, model_map
        For the ``weighted`` and ``mapped`` models rules.
    thin
        Share of rows (or clients) kept, by ``u("thin", key) < thin``; 0 to 1.
    superpose
        Copies laid over each other, each but the first moved by :func:`shift_s` and drawing its fields anew.
    seed
        Of the shifts.

    Returns
    -------
    Traffic
        Sorted by ``created``, then copy, then row; rows of a file of our own schema keep their order unless superposed.

    Raises
    ------
    InputError
        The rule needs what is not there, or a scaling is out of its range.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from horde_policy.imports.trace_frame import TRACE
    >>> at = datetime(2026, 11, 29, tzinfo=UTC)
    >>> used = {"row": 0, "created": at, "input_tokens": 374, "output_tokens": 44, "failed": False}
    >>> frame = pl.DataFrame([{name: used.get(name) for name in TRACE.columns}], schema=TRACE.polars_schema())
    >>> trace = Trace(name="azure2023_conv", format="azure", frame=frame, rows_read=1, refused={})
    >>> filled(trace, FillRule()).frame.select("requester", "max_length", "max_context_length").rows()
    [('registered', 80, 2048)]
    """
    if not 0 <= thin <= 1:
        raise InputError("traffic", "thin", thin, "must be a share of 0 to 1")
    if not 1 <= superpose <= MOST_COPIES:
        raise InputError("traffic", "superpose", superpose, f"must be 1 to {MOST_COPIES} copies")
    copies = [_Copy(trace, number, thin, shift_s(seed, number)) for number in range(superpose)]
    frames = [_assigned(copy, rule, weights, model_map) for copy in copies]
    frame = pl.concat(frames) if superpose > 1 else frames[0]
    if superpose > 1:
        frame = frame.sort("created", "copy", "row", maintain_order=True)
    name = pl.Enum([str(rule)])
    recorded = [name for name in RECORDED if name in frame.columns]
    extras = frame.select("row", "copy", "client", "input_tokens", "failed", "clipped", *recorded).with_columns(
        pl.Series("fill", [str(rule)], dtype=name).new_from_index(0, frame.height)
    )
    traffic = normalised_traffic(frame).hstack(extras)
    return Traffic(
        frame=traffic,
        stamp=_stamp(trace, traffic, rule, _models_from(rule, weights, model_map)) | _scaling(trace, traffic, copies, thin, seed),
    )


def _models_from(rule: FillRule, weights: ModelWeights | None, model_map: Mapping[str, Sequence[str]] | None) -> str | None:
    """Return where the models asked for are from, the map itself where there is one: it stands on every result."""
    if rule.models == "mapped" and model_map is not None:
        return "; ".join(f"{published} as {' or '.join(served)}" for published, served in model_map.items())
    return weights.source if weights is not None and rule.models == "weighted" else None


def _stamp(trace: Trace, traffic: pl.DataFrame, rule: FillRule, models_from: str | None) -> dict[str, Any]:
    return {
        "kind": "traffic",
        "trace": trace.name,
        "format": trace.format,
        "synthetic": trace.synthetic,
        "reconstruction": trace.reconstruction,
        "dated": trace.dated,
        "fill": str(rule),
        "models_from": models_from,
        "rows_read": trace.rows_read,
        "refused": dict(trace.refused),
        "kept": trace.frame.height,
        "requests": traffic.height,
        "clipped": int(traffic["clipped"].sum()),
        "failed": int(traffic["failed"].sum()),
        "problems": [f"{problem.subject}: {problem.text}" for problem in trace.problems],
    }


def _scaling(trace: Trace, traffic: pl.DataFrame, copies: "list[_Copy]", thin: float, seed: int) -> dict[str, Any]:
    return {
        "thin": thin,
        "superpose": len(copies),
        "seed": seed,
        "shifts_s": [round(copy.shift_s, 6) for copy in copies],
        "thinned": trace.frame.height * len(copies) - traffic.height,
    }


class _Copy:
    """One copy of a trace's rows, thinned and moved, with the draws of its keys."""

    def __init__(self, trace: Trace, number: int, thin: float, shift_s: float) -> None:
        self.trace = trace
        self.number = number
        self.shift_s = shift_s
        self.name = trace.name if number == 0 else f"{trace.name}~{number + 1}"
        frame = trace.frame
        if thin < 1:
            kept = _Keys(self.name, frame["row"], None if trace.thin_by_row else frame["client"]).draws("thin") < thin
            frame = frame.filter(pl.Series(kept))
        moved_us = round(shift_s * 1e6)
        self.frame = frame.with_columns(pl.col("created") + pl.duration(microseconds=moved_us)) if moved_us else frame


class _Keys:
    """The keys ``trace|client`` of rows that have a client, ``trace|row`` of the others, and their draws."""

    def __init__(self, name: str, rows: pl.Series, clients: pl.Series | None) -> None:
        self.name = name
        self.rows: Whole = rows.to_numpy()
        self.clients = clients if clients is not None and clients.null_count() < len(clients) else None

    @cached_property
    def _coded(self) -> tuple[list[str], Whole, npt.NDArray[np.bool_]]:
        """Return the distinct clients, each row's place among them, and which rows have one."""
        if self.clients is None:
            return [], np.empty(0, dtype=np.int64), np.zeros(len(self.rows), dtype=np.bool_)
        distinct = self.clients.drop_nulls().unique(maintain_order=True)
        places = self.clients.replace_strict(distinct, pl.int_range(len(distinct), eager=True), default=0, return_dtype=pl.Int64)
        return distinct.to_list(), places.to_numpy(), self.clients.is_not_null().to_numpy()

    def draws(self, salt: str) -> Draws:
        """Return each row's draw."""
        clients, places, has_client = self._coded
        if not clients:
            return u_of_rows(salt, self.name, self.rows)
        of_clients = u_of_keys(salt, (f"{self.name}|{client}" for client in clients))
        draws = of_clients[places]
        if not has_client.all():
            draws[~has_client] = u_of_rows(salt, self.name, self.rows[~has_client])
        return draws


def _assigned(
    copy: _Copy, rule: FillRule, weights: ModelWeights | None, model_map: Mapping[str, Sequence[str]] | None
) -> pl.DataFrame:
    """Return a copy's rows with every traffic column, filled where the trace does not say."""
    frame = copy.frame
    clients = _clients(copy, rule)
    keys = _Keys(copy.name, frame["row"], clients)
    asked, clipped = _max_length(copy, rule, keys)
    known = "models" in frame.columns and not frame["models"].null_count()
    models = frame["models"] if known else _given(frame, "models", _models(frame, rule, keys, weights, model_map))
    requester = _given(frame, "requester", _requester(copy.trace, rule, keys))
    ids = _given(frame, "request_id", frame["row"].cast(pl.String))
    mark = f"~{copy.number + 1}" if copy.number else ""
    return frame.select("row", "created", "input_tokens", "output_tokens", "chat", "failed").with_columns(
        (ids + mark).alias("request_id"),
        (clients + mark).alias("client"),
        pl.lit(copy.number, pl.Int32).alias("copy"),
        asked.alias("max_length"),
        clipped.alias("clipped"),
        models.alias("models"),
        requester.alias("requester"),
        _given(frame, "can_pay", _shared(keys, "pay", rule.can_pay) & (requester != "anonymous")).alias("can_pay"),
        _given(frame, "allow_downgrade", _shared(keys, "downgrade", rule.allow_downgrade)).alias("allow_downgrade"),
        _given(frame, "max_context_length", _context(frame, rule, asked)).alias("max_context_length"),
        _outputs(frame, rule, asked).alias("output_tokens"),
        *(frame[name] for name in ("slow_workers", "priority", *RECORDED) if name in frame.columns),
    )


def _given(frame: pl.DataFrame, name: str, fill: pl.Series) -> pl.Series:
    """Return the trace's own column, filled where it is null or absent."""
    if name not in frame.columns:
        return fill
    return frame[name].zip_with(frame[name].is_not_null(), fill)


def _clients(copy: _Copy, rule: FillRule) -> pl.Series:
    """Return who asks: the published client, else a pseudo-client by u("client", trace|row) if the rule wants them."""
    known = copy.frame["client"]
    if rule.clients is None or not known.null_count():
        return known
    n, z = rule.clients
    reached = np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -z)
    draws = u_of_rows("client", copy.name, copy.frame["row"].to_numpy())
    ranks = np.minimum(np.searchsorted(reached, draws * reached[-1], side="right"), n - 1) + 1
    names = pl.Series("client", ranks).cast(pl.String)
    anonymous = copy.frame["requester"] == "anonymous" if "requester" in copy.frame.columns else None
    pseudo = "client-" + names
    if anonymous is not None:
        # who is known to be anonymous shares no client with who is known not to be
        pseudo = pseudo.zip_with(~anonymous.fill_null(value=False), "anonymous-" + names)
    return known.zip_with(known.is_not_null(), pseudo)


def _requester(trace: Trace, rule: FillRule, keys: _Keys) -> pl.Series:
    anonymous = 0.0 if trace.anonymous_known else rule.anonymous
    draws = keys.draws("requester")
    kinds = np.where(draws < anonymous, 0, np.where(draws < anonymous + rule.shared_key, 2, 1)).astype(np.uint8)
    return pl.Series("requester", kinds).cat.to(REQUESTER)


def _shared(keys: _Keys, salt: str, share: float) -> pl.Series:
    """Return for each row whether its draw lies below a share; the ends need no draw."""
    if share <= 0 or share >= 1:
        return pl.repeat(share >= 1, n=len(keys.rows), eager=True, dtype=pl.Boolean)
    return pl.Series(keys.draws(salt) < share)


def _max_length(copy: _Copy, rule: FillRule, keys: _Keys) -> tuple[pl.Series, pl.Series]:
    """Return what is asked, and whether it was clipped below what was used or to the API's limit (A23)."""
    frame = copy.frame
    if "max_length" in frame.columns and not frame["max_length"].null_count():
        given = frame["max_length"]
        return given.clip(upper_bound=MAX_LENGTH_LIMIT_TOKENS), given > MAX_LENGTH_LIMIT_TOKENS
    used = frame["output_tokens"]
    if "max_length" in frame.columns:
        used = used.zip_with(frame["max_length"].is_null(), pl.repeat(0, n=frame.height, eager=True, dtype=pl.Int64))
    if used.null_count():
        row = frame["row"][int(used.is_null().arg_max() or 0)]
        raise InputError(
            "traffic", f"row {row}, column output_tokens", None, "must not be absent where max_length is filled from it"
        )
    wanted = _asked(copy.trace.format, rule, used.to_numpy(), keys)
    asked = _given(frame, "max_length", pl.Series("max_length", np.minimum(wanted, MAX_LENGTH_LIMIT_TOKENS)))
    return asked.clip(upper_bound=MAX_LENGTH_LIMIT_TOKENS), (asked > MAX_LENGTH_LIMIT_TOKENS) | (asked < used)


def _asked(format_name: str, rule: FillRule, used: Whole, keys: _Keys) -> Whole:
    if rule.max_length == "tight":
        return np.maximum(used, LEAST_ASKED_TOKENS)
    if rule.max_length == "service_cap":
        cap = rule.cap_tokens or SERVICE_CAPS.get(format_name)
        if cap is None:
            rule_text = "needs its tokens, as service_cap:1000: what this service capped is not known"
            raise InputError("fill rule", "max_length", "service_cap", rule_text)
        return np.full(len(used), cap, dtype=np.int64)
    steps = np.array([*LADDER, np.iinfo(np.int64).max], dtype=np.int64)
    ladder: Whole = steps[np.searchsorted(steps, used, side="left")]
    if rule.max_length == "ladder":
        return ladder
    reached = np.cumsum(np.array(rule.client_weights) / sum(rule.client_weights))
    places = np.minimum(np.searchsorted(reached, keys.draws("max_tokens"), side="right"), len(CLIENT_SIZES) - 1)
    return np.maximum(np.array(CLIENT_SIZES, dtype=np.int64)[places], ladder)


def _models(
    frame: pl.DataFrame,
    rule: FillRule,
    keys: _Keys,
    weights: ModelWeights | None,
    model_map: Mapping[str, Sequence[str]] | None,
) -> pl.Series:
    kind = pl.List(pl.String)
    if rule.models == "any":
        return pl.Series("models", [[]], dtype=kind).new_from_index(0, frame.height)
    if rule.models == "mapped":
        return _mapped_models(frame["model"], model_map)
    counts = {} if weights is None else {m: n for m, n in sorted(weights.counts.items()) if n > 0}
    if weights is None or not counts:
        raise InputError("fill rule", "models", "weighted", "needs the counts of the public statistics, and there are none")
    reached = np.cumsum(np.array(list(counts.values()), dtype=np.float64))
    places = np.minimum(np.searchsorted(reached, keys.draws("model") * reached[-1], side="right"), len(counts) - 1)
    return pl.Series("models", [[name] for name in counts], dtype=kind).gather(pl.Series(places))


def _mapped_models(published: pl.Series, model_map: Mapping[str, Sequence[str]] | None) -> pl.Series:
    names = published.unique(maintain_order=True).to_list()
    if model_map is None:
        raise InputError("fill rule", "models", "mapped", "needs a map of the trace's models to the fleet's")
    if names == [None]:
        raise InputError("fill rule", "models", "mapped", "needs models to map, and the trace names none")
    unmapped = [name for name in names if name not in model_map]
    if unmapped:
        raise InputError(
            "fill rule", "models", unmapped[0], f"is a model of the trace that the map does not name; it names {list(model_map)}"
        )
    lists = pl.Series("models", [list(model_map[name]) for name in names], dtype=pl.List(pl.String))
    places = published.replace_strict(
        pl.Series(names, dtype=pl.String), pl.int_range(len(names), eager=True), return_dtype=pl.UInt32
    )
    return lists.gather(places)


def _context(frame: pl.DataFrame, rule: FillRule, asked: pl.Series) -> pl.Series:
    """Return the smallest of 2048, 4096, … that holds input and ``max_length``; null where no input is known."""
    if rule.context_tokens is not None:
        return pl.repeat(rule.context_tokens, n=frame.height, eager=True, dtype=pl.Int64)
    levels = DEFAULT_MAX_CONTEXT_TOKENS << np.arange(50, dtype=np.int64)
    needed = (frame["input_tokens"].fill_null(0) + asked).to_numpy()
    contexts = pl.Series("max_context_length", levels[np.minimum(np.searchsorted(levels, needed, side="left"), 49)])
    return contexts.set(frame["input_tokens"].is_null(), None)


def _outputs(frame: pl.DataFrame, rule: FillRule, asked: pl.Series) -> pl.Series:
    """Return what the answer takes: the trace's own, else a share of what is asked; null means all of it."""
    used = frame["output_tokens"]
    if rule.output_share is None or not used.null_count():
        return used
    share = (asked.cast(pl.Float64) * rule.output_share).ceil().cast(pl.Int64)
    return used.zip_with(used.is_not_null(), share)
