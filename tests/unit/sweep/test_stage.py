"""Scenarios: what load, seed and fill rule make of the requests, and what each request counts under."""

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from horde_policy.errors import ConfigError, InputError
from horde_policy.imports.traces import load_trace
from horde_policy.replay.fill import ModelWeights
from horde_policy.replay.fleets import EVER
from horde_policy.sweep.grid import Scenario
from horde_policy.sweep.inputs import SweepInputs, content_digest, load_inputs
from horde_policy.sweep.stage import day_starts, days_of, model_groups, scenario_traffic, stage_of
from tests.unit.sweep.made import START, busy_week, fleet_frame, inputs_of, planned, traffic_frame

ROOT = Path(__file__).parents[3]
TRACE = ROOT / "data" / "traces" / "burstgpt1.first400.parquet"


@pytest.fixture
def week(tmp_path: Path) -> SweepInputs:
    return inputs_of(tmp_path, *busy_week())


@pytest.fixture
def raw() -> SweepInputs:
    trace = load_trace(TRACE)
    fleet = fleet_frame([{"worker_id": "w", "online_from": EVER}])
    return SweepInputs(
        trace=trace, fleet=fleet, weights=ModelWeights(counts={"m": 1}, source="test"), traffic_stamp={}, fleet_stamp={}
    )


def test_traffic_of_our_own_schema_is_replayed_as_it_is(week: SweepInputs) -> None:
    own = scenario_traffic(week, Scenario(1.0, 0, None)).frame
    again = scenario_traffic(week, Scenario(1.0, 7, None)).frame
    kept = ["created", "models", "requester", "max_length", "output_tokens", "can_pay"]
    assert own.select(kept).equals(again.select(kept)), "nothing is drawn, so the seed changes nothing"
    read = week.trace.frame.with_columns(pl.col("requester").cast(own.schema["requester"]))
    assert own.select(kept).equals(read.select(kept))


@pytest.mark.parametrize(("load", "low", "high"), [(0.25, 0.18, 0.32), (0.5, 0.42, 0.58), (1.5, 1.35, 1.65), (3.0, 3.0, 3.0)])
def test_a_load_keeps_or_lays_over_so_many_requests(week: SweepInputs, load: float, low: float, high: float) -> None:
    one, other = (scenario_traffic(week, Scenario(load, seed, None)).frame for seed in (1, 2))
    for frame in (one, other):
        assert low <= frame.height / week.trace.frame.height <= high
    assert one["created"].to_list() != other["created"].to_list(), "another seed keeps or moves others"


def test_a_seed_draws_everything_anew_that_is_assigned(raw: SweepInputs) -> None:
    fill = "max_length=client_setting,models=weighted,requester=0.5/0.1"
    kinds = [scenario_traffic(raw, Scenario(1.0, seed, fill)).frame["requester"].to_list() for seed in (0, 1, 2)]
    assert kinds[0] != kinds[1] != kinds[2]
    assert kinds[1] == scenario_traffic(raw, Scenario(1.0, 1, fill)).frame["requester"].to_list()


@pytest.mark.parametrize(("share", "kind"), [(0.5998, "registered"), (0.5999, "anonymous")])
def test_seed_0_keeps_the_traces_own_draws(raw: SweepInputs, share: float, kind: str) -> None:
    # u("requester", "burstgpt1|0") = 0.599875 (traces.md, check values)
    frame = scenario_traffic(raw, Scenario(1.0, 0, f"requester={share}/0")).frame
    assert frame.filter(pl.col("row") == 0)["requester"][0] == kind


def test_days_are_24_hours_from_the_first_request(tmp_path: Path) -> None:
    moments = [0, 86_399.999999, 86_400, 3 * 86_400 + 5]
    traffic = traffic_frame([{"created": START + timedelta(hours=5, seconds=s)} for s in moments])
    inputs = inputs_of(tmp_path, traffic, fleet_frame([{"worker_id": "w"}]))
    stage = stage_of(inputs, Scenario(1.0, 0, None))
    assert stage.day.tolist() == [0, 0, 1, 3]
    assert days_of(inputs) == 4
    assert day_starts(inputs).to_list() == [START + timedelta(days=d, hours=5) for d in range(4)]


def test_what_a_copy_moves_past_the_end_counts_on_the_last_day(tmp_path: Path) -> None:
    traffic = traffic_frame([{"created": START + timedelta(seconds=s)} for s in (0, 86_390)])
    stage = stage_of(inputs_of(tmp_path, traffic, fleet_frame([{"worker_id": "w"}])), Scenario(20.0, 0, None))
    assert stage.days == 1
    assert set(stage.day.tolist()) == {0}


def test_requests_are_told_apart_by_the_fleets_models(tmp_path: Path) -> None:
    lists = [["a"], ["b"], [], ["a", "b"], ["c"]]
    traffic = traffic_frame([{"created": START + timedelta(seconds=k), "models": names} for k, names in enumerate(lists)])
    fleet = fleet_frame([{"worker_id": "w", "models": ["b", "a"]}])
    inputs = inputs_of(tmp_path, traffic, fleet)
    assert model_groups(fleet) == ("a", "b", "any model", "several models", "no worker serves it")
    assert stage_of(inputs, Scenario(1.0, 0, None)).group.tolist() == [0, 1, 2, 3, 4]


def test_marks_stand_in_order_of_arrival(tmp_path: Path) -> None:
    traffic = traffic_frame(
        [
            {"created": START + timedelta(days=1, seconds=1), "requester": "registered", "max_length": 4097},
            {"created": START, "requester": "anonymous", "max_length": 512},
            {"created": START + timedelta(seconds=1), "requester": "shared_key", "max_length": 513, "output_tokens": 9000},
        ]
    )
    stage = stage_of(inputs_of(tmp_path, traffic, fleet_frame([{"worker_id": "w"}])), Scenario(1.0, 0, None))
    assert stage.day.tolist() == [0, 0, 1]
    assert stage.requester.tolist() == [0, 2, 1]
    assert stage.size.tolist() == [0, 1, 4]
    assert stage.output.tolist() == [512, 513, 4097], "an answer takes what was asked where nothing else is said, and no more"


def test_utilisation_is_tokens_used_over_tokens_possible(tmp_path: Path) -> None:
    traffic = traffic_frame(
        [
            {"created": START, "max_length": 100, "output_tokens": 500},
            {"created": START + timedelta(seconds=100), "max_length": 300, "output_tokens": 200},
        ]
    )
    fleet = fleet_frame([{"worker_id": "w", "speed": 2.0, "threads": 3}, {"worker_id": "v", "speed": 4.0}])
    fleet = fleet.with_columns(online_to=pl.Series([None, START + timedelta(seconds=25)], dtype=pl.Datetime("us", "UTC")))
    stage = stage_of(inputs_of(tmp_path, traffic, fleet), Scenario(1.0, 0, None))
    assert stage.utilisation == pytest.approx((100 + 200) / (2 * 3 * 100 + 4 * 25))


def test_a_load_so_small_that_nothing_is_left_is_an_empty_stage(tmp_path: Path) -> None:
    traffic = traffic_frame([{"created": START + timedelta(seconds=s)} for s in (0, 5)])
    stage = stage_of(inputs_of(tmp_path, traffic, fleet_frame([{"worker_id": "w"}])), Scenario(1e-9, 0, None))
    assert stage.world.requests == 0
    assert stage.utilisation is None


def test_a_fill_rule_for_traffic_that_names_everything_is_refused(week: SweepInputs) -> None:
    with pytest.raises(ConfigError, match=r"setting fill: .* makes no sense here: this traffic names everything already"):
        planned("fill = 'max_length=ladder'", week)


def test_seeds_that_change_nothing_are_dropped_and_counted(week: SweepInputs) -> None:
    made = planned("load = [0.5, 1]\nseed = [3, 4, 5]\nfloor_tokens = [256, 512]", week)
    assert [(s.load, s.seed) for s in made.scenarios] == [(0.5, 3), (0.5, 4), (0.5, 5), (1.0, 3)]
    assert made.dropped == {"a further seed at load 1: this traffic names everything, so the seed draws nothing": 4}


def test_a_day_that_the_traffic_lacks_is_refused(week: SweepInputs) -> None:
    with pytest.raises(ConfigError, match="setting days: 8 is not a day of this traffic, which has days 1 to 7"):
        planned("days = [1, 8]", week)


def test_inputs_that_cannot_be_swept(tmp_path: Path) -> None:
    traffic, fleet = busy_week(20)
    fleet.write_parquet(tmp_path / "fleet.parquet")
    traffic.head(0).write_parquet(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="must hold at least one request"):
        load_inputs(tmp_path / "none.parquet", tmp_path / "fleet.parquet")
    with pytest.raises(InputError, match="cannot be read"):
        load_inputs(tmp_path / "gone.parquet", tmp_path / "fleet.parquet")


def test_the_digest_names_the_content(tmp_path: Path) -> None:
    traffic, fleet = busy_week(50)
    first = inputs_of(tmp_path, traffic, fleet).digest()
    assert inputs_of(tmp_path, pl.concat([traffic.head(20), traffic.tail(30)], rechunk=False), fleet).digest() == first
    changed = traffic.with_columns(pl.col("max_length") + (pl.int_range(pl.len()) == 25).cast(pl.Int64))
    assert inputs_of(tmp_path, changed, fleet).digest() != first
    assert inputs_of(tmp_path, traffic, fleet.with_columns(speed=pl.col("speed") + 1)).digest() != first


def test_the_digest_tells_lists_and_texts_apart() -> None:
    frames = [
        pl.DataFrame({"a": [["x", "y"], []]}),
        pl.DataFrame({"a": [["x"], ["y"]]}),
        pl.DataFrame({"a": [["xy"], []]}),
        pl.DataFrame({"a": ["xy", ""]}),
        pl.DataFrame({"a": ["x", "y"]}),
        pl.DataFrame({"a": ["xy", None]}),
        pl.DataFrame({"b": ["xy", None]}),
    ]
    assert len({content_digest(frame) for frame in frames}) == len(frames)


def test_a_fleet_of_other_days_can_be_moved_to_the_traffic(tmp_path: Path) -> None:
    traffic, fleet = tmp_path / "t.csv", tmp_path / "f.csv"
    traffic.write_text("created,models,requester,max_length\n2025-09-01T18:00:00Z,m,anonymous,80\n")
    fleet.write_text(
        "worker_id,online_from,models,max_length,max_context_length,speed\nw,2026-11-01T17:00:00Z,m,512,4096,10\n", "utf-8"
    )
    stays, moved = (load_inputs(traffic, fleet, move_fleet=move) for move in (False, True))
    assert stays.fleet["online_from"][0].isoformat() == "2026-11-01T17:00:00+00:00"
    assert moved.fleet["online_from"][0].isoformat() == "2025-09-01T17:00:00+00:00"
    assert (stays.fleet_stamp, moved.fleet_stamp) == ({}, {"moved_s": -426 * 86_400.0})
    assert stays.digest() != moved.digest()
