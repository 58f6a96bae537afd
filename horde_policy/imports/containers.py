"""What a file is from outside: its packing, its container and its column names, told by content; and its rows, one by one."""

import bz2
import codecs
import csv
import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, cast

import msgspec
import polars as pl
import zstandard

from horde_policy.errors import InputError

__all__ = [
    "NotARow",
    "Sniffed",
    "csv_fault",
    "csv_rows",
    "ends",
    "is_packed",
    "json_chunks",
    "json_objects",
    "opened",
    "parquet_columns",
    "read_parquet",
    "sniffed",
]

Container = Literal["csv", "json_lines", "json", "parquet", "text"]

HEAD_BYTES = 1 << 20
CHUNK_BYTES = 1 << 24
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What the first megabyte tells: the container, the column names (or the first object's keys), the head itself."""

    container: Container
    columns: tuple[str, ...]
    head: bytes


@dataclass(frozen=True, slots=True)
class NotARow:
    """A line that is no row: a reason in a few words, the sentence behind "row 3 …", and what the line holds."""

    reason: str
    sentence: str
    found: str


def _packing(magic: bytes) -> Literal["gzip", "bzip2", "zstd"] | None:
    if magic.startswith(b"\x1f\x8b"):
        return "gzip"
    if magic.startswith(b"BZh"):
        return "bzip2"
    return "zstd" if magic.startswith(b"\x28\xb5\x2f\xfd") else None


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, unpacked if it is gzip, bzip2 or zstd (told by its first bytes)."""
    with path.open("rb") as raw:
        packing = _packing(raw.read(4))
        raw.seek(0)
        if packing == "gzip":
            with gzip.open(raw) as stream:
                yield cast(BinaryIO, stream)
        elif packing == "bzip2":
            with bz2.open(raw) as stream:
                yield cast(BinaryIO, stream)
        elif packing == "zstd":
            with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as stream:
                yield cast(BinaryIO, io.BufferedReader(stream))
        else:
            yield raw


def is_packed(path: Path) -> bool:
    """Tell whether :func:`opened` unpacks the file."""
    with path.open("rb") as raw:
        return _packing(raw.read(4)) is not None


def ends(path: Path, size: int) -> tuple[bytes, bytes]:
    """Return the first and the last ``size`` bytes of a file's unpacked text."""
    plain = not is_packed(path)
    with opened(path) as stream:
        head = tail = stream.read(size)
        if plain:
            stream.seek(max(0, path.stat().st_size - size))
            return head, stream.read(size)
        while piece := stream.read(1 << 20):
            tail = (tail + piece)[-size:]
    return head, tail


def sniffed(path: Path, what: str) -> Sniffed:
    """Return what a file is, from its first megabyte.

    Raises
    ------
    InputError
        It cannot be opened, is empty, is a Git LFS pointer, or is text of another encoding than UTF-8.
    """
    try:
        with opened(path) as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(what, "", path.name, f"cannot be read: {error.strerror or error}") from error
    except (EOFError, zstandard.ZstdError) as error:
        raise InputError(what, "", path.name, f"cannot be unpacked: {error}") from error
    if not head.strip():
        raise InputError(what, "", path.name, "is empty: not even a header")
    if head.startswith(b"PAR1"):
        return Sniffed("parquet", parquet_columns(path, what), head[:4])
    if head.startswith(LFS_POINTER):
        raise InputError(what, "", path.name, "is a Git LFS pointer, not the data; fetch the file itself")
    text = _text(head, path, what)
    first = next(line for line in text.splitlines() if line.strip())
    if first.startswith("{"):
        keys = _object_keys(first)
        return Sniffed("json", (), head) if keys is None else Sniffed("json_lines", keys, head)
    if first.startswith("["):
        return Sniffed("json", (), head)
    try:
        columns = next(csv.reader([first]), [])
    except csv.Error as error:
        raise InputError(what, "the first line", None, f"is not CSV: {csv_fault(error)}") from error
    return Sniffed("csv" if len(columns) > 1 else "text", tuple(columns), head)


def _text(head: bytes, path: Path, what: str) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(what, "", path.name, "is UTF-16 text; save it as UTF-8")
    # the cut may fall inside a character: three bytes at the end are not judged
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError as error:
        rule = f"is neither Parquet nor UTF-8 text (byte {error.start})"
        raise InputError(what, "", path.name, rule) from None


def _object_keys(line: str) -> tuple[str, ...] | None:
    try:
        found = msgspec.json.decode(line.encode())
    except msgspec.DecodeError:
        return None
    return tuple(found) if isinstance(found, dict) else None


def parquet_columns(path: Path, what: str) -> tuple[str, ...]:
    """Return a Parquet file's column names, or raise InputError."""
    with _parquet_errors(path, what):
        return tuple(pl.read_parquet_schema(path))


def read_parquet(path: Path, columns: Sequence[str], what: str) -> pl.DataFrame:
    """Return some columns of a Parquet file, or raise InputError."""
    with _parquet_errors(path, what):
        return pl.read_parquet(path, columns=list(columns))


@contextmanager
def _parquet_errors(path: Path, what: str) -> Iterator[None]:
    """Turn what Polars raises on a broken Parquet file into InputError; some of it is a panic, which is no Exception."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else "it is broken"
        raise InputError(what, "", path.name, f"cannot be read as Parquet: {reason}") from error


def csv_fault(error: csv.Error) -> str:
    """Return what is wrong with a CSV, the end of a sentence; the limit of a field with its figure.

    >>> csv_fault(csv.Error("field larger than field limit (131072)"))
    'a field has more than 131,072 characters, the most that is read; a quotation mark may be missing'
    >>> csv_fault(csv.Error("unexpected end of data"))
    'unexpected end of data'
    """
    if "field limit" not in str(error):
        return str(error)
    return f"a field has more than {csv.field_size_limit():,} characters, the most that is read; a quotation mark may be missing"


def csv_rows(path: Path, what: str) -> Iterator[Mapping[str, str] | NotARow]:
    """Yield each row of a CSV by column name, or why a line is no row; blank lines are not counted."""
    with opened(path) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        reader = csv.reader(lines, strict=True)
        header: list[str] = []
        while True:
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield NotARow("not CSV", f"is not CSV: {csv_fault(error)}", f"line {reader.line_num}")
                continue
            except UnicodeDecodeError as error:
                raise InputError(what, f"line {reader.line_num + 1}", path.name, f"is not UTF-8: {error.reason}") from None
            if not fields:
                continue
            if not header:
                header = fields
            elif fields == header:
                yield NotARow("repeated header", "repeats the header", ",".join(fields))
            elif len(fields) != len(header):
                sentence = f"must have {len(header)} fields and has {len(fields)}"
                yield NotARow("number of fields", sentence, ",".join(fields))
            else:
                yield dict(zip(header, fields, strict=True))


def json_chunks(path: Path) -> Iterator[bytes]:
    """Yield the file in pieces of whole lines without blank ends."""
    with opened(path) as stream:
        rest = b""
        while piece := stream.read(CHUNK_BYTES):
            lines, newline, rest = (rest + piece).rpartition(b"\n")
            if newline and lines.strip():
                yield lines.strip()
            elif not newline:
                rest = lines + rest
        if rest.strip():
            yield rest.strip()


def json_objects(path: Path, what: str) -> Iterator[Mapping[str, object] | NotARow]:
    """Yield each line's object, or why a line is no row; blank lines are not counted."""
    with opened(path) as stream:
        for line in stream:
            if not line.strip():
                continue
            try:
                found = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                yield NotARow("not JSON", "is not JSON", _line_text(line))
                continue
            yield found if isinstance(found, dict) else NotARow("not an object", "is not a JSON object", _line_text(line))


def _line_text(line: bytes) -> str:
    return line.strip().decode("utf-8", errors="replace")
