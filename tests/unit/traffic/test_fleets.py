"""Fleets from a recorded snapshot and from parameters: who is in, who is left out and why, the same draw from one seed."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from horde_policy.errors import InputError
from horde_policy.frames.fleet import FLEET
from horde_policy.frames.snapshot import Snapshot
from horde_policy.frames.workers import WORKERS
from horde_policy.replay.fleets import EVER, demand_weights, fleet_from_snapshot
from horde_policy.replay.parametric import Churn, ParametricFleet, parametric_fleet
from horde_policy.sources.recorded import load_recorded
from tests.unit.traffic.paths import RECORDED

AT = datetime(2026, 11, 29, tzinfo=UTC)


def snapshot_of(*workers: dict[str, object]) -> Snapshot:
    usual = {
        "models": ["m"],
        "max_length": 512,
        "max_context_length": 4096,
        "speed_tok_per_s": 8.0,
        "measured": True,
        "online": True,
    }
    rows = [{"worker_id": f"w{n}", **usual, **given} for n, given in enumerate(workers)]
    frame = pl.DataFrame([{name: row.get(name) for name in WORKERS.columns} for row in rows], schema=WORKERS.polars_schema())
    return Snapshot(fetched_at=AT, source="made up", source_kind="recorded", workers=frame, models=None, synthetic=True)


def test_the_recorded_snapshot_gives_its_workers_forever() -> None:
    snapshot = load_recorded(RECORDED / "snapshot")
    fleet = fleet_from_snapshot(snapshot)
    assert FLEET.checked(fleet.frame).equals(fleet.frame)
    assert fleet.stamp["workers_read"] == 13
    assert fleet.stamp["left_out"] == {"in maintenance": 1}
    assert fleet.frame.height == 12
    assert fleet.frame["online_from"].unique().to_list() == [EVER]
    assert fleet.frame["online_to"].null_count() == 12
    speeds = dict(snapshot.workers.select("worker_id", "speed_tok_per_s").iter_rows())
    assert all(speed == speeds[worker] for worker, speed in fleet.frame.select("worker_id", "speed").iter_rows())


def test_the_fleet_of_2023_is_whole_with_its_figures() -> None:
    fleet = fleet_from_snapshot(load_recorded(RECORDED / "production_2023-07"))
    assert fleet.frame.height == 20
    assert fleet.frame["speed"].min() == 1.1
    assert fleet.frame["speed"].max() == 41.1
    assert round(fleet.frame["speed"].sum()) == 227
    assert fleet.frame["slow"].to_list() == [speed < 5 for speed in fleet.frame["speed"]]


def test_unmeasured_workers_run_at_ten_and_say_so() -> None:
    fleet = fleet_from_snapshot(load_recorded(RECORDED / "joined_no_jobs_yet"))
    assert fleet.frame["speed"].unique().to_list() == [10.0]
    assert not fleet.frame["measured"].any()
    assert fleet.stamp["unmeasured"] == 12


@pytest.mark.parametrize(
    ("given", "speed", "measured"),
    [
        ({"measured": False, "speed_tok_per_s": 1.0}, 10.0, False),
        ({"measured": None, "speed_tok_per_s": 5.0}, 10.0, False),
        ({"measured": True, "speed_tok_per_s": None}, 10.0, False),
        ({"measured": True, "speed_tok_per_s": 0.0}, 10.0, False),
        ({"measured": True, "speed_tok_per_s": 0.1}, 0.1, True),
    ],
)
def test_only_a_speed_above_zero_of_a_completed_job_is_measured(given: dict[str, object], speed: float, measured: bool) -> None:
    assert fleet_from_snapshot(snapshot_of(given)).frame.select("speed", "measured").row(0) == (speed, measured)


def test_who_is_left_out_is_counted_by_reason_and_unknown_flags_leave_no_one_out() -> None:
    snapshot = snapshot_of(
        {},
        {"online": None, "maintenance": None, "flagged": None, "threads": None},
        {"online": False},
        {"maintenance": True},
        {"flagged": True},
        {"max_length": None},
        {"max_context_length": None},
        {"models": []},
        {"threads": 0},
        {"threads": 4},
    )
    fleet = fleet_from_snapshot(snapshot)
    assert fleet.frame["worker_id"].to_list() == ["w0", "w1", "w8", "w9"]
    assert fleet.frame["threads"].to_list() == [1, 1, 1, 4]
    assert fleet.stamp["left_out"] == dict.fromkeys(
        (
            "offline",
            "in maintenance",
            "flagged owner",
            "no max_length reported",
            "no max_context_length reported",
            "no models reported",
        ),
        1,
    )
    assert fleet.stamp["workers_read"] == fleet.stamp["workers"] + sum(fleet.stamp["left_out"].values())
    assert fleet.stamp["synthetic"]


def test_an_empty_horde_is_an_empty_fleet() -> None:
    fleet = fleet_from_snapshot(load_recorded(RECORDED / "fresh_server"))
    assert fleet.frame.height == fleet.stamp["workers"] == 0


def test_demand_is_the_days_and_null_where_nothing_is_counted() -> None:
    weights = demand_weights(load_recorded(RECORDED / "snapshot"))
    assert weights is not None
    assert weights.counts["koboldcpp/Cydonia-24B-v4.1"] == 35
    assert weights.source == "Busy test server: requests of the day"
    for folder in ("production_2023-07", "fresh_server"):
        assert demand_weights(load_recorded(RECORDED / folder)) is None


# --- parametric ------------------------------------------------------------------------------------------------------


def test_one_seed_is_one_fleet() -> None:
    one, same, other = (parametric_fleet(ParametricFleet(seed=seed)) for seed in (1, 1, 2))
    assert one.frame.equals(same.frame)
    assert not one.frame.equals(other.frame)
    assert one.stamp["synthetic"]
    assert one.stamp["parameters"]["seed"] == 1


def test_a_large_fleet_has_the_shares_that_were_asked_for() -> None:
    frame = parametric_fleet(ParametricFleet(seed=3, workers=20_000, models=100)).frame
    assert FLEET.checked(frame).equals(frame)
    assert frame["speed"].median() == pytest.approx(10, rel=0.03)
    assert frame["speed"].quantile(0.95) == pytest.approx(50, rel=0.05)
    assert frame["speed"].min() == 0.5
    assert (frame["threads"] == 1).mean() == pytest.approx(0.8, abs=0.015)
    assert (~frame["measured"]).mean() == pytest.approx(0.05, abs=0.01)
    assert frame["max_length"].mode().to_list() == [512]
    assert (frame["max_context_length"] >= frame["max_length"]).all()
    assert frame["models"].list.len().value_counts(sort=True)["models"][0] == 1
    assert frame["models"].explode().n_unique() == 100
    assert (frame["models"].list.n_unique() == frame["models"].list.len()).all()


def test_every_model_has_a_worker_while_there_are_enough() -> None:
    assert parametric_fleet(ParametricFleet(seed=1, workers=25, models=25)).frame["models"].explode().n_unique() == 25
    named = parametric_fleet(ParametricFleet(seed=1, workers=7, models=["a", "b"])).frame
    assert set(named["models"].explode()) == {"a", "b"}
    assert parametric_fleet(ParametricFleet(seed=1, workers=0)).frame.height == 0


def test_churn_gives_periods_that_do_not_overlap_and_fill_their_share() -> None:
    churn = Churn(start=AT, hours=24 * 30, mean_online_h=6, mean_away_h=3)
    frame = parametric_fleet(ParametricFleet(seed=5, workers=60, churn=churn)).frame
    assert frame["online_from"].min() >= AT  # type: ignore[operator]
    assert frame["online_to"].max() <= AT + timedelta(days=30)  # type: ignore[operator]
    ordered = frame.sort("worker_id", "online_from")
    gaps = ordered.with_columns(pl.col("online_to").shift(1).over("worker_id").alias("before"))
    assert gaps.filter(pl.col("before") > pl.col("online_from")).height == 0
    online = (frame["online_to"] - frame["online_from"]).dt.total_seconds().sum() / (60 * 30 * 86_400)
    assert online == pytest.approx(2 / 3, abs=0.04)
    first = frame.filter(pl.col("online_from") == AT).height / 60
    assert first == pytest.approx(2 / 3, abs=0.2)
    assert frame.group_by("worker_id").agg(pl.col("speed").n_unique())["speed"].max() == 1


@pytest.mark.parametrize(
    "given",
    [
        {"seed": -1},
        {"workers": -1},
        {"workers": 100_001},
        {"models": 0},
        {"models": []},
        {"speed_median_tok_per_s": 0},
        {"speed_median_tok_per_s": float("nan")},
        {"speed_p95_tok_per_s": 9.0},
        {"single_thread_share": 1.1},
        {"unmeasured_share": -0.1},
        {"output_sizes": {}},
        {"output_sizes": {0: 1.0}},
        {"output_sizes": {80: 0.0}},
    ],
)
def test_senseless_parameters_are_refused_by_name(given: dict[str, object]) -> None:
    name = next(iter(given))
    with pytest.raises(InputError, match=f"parametric fleet, {name}: "):
        ParametricFleet(**{"seed": 1, **given})  # type: ignore[arg-type]


def test_senseless_churn_is_refused() -> None:
    for given in ({"hours": 0.0}, {"hours": 1.0, "mean_online_h": 0.0}, {"hours": 1.0, "mean_away_h": float("inf")}):
        with pytest.raises(InputError, match="must be a finite number of hours above 0"):
            Churn(start=AT, **given)
    with pytest.raises(InputError, match="has no time zone"):
        Churn(start=AT.replace(tzinfo=None), hours=1)
    endless = ParametricFleet(seed=1, workers=100_000, churn=Churn(start=AT, hours=1e6, mean_online_h=0.001, mean_away_h=0.001))
    with pytest.raises(InputError, match="periods would come of it"):
        parametric_fleet(endless)
