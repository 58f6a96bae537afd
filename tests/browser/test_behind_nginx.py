"""The dashboard under a sub-path behind Debian's nginx, with the files of ``docs/deploy``: pages, links, WebSocket."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import ROOT, App, Viewer, free_port, own_environment, wait_until_up

DEPLOY = ROOT / "docs" / "deploy"
BASE = "horde/policy"
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.server,
    pytest.mark.skipif(not Path(NGINX).exists() and not os.environ.get("CI"), reason="Debian's nginx is not installed"),
]

FRAME = """
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 256; }}
http {{
    include /etc/nginx/mime.types;
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/http.conf;
    server {{
        listen 127.0.0.1:{port};
        include {location};
    }}
}}
"""


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The dashboard, reached through nginx; only the upstream's port differs from the files that are shipped."""
    folder = tmp_path_factory.mktemp("nginx")
    app = start_below(folder / "app.log")
    inner = int(app.url.split(":")[2].split("/")[0])
    shipped = (DEPLOY / "nginx-http.conf").read_text(encoding="utf-8")
    (folder / "http.conf").write_text(shipped.replace("127.0.0.1:8501", f"127.0.0.1:{inner}"))
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    config = folder / "nginx.conf"
    config.write_text(FRAME.format(user=user, folder=folder, port=port, location=DEPLOY / "nginx-location.conf"))
    server = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(config)], stderr=subprocess.DEVNULL)
    outer = App(f"http://127.0.0.1:{port}/{BASE}", app.process, app.log)
    try:
        wait_until_up(outer, "health")
        yield outer
    finally:
        server.terminate()
        server.wait(10)
        app.stop()


def start_below(log: Path) -> App:
    port = free_port()
    command = [sys.executable, "tools/serve.py", "--no-browser", "--port", str(port), "--base-path", BASE]
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=own_environment(), stdout=out, stderr=out, start_new_session=True)
    app = App(f"http://127.0.0.1:{port}/{BASE}", process, log)
    wait_until_up(app, "script-health-check")
    return app


def status_of(url: str) -> int:
    with contextlib.suppress(OSError):
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
    return 0


def test_only_what_is_for_visitors_is_reachable(proxied: App) -> None:
    root = proxied.url.removesuffix(f"/{BASE}")
    assert status_of(f"{proxied.url}/_stcore/health") == 200
    assert status_of(proxied.url) == 200, "without the last slash nginx sends the browser on"
    assert status_of(f"{proxied.url}/_stcore/metrics") == 403
    assert status_of(f"{proxied.url}/_stcore/script-health-check") == 403
    assert status_of(f"{root}/overview") == 404


def test_an_address_below_a_page_leads_to_the_first_page(proxied: App) -> None:
    for address in ("overview/model", "a/b/c"):
        with urllib.request.urlopen(f"{proxied.url}/{address}?size=512", timeout=30) as answer:
            assert answer.url == f"{proxied.url}/?size=512"
    for address in ("overview", "overview/"):
        assert status_of(f"{proxied.url}/{address}") == 200


def test_pages_open_by_their_links_and_over_a_websocket(proxied: App, view: Callable[..., Viewer]) -> None:
    viewer = view(proxied)
    for page in ("model", "sources", "guide"):
        viewer.open(page).settled()
        viewer.page.locator("h1").first.wait_for()
        assert viewer.page.locator("h1").first.inner_text() != "Page not found"
    sockets = [url for url in viewer.asked if url.endswith(f"/{BASE}/_stcore/stream")]
    assert sockets, "the page has no WebSocket"
    assert viewer.received, "nothing came over it"
    below = proxied.url.removesuffix(f"/{BASE}")
    astray = [url for url in viewer.asked if url.startswith(below) and not url.startswith(proxied.url)]
    assert astray == [], "something was asked beside the sub-path"


def test_links_controls_and_the_first_page_stay_below_the_path(proxied: App, view: Callable[..., Viewer]) -> None:
    viewer = view(proxied)
    viewer.open("").board()
    viewer.board_table.locator("tr.opens td.name a").nth(1).click()
    viewer.page.locator("h1", has_text="tokens").first.wait_for()
    assert re.match(rf"{re.escape(proxied.url)}/model\?m=", viewer.page.url)
    viewer.page.locator(".st-key-model-curve .main-svg").first.wait_for()
    assert any(url.startswith(f"{proxied.url}/app/static/plotly-") for url in viewer.asked), "Plotly's library comes the same way"
    viewer.page.go_back()
    viewer.board()
    viewer.page.get_by_role("link", name="Guide").click()
    viewer.page.get_by_role("button", name="Begin").click()
    viewer.page.locator("h1", has_text="Why a horde-wide count failed").wait_for()
    until = time.monotonic() + 30
    while "step=1" not in viewer.page.url and time.monotonic() < until:
        viewer.page.wait_for_timeout(50)
    assert viewer.page.url == f"{proxied.url}/guide?step=1"
