"""``budget replay|status|explain`` from the command line (design §3)."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from horde_policy.budget import Ledger, Limit, TokenUsage
from horde_policy.budget.money import to_usd
from horde_policy.cli.main import EXIT_BAD_INPUT, main
from horde_policy.frames.usage import BUDGET_RUN
from tests.unit.budget.recorded import azure_requests
from tests.unit.budget.shapes import body_of, held

TRACES = Path(__file__).parents[3] / "data" / "traces"
PRICES = Path(__file__).parents[3] / "data" / "prices" / "example-hosted.toml"

Capture = pytest.CaptureFixture[str]


def run_json(capsys: Capture, *arguments: object) -> Any:
    assert main([str(a) for a in ("budget", *arguments, "--json")]) == 0
    return json.loads(capsys.readouterr().out)


def run_text(capsys: Capture, *arguments: object) -> str:
    assert main([str(a) for a in ("budget", *arguments)]) == 0
    return capsys.readouterr().out


def refused(capsys: Capture, *arguments: object) -> str:
    assert main([str(a) for a in ("budget", *arguments)]) == EXIT_BAD_INPUT
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_replay_writes_the_run_and_prints_the_summary(tmp_path: Path, capsys: Capture) -> None:
    requests, out = tmp_path / "requests.parquet", tmp_path / "run.parquet"
    azure_requests().write_parquet(requests)
    common = ("replay", "--requests", requests, "--prices", PRICES, "--limit", "0.50", "--out", out)
    found = run_json(capsys, *common, "--reserve", "0,1024", "--reserve", "4096")
    assert [row["setting"] for row in found["settings"]] == ["reserve=0", "reserve=1024", "reserve=4096", "full", "input", "stop"]
    assert found["limit_usd"] == "0.5"
    assert found["settings"][2]["is_default"]
    run = pl.read_parquet(out)
    for row in found["settings"]:  # dollars as exact decimals, never a binary float, and no name says another unit
        assert not [name for name in row if "pico" in name]
        money = {name: value for name, value in row.items() if name.endswith("_usd")}
        assert set(money) == {"settled_usd", "overspend_usd", "bound_at_overspend_usd", "largest_bound_usd", "worst_over_usd"}
        paid = int(run.filter(pl.col("setting") == row["setting"])["cost_pico"].sum())
        assert money["settled_usd"] == f"{to_usd(paid):f}"
    assert BUDGET_RUN.checked(run).height == 6 * 300
    text = run_text(capsys, *common)
    assert "300 requests, limit $0.5000 a window (total, UTC)" in text
    assert "reserve=4096 (default)" in text
    weekly = run_json(capsys, *common, "--window", "week", "--zone", "Europe/Berlin", "--reserve", "4096")
    assert (weekly["window"], weekly["zone"]) == ("week", "Europe/Berlin")


@pytest.mark.parametrize("link", ["same", "symbolic", "hard"])
@pytest.mark.parametrize("name", ["requests", "prices"])
def test_replay_never_writes_over_what_it_reads(name: str, link: str, tmp_path: Path, capsys: Capture) -> None:
    files = {"requests": tmp_path / "requests.parquet", "prices": tmp_path / "prices.toml"}
    azure_requests().head(5).write_parquet(files["requests"])
    files["prices"].write_bytes(PRICES.read_bytes())
    before = {key: path.read_bytes() for key, path in files.items()}
    out = tmp_path / "out.parquet"
    if link == "same":
        out = files[name]
    elif link == "symbolic":
        out.symlink_to(files[name])
    else:
        out.hardlink_to(files[name])
    given = ("--requests", files["requests"], "--prices", files["prices"], "--limit", "1", "--out", out)
    assert "is an input of the same command, which would be lost" in refused(capsys, "replay", *given)
    assert {key: path.read_bytes() for key, path in files.items()} == before


def test_replay_reads_csv(tmp_path: Path, capsys: Capture) -> None:
    requests = tmp_path / "requests.csv"
    azure_requests().head(20).with_columns(pl.col("created").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")).write_csv(requests)
    found = run_json(
        capsys,
        "replay",
        "--requests",
        requests,
        "--prices",
        PRICES,
        "--limit",
        "5",
        "--reserve",
        "4096",
        "--out",
        tmp_path / "o.parquet",
    )
    assert found["settings"][0]["admitted"] == 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--limit", "-1"), "limit: '-1' must be at least 0 dollars"),
        (("--limit", "many"), "limit: 'many' must be a decimal number"),
        (("--reserve", "1,x"), "setting reserve: 'x' must be a comma list"),
        (("--requests", "none.parquet"), "trace: 'none.parquet' cannot be read"),
        (("--requests", str(PRICES)), "are no columns of a supported format"),
        (("--prices", "none.toml"), "price table: 'none.toml' cannot be read"),
        (("--window", "year"), "setting window: 'year' must be one of"),
        (("--out", "/no/such/folder/o.parquet"), "must lie in a folder that is there"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(tmp_path: Path, capsys: Capture, change: tuple[str, str], message: str) -> None:
    requests = tmp_path / "requests.parquet"
    azure_requests().head(3).write_parquet(requests)
    options = {"--requests": requests, "--prices": PRICES, "--limit": "5", "--reserve": "4096", "--out": tmp_path / "o.parquet"}
    options[change[0]] = change[1]
    error = refused(capsys, "replay", *(part for pair in options.items() for part in pair))
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1


def test_status_shows_a_ledger_as_it_stands(store_url: str, capsys: Capture) -> None:
    with Ledger(store_url, owner="copy-1") as ledger:
        ledger.set_budget("team [bold]", Limit("month", "5", open_cap=9))
        ledger.admit("team [bold]", held(m=None), request_id="open [red]")
        ledger.admit("team [bold]", held(), request_id="done")
        ledger.settle(("done", 1), TokenUsage(fresh=10_000, output=500))
    found = run_json(capsys, "status", "--ledger", store_url)
    assert found["agrees"]
    [window] = found["budgets"][0]["windows"]
    assert (window["spent_usd"], window["held_usd"], window["open"], window["open_cap"]) == ("0.0375", "0.09144", 1, 9)
    assert window["worst_case"]["text"] == "unbounded: 1 of 1 open requests has no output limit or declared ceiling"
    assert window["by_label"]["settled"] == {"requests": 1, "usd": "0.0375"}
    assert [hold["request_id"] for hold in found["open"]] == ["open [red]"]
    text = run_text(capsys, "status", "--ledger", store_url)
    for part in (
        "team [bold]",
        "$0.0375",
        "unbounded: 1 of 1",
        "request open [red], attempt 1, by copy-1",
        "counters equal their rows",
    ):
        assert part in text
    assert "p_" not in text


@pytest.mark.parametrize(
    ("inputs", "kind"), [("certain", "certain"), ("declared", "declared"), ("declared=2.5", "declared"), ("measured", "measured")]
)
def test_status_names_the_assumption_about_the_input(tmp_path: Path, capsys: Capture, inputs: str, kind: str) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.set_budget("team", Limit("day", "5"))
        ledger.admit("team", held(), request_id="open")
        ledger.admit("team", held(), request_id="done")
        ledger.settle(("done", 1), TokenUsage(fresh=16_300, output=500))
    worst = run_json(capsys, "status", "--ledger", path, "--inputs", inputs)["budgets"][0]["windows"][0]["worst_case"]
    assert worst["kind"] == kind
    expected = {"certain": "0.98856", "declared": "0.43956", "declared=2.5": "0.46356", "measured": "0.43746"}
    assert worst["stated_usd"] == expected[inputs]


def test_status_of_what_is_no_ledger(tmp_path: Path, capsys: Capture) -> None:
    assert "there is no ledger" in refused(capsys, "status", "--ledger", tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    assert "URL" in refused(capsys, "status", "--ledger", "mysql://u:secret@h/d")
    Ledger(tmp_path / "empty.db").close()
    assert "must be certain, declared" in refused(capsys, "status", "--ledger", tmp_path / "empty.db", "--inputs", "all")
    assert "needs settled requests" in refused(capsys, "status", "--ledger", tmp_path / "empty.db", "--inputs", "measured")
    assert "counters equal their rows" in run_text(capsys, "status", "--ledger", tmp_path / "empty.db")


def test_explain_says_the_hold_line_by_line(tmp_path: Path, capsys: Capture) -> None:
    body = tmp_path / "body.json"
    body.write_bytes(body_of(model="large", max_tokens=1, max_completion_tokens=32_000))
    found = run_json(capsys, "explain", body, "--prices", PRICES, "--limit", "5")
    size = len(body.read_bytes())
    tokens = -(-size // 4)
    assert [line["label"] for line in found["lines"]] == ["input", "output", "hold"]
    assert found["lines"][0] == {
        "label": "input",
        "tokens": tokens,
        "usd_per_million": "3",
        "usd": f"0.{3 * tokens:06d}".rstrip("0"),
        "note": f"{size} bytes ÷ 4, rounded up",
    }
    assert found["lines"][1]["usd"] == "0.06144"
    assert found["worst_case"]["certain"]["bounded"]
    assert found["bound_without_count_usd"] is not None
    text = run_text(capsys, "explain", body, "--prices", PRICES)
    for part in ("large (chat), price example/large@2023-01-01", "0.06144", "max_completion_tokens", "times the limit over"):
        assert part in text


def test_explain_takes_model_route_and_reservation(tmp_path: Path, capsys: Capture) -> None:
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"contents": [], "cachedContent": "c/1"}))
    assert "--model names it" in refused(capsys, "explain", body, "--prices", PRICES)
    found = run_json(
        capsys,
        "explain",
        body,
        "--prices",
        PRICES,
        "--model",
        "large",
        "--reserve",
        "0",
        "--route",
        "/v1beta/models/large:generateContent",
    )
    assert (found["api"], found["unseen"], found["overspend_per_limit"]) == ("gemini", ["cached content"], None)
    assert found["worst_case"]["certain"]["text"] == "unbounded: 1 of 1 open requests has no output limit or declared ceiling"
    text = run_text(capsys, "explain", body, "--prices", PRICES, "--model", "large")
    assert "not in the input estimate: cached content" in text
    assert "without a count of requests: no bound" in text
    assert "is not covered" in refused(capsys, "explain", body, "--prices", PRICES, "--route", "/v1/embeddings")
    assert "has no price" in refused(capsys, "explain", body, "--prices", PRICES, "--model", "unheard-of")
    assert "cannot be read" in refused(capsys, "explain", tmp_path / "none.json", "--prices", PRICES)


def test_a_public_trace_is_replayed_with_two_price_tables(tmp_path: Path, capsys: Capture) -> None:
    trace = TRACES / "azure2023_conv.head300.csv"
    common = ("replay", "--requests", trace, "--out", tmp_path / "run.parquet", "--reserve", "4096", "--limit", "0.40")
    hosted = run_json(capsys, *common, "--prices", PRICES)
    own = run_json(capsys, *common, "--prices", PRICES.with_name("example-per-token.toml"), "--asks", "ladder", "--pace", "60")
    assert hosted["assumed"] == [
        "asked for as agents: 32,000, 8,192 or 4,096",
        "answered in 0.5 s and 30 tok/s",
        "input estimate exact",
        "all priced as large",
    ]
    assert own["assumed"][:2] == ["asked for the next usual size", "answered in 0.5 s and 60 tok/s"]
    first, second = (found["settings"][0] for found in (hosted, own))
    assert first["requests"] == second["requests"] == 300
    assert first["admitted"] < second["admitted"] == 300
    text = run_text(capsys, *common, "--prices", PRICES, "--asks", "none", "--input-ratio", "1.63")
    assert "assumed, since a trace does not say: asked for no limit at all" in text
    assert "1.63 real input tokens to one estimated" in text
    assert "unbounded" in text
    for wrong, rule in (("--asks", "must be one of agents, ladder, none"), ("--model", "has no price")):
        assert rule in refused(capsys, *common, "--prices", PRICES, wrong, "much")


def test_explain_says_that_a_request_is_unbounded_once_and_a_model_that_is_not_named_without_a_none(
    tmp_path: Path, capsys: Capture
) -> None:
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"model": "large", "messages": []}))
    assert run_text(capsys, "explain", body, "--prices", PRICES).count("can cost beyond the hold") == 1
    body.write_text(json.dumps({"model": "large", "messages": [], "max_tokens": 100_000}))
    assert run_text(capsys, "explain", body, "--prices", PRICES).count("can cost beyond the hold") == 2
    body.write_text(json.dumps({"contents": []}))
    told = refused(capsys, "explain", body, "--prices", PRICES)
    assert "request body, model: is not named (--model names it)" in told
    assert "None" not in told


@pytest.mark.parametrize("fields", [{"input": "x"}, {"prompt": "x"}])
def test_explain_says_when_only_the_shape_told_the_api(fields: dict[str, Any], tmp_path: Path, capsys: Capture) -> None:
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"model": "large", **fields}))
    assert f"Held as {'responses' if 'input' in fields else 'completions'} by its shape alone" in run_text(
        capsys, "explain", body, "--prices", PRICES
    )
    assert run_json(capsys, "explain", body, "--prices", PRICES)["api_from"] == "shape"
    route = "/v1/responses" if "input" in fields else "/v1/completions"
    assert "by its shape alone" not in run_text(capsys, "explain", body, "--prices", PRICES, "--route", route)
    assert "is not covered" in refused(capsys, "explain", body, "--prices", PRICES, "--route", "/v1/embeddings")
