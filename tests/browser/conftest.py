"""The app in Chromium: a server on a free port with its own environment, pages that may ask no other host."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, ViewportSize, WebSocket, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

ROOT = Path(__file__).parents[2]
CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # so that tabs share what is compiled of Streamlit's own files: a page opens in half the time
]
PATIENCE_S = 60.0

# Playwright gives what it expects five seconds of its own, which a busy machine may need for one run of a page.
expect.set_options(timeout=PATIENCE_S * 1000)

Scheme = Literal["light", "dark"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Running:
    """A process that another test process started, and that this one leaves alone."""

    pid: int

    def poll(self) -> int | None:
        return None if alive(self.pid) else 1

    def wait(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        while alive(self.pid) and time.monotonic() < until:
            time.sleep(0.05)


@dataclass
class App:
    """A running app."""

    url: str
    process: "subprocess.Popen[bytes] | Running"
    log: Path

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)


def start_app(log: Path, *, warm: bool = True, at_once: bool = False, **environment: str) -> App:
    """Start the app as an operator does (``warm``) or bare, and wait until it answers; ``at_once`` before its script has run."""
    port = free_port()
    bare = ["-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    command = [sys.executable, *(["tools/serve.py", "--no-browser", "--port", str(port)] if warm else bare)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env=own_environment(**environment), stdout=out, stderr=out, start_new_session=True
        )
    app = App(f"http://127.0.0.1:{port}", process, log)
    wait_until_up(app, "script-health-check" if warm and not at_once else "health")
    return app


def own_environment(**changes: str) -> dict[str, str]:
    """Return this process's environment without what configures the app, and with the changes."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HORDE_", "STREAMLIT_"))}
    return kept | {"PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT), **changes}


def wait_until_up(app: App, check: str) -> None:
    """Wait until the app answers a check; stop it and fail if it does not."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and app.process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{app.url}/_stcore/{check}", timeout=PATIENCE_S) as response:
            if response.status == 200:
                return
        time.sleep(0.1)
    app.stop()
    raise AssertionError(f"the app did not start:\n{app.log.read_text()}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def shared_app(folder: Path, **environment: Any) -> Iterator[App]:
    """Use one app in all test processes: the first that asks starts it, and stops it when nobody uses it any more.

    Each process with an app of its own would import, read and replay the same once more.
    """
    users, told = folder / "users", folder / "app.json"
    users.mkdir(parents=True, exist_ok=True)
    own = users / str(os.getpid())
    started = None
    with locked(folder):
        if not told.exists():
            started = start_app(folder / "log", **environment)
            told.write_text(json.dumps({"url": started.url, "pid": started.process.pid}))
        standing = json.loads(told.read_text())
        own.touch()
    try:
        yield started or App(standing["url"], Running(standing["pid"]), folder / "log")
    finally:
        own.unlink()
        while started is not None:
            with locked(folder):
                if not any(alive(int(user.name)) for user in users.iterdir()):
                    told.unlink()
                    started.stop()
                    break
            time.sleep(0.2)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app with nothing configured but the hostile folder, shared by the tests that change nothing in it."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with shared_app(folder / "demo-app", HORDE_POLICY_RECORDED=str(ROOT / "tests" / "data" / "hostile")) as app:
        yield app


@pytest.fixture
def new_app(tmp_path: Path) -> Iterator[Callable[..., App]]:
    """Start apps of a test's own; all end with it."""
    apps: list[App] = []

    def start(**environment: Any) -> App:
        apps.append(start_app(tmp_path / f"log{len(apps)}", **environment))
        return apps[-1]

    yield start
    for app in apps:
        app.stop()


def until_true(page: Page, expression: str) -> None:
    """Wait until a JavaScript expression holds on a page.

    Playwright's own ``wait_for_function`` evaluates its text inside the page, which the policy of our reports forbids as
    soon as it has to ask twice; this one asks from outside.
    """
    until = time.monotonic() + PATIENCE_S
    while not page.evaluate(expression):
        assert time.monotonic() < until, f"did not hold within {PATIENCE_S:g} s: {expression}"
        page.wait_for_timeout(50)


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    size = {"width": 1280, "height": 720}
    context = browser.new_context(**{"viewport": size, "timezone_id": "Europe/Berlin", "locale": "en-GB", **options})
    context.set_default_timeout(PATIENCE_S * 1000)
    return context


@pytest.fixture(scope="session")
def plain(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser profile that tabs share, so that Streamlit's own files are read and compiled once.

    An empty tab at the address of all apps stays open, so that what is compiled outlives the last tab of a test.
    """
    context = new_context(chromium)
    kept = context.new_page()
    kept.route("**/*", lambda route: route.fulfill(body=""))
    kept.goto("http://127.0.0.1/")
    yield context
    context.close()


_STYLED = """() => {
  const main = document.querySelector('[data-testid=stMainBlockContainer]');
  const letter = parseFloat(getComputedStyle(document.documentElement).fontSize);
  return !main || parseFloat(getComputedStyle(main).paddingLeft) <= 2.5 * letter; }"""


@dataclass
class Viewer:
    """One tab: a page that notes what it asked, what went wrong, and what came over its socket."""

    page: Page
    app: App
    asked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    received: list[bytes] = field(default_factory=list)

    def open(self, path: str = "overview", **query: str | list[str]) -> "Viewer":
        pairs = [(n, v) for n, value in query.items() for v in ([value] if isinstance(value, str) else value)]
        text = "&".join(f"{n}={quote(v, safe='')}" for n, v in pairs)
        self.page.goto(f"{self.app.url}/{path}" + (f"?{text}" if text else ""))
        return self

    def board(self) -> "Viewer":
        self.page.wait_for_selector("tbody tr.pinned")
        return self.settled()

    def settled(self) -> "Viewer":
        """Wait until no script runs and the page has its style: its own margins in place of Streamlit's wide ones."""
        self.page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
        self.page.wait_for_function(_STYLED)
        return self

    @property
    def names(self) -> list[str]:
        """The names in the board, in order."""
        return self.board_table.locator("tbody td.name .clip").all_text_contents()

    @property
    def board_table(self) -> Locator:
        """The board's table: the one with a pinned row."""
        return self.page.locator("table", has=self.page.locator("tr.pinned"))

    def part(self, name: str) -> str:
        return self.page.locator(f".status [data-part={name}]").inner_text()

    def assert_well(self) -> None:
        assert self.errors == []
        foreign = [url for url in self.asked if urlsplit(url).scheme in ("http", "https") and not url.startswith(self.app.url)]
        assert foreign == [], "the page asked another host"
        assert self.page.locator('[data-testid="stException"]').count() == 0


@pytest.fixture
def view(chromium: Browser, plain: BrowserContext) -> Iterator[Callable[..., Viewer]]:
    """Open tabs; each must have asked only its own app and thrown nothing when the test ends."""
    viewers: list[Viewer] = []
    contexts: list[BrowserContext] = []

    def start(app: App, *, color_scheme: Scheme | None = None, viewport: ViewportSize | None = None, **profile: Any) -> Viewer:
        if profile:
            contexts.append(new_context(chromium, **profile))
        viewer = Viewer((contexts[-1] if profile else plain).new_page(), app)
        if color_scheme is not None:
            viewer.page.emulate_media(color_scheme=color_scheme)
        if viewport is not None:
            viewer.page.set_viewport_size(viewport)

        def note_request(request: Request) -> None:
            viewer.asked.append(request.url)

        def note_socket(socket: WebSocket) -> None:
            viewer.asked.append(socket.url.replace("ws://", "http://"))
            socket.on("framereceived", lambda data: viewer.received.append(data if isinstance(data, bytes) else data.encode()))

        viewer.page.on("request", note_request)
        viewer.page.on("websocket", note_socket)
        viewer.page.on("pageerror", lambda error: viewer.errors.append(str(error)))
        viewers.append(viewer)
        return viewer

    yield start
    for viewer in viewers:
        with contextlib.suppress(PlaywrightError):  # a tab that is closed, or was never opened, keeps nothing
            viewer.page.evaluate("() => localStorage.clear()")  # as that a phone's side bar is closed, for the next test
    for viewer in viewers:
        viewer.assert_well()
    for viewer in viewers:
        viewer.page.close()
    for context in contexts:
        context.close()
