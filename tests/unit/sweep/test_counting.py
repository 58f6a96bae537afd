"""What a replay comes to: counted by the kernel as plain Python counts the run's rows (A13–A19, A25)."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from horde_policy.frames.decisions import REQUESTERS, SIZES
from horde_policy.policy.telemetry import size_bucket
from horde_policy.replay import run
from horde_policy.replay.engine import final_state
from horde_policy.replay.score import summary
from horde_policy.replay.sent import sent_requests
from horde_policy.settings import ReplaySettings
from horde_policy.sweep.counting import BIN_UPPER_S, BINS, COUNTERS, EXPIRED_BIN, WAITERS, bin_of_units, outcome_of
from horde_policy.sweep.grid import Scenario
from horde_policy.sweep.inputs import SweepInputs
from horde_policy.sweep.stage import DAY_US, Stage, scenario_traffic, stage_of
from tests.oracle.worlds import varied_world
from tests.unit.sweep.made import busy_week, inputs_of

CLIENTS = {
    "leave": {},
    "resend": {"client": "resend"},
    "return": {"client": "return", "return_times": 3, "return_after_s": 30.0},
    "time-out": {"job_timeout_s": 40.0, "request_ttl_s": 90.0},
    "old": {"rule": "old", "client": "return"},
    "none free": {"rule": "no_one_free"},
}


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> tuple[SweepInputs, Stage, pl.DataFrame]:
    inputs = inputs_of(tmp_path_factory.mktemp("week"), *busy_week(3000))
    scenario = Scenario(1.3, 1, None)
    return inputs, stage_of(inputs, scenario), scenario_traffic(inputs, scenario).frame


def counted_by_hand(sent: pl.DataFrame, stage: Stage) -> tuple[Counter[Any], Counter[Any], Counter[Any]]:
    """Count requests by their last sending: (day, counter), (day, waiter) → waits, (day, requester, size)."""
    rows = sent.to_dicts()
    last = {row["first_row"]: row for row in rows}
    first = {row["first_row"]: row for row in reversed(rows)}
    begin = min(row["created"] for row in rows)
    counts: Counter[Any] = Counter()
    waits: Counter[Any] = Counter()
    asked: Counter[Any] = Counter()
    days = {}
    for key, row in first.items():
        day = min(int((row["created"] - begin).total_seconds() * 1e6) // DAY_US, stage.days - 1)
        days[key] = day
        end = last[key]
        asked[day, row["requester"], size_bucket(row["max_length"])] += 1
        counts[day, "requests"] += 1
        counts[day, "unfunded"] += not row["can_pay"]
        counts[day, end["outcome"]] += 1
        counts[day, "unfunded_refused"] += end["outcome"] == "refused" and not row["can_pay"]
        if end["outcome"] == "refused":
            continue
        counts[day, end["status"]] += 1
        counts[day, "funded_tokens" if end["outcome"] == "funded" else "free_tokens"] += end["delivered_tokens"]
        wait_s = None if end["status"] == "expired" else end["queue_wait_s"]
        waits[day, row["requester"], wait_s] += 1
        if end["outcome"] == "funded":
            waits[day, "funded", wait_s] += 1
    for row in rows:
        counts[days[row["first_row"]], "sendings"] += 1
        counts[days[row["first_row"]], "refusals"] += row["outcome"] == "refused"
    return counts, waits, asked


@pytest.mark.parametrize("case", CLIENTS)
def test_the_counts_are_those_of_the_runs_rows(staged: tuple[SweepInputs, Stage, pl.DataFrame], case: str) -> None:
    inputs, stage, traffic = staged
    settings = ReplaySettings(**CLIENTS[case])  # type: ignore[arg-type]
    outcome = outcome_of(stage, final_state(stage.world, settings))
    sent = sent_requests(run(stage.world, settings), traffic, inputs.fleet, settings)
    counts, waits, asked = counted_by_hand(sent, stage)
    for day in range(stage.days):
        for place, name in enumerate(COUNTERS):
            assert outcome.counters[day, place] == counts[day, name], (day, name)
    assert sum(counts[day, "refusals"] for day in range(stage.days)) > 0
    binned: Counter[Any] = Counter()
    for (day, who, wait_s), count in waits.items():
        place = EXPIRED_BIN if wait_s is None else bin_of_units(-(-round(wait_s * 1e6) // 100_000))
        binned[(day * len(WAITERS) + WAITERS.index(who)) * BINS + place] += count
    assert dict(zip(outcome.wait_place.tolist(), outcome.wait_count.tolist(), strict=True)) == dict(binned)
    for (day, who, size), count in asked.items():
        assert outcome.asked_by[day, REQUESTERS.index(who), SIZES.index(size)] == count
    assert outcome.asked_by.sum() == traffic.height


def test_the_counts_agree_with_the_replays_own_summary(staged: tuple[SweepInputs, Stage, pl.DataFrame]) -> None:
    inputs, stage, traffic = staged
    settings = ReplaySettings()
    totals = dict(zip(COUNTERS, outcome_of(stage, final_state(stage.world, settings)).counters.sum(axis=0), strict=True))
    figures = summary(sent_requests(run(stage.world, settings), traffic, inputs.fleet, settings), traffic, settings)
    assert {name: totals[name] for name in figures["outcomes"]} == figures["outcomes"]
    assert {name: totals[name] for name in figures["statuses"]} == figures["statuses"]
    assert totals["free_tokens"] == figures["tokens"]["delivered_free"]
    assert totals["funded_tokens"] == figures["tokens"]["delivered_funded"]
    assert totals["expired"] / (totals["requests"] - totals["refused"]) == figures["shares"]["expired"]


def test_refusals_by_model(staged: tuple[SweepInputs, Stage, pl.DataFrame]) -> None:
    _, stage, traffic = staged
    settings = ReplaySettings()
    outcome = outcome_of(stage, final_state(stage.world, settings))
    sent = run(stage.world, settings)
    unfunded = traffic.with_columns(sent["outcome"]).filter(~pl.col("can_pay"))
    for place, models in enumerate((["m"], ["n"], [])):
        some = unfunded.filter(pl.col("models") == models)
        refused = some.filter(pl.col("outcome") == "refused").height
        assert outcome.by_group[:, place].sum(axis=0).tolist() == [some.height, refused]


@pytest.mark.parametrize("seed", range(40))
def test_random_worlds_lose_nobody(seed: int, tmp_path: Path) -> None:
    traffic, fleet, settings = varied_world(seed)
    if not traffic.height:
        return
    inputs = inputs_of(tmp_path, traffic, fleet)
    stage = stage_of(inputs, Scenario(1.0, 0, None))
    outcome = outcome_of(stage, final_state(stage.world, settings))
    totals = dict(zip(COUNTERS, outcome.counters.sum(axis=0).tolist(), strict=True))
    assert totals["requests"] == traffic.height
    assert totals["free"] + totals["funded"] + totals["downgraded"] + totals["refused"] == traffic.height
    admitted = traffic.height - totals["refused"]
    assert totals["completed"] + totals["timed_out"] + totals["expired"] == admitted
    who, held = outcome.wait_place // BINS % len(WAITERS), outcome.wait_count
    assert held[who < 3].sum() == admitted
    assert held[who == 3].sum() == totals["funded"]
    assert totals["sendings"] - totals["refusals"] == admitted
    assert outcome.by_group[:, :, 0].sum() == totals["unfunded"]
    assert outcome.by_group[:, :, 1].sum() == totals["unfunded_refused"]


def test_bins_never_understate_and_are_tight() -> None:
    units = np.unique(np.concatenate((np.arange(3000), np.geomspace(1, 1.4e7, 3000).astype(int))))
    places = np.array([bin_of_units(int(n)) for n in units])
    assert (np.diff(places) >= 0).all()
    upper = np.round(BIN_UPPER_S[places] * 10).astype(int)
    assert (upper >= units).all()
    assert (upper[units < 128] == units[units < 128]).all(), "to the unit below 12.8 s"
    assert ((upper - units) / np.maximum(units, 1) < 1 / 64).all()
    assert bin_of_units(2**62) == EXPIRED_BIN - 1
