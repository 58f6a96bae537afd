"""``history collect``, and ``decisions``, ``waits`` and ``week`` with ``--history``: a week out of exports that overlap."""

import json
from pathlib import Path
from typing import Any

import pytest

from horde_policy.cli.main import EXIT_BAD_INPUT, main
from horde_policy.history.store import HistoryStore
from horde_policy.review.loading import DEMO_WEEK

EXPORTS = [str(path) for path in sorted(DEMO_WEEK.glob("*.gz"))]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The demo week, a process at a time, the second one twice."""
    path = str(tmp_path_factory.mktemp("kept") / "history.sqlite")
    for export in (EXPORTS[1], EXPORTS[0], EXPORTS[1]):
        assert main(["history", "collect", path, export, "--name", "demo week"]) == 0
    return path


def test_what_is_kept_is_told(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    (kept,) = answer(capsys, "history", "info", store)["exports"]
    assert (kept["name"], kept["synthetic"], kept["collected_to"]) == ("demo week", True, None)
    assert kept["days"] in (7, 8)
    assert kept["title"].startswith("Demo week")
    again = answer(capsys, "history", "collect", store, *EXPORTS, "--name", "demo week")
    assert again["changed_days"] == 0
    assert again["of_days"] == kept["days"]
    assert main(["history", "info", store]) == 0
    assert "metrics of demo week (made up): " in capsys.readouterr().out


@pytest.mark.parametrize("command", ["decisions", "waits", "week"])
def test_the_commands_say_the_same_of_what_is_kept_as_of_the_files(
    store: str, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    capsys.readouterr()
    from_files = answer(capsys, command, *EXPORTS)
    from_history = answer(capsys, command, "--history", store)
    (kept,) = from_history.pop("files")
    assert (kept["name"], kept["form"]) == ("demo week", "history")
    assert [file["form"] for file in from_files.pop("files")] == ["otlp_json", "otlp_json"]
    assert from_history == from_files


def test_a_range_and_a_comparison_are_of_what_is_kept(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    span = ("--from", "2025-09-11", "--to", "2025-09-12", "--against-from", "2025-09-12", "--against-to", "2025-09-13")
    compared = answer(capsys, "decisions", "--history", store, "--kept", "demo week", *span)
    from_files = answer(capsys, "decisions", *EXPORTS, *span)
    assert compared["rows"] == from_files["rows"]
    assert len(compared["rows"]) > 0


def test_what_makes_no_sense_is_refused(store: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    capsys.readouterr()
    assert "or --history must be given, one of the two" in refused(capsys, "decisions")
    assert "or --history must be given, one of the two" in refused(capsys, "waits", EXPORTS[0], "--history", store)
    assert "'nobody' must name one of those that are kept: demo week" in refused(
        capsys, "week", "--history", store, "--kept", "nobody"
    )
    empty = str(tmp_path / "empty.sqlite")
    HistoryStore(empty).close()
    assert "keeps no metrics exports" in refused(capsys, "decisions", "--history", empty)
    assert "there is no such history store" in refused(capsys, "decisions", "--history", str(tmp_path / "none.sqlite"))
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    refused(capsys, "history", "collect", empty, str(broken))
    assert answer(capsys, "history", "info", empty)["exports"] == []


def test_what_cannot_be_kept_leaves_no_store_behind(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    untimed = tmp_path / "metrics.prom"
    name = "horde_text_free_allowance_decisions"
    untimed.write_text(f'# TYPE {name} counter\n{name}{{horde_outcome="free"}} 3\n', encoding="utf-8")
    store = tmp_path / "history.sqlite"
    capsys.readouterr()
    assert "cannot be kept: say scraped_at" in refused(capsys, "history", "collect", str(store), str(untimed))
    assert not list(tmp_path.glob("history.sqlite*"))


def test_kept_metrics_are_pruned_with_the_rest(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "history.sqlite")
    assert main(["history", "collect", path, EXPORTS[0]]) == 0
    capsys.readouterr()
    before = answer(capsys, "history", "info", path)["exports"][0]
    cut = before["last"][:10] + "T00:00:00Z"
    assert main(["history", "prune", path, "--before", cut]) == 0
    assert " of kept metrics pruned" in capsys.readouterr().out
    after = answer(capsys, "history", "info", path)["exports"][0]
    assert 0 < after["days"] < before["days"]
    assert after["last"] == before["last"]
