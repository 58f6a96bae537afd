"""Start the dashboard and run it once before anybody comes: ``python -m horde_policy.ui.serve --port 8501``.

Until a first run has told Streamlit the pages, a link to any page but the first opens under the words "Page not found" (T2:
the folder ``pages`` alone causes it). The server's own script check is such a run, and it also tells a broken start at once.
"""

import argparse
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["main", "run_once"]

APP = Path(__file__).parents[2] / "app.py"
EVERY_S = 0.2
PATIENCE_S = 60.0


def _answer(url: str) -> str | None:
    """Return the text of a good answer; null for any other and for none."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as response:
            return str(response.read().decode())
    except (urllib.error.URLError, OSError):
        return None


def run_once(address: str, running: Callable[[], bool], sleep: Callable[[float], None] = time.sleep) -> bool:
    """Wait for the server and let it run the app's script once; return whether that run went well.

    Parameters
    ----------
    address
        Where the app is, with its base path, without a slash at the end.
    running
        Whether the server still runs; when it does not, there is nothing to wait for.
    sleep
        Waits between two tries.
    """
    for _ in range(round(PATIENCE_S / EVERY_S)):
        if not running():
            return False
        if _answer(f"{address}/_stcore/health") is not None:
            return _answer(f"{address}/_stcore/script-health-check") == "ok"
        sleep(EVERY_S)
    return False


def main(arguments: Sequence[str]) -> int:
    """Serve until stopped; return the server's exit code. What is not named here goes to ``streamlit run`` as it is."""
    parser = argparse.ArgumentParser(prog="python -m horde_policy.ui.serve", description="Start the dashboard.")
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--address", default="127.0.0.1", help="0.0.0.0 opens it to others: see docs/deploy")
    parser.add_argument("--base-path", default="", help="where a reverse proxy serves it, as in horde/policy")
    known, rest = parser.parse_known_args(arguments)
    base = known.base_path.strip("/")
    command = [sys.executable, "-m", "streamlit", "run", str(APP), "--server.port", str(known.port)]
    command += ["--server.address", known.address, "--server.baseUrlPath", base, *rest]
    host = "127.0.0.1" if known.address in ("0.0.0.0", "") else known.address
    address = f"http://{host}:{known.port}" + (f"/{base}" if base else "")
    with subprocess.Popen(command) as server:
        # Whoever ends this process means the server.
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())

        def warm_up() -> None:
            if not run_once(address, lambda: server.poll() is None) and server.poll() is None:
                print("The app's first run did not go well; its log above says why.", file=sys.stderr)

        threading.Thread(target=warm_up, daemon=True).start()
        try:
            return server.wait()
        except KeyboardInterrupt:
            server.terminate()
            return server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
