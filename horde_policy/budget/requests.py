"""Requests for a budget replay: read from Parquet or CSV, or made from a traffic frame, and checked row by row (design §3)."""

from pathlib import Path

import polars as pl

from horde_policy.errors import FrameError, InputError, Problem
from horde_policy.frames.schemas import UTC_INSTANT
from horde_policy.frames.usage import BUDGET_REQUESTS

__all__ = ["checked_requests", "has_own_layout", "load_requests", "request_problems", "requests_from_traffic"]

WHAT = "requests"
MAX_TOKENS = 10**9
MAX_DURATION_S = 366 * 86_400.0
DEFAULTS = {"n": 1, "cache_read_tokens": 0, "cache_write_5m_tokens": 0, "cache_write_1h_tokens": 0}
REQUIRED = ("created", "model", "max_tokens", "output_tokens", "duration_s")
LEAST = {"n": 1, "max_tokens": 1}


def has_own_layout(path: Path) -> bool:
    """Return whether a CSV or Parquet file has the columns that a budget replay needs; a file that cannot be read has not."""
    try:
        if path.suffix.lower() == ".parquet":
            names = list(pl.read_parquet_schema(path))
        elif path.suffix.lower() == ".csv":
            names = pl.read_csv(path, n_rows=0, infer_schema=False).columns
        else:
            return False
    except (OSError, pl.exceptions.PolarsError):
        return False
    return set(REQUIRED) <= set(names)


def load_requests(path: Path) -> pl.DataFrame:
    """Return the requests of a Parquet or CSV file as a :data:`~horde_policy.frames.usage.BUDGET_REQUESTS` frame.

    Raises
    ------
    InputError
        The file cannot be read, a column is missing, or a row breaks its rule; nothing is left out silently.
    """
    try:
        if path.suffix.lower() == ".parquet":
            frame = pl.read_parquet(path)
        elif path.suffix.lower() == ".csv":
            frame = pl.read_csv(path, infer_schema=False)
        else:
            raise InputError(WHAT, "file", str(path), "must end in .parquet or .csv")
    except OSError as error:
        raise InputError(WHAT, "file", str(path), f"cannot be read: {error.strerror or error}") from error
    except pl.exceptions.PolarsError as error:
        raise InputError(WHAT, "file", str(path), f"cannot be read: {str(error).splitlines()[0]}") from error
    return checked_requests(frame)


def checked_requests(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with every column in its type, defaults filled, rows checked and sorted by arrival.

    Raises
    ------
    FrameError
        A column is missing.
    InputError
        A row breaks its rule, with its number and column.

    Examples
    --------
    >>> frame = pl.DataFrame({"created": ["2026-01-01T00:00:00Z"], "model": ["m"], "input_tokens": [10], "max_tokens": [None],
    ...                       "output_tokens": [5], "duration_s": [1.5]})
    >>> checked_requests(frame).row(0, named=True)["n"]
    1
    """
    for name in REQUIRED:
        if name not in frame.columns:
            raise FrameError(WHAT, f"column {name}", None, "is missing")
    if "body_bytes" not in frame.columns and "input_tokens" not in frame.columns:
        raise FrameError(WHAT, "columns", frame.columns[:20], "must have body_bytes or input_tokens")
    columns = []
    for name, column in BUDGET_REQUESTS.columns.items():
        if name not in frame.columns:
            columns.append(pl.lit(DEFAULTS.get(name)).cast(column.dtype).alias(name))
        elif name == "created":
            columns.append(_instants(frame))
        else:
            columns.append(pl.col(name).cast(column.dtype, strict=False))
    typed = frame.select(columns)
    _refuse_lost(frame, typed)
    _check_rows(typed)
    return BUDGET_REQUESTS.checked(typed.sort("created", maintain_order=True))


def requests_from_traffic(traffic: pl.DataFrame, *, model: str, tokens_per_s: float, first_token_s: float = 0.0) -> pl.DataFrame:
    """Return requests made from a traffic frame: columns ``created``, ``input_tokens``, ``output_tokens``, ``max_length``.

    A trace has no duration: it is assumed as the time to the first token and the output at a speed. Every request is
    priced as one model. Both are assumptions to be shown beside the result.
    """
    for name, value, least in (("tokens_per_s", tokens_per_s, 0.0), ("first_token_s", first_token_s, -1e-12)):
        if not least < value < float("inf"):
            raise InputError(WHAT, name, value, "must be a finite number above 0" if least == 0 else "must be at least 0")
    made = traffic.select(
        "created",
        "input_tokens",
        "output_tokens",
        pl.lit(model).alias("model"),
        pl.col("max_length").alias("max_tokens"),
        (first_token_s + pl.col("output_tokens").cast(pl.Float64) / tokens_per_s).alias("duration_s"),
    )
    return checked_requests(made)


def request_problems(requests: pl.DataFrame) -> list[Problem]:
    """Return what in the requests weakens the result: rows above their own limit, and rows without one."""
    above = requests.filter(pl.col("output_tokens") > pl.col("n") * pl.col("max_tokens")).height
    without = requests.filter(pl.col("max_tokens").is_null()).height
    found = []
    if above:
        text = f"{above} requests have more output than n × max_tokens allows: the bound does not cover them"
        found.append(Problem("above_own_limit", WHAT, text))
    if without:
        text = f"{without} requests have no output limit: unless their model has a declared ceiling there is no bound (B8)"
        found.append(Problem("unbounded", WHAT, text, "note"))
    return found


def _instants(frame: pl.DataFrame) -> pl.Expr:
    dtype = frame.schema["created"]
    if dtype == pl.String:
        return pl.col("created").str.to_datetime("%+", time_unit="us", strict=False).dt.convert_time_zone("UTC").alias("created")
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        return pl.col("created").dt.convert_time_zone("UTC").cast(UTC_INSTANT)
    raise FrameError(WHAT, "column created", dtype, "must be instants with a time zone")


def _refuse_lost(given: pl.DataFrame, typed: pl.DataFrame) -> None:
    """Refuse a value that its type could not take: it would silently be null."""
    for name in typed.columns:
        if name not in given.columns:
            continue
        before = given[name]
        empty = before.is_null() | (before == "") if before.dtype == pl.String else before.is_null()
        lost = typed[name].is_null() & ~empty
        if before.dtype.is_float() and not typed.schema[name].is_float():
            lost = lost | (before.is_not_null() & (before != before.round()).fill_null(value=False))
        if lost.any():
            row = int(lost.arg_max() or 0)
            raise InputError(WHAT, f"row {row}, column {name}", before[row], f"must be {typed.schema[name]}")


def _check_rows(frame: pl.DataFrame) -> None:
    for name, column in BUDGET_REQUESTS.columns.items():
        values = frame[name]
        if not column.null and values.null_count():
            raise InputError(WHAT, f"row {values.is_null().arg_max()}, column {name}", None, "must not be missing")
        if column.dtype == pl.Int64:
            least, most = LEAST.get(name, 0), 4 * MAX_TOKENS if name == "body_bytes" else MAX_TOKENS
            _refuse(values, (values < least) | (values > most), f"must be a whole number from {least} to {most}")
    seconds = frame["duration_s"]
    _refuse(
        seconds, ~((seconds >= 0) & (seconds <= MAX_DURATION_S)) | seconds.is_nan(), f"must be from 0 to {MAX_DURATION_S:g} s"
    )
    if "input_tokens" in frame.columns:
        nothing = frame["input_tokens"].is_null() & frame["body_bytes"].is_null()
        _refuse(frame["input_tokens"], nothing, "must not be missing together with body_bytes")
        parts = frame["cache_read_tokens"] + frame["cache_write_5m_tokens"] + frame["cache_write_1h_tokens"]
        real = frame["input_tokens"].fill_null((frame["body_bytes"] + 3) // 4)
        _refuse(parts.alias("cache_…_tokens"), parts > real, "must together be at most the input tokens")


def _refuse(values: pl.Series, broken: pl.Series, rule: str) -> None:
    if broken.any():
        row = int(broken.fill_null(value=False).arg_max() or 0)
        raise InputError(WHAT, f"row {row}, column {values.name}", values[row], rule)
