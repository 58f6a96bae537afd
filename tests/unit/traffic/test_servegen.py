"""Requests drawn from ServeGen's rates and sizes: counts kept, seed stated, labelled synthetic."""

import json
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from horde_policy.errors import InputError
from horde_policy.imports.servegen import NO_SIZES
from horde_policy.imports.trace_frame import TRACE, TraceOptions
from horde_policy.imports.traces import detect_format, load_trace
from tests.unit.traffic.paths import TRACES

RATES = TRACES / "servegen_deepseek-r1_chunk-35-trace.csv"
SIZES = TRACES / "servegen_deepseek-r1_chunk-52-dataset.json"


def parquet_forms(folder: Path) -> tuple[Path, Path]:
    """Write rates of three clients in two windows, sizes of two of them."""
    rates = [(c, w, 0.05 * (c + 1), 1.0, f) for c, f in ((0, "Gamma"), (1, "Weibull"), (2, None)) for w in (0, 600)]
    pl.DataFrame(
        {
            "category": ["language"] * 6,
            "model": ["m"] * 6,
            "client_id": [r[0] for r in rates],
            "timestamp": [r[1] for r in rates],
            "rate": [r[2] for r in rates],
            "cv": [1.0] * 6,
            "pat_name": pl.Series([r[4] for r in rates], dtype=pl.String),
            "pat_arg1": [0.5] * 6,
            "pat_arg2": [1.0] * 6,
        }
    ).write_parquet(folder / "rates.parquet")
    rows = [
        ("m", c, 0, f, float(v), 0.5)
        for c in (0, 1)
        for f, v0 in (("input_tokens", 100), ("output_tokens", 7))
        for v in (v0, v0 + 1)
    ]
    pl.DataFrame(rows, schema=["model", "client_id", "timestamp", "field", "value", "probability"], orient="row").write_parquet(
        folder / "sizes.parquet"
    )
    return folder / "rates.parquet", folder / "sizes.parquet"


def test_the_published_pair_is_drawn_with_the_counts_that_were_measured() -> None:
    assert detect_format(RATES) == "servegen"
    trace = load_trace(RATES, TraceOptions(seed=1, from_s=0, to_s=1800), sizes=SIZES)
    assert trace.synthetic
    assert not trace.dated
    assert trace.name == "servegen_deepseek-r1_seed1"
    windows = trace.frame.group_by(
        (pl.col("created") - trace.frame["created"].dt.truncate("1d")[0]).dt.total_seconds() // 600
    ).len()
    assert windows.sort("created")["len"].to_list() == [round(rate * 600) for rate in (8.34, 10.79, 11.526666666666667)]
    known = set(json.loads(SIZES.read_text())["21600"]["output_tokens"].strip("{}").replace(" ", "").split(","))
    assert set(trace.frame["output_tokens"]) <= {int(pair.split(":")[0]) for pair in known}
    assert {"synthetic", "sizes_of_another_client"} <= {problem.code for problem in trace.problems}
    assert TRACE.checked(trace.frame).equals(trace.frame)


def test_one_seed_one_draw_and_a_range_draws_the_same_requests() -> None:
    def drawn(seed: int, from_s: float, to_s: float) -> pl.DataFrame:
        return load_trace(RATES, TraceOptions(seed=seed, from_s=from_s, to_s=to_s), sizes=SIZES).frame

    assert drawn(1, 0, 1200).equals(drawn(1, 0, 1200))
    assert not drawn(1, 0, 600).equals(drawn(2, 0, 600))
    both = pl.concat([drawn(1, 0, 600), drawn(1, 600, 1200)])
    assert drawn(1, 0, 1200).equals(both.sort("created", "row"))


def test_clients_without_sizes_are_refused_by_name(tmp_path: Path) -> None:
    rates, sizes = parquet_forms(tmp_path)
    assert detect_format(rates) == "servegen"
    trace = load_trace(rates, TraceOptions(seed=3), sizes=sizes)
    assert trace.refused == {NO_SIZES: 180}
    assert trace.rows_read == 60 + 120 + 180
    assert trace.frame["client"].value_counts().sort("client").rows() == [("0", 60), ("1", 120)]
    assert set(trace.frame["output_tokens"]) == {7, 8}
    assert set(trace.frame["input_tokens"]) == {100, 101}
    assert trace.thin_by_row
    last = trace.frame["created"].max()
    assert last is not None
    assert last - trace.frame["created"].dt.truncate("1d")[0] <= timedelta(seconds=1200)


@pytest.mark.parametrize("seed", [None, -1])
def test_a_draw_states_its_seed(seed: int | None) -> None:
    with pytest.raises(InputError, match=r"seed: .* must be a whole number of at least 0: a draw states its seed"):
        load_trace(RATES, TraceOptions(seed=seed), sizes=SIZES)


def test_what_is_missing_or_not_servegen_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sizes: is missing"):
        load_trace(RATES, TraceOptions(seed=1))
    rates, sizes = parquet_forms(tmp_path)
    with pytest.raises(InputError, match="must be one of the sizes': \\['deepseek-r1'\\]"):
        load_trace(rates, TraceOptions(seed=1), sizes=SIZES)
    with pytest.raises(InputError, match="is not a sizes file"):
        load_trace(rates, TraceOptions(seed=1), sizes=TRACES / "azure2023_conv.parquet")
    pl.read_parquet(sizes).with_columns(pl.col("client_id").cast(pl.String)).write_parquet(tmp_path / "texts.parquet")
    with pytest.raises(InputError, match="must be texts and numbers as published"):
        load_trace(rates, TraceOptions(seed=1), sizes=tmp_path / "texts.parquet")
    with pytest.raises(InputError, match="must be named chunk-<client>-"):
        load_trace(rates, TraceOptions(seed=1), sizes=TRACES / "ragpulse_week1.head200.jsonl")
    for content in ('{"0": {"input_tokens": "__import__(\'os\')"}}', '{"0": 5}', "[]", '{"0": {"input_tokens": "{1: [2]}"}}'):
        bad = tmp_path / "m_chunk-0-dataset.json"
        bad.write_text(content)
        with pytest.raises(InputError, match="is not a dataset file"):
            load_trace(rates, TraceOptions(seed=1), sizes=bad)
    pl.read_parquet(rates).with_columns(pl.lit(1000.0).alias("rate"), pl.lit("m").alias("model")).vstack(
        pl.read_parquet(rates).with_columns(pl.lit(50_000.0).alias("rate"))
    ).write_parquet(rates)
    with pytest.raises(InputError, match="at most 20000000 are drawn at once"):
        load_trace(rates, TraceOptions(seed=1), sizes=sizes)


def test_an_idle_range_gives_no_requests() -> None:
    trace = load_trace(RATES, TraceOptions(seed=1, from_s=85_200, to_s=86_400), sizes=SIZES)
    assert trace.rows_read == trace.frame.height == 0
