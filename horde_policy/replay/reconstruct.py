"""Traffic rebuilt from exported decision counts: a reconstruction, and labelled so (issue 5, "from exported metrics").

The counts (A25) tell for each interval how many requests of which requester, size bucket and chat flag came, and what
became of them. When within the interval and which size within the bucket is drawn; the rest is assigned by a fill rule.
"""

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from horde_policy.errors import InputError, Problem
from horde_policy.frames.decisions import DECISIONS, OUTCOMES, REQUESTERS, SIZE_EDGES_TOKENS, SIZES
from horde_policy.frames.schemas import UTC_INSTANT
from horde_policy.frames.traffic import REQUESTER
from horde_policy.imports.trace_frame import TRACE, Trace
from horde_policy.replay.fill_rule import LADDER
from horde_policy.units import MAX_LENGTH_LIMIT_TOKENS

__all__ = ["SizesWithin", "reconstructed"]

SizesWithin = Literal["loguniform", "ladder"]

LEAST_ASKED_TOKENS = 16
MOST_REQUESTS = 20_000_000
LOWER = (LEAST_ASKED_TOKENS, *(edge + 1 for edge in SIZE_EDGES_TOKENS))
UPPER = (*SIZE_EDGES_TOKENS, MAX_LENGTH_LIMIT_TOKENS)
"""The smallest and largest size of each bucket of A25."""

NO_TIME = "counted over an interval without a beginning or an end"
NO_SIZE = "counted without a size"

Draw = np.random.Generator


def reconstructed(
    decisions: pl.DataFrame, *, seed: int, sizes_within: SizesWithin = "loguniform", name: str = "metrics"
) -> Trace:
    """Return requests that would have given these counts.

    Parameters
    ----------
    decisions
        Frame :data:`horde_policy.frames.decisions.DECISIONS`. A count known only between bounds is drawn between them; a
        fraction, as ``increase()`` gives, becomes a whole number that is right in the mean.
    seed
        Of all draws; take several to see what the drawing decides.
    sizes_within
        How a size is drawn in its bucket: evenly on a logarithmic scale, or one of the sizes that front-ends offer.
    name
        The trace's name.

    Returns
    -------
    Trace
        A row a request with its requester, ``max_length`` and chat flag as counted, ``can_pay`` and ``allow_downgrade`` as
        far as the outcome tells, and ``recorded_outcome`` and ``recorded_allowance_size`` to compare with. No output is known.

    Raises
    ------
    InputError
        A seed below 0, a kind of sizes that there is not, or more than 20,000,000 requests.
    FrameError
        The frame does not match its schema.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> start, end = (datetime(2026, 11, 29, hour, tzinfo=UTC) for hour in (18, 19))
    >>> counted = {"interval_start": start, "interval_end": end, "instance": "a", "requester": "anonymous",
    ...            "outcome": "free", "requested_size": "513-1024", "allowance_size": "2049-4096",
    ...            "chat": False, "count_low": 3.0, "count_high": 3.0}
    >>> trace = reconstructed(pl.DataFrame([counted], schema=DECISIONS.polars_schema()), seed=1)
    >>> trace.frame.height, trace.reconstruction, trace.frame["max_length"].is_between(513, 1024).all()
    (3, True, True)
    """
    if seed < 0:
        raise InputError("reconstruction", "seed", seed, "must be a whole number of at least 0")
    if sizes_within not in get_args(SizesWithin):
        raise InputError("reconstruction", "sizes", sizes_within, "must be " + " or ".join(get_args(SizesWithin)))
    counted = DECISIONS.checked(decisions).sort(DECISIONS.sort, nulls_last=True)
    draw = np.random.default_rng(seed)
    whole = _whole_counts(draw, counted)
    if whole.sum() > MOST_REQUESTS:
        raise InputError(
            "reconstruction", "counts", int(whole.sum()), f"requests are too many; at most {MOST_REQUESTS} are rebuilt"
        )
    counted = counted.with_columns(pl.Series("requests", whole))
    timeless = pl.col("interval_start").is_null() | pl.col("interval_end").is_null()
    refused = {
        NO_TIME: int(counted.filter(timeless)["requests"].sum()),
        NO_SIZE: int(counted.filter(~timeless & pl.col("requested_size").is_null())["requests"].sum()),
    }
    usable = counted.filter(~timeless & pl.col("requested_size").is_not_null())
    frame = _requests(draw, usable.select(pl.all().repeat_by("requests").explode(empty_as_null=False)), sizes_within)
    text = (
        f"requests are rebuilt from counts with seed {seed}: times drawn within intervals, sizes within buckets ({sizes_within})"
    )
    lost = [Problem("not_rebuilt", "counts", f"{n} requests {reason}") for reason, n in refused.items() if n]
    return Trace(
        name=f"{name}_seed{seed}",
        format="metrics",
        frame=frame,
        rows_read=int(whole.sum()),
        refused={reason: n for reason, n in refused.items() if n},
        synthetic=True,
        reconstruction=True,
        problems=(Problem("reconstruction", "requests", text, "note"), *lost),
    )


def _whole_counts(draw: Draw, counted: pl.DataFrame) -> npt.NDArray[np.int64]:
    """Return whole counts, right in the mean: between their bounds, fractions rounded up as often as they are large."""
    low, high = (counted[column].to_numpy() for column in ("count_low", "count_high"))
    between = low + draw.random(counted.height) * (high - low)
    whole: npt.NDArray[np.int64] = np.floor(between + draw.random(counted.height)).astype(np.int64)
    return np.clip(whole, np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64))


def _requests(draw: Draw, rows: pl.DataFrame, sizes_within: SizesWithin) -> pl.DataFrame:
    """Return a request a row: its time drawn in (start, end], its size in the bucket, in time order."""
    start, end = (rows[column].to_physical().to_numpy() for column in ("interval_start", "interval_end"))
    created = end - np.floor(draw.random(rows.height) * (end - start)).astype(np.int64)
    buckets = rows["requested_size"].replace_strict(list(SIZES), list(range(len(SIZES))), return_dtype=pl.Int64).to_numpy()
    known = rows.select(
        pl.Series("created", created).cast(UTC_INSTANT),
        pl.Series("max_length", _sizes(draw, buckets, sizes_within)),
        pl.when(pl.col("requester").is_in(REQUESTERS)).then(pl.col("requester")).cast(REQUESTER).alias("requester"),
        pl.col("chat"),
        # a hold was taken; or there was none to take
        _told({"funded": True, "refused": False, "downgraded": False}).alias("can_pay"),
        # a native request that was refused had not allowed it (A16); a chat's refusal does not tell (A17)
        pl.when(~((pl.col("outcome") == "refused") & pl.col("chat").fill_null(value=True)))
        .then(_told({"downgraded": True, "refused": False}))
        .alias("allow_downgrade"),
        pl.when(pl.col("outcome").is_in(OUTCOMES)).then(pl.col("outcome")).alias("recorded_outcome"),
        pl.col("allowance_size").alias("recorded_allowance_size"),
    )
    ordered = known.sort("created", maintain_order=True).with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    blank = [pl.lit(None, column.dtype).alias(name) for name, column in TRACE.columns.items() if name not in ordered.columns]
    whole = ordered.with_columns(blank).with_columns(pl.lit(value=False).alias("failed"))
    return whole.select(*TRACE.columns, *(name for name in ordered.columns if name not in TRACE.columns))


def _told(by_outcome: dict[str, bool]) -> pl.Expr:
    """Return what an outcome tells about its request, null where it tells nothing."""
    return pl.col("outcome").replace_strict(list(by_outcome), list(by_outcome.values()), default=None, return_dtype=pl.Boolean)


def _sizes(draw: Draw, buckets: npt.NDArray[np.int64], sizes_within: SizesWithin) -> npt.NDArray[np.int64]:
    lower, upper = np.array(LOWER)[buckets], np.array(UPPER)[buckets]
    uniform = draw.random(len(buckets))
    if sizes_within == "loguniform":
        drawn = np.floor(lower * ((upper + 1) / lower) ** uniform).astype(np.int64)
        within: npt.NDArray[np.int64] = np.clip(drawn, lower, upper)
        return within
    ladder = np.array(LADDER, dtype=np.int64)
    first, stop = np.searchsorted(ladder, lower), np.searchsorted(ladder, upper, side="right")
    offered: npt.NDArray[np.int64] = ladder[first + np.floor(uniform * (stop - first)).astype(np.int64)]
    return offered
