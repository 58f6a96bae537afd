"""A command that had to leave a file out answers from the others, names it on stderr and ends with exit code 4."""

from pathlib import Path

import pytest

from horde_policy.cli.main import EXIT_BAD_INPUT, EXIT_LEFT_OUT, main


@pytest.mark.parametrize(
    "arguments",
    [
        ("decisions",),
        ("decisions", "--json"),
        ("decisions", "--csv"),
        ("waits",),
        ("waits", "--json"),
        ("week",),
        ("week", "--json"),
    ],
    ids=" ".join,
)
def test_the_answer_is_that_of_the_others(
    capsys: pytest.CaptureFixture[str], week_file: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    bad = tmp_path / "notes.txt"
    bad.write_text("nothing", encoding="utf-8")
    command, *options = arguments
    assert main([command, str(week_file), *options]) == 0
    alone = capsys.readouterr()
    assert "left out" not in alone.err
    assert main([command, str(week_file), str(bad), *options]) == EXIT_LEFT_OUT
    beside = capsys.readouterr()
    assert "problem: notes.txt: left out: export, notes.txt" in beside.err
    assert beside.err.count("notes.txt: left out") == 1
    assert "1 file was left out" in beside.err
    if "--json" not in options:
        counted = alone.out.splitlines()[-3:]
        assert beside.out.splitlines()[-3:] == counted


def test_what_is_written_is_written_whole(capsys: pytest.CaptureFixture[str], week_file: Path, tmp_path: Path) -> None:
    bad, kept, rebuilt, report = (tmp_path / name for name in ("bad.bin", "history.sqlite", "traffic.parquet", "week.html"))
    bad.write_bytes(b"\x00\x01")
    assert main(["history", "collect", str(kept), str(week_file), str(bad)]) == EXIT_LEFT_OUT
    assert main(["decisions", "--history", str(kept)]) == 0
    assert main(["traffic", "from-metrics", str(week_file), str(bad), "--out", str(rebuilt)]) == EXIT_LEFT_OUT
    assert main(["week", str(week_file), str(bad), "--out", str(report)]) == EXIT_LEFT_OUT
    assert rebuilt.exists()
    assert "bad.bin" in report.read_text(encoding="utf-8")
    capsys.readouterr()


def test_nothing_to_read_at_all_is_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"")
    assert main(["decisions", str(tmp_path / "one"), str(tmp_path / "two")]) == EXIT_BAD_INPUT
    assert "none can be read" in capsys.readouterr().err
