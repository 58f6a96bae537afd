from dataclasses import replace
from datetime import timedelta
from typing import Literal

import pytest

from horde_policy.board.rows import make_board
from horde_policy.errors import Problem
from horde_policy.frames.snapshot import Modes, SourceKind
from horde_policy.settings import AllowanceSettings
from horde_policy.views.overview_words import banner_text
from horde_policy.views.status import problems_title, status_line
from tests.unit.board.made import AT, snapshot, worker

State = Literal["waiting", "ok", "stale", "throttled", "failing"]


def test_a_recording_has_a_date_and_no_age() -> None:
    status = status_line(snapshot([], []), name="x", state="ok", sentence="Up to date", now=AT + timedelta(days=400))
    assert (status.label, status.at, status.ticks, status.age_text) == ("recorded", "29 Nov 2026 12:00:00 UTC", False, "—")
    assert status.trouble is None
    assert status.data(ticking=True, refresh_s=30)["ticking"] is False


@pytest.mark.parametrize("state", ["stale", "throttled", "failing"])
def test_trouble_is_said_with_the_sentence_of_the_poller_made_visible(state: State) -> None:
    live = replace(snapshot([], []), source_kind="live", source="horde\u202e")
    status = status_line(live, name="x", state=state, sentence="answers 429\u202e; last good value of 12:00:00 UTC", now=AT)
    assert status.trouble == "answers 429⟨U+202E⟩; last good value of 12:00:00 UTC"
    assert status.source == "horde⟨U+202E⟩"
    assert status.failing is (state != "stale")


def test_a_part_that_failed_alone_is_said_and_is_no_failing_source() -> None:
    found = (Problem("other", "x", "something else"), Problem("part_failed", "models", "models could not be had (answers 429)"))
    live = replace(snapshot([], [], problems=found), source_kind="live")
    status = status_line(live, name="x", state="ok", sentence="Up to date", now=AT)
    assert status.trouble == "models could not be had (answers 429)"
    assert status.failing is False


def test_made_up_data_are_said_to_be() -> None:
    status = status_line(snapshot([], [], synthetic=True), name="x", state="ok", sentence="", now=AT)
    assert status.label == "recorded, synthetic data"


@pytest.mark.parametrize(("kind", "limit_s"), [("live", 120.0), ("demo", None), ("recorded", None), ("history", None)])
def test_only_what_is_live_can_turn_stale_in_the_browser(kind: SourceKind, limit_s: float | None) -> None:
    old = replace(snapshot([], []), source_kind=kind)
    status = status_line(old, name="x", state="ok", sentence="", now=AT + timedelta(minutes=6))
    assert status.data(ticking=True, refresh_s=300)["age_limit_s"] == limit_s


def test_before_the_first_answer_there_is_a_name_and_no_time() -> None:
    status = status_line(None, name="horde", state="waiting", sentence="Waiting for the first answer", now=AT)
    assert (status.label, status.source, status.at_ms, status.age_s) == ("opening", "horde", None, None)


def test_a_clock_that_was_set_back_makes_no_negative_age() -> None:
    live = replace(snapshot([], []), source_kind="live")
    assert status_line(live, name="x", state="ok", sentence="", now=AT - timedelta(hours=1)).age_s == 0


@pytest.mark.parametrize(
    ("modes", "words"),
    [
        (Modes(maintenance_mode=True, invite_only_mode=True), "in maintenance"),
        (Modes(maintenance_mode=False, invite_only_mode=True), "invite-only"),
        (Modes(maintenance_mode=False, invite_only_mode=False), None),
        (Modes(), None),
        (None, None),
    ],
)
def test_the_banner_says_the_modes_that_are_on(modes: Modes | None, words: str | None) -> None:
    made = make_board(replace(snapshot([worker("w")], []), modes=modes), AllowanceSettings())
    text = banner_text(made.pulse)
    assert text is None if words is None else text is not None and words in text


def test_problems_are_counted_by_level() -> None:
    problem, note = Problem("c", "s", "t"), Problem("c", "s", "t", "note")
    assert problems_title([problem] * 1200) == "1,200 problems in the data"
    assert problems_title([note]) == "1 note in the data"


def test_the_age_on_a_page_is_that_of_what_its_figures_rest_on() -> None:
    times = {"workers": AT, "models": AT - timedelta(seconds=10), "modes": AT - timedelta(seconds=110)}
    made = replace(snapshot([worker("w")], None, at=min(times.values())), source_kind="live", part_times=times)
    status = status_line(made, name="a horde", state="ok", sentence="", now=AT)
    assert (status.age_s, status.at_ms) == (10.0, round(times["models"].timestamp() * 1000))


def test_an_age_above_the_interval_is_explained_beside_it_while_all_is_well() -> None:
    live = replace(snapshot([], []), source_kind="live")
    well = status_line(live, name="x", state="ok", sentence="", now=AT, renewed_s=30.0)
    assert well.data(ticking=True, refresh_s=30)["note"] == "looks every 30 s: figures up to 60 s old"
    assert well.data(ticking=True, refresh_s=0)["note"] == "refresh off"
    late = status_line(live, name="x", state="stale", sentence="no answer", now=AT, renewed_s=30.0)
    assert late.data(ticking=True, refresh_s=30)["note"] == "looks every 30 s", "what is older now has its own sentence"
