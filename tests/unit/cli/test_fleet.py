"""``fleet from-snapshot`` and ``fleet parametric`` through the command."""

import json
from pathlib import Path
from typing import Any

import pytest

from horde_policy.cli.main import EXIT_BAD_INPUT, main
from horde_policy.imports.replay_inputs import load_fleet
from tests.unit.traffic.paths import RECORDED


def made(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["fleet", *arguments, "--json"]) == 0
    stamp = json.loads(capsys.readouterr().out)
    assert isinstance(stamp, dict)
    return stamp


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["fleet", *arguments]) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(("folder", "workers"), [("snapshot", 12), ("production_2023-07", 20), ("fresh_server", 0)])
def test_a_recorded_folder_becomes_a_fleet(folder: str, workers: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "f.parquet"
    stamp = made(capsys, "from-snapshot", str(RECORDED / folder), "--out", str(out))
    read = load_fleet(out)
    assert read.stamp == stamp
    assert read.frame.height == stamp["workers"] == workers
    assert stamp["workers_read"] == workers + sum(stamp["left_out"].values())


def test_a_parametric_fleet_states_its_seed_and_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "f.parquet"
    options = ["--seed", "3", "--workers", "30", "--models-from", str(RECORDED / "snapshot"), "--max-length", "512:3,1024"]
    stamp = made(capsys, "parametric", *options, "--out", str(out))
    frame = load_fleet(out).frame
    assert stamp["synthetic"]
    assert stamp["parameters"]["seed"] == 3
    assert set(frame["max_length"]) == {512, 1024}
    assert "koboldcpp/Cydonia-24B-v4.1" in set(frame["models"].explode())
    made(capsys, "parametric", *options, "--out", str(tmp_path / "g.parquet"))
    assert load_fleet(tmp_path / "g.parquet").frame.equals(frame)


def test_workers_come_and_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--seed", "3", "--churn-hours", "100", "--start", "2026-11-29T00:00:00Z"]
    stamp = made(capsys, "parametric", *options, "--out", str(tmp_path / "f.parquet"))
    assert stamp["periods"] > stamp["workers"]


def test_bad_options_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "f.parquet")
    assert "is not a folder" in refused(capsys, "from-snapshot", str(tmp_path / "none"), "--out", out)
    assert "must end in .parquet" in refused(
        capsys, "from-snapshot", str(RECORDED / "snapshot"), "--out", str(tmp_path / "f.csv")
    )
    for options, message in [
        (["--workers", "-1"], "workers: -1 must be 0 to"),
        (["--speed-p95", "1"], "must not be below the median"),
        (["--max-length", "512:x"], "must be a size and its weight"),
        (["--churn-hours", "5"], "--start: is missing: --churn-hours needs it"),
        (["--churn-hours", "5", "--start", "today"], "--start: 'today' must be an instant"),
        (["--start", "2026-11-29T00:00:00Z"], "needs --churn-hours"),
        (["--models-from", str(RECORDED / "fresh_server")], "has no request counts"),
    ]:
        assert message in refused(capsys, "parametric", "--seed", "1", "--out", out, *options)
    assert main(["fleet", "parametric", "--out", out]) == EXIT_BAD_INPUT
    capsys.readouterr()
    assert list(tmp_path.iterdir()) == []


def test_no_worker_and_no_instant_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "f.parquet")
    assert main(["fleet", "parametric", "--seed", "1", "--workers", "0", "--out", out]) == 0
    assert "problem: fleet: it has no worker" in capsys.readouterr().err
    for option in ("--from", "--to"):
        assert f"{option}: 'garbage' must be an instant" in refused(
            capsys, "from-history", "h.sqlite", option, "garbage", "--out", out
        )
