import csv
import io
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.errors import FrameError
from horde_policy.views.exports import Stamp, file_name, safe_cell, to_csv, to_parquet

STAMP = Stamp(
    source="=cmd|' /C calc'!A0",
    synthetic=False,
    fetched_at=datetime(2026, 11, 29, 12, 4, tzinfo=UTC),
    settings_digest="0a1b2c3d",
    max_length_tokens=80,
    max_context_tokens=2048,
)


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u00a0=1", "|x", "%x", "＝1+1", "＋1", "－1", "＠x"],
)
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert str(safe_cell(text)).startswith("'")


@given(st.text())
def test_no_cell_of_an_export_begins_a_formula(text: str) -> None:
    data = to_csv(pl.DataFrame({"name": [text]}, schema={"name": pl.String}), {"name": "name"}, STAMP)
    rows = rows_of(data)
    assert len(rows) == 2, "a line break in a name makes no row"
    assert not rows[1][0].lstrip().startswith(("=", "+", "-", "@", "\t", "\r"))
    assert rows[1][1].startswith("'=")


def test_numbers_stay_numbers_and_unknown_is_an_empty_cell() -> None:
    frame = pl.DataFrame({"x": [-1.5, None], "b": [True, False], "l": [["a", "=b"], []]})
    rows = rows_of(to_csv(frame, {"x": "x (s)", "b": "b", "l": "l"}, STAMP))
    assert [row[:3] for row in rows] == [["x (s)", "b", "l"], ["-1.5", "yes", "a; =b"], ["", "no", ""]]


def test_every_row_carries_the_stamp() -> None:
    rows = rows_of(to_csv(pl.DataFrame({"x": [1, 2]}), {"x": "x"}, STAMP))
    assert rows[0][1:] == [
        "source",
        "data of (UTC)",
        "settings digest",
        "size asked (tokens)",
        "context asked (tokens)",
    ]
    assert [row[2:] for row in rows[1:]] == [["2026-11-29T12:04:00Z", "0a1b2c3d", "80", "2048"]] * 2


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(FrameError, match="column wait_s"):
        to_csv(pl.DataFrame({"x": [1]}), {"wait_s": "wait (s)"}, STAMP)


def test_parquet_keeps_types_nulls_and_the_stamp() -> None:
    frame = pl.DataFrame({"x": [1.5, None], "n": ["=1", None]})
    data = to_parquet(frame, STAMP)
    assert pl.read_parquet(io.BytesIO(data)).equals(frame)
    assert pl.read_parquet_metadata(io.BytesIO(data))["source"] == STAMP.source


def test_a_synthetic_source_says_so_in_each_row() -> None:
    synthetic = Stamp(
        source="demo",
        synthetic=True,
        fetched_at=STAMP.fetched_at,
        settings_digest="0a1b2c3d",
        max_length_tokens=80,
        max_context_tokens=2048,
    )
    assert rows_of(to_csv(pl.DataFrame({"x": [1]}), {"x": "x"}, synthetic))[1][1] == "demo (synthetic)"


def test_a_hostile_source_makes_a_plain_file_name() -> None:
    assert file_name("overview", STAMP, "csv") == "overview_cmd-C-calc-A0_20261129T120400Z_0a1b2c3d.csv"
