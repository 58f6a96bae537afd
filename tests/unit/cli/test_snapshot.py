import dataclasses
import json
import shutil
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from horde_policy.cli.main import EXIT_BAD_INPUT, EXIT_UNREACHABLE, main
from horde_policy.history.store import HistoryStore
from horde_policy.sources.recorded import load_recorded, recorded_title
from tests.replaying_server import ReplayingServer
from tests.unit.board import by_hand

FIELDS = [
    "model",
    "state",
    "max_length",
    "eligible_workers",
    "speed_tok_per_s",
    "queued_tokens",
    "estimated_wait_s",
    "allowance_tokens",
    "allowance_range_tokens",
    "largest_free_request_tokens",
    "notes",
]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HORDE_URL", "HORDE_TEXT_FREE_OUTPUT_FLOOR", "HORDE_TEXT_FREE_OUTPUT_CEILING"):
        monkeypatch.delenv(name, raising=False)


def recorded(folder: str) -> str:
    return str(by_hand.RECORDED / folder)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("folder", by_hand.FOLDERS)
def test_each_recorded_folder_is_as_worked_out_by_hand(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "snapshot", "--recorded", recorded(folder), "--max-length", "512")
    assert list(found) == ["fetched_at", "source", "problems", "models"]
    assert [entry["model"] for entry in found["models"]] == by_hand.raw_folder(folder).names()
    for entry in found["models"]:
        assert list(entry) == FIELDS
        for field, value in by_hand.entry(folder, (entry["model"],), 512).items():
            exact = not isinstance(value, float | dict)
            assert entry[field] == (value if exact else pytest.approx(value, rel=1e-13)), field


@pytest.mark.parametrize(
    ("folder", "fetched_at", "missing"),
    [
        ("snapshot", "2026-11-29T19:39:01.510Z", []),
        ("calm_snapshot", "2026-11-29T19:53:00.555Z", []),
        ("later_nearly_everyone_gone", "2026-11-29T19:50:54.564Z", [("modes", "note"), ("heartbeat", "note")]),
        (
            "joined_no_jobs_yet",
            "2026-11-29T19:29:43.955Z",
            [("modes", "note"), ("heartbeat", "note"), ("totals", "note"), ("demand", "note")],
        ),
        ("fresh_server", "2026-11-29T19:29:13.025Z", []),
        (
            "production_2023-07",
            "2023-07-09T00:00:00Z",
            [
                ("models", "problem"),
                ("performance", "note"),
                ("modes", "note"),
                ("heartbeat", "note"),
                ("totals", "note"),
                ("demand", "note"),
            ],
        ),
    ],
)
def test_the_age_is_that_of_the_oldest_part_and_what_is_missing_is_said(
    folder: str, fetched_at: str, missing: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(capsys, "snapshot", "--recorded", recorded(folder))
    assert (found["fetched_at"], found["source"]) == (fetched_at, recorded_title(by_hand.RECORDED / folder))
    made_up = [] if folder == "production_2023-07" else [(found["source"], "note")]
    assert [(p["subject"], p["level"]) for p in found["problems"]] == missing + made_up
    assert all(list(p) == ["code", "subject", "text", "level"] for p in found["problems"])


def test_without_totals_the_high_end_is_null_and_without_a_list_every_queue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "partial"
    shutil.copytree(recorded("snapshot"), folder)
    (folder / "performance.json").unlink()
    entry = answer(capsys, "snapshot", "--recorded", str(folder))["models"][0]
    assert entry["estimated_wait_s"] == {"low": 0.0, "named": 1024 / 16.7, "high": None}
    assert (entry["allowance_tokens"], entry["allowance_range_tokens"]) == (4076, [None, 4096])
    (folder / "models_text.json").unlink()
    entry = answer(capsys, "snapshot", "--recorded", str(folder))["models"][0]
    assert (entry["state"], entry["estimated_wait_s"], entry["queued_tokens"]) == ("unknown", None, None)
    assert (entry["allowance_tokens"], entry["largest_free_request_tokens"]) == (None, None)


def test_the_context_asked_is_2048_unless_told(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("snapshot", "--recorded", recorded("production_2023-07"))
    usual = {e["model"]: e["state"] for e in answer(capsys, *arguments)["models"]}
    small = {e["model"]: e["state"] for e in answer(capsys, *arguments, "--max-context-length", "1024")["models"]}
    assert usual["PygmalionAI/pygmalion-1.3b"] == "too_large"
    assert small["PygmalionAI/pygmalion-1.3b"] == "unknown"


def test_settings_come_from_the_environment_a_file_and_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["snapshot", "--recorded", recorded("later_nearly_everyone_gone")]

    def ceiling(*more: str) -> object:
        return answer(capsys, *arguments, *more)["models"][0]["allowance_tokens"]

    assert ceiling() == 4096
    monkeypatch.setenv("HORDE_TEXT_FREE_OUTPUT_CEILING", "3000")
    assert ceiling() == 3000
    file = tmp_path / "settings.toml"
    file.write_text('ceiling_tokens = 2000\nrule = "old"\n', encoding="utf-8")
    assert ceiling("--settings", str(file)) == 2000
    assert ceiling("--settings", str(file), "--set", "ceiling_tokens=1000") == 1000


def test_the_table_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "--recorded", recorded("snapshot"), "--max-length", "512"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0] == "Busy test server (made up), 29 Nov 2026 19:39:01 UTC; asked: 512 output tokens, context 2,048"
    behemoth = next(line for line in lines if line.startswith("aphrodite/TheDrummer"))
    assert behemoth.split() == [
        "aphrodite/TheDrummer/Behemoth-123B-v1.2",
        *("falling", "4,076", "3,718", "to", "4,096", "61", "s", "85", "s", "16.7", "1,024", "1", "4,076"),
    ]
    assert next(line for line in lines if line.startswith("any model")).split()[:3] == ["any", "model", "full"]


def test_the_table_ends_with_what_was_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "--recorded", recorded("later_nearly_everyone_gone")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[:2] for line in lines[-2:]] == [["note:", "modes"], ["note:", "heartbeat"]]


def hostile_folder(folder: Path) -> list[str]:
    names = ["[red]bold[/red]", "a\x1b[2J\x1b]0;t\x07b", "rtl\u202egpj", ":boom:", "\x9b31mc1", "line\nbreak", "x" * 200, "=1+1"]
    envelope = {"recorded_at": "2026-11-29T12:00:00Z", "response": {"status": 200}}
    worker = json.loads((by_hand.RECORDED / "snapshot" / "workers_text.json").read_text(encoding="utf-8"))["response"]["body"][0]
    model = {"performance": 1.0, "queued": 0.0, "jobs": 0.0, "eta": 0, "type": "text", "count": 1}
    bodies = {
        "workers_text.json": [{**worker, "name": "\x1b[31m", "models": names}],
        "models_text.json": [{**model, "name": name} for name in names],
    }
    folder.mkdir()
    for file, body in bodies.items():
        content = {**envelope, "response": {"status": 200, "body": body}}
        (folder / file).write_text(json.dumps(content), encoding="utf-8")
    return names


def test_hostile_names_reach_neither_the_terminal_nor_the_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile_folder(tmp_path / "hostile")
    assert main(["snapshot", "--recorded", str(tmp_path / "hostile")]) == 0
    out = capsys.readouterr().out
    assert not any((ord(char) < 32 and char != "\n") or 127 <= ord(char) < 160 or char == "\u202e" for char in out)
    for shown in ("[red]bold[/red]", "a⟨U+001B⟩[2J", "rtl⟨U+202E⟩gpj", ":boom:", "line⟨U+000A⟩break"):
        assert shown in out
    assert "x" * 61 not in out


def test_hostile_names_come_back_whole_from_the_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = hostile_folder(tmp_path / "hostile")
    assert main(["snapshot", "--recorded", str(tmp_path / "hostile"), "--json"]) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    assert not any(ord(char) < 32 and char != "\n" for char in out)
    assert [entry["model"] for entry in json.loads(out)["models"]] == sorted(names)


def test_out_writes_the_same_answer_as_json_csv_and_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["snapshot", "--recorded", recorded("snapshot"), "--max-length", "512"]
    expected = answer(capsys, *arguments)
    for ending in ("json", "csv", "parquet"):
        assert main([*arguments, "--out", str(tmp_path / f"look.{ending}")]) == 0
        assert f"look.{ending}" in capsys.readouterr().err
    assert json.loads((tmp_path / "look.json").read_text(encoding="utf-8")) == expected
    frame = pl.read_parquet(tmp_path / "look.parquet")
    assert frame["allowance_tokens"].to_list() == [entry["allowance_tokens"] for entry in expected["models"]]
    assert frame["wait_named_s"][0] == 1024 / 16.7
    lines = (tmp_path / "look.csv").read_text(encoding="utf-8-sig").splitlines()
    assert len(lines) == 12
    assert "data of (UTC)" in lines[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["look.csv", "look.json", "look.parquet"]


def test_a_formula_in_a_name_is_no_formula_in_the_csv(tmp_path: Path) -> None:
    hostile_folder(tmp_path / "hostile")
    assert main(["snapshot", "--recorded", str(tmp_path / "hostile"), "--out", str(tmp_path / "x.csv")]) == 0
    assert "'=1+1," in (tmp_path / "x.csv").read_text(encoding="utf-8-sig")


@pytest.mark.parametrize("size", ["0", "16385", "-1", "text", "80.5", "", "9" * 5000])
def test_a_size_out_of_range_is_bad_input(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "max" in refused(capsys, "snapshot", "--recorded", recorded("snapshot"), f"--max-length={size}")


@pytest.mark.parametrize("context", ["0", "1048577", "many"])
def test_a_context_out_of_range_is_bad_input(context: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "context" in refused(capsys, "snapshot", "--recorded", recorded("snapshot"), "--max-context-length", context)


def test_a_folder_without_workers_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "holds no workers_text.json" in refused(capsys, "snapshot", "--recorded", str(tmp_path), "--json")
    assert "is not a folder" in refused(capsys, "snapshot", "--recorded", str(tmp_path / "nowhere"), "--json")


def test_no_source_two_sources_and_no_address_are_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert "name one by --url, --recorded, --store or --demo" in refused(capsys, "snapshot")
    assert "must be one source" in refused(capsys, "snapshot", "--demo", "--recorded", recorded("snapshot"))
    assert "--url" in refused(capsys, "snapshot", "--url", "ftp://horde.example")
    assert "--url" in refused(capsys, "snapshot", "--url", "")


def test_settings_that_make_no_sense_are_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("snapshot", "--recorded", recorded("snapshot"))
    assert "must not be above ceiling_tokens" in refused(capsys, *arguments, "--set", "floor_tokens=5000")
    assert "is not a setting" in refused(capsys, *arguments, "--set", "rule=old")
    assert "cannot be read" in refused(capsys, *arguments, "--settings", str(tmp_path / "none.toml"))


def test_an_output_that_cannot_be_written_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("snapshot", "--recorded", recorded("snapshot"))
    assert "must end in" in refused(capsys, *arguments, "--out", str(tmp_path / "look.xlsx"))
    assert "cannot be written" in refused(capsys, *arguments, "--out", str(tmp_path / "no" / "look.csv"))
    assert list(tmp_path.iterdir()) == []


def test_a_horde_that_cannot_be_reached_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: refused at once
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
        assert main(["snapshot", "--url", address, "--json"]) == EXIT_UNREACHABLE
    out, err = capsys.readouterr()
    assert out == ""
    assert "cannot be reached" in err


@pytest.mark.parametrize("folder", ["snapshot", "calm_snapshot", "fresh_server"])
def test_a_live_horde_gives_the_figures_of_its_recording(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = answer(capsys, "snapshot", "--recorded", recorded(folder), "--max-length", "512")
    before = datetime.now(UTC)
    with ReplayingServer(by_hand.RECORDED / folder) as server:
        found = answer(capsys, "snapshot", "--url", server.url, "--max-length", "512")
        assert found["source"] == server.url.removeprefix("http://")
        assert set(server.counts.values()) == {1}
    assert found["models"] == expected["models"]
    assert found["problems"] == []
    assert before <= datetime.fromisoformat(found["fetched_at"]) <= datetime.now(UTC)


def test_a_horde_whose_workers_cannot_be_read_is_not_reachable_and_other_parts_are_noted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ReplayingServer(by_hand.RECORDED / "snapshot") as server:
        server.fail("garbage", on="/api/v2/status/performance")
        entry = answer(capsys, "snapshot", "--url", server.url)["models"][0]
        assert entry["estimated_wait_s"]["high"] is None
        server.fail("garbage", on="/api/v2/workers")
        assert main(["snapshot", "--url", server.url, "--json"]) == EXIT_UNREACHABLE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")


def test_the_environment_names_the_horde_when_no_option_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HORDE_URL", f"http://127.0.0.1:{held.getsockname()[1]}")
        assert main(["snapshot"]) == EXIT_UNREACHABLE
    assert "cannot be reached" in capsys.readouterr().err
    assert answer(capsys, "snapshot", "--recorded", recorded("fresh_server"))["source"] == "Fresh test server"


def test_a_history_gives_the_look_of_an_instant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.sqlite"
    store = HistoryStore(path)
    for folder in ("snapshot", "calm_snapshot"):
        store.write(dataclasses.replace(load_recorded(by_hand.RECORDED / folder), source="horde"))
    store.close()
    for at, folder in (
        ("2026-11-29T19:52:00Z", "snapshot"),
        ("2026-11-29T20:53:01+01:00", "calm_snapshot"),
        ("2030-01-01", "calm_snapshot"),
    ):
        assert main(["snapshot", "--store", str(path), "--at", at, "--max-length", "512", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        expected = answer(capsys, "snapshot", "--recorded", recorded(folder), "--max-length", "512")
        assert (found["models"], found["fetched_at"], found["source"]) == (expected["models"], expected["fetched_at"], "horde")
    newest = answer(capsys, "allowance", "--store", str(path), "--model", "koboldcpp/Qwen3-0.6B-Base", "--max-length", "80")
    assert newest["sizes"][0]["state"] == "full"


@pytest.mark.parametrize("command", ["snapshot", "allowance"])
def test_an_instant_that_was_not_recorded_is_said_in_the_json_on_stderr_and_in_the_table(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, noon = tmp_path / "history.sqlite", datetime(2026, 11, 29, 12, tzinfo=UTC)
    store, look = (
        HistoryStore(path),
        dataclasses.replace(load_recorded(by_hand.RECORDED / "snapshot"), source="horde", part_times={}),
    )
    for seconds in (0, 30, 60, 3600, 3630):
        gap = "the recorder was not running" if seconds == 3600 else None
        store.write(dataclasses.replace(look, fetched_at=noon + timedelta(seconds=seconds)), gap_reason=gap)
    store.close()
    more = [] if command == "snapshot" else ["--model", "koboldcpp/Qwen3-0.6B-Base", "--max-length", "80"]
    gap_text = (
        "not recorded from 2026-11-29 12:01:00 UTC to 2026-11-29 13:00:00 UTC (the recorder was not running); "
        "the figures are of the last poll before, at 2026-11-29 12:01:00 UTC"
    )
    end_text = "not recorded at 2026-11-29 14:00:00 UTC; the last poll is of 2026-11-29 13:00:30 UTC, and so are the figures"
    # 52 s after the last poll lie within 1.75 intervals of 30 s, 53 s do not
    for at, said in (("12:00:59", None), ("12:01:00", None), ("12:30:00", gap_text), ("13:00:00", None), ("13:01:22", None),
                     ("13:01:23", "not recorded at 2026-11-29 13:01:23 UTC"), ("14:00:00", end_text)):  # fmt: skip
        asked = [command, "--store", str(path), "--at", f"2026-11-29T{at}Z", *more]
        assert main([*asked, "--json"]) == 0
        out, err = capsys.readouterr()
        told = [problem["text"] for problem in json.loads(out)["problems"] if problem["code"] == "not_recorded"]
        assert len(told) == (said is not None)
        assert all(text.startswith(str(said)) for text in told)
        assert err == "".join(f"problem: horde: {text}\n" for text in told)
        assert main(asked) == 0
        assert (said or "not recorded") in capsys.readouterr().out or said is None
    newest = answer(capsys, command, "--store", str(path), *more)
    assert "not_recorded" not in {problem["code"] for problem in newest["problems"]}


def test_an_instant_that_is_none_or_before_the_history_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.sqlite"
    store = HistoryStore(path)
    store.write(load_recorded(by_hand.RECORDED / "snapshot"))
    store.close()
    assert "must be an instant" in refused(capsys, "snapshot", "--store", str(path), "--at", "yesterday")
    assert "before the first poll" in refused(capsys, "snapshot", "--store", str(path), "--at", "2020-01-01")
    assert "needs --store" in refused(capsys, "snapshot", "--recorded", recorded("snapshot"), "--at", "2020-01-01")
    assert "no such history store" in refused(capsys, "snapshot", "--store", str(tmp_path / "none.sqlite"))
    assert "must be one source" in refused(capsys, "snapshot", "--store", str(path), "--demo")


def test_the_demo_says_that_it_is_made_up(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "snapshot", "--demo")
    assert "synthetic" in {problem["code"] for problem in found["problems"]}
    assert main(["snapshot", "--demo"]) == 0
    assert "(made up)" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    "command",
    [
        ["snapshot"],
        ["allowance", "--model", "m", "--max-length", "80"],
        ["probe", "--model", "m", "--max-length", "80"],
        ["record", "--store", "x.db"],
    ],
)
def test_the_setting_that_named_the_horde_is_the_one_in_the_message(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HORDE_URL", "http://me:hunter2@localhost:1")
    told = refused(capsys, *command)
    assert told == "error: setting HORDE_URL: '…@localhost:1' must carry no user name or password\n"
    told = refused(capsys, *command, "--url", "http://me:hunter2@localhost:2")
    assert told == "error: setting --url: '…@localhost:2' must carry no user name or password\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["snapshot", "--max-lenght", "80"], "error: No such option: --max-lenght"),
        (["snapshot", "--max-length", "many"], "error: Invalid value for '--max-length'"),
        (["allowance"], "error: Missing option '--model'"),
        (["snapshoot"], "error: No such command 'snapshoot'"),
    ],
)
def test_a_usage_error_is_one_line_that_names_the_command(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, *arguments)
    assert told.startswith(says)
    assert told.count("\n") == 1
    assert told.endswith(" --help\n")


def test_without_a_command_the_help_stands_in_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys)
    assert told.startswith("Usage: ")
    assert "snapshot" in told
    assert main(["snapshot", "--help"]) == 0


def test_a_setting_that_would_make_a_wait_endless_is_refused_where_it_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["snapshot", "--recorded", recorded("snapshot"), "--json"]
    for pair in ("wait_floor_s=1.7e308", "assumed_speed_tok_per_s=1e-303"):
        told = refused(capsys, *arguments, "--set", pair)
        assert told.startswith(f"error: setting {pair.partition('=')[0]}: ")
        assert told.endswith("and at most 1,000,000,000 (rule A4; given by --set)\n")


def test_a_table_explains_its_marks_and_says_none_where_the_board_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "--demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    by_name = {line.split("  ")[0]: line for line in lines}
    assert "no worker !" in by_name["koboldcpp/Gable-27B-it"]
    assert by_name["koboldcpp/Gable-27B-it"].endswith("none")
    assert by_name["koboldcpp/Overture-9B"].endswith("—")
    legend = next(line for line in lines if line.startswith("!: at the floor, or without a worker; —: not reported"))
    assert legend.endswith("none: no online worker takes a request of any size")


def test_a_table_without_marks_has_no_legend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["allowance", "--demo", "--model", "koboldcpp/Sparrow-0.6B", "--max-length", "80"]) == 0
    assert "worker;" not in capsys.readouterr().out
