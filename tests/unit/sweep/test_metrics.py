"""Metrics of summed counts, against the same said in plain Python."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.settings import ReplaySettings
from horde_policy.sweep.counting import BIN_UPPER_S, BINS, EXPIRED_BIN
from horde_policy.sweep.evidence import complete_part, measured_by_block, measured_evidence
from horde_policy.sweep.metrics import METRICS, PRODUCTION_METRICS, wait_quantile_s, wait_quantiles_s
from horde_policy.sweep.results import SWEEP, tally_of
from horde_policy.sweep.run import run_sweep
from tests.unit.sweep.made import busy_week, inputs_of, made_frame, planned

BASE = ReplaySettings()
LOWER = ReplaySettings(floor_tokens=256)
LOWEST = ReplaySettings(floor_tokens=128)
DAY = {"requests": 100, "unfunded": 50, "unfunded_refused": 10, "refused": 12, "completed": 80, "expired": 6, "timed_out": 2}


def figure(frame: pl.DataFrame, key: str) -> float:
    value = frame[key][0]
    assert isinstance(value, float)
    return value


def test_the_metrics_of_a_day() -> None:
    frame = made_frame(
        [BASE],
        lambda *_: DAY | {"free_tokens": 1234, "free": 70, "funded": 18},
        days=1,
        waits=lambda *_: {"anonymous": {0: 8, 100: 2}, "registered": {50: 1}},
    )
    assert figure(frame, "refused_share_unfunded") == 10 / 50
    assert figure(frame, "refused_share") == 12 / 100
    assert figure(frame, "completed_share") == 80 / 100
    assert figure(frame, "expired_share") == 6 / 88
    assert figure(frame, "timed_out_share") == 2 / 88
    assert figure(frame, "free_tokens_per_day") == 1234
    assert figure(frame, "p50_wait_anonymous_s") == 0.0
    assert figure(frame, "p90_wait_anonymous_s") == 10.0
    assert figure(frame, "p50_wait_registered_s") == 5.0
    assert figure(frame, "p90_wait_everyone_s") == 10.0
    assert frame["p50_wait_shared_key_s"][0] is None, "nobody waited: not known, not zero"


def test_a_day_without_requests_has_no_shares() -> None:
    frame = made_frame([BASE], lambda *_: {}, days=1)
    for metric in METRICS.values():
        expected = 0.0 if metric.key == "free_tokens_per_day" else None
        assert frame[metric.key][0] == expected, metric.key
    SWEEP.checked(frame)


def test_no_wait_is_longer_than_the_time_to_live() -> None:
    frame = made_frame(
        [ReplaySettings(request_ttl_s=100.0)], lambda *_: DAY, days=1, waits=lambda *_: {"registered": {0: 17, EXPIRED_BIN: 3}}
    )
    assert figure(frame, "p50_wait_registered_s") == 0.0
    assert figure(frame, "p90_wait_registered_s") == 100.0, "one that expired waited its time to live"
    started = PRODUCTION_METRICS["p90_queue_wait_registered_s"]
    assert float(started.measure(tally_of(frame, ("registered",)))[0]) == 0.0, "production counts what started"
    evidence = measured_evidence(frame, [started, METRICS["p90_wait_registered_s"]], resamples=2)
    assert evidence.values[started.key][0, 0] == 0.0
    assert evidence.values["p90_wait_registered_s"][0, 0] == 100.0


def test_the_gap_between_models_leaves_out_what_no_worker_serves(tmp_path: Path) -> None:
    frame = made_frame([BASE], lambda *_: DAY, days=1).with_columns(
        model_unfunded=pl.Series([[40, 10, 500]], dtype=pl.List(pl.UInt32)),
        model_refused=pl.Series([[20, 0, 500]], dtype=pl.List(pl.UInt32)),
    )
    overall = 20 / 50
    expected = (40 * abs(0.5 - overall) + 10 * abs(0 - overall)) / 50
    assert float(METRICS["model_gap"].measure(tally_of(frame))[0]) == pytest.approx(expected)


@given(
    st.lists(st.integers(0, BINS - 1), min_size=1, max_size=60),
    st.sampled_from([0.5, 0.9, 0.99]),
)
def test_a_quantile_is_the_wait_that_the_share_did_not_exceed(places: list[int], share: float) -> None:
    bins = np.bincount(places, minlength=BINS).astype(float)
    ordered = sorted(places)
    expected = BIN_UPPER_S[ordered[math.ceil(share * len(ordered) - 1e-9) - 1]]
    assert wait_quantile_s(bins, share) == expected


@given(
    st.lists(st.lists(st.integers(0, 90), min_size=0, max_size=20), min_size=1, max_size=5),
    st.integers(0, 1000),
    st.sampled_from([0.5, 0.9, 0.99]),
)
def test_quantiles_of_many_weightings_are_those_of_the_weighted_sums(blocks: list[list[int]], seed: int, share: float) -> None:
    bins = np.stack([np.bincount(places, minlength=100).astype(float) for places in blocks])
    weights = np.random.default_rng(seed).integers(0, 4, (6, len(blocks))).astype(float)
    found = wait_quantiles_s(bins[None], weights, share)[0]
    expected = wait_quantile_s(weights @ bins, share)
    assert np.array_equal(found, expected, equal_nan=True)


def test_figures_of_several_days_come_from_their_sums() -> None:
    frame = made_frame(
        [BASE, LOWER],
        lambda p, _, day: {"requests": 100 * day, "unfunded": 90 * day, "unfunded_refused": day if p else 3 * day},
        days=3,
    )
    evidence = measured_evidence(frame, [METRICS["refused_share_unfunded"]], resamples=50)
    values = evidence.values["refused_share_unfunded"]
    assert values.shape == (2, 51)
    assert np.allclose(values, [[3 / 90], [1 / 90]]), "a ratio that is the same every day is the same in every resample"
    assert (evidence.days, evidence.seeds, evidence.blocks) == (3, 1, 3)
    assert np.allclose(evidence.spread(values), 0)


def test_resamples_are_weighted_sums_of_days_and_seeds() -> None:
    def counts(p: int, scenario: object, day: int) -> dict[str, float]:
        return {"requests": 100, "unfunded": 100, "unfunded_refused": 10 * day + scenario.seed + p}  # type: ignore[attr-defined]

    frame = made_frame([BASE, LOWER], counts, days=4, seeds=(0, 1, 2))
    evidence = measured_evidence(frame, [METRICS["refused_share_unfunded"]], resamples=4000, seed=5)
    values = evidence.values["refused_share_unfunded"]
    assert values[0, 0] == pytest.approx((25 + 1) / 100)
    assert np.allclose(values[1] - values[0], 0.01), "the same days and seeds for both points"
    # the variance of a pigeonhole resample: of the mean over days plus of the mean over seeds (no interaction here)
    expected = np.var([10, 20, 30, 40]) / 4 + np.var([0, 1, 2]) / 3
    assert np.var(values[0, 1:] * 100) == pytest.approx(expected, rel=0.1)


def test_several_loads_become_their_mean_or_the_worst() -> None:
    def counts(p: int, scenario: object, _: int) -> dict[str, float]:
        return {"requests": 100, "unfunded": 100, "unfunded_refused": (10 if scenario.load == 1 else 30) + p}  # type: ignore[attr-defined]

    frame = made_frame([BASE, LOWER], counts, loads=(1.0, 2.0))
    metric = METRICS["refused_share_unfunded"]
    for across, better, expected in (("mean", "less", 0.2), ("worst", "less", 0.3), ("worst", "more", 0.1)):
        found = measured_evidence(frame, [metric], across=across, better={metric.key: better}, resamples=5)  # type: ignore[arg-type]
        assert found.values[metric.key][0, 0] == pytest.approx(expected)
        assert found.values[metric.key][1, 0] == pytest.approx(expected + 0.01)


def stopped(frame: pl.DataFrame, done: Mapping[tuple[float, int], Sequence[ReplaySettings]]) -> pl.DataFrame:
    """Return the rows of a sweep that was stopped: (load, seed) → the settings whose replays are done."""
    names = [(load, seed, s.digest(16)) for (load, seed), some in done.items() for s in some]
    kept = pl.DataFrame(names, schema={name: frame.schema[name] for name in ("load", "seed", "point")}, orient="row")
    return frame.join(kept, on=["load", "seed", "point"], how="semi")


@pytest.mark.parametrize(
    ("done", "points", "scenarios", "left"),
    [
        ({(1.0, 0): [BASE, LOWER, LOWEST]}, {BASE, LOWER, LOWEST}, {(1.0, 0)}, (0, 0)),
        ({(1.0, 0): [BASE, LOWER, LOWEST], (1.0, 1): [LOWER]}, {BASE, LOWER, LOWEST}, {(1.0, 0)}, (0, 1)),
        ({(1.0, 0): [BASE, LOWER, LOWEST], (1.0, 1): [BASE]}, {BASE, LOWER, LOWEST}, {(1.0, 0)}, (0, 1)),
        ({(1.0, 0): [BASE, LOWER], (1.0, 1): [BASE, LOWER, LOWEST]}, {BASE, LOWER, LOWEST}, {(1.0, 1)}, (0, 1)),
        ({(1.0, 0): [BASE, LOWER], (1.0, 1): [BASE, LOWER], (2.0, 0): [LOWEST]}, {BASE, LOWER}, {(1.0, 0), (1.0, 1)}, (1, 1)),
        ({(1.0, 0): [LOWER, LOWEST], (1.0, 1): [BASE]}, {BASE}, {(1.0, 1)}, (2, 1)),
        ({(1.0, 0): [LOWER, LOWEST]}, {LOWER, LOWEST}, {(1.0, 0)}, (0, 0)),
        ({(1.0, 0): [BASE, LOWER], (2.0, 0): [BASE, LOWEST]}, {BASE, LOWER}, {(1.0, 0)}, (1, 1)),
    ],
)
def test_a_stopped_sweep_gives_up_what_was_only_begun_and_not_what_is_done(
    done: Mapping[tuple[float, int], Sequence[ReplaySettings]],
    points: set[ReplaySettings],
    scenarios: set[tuple[float, int]],
    left: tuple[int, int],
) -> None:
    part = stopped(made_frame([BASE, LOWER, LOWEST], lambda *_: DAY, loads=(1.0, 2.0), seeds=(0, 1)), done)
    for rows in (part, part.reverse(), part.sample(fraction=1, shuffle=True, seed=3)):
        whole, *left_out = complete_part(rows)
        assert set(whole["point"]) == {s.digest(16) for s in points}
        assert set(whole.select("load", "seed").iter_rows()) == scenarios
        assert tuple(left_out) == left
        assert whole.height == len(points) * len(scenarios) * 7


def test_a_point_that_lacks_days_is_not_done() -> None:
    frame = made_frame([BASE, LOWER], lambda *_: DAY)
    whole, *left = complete_part(frame.filter((pl.col("point") != LOWER.digest(16)) | (pl.col("day") < 5)))
    assert (whole["point"].unique().to_list(), left) == ([BASE.digest(16)], [1, 0])


def test_evidence_of_a_real_sweep_is_that_of_its_rows(tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, *busy_week(1000))
    frame = run_sweep(inputs, planned("floor_tokens = [256, 1024]\nload = 1.2\nseed = [1, 2]", inputs)).frame
    metrics = list(METRICS.values())
    evidence = measured_evidence(frame, metrics, resamples=3)
    for place, point in enumerate(evidence.points["point"]):
        rows = frame.filter(pl.col("point") == point)
        assert evidence.values["refused_share"][place, 0] == pytest.approx(
            int(rows["refused"].sum()) / int(rows["requests"].sum())
        )
        assert evidence.values["free_tokens_per_day"][place, 0] == pytest.approx(int(rows["free_tokens"].sum()) / rows.height)
        pooled = tally_of(rows, ("registered",)).waits["registered"].sum(axis=0)
        assert evidence.values["p90_wait_registered_s"][place, 0] == min(float(wait_quantile_s(pooled, 0.9)), 1200.0)
    one_day = measured_evidence(frame.filter(pl.col("day") == 3), metrics, resamples=3)
    by_day = measured_by_block(frame, evidence.points["point"].to_list(), METRICS["p90_wait_registered_s"], "day")
    expected = dict(zip(one_day.points["point"], one_day.values["p90_wait_registered_s"][:, 0].tolist(), strict=True))
    assert {r["point"]: r["value"] for r in by_day.filter(pl.col("day") == 3).to_dicts()} == expected
