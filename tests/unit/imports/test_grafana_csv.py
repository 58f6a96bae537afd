"""exports.md 15: Grafana's CSV in all its forms."""

from math import inf

import pytest

from horde_policy.errors import InputError
from horde_policy.imports import read_exports
from horde_policy.imports.mapping import mapping_of
from tests.unit.imports.writing import (
    DECISIONS,
    QUEUE,
    T0,
    buckets,
    codes,
    intervals,
    outcomes,
)


class TestGrafana:
    """Rule 15."""

    FREE = '{__name__=""horde_text_free_allowance_decisions"", horde_outcome=""free""}'
    REFUSED = 'horde_text_free_allowance_decisions{horde_outcome=""refused""}'

    def wide(self, rows: list[tuple[str, str, str]]) -> bytes:
        lines = [f'"Time","{self.FREE}","{self.REFUSED}"', *(",".join(row) for row in rows)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def test_series_joined_by_time_in_raw_form(self) -> None:
        rows = [(f"{T0}000", "10", "undefined"), (f"{T0 + 60}000", "13", "2"), (f"{T0 + 120}000", "", "2")]
        imported = read_exports(self.wide(rows))
        assert intervals(imported) == [(0, 60, "free", 3, 3), (0, 60, "refused", 2, 2)]

    def test_grouped_numbers_are_exact_and_rounded_ones_are_said_to_be(self) -> None:
        exact = self.wide([(f"{T0}000", '"1,443"', "0"), (f"{T0 + 60}000", '"1,453"', "1")])
        assert outcomes(read_exports(exact)) == {"free": (10, 10), "refused": (1, 1)}
        rounded = self.wide([(f"{T0}000", "1.44 K", "0"), (f"{T0 + 60}000", "1.45 K", "1")])
        imported = read_exports(rounded)
        assert outcomes(imported)["free"] == (10, 10)
        assert "rounded" in codes(imported)

    def test_local_times_need_a_zone(self) -> None:
        text = self.wide([("2026-09-21 16:13:20", "10", "0"), ("2026-09-21 16:14:20", "13", "1")])
        with pytest.raises(InputError, match="say time_zone in a mapping"):
            read_exports(text)
        imported = read_exports(text, mapping=mapping_of({"time_zone": "Europe/Berlin"}))
        assert intervals(imported) == [(0, 60, "free", 3, 3), (0, 60, "refused", 1, 1)]

    def test_local_times_that_occur_twice_are_left_out_and_said(self) -> None:
        text = self.wide(
            [("2026-10-25 01:59:00", "10", "0"), ("2026-10-25 02:30:00", "13", "1"), ("2026-10-25 03:00:00", "14", "1")]
        )
        imported = read_exports(text, mapping=mapping_of({"time_zone": "Europe/Berlin"}))
        assert outcomes(imported) == {"free": (4, 4), "refused": (1, 1)}
        assert "ambiguous_time" in codes(imported)

    def test_excel_writes_utf_16_with_tabs(self) -> None:
        text = f'"Time"\t"{self.FREE}"\r\n{T0}000\t10\r\n{T0 + 60}000\t13\r\n\r\n'
        imported = read_exports("\ufeff".encode("utf-16-le") + text.encode("utf-16-le"))
        assert outcomes(imported) == {"free": (3, 3)}
        assert imported.report.files[0].packing == ("utf-16-le",)

    def test_older_excel_header(self) -> None:
        text = b"sep=,\r\n" + self.wide([(f"{T0}000", "10", "0"), (f"{T0 + 60}000", "13", "1")])
        assert outcomes(read_exports(text)) == {"free": (3, 3), "refused": (1, 1)}

    def test_long_form(self) -> None:
        lines = [
            "Time,__name__,horde_outcome,horde_chat,Value",
            *(
                f"{T0 + at}000,{DECISIONS},{outcome},true,{value}"
                for at, outcome, value in ((0, "free", 1), (0, "refused", 2), (60, "free", 4), (60, "refused", 7))
            ),
        ]
        imported = read_exports("\n".join(lines).encode())
        assert outcomes(imported) == {"free": (3, 3), "refused": (5, 5)}
        assert imported.decisions["chat"].to_list() == [True, True]

    def test_the_old_writers(self) -> None:
        series = 'horde_text_free_allowance_decisions{horde_outcome=\\"free\\"}'.replace('\\"', '""')
        rows = [
            f'"{series}";"{stamp}";{value}'
            for stamp, value in (
                ("2026-09-21T14:13:20+00:00", "10"),
                ("2026-09-21T14:14:20+00:00", "null"),
                ("2026-09-21T14:15:20+00:00", "15"),
            )
        ]
        text = "\r\n".join(['"Series";"Time";"Value"', *rows])
        assert intervals(read_exports(text.encode())) == [(0, 120, "free", 5, 5)]

    def test_the_old_writer_of_columns(self) -> None:
        title = 'horde_text_free_allowance_decisions{horde_outcome=""free""}'
        text = f'sep=;\nTime;"{title}"\n2026-09-21T14:13:20+00:00;10\n'
        text += "2026-09-21T14:14:20+00:00;undefined\n2026-09-21T14:15:20+00:00;12\n"
        assert intervals(read_exports(text.encode())) == [(0, 120, "free", 2, 2)]

    def test_legends_need_a_mapping(self) -> None:
        text = f'"Time","free","refused"\r\n{T0}000,10,1\r\n{T0 + 60}000,13,4\r\n\r\n'.encode()
        plain = read_exports(text)
        assert "needs_mapping" in codes(plain)
        assert {one.subject: one.count for one in plain.report.files[0].skipped} == {"free": 2, "refused": 2}
        series = [{"title": word, "family": "decisions", "set": {"outcome": word}} for word in ("free", "refused")]
        assert outcomes(read_exports(text, mapping=mapping_of({"series": series}))) == {"free": (3, 3), "refused": (3, 3)}

    def test_two_tables_one_after_the_other(self) -> None:
        first = f'"Time","{self.FREE}"\r\n{T0}000,10\r\n{T0 + 60}000,13\r\n\r\n'
        second = f'"Time","{self.REFUSED}"\r\n{T0}000,1\r\n{T0 + 60}000,2\r\n\r\n'
        assert outcomes(read_exports((first + second).encode())) == {"free": (3, 3), "refused": (1, 1)}

    def test_buckets(self) -> None:
        titles = [f'{QUEUE}_bucket{{le=""{le}""}}' for le in ("60", "300", "+Inf")]
        header = ",".join(f'"{title}"' for title in titles)
        text = f'"Time",{header}\r\n{T0}000,0,0,0\r\n{T0 + 60}000,1,3,4\r\n\r\n'
        assert buckets(read_exports(text.encode())) == {(0.0, 60.0): (1, 1), (60.0, 300.0): (2, 2), (300.0, inf): (1, 1)}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_the_separator_that_the_first_line_names_is_taken_whatever_it_is(separator: str, end: str) -> None:
    title = '"horde_text_free_allowance_decisions{horde_outcome=""free""}"'
    lines = [f"sep={separator}", f'"Time"{separator}{title}', *(f"17900000{at:02}000{separator}{at}" for at in (0, 60))]
    assert outcomes(read_exports((end.join(lines) + end).encode())) == {"free": (60, 60)}


@pytest.mark.parametrize(("short", "expected"), [(2, {"short_row"}), (3, {"short_row", "truncated"})])
def test_a_row_that_is_too_short_ends_the_file_only_where_it_is_the_last(short: int, expected: set[str]) -> None:
    series = 'horde_text_free_allowance_decisions_total{horde_outcome="free"}'
    rows = [f'"Time","{series.replace(chr(34), chr(34) * 2)}"', *(f"17900000{number}0000,{number}" for number in range(1, 4))]
    rows[short] = rows[short].partition(",")[0]
    imported = read_exports("\n".join(rows).encode())
    assert {problem.code for problem in imported.problems if problem.level == "problem"} & {"short_row", "truncated"} == expected
