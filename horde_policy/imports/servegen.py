"""Requests drawn from ServeGen's measured rates and sizes: synthetic, and labelled so (traces.md §1, §4).

ServeGen publishes, per client, the request rate of each 600 s window with the family of its inter-arrival times, and the
distributions of input and output tokens of each 21,600 s window. A draw keeps each window's count (rate × 600), spaces the
arrivals by gaps of the published family and shape, scaled to fill the window, and draws both sizes independently.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc

from horde_policy.errors import InputError, Problem
from horde_policy.frames.schemas import UTC_INSTANT
from horde_policy.imports.containers import opened, parquet_columns, read_parquet, sniffed
from horde_policy.imports.tables import read_table
from horde_policy.imports.trace_formats import UNDATED
from horde_policy.imports.trace_frame import TRACE, Trace, TraceOptions

__all__ = ["RATE_COLUMNS", "is_rates_csv", "sample_servegen"]

RATE_COLUMNS = frozenset({"client_id", "timestamp", "rate", "cv", "pat_name", "pat_arg1", "pat_arg2"})
RATE_FIELDS = ("timestamp", "rate", "cv", "pat_name", "pat_arg1", "pat_arg2")
SIZE_FIELDS = ("input_tokens", "output_tokens")
RATE_WINDOW_S = 600
NO_SIZES = "the client has no size distribution"
ROWS_A_WINDOW = 10_000_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Distribution:
    """Values and their cumulative probabilities."""

    values: Floats
    cumulative: Floats

    def drawn(self, uniform: Floats) -> npt.NDArray[np.int64]:
        places = np.searchsorted(self.cumulative, uniform * self.cumulative[-1], side="right")
        drawn: npt.NDArray[np.int64] = self.values[np.minimum(places, len(self.values) - 1)].astype(np.int64)
        return drawn


Sizes = dict[tuple[int, str], list[tuple[int, _Distribution]]]
"""(client, field) → the windows that have a distribution, by their start."""


def is_rates_csv(columns: tuple[str, ...]) -> bool:
    """Tell a published rates file, which has no header, by its first row.

    >>> is_rates_csv(("0", "8.34", "1.36", "Gamma", "0.54", "0.21")), is_rates_csv(("a", "b", "c", "d", "e", "f"))
    (True, False)
    """
    numbers = [re.fullmatch(r"[0-9.eE+-]+", field) for field in columns]
    return len(columns) == 6 and columns[3] in ("Gamma", "Weibull", "") and all(numbers[:3] + numbers[4:])


def sample_servegen(rates_path: Path, sizes_path: Path | None, options: TraceOptions) -> Trace:
    """Draw requests from a rates file (published CSV, or Parquet) and a sizes file (published JSON, or Parquet).

    Parameters
    ----------
    rates_path, sizes_path
        The two files. Of several models in the rates those that the sizes name are drawn.
    options
        ``seed`` is required; ``from_s`` and ``to_s`` choose windows, in seconds of the files' clock.

    Raises
    ------
    InputError
        No sizes file or seed is given, a file is not ServeGen's, or the range holds more requests than are drawn at once.
    """
    if sizes_path is None:
        raise InputError("trace", "sizes", None, "is missing: ServeGen's rates need their sizes file to draw requests from")
    if options.seed is None or options.seed < 0:
        raise InputError("trace", "seed", options.seed, "must be a whole number of at least 0: a draw states its seed")
    sizes, size_models = _load_sizes(sizes_path)
    rates, problems = _matched(_load_rates(rates_path), sizes, size_models)
    low, high = options.from_s or 0.0, options.to_s if options.to_s is not None else float("inf")
    rates = rates.filter((pl.col("timestamp") >= low) & (pl.col("timestamp") < high) & (pl.col("rate") > 0))
    rates = rates.with_columns((pl.col("rate") * RATE_WINDOW_S).round().cast(pl.Int64).alias("requests"))
    expected = int(rates["requests"].sum())
    if expected > options.most_drawn:
        most = options.most_drawn
        rule = f"requests lie in the range; at most {most} are drawn at once: choose a shorter range of the file's clock"
        raise InputError("trace", "range", expected, rule)
    clients = {client for client, _ in sizes}
    lost = int(rates.filter(~pl.col("client_id").is_in(list(clients)))["requests"].sum())
    model = "+".join(sorted(set(rates["model"]))) or "nothing"
    frame = _drawn(rates.filter(pl.col("client_id").is_in(list(clients))), sizes, options)
    synthetic = Problem(
        "synthetic", model, f"requests are drawn from rates and size distributions with seed {options.seed}", "note"
    )
    undated = Problem("assumed_date", "created", "the clock has no date: only the time since its start means something", "note")
    return Trace(
        name=options.name or f"servegen_{model}_seed{options.seed}",
        format="servegen",
        frame=TRACE.checked(frame),
        rows_read=frame.height + lost,
        refused={NO_SIZES: lost} if lost else {},
        dated=False,
        synthetic=True,
        thin_by_row=True,
        problems=(synthetic, undated, *problems),
    )


def _of_file(path: Path) -> tuple[str, int]:
    """Return model and client of a published file, from its name and folder: ``deepseek-r1/chunk-35-trace.csv``."""
    found = re.fullmatch(r"(?:servegen_)?(?:(?P<model>.+)_)?chunk-(?P<client>[0-9]+)-(?:trace\.csv|dataset\.json)", path.name)
    if found is None:
        raise InputError("trace", "", path.name, "must be named chunk-<client>-trace.csv or chunk-<client>-dataset.json")
    return found["model"] or path.resolve().parent.name, int(found["client"])


def _load_rates(path: Path) -> pl.DataFrame:
    found = sniffed(path, "trace")
    if found.container == "parquet":
        kinds = {"model": "text", "client_id": "whole", "timestamp": "whole", "rate": "real", "pat_name": "text"}
        table = read_table(path, {**kinds, "pat_arg1": "real"}, "ServeGen rates", by_row=True)  # type: ignore[dict-item]
        if table.refused.counts or not set(kinds) <= set(table.frame.columns):
            raise InputError("ServeGen rates", "", path.name, f"must have the columns {sorted(kinds)} without gaps")
        return table.frame
    model, client = _of_file(path)
    types = {name: pa.string() if name == "pat_name" else pa.float64() for name in RATE_FIELDS}
    try:
        with opened(path) as stream:
            read = pc.ReadOptions(column_names=list(RATE_FIELDS))
            table_read = pc.read_csv(stream, read_options=read, convert_options=pc.ConvertOptions(column_types=types))
    except pa.ArrowInvalid as error:
        raise InputError("ServeGen rates", "", path.name, f"is not a rates file: {error}") from error
    frame = pl.DataFrame(pl.from_arrow(table_read)).with_columns(pl.lit(model).alias("model"), pl.lit(client).alias("client_id"))
    return frame.with_columns(pl.col("timestamp").cast(pl.Int64), pl.col("client_id").cast(pl.Int64))


def _load_sizes(path: Path) -> tuple[Sizes, set[str]]:
    if sniffed(path, "trace").container == "parquet":
        columns = ("model", "client_id", "timestamp", "field", "value", "probability")
        if not set(columns) <= set(parquet_columns(path, "ServeGen sizes")):
            raise InputError("ServeGen sizes", "", path.name, f"is not a sizes file, which has the columns {', '.join(columns)}")
        frame = read_parquet(path, columns, "ServeGen sizes")
        kinds = [frame.schema[name] for name in columns]
        if kinds[0] != pl.String or kinds[3] != pl.String or not all(kind.is_numeric() for kind in (*kinds[1:3], *kinds[4:])):
            raise InputError("ServeGen sizes", "columns", [str(kind) for kind in kinds], "must be texts and numbers as published")
        frame = frame.drop_nulls().filter(pl.col("value").is_finite() & pl.col("probability").is_finite())
        frame = frame.filter(pl.col("field").is_in(SIZE_FIELDS)).sort("client_id", "timestamp", "field", "value")
        models = set(frame["model"].unique())
        parts: Iterator[tuple[int, int, str, Floats, Floats]] = (
            (int(key[0]), int(key[1]), str(key[2]), part["value"].to_numpy(), part["probability"].to_numpy())
            for key, part in frame.group_by("client_id", "timestamp", "field", maintain_order=True)
        )
    else:
        model, client = _of_file(path)
        models, parts = {model}, _published_sizes(path, client)
    sizes: Sizes = {}
    for client, start, field, values, probabilities in parts:
        chances = np.maximum(probabilities.astype(np.float64), 0.0)
        if len(values) and chances.sum() > 0:
            one = _Distribution(np.maximum(values.astype(np.float64), 0.0), np.cumsum(chances))
            sizes.setdefault((client, field), []).append((start, one))
    return sizes, models


def _published_sizes(path: Path, client: int) -> Iterator[tuple[int, int, str, Floats, Floats]]:
    """Yield a published dataset's distributions: a JSON object of windows, each field a Python dict as text."""
    with opened(path) as stream:
        content = stream.read()
    try:
        windows = msgspec.json.decode(content, type=dict[str, dict[str, str]])
        for start, fields in windows.items():
            for field in SIZE_FIELDS:
                # the text is a Python dict with numeric keys, which JSON cannot say: parsed as a literal, never evaluated
                chances = ast.literal_eval(fields.get(field, "{}"))
                values, weights = (np.array(list(part), dtype=np.float64) for part in (chances, chances.values()))
                if values.ndim != 1 or weights.ndim != 1:
                    raise TypeError("a distribution is a dict of number to number")
                yield client, int(start), field, values, weights
    except (ValueError, SyntaxError, TypeError, AttributeError, MemoryError, RecursionError) as error:
        raise InputError("ServeGen sizes", "", path.name, f"is not a dataset file: {error}") from error


def _matched(rates: pl.DataFrame, sizes: Sizes, size_models: set[str]) -> tuple[pl.DataFrame, list[Problem]]:
    """Return the rates of the models that the sizes name; a single client's sizes serve a single client's rates."""
    kept = rates.filter(pl.col("model").is_in(list(size_models)))
    if not kept.height:
        raise InputError(
            "ServeGen rates", "models", sorted(set(rates["model"])), f"must be one of the sizes': {sorted(size_models)}"
        )
    rate_clients, size_clients = set(kept["client_id"]), {client for client, _ in sizes}
    if len(rate_clients) == len(size_clients) == 1 and rate_clients != size_clients:
        (other,), (own,) = size_clients, rate_clients
        for field in SIZE_FIELDS:
            if (other, field) in sizes:
                sizes[own, field] = sizes.pop((other, field))
        text = f"the sizes are client {other}'s, the rates client {own}'s"
        return kept, [Problem("sizes_of_another_client", f"client {own}", text)]
    return kept, []


def _window(windows: list[tuple[int, _Distribution]], at_s: int) -> _Distribution:
    """Return the last distribution whose window starts by ``at_s``, else the first there is."""
    earlier = [one for start, one in windows if start <= at_s]
    return earlier[-1] if earlier else windows[0][1]


def _gaps(draw: np.random.Generator, family: str | None, shape: float, count: int) -> Floats:
    """Return gaps of a family's shape; their scale does not matter. No usable family means Poisson arrivals."""
    if family == "Gamma" and shape > 0:
        return draw.gamma(shape, size=count)
    if family == "Weibull" and shape > 0:
        return draw.weibull(shape, size=count)
    return draw.exponential(size=count)


def _drawn(rates: pl.DataFrame, sizes: Sizes, options: TraceOptions) -> pl.DataFrame:
    origin_us = int(((options.origin or UNDATED) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000
    seconds: list[Floats] = []
    columns: dict[str, list[npt.NDArray[np.int64]]] = {"row": [], "client": [], "input_tokens": [], "output_tokens": []}
    for client, start, family, shape, count in rates.select(
        "client_id", "timestamp", "pat_name", "pat_arg1", "requests"
    ).iter_rows():
        # a generator of its own for each client and window: another range draws the same requests
        draw = np.random.default_rng([options.seed or 0, client, start])
        gaps = _gaps(draw, family, shape or 0.0, count + 1)
        reached = np.cumsum(gaps)
        seconds.append(start + RATE_WINDOW_S * reached[:-1] / max(reached[-1], np.finfo(float).tiny))
        columns["row"].append(np.arange(count) + (client * 10_000 + start // RATE_WINDOW_S) * ROWS_A_WINDOW)
        columns["client"].append(np.full(count, client))
        for field in SIZE_FIELDS:
            windows = sizes.get((client, field), [])
            uniform = draw.random(count)
            drawn = _window(windows, start).drawn(uniform) if windows else np.zeros(count, dtype=np.int64)
            columns[field].append(drawn)
    joined = {name: np.concatenate(parts) if parts else np.empty(0, dtype=np.int64) for name, parts in columns.items()}
    clock_us = np.rint((np.concatenate(seconds) if seconds else np.empty(0)) * 1e6).astype(np.int64) + origin_us
    chat, model = options.chat, rates["model"][0] if rates.height else None
    return (
        pl.DataFrame(joined)
        .with_columns(
            pl.Series("created", clock_us).cast(UTC_INSTANT),
            pl.col("client").cast(pl.String),
            pl.lit(model, pl.String).alias("model"),
            pl.lit(chat, pl.Boolean).alias("chat"),
            (pl.col("output_tokens") == 0).alias("failed"),
        )
        .sort("created", "row")
    )
