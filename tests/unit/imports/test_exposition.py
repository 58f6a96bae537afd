"""Prometheus text and OpenMetrics as real writers write them."""

from datetime import UTC, datetime

import pytest

from horde_policy.errors import InputError
from horde_policy.imports import ExportFile, read_exports
from horde_policy.imports.mapping import mapping_of
from tests.unit.imports.writing import (
    DECISIONS,
    PLAIN,
    T0,
    codes,
    decision,
    exposition,
    intervals,
    outcomes,
)


class TestExposition:
    def test_open_metrics_with_exemplars_and_seconds(self) -> None:
        text = (
            "# TYPE horde_text_free_allowance_decisions counter\n"
            f'{DECISIONS}_total{{horde_outcome="free"}} 1.0 1790000000.0\n'
            f'{DECISIONS}_total{{horde_outcome="free"}} 4.0 1790000060.5 # {{trace_id="a # b"}} 1.0 1790000060.1\n# EOF\n'
        )
        assert intervals(read_exports(text.encode())) == [(0, 60.5, "free", 3, 3)]

    def test_label_values_that_look_like_the_end_of_the_labels(self) -> None:
        hostile = 'a} 5 1 # \\"{x=\\\\'
        rows = [(DECISIONS + '{pod="' + hostile + '",horde_outcome="free"}', at, 1.0 + at) for at in (0, 60)]
        imported = read_exports(exposition(rows))
        assert outcomes(imported) == {"free": (60, 60)}
        assert imported.report.files[0].skipped == ()

    def test_blanks_tabs_windows_line_ends_and_no_labels(self) -> None:
        text = f"{DECISIONS}\t1  1790000000000\r\n{DECISIONS} {4}  1790000060000\r\n\r\n"
        imported = read_exports(text.encode())
        assert imported.decisions.select("outcome", "count_low").rows() == [(None, 3)]

    def test_control_characters_do_not_end_a_line(self) -> None:
        rows = [(DECISIONS + '{pod="a\x01\x02b",horde_outcome="free"}', at, 1.0 + at) for at in (0, 60)]
        assert outcomes(read_exports(exposition(rows))) == {"free": (60, 60)}

    def test_one_scrape_without_a_time_holds_totals(self) -> None:
        text = f'{DECISIONS}{{horde_outcome="free"}} 12\n{DECISIONS}{{horde_outcome="refused"}} 3\n'.encode()
        imported = read_exports(text)
        assert intervals(imported) == [(None, None, "free", 12, 12), (None, None, "refused", 3, 3)]
        assert imported.report.one_scrape
        assert "one_scrape" in codes(imported)

    def test_many_scrapes_without_times_need_them(self) -> None:
        line = f'{DECISIONS}{{horde_outcome="free"}} 12\n'.encode()
        with pytest.raises(InputError, match="several scrapes in one file need timestamps"):
            read_exports(line + line)
        with pytest.raises(InputError, match="say scraped_at in a mapping"):
            read_exports([line, line.replace(b"12", b"15")])

    def test_a_scrape_a_file_with_times_from_the_mapping(self) -> None:
        files = [
            ExportFile(f"{name}.prom", f'{DECISIONS}{{horde_outcome="free"}} {value}\n'.encode())
            for name, value in (("a", 12), ("b", 15))
        ]
        times = {
            "a.prom": {"scraped_at": datetime.fromtimestamp(T0, UTC)},
            "b.prom": {"scraped_at": datetime.fromtimestamp(T0 + 300, UTC)},
        }
        assert intervals(read_exports(files, mapping=mapping_of({"files": times}))) == [(0, 300, "free", 3, 3)]

    def test_a_series_born_between_two_files_of_one_scrape_counts_in_full(self) -> None:
        first, second = [(decision("free"), 0, 5)], [(decision("free"), 60, 6), (decision("refused"), 60, 2)]
        assert outcomes(read_exports([exposition(first), exposition(second)])) == {"free": (1, 1), "refused": (2, 2)}

    @pytest.mark.parametrize(
        ("tail", "expected"),
        [
            ("", 3),
            (f"{decision('free')} 9", 3),
            (f"{decision('free')} 9 17900001", 3),
            (f"{decision('free')} 9 {1790000120000}", 8),
        ],
    )
    def test_a_last_line_without_an_end_counts_only_if_it_is_whole(self, tail: str, expected: float) -> None:
        imported = read_exports(PLAIN + tail.encode())
        assert outcomes(imported) == {"free": (expected, expected)}
        assert ("truncated" in codes(imported)) == bool(tail and expected == 3)

    def test_values_that_are_none(self) -> None:
        text = (
            PLAIN
            + f"{decision('free')} NaN 1790000120000\n{decision('free')} -1 1790000180000\n".encode()
            + f"{decision('free')} +Inf 1790000240000\n{decision('free')} x 1\n".encode()
        )
        imported = read_exports(text)
        assert outcomes(imported) == {"free": (3, 3)}
        assert {one.reason: one.count for one in imported.report.files[0].skipped} == {
            "no value (NaN: the series went away)": 1,
            "a negative or infinite count": 2,
            "a line that is no sample": 1,
        }
