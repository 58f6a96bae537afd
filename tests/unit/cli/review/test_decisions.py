import csv
import io
from pathlib import Path

import polars as pl
import pytest

from horde_policy.cli.main import main
from tests.unit.cli.review.running import answer, output, refused
from tests.unit.review.weeks import made_week

WEEK = made_week()


def test_counts_and_shares_are_those_of_the_week(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    document = answer(capsys, "decisions", str(week_file))
    assert document["by"] == ["requester", "outcome"]
    assert document["decisions"] == [2016, 2016]
    assert document["synthetic"] is False
    for row in document["rows"]:
        own = WEEK.decisions.filter(pl.col("requester") == row["requester"])
        counted = own.filter(pl.col("outcome") == row["outcome"])["count_low"].sum()
        assert row["count_low"] == row["count_high"] == counted
        assert row["share_low"] == pytest.approx(float(counted) / float(own["count_low"].sum()))
        assert 0 <= row["sampling_low"] <= row["share_low"] <= row["sampling_high"] <= 1
    assert sum(row["count_low"] for row in document["rows"]) == 2016
    assert {cell["level"] for cell in document["cells"]} <= {"special", "undecided"}


def test_dimensions_filters_ranges_and_steps(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    arguments = ("--by", "time", "--by", "outcome", "--where", "outcome=refused,outcome=free", "--where", "chat=false")
    days = ("--from", "2026-11-24", "--to", "2026-11-26T00:00:00Z", "--step", "1d")
    document = answer(capsys, "decisions", str(week_file), *arguments, *days)
    assert {row["time"] for row in document["rows"]} == {"2026-11-24T00:00:00+00:00", "2026-11-25T00:00:00+00:00"}
    assert {row["outcome"] for row in document["rows"]} == {"refused", "free"}
    own = WEEK.decisions.filter(
        (pl.col("interval_start").dt.day().is_in([24, 25])) & pl.col("outcome").is_in(["refused", "free"]) & ~pl.col("chat")
    )
    assert sum(row["count_low"] for row in document["rows"]) == own["count_low"].sum()
    assert document["range"] == {"start": "2026-11-24T00:00:00+00:00", "end": "2026-11-26T00:00:00+00:00"}


def test_csv_has_units_a_stamp_and_no_formula(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(output(capsys, "decisions", str(week_file), "--by", "outcome", "--csv"))))
    assert [row["outcome"] for row in rows] == ["free", "funded", "refused", "downgraded"]
    assert sum(float(row["at least (requests)"]) for row in rows) == 2016
    assert {row["data"] for row in rows} == {"week.prom"}
    assert {row["looked at"] for row in rows} == {"everything"}
    assert rows[0]["from (UTC)"] == "2026-11-23T00:00:00Z"


def test_a_table_for_people(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    text = output(capsys, "decisions", str(week_file), "--by", "requester")
    assert "2,016 decisions, 23 Nov 2026 00:00:00 UTC to 30 Nov 2026 00:00:00 UTC" in text
    assert "shared key" in text
    assert "95 %" in text


def test_a_what_if(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    document = answer(capsys, "decisions", str(week_file), "--what-if", "floor_tokens=1024")
    answered = document["what_if"]
    assert answered["floor_tokens"] == 1024
    assert answered["after"]["free"][0] > answered["before"]["free"][0]
    assert sum(row["count_low"] for row in answered["rows"]) == 2016
    text = output(capsys, "decisions", str(week_file), "--what-if", "floor_tokens=1024")
    assert "with ceiling 4,096 and floor 1,024, waits as they were" in text


def test_two_ranges_compared(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    ranges = ("--to", "2026-11-25", "--against-from", "2026-11-25", "--by", "outcome")
    document = answer(capsys, "decisions", str(week_file), *ranges)
    refusals = next(row for row in document["rows"] if row["outcome"] == "refused")
    assert refusals["first_n_low"] == 2 * 24 * 12
    assert refusals["second_n_low"] == 5 * 24 * 12
    difference = refusals["second_share_low"] - refusals["first_share_low"]
    assert refusals["difference_low"] == pytest.approx(difference)
    assert refusals["sampling_difference_low"] < difference < refusals["sampling_difference_high"]
    text = output(capsys, "decisions", str(week_file), *ranges)
    assert "against" in text
    assert "points" in text


@pytest.mark.parametrize(
    ("ranges", "hours"),
    [
        (("--to", "2026-11-25", "--against-from", "2026-11-25"), 0),
        (("--to", "2026-11-25", "--against-from", "2026-11-24"), 24),
        (("--against-from", "2026-11-24"), 6 * 24),
    ],
)
def test_decisions_on_both_sides_of_a_comparison_are_told(
    capsys: pytest.CaptureFixture[str], week_file: Path, ranges: tuple[str, ...], hours: int
) -> None:
    document = answer(capsys, "decisions", str(week_file), *ranges, "--by", "outcome")
    assert document["shared"] == [hours * 12, hours * 12]
    main(["decisions", str(week_file), "--against", str(week_file), *ranges, "--by", "outcome"])
    said = capsys.readouterr().err
    assert ("decisions are on both sides, so the sides are not independent" in said) == (hours > 0)


def test_the_settings_in_force_decide_what_is_impossible(capsys: pytest.CaptureFixture[str], week_file: Path) -> None:
    document = answer(capsys, "decisions", str(week_file), "--set", "ceiling_tokens=2048")
    assert "allowance_out_of_range" in {cell["code"] for cell in document["cells"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "colour"], "dimension: 'colour' must be one of requester"),
        (["--where", "outcome=gratis"], "--where, outcome: 'gratis' must be one of free"),
        (["--where", "refused"], "--where: 'refused' must have the form"),
        (["--step", "0m"], "--step: '0m' must be"),
        (["--from", "yesterday"], "--from: 'yesterday' must be an instant"),
        (["--from", "2026-11-30", "--to", "2026-11-29"], "must be before the end"),
        (["--what-if", "wait_full_s=10"], "must change ceiling_tokens or floor_tokens"),
        (["--what-if", "ceiling_tokens=4096"], "must change ceiling_tokens or floor_tokens"),
        (["--json", "--csv"], "must be one of the two"),
        (["--against-from", "2026-11-24", "--by", "time"], "has no place in a comparison"),
    ],
)
def test_bad_input_is_refused(
    capsys: pytest.CaptureFixture[str],
    week_file: Path,
    arguments: list[str],
    message: str,
) -> None:
    assert message in refused(capsys, "decisions", str(week_file), *arguments)


def test_files_that_are_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "cannot be read" in refused(capsys, "decisions", str(tmp_path / "missing.prom"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "README.md").write_text("nothing here")
    assert "has no file of exported metrics" in refused(capsys, "decisions", str(tmp_path / "empty"))
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    assert "picture.png" in refused(capsys, "decisions", str(picture))


def test_a_folder_says_what_it_is(capsys: pytest.CaptureFixture[str], week_file: Path, tmp_path: Path) -> None:
    (tmp_path / "monday.prom").write_bytes(week_file.read_bytes())
    (tmp_path / "about.json").write_text('{"title": "=a made-up week", "synthetic": true}')
    document = answer(capsys, "decisions", str(tmp_path))
    assert (document["title"], document["synthetic"]) == ("=a made-up week", True)
    table = output(capsys, "decisions", str(tmp_path / "monday.prom"), "--csv")
    assert "'=a made-up week (synthetic)" in table
    assert "(made up)" in output(capsys, "decisions", str(tmp_path))
    (tmp_path / "about.json").write_text("[]")
    assert "must be an object with title and synthetic" in refused(capsys, "decisions", str(tmp_path))


def test_hostile_names_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    evil = tmp_path / "evil\x1b[2J.prom"
    evil.write_text('horde_text_free_allowance_decisions{horde_outcome="gra\\ntis"} 5\n')
    for arguments in (("decisions", str(evil)), ("waits", str(evil)), ("week", str(evil))):
        assert main(arguments) == 0
        out, err = capsys.readouterr()
        assert "\x1b" not in out + err


VALUES = ("10", "20", "30", "NaN", "40", "+Inf", "-3", "50")
SERIES = 'horde_text_free_allowance_decisions_total{horde_outcome="free",horde_requester="anonymous"}'


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Return an export of eight looks, of which one has no value and two cannot be, beside a series of something else."""
    lines = [f"{SERIES} {value} {1790000000000 + 60000 * look}" for look, value in enumerate(VALUES)]
    file = tmp_path / "damaged.prom"
    file.write_text("\n".join([*lines, "other_metric 5 1790000000000", ""]), encoding="utf-8")
    return file


@pytest.mark.parametrize("command", ["decisions", "week", "waits"])
def test_no_sample_is_left_out_without_a_word(capsys: pytest.CaptureFixture[str], damaged: Path, command: str) -> None:
    assert main([command, str(damaged)]) == 0
    told = capsys.readouterr().err
    assert "note: damaged.prom: 1 sample was left out: no value (NaN: the series went away)" in told
    assert "problem: damaged.prom: 2 samples were left out: a negative or infinite count" in told
    assert "note: 1 sample of 1 other name was not read; --json lists them" in told


def test_what_was_left_out_is_listed_for_machines_and_qualifies_the_week(
    capsys: pytest.CaptureFixture[str], damaged: Path
) -> None:
    document = answer(capsys, "decisions", str(damaged))
    assert {(left["subject"], left["count"]) for left in document["left_out"]} == {
        ("(samples)", 1),
        ("(samples)", 2),
        ("other_metric", 1),
    }
    week = answer(capsys, "week", str(damaged))
    assert any("2 samples were left out" in finding["text"] for finding in week["findings"])
    assert "data_clean" not in week["sections"]["data"]["findings"]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return an export of decisions of which some cannot be and some only a special case makes."""
    name = "horde_text_free_allowance_decisions_total"
    kinds = {
        'horde_outcome="free",horde_requested_size=">4096",horde_allowance_size="<=512"': 40,
        'horde_outcome="refused",horde_requested_size=">4096",horde_allowance_size="<=512"': 60,
        'horde_outcome="funded",horde_requested_size="<=512",horde_allowance_size="2049-4096"': 7,
    }
    lines = [
        f'{name}{{horde_requester="registered",horde_chat="false",{labels}}} {grown} {at}'
        for labels, counted in kinds.items()
        for grown, at in ((0, 1790000000000), (counted, 1790003600000))
    ]
    file = tmp_path / "broken.prom"
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return file


def test_what_the_rule_does_not_allow_is_named_in_every_form(capsys: pytest.CaptureFixture[str], broken: Path) -> None:
    arguments = ("decisions", str(broken), "--by", "requested_size,allowance_size")
    text = output(capsys, *arguments)
    assert "cannot be" in text.splitlines()[1]
    assert "40 decisions: cannot be: a request over the allowance is not free (A13, A14)" in text
    assert "7 decisions: only a special case makes them: not over the allowance" in text
    rows = {row["requested size"]: row for row in csv.DictReader(io.StringIO(output(capsys, *arguments, "--csv")))}
    cell = rows[">4096"]
    assert (float(cell["at least (requests)"]), float(cell["cannot be, at most (requests)"])) == (100, 40)
    assert cell["why"] == "a request over the allowance is not free (A13, A14)"
    assert float(rows["<=512"]["only a special case, at most (requests)"]) == 7
    document = answer(capsys, *arguments)
    assert {row["requested_size"]: row["impossible_high"] for row in document["rows"]} == {">4096": 40, "<=512": 0}


@pytest.mark.parametrize("by", ["outcome", "time,outcome", "chat", "time"])
def test_what_cannot_be_is_counted_in_rows_by_anything(capsys: pytest.CaptureFixture[str], broken: Path, by: str) -> None:
    rows = answer(capsys, "decisions", str(broken), "--by", by)["rows"]
    # which step of time they belong to is not known: each may hold them all
    assert {row["impossible_high"] for row in rows if row["impossible_high"]} == {40}
    assert len(rows) > 1 or by == "chat"
    assert all(row["impossible_high"] <= row["count_high"] for row in rows)
    only = answer(capsys, "decisions", str(broken), "--by", by, "--where", "outcome=funded")["rows"]
    assert sum(row["impossible_high"] for row in only) == 0
    assert "cannot be" not in output(capsys, "decisions", str(broken), "--by", by, "--where", "outcome=funded")
