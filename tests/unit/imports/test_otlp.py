"""exports.md 12 and 14: OTLP as the Collector, SDKs and others write it."""

import json
from math import inf

from horde_policy.imports import read_exports
from tests.unit.imports.writing import (
    OTLP_LINES,
    QUEUE,
    buckets,
    classic,
    codes,
    exponential,
    exposition,
    histogram,
    intervals,
    nano,
    number,
    otlp,
    outcomes,
    sums,
)


class TestOtlp:
    """Rules 12, 13, 14."""

    def test_lines_of_the_collector(self) -> None:
        assert intervals(read_exports(OTLP_LINES)) == [(0, 60, "free", 5, 5), (60, 120, "free", 4, 4)]

    def test_a_document_and_an_array(self) -> None:
        requests = [json.loads(line) for line in OTLP_LINES.splitlines()]
        assert outcomes(read_exports(json.dumps(requests).encode())) == {"free": (9, 9)}
        assert outcomes(read_exports([json.dumps(one, indent=2).encode() for one in requests])) == {"free": (9, 9)}

    def test_enum_names_numeric_times_beyond_two_to_the_53_and_text_numbers(self) -> None:
        points = []
        for value, at in ((5, 60), (9, 120)):
            point = number(value, 0, at, outcome="free", chat=True)
            points.append(
                {
                    **point,
                    "timeUnixNano": int(point["timeUnixNano"]) + 1,
                    "startTimeUnixNano": int(point["startTimeUnixNano"]),
                    "asInt": value,
                }
            )
        lines = b"".join(otlp(point, temporality="AGGREGATION_TEMPORALITY_CUMULATIVE") for point in points)
        imported = read_exports(lines)
        assert outcomes(imported) == {"free": (9, 9)}
        assert imported.decisions["chat"].to_list() == [True, True]

    def test_field_names_of_proto_files(self) -> None:
        text = OTLP_LINES.decode()
        for camel, snake in (
            ("resourceMetrics", "resource_metrics"), ("scopeMetrics", "scope_metrics"), ("dataPoints", "data_points"),
            ("startTimeUnixNano", "start_time_unix_nano"), ("timeUnixNano", "time_unix_nano"), ("asInt", "as_int"),
            ("aggregationTemporality", "aggregation_temporality"), ("isMonotonic", "is_monotonic"),
            ("stringValue", "string_value"),
        ):  # fmt: skip
            text = text.replace(camel, snake)
        assert outcomes(read_exports(text.encode())) == {"free": (9, 9)}

    def test_nan_as_text_and_points_without_a_recorded_value(self) -> None:
        nan = {**number(0, 0, 180, outcome="free"), "asDouble": "NaN"}
        del nan["asInt"]
        gone = {**number(0, 0, 240, outcome="free"), "flags": 1}
        del gone["asInt"]
        empty = {"attributes": [], "timeUnixNano": nano(240), "flags": 1}
        waits = otlp(empty, name="horde.text.queue_wait_seconds", kind="histogram")
        imported = read_exports(OTLP_LINES + otlp(nan) + otlp(gone) + waits)
        assert outcomes(imported) == {"free": (9, 9)}
        assert {(one.reason, one.subject): one.count for one in imported.report.files[0].skipped} == {
            ("no value (NaN: the series went away)", "(samples)"): 1,
            ("a point without a recorded value", "horde.text.free_allowance.decisions"): 1,
            ("a point without a recorded value", "horde.text.queue_wait_seconds"): 1,
        }

    def test_logs_and_traces_in_the_same_file(self) -> None:
        other = b'{"resourceLogs":[{"resource":{},"scopeLogs":[]}]}\n{"resourceSpans":[{"resource":{},"scopeSpans":[]}]}\n'
        imported = read_exports(other + OTLP_LINES)
        assert outcomes(imported) == {"free": (9, 9)}
        assert {one.subject: one.count for one in imported.report.files[0].skipped} == {"logs": 1, "traces": 1}

    def test_a_gauge_or_a_falling_sum_is_not_taken_for_a_counter(self) -> None:
        line = json.loads(otlp(number(5, 0, 60, outcome="free")))
        metric_of_line = line["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]
        metric_of_line["sum"]["isMonotonic"] = False
        falling = json.dumps(line).encode() + b"\n"
        metric_of_line["gauge"] = {"dataPoints": metric_of_line.pop("sum")["dataPoints"]}
        imported = read_exports(falling + json.dumps(line).encode() + b"\n")
        assert imported.decisions.height == 0
        assert sorted(one.reason for one in imported.report.files[0].skipped) == [
            "a gauge where a counter or a histogram is meant",
            "a sum that may fall where a counter is meant",
        ]

    def test_a_last_line_that_is_cut_off_and_a_broken_one_between(self) -> None:
        lines = OTLP_LINES.splitlines(keepends=True)
        imported = read_exports(lines[0] + b'{"resourceMetrics": 7}\n' + lines[1] + lines[1][:-40])
        assert outcomes(imported) == {"free": (9, 9)}
        assert codes(imported) == {"unreadable_line", "truncated"}

    def test_cumulative_histograms(self) -> None:
        name = "horde.text.free_allowance.estimated_wait_seconds"
        lines = [
            otlp(histogram(counts, [0, 60, 300], total, 0, at), name=name, kind="histogram", unit="s")
            for counts, total, at in (([1, 2, 0, 0], 70.0, 60), ([1, 3, 2, 1], 1000.0, 120))
        ]
        imported = read_exports(b"".join(lines))
        assert buckets(imported, "estimated") == {
            (0.0, 0.0): (1, 1),
            (0.0, 60.0): (3, 3),
            (60.0, 300.0): (2, 2),
            (300.0, inf): (1, 1),
        }
        assert sums(imported, "estimated") == (7, 1000.0)

    def test_bounds_that_change_at_a_release(self) -> None:
        name = "horde.text.queue_wait_seconds"
        lines = [
            otlp(histogram([4, 3], [60], 300.0, 0, 60), name=name, kind="histogram"),
            otlp(histogram([5, 2, 1], [60, 300], 900.0, 90, 120), name=name, kind="histogram"),
            otlp(histogram([5, 4, 1], [60, 300], 1200.0, 90, 180), name=name, kind="histogram"),
        ]
        imported = read_exports(b"".join(lines))
        assert buckets(imported) == {(0.0, 60.0): (9, 9), (60.0, 300.0): (4, 4), (60.0, inf): (3, 3), (300.0, inf): (1, 1)}
        assert imported.report.layouts == {"queue": ((60.0, 300.0, inf), (60.0, inf))}

    def test_bounds_that_change_in_scrapes_without_start_times(self) -> None:
        old = {60.0: 4, 300.0: 3, inf: 0}
        rows = [*classic(QUEUE, old, 300.0, 0), *classic(QUEUE, {**old, 300.0: 4}, 400.0, 60)]
        rows += classic(QUEUE, {60.0: 1, 120.0: 0, 300.0: 2, inf: 0}, 500.0, 120)
        rows += classic(QUEUE, {60.0: 1, 120.0: 0, 300.0: 3, inf: 0}, 700.0, 180)
        imported = read_exports(exposition(rows))
        assert buckets(imported) == {(0.0, 60.0): (1, 1), (60.0, 300.0): (1, 1), (120.0, 300.0): (3, 3)}

    def test_exponential_deltas_each_with_its_own_scale(self) -> None:
        name = "horde.text.queue_wait_seconds"
        points = [exponential(0, 5, [2, 1], 0, 60, zero=1), exponential(1, 11, [3], 60, 120)]
        lines = b"".join(otlp(point, name=name, temporality=1, kind="exponentialHistogram") for point in points)
        imported = read_exports(lines)
        # scale 0: (32, 64] and (64, 128]; scale 1: (2**5.5, 64]; 60 s is no edge of any of them
        expected = {(0.0, 0.0): 1, (32.0, 64.0): 2, (2**5.5, 64.0): 3, (64.0, 128.0): 1}
        assert buckets(imported) == {bounds: (count, count) for bounds, count in expected.items()}

    def test_exponential_cumulative_with_a_scale_that_shrinks(self) -> None:
        name = "horde.text.queue_wait_seconds"
        points = [exponential(1, 11, [3, 1], 0, 60), exponential(0, 5, [4, 2], 0, 120)]
        lines = b"".join(otlp(point, name=name, kind="exponentialHistogram") for point in points)
        imported = read_exports(lines)
        # first (45.25, 64] 3 and (64, 90.5] 1; then (32, 64] 4 and (64, 128] 2
        assert buckets(imported) == {(2**5.5, 64.0): (3, 3), (64.0, 2**6.5): (1, 1), (32.0, 64.0): (1, 1), (64.0, 128.0): (1, 1)}
        assert imported.wait_sums["count_high"].sum() == 6
