"""exports.md 13 and 16: packing and framing, files that end early, bombs, detection."""

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import pytest
import zstandard
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from horde_policy.errors import InputError
from horde_policy.imports import read_exports
from horde_policy.imports.detect import detect
from horde_policy.imports.unpack import HEAD_BYTES, ExportFile
from tests.unit.imports.writing import (
    OTLP_LINES,
    PLAIN,
    codes,
    decision,
    exposition,
    nano,
    outcomes,
    rich,
)


def request(value: int, start: float, at: float) -> bytes:
    message = ExportMetricsServiceRequest()
    of = message.resource_metrics.add()
    name = of.resource.attributes.add()
    name.key, name.value.string_value = "service.instance.id", "a"
    metric_of = of.scope_metrics.add().metrics.add(name="horde.text.free_allowance.decisions", unit="1")
    metric_of.sum.is_monotonic = True
    metric_of.sum.aggregation_temporality = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    point = metric_of.sum.data_points.add(start_time_unix_nano=int(nano(start)), time_unix_nano=int(nano(at)), as_int=value)
    outcome = point.attributes.add()
    outcome.key, outcome.value.string_value = "horde.outcome", "free"
    return bytes(message.SerializeToString())


REQUESTS = [request(5, 0, 60), request(9, 0, 120)]


class TestPacking:
    """Rule 13."""

    def test_gzip_members_one_after_the_other(self) -> None:
        lines = PLAIN.splitlines(keepends=True)
        packed = b"".join(gzip.compress(line) for line in lines)
        imported = read_exports(packed)
        assert outcomes(imported) == {"free": (3, 3)}
        assert imported.report.files[0].packing == ("gzip",)

    def test_zstd_frames_one_after_the_other(self) -> None:
        packed = b"".join(zstandard.compress(line) for line in PLAIN.splitlines(keepends=True))
        assert outcomes(read_exports(packed)) == {"free": (3, 3)}

    @staticmethod
    def framed(records: list[bytes]) -> bytes:
        frames = [zstandard.compress(record) for record in records]
        return b"".join(struct.pack(">I", len(frame)) + frame for frame in frames)

    def test_the_collectors_framed_zstd_of_json_and_of_protobuf(self) -> None:
        lines = [line for line in OTLP_LINES.splitlines() if line]
        assert outcomes(read_exports(self.framed(lines))) == {"free": (9, 9)}
        assert outcomes(read_exports(self.framed(REQUESTS))) == {"free": (9, 9)}

    def test_protobuf_in_every_framing(self) -> None:
        fixed = b"".join(struct.pack(">I", len(one)) + one for one in REQUESTS)

        def varint(size: int) -> bytes:
            return bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])

        varints = b"".join(varint(len(one)) + one for one in REQUESTS)
        for content in (fixed, varints, REQUESTS):
            assert outcomes(read_exports(content)) == {"free": (9, 9)}

    def test_utf_16_text(self) -> None:
        assert outcomes(read_exports(PLAIN.decode().encode("utf-16"))) == {"free": (3, 3)}

    @pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, lambda text: text], ids=["gzip", "zstd", "plain"])
    def test_a_file_that_ends_early_gives_what_it_holds(self, pack: Any) -> None:
        text = exposition(
            [(decision("free", f"host{place}"), at, at + place) for at in range(0, 18000, 60) for place in range(20)]
        )
        packed = pack(text)
        imported = read_exports(packed[: len(packed) * 2 // 3])
        total = imported.decisions["count_low"].sum()
        assert 0 < total < 20 * 17940
        assert codes(imported) & {"damaged", "truncated"}
        assert (imported.decisions["count_low"] == imported.decisions["count_high"]).all()

    def test_a_framed_record_that_is_cut_off(self) -> None:
        content = self.framed(REQUESTS)
        imported = read_exports(content[:-5])
        assert outcomes(imported) == {"free": (5, 5)}
        assert "damaged" in codes(imported)

    def test_a_request_without_metrics_is_as_silent_in_protobuf_as_in_json(self) -> None:
        bare, scoped = ExportMetricsServiceRequest(), ExportMetricsServiceRequest()
        bare.resource_metrics.add()
        scoped.resource_metrics.add().scope_metrics.add().scope.name = "horde"
        empty = [bare.SerializeToString(), scoped.SerializeToString()]
        for records in ([*empty, *REQUESTS], [*REQUESTS, *empty]):
            imported = read_exports(b"".join(len(one).to_bytes(4, "big") + one for one in records))
            assert outcomes(imported) == {"free": (9, 9)}
            assert codes(imported) == set()
            assert imported.report.files[0].skipped == ()
        lines = b'{"resourceMetrics":[]}\n{"resourceMetrics":[{"scopeMetrics":[{}]}]}\n'
        assert codes(read_exports(OTLP_LINES + lines)) == set()
        logs = ExportLogsServiceRequest()
        logs.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=1, observed_time_unix_nano=2)
        with_logs = read_exports(b"".join(len(one).to_bytes(4, "big") + one for one in (*REQUESTS, logs.SerializeToString())))
        assert [one.reason for one in with_logs.report.files[0].skipped] == ["a record that is no request of metrics"]


class TestBombs:
    """Rule 16: what is unpacked is bounded."""

    def test_an_archive_bomb_is_refused(self) -> None:
        line = (decision("free") + " 1 1790000000000\n").encode()
        bomb = gzip.compress(line * 100_000)
        assert len(bomb) < 40_000
        with pytest.raises(InputError, match="are the most that a file may unpack to"):
            read_exports(bomb, max_unpacked_bytes=1_000_000)

    def test_layers_of_packing_are_bounded(self) -> None:
        packed = PLAIN
        for _ in range(5):
            packed = gzip.compress(packed)
        with pytest.raises(InputError, match="layers of packing"):
            read_exports(packed)

    def test_a_line_without_an_end_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("horde_policy.imports.unpack.MAX_RECORD_BYTES", 1 << 20)
        endless = gzip.compress(PLAIN + b'horde_text_free_allowance_decisions{a="' + b"x" * (20 << 20))
        with pytest.raises(InputError, match="bytes without a line end"):
            read_exports(endless)


class TestDetection:
    @pytest.mark.parametrize(
        ("head", "form"),
        [
            (b"# HELP a b\n", "exposition"),
            (b"a_total 5\n", "exposition"),
            (b'# free comment\na{b="c"} 5 17\n', "exposition"),
            (b'{"a",b="c"} 5', "exposition"),
            (b'{"status":"success","data":{}}', "prometheus_json"),
            (b'[{"metric":{},"values":[]}]', "prometheus_json"),
            (b'\n {"resourceMetrics":[]}', "otlp_json"),
            (b'[{"resource_metrics":[]}]', "otlp_json"),
            (b'{"resourceSpans":[]}', "otlp_json"),
            (b"PAR1xxxx", "parquet"),
            (b'"Time","a"\r\n1,2', "grafana_csv"),
            (b"sep=;\nSeries;Time;Value\n", "grafana_csv"),
            (REQUESTS[0], "otlp_proto"),
            (struct.pack(">I", len(REQUESTS[0])) + REQUESTS[0], "otlp_proto"),
        ],
    )
    def test_by_content(self, head: bytes, form: str) -> None:
        assert detect(head, "x") == form

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\n\n",
            b"<html><body>502</body></html>",
            b"\x89PNG\r\n\x1a\n",
            b"PK\x03\x04zip",
            b'{"a":1}',
            b"hello world",
            bytes(100),
        ],
    )
    def test_anything_else_is_refused(self, content: bytes) -> None:
        with pytest.raises(InputError, match=r"is empty|is none of: Prometheus text"):
            read_exports(content)

    def test_a_missing_file_and_an_empty_folder(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="cannot be read"):
            read_exports(tmp_path / "none")
        with pytest.raises(InputError, match="is a folder without files"):
            read_exports(tmp_path)
        with pytest.raises(InputError, match="name at least one"):
            read_exports([])

    def test_what_lies_beside_the_exports_in_a_folder_is_left_out_and_said(self, tmp_path: Path) -> None:
        (tmp_path / "week.prom").write_bytes(PLAIN)
        (tmp_path / "notes.md").write_text("# Notes\nnothing", encoding="utf-8")
        (tmp_path / ".hidden").write_bytes(b"x")
        imported = read_exports(tmp_path)
        assert outcomes(imported) == {"free": (3, 3)}
        assert [(problem.code, problem.subject) for problem in imported.problems] == [("unreadable_file", "notes.md")]
        (tmp_path / "week.prom").unlink()
        with pytest.raises(InputError, match=r"notes\.md, first bytes"):
            read_exports(tmp_path)

    def test_the_report_is_plain(self) -> None:
        report = rich().report
        text = json.dumps(report.to_dict())
        assert '"+Inf"' in text
        assert report.understood == sum(file.samples for file in report.files) > 0


PLAIN_LINE = b'horde_text_free_allowance_decisions{horde_outcome="free"} 5'


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            (("picture.png", b"\x89PNG\r\n\x1a\n\x00\x00"),),
            "export, picture.png, first bytes: '89 50 4e 47 0d 0a 1a 0a 00 00' is none of",
        ),
        ((("empty.prom", b""),), "export, empty.prom: 0 bytes of content: the file is empty"),
        (
            (("empty.prom", b""), ("bad.png", b"\x89PNG\r\n\x1a\n\x00\x00")),
            "['empty.prom', 'bad.png'] are all the files there are, and none can be read (the first: export, empty.prom: 0 bytes",
        ),
        (
            (("one.prom", PLAIN_LINE + b"\n"), ("two.prom", PLAIN_LINE + b"6\n")),
            "export, one.prom, two.prom: 2 of 2 files have no timestamps: say scraped_at",
        ),
    ],
)
def test_a_refusal_names_the_file_and_reads_as_a_sentence(files: tuple[tuple[str, bytes], ...], said: str) -> None:
    with pytest.raises(InputError) as refused:
        read_exports([ExportFile(name, data) for name, data in files])
    assert said in str(refused.value)
    assert "\\x" not in str(refused.value)


@pytest.mark.parametrize("comment", [b"# comment " + b"a" * 400 + b"\n", b"#\n\n", b"# one line without an end "])
def test_a_bomb_of_comments_is_named_as_one_and_not_unpacked(comment: bytes) -> None:
    packed = gzip.compress(comment * (4_000_000 // len(comment)))
    with pytest.raises(InputError, match=f"{HEAD_BYTES} bytes of comments come first, without a sample") as caught:
        read_exports(packed)
    assert "is none of" not in str(caught.value)
