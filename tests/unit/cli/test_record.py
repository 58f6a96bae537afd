"""``record`` as a command: a process that polls a local server, serves metrics, tells a webhook, and ends in order."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from horde_policy.board.rows import make_board
from horde_policy.cli.main import EXIT_BAD_INPUT, main
from horde_policy.clock import SystemClock
from horde_policy.history.reading import events_between, snapshot_at
from horde_policy.history.status import recorder_statuses
from horde_policy.history.store import HistoryStore
from horde_policy.settings import AllowanceSettings
from tests.churning_server import ChurningServer, differences
from tests.replaying_server import ReplayingServer

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HORDE_POLICY_PROMETHEUS_TENANT", "HORDE_POLICY_PROMETHEUS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HORDE_URL", "HORDE_POLICY_HISTORY", "HORDE_POLICY_WEBHOOK", "HORDE_POLICY_HISTORY_KEEP_DAYS"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def recording(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "horde_policy", "record", *arguments]
    with subprocess.Popen(command, cwd=ROOT, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def until(process: "subprocess.Popen[str]", words: str) -> str:
    """Read its standard error up to a line with these words."""
    assert process.stderr is not None
    read = ""
    for line in process.stderr:
        read += line
        if words in line:
            return read
    raise AssertionError(f"it ended before it said {words!r}: {read}")


def test_it_records_serves_metrics_and_ends_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "history.sqlite"
    with (
        ChurningServer(seed=4) as server,
        recording("--url", server.url, "--store", str(store), "--metrics-port", "0", "--keep-days", "30") as process,
    ):
        said = until(process, "recording\n")
        port = re.search(r"metrics at http://127\.0\.0\.1:(\d+)/metrics", said)
        assert port is not None
        metrics = httpx.get(f"http://127.0.0.1:{port.group(1)}/metrics").text
        process.send_signal(signal.SIGTERM)
        rest = until(process, "stopped")
        assert process.wait(20) == 0
    assert "Traceback" not in said + rest
    opened = HistoryStore(store, read_only=True)
    found = snapshot_at(opened, SystemClock().now())
    assert differences(found, 4) == []
    board = make_board(found, AllowanceSettings())
    for row in board.rows:
        assert f'horde_policy_model_eligible_workers{{model="{row.model}"}} {row.measure.eligible_workers}.0' in metrics
    assert recorder_statuses(opened, SystemClock().now())[0].state == "stopped"
    assert events_between(opened, board.snapshot.fetched_at.replace(year=2000), SystemClock().now())["kind"][0] == "started"
    opened.close()
    assert main(["snapshot", "--store", str(store), "--json"]) == 0
    told = {row["model"]: row["allowance_tokens"] for row in json.loads(capsys.readouterr().out)["models"]}
    assert told == {row.model: row.measure.allowance_tokens for row in board.rows}


def test_a_server_that_is_away_is_said_and_waited_for(tmp_path: Path) -> None:
    store = tmp_path / "history.sqlite"
    with ReplayingServer(ROOT / "data" / "recorded" / "snapshot") as server:
        server.fail("throttled", retry_after="30")
        with recording("--url", server.url, "--store", str(store), "--webhook", f"{server.url}/T0/secret") as process:
            said = until(process, "throttled: ")
            assert "asks to wait 30 s" in said
            assert "secret" not in said
            time.sleep(0.2)
            opened = HistoryStore(store, read_only=True)
            (standing,) = recorder_statuses(opened, SystemClock().now())
            opened.close()
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        asked = [path for path in server.counts if path == "/api/v2/workers"]
    assert standing.state == "throttled"
    assert len(asked) == 1, "a 429 is not asked again"


def test_a_metrics_port_that_is_taken_leaves_no_new_store_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port, store = str(taken.getsockname()[1]), tmp_path / "history.sqlite"
        asked = ["record", "--url", "http://127.0.0.1:9", "--store", str(store), "--metrics-port", port]
        assert main(asked) == EXIT_BAD_INPUT
    assert f"--metrics-port: '127.0.0.1:{port}' cannot be served on" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "x.sqlite"], "--url: must be given, here or as HORDE_URL"),
        (["--url", "https://horde.example"], "--store: must be given, here or as HORDE_POLICY_HISTORY"),
        (["--url", "horde.example", "--store", "x.sqlite"], "must be an address like https://host"),
        (["--url", "https://horde.example", "--store", "mysql://me:secret@h/d"], "must be an SQLite file or a postgresql:// URL"),
        (["--url", "https://horde.example", "--store", "none/x.sqlite"], "the store's file cannot be opened"),
        (["--url", "https://horde.example", "--store", "x.sqlite", "--interval", "9.9"], "--interval: 9.9 must be from 10 to"),
        (["--url", "https://horde.example", "--store", "x.sqlite", "--interval", "nan"], "--interval: nan must be from 10 to"),
        (["--url", "https://horde.example", "--store", "x.sqlite", "--keep-days", "0"], "--keep-days: 0.0 must be above 0"),
        (["--url", "https://horde.example", "--store", "x.sqlite", "--keep-days", "0.01"], "must be at least an hour"),
        (["--url", "https://horde.example", "--store", "x.sqlite", "--webhook", "hooks"], "setting --webhook"),
        (["--url", "https://horde.example", "--store", "x.sqlite", "--metrics-port", "70000"], "cannot be served on"),
        (["--url", "https://horde.example", "--store", "x.sqlite", "--max-length", "0"], "max_length: 0 must be"),
        (["--url", "https://horde.example", "--store", "x.sqlite", "--set", "floor_tokens=0"], "setting floor_tokens: 0"),
        (["--prometheus", "https://p.example"], "--store: must be given, here or as HORDE_POLICY_HISTORY"),
        (["--prometheus", "p.example", "--store", "x.sqlite"], "setting --prometheus"),
        (["--prometheus", "https://me:secret@p.example", "--store", "x.sqlite"], "setting --prometheus"),
        (
            ["--prometheus", "https://p.example", "--store", "x.sqlite", "--url", "https://horde.example"],
            "cannot be given with --url",
        ),
        (["--prometheus", "https://p.example", "--store", "x.sqlite", "--metrics-port", "0"], "has no gauges and alerts"),
        (["--prometheus", "https://p.example", "--store", "x.sqlite", "--interval", "5"], "--interval: 5.0 must be from 10 to"),
        (["--prometheus", "https://p.example", "--store", "x.sqlite", "--tenant", "a b"], "HORDE_POLICY_PROMETHEUS_TENANT"),
        (["--prometheus", "https://p.example", "--store", "x.sqlite", "--mapping", "none.toml"], "none.toml"),
    ],
)
def test_what_cannot_be_recorded_is_named_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["record", *arguments]) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert message in err
    assert list(tmp_path.iterdir()) == [], "no store is left behind"
    assert "secret" not in err
    assert out == ""


def test_a_keep_setting_of_the_environment_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HORDE_POLICY_HISTORY_KEEP_DAYS", "a week")
    assert main(["record", "--url", "https://horde.example", "--store", "x.sqlite"]) == EXIT_BAD_INPUT
    assert "setting HORDE_POLICY_HISTORY_KEEP_DAYS: 'a week' must be a number of days" in capsys.readouterr().err
