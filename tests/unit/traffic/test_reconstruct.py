"""Traffic rebuilt from decision counts: every count comes back, nothing beyond its interval and bucket, seeds differ."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horde_policy.errors import FrameError, InputError
from horde_policy.frames.decisions import DECISIONS, OUTCOMES, REQUESTERS, SIZES, size_of
from horde_policy.replay.fill import filled
from horde_policy.replay.fill_rule import LADDER, FillRule
from horde_policy.replay.reconstruct import NO_SIZE, NO_TIME, reconstructed

START = datetime(2026, 11, 29, tzinfo=UTC)


def counted(*cells: Mapping[str, object]) -> pl.DataFrame:
    usual = {
        "interval_start": START,
        "interval_end": START + timedelta(minutes=1),
        "instance": "a",
        "requester": "anonymous",
        "outcome": "free",
        "requested_size": "<=512",
        "allowance_size": "2049-4096",
        "chat": False,
    }
    rows = [
        {**usual, **{k: v for k, v in cell.items() if k != "n"}, "count_low": cell["n"], "count_high": cell["n"]}
        for cell in cells
    ]
    rows = [
        {**row, **{k: cell[k] for k in ("count_low", "count_high") if k in cell}} for row, cell in zip(rows, cells, strict=True)
    ]
    return pl.DataFrame(rows, schema=DECISIONS.polars_schema())


CELLS: st.SearchStrategy[list[dict[str, object]]] = st.lists(
    st.builds(
        dict,
        requester=st.sampled_from(REQUESTERS),
        outcome=st.sampled_from(OUTCOMES),
        requested_size=st.sampled_from(SIZES),
        chat=st.booleans(),
        interval_end=st.integers(1, 3600).map(lambda s: START + timedelta(seconds=s)),
        n=st.integers(0, 40).map(float),
    ),
    min_size=1,
    max_size=12,
)


@given(CELLS, st.integers(0, 5), st.sampled_from(["loguniform", "ladder"]))
@settings(max_examples=60, deadline=None)
def test_the_counts_come_back_whatever_is_drawn(cells: list[dict[str, object]], seed: int, within: str) -> None:
    decisions = counted(*cells)
    trace = reconstructed(decisions, seed=seed, sizes_within=within)  # type: ignore[arg-type]
    frame = trace.frame.with_columns(
        pl.col("max_length").map_elements(size_of, return_dtype=pl.String).alias("requested_size"),
        pl.col("requester").cast(pl.String),
    )
    keys = ["requester", "recorded_outcome", "requested_size", "chat"]
    want = (
        decisions.rename({"outcome": "recorded_outcome"}).group_by(keys).agg(pl.col("count_low").sum().cast(pl.UInt32).alias("n"))
    )
    assert frame.group_by(keys).agg(pl.len().alias("n")).sort(keys).equals(want.filter(pl.col("n") > 0).sort(keys))
    assert trace.rows_read == trace.frame.height == want["n"].sum()
    if frame.height:
        assert frame["created"].is_sorted()
        assert frame["created"].min() > START  # type: ignore[operator]
        assert frame["created"].max() <= decisions["interval_end"].max()  # type: ignore[operator]
        assert frame["max_length"].is_between(16, 16384).all()
    if within == "ladder":
        assert set(frame["max_length"]) <= set(LADDER)


def test_it_says_that_it_is_a_reconstruction_and_several_seeds_differ() -> None:
    decisions = counted({"n": 500.0}, {"n": 20.0, "requested_size": ">4096", "outcome": "refused"})
    one, again, other = (reconstructed(decisions, seed=seed) for seed in (1, 1, 2))
    assert one.frame.equals(again.frame)
    assert not one.frame.equals(other.frame)
    assert one.reconstruction
    assert one.synthetic
    assert one.name == "metrics_seed1"
    assert "rebuilt from counts with seed 1" in one.problems[0].text
    stamp = filled(one, FillRule()).stamp
    assert stamp["reconstruction"]
    assert stamp["rows_read"] == stamp["kept"] == stamp["requests"] == 520


def test_what_the_outcome_tells_is_kept_and_the_rest_filled() -> None:
    decisions = counted(
        {"n": 1.0, "outcome": "funded", "requester": "registered"},
        {"n": 1.0, "outcome": "refused", "requester": "registered", "chat": True},
        {"n": 1.0, "outcome": "refused", "requester": "registered"},
        {"n": 1.0, "outcome": "downgraded"},
        {"n": 1.0, "outcome": "free", "requester": None, "chat": None},
    )
    told = reconstructed(decisions, seed=0).frame.select("recorded_outcome", "chat", "can_pay", "allow_downgrade").sort(pl.all())
    assert {tuple(row) for row in told.rows()} == {
        ("funded", False, True, None),
        ("refused", True, False, None),
        ("refused", False, False, False),
        ("downgraded", False, False, True),
        ("free", None, None, None),
    }
    traffic = filled(
        reconstructed(decisions, seed=0), FillRule.parsed("requester=0/1,can_pay=1,allow_downgrade=1,output=0.2")
    ).frame
    by_outcome = {(row["recorded_outcome"], row["chat"]): row for row in traffic.rows(named=True)}
    assert by_outcome["free", False]["requester"] == "shared_key"
    assert by_outcome["free", False]["can_pay"]
    assert not by_outcome["refused", False]["can_pay"]
    assert not by_outcome["refused", False]["allow_downgrade"]
    assert by_outcome["refused", True]["allow_downgrade"]
    assert (traffic["output_tokens"] <= traffic["max_length"]).all()


def test_counts_between_bounds_and_fractions_are_right_in_the_mean() -> None:
    decisions = counted(*[{"n": 0.0, "count_low": 2.0, "count_high": 6.0} for _ in range(400)])
    height = reconstructed(decisions, seed=3).frame.height
    assert pytest.approx(height, rel=0.05) == 400 * 4
    fractions = counted(*[{"n": 0.3} for _ in range(2000)])
    assert reconstructed(fractions, seed=3).frame.height == pytest.approx(600, rel=0.12)
    assert reconstructed(counted({"n": 7.0}), seed=9).frame.height == 7


def test_what_cannot_be_placed_is_counted_by_reason() -> None:
    decisions = counted(
        {"n": 3.0, "interval_start": None}, {"n": 2.0, "interval_end": None}, {"n": 4.0, "requested_size": None}, {"n": 5.0}
    )
    trace = reconstructed(decisions, seed=1)
    assert trace.refused == {NO_TIME: 5, NO_SIZE: 4}
    assert (trace.rows_read, trace.frame.height) == (14, 5)
    assert {problem.code for problem in trace.problems} == {"reconstruction", "not_rebuilt"}


def test_the_draw_is_even_on_a_logarithmic_scale() -> None:
    sizes = reconstructed(counted({"n": 20_000.0, "requested_size": "1025-2048"}), seed=4).frame["max_length"]
    assert sizes.min() == 1025
    assert sizes.max() == 2048
    assert sizes.median() == pytest.approx((1025 * 2049) ** 0.5, rel=0.01)


def test_nothing_and_too_much_and_nonsense() -> None:
    assert reconstructed(DECISIONS.empty(), seed=1).frame.height == 0
    assert filled(reconstructed(DECISIONS.empty(), seed=1), FillRule()).frame.height == 0
    with pytest.raises(InputError, match="at most 20000000 are rebuilt"):
        reconstructed(counted({"n": 1e9}), seed=1)
    with pytest.raises(InputError, match="seed: -1"):
        reconstructed(counted({"n": 1.0}), seed=-1)
    with pytest.raises(InputError, match="must be loguniform or ladder"):
        reconstructed(counted({"n": 1.0}), seed=1, sizes_within="even")  # type: ignore[arg-type]
    with pytest.raises(FrameError, match="frame decisions"):
        reconstructed(pl.DataFrame({"a": [1]}), seed=1)
