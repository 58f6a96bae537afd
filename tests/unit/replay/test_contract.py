"""Each sentence of the replay contract that a hand can check, on worlds small enough to see through."""

from typing import Any

import pytest

from horde_policy.settings import ReplaySettings
from tests.unit.replay.small_worlds import at, column, finished_after, replayed, request, started_after, worker

FREE = ReplaySettings(rule="everyone_free")


# ---- order of events


def test_at_one_instant_expiry_comes_before_a_jobs_end() -> None:
    rows = replayed([request(0, 1000), request(0, 10)], [worker()], FREE.changed(request_ttl_s=100.0))
    assert column(rows, "status") == ["completed", "expired"]
    assert finished_after(rows)[0] == 100.0


def test_a_job_that_ends_as_its_worker_leaves_is_completed() -> None:
    rows = replayed([request(0, 100)], [worker(online_to=at(10))])
    assert (column(rows, "status"), finished_after(rows)) == (["completed"], [10.0])


def test_at_one_instant_a_worker_leaves_before_another_comes() -> None:
    """The job that w loses at 5 s goes to v, which comes at 5 s: v is not there yet when the job is offered."""
    rows = replayed([request(0, 100)], [worker("v", online_from=at(5)), worker("w", online_to=at(5))])
    assert (rows[0]["worker_id"], started_after(rows), finished_after(rows)) == ("v", [5.0], [15.0])


def test_a_worker_that_comes_takes_before_an_arrival_of_the_same_instant_is_measured() -> None:
    rows = replayed([request(0, 100, can_pay=True), request(5, 100)], [worker(online_from=at(5))], FREE)
    assert rows[0]["status"] == "completed"
    assert rows[1]["estimated_wait_s"] == 0.0  # the first no longer waits


def test_a_job_of_no_tokens_ends_before_the_next_fleet_change_and_the_next_arrival() -> None:
    empty = {"output_tokens": 0}
    rows = replayed(
        [request(5, 80, **empty), request(5, 80, **empty), request(5, 80, **empty)],
        [worker("w", online_from=at(0), online_to=at(5)), worker("v", online_from=at(5))],
    )
    assert column(rows, "worker_id") == ["v"] * 3
    assert finished_after(rows) == [5.0] * 3
    waiting = replayed([request(0, 80, **empty), request(0, 80, **empty)], [worker(online_from=at(7), online_to=at(8))], FREE)
    assert finished_after(waiting) == [7.0, 7.0]


def test_completions_of_one_instant_come_in_traffic_row_order() -> None:
    """Both workers end at 10 s; row 0 runs on v, so v takes the first of the waiting, then w the second."""
    rows = replayed([request(0, 100), request(0, 100), request(1, 10), request(1, 10)], [worker("v"), worker("w")], FREE)
    assert column(rows, "worker_id") == ["v", "w", "v", "w"]


def test_the_traffic_row_decides_and_not_the_arrival_where_they_differ() -> None:
    """Row 1 came first and runs on v; both jobs end at 10 s, and row 0's worker w is the first to take."""
    rows = replayed([request(5, 50), request(0, 100), request(6, 10), request(7, 10)], [worker("v"), worker("w")], FREE)
    assert finished_after(rows)[:2] == [10.0, 10.0]
    assert column(rows, "worker_id") == ["w", "v", "w", "v"]


# ---- eligibility


@pytest.mark.parametrize(
    ("asks", "offers", "takes"),
    [
        ({}, {}, True),
        ({"models": ["n"]}, {}, False),
        ({"models": ["n", "m"]}, {}, True),
        ({"models": []}, {"models": []}, True),
        ({"models": []}, {"models": ["x"]}, True),
        ({"max_length": 512}, {"max_length": 512}, True),
        ({"max_length": 513}, {"max_length": 512}, False),
        ({"max_context_length": 4096}, {"max_context_length": 4096}, True),
        ({"max_context_length": 4097}, {"max_context_length": 4096}, False),
        ({"max_context_length": 1}, {"max_context_length": 1}, True),
        ({"slow_workers": False, "can_pay": True}, {"speed": 5.0}, True),
        ({"slow_workers": False, "can_pay": True}, {"speed": 4.999}, False),
        ({"slow_workers": False, "can_pay": True}, {"speed": 4.0, "slow": False}, True),
        ({"slow_workers": False, "can_pay": True}, {"speed": 40.0, "slow": True}, False),
    ],
)
def test_who_could_take_what(asks: dict[str, Any], offers: dict[str, Any], takes: bool) -> None:
    rows = replayed([request(0, **({"tokens": 80} | asks))], [worker(**offers)], FREE)
    assert (rows[0]["status"] == "completed") is takes
    assert (rows[0]["estimated_wait_s"] is None) is not takes


# ---- queue order


def test_larger_keys_go_first_then_earlier_ones_then_traffic_rows() -> None:
    requests = [
        request(0, 100, priority=0.0),  # runs at once
        request(2, 10, priority=0.0),
        request(1, 10, priority=0.0),
        request(3, 10, priority=40.0),
        request(1, 10, priority=0.0),
        request(10, 10, priority=60.0),  # ten seconds later: 50 less, so a key of 10 against 40
    ]
    rows = replayed(requests, [worker()], FREE)
    assert sorted(range(6), key=lambda k: started_after(rows)[k] or 0.0) == [0, 3, 5, 2, 4, 1]


def test_fifty_kudos_are_ten_seconds_of_head_start() -> None:
    """Key = priority − 50 · floor(created / 10 s): equal here, so the earlier goes first."""
    rows = replayed([request(0, 200), request(9, 10, priority=-50.0), request(19, 10, priority=0.0)], [worker()], FREE)
    assert started_after(rows) == [0.0, 20.0, 21.0]
    rows = replayed([request(0, 200), request(9, 10, priority=-50.0), request(19, 10, priority=0.1)], [worker()], FREE)
    assert started_after(rows) == [0.0, 21.0, 20.0]


def test_ageing_steps_are_never_shorter_than_a_microsecond() -> None:
    """A step that rounds to no microsecond counts as one: what was created a µs earlier is 50 kudos ahead."""
    requests = [request(0, 100), request(1, 10, priority=-49.0), request(1.000001, 10, priority=0.0)]
    assert started_after(replayed(requests, [worker()], FREE.changed(ageing_every_s=1e-7))) == [0.0, 10.0, 11.0]


def test_absent_priority_is_minus_fifty_for_the_anonymous_and_zero_for_others() -> None:
    kinds = ["anonymous", "registered", "shared_key"]
    rows = replayed([request(0, 100)] + [request(1, 10, requester=kind) for kind in kinds], [worker()], FREE)
    assert started_after(rows)[1:] == [12.0, 10.0, 11.0]


# ---- at an arrival


def test_chat_is_lowered_to_the_largest_size_an_online_worker_of_its_models_declares() -> None:
    workers = [
        worker("small", max_length=512, max_context_length=100, slow=True),
        worker("gone", max_length=8000, online_to=at(-0.5)),
        worker("other", models=["n"], max_length=900),
    ]
    rows = replayed(
        [
            request(0, 4096, chat=True, max_context_length=100, slow_workers=True),
            request(0, 4096, chat=True, models=[]),
            request(0, 300, chat=True, max_context_length=100),
            request(0, 4096, chat=True, models=["nobody"]),
            request(0, 4096, max_context_length=100),
        ],
        workers,
        FREE,
    )
    assert column(rows, "admitted_max_length") == [512, 900, 300, 4096, 4096]


def test_the_estimate_is_tokens_ahead_over_the_combined_speed() -> None:
    requests = [
        request(0, 1000, output_tokens=1000),  # runs on fast
        request(0, 1000),  # runs on slow
        request(1, 500),  # waits: 500 ahead of the next
        request(2, 80, priority=1000.0),  # ahead of all, and runs on both
        request(3, 80),
        request(4, 80, models=["n"]),  # only "both" could take it, so only what "both" could take counts: the 80 before it
    ]
    workers = [worker("fast", speed=20.0), worker("slow", speed=5.0), worker("both", models=["m", "n"], max_length=80, speed=7.5)]
    rows = replayed(requests, workers, FREE)
    assert column(rows, "estimated_wait_s") == [0.0, 0.0, 0.0, 0.0, 500 / 32.5, 80 / 7.5]


def test_ahead_all_counts_what_stands_behind_too() -> None:
    requests = [request(0, 1000), request(1, 500), request(2, 100, priority=1e6)]
    assert column(replayed(requests, [worker()], FREE), "estimated_wait_s")[2] == 0.0
    everything = replayed(requests, [worker()], FREE.changed(ahead="all"))
    assert column(everything, "estimated_wait_s")[2] == 50.0


def test_equal_keys_count_as_ahead_for_the_later_one() -> None:
    rows = replayed([request(0, 100), request(0, 100), request(0, 100)], [worker()], FREE)
    assert column(rows, "estimated_wait_s") == [0.0, 0.0, 10.0]


def test_an_unmeasured_worker_counts_at_the_assumed_speed_until_it_has_completed_a_job() -> None:
    requests = [request(0, 40), request(1, 100), request(2, 100), request(21, 400, can_pay=True), request(21, 1)]
    workers = [worker(speed=2.0, measured=False, slow=False)]
    rows = replayed(requests, workers, FREE.changed(assumed_speed_tok_per_s=25.0))
    assert column(rows, "estimated_wait_s") == [0.0, 0.0, 4.0, 50.0, 250.0]


def test_a_completed_job_measures_all_later_periods_of_the_worker() -> None:
    periods = [worker("w", measured=False, online_to=at(50)), worker("w", measured=False, online_from=at(60), speed=20.0)]
    other = worker("v", measured=False, online_from=at(60))
    rows = replayed(
        [request(0, 10), request(61, 100), request(61, 100), request(61, 100), request(62, 1)], [*periods, other], FREE
    )
    assert rows[4]["estimated_wait_s"] == 100 / 30.0  # w at its 20, v at the assumed 10
    timed_out = replayed(
        [request(0, 100), request(61, 100), request(61, 100), request(62, 1)], periods, FREE.changed(job_timeout_s=1.0)
    )
    assert timed_out[3]["estimated_wait_s"] == 0.0  # what timed out measured nothing, and nothing waits
    assert column(timed_out, "status")[:3] == ["timed_out"] * 3


def test_a_workers_speed_counts_once_whatever_its_threads_unless_told_otherwise() -> None:
    requests = [request(0, 100), request(0, 100), request(1, 600), request(2, 1)]
    workers = [worker(threads=2)]
    assert replayed(requests, workers, FREE)[3]["estimated_wait_s"] == 60.0
    assert replayed(requests, workers, FREE.changed(count_threads=True))[3]["estimated_wait_s"] == 30.0


@pytest.mark.parametrize(("ahead", "allowance"), [(600, 4096), (601, 4094), (1800, 2304), (2999, 513), (3000, 512), (9000, 512)])
def test_the_allowance_follows_the_curve(ahead: int, allowance: int) -> None:
    rows = replayed([request(0, 1000), request(1, ahead, can_pay=True), request(2, 1)], [worker()])
    assert rows[2]["allowance"] == allowance


def test_without_an_eligible_worker_the_allowance_is_the_floor_and_there_is_no_estimate() -> None:
    rows = replayed([request(0, 512), request(0, 513), request(0, 513, can_pay=True)], [])
    assert column(rows, "allowance") == [512] * 3
    assert column(rows, "estimated_wait_s") == [None] * 3
    assert column(rows, "outcome") == ["free", "refused", "funded"]
    assert column(rows, "reason") == [None, "NoEligibleWorker", None]


@pytest.mark.parametrize(
    ("asks", "outcome", "admitted"),
    [
        ({}, "refused", None),
        ({"can_pay": True}, "funded", 4097),
        ({"can_pay": True, "allow_downgrade": True}, "funded", 4097),
        ({"allow_downgrade": True}, "downgraded", 4096),
        ({"allow_downgrade": True, "chat": True}, "refused", None),
        ({"tokens": 4096}, "free", 4096),
        ({"tokens": 4096, "can_pay": True}, "free", 4096),
        ({"tokens": 80, "slow_workers": False}, "refused", None),
        ({"tokens": 80, "slow_workers": False, "can_pay": True}, "funded", 80),
        ({"tokens": 80, "slow_workers": False, "allow_downgrade": True}, "downgraded", 80),
    ],
)
def test_outcomes_in_their_order(asks: dict[str, Any], outcome: str, admitted: int | None) -> None:
    row = replayed([request(0, **({"tokens": 4097} | asks))], [worker()])[0]
    assert (row["outcome"], row["admitted_max_length"], row["allowance"]) == (outcome, admitted, 4096)
    assert row["reason"] == ("KudosUpfront" if outcome == "refused" else None)


def test_a_refusal_for_slow_workers_under_the_floor_is_for_kudos_even_without_a_worker() -> None:
    assert replayed([request(0, 80, slow_workers=False)], [])[0]["reason"] == "KudosUpfront"


def test_a_downgrade_lets_slow_and_small_workers_take_it_and_changes_no_figure() -> None:
    ask = request(0, 8000, allow_downgrade=True, slow_workers=False)
    rows = replayed([ask], [worker("slow and small", max_length=512, speed=2.0)], ReplaySettings())
    assert (rows[0]["outcome"], rows[0]["allowance"], rows[0]["estimated_wait_s"]) == ("downgraded", 512, None)
    assert (rows[0]["worker_id"], rows[0]["queue_wait_s"], rows[0]["admitted_max_length"]) == ("slow and small", 0.0, 512)


def test_an_arrival_goes_to_the_worker_idle_longest_then_by_fleet_row() -> None:
    workers = [worker("late", online_from=at(-1)), worker("a", online_from=at(-5)), worker("b", online_from=at(-5))]
    rows = replayed([request(k, 1000) for k in range(3)], workers, FREE)
    assert column(rows, "worker_id") == ["a", "b", "late"]
    back = replayed([request(0, 10), request(2, 10), request(4, 10)], [worker("a"), worker("b")], FREE)
    assert column(back, "worker_id") == ["a", "b", "a"]


# ---- work


def test_a_job_takes_whole_microseconds_rounded_up() -> None:
    rows = replayed([request(0, 80, output_tokens=1), request(100, 80, output_tokens=100)], [worker(speed=3.0, slow=False)])
    assert finished_after(rows) == [0.333334, 126.666667]


def test_threads_run_jobs_side_by_side() -> None:
    rows = replayed([request(0, 100)] * 4, [worker(threads=3)], FREE)
    assert started_after(rows) == [0.0, 0.0, 0.0, 10.0]


def test_a_lost_job_starts_again_from_nothing_with_its_old_key() -> None:
    requests = [request(0, 100), request(1, 100, priority=-50.0), request(2, 100, priority=1000.0)]
    rows = replayed(requests, [worker("w", online_to=at(5)), worker("v", online_from=at(6))], FREE)
    assert started_after(rows) == [16.0, 26.0, 6.0]
    assert column(rows, "queue_wait_s") == [16.0, 25.0, 4.0]


def test_lost_jobs_are_offered_in_key_order() -> None:
    requests = [request(0, 100, priority=0.0), request(0, 100, priority=7.0)]
    workers = [worker("w", threads=2, online_to=at(5)), worker("v", online_from=at(1))]
    rows = replayed(requests, workers, FREE)
    assert column(rows, "worker_id") == ["v", "v"]
    assert started_after(rows) == [15.0, 5.0]


def test_a_lost_job_past_its_time_expires_at_once_and_keeps_its_last_start() -> None:
    requests = [request(0, 1000), request(1, 1000)]
    workers = [worker("w", online_to=at(50)), worker("v", online_to=at(49))]
    rows = replayed(requests, workers, FREE.changed(request_ttl_s=50.0))
    assert column(rows, "status") == ["expired", "expired"]
    assert column(rows, "worker_id") == ["w", "v"]
    assert started_after(rows) == [0.0, 1.0]
    assert column(rows, "finished") == [None, None]


def test_a_running_request_does_not_expire_a_waiting_one_does() -> None:
    rows = replayed([request(0, 1000), request(0, 10)], [worker()], FREE.changed(request_ttl_s=20.0))
    assert column(rows, "status") == ["completed", "expired"]
    assert rows[1]["queue_wait_s"] is None


def test_a_job_that_would_take_longer_than_the_limit_ends_then() -> None:
    settings = FREE.changed(job_timeout_s=10.0)
    rows = replayed([request(0, 101), request(0, 100)], [worker()], settings)
    assert column(rows, "status") == ["timed_out", "completed"]
    assert finished_after(rows) == [10.0, 20.0]


def test_a_job_that_never_ends_stands_at_the_end_of_all_time() -> None:
    rows = replayed([request(0, 16384)], [worker(speed=1e-300, slow=False)], FREE.changed(job_timeout_s=1e-6))
    assert rows[0]["status"] == "timed_out"


# ---- other rules


@pytest.mark.parametrize(
    ("threads", "waiting", "allowance"),
    [(20, 0, 512), (20, 111, 512), (20, 112, 511), (20, 395, 256), (20, 394, 257), (20, 600, 256), (1, 5, 512), (1, 7, 511)],
)
def test_the_old_rule_counts_threads_and_waiting_requests(threads: int, waiting: int, allowance: int) -> None:
    """A29: 512 + 5 · threads − round(0.9 · waiting), within 256 and 512 (horde.md §3)."""
    busy = [request(0, 80, models=["other"], can_pay=True)] * waiting
    rows = replayed([*busy, request(1, 1)], [worker(threads=threads)], ReplaySettings(rule="old"))
    assert rows[-1]["allowance"] == allowance


def test_the_old_rule_is_not_clamped_for_requests_that_forbid_slow_workers() -> None:
    settings = ReplaySettings(rule="old")
    ask = request(0, 2000, slow_workers=False, allow_downgrade=True)
    row = replayed([ask], [worker(threads=100)], settings)[0]
    assert (row["allowance"], row["outcome"], row["admitted_max_length"]) == (1012, "downgraded", 1012)
    crowd = [request(0, 80, models=["other"], can_pay=True)] * 700
    row = replayed([*crowd, ask | {"created": at(1)}], [worker(threads=1)], settings)[-1]
    assert (row["allowance"], row["outcome"], row["admitted_max_length"]) == (512 + 5 - 630, "downgraded", 1)


@pytest.mark.parametrize(("ahead", "allowance"), [(0, 4096), (1, 3648), (4, 2304), (8, 512), (20, 512)])
def test_the_jobs_rule_counts_requests_ahead_over_eligible_threads(ahead: int, allowance: int) -> None:
    """A30: linear from the ceiling at 0 to the floor at 4 requests a thread."""
    running = [request(0, 300)] * 2
    rows = replayed([*running, *[request(1, 5)] * ahead, request(2, 1)], [worker(threads=2)], ReplaySettings(rule="jobs"))
    assert rows[-1]["allowance"] == allowance


def test_the_jobs_rule_gives_the_floor_without_an_eligible_worker() -> None:
    assert replayed([request(0, 1)], [], ReplaySettings(rule="jobs"))[0]["allowance"] == 512


def test_everyone_free_has_no_allowance_and_no_one_free_has_none_to_give() -> None:
    asks = [request(0, 16384, slow_workers=False), request(0, 80, allow_downgrade=True), request(0, 80, can_pay=True)]
    free = replayed(asks, [worker()], ReplaySettings(rule="everyone_free"))
    assert column(free, "outcome") == ["free"] * 3
    assert column(free, "allowance") == [None] * 3
    paid = replayed(asks, [worker()], ReplaySettings(rule="no_one_free"))
    assert column(paid, "outcome") == ["refused", "refused", "funded"]
    assert column(paid, "allowance") == [0] * 3


# ---- what a refused client does


def test_a_client_sends_again_at_the_stated_allowance() -> None:
    asks = [request(0, 5000, request_id="a"), request(0, 80, request_id="b")]
    rows = replayed(asks, [worker()], ReplaySettings(client="resend"))
    assert column(rows, "request_id") == ["a", "b", "a#2"]
    assert column(rows, "retry_of") == [None, None, "a"]
    assert column(rows, "outcome") == ["refused", "free", "free"]
    assert rows[2]["admitted_max_length"] == 4096
    assert started_after(rows) == [None, 0.0, 8.0]  # at once, behind the other arrivals of the instant


@pytest.mark.parametrize(
    ("ask", "workers", "rule"),
    [
        (request(0, 5000), [], "allowance"),  # NoEligibleWorker
        (request(0, 80, slow_workers=False), [worker()], "allowance"),  # not larger than the allowance
        (request(0, 80), [worker()], "no_one_free"),  # nothing can be asked for
    ],
)
def test_no_client_sends_again_where_a_smaller_size_would_not_help(
    ask: dict[str, Any], workers: list[dict[str, Any]], rule: str
) -> None:
    settings = ReplaySettings(client="resend").changed(rule=rule)
    assert column(replayed([ask], workers, settings), "outcome") == ["refused"]


def test_a_client_sends_again_only_once() -> None:
    """The second is refused as well: by then a longer queue has lowered the allowance."""
    asks = [request(0, 700, can_pay=True), request(0, 900, can_pay=True), request(0, 4200), request(0, 600, can_pay=True)]
    rows = replayed(asks, [worker()], ReplaySettings(client="resend", ahead="all"))
    assert column(rows, "outcome") == ["free", "free", "refused", "free", "refused"]
    assert [rows[2]["allowance"], rows[4]["allowance"]] == [3648, 2752]


def test_a_client_returns_with_the_same_request() -> None:
    asks = [request(0, 3000, can_pay=True), request(0, 3600, can_pay=True), request(0, 4000, request_id="c", chat=True)]
    settings = ReplaySettings(client="return", return_after_s=150.0, return_times=5)
    rows = replayed(asks, [worker()], settings)
    assert column(rows, "request_id")[2:] == ["c", "c#2", "c#3"]
    assert column(rows, "retry_of")[2:] == [None, "c", "c"]
    assert column(rows, "outcome")[2:] == ["refused", "refused", "free"]
    assert started_after(rows) == [0.0, 300.0, None, None, 660.0]


def test_a_client_may_return_after_all_time() -> None:
    rows = replayed([request(0, 600)], [], ReplaySettings(client="return", return_after_s=1e13, return_times=3))
    assert column(rows, "status") == ["refused"] * 4


def test_a_client_returns_so_often_and_no_more() -> None:
    rows = replayed([request(0, 600)], [], ReplaySettings(client="return", return_after_s=0.0, return_times=3))
    assert column(rows, "reason") == ["NoEligibleWorker"] * 4
    assert column(rows, "request_id") == ["0", "0#2", "0#3", "0#4"]


def test_a_repeated_request_has_an_id_that_no_given_one_has() -> None:
    asks = [request(0, 512, request_id="a"), request(0, 3000, request_id="b")]
    asks += [request(0, 100, request_id="b#2"), request(0, 100, request_id="b#3")]
    rows = replayed(asks, [worker(speed=1.0)], ReplaySettings(client="resend", ceiling_tokens=1000))
    assert column(rows, "request_id")[4:] == ["b##2"]
    assert column(rows, "retry_of")[4:] == ["b"]
    assert len({row["request_id"] for row in rows}) == len(rows)
    apart = replayed([request(0, 600, request_id="b"), request(0, 600, request_id="c#2")], [], ReplaySettings(client="return"))
    assert column(apart, "request_id")[2:] == ["b#2", "c#2#2"]
