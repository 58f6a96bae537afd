"""From increments to the frames that the review reads: decisions, waits and wait sums, inside the window and before it."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from horde_policy.frames.decisions import DECISIONS
from horde_policy.frames.schemas import UTC_INSTANT, Schema
from horde_policy.frames.waits import WAIT_SUMS, WAITS
from horde_policy.imports.histograms import bucket_growths
from horde_policy.imports.mapping import DIMENSIONS
from horde_policy.imports.samples import NO_TIME, UNTIMED, Samples, group_of
from horde_policy.imports.series import Grown

__all__ = ["Counts", "Tally", "counted"]


@dataclass(frozen=True, slots=True)
class Counts:
    """The three frames: :data:`~horde_policy.frames.decisions.DECISIONS`, :data:`~horde_policy.frames.waits.WAITS`,
    :data:`~horde_policy.frames.waits.WAIT_SUMS`.
    """  # noqa: D205

    decisions: pl.DataFrame
    waits: pl.DataFrame
    wait_sums: pl.DataFrame

    @property
    def empty(self) -> bool:
        """Return whether nothing was counted."""
        return not (self.decisions.height or self.waits.height or self.wait_sums.height)


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted inside the window and before it; how many bucket growths were out of order, and how many growths were
    left out because another record of the same counter covers their time.
    """  # noqa: D205

    inside: Counts
    before: Counts
    disorder: int
    repeated: int


def counted(samples: Samples, grown: Grown) -> Tally:
    """Return the frames of what the samples' series grew by.

    One counter or histogram that is recorded in two forms is counted in one: cumulative before delta, classic buckets before
    native ones, each over the time that it covers.
    """
    of_series = _of_series(samples)
    frame, repeated = _one_form(grown.frame.join(of_series, on="sid"), grown.layouts.join(of_series, on="sid"))
    one = Grown(frame.select(grown.frame.columns), grown.layouts, grown.restarts, grown.rows)
    buckets, disorder = bucket_growths(samples, one)
    buckets = buckets.join(of_series, on="sid").rename({"low": "count_low", "high": "count_high"})
    decisions = frame.filter(pl.col("part") == "value").rename({"low": "count_low", "high": "count_high"})
    sums = _sums(frame, buckets)
    inside, before = (
        Counts(
            _framed(decisions.filter(pl.col("before") == early), DECISIONS, ["count_low", "count_high"]),
            _framed(buckets.filter(pl.col("before") == early), WAITS, ["count_low", "count_high"]),
            _framed(sums.filter(pl.col("before") == early), WAIT_SUMS, ["count_low", "count_high", "sum_low_s", "sum_high_s"]),
        )
        for early in (False, True)
    )
    return Tally(inside, before, disorder, repeated)


def _of_series(samples: Samples) -> pl.DataFrame:
    """Return what the frames say of each series: part, instance, kind and dimensions, and the number of its group."""
    groups: dict[object, int] = {}
    schema: dict[str, Any] = {
        "sid": pl.UInt32,
        "group": pl.Int64,
        "part": pl.String,
        "form": pl.Int8,
        "instance": pl.String,
        "kind": pl.String,
        **dict.fromkeys(DIMENSIONS, pl.String),
        "chat": pl.Boolean,
    }
    forms = {"native": 2, "bin": 1}
    rows = [
        (
            *(number, groups.setdefault(group_of(key), len(groups)), key.part),
            (1 if key.temporality in {"delta", "counted"} else forms.get(key.part, 0)),
            *(key.instance, key.family, *key[5:10]),
        )
        for number, key in enumerate(samples.keys)
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _one_form(frame: pl.DataFrame, layouts: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the growths without those whose time the better form of the same group covers, and how many those were."""
    if not frame.height:
        return frame, 0
    best = layouts.filter((pl.col("form") == 0) & pl.col("part").is_in(["value", "le"]))
    cover = best.group_by("group").agg(pl.col("first").min().alias("cover_from"), pl.col("last").max().alias("cover_to"))
    frame = frame.join(cover, on="group", how="left", maintain_order="left")
    again = ((pl.col("form") > 0) & (pl.col("t1") >= pl.col("cover_from")) & (pl.col("t1") <= pl.col("cover_to"))).fill_null(
        value=False
    )
    return frame.filter(~again), int(frame.select(again.sum()).item())


_WHEN = ["t0", "t1", "before", "instance", "kind", "requester", "chat"]


def _sums(frame: pl.DataFrame, buckets: pl.DataFrame) -> pl.DataFrame:
    """Return count and sum of each interval and label set: the buckets' count, and the sum where one was exported."""
    counts = buckets.group_by(_WHEN).agg(pl.col("count_low", "count_high").sum())
    said = (
        frame.filter(pl.col("part") == "sum").group_by(_WHEN).agg(sum_low_s=pl.col("low").sum(), sum_high_s=pl.col("high").sum())
    )
    exported = frame.filter(pl.col("part") == "sum").select("instance", "kind").unique().with_columns(exported=pl.lit(value=True))
    both = counts.join(said, on=_WHEN, how="left", nulls_equal=True).join(exported, on=["instance", "kind"], how="left")
    none = pl.when("exported").then(0.0).otherwise(None)
    return both.with_columns(pl.coalesce("sum_low_s", none), pl.coalesce("sum_high_s", none))


def _framed(rows: pl.DataFrame, schema: Schema, amounts: list[str]) -> pl.DataFrame:
    """Return rows with instants for times, those of one interval and label set added up, checked and sorted."""
    known = [
        pl.when(pl.col(name).is_in([NO_TIME, UNTIMED])).then(None).otherwise(pl.col(name)).cast(UTC_INSTANT).alias(alias)
        for name, alias in (("t0", "interval_start"), ("t1", "interval_end"))
    ]
    rows = rows.with_columns(known)
    keys = [name for name in schema.columns if name not in amounts]
    # a sum that nobody exported stays unknown: polars would add nulls up to zero
    added = [
        pl.when(pl.col(name).null_count() < pl.len()).then(pl.col(name).sum()).otherwise(None).alias(name) for name in amounts
    ]
    return schema.checked(rows.group_by(keys).agg(added).sort(schema.sort))
