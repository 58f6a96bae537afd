"""What the deployment's files say fits the program: units, addresses, metrics of the board."""

import configparser
import json
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from horde_policy.clock import FixedClock
from horde_policy.history.exporter import BoardCollector
from horde_policy.history.recorder import RecorderState
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.demo import DemoSource
from tests.server_prometheus import metrics_endpoint, prometheus_is_there, running_prometheus

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs" / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
HARDENED = {
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "NoNewPrivileges": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "CapabilityBoundingSet": "",
    "User": "horde-policy",
}


def unit_of(path: Path) -> dict[str, list[str]]:
    """The service section of a unit: directives may stand several times."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_is_hardened_and_starts_what_is_there(path: Path) -> None:
    unit = unit_of(path)
    assert {name: unit[name][-1] for name in HARDENED} == HARDENED
    words = unit["ExecStart"][0].split()
    assert words[0] == "/opt/horde-policy/.venv/bin/python"
    assert unit["WorkingDirectory"] == ["/opt/horde-policy"]
    if words[1] == "-m":
        assert words[2:4] == ["horde_policy", "record"]
    else:
        assert (ROOT / words[1]).is_file()
        told = subprocess.run(
            [shutil.which("python3") or "python3", str(ROOT / words[1]), "--help"], capture_output=True, text=True, check=True
        ).stdout
        assert all(word in told for word in words if word.startswith("--"))


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_takes_the_unit(path: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(path.read_text(encoding="utf-8"))
        assert parser.sections() == ["Unit", "Service", "Install"]
        return
    here = tmp_path / path.name
    program = tmp_path / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    here.write_text(path.read_text(encoding="utf-8").replace("/opt/horde-policy", str(tmp_path)))
    told = subprocess.run(["systemd-analyze", "verify", "--man=no", str(here)], capture_output=True, text=True, check=False)
    own = [line for line in told.stderr.splitlines() if path.name in line]
    assert told.returncode == 0, told.stderr
    assert own == []


def test_unit_proxy_and_page_name_one_path_and_port() -> None:
    command = unit_of(DEPLOY / "horde-policy.service")["ExecStart"][0]
    path, port = re.search(r"--base-path (\S+)", command), re.search(r"--port (\d+)", command)
    assert path is not None
    assert port is not None
    location = (DEPLOY / "nginx-location.conf").read_text(encoding="utf-8")
    assert set(re.findall(r"location (?:= )?/(\w+/\w+)", location)) == {path[1]}
    assert f"server 127.0.0.1:{port[1]};" in (DEPLOY / "nginx-http.conf").read_text(encoding="utf-8")
    config = (ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    size = re.search(r"maxUploadSize = (\d+)", config)
    assert size is not None
    assert f"client_max_body_size {size[1]}m;" in location
    page = (DEPLOY / "README.md").read_text(encoding="utf-8")
    assert f"http://127.0.0.1:{port[1]}/{path[1]}/_stcore/health" in page
    recorder = unit_of(DEPLOY / "horde-policy-recorder.service")["ExecStart"][0]
    served = re.search(r"--metrics-port (\d+)", recorder)
    assert served is not None
    assert f"http://127.0.0.1:{served[1]}/metrics" in page


# --- the board -------------------------------------------------------------------------------------------------------------


def exposed() -> list[Metric]:
    snapshot = DemoSource(FixedClock(NOON)).load()
    standing = RecorderState(state="recording", since=NOON, text="", last_stored=NOON, polls=3, wait_s=30.0)
    return list(BoardCollector(lambda: (snapshot, standing), AllowanceSettings(), clock=FixedClock(NOON)).collect())


def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    return found


def queries() -> list[str]:
    panels = [target["expr"] for panel in board()["panels"] for target in panel["targets"]]
    variables = [one["definition"] for one in board()["templating"]["list"] if "definition" in one]
    return panels + variables


def test_the_board_asks_for_nothing_that_the_recorder_does_not_serve() -> None:
    samples = {sample.name: sample.labels for metric in exposed() for sample in metric.samples}
    asked = {name for query in queries() for name in re.findall(r"horde_policy_\w+", query)}
    assert asked
    assert asked <= set(samples), f"{sorted(asked - set(samples))} are not served"
    for query in queries():
        for name, labels in re.findall(r"(horde_policy_\w+)\{([^}]*)\}", query):
            own = set(re.findall(r"(\w+)=", labels)) - {"job", "instance"}
            assert own <= set(samples[name]), f"{query}: {name} has no label {own - set(samples[name])}"


def test_the_metrics_page_names_every_metric_and_no_other() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(horde_policy_\w+)`", page)) == {sample.name for metric in exposed() for sample in metric.samples}


def test_every_panel_of_the_board_says_what_it_shows_and_none_lies_over_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board()["panels"]:
        assert panel["title"]
        assert panel["description"]
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in board()["panels"]}) == len(board()["panels"])


@pytest.mark.server
@pytest.mark.skipif(not prometheus_is_there(), reason="Debian's prometheus is not installed")
def test_a_real_prometheus_answers_every_query_of_the_board(tmp_path: Path) -> None:
    class Once(Collector):
        def collect(self) -> list[Metric]:
            return exposed()

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    with metrics_endpoint(lambda: generate_latest(registry)) as port, running_prometheus(tmp_path, {"recorder": port}) as server:
        server.wait_for("horde_policy_recorder_polls_total")
        for query in queries():
            if query.startswith("label_values"):
                continue
            filled = re.sub(r"\$(job|instance|model)", ".*", query)
            answer = json.loads(server.get("query", query=filled))
            assert answer["status"] == "success", f"{query}: {answer}"
            if "rate(" not in query:
                assert answer["data"]["result"], f"{query} finds nothing"


def test_recorder_and_dashboard_have_one_store_the_environments() -> None:
    for name in ("horde-policy.service", "horde-policy-recorder.service"):
        unit = unit_of(DEPLOY / name)
        assert unit["EnvironmentFile"] == ["-/etc/horde-policy/environment"]
        assert not [command for command in unit["ExecStart"] if "--store" in command or "--history" in command]
    assert "HORDE_POLICY_HISTORY=" in (DEPLOY / "README.md").read_text(encoding="utf-8")


def test_the_settings_are_written_before_a_unit_is_started() -> None:
    text = (DEPLOY / "README.md").read_text(encoding="utf-8")
    assert text.index("HORDE_URL=") < text.index("systemctl enable --now")
    assert text.count("enable --now") == 1
