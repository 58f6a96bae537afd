import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.board.alerts import DEFAULT_RULES, AlertChange, AlertRules, AlertState, evaluate
from horde_policy.board.rows import Board, make_board
from horde_policy.errors import InputError
from horde_policy.settings import AllowanceSettings
from tests.unit.board.made import AT, listed, snapshot, worker

SETTINGS = AllowanceSettings()
FULL, FLOOR, UNKNOWN = 0.0, 9000.0, None


def at(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def look(seconds: float, queued: float | None = FULL, workers: list[dict[str, Any]] | None = None) -> Board:
    fleet = [worker("w")] if workers is None else workers
    return make_board(snapshot(fleet, [listed("m", queued, 1.0)] if fleet else [], at=at(seconds)), SETTINGS)


class Watch:
    """Evaluates looks one after the other, each at the instant of its data unless told otherwise."""

    def __init__(self, rules: AlertRules = DEFAULT_RULES) -> None:
        self.rules = rules
        self.state = AlertState()

    def see(self, board: Board, now_s: float | None = None) -> list[tuple[str, str, str | None]]:
        now = board.snapshot.fetched_at if now_s is None else at(now_s)
        self.state, told = evaluate(self.state, board, now, self.rules)
        return [(change.kind, change.alert.rule, change.alert.model) for change in told]

    @property
    def firing(self) -> list[tuple[str, str | None]]:
        return [(alert.rule, alert.model) for alert in self.state.firing]


def test_a_model_at_the_floor_fires_after_ten_minutes_and_not_before() -> None:
    watch = Watch()
    for seconds in range(0, 600, 30):
        assert watch.see(look(seconds, FLOOR)) == []
    assert watch.see(look(600, FLOOR)) == [("fired", "at_floor", "m")]
    assert watch.see(look(630, FLOOR)) == []
    alert = watch.state.firing[0]
    assert (alert.since, alert.fired_at) == (at(0), at(600))
    assert watch.see(look(660, FULL)) == [("resolved", "at_floor", "m")]
    assert watch.firing == []


def test_a_moment_off_the_floor_begins_the_ten_minutes_anew() -> None:
    watch = Watch()
    for seconds in range(0, 570, 30):
        watch.see(look(seconds, FLOOR))
    watch.see(look(570, FULL))
    for seconds in range(600, 1200, 30):
        assert watch.see(look(seconds, FLOOR)) == []
    assert watch.see(look(1200, FLOOR)) == [("fired", "at_floor", "m")]


def test_falling_is_no_floor() -> None:
    watch = Watch()
    for seconds in range(0, 1200, 60):
        assert watch.see(look(seconds, 2000.0)) == []


def test_a_gap_in_the_data_is_not_counted() -> None:
    watch = Watch()
    watch.see(look(0, FLOOR))
    assert watch.see(look(3600, FLOOR)) == []  # what was in between is not known
    for seconds in range(3900, 4200, 60):
        assert watch.see(look(seconds, FLOOR)) == []
    assert watch.see(look(4200, FLOOR)) == [("fired", "at_floor", "m")]
    assert watch.state.firing[0].since == at(3600)


def test_looks_as_far_apart_as_the_longest_gap_still_count() -> None:
    watch = Watch()
    told = [watch.see(look(seconds, FLOOR)) for seconds in (0, 300, 600)]
    assert told == [[], [], [("fired", "at_floor", "m")]]


def test_a_clock_set_back_begins_anew_and_ends_nothing() -> None:
    watch = Watch()
    for seconds in (0, 300, 600):
        watch.see(look(seconds, FLOOR))
    assert watch.firing == [("at_floor", "m")]
    assert watch.see(look(-5000, FLOOR)) == []
    assert watch.firing == [("at_floor", "m")]
    other = Watch()
    other.see(look(0, FLOOR))
    other.see(look(-5000, FLOOR))
    assert other.see(look(-4700, FLOOR)) == []
    assert other.see(look(-4400, FLOOR)) == [("fired", "at_floor", "m")]


def test_a_source_that_stands_still_fires_stale_and_nothing_else() -> None:
    watch = Watch()
    board = look(0, FLOOR)
    assert watch.see(board, 0) == []
    assert watch.see(board, 120) == []
    assert watch.see(board, 121) == [("fired", "stale", None)]
    assert watch.see(board, 4000) == []
    assert watch.firing == [("stale", None)]
    assert watch.state.firing[0].since == at(120)
    assert watch.see(look(4010, FLOOR), 4011) == [("resolved", "stale", None)]


def of_parts(board: Board, **times_s: float) -> Board:
    times = {part: at(seconds) for part, seconds in times_s.items()}
    return replace(board, snapshot=replace(board.snapshot, fetched_at=min(times.values()), part_times=times))


def test_an_alert_is_of_the_look_that_told_it_whatever_the_oldest_part_is() -> None:
    watch = Watch()
    watch.see(of_parts(look(0), workers=0, models=0, modes=0))
    watch.see(of_parts(look(60, workers=[]), workers=50, models=60, modes=0), 60)
    assert [(alert.rule, alert.since) for alert in watch.state.firing] == [("no_worker", at(60))]


@pytest.mark.parametrize(("older", "stale"), [("workers", True), ("models", True), ("modes", False), ("totals", False)])
def test_only_what_figures_rest_on_makes_data_stale(older: str, stale: bool) -> None:
    watch = Watch()
    told = watch.see(of_parts(look(0), **{"workers": 0, "models": 0, older: -121}), 0)
    assert told == ([("fired", "stale", None)] if stale else [])
    if stale:
        assert watch.state.firing[0].since == at(-1)


def test_a_list_of_models_that_stands_still_adds_nothing_to_a_duration() -> None:
    watch = Watch()
    for seconds in range(0, 570, 30):
        watch.see(of_parts(look(seconds, FLOOR), workers=seconds, models=seconds), seconds)
    for seconds in range(570, 660, 30):
        assert watch.see(of_parts(look(seconds, FLOOR), workers=seconds, models=540), seconds) == []
    told = watch.see(of_parts(look(660, FLOOR), workers=660, models=660), 660)
    assert told == [("fired", "at_floor", "m")]
    assert watch.state.firing[0].fired_at == at(660)


def test_what_fires_goes_on_while_the_data_are_stale() -> None:
    watch = Watch()
    for seconds in (0, 300, 600):
        board = look(seconds, FLOOR)
        watch.see(board)
    watch.see(board, 2000)
    assert watch.firing == [("at_floor", "m"), ("stale", None)]


def test_an_unknown_queue_ends_no_alert_and_starts_none() -> None:
    watch = Watch()
    for seconds in (0, 300, 600):
        watch.see(look(seconds, FLOOR))
    assert watch.see(look(660, UNKNOWN)) == []
    assert watch.firing == [("at_floor", "m")]
    pending = Watch()
    for seconds, queued in ((0, FLOOR), (300, UNKNOWN), (600, FLOOR), (900, FLOOR)):
        assert pending.see(look(seconds, queued)) == []
    assert pending.see(look(1200, FLOOR)) == [("fired", "at_floor", "m")]


@pytest.mark.parametrize("lost", [[worker("w", maintenance=True)], []], ids=["maintenance", "gone from the list"])
def test_a_model_that_loses_its_last_worker_fires_at_once(lost: list[dict[str, Any]]) -> None:
    watch = Watch()
    watch.see(look(0))
    assert watch.see(look(60, workers=lost)) == [("fired", "no_worker", "m")]
    assert watch.see(look(120, workers=lost)) == []
    assert watch.see(look(180)) == [("resolved", "no_worker", "m")]


def test_a_model_without_a_row_is_forgotten_after_a_day() -> None:
    watch = Watch()
    watch.see(look(0))
    for hours in range(1, 25):
        watch.see(look(hours * 3600.0, workers=[]))
    assert watch.firing == [("no_worker", "m")]
    assert watch.see(look(25 * 3600.0, workers=[])) == [("forgotten", "no_worker", "m")]
    assert (watch.state.alerts, watch.state.seen) == ({}, {})


def test_a_size_that_no_worker_takes_is_no_alert() -> None:
    watch = Watch()
    assert watch.see(look(0, workers=[worker("w", max_context_length=1024)])) == []


def test_a_largest_free_request_below_512_fires_and_an_unknown_one_does_not() -> None:
    watch = Watch()
    assert watch.see(look(0, workers=[worker("w", max_length=511)])) == [("fired", "small_free_request", "m")]
    assert watch.see(look(60, UNKNOWN, workers=[worker("w", max_length=511)])) == []
    assert watch.firing == [("small_free_request", "m")]
    assert watch.see(look(120, workers=[worker("w", max_length=512)])) == [("resolved", "small_free_request", "m")]


def test_several_alerts_are_listed_by_rule_then_the_longest_first() -> None:
    watch = Watch(AlertRules(for_s={"at_floor": 0.0, "no_worker": 0.0, "small_free_request": 0.0, "stale": 0.0}))

    def board(seconds: float, floor: list[str], gone: list[str]) -> Board:
        rows = [worker(f"w-{name}", name, maintenance=name in gone) for name in ("a", "b", "c")]
        queues = [listed(name, FLOOR if name in floor else FULL) for name in ("a", "b", "c")]
        return make_board(snapshot(rows, queues, at=at(seconds)), SETTINGS)

    watch.see(board(0, ["b"], []))
    watch.see(board(60, ["a", "b"], ["c"]))
    assert watch.firing == [("at_floor", "b"), ("at_floor", "a"), ("no_worker", "c")]


def test_the_state_comes_back_from_json_and_nothing_is_told_twice() -> None:
    watch = Watch()
    for seconds in (0, 300, 600):
        watch.see(look(seconds, FLOOR))
    watch.see(look(600, FLOOR), 5000)
    again = Watch()
    again.state = AlertState.restored(json.loads(json.dumps(watch.state.stored())))
    assert again.state == watch.state
    assert again.see(look(600, FLOOR), 5001) == []
    assert again.firing == [("at_floor", "m"), ("stale", None)]


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"alerts": [], "seen": {}},
        {"alerts": [{"rule": "other", "model": None, "since": "2026-01-01", "fired_at": None}], "seen": {}, "looked_at": None},
        {"alerts": [], "seen": {"m": "yesterday"}, "looked_at": None},
        {"alerts": None, "seen": {}, "looked_at": None},
        {"alerts": [], "seen": [], "looked_at": None},
    ],
)
def test_a_state_of_another_form_is_refused(stored: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="cannot be read back"):
        AlertState.restored(stored)


@pytest.mark.parametrize(
    "rules",
    [{"longest_gap_s": -1.0}, {"remember_s": float("nan")}, {"small_free_tokens": -1}, {"for_s": {"at_floor": 1.0}}],
)
def test_rules_that_make_no_sense_are_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="alert rules"):
        AlertRules(**rules)


@given(st.lists(st.tuples(st.integers(1, 400), st.sampled_from([FULL, FLOOR, 2000.0, UNKNOWN]), st.booleans()), max_size=25))
def test_every_alert_told_as_fired_is_told_once_and_ends_once(looks: list[tuple[int, float | None, bool]]) -> None:
    state = AlertState()
    open_alerts: dict[tuple[str, str | None], AlertChange] = {}
    seconds = 0
    for step, queued, served in looks:
        seconds += step
        board = look(seconds, queued, workers=[worker("w")] if served else [])
        state, told = evaluate(state, board, board.snapshot.fetched_at)
        for change in told:
            if change.kind == "fired":
                assert change.alert.key not in open_alerts
                assert change.alert.fired_at is not None
                waited_s = (change.alert.fired_at - change.alert.since).total_seconds()
                assert waited_s >= DEFAULT_RULES.for_s[change.alert.rule]
                open_alerts[change.alert.key] = change
            else:
                assert open_alerts.pop(change.alert.key).alert == change.alert
        assert {alert.key for alert in state.firing} == set(open_alerts)
