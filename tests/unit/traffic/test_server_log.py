"""AI Horde's own server log: times, sizes, n, and aliases that are hashed while they are read (traces.md §4)."""

import bz2
from datetime import UTC, datetime
from pathlib import Path

import pytest

from horde_policy.errors import InputError
from horde_policy.imports.trace_frame import Trace, TraceOptions
from horde_policy.imports.traces import detect_format, load_trace

LINE = "INFO       | 2026-11-29 18:00:{s:02d} | horde.classes.kobold.waiting_prompt:activate:213 - {message}\n"
PROMPT = (
    "New text2text prompt with ID 4c4b0f5e-0f1c-4b2a-9d53-0c1d6a1e2f{s:02d} by {who}: "
    "max_length:{size} * n:{n} == {total} Total Tokens"
)


def prompt(second: int, who: str, size: int, n: int = 1) -> str:
    return LINE.format(s=second, message=PROMPT.format(s=second, who=who, size=size, n=n, total=float(size * n)))


OTHER = LINE.format(s=1, message="Worker quill checked in")
LOG = (
    OTHER
    + prompt(2, "Anonymous#0", 80)
    + prompt(3, "Möbius: the 1st#4711", 512, 3)
    + prompt(4, "front-end#12:user-9", 300)
    + prompt(5, "Möbius: the 1st#4711", 20_000)
)


def loaded(folder: Path, content: str | bytes, **given: object) -> Trace:
    path = folder / "horde.log"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_trace(path, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("pack", [False, True], ids=["plain", "bz2"])
def test_a_log_is_told_by_content_and_gives_a_row_an_answer(pack: bool, tmp_path: Path) -> None:
    trace = loaded(tmp_path, bz2.compress(LOG.encode()) if pack else LOG)
    assert detect_format(tmp_path / "horde.log") == trace.format == "server_log"
    assert (trace.rows_read, trace.refused) == (6, {})
    assert trace.frame["max_length"].to_list() == [80, 512, 512, 512, 300, 20_000]
    assert trace.frame["created"][0] == datetime(2026, 11, 29, 18, 0, 2, tzinfo=UTC)
    assert trace.frame["requester"].to_list() == ["anonymous", None, None, None, None, None]
    assert trace.frame["client"].null_count() == 1
    assert trace.frame["client"].n_unique() == 3
    assert trace.frame["client"][1] == trace.frame["client"][5]
    assert trace.anonymous_known
    texts = {problem.code: problem.text for problem in trace.problems}
    assert texts["other_lines"].startswith("1 lines")
    assert texts["several_answers"].startswith("1 requests")


def test_no_alias_is_kept_anywhere(tmp_path: Path) -> None:
    trace = loaded(
        tmp_path, LOG + prompt(6, "secret#1", 0) + LINE.format(s=7, message="New text2text prompt with ID x by hidden#2")
    )
    kept = repr(trace.frame.to_dicts()) + repr(trace.problems) + repr(trace.refused)
    for alias in ("bius", "4711", "front-end", "user-9", "secret", "hidden"):
        assert alias not in kept
    assert trace.refused == {"max_length below 1": 1, "unreadable request line": 1}
    assert trace.rows_read == 8


def test_the_hash_needs_its_key(tmp_path: Path) -> None:
    own = loaded(tmp_path, LOG).frame["client"].to_list()
    assert own == loaded(tmp_path, LOG).frame["client"].to_list()
    assert own[1] not in loaded(tmp_path, OTHER + LOG).frame["client"].to_list()
    keyed = [loaded(tmp_path, log, alias_key=b"k" * 32).frame["client"].to_list() for log in (LOG, OTHER + LOG)]
    assert keyed[0] == keyed[1] != own
    for key in (b"", b"k" * 65):
        with pytest.raises(InputError, match="must be 1 to 64 bytes"):
            loaded(tmp_path, LOG, alias_key=key)


def test_the_older_wording_is_read(tmp_path: Path) -> None:
    assert loaded(tmp_path, LOG.replace("max_length:", "token:")).frame["max_length"].to_list()[:2] == [80, 512]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (prompt(1, "a#1", 80, 0), "n outside 1 to 20"),
        (prompt(1, "a#1", 80, 999_999_999), "n outside 1 to 20"),
        (prompt(1, "a#1", 80).replace("18:00:01", "18:00:61"), "no such time"),
        (prompt(1, "a#1", 80).replace("max_length:80", "max_length:many"), "unreadable request line"),
        (prompt(1, "a#1", 80).replace("Total Tokens", ""), "unreadable request line"),
    ],
)
def test_lines_that_cannot_be_are_refused_by_reason(line: str, reason: str, tmp_path: Path) -> None:
    trace = loaded(tmp_path, OTHER + line + prompt(2, "a#1", 81))
    assert trace.refused == {reason: 1}
    assert trace.frame["max_length"].to_list() == [81]


def test_an_alias_that_looks_like_the_rest_of_a_line_changes_nothing(tmp_path: Path) -> None:
    who = "x: max_length:9 * n:9 == 81.0 Total Tokens#7"
    trace = loaded(tmp_path, prompt(1, who, 80) + prompt(2, "\u202eevil | #8", 90))
    assert trace.frame["max_length"].to_list() == [80, 90]


def test_a_log_without_text_requests_works_and_says_so(tmp_path: Path) -> None:
    trace = loaded(tmp_path, OTHER * 3)
    assert trace.rows_read == 0
    assert "no_rows" in {problem.code for problem in trace.problems}


def test_a_range_keeps_part_of_the_log(tmp_path: Path) -> None:
    trace = loaded(tmp_path, LOG, options=TraceOptions(from_s=1, to_s=3))
    assert trace.frame["max_length"].to_list() == [512, 512, 512, 300]
    assert trace.refused == {"outside the range asked for": 2}
