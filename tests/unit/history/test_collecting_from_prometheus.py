"""A real Prometheus is collected from by the command itself, killed and started again: what is kept is what it was scraped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horde_policy.clock import FixedClock
from horde_policy.history.collecting import Collector
from horde_policy.history.kept import collected_to, kept_exports, kept_samples
from horde_policy.history.store import HistoryStore
from horde_policy.imports import SERIES_SELECTOR, count_samples, read_exports
from horde_policy.sources.prometheus import PrometheusClient
from tests.server_prometheus import PrometheusServer, metrics_endpoint, prometheus_is_there, running_prometheus
from tests.unit.imports.production_week import Week, produced

pytestmark = [pytest.mark.server, pytest.mark.skipif(not prometheus_is_there(), reason="Debian's prometheus is not installed")]

STEP_S = 300
BEGAN_H = 50
TOKEN = "not-for-any-log-7f3a"


@pytest.fixture(scope="module")
def week() -> Week:
    return produced(seed=5, step_s=STEP_S, days=1, begin=(int(time.time()) // 3600 - BEGAN_H) * 3600)


@pytest.fixture(scope="module")
def server(week: Week, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with (
        metrics_endpoint(lambda: week.scrapes) as port,
        running_prometheus(tmp_path_factory.mktemp("prometheus"), {"horde": port}) as running,
    ):
        end = week.begin + 86_400
        running.wait_for(f"count(last_over_time({SERIES_SELECTOR}[2d] @ {end}))", 50)
        running.wait_for('up{job="horde"}')
        yield running


def check_whole(store: HistoryStore, server: PrometheusServer, week: Week, until: int) -> None:
    """What is kept counts what one answer for all of it counts."""
    length_s = until - week.begin + 3600
    whole = read_exports(server.get("query", query=f"{SERIES_SELECTOR}[{length_s}s]", time=str(until)))
    kept = count_samples(kept_samples(store)[0])
    assert kept.decisions.equals(whole.decisions)
    assert kept.waits.equals(whole.waits)
    assert kept.decisions["count_high"].sum() > 0


def test_looks_with_hours_between_them_keep_all_of_it(server: PrometheusServer, week: Week, tmp_path: Path) -> None:
    clock = FixedClock(datetime.fromtimestamp(week.begin + 5 * 3600, UTC))
    store = HistoryStore(tmp_path / "history.sqlite", durable=False)
    with PrometheusClient(server.url, clock=clock, tenant="horde", token=TOKEN) as client:
        collector = Collector(client, store, clock=clock)
        for away_s in (0, 300, 300, 9 * 3600, 300, 10 * 3600 - 900):
            clock.advance(away_s)
            assert collector.step().state == "collecting"
    check_whole(store, server, week, week.begin + 86_400)
    kept = kept_exports(store)[0]
    assert kept.name == server.url.removeprefix("http://")
    assert kept.collected_to == datetime.fromtimestamp(week.begin + 86_400, UTC)


def test_killed_at_any_time_and_started_again_it_has_all_and_doubles_nothing(
    server: PrometheusServer, week: Week, tmp_path: Path
) -> None:
    path = tmp_path / "history.sqlite"
    log = tmp_path / "log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HORDE")}
    environment |= {"HORDE_POLICY_PROMETHEUS_TOKEN": TOKEN, "HORDE_POLICY_HISTORY": str(path)}
    command = [
        sys.executable,
        "-m",
        "horde_policy",
        "record",
        "--prometheus",
        server.url,
        "--tenant",
        "horde",
        "--interval",
        "10",
    ]
    HistoryStore(path).close()
    for killed_after_h in (10.0, 30.0, None):
        with log.open("ab") as out, subprocess.Popen(command, env=environment, stderr=out, stdout=out) as process:
            wait_until(path, server, killed_after_h)
            process.send_signal(signal.SIGTERM if killed_after_h is None else signal.SIGKILL)
            code = process.wait(30)
            assert code == (0 if killed_after_h is None else -signal.SIGKILL)
    store = HistoryStore(path, read_only=True)
    check_whole(store, server, week, week.begin + 86_400)
    store.close()
    said = log.read_text(encoding="utf-8")
    assert f"collecting the metrics of {server.url.removeprefix('http://')}" in said
    assert said.rstrip().endswith("stopped")
    assert TOKEN not in said
    assert all(TOKEN.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def wait_until(path: Path, server: PrometheusServer, back_h: float | None) -> None:
    """Wait until all is collected up to so many hours after the first that is asked for; null: up to now."""
    store = HistoryStore(path, read_only=True)
    name = server.url.removeprefix("http://")
    begin = datetime.now(UTC)
    goal = begin - timedelta(seconds=1) if back_h is None else begin - timedelta(days=3) + timedelta(hours=back_h)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        reached = collected_to(store, name)
        if reached is not None and reached >= goal:
            store.close()
            return
        time.sleep(0.02)
    raise TimeoutError(f"nothing was collected up to {goal}: {collected_to(store, name)}")
