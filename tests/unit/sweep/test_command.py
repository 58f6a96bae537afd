"""The command ``sweep``: files in, every point out, a judgement to read and to parse; refusals before any work."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from horde_policy.cli.main import main
from horde_policy.cli.warming import compiled
from horde_policy.imports.replay_inputs import stamp_of
from horde_policy.sweep.cluster import Cluster
from horde_policy.sweep.files import read_sweep
from horde_policy.sweep.run import Sweep, run_sweep
from tests.unit.sweep.made import START, busy_week, inputs_of, planned

ROOT = Path(__file__).parents[3]
GRID = "ceiling_tokens = [1024, 4096]\nfloor_tokens = [256, 512, 2048]\nload = [0.5, 1.5]\n"
TRACE = ROOT / "data" / "traces" / "ragpulse_week1.parquet"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name in [n for n in os.environ if n.startswith("HORDE_")]:
        monkeypatch.delenv(name)
    inputs_of(tmp_path, *busy_week(600))
    (tmp_path / "grid.toml").write_text(GRID)
    return {
        "--traffic": str(tmp_path / "traffic.parquet"),
        "--fleet": str(tmp_path / "fleet.parquet"),
        "--grid": str(tmp_path / "grid.toml"),
        "--out": str(tmp_path / "s.parquet"),
    }


def sweep(files: dict[str, str], *more: str, **changed: str) -> int:
    options = files | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    return main(["sweep", *(part for pair in options.items() for part in pair), *more])


def test_it_writes_every_point_and_says_what_to_choose(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(files) == 0
    told = capsys.readouterr()
    found = read_sweep(Path(files["--out"]))
    assert found.frame["point"].n_unique() == 5
    assert found.frame.height == 5 * 2 * 7
    assert found.stamp["dropped"] == {"floor_tokens must not be above ceiling_tokens": 1}
    assert "left out: floor_tokens must not be above ceiling_tokens (1)" in told.err
    assert "HORDE_TEXT_FREE_OUTPUT_FLOOR=" in told.out
    assert told.out.splitlines()[:3] == [
        "want: Least refused share of unfunded",
        "want: Least p90 wait of registered",
        "must: P90 wait of registered ≤ 110 % of baseline",
    ]
    assert not Path(files["--out"] + ".parts").exists()
    assert stamp_of(Path(files["--out"])) == found.stamp


def test_the_judgement_as_data(files: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = tmp_path / "p.html"
    assert (
        sweep(
            files,
            *("--want", "fewest tokens given free", "--must", "refused share of unfunded <= 60 %", "--json"),
            hold_out="7",
            proposal=str(document),
        )
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert data["objectives"] == ["least tokens given free"]
    assert data["constraints"] == ["refused share of unfunded ≤ 60 %"]
    assert (data["chosen_days"], data["holdout_days"]) == ([1, 2, 3, 4, 5, 6], [7])
    assert data["proposal"]["environment"][0].startswith("HORDE_TEXT_FREE_OUTPUT_CEILING=")
    assert data["proposal"]["comparisons"][0]["metric"] == "free_tokens_per_day"
    assert document.read_text().startswith("<!DOCTYPE html>")


def test_a_last_day_that_is_not_whole_is_named_and_not_held_out(
    files: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    traffic = pl.read_parquet(files["--traffic"])
    late = traffic.head(9).with_columns(created=START + timedelta(days=7) + pl.Series([timedelta(seconds=k) for k in range(9)]))
    pl.concat((traffic, late)).write_parquet(files["--traffic"])
    assert sweep(files, hold_out="7,8") == 2
    assert "--hold-out: '7,8' must be among the whole days of this sweep: days 1 to 7" in capsys.readouterr().err
    assert sweep(files, "--json", proposal=str(tmp_path / "p.md")) == 0
    told = capsys.readouterr()
    named = "Day 8 is no whole day: its requests span "
    assert (named in told.err, named in (tmp_path / "p.md").read_text()) == (True, True)
    data = json.loads(told.out)
    assert (data["chosen_days"], data["holdout_days"]) == ([1, 2, 3, 4, 5], [6, 7])
    ((day, hours),) = [(short["day"], short["hours"]) for short in data["short_days"]]
    assert (day, 0 < hours < 0.01) == (8, True)
    assert read_sweep(Path(files["--out"])).frame["day"].max() == 8
    assert sweep(files) == 0
    assert named in capsys.readouterr().out


def test_nothing_that_meets_the_constraints_is_an_answer(
    files: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert sweep(files, "--must", "refused share ≥ 99 %", proposal=str(tmp_path / "p.md")) == 0
    told = capsys.readouterr()
    assert "No settings that were tried meet the constraints." in told.out
    assert "p.md is not written" in told.err
    assert not (tmp_path / "p.md").exists()
    assert sweep(files, "--must", "refused share ≥ 99 %", "--json") == 0
    assert json.loads(capsys.readouterr().out)["proposal"] is None


def test_the_baseline_is_what_is_in_force(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORDE_TEXT_FREE_OUTPUT_FLOOR", "300")
    assert sweep(files, "--set", "client=resend") == 0
    baseline = read_sweep(Path(files["--out"])).frame.filter("baseline").row(0, named=True)
    assert (baseline["floor_tokens"], baseline["client"]) == (300, "resend")


def test_requests_of_models_that_no_worker_serves_are_told(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    traffic = pl.read_parquet(files["--traffic"]).head(20)
    traffic.with_columns(pl.lit(["nobody has it"]).alias("models")).write_parquet(files["--traffic"])
    Path(files["--grid"]).write_text("ceiling_tokens = [1024]\n")
    sweep(files)
    told = capsys.readouterr().err
    assert "problem: models: no worker of this fleet serves the models of 20 of 20 requests" in told


def test_the_share_of_unserved_models_stands_in_the_data_and_in_the_proposal(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traffic = pl.read_parquet(files["--traffic"])
    nobody = pl.int_range(pl.len()) % 4 == 0
    models = pl.when(nobody).then(pl.lit(["nobody has it"])).otherwise(pl.lit(["m"])).alias("models")
    traffic.with_columns(models).write_parquet(files["--traffic"])
    Path(files["--grid"]).write_text("ceiling_tokens = [1024]\n")
    document = tmp_path / "p.md"
    assert sweep(files, "--json", proposal=str(document)) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["share_of_unserved_models"] == {"": 0.25}
    assert {"code": "unserved_models", "least": 0.25, "most": 0.25} in data["proposal"]["caveats"]
    said = "No worker of this fleet serves the models of 25.0 % of the requests"
    assert said in document.read_text()
    assert sweep(files) == 0
    assert said in capsys.readouterr().out


def test_loops_that_are_compiled_are_told_only_where_that_takes_time(capsys: pytest.CaptureFixture[str]) -> None:
    compiled(lambda: None, say_after_s=5.0)
    assert capsys.readouterr().err == ""
    compiled(lambda: time.sleep(0.2), say_after_s=0.0)
    assert "compiling the loops, once after an installation" in capsys.readouterr().err


def test_a_trace_is_filled_by_each_rule_of_the_grid(files: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(
        "floor_tokens = [256, 512]\nload = 0.5\nfill = ['models=weighted,max_length=ladder', 'models=weighted,max_length=tight']"
    )
    assert sweep(files, traffic=str(TRACE), models_from=str(ROOT / "data" / "demo")) == 0
    assert read_sweep(Path(files["--out"])).frame["fill"].n_unique() == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--grid", "none.toml"], "grid file: 'none.toml' cannot be read"),
        (["--out", "s.csv"], "--out: 's.csv' must end in .parquet"),
        (["--out", "nowhere/s.parquet"], "must lie in a folder that is there"),
        (["--proposal", "p.pdf"], "--proposal: 'p.pdf' must end in .md or .html"),
        (["--proposal", "nowhere/p.md"], "--proposal: .* must lie in a folder that is there"),
        (["--want", "happiness"], "objective, happiness: 'happiness' is no metric"),
        (["--must", "refused share"], "must hold a comparison"),
        (["--hold-out", "six"], "--hold-out: 'six' must be days"),
        (["--hold-out", "6,99"], "--hold-out: '6,99' must be among the whole days of this sweep: days 1 to 7"),
        (["--hold-out", "1,2,3,4,5,6,7"], "--hold-out: '1,2,3,4,5,6,7' must leave a day to choose on"),
        (["--workers", "2", "--dask", "tcp://127.0.0.1:1"], "--workers: 2 belongs to this machine"),
        (["--set", "floor_tokens=9999"], "setting floor_tokens: 9999 must not be above"),
        (["--traffic", "none.parquet"], "none.parquet"),
        (["--fleet", "none.parquet"], "none.parquet"),
    ],
)
def test_bad_input_is_refused_before_any_work(
    files: dict[str, str], more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", *(part for pair in files.items() for part in pair), *more]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert re.search(message, told.err), told.err
    assert not Path(files["--out"]).exists()
    assert not Path(files["--out"] + ".parts").exists()


@pytest.mark.parametrize(
    "address",
    ["", "foo", "tcp://", "tcp://foo", "http://127.0.0.1:80", "tcp://127.0.0.1:", "tcp://127.0.0.1:0", "tcp://127.0.0.1:65536",
     "127.0.0.1", "tcp://:8786", "tcp://a b:8786", "tcp://host:8786/x", "inproc://1", "tcp://::1:8786", "tcp://[::1]", "tcp://me@host:8786"],
)  # fmt: skip
def test_what_is_no_address_of_a_scheduler_is_bad_input(
    files: dict[str, str], address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sweep(files, dask=address) == 2
    rule = "must be a scheduler's address with its port, as tcp://10.0.0.1:8786"
    assert capsys.readouterr().err == f"error: setting dask: {address!r} {rule}\n"


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "tcp://[::1]:8786", "ws://a-host.example:80", "tcp://scheduler_1:8786"])
def test_an_address_of_a_scheduler_is_taken(address: str) -> None:
    assert Cluster(address).address == address


def test_an_encrypted_address_without_certificates_is_bad_input(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert sweep(files, dask="tls://127.0.0.1:8786") == 2
    assert "needs certificates in the configuration of Dask" in capsys.readouterr().err


def test_a_cluster_that_is_not_there(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("horde_policy.sweep.cluster.REACH_S", 0.5)
    assert sweep(files, dask="tcp://127.0.0.1:9") == 3
    assert "Dask scheduler tcp://127.0.0.1:9: cannot be reached" in capsys.readouterr().err


def test_an_interrupt_while_the_command_is_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt(name)

    monkeypatch.setattr("horde_policy.cli.main.importlib.import_module", interrupted)
    assert main(["sweep"]) == 1
    assert capsys.readouterr().err == "error: interrupted\n"


def test_an_interrupt_keeps_what_is_done_and_the_same_command_goes_on(tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, *busy_week(12_000))
    grid = "floor_tokens = {from = 1, to = 400, step = 1}"
    (tmp_path / "grid.toml").write_text(grid)
    command = [sys.executable, "-m", "horde_policy", "sweep", "--traffic", "traffic.parquet", "--fleet", "fleet.parquet"]
    command += ["--grid", "grid.toml", "--out", "s.parquet"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HORDE_")} | {"PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(command, cwd=tmp_path, env=clean, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while len(list((tmp_path / "s.parquet.parts").glob("*.npz"))) < 5:
        assert child.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    said, told = child.communicate(timeout=120)
    assert child.returncode == 1
    assert re.search(r"stopped: \d+ of 401 replays are not done; what is done is in s.parquet and judged; the same command", told)
    assert "want: Least refused share of unfunded\n" in said, "what is done is judged"
    part = read_sweep(tmp_path / "s.parquet")
    assert 0 < part.missing < 401
    (tmp_path / "grid.toml").write_text("floor_tokens = {from = 1, to = 20, step = 1}")
    again = subprocess.run(command, cwd=tmp_path, env=clean, check=True, capture_output=True, text=True)
    assert re.search(
        r"going on with a sweep that was stopped: \d+ of 21 replays are done already, in s.parquet.parts", again.stderr
    )
    wanted = planned("floor_tokens = {from = 1, to = 20, step = 1}", inputs)
    assert read_sweep(tmp_path / "s.parquet").frame.equals(run_sweep(inputs, wanted).frame)
    assert pl.read_parquet(tmp_path / "s.parquet").height == 21 * 7


def test_a_stop_before_anything_is_done_keeps_the_file_that_is_there(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = Path(files["--out"])
    monkeypatch.setattr("horde_policy.cli.sweep._cancelling", lambda: nullcontext(lambda: True))
    assert sweep(files) == 1
    told = capsys.readouterr()
    assert told.err.splitlines()[-1] == f"stopped before any replay was done: there is nothing to judge, and {out} is not written"
    assert not out.exists()
    assert not Path(f"{out}.parts").exists()
    out.write_bytes(b"of an earlier sweep")
    assert sweep(files) == 1
    told = capsys.readouterr()
    assert told.err.splitlines()[-1] == f"stopped before any replay was done: there is nothing to judge, and {out} is as it was"
    assert out.read_bytes() == b"of an earlier sweep"
    assert "goes on" not in told.err + told.out


@pytest.mark.parametrize("baseline_done", [True, False])
def test_a_stopped_sweep_is_judged_once_the_settings_in_force_are_replayed(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, baseline_done: bool
) -> None:
    def stopped(*given: Any, **more: Any) -> Sweep:
        whole = run_sweep(*given, **more)
        part = whole.frame.filter((pl.col("load") == 0.5) & (pl.col("baseline") if baseline_done else ~pl.col("baseline")))
        return replace(whole, frame=part, missing=9, stamp=dict(whole.stamp) | {"missing": 9})

    monkeypatch.setattr("horde_policy.cli.sweep.run_sweep", stopped)
    assert sweep(files) == 1
    told = capsys.readouterr()
    assert "None" not in told.err + told.out
    assert ("and judged" in told.err, "the settings in force are not replayed yet" in told.err) == (
        baseline_done,
        not baseline_done,
    )
    assert ("Made from 1 of 5 settings under 1 of 2 scenarios (load, fill rule and seed)" in told.out) == baseline_done


def test_one_of_a_kind_is_told_in_the_singular(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    Path(files["--grid"]).write_text("")
    assert sweep(files) == 0
    told = capsys.readouterr().err
    assert "1 point under 1 scenario\n" in told
    assert "7 rows of 1 point written" in told
