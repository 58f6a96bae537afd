"""Of several exports one that cannot be read is left out whole and named; how far the reading is, and how it is stopped."""

import gzip
from pathlib import Path

import pytest

from horde_policy.errors import ReadingCancelled
from horde_policy.imports import read_exports
from horde_policy.imports.unpack import ExportFile
from horde_policy.review.exported import exported_from
from horde_policy.views.review_tables import left_rows, left_text
from tests.unit.imports.writing import PLAIN


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{horde_outcome="free"} 9 1790000120000', "everything was understood"),
        ('{horde_outcome="x"} 9 1790000120000', "1 sample has a word that is none of the rule"),
        ('{horde_outcome="free",colour="red"} 9 1790000120000', "1 label is not known"),
        ('{horde_outcome="free"} x', "1 sample, line or record was left out"),
    ],
)
def test_everything_was_understood_only_where_nothing_is_listed(line: str, told: str) -> None:
    exported = exported_from(read_exports(PLAIN + f"horde_text_free_allowance_decisions{line}\n".encode()))
    assert left_text(exported) == told
    assert (left_rows(exported) == []) == (told == "everything was understood")


LINE = b'horde_text_free_allowance_decisions{horde_outcome="refused"} '
OTHER = LINE + b"1 1790000000000\n" + LINE + b"8 1790000060000\n"
GOOD = (ExportFile("a.prom", PLAIN), ExportFile("b.prom", OTHER))

BAD = [
    pytest.param(b"", "the file is empty", id="empty"),
    pytest.param(b"\x89PNG\r\n\x1a\n\x00\x00", "is none of", id="another kind"),
    pytest.param(gzip.compress(PLAIN + b"# nothing\n" * 300_000), "are the most that a file may unpack to", id="bomb"),
    pytest.param(gzip.compress(PLAIN)[:12], "can be read", id="cut off at once"),
    pytest.param(LINE + b"900\n", "have no timestamps", id="a scrape without a time"),
]


@pytest.mark.parametrize(("content", "why"), BAD)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_good_ones_are_read_and_the_bad_one_is_named(content: bytes, why: str, place: int) -> None:
    files = [*GOOD]
    files.insert(place, ExportFile("bad <b>", content))
    imported = read_exports(files, max_unpacked_bytes=1_000_000)
    alone = read_exports(list(GOOD))
    assert imported.decisions.equals(alone.decisions), "nothing of the bad one is counted"
    assert [file.name for file in imported.report.files] == ["a.prom", "b.prom"]
    (problem,) = [one for one in imported.problems if one.code == "unreadable_file"]
    assert (problem.subject, problem.level) == ("bad <b>", "problem")
    assert why in problem.text


def test_a_file_that_is_not_there_is_left_out_as_well(tmp_path: Path) -> None:
    (tmp_path / "a.prom").write_bytes(PLAIN)
    imported = read_exports([tmp_path / "a.prom", tmp_path / "gone.prom"])
    assert [one.subject for one in imported.problems if one.code == "unreadable_file"] == ["gone.prom"]


def test_the_share_that_is_read_rises_to_the_whole() -> None:
    told: list[float] = []
    large = PLAIN + b"# nothing\n" * 400_000
    read_exports(
        [ExportFile("a.prom", large), ExportFile("bad", b""), ExportFile("b.gz", gzip.compress(large))], progress=told.append
    )
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert sum(0 < share < 0.95 for share in told) >= 3, "a file of several megabytes is told of more than once"


def test_who_cancels_ends_the_reading_and_no_file_is_blamed() -> None:
    def stop(share: float) -> None:
        if share > 0:
            raise ReadingCancelled("cancelled")

    with pytest.raises(ReadingCancelled):
        read_exports(list(GOOD), progress=stop)
