import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from horde_policy.review.loading import load_exports
from horde_policy.review.ranges import TimeRange
from horde_policy.views.review_headlines import nothing_in_range
from tests.unit.cli.review.running import answer, output, refused


def test_findings_for_machines_and_people(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    document = answer(capsys, "week", str(week_file))
    assert [finding["severity"] for finding in document["findings"]] == sorted(
        (finding["severity"] for finding in document["findings"]), key=["wrong", "bad", "open", "note", "fine"].index
    )
    refusals = next(finding for finding in document["findings"] if finding["code"] == "refused")
    assert refusals["text"].startswith("19.0 % of all text requests were refused")
    assert refusals["figure"]["share"][0] == pytest.approx(383 / 2016)
    assert refusals["n"] == [2016, 2016]
    assert document["sections"]["refused"]["no_data"] is None
    text = output(capsys, "week", str(week_file))
    assert "1. [attention] 19.0 % of all text requests were refused" in text
    assert re.search(r"refused: 383\. 19\.0 % \(95 % interval [\d.]+ to [\d.]+ %\) · n = 2,016 requests", text)


def test_the_report_is_written_whole(capsys: pytest.CaptureFixture[str], week_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    output(capsys, "week", str(week_file), "--out", str(out), "--app-url", "https://review.example/app")
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.rstrip().endswith("</html>")
    assert 'href="https://review.example/app/decisions?' in text
    assert list(tmp_path.iterdir()) == [out]


def test_notes_are_drawn_and_listed(capsys: pytest.CaptureFixture[str], week_file: Path, tmp_path: Path) -> None:
    notes, out = tmp_path / "notes.toml", tmp_path / "report.html"
    notes.write_text('[[note]]\nat = 2026-11-25T12:00:00+01:00\ntext = "<b>new ceiling</b>"\n')
    output(capsys, "week", str(week_file), "--out", str(out), "--notes", str(notes))
    text = out.read_text(encoding="utf-8")
    assert "25 Nov 2026 11:00:00 UTC: &lt;b&gt;new ceiling&lt;/b&gt;" in text
    assert "\\u003cb>new ceiling" not in text
    assert "&lt;b&gt;new ceiling" in text.split('data-for="chart-refused-2"')[1]
    notes.write_text("[[note]]\nat = 2026-11-25T12:00:00\ntext = 'x'\n")
    assert "note 1, at" in refused(capsys, "week", str(week_file), "--notes", str(notes))


def test_the_question_is_carried_on(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    document = answer(capsys, "week", str(week_file), "--over", "450", "--above", "0.2", "--ratio", "1")
    funded = next(finding for finding in document["findings"] if finding["code"] == "funded_wait")
    assert funded["figures"]["verdict"]["answer"] == "no"
    assert funded["state"] == {"over": ["450"], "above": ["0.2"]}


def test_sections_without_data_say_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "decisions.prom"
    path.write_text('horde_text_free_allowance_decisions{horde_outcome="free",horde_requester="registered"} 5\n')
    text = output(capsys, "week", str(path))
    assert "Are the estimates honest? The exports hold no waits." in text
    assert "What did funded requests wait? The exports hold no queue wait of a registered requester." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "report.pdf"], "must end in .html"),
        (["--out", "no/such/folder/report.html"], "must lie in a folder that is there"),
        (["--app-url", "javascript:alert(1)"], "must be an address"),
        (["--app-url", "http://user:secret@host"], "must be an address"),
    ],
)
def test_bad_input_is_refused(
    capsys: pytest.CaptureFixture[str],
    week_file: Path,
    arguments: list[str],
    message: str,
) -> None:
    assert message in refused(capsys, "week", str(week_file), *arguments)


def test_a_range_without_a_count_is_told_as_the_page_tells_it(
    capsys: pytest.CaptureFixture[str], week_file: Path, tmp_path: Path
) -> None:
    whole = load_exports([week_file])
    said = nothing_in_range(whole, whole.within(TimeRange(datetime(2030, 1, 1, tzinfo=UTC))))
    assert said is not None
    for command in ("week", "decisions"):
        text = output(capsys, command, str(week_file), "--from", "2030-01-01")
        assert said in text
        assert "hold no decisions" not in text, "they hold some, of another range"
    document = answer(capsys, "week", str(week_file), "--from", "2030-01-01")
    assert (document["nothing_in_range"], document["findings"]) == (said, [])
    assert answer(capsys, "week", str(week_file))["nothing_in_range"] is None
    out = tmp_path / "report.html"
    assert said.rstrip(".") in refused(capsys, "week", str(week_file), "--from", "2030-01-01", "--out", str(out))
    assert not out.exists()
