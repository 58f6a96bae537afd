"""A recorded folder as a snapshot: the issue's rules for what is missing, broken, or older than the rest."""

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from horde_policy.errors import InputError
from horde_policy.frames.models import MODEL_DEMAND, MODELS
from horde_policy.frames.snapshot import Snapshot
from horde_policy.frames.workers import WORKERS
from horde_policy.sources.parts import PARTS, PartName, read_part
from horde_policy.sources.recorded import RecordedSource, load_recorded, recorded_folders, recorded_title

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "data" / "recorded"
ERRORS = ROOT / "tests" / "data" / "horde_errors"
FOLDERS = ("snapshot", "calm_snapshot", "later_nearly_everyone_gone", "joined_no_jobs_yet", "fresh_server", "production_2023-07")


def levels(snapshot: Snapshot) -> dict[str, str]:
    return {problem.subject: problem.level for problem in snapshot.problems}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED / "snapshot", tmp_path / "recorded"))


def change(path: Path, **changes: Any) -> None:
    envelope = json.loads(path.read_text(encoding="utf-8"))
    envelope.update(changes)
    path.write_text(json.dumps(envelope), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "workers", "models", "measured", "at"),
    [
        ("snapshot", 13, 10, 13, "2026-11-29T19:39:01.510+00:00"),
        ("calm_snapshot", 12, 10, 12, "2026-11-29T19:53:00.555+00:00"),
        ("later_nearly_everyone_gone", 1, 1, 1, "2026-11-29T19:50:54.564+00:00"),
        ("joined_no_jobs_yet", 12, 10, 0, "2026-11-29T19:29:43.955+00:00"),
        ("fresh_server", 0, 0, 0, "2026-11-29T19:29:13.025+00:00"),
        ("production_2023-07", 20, None, 20, "2023-07-09T00:00:00+00:00"),
    ],
)
def test_every_recorded_folder_is_a_snapshot(name: str, workers: int, models: int | None, measured: int, at: str) -> None:
    snapshot = load_recorded(RECORDED / name)
    assert snapshot.workers.height == workers
    assert (None if snapshot.models is None else snapshot.models.height) == models
    assert snapshot.workers["measured"].sum() == measured
    assert snapshot.fetched_at == datetime.fromisoformat(at)
    assert snapshot.source == recorded_title(RECORDED / name)
    assert " " in snapshot.source, "a title for people, and no folder's name"
    assert snapshot.source_kind == "recorded"
    WORKERS.checked(snapshot.workers)
    if snapshot.models is not None:
        MODELS.checked(snapshot.models)
    assert {problem.code for problem in snapshot.problems} <= {"missing_part"}


def test_the_figures_of_the_recorded_snapshot() -> None:
    snapshot = load_recorded(RECORDED / "snapshot")
    assert snapshot.models is not None
    assert snapshot.performance is not None
    assert snapshot.totals is not None
    assert snapshot.modes is not None
    assert snapshot.demand is not None
    cydonia = snapshot.models.row(by_predicate=pl.col("model") == "koboldcpp/Cydonia-24B-v4.1", named=True)
    assert cydonia == {
        "model": "koboldcpp/Cydonia-24B-v4.1",
        "threads": 3,
        "job_speed_tok_per_s": 28.9,
        "queued_tokens": 1132.0,
        "jobs": 5.0,
        "eta_s": 13.0,
    }
    shop = snapshot.workers.row(by_predicate=pl.col("name") == "in-the-shop", named=True)
    assert (shop["maintenance"], shop["models"], shop["max_length"]) == (True, ["koboldcpp/gemma-3-27b-it"], 512)
    zoes = snapshot.workers.filter(pl.col("owner") == "Zoë#4").sort("name")
    assert zoes.select("name", "speed_tok_per_s").rows() == [("Zoë's attic", 24.2), ("plainname", 8.7)]
    assert (snapshot.performance.queued_text_requests, snapshot.performance.queued_tokens) == (17.0, 4430.0)
    assert snapshot.totals.requests["hour"] == 222
    assert snapshot.modes.maintenance_mode is False
    assert snapshot.heartbeat is not None
    assert snapshot.heartbeat.version == "5.1.5"
    MODEL_DEMAND.checked(snapshot.demand)
    assert snapshot.problems == ()


def test_the_text_workers_of_a_list_of_all_kinds_are_the_same() -> None:
    body = json.loads((RECORDED / "snapshot" / "workers_no_type.json").read_text(encoding="utf-8"))["response"]["body"]
    at = datetime(2026, 11, 29, tzinfo=UTC)
    frame = read_part("workers", body, at, "a horde").value
    assert isinstance(frame, pl.DataFrame)
    assert frame.equals(load_recorded(RECORDED / "snapshot").workers)


@pytest.mark.parametrize("name", ["performance", "modes", "heartbeat", "totals", "demand"])
def test_a_missing_file_is_a_note(folder: Path, name: PartName) -> None:
    (folder / PARTS[name].file).unlink()
    snapshot = load_recorded(folder)
    assert getattr(snapshot, name) is None
    assert levels(snapshot) == {name: "note"}


def test_a_missing_models_file_is_a_problem(folder: Path) -> None:
    (folder / "models_text.json").unlink()
    snapshot = load_recorded(folder)
    assert snapshot.models is None
    assert levels(snapshot) == {"models": "problem"}
    assert "no model's queue is known" in snapshot.problems[0].text


def test_a_folder_without_workers_is_bad_input(folder: Path) -> None:
    (folder / "workers_text.json").unlink()
    with pytest.raises(InputError, match=r"holds no workers_text\.json"):
        load_recorded(folder)


def test_no_folder_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        load_recorded(tmp_path / "nowhere")


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, "<html></html>"], ids=["empty", "cut", "deep", "html"])
def test_a_broken_file_is_a_problem_and_broken_workers_are_bad_input(folder: Path, content: str) -> None:
    (folder / "models_text.json").write_text(content, encoding="utf-8")
    (folder / "modes.json").write_text(content, encoding="utf-8")
    snapshot = load_recorded(folder)
    assert (snapshot.models, snapshot.modes) == (None, None)
    assert levels(snapshot) == {"models": "problem", "modes": "problem"}
    assert all("file mod" in problem.text for problem in snapshot.problems)
    (folder / "workers_text.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"file workers_text\.json"):
        load_recorded(folder)


@pytest.mark.parametrize("status", [429, 500, 404, "200", None, True])
def test_a_recorded_refusal_is_no_answer(folder: Path, status: object) -> None:
    for name in ("models_text.json", "performance.json"):
        change(folder / name, response={"status": status, "body": []})
    snapshot = load_recorded(folder)
    assert (snapshot.models, snapshot.performance) == (None, None)
    assert levels(snapshot) == {"models": "problem", "performance": "problem"}
    assert f"status: {status!r} must be 200" in snapshot.problems[0].text
    change(folder / "workers_text.json", response={"status": status, "body": []})
    with pytest.raises(InputError, match="must be 200"):
        load_recorded(folder)


@pytest.mark.parametrize("path", sorted(ERRORS.glob("*.json")), ids=lambda path: path.stem)
def test_every_recorded_refusal_in_a_parts_place_is_named_and_survived(folder: Path, path: Path) -> None:
    """Whatever the server once answered instead: the workers still count."""
    shutil.copy(path, folder / "models_text.json")
    shutil.copy(path, folder / "heartbeat.json")
    snapshot = load_recorded(folder)
    answer = json.loads(path.read_text(encoding="utf-8"))["response"]
    assert snapshot.workers.height == 13
    if answer["status"] != 200 or not isinstance(answer.get("body"), list):
        assert snapshot.models is None
        assert levels(snapshot)["models"] == "problem"
    if answer["status"] != 200 or not isinstance(answer.get("body"), dict):
        assert snapshot.heartbeat is None
        assert levels(snapshot)["heartbeat"] == "problem"


def test_the_snapshot_is_as_old_as_its_oldest_part(folder: Path) -> None:
    change(folder / "performance.json", recorded_at="2026-11-29T20:00:00+01:00")
    snapshot = load_recorded(folder)
    assert snapshot.fetched_at == datetime(2026, 11, 29, 19, tzinfo=UTC)
    assert snapshot.fetched_at.utcoffset() == snapshot.part_times["performance"].utcoffset()
    assert snapshot.part_times["workers"].minute == 39
    assert list(snapshot.part_times) == list(PARTS)


def test_bare_bodies_are_read_with_the_time_of_their_files(folder: Path) -> None:
    whole = load_recorded(folder)
    for spec in PARTS.values():
        path = folder / spec.file
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))["response"]["body"]), encoding="utf-8")
        os.utime(path, (1_000_000_000, 1_000_000_000))
    bare = load_recorded(folder)
    assert bare.workers.equals(whole.workers)
    assert bare.performance == whole.performance
    assert bare.fetched_at == datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)
    assert {(problem.code, problem.level) for problem in bare.problems} == {("no_time", "note")}
    assert len(bare.problems) == len(PARTS)


def test_a_time_that_is_none_is_a_problem_and_the_files_time_stands(folder: Path) -> None:
    change(folder / "modes.json", recorded_at="yesterday")
    os.utime(folder / "modes.json", (1_000_000_000, 1_000_000_000))
    (problem,) = load_recorded(folder).problems
    assert "recorded_at 'yesterday', which is no instant" in problem.text
    assert problem.level == "problem"


def test_about_names_the_recording_and_says_what_is_made_up(folder: Path) -> None:
    (folder / "about.json").write_text('{"title": "Sunday", "synthetic": true}', encoding="utf-8")
    snapshot = load_recorded(folder)
    assert (snapshot.source, snapshot.synthetic) == ("Sunday", True)
    (folder / "about.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError, match=r"file about\.json"):
        load_recorded(folder)


def test_a_source_reads_its_folder_again(folder: Path) -> None:
    source = RecordedSource(folder)
    assert (source.name, source.kind) == ("recorded", "recorded")
    assert source.load().models is not None
    (folder / "models_text.json").unlink()
    assert source.load().models is None


def test_a_folder_of_recorded_folders_gives_each() -> None:
    assert [folder.name for folder in recorded_folders(RECORDED)] == sorted(FOLDERS)
    assert recorded_folders(RECORDED / "snapshot") == (RECORDED / "snapshot",)
    assert recorded_folders(RECORDED / "nowhere") == ()


def test_a_file_that_is_no_json_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "workers_text.json").write_text("[", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        load_recorded(tmp_path)
    assert str(refused.value).count("recorded folder") == 1
    assert "file workers_text.json" in str(refused.value)
    assert "workers is not JSON" in str(refused.value)


def test_the_oldest_part_of_a_folder_counts_whichever_it_is(tmp_path: Path) -> None:
    for name in ("workers_text", "stats_text_models"):
        shutil.copy(RECORDED / "snapshot" / f"{name}.json", tmp_path)
    file = tmp_path / "stats_text_models.json"
    file.write_text(file.read_text(encoding="utf-8").replace("2026-11-29T19:39:01", "2026-11-29T18:00:00"), encoding="utf-8")
    snapshot = load_recorded(tmp_path)
    assert snapshot.fetched_at == snapshot.part_times["demand"] < snapshot.part_times["workers"]
