"""Every published trace format, told by content; its quirks handled and reported, every row accounted for (traces.md)."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horde_policy.errors import FrameError, InputError
from horde_policy.imports.quirks import segments
from horde_policy.imports.trace_frame import TRACE, Trace, TraceOptions
from horde_policy.imports.traces import FORMAT_NAMES, detect_format, load_trace
from horde_policy.replay.fill import filled
from horde_policy.replay.fill_rule import FillRule
from tests.unit.traffic.paths import TRACES

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
BURST3 = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
# the first rows of the published BurstGPT_3.csv (HPMLL/BurstGPT v2.0, CC-BY-4.0) and one row without a session
BURST3_ROWS = (
    "19440110.0,1722ac82-0a46-4bf0-aa08-89794e7a2b3f,43,GPT-4,906,446,1352,Conversation log\n"
    "19440161.0,d5983bf9-4b48-497b-892b-a58995247443,2,ChatGPT,36,29,65,Conversation log\n"
    "19440192.0,,8,GPT-4,1779,0,1779,API log\n"
)


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def codes(trace: Trace) -> set[str]:
    return {problem.code for problem in trace.problems}


BUNDLED = [
    ("azure2023_conv.head300.csv", "azure", "azure2023_conv", 300, True),
    ("azure2023_conv.parquet", "azure", "azure2023_conv", 19_366, True),
    ("burstgpt1.first400.csv", "burstgpt", "burstgpt1", 400, False),
    ("burstgpt1.first400.parquet", "burstgpt", "burstgpt1", 400, False),
    ("mooncake_conversation.head200.jsonl", "mooncake", "mooncake_conversation", 200, False),
    ("ragpulse_week1.head200.jsonl", "ragpulse", "ragpulse_week1", 200, True),
    ("ragpulse_week1.parquet", "ragpulse", "ragpulse_week1", 3_800, True),
    ("vidur_splitwise_conv.head300.csv", "vidur", "vidur_splitwise_conv", 300, False),
]


@pytest.mark.parametrize(("file", "format_name", "name", "rows", "dated"), BUNDLED, ids=[row[0] for row in BUNDLED])
def test_every_bundled_trace_is_told_by_content_and_kept_whole(
    file: str, format_name: str, name: str, rows: int, dated: bool
) -> None:
    assert detect_format(TRACES / file) == format_name
    trace = load_trace(TRACES / file)
    assert (trace.format, trace.name, trace.rows_read, trace.frame.height, trace.dated) == (format_name, name, rows, rows, dated)
    assert not trace.refused
    assert not trace.synthetic
    assert TRACE.checked(trace.frame).equals(trace.frame)
    assert trace.frame["row"].to_list() == list(range(rows))


def test_the_sizes_are_those_of_the_file() -> None:
    lines = (TRACES / "azure2023_conv.head300.csv").read_text().splitlines()[1:]
    pairs = [tuple(int(cell) for cell in line.split(",")[1:]) for line in lines]
    assert load_trace(TRACES / "azure2023_conv.head300.csv").frame.select("input_tokens", "output_tokens").rows() == pairs
    for name in ("mooncake_conversation.head200.jsonl", "ragpulse_week1.head200.jsonl"):
        objects = [json.loads(line) for line in (TRACES / name).read_text().splitlines()]
        frame = load_trace(TRACES / name).frame
        assert frame["input_tokens"].to_list() == [one["input_length"] for one in objects]
        assert frame["output_tokens"].to_list() == [one["output_length"] for one in objects]
        assert frame["client"].to_list() == [one.get("session_id") for one in objects]


@pytest.mark.parametrize("stem", ["azure2023_conv", "burstgpt1", "ragpulse_week1"])
def test_text_and_parquet_of_one_trace_agree(stem: str) -> None:
    text, parquet = (load_trace(next(TRACES.glob(f"{stem}.*{ending}"))) for ending in ("[lv]", "parquet"))
    assert text.frame.equals(parquet.frame.head(text.frame.height))


def test_vidur_and_azure_are_the_same_requests() -> None:
    azure, vidur = (load_trace(TRACES / f).frame for f in ("azure2023_conv.head300.csv", "vidur_splitwise_conv.head300.csv"))
    sizes = ["row", "input_tokens", "output_tokens"]
    assert azure.select(sizes).equals(vidur.select(sizes))
    since = [(frame["created"] - frame["created"][0]).dt.total_microseconds().to_list() for frame in (azure, vidur)]
    assert since[0] == since[1]


def test_figures_of_the_whole_traces_are_those_measured_before() -> None:
    azure = load_trace(TRACES / "azure2023_conv.parquet").frame
    assert azure["created"][0] == datetime(2023, 11, 16, 18, 15, 46, 680590, tzinfo=UTC)
    assert [azure["output_tokens"].quantile(q, "lower") for q in (0.1, 0.5, 0.9, 0.99)] == [54, 129, 424, 601]
    rag = load_trace(TRACES / "ragpulse_week1.parquet")
    assert rag.frame["created"][0] == datetime(2025, 9, 10, 4, 1, 22, tzinfo=UTC)
    assert rag.frame["client"].n_unique() == 2_215
    texts = {problem.code: problem.text for problem in rag.problems}
    assert texts["test_traffic"].startswith("20 rows")
    assert texts["equal_times"].startswith("36 of 3800 rows")
    assert "numbers_as_strings" in texts
    burst = load_trace(TRACES / "burstgpt1.first400.csv")
    assert burst.frame["failed"].sum() == 17
    assert burst.frame.filter("failed")["input_tokens"].sum() == 0
    assert {p.code: p.text for p in burst.problems}["equal_times"].startswith("4 of 400")


def test_the_chat_flag_comes_from_the_rows_the_format_or_the_name() -> None:
    chat = {row[2]: load_trace(TRACES / row[0]).frame["chat"] for row in BUNDLED}
    assert chat["azure2023_conv"].all()
    assert chat["mooncake_conversation"].all()
    assert chat["ragpulse_week1"].all()
    assert chat["vidur_splitwise_conv"].null_count() == 300
    assert (chat["burstgpt1"].sum(), len(chat["burstgpt1"])) == (398, 400)
    assert load_trace(TRACES / "vidur_splitwise_conv.head300.csv", TraceOptions(chat=False)).frame["chat"].any() is False


def test_azure_code_is_no_chat_and_a_name_that_says_nothing_leaves_it_open(tmp_path: Path) -> None:
    text = AZURE + "2023-11-16 18:15:46.6805900,374,44\n"
    code = load_trace(written(tmp_path, "AzureLLMInferenceTrace_code.csv", text))
    assert (code.name, code.frame["chat"].to_list()) == ("azure2023_code", [False])
    other = load_trace(written(tmp_path, "x.csv", text))
    assert other.frame["chat"].to_list() == [None]
    assert "chat_unknown" in codes(other)


def test_azure_2024_has_offsets_and_any_number_of_digits(tmp_path: Path) -> None:
    rows = "2024-05-10 00:00:00.009930+00:00,1,2\n2024-05-10 02:00:01+02:00,3,4\n2024-05-10 00:00:02.123456789Z,5,6\n"
    trace = load_trace(written(tmp_path, "AzureLLMInferenceTrace_conv_1week.csv", AZURE + rows))
    base = datetime(2024, 5, 10, tzinfo=UTC)
    assert trace.frame["created"].to_list() == [base + timedelta(microseconds=us) for us in (9_930, 1_000_000, 2_123_456)]
    assert trace.name == "azure2024_conv"
    assert "assumed_zone" not in codes(trace)


def test_azure_2023_says_that_the_zone_is_assumed_and_the_seventh_digit_cut() -> None:
    assert {"assumed_zone", "long_fraction"} <= codes(load_trace(TRACES / "azure2023_conv.head300.csv"))


def test_times_with_and_without_an_offset_in_one_file_are_each_read(tmp_path: Path) -> None:
    rows = "2024-05-10 00:00:00,1,2\n2024-05-10 00:00:01+00:00,3,4\nnever,5,6\n"
    trace = load_trace(written(tmp_path, "x.csv", AZURE + rows))
    assert trace.frame["row"].to_list() == [0, 1]
    assert trace.refused == {"unreadable TIMESTAMP": 1}


def test_burstgpt_3_is_read_by_name_and_starts_at_day_225(tmp_path: Path) -> None:
    trace = load_trace(written(tmp_path, "BurstGPT_3.csv", BURST3 + BURST3_ROWS))
    assert (trace.format, trace.name) == ("burstgpt", "burstgpt3")
    assert trace.frame["client"].to_list() == [
        "1722ac82-0a46-4bf0-aa08-89794e7a2b3f",
        "d5983bf9-4b48-497b-892b-a58995247443",
        None,
    ]
    assert trace.frame["chat"].to_list() == [True, True, False]
    assert trace.frame["model"].to_list() == ["GPT-4", "ChatGPT", "GPT-4"]
    assert trace.frame["failed"].to_list() == [False, False, True]
    assert trace.frame["input_tokens"].to_list() == [906, 36, 1779]
    assert (trace.frame["created"][0] - datetime(2023, 1, 1, tzinfo=UTC)).days == 225


def test_qwen_bailian_chats_belong_to_the_root_of_their_chain(tmp_path: Path) -> None:
    # the record of the dataset's description (Apache-2.0), its chain made up
    def line(chat: int, parent: int, at: float) -> str:
        lengths = {"input_length": 521, "output_length": 132, "type": "text", "turn": 2, "hash_ids": [1089, 1090]}
        return json.dumps({"chat_id": chat, "parent_chat_id": parent, "timestamp": at, **lengths}) + "\n"

    text = line(55, -1, 0.0) + line(159, 55, 61.114) + line(7, 999, 62) + line(160, 159, 62.5) + line(1, 2, 63) + line(2, 1, 64)
    trace = load_trace(written(tmp_path, "qwen_traceA_blksz_16.jsonl", text))
    assert trace.format == "qwen"
    assert trace.frame["client"].to_list()[:4] == ["55", "55", "999", "55"]
    assert trace.frame["client"][4] == trace.frame["client"][5]
    assert trace.frame["chat"].all()
    assert (trace.frame["created"][1] - trace.frame["created"][0]) == timedelta(seconds=61.114)
    assert load_trace(written(tmp_path, "qwen_thinking.jsonl", text)).frame["chat"].null_count() == 6


def test_a_chain_of_a_hundred_thousand_turns_does_not_overflow_anything(tmp_path: Path) -> None:
    lines = [
        f'{{"chat_id":{n},"parent_chat_id":{n - 1},"timestamp":{n},"input_length":1,"output_length":1}}' for n in range(100_000)
    ]
    trace = load_trace(written(tmp_path, "q.jsonl", "\n".join(lines)))
    assert trace.frame["client"].unique().to_list() == ["0"]


# --- the clock --------------------------------------------------------------------------------------------------------


def ragpulse(*times: int | str) -> str:
    rows = [
        {"timestamp": str(at), "input_length": 10, "output_length": 20, "hash_ids": {"history": [1]}, "session_id": f"s{n}"}
        for n, at in enumerate(times)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_two_weeks_appended_are_refused_with_their_segments_named_or_one_is_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, "0_trace.jsonl", ragpulse(82, 93, 604_000, 0, 50) + "\n")
    with pytest.raises(InputError, match=r"row 3, time: 0\.0 falls back.*1: rows 0 to 2, 603918 s; 2: rows 3 to 4, 50 s"):
        load_trace(path)
    first = load_trace(path, TraceOptions(segment=1))
    assert (first.name, first.dated, first.frame.height) == ("ragpulse_week1", True, 3)
    assert first.refused == {"in another segment of the file": 2}
    assert "blank_last_line" in codes(first)
    second = load_trace(path, TraceOptions(segment=2))
    assert (second.name, second.dated) == ("ragpulse_week2", False)
    assert second.frame["row"].to_list() == [3, 4]
    for wrong in (0, 3):
        with pytest.raises(InputError, match=r"segment: \d must be 1 to 2"):
            load_trace(path, TraceOptions(segment=wrong))


def test_a_relative_trace_laid_twice_in_one_file_says_so(tmp_path: Path) -> None:
    content = (TRACES / "ragpulse_week1.head200.jsonl").read_bytes()
    with pytest.raises(InputError, match="the second repeats the first: the file was doubled"):
        load_trace(written(tmp_path, "r.jsonl", content * 2))


def test_a_dated_trace_laid_twice_is_kept_and_says_so(tmp_path: Path) -> None:
    content = (TRACES / "azure2023_conv.head300.csv").read_text()
    trace = load_trace(written(tmp_path, "azure2023_conv.csv", content + content))
    assert (trace.rows_read, trace.frame.height) == (601, 600)
    assert trace.refused == {"repeated header": 1}
    assert "doubled" in codes(trace)
    assert next(p for p in trace.problems if p.code == "doubled").level == "problem"


def test_rows_out_of_order_are_sorted_and_said(tmp_path: Path) -> None:
    path = written(tmp_path, "r.jsonl", ragpulse(0, 100, 90, 200))
    trace = load_trace(path)
    assert trace.frame["row"].to_list() == [0, 2, 1, 3]
    assert "out_of_order" in codes(trace)
    lines = (TRACES / "azure2023_conv.head300.csv").read_text().splitlines(keepends=True)
    shuffled = load_trace(written(tmp_path, "azure2023_conv.csv", lines[0] + "".join(reversed(lines[1:]))))
    assert shuffled.frame["created"].is_sorted()
    assert shuffled.frame["row"].to_list() == list(range(299, -1, -1))


def test_a_shuffled_relative_trace_says_that_it_must_be_sorted(tmp_path: Path) -> None:
    times = [(n * 7919) % 1000 for n in range(1000)]
    with pytest.raises(InputError, match="out of order, sort them by time"):
        load_trace(written(tmp_path, "r.jsonl", ragpulse(*times)))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_no_row_is_lost_whatever_the_clock_does(times: list[int]) -> None:
    try:
        spans = segments(pl.Series(times))
    except InputError:
        return
    assert spans[0][0] == 0
    assert spans[-1][1] == len(times)
    assert all(before[1] == after[0] for before, after in pairwise(spans))


def test_the_origin_of_a_clock_without_a_date_can_be_set_and_a_dated_one_not() -> None:
    at = datetime(2024, 6, 1, tzinfo=UTC)
    moved = load_trace(TRACES / "mooncake_conversation.head200.jsonl", TraceOptions(origin=at))
    assert moved.frame["created"][0] == at
    assert not moved.dated
    with pytest.raises(InputError, match=r"origin.*azure has dates of its own"):
        load_trace(TRACES / "azure2023_conv.head300.csv", TraceOptions(origin=at))


def test_mooncake_says_that_it_was_recorded_in_batches() -> None:
    assert {"batched_times", "assumed_date", "tiny_outputs"} <= codes(load_trace(TRACES / "mooncake_conversation.head200.jsonl"))


def test_a_range_of_seconds_keeps_rows_and_counts_the_others() -> None:
    whole = load_trace(TRACES / "ragpulse_week1.parquet")
    day = load_trace(TRACES / "ragpulse_week1.parquet", TraceOptions(from_s=0, to_s=86_400))
    assert day.frame.height + day.refused["outside the range asked for"] == whole.frame.height
    assert day.frame.equals(whole.frame.head(day.frame.height))
    with pytest.raises(InputError, match="must have from before to"):
        load_trace(TRACES / "ragpulse_week1.parquet", TraceOptions(from_s=10, to_s=10))


# --- rows that cannot be used, files that are none -------------------------------------------------------------------


def test_rows_with_negative_absent_or_senseless_sizes_are_refused_by_reason(tmp_path: Path) -> None:
    rows = "2023-11-16 18:15:46,1,2\n2023-11-16 18:15:47,-1,2\n2023-11-16 18:15:48,1,\n2023-11-16 18:15:49,1,-5\n,1,2\n2023-11-16"
    trace = load_trace(written(tmp_path, "azure.csv", AZURE + rows))
    assert trace.refused == {
        "negative ContextTokens": 1,
        "no GeneratedTokens": 1,
        "negative GeneratedTokens": 1,
        "no TIMESTAMP": 1,
        "number of fields": 1,
    }
    assert (trace.rows_read, trace.frame.height) == (6, 1)
    assert {"negative_ContextTokens", "no_last_newline"} <= codes(trace)


def test_a_time_beyond_the_calendar_is_refused(tmp_path: Path) -> None:
    text = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,1,2\n1e300,1,2\n1e12,3,4\n"
    trace = load_trace(written(tmp_path, "v.csv", text))
    assert trace.refused == {"time out of range": 2}
    assert trace.frame["row"].to_list() == [0]


def test_a_file_in_which_no_row_is_usable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="are the reasons for which every row was refused"):
        load_trace(written(tmp_path, "a.csv", AZURE + "2023-11-16 18:15:46,-1,2\n"))


def test_no_rows_at_all_work_and_say_so(tmp_path: Path) -> None:
    trace = load_trace(written(tmp_path, "a.csv", AZURE))
    assert (trace.rows_read, trace.frame.height) == (0, 0)
    assert "no_rows" in codes(trace)


def test_a_file_of_no_known_format_says_what_it_has(tmp_path: Path) -> None:
    for content in ("a,b\n1,2\n", '{"a": 1}\n', "text\n", '{"a":\n 1}\n'):
        with pytest.raises(InputError, match=f"supported are {', '.join(FORMAT_NAMES)}"):
            load_trace(written(tmp_path, "x", content))
    with pytest.raises(InputError, match=r"columns of a supported format.*separated by .;., and must be by commas"):
        load_trace(written(tmp_path, "x.csv", "created;models;max_length\n2026-11-29T18:00:00Z;m;80\n"))
    with pytest.raises(InputError, match="format: 'nonsense' must be one of"):
        load_trace(TRACES / "azure2023_conv.head300.csv", format_name="nonsense")
    with pytest.raises((InputError, FrameError), match=r"must name at least one of|is missing"):
        load_trace(TRACES / "azure2023_conv.head300.csv", format_name="vidur")


def test_a_forced_format_reads_what_its_columns_do_not_tell(tmp_path: Path) -> None:
    path = written(tmp_path, "m.jsonl", '{"timestamp": 27482, "input_length": 6955, "output_length": 52}\n')
    with pytest.raises(InputError, match="supported format"):
        load_trace(path)
    assert load_trace(path, format_name="mooncake").frame["output_tokens"].to_list() == [52]


def test_hostile_names_go_no_further_than_data(tmp_path: Path) -> None:
    text = BURST3 + '1.0,"=cmd|\'/c\'!A0\u202e<b>",1,"[x](javascript:1)",1,2,3,API log\n'
    frame = load_trace(written(tmp_path, "b.csv", text)).frame
    assert frame["client"][0].startswith("=cmd")
    assert frame["model"][0] == "[x](javascript:1)"


# --- our own schema --------------------------------------------------------------------------------------------------

OWN = "created,output_tokens,models\n2026-11-29T18:00:05Z,20,a|b\n2026-11-29T19:00:01+01:00,30,\n"


def test_our_own_schema_keeps_its_order_and_what_it_knows(tmp_path: Path) -> None:
    trace = load_trace(written(tmp_path, "mine.csv", OWN))
    assert (trace.format, trace.name) == ("traffic", "mine")
    assert trace.frame["created"].to_list()[1] == datetime(2026, 11, 29, 18, 0, 1, tzinfo=UTC)
    assert trace.frame["models"].to_list() == [["a", "b"], []]
    assert "out_of_order" in codes(trace)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("created,models\n2026-11-29T18:00:05Z,a\n", r"must have max_length, or output_tokens"),
        (
            "created,output_tokens\n2026-11-29T18:00:05,1\n",
            r"row 0, column created: '2026-11-29T18:00:05' must be an instant with its",
        ),
        ("created,max_length\n2026-11-29T18:00:05Z,-1\n", r"row 0, column max_length: -1 must be at least 1"),
        ("created,max_length\n2026-11-29T18:00:05Z,16385\n", r"row 0, column max_length: 16385 must be at most 16384"),
        ("created,output_tokens\n2026-11-29T18:00:05Z,-5\n", r"row 0, column output_tokens: -5 must be at least 0"),
        ("created,max_length\n2026-11-29T18:00:05Z,many\n", r"row 0, column max_length: 'many' must be a whole number"),
        (
            "created,max_length,requester\n2026-11-29T18:00:05Z,1,admin\n",
            r"row 0, column requester: 'admin' must be one of anonymous",
        ),
        (
            "created,max_length,request_id\n2026-11-29T18:00:05Z,1,a\n2026-11-29T18:00:05Z,1,a\n",
            r"row 1, column request_id: 'a' must be unique",
        ),
        ("created,max_length,priority\n2026-11-29T18:00:05Z,1,nan\n", r"row 0, column priority: 'nan' must be a finite number"),
    ],
)
def test_our_own_schema_is_refused_whole_by_row_column_and_rule(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_trace(written(tmp_path, "t.csv", text))


def test_our_own_schema_as_json_lines_may_leave_out_what_is_filled(tmp_path: Path) -> None:
    rows = [
        {"created": "2026-11-29T18:00:00Z", "output_tokens": 20},
        {"created": "2026-11-29T18:00:01Z", "max_length": 90, "models": []},
    ]
    text = "\n".join(json.dumps(row) for row in rows)
    traffic = filled(load_trace(written(tmp_path, "t.jsonl", text)), FillRule()).frame
    assert traffic.select("max_length", "models", "output_tokens").rows() == [(80, [], 20), (90, [], 90)]


def test_a_doubled_file_of_our_own_says_so(tmp_path: Path) -> None:
    rows = OWN.split("\n", 1)[1]
    assert "doubled" in codes(load_trace(written(tmp_path, "t.csv", OWN + rows)))
    assert "no_rows" in codes(load_trace(written(tmp_path, "t.csv", OWN.split("\n")[0] + "\n")))


def test_neither_kept_nor_refused_is_an_error_of_ours() -> None:
    with pytest.raises(InputError, match="neither kept nor refused"):
        Trace(name="t", format="azure", frame=TRACE.empty(), rows_read=1, refused={})
