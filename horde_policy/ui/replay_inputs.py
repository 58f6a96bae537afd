"""The traffic and the fleets that a replay can take: bundled traces, uploads, sources' snapshots, parametric fleets.

Bundled and uploaded files are read once for all viewers. An upload is named by its content, so a link to a replay of it works
for whoever has it, as long as the server keeps the file; nothing is written to a place that stays.
"""

import hashlib
import math
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from horde_policy.errors import InputError, shown
from horde_policy.frames.snapshot import Snapshot
from horde_policy.imports.tables import Refused
from horde_policy.imports.trace_frame import Trace, TraceOptions, in_range
from horde_policy.imports.traces import detect_format, load_trace
from horde_policy.replay.fill import ModelWeights, Traffic, filled
from horde_policy.replay.fill_rule import FillRule
from horde_policy.replay.fleets import Fleet, demand_weights, fleet_from_snapshot
from horde_policy.replay.parametric import ParametricFleet, parametric_fleet
from horde_policy.replay.reconstruct import reconstructed
from horde_policy.review.loading import load_exports
from horde_policy.sources.demo import BUNDLED_FOLDER
from horde_policy.sources.recorded import load_recorded
from horde_policy.views.replay_state import MOST_MAPPED
from horde_policy.views.state import ViewState
from horde_policy.views.uploads import not_kept, not_kept_note

__all__ = [
    "BUNDLED",
    "MOST_REQUESTS",
    "Drawn",
    "Library",
    "drawn_of",
    "fleet_of",
    "known_inputs",
    "models_named",
    "traffic_of",
    "upload_key",
]

DEMAND_FOLDER = BUNDLED_FOLDER / "recorded" / "snapshot"

MOST_REQUESTS = 2_000_000
"""More requests than this are for the command; the page says so before it starts."""

SERVEGEN_SEED = 1
"""Draws the bundled requests of ServeGen."""
SERVEGEN_S = 3600.0
"""So many seconds of ServeGen's clock are drawn for the bundled traffic: a day would be 400,000 requests."""

SERVEGEN_FOLDER = "servegen"
"""Where an upload lies while it is read: ServeGen's files are named by their folder where their names do not tell the model."""

KEPT_UPLOADS = 6
KEPT_ROWS = 15_000_000
"""Requests of uploads that are kept in all, at some 100 bytes each; the latest is kept whatever it has."""
UPLOAD_PREFIX = "upload-"
DRAWN_PREFIX = "drawn/"


@dataclass(frozen=True, slots=True)
class Bundled:
    """Bundled traffic: its file, how it is called, and a few words on it.

    Attributes
    ----------
    file
        Under ``data/``: a trace; or with a seed a folder of exported counts, from which requests are rebuilt.
    title, text
        For people.
    seed
        Of a reconstruction; null: the file's own requests.
    sizes
        ServeGen's sizes for the rates of ``file``, under ``data/`` as well; null for anything else.
    """

    file: str
    title: str
    text: str
    seed: int | None = None
    sizes: str | None = None


BUNDLED: Final[dict[str, Bundled]] = {
    "ragpulse_week1": Bundled(
        "traces/ragpulse_week1.parquet", "RAGPulse, one week", "a week of a public assistant, 3,800 requests"
    ),
    "azure2023_conv": Bundled(
        "traces/azure2023_conv.parquet", "Azure 2023 conversations", "58 minutes of chats, 19,366 requests"
    ),
    "burstgpt1": Bundled("traces/burstgpt1.first400.parquet", "BurstGPT, first rows", "ten hours, 400 requests"),
    "mooncake_conversation": Bundled(
        "traces/mooncake_conversation.head200.jsonl", "Mooncake, first rows", "a minute or so of long conversations, 200 requests"
    ),
    "vidur_splitwise_conv": Bundled(
        "traces/vidur_splitwise_conv.head300.csv",
        "Vidur's Azure rows",
        "the first 300 requests of the Azure trace, without a date",
    ),
    "servegen_deepseek-r1": Bundled(
        "traces/servegen_deepseek-r1_chunk-35-trace.csv",
        "ServeGen, one client of deepseek-r1 (synthetic)",
        "an hour of one client's requests, so of one requester and one model, drawn from its published rates and another's sizes",
        sizes="traces/servegen_deepseek-r1_chunk-52-dataset.json",
    ),
    **{
        f"week-rebuilt-{seed}": Bundled(
            "week",
            f"Demo week rebuilt from its counts, seed {seed}",
            "38,000 requests drawn from the exported counts of the made-up week",
            seed,
        )
        for seed in (1, 2, 3)
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A parametric fleet in an address: workers, models, median and 95th percentile of the speed, and the seed.

    >>> drawn_of(Drawn().text) == Drawn()
    True
    """

    workers: int = 35
    models: int = 10
    speed_median_tok_per_s: float = 10.0
    speed_p95_tok_per_s: float = 50.0
    seed: int = 1

    @property
    def text(self) -> str:
        """The fleet as it stands in an address."""
        speeds = f"{self.speed_median_tok_per_s:.10g}/{self.speed_p95_tok_per_s:.10g}"
        return f"{DRAWN_PREFIX}{self.workers}/{self.models}/{speeds}/{self.seed}"


def drawn_of(text: str) -> Drawn | None:
    """Return the parametric fleet that an address names; null if it names another kind.

    Raises
    ------
    InputError
        It does not have five numbers.
    """
    if not text.startswith(DRAWN_PREFIX):
        return None
    parts = text.removeprefix(DRAWN_PREFIX).split("/")
    try:
        workers, models, median, p95, seed = parts
        return Drawn(
            workers=int(workers),
            models=int(models),
            speed_median_tok_per_s=float(median),
            speed_p95_tok_per_s=float(p95),
            seed=int(seed),
        )
    except ValueError:
        raise InputError("fleet", "", text, "must be drawn/workers/models/median speed/95th percentile/seed") from None


def known_inputs(
    state: ViewState, sources: Collection[str], kept: Collection[str] | None = None
) -> tuple[ViewState, tuple[str, ...]]:
    """Return the state with a traffic and a fleet that are known, and a note on each that is left out.

    ``kept`` are the uploads that this server keeps (null: not asked). A drawn fleet with a wrong number is of a known kind: what
    is wrong with it is said where it is read.

    >>> state, notes = known_inputs(ViewState(fleet="nobody"), ["demo"])
    >>> state.fleet, notes
    ('source', ("The link's fleet='nobody' is left out: it must be one of source, history/1, history/7, drawn/…, demo.",))
    """
    notes = []
    if state.traffic not in BUNDLED and not state.traffic.startswith(UPLOAD_PREFIX):
        notes.append(f"The link's traffic={shown(state.traffic)} is left out: it must be one of {', '.join(BUNDLED)}.")
        state = state.changed(traffic=ViewState().traffic)
    elif state.traffic not in BUNDLED and kept is not None and state.traffic not in kept:
        notes.append(not_kept_note("traffic", state.traffic, "The demo's traffic is replayed."))
        demo = ViewState()
        # all of it once is what an address says of an upload that names no range; the demo has a range and a load of its own
        own = {} if state.hours or state.copies > 1 else {"hours": demo.hours, "copies": demo.copies}
        state = state.changed(traffic=demo.traffic, **own)
    kinds = ("source", "history/1", "history/7", f"{DRAWN_PREFIX}…")
    if state.fleet != "source" and not state.fleet.startswith((DRAWN_PREFIX, "history/")) and state.fleet not in sources:
        choices = ", ".join((*kinds, *sources))
        notes.append(f"The link's fleet={shown(state.fleet)} is left out: it must be one of {choices}.")
        state = state.changed(fleet="source")
    return state, tuple(notes)


def upload_key(content: bytes) -> str:
    """Return the key of an uploaded file: equal content has an equal key."""
    return UPLOAD_PREFIX + hashlib.blake2b(content, digest_size=16).hexdigest()


@dataclass(slots=True)
class Library:
    """The traces that have been read, shared by all viewers; the oldest uploads are dropped. Guarded by its lock."""

    bundled: dict[str, Trace] = field(default_factory=dict)
    uploads: OrderedDict[str, Trace] = field(default_factory=OrderedDict)
    weights: list[ModelWeights | None] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self,
        name: str,
        content: bytes,
        *,
        segment: int | None = None,
        seed: int = 1,
        sizes: tuple[str, bytes] | None = None,
        hours: tuple[float, ...] = (),
        told: Callable[[], None] = lambda: None,
    ) -> tuple[str, Trace]:
        """Read an uploaded file of any supported format and keep its requests.

        Parameters
        ----------
        name, content
            The file.
        segment
            Which part of it, where its clock starts again.
        seed
            Of the reconstruction, where the file holds exported decision counts and no requests, and of ServeGen's draws.
        sizes
            Name and content of ServeGen's file of sizes, where the file holds its rates.
        hours
            From and to on the clock of ServeGen's rates: what is drawn; empty for all.
        told
            Is called now and then; what it raises ends the reading, and nothing is kept.

        Raises
        ------
        InputError
            The file is of no supported format, breaks a rule of its format, or has no row: nothing is kept.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / SERVEGEN_FOLDER / _plain(name)
            path.parent.mkdir()
            path.write_bytes(content)
            told()
            sizes_path = None if sizes is None else path.with_name(_plain(sizes[0]))
            if sizes is not None and sizes_path is not None:
                if sizes_path == path:
                    raise InputError(
                        "trace", "sizes", path.name, "is the name of the rates' file as well: the sizes are another file"
                    )
                sizes_path.write_bytes(sizes[1])
            from_s, to_s = (hours[0] * 3600, hours[1] * 3600) if hours else (None, None)
            drawn = TraceOptions(segment=segment, seed=seed, from_s=from_s, to_s=to_s, most_drawn=MOST_REQUESTS)
            trace = _trace_in(path, TraceOptions(segment=segment), seed, drawn, sizes_path)
        if not trace.frame.height:
            raise InputError("trace", _plain(name), 0, "rows are in the file: there is nothing to replay")
        chosen = [
            str(part)
            for part in (segment, *((seed, *hours) if trace.reconstruction or trace.synthetic else ()))
            if part is not None
        ]
        key = upload_key(b"".join([content, b"" if sizes is None else sizes[1], " ".join(chosen).encode()]))
        told()
        with self.lock:
            self.uploads[key] = trace
            self.uploads.move_to_end(key)
            while len(self.uploads) > KEPT_UPLOADS or (len(self.uploads) > 1 and self._rows() > KEPT_ROWS):
                self.uploads.popitem(last=False)
        return key, trace

    def _rows(self) -> int:
        return sum(trace.frame.height for trace in self.uploads.values())

    def kept(self) -> tuple[str, ...]:
        """Return the keys of the uploads that are kept."""
        with self.lock:
            return tuple(self.uploads)

    def forget(self, key: str) -> None:
        """Drop an upload; one that is not kept is none."""
        with self.lock:
            self.uploads.pop(key, None)

    def trace(self, key: str) -> Trace:
        """Return the trace of a key.

        Raises
        ------
        InputError
            No such trace is bundled, or the upload is no longer kept.
        """
        if key in BUNDLED:
            with self.lock:
                if key not in self.bundled:
                    self.bundled[key] = _bundled(BUNDLED[key])
                return self.bundled[key]
        with self.lock:
            if key in self.uploads:
                return self.uploads[key]
        if key.startswith(UPLOAD_PREFIX):
            raise not_kept("traffic", key)
        raise InputError("traffic", "", key, "must be one of " + ", ".join(BUNDLED))

    def demand(self, snapshot: Snapshot | None) -> ModelWeights:
        """Return how often each model is asked for: by the snapshot's counts, else by those of the bundled recording."""
        own = None if snapshot is None else demand_weights(snapshot)
        if own is not None:
            return own
        with self.lock:
            if not self.weights:
                self.weights.append(demand_weights(load_recorded(DEMAND_FOLDER)))
            bundled = self.weights[0]
        if bundled is None:
            raise InputError("fill rule", "models", "weighted", "needs request counts, and neither source has any")
        return bundled


def _plain(name: str) -> str:
    """Return a name to keep a file under: it decides little (ServeGen's names tell the client), and may be anything."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in Path(name).name)[-80:].lstrip(".")
    return kept or "upload"


def _bundled(wanted: Bundled) -> Trace:
    path = BUNDLED_FOLDER / wanted.file
    if wanted.sizes is not None:
        options = TraceOptions(seed=SERVEGEN_SEED, to_s=SERVEGEN_S)
        return load_trace(path, options, sizes=BUNDLED_FOLDER / wanted.sizes)
    return load_trace(path, TraceOptions()) if wanted.seed is None else _rebuilt(path, wanted.seed)


def _rebuilt(path: Path, seed: int) -> Trace:
    """Return the requests of exported decision counts, drawn with a seed."""
    return reconstructed(load_exports([path]).decisions, seed=seed, name=path.stem)


def _rebuilt_upload(path: Path, seed: int) -> Trace:
    """Return the requests of an upload's decision counts; a table that a reader of exports takes may well count nothing.

    Raises
    ------
    InputError
        It is no export, or no decision is counted in it.
    """
    exported = load_exports([path])
    if not exported.decisions.height:
        why = "".join(f"; {problem.text}" for problem in exported.problems[:1])
        raise InputError("export", path.name, 0, f"decisions are counted in it{why}")
    return reconstructed(exported.decisions, seed=seed, name=path.stem)


def _trace_in(path: Path, options: TraceOptions, seed: int, drawn: TraceOptions, sizes: Path | None) -> Trace:
    """Return an uploaded file's requests: its own, or rebuilt where it holds exported decision counts.

    Raises
    ------
    InputError
        It is neither, or breaks a rule of its format.
    """
    try:
        named = detect_format(path)
    except InputError as no_trace:
        try:
            return _rebuilt_upload(path, seed)
        except InputError as no_export:
            hint = f"{no_trace.hint}; nor can it be read as exported counts: {no_export}"
            raise InputError(no_trace.what, no_trace.where, no_trace.value, no_trace.rule, hint=hint) from no_trace
    return load_trace(path, drawn if named == "servegen" else options, format_name=named, sizes=sizes)


def fleet_of(drawn: Drawn | None, snapshot: Snapshot | None, weights: ModelWeights, assumed_speed_tok_per_s: float) -> Fleet:
    """Return the fleet of a choice: drawn, with the models most asked for, or a snapshot's workers as they stood.

    Raises
    ------
    InputError
        A parameter of the drawn fleet is out of its range, or there is no worker.
    """
    if drawn is not None:
        names: list[str] = [name for name, _ in sorted(weights.counts.items(), key=lambda item: (-item[1], item[0]))]
        wanted = ParametricFleet(
            workers=drawn.workers,
            models=names[: max(0, drawn.models)] or drawn.models,
            speed_median_tok_per_s=drawn.speed_median_tok_per_s,
            speed_p95_tok_per_s=drawn.speed_p95_tok_per_s,
            seed=drawn.seed,
        )
        return parametric_fleet(wanted)
    if snapshot is None:
        raise InputError("fleet", "", None, "has no snapshot yet; the source has not answered")
    return fleet_from_snapshot(snapshot, assumed_speed_tok_per_s=assumed_speed_tok_per_s)


def models_named(trace: Trace) -> tuple[str, ...]:
    """Return the models that a trace names, most requests first, as far as a map in an address can name them (hostile text)."""
    if "models" in trace.frame.columns and not trace.frame["models"].null_count():
        return ()  # its own models stand, and no rule assigns any
    named = trace.frame["model"].drop_nulls().value_counts(sort=True)["model"]
    return tuple(named.to_list()) if 0 < len(named) <= MOST_MAPPED else ()


def fitting_hours(trace: Trace) -> tuple[float, ...]:
    """Return the first hours of a trace that hold no more than :data:`MOST_REQUESTS`; empty where all of it does, or none do.

    A trace's rows are in time order, but for files of our own schema, whose order is kept.
    """
    created = trace.frame["created"]
    if trace.frame.height <= MOST_REQUESTS:
        return ()
    since_h = ((created - created[0]).dt.total_microseconds() / 3.6e9).sort()
    hours = float(math.floor(since_h[MOST_REQUESTS]))
    return (0.0, hours) if hours >= 1 else ()


def traffic_of(
    trace: Trace,
    rule: FillRule,
    weights: ModelWeights,
    *,
    hours: tuple[float, ...],
    copies: int,
    keep_percent: int,
    model_map: Mapping[str, Sequence[str]] | None = None,
) -> Traffic:
    """Return the traffic of a trace: cut to a range, filled by the rule, thinned and superposed.

    Parameters
    ----------
    trace, rule, weights
        The requests, what fills them, and how often each model is asked for.
    hours
        From and to, after the first request; empty for all.
    copies, keep_percent
        The load: so many copies, of each so many percent.
    model_map
        A trace's model → the fleet's that are asked for in its place, for the rule ``models=mapped``.

    Raises
    ------
    InputError
        The range holds no request, or the load is more than :data:`MOST_REQUESTS`.
    """
    cut = trace
    if hours:
        refused = Refused()
        frame = in_range(trace.frame, TraceOptions(from_s=hours[0] * 3600, to_s=hours[1] * 3600), refused)
        lost: Mapping[str, int] = {**trace.refused, **{r: trace.refused.get(r, 0) + n for r, n in refused.counts.items()}}
        cut = replace(trace, frame=frame, refused=lost)
    if not cut.frame.height:
        raise InputError("range", "", "-".join(f"{h:g}" for h in hours), "holds no request of the traffic; choose another")
    expected = cut.frame.height * copies * keep_percent // 100
    if expected > MOST_REQUESTS:
        hint = "choose a shorter range, fewer copies or a smaller share, or use the replay command, which has no limit"
        raise InputError("traffic", "load", expected, f"requests are more than the page's {MOST_REQUESTS:,}", hint=hint)
    used = weights if rule.models == "weighted" else None
    return filled(cut, rule, weights=used, model_map=model_map or None, thin=keep_percent / 100, superpose=copies)
