"""Scores of a run: figures that a hand can check, totals that add up in every world, and two runs request by request."""

import json
from typing import Any

import polars as pl
import pytest

from horde_policy.errors import FrameError
from horde_policy.replay import replay
from horde_policy.replay.comparison import CHANGE, changes, comparison
from horde_policy.replay.score import (
    RECORDED_OUTCOME,
    agreement,
    allowance_by_model,
    allowance_over_time,
    outcome_mix,
    summary,
    unfinished,
    wait_quantiles,
)
from horde_policy.replay.sent import sent_requests, size_of
from horde_policy.settings import ReplaySettings
from tests.oracle.worlds import crowded_world, random_world
from tests.unit.replay.small_worlds import at, fleet_of, request, traffic_of, worker

Rows = list[dict[str, Any]]


def sent_of(requests: Rows, workers: Rows, settings: ReplaySettings | None = None) -> pl.DataFrame:
    traffic, fleet, used = traffic_of(*requests), fleet_of(*workers), settings or ReplaySettings()
    return sent_requests(replay(traffic, fleet, used), traffic, fleet, used)


@pytest.mark.parametrize(
    ("tokens", "bucket"),
    [
        (1, "<=512"),
        (512, "<=512"),
        (513, "513-1024"),
        (1024, "513-1024"),
        (1025, "1025-2048"),
        (4096, "2049-4096"),
        (4097, ">4096"),
    ],
)
def test_sizes_fall_into_the_telemetrys_buckets(tokens: int, bucket: str) -> None:
    assert pl.select(size_of(pl.lit(tokens))).item() == bucket


def test_a_request_sent_again_is_seen_as_it_was_sent() -> None:
    asks = [request(5, 5000, request_id="a"), request(7, 80, request_id="b")]
    resent = sent_of(asks, [worker()], ReplaySettings(client="resend"))
    last = resent.row(2, named=True)
    assert (last["request_id"], last["created"], last["max_length"], last["attempt"]) == ("a#2", at(5), 4096, 2)
    assert (last["first_row"], last["requested_size"], last["requester"]) == (0, "2049-4096", "anonymous")
    returned = sent_of(asks, [worker()], ReplaySettings(client="return", return_after_s=60.5, return_times=2))
    assert returned["created"].to_list()[2:] == [at(65.5), at(126)]
    assert returned["max_length"].to_list()[2:] == [5000, 5000]
    assert returned["attempt"].to_list() == [1, 1, 2, 3]


def test_speeds_are_of_the_period_of_the_last_start() -> None:
    periods = [worker("w", online_to=at(10), speed=10.0), worker("w", online_from=at(10), speed=20.0), worker("v", models=["n"])]
    sent = sent_of([request(0, 40), request(4, 100), request(11, 10, models=["n"]), request(0, 10, models=["x"])], periods)
    assert sent["speed"].to_list() == [10.0, 20.0, 10.0, None]
    assert sent["busy_s"].to_list() == [4.0, 5.0, 1.0, None]
    assert sent["delivered_tokens"].to_list() == [40, 100, 10, 0]


def test_a_run_of_other_traffic_is_refused() -> None:
    traffic, fleet = traffic_of(request(request_id="a")), fleet_of(worker())
    run = replay(traffic, fleet, ReplaySettings())
    other = traffic_of(request(request_id="b"))
    with pytest.raises(FrameError, match="must hold the requests of the traffic"):
        sent_requests(run, other, fleet, ReplaySettings())


def test_the_mix_counts_every_request_once() -> None:
    asks = [request(0, 80), request(0, 80), request(0, 600, requester="registered", can_pay=True), request(0, 9000)]
    mix = outcome_mix(sent_of(asks, [worker()])).select("requester", "requested_size", "outcome", "requests").rows()
    assert mix == [
        ("anonymous", "<=512", "free", 2),
        ("anonymous", ">4096", "refused", 1),
        ("registered", "513-1024", "free", 1),
    ]


def test_waits_are_given_by_requester_and_outcome_and_for_all() -> None:
    asks = [request(0, 600), request(0, 10), request(0, 2400), request(0, 10, requester="registered", priority=-60.0)]
    waits = wait_quantiles(sent_of(asks, [worker()]), ReplaySettings()).to_dicts()
    assert [(row["requester"], row["outcome"], row["requests"]) for row in waits] == [
        ("anonymous", "free", 3),
        ("registered", "free", 1),
        (None, None, 4),
    ]
    assert [row["p50_s"] for row in waits] == [60.0, 301.0, 61.0]
    assert [row["longest_s"] for row in waits] == [61.0, 301.0, 301.0]
    assert [row["share_at_most_full"] for row in waits] == [2 / 3, 0.0, 0.5]
    assert [row["share_at_most_floor"] for row in waits] == [1.0, 0.0, 0.75]


def test_without_a_wait_there_is_no_row() -> None:
    assert wait_quantiles(sent_of([request()], []), ReplaySettings()).height == 0


def test_what_could_not_finish_is_told_from_what_expired() -> None:
    asks = [
        request(0, 4096, output_tokens=100, can_pay=True),  # 10 s, though its whole size would take 409.6 s
        request(0, 1501, can_pay=True),  # 150.1 s
        request(0, 1500, can_pay=True),
        request(0, 80, models=["nobody"]),
    ]
    [row] = unfinished(sent_of(asks, [worker()], ReplaySettings(wait_full_s=1e5, wait_floor_s=1e6))).to_dicts()
    assert row == {
        "outcome": "free", "admitted": 4, "started": 3, "expired": 1, "timed_out": 0, "over_limit": 1, "full_size_over_limit": 2,
    }  # fmt: skip
    limited = unfinished(sent_of(asks, [worker()], ReplaySettings(wait_full_s=1e5, wait_floor_s=1e6, job_timeout_s=150.0)))
    assert limited["timed_out"].to_list() == limited["over_limit"].to_list() == [1]


def test_allowances_are_given_by_model_and_over_time() -> None:
    asks = [
        request(0, 3000), request(1, 3000, can_pay=True), request(2, 80), request(3700, 80, models=["m", "n"]),
        request(3700, 80, models=[]),
    ]  # fmt: skip
    sent = sent_of(asks, [worker()])
    models = {row["model"]: row for row in allowance_by_model(sent, ReplaySettings()).to_dicts()}
    assert {name: row["requests"] for name, row in models.items()} == {"m": 4, "n": 1, "any model": 1}
    assert (models["m"]["smallest_tokens"], models["m"]["largest_tokens"], models["m"]["share_at_floor"]) == (512, 4096, 0.25)
    hours = allowance_over_time(sent, ReplaySettings(), every="1h")
    assert hours.filter(pl.col("model") == "m").select("from", "requests", "smallest_tokens").rows() == [
        (at(0), 3, 512),
        (at(3600), 1, 4096),
    ]


def test_a_rule_without_an_allowance_has_none_to_show() -> None:
    assert (
        allowance_by_model(sent_of([request()], [worker()], ReplaySettings(rule="everyone_free")), ReplaySettings()).height == 0
    )


def test_agreement_with_what_was_recorded() -> None:
    traffic = traffic_of(request(0, 80), request(0, 9000), request(0, 80), request(0, 80))
    fleet, settings = fleet_of(worker()), ReplaySettings()
    sent = sent_requests(replay(traffic, fleet, settings), traffic, fleet, settings)
    assert agreement(sent, traffic) is None
    recorded = traffic.with_columns(pl.Series(RECORDED_OUTCOME, ["free", "refused", "funded", None]))
    assert agreement(sent, recorded) == {
        "recorded": 3,
        "equal": 2,
        "pairs": [
            {"recorded": "free", "replayed": "free", "requests": 1},
            {"recorded": "funded", "replayed": "free", "requests": 1},
            {"recorded": "refused", "replayed": "refused", "requests": 1},
        ],
    }
    with pytest.raises(FrameError, match="'paid' must be one of free"):
        agreement(sent, traffic.with_columns(pl.Series(RECORDED_OUTCOME, ["free", "paid", None, None])))


@pytest.mark.parametrize("seed", range(60))
def test_totals_add_up_in_every_world(seed: int) -> None:
    traffic, fleet, settings = crowded_world(seed) if seed % 10 == 0 else random_world(seed)
    sent = sent_requests(replay(traffic, fleet, settings), traffic, fleet, settings)
    figures = summary(sent, traffic, settings)
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    total = figures["requests"]
    assert total == traffic.height + figures["repeated"] == sent.height
    assert sum(figures["outcomes"].values()) == sum(figures["statuses"].values()) == total
    assert sum(row["requests"] for row in figures["mix"]) == total
    assert sum(figures["reasons"].values()) == figures["outcomes"]["refused"] == figures["statuses"]["refused"]
    for kind in ("expired", "timed_out"):
        assert sum(row[kind] for row in figures["unfinished"]) == figures["statuses"][kind]
    assert sum(row["admitted"] for row in figures["unfinished"]) == total - figures["statuses"]["refused"]
    tokens = figures["tokens"]
    assert tokens["delivered"] == tokens["delivered_free"] + tokens["delivered_funded"] <= tokens["admitted"] <= tokens["asked"]
    for waits, column in (("queue_waits", "started"), ("estimated_waits", "estimated_wait_s")):
        rows = figures[waits]
        assert sum(row["requests"] for row in rows if row["requester"] is not None) == sent[column].count()
        assert all(row["p10_s"] <= row["p50_s"] <= row["p99_s"] <= row["longest_s"] for row in rows)


# ---- two runs


def changes_of(requests: Rows, workers: Rows, baseline: ReplaySettings, other: ReplaySettings) -> pl.DataFrame:
    return changes(sent_of(requests, workers, baseline), sent_of(requests, workers, other))


def test_every_kind_of_change_has_its_name() -> None:
    asks = [
        request(0, 4000),  # free against refused
        request(1, 2500, requester="registered", can_pay=True, models=["n"]),  # free against funded
        request(500, 3000, allow_downgrade=True),  # whole against cut
        request(1000, 80),
        request(2000, 80),
        request(2001, 300, priority=100.0),
        request(2002, 80),
        request(5000, 100, models=["nobody"]),
    ]
    workers = [worker(), worker("v", models=["n"])]
    generous, strict = ReplaySettings(), ReplaySettings(ceiling_tokens=1000)
    there = changes_of(asks, workers, strict, generous)
    back = changes_of(asks, workers, generous, strict)
    assert there["change"].to_list() == ["now served", "now free", "more tokens", "same", "same", "same", "same", "same"]
    assert back["change"].to_list() == ["no longer served", "now funded", "fewer tokens", "same", "same", "same", "same", "same"]
    assert there["tokens_more"].to_list()[:3] == [4000, 0, 2000]
    assert there["baseline_outcome"].to_list()[:3] == ["refused", "funded", "downgraded"]


def test_a_request_behind_others_comes_later_when_they_are_let_in() -> None:
    asks = [request(0, 2000), request(1, 100)]
    rows = changes_of(asks, [worker()], ReplaySettings(ceiling_tokens=600), ReplaySettings())
    assert rows.select("change", "answer_s_more").rows() == [("now served", None), ("later", 199.0)]
    rows = changes_of(asks, [worker()], ReplaySettings(), ReplaySettings(ceiling_tokens=600))
    assert rows.select("change", "answer_s_more").rows() == [("no longer served", None), ("sooner", -199.0)]


def test_a_client_that_comes_back_is_judged_by_what_it_gets_in_the_end() -> None:
    asks = [request(0, 3000), request(0, 3000), request(1, 3500)]
    returns = ReplaySettings(client="return", return_after_s=700.0, return_times=1)
    rows = changes_of(asks, [worker()], ReplaySettings(), returns)
    assert rows.select("change", "tokens_more").rows()[2] == ("now served", 3500)
    patient = changes_of(asks, [worker()], returns, ReplaySettings(rule="everyone_free"))
    assert patient.select("change", "answer_s_more").rows() == [("same", 0.0), ("same", 0.0), ("sooner", 949.0 - 1050.0)]


def test_gains_losses_and_the_same_add_up() -> None:
    traffic, fleet, _ = crowded_world(3)
    runs = []
    for settings in (ReplaySettings(ceiling_tokens=100, floor_tokens=16), ReplaySettings(floor_tokens=300)):
        runs.append(sent_requests(replay(traffic, fleet, settings), traffic, fleet, settings))
    figures = comparison(*runs, largest=3)
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert figures["gain"] + figures["lose"] + figures["same"] == figures["requests"] == traffic.height
    assert sum(figures["changes"].values()) == sum(row["requests"] for row in figures["by"]) == traffic.height
    assert list(figures["changes"]) == CHANGE.categories.to_list()
    assert 0 <= figures["refused_anew_served"] <= min(figures["refused_anew"], figures["changes"]["no longer served"])
    for kind, sign in (("longest_later", 1), ("longest_sooner", -1)):
        found = [sign * row["answer_s_more"] for row in figures[kind]]
        assert found == sorted(found, reverse=True)
        assert len(found) <= 3
    same = comparison(runs[0], runs[0])
    assert (same["gain"], same["lose"]) == (0, 0)


def test_runs_of_other_traffic_are_not_compared() -> None:
    one, other = sent_of([request(request_id="a")], [worker()]), sent_of([request(request_id="b")], [worker()])
    with pytest.raises(FrameError, match="the same requests as the baseline's"):
        changes(one, other)
