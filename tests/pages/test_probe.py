"""The probe on the model page: only where a source is live, only on a press, once a minute, never anything but a dry run."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.pages.conftest import ROOT, App
from tests.replaying_server import ReplayingServer

NewApp = Callable[[], App]
PATH = "/api/v2/generate/text/async"
MODEL = "koboldcpp/mini-magnum-12b-v1.1"
ANSWER = ROOT / "tests" / "data" / "horde_errors" / "dry_run_anon_over_allowance.json"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ReplayingServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with ReplayingServer(ROOT / "data" / "recorded" / "snapshot") as running:
        running.answer_with(PATH, ANSWER)
        monkeypatch.setenv("HORDE_URL", running.url)
        yield running


def sent(server: ReplayingServer) -> list[dict[str, object]]:
    return [json.loads(one.body) for one in server.asked if one.method == "POST"]


def texts(shown: App) -> str:
    return "\n".join(str(text.value) for text in shown.test.text)


def buttons(shown: App) -> list[str]:
    return [str(button.key) for button in shown.test.button]


@pytest.mark.parametrize("source", ["demo", "recorded-snapshot"])
def test_a_source_that_is_not_live_is_never_probed(app: NewApp, server: ReplayingServer, source: str) -> None:
    shown = app().open("model", source=source, m=MODEL)
    shown.assert_well()
    assert "model.probe" not in buttons(shown)
    assert server.asked == []


def test_a_press_asks_once_and_says_both_answers(app: NewApp, server: ReplayingServer) -> None:
    shown = app().open("model", source="horde", m=MODEL, size="1024")
    assert sent(server) == []
    shown.test.button(key="model.probe").click().run()
    shown.assert_well()
    assert [body["dry_run"] for body in sent(server)] == [True]
    assert "refused (403, KudosUpfront), and states 512 tokens" in texts(shown)
    assert "Ours: no eligible worker, an allowance of 512 tokens." in texts(shown)
    shown.test.button(key="model.probe").click().run()
    assert len(sent(server)) == 1
    assert "was probed less than a minute ago" in texts(shown)
    other = app().open("model", source="horde", m=MODEL, size="80")
    other.test.button(key="model.probe").click().run()
    assert len(sent(server)) == 1, "one a model and minute for all viewers"


def test_several_models_or_none_cannot_be_probed(app: NewApp, server: ReplayingServer) -> None:
    for models in ([], [MODEL, "another"]):
        shown = app().open("model", source="horde", m=models)
        shown.assert_well()
        assert "model.probe" not in buttons(shown)


def test_a_server_that_fails_is_said(app: NewApp, server: ReplayingServer) -> None:
    server.fail("drop", on=PATH)
    shown = app().open("model", source="horde", m=MODEL)
    shown.test.button(key="model.probe").click().run()
    shown.assert_well()
    assert "There is no answer" in texts(shown)
