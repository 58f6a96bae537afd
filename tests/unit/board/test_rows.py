import polars as pl
import pytest

from horde_policy.board.document import allowance_document, snapshot_document
from horde_policy.board.measure import measure
from horde_policy.board.rows import BOARD_ROWS, STRIP_SIZES_TOKENS, Board, Row, make_board
from horde_policy.errors import InputError, Problem
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.recorded import load_recorded
from tests.unit.board import by_hand
from tests.unit.board.made import listed, snapshot, worker

SETTINGS = AllowanceSettings()
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "![x](http://evil.example/x.png)",
    "=cmd|' /C calc'!A0",
    "\u202egpj.exe",
    "a,b",
    "x" * 200,
]


def board_of(folder: str, max_length: int = 80) -> Board:
    return make_board(load_recorded(by_hand.RECORDED / folder), SETTINGS, max_length=max_length)


def codes(row: Row) -> list[str]:
    return [note.code for note in row.notes]


@pytest.mark.parametrize("folder", by_hand.FOLDERS)
def test_every_listed_or_served_model_has_one_row_sorted_by_name(folder: str) -> None:
    assert [row.model for row in board_of(folder).rows] == by_hand.raw_folder(folder).names()


@pytest.mark.parametrize("folder", by_hand.FOLDERS)
def test_the_strip_is_the_measure_at_each_of_its_sizes(folder: str) -> None:
    board = board_of(folder, max_length=512)
    for row in (*board.rows, board.any_model):
        assert [cell.max_length for cell in row.strip] == list(STRIP_SIZES_TOKENS)
        for cell in row.strip:
            expected = by_hand.entry(folder, row.measure.models or None, cell.max_length)
            assert (cell.state, cell.allowance_tokens) == (expected["state"], expected["allowance_tokens"])


def test_a_row_carries_workers_threads_jobs_and_the_days_requests() -> None:
    board = board_of("snapshot")
    cydonia = board.by_model["koboldcpp/Cydonia-24B-v4.1"]
    assert (cydonia.serving_workers, cydonia.maintenance_workers, cydonia.listed_threads, cydonia.listed_jobs) == (2, 0, 3, 5.0)
    assert (cydonia.group, cydonia.requests_day) == ("Cydonia-24B-v4.1", 35)
    gemma = board.by_model["koboldcpp/gemma-3-27b-it"]
    assert (gemma.serving_workers, gemma.maintenance_workers, gemma.maintenance_share) == (1, 1, 1.0)
    assert (gemma.listed_threads, gemma.listed_jobs, gemma.requests_day) == (None, None, 11)


def test_any_model_asks_all_workers_and_all_that_is_listed() -> None:
    row = board_of("snapshot").any_model
    assert (row.model, row.group, row.serving_workers, row.maintenance_workers) == (None, None, 13, 1)
    assert row.measure.queued_tokens == 1132 + 400 + 240 + 1024 + 320 + 1024 + 120 + 150
    assert (row.listed_threads, row.listed_jobs, row.requests_day) == (24, 15.0, 222)


def test_the_pulse_sums_the_board() -> None:
    pulse = board_of("snapshot", max_length=512).pulse
    assert pulse.states == {"no_worker": 1, "too_large": 5, "unknown": 0, "full": 4, "falling": 1, "floor": 0}
    assert (pulse.models, pulse.listed_workers, pulse.open_workers, pulse.closed_workers) == (11, 13, 12, {"maintenance": 1})
    assert pulse.speed_tok_per_s == pytest.approx(297.9)
    assert (pulse.listed_tokens, pulse.horde_wide_tokens, pulse.past_minute_tokens) == (4410.0, 4430.0, 0.0)
    assert (pulse.maintenance_mode, pulse.invite_only_mode) == (False, False)
    assert pulse.drain_s is None  # nothing was delivered in the last minute
    assert board_of("calm_snapshot").pulse.drain_s == 0.0


def test_what_is_not_reported_stays_null_in_the_pulse() -> None:
    pulse = board_of("production_2023-07").pulse
    assert (pulse.listed_tokens, pulse.horde_wide_tokens, pulse.maintenance_mode, pulse.requests_day) == (None, None, None, None)
    assert pulse.drain_s is None


def test_names_of_one_model_behind_backend_prefixes_make_one_group() -> None:
    rows = [
        worker("w1", "koboldcpp/Foo-8B"),
        worker("w2", "aphrodite/Org/Foo-8B", max_length=1024),
        worker("w3", "koboldcpp/Bar"),
    ]
    queues = [listed("koboldcpp/Foo-8B", 300.0, 1.0), listed("aphrodite/Org/Foo-8B", 500.0, 2.0), listed("koboldcpp/Bar")]
    board = make_board(snapshot(rows, queues, demand={"koboldcpp/Foo-8B": 3}), SETTINGS)
    assert [(row.group, row.model) for row in board.groups] == [("Bar", "koboldcpp/Bar"), ("Foo-8B", "Foo-8B")]
    foo = board.groups[1]
    assert foo.measure.models == ("aphrodite/Org/Foo-8B", "koboldcpp/Foo-8B")
    assert (foo.measure.eligible_workers, foo.measure.queued_tokens, foo.listed_jobs, foo.requests_day) == (2, 800.0, 3.0, 3)
    assert foo.measure.largest_free_request_tokens == 1024


def test_workers_that_serve_another_model_too_are_noted_with_it() -> None:
    rows = [worker("w1", ["m", "n"]), worker("w2", "m"), worker("w3", ["m", "unlisted"])]
    board = make_board(snapshot(rows, [listed("m"), listed("n", 100.0, 1.0)]), SETTINGS)
    texts = [note.text for note in board.by_model["m"].notes]
    assert texts == [
        "2 of 3 eligible workers also serve n, unlisted: what waits there can lengthen this wait, and counts at worst only.",
        "The list does not name unlisted: its queue counts only as part of the horde-wide total.",
    ]
    assert codes(board.any_model) == []


def test_a_size_that_no_worker_can_finish_in_150_s_is_noted() -> None:
    # 80 tok/s make 12000 tokens in 150 s, 10 tok/s make 1500
    rows = [worker("w1", max_length=16384, max_context_length=16384, speed_tok_per_s=80.0), worker("w2", max_length=1501)]
    fine = make_board(snapshot(rows, [listed("m")]), SETTINGS, max_length=1500).by_model["m"]
    one = make_board(snapshot(rows, [listed("m")]), SETTINGS, max_length=1501).by_model["m"]
    assert codes(fine) == []
    assert [n.text for n in one.notes] == ["1 of 2 eligible workers could not finish 1,501 tokens within the 150 s of a job."]


def test_a_missing_total_and_a_raised_context_are_noted() -> None:
    rows = [worker("w1", max_length=4096)]
    row = make_board(snapshot(rows, [listed("m")], horde_wide=None), SETTINGS, max_length=4096).by_model["m"]
    assert codes(row) == ["context_raised", "cannot_finish", "largest_free_cannot_finish", "no_horde_wide_total"]


def test_of_several_models_one_that_nobody_serves_is_named() -> None:
    fleet = make_board(snapshot([worker("w", "a")], [listed("a", 10.0)]), SETTINGS).fleet
    found = measure(fleet, ("a", "gone"), 80)
    assert found.queued_tokens == 10.0
    assert [note.text for note in found.notes] == [
        "Nobody serves gone now and the list does not name it: it adds nothing to the queue."
    ]


def test_the_frame_has_its_schema_and_the_rows_figures() -> None:
    board = board_of("snapshot", max_length=512)
    frame = board.frame()
    assert frame.schema == pl.Schema(BOARD_ROWS.polars_schema())
    assert frame["model"].to_list() == [row.model for row in board.rows]
    assert frame["allowance_tokens"].to_list() == [row.measure.allowance_tokens for row in board.rows]
    behemoth = frame.row(0, named=True)
    assert behemoth["wait_named_s"] == 1024 / 16.7
    assert behemoth["strip_allowance_tokens"] == [4076] * 5
    assert board.frame([board.any_model])["model"].to_list() == [None]


def test_an_empty_horde_has_no_row_and_a_frame_of_no_rows() -> None:
    board = board_of("fresh_server")
    assert board.rows == ()
    assert board.frame().height == 0
    assert board.any_model.measure.state == "no_worker"
    assert board.any_model.measure.allowance_tokens == 512
    assert codes(board.any_model) == ["no_worker"]


def test_hostile_names_pass_unchanged_into_rows_and_frame() -> None:
    rows = [worker(f"w{place}", name) for place, name in enumerate(HOSTILE)]
    board = make_board(snapshot(rows, [listed(name) for name in HOSTILE]), SETTINGS)
    assert sorted(board.frame()["model"].to_list()) == sorted(HOSTILE)


def test_the_document_has_the_fields_of_the_issue_in_their_order() -> None:
    problem = Problem("part_missing", "modes", "modes is not in the folder", "note")
    made = snapshot([worker("w", "a")], [listed("a", 10.0, 1.0)], problems=(problem,), synthetic=True)
    document = snapshot_document(make_board(made, SETTINGS))
    assert list(document) == ["fetched_at", "source", "problems", "models"]
    assert document["fetched_at"] == "2026-11-29T12:00:00Z"
    assert document["problems"] == [
        {"code": "part_missing", "subject": "modes", "text": "modes is not in the folder", "level": "note"},
        {"code": "synthetic", "subject": "made up", "text": "the data of this source are made up", "level": "note"},
    ]
    assert document["models"] == [
        {
            "model": "a",
            "state": "full",
            "max_length": 80,
            "eligible_workers": 1,
            "speed_tok_per_s": 10.0,
            "queued_tokens": 10.0,
            "estimated_wait_s": {"low": 0.0, "named": 1.0, "high": 1.0},
            "allowance_tokens": 4096,
            "allowance_range_tokens": [4096, 4096],
            "largest_free_request_tokens": 512,
            "notes": [],
        }
    ]


def test_the_allowance_document_has_an_entry_a_size_in_the_order_asked() -> None:
    made = snapshot([worker("w", "a")], [listed("a", 10.0, 1.0)])
    fleet = make_board(made, SETTINGS).fleet
    document = allowance_document(made, ["a"], [measure(fleet, ("a",), size) for size in (513, 512)])
    assert list(document) == ["fetched_at", "source", "problems", "models", "sizes"]
    assert document["models"] == ["a"]
    sizes = document["sizes"]
    assert isinstance(sizes, list)
    assert [(entry["max_length"], entry["state"]) for entry in sizes] == [(513, "too_large"), (512, "full")]


@pytest.mark.parametrize("size", [0, 16385])
def test_a_strip_size_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(InputError, match="from 1 to 16384"):
        make_board(snapshot([], []), SETTINGS, strip_sizes=(size,))
