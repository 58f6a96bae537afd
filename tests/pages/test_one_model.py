"""The open model asked for alone: the line on the model page, from a live horde, a recorded folder, and nowhere else."""

from collections.abc import Callable, Iterator

import pytest

from tests.pages.conftest import ROOT, App
from tests.replaying_server import ReplayingServer

NewApp = Callable[[], App]
CYDONIA = "koboldcpp/Cydonia-24B-v4.1"
CUSTOM = "koboldcpp/Möbius Rêve 12B::Zoë#4"
PLAIN = "my merge (Q4_K_M).gguf"
MODELS = "/api/v2/status/models/"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplayingServer]:
    with ReplayingServer(ROOT / "data" / "recorded" / "snapshot") as running:
        monkeypatch.setenv("HORDE_URL", running.url)
        yield running


def lines(shown: App) -> list[str]:
    """Return what the line says, if it is there."""
    texts = (str(caption.value).replace("\\", "").replace("\u2060", "") for caption in shown.test.caption)
    return [text for text in texts if text.startswith("Asked again for this model alone")]


def asked(server: ReplayingServer) -> int:
    return sum(count for path, count in server.counts.items() if path.startswith(MODELS))


def open_until(app: NewApp, says: str, model: str) -> App:
    """Open the page, as its timer would, until the answer is there."""
    for _ in range(50):
        shown = app().open("model", source="horde", m=model)
        shown.assert_well()
        (line,) = lines(shown)
        if says in line:
            return shown
    raise AssertionError(line)


def test_a_recorded_folder_shows_what_was_recorded_and_what_it_counts(app: NewApp) -> None:
    shown = app().open("model", source="recorded-snapshot", m=CYDONIA)
    shown.assert_well()
    (line,) = lines(shown)
    assert line.startswith("Asked again for this model alone: queued 1,912 tokens, jobs 6, wait 22 s (19:39 UTC).")
    assert "as often as the answers it asks for" in line
    (custom,) = lines(app().open("model", source="recorded-snapshot", m=CUSTOM))
    assert "reference list only" in custom


@pytest.mark.parametrize(
    ("source", "models"),
    [
        ("demo", "koboldcpp/Fernery-24B-v1.1"),
        ("recorded-snapshot", PLAIN),
        ("recorded-snapshot", [CYDONIA, CUSTOM]),
        ("horde", []),
    ],
)
def test_where_nothing_is_said_of_one_model_there_is_no_line(
    app: NewApp, server: ReplayingServer, source: str, models: str | list[str]
) -> None:
    shown = app().open("model", source=source, m=models)
    shown.assert_well()
    assert lines(shown) == []
    assert asked(server) == 0


def test_a_live_horde_is_asked_once_for_all_viewers(app: NewApp, server: ReplayingServer) -> None:
    open_until(app, "tokens, jobs", PLAIN)
    for _ in range(3):
        open_until(app, "tokens, jobs", PLAIN)
    assert asked(server) == 1


def test_a_horde_that_does_not_answer_this_costs_the_page_nothing(app: NewApp, server: ReplayingServer) -> None:
    path = f"{MODELS}my%20merge%20%28Q4_K_M%29.gguf"
    server.fail("hang", on=path)
    shown = app().open("model", source="horde", m=PLAIN)
    shown.assert_well()
    assert lines(shown)[0].strip() == "Asked again for this model alone: the answer is on its way."
    assert shown.has_part("model.pulse")
    assert server.counts[path] <= 1


def test_a_refusal_is_text(app: NewApp, server: ReplayingServer) -> None:
    server.fail("status", status=404, on=f"{MODELS}my%20merge%20%28Q4_K_M%29.gguf")
    shown = open_until(app, "no answer", PLAIN)
    assert "answers 404 to '/v2/status/models'" in lines(shown)[0]
