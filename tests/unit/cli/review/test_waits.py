from pathlib import Path

import polars as pl
import pytest

from tests.unit.cli.review.running import answer, output, refused
from tests.unit.review.weeks import made_week

WEEK = made_week()


def test_waits_by_kind_and_requester(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    document = answer(capsys, "waits", str(week_file))
    groups = {(group["kind"], group["requester"]): group for group in document["waits"]}
    assert set(groups) == {("estimated", None), ("queue", None)} | {
        ("queue", requester) for requester in ("anonymous", "registered", "shared_key")
    }
    own = WEEK.waits.filter((pl.col("kind") == "queue") & (pl.col("requester") == "registered"))
    registered = groups["queue", "registered"]
    assert registered["n"] == [own["count_low"].sum()] * 2
    within = float(own.filter(pl.col("upper_s") <= 300)["count_low"].sum()) / float(own["count_low"].sum())
    assert registered["at_most"]["300.0"]["share"] == pytest.approx([within, within])
    sums = WEEK.wait_sums.filter((pl.col("kind") == "queue") & (pl.col("requester") == "registered"))
    assert groups["estimated", None]["mean_s"][0] > 0
    assert sums.is_empty()
    quantile = registered["quantiles"]["0.5"]
    assert quantile["low_s"] < quantile["high_s"]
    assert document["warning"].startswith("The two are not the same requests")
    assert document["mean_allowance_tokens"][0] <= document["mean_allowance_tokens"][1]


def test_the_question_about_funded_waits(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    funded = answer(capsys, "waits", str(week_file), "--over", "450", "--above", "0.2", "--ratio", "1")["funded"]
    assert (funded["over_s"], funded["above"]) == (450, 0.2)
    assert funded["answer"] == "no"
    assert funded["held_nothing"]["ratio"] == 1
    unknown = answer(capsys, "waits", str(week_file), "--ratio", "any")["funded"]
    assert unknown["held_nothing"]["ratio"] == "+Inf"
    assert unknown["answer"] == "record_needed"
    assert unknown["share_over"] == [0, 1]


def test_a_table_for_people(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    text = output(capsys, "waits", str(week_file), "--quantile", "0.5,0.999")
    assert "measured, shared key" in text
    assert "0.999" in text
    assert "up to 300 s" in text
    assert "The two are not the same requests" in text
    assert "per-request record" in text


def test_without_waits_it_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "decisions.prom"
    path.write_text('horde_text_free_allowance_decisions{horde_outcome="free",horde_requester="registered"} 5\n')
    assert answer(capsys, "waits", str(path))["waits"] == []
    assert "hold no queue wait of a registered requester" in output(capsys, "waits", str(path))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quantile", "2"], "--quantile: '2' must be a number above 0"),
        (["--quantile", "half"], "--quantile: 'half'"),
        (["--ratio", "half"], "--ratio: 'half' must be"),
        (["--ratio", "0.5"], "ratio: 0.5 must be at least 1"),
        (["--above", "1"], "above: 1.0 must be a share"),
    ],
)
def test_bad_input_is_refused(
    capsys: pytest.CaptureFixture[str],
    week_file: Path,
    arguments: list[str],
    message: str,
) -> None:
    assert message in refused(capsys, "waits", str(week_file), *arguments)
