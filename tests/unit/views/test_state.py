from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.errors import InputError
from horde_policy.settings import AllowanceSettings
from horde_policy.views.budget_state import BUDGET_NAMES
from horde_policy.views.history import Range, outside_sentence, range_of
from horde_policy.views.parameters import (
    PARAMETERS,
    REFRESH_CHOICES_S,
    SETTING_PARAMETERS,
    SORTS,
    TRIED_PARAMETERS,
    size_from_text,
)
from horde_policy.views.replay_state import REPLAY_NAMES
from horde_policy.views.review_state import parse_review_state
from horde_policy.views.state import ViewState, parse_view_state
from horde_policy.views.sweep_state import SWEEP_NAMES
from horde_policy.views.words import STATES

BASE = AllowanceSettings()


def test_every_field_but_the_settings_has_its_parameter() -> None:
    elsewhere = {"first_source", "settings", "tried", "sweep", "budget", "replay"}
    assert {p.field for p in PARAMETERS} | elsewhere == {f.name for f in fields(ViewState)}
    settings = [*SETTING_PARAMETERS, *TRIED_PARAMETERS, *SWEEP_NAMES, *BUDGET_NAMES, *REPLAY_NAMES]
    assert len({p.name for p in PARAMETERS} | set(settings)) == len(PARAMETERS) + len(settings)


def test_an_empty_address_is_the_default_and_writes_nothing() -> None:
    state, notes = parse_view_state({}, BASE)
    assert state == ViewState()
    assert notes == ()
    assert state.query(BASE) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", "1e309"),
        ("size", "0"),
        ("size", "15"),
        ("size", "16385"),
        ("size", "-80"),
        ("size", "80.0"),
        ("size", "٨٠"),
        ("size", "8_0"),
        ("size", " 80"),
        ("size", "9" * 4000),
        ("context", "1e9"),
        ("context", "79"),
        ("refresh", "0"),
        ("refresh", "1"),
        ("refresh", "ten"),
        ("grouped", "yes"),
        ("sort", "price"),
        ("state", "broken"),
        ("source", "../../etc"),
        ("source", "http://192.0.2.1/"),
        ("find", "x" * 201),
        ("m", "x" * 1001),
        ("ceiling", "1e309"),
        ("ceiling", "nan"),
        ("ceiling", "4096.5"),
        ("floor", "5000"),
        ("floor", "0"),
        ("full_wait", "inf"),
        ("full_wait", "300"),
        ("floor_wait", "-1"),
        ("assumed_speed", "0"),
        ("colour", "red"),
        ("\u202e<b>", "x"),
    ],
)
def test_what_cannot_be_read_falls_back_with_a_note(name: str, value: str) -> None:
    state, notes = parse_view_state({name: [value]}, BASE)
    assert state == ViewState()
    assert len(notes) == 1
    assert "left out" in notes[0]
    assert len(notes[0]) < 400


@pytest.mark.parametrize(
    ("query", "changes"),
    [
        ({"size": ["16"]}, {"max_length_tokens": 16}),
        ({"size": ["16384"]}, {"max_length_tokens": 16384}),
        ({"size": ["512", "512"]}, {"max_length_tokens": 512}),
        ({"refresh": ["off"]}, {"refresh_s": 0}),
        ({"m": ["a/b", "", "a/b", "c"]}, {"models": ("a/b", "c")}),
        ({"state": ["floor", "full", "floor"]}, {"states": ("full", "floor")}),
        ({"full_wait": ["30.5"]}, {"settings": AllowanceSettings(wait_full_s=30.5)}),
        ({"source": ["recorded:calm_snapshot"]}, {"source": "recorded:calm_snapshot"}),
    ],
)
def test_what_can_be_read(query: dict[str, list[str]], changes: dict[str, object]) -> None:
    state, notes = parse_view_state(query, BASE)
    assert state == ViewState().changed(**changes)
    assert notes == ()


def test_a_value_that_is_given_twice_is_told() -> None:
    state, notes = parse_view_state({"size": ["80", "512"], "floor": ["100", "200"], "m": ["a", "b"]}, BASE)
    assert (state.max_length_tokens, state.settings.floor_tokens, state.models) == (512, 200, ("a", "b"))
    assert notes == (
        "The link's size is given 2 times; the last, '512', counts.",
        "The link's floor is given 2 times; the last, '200', counts.",
    )


def test_a_list_that_is_too_long_is_left_out_and_told_as_a_whole() -> None:
    state, notes = parse_view_state({"m": [f"x{n}" for n in range(60)]}, BASE)
    assert state.models == ()
    assert notes == (
        "The link's m='x59' and 59 more of m are left out: they must be at most 20 names of at most 1000 characters.",
    )


def test_settings_that_make_no_sense_together_leave_the_deployments_in_force() -> None:
    base = AllowanceSettings(ceiling_tokens=2048)
    state, notes = parse_view_state({"floor": ["3000"], "size": ["512"]}, base)
    assert state.settings == base
    assert state.max_length_tokens == 512
    assert "must not be above ceiling_tokens, which is 2048" in notes[0]


SETTINGS = st.builds(
    lambda floor, more, full, gap, speed: AllowanceSettings(
        floor_tokens=floor,
        ceiling_tokens=min(16384, floor + more),
        wait_full_s=full,
        wait_floor_s=full + gap,
        assumed_speed_tok_per_s=speed,
    ),
    st.integers(1, 16384),
    st.integers(0, 16384),
    st.integers(0, 10_000).map(lambda n: n / 8),
    st.integers(1, 10_000).map(lambda n: n / 8),
    st.integers(1, 1_000).map(lambda n: n / 4),
)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=50)
STATE = st.builds(
    ViewState,
    source=st.sampled_from(["demo", "public", "recorded:fresh_server"]),
    refresh_s=st.sampled_from(REFRESH_CHOICES_S),
    max_length_tokens=st.integers(16, 16384),
    max_context_tokens=st.integers(80, 1_048_576),
    grouped=st.booleans(),
    settings=SETTINGS,
    models=st.lists(NAMES, max_size=5, unique=True).map(tuple),
    find=NAMES,
    states=st.sets(st.sampled_from(list(STATES))).map(lambda s: tuple(x for x in STATES if x in s)),
    sort=st.sampled_from(SORTS),
    descending=st.booleans(),
    wall=st.booleans(),
)


@given(STATE, SETTINGS)
def test_what_is_written_reads_back_the_same(state: ViewState, base: AllowanceSettings) -> None:
    again, notes = parse_view_state(state.query(base), base)
    assert again == state
    assert notes == ()


@given(
    st.dictionaries(
        st.sampled_from([*(p.name for p in PARAMETERS), *SETTING_PARAMETERS, "x"]) | st.text(max_size=20),
        st.lists(st.text(max_size=40), max_size=4),
        max_size=12,
    )
)
def test_nothing_in_an_address_raises(query: dict[str, list[str]]) -> None:
    state, notes = parse_view_state(query, BASE)
    again, more = parse_view_state(state.query(BASE), BASE)
    assert again == state
    assert more == ()
    assert all(len(note) < 400 for note in notes)


FIRST_DAYS, LAST_DAYS = datetime(1, 3, 1), datetime(9999, 11, 1)  # noqa: DTZ001 (written with a Z below)
ENDS = st.datetimes(max_value=FIRST_DAYS) | st.datetimes(min_value=LAST_DAYS)
ANY_INSTANT = (ENDS | st.datetimes()).map(lambda at: f"{at.isoformat(timespec='minutes')}Z")
LAST_POLL = datetime(2026, 11, 29, 12, tzinfo=UTC)


@given(ANY_INSTANT, ANY_INSTANT)
def test_every_instant_of_the_calendar_gives_a_range_that_can_be_looked_at_and_moved(start: str, end: str) -> None:
    state, notes = parse_view_state({"from": [start], "to": [end]}, BASE)
    shown = range_of(state, LAST_POLL - timedelta(days=7), LAST_POLL)
    assert timedelta(0) < shown.end - shown.start <= timedelta(days=31)
    assert shown.shifted(timedelta(days=7)).start < shown.start
    review, review_notes = parse_review_state({"since": [start], "until": [end]})
    for taken, told in (((state.from_at, state.to_at), notes), ((review.start, review.end), review_notes)):
        assert (None in taken) == bool(told), "what is left out is told"
        assert all(1970 <= at.year <= 2199 for at in taken if at)


def test_a_range_too_long_is_cut_to_what_the_history_has_and_one_that_misses_it_is_said_as_asked() -> None:
    first = LAST_POLL - timedelta(days=7)
    for start, end, shown in (
        ("1970-01-01T00:00Z", "2199-01-01T00:00Z", Range(first, LAST_POLL)),
        ("2026-11-28T00:00Z", "2199-01-01T00:00Z", Range(LAST_POLL - timedelta(days=1.5), LAST_POLL)),
        ("1970-01-01T00:00Z", "2026-11-23T12:00Z", Range(first, first + timedelta(days=1))),
        ("2026-11-29T00:00Z", "2026-11-30T00:00Z", Range(LAST_POLL - timedelta(hours=12), LAST_POLL + timedelta(hours=12))),
    ):
        state, _ = parse_view_state({"from": [start], "to": [end]}, BASE)
        assert range_of(state, first, LAST_POLL) == shown
        assert outside_sentence(state, shown, first, LAST_POLL) is None
    long_ago = LAST_POLL - timedelta(days=400)
    state, _ = parse_view_state({"from": ["1970-01-01T00:00Z"], "to": ["2199-01-01T00:00Z"]}, BASE)
    assert range_of(state, long_ago, LAST_POLL) == Range(LAST_POLL - timedelta(days=31), LAST_POLL), "its end counts"
    for start, end in (("1970-01-01T00:00Z", "1999-01-01T00:00Z"), ("2100-01-01T00:00Z", "2199-01-01T00:00Z")):
        state, _ = parse_view_state({"from": [start], "to": [end]}, BASE)
        said = outside_sentence(state, range_of(state, first, LAST_POLL), first, LAST_POLL)
        assert said is not None
        assert f"1 Jan {start[:4]} 00:00:00 UTC to" in said
        assert f"1 Jan {end[:4]} 00:00:00 UTC;" in said
        assert said.endswith("it is of 22 Nov 2026 12:00:00 UTC to 29 Nov 2026 12:00:00 UTC.")


def test_a_deployments_first_source_needs_no_name_and_the_demo_then_has_one() -> None:
    state, notes = parse_view_state({}, BASE, "url")
    assert (state.source, notes) == ("url", ())
    assert state.query(BASE) == {}
    demo = state.changed(source="demo")
    assert demo.query(BASE) == {"source": ["demo"]}
    assert demo.shared_query(BASE) == {"source": ["demo"]}
    assert parse_view_state(demo.query(BASE), BASE, "url")[0] == demo


def test_a_link_to_another_page_carries_what_all_pages_share() -> None:
    state = ViewState(source="public", find="8b", sort="wait", grouped=True, settings=AllowanceSettings(floor_tokens=256))
    assert state.shared_query(BASE, models=("a", "b")) == {
        "source": ["public"],
        "grouped": ["1"],
        "m": ["a", "b"],
        "floor": ["256"],
    }


@pytest.mark.parametrize(
    "typed", ["abc", "", "0", "15", "16385", "99999", "-5", "1e3", "80.5", "٨٠", "1,50", "1,6,0", ",512", "9" * 500]
)
def test_a_size_that_is_none_is_refused_with_the_rule(typed: str) -> None:
    with pytest.raises(InputError, match="must be a whole number from 16 to 16384"):
        size_from_text(typed)


def test_a_typed_size_may_have_its_thousands_separated() -> None:
    assert [size_from_text(text) for text in ("16", " 512", "1,500", "16,384")] == [16, 512, 1500, 16384]


def test_of_too_many_runs_the_first_four_are_compared_and_a_note_says_so() -> None:
    runs = [f"ceiling_tokens={size}" for size in (600, 700, 800, 900, 1000, 1100)]
    state, notes = parse_view_state({"run": runs}, BASE)
    assert state.runs == tuple(runs[:4])
    assert notes == ("The link's run is given for 6 settings; the first 4 are compared.",)
    assert parse_view_state({"run": [*runs[:4], runs[0]]}, BASE)[1] == ()


def test_another_traffic_than_the_demos_is_all_of_it_once_where_the_link_says_no_more() -> None:
    state, notes = parse_view_state({"traffic": ["week-rebuilt-2"]}, BASE)
    assert (state.hours, state.copies, notes) == ((), 1, ())
    assert state.query(BASE) == {"traffic": ["week-rebuilt-2"]}
    more, _ = parse_view_state({"traffic": ["week-rebuilt-2"], "hours": ["24-48"], "copies": ["60"]}, BASE)
    assert (more.hours, more.copies) == ((24.0, 48.0), 60)
    assert more.query(BASE) == {"traffic": ["week-rebuilt-2"], "hours": ["24-48"], "copies": ["60"]}
    demo, _ = parse_view_state({}, BASE)
    assert (demo.hours, demo.copies) == ((24.0, 48.0), 60)


def test_a_step_that_is_none_is_told_with_the_steps_that_there_are() -> None:
    state, notes = parse_view_state({"step": ["99"]}, AllowanceSettings())
    assert state.step == 0
    rule = "it must be a step of the workshop, 1 to 8, or 9 for its finish, or 0 for none"
    assert notes == (f"The link's step='99' is left out: {rule}.",)
