"""A sweep read again from its file: what the command wrote is taken, anything else is refused with row, column and rule."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from horde_policy.cli.parquet_output import write_parquet
from horde_policy.errors import HordePolicyError, InputError
from horde_policy.sweep.files import read_sweep
from horde_policy.sweep.run import Sweep, run_sweep
from tests.unit.sweep.made import busy_week, inputs_of, planned


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    inputs = inputs_of(tmp_path_factory.mktemp("week"), *busy_week(300))
    return run_sweep(inputs, planned("floor_tokens = [256, 512]\nload = [0.5, 1]", inputs))


def written(frame: pl.DataFrame, stamp: object = None) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out, metadata={"horde_policy": json.dumps({"kind": "sweep"} if stamp is None else stamp)})
    return out.getvalue()


def test_a_sweep_comes_back_as_it_was_written(swept: Sweep, tmp_path: Path) -> None:
    write_parquet(tmp_path / "s.parquet", swept.frame, swept.stamp)
    again = read_sweep(tmp_path / "s.parquet")
    assert again.frame.equals(swept.frame)
    assert again.stamp == json.loads(json.dumps(dict(swept.stamp)))
    assert again.missing == 0


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a file", b"PAR1" + bytes(200) + b"PAR1"])
def test_what_is_no_parquet_file_is_refused(content: bytes) -> None:
    with pytest.raises(InputError, match=r"sweep file: 'x.parquet' must be a Parquet file that the sweep command wrote"):
        read_sweep(content, "x.parquet")


@pytest.mark.parametrize("stamp", [{}, {"kind": "run"}, [], "sweep", 3])
def test_a_file_of_another_kind_is_refused(swept: Sweep, stamp: object) -> None:
    with pytest.raises(InputError, match="must be a Parquet file that the sweep command wrote"):
        read_sweep(written(swept.frame, stamp))


def first(column: str, value: object) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Return a change of a column's first cell."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        cells = frame[column].to_list()
        return frame.with_columns(pl.Series(column, [value, *cells[1:]], dtype=frame.schema[column]))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop("requests"), "column requests: is missing"),
        (lambda f: f.with_columns(pl.col("requests").cast(pl.Float64)), "column requests: Float64 must be Int64"),
        (first("requests", -1), "row 0, column requests: -1 must be at least 0"),
        (first("load", 0.0), "row 0, column load: 0.0 must be above 0"),
        (first("load", float("nan")), "column load: nan must be a number"),
        (first("day", 0), "row 0, column day: 0 must be at least 1"),
        (first("day_hours", 24.5), "row 0, column day_hours: 24.5 must be 0 to 24"),
        (first("day_hours", 5.0), "column day_hours: .* must be the same in all rows of its day"),
        (first("day", 2), "column day: 2 stands twice for its point and scenario"),
        (first("waits_registered_bin", [65000]), "column waits_registered"),
        (first("waits_registered_count", []), "column waits_registered_count: .* must have as many counts as bins"),
        (first("asked_by", [1, 2, 3]), "row 0, column asked_by: .* must hold 15 counts"),
        (first("model_refused", [1]), "row 0, column model_refused: .* must be as long as model_unfunded"),
        (first("floor_tokens", 300), "column point: .* must name its settings"),
        (first("floor_tokens", 99_999), "setting floor_tokens: 99999 must not be above"),
        (first("client", "shout"), "setting client: 'shout' must be one of"),
        (first("baseline", False), "column baseline: 1 must stand for one point"),
        (lambda f: f.with_columns(baseline=pl.lit(value=True)), "column baseline: 2 must stand for one point"),
    ],
)
def test_a_row_that_breaks_a_rule_is_named(swept: Sweep, change: Callable[[pl.DataFrame], pl.DataFrame], message: str) -> None:
    with pytest.raises(HordePolicyError, match=message):
        read_sweep(written(change(swept.frame)))


def test_an_odd_stamp_loses_only_what_is_odd(swept: Sweep) -> None:
    stamp = {"kind": "sweep", "traffic": ["x"], "fleet": 3, "dropped": None, "trace": 7, "synthetic": True}
    assert read_sweep(written(swept.frame, stamp)).stamp == {"kind": "sweep", "synthetic": True}
