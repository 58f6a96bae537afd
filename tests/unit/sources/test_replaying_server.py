"""The replaying server itself: it answers as recorded, is switched while it runs, and runs by hand."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.replaying_server import ReplayingServer
from tests.unit.sources.conftest import RECORDED

ROOT = Path(__file__).parents[3]
FILES = [path for path in sorted(RECORDED.glob("*/*.json")) if path.name not in ("what_was_queued.json", "about.json")]


@pytest.fixture(scope="module")
def browser() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, verify=False) as opened:
        yield opened


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_recorded_answer_comes_as_it_was(browser: httpx.Client, path: Path) -> None:
    recorded = json.loads(path.read_text(encoding="utf-8"))
    request, response = recorded["request"], recorded["response"]
    with ReplayingServer(path.parent) as server:
        answer = browser.get(server.url + request["path"], params=request["query"])
    assert answer.status_code == response["status"]
    assert answer.headers["content-type"] == response["headers"]["Content-Type"]
    assert answer.headers.get("retry-after") == response["headers"].get("Retry-After")
    if response.get("body") is None:
        assert answer.text == response["body_text"]
    else:
        assert answer.json() == response["body"]


def test_it_is_switched_while_it_runs(browser: httpx.Client, server: ReplayingServer) -> None:
    url = f"{server.url}/api/v2/workers?type=text"
    assert len(browser.get(url).json()) == 13
    server.folder = RECORDED / "calm_snapshot"
    assert len(browser.get(url).json()) == 12
    server.fail("status", status=503, on="/api/v2/workers", times=1)
    assert [browser.get(url).status_code for _ in range(2)] == [503, 200]
    assert server.counts == {"/api/v2/workers": 4}
    assert browser.get(f"{server.url}/nothing").status_code == 404


def test_it_runs_by_hand(browser: httpx.Client) -> None:
    command = [sys.executable, "-m", "tests.replaying_server", "--folder", str(RECORDED / "snapshot")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as running:
        assert running.stdout is not None
        url = running.stdout.readline().split()[-1]
        try:
            workers = f"{url}/api/v2/workers?type=text"
            assert len(browser.get(workers).json()) == 13
            browser.post(f"{url}/_replay?fail=throttled")
            refused = browser.get(workers)
            assert (refused.status_code, refused.headers["retry-after"], "rc" in refused.json()) == (429, "59", False)
            folder = str(RECORDED / "fresh_server")
            browser.post(f"{url}/_replay", params={"heal": "1", "folder": folder})
            assert browser.get(workers).json() == []
        finally:
            running.terminate()
