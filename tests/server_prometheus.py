"""Debian's own Prometheus, started by a test in a temporary folder on a free port, and an endpoint that it scrapes."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx

__all__ = ["PrometheusServer", "free_port", "metrics_endpoint", "prometheus_is_there", "running_prometheus"]

PATIENCE_S = 60.0


def prometheus_is_there() -> bool:
    """Whether the program is installed; in CI a test must not be left out for want of it."""
    return shutil.which("prometheus") is not None or bool(os.environ.get("CI"))


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def metrics_endpoint(page: Callable[[], bytes]) -> Iterator[int]:
    """A scrape endpoint that answers with what ``page`` returns; gives its port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@dataclass(frozen=True)
class PrometheusServer:
    """A running Prometheus."""

    url: str

    def get(self, path: str, **parameters: str) -> bytes:
        """The body of an API answer, whatever its status."""
        return httpx.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=PATIENCE_S).content

    def wait_for(self, query: str, least: float = 1.0) -> None:
        """Wait until a query has a value of at least ``least``."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, timeout=PATIENCE_S).json()
            values = [float(one["value"][1]) for one in answer.get("data", {}).get("result", [])]
            if values and max(values) >= least:
                return
            time.sleep(0.2)
        raise TimeoutError(f"{query} did not reach {least} within {PATIENCE_S} s")


@contextmanager
def running_prometheus(
    folder: Path, targets: Mapping[str, int], *, out_of_order: str = "30d", interval_s: int = 3, rules: Path | None = None
) -> Iterator[PrometheusServer]:
    """A Prometheus that scrapes each job's loopback port every few seconds and takes samples of the past (compressed time).

    ``rules`` is a file of rules that it evaluates as often. Configuration and data lie in ``folder``; the system's own instance
    is left alone.
    """
    port = free_port()
    jobs = "".join(
        f"  - job_name: {job}\n    honor_timestamps: true\n    static_configs:\n      - targets: ['127.0.0.1:{target}']\n"
        for job, target in targets.items()
    )
    config = folder / "prometheus.yml"
    config.write_text(
        f"global:\n  scrape_interval: {interval_s}s\n  scrape_timeout: {interval_s}s\n  evaluation_interval: {interval_s}s\n"
        f"rule_files: {[] if rules is None else [str(rules)]}\n"
        f"storage:\n  tsdb:\n    out_of_order_time_window: {out_of_order}\n"
        f"scrape_configs:\n{jobs}",
        encoding="utf-8",
    )
    command = [
        *("prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", "--storage.tsdb.retention.time=60d"),
        *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"),
    ]
    with (
        (folder / "prometheus.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        try:
            _wait_until_ready(process, f"http://127.0.0.1:{port}", folder / "prometheus.log")
            yield PrometheusServer(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_S)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"prometheus ended with {process.returncode}: {log.read_text(encoding='utf-8', errors='replace')}")
        try:
            if httpx.get(f"{url}/-/ready", timeout=5.0).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise TimeoutError(f"prometheus was not ready within {PATIENCE_S} s")
