"""Answers of the Prometheus HTTP API, saved in every way."""

import json
from math import inf
from typing import Any

import pytest

from horde_policy.errors import InputError
from horde_policy.imports import read_exports
from tests.unit.imports.writing import (
    QUEUE,
    T0,
    buckets,
    codes,
    intervals,
    matrix,
    metric,
    outcomes,
    sums,
)


class TestPrometheusAnswers:
    def test_instants_at_several_times(self) -> None:
        def answer(at: float, value: float) -> bytes:
            result = [{"metric": json.loads(metric("free")), "value": [T0 + at, f"{value:g}"]}]
            return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()

        assert intervals(read_exports([answer(0, 5), answer(300, 9)])) == [(0, 300, "free", 4, 4)]

    @pytest.mark.parametrize("cut", ["data", "result"])
    def test_parts_of_an_answer(self, cut: str) -> None:
        whole = json.loads(matrix({metric("free"): [(0, 1), (60, 4)]}))
        part = whole["data"] if cut == "data" else whole["data"]["result"]
        assert outcomes(read_exports(json.dumps(part, indent=1).encode())) == {"free": (3, 3)}

    def test_an_answer_that_a_client_has_parsed(self) -> None:
        answer = json.loads(matrix({metric("free"): [(0, 1), (60, 4)]}))
        assert outcomes(read_exports(answer)) == {"free": (3, 3)}
        assert outcomes(read_exports([answer, answer])) == {"free": (3, 3)}

    def test_native_histograms(self) -> None:
        def state(at: float, buckets: list[list[Any]]) -> list[Any]:
            return [T0 + at, {"count": str(sum(int(b[3]) for b in buckets)), "sum": "50", "buckets": buckets}]

        states = [
            state(0, [[3, "-0.001", "0.001", "1"], [0, "32", "64", "2"]]),
            state(60, [[3, "-0.001", "0.001", "1"], [0, "32", "64", "5"], [0, "256", "512", "1"]]),
            state(120, [[3, "-0.001", "0.001", "1"], [0, "16", "64", "6"], [0, "256", "512", "1"]]),
        ]
        result = [{"metric": {"__name__": QUEUE, "horde_requester": "registered"}, "histograms": states}]
        text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
        imported = read_exports(text)
        # at 120 the resolution is halved: one more wait somewhere in (16, 64]
        assert buckets(imported) == {(16.0, 64.0): (1, 1), (32.0, 64.0): (3, 3), (256.0, 512.0): (1, 1)}

    def test_native_and_classic_series_of_one_histogram_count_once(self) -> None:
        classic_rows = {
            json.dumps({"__name__": QUEUE + "_bucket", "le": le}): [(0, 0), (60, value)] for le, value in (("60", 2), ("+Inf", 3))
        }
        answer = json.loads(matrix(classic_rows))
        states = [[T0 + at, {"count": c, "sum": "9", "buckets": [[0, "32", "64", c]]}] for at, c in ((0, "0"), (60, "3"))]
        answer["data"]["result"].append({"metric": {"__name__": QUEUE}, "histograms": states})
        imported = read_exports(json.dumps(answer).encode())
        assert buckets(imported) == {(0.0, 60.0): (2, 2), (60.0, inf): (1, 1)}
        assert sums(imported)[0] == 3

    def test_a_refusal_is_an_error_with_the_servers_words(self) -> None:
        text = b'{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution of 11,000 points per timeseries"}'
        with pytest.raises(InputError, match="exceeded maximum resolution"):
            read_exports(text)

    def test_a_cut_answer_is_an_error(self) -> None:
        with pytest.raises(InputError, match="not a whole answer"):
            read_exports(matrix({metric("free"): [(0, 1), (60, 4)]})[:-20])

    def test_a_warning_of_the_server_is_a_problem(self) -> None:
        answer = json.loads(matrix({metric("free"): [(0, 1), (60, 4)]}))
        assert "server_warning" in codes(read_exports(json.dumps({**answer, "warnings": ["partial response"]}).encode()))
