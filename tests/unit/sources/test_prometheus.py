"""The client of a Prometheus or Mimir: windows joined without a double seam, refusals named, the token never shown."""

import itertools
import json
import logging
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.clock import FixedClock
from horde_policy.errors import (
    ConfigError,
    HordePolicyError,
    InputError,
    SourceFormatError,
    SourceThrottled,
    SourceUnavailable,
)
from horde_policy.sources.http import Patience
from horde_policy.sources.prometheus import MOST_POINTS, PrometheusClient, configured_prometheus, windows
from tests.unit.sources.conftest import NOW

TOKEN = "glc_verysecret+/=="
DAY = datetime(2026, 11, 22, tzinfo=UTC)
Answerer = Callable[[httpx.Request], httpx.Response]


class Scripted:
    """A client whose server is a function, with its pauses and requests written down."""

    def __init__(self, answer: Answerer, *, token: str | None = TOKEN, tenant: str | None = "ai-horde-app") -> None:
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []

        def note(request: httpx.Request) -> httpx.Response:
            self.requests.append(request)
            return answer(request)

        self.client = PrometheusClient(
            "https://mimir.example/prometheus/",
            clock=FixedClock(NOW),
            tenant=tenant,
            token=token,
            sleep=self.pauses.append,
            draw=random.Random(5),
            patience=Patience(largest_bytes=50_000_000),
            transport=httpx.MockTransport(note),
        )


def success(result: list[Any], kind: str = "matrix", **more: Any) -> httpx.Response:
    return httpx.Response(200, json={"status": "success", "data": {"resultType": kind, "result": result}, **more})


def sampled(request: httpx.Request) -> httpx.Response:
    """Answer as a server does: a point at each step from start to end, both included; another series is born late."""
    start, end, step = (round(float(request.url.params[word]) * 1000) for word in ("start", "end", "step"))
    if (end - start) // step > 11_000:
        return httpx.Response(400, json={"status": "error", "errorType": "bad_data", "error": "exceeded maximum resolution"})
    times = range(start, end + 1, step)
    born = round(DAY.timestamp() * 1000) + 43_200_000
    series = [{"metric": {"__name__": "d", "outcome": "free"}, "values": [[t / 1000, str(t)] for t in times]}]
    late = [[t / 1000, "1"] for t in times if t >= born]
    if late:
        series.append({"metric": {"outcome": "refused", "__name__": "d"}, "values": late})
    return success(series)


def test_a_week_by_ten_seconds_is_joined_as_if_it_had_come_in_one_piece() -> None:
    scripted = Scripted(sampled)
    answer = scripted.client.query_range("d", start=DAY, end=DAY + timedelta(days=7), step=timedelta(seconds=10))
    assert answer["status"] == "success"
    free, refused = answer["data"]["result"]
    first = DAY.timestamp()
    assert [point[0] for point in free["values"]] == [first + 10 * n for n in range(60_481)]
    assert len(refused["values"]) == 60_481 - 4_320
    assert refused["metric"] == {"outcome": "refused", "__name__": "d"}
    assert len(scripted.requests) == 7
    assert scripted.requests[0].url.path == "/prometheus/api/v1/query_range"
    assert scripted.requests[0].url.params["step"] == "10.000"


def test_the_tenant_and_the_token_are_sent() -> None:
    scripted = Scripted(lambda _: success([], "vector"))
    scripted.client.query("up")
    (request,) = scripted.requests
    assert request.headers["X-Scope-OrgID"] == "ai-horde-app"
    assert request.headers["Authorization"] == f"Bearer {TOKEN}"
    assert dict(request.url.params) == {"query": "up"}
    plain = Scripted(lambda _: success([], "vector"), token=None, tenant=None)
    plain.client.query("up", at=DAY + timedelta(milliseconds=1))
    assert {"authorization", "x-scope-orgid"}.isdisjoint(plain.requests[0].headers)
    assert plain.requests[0].url.params["time"] == "1795305600.001"


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("vector", [{"metric": {"__name__": "up"}, "value": [1795305600, "1"]}]),
        ("scalar", [1795305600, "NaN"]),
        ("matrix", [{"metric": {}, "values": [[1795305600, "+Inf"]]}]),
        ("string", [1795305600, "x"]),
    ],
)
def test_an_instant_answer_is_returned_as_it_came(kind: str, result: list[Any]) -> None:
    scripted = Scripted(lambda _: success(result, kind, warnings=["odd"]))
    assert scripted.client.query("up") == {
        "status": "success",
        "data": {"resultType": kind, "result": result},
        "warnings": ["odd"],
    }


def test_a_server_that_rounds_its_ends_doubles_no_point() -> None:
    """Each window answers one point too many on both sides."""

    def rounded(request: httpx.Request) -> httpx.Response:
        start, end = (float(request.url.params[word]) for word in ("start", "end"))
        return success([{"metric": {"a": "b"}, "values": [[start - 1 + n, "1"] for n in range(round(end - start) + 3)]}])

    answer = Scripted(rounded).client.query_range("d", start=DAY, end=DAY + timedelta(seconds=25_000), step=timedelta(seconds=1))
    times = [point[0] for point in answer["data"]["result"][0]["values"]]
    assert times == [DAY.timestamp() - 1 + n for n in range(25_003)]


def test_histograms_and_warnings_are_joined_too() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        start = float(request.url.params["start"])
        point = [start, {"count": "1", "sum": "2", "buckets": []}]
        return success([{"metric": {"a": "b"}, "histograms": [point]}], warnings=["same", request.url.params["start"]])

    joined = Scripted(answer).client.query_range("d", start=DAY, end=DAY + timedelta(seconds=15_000), step=timedelta(seconds=1))
    assert [point[0] for point in joined["data"]["result"][0]["histograms"]] == [DAY.timestamp(), DAY.timestamp() + 10_000]
    assert joined["warnings"] == ["same", "1795305600.000", "1795315600.000"]
    assert "infos" not in joined


@given(
    start_ms=st.integers(0, 4_000_000_000_000),
    step_ms=st.integers(1, 100_000_000),
    points=st.integers(1, 60_000),
    rest=st.floats(0, 0.99),
)
def test_windows_hold_every_point_once_and_never_too_many(start_ms: int, step_ms: int, points: int, rest: float) -> None:
    start = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=start_ms)
    step = timedelta(milliseconds=step_ms)
    end = start + (points - 1) * step + rest * step
    found = list(windows(start, end, step))
    assert found[0][0] == start
    assert found[-1][1] == start + (points - 1) * step
    assert all(after[0] - before[1] == step for before, after in itertools.pairwise(found))
    assert all((last - first) // step + 1 <= MOST_POINTS < 11_000 for first, last in found)
    assert all((last - first) % step == timedelta(0) for first, last in found)


@pytest.mark.parametrize(
    ("end", "step", "message"),
    [
        (DAY - timedelta(seconds=1), timedelta(seconds=1), "must not lie before the start"),
        (DAY, timedelta(0), "must be a whole number of milliseconds above 0"),
        (DAY, timedelta(seconds=-1), "must be a whole number of milliseconds above 0"),
        (DAY, timedelta(microseconds=1500), "must be a whole number of milliseconds above 0"),
        (DAY + timedelta(days=400), timedelta(seconds=1), "points; at most 5000000 are asked"),
    ],
)
def test_a_senseless_range_is_bad_input_and_nothing_is_asked(end: datetime, step: timedelta, message: str) -> None:
    scripted = Scripted(sampled)
    with pytest.raises(InputError, match=message):
        scripted.client.query_range("d", start=DAY, end=end, step=step)
    assert scripted.requests == []


def test_an_instant_without_a_zone_is_bad_input() -> None:
    with pytest.raises(InputError, match="must carry a time zone"):
        Scripted(sampled).client.query("d", at=datetime(2026, 11, 29))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("response", "error", "message"),
    [
        (
            httpx.Response(400, json={"status": "error", "errorType": "bad_data", "error": "parse error: unexpected end"}),
            SourceUnavailable,
            "mimir.example: refuses /query: 'bad_data', 'parse error: unexpected end'",
        ),
        (httpx.Response(401, text="no org id"), SourceUnavailable, "mimir.example: answers 401 to /query"),
        (httpx.Response(404, html="<html>"), SourceUnavailable, "mimir.example: answers 404 to /query"),
        (httpx.Response(200, html="<html>login</html>"), SourceFormatError, "mimir.example: /query is not JSON"),
        (httpx.Response(200, json=[]), SourceFormatError, "what is no answer of the query API"),
        (httpx.Response(200, json={"status": "success"}), SourceFormatError, "what is no answer of the query API"),
        (
            httpx.Response(200, json={"status": "success", "data": {"resultType": 5, "result": []}}),
            SourceFormatError,
            "no answer",
        ),
        (
            httpx.Response(302, headers={"Location": "https://login.example/"}),
            SourceUnavailable,
            "redirects to another host, 'https://login.example'",
        ),
    ],
)
def test_what_is_no_answer_is_named(response: httpx.Response, error: type[HordePolicyError], message: str) -> None:
    scripted = Scripted(lambda _: response)
    with pytest.raises(error) as raised:
        scripted.client.query("d")
    assert message in str(raised.value)
    assert TOKEN not in str(raised.value)
    assert len(scripted.requests) == 1


@pytest.mark.parametrize(
    "result",
    [
        [5],
        [{"values": []}],
        [{"metric": {"a": 1}, "values": []}],
        [{"metric": {}, "values": "no"}],
        [{"metric": {}, "values": [5]}],
        [{"metric": {}, "values": [["x", "1"]]}],
        [{"metric": {}, "histograms": [[1]]}],
    ],
)
def test_a_series_of_another_form_is_named(result: list[Any]) -> None:
    with pytest.raises(SourceFormatError, match="series 0"):
        Scripted(lambda _: success(result)).client.query_range("d", start=DAY, end=DAY, step=timedelta(seconds=1))


def test_a_range_that_is_no_matrix_is_named() -> None:
    with pytest.raises(SourceFormatError, match="answers a range with 'vector'"):
        Scripted(lambda _: success([], "vector")).client.query_range("d", start=DAY, end=DAY, step=timedelta(seconds=1))


def test_a_429_in_the_middle_is_waited_out_as_long_as_it_asks() -> None:
    refusals = [{"Retry-After": "7"}, {}]

    def answer(request: httpx.Request) -> httpx.Response:
        if "1795315600" in request.url.params["start"] and refusals:
            return httpx.Response(429, headers=refusals.pop(0), text="too many outstanding requests")
        return sampled(request)

    scripted = Scripted(answer)
    joined = scripted.client.query_range("d", start=DAY, end=DAY + timedelta(seconds=15_000), step=timedelta(seconds=1))
    assert len(joined["data"]["result"][0]["values"]) == 15_001
    assert scripted.pauses == [7.0, 2.0]


@pytest.mark.parametrize(("headers", "requests"), [({"Retry-After": "7"}, 3), ({}, 3), ({"Retry-After": "121"}, 1)])
def test_a_429_that_stays_or_asks_too_long_is_raised(headers: dict[str, str], requests: int) -> None:
    scripted = Scripted(lambda _: httpx.Response(429, headers=headers))
    with pytest.raises(SourceThrottled):
        scripted.client.query("d")
    assert len(scripted.requests) == requests


def test_a_server_error_is_tried_again_with_pauses() -> None:
    answers = [httpx.Response(503), httpx.Response(500, text="oops"), success([], "vector")]
    scripted = Scripted(lambda _: answers.pop(0))
    assert scripted.client.query("d")["data"]["result"] == []
    assert len(scripted.pauses) == 2
    assert all(0 < pause <= 1 for pause in scripted.pauses)


def test_the_token_shows_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.LocalProtocolError(f"Illegal header value {request.headers['Authorization']}")

    scripted = Scripted(broken)
    with pytest.raises(SourceUnavailable) as raised:
        scripted.client.query("d")
    assert "LocalProtocolError" in str(raised.value)
    shown = [str(raised.value), repr(raised.value), repr(scripted.client), repr(vars(scripted.client)), caplog.text]
    assert not any(TOKEN in text for text in shown)
    assert "example" in caplog.text or caplog.text == ""


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ünicode", "nul\x00"])
def test_a_token_that_no_header_can_hold_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(ConfigError) as raised:
        PrometheusClient("https://mimir.example", clock=FixedClock(NOW), token=token)
    assert token not in str(raised.value)
    assert "HORDE_POLICY_PROMETHEUS_TOKEN" in str(raised.value)


@pytest.mark.parametrize(
    ("environment", "secrets", "host", "sent"),
    [
        ({"HORDE_POLICY_PROMETHEUS_URL": "http://p.example:9090"}, {}, "p.example:9090", {}),
        (
            {"HORDE_POLICY_PROMETHEUS_URL": "https://m.example", "HORDE_POLICY_PROMETHEUS_TENANT": "t"},
            {"prometheus": {"url": "https://other.example", "token": TOKEN}},
            "m.example",
            {"x-scope-orgid": "t", "authorization": f"Bearer {TOKEN}"},
        ),
        ({}, {"prometheus": {"url": "https://s.example/api/v1/"}}, "s.example", {}),
    ],
)
def test_it_is_configured_by_the_environment_and_the_secrets_file(
    environment: dict[str, str],
    secrets: dict[str, Any],
    host: str,
    sent: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[httpx.Request] = []

    def send(self: httpx.Client, request: httpx.Request, **_: object) -> httpx.Response:
        asked.append(request)
        return httpx.Response(
            200, content=json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}).encode()
        )

    monkeypatch.setattr(httpx.Client, "send", send)
    client = configured_prometheus(environment, secrets, clock=FixedClock(NOW))
    assert client is not None
    assert client.name == host
    client.query("up")
    assert asked[0].url.path == "/api/v1/query"
    assert {name: asked[0].headers[name] for name in ("x-scope-orgid", "authorization") if name in asked[0].headers} == sent
    client.close()


def test_without_an_address_there_is_none() -> None:
    assert configured_prometheus({}, {"prometheus": {"token": TOKEN}}, clock=FixedClock(NOW)) is None
    with pytest.raises(ConfigError, match="HORDE_POLICY_PROMETHEUS_URL"):
        configured_prometheus({"HORDE_POLICY_PROMETHEUS_URL": "nowhere"}, {}, clock=FixedClock(NOW))
