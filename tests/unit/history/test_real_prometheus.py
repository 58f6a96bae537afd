"""A real Prometheus that scrapes a recorder: its query API returns our gauges, and the alerts fire on a prepared fall."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from horde_policy.board.rows import make_board
from horde_policy.errors import SourceUnavailable
from horde_policy.frames.snapshot import Snapshot, SourceKind
from horde_policy.history.alerting import firing_alerts
from horde_policy.history.exporter import label_of
from horde_policy.history.service import RecordingPlan, RecordingService
from horde_policy.history.store import HistoryStore
from horde_policy.settings import AllowanceSettings
from tests.recorder_process import FastClock
from tests.server_prometheus import PrometheusServer, prometheus_is_there, running_prometheus
from tests.unit.board.made import listed, snapshot, worker
from tests.unit.history.churn import START

ROOT = Path(__file__).parents[3]
PACE = 60.0
HOSTILE = 'nul\0 "quote" \\ \n line <b>|'

pytestmark = [pytest.mark.server, pytest.mark.skipif(not prometheus_is_there(), reason="Prometheus is not installed")]


class Fall:
    """A source that is calm until it is told to fall, and away when it is told so."""

    kind: SourceKind = "recorded"
    refresh_s = 10.0
    name = "made up"

    def __init__(self, clock: FastClock) -> None:
        self.clock = clock
        self.fallen = False
        self.away = False

    def load(self) -> Snapshot:
        if self.away:
            raise SourceUnavailable(self.name, "no answer")
        workers = [worker("a", ["calm", HOSTILE]), worker("b", "queue grows", max_length=4096)]
        workers += [] if self.fallen else [worker("c", "loses its worker")]
        workers += [worker("d", "only small", max_length=80 if self.fallen else 1024)]
        models = [listed("calm", 40.0, 1.0), listed(HOSTILE, 7.0, 1.0), listed("only small")]
        models += [listed("queue grows", 9_000.0 if self.fallen else 700.0, 2.0)]
        models += [] if self.fallen else [listed("loses its worker")]
        made = snapshot(workers, models, at=self.clock.now(), horde_wide=1_000.0)
        return replace(made, source=self.name)


@pytest.fixture
def fall() -> Fall:
    return Fall(FastClock(START, time.time(), PACE))


@pytest.fixture
def service(fall: Fall, tmp_path: Path) -> Iterator[RecordingService]:
    plan = RecordingPlan(store=tmp_path / "history.sqlite", interval_s=30.0, metrics_port=0)
    made = RecordingService(
        fall,
        plan,
        clock=fall.clock,
        monotonic=lambda: time.monotonic() * PACE,
        owner="test",
        wait=lambda event, seconds: event.wait(seconds / PACE),
    )
    stop = threading.Event()
    running = threading.Thread(target=made.run, args=(stop,))
    running.start()
    yield made
    stop.set()
    running.join(20)
    assert not running.is_alive()


@pytest.fixture
def prometheus(service: RecordingService, tmp_path: Path) -> Iterator[PrometheusServer]:
    """A Prometheus with our rules, of which only the ten and five minutes are cut to two seconds."""
    rules = tmp_path / "alerts.yml"
    text = (ROOT / "docs" / "alerts.yml").read_text(encoding="utf-8")
    assert text.count("for: 10m") == text.count("for: 5m") == 1
    rules.write_text(text.replace("for: 10m", "for: 2s").replace("for: 5m", "for: 2s"), encoding="utf-8")
    assert service.metrics_port is not None
    with running_prometheus(tmp_path, {"horde": service.metrics_port}, interval_s=1, rules=rules) as server:
        yield server


def asked(server: PrometheusServer, query: str) -> dict[tuple[str, ...], float]:
    """What the query API returns, by the labels that are ours."""
    answer: dict[str, Any] = json.loads(server.get("query", query=query))
    assert answer["status"] == "success"
    ours = ("model", "scenario", "state")
    return {
        tuple(one["metric"][name] for name in ours if name in one["metric"]): float(one["value"][1])
        for one in answer["data"]["result"]
    }


def firing(server: PrometheusServer) -> set[tuple[str, str]]:
    alerts = json.loads(server.get("alerts"))["data"]["alerts"]
    found = [(one["labels"]["alertname"], one["labels"].get("model", "")) for one in alerts if one["state"] == "firing"]
    return {(name.removeprefix("HordePolicy"), model) for name, model in found}


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.1)


def test_the_query_api_returns_our_gauges_and_the_alerts_fire_on_a_fall(
    prometheus: PrometheusServer, service: RecordingService, fall: Fall, tmp_path: Path
) -> None:
    board = make_board(fall.load(), AllowanceSettings())
    rows = {label_of(row.model or ""): row.measure for row in board.rows}
    assert label_of(HOSTILE) in rows
    prometheus.wait_for("horde_policy_recorder_polls_total")
    gauges: dict[str, dict[tuple[str, ...], float | None]] = {
        "allowance_tokens": {(model,): row.allowance_tokens for model, row in rows.items()},
        "largest_free_request_tokens": {(model,): row.largest_free_request_tokens for model, row in rows.items()},
        "eligible_workers": {(model,): row.eligible_workers for model, row in rows.items()},
        "combined_speed_tokens_per_second": {(model,): row.speed_tok_per_s for model, row in rows.items()},
        "queued_tokens": {(model,): row.queued_tokens for model, row in rows.items()},
        "estimated_wait_seconds": {
            (model, scenario): wait_s
            for model, row in rows.items()
            if row.waits is not None
            for scenario, wait_s in (("low", row.waits.low_s), ("named", row.waits.named_s), ("high", row.waits.high_s))
        },
    }
    for name, wanted in gauges.items():
        assert asked(prometheus, f"horde_policy_model_{name}") == pytest.approx(wanted), name
    states = asked(prometheus, "horde_policy_model_state == 1")
    assert set(states) == {(model, row.state) for model, row in rows.items()}
    assert asked(prometheus, "horde_policy_snapshot_age_seconds < 120")
    wait_until(lambda: firing(prometheus) == set())  # before the first scrape there was no recorder

    fall.fallen = True
    fell = {("ModelAtFloor", "queue grows"), ("NoEligibleWorker", "loses its worker"), ("SmallFreeRequest", "only small")}
    wait_until(lambda: firing(prometheus) == fell)
    assert ("loses its worker",) not in asked(prometheus, "horde_policy_model_eligible_workers"), "a model that is gone is gone"

    fall.fallen = False
    wait_until(lambda: firing(prometheus) == set())

    fall.away = True
    wait_until(lambda: firing(prometheus) == {("StaleData", "")})
    assert asked(prometheus, "horde_policy_model_allowance_tokens") == {}
    assert asked(prometheus, "horde_policy_recorder_state == 1") == {("source_away",): 1.0}
    store = HistoryStore(tmp_path / "history.sqlite", read_only=True)
    wait_until(lambda: [alert.rule for alert in firing_alerts(store)] == ["stale"])
    store.close()
    assert service.recorder.latest is not None
    assert fall.clock.now() - service.recorder.latest.fetched_at > timedelta(seconds=120)
