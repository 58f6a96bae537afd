"""``probe`` as a command against a replaying server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from horde_policy.cli.main import EXIT_BAD_INPUT, EXIT_UNREACHABLE, main
from tests.replaying_server import ReplayingServer

ROOT = Path(__file__).parents[3]
ERRORS = ROOT / "tests" / "data" / "horde_errors"
PATH = "/api/v2/generate/text/async"
MODEL = "koboldcpp/mini-magnum-12b-v1.1"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("HORDE_URL", raising=False)


@pytest.fixture
def server() -> Iterator[ReplayingServer]:
    with ReplayingServer(ROOT / "data" / "recorded" / "snapshot") as running:
        running.answer_with(PATH, ERRORS / "dry_run_anon_over_allowance.json")
        yield running


def test_both_figures_and_why_they_differ(server: ReplayingServer, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["probe", "--url", server.url, "--model", MODEL, "--max-length", "1024"]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["answer"]["outcome"], found["answer"]["stated_tokens"], found["answer"]["rule"]) == ("refused", 512, "old")
    assert (found["ours"]["outcome"], found["ours"]["allowance_tokens"]) == ("no_eligible_worker", 512)
    assert found["agrees"] is False, "the same figure, but one says that kudos would help and the other not (A19)"
    assert any("previous rule" in reason for reason in found["reasons"])
    sent = [json.loads(one.body) for one in server.asked if one.method == "POST"]
    assert [body["dry_run"] for body in sent] == [True]
    before = len(server.asked)
    assert main(arguments) == EXIT_BAD_INPUT
    assert "was probed less than a minute ago" in capsys.readouterr().err
    assert len(server.asked) == before, "nothing is asked of the horde too soon"
    assert main(["probe", "--url", server.url, "--model", "another", "--max-length", "80"]) == 0
    text = capsys.readouterr().out
    assert "server: refused (403, KudosUpfront), states 512 tokens" in text
    assert "ours: " in text


def test_without_a_snapshot_the_answer_stands_alone(server: ReplayingServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.fail("status", on="/api/v2/workers")
    assert main(["probe", "--url", server.url, "--model", MODEL, "--max-length", "1024", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ours"], found["agrees"]) == (None, None)
    assert found["answer"]["stated_tokens"] == 512


def test_what_cannot_be_probed_is_named(server: ReplayingServer, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["--model", "m", "--max-length", "80"], "--url: must be given"),
        (["--url", server.url, "--model", "m", "--max-length", "0"], "max_length: 0 must be"),
        (["--url", server.url, "--model", "", "--max-length", "80"], "must be named"),
        (["--url", "horde", "--model", "m", "--max-length", "80"], "must be an address"),
    ):
        assert main(["probe", *arguments]) == EXIT_BAD_INPUT
        assert message in capsys.readouterr().err
    server.fail("drop")
    assert main(["probe", "--url", server.url, "--model", "m", "--max-length", "80"]) == EXIT_UNREACHABLE
    assert "cannot be reached" in capsys.readouterr().err
