"""One model asked for alone: its own pace, one question for all viewers, and recorded folders' answers (horde.md §1.2)."""

import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from horde_policy.errors import InputError
from horde_policy.frames.model_look import ModelLook
from horde_policy.sources.demo import DemoSource
from horde_policy.sources.horde import HordeClient, LiveSource
from horde_policy.sources.one_model import look_at_model
from horde_policy.sources.parts import PARTS
from horde_policy.sources.recorded import RecordedSource
from tests.unit.sources.conftest import HASTE, NOW, RECORDED, Stage

CYDONIA = "koboldcpp/Cydonia-24B-v4.1"
CUSTOM = "koboldcpp/Möbius Rêve 12B::Zoë#4"
GEMMA = "koboldcpp/gemma-3-27b-it"
PLAIN = "my merge (Q4_K_M).gguf"
PLAIN_PATH = f"/api{PARTS['models'].path}/my%20merge%20%28Q4_K_M%29.gguf"


def figures(look: ModelLook | None) -> tuple[bool | None, float | None, float | None, float | None]:
    assert look is not None
    return look.known, look.queued_tokens, look.jobs, look.eta_s


@pytest.fixture
def hasty(stage: Stage) -> Iterator[HordeClient]:
    with stage.client(replace(HASTE, read_s=60.0, whole_s=60.0)) as opened:
        yield opened


def look_until(client: HordeClient, model: str, there: Callable[[ModelLook], bool]) -> ModelLook:
    for _ in range(600):
        look = client.look_at_model(model, wait_s=0.05)
        if there(look):
            return look
    raise AssertionError(f"there is only {look}")


def test_a_live_source_says_what_the_one_model_endpoint_counts(client: HordeClient) -> None:
    """The list said 1132 tokens, 5 jobs and 13 s at the same moment (horde_observed.md)."""
    look = look_at_model(LiveSource(client), CYDONIA)
    assert figures(look) == (True, 1912.0, 6.0, 22.0)
    assert look is not None
    assert (look.model, look.at, look.error) == (CYDONIA, NOW, None)


def test_a_custom_model_is_one_of_which_the_server_says_nothing(client: HordeClient) -> None:
    assert figures(LiveSource(client).model(CUSTOM)) == (False, None, None, None)


def test_the_marker_for_no_capacity_is_no_number_of_seconds(client: HordeClient) -> None:
    known, _, _, eta_s = figures(LiveSource(client).model(GEMMA))
    assert (known, eta_s) == (True, None)


def test_ten_viewers_in_an_hour_ask_no_more_than_the_queue_is_built(stage: Stage, client: HordeClient) -> None:
    source = LiveSource(client)
    for _ in range(60):
        viewers = [threading.Thread(target=source.model, args=(PLAIN,)) for _ in range(10)]
        for viewer in viewers:
            viewer.start()
        for viewer in viewers:
            viewer.join()
        stage.clock.advance(5)
    assert stage.server.counts == {PLAIN_PATH: 30}


def test_a_server_that_hangs_is_not_waited_for_and_not_asked_again(stage: Stage, hasty: HordeClient) -> None:
    stage.server.fail("hang", on=PLAIN_PATH)
    for _ in range(5):
        look = hasty.look_at_model(PLAIN, wait_s=0.0)
        assert (look.at, look.known, look.error) == (None, None, None)
        stage.clock.advance(60)
    assert figures(look_until(hasty, CYDONIA, lambda found: found.at is not None)) == (True, 1912.0, 6.0, 22.0)
    stage.server.heal()
    stage.server.release()
    assert look_until(hasty, PLAIN, lambda found: found.at is not None).known is True
    assert stage.server.counts[PLAIN_PATH] == 2


def test_the_last_answer_stays_two_minutes_with_what_is_wrong(stage: Stage, client: HordeClient) -> None:
    good = client.look_at_model(PLAIN)
    stage.server.fail("status", status=404, on=PLAIN_PATH)
    stage.clock.advance(10)
    look = look_until(client, PLAIN, lambda found: found.error is not None)
    assert figures(look) == figures(good)
    assert look.at == NOW
    assert "answers 404" in (look.error or "")
    stage.clock.advance(111)
    assert figures(look_until(client, PLAIN, lambda found: found.at is None)) == (None, None, None, None)


def test_a_failing_endpoint_is_asked_ever_less(stage: Stage, client: HordeClient) -> None:
    stage.server.fail("status", status=404, on=PLAIN_PATH)
    for _ in range(360):
        client.look_at_model(PLAIN, wait_s=60.0)
        stage.clock.advance(10)
    assert stage.server.counts[PLAIN_PATH] == 10  # 0, 10, 30, 70, 150, 310, 630, 1270 s, then each 900 s


def test_a_429_is_obeyed(stage: Stage, client: HordeClient) -> None:
    stage.server.fail("throttled", on=PLAIN_PATH, times=1)
    for _ in range(6):
        assert "429" in (client.look_at_model(PLAIN, wait_s=60.0).error or "")
        stage.clock.advance(9)
    assert stage.server.counts[PLAIN_PATH] == 1
    stage.clock.advance(5)
    assert client.look_at_model(PLAIN, wait_s=60.0).known is True


def test_all_models_rest_when_the_limit_is_nearly_used_up(stage: Stage, client: HordeClient) -> None:
    stage.server.date = "Sun, 29 Nov 2026 20:00:00 GMT"
    reset = int(NOW.timestamp()) + 40
    stage.server.extra_headers = {"X-RateLimit-Remaining": "3", "X-RateLimit-Reset": str(reset)}
    client.look_at_model(PLAIN, wait_s=60.0)
    stage.clock.advance(39)
    assert client.look_at_model(GEMMA).at is None
    assert stage.server.counts == {PLAIN_PATH: 1}
    stage.clock.advance(1)
    stage.server.extra_headers = {}
    assert client.look_at_model(GEMMA, wait_s=60.0).known is True


def test_a_name_that_no_address_can_hold_is_bad_input(stage: Stage, client: HordeClient) -> None:
    for name in ("", "..", "x" * 70_000):
        with pytest.raises(InputError):
            LiveSource(client).model(name)
    assert stage.server.counts == {}


def test_a_recorded_folder_says_what_was_recorded() -> None:
    source = RecordedSource(RECORDED / "snapshot")
    look = look_at_model(source, CYDONIA)
    assert figures(look) == (True, 1912.0, 6.0, 22.0)
    assert look is not None
    assert look.at is not None
    assert look.at.date() == datetime(2026, 11, 29, tzinfo=UTC).date()
    assert figures(source.model(CUSTOM)) == (False, None, None, None)
    assert look_at_model(source, PLAIN) is None
    assert look_at_model(RecordedSource(RECORDED / "fresh_server"), CYDONIA) is None


def test_files_that_hold_no_answer_are_none(tmp_path: Path) -> None:
    recorded = RECORDED / "snapshot"
    shutil.copy(recorded / "model_single_cydonia_encoded.json", tmp_path)
    (tmp_path / "model_single_half.json").write_text('[{"name": "half', encoding="utf-8")
    (tmp_path / "model_single_bare.json").write_text("[]", encoding="utf-8")
    assert RecordedSource(tmp_path).model(CYDONIA) is None
    shutil.copy(recorded / "model_single_cydonia_double_encoded.json", tmp_path)
    assert figures(RecordedSource(tmp_path).model(CYDONIA)) == (True, 1912.0, 6.0, 22.0)


def test_the_demo_has_no_such_answer(stage: Stage) -> None:
    assert look_at_model(DemoSource(stage.clock), CYDONIA) is None
