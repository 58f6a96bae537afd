"""Take the pictures of the docs: ``python tools/screenshots.py [FOLDER]`` (``docs/images``), on the demo, in Chromium.

It starts the app on a free port as an operator does, and ends it again.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MODEL = "m=koboldcpp%2FFernery-24B-v1.1"


class Shot(NamedTuple):
    """One picture: its file, the page, what must be drawn first, the theme and the size of the window."""

    name: str
    path: str
    drawn: str
    theme: str
    width: int
    height: int


SHOTS = (
    Shot("overview-light", "overview", "tbody tr.pinned", "light", 1280, 720),
    Shot("overview-dark", "overview", "tbody tr.pinned", "dark", 1280, 720),
    Shot("overview-phone", "overview", "tbody tr.pinned", "light", 390, 844),
    Shot("model-light", f"model?{MODEL}", ".main-svg", "light", 1280, 1180),
    Shot("guide-light", "guide?step=3&answers=1", ".main-svg", "light", 1280, 720),
    Shot("model-dark", f"model?{MODEL}", ".main-svg", "dark", 1280, 1180),
)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_run(address: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until the app has run once."""
    for _ in range(300):
        if server.poll() is not None:
            sys.exit("the app ended before it was up")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/script-health-check", timeout=60):
                return
        except OSError:
            time.sleep(0.2)
    sys.exit("the app did not come up")


def take(address: str, folder: Path) -> None:
    """Take every picture."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for shot in SHOTS:
            size = {"width": shot.width, "height": shot.height}
            context = browser.new_context(viewport=size, color_scheme=shot.theme, device_scale_factor=1)  # type: ignore[arg-type]
            page = context.new_page()
            page.goto(f"{address}/{shot.path}")
            page.wait_for_selector(shot.drawn)
            page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
            page.wait_for_timeout(1500)  # the figures' own animation
            page.screenshot(path=folder / f"{shot.name}.png")
            context.close()
            print(folder / f"{shot.name}.png")
        browser.close()


def main() -> None:
    """Start the app, take the pictures, end the app."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [sys.executable, "tools/serve.py", "--no-browser", "--port", str(port)]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("HORDE_", "STREAMLIT_"))}
    with subprocess.Popen(command, cwd=ROOT, env=own, stdout=subprocess.DEVNULL, start_new_session=True) as server:
        try:
            wait_until_run(f"http://127.0.0.1:{port}", server)
            take(f"http://127.0.0.1:{port}", folder)
        finally:
            os.killpg(server.pid, signal.SIGTERM)  # it and the server that it started


if __name__ == "__main__":
    main()
