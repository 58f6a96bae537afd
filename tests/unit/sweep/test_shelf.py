"""The folder of sweeps that a server keeps: this user's alone, bounded, and never read for what it is not."""

import os
import time
from pathlib import Path

import pytest

from horde_policy.errors import StoreError
from horde_policy.settings import ReplaySettings
from horde_policy.sweep import shelf
from horde_policy.sweep.run import Sweep
from horde_policy.sweep.shelf import Shelf
from tests.unit.sweep.made import made_frame


def made(refused: float = 100) -> Sweep:
    frame = made_frame(
        [ReplaySettings(), ReplaySettings(ceiling_tokens=2048)],
        lambda place, _scenario, day: {"requests": 1000, "unfunded": 1000, "unfunded_refused": refused + place + day},
    )
    return Sweep(frame=frame, stamp={"kind": "sweep", "trace": "made up", "missing": 0}, missing=0)


def test_a_sweep_comes_back_and_a_later_state_of_it_stands_in_its_place(tmp_path: Path) -> None:
    kept = Shelf(tmp_path / "sweeps")
    assert kept.load("run-1") is None
    kept.keep("run-1", made(100))
    kept.keep("run-1", made(200))
    found = kept.load("run-1")
    assert found is not None
    assert found.frame.equals(made(200).frame)
    assert found.stamp["trace"] == "made up"
    assert (tmp_path / "sweeps").stat().st_mode & 0o777 == 0o700
    assert [path.name for path in (tmp_path / "sweeps").iterdir() if path.is_file()] == ["run-1.parquet"]


def test_a_file_that_is_no_sweep_is_none(tmp_path: Path) -> None:
    kept = Shelf(tmp_path)
    (tmp_path / "run-1.parquet").write_bytes(b"PAR1 nothing")
    assert kept.load("run-1") is None


@pytest.mark.parametrize("key", ["../run-1", "", "a/b", "x" * 81, "run 1", "run-1.parquet"])
def test_a_key_is_never_a_path(tmp_path: Path, key: str) -> None:
    with pytest.raises(StoreError, match="a key is letters, digits and hyphens"):
        Shelf(tmp_path).load(key)


def test_a_folder_that_is_not_ours_alone_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(StoreError, match="nobody else can write"):
        Shelf(folder).prepare()
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(own)
    with pytest.raises(StoreError, match="nobody else can write"):
        Shelf(tmp_path / "link").prepare()
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be written"):
        Shelf(tmp_path / "file").prepare()


def test_the_oldest_of_too_many_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "MOST_SWEEPS", 2)
    monkeypatch.setattr(shelf, "MOST_PARTS", 1)
    kept = Shelf(tmp_path / "sweeps")
    parts = kept.prepare().folder
    now = time.time()
    for place in range(3):
        (parts / f"{place:032x}.npz").write_bytes(b"x")
        os.utime(parts / f"{place:032x}.npz", (now - 100 + place, now - 100 + place))
        kept.keep(f"run-{place}", made())
        os.utime(tmp_path / "sweeps" / f"run-{place}.parquet", (now - 100 + place, now - 100 + place))
    assert [kept.load(f"run-{place}") is not None for place in range(3)] == [False, True, True]
    assert len(list(parts.glob("*.npz"))) == 1
