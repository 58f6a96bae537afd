from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from horde_policy.review.decompose import DIMENSIONS, WORDS
from horde_policy.review.finding import Target
from horde_policy.review.findings import review_week
from horde_policy.review.ranges import TimeRange
from horde_policy.settings import AllowanceSettings
from horde_policy.views.review_state import (
    PARAMETERS,
    ReviewState,
    parse_review_state,
    range_from_text,
    range_text,
    target_address,
)
from tests.unit.review.weeks import made_week

instants = st.none() | st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def words(dimension: str) -> st.SearchStrategy[tuple[str, ...]]:
    known = [str(word).lower() if isinstance(word, bool) else str(word) for word in WORDS[dimension]] + ["none"]
    return st.sets(st.sampled_from(known)).map(lambda kept: tuple(word for word in known if word in kept))


states = st.builds(
    ReviewState,
    data=st.sampled_from(["", "demo", "upload-1"]),
    start=instants,
    outcome=words("outcome"),
    chat=words("chat"),
    requested_size=words("requested_size"),
    rows=st.sampled_from(DIMENSIONS),
    columns=st.sampled_from(["", *WORDS]),
    colour=st.sampled_from(["", *WORDS]),
    floor=st.none() | st.integers(1, 16384),
    over_s=st.integers(0, 86_400).map(float),
    above=st.integers(0, 999).map(lambda n: n / 1000),
    ratio=st.sampled_from([1.0, 2.0, 1.5, float("inf")]),
)


@given(states)
def test_a_state_comes_back_from_its_address(state: ReviewState) -> None:
    back, notes = parse_review_state(state.query())
    assert back == state
    assert notes == ()


@given(instants, instants)
def test_a_range_is_typed_to_the_digit_that_the_address_holds(start: datetime | None, end: datetime | None) -> None:
    if start is not None and end is not None and start < end:
        span = TimeRange(start, end)
        assert range_from_text(range_text(span)) == span


@given(
    st.dictionaries(
        st.sampled_from([p.name for p in PARAMETERS]) | st.text(max_size=8), st.lists(st.text(max_size=12), max_size=3)
    )
)
def test_nothing_in_an_address_stops_a_page(query: dict[str, list[str]]) -> None:
    state, notes = parse_review_state(query)
    assert isinstance(state, ReviewState)
    assert all("\n" not in note for note in notes)


def test_words_and_ranges_are_told_as_the_review_takes_them() -> None:
    query = {"chat": ["true"], "outcome": ["refused", "none"], "since": ["2026-11-23"], "until": ["2026-11-24T00:00:00Z"]}
    state, notes = parse_review_state(query)
    assert notes == ()
    assert state.keep == {"outcome": ("refused", None), "chat": (True,)}
    assert state.span == TimeRange(datetime(2026, 11, 23, tzinfo=UTC), datetime(2026, 11, 24, tzinfo=UTC))


def test_the_settings_of_a_what_if_must_go_together() -> None:
    assert ReviewState().what_if(AllowanceSettings()) is None
    assert ReviewState(ceiling=100).what_if(AllowanceSettings()) is None
    changed = ReviewState(ceiling=100, floor=50).what_if(AllowanceSettings())
    assert changed is not None
    assert (changed.ceiling_tokens, changed.floor_tokens) == (100, 50)


def test_every_finding_leads_to_a_state_that_its_page_knows() -> None:
    week = review_week(made_week(hours=48), AllowanceSettings())
    for finding in week.findings:
        state, notes = parse_review_state(finding.target.state)
        assert notes == (), finding.code
        address = target_address(finding.target, base="http://localhost:8501", span=TimeRange(datetime(2026, 11, 23, tzinfo=UTC)))
        parts = urlsplit(address)
        assert parts.path in ("/week", "/decisions", "/waits")
        back, back_notes = parse_review_state(parse_qs(parts.query))
        assert back_notes == ()
        assert back == state.changed(start=datetime(2026, 11, 23, tzinfo=UTC))


def test_an_address_without_a_base_is_below_the_present_one() -> None:
    assert target_address(Target("waits", {})) == "/waits"
