"""``traffic convert``: every bundled trace through the command, options refused where typed, nothing half-written."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from horde_policy.cli.main import EXIT_BAD_INPUT, main
from horde_policy.frames.traffic import TRAFFIC
from horde_policy.imports.replay_inputs import load_traffic, stamp_of
from tests.unit.traffic.paths import RECORDED, TRACES

FILES = sorted(path.name for path in TRACES.iterdir() if path.suffix != ".md" and not path.name.startswith("servegen"))
RULES = ["max_length=tight,models=any", "max_length=ladder,models=weighted,requester=0.7/0.1,can_pay=0.5"]


def converted(capsys: pytest.CaptureFixture[str], source: Path, out: Path, *options: str) -> dict[str, Any]:
    assert main(["traffic", "convert", str(source), "--out", str(out), "--json", *options]) == 0
    stdout, _ = capsys.readouterr()
    stamp = json.loads(stdout)
    assert isinstance(stamp, dict)
    return stamp


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["traffic", "convert", *arguments]) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("rule", RULES, ids=["tight", "ladder"])
@pytest.mark.parametrize("file", FILES)
def test_every_bundled_trace_is_converted_and_its_totals_add_up(
    file: str, rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "t.parquet"
    stamp = converted(capsys, TRACES / file, out, "--fill", rule)
    assert stamp["rows_read"] == stamp["kept"] + sum(stamp["refused"].values())
    assert stamp["requests"] == stamp["kept"] == pl.read_parquet(out).height
    read = load_traffic(out)
    assert read.stamp == stamp == stamp_of(out)
    assert TRAFFIC.checked(read.frame).height == stamp["requests"]
    assert stamp["fill"].startswith(rule)
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_servegen_is_drawn_and_labelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates, sizes = (str(TRACES / f"servegen_deepseek-r1_chunk-{part}") for part in ("35-trace.csv", "52-dataset.json"))
    options = ["--sizes", sizes, "--seed", "4", "--to-s", "1200", "--thin", "0.01"]
    stamp = converted(capsys, Path(rates), tmp_path / "t.parquet", *options)
    assert stamp["synthetic"]
    assert stamp["trace"] == "servegen_deepseek-r1_seed4"
    assert stamp["requests"] + stamp["thinned"] == stamp["kept"] == round(8.34 * 600) + round(10.79 * 600)
    assert "draw states its seed" in refused(capsys, rates, "--sizes", sizes, "--out", str(tmp_path / "u.parquet"))


def test_a_server_log_keeps_no_alias(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = "New text2text prompt with ID a-b by Alice#7: max_length:80 * n:2 == 160.0 Total Tokens"
    line = f"INFO       | 2026-11-29 18:00:00 | horde.x:activate:1 - {message}\n"
    log, key, out = tmp_path / "horde.log", tmp_path / "key", tmp_path / "t.parquet"
    log.write_text(line)
    key.write_bytes(b"0123456789abcdef")
    stamp = converted(capsys, log, out, "--alias-key-file", str(key), "--fill", "output=0.2")
    assert (stamp["format"], stamp["requests"]) == ("server_log", 2)
    assert b"Alice" not in out.read_bytes()
    assert load_traffic(out).frame["output_tokens"].to_list() == [16, 16]


def test_scaling_and_weights_go_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--thin",
        "0.5",
        "--superpose",
        "3",
        "--seed",
        "9",
        "--fill",
        "models=weighted",
        "--models-from",
        str(RECORDED / "calm_snapshot"),
    ]
    stamp = converted(capsys, TRACES / "azure2023_conv.head300.csv", tmp_path / "t.parquet", *options)
    assert (stamp["superpose"], stamp["thin"], stamp["seed"]) == (3, 0.5, 9)
    assert stamp["kept"] * 3 == stamp["requests"] + stamp["thinned"]
    assert stamp["models_from"] == "Calm test server: requests of the day"


def test_models_are_mapped_by_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "map.toml"
    table.write_text('"GPT-4" = ["koboldcpp/a", "b"]\nChatGPT = "c"\n')
    source, out = TRACES / "burstgpt1.first400.csv", tmp_path / "t.parquet"
    converted(capsys, source, out, "--fill", "models=mapped", "--model-map", str(table))
    assert {tuple(models) for models in load_traffic(out).frame["models"]} == {("koboldcpp/a", "b"), ("c",)}
    for text, message in [
        ("x = [", "is not TOML"),
        ("ChatGPT = 5", "must be a model's name"),
        ("ChatGPT = []", "must be a model's name"),
    ]:
        table.write_text(text)
        assert message in refused(capsys, str(source), "--out", str(out), "--fill", "models=mapped", "--model-map", str(table))


def test_the_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["traffic", "--help"]) == 0
    assert "convert" in capsys.readouterr().out
    assert main(["traffic", "convert", "--help"]) == 0
    text = capsys.readouterr().out
    for option in ("--format", "--fill", "--thin", "--superpose", "--seed", "--out", "--json", "--models-from", "--segment"):
        assert option in text


def test_bad_options_are_refused_before_anything_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = str(TRACES / "azure2023_conv.head300.csv"), str(tmp_path / "t.parquet")
    for options, message in [
        (["--fill", "max_length=huge"], "fill rule, max_length: 'huge' must be tight"),
        (["--fill", "max_length=service_cap:-1"], "'-1' must be a whole number of at least 1"),
        (["--thin", "2"], "thin: 2.0 must be a share"),
        (["--superpose", "0"], "superpose: 0 must be 1 to"),
        (["--format", "xml"], "format: 'xml' must be one of"),
        (["--origin", "2026-11-29T18:00:00"], "--origin: '2026-11-29T18:00:00' must be an instant with its time zone"),
        (["--models-from", str(RECORDED / "fresh_server"), "--fill", "models=weighted"], "has no request counts"),
        (["--models-from", str(tmp_path), "--fill", "models=weighted"], "holds no workers_text.json"),
        (["--fill", "models=mapped"], "needs a map"),
        (["--alias-key-file", str(tmp_path / "none")], "cannot be read"),
    ]:
        assert message in refused(capsys, source, "--out", out, *options)
    for bad in (str(tmp_path / "t.csv"), str(tmp_path / "nowhere" / "t.parquet")):
        assert "--out: " in refused(capsys, source, "--out", bad)
    assert "No such file" in refused(capsys, str(tmp_path / "none.csv"), "--out", out)
    assert list(tmp_path.iterdir()) == []


def test_a_refused_file_leaves_the_old_output_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, bad = tmp_path / "t.parquet", tmp_path / "bad.csv"
    converted(capsys, TRACES / "azure2023_conv.head300.csv", out)
    before = out.read_bytes()
    bad.write_text("created,max_length\n2026-11-29T18:00:00Z,-1\n")
    assert "row 0, column max_length: -1 must be at least 1" in refused(capsys, str(bad), "--out", str(out))
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "t.parquet"]


def test_hostile_text_cannot_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a\x1b[2J\u202e.csv"
    source.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n")
    assert main(["traffic", "convert", str(source), "--out", str(tmp_path / "t.parquet")]) == 0
    for stream in capsys.readouterr():
        assert "\x1b" not in stream
        assert "\u202e" not in stream


# --- from metrics ----------------------------------------------------------------------------------------------------

EXPORT = "".join(
    f'horde_text_free_allowance_decisions{{horde_requester="{who}",horde_outcome="{outcome}",horde_requested_size="{asked}",'
    f'horde_allowance_size="{given}",horde_chat="{chat}"}} {count} {at}\n'
    for at, grown in ((1_790_000_000_000, 0), (1_790_000_060_000, 1), (1_790_000_120_000, 3))
    for who, outcome, asked, given, chat, step in (
        ("anonymous", "free", "<=512", "2049-4096", "false", 10),
        ("registered", "funded", "2049-4096", "513-1024", "true", 4),
        ("shared_key", "refused", ">4096", "2049-4096", "false", 1),
    )
    for count in (5 + grown * step,)
)


def test_traffic_is_rebuilt_from_exported_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export, out = tmp_path / "metrics.prom", tmp_path / "t.parquet"
    export.write_text(EXPORT)
    frames = []
    for seed in ("1", "1", "2"):
        options = ["--seed", seed, "--fill", "models=weighted,output=0.2", "--out", str(out), "--json"]
        assert main(["traffic", "from-metrics", str(export), *options]) == 0
        stdout, stderr = capsys.readouterr()
        stamp = json.loads(stdout)
        assert stamp["reconstruction"]
        assert stamp["trace"] == f"metrics_seed{seed}"
        assert stamp["requests"] == stamp["rows_read"] == 3 * 10 + 3 * 4 + 3 * 1
        assert "a reconstruction of 45 requests" in stderr
        frames.append(pl.read_parquet(out))
    assert frames[0].equals(frames[1])
    assert not frames[0].equals(frames[2])
    counts = frames[0].group_by("requester", "recorded_outcome", "chat").len().sort("requester")
    assert counts.rows() == [
        ("anonymous", "free", False, 30),
        ("registered", "funded", True, 12),
        ("shared_key", "refused", False, 3),
    ]
    assert load_traffic(out).frame.height == 45


def test_bad_exports_and_options_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export, out = tmp_path / "metrics.prom", str(tmp_path / "t.parquet")
    export.write_text(EXPORT)
    for arguments in (
        [str(tmp_path / "none.prom")],
        [str(export), "--sizes-within", "even"],
        [str(export), "--seed", "-1"],
        [str(export), "--from", "yesterday"],
        [str(export), "--mapping", str(tmp_path / "none.toml")],
        [str(export), "--fill", "max_length=huge"],
    ):
        assert main(["traffic", "from-metrics", *arguments, "--out", out]) == EXIT_BAD_INPUT
        stdout, stderr = capsys.readouterr()
        assert stdout == ""
        assert stderr.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.prom"]


def test_traffic_without_a_request_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = str(TRACES / "azure2023_conv.head300.csv"), str(tmp_path / "t.parquet")
    for options in (["--from-s", "1e9"], ["--thin", "0"]):
        assert main(["traffic", "convert", source, "--out", out, *options]) == 0
        assert "problem: traffic: no request is left" in capsys.readouterr().err
    export = tmp_path / "metrics.prom"
    export.write_text(EXPORT)
    assert main(["traffic", "from-metrics", str(export), "--from", "2090-01-01T00:00:00Z", "--out", out]) == 0
    assert "problem: traffic: no request is left" in capsys.readouterr().err
