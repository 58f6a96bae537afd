"""Columns by name out of CSV, JSON lines and Parquet: kinds, packings, bad rows refused whole or by row."""

import bz2
import gzip
from pathlib import Path

import polars as pl
import pytest
import zstandard

from horde_policy.errors import FrameError, InputError
from horde_policy.imports.cells import Kind
from horde_policy.imports.tables import read_table

KINDS: dict[str, Kind] = {"at": "instant", "size": "whole", "speed": "real", "chat": "flag", "who": "text", "models": "names"}
GOOD_CSV = "at,size,speed,chat,who,models,other\n2026-11-29T18:00:00Z,5,1.5,true,a,m|n,x\n2026-11-29 20:00:00.25+02:00,,,,,,\n"
GOOD_JSON = (
    '{"at": "2026-11-29T18:00:00Z", "size": 5, "speed": 1.5, "chat": true, "who": "a", "models": ["m", "n"], "other": {}}\n'
    '{"at": "2026-11-29T20:00:00.25+02:00"}\n'
)


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(("name", "content"), [("t.csv", GOOD_CSV), ("t.jsonl", GOOD_JSON)])
@pytest.mark.parametrize("by_row", [False, True])
def test_every_kind_is_read(name: str, content: str, by_row: bool, tmp_path: Path) -> None:
    table = read_table(written(tmp_path, name, content), KINDS, "t", by_row=by_row)
    assert table.rows_read == 2
    assert not table.refused.counts
    first, second = table.frame.rows(named=True)
    assert {k: v for k, v in first.items() if k not in ("at", "row")} == {
        "size": 5,
        "speed": 1.5,
        "chat": True,
        "who": "a",
        "models": ["m", "n"],
    }
    assert first["at"].isoformat() == "2026-11-29T18:00:00+00:00"
    assert second["at"].isoformat() == "2026-11-29T18:00:00.250000+00:00"
    assert [second[k] for k in ("size", "speed", "chat", "who")] == [None] * 4
    assert not second["models"]
    assert "other" not in table.frame.columns


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, zstandard.ZstdCompressor().compress], ids=["gzip", "bzip2", "zstd"]
)
def test_packed_text_is_told_by_content(pack: object, tmp_path: Path) -> None:
    for content in (GOOD_CSV, GOOD_JSON):
        path = written(tmp_path, "plain.csv", pack(content.encode()))  # type: ignore[operator]
        assert read_table(path, KINDS, "t").frame.height == 2


def test_members_joined_by_cat_are_all_read(tmp_path: Path) -> None:
    lines = GOOD_JSON.encode().splitlines(keepends=True)
    path = written(tmp_path, "t", b"".join(gzip.compress(line) for line in lines))
    assert read_table(path, KINDS, "t").frame.height == 2
    path = written(tmp_path, "t", b"".join(zstandard.ZstdCompressor().compress(line) for line in lines))
    assert read_table(path, KINDS, "t").frame.height == 2


BAD_CELLS = [
    ("size", "1.5", "must be a whole number"),
    ("size", "many", "must be a whole number"),
    ("size", str(2**63), "must be a whole number"),
    ("speed", "fast", "must be a finite number"),
    ("speed", "nan", "must be a finite number"),
    ("speed", "inf", "must be a finite number"),
    ("chat", "maybe", "must be true or false"),
    ("at", "2026-11-29T18:00:00", "must be an instant with its time zone"),
    ("at", "yesterday", "must be an instant with its time zone"),
    ("at", "1732903200", "must be an instant with its time zone"),
]


@pytest.mark.parametrize(("column", "cell", "rule"), BAD_CELLS)
def test_a_bad_cell_is_named_by_row_column_value_and_rule(column: str, cell: str, rule: str, tmp_path: Path) -> None:
    other = {"at": "2026-11-29T18:00:00Z", "size": "1", "speed": "1", "chat": "true", "who": "a", "models": "m"}
    rows = [other, {**other, column: cell}, other]
    text = ",".join(other) + "\n" + "".join(",".join(row.values()) + "\n" for row in rows)
    path = written(tmp_path, "t.csv", text)
    with pytest.raises(InputError, match=rf"t, row 1, column {column}: '{cell}' {rule}"):
        read_table(path, KINDS, "t")
    table = read_table(path, KINDS, "t", by_row=True)
    assert table.rows_read == 3
    assert table.frame["row"].to_list() == [0, 2]
    assert table.refused.counts == {f"unreadable {column}": 1}
    assert rule in table.refused.first[f"unreadable {column}"]


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ('{"at": "2026-11-29T18:00:00", "size": 1}', "at"),
        ('{"at": 5, "size": 1}', "at"),
        ('{"at": "2026-11-29T18:00:00Z", "size": 1.5}', "size"),
        ('{"at": "2026-11-29T18:00:00Z", "size": true}', "size"),
        ('{"at": "2026-11-29T18:00:00Z", "size": 99999999999999999999}', "size"),
        ('{"at": "2026-11-29T18:00:00Z", "speed": "Infinity"}', "speed"),
        ('{"at": "2026-11-29T18:00:00Z", "models": [1]}', "models"),
        ('{"at": "2026-11-29T18:00:00Z", "who": {"a": 1}}', "who"),
    ],
)
def test_a_bad_json_cell_is_named(line: str, column: str, tmp_path: Path) -> None:
    path = written(tmp_path, "t.jsonl", GOOD_JSON + line + "\n")
    with pytest.raises(InputError, match=rf"t, row 2, column {column}: "):
        read_table(path, KINDS, "t")
    table = read_table(path, KINDS, "t", by_row=True)
    assert (table.rows_read, table.frame.height) == (3, 2)


def test_lines_that_are_no_rows_are_counted_by_reason(tmp_path: Path) -> None:
    text = GOOD_CSV + GOOD_CSV + "only,three,fields\n" + '2026-11-29T18:00:00Z,5,1.5,true,"a\n'
    table = read_table(written(tmp_path, "t.csv", text), KINDS, "t", by_row=True)
    assert table.refused.counts == {"repeated header": 1, "number of fields": 1, "not CSV": 1}
    assert table.rows_read == table.frame.height + 3
    table = read_table(written(tmp_path, "t.jsonl", GOOD_JSON + '[1]\n\n{"at": "20'), KINDS, "t", by_row=True)
    assert table.refused.counts == {"not an object": 1, "not JSON": 1}
    assert table.rows_read == 4
    with pytest.raises(InputError, match=r"row 2: 'at,size,.*' repeats the header"):
        read_table(written(tmp_path, "t.csv", GOOD_CSV + GOOD_CSV), KINDS, "t")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_table(tmp_path / "nowhere.csv", KINDS, "t")
    for content, message in [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        ("at,size\n".encode("utf-16"), "UTF-16"),
        (b"at,size\n\xff\xfe\xfd", "UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:41\nsize 27901454\n", "Git LFS pointer"),
        (b"PAR1 but not really", "cannot be read as Parquet"),
        (b"\x1f\x8bnot gzip", "cannot be"),
        (b"at," + b"x" * 200_000, "the first line: is not CSV: a field has more than 131,072 characters"),
        (b"just a sentence", "must be CSV with a header, JSON lines or Parquet"),
        (b'[{"at": 1}]', "must be CSV with a header, JSON lines or Parquet"),
        (b"size,size\n1,2\n", "must stand once"),
        (b"a,b\n1,2\n", "must name at least one of at, size"),
    ]:
        with pytest.raises((InputError, FrameError), match=message):
            read_table(written(tmp_path, "t", content), KINDS, "t")


def test_bytes_that_are_no_text_deep_in_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", b"at,who\n" + b"2026-11-29T18:00:00Z,a\n" * 60_000 + b"2026-11-29T18:00:00Z,\xff\n")
    with pytest.raises(InputError, match="is not UTF-8"):
        read_table(path, KINDS, "t")


def test_headers_without_rows(tmp_path: Path) -> None:
    for by_row in (False, True):
        table = read_table(written(tmp_path, "t.csv", "at,size,models\n"), KINDS, "t", by_row=by_row)
        assert table.rows_read == table.frame.height == 0
        assert table.frame.schema["at"] == pl.Datetime("us", "UTC")


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "\ufeff" + GOOD_CSV.replace("\n", "\r\n"))
    assert read_table(path, KINDS, "t").frame["size"].to_list() == [5, None]


def test_parquet_by_row_takes_what_a_text_would_hold(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "at": ["2026-11-29 18:00:00.1234567", "2026-11-29 18:00:01+01:00", "when"],
            "size": ["1", "2.5", "3"],
            "speed": [1, 2, 3],
            "who": pl.Series(["a", "b", None], dtype=pl.Categorical),
        }
    )
    frame.write_parquet(tmp_path / "t.parquet")
    kinds: dict[str, Kind] = {"at": "any_instant", "size": "whole", "speed": "real", "who": "text"}
    table = read_table(tmp_path / "t.parquet", kinds, "t", by_row=True)
    assert table.frame.select("row", "size", "speed", "who").rows() == [(0, 1, 1.0, "a")]
    assert table.frame["at"][0].isoformat() == "2026-11-29T18:00:00.123456+00:00"
    assert table.refused.counts == {"unreadable at": 1, "unreadable size": 1}
    pl.DataFrame({"at": [1]}).write_parquet(tmp_path / "u.parquet")
    with pytest.raises(FrameError, match=r"column at: 'Int64' must be a date and time"):
        read_table(tmp_path / "u.parquet", {"at": "any_instant"}, "t", by_row=True)


def test_many_chunks_of_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horde_policy.imports.containers.CHUNK_BYTES", 64)
    lines = "".join(f'{{"size": {n}, "who": "{"x" * (n % 90)}"}}\n' for n in range(500))
    table = read_table(written(tmp_path, "t.jsonl", lines + "\n\n"), KINDS, "t")
    assert table.frame["size"].to_list() == list(range(500))
    assert table.frame["who"].to_list() == [("x" * (n % 90)) for n in range(500)]
