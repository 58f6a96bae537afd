"""A trend is the board at every poll, whatever happened, at any size, context and settings."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horde_policy.board.measure import Measure, measure
from horde_policy.board.pool import Fleet
from horde_policy.errors import InputError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.fleet_span import load_span
from horde_policy.history.reading import snapshot_at
from horde_policy.history.store import KEYFRAME_EVERY_POLLS, HistoryStore
from horde_policy.history.trend import TREND_ROWS, size_class, trend, trends
from horde_policy.settings import AllowanceSettings
from tests.unit.history.churn import MODELS, START, changing
from tests.unit.policy import strategies as some

POLLS = KEYFRAME_EVERY_POLLS + 60
REQUESTS = [(model,) for model in MODELS] + [(), ("a", "e"), ("nobody's",), ("e", "nobody's", "c|d")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> HistoryStore:
    opened = HistoryStore(tmp_path_factory.mktemp("trend") / "history.sqlite", durable=False)
    for snapshot in changing(POLLS, seed=11):
        opened.write(snapshot)
    return opened


def as_row(measured: Measure) -> dict[str, object]:
    waits = measured.waits
    return {
        "state": measured.state,
        "allowance_tokens": measured.allowance_tokens,
        "allowance_at_high_tokens": measured.allowance_at_high_tokens,
        "wait_named_s": None if waits is None else waits.named_s,
        "wait_high_s": None if waits is None else waits.high_s,
        "queued_tokens": measured.queued_tokens,
        "speed_tok_per_s": measured.speed_tok_per_s,
        "eligible_workers": measured.eligible_workers,
        "open_workers": measured.open_workers,
        "largest_free_request_tokens": measured.largest_free_request_tokens,
    }


Looks = Mapping[datetime, Snapshot]


@pytest.fixture(scope="module")
def looks(store: HistoryStore) -> Looks:
    """What the snapshot command says for the instant of each poll."""
    instants = [START + timedelta(seconds=30 * poll) for poll in range(POLLS)]
    return {at: snapshot_at(store, at) for at in instants}


def boards(
    looks: Looks, found: pl.DataFrame, models: tuple[str, ...], in_force: AllowanceSettings, size: int = 80, context: int = 2048
) -> list[dict[str, object]]:
    return [{"at": at, **as_row(measure(Fleet.of(looks[at], in_force), models, size, context))} for at in found["at"].to_list()]


@pytest.mark.parametrize("request_models", REQUESTS, ids="+".join)
def test_a_trend_is_the_board_at_every_poll(store: HistoryStore, looks: Looks, request_models: tuple[str, ...]) -> None:
    span = load_span(store, START, START + timedelta(days=1), with_horde_wide=True)
    found = trend(span, request_models, AllowanceSettings())
    assert found.height == POLLS
    assert found.rows(named=True) == boards(looks, found, request_models, AllowanceSettings())


def test_the_made_up_horde_shows_every_state(store: HistoryStore) -> None:
    """What the comparison above is worth: it met every state, and every kind of not known."""
    span = load_span(store, START, START + timedelta(days=1), with_horde_wide=True)
    together = pl.concat(trend(span, models, AllowanceSettings(), max_length=512) for models in REQUESTS)
    assert set(together["state"]) == {"no_worker", "too_large", "unknown", "full", "falling", "floor"}
    for column in ("queued_tokens", "wait_high_s", "largest_free_request_tokens"):
        assert 0 < together[column].null_count() < together.height


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    in_force=some.settings(),
    request_models=st.sampled_from(REQUESTS),
    size=st.sampled_from([1, 80, 512, 1025, 4096, 16_384]),
    context=st.sampled_from([1, 2048, 8193]),
    first=st.integers(0, POLLS - 1),
    length=st.integers(0, 30),
)
def test_any_request_over_any_range_is_the_board(
    store: HistoryStore,
    looks: Looks,
    in_force: AllowanceSettings,
    request_models: tuple[str, ...],
    size: int,
    context: int,
    first: int,
    length: int,
) -> None:
    start = START + timedelta(seconds=30 * first + 11)
    span = load_span(store, start, start + timedelta(seconds=30 * length), with_horde_wide=True)
    found = trend(span, request_models, in_force, max_length=size, context_tokens=context)
    assert found.height == min(length + 1, POLLS - first)
    assert found.rows(named=True) == boards(looks, found, request_models, in_force, size, context)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    request_models=st.sampled_from(REQUESTS),
    size=st.integers(1, 16_384),
    context=st.sampled_from([1, 2048, 8193]),
    first=st.data(),
)
def test_what_a_size_meets_is_what_the_largest_of_its_class_meets(
    store: HistoryStore, request_models: tuple[str, ...], size: int, context: int, first: st.DataObject
) -> None:
    start = START + timedelta(seconds=30 * first.draw(st.integers(0, POLLS - 1)))
    span = load_span(store, start, start + timedelta(minutes=15), with_horde_wide=True)
    largest = size_class(span, size, context)
    assert largest >= size
    found = trend(span, request_models, AllowanceSettings(), max_length=size, context_tokens=context)
    assert found.equals(trend(span, request_models, AllowanceSettings(), max_length=largest, context_tokens=context))


def test_the_classes_of_sizes_are_as_few_as_the_declared_sizes(store: HistoryStore) -> None:
    """One size more than a class's largest is met by fewer workers, so it has another class."""
    span = load_span(store, START, START + timedelta(days=1), with_horde_wide=True)
    declared = sorted({int(size) for size in span.profiles.sizes(2048)} - {0})
    assert len(declared) > 2
    assert {size_class(span, size, 2048) for size in range(1, 16_385)} == {*declared, 16_384}
    with pytest.raises(InputError, match="whole number"):
        size_class(span, 0, 2048)


def test_a_range_read_for_one_model_gives_the_same_without_the_worst_wait(store: HistoryStore) -> None:
    whole = load_span(store, START, START + timedelta(days=1))
    one = load_span(store, START, START + timedelta(days=1), models=("a",))
    assert trend(one, ("a",), AllowanceSettings()).equals(trend(whole, ("a",), AllowanceSettings()))
    assert trend(one, ("a",), AllowanceSettings())["wait_high_s"].null_count() == POLLS
    with pytest.raises(InputError, match="was not read"):
        trend(one, ("e",), AllowanceSettings())


def test_a_range_read_for_a_model_that_nobody_ever_had_says_that_nobody_serves_it(store: HistoryStore) -> None:
    span = load_span(store, START, START + timedelta(minutes=10), models=("nobody's",))
    assert set(trend(span, ("nobody's",), AllowanceSettings())["state"]) == {"no_worker"}


def test_a_range_before_the_first_poll_is_empty(store: HistoryStore) -> None:
    span = load_span(store, START - timedelta(days=2), START - timedelta(days=1), with_horde_wide=True)
    assert trend(span, ("a",), AllowanceSettings()).equals(TREND_ROWS.empty())
    assert span.names == ()
    with pytest.raises(InputError, match="must not lie before its start"):
        load_span(store, START, START - timedelta(days=1))


def test_the_names_of_a_range_are_those_of_its_boards(store: HistoryStore, looks: Looks) -> None:
    span = load_span(store, START, START + timedelta(days=1))
    seen = {name for look in looks.values() for name in Fleet.of(look, AllowanceSettings()).names}
    assert span.names == tuple(sorted(seen))
    assert sorted(trends(span, span.names, AllowanceSettings())) == sorted(seen)
