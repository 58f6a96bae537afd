"""The program that starts the dashboard says at once that its port is taken, and starts nothing."""

import socket
import subprocess
import sys
from pathlib import Path

from tools import serve as serve_program

ROOT = Path(__file__).parents[2]


def serve(port: int, *further: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "tools/serve.py", "--no-browser", "--port", str(port), *further]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_a_port_in_use_is_one_line_and_an_exit_code() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        for further in ((), ("--server.address", "127.0.0.1"), ("--server.address=127.0.0.1",)):
            ended = serve(port, *further)
            assert ended.returncode == 1
            assert ended.stdout == ""
            [line] = ended.stderr.splitlines()
            assert line.startswith(f"The dashboard was not started: port {port} cannot be listened on (")
            assert line.endswith("); choose another, as PORT=9000 make run.")


def test_a_port_that_there_cannot_be_is_said_too() -> None:
    ended = serve(99_999)
    assert ended.returncode == 1
    assert "port 99999 cannot be listened on" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_make_run_warms_the_engine_and_what_it_runs_can_be_run() -> None:
    assert "tools/serve.py --warm" in (ROOT / "Makefile").read_text(encoding="utf-8")
    ended = subprocess.run([sys.executable, "-c", serve_program.WARM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
