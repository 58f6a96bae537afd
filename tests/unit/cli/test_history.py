"""``history`` and ``fleet from-history`` as commands: what they print, write and refuse."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from horde_policy.cli.history import GAPS_SHOWN
from horde_policy.cli.main import EXIT_BAD_INPUT, main
from horde_policy.frames.fleet import FLEET
from horde_policy.history.claims import Standing, note_standing, take_lease
from horde_policy.history.fleets import fleet_from_history
from horde_policy.history.reading import sources_in
from horde_policy.history.store import KEYFRAME_EVERY_POLLS, HistoryStore
from tests.unit.history.churn import START, changing

POLLS = KEYFRAME_EVERY_POLLS + 30


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "history.sqlite"
    opened = HistoryStore(path, durable=False)
    for number, made in enumerate(changing(POLLS, seed=2)):
        opened.write(made, gap_reason="away [red]and back" if number == 100 else None)
    opened.close()
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def test_info_tells_what_a_history_holds(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "history", "info", store, "--check")
    (source,) = found["sources"]
    assert (source["name"], source["synthetic"], source["polls"], source["gaps"]) == ("made up", False, POLLS, 1)
    assert source["first"] == START.isoformat()
    assert source["gap_s"] == 30.0
    assert source["recorder"]["state"] == "never"
    assert found["damages"] == []
    assert found["rows"]["history_poll"] == POLLS
    assert found["bytes"] > 10_000
    assert main(["history", "info", store]) == 0
    text = capsys.readouterr().out
    assert f"made up: {POLLS} polls from 2026-11-29 12:00:00" in text
    assert "; 1 gap, 30 s in all" in text
    assert "  gap of 30 s from 2026-11-29 12:49:30 to 2026-11-29 12:50:00 UTC: away [red]and back" in text
    away = {"from": "2026-11-29T12:49:30+00:00", "to": "2026-11-29T12:50:00+00:00", "reason": "away [red]and back"}
    assert source["gap_list"] == [away]


def test_many_gaps_are_listed_from_the_last_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = HistoryStore(tmp_path / "history.sqlite", durable=False)
    for number, made in enumerate(changing(GAPS_SHOWN + 3, seed=2)):
        opened.write(made, gap_reason=f"reason {number}.")
    opened.close()
    assert main(["history", "info", opened.name.removeprefix("sqlite:///")]) == 0
    text = capsys.readouterr().out
    assert f"; {GAPS_SHOWN + 2} gaps, 11 min in all" in text
    assert "  2 earlier gaps: --json lists all" in text
    assert text.count("  gap of 30 s from ") == GAPS_SHOWN
    assert "reason 2." not in text
    assert text.index("reason 3.") < text.index(f"reason {GAPS_SHOWN + 2}.")


def test_info_shows_how_a_recorder_stands_and_what_is_damaged(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    opened = HistoryStore(store, durable=False)
    now = datetime.now(UTC)
    assert take_lease(opened, "made up", "me", now, 90, interval_s=30.0, sole=True)
    away = Standing(state="source_away", since=now, text="no answer \x1b[2J")
    note_standing(opened, "made up", "me", away, now + timedelta(hours=1))
    with opened.writing() as connection:
        connection.exec_driver_sql("DELETE FROM history_poll WHERE poll = 5")
    opened.close()
    assert main(["history", "info", store, "--check"]) == EXIT_BAD_INPUT
    text = capsys.readouterr().out
    assert "The source gives no answer since" in text
    assert "\x1b" not in text
    assert "belong to no poll" in text


def test_an_export_and_its_import_by_command(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(capsys, "history", "export", store, "--out", str(tmp_path / "out"))
    assert told["rows"]["polls"] == POLLS
    other = str(tmp_path / "other.sqlite")
    assert answer(capsys, "history", "import", other, str(tmp_path / "out")) == [
        {"source": "made up", "polls": POLLS, "of_polls": POLLS, "events": 0}
    ]
    assert main(["history", "import", other, str(tmp_path / "out")]) == 0
    assert f"0 of {POLLS} polls were new" in capsys.readouterr().out
    assert "must not be there yet" in refused(capsys, "history", "export", store, "--out", str(tmp_path / "out"))
    later = refused(
        capsys, "history", "export", store, "--out", str(tmp_path / "x"), "--from", "2026-12-01", "--to", "2026-11-01"
    )
    assert "must not lie before --from" in later
    assert "cannot be read" in refused(capsys, "history", "import", other, str(tmp_path))


@pytest.mark.parametrize(
    "about",
    [None, "{", "[]", '{"format": "horde_policy history", "version": 9}', '{"format": "horde_policy history", "version": 1}'],
)
def test_an_import_that_is_refused_leaves_no_store_behind(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], about: str | None
) -> None:
    folder, other = tmp_path / "out", tmp_path / "other.sqlite"
    answer(capsys, "history", "export", store, "--out", str(folder))
    if about is None:
        (folder / "gaps.parquet").unlink()
    else:
        (folder / "about.json").write_text(about, encoding="utf-8")
    refused(capsys, "history", "import", str(other), str(folder))
    assert not list(tmp_path.glob("other.sqlite*"))


def test_pruning_by_command(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    cut = (START + timedelta(seconds=30 * (POLLS - 1))).isoformat()
    said = "error: history prune: must say what is old by --keep-days or by --before; "
    assert refused(capsys, "history", "prune", store) == f"{said}neither is given\n"
    both = refused(capsys, "history", "prune", store, "--keep-days", "3", "--before", cut)
    assert both == f"{said}both are given\n"
    assert main(["history", "prune", store, "--before", "2026-11-29T12:10:00Z"]) == 0
    assert capsys.readouterr().out == (
        "made up: 0 polls pruned; all from 2026-11-29 12:00:00 UTC on is kept, "
        "as the state at 2026-11-29 12:10:00 UTC is read from there\n"
    )
    assert main(["history", "prune", store, "--before", "2026-11-01"]) == 0
    assert capsys.readouterr().out == "made up: 0 polls pruned: there is none before 2026-11-01 00:00:00 UTC\n"
    assert "must be above 0" in refused(capsys, "history", "prune", store, "--keep-days", "-1")
    assert "'nobody' is not in the store" in refused(capsys, "history", "prune", store, "--before", cut, "--source", "nobody")
    (told,) = answer(capsys, "history", "prune", store, "--before", cut, "--compact")
    assert told["polls"] == KEYFRAME_EVERY_POLLS
    assert told["kept_from"] == (START + timedelta(seconds=30 * KEYFRAME_EVERY_POLLS)).isoformat()
    opened = HistoryStore(store, read_only=True)
    assert sources_in(opened)[0].polls == POLLS - KEYFRAME_EVERY_POLLS
    opened.close()


@pytest.mark.parametrize("command", [["info"], ["prune", "--keep-days", "1"], ["export", "--out", "x"]])
def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "none.sqlite"
    assert "there is no such history store" in refused(capsys, "history", command[0], str(missing), *command[1:])
    assert not missing.exists()


def test_a_fleet_of_recorded_days_by_command(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "fleet.parquet"
    assert main(["fleet", "from-history", store, "--out", str(out), "--json"]) == 0
    printed = capsys.readouterr()
    stamp = json.loads(printed.out)
    assert "in 1 gap, 30 s in all" in printed.err
    frame = pl.read_parquet(out)
    opened = HistoryStore(store, read_only=True)
    wanted = fleet_from_history(opened, START, START + timedelta(days=1)).frame
    opened.close()
    assert frame.equals(wanted)
    assert frame.schema == FLEET.empty().schema
    assert (stamp["from"], stamp["source"], stamp["polls"], stamp["periods"]) == ("history", "made up", POLLS, frame.height)
    nothing = refused(capsys, "fleet", "from-history", store, "--out", str(out), "--from", "2025-01-01", "--to", "2025-01-02")
    assert "holds no poll of made up" in nothing
