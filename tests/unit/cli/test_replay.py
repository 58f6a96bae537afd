"""``replay`` through the command: every bundled trace, two fill rules, the fleet of a recorded snapshot; totals add up."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from horde_policy.cli.main import EXIT_BAD_INPUT, main
from horde_policy.frames.runs import RUNS
from horde_policy.imports.replay_inputs import stamp_of
from tests.unit.traffic.paths import RECORDED, TRACES

FILES = sorted(path.name for path in TRACES.iterdir() if path.suffix != ".md" and not path.name.startswith("servegen"))
RULES = ("max_length=tight", "max_length=ladder")
SERVEGEN = ["servegen_deepseek-r1_chunk-35-trace.csv", "--sizes", str(TRACES / "servegen_deepseek-r1_chunk-52-dataset.json")]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fleet") / "f.parquet"
    assert main(["fleet", "from-snapshot", str(RECORDED / "snapshot"), "--out", str(out)]) == 0
    return out


def converted(source: str, out: Path, *options: str) -> Path:
    assert main(["traffic", "convert", str(TRACES / source), "--out", str(out), *options]) == 0
    return out


def replayed(capsys: pytest.CaptureFixture[str], traffic: Path, fleet: Path, out: Path, *options: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["replay", "--traffic", str(traffic), "--fleet", str(fleet), "--out", str(out), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def check_totals(found: dict[str, Any], run: pl.DataFrame) -> None:
    requests = found["requests"]
    assert run.height == requests == sum(found["outcomes"].values()) == sum(found["statuses"].values())
    assert sum(cell["requests"] for cell in found["mix"]) == requests
    assert found["outcomes"]["refused"] == found["statuses"]["refused"] == sum(found["reasons"].values())
    assert dict(run["outcome"].value_counts().iter_rows()) == {word: n for word, n in found["outcomes"].items() if n}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("file", FILES)
def test_every_bundled_trace_under_two_rules(
    file: str, rule: str, fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traffic = converted(file, tmp_path / "t.parquet", "--fill", f"{rule},models=weighted,requester=0.7/0.1,can_pay=0.5")
    found = replayed(capsys, traffic, fleet, tmp_path / "r.parquet", "--json")
    run = pl.read_parquet(tmp_path / "r.parquet")
    assert RUNS.checked(run).equals(run)
    check_totals(found, run)
    stamp = found["traffic"]["stamp"]
    assert stamp["fill"].startswith(rule)
    assert stamp["rows_read"] == stamp["kept"] + sum(stamp["refused"].values())
    assert stamp["requests"] == found["requests"]
    assert found["fleet"]["stamp"]["workers"] == 12
    kept = stamp_of(tmp_path / "r.parquet")
    assert kept is not None
    assert (kept["kind"], kept["traffic"]["stamp"]["fill"]) == ("run", stamp["fill"])


@pytest.mark.parametrize("rule", RULES)
def test_drawn_requests_stay_labelled_to_the_end(
    rule: str, fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*SERVEGEN[1:], "--seed", "1", "--to-s", "3600", "--thin", "0.02", "--fill", f"{rule},models=weighted"]
    traffic = converted(SERVEGEN[0], tmp_path / "t.parquet", *options)
    found = replayed(capsys, traffic, fleet, tmp_path / "r.parquet")
    check_totals(found, pl.read_parquet(tmp_path / "r.parquet"))
    assert found["traffic"]["stamp"]["synthetic"]


def test_settings_come_from_file_and_options(fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traffic = converted("ragpulse_week1.parquet", tmp_path / "t.parquet", "--fill", "max_length=service_cap:4096,models=weighted")
    plain = replayed(capsys, traffic, fleet, tmp_path / "r.parquet")
    toml = tmp_path / "s.toml"
    toml.write_text("ceiling_tokens = 512\njob_timeout_s = 150.0\n")
    lower = replayed(capsys, traffic, fleet, tmp_path / "l.parquet", "--settings", str(toml), "--set", "floor_tokens=256")
    assert lower["settings"]["differences"] == {"ceiling_tokens": 512, "floor_tokens": 256, "job_timeout_s": 150.0}
    assert lower["settings"]["digest"] != plain["settings"]["digest"]
    assert lower["outcomes"]["free"] < plain["outcomes"]["free"]
    nobody = replayed(capsys, traffic, fleet, tmp_path / "n.parquet", "--set", "rule=no_one_free")
    assert nobody["outcomes"]["free"] == 0
    returned = replayed(capsys, traffic, fleet, tmp_path / "b.parquet", "--set", "client=resend", "--set", "rule=no_one_free")
    check_totals(returned, pl.read_parquet(tmp_path / "b.parquet"))


def test_recorded_outcomes_are_compared_with(fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        "created,models,requester,max_length,recorded_outcome",
        "2026-11-29T18:00:00Z,,anonymous,80,free",
        "2026-11-29T18:00:01Z,,anonymous,16000,refused",
        "2026-11-29T18:00:02Z,,anonymous,80,refused",
        "2026-11-29T18:00:03Z,,anonymous,80,",
    ]
    traffic = tmp_path / "t.csv"
    traffic.write_text("\n".join(rows))
    found = replayed(capsys, traffic, fleet, tmp_path / "r.parquet")
    assert (found["agreement"]["recorded"], found["agreement"]["equal"]) == (3, 2)
    assert found["traffic"]["stamp"] is None


def test_a_fleet_of_other_days_is_told_and_can_be_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traffic, fleet, out = tmp_path / "t.csv", tmp_path / "f.csv", tmp_path / "r.parquet"
    traffic.write_text(
        "created,models,requester,max_length\n2025-09-01T18:00:00Z,m,anonymous,80\n2025-09-01T19:00:00Z,m,anonymous,80\n"
    )
    fleet.write_text(
        "worker_id,online_from,online_to,models,max_length,max_context_length,speed\n"
        "w,2026-11-01T17:00:00Z,2026-11-01T18:30:00Z,m,512,4096,10\n"
    )
    command = ["replay", "--traffic", str(traffic), "--fleet", str(fleet), "--out", str(out)]
    assert main(command) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["statuses"]["completed"] == 0
    assert "problem: fleet: 2 of 2 requests come outside the time of the fleet, 2026-11-01 17:00 to" in said.err
    assert "--move-fleet moves the fleet" in said.err
    assert main([*command, "--move-fleet"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["statuses"]["completed"] == 1
    assert found["fleet"]["stamp"] == {"moved_s": -426 * 86_400.0}
    assert "note: fleet: 1 of 2 requests come outside the time of the fleet, 2025-09-01 17:00 to" in said.err


@pytest.mark.parametrize(
    ("named", "lost", "level"), [(("m", "m|other"), 0, ""), (("other", "m"), 1, "note"), (("other", "x"), 2, "problem")]
)
def test_requests_of_models_that_no_worker_serves_are_told(
    named: tuple[str, str], lost: int, level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traffic, fleet, out = tmp_path / "t.csv", tmp_path / "f.csv", tmp_path / "r.parquet"
    rows = [f"2025-09-01T18:0{place}:00Z,{models},anonymous,80" for place, models in enumerate(named)]
    traffic.write_text("\n".join(["created,models,requester,max_length", *rows]) + "\n")
    fleet.write_text(
        "worker_id,online_from,online_to,models,max_length,max_context_length,speed\nw,2025-09-01T17:00:00Z,,m,512,4096,10\n"
    )
    assert main(["replay", "--traffic", str(traffic), "--fleet", str(fleet), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["of_unserved_models"] == lost
    sentence = f"{level}: models: no worker of this fleet serves the models of {lost} of 2 requests; fill models another way"
    assert (sentence in said.err) == bool(lost)
    assert ("no worker of this fleet" in said.err) == bool(lost)


def test_no_requests_and_no_workers_work(fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    none = tmp_path / "none.csv"
    none.write_text("created,models,requester,max_length\n")
    found = replayed(capsys, none, fleet, tmp_path / "r.parquet")
    assert found["requests"] == 0
    check_totals(found, pl.read_parquet(tmp_path / "r.parquet"))
    empty = tmp_path / "fleet.csv"
    empty.write_text("worker_id,online_from,models,max_length,max_context_length,speed\n")
    traffic = converted("burstgpt1.first400.csv", tmp_path / "t.parquet")
    found = replayed(capsys, traffic, empty, tmp_path / "r.parquet")
    assert found["statuses"]["completed"] == 0
    check_totals(found, pl.read_parquet(tmp_path / "r.parquet"))


def test_bad_input_is_refused_with_exit_2_and_nothing_written(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "t.csv", tmp_path / "bad.csv"
    good.write_text("created,models,requester,max_length\n2026-11-29T18:00:00Z,,anonymous,80\n")
    bad.write_text("created,models,requester,max_length\n2026-11-29T18:00:00,,anonymous,80\n")
    out = str(tmp_path / "r.parquet")
    for arguments, message in [
        ([str(bad), str(fleet), out], "row 0, column created: '2026-11-29T18:00:00' must be an instant with its time zone"),
        ([str(good), str(good), out], "fleet"),
        ([str(tmp_path / "none"), str(fleet), out], "No such file"),
        ([str(good), str(fleet), str(tmp_path / "r.csv")], "must end in .parquet"),
        ([str(good), str(fleet), out, "--set", "floor_tokens=9999"], "floor_tokens"),
        ([str(good), str(fleet), out, "--set", "nonsense=1"], "is not a setting"),
        ([str(good), str(fleet), out, "--settings", str(tmp_path / "none.toml")], "cannot be read"),
    ]:
        traffic, workers, target, *more = arguments
        capsys.readouterr()
        assert main(["replay", "--traffic", traffic, "--fleet", workers, "--out", target, *more]) == EXIT_BAD_INPUT
        stdout, stderr = capsys.readouterr()
        assert stdout == ""
        assert message in stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "t.csv"]


def test_the_help_names_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--help"]) == 0
    text = capsys.readouterr().out
    for option in ("--traffic", "--fleet", "--settings", "--set", "--out", "--json"):
        assert option in text
