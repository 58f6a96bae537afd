"""The probe: dry runs only, once a model and minute, every recorded answer read for what it is, ours beside it."""

import json
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from horde_policy.board.probe import ProbePace, Prober, ProbeResult, probe_folder, why_different
from horde_policy.clock import FixedClock
from horde_policy.errors import InputError, SourceUnavailable
from horde_policy.frames.snapshot import Performance, Snapshot
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.dry_run import ANONYMOUS_KEY, DryRunAnswer, DryRunClient, OnlyDryRuns
from horde_policy.views.probe import probe_lines
from tests.replaying_server import ReplayingServer, recorded_reply
from tests.unit.board.made import AT, listed, snapshot, worker

ROOT = Path(__file__).parents[3]
ERRORS = ROOT / "tests" / "data" / "horde_errors"
PATH = "/api/v2/generate/text/async"
Answering = Callable[[httpx.Request], httpx.Response]


def client(answering: Answering, clock: FixedClock | None = None) -> DryRunClient:
    return DryRunClient(
        "https://horde.example",
        clock=clock or FixedClock(AT),
        draw=random.Random(3),
        transport=httpx.MockTransport(answering),
    )


def answers(status: int, body: Any, headers: dict[str, str] | None = None) -> Answering:
    return lambda request: httpx.Response(status, json=body, headers=headers)


def recorded(name: str) -> Answering:
    read = recorded_reply(ERRORS / f"{name}.json")
    assert read is not None
    reply = read[1]
    return lambda request: httpx.Response(reply.status, content=reply.body, headers=dict(reply.headers))


def asked(answering: Answering) -> DryRunAnswer:
    with client(answering) as asking:
        return asking.ask("m", 80, 2048)


def probed(answering: Answering, look: Snapshot | None, size: int = 1024, **settings: Any) -> ProbeResult:
    with client(answering) as asking:
        prober = Prober(asking, ProbePace(), clock=FixedClock(AT))
        return prober.probe("m", size, look, AllowanceSettings(**settings))


# -- what is sent ------------------------------------------------------------------------------------------------------


def test_what_is_sent_is_a_dry_run_of_the_anonymous_account() -> None:
    with ReplayingServer(ROOT / "data" / "recorded" / "snapshot") as server:
        server.answer_with(PATH, ERRORS / "dry_run_anon_small.json")
        with DryRunClient(server.url, clock=FixedClock(AT)) as asking:
            first = asking.ask('koboldcpp/"odd" \0 <b>', 80, 2048)
            asking.ask("m", 4096, 8192)
    assert (first.outcome, first.kudos, first.status) == ("free", 24.0, 200)
    bodies = [json.loads(one.body) for one in server.asked]
    assert [(one.method, one.raw_path) for one in server.asked] == [("POST", PATH)] * 2
    assert all(body["dry_run"] is True for body in bodies)
    assert all(one.headers["apikey"] == ANONYMOUS_KEY for one in server.asked)
    assert bodies[0]["models"] == ['koboldcpp/"odd" \0 <b>']
    assert {key: bodies[1]["params"][key] for key in ("max_length", "max_context_length")} == {
        "max_length": 4096,
        "max_context_length": 8192,
    }
    temperatures = [body["params"]["temperature"] for body in bodies]
    assert temperatures[0] != temperatures[1], "a price from memory would say nothing of now"
    assert all(0.5 <= each < 1.0 for each in temperatures)


@pytest.mark.parametrize(
    ("method", "path", "body", "key"),
    [
        ("POST", PATH, {"prompt": "x", "dry_run": False}, ANONYMOUS_KEY),
        ("POST", PATH, {"prompt": "x", "dry_run": 1}, ANONYMOUS_KEY),
        ("POST", PATH, {"prompt": "x", "dry_run": "true"}, ANONYMOUS_KEY),
        ("POST", PATH, {"prompt": "x"}, ANONYMOUS_KEY),
        ("POST", PATH, [True], ANONYMOUS_KEY),
        ("POST", PATH, {"dry_run": True}, "another key"),
        ("POST", "/api/v2/generate/async", {"dry_run": True}, ANONYMOUS_KEY),
        ("DELETE", PATH, {"dry_run": True}, ANONYMOUS_KEY),
    ],
)
def test_nothing_but_a_dry_run_gets_through(method: str, path: str, body: Any, key: str) -> None:
    sent: list[httpx.Request] = []

    def note(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200)

    guard = OnlyDryRuns(httpx.MockTransport(note))
    with pytest.raises(AssertionError, match="only a dry run"):
        guard.handle_request(httpx.Request(method, f"https://horde.example{path}", json=body, headers={"apikey": key}))
    garbage = httpx.Request("POST", f"https://horde.example{PATH}", content=b'{"dry_run": true', headers={"apikey": key})
    with pytest.raises(AssertionError):
        guard.handle_request(garbage)
    assert sent == []


def test_a_redirect_is_not_followed_and_a_failure_not_tried_again() -> None:
    sent: list[httpx.URL] = []

    def redirecting(request: httpx.Request) -> httpx.Response:
        sent.append(request.url)
        return httpx.Response(307, headers={"Location": "https://elsewhere.example/"})

    assert asked(redirecting).outcome == "not_understood"

    def failing(request: httpx.Request) -> httpx.Response:
        sent.append(request.url)
        raise httpx.ConnectError("apikey 0000 no route")

    with pytest.raises(SourceUnavailable, match=r"cannot be reached \(ConnectError\)"):
        asked(failing)
    with pytest.raises(SourceUnavailable, match="more than"):
        asked(lambda request: httpx.Response(200, content=b" " * 1_000_001))
    assert len(sent) == 2


# -- what is answered --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "outcome", "stated", "rule"),
    [
        ("dry_run_anon_small", "free", None, None),
        ("dry_run_anon_over_allowance", "refused", 512, "old"),
        ("dry_run_anon_over_allowance_downgrade", "free", None, None),
        ("dry_run_anon_over_allowance_after_cached", "free", None, None),
        ("upfront_anon_513_refused", "refused", 512, "old"),
        ("upfront_anon_no_slow_workers_refused", "refused", 610, "old"),
        ("dry_run_unknown_model_500", "server_error", None, None),
        ("ratelimit_async_2_per_second", "throttled", None, None),
        ("too_many_prompts_registered_2", "too_many_prompts", None, None),
        ("unknown_apikey", "bad_key", None, None),
        ("no_apikey_header", "invalid", None, None),
        ("bad_max_length_too_big", "invalid", None, None),
        ("bad_context_smaller_than_length", "invalid", None, None),
        ("horde_in_maintenance_async", "maintenance", None, None),
        ("upfront_anon_512_ok", "queued", None, None),
        ("no_such_endpoint", "not_understood", None, None),
        ("method_not_allowed", "not_understood", None, None),
    ],
)
def test_recorded_answers_are_read(name: str, outcome: str, stated: int | None, rule: str | None) -> None:
    found = asked(recorded(name))
    assert found.outcome == outcome
    assert (found.stated_tokens, found.rule) == (stated, rule)
    assert found.message or found.status == 200 or found.outcome == "queued"


def test_a_429_with_rc_says_nothing_of_when_to_come_back() -> None:
    assert asked(recorded("ratelimit_async_2_per_second")).retry_after_s == 1.0
    assert asked(recorded("too_many_prompts_registered_2")).retry_after_s is None
    told = asked(answers(429, {"message": "90 per 1 minute"}, {"Retry-After": "59"}))
    assert (told.outcome, told.retry_after_s) == ("throttled", 59.0)


def test_an_input_check_names_its_fields() -> None:
    found = asked(recorded("bad_max_length_too_big"))
    assert "Input payload validation failed" in found.message
    assert "params.max_length" in found.message
    assert "4096" in found.message


@pytest.mark.parametrize(
    ("message", "stated"),
    [
        ("Up to 2048 output tokens are free right now, and this request asks for 4096, which needs kudos in advance.", 2048),
        ("The free allowance is 960 tokens; this request asks for 1024.", 960),
        ("Requests over 700 tokens need kudos.", 700),
        ("This needs 5 kudos.", None),
        ("Up to 1,700 output tokens are free right now, and this request asks for 4,096", 1700),
        ("Up to 1 700 output tokens are free", 1700),
        ("Up to 1\N{NO-BREAK SPACE}700 output tokens are free", 1700),
        ("Up to 1\N{NARROW NO-BREAK SPACE}700 output tokens are free", 1700),
        ("Up to 1.700 output tokens are free", 1700),
        ("Up to 1'700 output tokens are free", 1700),
        ("Up to 1\N{RIGHT SINGLE QUOTATION MARK}700 output tokens are free", 1700),
        ("Up to 1 output token is free", 1),
        ("The allowance: 12,000.", 12_000),
        ("Requests over 700, whatever their context", 700),
        ("Up to 1,7 tokens", None),
        ("Up to 17,00 tokens", None),
        ("Up to 1,700.5 tokens", None),
        ("Up to 0.512 tokens", None),
        ("Up to 2k tokens", None),
        ("Up to 1.7k tokens", None),
        ("Up to 1  700 tokens", None),
        ("Over 512 4096 tokens", None),
        ("Up to 512 128 tokens", None),
        ("Up to 512-4096 tokens", None),
        ("Over -12 tokens", None),
        ("Over the allowance, and this request asks for 4096", None),
        ("Over the allowance. Asked: 4096", None),
        ("Up to " + "9" * 5_000, None),
        ("", None),
    ],
)
def test_a_sentence_of_the_new_rule_is_a_hint(message: str, stated: int | None) -> None:
    found = asked(answers(403, {"message": message, "rc": "KudosUpfront"}))
    assert (found.outcome, found.stated_tokens, found.rule) == ("refused", stated, "not_told")


@pytest.mark.parametrize(("figure", "stated"), [("1,129", 1129), ("1012", 1012), ("-129", -129), ("1,12", None)])
def test_the_old_rules_figure_is_read_whole_or_not_at_all(figure: str, stated: int | None) -> None:
    message = f"Due to heavy demand, for requests over {figure} tokens, the client needs kudos."
    found = asked(answers(403, {"message": message, "rc": "KudosUpfront"}))
    assert (found.stated_tokens, found.rule) == (stated, "old")


@pytest.mark.parametrize("status", [400, 403, 404, 409])
def test_no_eligible_worker_is_known_by_its_rc_whatever_its_status(status: int) -> None:
    assert asked(answers(status, {"message": "x", "rc": "NoEligibleWorker"})).outcome == "no_eligible_worker"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"[]",
        b"[1]",
        b"24.0",
        b"{}",
        b"[" * 100_000,
        b'{"kudos": "many"}',
        b'{"kudos": "NaN"}',
        b'{"kudos": NaN}',
        b'{"kudos": Infinity}',
        b'{"kudos": -1}',
        b'{"kudos": 1' + b"0" * 400 + b"}",
        b'{"kudos": null}',
        b'{"kudos": true}',
        b'{"message": 5, "rc": 7}',
        b'{"message": "all is well"}',
    ],
)
def test_a_success_without_a_price_is_not_understood(content: bytes) -> None:
    for status in (200, 202):
        found = asked(lambda request, status=status: httpx.Response(status, content=content))  # type: ignore[misc]
        assert (found.outcome, found.kudos) == ("not_understood", None)
        begun = content.decode()[:59] or "an empty body"
        assert found.message.startswith(f"no price, but {begun}")
        assert len(found.message) < 80
    compared = probed(lambda request: httpx.Response(200, content=content), CALM)
    assert compared.agrees is None
    assert "neither" in compared.reasons[0]
    hostile = asked(lambda request: httpx.Response(418, content=content))
    assert hostile.outcome == "not_understood"
    assert len(hostile.message) <= 1_000


def test_a_price_of_nothing_is_a_price_and_an_id_is_no_dry_run() -> None:
    assert asked(answers(200, {"kudos": 0})).outcome == "free"
    assert asked(answers(200, {"kudos": 24.0, "id": "x"})).outcome == "queued"


def test_a_page_in_place_of_a_sentence_is_shown_as_text_on_one_line() -> None:
    page = asked(lambda request: httpx.Response(404, content=b"<!doctype html>\n<html lang=en>\n" + b"<p>" * 90))
    assert page.message.startswith("no sentence, but <!doctype html> <html lang=en> <p>")
    assert page.message.endswith("…")
    assert "'" not in page.message
    assert asked(lambda request: httpx.Response(500)).message == "no sentence, but an empty body"


# -- ours beside it ----------------------------------------------------------------------------------------------------


CALM = snapshot([worker("w", max_length=4096, speed_tok_per_s=20.0)], [listed("m", 400.0, 1.0)], horde_wide=400.0)
BUSY = snapshot([worker("w", max_length=4096, speed_tok_per_s=10.0)], [listed("m", 2_700.0, 3.0)], horde_wide=2_700.0)


def test_both_say_free() -> None:
    found = probed(answers(200, {"kudos": 5.0}), CALM)
    assert found.ours is not None
    assert (found.ours.outcome, found.ours.allowance_tokens) == ("free", 4096)
    assert found.agrees is True
    assert found.reasons == ()


def test_both_state_the_same_allowance() -> None:
    message = "Up to 960 output tokens are free right now."
    found = probed(answers(403, {"message": message, "rc": "KudosUpfront"}), BUSY)
    assert found.ours is not None
    assert (found.ours.outcome, found.ours.allowance_tokens) == ("refused", 960)
    assert found.ours.message is not None
    assert "960" in found.ours.message
    assert found.agrees is True
    assert found.reasons == ()


def test_another_figure_is_explained_by_the_range_and_the_age() -> None:
    found = probed(answers(403, {"message": "Up to 700 output tokens are free.", "rc": "KudosUpfront"}), BUSY)
    assert found.agrees is False
    assert "512 to 4096 tokens. What is stated lies within it" in found.reasons[0]
    assert "0 s old" in found.reasons[-1]


def test_the_old_rule_is_recognised_and_its_figure_worked_out() -> None:
    look = snapshot([worker("w", max_length=4096)], [listed("m")])
    object.__setattr__(look, "performance", Performance(queued_text_requests=400.0, text_thread_count=38, queued_tokens=0.0))
    found = probed(recorded("dry_run_anon_over_allowance"), look)
    assert found.agrees is False
    assert found.answer.rule == "old"
    assert "the previous rule's" in found.reasons[0]
    assert found.reasons[1] == "By that rule the public figures give 342 tokens, beside the 512 that it states."


def test_a_pool_without_a_worker_of_that_size_is_no_eligible_worker() -> None:
    look = snapshot([worker("w", max_length=512)], [listed("m")])
    refusal = answers(403, {"message": "No worker", "rc": "NoEligibleWorker"})
    assert probed(refusal, look).agrees is True
    assert probed(answers(200, {"kudos": 1}), look).agrees is False
    assert probed(answers(200, {"kudos": 1}), look, size=80).agrees is True


NARROW = snapshot([worker("w", max_length=512)], [listed("m")])
REFUSED = {"message": "Up to 512 output tokens are free.", "rc": "KudosUpfront"}
NOBODY = {"message": "The allowance is 960 tokens and no worker takes this.", "rc": "NoEligibleWorker"}


def test_kudos_that_would_help_and_kudos_that_would_not_are_two_answers() -> None:
    found = probed(answers(403, REFUSED), NARROW)
    assert found.ours is not None
    assert (found.answer.outcome, found.ours.outcome, found.agrees) == ("refused", "no_eligible_worker", False)
    assert found.answer.stated_tokens == found.ours.allowance_tokens == 512
    assert found.reasons[0].startswith("The server says that kudos would help, ours that they would not")
    assert "earlier rule" in found.reasons[0]
    old = probed(recorded("dry_run_anon_over_allowance"), NARROW)
    assert old.agrees is False
    assert any("The previous rule refuses for kudos before it looks for a worker" in reason for reason in old.reasons)
    other = probed(answers(403, NOBODY), BUSY)
    assert other.agrees is False
    assert other.reasons[0].startswith("The server says that kudos do not help")


@pytest.mark.parametrize("look", [CALM, BUSY, NARROW])
@pytest.mark.parametrize("body", [{"kudos": 24.0}, REFUSED, NOBODY])
def test_only_the_same_outcome_agrees_and_a_difference_has_its_reasons(body: dict[str, Any], look: Snapshot) -> None:
    found = probed(answers(403 if "rc" in body else 200, body), look)
    assert found.ours is not None
    assert not found.agrees or found.answer.outcome == found.ours.outcome
    assert found.agrees is not None
    assert found.agrees or len(found.reasons) >= 1


def test_a_range_of_one_value_reads_as_that_value() -> None:
    found = probed(answers(403, {"message": "Up to 700 output tokens are free.", "rc": "KudosUpfront"}), BUSY)
    assert found.ours is not None
    one = replace(found.ours.measure, allowance_at_low_tokens=512, allowance_at_high_tokens=512)
    reasons = why_different(found.answer, replace(found.ours, measure=one), BUSY)
    assert "our allowance is 512 tokens. What is stated lies outside it" in reasons[0]


@pytest.mark.parametrize(
    ("headers", "asks"), [({"Retry-After": "59"}, "it asks to wait 59 s."), ({}, "it does not say for how long")]
)
def test_a_throttled_probe_says_how_long_to_wait(headers: dict[str, str], asks: str) -> None:
    assert asks in probed(answers(429, {"message": "90 per 1 minute"}, headers), CALM).reasons[0]


def test_the_words_of_one_token() -> None:
    found = probed(answers(403, {"message": "Up to 1 output token is free.", "rc": "KudosUpfront"}), BUSY)
    assert "and states 1 token." in probe_lines(found)[0]


def test_without_a_snapshot_or_a_queue_there_is_none_of_ours() -> None:
    found = probed(answers(200, {"kudos": 1}), None)
    assert (found.ours, found.agrees) == (None, None)
    assert found.reasons == ("There is no snapshot to read ours from.",)
    unknown = probed(answers(200, {"kudos": 1}), snapshot([worker("w", max_length=4096)], None))
    assert unknown.ours is not None
    assert (unknown.ours.outcome, unknown.agrees) == ("unknown", None)


@pytest.mark.parametrize(
    "name", ["dry_run_unknown_model_500", "ratelimit_async_2_per_second", "unknown_apikey", "horde_in_maintenance_async"]
)
def test_an_answer_that_says_nothing_of_the_allowance_is_not_compared(name: str) -> None:
    found = probed(recorded(name), CALM)
    assert found.agrees is None
    assert found.reasons


# -- once a model and minute -------------------------------------------------------------------------------------------


def test_one_probe_a_model_and_minute() -> None:
    sent: list[str] = []

    def noting(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content)["models"][0])
        return httpx.Response(200, json={"kudos": 1})

    clock = FixedClock(AT)
    with client(noting, clock) as asking:
        prober = Prober(asking, ProbePace(), clock=clock)
        prober.probe("m", 80, CALM, AllowanceSettings())
        for _ in range(3):
            clock.advance(19.9)
            assert prober.wait_s("m") > 0
            with pytest.raises(InputError, match="less than a minute ago"):
                prober.probe("m", 512, CALM, AllowanceSettings())
        prober.probe("n", 80, CALM, AllowanceSettings())
        clock.advance(0.3)
        assert prober.wait_s("m") == 0
        prober.probe("m", 80, CALM, AllowanceSettings())
        clock.advance(-7200)
        prober.probe("m", 80, CALM, AllowanceSettings())
        for model, size, context in (("", 80, 2048), ("o", 0, 2048), ("o", 80, 0)):
            with pytest.raises(InputError):
                prober.probe(model, size, CALM, AllowanceSettings(), context_tokens=context)
    assert sent == ["m", "n", "m", "m"]


def test_processes_that_share_a_folder_share_the_pace(tmp_path: Path) -> None:
    folder = probe_folder({"XDG_CACHE_HOME": str(tmp_path)})
    first, second = ProbePace(folder), ProbePace(folder)
    assert first.take("h", "m", AT) == 0
    assert second.take("h", "m", AT + timedelta(seconds=10)) == 50
    assert second.wait_s("h", "m", AT + timedelta(seconds=59)) == 1
    assert second.take("other", "m", AT) == 0
    assert second.take("h", "m", AT + timedelta(seconds=60)) == 0
    assert first.take("h", "m", AT + timedelta(seconds=61)) == 59
    for path in folder.iterdir():
        path.write_text("rubbish", encoding="ascii")
    assert ProbePace(folder).take("h", "m", AT) == 0


def test_a_folder_that_cannot_be_used_leaves_the_pace_of_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="ascii")
    pace = ProbePace(tmp_path / "file" / "probes")
    assert pace.take("h", "m", AT) == 0
    assert pace.take("h", "m", AT + timedelta(seconds=1)) == 59


def test_threads_that_probe_at_once_send_one(tmp_path: Path) -> None:
    paces = [ProbePace(tmp_path) for _ in range(4)]
    taken: list[float] = []
    threads = [threading.Thread(target=lambda pace=pace: taken.append(pace.take("h", "m", AT))) for pace in paces * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [0.0] + [60.0] * 15
