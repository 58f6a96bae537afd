"""One sweep at a time writes a file: another is refused at the start, and a killed one stands in nobody's way."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from horde_policy.cli.main import main
from horde_policy.errors import InputError
from horde_policy.sweep.files import read_sweep
from horde_policy.sweep.run import run_sweep
from horde_policy.sweep.sole_writer import sole_writer
from tests.unit.sweep.made import busy_week, inputs_of, planned

ROOT = Path(__file__).parents[3]
LONG, SHORT = "floor_tokens = {from = 1, to = 400, step = 1}", "floor_tokens = {from = 1, to = 5, step = 1}"


def test_a_second_writer_is_told_who_writes_and_takes_over_when_that_one_ends(tmp_path: Path) -> None:
    out = tmp_path / "s.parquet"
    with sole_writer(out, "process 12 on here"):
        with (
            pytest.raises(InputError, match=r"is being written by another sweep, process 12 on here \(wait for its end"),
            sole_writer(out, "me"),
        ):
            raise AssertionError
        with sole_writer(tmp_path / "t.parquet", "me"):
            assert (tmp_path / "t.parquet.lock").read_text() == "me"
        assert (tmp_path / "s.parquet.lock").read_text() == "process 12 on here", "who is refused changes nothing"
    assert list(tmp_path.iterdir()) == []
    with sole_writer(out, "me"):
        pass


def test_it_is_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), sole_writer(tmp_path / "s.parquet", "me"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_one_left_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "s.parquet.lock").write_text("process 999999 on a machine that is gone, a longer name")
    with sole_writer(tmp_path / "s.parquet", "me"):
        assert (tmp_path / "s.parquet.lock").read_text() == "me"


def test_of_many_at_once_one_has_it_at_a_time(tmp_path: Path) -> None:
    inside, most, turns = 0, 0, []

    def try_often() -> None:
        nonlocal inside, most
        for _ in range(100):
            try:
                with sole_writer(tmp_path / "s.parquet", "me"):
                    inside += 1
                    most = max(most, inside)
                    turns.append(1)
                    inside -= 1
            except InputError:
                continue

    threads = [threading.Thread(target=try_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, len(turns) > 4) == (1, True)


@pytest.mark.parametrize("place", ["folder", "link"])
def test_what_cannot_be_locked_is_refused(tmp_path: Path, place: str) -> None:
    lock = tmp_path / "s.parquet.lock"
    if place == "folder":
        lock.mkdir()
    else:
        (tmp_path / "mine").write_text("mine")
        lock.symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match=r"cannot be locked by s.parquet.lock"), sole_writer(tmp_path / "s.parquet", "me"):
        raise AssertionError
    if place == "link":
        assert (tmp_path / "mine").read_text() == "mine"


def test_two_sweeps_with_one_file_lose_nothing_and_a_killed_one_is_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in os.environ if n.startswith("HORDE_")]:
        monkeypatch.delenv(name)
    inputs = inputs_of(tmp_path, *busy_week(6_000))
    monkeypatch.chdir(tmp_path)
    Path("long.toml").write_text(LONG)
    Path("short.toml").write_text(SHORT)
    files = ["--traffic", "traffic.parquet", "--fleet", "fleet.parquet", "--out", "s.parquet"]
    first = subprocess.Popen(
        [sys.executable, "-m", "horde_policy", "sweep", *files, "--grid", "long.toml"],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    parts = Path("s.parquet.parts")
    until = time.monotonic() + 120
    while len(list(parts.glob("*.npz"))) < 5:
        assert first.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    assert main(["sweep", *files, "--grid", "short.toml"]) == 2
    told = capsys.readouterr().err
    assert f"--out: 's.parquet' is being written by another sweep, process {first.pid} on " in told
    assert first.poll() is None
    first.send_signal(signal.SIGKILL)
    first.wait()
    kept = len(list(parts.glob("*.npz")))
    assert kept >= 5, "who was refused took nothing away"
    assert Path("s.parquet.lock").exists()
    assert main(["sweep", *files, "--grid", "short.toml"]) == 0
    assert "going on with a sweep that was stopped" in capsys.readouterr().err
    assert read_sweep(Path("s.parquet")).frame.equals(run_sweep(inputs, planned(SHORT, inputs)).frame)
    assert not parts.exists()
    assert not Path("s.parquet.lock").exists()
