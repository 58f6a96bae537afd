"""The metrics are the latest board and nothing else: no sample for what is not known, none for who is gone."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from horde_policy.board.rows import make_board
from horde_policy.clock import FixedClock
from horde_policy.errors import InputError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.exporter import LONGEST_LABEL, BoardCollector, MetricsServer, label_of, serve_metrics
from horde_policy.history.recorder import RecorderState
from horde_policy.settings import AllowanceSettings
from tests.unit.board.made import AT, listed, snapshot, worker
from tests.unit.history.churn import changing

ROOT = Path(__file__).parents[3]
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Scraped:
    """A server of metrics whose look a test sets."""

    def __init__(self) -> None:
        self.clock = FixedClock(AT)
        self.snapshot: Snapshot | None = None
        self.standing = RecorderState(state="starting", since=AT, text="", last_stored=None, polls=0, wait_s=0.0)
        collector = BoardCollector(lambda: (self.snapshot, self.standing), AllowanceSettings(), clock=self.clock)
        self.server: MetricsServer = serve_metrics(collector, 0)

    def text(self) -> str:
        answer = httpx.get(f"http://127.0.0.1:{self.server.port}/metrics")
        assert answer.status_code == 200
        return answer.text

    def samples(self) -> Samples:
        families = text_string_to_metric_families(self.text())
        read = [sample for family in families for sample in family.samples]
        found = {(s.name, tuple(sorted(s.labels.items()))): s.value for s in read}
        assert len(found) == len(read), "a series twice ends a scrape"
        return found

    def models(self) -> set[str]:
        return {dict(labels)["model"] for name, labels in self.samples() if "_model_" in name}


@pytest.fixture
def scraped() -> Iterator[Scraped]:
    made = Scraped()
    yield made
    made.server.stop()


def expected(look: Snapshot) -> Samples:
    """The samples of the models, written down from the board's own frame."""
    frame = make_board(look, AllowanceSettings()).frame()
    columns = {
        "allowance_tokens": "allowance_tokens",
        "largest_free_request_tokens": "largest_free_request_tokens",
        "eligible_workers": "eligible_workers",
        "combined_speed_tokens_per_second": "speed_tok_per_s",
        "queued_tokens": "queued_tokens",
    }
    wanted: Samples = {}
    for row in frame.iter_rows(named=True):
        model = ("model", row["model"])
        for metric, column in columns.items():
            if row[column] is not None:
                wanted[f"horde_policy_model_{metric}", (model,)] = row[column]
        for scenario in ("low", "named", "high"):
            if row[f"wait_{scenario}_s"] is not None:
                key = (model, ("scenario", scenario))
                wanted["horde_policy_model_estimated_wait_seconds", key] = row[f"wait_{scenario}_s"]
        for state in ("no_worker", "too_large", "unknown", "full", "falling", "floor"):
            wanted["horde_policy_model_state", (model, ("state", state))] = float(row["state"] == state)
    return wanted


def test_every_sample_of_a_model_is_the_boards_and_none_stays(scraped: Scraped) -> None:
    seen: set[str] = set()
    for look in list(changing(40, seed=3))[::8]:
        scraped.snapshot = look
        scraped.clock = FixedClock(look.fetched_at)
        found = {key: value for key, value in scraped.samples().items() if key[0].startswith("horde_policy_model_")}
        assert found == expected(look)
        seen |= scraped.models()
    assert len(seen) == 5


def test_a_model_that_is_gone_is_gone(scraped: Scraped) -> None:
    scraped.snapshot = snapshot([worker("a", "m"), worker("b", "n")], [listed("m", 900.0, 2.0), listed("n")])
    assert scraped.models() == {"m", "n"}
    scraped.snapshot = snapshot([worker("b", "n")], [listed("n")])
    assert scraped.models() == {"n"}


def test_what_is_not_known_has_no_sample_and_zero_is_a_zero(scraped: Scraped) -> None:
    scraped.snapshot = snapshot([worker("a", "m")], None, horde_wide=None)
    samples = scraped.samples()
    assert ("horde_policy_model_eligible_workers", (("model", "m"),)) in samples
    assert not [name for name, _ in samples if "wait" in name or "queued" in name or "model_allowance" in name]
    scraped.snapshot = snapshot([worker("a", "m")], [listed("m", 0.0, 0.0)])
    assert scraped.samples()["horde_policy_model_queued_tokens", (("model", "m"),)] == 0.0


def test_an_old_part_that_the_figures_do_without_does_not_age_them(scraped: Scraped) -> None:
    times = {"workers": AT, "models": AT - timedelta(seconds=10), "modes": AT - timedelta(seconds=119)}
    made = snapshot([worker("w")], [listed("m", 0.0, 1.0)], at=min(times.values()))
    scraped.snapshot = replace(made, part_times=times)
    scraped.clock.advance(110)
    assert scraped.samples()["horde_policy_snapshot_age_seconds", ()] == 120.0
    assert scraped.models() == {"m"}


def test_old_data_end_the_models_and_their_age_goes_on(scraped: Scraped) -> None:
    assert not [name for name, _ in scraped.samples() if "snapshot" in name or "_model_" in name], "nothing yet"
    scraped.snapshot = snapshot([worker("a", "m")], [listed("m")])
    scraped.clock.advance(120)
    assert scraped.models() == {"m"}
    scraped.clock.advance(1)
    samples = scraped.samples()
    assert not [name for name, _ in samples if "_model_" in name or name == "horde_policy_models_left_out"]
    assert samples["horde_policy_snapshot_age_seconds", ()] == 121.0
    assert samples["horde_policy_snapshot_age_limit_seconds", ()] == 120.0


def test_the_recorders_state_is_told(scraped: Scraped) -> None:
    stored: datetime = AT + timedelta(seconds=7)
    scraped.standing = replace(scraped.standing, state="source_away", polls=12, last_stored=stored)
    samples = scraped.samples()
    states = {dict(labels)["state"]: value for (name, labels), value in samples.items() if name == "horde_policy_recorder_state"}
    assert states == {
        "starting": 0.0,
        "recording": 0.0,
        "standby": 0.0,
        "source_away": 1.0,
        "throttled": 0.0,
        "store_failing": 0.0,
        "clock_behind": 0.0,
    }
    assert samples["horde_policy_recorder_polls_total", ()] == 12.0
    assert samples["horde_policy_recorder_last_poll_timestamp_seconds", ()] == stored.timestamp()


HOSTILE = ['"} 1\nevil{x="', "back\\slash", "nul\0", "\u202eleft", "x" * 5000, "x" * 5001, "", "a\tb", "a\nb", "\x85\u2028"]


def test_hostile_names_are_one_label_each(scraped: Scraped) -> None:
    scraped.snapshot = snapshot([worker("a", HOSTILE)], [listed(name, 5.0, 1.0) for name in HOSTILE])
    text = scraped.text()
    assert "\0" not in text
    assert all(line.startswith(("#", "horde_policy_")) for line in text.splitlines())
    assert scraped.models() == {label_of(name) for name in HOSTILE}
    assert len({label_of(name) for name in HOSTILE}) == len(HOSTILE)
    assert max(map(len, scraped.models())) <= LONGEST_LABEL + 9


def test_too_many_models_are_counted_not_listed(scraped: Scraped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horde_policy.history.exporter.MOST_MODELS", 20)
    scraped.snapshot = snapshot([], [listed(f"m{number:05d}") for number in range(23)])
    assert len(scraped.models()) == 20
    assert scraped.samples()["horde_policy_models_left_out", ()] == 3.0


@pytest.mark.parametrize("port", [None, 70_000])
def test_a_port_that_cannot_be_used_is_named(scraped: Scraped, port: int | None) -> None:
    collector = BoardCollector(lambda: (None, scraped.standing), AllowanceSettings(), clock=scraped.clock)
    with pytest.raises(InputError, match=r"--metrics-port: '127.0.0.1:[0-9]+' cannot be served on"):
        serve_metrics(collector, scraped.server.port if port is None else port)


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert shutil.which("promtool") is not None, "promtool of Debian's package prometheus is not installed"
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.server
def test_promtool_takes_the_rules_and_they_fire_as_they_should() -> None:
    checked = promtool("check", "rules", "docs/alerts.yml")
    assert checked.returncode == 0, checked.stderr
    assert "5 rules found" in checked.stdout
    tested = promtool("test", "rules", "tests/data/alerts/alerts_test.yml", "tests/data/alerts/forgotten_test.yml")
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.server
def test_promtool_finds_nothing_to_say_against_the_metrics(scraped: Scraped) -> None:
    scraped.snapshot = snapshot([worker("a", HOSTILE)], [listed(name, 5.0, 1.0) for name in HOSTILE])
    checked = subprocess.run(["promtool", "check", "metrics"], input=scraped.text(), capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
