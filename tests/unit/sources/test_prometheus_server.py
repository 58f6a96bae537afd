"""The client against a real Prometheus server, started here with three days of made-up samples."""

import socket
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horde_policy.clock import SystemClock
from horde_policy.errors import SourceUnavailable
from horde_policy.sources.prometheus import PrometheusClient

START = datetime(2026, 11, 20, tzinfo=UTC)
STEP_S = 15
SAMPLES = 3 * 86_400 // STEP_S


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("prometheus")
    first = int(START.timestamp())
    lines = ["# HELP d synthetic", "# TYPE d counter"]
    lines += [f'd_total{{outcome="free"}} {n} {first + n * STEP_S}' for n in range(SAMPLES)]
    (folder / "in.txt").write_text("\n".join([*lines, "# EOF", ""]), encoding="utf-8")
    (folder / "prometheus.yml").write_text("global: {}\n", encoding="utf-8")
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(folder / "in.txt"), str(folder / "data")]
    subprocess.run(blocks, check=True, capture_output=True)
    port = free_port()
    server = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture(scope="module")
def client(prometheus: str) -> Iterator[PrometheusClient]:
    with PrometheusClient(prometheus, clock=SystemClock()) as opened:
        deadline = time.monotonic() + 60
        while True:
            try:
                opened.query("1")
                break
            except SourceUnavailable:
                assert time.monotonic() < deadline, "the Prometheus server did not start"
        yield opened


@pytest.mark.server
def test_three_days_come_whole_across_the_seams(client: PrometheusClient) -> None:
    """17,280 points at the scrape's own step, more than one answer may hold."""
    end = START + timedelta(seconds=(SAMPLES - 1) * STEP_S)
    answer = client.query_range("d_total", start=START, end=end, step=timedelta(seconds=STEP_S))
    (series,) = answer["data"]["result"]
    assert series["metric"] == {"__name__": "d_total", "outcome": "free"}
    assert [float(value) for _, value in series["values"]] == [float(n) for n in range(SAMPLES)]
    assert [at for at, _ in series["values"]] == [START.timestamp() + n * STEP_S for n in range(SAMPLES)]


@pytest.mark.server
def test_an_instant_in_the_past_is_answered_as_it_was(client: PrometheusClient) -> None:
    answer = client.query("d_total", at=START + timedelta(seconds=10 * STEP_S))
    assert answer["data"]["result"][0]["value"] == [START.timestamp() + 10 * STEP_S, "10"]


@pytest.mark.server
def test_a_query_it_refuses_is_named(client: PrometheusClient) -> None:
    with pytest.raises(SourceUnavailable, match="refuses /query: 'bad_data'"):
        client.query("sum(")
