"""The live client against a server that replays recorded answers: paths, pace, refusals, failures, names (horde.md §1)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from horde_policy.errors import ConfigError, InputError, SourceError, SourceFormatError, SourceThrottled, SourceUnavailable
from horde_policy.sources.horde import HordeClient, LiveSource, api_address, client_agent, fetch_snapshot
from horde_policy.sources.http import Patience
from horde_policy.sources.parts import PARTS, PartName
from horde_policy.sources.recorded import load_recorded
from tests.replaying_server import Kind, ReplayingServer
from tests.unit.sources.conftest import HASTE, NOW, RECORDED, Stage

PATHS = {name: f"/api{spec.path}" for name, spec in PARTS.items()}
OPTIONAL: list[PartName] = ["models", "performance", "modes", "heartbeat", "totals", "demand"]


# --- the address ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "api"),
    [
        ("https://aihorde.net", "https://aihorde.net/api"),
        ("https://aihorde.net/", "https://aihorde.net/api"),
        ("https://aihorde.net/api", "https://aihorde.net/api"),
        ("https://aihorde.net/api/v2/", "https://aihorde.net/api"),
        ("  http://127.0.0.1:7001/api  ", "http://127.0.0.1:7001/api"),
        ("https://example.org/horde", "https://example.org/horde/api"),
        ("http://[::1]:7001", "http://[::1]:7001/api"),
    ],
)
def test_an_address_with_or_without_api_is_the_same(given: str, api: str) -> None:
    assert api_address("HORDE_URL", given) == api


@pytest.mark.parametrize(
    "given",
    [
        "",
        "aihorde.net",
        "ftp://aihorde.net",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "https://me:secret@aihorde.net",
        "https:/me:secret@aihorde.net",
        "me:secret@aihorde.net",
        "https://aihorde.net/?key=secret",
        "https://aihorde.net/#secret",
        "https://aihorde.net:0",
        "https://aihorde.net:99999",
        "https://[::1",
    ],
)
def test_what_is_no_plain_address_is_refused_without_repeating_a_secret(given: str) -> None:
    with pytest.raises(ConfigError, match=r"^setting HORDE_URL: ") as refused:
        HordeClient(given)
    assert "secret" not in str(refused.value)


def test_the_name_of_a_horde_is_its_host() -> None:
    with HordeClient("https://horde.example:8443/api") as client:
        assert client.name == "horde.example:8443"


# --- a good snapshot ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["snapshot", "calm_snapshot", "fresh_server", "joined_no_jobs_yet", "production_2023-07"])
def test_live_and_recorded_give_the_same_snapshot(stage: Stage, client: HordeClient, folder: str) -> None:
    stage.server.folder = RECORDED / folder
    live, recorded = client.fetch_snapshot(), load_recorded(RECORDED / folder)
    assert_frame_equal(live.workers, recorded.workers)
    if live.models is None or recorded.models is None:
        assert live.models is None
        assert recorded.models is None
    else:
        assert_frame_equal(live.models, recorded.models)
    assert (live.performance, live.modes, live.heartbeat) == (recorded.performance, recorded.modes, recorded.heartbeat)
    assert (live.totals, live.demand is None) == (recorded.totals, recorded.demand is None)
    assert [(p.subject, p.level) for p in live.problems] == [(p.subject, p.level) for p in recorded.problems]
    assert (live.source, live.source_kind, live.synthetic) == ("a horde", "live", False)
    assert live.fetched_at == NOW


def test_every_part_is_asked_for_once_and_with_a_real_client_agent(stage: Stage, client: HordeClient) -> None:
    client.fetch_snapshot()
    assert stage.server.counts == dict.fromkeys(PATHS.values(), 1)
    for asked in stage.server.asked:
        assert asked.headers["client-agent"] == client_agent()
        assert "apikey" not in asked.headers
        assert asked.query == ((("type", "text"),) if asked.raw_path in (PATHS["workers"], PATHS["models"]) else ())


def test_a_contact_in_the_client_agent_cannot_break_the_header() -> None:
    assert client_agent("me@example.org\r\nX-Evil: 1\u2028") == f"{client_agent().rpartition(':')[0]}:me@example.orgX-Evil: 1"


def test_one_look_for_a_command(stage: Stage) -> None:
    snapshot = fetch_snapshot(stage.server.url + "/api", clock=stage.clock)
    assert snapshot.workers.height == 13
    with pytest.raises(ConfigError, match="--url"):
        fetch_snapshot("nowhere", clock=stage.clock)


def test_a_loopback_address_is_never_asked_through_a_proxy(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with stage.client() as client:
        assert client.fetch_snapshot().workers.height == 13


# --- the pace -------------------------------------------------------------------------------------------------------


def test_an_hour_of_polling_every_ten_seconds_asks_no_more_than_the_caches_turn_over(stage: Stage, client: HordeClient) -> None:
    for _ in range(360):
        client.fetch_snapshot()
        stage.clock.advance(10)
    assert {name: stage.server.counts[path] for name, path in PATHS.items()} == {
        "workers": 120,
        "models": 360,
        "performance": 60,
        "modes": 60,
        "heartbeat": 60,
        "totals": 60,
        "demand": 1,
    }


def test_polling_without_pause_asks_no_more(stage: Stage, client: HordeClient) -> None:
    for _ in range(50):
        client.fetch_snapshot()
        stage.clock.advance(0.1)
    assert set(stage.server.counts.values()) == {1}


def test_a_retry_after_with_a_good_answer_means_nothing(stage: Stage, client: HordeClient) -> None:
    """The recorded good answers carry Retry-After: 60 (horde_observed.md)."""
    client.part("models")
    stage.clock.advance(10)
    client.part("models")
    assert stage.server.counts[PATHS["models"]] == 2


def test_a_clock_that_is_set_back_does_not_stop_the_polling(stage: Stage, client: HordeClient) -> None:
    client.fetch_snapshot()
    stage.clock.advance(-86_400)
    assert client.fetch_snapshot().fetched_at == NOW - timedelta(days=1)
    assert stage.server.counts[PATHS["workers"]] == 2


def test_an_endpoint_rests_when_its_limit_is_nearly_used_up(stage: Stage, client: HordeClient) -> None:
    """X-RateLimit-Remaining of 5 or less: until X-RateLimit-Reset by the server's own clock."""
    server_now = int(datetime(2030, 1, 1, tzinfo=UTC).timestamp())
    stage.server.date = "Tue, 01 Jan 2030 00:00:00 GMT"
    stage.server.extra_headers = {
        "X-RateLimit-Remaining": "5",
        "X-RateLimit-Reset": str(server_now + 40),
    }
    client.part("models")
    limit = client.rate_limits()["models"]
    assert (limit.limit, limit.remaining) == (90, 5)
    stage.clock.advance(39)
    assert client.part("models").at == NOW
    assert stage.server.counts[PATHS["models"]] == 1
    stage.clock.advance(1)
    assert client.part("models").at == NOW + timedelta(seconds=40)
    assert stage.server.counts[PATHS["models"]] == 2


@pytest.mark.parametrize(("reset", "rest_s"), [("9" * 12, 120), ("soon", 120), ("0", 10)])
def test_an_absurd_reset_is_bounded(stage: Stage, client: HordeClient, reset: str, rest_s: int) -> None:
    stage.server.extra_headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
    client.part("models")
    stage.clock.advance(rest_s - 1)
    client.part("models")
    assert stage.server.counts[PATHS["models"]] == 1
    stage.clock.advance(1)
    client.part("models")
    assert stage.server.counts[PATHS["models"]] == 2


# --- 429 ------------------------------------------------------------------------------------------------------------

THROTTLED: list[tuple[Kind, str | None, float | None, float]] = [
    # kind, Retry-After, what the error says, how long the workers then rest
    ("throttled", "59", 59.0, 59.0),
    ("throttled", "1", 1.0, 10.0),
    ("throttled", "0", 0.0, 10.0),
    ("throttled", "1.5", 1.5, 10.0),
    ("throttled", "999999999", 900.0, 900.0),
    ("throttled", "Sun, 29 Nov 2026 20:02:00 GMT", 120.0, 120.0),
    ("throttled", "Sun, 29 Nov 2026 19:00:00 GMT", 0.0, 10.0),
    ("throttled", None, None, 10.0),
    ("throttled", "soon", None, 10.0),
    ("throttled", "-5", None, 10.0),
    ("throttled", "nan", None, 10.0),
    ("throttled", "inf", None, 10.0),
    ("throttled", "Sun, 99 Nov 2026 19:00:00 GMT", None, 10.0),
    ("throttled_rc", "59", None, 10.0),
    ("throttled_rc", "1", None, 10.0),
]


@pytest.mark.parametrize(("kind", "retry_after", "told_s", "rest_s"), THROTTLED)
def test_a_429_is_obeyed_when_it_carries_no_rc(
    stage: Stage, client: HordeClient, kind: Kind, retry_after: str | None, told_s: float | None, rest_s: float
) -> None:
    stage.server.date = "Sun, 29 Nov 2026 20:00:00 GMT"
    stage.server.fail(kind, retry_after=retry_after)
    with pytest.raises(SourceThrottled, match="a horde: answers 429") as refused:
        client.fetch_snapshot()
    assert refused.value.retry_after_s == told_s
    assert stage.pauses == []
    assert stage.server.counts == {PATHS["workers"]: 1}
    stage.server.heal()
    stage.clock.advance(rest_s - 0.5)
    with pytest.raises(SourceThrottled):
        client.fetch_snapshot()
    assert stage.server.counts == {PATHS["workers"]: 1}
    stage.clock.advance(0.5)
    assert client.fetch_snapshot().workers.height == 13


def test_a_snapshot_tells_a_throttled_part_from_one_that_fails(stage: Stage, client: HordeClient) -> None:
    stage.server.fail("throttled", retry_after="59", on=PATHS["models"])
    assert client.fetch_snapshot().throttled_parts == {"models"}
    stage.server.heal()
    stage.clock.advance(60)
    assert client.fetch_snapshot().throttled_parts == frozenset()
    stage.server.fail("status", status=404, on=PATHS["models"])
    stage.clock.advance(60)
    found = client.fetch_snapshot()
    assert (found.throttled_parts, [problem.subject for problem in found.problems]) == (frozenset(), ["models"])


def test_the_recorded_429_of_a_real_server(stage: Stage, client: HordeClient) -> None:
    errors = Path(__file__).parents[2] / "data" / "horde_errors"
    stage.server.answer_with(PATHS["models"], errors / "ratelimit_get_models_90_per_minute.json")
    with pytest.raises(SourceThrottled) as refused:
        client.part("models")
    assert refused.value.retry_after_s == 59.0
    stage.server.answer_with(PATHS["modes"], errors / "too_many_prompts_registered_2.json")
    with pytest.raises(SourceThrottled) as refused:
        client.part("modes")
    assert refused.value.retry_after_s is None


# --- failures -------------------------------------------------------------------------------------------------------


def test_a_server_error_that_passes_is_tried_again(stage: Stage, client: HordeClient) -> None:
    stage.server.fail("status", status=502, on=PATHS["workers"], times=2)
    assert client.fetch_snapshot().workers.height == 13
    assert stage.server.counts[PATHS["workers"]] == 3
    first, second = stage.pauses
    assert 0.25 <= first <= 0.5
    assert 0.5 <= second <= 1.0


def test_pauses_differ_by_chance_and_stay_bounded(stage: Stage, client_with: Callable[[Patience], HordeClient]) -> None:
    client = client_with(replace(HASTE, tries=8))
    stage.server.fail("status", status=503)
    with pytest.raises(SourceUnavailable, match="answers 503 to '/v2/workers', 8 times"):
        client.part("workers")
    assert len(stage.pauses) == 7
    assert all(0.25 * 2**n <= pause <= 0.5 * 2**n for n, pause in enumerate(stage.pauses[:5]))
    assert max(stage.pauses) <= 8.0
    assert len({pause / 2**n for n, pause in enumerate(stage.pauses)}) == 7


@pytest.mark.parametrize("kind", ["drop", "cut"])
def test_a_broken_connection_is_tried_again_and_then_named(stage: Stage, client: HordeClient, kind: Kind) -> None:
    stage.server.fail(kind, times=1)
    assert client.part("workers").problems == ()
    stage.clock.advance(30)
    stage.server.fail(kind)
    with pytest.raises(SourceUnavailable, match="a horde: cannot be reached"):
        client.part("workers")
    assert stage.server.counts[PATHS["workers"]] == 5


def test_a_server_that_is_not_there_is_named() -> None:
    with (
        HordeClient("http://127.0.0.1:9", sleep=lambda _: None) as client,
        pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1:9: cannot be reached \(ConnectError\)"),
    ):
        client.fetch_snapshot()


@pytest.mark.parametrize(
    ("kind", "patience", "message"),
    [
        ("hang", replace(HASTE, read_s=0.05, tries=2), r"sends nothing for 0\.05 s"),
        ("drip", replace(HASTE, whole_s=0.1, tries=2), r"takes longer than 0\.1 s for one answer"),
    ],
)
def test_a_server_that_takes_its_time_is_given_up(
    stage: Stage, client_with: Callable[[Patience], HordeClient], kind: Kind, patience: Patience, message: str
) -> None:
    stage.server.fail(kind)
    with pytest.raises(SourceUnavailable, match=message):
        client_with(patience).part("workers")
    assert stage.server.counts[PATHS["workers"]] == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 204, 206])
def test_any_other_status_is_no_answer_and_not_tried_again(stage: Stage, client: HordeClient, status: int) -> None:
    stage.server.fail("status", status=status)
    with pytest.raises(SourceUnavailable, match=f"answers {status} to '/v2/workers'"):
        client.part("workers")
    assert stage.server.counts == {PATHS["workers"]: 1}


@pytest.mark.parametrize(
    ("kind", "message"),
    [("garbage", "workers is not JSON"), ("html", "workers is not JSON"), ("huge", "more than 1000000 bytes")],
)
def test_an_answer_that_cannot_be_read_is_named_and_not_tried_again(
    stage: Stage, client: HordeClient, kind: Kind, message: str
) -> None:
    stage.server.fail(kind)
    with pytest.raises(SourceFormatError, match=message):
        client.fetch_snapshot()
    assert stage.server.counts == {PATHS["workers"]: 1}


def test_a_redirect_to_another_host_is_not_followed(stage: Stage, client: HordeClient) -> None:
    with ReplayingServer(RECORDED / "calm_snapshot") as other:
        stage.server.fail("redirect", location=f"{other.url}{PATHS['workers']}")
        with pytest.raises(SourceUnavailable, match=rf"redirects to another port, '{other.url}', which is not followed"):
            client.part("workers")
        assert other.counts == {}
    assert stage.server.counts == {PATHS["workers"]: 1}


@pytest.mark.parametrize("location", ["", "http://[", "//elsewhere.invalid/api", "https://127.0.0.1/x", "file:///etc/passwd"])
def test_no_redirect_leads_away(stage: Stage, client: HordeClient, location: str) -> None:
    stage.server.fail("redirect", location=location)
    with pytest.raises(SourceUnavailable, match="redirects"):
        client.part("workers")
    assert set(stage.server.counts) <= {PATHS["workers"]}


def test_a_redirect_on_the_same_host_is_followed(stage: Stage, client: HordeClient) -> None:
    stage.server.fail("redirect", location="/api/v2/workers?type=text", times=1)
    assert client.part("workers").problems == ()
    assert stage.server.counts[PATHS["workers"]] == 2


@pytest.mark.parametrize("kind", ["status", "throttled", "throttled_rc", "garbage", "html", "drop", "redirect"])
@pytest.mark.parametrize("name", OPTIONAL)
def test_one_part_that_fails_never_costs_the_others(stage: Stage, client: HordeClient, name: PartName, kind: Kind) -> None:
    stage.server.fail(kind, on=PATHS[name])
    snapshot = client.fetch_snapshot()
    (problem,) = snapshot.problems
    assert (problem.code, problem.subject) == ("missing_part", name)
    assert problem.level == ("problem" if name == "models" else "note")
    assert "could not be had since 20:00:00 UTC (a horde:" in problem.text
    assert PARTS[name].without in problem.text
    assert getattr(snapshot, name) is None
    assert all(getattr(snapshot, other) is not None for other in OPTIONAL if other != name)
    assert name not in snapshot.part_times


@pytest.mark.parametrize(
    ("name", "kept_s"), [("models", 10_000), ("performance", 120), ("modes", 120), ("heartbeat", 120), ("totals", 120)]
)
def test_the_last_good_part_stays_with_its_own_time(stage: Stage, client: HordeClient, name: PartName, kept_s: float) -> None:
    client.fetch_snapshot()
    stage.server.fail("status", on=PATHS[name])
    stage.clock.advance(60)
    snapshot = client.fetch_snapshot()
    assert getattr(snapshot, name) is not None
    assert snapshot.part_times[name] == NOW
    assert snapshot.fetched_at == NOW
    assert snapshot.part_times["workers"] == NOW + timedelta(seconds=60)
    (problem,) = snapshot.problems
    assert problem.code == "part_failed"
    assert "its answer of 20:00:00 UTC stands" in problem.text
    stage.clock.advance(kept_s - 60)
    assert getattr(client.fetch_snapshot(), name) is not None
    stage.clock.advance(1)
    late = client.fetch_snapshot()
    if name == "models":
        assert late.models is not None
        assert late.fetched_at == NOW
    else:
        assert getattr(late, name) is None
        assert late.problems[0].code == "missing_part"
        assert late.fetched_at > NOW


def test_the_days_demand_stays_for_a_day(stage: Stage, client: HordeClient) -> None:
    client.fetch_snapshot()
    stage.server.fail("status", on=PATHS["demand"])
    stage.clock.advance(86_400)
    snapshot = client.fetch_snapshot()
    assert snapshot.demand is not None
    assert snapshot.fetched_at == NOW + timedelta(days=1)
    stage.clock.advance(3_700)
    assert client.fetch_snapshot().demand is None


def test_a_part_that_keeps_failing_is_asked_ever_less(stage: Stage, client: HordeClient) -> None:
    """Modes, each minute while it works: in an hour of failing 1 + 1 + 2 + 4 + 8 + 15 + 15 … minutes apart."""
    stage.server.fail("status", status=404, on=PATHS["modes"])
    for _ in range(360):
        client.fetch_snapshot()
        stage.clock.advance(10)
    assert stage.server.counts[PATHS["modes"]] == 7
    stage.server.heal()
    stage.clock.advance(900)
    assert client.fetch_snapshot().modes is not None
    stage.clock.advance(60)
    client.fetch_snapshot()
    assert stage.server.counts[PATHS["modes"]] == 9


def test_an_error_is_remembered_and_not_asked_for_again(stage: Stage, client: HordeClient) -> None:
    stage.server.fail("status", status=404)
    for _ in range(20):
        with pytest.raises(SourceUnavailable, match="answers 404"):
            client.fetch_snapshot()
    assert stage.server.counts == {PATHS["workers"]: 1}
    stage.clock.advance(10)
    stage.server.heal()
    assert client.fetch_snapshot().workers.height == 13


def test_one_bad_worker_on_the_wire_never_costs_the_others(stage: Stage, client: HordeClient, tmp_path: Path) -> None:
    body = (RECORDED / "snapshot" / "workers_text.json").read_text(encoding="utf-8")
    (tmp_path / "workers_text.json").write_text(body.replace('"max_length": 4096', '"max_length": NaN'), encoding="utf-8")
    stage.server.folder = tmp_path
    snapshot = client.fetch_snapshot()
    assert snapshot.workers.height == 13
    assert snapshot.workers["max_length"].null_count() == 1
    assert any("night_owl" in problem.text and "max_length" in problem.text for problem in snapshot.problems)


# --- one model ------------------------------------------------------------------------------------------------------

CYDONIA = "koboldcpp/Cydonia-24B-v4.1"


def test_one_model_is_asked_for_again_encoded_twice_where_once_is_not_found(stage: Stage, client: HordeClient) -> None:
    part = client.model(CYDONIA)
    assert stage.server.counts == {
        f"{PATHS['models']}/koboldcpp%2FCydonia-24B-v4.1": 1,
        f"{PATHS['models']}/koboldcpp%252FCydonia-24B-v4.1": 1,
    }
    assert part.value.row(0, named=True)["queued_tokens"] == 1912.0  # type: ignore[union-attr]
    assert part.at == NOW
    client.model("koboldcpp/gemma-3-27b-it")
    assert f"{PATHS['models']}/koboldcpp%2Fgemma-3-27b-it" not in stage.server.counts


def test_one_model_encoded_once_where_that_is_understood(stage: Stage) -> None:
    with ReplayingServer(RECORDED / "snapshot", single_encoding=1) as server:
        other = Stage(server)
        with other.client() as client:
            part = client.model(CYDONIA)
            assert part.value.row(0, named=True)["queued_tokens"] == 1132.0  # type: ignore[union-attr]
        assert server.counts == {f"{PATHS['models']}/koboldcpp%2FCydonia-24B-v4.1": 1}


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("my merge (Q4_K_M).gguf", 1),
        ("koboldcpp/Möbius Rêve 12B::Zoë#4", 0),
        ("no such model", 0),
        ("../../v2/workers", 0),
        ("a?b=c&d#e%2F", 0),
        ("x" * 200, 0),
        ('"><img src=x onerror=alert(1)>', 0),
        ("\u202eltr\n\r\0", 0),
        ("half \ud800", 0),
    ],
)
def test_any_name_is_asked_for_as_it_is(client: HordeClient, name: str, rows: int) -> None:
    """The server answers [] for custom models, also live ones (horde_observed.md)."""
    assert client.model(name).value.height == rows  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 70_000], ids=["empty", "dot", "dots", "long"])
def test_a_name_that_no_address_can_hold_is_bad_input(stage: Stage, client: HordeClient, name: str) -> None:
    with pytest.raises(InputError, match=r"cannot be asked for by name|longer than an address may be"):
        client.model(name)
    assert stage.server.counts == {}


def test_one_models_answer_or_error_is_remembered_for_all_viewers(stage: Stage, client: HordeClient) -> None:
    for _ in range(10):
        client.model("my merge (Q4_K_M).gguf")
    assert sum(stage.server.counts.values()) == 1
    stage.clock.advance(10)
    stage.server.fail("status", status=404)
    for _ in range(10):
        with pytest.raises(SourceError, match="answers 404"):
            client.model("my merge (Q4_K_M).gguf")
    assert sum(stage.server.counts.values()) == 2


def test_models_asked_for_are_not_kept_without_end(stage: Stage, client: HordeClient) -> None:
    for number in range(300):
        client.model(f"model {number}")
    before = sum(stage.server.counts.values())
    client.model("model 299")
    assert sum(stage.server.counts.values()) == before
    client.model("model 0")
    assert sum(stage.server.counts.values()) == before + 1


def test_a_live_source_is_a_source(client: HordeClient) -> None:
    source = LiveSource(client)
    assert (source.name, source.kind, source.refresh_s) == ("a horde", "live", 10.0)
    assert source.load().source_kind == "live"
