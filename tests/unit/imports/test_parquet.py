"""Our own Parquet: what was kept counts the same, and merges."""

from pathlib import Path

import polars as pl
import pytest

from horde_policy.errors import InputError
from horde_policy.imports import Imported, read_exports
from horde_policy.imports.parquet import write_parquet
from tests.unit.imports.writing import (
    decision,
    exposition,
    rich,
)


class TestOurParquet:
    def test_kept_samples_count_the_same(self, tmp_path: Path) -> None:
        imported = rich()
        write_parquet(imported.samples, tmp_path / "kept.parquet")
        again = read_exports(tmp_path / "kept.parquet")
        assert_same_counts(again, imported)
        assert list(tmp_path.iterdir()) == [tmp_path / "kept.parquet"]

    def test_days_kept_one_by_one_merge_as_if_read_together(self, tmp_path: Path) -> None:
        rows = [(decision("free"), at, 100 + at // 10) for at in range(0, 1200, 60)] + [
            (decision("refused"), at, 1) for at in range(600, 1200, 60)
        ]
        text = sorted(exposition(rows).splitlines(keepends=True), key=lambda line: line.rsplit(b" ", 1)[1])
        parts = [b"".join(text[:14]), b"".join(text[10:])]
        for number_of_day, part in enumerate(parts):
            write_parquet(read_exports(part).samples, tmp_path / f"day{number_of_day}.parquet")
        together, kept = read_exports(b"".join(text)), read_exports([tmp_path, *parts])
        assert_same_counts(kept, together)

    def test_counts_come_back_as_they_were(self, tmp_path: Path) -> None:
        imported = rich()
        from horde_policy.imports import Counts

        write_parquet(Counts(imported.decisions, imported.waits, imported.wait_sums), tmp_path / "week.parquet")
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "week.decisions.parquet",
            "week.wait_sums.parquet",
            "week.waits.parquet",
        ]
        assert_same_counts(read_exports([tmp_path, tmp_path]), imported)

    def test_a_foreign_or_broken_parquet_is_refused(self, tmp_path: Path) -> None:
        pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet")
        with pytest.raises(InputError, match="carries no stamp"):
            read_exports(tmp_path / "a.parquet")
        write_parquet(rich().samples, tmp_path / "b.parquet")
        with pytest.raises(InputError, match="cannot be read"):
            read_exports((tmp_path / "b.parquet").read_bytes()[:-30])
        pl.DataFrame({"instance": ["a"]}).write_parquet(tmp_path / "c.parquet", metadata={"horde_policy": "samples/1"})
        with pytest.raises(InputError, match="column family"):
            read_exports(tmp_path / "c.parquet")


def assert_same_counts(one: Imported, other: Imported) -> None:
    for name in ("decisions", "waits", "wait_sums"):
        assert getattr(one, name).equals(getattr(other, name)), name
