"""Eight hours of refresh without growth: two viewers, each as many looks as a day's watch has, as fast as they go.

A look each 30 s makes 960 in eight hours. Here each is a whole run of the page at another size, which is more than a look
does, while the horde behind it changes; what the process keeps is read from the system. It took half an
hour on two cores that others kept busy, and says each hundred looks what the process holds.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import ROOT, App, Viewer, start_app
from tests.replaying_server import ReplayingServer

pytestmark = [pytest.mark.browser, pytest.mark.soak]

LOOKS = int(os.environ.get("HORDE_POLICY_SOAK_LOOKS", "960"))
VIEWERS = 2
WARM = 60
GROWTH_MB = 20.0
FOLDERS = ("snapshot", "calm_snapshot")
GO = "address => { history.pushState({}, '', address); window.dispatchEvent(new PopStateEvent('popstate', { state: {} })) }"


@pytest.fixture
def server() -> Iterator[ReplayingServer]:
    with ReplayingServer(ROOT / "data" / "recorded" / "snapshot") as replaying:
        yield replaying


def resident_mb(app: App) -> float:
    """Memory of the dashboard's own process, the child of the one that was started."""
    pid = app.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    status = Path(f"/proc/{children[0]}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def test_eight_hours_of_looks_keep_no_more_than_twenty_megabytes_a_session(
    server: ReplayingServer, view: Callable[..., Viewer], tmp_path: Path
) -> None:
    app = start_app(tmp_path / "log", HORDE_URL=server.url)
    try:
        tabs = [view(app).open("overview", source="horde", refresh="10").board() for _ in range(VIEWERS)]
        before = 0.0
        for look in range(LOOKS):
            if look % 20 == 0:
                server.folder = ROOT / "data" / "recorded" / FOLDERS[look // 20 % 2]
            for tab in tabs:
                size = 80 + look % 50
                tab.page.evaluate(GO, f"/overview?source=horde&refresh=10&size={size}")
                tab.page.get_by_text(f"at {size} tokens").first.wait_for()
                tab.received.clear()
            if look == min(WARM, LOOKS // 2):
                before = resident_mb(app)
            if look % 100 == 99:
                print(f"{look + 1} looks: {resident_mb(app):.0f} MB", flush=True)
        grown = resident_mb(app) - before
        print(f"{LOOKS} looks of {VIEWERS} viewers: {before:.0f} MB after {WARM}, {grown:+.1f} MB since")
        assert before > 0
        assert grown <= GROWTH_MB * VIEWERS
    finally:
        app.stop()
