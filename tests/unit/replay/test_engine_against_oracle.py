"""The engine and the plain second implementation agree on every row and column of many random worlds."""

from collections.abc import Callable

import polars as pl
import pytest

from horde_policy.replay import engine, replay, room
from horde_policy.replay.kernel_types import (
    NEED_CLASSES,
    NEED_HEAP,
    NEED_IDLE_RUNS,
    NEED_NODES,
    NEED_REQUESTS,
    NEED_SLOTS,
    State,
)
from horde_policy.settings import ReplaySettings
from tests.oracle.conservation import check_conservation
from tests.oracle.replay_oracle import replay_oracle
from tests.oracle.worlds import crowded_world, random_world, varied_world

World = tuple[pl.DataFrame, pl.DataFrame, ReplaySettings]

WORLDS = 300
SOAK_WORLDS = 6000
CROWDED = 10


def check_world(world: World) -> pl.DataFrame:
    """Replay a world both ways, compare every row and check the laws; return the run."""
    traffic, fleet, settings = world
    run = replay(traffic, fleet, settings)
    want = replay_oracle(traffic.to_dicts(), fleet.to_dicts(), settings)
    got = run.to_dicts()
    assert len(got) == len(want)
    for row, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        assert mine == theirs, (row, {name: (mine[name], theirs[name]) for name in theirs if mine[name] != theirs[name]})
    check_conservation(traffic, fleet, settings, run)
    return run


def check_worlds(make: Callable[[int], World], seeds: range) -> dict[tuple[str, str], int]:
    """Check the worlds; return how often each outcome and status came up."""
    seen: dict[tuple[str, str], int] = {}
    for seed in seeds:
        try:
            run = check_world(make(seed))
        except AssertionError as error:
            error.add_note(f"{make.__name__}({seed})")
            raise
        for outcome, status, count in run.group_by("outcome", "status").len().iter_rows():
            seen[outcome, status] = seen.get((outcome, status), 0) + count
    return seen


@pytest.fixture
def cramped(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Let a run start with next to no room and stop after few events; return what it was short of, as it comes up."""
    short_of: set[int] = set()

    def more_room(state: State, stop: int) -> State:
        short_of.add(stop)
        return room.more_room(state, stop)

    monkeypatch.setattr(engine, "more_room", more_room)
    monkeypatch.setattr(room, "FIRST_WORDS", 1)
    monkeypatch.setattr(room, "FIRST_NODES", 41)
    monkeypatch.setattr(room, "FIRST_HEAP", 1)
    monkeypatch.setattr(room, "FIRST_REPEATS", 1)
    monkeypatch.setattr(room, "SPARE_CLASSES", 5)
    monkeypatch.setattr(room, "POOL", 1)
    monkeypatch.setattr(engine, "EVENTS_AT_A_TIME", 7)
    return short_of


def test_random_worlds_agree_row_by_row() -> None:
    seen = check_worlds(random_world, range(WORLDS))
    ends = {"completed", "timed_out", "expired"}
    wanted = {(outcome, end) for outcome in ("free", "funded", "downgraded") for end in ends} | {("refused", "refused")}
    assert wanted == set(seen), "the worlds are meant to show every outcome with every end"


def test_long_queues_agree_row_by_row() -> None:
    check_worlds(crowded_world, range(CROWDED))


def test_sizes_of_their_own_agree_row_by_row() -> None:
    check_worlds(varied_world, range(CROWDED))


def test_worlds_agree_when_room_runs_short(cramped: set[int]) -> None:
    check_worlds(random_world, range(10_000, 10_040))
    check_worlds(crowded_world, range(10_000, 10_004))
    check_worlds(varied_world, range(10_000, 10_004))
    assert cramped == {NEED_NODES, NEED_SLOTS, NEED_CLASSES, NEED_REQUESTS, NEED_IDLE_RUNS, NEED_HEAP}


@pytest.mark.soak
def test_thousands_of_random_worlds_agree(capsys: pytest.CaptureFixture[str]) -> None:
    seen = check_worlds(random_world, range(100_000, 100_000 + SOAK_WORLDS))
    large = check_worlds(crowded_world, range(100_000, 100_200)), check_worlds(varied_world, range(100_000, 100_200))
    rows = sum(seen.values()), sum(sum(counts.values()) for counts in large)
    with capsys.disabled():
        print(f"\n{SOAK_WORLDS:,} random worlds ({rows[0]:,} rows) and 400 large ones ({rows[1]:,} rows) agree")


@pytest.mark.soak
@pytest.mark.usefixtures("cramped")
def test_thousands_of_worlds_agree_when_room_runs_short() -> None:
    check_worlds(random_world, range(200_000, 202_000))
