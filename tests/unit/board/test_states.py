"""Every case that can meet, in the order of design §1, with the figures that go with it."""

from typing import Any

import pytest

from horde_policy.board.measure import Measure, measure
from horde_policy.board.pool import Fleet
from horde_policy.board.states import STATES, state_of
from horde_policy.settings import AllowanceSettings
from tests.unit.board.made import listed, snapshot, worker

SETTINGS = AllowanceSettings()
ONE = [worker("w")]
IN_MAINTENANCE = [worker("w", maintenance=True)]
FLAGGED = [worker("w", flagged=True)]
OFFLINE = [worker("w", online=False)]
SMALL = [worker("w", max_length=200)]
SHORT = [worker("w", max_context_length=1024)]
NO_LIST = None
NOT_NAMED = [listed("other", 5000.0, 3.0)]
NO_FIGURE = [listed("m", None, None)]


def measured(workers: list[dict[str, Any]], models: list[dict[str, Any]] | None, horde_wide: float | None = 0.0) -> Measure:
    return measure(Fleet.of(snapshot(workers, models, horde_wide=horde_wide), SETTINGS), ("m",), 512)


CASES: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]] | None, float | None, dict[str, Any]]] = [
    # who serves, what the list says, the horde-wide total → state, eligible, queue, wait, allowance, range, largest free
    ("nobody, not listed", [], NOT_NAMED, 0.0, {"state": "no_worker", "queue": None, "free": None}),
    ("nobody, listed idle", [], [listed("m")], 0.0, {"state": "no_worker", "queue": 0.0, "free": None}),
    ("nobody, queue listed", [], [listed("m", 900.0)], 0.0, {"state": "no_worker", "queue": 900.0, "free": None}),
    ("nobody, no list", [], NO_LIST, None, {"state": "no_worker", "queue": None, "free": None}),
    ("maintenance, not listed", IN_MAINTENANCE, NOT_NAMED, 0.0, {"state": "no_worker", "queue": None, "free": None}),
    ("maintenance, listed", IN_MAINTENANCE, [listed("m", 9.0)], 0.0, {"state": "no_worker", "queue": 9.0, "free": None}),
    ("flagged owner", FLAGGED, [listed("m")], 0.0, {"state": "no_worker", "queue": 0.0, "free": None}),
    ("offline", OFFLINE, [listed("m")], 0.0, {"state": "no_worker", "queue": 0.0, "free": None}),
    ("too small, listed", SMALL, [listed("m", 100.0)], 0.0, {"state": "too_large", "queue": 100.0, "free": 200}),
    ("too small, not listed", SMALL, NOT_NAMED, 0.0, {"state": "too_large", "queue": None, "free": None}),
    ("too small, no figure", SMALL, NO_FIGURE, 0.0, {"state": "too_large", "queue": None, "free": None}),
    ("too small, no list", SMALL, NO_LIST, None, {"state": "too_large", "queue": None, "free": None}),
    ("context too short", SHORT, [listed("m", 100.0)], 0.0, {"state": "too_large", "queue": 100.0, "free": None}),
    ("serves, not listed", ONE, NOT_NAMED, 0.0, {"state": "unknown", "queue": None, "free": None}),
    ("serves, no figure", ONE, NO_FIGURE, 0.0, {"state": "unknown", "queue": None, "free": None}),
    ("serves, no list", ONE, NO_LIST, 0.0, {"state": "unknown", "queue": None, "free": None}),
    ("idle", ONE, [listed("m")], 0.0, {"state": "full", "queue": 0.0, "free": 512, "wait": (0, 0, 0), "tokens": (4096, 4096)}),
    (
        "at the full mark",
        ONE,
        [listed("m", 600.0, 1.0)],
        600.0,
        {"state": "full", "queue": 600.0, "free": 512, "wait": (0, 60, 60), "tokens": (4096, 4096)},
    ),
    (
        "just past it",
        ONE,
        [listed("m", 601.0, 1.0)],
        601.0,
        # 60.1 s: 4096 − 3584 · 0.1 / 240 = 4094.50…
        {"state": "falling", "queue": 601.0, "free": 512, "wait": (0, 60.1, 60.1), "tokens": (4094, 4094)},
    ),
    (
        "halfway, jobs hidden",
        ONE,
        [listed("m", 1800.0, 2.0)],
        1810.0,
        # high: (1800 · 2 + 20 · 10) / 10
        {"state": "falling", "queue": 1800.0, "free": 512, "wait": (0, 180, 380), "tokens": (2304, 512)},
    ),
    (
        "at the floor mark",
        ONE,
        [listed("m", 3000.0, 1.0)],
        0.0,
        {"state": "floor", "queue": 3000.0, "free": 512, "wait": (0, 300, 300), "tokens": (512, 512)},
    ),
    (
        "no totals",
        ONE,
        [listed("m", 1800.0, 2.0)],
        None,
        {"state": "falling", "queue": 1800.0, "free": 512, "wait": (0, 180, None), "tokens": (2304, None)},
    ),
]


@pytest.mark.parametrize(("workers", "models", "horde_wide", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_the_table_of_states(
    workers: list[dict[str, Any]],
    models: list[dict[str, Any]] | None,
    horde_wide: float | None,
    expected: dict[str, Any],
) -> None:
    found = measured(workers, models, horde_wide)
    assert found.state == expected["state"]
    assert found.queued_tokens == expected["queue"]
    assert found.largest_free_request_tokens == expected["free"]
    ends = (found.allowance_at_high_tokens, found.allowance_at_low_tokens)
    if expected["state"] in ("no_worker", "too_large"):
        assert (found.eligible_workers, found.speed_tok_per_s, found.waits) == (0, 0.0, None)
        assert (found.allowance_tokens, ends) == (512, (512, 512))
    elif expected["state"] == "unknown":
        assert (found.eligible_workers, found.speed_tok_per_s, found.waits) == (1, 10.0, None)
        assert (found.allowance_tokens, ends) == (None, (None, None))
    else:
        assert found.eligible_workers == 1
        assert found.waits is not None
        assert (found.waits.low_s, found.waits.named_s, found.waits.high_s) == expected["wait"]
        named, at_high = expected["tokens"]
        assert (found.allowance_tokens, ends) == (named, (at_high, 4096))


def test_the_table_holds_every_state() -> None:
    assert {case[4]["state"] for case in CASES} == set(STATES)


@pytest.mark.parametrize(
    ("ceiling", "floor", "allowance", "state"),
    [
        (4096, 512, 4096, "full"),
        (4096, 512, 4095, "falling"),
        (4096, 512, 513, "falling"),
        (4096, 512, 512, "floor"),
        (512, 512, 512, "full"),
    ],
)
def test_full_falling_and_floor_are_read_from_the_allowance(ceiling: int, floor: int, allowance: int, state: str) -> None:
    settings = AllowanceSettings(ceiling_tokens=ceiling, floor_tokens=floor)
    assert state_of(open_workers=1, eligible_workers=1, allowance_tokens=allowance, settings=settings) == state


def test_a_worker_that_reports_no_size_is_open_but_takes_nothing() -> None:
    found = measured([worker("w", max_length=None)], [listed("m")])
    assert (found.state, found.open_workers, found.eligible_workers) == ("too_large", 1, 0)
    assert "sizes_not_reported" in {note.code for note in found.notes}


def test_a_worker_that_does_not_report_its_state_is_counted_and_noted() -> None:
    found = measured([worker("w", online=None)], [listed("m")])
    assert (found.state, found.eligible_workers) == ("full", 1)
    assert [note.code for note in found.notes] == ["state_not_reported"]
