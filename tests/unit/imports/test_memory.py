"""exports.md 16: no line, label or name of a small file multiplies in memory; each is refused or left out, and named."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from horde_policy.errors import InputError
from horde_policy.imports import ExportFile, read_exports
from horde_policy.imports.json_bounds import elements
from horde_policy.imports.names import LONG_SERIES
from horde_policy.imports.unpack import Unpacked
from tests.unit.imports import hostile_sizes
from tests.unit.imports.writing import DECISIONS, OTLP_LINES, decision, exposition, number, otlp, outcomes

MOST_MB = 400
"""Of files that unpack to about 8 MiB, with what making them takes; one that multiplied took from 800 MB to 2 GB."""

LEFT_OUT = ("1 sample was left out", LONG_SERIES)
EXPECTED = {
    "text": ("3 counted", *LEFT_OUT),
    "lines: a long attribute": ("9 counted", *LEFT_OUT),
    "lines: a long resource": ("9 counted", *LEFT_OUT),
    "lines: many": ("refused", "values and more in one request of"),
    "lines: fields": ("0 counted",),
    "array: of numbers": ("refused", "'JSON' is not whole: an element is no object"),
    "protobuf: a long attribute": ("9 counted", *LEFT_OUT),
    "protobuf: empty": ("refused", "17825792 bytes in one request of OTLP protobuf: the most is 16777216"),
    "answer: a long label": ("3 counted", *LEFT_OUT),
    "answer: many series": ("refused", "objects and more in one answer"),
    "answer: of numbers": ("refused", "Expected `object`, got `int`"),
    "answer: many points": ("refused", "bytes of points in one series"),
    "answer: many warnings": ("3 counted", "the server said of this answer: '…'"),
    "answer: a long error": ("refused", "is the server's refusal, not data: '…'"),
    "answer: nested": ("refused", "maximum recursion depth exceeded"),
    "csv: many columns": ("refused", "row 4: 2097153 columns: the most is 100000"),
    "csv: a row": ("refused", "characters in one row: the most is 8388608"),
    "csv: a long cell": ("refused", "bytes without a line end: a line may have 8388608"),
    "parquet": ("refused", "column extra: 1048576 characters in one text"),
}


@pytest.fixture(scope="module")
def came_to() -> dict[str, tuple[int, str]]:
    root = Path(__file__).parents[3]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.unit.imports.hostile_sizes"], cwd=root, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return {name: (peak_mb, said) for name, peak_mb, said in map(json.loads, ran.stdout.splitlines())}


def test_small_files_that_are_made_to_fill_the_memory_do_not(came_to: dict[str, tuple[int, str]]) -> None:
    assert came_to.keys() == hostile_sizes.CASES.keys()
    assert {name: peak_mb for name, (peak_mb, _) in came_to.items() if peak_mb > MOST_MB} == {}


@pytest.mark.parametrize("name", hostile_sizes.CASES)
def test_what_is_too_long_is_refused_or_left_out_and_named(name: str, came_to: dict[str, tuple[int, str]]) -> None:
    (expected,) = (texts for case, texts in EXPECTED.items() if name.startswith(case))
    _, said = came_to[name]
    assert said.startswith(expected[0])
    for text in expected:
        assert text in said


@pytest.mark.parametrize("chunk", [1, 7, 100, 1000])
@pytest.mark.parametrize(("longest", "fits"), [(100, True), (101, False)])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_may_have_as_many_bytes_as_stated_and_not_one_more(
    monkeypatch: pytest.MonkeyPatch, chunk: int, longest: int, fits: bool, end: bytes
) -> None:
    monkeypatch.setattr("horde_policy.imports.unpack.CHUNK_BYTES", chunk)
    content = b"a\n" + b"b" * 100 + b"\n\n" + b"c" * longest + end
    read = Unpacked(ExportFile("e", content))
    if fits:
        assert b"".join(read.lines(64, longest=100)) == content
        return
    with pytest.raises(InputError, match=r"101 bytes without a line end: a line may have 100"):
        list(read.lines(64, longest=100))


def test_a_long_line_of_another_metric_leaves_the_rest_as_it_was() -> None:
    comment, other = "# HELP a " + "b" * 70_000, 'up{job="' + "b" * 70_000 + '"} 1 1790000000000'
    lines = exposition([(decision("free"), at, 1 + at) for at in (0, 60, 120)]).decode().splitlines()
    imported = read_exports("\n".join([lines[0], comment, lines[1], other, lines[2], ""]).encode())
    assert outcomes(imported) == {"free": (120, 120)}
    assert [(one.reason, one.count) for one in imported.report.files[0].skipped] == [(LONG_SERIES, 1)]


def test_a_label_of_a_usual_length_is_kept_whole() -> None:
    rows = [(DECISIONS + '{pod="' + "a" * 60_000 + '",horde_outcome="free"}', at, 1.0 + at) for at in (0, 60)]
    assert outcomes(read_exports(exposition(rows))) == {"free": (60, 60)}


def test_series_are_told_apart_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [(decision("free", f"host{place}"), at, at + 1) for at in (0, 60) for place in range(20)]
    lines = b"".join(otlp(number(at, 0, at, outcome="free", x=str(place))) for at in (60, 120) for place in range(20))
    monkeypatch.setattr("horde_policy.imports.report.MAX_SERIES", 15)
    for content in (exposition(many), lines):
        with pytest.raises(InputError, match="series are more than are told apart in one file"):
            read_exports(content)
    monkeypatch.undo()
    monkeypatch.setattr("horde_policy.imports.report.MAX_TEXT_CHARACTERS", 500)
    for content in (exposition(many), lines):
        with pytest.raises(InputError, match="characters of names and labels"):
            read_exports(content)


def test_series_of_other_metrics_are_told_without_being_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horde_policy.imports.exposition.MOST_REMEMBERED", 5)
    monkeypatch.setattr("horde_policy.imports.exposition.BLOCK_BYTES", 200)
    rows = []
    for at in range(0, 600, 60):
        rows.append((decision("free"), at, at + 1))
        rows += [(f'other{place}{{x="{at}"}}', at, 1) for place in range(900)]
    imported = read_exports(exposition(rows))
    assert outcomes(imported) == {"free": (540, 540)}
    left_out = imported.report.files[0].skipped
    assert sum(one.count for one in left_out) == 9000
    assert len(left_out) < 600


def test_a_large_array_of_requests_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    array = b"[" + b",".join(OTLP_LINES.splitlines()) + b"]"
    assert outcomes(read_exports(array)) == {"free": (9, 9)}
    monkeypatch.setattr("horde_policy.imports.otlp_json.MAX_PARTS", 100)
    assert outcomes(read_exports(array)) == {"free": (9, 9)}
    monkeypatch.setattr("horde_policy.imports.otlp_json.MAX_RECORD_BYTES", 300)
    with pytest.raises(InputError, match="bytes in one request: the most is 300"):
        read_exports(array)


@pytest.mark.parametrize("line", [OTLP_LINES.splitlines()[0], b'{"a":"]\\"}[{"}'])
def test_the_elements_of_an_array_are_found_whatever_their_strings_hold(line: bytes) -> None:
    for document in (b"[]", b" [ ] ", b"[" + line + b"]", b"[\n" + line + b" ,\n{},[[1],{}]," + line + b" ]\n"):
        found = [json.loads(bytes(one)) for one in elements(document)]
        assert found == json.loads(document)


@pytest.mark.parametrize("document", [b"", b"[", b'[{"a', b'[{"a":1}', b"[1,{}]", b"[{},1]", b"[{},1,{}]", b'[{}, "a]"'])
def test_an_array_that_is_none_of_objects_or_not_whole_is_refused(document: bytes) -> None:
    with pytest.raises(ValueError, match=r"no object|ends early"):
        list(elements(document))


def test_fields_as_proto_files_spell_them() -> None:
    line = OTLP_LINES
    for camel, snake in (("resourceMetrics", "resource_metrics"), ("scopeMetrics", "scope_metrics"), ("asInt", "as_int")):
        line = line.replace(camel.encode(), snake.encode())
    line = line.replace(b"dataPoints", b"data_points").replace(b"timeUnixNano", b"time_unix_nano")
    line = line.replace(b"startTimeUnixNano", b"start_time_unix_nano").replace(b"isMonotonic", b"is_monotonic")
    line = line.replace(b"aggregationTemporality", b"aggregation_temporality")
    assert outcomes(read_exports(line)) == {"free": (9, 9)}
