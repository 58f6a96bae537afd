"""Small uploads that are made to fill the memory, each read in turn; prints what each came to and what memory it took.

Run in a process of its own, whose peak memory is measured (:mod:`tests.unit.imports.test_memory`).
"""

import gzip
import io
import json
import resource
import sys
from collections.abc import Callable

import polars as pl
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from horde_policy.errors import InputError
from horde_policy.imports import ExportFile, read_exports
from horde_policy.imports.parquet import STAMP, samples_frame
from tests.unit.imports.test_packing import request
from tests.unit.imports.writing import DECISIONS, OTLP_LINES, PLAIN, decision, exposition, metric, number, otlp

SIZE = 8 << 20
LONG = "a" * SIZE
LABEL = '{horde_outcome="free"}'
CSV = '"Time","horde_text_free_allowance_decisions{horde_outcome=""free""}"\r\n1790000000000,1\r\n1790000060000,4\r\n'


def line(label: str) -> bytes:
    return PLAIN + f'{DECISIONS}{{x="{label}"}} 1 1790000000000\n'.encode()


def long_points(content: str) -> bytes:
    """A request whose points are this text."""
    return OTLP_LINES + otlp(number(1, 0, 60)).replace(b'"dataPoints":[', b'"dataPoints":[' + content.encode() + b",")


def long_resource() -> bytes:
    return OTLP_LINES + otlp(number(1, 0, 60), resource={"service.name": LONG})


def many_bounds() -> bytes:
    point = '{"count":"1","bucketCounts":["1"],"explicitBounds":[' + "1," * (SIZE // 2) + "1]}"
    metrics = '{"name":"horde.text.queue_wait","histogram":{"aggregationTemporality":2,"dataPoints":[' + point + "]}}"
    return OTLP_LINES + ('{"resourceMetrics":[{"scopeMetrics":[{"metrics":[' + metrics + "]}]}]}\n").encode()


def protobuf(attribute: str) -> bytes:
    message = ExportMetricsServiceRequest.FromString(request(1, 0, 60))
    point = message.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points[0]
    point.attributes[0].value.string_value = attribute
    content: bytes = message.SerializeToString()
    return b"".join(len(one).to_bytes(4, "big") + one for one in (request(5, 0, 60), request(9, 0, 120), content))


def empty_messages() -> bytes:
    content = b"\x0a\x00" * (17 << 19)
    return b"".join(len(one).to_bytes(4, "big") + one for one in (request(5, 0, 60), content))


def answer(series: str, more: str = "") -> bytes:
    ours = json.dumps({"metric": json.loads(metric("free")), "values": [[1790000000, "1"], [1790000060, "4"]]})
    return f'{{"status":"success"{more},"data":{{"resultType":"matrix","result":[{ours}{series}]}}}}'.encode()


def long_text_of_rows() -> bytes:
    """Our own table with one long text that twenty series share."""
    rows = [(decision("free", f"host{place}"), at, at + 1) for at in (0, 60) for place in range(20)]
    frame = samples_frame(read_exports(exposition(rows)).samples)
    out = io.BytesIO()
    frame.with_columns(extra=pl.lit("a" * (SIZE // 8))).write_parquet(out, metadata={STAMP: "samples/1"})
    return out.getvalue()


CASES: dict[str, Callable[[], bytes]] = {
    "text: a long label": lambda: line(LONG),
    "text: a long label of escapes": lambda: line("\\\\" * (SIZE // 2)),
    "text: a long label without a time": lambda: f'{DECISIONS}{LABEL} 3\n{DECISIONS}{{x="{LONG}"}} 1\n'.encode(),
    "text: many labels": lambda: line('",x="' * (SIZE // 5)),
    "text: a long last line": lambda: line(LONG)[:-40],
    "text: a long unit": lambda: PLAIN + ("horde_text_queue_wait" + "_s" * (SIZE // 2) + " 1 1790000000000\n").encode(),
    "lines: a long attribute": lambda: OTLP_LINES + otlp(number(1, 0, 60, x=LONG)),
    "lines: a long resource": long_resource,
    "lines: many points": lambda: long_points(",".join(["{}"] * (SIZE // 3))),
    "lines: many bounds": many_bounds,
    "lines: fields by another spelling": lambda: b'{"resource_metrics":[' + b'{"a_b":{"a_b":{}}},' * (SIZE // 19) + b"{}]}\n",
    "array: of numbers": lambda: b"[" + OTLP_LINES.splitlines()[0] + b",1" * (SIZE // 2) + b"]",
    "protobuf: a long attribute": lambda: protobuf(LONG),
    "protobuf: empty messages": empty_messages,
    "answer: a long label": lambda: answer(f',{{"metric":{{"x":"{LONG}"}},"values":[[1790000000,"1"]]}}'),
    "answer: many series": lambda: answer(',{"metric":{}}' * (SIZE // 4)),
    "answer: of numbers": lambda: answer(",1" * (SIZE // 2)),
    "answer: many points": lambda: answer(',{"metric":{},"values":[[1,"1"]' + ',[1,"1"]' * (SIZE // 4) + "]}"),
    "answer: many warnings": lambda: answer("", ',"warnings":["a"' + ',"a"' * (SIZE // 4) + "]"),
    "answer: a long error": lambda: f'{{"status":"error","error":"{LONG}","data":{{}}}}'.encode(),
    "answer: nested": lambda: answer(',{"metric":' + "[" * 100_000 + "]" * 100_000 + "}"),
    "csv: many columns": lambda: CSV.encode() + ("Time" + ",ab" * (SIZE // 4) + "\r\n").encode(),
    "csv: a row without an end": lambda: CSV.encode() + b'1790000120000,"a\n",' * (SIZE // 10),
    "csv: a long cell": lambda: CSV.replace("free", LONG).encode(),
    "parquet: a long text": long_text_of_rows,
}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def came_to(content: bytes) -> str:
    """What reading comes to: refused, or what was counted and left out."""
    try:
        imported = read_exports([ExportFile("e", content)])
    except InputError as error:
        return f"refused: {error}"
    return f"{imported.decisions['count_high'].sum():g} counted: " + "; ".join(problem.text for problem in imported.problems)


def main() -> None:
    for content in (PLAIN, OTLP_LINES, answer(""), CSV.encode(), protobuf("free")):
        came_to(content)
    before = peak_mb()
    for name, made in CASES.items():
        content = made()
        packed = content if content.startswith(b"PAR1") else gzip.compress(content, 1)
        del content
        said = came_to(packed)
        json.dump([name, round(peak_mb() - before), said[:400]], sys.stdout)
        print(flush=True)


if __name__ == "__main__":
    main()
