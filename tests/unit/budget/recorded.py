"""Recorded traffic as requests of a budget replay."""

from pathlib import Path

import polars as pl

from horde_policy.budget.requests import requests_from_traffic

ROOT = Path(__file__).parents[3]

LADDER = [80, 150, 256, 512, 1024, 2048, 4096]


def azure_requests() -> pl.DataFrame:
    """Recorded arrivals and tokens; the limits by a ladder, the durations by a speed: both assumed, as the trace has none."""
    trace = pl.read_csv(ROOT / "tests" / "data" / "budget" / "azure2023_conv.head300.csv")
    rung = pl.lit(LADDER[-1])
    for size in reversed(LADDER[:-1]):
        rung = pl.when(pl.col("output_tokens") <= size).then(size).otherwise(rung)
    traffic = (
        trace.with_columns(
            pl.col("TIMESTAMP")
            .str.slice(0, 26)
            .str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", time_zone="UTC")
            .alias("created"),
            pl.col("ContextTokens").alias("input_tokens"),
            pl.col("GeneratedTokens").alias("output_tokens"),
        )
        .with_columns(rung.cast(pl.Int64).alias("max_length"))
        .select("created", "input_tokens", "output_tokens", "max_length")
    )
    return requests_from_traffic(traffic, model="large", tokens_per_s=30.0, first_token_s=0.5)
