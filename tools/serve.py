"""Start the dashboard, run its script once, and say where it is.

Until a script of the process has run once, Streamlit takes the folder ``pages`` for its pages and shows "Page not found" over the
right page to whoever opens a deep link; it is told that there are none. The health check runs the script, so that the first
visitor does not wait for it. The dashboard stops with this program.
"""

import argparse
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST_START_S = 90.0
OK = 200
PORT_TAKEN = 1
WARM = "from horde_policy.cli.warming import warm_all; warm_all()"
"""What it compiles lies on the disk, where the dashboard finds it: tens of seconds once after an installation."""
STREAMLIT = """
from streamlit.runtime.pages_manager import PagesManager
from streamlit.web.cli import main
PagesManager.uses_pages_directory = False
main()
"""
"""Streamlit's command for an app whose pages are those that it names itself, from the first moment on: a tab that is open while
the dashboard starts anew asks again before the health check does (T2)."""
LOOPBACK = "127.0.0.1"


def ran_once(port: int, base_path: str, timeout_s: float) -> bool:
    """Ask the dashboard to run its script; tell whether it did."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("GET", f"{base_path}/_stcore/script-health-check")
        return connection.getresponse().status == OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def address_in(further: Sequence[str]) -> str:
    """Return the address that the dashboard is told to listen on; where nothing is told, the one of its configuration."""
    for number, word in enumerate(further):
        name, _, value = word.partition("=")
        if name == "--server.address":
            return value or (further[number + 1] if number + 1 < len(further) else LOOPBACK)
    return LOOPBACK


def port_taken(port: int, address: str) -> str:
    """Return a sentence if the port cannot be listened on, else an empty text.

    Whoever holds the port may answer the health check, so that it would be taken for the dashboard that could not start.
    """
    try:
        with socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET):
            return ""
    except (OSError, OverflowError) as error:
        return (
            f"The dashboard was not started: port {port} cannot be listened on ({error}); choose another, as PORT=9000 make run."
        )


def main() -> int:
    """Run the dashboard until it is stopped; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--base-path", default="", help="the path under which a proxy serves it, e.g. horde/policy")
    parser.add_argument("--no-browser", action="store_true", help="only say where the dashboard is")
    parser.add_argument("--warm", action="store_true", help="compile the loops beside, so that the first replay does not")
    options, further = parser.parse_known_args()
    command = [sys.executable, "-c", STREAMLIT, "run", "app.py", "--server.port", str(options.port), *further]
    base_path = f"/{options.base_path.strip('/')}" if options.base_path.strip("/") else ""
    if base_path:
        command += ["--server.baseUrlPath", base_path]
    taken = port_taken(options.port, address_in(further))
    if taken:
        print(taken, file=sys.stderr)
        return PORT_TAKEN
    warm: subprocess.Popen[bytes] | None = None
    with subprocess.Popen(command, cwd=ROOT) as dashboard:
        signal.signal(signal.SIGTERM, lambda _number, _frame: dashboard.terminate())
        try:
            until = time.monotonic() + LONGEST_START_S
            while dashboard.poll() is None and time.monotonic() < until and not ran_once(options.port, base_path, 30.0):
                time.sleep(0.2)
            if dashboard.poll() is None:
                url = f"http://127.0.0.1:{options.port}{base_path}"
                print(f"The dashboard is at {url} (stop with Ctrl-C)", flush=True)
                if options.warm:
                    warm = subprocess.Popen([sys.executable, "-c", WARM], cwd=ROOT)
                if not options.no_browser and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
                    webbrowser.open(url)
            return dashboard.wait()
        except KeyboardInterrupt:
            dashboard.terminate()
            return 0
        finally:
            if warm is not None:
                warm.terminate()
                warm.wait()


if __name__ == "__main__":
    sys.exit(main())
