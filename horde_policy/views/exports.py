"""What is on screen as a file: units in the heading, a stamp of settings, source and time, no formula can hide in it.

The stamp stands in columns of its own, so that every reader of CSV understands the file, and every row says where it is from.
"""

import csv
import io
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import polars as pl

from horde_policy.errors import FrameError
from horde_policy.frames.schemas import Schema
from horde_policy.views.text import visible

__all__ = ["Stamp", "Stamped", "file_name", "safe_cell", "to_csv", "to_parquet"]

_FORMULA_STARTS = (*tuple("=+-@\t\r\n|%"), "＝", "＋", "－", "＠")
_NOT_IN_FILE_NAMES = re.compile(r"[^A-Za-z0-9]+")


class Stamped(Protocol):
    """Anything that says where an export comes from."""

    def columns(self) -> dict[str, str | int]:
        """Return the stamp's columns, by heading with unit."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Where an export comes from: the source, when its data are from, the settings' digest, the request it is for."""

    source: str
    synthetic: bool
    fetched_at: datetime
    settings_digest: str
    max_length_tokens: int
    max_context_tokens: int

    def columns(self) -> dict[str, str | int]:
        """Return the stamp's columns, by heading with unit."""
        return {
            "source": self.source + (" (synthetic)" if self.synthetic else ""),
            "data of (UTC)": f"{self.fetched_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "settings digest": self.settings_digest,
            "size asked (tokens)": self.max_length_tokens,
            "context asked (tokens)": self.max_context_tokens,
        }


def safe_cell(value: object) -> object:
    """Return a cell that no spreadsheet reads as a formula: text that begins like one gets an apostrophe in front.

    Numbers stay numbers, null is an empty cell. Leading blanks do not hide a formula. Control characters and direction
    marks are written by their number.

    >>> safe_cell("=1+1"), safe_cell("  @x"), safe_cell(-1.5), safe_cell("plain"), safe_cell(None)
    ("'=1+1", "'  @x", -1.5, 'plain', None)
    """
    if not isinstance(value, str):
        return value
    # A leading tab or line break is itself a way in, so look before control characters are replaced.
    if value.startswith(_FORMULA_STARTS) or value.lstrip().startswith(_FORMULA_STARTS):
        return "'" + visible(value)
    return visible(value)


def _cell_text(value: object) -> object:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    if isinstance(value, list | tuple):
        return "; ".join(str(v) for v in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value


def headings(schema: Schema) -> dict[str, str]:
    """Return column → heading with its unit, from the frame's schema.

    >>> from horde_policy.frames.models import MODELS
    >>> headings(MODELS)["queued_tokens"]
    'queued_tokens (tokens)'
    """
    return {name: f"{name} ({column.unit})" if column.unit else name for name, column in schema.columns.items()}


def to_csv(frame: pl.DataFrame, names: dict[str, str], stamp: Stamped) -> bytes:
    r"""Return the frame's named columns as CSV (UTF-8 with a mark for spreadsheets), the stamp at the end of each row.

    Parameters
    ----------
    frame
        What is on screen, in its order.
    names
        Column → heading with unit; the columns that are written, in order.
    stamp
        Where it comes from.

    Raises
    ------
    FrameError
        A column to be written is not in the frame.

    Examples
    --------
    >>> stamp = Stamp(source="demo", synthetic=True, fetched_at=datetime(2026, 11, 29, tzinfo=UTC), settings_digest="0a1b2c3d",
    ...     max_length_tokens=80, max_context_tokens=2048)
    >>> print(to_csv(pl.DataFrame({"model": ["=1+1"], "wait_s": [1.5]}), {"model": "model", "wait_s": "wait (s)"}, stamp)
    ...     .decode("utf-8-sig").replace("\r", ""))
    model,wait (s),source,data of (UTC),settings digest,size asked (tokens),context asked (tokens)
    '=1+1,1.5,demo (synthetic),2026-11-29T00:00:00Z,0a1b2c3d,80,2048
    """
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise FrameError("export", f"column {missing[0]}", None, "is missing")
    out = io.StringIO()
    writer = csv.writer(out)
    stamped = stamp.columns()
    writer.writerow([*names.values(), *stamped])
    tail = [safe_cell(v) for v in stamped.values()]
    for row in frame.select(list(names)).iter_rows():
        writer.writerow([*(safe_cell(_cell_text(v)) for v in row), *tail])
    return out.getvalue().encode("utf-8-sig")


def to_parquet(frame: pl.DataFrame, stamp: Stamped) -> bytes:
    """Return the frame as Parquet (zstd), names and types as they are, the stamp in the file's metadata.

    >>> stamp = Stamp(source="demo", synthetic=True, fetched_at=datetime(2026, 11, 29, tzinfo=UTC), settings_digest="0a1b2c3d",
    ...     max_length_tokens=80, max_context_tokens=2048)
    >>> data = io.BytesIO(to_parquet(pl.DataFrame({"wait_s": [1.5, None]}), stamp))
    >>> pl.read_parquet_metadata(data)["settings digest"]
    '0a1b2c3d'
    """
    out = io.BytesIO()
    metadata = {name: str(value) for name, value in stamp.columns().items()}
    frame.write_parquet(out, compression="zstd", metadata=metadata)
    return out.getvalue()


def file_name(what: str, stamp: Stamp, ending: str) -> str:
    """Return a file name of plain letters: what, source, time, settings.

    >>> stamp = Stamp(source="AI Horde", synthetic=False, fetched_at=datetime(2026, 11, 29, 12, 4, tzinfo=UTC),
    ...     settings_digest="0a1b2c3d", max_length_tokens=80, max_context_tokens=2048)
    >>> file_name("overview", stamp, "csv")
    'overview_AI-Horde_20261129T120400Z_0a1b2c3d.csv'
    """
    source = _NOT_IN_FILE_NAMES.sub("-", stamp.source).strip("-")[:40]
    return f"{what}_{source}_{stamp.fetched_at.astimezone(UTC):%Y%m%dT%H%M%SZ}_{stamp.settings_digest}.{ending}"
