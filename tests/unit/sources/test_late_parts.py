"""A part that hangs costs the others nothing: figures come with what is needed, the rest arrives at a later look."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from horde_policy.errors import SourceUnavailable
from horde_policy.frames.snapshot import Snapshot
from horde_policy.sources.horde import HordeClient
from horde_policy.sources.parts import PARTS, PartName
from tests.unit.sources.conftest import HASTE, NOW, Stage

PATHS = {name: f"/api{spec.path}" for name, spec in PARTS.items()}
LATE = tuple(name for name in PARTS if name not in ("workers", "models"))
PATIENT = replace(HASTE, read_s=60.0, whole_s=60.0)
MOST_LOOKS = 600
"""Each takes a twentieth of a second while a part hangs: what a test waits for comes well before, on any machine."""


@pytest.fixture
def hasty(stage: Stage) -> Iterator[HordeClient]:
    """A client that hardly waits for a late part, and never gives one up."""
    with stage.client(PATIENT, grace_s=0.05, models_wait_s=0.05) as opened:
        yield opened


def look_until(client: HordeClient, there: Callable[[Snapshot], bool]) -> Snapshot:
    """Look again, the clock standing still, until the snapshot is as wanted."""
    for _ in range(MOST_LOOKS):
        snapshot = client.fetch_snapshot()
        if there(snapshot):
            return snapshot
    raise AssertionError(f"after {MOST_LOOKS} looks there are only {sorted(snapshot.part_times)}")


def has_all_but(*names: PartName) -> Callable[[Snapshot], bool]:
    return lambda snapshot: set(snapshot.part_times) == set(PARTS) - set(names)


@pytest.mark.parametrize("name", LATE)
def test_a_part_that_hangs_is_a_note_and_comes_at_a_later_look(stage: Stage, hasty: HordeClient, name: PartName) -> None:
    stage.server.fail("hang", on=PATHS[name])
    snapshot = look_until(hasty, has_all_but(name))
    (problem,) = snapshot.problems
    assert (problem.code, problem.subject, problem.level) == ("missing_part", name, "note")
    assert problem.text == f"{name} has not come yet, asked for at 20:00:00 UTC: {PARTS[name].without}"
    assert stage.server.counts == dict.fromkeys(PATHS.values(), 1)
    stage.server.heal()
    stage.server.release()
    assert look_until(hasty, has_all_but()).problems == ()
    assert stage.server.counts == {**dict.fromkeys(PATHS.values(), 1), PATHS[name]: 2}


def test_everything_that_can_wait_may_hang_at_once(stage: Stage, hasty: HordeClient) -> None:
    for name in LATE:
        stage.server.fail("hang", on=PATHS[name])
    snapshot = look_until(hasty, has_all_but(*LATE))
    assert snapshot.workers.height == 13
    assert [problem.subject for problem in snapshot.problems] == list(LATE)
    assert stage.server.counts == dict.fromkeys(PATHS.values(), 1)


def test_the_last_good_answer_stands_for_one_that_is_late(stage: Stage, hasty: HordeClient) -> None:
    look_until(hasty, has_all_but())
    stage.server.fail("hang", on=PATHS["performance"])
    stage.clock.advance(60)
    later = NOW + timedelta(seconds=60)
    snapshot = look_until(hasty, lambda found: found.part_times["totals"] == later)
    assert snapshot.performance is not None
    assert snapshot.part_times["performance"] == snapshot.fetched_at == NOW
    assert [p for p in snapshot.problems if p.subject == "performance"] == []
    stage.clock.advance(61)
    gone = look_until(hasty, lambda found: found.part_times["workers"] > later)
    assert gone.performance is None
    assert any(p.text.startswith("performance has not come yet, asked for at 20:01:00 UTC") for p in gone.problems)


def test_the_list_of_models_that_is_late_is_a_problem(stage: Stage, hasty: HordeClient) -> None:
    stage.server.fail("hang", on=PATHS["models"])
    snapshot = look_until(hasty, has_all_but("models"))
    assert [(p.code, p.subject, p.level) for p in snapshot.problems] == [("missing_part", "models", "problem")]
    stage.server.heal()
    stage.server.release()
    look_until(hasty, has_all_but())


def test_a_late_list_of_models_is_named_while_the_last_stands(stage: Stage, hasty: HordeClient) -> None:
    look_until(hasty, has_all_but())
    stage.server.fail("hang", on=PATHS["models"])
    stage.clock.advance(10)
    snapshot = hasty.fetch_snapshot()
    assert snapshot.models is not None
    assert snapshot.part_times["models"] == NOW
    (problem,) = snapshot.problems
    assert (problem.code, problem.level) == ("part_failed", "problem")
    assert problem.text == "models has not come yet, asked for at 20:00:10 UTC; its answer of 20:00:00 UTC stands"


def test_what_is_on_its_way_is_not_asked_for_again(stage: Stage, hasty: HordeClient) -> None:
    stage.server.fail("hang", on=PATHS["heartbeat"])
    for _ in range(10):
        hasty.fetch_snapshot()
        stage.clock.advance(600)
    assert stage.server.counts[PATHS["heartbeat"]] == 1


def test_viewers_that_look_at_once_ask_once(stage: Stage, client: HordeClient) -> None:
    found: list[Snapshot] = []
    viewers = [threading.Thread(target=lambda: found.append(client.fetch_snapshot())) for _ in range(10)]
    for viewer in viewers:
        viewer.start()
    for viewer in viewers:
        viewer.join()
    assert [snapshot.problems for snapshot in found] == [()] * 10
    assert stage.server.counts == dict.fromkeys(PATHS.values(), 1)


def test_closing_ends_what_is_on_its_way_in_peace(stage: Stage) -> None:
    """A thread that ended by an error of its own would fail this test: unhandled ones are errors here."""
    with stage.client(replace(PATIENT, tries=8), grace_s=0.05, models_wait_s=0.05) as client:
        stage.server.fail("hang", on=PATHS["heartbeat"])
        look_until(client, has_all_but("heartbeat"))
    stage.server.release()
    with pytest.raises(SourceUnavailable):
        client.part("heartbeat")
    assert stage.server.counts[PATHS["heartbeat"]] == 1
