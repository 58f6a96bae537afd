"""Traffic and fleet files for a replay: three containers, the same frame; bad input refused whole with row, column, rule."""

import json
from pathlib import Path

import polars as pl
import pytest

from horde_policy.errors import FrameError, InputError
from horde_policy.frames.fleet import FLEET
from horde_policy.frames.traffic import TRAFFIC
from horde_policy.imports.quirks import doubled
from horde_policy.imports.replay_inputs import STAMP_KEY, load_fleet, load_traffic, stamp_of
from horde_policy.imports.traces import load_trace

HEADER = "created,models,requester,max_length,output_tokens,chat"
ROWS = [
    "2026-11-29T18:00:00Z,a|b,anonymous,512,100,true",
    "2026-11-29T18:00:01.5+00:00,,registered,80,,",
    "2026-11-29T19:00:02+01:00,c,shared_key,4096,0,false",
]


def csv_of(folder: Path, *rows: str, header: str = HEADER, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_csv_json_lines_and_parquet_give_one_frame(tmp_path: Path) -> None:
    from_csv = load_traffic(csv_of(tmp_path, *ROWS)).frame
    assert TRAFFIC.checked(from_csv).equals(from_csv)
    assert from_csv["models"].to_list() == [["a", "b"], [], ["c"]]
    assert from_csv["output_tokens"].to_list() == [100, 80, 0]
    from_csv.write_parquet(tmp_path / "t.parquet")
    assert load_traffic(tmp_path / "t.parquet").frame.equals(from_csv)
    lines = [
        json.dumps({**row, "created": row["created"].isoformat()}) for row in from_csv.drop("request_id").iter_rows(named=True)
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    assert load_traffic(tmp_path / "t.jsonl").frame.equals(from_csv)


def test_columns_that_the_contract_does_not_name_are_ignored(tmp_path: Path) -> None:
    rows = [f"{row},=evil" for row in ROWS]
    assert load_traffic(csv_of(tmp_path, *rows, header=HEADER + ",note")).frame.width == len(TRAFFIC.columns)


@pytest.mark.parametrize(
    ("place", "cell", "message"),
    [
        (0, "2026-11-29T18:00:00", "row 1, column created: '2026-11-29T18:00:00' must be an instant with its time zone"),
        (0, "", "row 1, column created: None must not be absent"),
        (2, "root", "row 1, column requester: 'root' must be one of anonymous, registered, shared_key"),
        (2, "", "row 1, column requester: None must not be absent"),
        (3, "-80", "row 1, column max_length: -80 must be at least 1"),
        (3, "0", "row 1, column max_length: 0 must be at least 1"),
        (3, "16385", "row 1, column max_length: 16385 must be at most 16384"),
        (3, "80.5", "row 1, column max_length: '80.5' must be a whole number"),
        (4, "-1", "row 1, column output_tokens: -1 must be at least 0"),
        (5, "perhaps", "row 1, column chat: 'perhaps' must be true or false"),
    ],
)
def test_a_cell_that_breaks_a_rule_refuses_the_file_by_row_column_value_and_rule(
    place: int, cell: str, message: str, tmp_path: Path
) -> None:
    cells = ROWS[1].split(",")
    cells[place] = cell
    with pytest.raises(InputError, match=f"traffic, {message}"):
        load_traffic(csv_of(tmp_path, ROWS[0], ",".join(cells), ROWS[2]))


def test_a_missing_column_is_named_with_what_the_file_has(tmp_path: Path) -> None:
    path = csv_of(tmp_path, "2026-11-29T18:00:00Z,m,80", header="created,models,max_length", name="mine.csv")
    with pytest.raises(FrameError, match=r"column requester: is missing \(of the columns it wants, 'mine.csv' has: created"):
        load_traffic(path)


def test_an_unsorted_or_doubled_or_empty_file_works_and_says_so(tmp_path: Path) -> None:
    assert [p.code for p in load_traffic(csv_of(tmp_path, *reversed(ROWS))).problems] == ["out_of_order"]
    assert [p.code for p in load_traffic(csv_of(tmp_path, *ROWS, *ROWS)).problems] == ["doubled", "out_of_order"]
    empty = load_traffic(csv_of(tmp_path))
    assert (empty.frame.height, [p.code for p in empty.problems]) == (0, ["no_rows"])
    assert load_traffic(csv_of(tmp_path, *ROWS)).problems == ()


def test_rows_that_differ_by_their_id_alone_are_not_called_doubled(tmp_path: Path) -> None:
    path = csv_of(tmp_path, f"{ROWS[0]},a", f"{ROWS[0]},a#2", header=HEADER + ",request_id")
    assert load_traffic(path).problems == ()
    assert load_trace(path).problems == ()


def test_an_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    rows = [f"{row},same" for row in ROWS]
    with pytest.raises(InputError, match="row 1, column request_id: 'same' must be unique"):
        load_traffic(csv_of(tmp_path, *rows, header=HEADER + ",request_id"))


FLEET_HEADER = "worker_id,online_from,online_to,models,max_length,max_context_length,speed"


def test_a_fleet_from_csv(tmp_path: Path) -> None:
    path = csv_of(tmp_path, "w,2026-11-29T00:00:00Z,,a|b,512,4096,4.5", header=FLEET_HEADER)
    fleet = load_fleet(path).frame
    assert FLEET.checked(fleet).row(0, named=True)["slow"] is True
    for row, message in [
        ("w,2026-11-29T00:00:00Z,,a,512,4096,0", "row 0, column speed: 0.0 must be a finite number above 0"),
        ("w,2026-11-29T00:00:00Z,2026-11-28T00:00:00Z,a,512,4096,1", "must be after online_from"),
        ("w,2026-11-29T00:00:00,,a,512,4096,1", "must be an instant with its time zone"),
    ]:
        with pytest.raises(InputError, match=message):
            load_fleet(csv_of(tmp_path, row, header=FLEET_HEADER))


def test_the_stamp_of_a_parquet_file_is_read_and_of_others_is_null(tmp_path: Path) -> None:
    path = csv_of(tmp_path, *ROWS)
    assert load_traffic(path).stamp is None
    frame = load_traffic(path).frame
    for text, stamp in [('{"kind": "traffic"}', {"kind": "traffic"}), ("{", None), ("[1]", None)]:
        frame.write_parquet(tmp_path / "t.parquet", metadata={STAMP_KEY: text})
        assert stamp_of(tmp_path / "t.parquet") == stamp
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "t.parquet")
    assert stamp_of(tmp_path / "t.parquet") is None


def test_a_broken_row_is_shown_as_it_stands_and_an_instant_as_it_is_typed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"traffic, row 1: '2026-11-29T18:00:00Z,a' must have 6 fields and has 2"):
        load_traffic(csv_of(tmp_path, ROWS[0], "2026-11-29T18:00:00Z,a"))
    row = "w,2026-11-29T00:00:00Z,2026-11-28T00:00:00Z,a,512,4096,1"
    with pytest.raises(InputError, match="column online_to: 2026-11-28T00:00:00Z must be after online_from"):
        load_fleet(csv_of(tmp_path, row, header=FLEET_HEADER))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (1, "row 1 repeats the row before it: the file may be doubled, then its load counts twice"),
        (2, "rows 2 to 3 repeat the rows before them: the file was doubled, its load counts twice"),
    ],
)
def test_two_equal_rows_may_be_a_doubled_file_and_more_are_one(rows: int, sentence: str) -> None:
    frame = pl.DataFrame({"at": list(range(rows)) * 2})
    assert [problem.text for problem in doubled(frame)] == [sentence]
