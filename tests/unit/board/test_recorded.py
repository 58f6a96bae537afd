"""Every figure of every recorded folder against a calculation that shares nothing with the library (``by_hand``)."""

import itertools
from typing import Any

import pytest

from horde_policy.board.document import measure_fields
from horde_policy.board.measure import measure
from horde_policy.board.pool import Fleet
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.recorded import load_recorded
from tests.unit.board import by_hand

SETTINGS = AllowanceSettings()
SIZES = (1, 80, 160, 256, 300, 350, 512, 513, 768, 1024, 2048, 4096, 16384)
CONTEXTS = (1024, 2048, 8192)


def fleet_of(folder: str) -> Fleet:
    return Fleet.of(load_recorded(by_hand.RECORDED / folder), SETTINGS)


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for field, value in expected.items():
        exact = not isinstance(value, float | dict)
        assert found[field] == (value if exact else pytest.approx(value, rel=1e-13)), f"{field}: {found} {expected}"


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("folder", by_hand.FOLDERS)
def test_every_model_at_every_size_is_as_worked_out_by_hand(folder: str, context: int) -> None:
    fleet = fleet_of(folder)
    assert list(fleet.names) == by_hand.raw_folder(folder).names()
    for model in fleet.names:
        for size in SIZES:
            found = measure_fields(measure(fleet, (model,), size, context))
            assert found["model"] == model
            same(found, by_hand.entry(folder, (model,), size, context))


@pytest.mark.parametrize("folder", by_hand.FOLDERS)
def test_any_model_and_pairs_of_listed_models_are_as_worked_out_by_hand(folder: str) -> None:
    fleet = fleet_of(folder)
    listed = sorted(by_hand.raw_folder(folder).listed or {})
    for size in SIZES:
        same(measure_fields(measure(fleet, (), size)), by_hand.entry(folder, None, size))
    for pair in itertools.islice(itertools.combinations(listed, 2), 12):
        for size in (80, 512, 1024, 4096):
            found = measure_fields(measure(fleet, pair, size))
            assert found["model"] is None
            same(found, by_hand.entry(folder, pair, size))


def test_figures_that_stand_on_paper() -> None:
    fleet = fleet_of("snapshot")
    behemoth = measure(fleet, ("aphrodite/TheDrummer/Behemoth-123B-v1.2",), 512)
    # one worker of 16.7 tok/s; 1024 tokens queued by one job; 4430 − 4410 beyond the list
    assert behemoth.waits is not None
    assert behemoth.waits.named_s == 1024 / 16.7
    assert behemoth.waits.high_s == (1024 * 1 + 20 * 20) / 16.7
    # 61.317… s: 4096 − 3584 · 1.317… / 240 = 4076.3…; 85.269… s: 3718.6…
    assert (behemoth.allowance_tokens, behemoth.allowance_at_high_tokens, behemoth.allowance_at_low_tokens) == (4076, 3718, 4096)
    assert behemoth.largest_free_request_tokens == 4076
    # 4076 tokens at 16.7 tok/s need 244 s
    assert [note.code for note in behemoth.notes] == ["largest_free_cannot_finish"]


def test_unmeasured_workers_count_ten_tokens_per_second_and_say_so() -> None:
    found = measure(fleet_of("joined_no_jobs_yet"), ("koboldcpp/Cydonia-24B-v4.1",), 512)
    assert (found.speed_tok_per_s, found.unmeasured_workers, found.allowance_tokens) == (20.0, 2, 4096)
    text = next(note.text for note in found.notes if note.code == "unmeasured")
    assert text == "2 of 2 eligible workers are unmeasured and count 10 tok/s each."


def test_a_model_whose_only_worker_is_in_maintenance_has_its_row_and_the_floor() -> None:
    found = measure(fleet_of("snapshot"), ("koboldcpp/gemma-3-27b-it",), 80)
    assert (found.state, found.allowance_tokens, found.queued_tokens, found.waits) == ("no_worker", 512, None, None)
    assert found.notes[0].text == (
        "Its only worker takes no work of strangers (1 in maintenance): the allowance is the floor, 512 tokens."
    )
