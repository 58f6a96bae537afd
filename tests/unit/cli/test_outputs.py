"""No command with ``--out`` writes over what it reads."""

from pathlib import Path

import pytest

from horde_policy.cli.main import EXIT_BAD_INPUT, main

KEPT = b"what the command would read"


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "--traffic", "IN", "--fleet", "other", "--out", "IN"),
        ("replay", "--traffic", "other", "--fleet", "IN", "--out", "IN"),
        ("traffic", "convert", "IN", "--out", "IN"),
        ("traffic", "from-metrics", "other", "IN", "--out", "IN"),
        ("sweep", "--traffic", "IN", "--fleet", "other", "--grid", "other", "--out", "IN"),
        ("sweep", "--traffic", "other", "--fleet", "other", "--grid", "IN", "--out", "IN"),
        ("fleet", "from-history", "IN", "--out", "IN"),
        ("fleet", "from-snapshot", "FOLDER", "--out", "IN"),
        ("snapshot", "--recorded", "FOLDER", "--out", "IN"),
        ("week", "IN.html", "--out", "IN.html"),
    ],
    ids=lambda words: " ".join(words),
)
def test_an_input_is_never_the_output(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "in.parquet"
    page = tmp_path / "in.html"
    for path in (kept, page):
        path.write_bytes(KEPT)
    named = {"IN": str(kept), "IN.html": str(page), "FOLDER": str(tmp_path), "other": str(tmp_path / "other.parquet")}
    assert main([named.get(word, word) for word in words]) == EXIT_BAD_INPUT
    assert "is an input of the same command, which would be lost" in capsys.readouterr().err
    assert (kept.read_bytes(), page.read_bytes()) == (KEPT, KEPT)
